"""What the library promises beyond its examples: names, errors, what is left behind, and the asyncio twin."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import tmuxctl
from tmuxctl.control.output import printed
from tmuxctl.surfaces.library import client as clients
from tmuxctl.surfaces.testing.assertions import SessionAssertions, Snapshots
from tmuxctl.value import changed

PUBLIC = {
    "Asking", "Client", "Conflict", "DecisionNeeded", "Denied", "EOF", "Exited", "Failed", "NotFound", "Screen", "TIMEOUT",
    "TerminalSession", "TextMatch", "Timeout", "TmuxctlError", "Unreachable", "Usage", "aio", "run", "session",
}  # fmt: skip
"""What `tmuxctl` has: a name that goes, or comes, changes what people rely on."""


def test_the_public_names_are_these() -> None:
    assert set(tmuxctl.__all__) == PUBLIC
    assert all(getattr(tmuxctl, name) is not None for name in PUBLIC)
    assert set(dir(tmuxctl)) >= PUBLIC
    with pytest.raises(AttributeError):
        tmuxctl.no_such_name  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    script = "import sys; before = set(sys.modules); import tmuxctl; print(*(sys.modules.keys() - before))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in found if name.startswith("tmuxctl")} == {"tmuxctl"}
    assert len(found) < 5


def test_the_asyncio_twin_is_made_of_the_library() -> None:
    subprocess.run([sys.executable, "-m", "tools.make_aio", "--check"], check=True, cwd=Path(__file__).parents[2])


# errors


def test_an_error_shows_the_screen(sh: tmuxctl.TerminalSession) -> None:
    sh.send("echo on the screen").wait_for("^on the screen$")
    with pytest.raises(TimeoutError) as raised:
        sh.wait_for("never", timeout=0.1)
    error = raised.value
    assert isinstance(error, tmuxctl.Timeout)
    assert (error.code, error.exit, error.session) == ("timeout", 124, "sh")
    assert error.screen is not None
    assert "on the screen" in error.screen
    assert str(error).endswith("  | on the screen\n  | $")
    assert error.cursor is not None
    assert sh.read(since=error.cursor).text == ""


def test_a_long_screen_is_cut_to_its_last_rows(sh: tmuxctl.TerminalSession) -> None:
    sh.send("seq 30").wait_for("^30$")
    with pytest.raises(tmuxctl.Timeout) as raised:
        sh.wait("exit", timeout=0.1)
    assert next(row for row in str(raised.value).split("\n") if row.startswith("  | ")) == "  | 22"


@pytest.mark.parametrize(
    ("call", "kind", "reason"),
    [
        (lambda client, sh: client.get("nothere"), tmuxctl.NotFound, "no_session"),
        (lambda client, sh: client.get("-build/db"), tmuxctl.NotFound, "no_machine"),
        (lambda client, sh: tmuxctl.Client(machine="-build"), tmuxctl.Usage, "bad_machine"),
        (lambda client, sh: client.new("sh", ["bash"]), tmuxctl.Conflict, "exists"),
        (lambda client, sh: sh.keys("NoKey"), tmuxctl.Usage, "bad_key"),
        (lambda client, sh: sh.wait_for("("), tmuxctl.Usage, "bad_pattern"),
        (lambda client, sh: sh.expect("("), tmuxctl.Usage, "bad_pattern"),
        (lambda client, sh: sh.send("a\0b"), tmuxctl.Usage, "bad_text"),
        (lambda client, sh: sh.send("\udcff"), tmuxctl.Usage, "bad_text"),
        (lambda client, sh: sh.send(7), tmuxctl.Usage, "bad_type"),
        (lambda client, sh: sh.wait(timeout="soon"), tmuxctl.Usage, "bad_duration"),
        (lambda client, sh: sh.wait(timeout="none"), tmuxctl.Usage, "bad_duration"),
        (lambda client, sh: sh.wait(timeout=-1), tmuxctl.Usage, "bad_duration"),
        (lambda client, sh: sh.wait("done"), tmuxctl.Usage, "bad_option"),
        (lambda client, sh: sh.decide(), tmuxctl.Conflict, "no_question"),
        (lambda client, sh: sh.send_secret("x"), tmuxctl.Conflict, "echo_on"),
    ],
)
def test_what_goes_wrong_is_told(
    client: tmuxctl.Client,
    sh: tmuxctl.TerminalSession,
    call: Callable[..., object],
    kind: type[tmuxctl.TmuxctlError],
    reason: str,
) -> None:
    with pytest.raises(kind) as raised:
        call(client, sh)
    assert raised.value.reason == reason


def test_an_unknown_option_is_a_type_error(client: tmuxctl.Client) -> None:
    with pytest.raises(TypeError):
        client.new("x", ["bash"], colour="red")  # type: ignore[call-arg]


# expect


def test_expect_goes_on_behind_the_last_match(sh: tmuxctl.TerminalSession) -> None:
    sh.send("printf 'one\\ntwo\\nthree\\n'")
    assert sh.expect(["two", "one"]) == 1
    assert sh.expect(["one", "t\\w+"]) == 1
    assert (sh.before, sh.after, sh.match_index) == ("\n", "two", 1)
    assert sh.expect("^thr(e+)$") == 0
    assert isinstance(sh.match, tmuxctl.TextMatch)
    assert sh.match[1] == "ee"
    assert sh.expect([tmuxctl.TIMEOUT, "one"], timeout=0.1) == 0
    assert sh.after is tmuxctl.TIMEOUT


def test_expect_never_takes_the_echo(sh: tmuxctl.TerminalSession) -> None:
    sh.send("read -r line; echo got ${line^^}")
    assert sh.expect(["echo", tmuxctl.TIMEOUT], timeout=0.2) == 1
    sh.send("secret word")
    assert sh.expect(["secret", "SECRET"]) == 1


def test_an_echo_that_has_only_begun_answers_nothing(client: tmuxctl.Client) -> None:
    """An editor draws what was typed character by character."""
    slow = client.new("slow", ["sh", "-c", "stty -icanon -echo; echo ready; head -c 3; exec sleep 1000"])
    slow.wait_for("ready")
    slow.send("abc def")
    slow.wait_settled(0.2)
    assert slow.read().text == ""
    assert slow.expect(["abc", tmuxctl.TIMEOUT], timeout=0.2) == 1
    with pytest.raises(tmuxctl.Timeout):
        slow.wait_for("abc", timeout=0.2)


def test_the_rest_of_an_echo_that_comes_while_it_is_looked_for_is_no_output(
    client: tmuxctl.Client, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = place / "go"
    os.mkfifo(fifo)
    script = f"stty -icanon -echo; echo ready; head -c 3; read go <{fifo}; head -c 4; echo; echo out; exec sleep 1000"
    slow = client.new("slow", ["sh", "-c", script])
    slow.wait_for("ready")
    slow.send("abc def")
    slow.wait_settled(0.2)
    count = printed._count_echo

    def go_on(*arguments: Any) -> int:
        found = count(*arguments)
        monkeypatch.setattr(printed, "_count_echo", count)
        fifo.write_text("go\n")
        slow.wait_for("^out$")
        return found

    monkeypatch.setattr(printed, "_count_echo", go_on)
    assert slow.expect(r"(.+)") == 0
    assert isinstance(slow.match, tmuxctl.TextMatch)
    assert slow.match[1] == "out"


def test_a_prompt_with_a_blank_at_its_end_is_found(sh: tmuxctl.TerminalSession) -> None:
    sh.send("printf 'Password: '; read -r x")
    assert sh.expect_exact("Password: ") == 0
    sh.send("x").wait("prompt")
    assert sh.expect(r"\$ ") == 0


def test_the_end_of_the_program_is_found_behind_its_last_words(client: tmuxctl.Client) -> None:
    app = client.new("t", ["sh", "-c", "read x; echo bye; exit 3"])
    app.send("go")
    assert app.expect(["nothing", "bye"]) == 1
    assert app.expect(["nothing", tmuxctl.EOF]) == 1
    assert app.exit_status == 3
    with pytest.raises(tmuxctl.Exited):
        app.expect("nothing")


def test_texts_are_taken_as_they_are(sh: tmuxctl.TerminalSession) -> None:
    sh.send("echo 'a.b (c) [d]* $5 '")
    assert sh.expect_exact("(c) [d]* $5 ") == 0


def test_expect_knows_what_another_typed(client: tmuxctl.Client, sh: tmuxctl.TerminalSession) -> None:
    sh.send("echo one").expect("^one$")
    client.get("sh").send("echo one again")
    assert sh.expect("^one again$") == 0


# what is typed and read


def test_bytes_are_typed_and_read_as_they_are(sh: tmuxctl.TerminalSession) -> None:
    sh.send(b"printf '\\303\\244\\377' | od -An -tx1").wait_for("c3 a4 ff")
    assert b"c3 a4 ff\r\n" in sh.log(raw=True).data


def test_questions_are_answered_by_the_caller(sh: tmuxctl.TerminalSession) -> None:
    asked = []

    def answer(question: object) -> str:
        asked.append(question)
        return "no" if len(asked) == 1 else "yes"

    script = 'for n in 1 2; do read -p "Go $n? [y/n] " a; echo $n=$a; done'
    sh.send(script)
    assert sh.wait("prompt", on_asking=answer).matched == "prompt"
    assert [getattr(one, "question", "")[-11:] for one in asked] == ["Go 1? [y/n]", "Go 2? [y/n]"]
    assert "1=n" in sh.screen.text
    assert "2=y" in sh.screen.text
    answer_text = sh.ask(script, on_asking=lambda question: "yes").text
    assert "1=y" in answer_text
    assert "2=y" in answer_text


def test_a_question_that_nobody_answers_stays_open(sh: tmuxctl.TerminalSession) -> None:
    sh.send("read -p 'Go on? [y/n] ' a")
    with pytest.raises(tmuxctl.DecisionNeeded):
        sh.wait("prompt", on_asking=lambda question: None)
    assert sh.asking is not None
    assert sh.asking.question == "Go on? [y/n]"
    sh.decide("no")
    with pytest.raises(tmuxctl.DecisionNeeded) as raised:
        sh.ask("read -p 'And now? [y/n] ' a", on_asking=lambda question: None)
    assert raised.value.details["result"].asking.question == "And now? [y/n]"


def test_a_password_is_answered_with_bytes_and_kept_nowhere(sh: tmuxctl.TerminalSession, place: Path) -> None:
    sh.send("read -rs -p 'Password: ' word; echo; echo ${#word}")
    assert sh.wait("prompt", on_asking=lambda question: b"hunter2!").matched == "prompt"
    assert "\n8\n" in sh.screen.text
    assert "hunter2!" not in sh.log().text
    kept = [path for path in place.rglob("*") if path.is_file() and b"hunter2!" in path.read_bytes()]
    assert kept == []


def test_a_screen_does_not_change(sh: tmuxctl.TerminalSession) -> None:
    before = sh.screen
    sh.send("echo more").wait_for("^more$")
    assert "more" not in before.text
    assert "more" in sh.screen
    assert sh.screen.find("nowhere") is None


def test_a_place_is_told_in_cells(sh: tmuxctl.TerminalSession) -> None:
    sh.send("printf '中文 x\\n'").wait_for("x$")
    place = sh.screen.find(re.compile("x$"))
    assert place is not None
    assert place.col == 5


# what is left behind


def alive(client: tmuxctl.Client) -> list[str]:
    return [session.name for session in client.list()]


@pytest.mark.night
def test_the_block_ends_the_session(shared: None) -> None:
    with pytest.raises(ZeroDivisionError), tmuxctl.session("sleep 60") as one:
        _ = 1 / 0
    assert not [two for two in clients.shared_client().list() if two.id == one.id]


SCRIPT = """
import tmuxctl
left = tmuxctl.session("sleep 60", name="left")
kept = tmuxctl.session("sleep 60", name="kept", keep=True)
made = tmuxctl.Client().new("made", "sleep 60")
"""


@pytest.mark.night
def test_a_session_that_nobody_closed_ends_with_the_process(client: tmuxctl.Client) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert alive(client) == ["kept", "made"]
    assert done.stderr == "tmuxctl: ended session left, which was still open (keep=True lets it go on)\n"


INTERRUPTED = """
import sys, tmuxctl
with tmuxctl.session("sleep 60", name="one"):
    two = tmuxctl.session(["bash", "--norc"], name="two")
    print("ready", flush=True)
    {call}
