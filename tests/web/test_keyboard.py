"""Everything by the keyboard alone, and nothing that a screen reader or weak eyes would miss."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from served import HttpServer
from web.visiting import ASKS, Visitor


def test_a_session_is_started_used_answered_and_left_without_a_pointer(
    visit: Callable[..., Visitor], page_server: HttpServer
) -> None:
    one = visit()
    one.open()
    one.page.get_by_text("No sessions yet").wait_for()
    press, type_ = one.page.keyboard.press, one.page.keyboard.type
    press("s")
    one.page.get_by_label("Command", exact=True).wait_for()
    press("Control+a")
    type_("bash --norc")
    press("Enter")
    one.page.get_by_text("This would be started").wait_for()
    press("Enter")
    one.await_terminal()
    type_("read -p 'Go on? [y/N] ' x; echo got-$x\n")
    one.page.get_by_role("button", name="yes").wait_for()
    press("Control+.")
    assert one.page.evaluate("() => document.activeElement.id") == "leave"
    for _ in range(30):
        press("Tab")
        if one.page.evaluate("() => document.activeElement.textContent") == "yes":
            break
    press("Enter")
    one.await_text("\ngot-y")
    press("Control+k")
    type_("all sessions")
    press("Enter")
    one.tile("bash").wait_for()
    press("Control+k")
    type_("bash")
    press("Enter")
    one.await_terminal()


def test_the_list_is_walked_by_keys(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    for name in ("a", "b", "c", "d", "e"):
        page_server.new(name, "bash")
    page_server.new("asks", *ASKS)
    one = visit()
    one.open()
    one.page.wait_for_function("() => document.querySelectorAll('.tile').length === 6")
    one.tile("asks").get_by_role("button", name="yes").wait_for()
    focused = "() => document.activeElement.textContent"
    one.page.keyboard.press("j")
    first = one.page.evaluate(focused)
    one.page.keyboard.press("j")
    assert one.page.evaluate(focused) != first
    one.page.keyboard.press("k")
    assert one.page.evaluate(focused) == first
    one.page.keyboard.press("ArrowDown")
    assert one.page.evaluate(focused) != first
    one.page.keyboard.press("Enter")
    one.await_terminal()
    one.page.keyboard.press("Control+.")
    one.page.keyboard.press("Escape")
    one.page.locator(".tile").first.wait_for()
    one.page.keyboard.press("n")
    one.page.get_by_role("heading", name="asks", exact=True).wait_for()


def test_control_k_is_the_programs_in_a_terminal(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("shell", "bash")
    one = visit()
    one.open_session("shell")
    one.page.keyboard.type("echo kept lost")
    for _ in range(5):
        one.page.keyboard.press("ArrowLeft")
    one.page.keyboard.press("Control+k")
    one.page.keyboard.press("Enter")
    one.await_text("\nkept\n")
    assert not one.page.locator("dialog[open]").count()


SHEETS = {"palette": "Control+k", "help": "?", "start": "s"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault(
    theme: str, axe: None, visit: Callable[..., Visitor], page_server: HttpServer
) -> None:
    one = visit(color_scheme=theme)
    one.open()
    one.page.get_by_text("No sessions yet").wait_for()
    faults = {"empty": one.faults()}
    page_server.new("deploy", *ASKS, tag=["release"])
    page_server.new("shell", "bash")
    page_server.new("failed", "sh", "-c", "exit 1")
    one.tile("failed").wait_for()
    one.tile("deploy").get_by_role("button", name="yes").wait_for()
    faults["tiles"] = one.faults()
    for name, key in SHEETS.items():
        one.page.keyboard.press(key)
        one.page.locator("dialog[open]").wait_for()
        faults[name] = one.faults()
        one.close_sheet()
    one.page.keyboard.press("v")
    one.page.locator("li.row").first.wait_for()
    faults["rows"] = one.faults()
    one.open_session("deploy")
    faults["session"] = one.faults()
    one.page.get_by_role("button", name="Earlier").click()
    one.page.get_by_role("slider").wait_for()
    faults["earlier"] = one.faults()
    for name in ("Why", "About"):
        one.page.get_by_role("button", name=name).click()
        one.page.locator("dialog[open]").wait_for()
        faults[name] = one.faults()
        one.close_sheet()
    assert {name: found for name, found in faults.items() if found} == {}


def test_a_person_who_wants_no_motion_gets_none(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("busy", "bash", "-c", "while :; do echo .; sleep 0.1; done", wait=False)
    one = visit(reduced_motion="reduce")
    one.open()
    one.tile("busy").locator(".turns").wait_for()
    assert one.page.evaluate("() => document.getAnimations().length") == 0
