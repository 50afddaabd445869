"""Starting a session from the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from served import HttpServer
from web.visiting import Visitor


@pytest.mark.night
def test_a_sandboxed_session_is_started_after_its_dry_run(
    visit: Callable[..., Visitor], page_server: HttpServer, needs: Callable[..., None], place: Path
) -> None:
    needs("bwrap")
    (place / "shop").mkdir()
    one = visit()
    one.open()
    one.page.get_by_role("button", name="Start a session").click()
    one.page.get_by_label("Command", exact=True).fill("bash -c 'echo in the box; exec bash'")
    one.page.get_by_label("Name").fill("boxed")
    one.page.get_by_label("Folder").fill(str(place / "shop"))
    one.page.get_by_label("Sandbox").select_option("workspace")
    one.page.get_by_role("button", name="See what it does").click()
    plan = one.page.get_by_role("dialog", name="This would be started")
    plan.get_by_text("sandbox", exact=True).wait_for()
    assert page_server.get("/v1/sessions").json["sessions"] == []
    plan.get_by_role("button", name="Start").click()
    one.await_terminal()
    one.await_text("in the box")
    assert page_server.get("/v1/sessions/boxed").json["plugins"] == ["sandbox"]


MINE = """schema: tmuxctl/profile@1
name: mine
detect: {argv0: [mine]}
command: [bash, --norc]
"""


@pytest.mark.night
def test_a_profile_and_candidates_are_started(
    visit: Callable[..., Visitor], page_server: HttpServer, place: Path
) -> None:
    folder = place / ".config/tmuxctl/profiles"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(MINE)
    one = visit()
    one.open()
    one.page.get_by_role("button", name="Start a session").wait_for()
    one.page.keyboard.press("s")
    one.page.get_by_role("button", name="Profile").click()
    one.page.get_by_label("Profile", exact=True).select_option("bash")
    one.page.get_by_role("button", name="See what it does").click()
    one.page.get_by_role("dialog").get_by_role("button", name="Start").click()
    one.await_terminal()
    one.page.get_by_role("button", name="All sessions").click()
    one.tile("bash").wait_for()
    one.page.keyboard.press("s")
    one.page.get_by_role("button", name="Candidates").click()
    one.page.get_by_label("Profiles, the first that starts").fill("no-such, bash")
    one.page.get_by_role("button", name="See what it does").click()
    one.page.get_by_role("alert").wait_for()
    one.page.get_by_label("Profiles, the first that starts").fill("mine")
    one.page.get_by_label("Name").fill("second")
    one.page.get_by_role("button", name="See what it does").click()
    one.page.get_by_role("dialog").get_by_role("button", name="Start").click()
    one.await_terminal()
    assert page_server.get("/v1/sessions/second").json["profile"] == "mine"


def test_what_cannot_be_started_says_why(visit: Callable[..., Visitor]) -> None:
    one = visit()
    one.open()
    one.page.get_by_role("button", name="Start a session").wait_for()
    one.page.keyboard.press("s")
    one.page.get_by_label("Command", exact=True).fill("no-such-program-at-all")
    one.page.get_by_role("button", name="See what it does").click()
    problem = one.page.get_by_role("dialog").get_by_role("alert")
    start = one.page.get_by_role("dialog", name="This would be started").get_by_role("button", name="Start")
    problem.or_(start).wait_for()
    if start.count():
        start.click()
    problem.get_by_text("no-such-program-at-all").wait_for()


@pytest.mark.night
def test_a_command_that_cannot_be_read_is_not_sent(visit: Callable[..., Visitor]) -> None:
    one = visit()
    one.open()
    one.page.get_by_role("button", name="Start a session").wait_for()
    one.page.keyboard.press("s")
    one.page.get_by_label("Command", exact=True).fill("echo 'not closed")
    one.page.get_by_role("button", name="See what it does").click()
    one.page.get_by_text("a quote ' is not closed").wait_for()
    assert not [address for address in one.requests if address.endswith("/v1/sessions")]
