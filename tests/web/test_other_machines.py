"""Sessions of other machines on the page: behind ssh, and behind a gateway, beside one that does not answer and one that lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from machines.conftest import site, web1
from machines.ssh_server import SshServer
from rpc.conftest import Host, start_host
from served import HttpServer
from web.far_site import FarSite, change
from web.visiting import ASKS, Visitor, open_window

__all__ = ["site", "start_host", "web1"]


@pytest.fixture
def far_site(browser: Any, web1: SshServer, start_host: Callable[..., Host], place: Path) -> Iterator[FarSite]:
    """A user's machine that knows `far` behind a gateway, `web1` behind ssh, and `silent`, which does not answer."""
    host = start_host()
    found = FarSite(place, {"far": 'gateway = "far"', "web1": 'ssh = "web1"', "silent": 'gateway = "silent"'})
    (found.calls / "far").symlink_to(host.path)
    yield found
    found.run("kill", "--all", "--yes")
    found.end()


@pytest.fixture
def server(far_site: FarSite) -> HttpServer:
    return far_site.serve()


@pytest.fixture
def visitor(browser: Any, server: HttpServer) -> Iterator[Visitor]:
    found = open_window(browser, server)
    yield found
    found.context.close()
    assert found.complaints == []


@pytest.mark.night
@pytest.mark.parametrize("machine", ["far", "web1"])
def test_a_session_there_is_used_as_one_here(visitor: Visitor, server: HttpServer, machine: str) -> None:
    page, name = visitor.page, f"{machine}/deploy"
    server.new("here", "bash", "--norc")
    server.new(f"{machine}/sh", "bash", "--norc")
    server.new(name, *ASKS)
    visitor.open()
    # who needs a person stands first, whatever machine it is on; then each machine
    visitor.tile(name).get_by_role("button", name="yes").wait_for()
    page.get_by_role("heading", name="Needs you 1").wait_for()
    page.get_by_role("button", name=f"{machine} 2").wait_for()
    assert page.locator(".tile-link").first.inner_text() == name
    visitor.tile(name).get_by_role("button", name="yes").click()
    visitor.tile(name).get_by_text("you said y").wait_for()
    visitor.tile(f"{machine}/sh").get_by_role("link").click()
    visitor.await_terminal()
    page.keyboard.type("echo $((6*7))\n")
    visitor.await_text("\n42")
    page.keyboard.press("Control+.")
    page.keyboard.press("Escape")
    visitor.tile("here").wait_for()
    page.keyboard.press("s")
    page.get_by_label("Machine").select_option(machine)
    page.get_by_label("Command", exact=True).fill("cat")
    page.get_by_label("Name").fill("made")
    page.get_by_role("button", name="See what it does").click()
    page.get_by_role("dialog").get_by_role("button", name="Start").click()
    visitor.await_terminal()
    assert page.get_by_role("heading", name=f"{machine}/made").is_visible()
    page.get_by_role("button", name="Kill").click()
    page.get_by_text("was ended").wait_for()
    page.keyboard.press("Escape")
    visitor.tile(f"{machine}/made").wait_for(state="detached")


def test_a_machine_that_does_not_answer_holds_up_none(visitor: Visitor, server: HttpServer) -> None:
    server.new("far/sh", "bash", "--norc")
    visitor.open()
    visitor.tile("far/sh").wait_for()
    head = visitor.page.locator(".group-head", has_text="silent")
    head.locator(".machine-problem").wait_for()
    assert head.locator("strong").inner_text() == "refused"
    visitor.page.get_by_text("1 machine does not answer").wait_for()
    visitor.open("/session/silent%2Fsh")
    visitor.page.get_by_role("heading", name="silent does not answer").wait_for()


@pytest.mark.night
def test_sessions_that_are_out_of_reach_are_told_so_and_told_anew(
    visitor: Visitor, server: HttpServer, web1: SshServer
) -> None:
    server.new("web1/sh", "bash", "--norc")
    server.new("here", "bash", "--norc")
    visitor.open()
    visitor.tile("web1/sh").get_by_text("idle", exact=True).wait_for()
    web1.go_down()
    visitor.tile("web1/sh").get_by_text("unknown").wait_for()
    visitor.page.get_by_text("1 machine does not answer").or_(
        visitor.page.get_by_text("2 machines do not answer")
    ).first.wait_for()
    server.post("/v1/sessions/here/send", {"text": "read -p 'Go on? [y/N] ' x"})
    visitor.tile("here").get_by_role("button", name="yes").wait_for()
    web1.process = web1.start()
    visitor.tile("web1/sh").get_by_text("idle", exact=True).wait_for(timeout=40_000)


def test_a_machine_that_lies_speaks_for_itself_alone(browser: Any, place: Path, request: pytest.FixtureRequest) -> None:
    found = FarSite(place, {"m00": 'gateway = "m00"'})
    try:
        simulated = found.simulate(1, 5)
        server = found.serve()
        here = server.new("here", "bash", "--norc")
        one = open_window(browser, server)
        one.open()
        one.tile("m00/job-001").wait_for()
        one.tile("here").get_by_text("idle", exact=True).wait_for()
        change(simulated, f"m00 0 lie {here['id']}")
        liar = one.tile("m00/job-000")
        liar.get_by_role("button").first.wait_for()
        # it has the id of a session here, which stays what it is
        one.tile("here").get_by_text("idle", exact=True).wait_for()
        assert one.tile("here").get_by_role("button").count() == 0
        assert one.page.evaluate("() => window.caught") is None
        assert one.page.locator("#app img[src=x]").count() == 0
        assert "\x1b" not in one.page.content()
        assert "\u202e" not in one.page.locator("#app").inner_text()
        one.picture("liar")
        one.context.close()
        assert one.complaints == []
        top = found.run("top", "--once", "--all-machines")
        for told in (top, found.run("status", "--all-machines"), found.run("ls", "--all-machines")):
            assert told.returncode == 0, told.stderr
            assert "\x1b]52" not in told.stdout
        assert [line for line in top.stdout.splitlines() if line.split()[:2] == ["here", "idle"]]
    finally:
        found.run("kill", "here", "--signal", "KILL")
        found.end()