"""


@pytest.mark.night
@pytest.mark.parametrize(
    "call",
    [
        "two.wait('exit')",
        "two.wait_for('never')",
        "two.send('sleep 30'); two.ask('echo x', queue=True)",
        "two.expect('never')",
        "two.exec('sleep 30')",
        "[tmuxctl.session('sh -c \"sleep 30\"') for _ in range(100)]",
    ],
)
def test_ctrl_c_leaves_nothing_behind(client: tmuxctl.Client, call: str) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(call=call)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    threading.Event().wait(0.3)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode not in (0, -signal.SIGKILL)
    assert "KeyboardInterrupt" in errors
    assert alive(client) == []


def test_a_forked_process_ends_nothing_of_its_parent(shared: None) -> None:
    with tmuxctl.session(["bash", "--norc"], name="parent") as one:
        pid = os.fork()
        if not pid:
            try:
                clients.shared_client().close()
                told = one.ask("echo child").text
                os._exit(0 if told == "child" else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert one.ask("echo parent").text == "parent"


@pytest.mark.night
def test_closing_twice_is_as_once(client: tmuxctl.Client) -> None:
    one = client.new("one", ["sleep", "60"])
    one.close()
    one.close()
    assert alive(client) == []


@pytest.mark.night
def test_the_end_of_a_program_is_found_though_nothing_else_tells_it(
    client: tmuxctl.Client, sh: tmuxctl.TerminalSession
) -> None:
    for number in range(3):
        viewer = client.new(f"v{number}", [sys.executable, "-m", "tmuxctl", "attach", "sh"])
        viewer.wait_for(r"\$", since="screen")
        assert viewer.keys("C-b", "d").wait("exit", timeout=15).exit_status == 0


def test_a_pane_of_another_tmux_is_driven_by_its_target(client: tmuxctl.Client) -> None:
    subprocess.run(["tmux", "-f", "/dev/null", "new-session", "-d", "-s", "work", "bash --norc"], check=True)
    try:
        pane = client.get("tmux:work:0.0")
        assert pane.send("echo hi").wait_for("^hi$").found == "hi"
    finally:
        subprocess.run(["tmux", "kill-server"], check=True)


# asyncio


def test_the_twin_does_what_the_library_does(shared: None) -> None:
    async def play() -> None:
        async with tmuxctl.aio.session(["bash", "--norc"], name="sh", env={"PS1": "$ "}) as sh:
            assert (await sh.ask("echo hi")).text == "hi"
            found = await (await sh.send("echo Name: Ada")).wait_for(r"Name: (\w+)")
            assert found[1] == "Ada"
            assert await sh.expect(["nothing", "Ada"]) == 1
            assert sh.after == "Ada"
            assert "Ada" in (await sh.screen).text
            assert await sh.state == "idle"
            async for event in sh.events():
                assert event.state == "idle"
                break
        assert not await sh.client.list()
        await tmuxctl.aio.close()

    asyncio.run(play())


def test_a_callback_runs_in_the_event_loop(shared: None) -> None:
    async def play() -> None:
        loop = asyncio.get_running_loop()
        seen = []

        async def answer(question: object) -> str:
            assert asyncio.get_running_loop() is loop
            await asyncio.sleep(0)
            seen.append(question)
            return "yes"

        async with tmuxctl.aio.session(["bash", "--norc"]) as sh:
            told = await sh.ask("read -p 'Go on? [y/n] ' a; echo got $a", on_asking=answer)
            assert "got y" in told.text
            assert len(seen) == 1
        await tmuxctl.aio.close()

    asyncio.run(play())


def test_a_cancelled_task_ends_its_wait_and_not_the_program(shared: None) -> None:
    async def play() -> None:
        async with tmuxctl.aio.session(["bash", "--norc"]) as sh:
            waiting = asyncio.create_task(sh.wait_for("never", timeout=60))
            await asyncio.sleep(0.2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await sh.ask("echo on")).text == "on"
        await tmuxctl.aio.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("tmuxctl")]

    asyncio.run(play())


def test_the_first_of_several_that_asks_is_told(shared: None) -> None:
    async def play() -> None:
        client = tmuxctl.aio.Client()
        several = [
            await client.new(f"s{number}", ["sh", "-c", "read x; printf 'Go on? [y/n] '; read a"])
            for number in range(3)
        ]
        await several[1].send("go")
        assert await client.wait_any(several, "asking") is several[1]
        for one in several:
            await one.close()
        await client.close()

    asyncio.run(play())


def test_how_a_program_ended_is_waited_for_where_tmux_does_not_know_it_yet(
    client: tmuxctl.Client, tmp_path: Path
) -> None:
    """A terminal is closed a moment before its program has ended, on a busy machine a long one."""
    ended = client.new("t", ["sh", "-c", "exit 3"])
    ended.wait("exit")
    untold = iter([None, None])

    class Late:
        screen, id, client = ended.screen, ended.id, ended.client

        @property
        def info(self) -> Any:
            return changed(ended.info, exit_status=next(untold, 3))

    late = SessionAssertions(cast("tmuxctl.TerminalSession", Late()), Snapshots(tmp_path, update=False, style=False))
    late.to_have_exited(3)
    untold = iter([None] * 100)
    with pytest.raises(AssertionError, match="how it ended is not known"):
        late.to_have_exited(3, timeout=0.2)
