"""One session in the page: typing, reading, answering, looking back, ending."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from served import HttpServer
from web.visiting import ASKS, TERMINAL_TEXT, Visitor


@pytest.mark.night
def test_what_is_typed_reaches_bash_and_its_answer_is_shown(
    visit: Callable[..., Visitor], page_server: HttpServer
) -> None:
    page_server.new("shell", "bash")
    one = visit()
    one.open_session("shell")
    one.page.keyboard.type("echo $((6*7))")
    one.page.keyboard.press("Enter")
    one.await_text("\n42")


@pytest.mark.night
def test_a_question_is_answered_above_the_terminal(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("deploy", *ASKS)
    one = visit()
    one.open_session("deploy")
    one.page.get_by_role("button", name="no", exact=True).click()
    one.await_text("you said n")


@pytest.mark.night
def test_a_text_is_the_answer_where_no_option_is(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("shell", "bash")
    one = visit()
    one.open_session("shell")
    one.page.keyboard.type("read -p 'Which branch? ' x; echo it is $x")
    one.page.keyboard.press("Enter")
    one.await_text("\nWhich branch?")
    one.page.keyboard.type("main")
    one.page.keyboard.press("Enter")
    one.await_text("it is main")


@pytest.mark.night
def test_several_lines_are_pasted_after_a_look_at_them(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("lines", "cat")
    one = visit()
    one.open_session("lines")
    paste = """text => {
        const data = new DataTransfer();
        data.setData("text/plain", text);
        const target = document.querySelector(".xterm-helper-textarea");
        target.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    }"""
    one.page.evaluate(paste, "one line")
    one.await_text("one line")
    one.page.evaluate(paste, "first\nsecond\x1b[201~\nthird")
    dialog = one.page.get_by_role("dialog", name="Paste 3 lines?")
    dialog.get_by_role("button", name="Cancel").click()
    assert "second" not in page_server.screen("lines")
    one.page.evaluate(paste, "first\nsecond\x1b[201~\nthird")
    dialog.get_by_role("button", name="Paste").click()
    one.await_text("second[201~\n")
    one.page.keyboard.press("Enter")
    one.page.wait_for_function(f"() => ({TERMINAL_TEXT})().endsWith('\\nthird')")


def test_the_terminal_has_the_sessions_own_size_or_the_windows(
    visit: Callable[..., Visitor], page_server: HttpServer, until: Callable[..., object]
) -> None:
    page_server.new("shell", "bash", size="90x20")
    one = visit()
    one.open_session("shell")
    size = "() => { const { terminal } = window.tmuxctlTerminal(); return `${terminal.cols}x${terminal.rows}`; }"
    one.page.wait_for_function(f"() => ({size})() === '90x20'")
    one.page.get_by_role("button", name="Fit").click()
    until(lambda: page_server.get("/v1/sessions/shell").json["cols"] > 100)
    shown = page_server.get("/v1/sessions/shell").json
    one.page.wait_for_function(f"size => ({size})() === size", arg=f"{shown['cols']}x{shown['rows']}")


def test_a_long_output_is_searched_and_scrolled(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("numbers", "bash", "-c", "seq -f 'line %g' 1 3000; exec cat")
    one = visit()
    one.open_session("numbers")
    one.await_text("line 3000")
    assert "line 1\n" in one.terminal_text()
    one.page.keyboard.press("Control+Shift+f")
    one.page.get_by_label("Find in the output").fill("line 1234")
    one.page.wait_for_function("() => window.tmuxctlTerminal().terminal.getSelection() === 'line 1234'")
    one.page.get_by_label("Find in the output").fill("line 9999")
    one.page.get_by_text("not found").wait_for()


@pytest.mark.night
def test_a_journal_that_is_long_is_drawn_from_near_its_end(
    visit: Callable[..., Visitor], page_server: HttpServer, until: Callable[..., object]
) -> None:
    page_server.new(
        "long",
        "bash",
        "-c",
        "seq -f 'line %g of a long output' 1 120000; echo; printf 'the end> '; exec cat",
        wait=False,
    )
    until(lambda: "the end>" in page_server.screen("long"))
    one = visit()
    one.open_session("long")
    one.await_text("the end>")
    text = one.terminal_text()
    assert text.count("line 119999 of a long output") == 1
    assert text.splitlines()[-1] == page_server.screen("long").splitlines()[-1]
    printed = int(page_server.get("/v1/sessions/long").json["cursor"].rpartition(":")[2])
    one.page.get_by_text(f"{(printed - (512 << 10)) / 1e6:.1f} MB left out").wait_for()


@pytest.mark.night
def test_how_much_the_journal_does_not_keep_any_more_is_told(
    visit: Callable[..., Visitor],
    page_server: HttpServer,
    start_server: Callable[..., HttpServer],
    place: Path,
    until: Callable[..., object],
) -> None:
    (place / ".config/tmuxctl").mkdir(parents=True)
    (place / ".config/tmuxctl/config.toml").write_text('[journal]\nlimit = "64k"\n')
    page_server.stop()
    server = start_server("--no-token")
    printing = "head -c 300000 /dev/zero | tr '\\0' x; echo; echo the end; exec cat"
    made = server.new("long", "sh", "-c", printing, wait=False)
    until(lambda: "the end" in server.screen("long"))
    one = visit(server=server)
    one.open_session("long")
    one.await_text("the end")
    # segments of the journal are named after the offset at which they begin
    first = min(int(found.name[4:]) for found in place.rglob(f"{made['id']}/journal/seg.*"))
    assert first > 200_000
    one.page.get_by_text(f"{round(first / 1000)} kB left out").wait_for()
    server.new("short", "cat")
    one.open_session("short")
    assert one.page.get_by_text("left out").count() == 0


@pytest.mark.night
def test_why_is_told_to_a_reader(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("deploy", *ASKS)
    one = visit()
    one.open_session("deploy")
    one.page.get_by_role("button", name="Why").click()
    dialog = one.page.get_by_role("dialog", name="Why is deploy asking?")
    dialog.get_by_text("marks what the verdict rests on").wait_for()
    dialog.get_by_role("row").filter(has_text="kernel").wait_for()
    one.page.keyboard.press("Escape")
    dialog.wait_for(state="detached")


@pytest.mark.night
def test_any_moment_is_shown_again(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("shell", "bash")
    for word in ("first", "second", "third"):
        page_server.post("/v1/sessions/shell/ask", {"text": f"clear; echo {word}-$((1+1))"})
    one = visit()
    one.open_session("shell")
    one.await_text("third-2")
    one.page.get_by_role("button", name="Earlier", exact=True).first.click()
    slider = one.page.get_by_role("slider", name="Moment")
    rows = one.page.locator(".past-screen .xterm-rows")
    for _ in range(60):
        if (slider.get_attribute("aria-valuetext") or "").startswith("turn 1"):
            break
        slider.press("ArrowLeft")
    rows.get_by_text("first-2").wait_for()
    assert "third-2" not in rows.inner_text()
    one.page.get_by_role("button", name="Back to now").click()
    one.page.locator(".past-screen").wait_for(state="detached")


@pytest.mark.night
def test_a_session_ends_after_five_seconds_unless_it_is_taken_back(
    visit: Callable[..., Visitor], page_server: HttpServer
) -> None:
    page_server.new("work", "cat")
    one = visit()
    one.page.clock.install()
    one.open_session("work")
    one.page.get_by_role("button", name="Kill").click()
    one.page.get_by_role("button", name="Undo").click()
    one.page.clock.run_for(7000)
    assert page_server.get("/v1/sessions/work").json["state"] != "exited"
    assert not [line for line in one.requests if line.endswith("/v1/sessions/work")]
    one.page.get_by_role("button", name="Kill").click()
    one.page.get_by_text("is ended in 5 seconds").wait_for()
    with one.page.expect_response(lambda answer: answer.request.method == "DELETE") as ended:
        one.page.clock.run_for(6000)
    assert ended.value.status == 200


@pytest.mark.night
def test_a_program_is_interrupted(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("shell", "bash")
    one = visit()
    one.open_session("shell")
    one.page.keyboard.type("sleep 1000\n")
    one.page.get_by_role("button", name="Interrupt").click()
    one.await_text("^C")


@pytest.mark.night
def test_names_tags_and_notes_are_changed(
    visit: Callable[..., Visitor], page_server: HttpServer, until: Callable[..., object]
) -> None:
    page_server.new("work", "cat")
    one = visit()
    one.open_session("work")
    one.page.get_by_role("button", name="About").click()
    one.page.get_by_label("A tag to add").fill("urgent")
    one.page.get_by_role("button", name="Add").click()
    one.page.get_by_role("button", name="Remove the tag urgent").wait_for()
    one.page.get_by_label("Note at this moment").fill("before the change")
    one.page.get_by_role("button", name="Mark").click()
    until(lambda: "before the change" in page_server.get("/v1/sessions/work/screen?at=mark:before%20the%20change").text)
    one.page.get_by_label("Name", exact=True).fill("other")
    one.page.get_by_role("button", name="Rename").click()
    one.page.get_by_role("heading", name="other", exact=True).wait_for()
    assert page_server.get("/v1/sessions/other").json["tags"] == ["urgent"]


@pytest.mark.night
def test_a_recording_is_downloaded(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("work", "sh", "-c", "echo recorded; exec cat")
    one = visit()
    one.open_session("work")
    one.await_text("recorded")
    with one.page.expect_download() as found:
        one.page.get_by_role("button", name="Recording").click()
    assert found.value.suggested_filename == "work.cast"
    assert "recorded" in re.sub(r'"\]\n\[[\d.]+, "o", "', "", found.value.path().read_text())


@pytest.mark.night
def test_a_phone_has_the_keys_that_its_keyboard_lacks(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("shell", "bash")
    one = visit(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    one.open_session("shell")
    one.page.get_by_label("Type a line").fill("echo by $((40+2))")
    one.page.get_by_role("button", name="Enter").tap()
    one.await_text("by 42")
    one.page.get_by_role("button", name="Up", exact=True).tap()
    one.await_text("by 42\n" + one.terminal_text().splitlines()[0].partition("#")[0].partition("$")[0])
    one.page.get_by_role("button", name="Control C", exact=True).tap()
    one.await_text("^C")
    assert one.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.night
def test_a_program_that_ended_is_said_to_have_ended(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("short", "sh", "-c", "echo the last words; exit 3")
    one = visit()
    one.open(f"/session/{page_server.get('/v1/sessions/short').json['id']}")
    one.page.get_by_text("The program has ended.").wait_for()
    one.await_text("the last words")
    assert one.page.get_by_text("exited 3").count()
