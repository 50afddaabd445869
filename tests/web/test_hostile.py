"""What programs write is text, whatever it says: nothing of it becomes a part of the page, and no request leaves the page."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from served import HttpServer
from web.visiting import Visitor

MARKUP = "<img src=x onerror=window.caught=1><script>window.caught=1</script><a href=//evil.example>x</a>"

HOSTILE = rf"""
import sys, time
out = sys.stdout.buffer
out.write(b"\x1b]0;" + {MARKUP!r}.encode() + b"\x07")
out.write(b"\x1b]52;c;aGF4\x07" + b"\x1b]8;;https://evil.example/\x07click me\x1b]8;;\x07\r\n")
out.write({MARKUP!r}.encode() + b"\r\n")
out.write("\u202egnp.exe\u2066 \u200f right to left\r\n".encode())
out.write(b"\x1b[6n\x1b[c\x1b]11;?\x07\x1b[>q\x1bP$qm\x1b\\\x1b[21t\x1b[?1004h")
out.write(b"x" * {{size}} + b"\r\n")
out.write(b"Delete <img src=x onerror=window.caught=1>? [y/N] ")
out.flush()
sys.stdin.readline()
print("answered")
time.sleep(1000)
"""


def run_hostile(server: HttpServer, size: int) -> None:
    server.new("hostile", sys.executable, "-c", HOSTILE.replace("{size}", str(size)), wait=False)


def assert_clean(one: Visitor) -> None:
    assert one.leaving() == []
    assert one.page.evaluate("() => window.caught") is None
    assert one.page.locator("#app img[src=x], #app script, #app a[href*=evil]").count() == 0
    assert len(one.context.pages) == 1


def test_markup_in_titles_questions_and_output_stays_text(
    visit: Callable[..., Visitor], page_server: HttpServer, until: Callable[..., object]
) -> None:
    run_hostile(page_server, 100)
    until(lambda: "[y/N]" in page_server.screen("hostile"))
    one = visit()
    one.open()
    one.tile("hostile").get_by_text("onerror=window.caught=1").first.wait_for()
    one.page.get_by_role("button", name="Rows").click()
    one.open_session("hostile")
    one.await_text("[y/N]")
    one.page.get_by_role("button", name="About").click()
    one.page.get_by_role("dialog").get_by_text("<script>").first.wait_for()
    one.close_sheet()
    one.page.get_by_role("button", name="Why").click()
    one.page.get_by_text("marks what the verdict rests on").wait_for()
    one.close_sheet()
    one.page.get_by_role("button", name="Earlier").click()
    one.page.locator("input[type=range]:enabled").press("ArrowLeft")
    one.page.locator(".past-screen").get_by_text("onerror").first.wait_for()
    assert_clean(one)
    one.page.get_by_role("button", name="Back to now").click()
    # the terminal answered none of the queries: nothing was typed
    assert "answered" not in page_server.screen("hostile")
    one.page.locator(".xterm-screen").first.click(position={"x": 20, "y": 10})
    one.page.wait_for_timeout(200)
    assert_clean(one)
    assert "\u202e" not in one.terminal_text()


def test_a_line_of_ten_megabytes_is_drawn(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    run_hostile(page_server, 10 << 20)
    one = visit()
    one.open_session("hostile")
    one.await_text("[y/N]")
    one.page.keyboard.type("n\n")
    one.await_text("answered")
    one.page.get_by_role("button", name="All sessions").click()
    one.tile("hostile").wait_for()
    assert_clean(one)


def test_a_folder_and_words_of_a_command_that_are_markup(
    visit: Callable[..., Visitor], page_server: HttpServer, place: object
) -> None:
    folder = f"{place}/<b>bold\u202e"
    os.mkdir(folder)
    page_server.new("named", "sh", "-c", "exec cat", f"{MARKUP}", cwd=folder)
    one = visit()
    one.open()
    one.tile("named").wait_for()
    one.tile("named").get_by_text("<b>bold").first.wait_for()
    one.open_session("named")
    assert "\u202e" not in one.page.locator("#app").inner_text()
    assert_clean(one)
