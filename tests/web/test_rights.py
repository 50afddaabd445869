"""Who may not write is shown nothing that acts; who may for some sessions sees those."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from served import HttpServer
from web.visiting import ASKS, Visitor, run_tmuxctl

pytestmark = pytest.mark.night

ACTS = ("yes", "no", "Kill", "Interrupt", "Start", "Fit", "Start a session", "Enter", "Escape", "Rename", "Mark", "Add")


@pytest.mark.parametrize("touch", [False, True])
def test_a_reader_is_shown_nothing_that_acts(
    touch: bool, signed_in: Callable[..., Visitor], start_server: Callable[..., HttpServer]
) -> None:
    server = start_server()
    server.new("deploy", *ASKS, tag=["release"])
    one = signed_in(server, "--right", "read", has_touch=touch, is_mobile=touch)
    one.tile("deploy").get_by_text("Deploy to production?").wait_for()
    one.page.get_by_text("read only").wait_for()
    buttons = [one.page.locator("button").all_inner_texts()]
    one.page.keyboard.press("s")
    one.open_session("deploy")
    one.await_text("Deploy to production?")
    buttons.append(one.page.locator("button").all_inner_texts())
    one.page.locator(".xterm-screen").click()
    one.page.keyboard.type("y\n")
    one.page.get_by_role("button", name="About").click()
    one.page.get_by_role("dialog").get_by_text("release").wait_for()
    buttons.append(one.page.get_by_role("dialog").locator("button").all_inner_texts())
    assert [text for texts in buttons for text in texts if text.strip() in ACTS] == []
    one.close_sheet()
    one.page.keyboard.press("Control+k")
    assert not [text for text in one.page.get_by_role("option").all_inner_texts() if "Kill" in text or "Start" in text]
    assert "you said" not in server.screen("deploy")


def test_a_login_for_some_sessions_sees_those_and_ends_with_sign_out(
    signed_in: Callable[..., Visitor], start_server: Callable[..., HttpServer]
) -> None:
    server = start_server()
    server.new("build-1", "cat")
    server.new("secret", "cat")
    one = signed_in(server, "--only", "build-*")
    one.tile("build-1").wait_for()
    assert one.tile("secret").count() == 0
    one.open(f"/session/{server.get('/v1/sessions/secret').json['id']}")
    one.page.get_by_text("This session is not there").wait_for()
    one.page.keyboard.press("Control+k")
    one.page.keyboard.type("sign out")
    one.page.keyboard.press("Enter")
    one.page.wait_for_url(one.origin + "/login")
    one.open("/")
    one.page.wait_for_url(one.origin + "/login")


def test_a_page_whose_token_is_revoked_goes_to_the_login(
    signed_in: Callable[..., Visitor], start_server: Callable[..., HttpServer]
) -> None:
    server = start_server()
    server.new("work", "cat")
    one = signed_in(server)
    one.tile("work").wait_for()
    run_tmuxctl("token", "revoke", "guest")
    one.page.wait_for_url(one.origin + "/login")
