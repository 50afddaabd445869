"""Pictures of the page, to be looked at: `build/screenshots`, or the folder that TMUXCTL_SCREENSHOTS names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from served import HttpServer
from web.visiting import ASKS, Visitor

pytestmark = pytest.mark.night

THEMES = ("light", "dark")
WINDOWS = {"desk": (1280, 800), "phone": (390, 844), "wide": (2560, 1300)}


def fill(server: HttpServer) -> None:
    """Sessions in every state."""
    server.new("deploy", *ASKS, tag=["release"])
    server.new("migrate", "bash", "-c", 'read -p "Database name: " answer; exec cat')
    server.new("shell", "bash", tag=["release", "main"])
    server.new(
        "build",
        "bash",
        "-c",
        'i=0; while :; do i=$((i+1)); echo "[$i/400] compiling src/module_$i.c"; sleep 0.2; done',
        wait=False,
    )
    server.new("python", "python3", "-q")
    server.new("failed-tests", "bash", "-c", "echo '3 failed, 41 passed'; exit 1")
    server.new("done", "sh", "-c", "echo finished")
    server.new(
        "a-session-with-a-rather-long-name-that-does-not-fit-in-one-line",
        "bash",
        "-c",
        "echo " + "word " * 60 + "; exec cat",
    )
    for text in (
        "ls -l /etc | head -n 12",
        "printf '\\033[31mred \\033[32mgreen \\033[34mblue \\033[33myellow\\033[0m\\n'",
        "git --version",
    ):
        server.post("/v1/sessions/shell/ask", {"text": text})


def describe_window(window: str, theme: str) -> dict[str, Any]:
    """What a browser is told of its window."""
    width, height = WINDOWS[window]
    touch = {"has_touch": True, "is_mobile": True, "device_scale_factor": 2} if window == "phone" else {}
    return {"viewport": {"width": width, "height": height}, "color_scheme": theme, **touch}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("window", WINDOWS)
def test_the_page_in_pictures(window: str, theme: str, visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    one = visit(**describe_window(window, theme))
    end = f"{window}-{theme}"
    one.open()
    one.page.get_by_text("No sessions yet").wait_for()
    one.picture(f"empty-{end}")
    fill(page_server)
    one.page.wait_for_function("() => document.querySelectorAll('.tile').length === 8")
    one.page.get_by_text("you", exact=False).first.wait_for()
    one.tile("deploy").get_by_role("button", name="yes").wait_for()
    one.picture(f"overview-{end}")
    one.page.get_by_role("button", name="Rows").click()
    one.picture(f"rows-{end}")
    one.page.get_by_role("button", name="Tiles").click()
    one.open_session("shell")
    one.await_text("git version")
    one.page.wait_for_timeout(400)
    one.picture(f"session-{end}")
    one.page.get_by_role("button", name="Why").click()
    one.page.get_by_text("marks what the verdict").wait_for()
    one.picture(f"why-{end}")
    one.close_sheet()
    one.page.get_by_role("button", name="Earlier").click()
    one.page.get_by_role("slider").fill("1")
    one.page.wait_for_timeout(700)
    one.picture(f"earlier-{end}")
    one.page.get_by_role("button", name="Back to now").click()
    one.page.get_by_role("button", name="About").click()
    one.page.locator("dialog[open]").wait_for()
    one.picture(f"about-{end}")
    one.close_sheet()
    for name in ("deploy", "migrate", "failed-tests"):
        one.open_session(name) if name != "failed-tests" else one.open(path_of(page_server, name))
        one.page.wait_for_timeout(300)
        one.picture(f"{'question' if name == 'deploy' else name}-{end}")
    one.open("/session/gone")
    one.page.get_by_text("This session is not there").wait_for()
    one.picture(f"gone-{end}")
    one.open()
    one.tile("shell").wait_for()
    one.page.keyboard.press("s")
    one.page.locator("dialog[open]").wait_for()
    one.picture(f"start-{end}")
    one.page.get_by_role("button", name="See what it does").click()
    one.page.get_by_text("This would be started").wait_for()
    one.picture(f"plan-{end}")
    one.close_sheet()
    one.page.keyboard.press("Control+k")
    one.page.locator("dialog[open]").wait_for()
    one.picture(f"palette-{end}")
    one.close_sheet()
    one.page.keyboard.press("?")
    one.page.locator("dialog[open]").wait_for()
    one.picture(f"help-{end}")
    one.close_sheet()
    one.page.get_by_label("Filter the sessions").fill("nothing like this")
    one.page.get_by_text("No session matches").wait_for()
    one.picture(f"no-match-{end}")
    one.open_session("shell")
    page_server.stop()
    one.page.get_by_text("Not connected.").wait_for()
    one.page.wait_for_function("() => document.querySelector('.banner').textContent")
    one.picture(f"offline-session-{end}")
    one.page.get_by_role("button", name="All sessions").click()
    one.page.get_by_text("The server does not answer.").wait_for()
    one.picture(f"offline-{end}")


def path_of(server: HttpServer, name: str) -> str:
    return f"/session/{server.get(f'/v1/sessions/{name}').json['id']}"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("window", WINDOWS)
def test_getting_in_and_reading_along_in_pictures(
    window: str, theme: str, signed_in: Callable[..., Visitor], start_server: Callable[..., HttpServer]
) -> None:
    server = start_server()
    fill(server)
    end = f"{window}-{theme}"
    one = signed_in(server, "--right", "read", **describe_window(window, theme))
    one.tile("deploy").get_by_text("Deploy to production?").wait_for()
    one.picture(f"read-only-{end}")
    one.open_session("deploy")
    one.page.wait_for_timeout(300)
    one.picture(f"read-only-session-{end}")
    for name, path in (("plain", "/"), ("plain-session", path_of(server, "shell"))):
        one.open(path + "?plain=1")
        one.page.get_by_text("shell").first.wait_for()
        one.picture(f"{name}-{end}")
    one.open()
    one.tile("deploy").wait_for()
    one.page.keyboard.press("Control+k")
    one.page.keyboard.type("sign out")
    one.page.keyboard.press("Enter")
    one.page.wait_for_url(one.origin + "/login")
    one.picture(f"signed-out-{end}")
    one.page.get_by_label("Code").fill("wrong-code")
    one.page.keyboard.press("Enter")
    one.page.get_by_role("alert").wait_for()
    one.picture(f"wrong-code-{end}")
