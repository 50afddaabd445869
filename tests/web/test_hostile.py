"""What programs write is text, whatever it says: nothing of it becomes a part of the page, and no request leaves the page."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import pytest
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


@pytest.mark.night
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


WORDS = {
    "markup": MARKUP,
    "bidi": "\u202egnp.exe\u2066 \u05e9\u05dc\u05d5\u05dd \u200f\u0627\u0644\u0633\u0644\u0627\u0645 \u2067 to the left",
    "long": "w" * 300,
    "unseen": "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg" * 12,
    "emoji": "\U0001f469\u200d\U0001f680\U0001f3f4\u200d\u2620\ufe0f\U0001f9d1\U0001f3ff" * 20,
    "marks": "Z" + "\u0300\u0316\u0489" * 60 + "a" * 80,
    "wide": "\u4e16\u754c\uff37" * 60,
}
"""What a program may say of itself and ask, and a folder may be called."""

SAYS = r"""
import sys
sys.stdout.write("\x1b]0;" + sys.argv[1] + "\x07" + sys.argv[1] + "\n")
sys.stdout.write(sys.argv[1] + "? [y/N] " if sys.argv[2] == "asks" else sys.argv[1])
sys.stdout.flush()
sys.stdin.read()
"""

MISPLACED = """selector => {
    const found = [];
    for (const item of document.querySelectorAll(selector)) {
        const outer = item.getBoundingClientRect();
        for (const part of item.querySelectorAll("*")) {
            let { left, right, top, bottom } = part.getBoundingClientRect();
            // what an ancestor cuts off is not drawn
            for (let one = part.parentElement; one !== item; one = one.parentElement) {
                if (getComputedStyle(one).overflow === "visible") continue;
                const box = one.getBoundingClientRect();
                [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
                [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
            }
            const drawn = left < right && top < bottom;
            const inside = left > outer.left - 1 && right < outer.right + 1 && top > outer.top - 1 && bottom < outer.bottom + 1;
            if (drawn && !inside) found.push(part.outerHTML.slice(0, 200));
        }
    }
    return found;
}"""
"""Parts of tiles and rows that are drawn beyond their edges."""


WIDER = """() => {
    const found = [];
    for (const dialog of document.querySelectorAll("dialog[open]")) {
        if (dialog.scrollWidth <= dialog.clientWidth) continue;
        const { right } = dialog.getBoundingClientRect();
        for (const part of dialog.querySelectorAll("*")) {
            if (part.getBoundingClientRect().right > right) found.push(part.outerHTML.slice(0, 200));
        }
    }
    return found;
}"""
"""Parts of a dialog that make it wider than it is shown."""


def assert_fits(one: Visitor) -> None:
    """Nothing makes the page or a dialog wider than it is shown."""
    size = "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scrolled, shown = one.page.evaluate(size)
    assert scrolled <= shown
    assert one.page.evaluate(WIDER) == []


@pytest.mark.night
@pytest.mark.parametrize(
    "about", [{"width": 390, "height": 844}, {"width": 1280, "height": 800}], ids=["phone", "desk"]
)
def test_no_text_of_a_program_moves_anything_out_of_its_place(
    about: dict[str, Any], visit: Callable[..., Visitor], page_server: HttpServer, place: object
) -> None:
    for number, (name, words) in enumerate(WORDS.items()):
        folder = f"{place}/{words.replace('/', '_')[:60]}"
        os.makedirs(folder, exist_ok=True)
        what = "asks" if number % 2 == 0 else "says"
        tags = ["t" * 63, f"{name}-tag", "another-tag-that-is-long"]
        page_server.new(f"{name}-{'n' * 50}", sys.executable, "-c", SAYS, words, what, cwd=folder, tag=tags, wait=False)
    touch = {"has_touch": True, "is_mobile": True} if about["width"] < 600 else {}
    one = visit(viewport=about, **touch)
    one.open()
    one.page.wait_for_function(f"() => document.querySelectorAll('.tile').length === {len(WORDS)}")
    one.page.wait_for_function("() => document.querySelectorAll('.tile.needs .answers').length === 4")
    for shape, item in (("Tiles", ".tile"), ("Rows", ".row")):
        one.page.get_by_role("button", name=shape).click()
        one.page.locator(item).first.wait_for()
        assert_fits(one)
        assert one.page.evaluate(MISPLACED, item) == []
        size = (
            f"() => [...document.querySelectorAll('{item}')].map(one => `${{one.offsetHeight}}x${{one.offsetWidth}}`)"
        )
        assert len(set(one.page.evaluate(size))) == 1
        left = f"() => [...document.querySelectorAll('{item} .tile-link')].map(one => one.getBoundingClientRect().left)"
        columns = set(one.page.evaluate(left))
        assert len(columns) <= (1 if shape == "Rows" or touch else 4)
    for name in WORDS:
        one.open_session(f"{name}-{'n' * 50}")
        assert_fits(one)
        for button in ("Why", "About"):
            one.page.get_by_role("button", name=button).click()
            one.page.locator("dialog[open]").wait_for()
            if button == "Why":
                one.page.get_by_text("marks what the verdict rests on").wait_for()
            assert_fits(one)
            one.close_sheet()
        one.page.get_by_role("button", name="Earlier").click()
        one.page.locator("input[type=range]:enabled").press("ArrowLeft")
        assert_fits(one)
    one.open()
    one.page.locator(".tile-link").first.wait_for()
    one.page.keyboard.press("Control+k")
    one.page.locator("dialog[open]").wait_for()
    assert_fits(one)
    assert_clean(one)
    one.open("/?plain=1")
    assert_fits(one)
