"""Everything by the keyboard alone, and nothing that a screen reader or weak eyes would miss."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from served import HttpServer
from web.visiting import ASKS, Visitor


@pytest.mark.night
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


@pytest.mark.night
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


@pytest.mark.night
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


@pytest.mark.night
def test_a_person_who_wants_no_motion_gets_none(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("busy", "bash", "-c", "while :; do echo .; sleep 0.1; done", wait=False)
    one = visit(reduced_motion="reduce")
    one.open()
    one.tile("busy").locator(".turns").wait_for()
    assert one.page.evaluate("() => document.getAnimations().length") == 0


REACHABLE = """() => {
    const wanted = "a[href], button, input, select, textarea, summary, [tabindex]";
    const place = document.querySelector("dialog[open]") ?? document.getElementById("app");
    return [...place.querySelectorAll(wanted)].filter((one) => !one.disabled && one.tabIndex >= 0
        && one.checkVisibility({ visibilityProperty: true })).map((one) => (one.dataset.number ??= String(Math.random())));
}"""
"""Whatever a person may use on the page, or in the dialog that is open."""

FOCUSED = """() => {
    const one = document.activeElement;
    const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
    const behind = (start) => {
        for (let place = start; place; place = place.parentElement) {
            const colour = parse(getComputedStyle(place).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const light = (colour) => {
        const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        const [red, green, blue] = colour.slice(0, 3).map((part) => linear(part / 255));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const contrast = (first, second) => {
        const [high, low] = [light(first), light(second)].sort((a, b) => b - a);
        return (high + 0.05) / (low + 0.05);
    };
    // of a tile the whole is outlined, within its edge
    const around = one.matches(".tile-link") ? getComputedStyle(one, "::after") : getComputedStyle(one);
    const ground = behind(one.matches(".tile-link") ? one : one.parentElement);
    const outlined = around.outlineStyle !== "none" && parseFloat(around.outlineWidth) >= 2;
    return { number: one.dataset.number, what: one.outerHTML.slice(0, 120), terminal: one.matches(".xterm-helper-textarea"),
        seen: outlined ? contrast(parse(around.outlineColor), ground) : 0 };
}"""
"""The element that has the focus, and the contrast of what shows that (WCAG 2.2, 1.4.11 and 2.4.7): 0 if nothing does."""


def walk(one: Visitor) -> list[str]:
    """Press Tab through everything; what of it cannot be reached, or does not show that it has the focus."""
    wanted = set(one.page.evaluate(REACHABLE))
    assert wanted
    missing, faint = set(wanted), []
    for number in range(2 * len(wanted) + 4):
        if number:
            one.page.keyboard.press("Tab")
        found = one.page.evaluate(FOCUSED)
        missing.discard(found["number"])
        # the cursor of a terminal shows it
        if found["number"] in wanted and found["seen"] < 3 and not found["terminal"]:
            faint.append(f"{found['seen']:.1f}: {found['what']}")
        # all keys that follow are the program's
        if found["terminal"] or not missing:
            break
    unseen = [
        one.page.evaluate(
            "number => document.querySelector(`[data-number='${number}']`).outerHTML.slice(0, 200)", number
        )
        for number in missing
    ]
    return unseen + faint


@pytest.mark.night
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_is_reached_by_tab_and_shows_it(
    theme: str, visit: Callable[..., Visitor], page_server: HttpServer
) -> None:
    page_server.new("deploy", *ASKS, tag=["release"])
    page_server.new("shell", "bash")
    page_server.new("ended", "sh", "-c", "echo the end")
    one = visit(color_scheme=theme)
    one.open()
    one.tile("deploy").get_by_role("button", name="yes").wait_for()
    one.tile("ended").get_by_text("exited 0").wait_for()
    faults = {"tiles": walk(one)}
    one.page.keyboard.press("v")
    one.page.locator("li.row").first.wait_for()
    one.page.evaluate("() => document.activeElement.blur()")
    faults["rows"] = walk(one)
    for name, key in SHEETS.items():
        one.page.evaluate("() => document.activeElement.blur()")
        one.page.keyboard.press(key)
        one.page.locator("dialog[open]").wait_for()
        faults[name] = walk(one)
        if name == "start":
            one.page.get_by_role("button", name="See what it does").press("Enter")
            one.page.get_by_text("This would be started").wait_for()
            faults["plan"] = walk(one)
        one.close_sheet()
    one.open_session("deploy")
    for name in ("session", "Earlier", "Find", "Why", "About"):
        if name != "session":
            one.page.get_by_role("button", name=name, exact=True).first.press("Enter")
        if name == "Earlier":
            one.page.locator("input[type=range]:enabled").wait_for()
        if name == "Find":
            one.page.wait_for_function("() => document.activeElement.matches('.find-bar input')")
        if name in ("Why", "About"):
            one.page.locator("dialog[open]").get_by_text("marks what" if name == "Why" else "Folder").first.wait_for()
        else:
            one.page.locator(".skip").focus()
        faults[name] = walk(one)
        if name in ("Why", "About"):
            one.close_sheet()
    one.open(f"/session/{page_server.get('/v1/sessions/ended').json['id']}")
    one.page.locator(".terminal-note").get_by_text("The program has ended.").wait_for()
    # a terminal into which nothing can be typed is left by Tab
    one.page.locator(".xterm-helper-textarea").focus()
    one.page.keyboard.press("Shift+Tab")
    assert not one.page.evaluate(FOCUSED)["terminal"]
    assert {name: found for name, found in faults.items() if found} == {}


def test_the_way_back_from_a_kill_is_reached_before_the_terminal(
    visit: Callable[..., Visitor], page_server: HttpServer
) -> None:
    page_server.new("work", "cat")
    one = visit()
    one.page.clock.install()
    one.open_session("work")
    one.page.get_by_role("button", name="Kill").press("Enter")
    for _ in range(30):
        one.page.keyboard.press("Shift+Tab")
        if one.page.evaluate("() => document.activeElement.textContent") == "Undo":
            break
    one.page.keyboard.press("Enter")
    one.page.clock.run_for(7000)
    assert page_server.get("/v1/sessions/work").json["state"] != "exited"
    assert not [address for address in one.requests if address.endswith("/v1/sessions/work")]


OPENERS = {"/": ("Commands and sessions", "Keys", "Start"), "session": ("Why", "About", "Keys")}


def test_the_focus_is_where_it_was_once_a_dialog_is_closed(
    visit: Callable[..., Visitor], page_server: HttpServer
) -> None:
    page_server.new("shell", "bash")
    one = visit()
    focused = "() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
    for view, names in OPENERS.items():
        one.open() if view == "/" else one.open_session("shell")
        for name in names:
            button = one.page.get_by_role("button", name=name, exact=True)
            button.press("Enter")
            one.page.locator("dialog[open]").wait_for()
            assert one.page.evaluate("() => document.activeElement.closest('dialog') !== null"), name
            if name == "Start":
                one.page.get_by_role("button", name="See what it does").press("Enter")
                one.page.get_by_text("This would be started").wait_for()
            one.close_sheet()
            assert one.page.evaluate(focused) == name
    # a dialog that another opened
    one.page.get_by_role("button", name="Commands and sessions").press("Enter")
    one.page.keyboard.type("keys of this")
    one.page.keyboard.press("Enter")
    one.page.get_by_role("dialog", name="Keys").wait_for()
    one.close_sheet()
    assert one.page.evaluate(focused) == "Commands and sessions"
