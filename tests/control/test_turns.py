"""Turns: a text in, the whole answer out; questions on the way are told, and answered only as decided."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from control.conftest import Held
from programs import SHELL, program

from tmuxctl import errors
from tmuxctl.control import Control
from tmuxctl.control.input import sending
from tmuxctl.control.input.deciding import find_option, parse_policies
from tmuxctl.control.output import printed
from tmuxctl.errors import Conflict, Exited, Usage
from tmuxctl.model import State
from tmuxctl.results import Asking, Option
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.processes.process import find_tree
from tmuxctl.terminal.tmux.server import read_pane
from tmuxctl.vocabulary import InputKind


def test_ask_returns_what_the_program_wrote(control: Control) -> None:
    control.new("s", SHELL)
    found = control.ask("s", b"echo one; echo two")
    assert (found.answer, found.state, found.complete) == ("one\ntwo", State.IDLE, True)
    assert found.submitted.ok


def test_ask_keeps_the_session_between_turns_and_counts_them(control: Control) -> None:
    control.new("s", SHELL)
    assert control.ask("s", b"echo a").turn == 1
    assert control.ask("s", b"true").answer == ""
    assert control.ask("s", b"echo c").turn == 3


@pytest.mark.night
def test_a_slow_answer_is_waited_for(control: Control) -> None:
    control.new("s", SHELL)
    assert control.ask("s", b"sleep 0.5; echo late").answer == "late"


@pytest.mark.on("tmux")
def test_what_changed_on_a_screen_of_its_own_is_no_whole_answer(
    control: Control, place: Path, needs: Callable[..., None]
) -> None:
    needs("vim")
    (place / "notes").write_text("one\ntwo\n")
    control.new("s", ("vim", "notes"))
    found = control.ask("s", b":%s/two/2/")
    assert (found.state, found.complete) == (State.IDLE, False)


@pytest.mark.night
def test_a_turn_that_takes_too_long_must_be_over_before_the_next(control: Control, held: Held) -> None:
    control.new("s", SHELL)
    found = control.ask("s", f"{held.words}; echo late".encode(), timeout=0.5)
    assert found.timed_out
    assert found.state is State.BUSY
    with pytest.raises(Conflict) as error:
        control.ask("s", b"echo next")
    assert error.value.reason == "needs_recovery"
    held.go()
    control.wait("s")
    assert control.ask("s", b"echo next").answer == "next"


@pytest.mark.night
def test_a_busy_program_is_not_typed_into(control: Control, held: Held) -> None:
    control.new("s", SHELL)
    control.send("s", held.words.encode())
    with pytest.raises(Conflict) as error:
        control.ask("s", b"echo x")
    assert error.value.reason == "busy"
    later = threading.Timer(0.5, held.go)
    later.start()
    assert control.ask("s", b"echo x", queue=True).answer == "x"
    later.join()


def test_ask_can_stop_what_runs_first(control: Control) -> None:
    control.new("s", SHELL)
    control.send("s", b"sleep 30")
    assert control.ask("s", b"echo x", interrupt=True).answer == "x"


@pytest.mark.night
def test_two_askers_do_not_mix(control: Control, another: Callable[[], Control]) -> None:
    control.new("s", SHELL)
    found: dict[str, str] = {}

    def one(word: str) -> None:
        found[word] = another().ask("s", f"sleep 0.1; echo {word}".encode(), queue=True).answer

    threads = [threading.Thread(target=one, args=(word,)) for word in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"a": "a", "b": "b", "c": "c"}


@pytest.mark.night
def test_what_another_types_after_the_look_is_over_before_the_turn_types(
    control: Control, another: Callable[[], Control], monkeypatch: pytest.MonkeyPatch
) -> None:
    control.new("s", SHELL)
    control.ask("s", b"echo before")
    others, type_line = [b"sleep 0.4; echo other"], sending.type_line

    def type_later(*arguments: Any, **options: Any) -> LastInput:
        while others:
            another().send("s", others.pop())
        return type_line(*arguments, **options)

    monkeypatch.setattr(sending, "type_line", type_later)
    found = control.ask("s", b"echo ours")
    assert (found.answer, found.turn) == ("ours", 2)
    rows = control.screen("s").text.split("\n")
    assert rows.index("other") < rows.index("ours")


def test_each_line_of_a_turn_is_typed_once(control: Control) -> None:
    control.new("s", SHELL)
    found = control.ask("s", b"echo one\necho two\necho three")
    assert [row for row in found.answer.split("\n") if "echo" not in row] == ["one", "two", "three"]
    assert not read_pane(control.machine.io, "s").lease


def test_the_end_of_the_program_is_a_result(control: Control) -> None:
    control.new("s", SHELL)
    found = control.ask("s", b"exit 3")
    assert (found.state, found.exit_status) == (State.EXITED, 3)
    with pytest.raises(Exited):
        control.ask("s", b"echo")


def test_a_question_on_the_way_ends_the_turn(control: Control) -> None:
    control.new("s", program("secret"))
    with pytest.raises(errors.DecisionNeeded):
        control.ask("s", b"hunter2")


def test_a_text_comes_from_one_place(control: Control, place: Path) -> None:
    control.new("s", SHELL)
    (place / "text").write_text("echo file\n")
    assert control.ask("s", file=str(place / "text")).answer == "file"
    for arguments in ({}, {"text": b"x", "file": "y"}, {"file": "/nosuch"}):
        with pytest.raises(Usage):
            control.ask("s", **arguments)


def test_ask_makes_the_session_if_told_how(control: Control) -> None:
    assert control.ask("s", b"echo made", new="sh").answer == "made"
    assert control.ask("s", b"echo kept", new="sh").turn == 2


def test_the_answer_to_an_earlier_input_is_found_again(control: Control) -> None:
    control.new("s", SHELL)
    control.ask("s", b"echo hello")
    assert control.read("s", answer_to="echo hello").text == "hello"


@pytest.mark.on("tmux", "resident")
@pytest.mark.parametrize(
    "argv", [("bash", "--norc"), ("bash",), ("zsh", "-f"), ("fish",)], ids=lambda argv: " ".join(argv)
)
def test_shells_answer(control: Control, argv: tuple[str, ...], needs: Callable[..., None]) -> None:
    needs(argv[0])
    control.new("s", argv)
    assert control.ask("s", b"echo one; echo two").answer == "one\ntwo"
    assert control.ask("s", b"printf 'no newline'").answer == "no newline"
    if argv == ("bash",):
        found = control.ask("s", b"(exit 7)")
        assert (found.exit_status, found.source) == (7, "marks")


@pytest.mark.night
@pytest.mark.on("tmux", "resident")
def test_python_answers(control: Control) -> None:
    control.new("p", ("python3", "-q"))
    assert control.ask("p", b"6*7").answer == "42"
    assert control.ask("p", b"x = 5").answer == ""
    assert control.ask("p", b"def f():\n    return x * 2\n").answer == ""
    assert control.ask("p", b"f()").answer == "10"
    assert control.ask("p", b"import time; time.sleep(0.6); print('late')").answer == "late"
    assert control.ask("p", "print('日本 ▓ é')".encode()).answer == "日本 ▓ é"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_sqlite_answers(control: Control, needs: Callable[..., None]) -> None:
    needs("sqlite3")
    control.new("db", ("sqlite3",))
    assert control.ask("db", b"create table t(n);").answer == ""
    assert control.ask("db", b"insert into t values (1), (2);").answer == ""
    assert control.ask("db", b"select n from t;").answer == "1\n2"
    found = control.ask("db", b"select n")
    assert (found.kind, found.answer) == ("continuation", "")
    assert control.ask("db", b"from t;").answer == "1\n2"


@pytest.mark.on("tmux")
def test_an_unfinished_block_has_no_answer_yet(control: Control) -> None:
    control.new("p", ("python3", "-q"))
    found = control.ask("p", b"def f():")
    assert (found.kind, found.answer) == ("continuation", "")
    assert control.ask("p", b"    return 5").answer == ""
    assert control.ask("p", b"").answer == ""
    assert control.ask("p", b"f()").answer == "5"


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize("marks", [True, False], ids=["marks", "no marks"])
def test_a_command_of_several_lines_is_answered_at_its_end(
    control: Control, needs: Callable[..., None], marks: bool
) -> None:
    needs("fish")
    control.new("s", ("fish",), shell_marks=marks)
    for line in (b"for i in 1 2", b"  echo $i"):
        found = control.ask("s", line)
        assert (found.state, found.kind, found.answer) == (State.IDLE, "continuation", "")
    found = control.ask("s", b"end")
    assert (found.kind, found.answer) == ("prompt", "1\n2")


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize("shell", [("fish",), ("dash",), ("bash", "--norc")], ids=lambda argv: argv[0])
def test_a_program_within_a_shell_answers_without_its_prompt(
    control: Control, shell: tuple[str, ...], needs: Callable[..., None]
) -> None:
    needs(shell[0])
    control.new("s", shell)
    assert control.ask("s", b"python3 -q").answer == ""
    assert control.ask("s", b"6*7").answer == "42"
    assert control.ask("s", b"exit()").answer == ""
    assert control.ask("s", b"echo back").answer == "back"


@pytest.mark.on("tmux")
def test_a_new_size_during_a_turn_leaves_no_prompt_in_the_answer(
    control: Control, another: Callable[[], Control], until: Callable[[Callable[[], object]], object]
) -> None:
    control.new("p", ("python3", "-q"))
    other = another()

    def resize() -> None:
        until(lambda: "\na" in other.screen("p").text)
        other.resize("p", "70x20")
        Path("resized").touch()

    thread = threading.Thread(target=resize)
    thread.start()
    # goes on once it has another size
    wait = "_ = [time.sleep(.02) for _ in iter(lambda: os.path.exists('resized'), True)]"
    found = control.ask("p", f"import os, time; print('a'); {wait}; print('b')".encode())
    thread.join()
    assert found.answer == "a\nb"


ASKS_TWICE = """\
const lines = require('readline').createInterface({input: process.stdin, output: process.stdout})
lines.question('Your name? ', name => {
  console.log('hello ' + name)
  lines.question('Go on? [y/N] ', answer => { console.log('said ' + answer); lines.close() })
})
"""


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_question_is_part_of_the_answer(control: Control, place: Path, needs: Callable[..., None]) -> None:
    needs("node")
    (place / "asks.js").write_text(ASKS_TWICE)
    control.new("s", ("node", "asks.js"))
    found = control.ask("s", b"Ann")
    assert (found.state, found.answer) == (State.ASKING, "hello Ann\nGo on? [y/N]")
    control.decide("s", "yes")
    control.wait("s", text="said y")


@pytest.mark.night
@pytest.mark.on("tmux")
def test_what_a_debugger_says_before_it_asks_is_kept(control: Control, needs: Callable[..., None]) -> None:
    needs("gdb")
    control.new("g", ("gdb", "-q", "/bin/sh"))
    control.ask("g", b"starti")
    found = control.ask("g", b"quit")
    assert (found.state, found.kind) == (State.ASKING, "confirm")
    assert found.answer.startswith("A debugging session is active.")
    assert found.answer.endswith("Quit anyway? (y or n) ")
    control.decide("g", "no")
    assert control.wait("g").kind == "prompt"
    assert control.ask("g", b"quit", decide=("confirm=yes",)).state is State.EXITED


QUESTION = (
    b'answer=; while [ "$answer" != y ] && [ "$answer" != n ]; do printf \'Remove the file? [y/N] \'; read answer; done;'
    b' echo "answered $answer"'
)


@pytest.fixture
def asks(control: Control) -> Control:
    control.new("s", SHELL)
    return control


@pytest.mark.on("tmux", "pipe")
def test_a_question_can_be_looked_at_and_answered(asks: Control) -> None:
    found = asks.ask("s", QUESTION)
    assert (found.state, found.kind) == (State.ASKING, "confirm")
    assert found.asking
    assert [one.id for one in found.asking.options] == ["yes", "no"]
    looked = asks.decide("s")
    assert looked.asked.id == found.asking.id
    assert looked.option is None
    with pytest.raises(Usage):
        asks.decide("s", "perhaps")
    with pytest.raises(Conflict):
        asks.decide("s", "yes", id="00000000")
    done = asks.decide("s", "yes", id=found.asking.id)
    assert done.option == "yes"
    asks.wait("s", text="answered y")
    asks.wait("s")
    with pytest.raises(Conflict) as error:
        asks.decide("s", "yes")
    assert error.value.reason == "no_question"


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_the_next_thing_can_be_waited_for_with_the_answer(asks: Control) -> None:
    asks.ask("s", b"printf 'Go on? [y/N] '; read a; sleep 1; printf 'Really? [y/N] '; read b; sleep 1000")
    found = asks.decide("s", "yes", wait=True)
    assert found.asked.question.startswith("Go on")
    assert found.state is State.ASKING
    assert found.asking
    assert found.asking.question.startswith("Really")
    late = asks.decide("s", "yes", wait=True, timeout=0.1)
    assert (late.state, late.timed_out) == (State.BUSY, True)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_the_end_can_be_waited_for_with_the_answer(asks: Control) -> None:
    asks.ask("s", b"printf 'Leave? [y/N] '; read a; sleep 1; exit 3")
    found = asks.decide("s", "yes", wait=True)
    assert (found.state, found.exit_status, found.timed_out) == (State.EXITED, 3, False)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_policy_answers_only_what_it_covers(asks: Control) -> None:
    text = QUESTION
    found = asks.ask("s", text, decide=("password=allow",))
    assert found.state is State.ASKING
    asks.decide("s", "no")
    asks.wait("s")
    found = asks.ask("s", text, decide=("confirm=yes",))
    assert found.state is State.IDLE
    assert "answered y" in found.answer


@pytest.mark.on("tmux")
def test_a_policy_answers_every_question_of_a_turn(asks: Control) -> None:
    text = b'for i in 1 2 3; do printf "Remove $i? [y/n] "; read answer; echo "$i was $answer"; done'
    found = asks.ask("s", text, decide=("confirm=no",))
    assert (found.state, found.answer.count("was n")) == (State.IDLE, 3)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_numbered_list_is_chosen_from_by_number_or_by_word(control: Control) -> None:
    control.new("s", ("bash", "--norc"))
    text = b"select one in red green 'dark blue'; do echo got $one; break; done"
    found = control.ask("s", text)
    assert (found.state, found.kind) == (State.ASKING, "choice")
    assert found.asking
    assert [one.label for one in found.asking.options] == ["red", "green", "dark blue"]
    assert control.decide("s", "green").option == "2"
    control.wait("s", text="^got green")
    control.wait("s")
    assert "got dark blue" in control.ask("s", text, decide=("choice=3",)).answer


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_debuggers_question_without_answers_is_for_yes_or_no(control: Control, place: Path) -> None:
    (place / "loop.py").write_text("for i in range(3):\n    print(i)\n")
    control.new("d", ("python3", "-m", "pdb", "loop.py"))
    control.ask("d", b"break 2")
    found = control.ask("d", b"clear")
    assert (found.state, found.kind) == (State.ASKING, "confirm")
    control.decide("d", "no")
    assert control.wait("d").kind == "prompt"
    assert "breakpoint" in control.ask("d", b"break").answer
    assert "Deleted breakpoint 1" in control.ask("d", b"clear", decide=("confirm=yes",)).answer


@pytest.mark.on("tmux")
def test_an_editor_that_asks_whether_to_save_is_asking(
    control: Control, place: Path, needs: Callable[..., None]
) -> None:
    needs("nano")
    (place / "notes").write_text("old\n")
    control.new("e", ("nano", "notes"))
    control.send("e", b"new ", enter=False)
    control.wait("e", text="new old", since="screen")
    control.keys("e", ("C-x",))
    found = control.wait("e", asking=True)
    assert found.kind == "confirm"
    control.decide("e", "cancel")
    assert control.wait("e").kind == "editor"
    control.keys("e", ("C-x",))
    control.wait("e", asking=True)
    assert control.decide("e", "no").state is State.EXITED
    assert (place / "notes").read_text() == "old\n"


BOXES = {
    "yes or no": ("--yesno 'Go on?' 10 40", "approval", "no", "1"),
    "menu": ("--menu Pick 15 50 5 a Apple b Banana c Cherry", "choice", "Cherry", "c0"),
    "marked": ("--default-item b --menu Pick 15 50 5 a Apple b Banana c Cherry", "choice", "a", "a0"),
    "cancel": ("--menu Pick 15 50 5 a Apple b Banana", "choice", "cancel", "1"),
    "one of": ("--radiolist Pick 15 50 5 a Apple off b Banana on c Cherry off", "choice", "c", "c0"),
    "several": ("--checklist Pick 15 50 5 a Apple on b Banana off", "choice", "ok", "a0"),
    "field": ("--inputbox Name 10 40", "question", "Ann", "Ann0"),
}


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("name", ["whiptail", "dialog"])
def test_a_box_is_answered(control: Control, place: Path, needs: Callable[..., None], name: str, box: str) -> None:
    needs(name)
    arguments, kind, option, result = BOXES[box]
    control.new("s", ("sh", "-c", f"{name} {arguments} 2>chosen; echo $? >>chosen; read line"))
    assert control.wait("s", asking=True).kind == kind
    control.decide("s", option)
    assert control.wait("s").kind == "line"
    assert (place / "chosen").read_text().replace('"', "").strip() == result


@pytest.mark.on("tmux")
@pytest.mark.parametrize("name", ["whiptail", "dialog"])
def test_a_box_that_hides_what_is_typed_asks_for_a_password(
    control: Control, needs: Callable[..., None], name: str
) -> None:
    needs(name)
    control.new("s", (name, "--passwordbox", "Your password", "10", "40"))
    assert control.wait("s", asking=True).kind == "password"


def test_answers_that_differ_by_case_alone_are_two() -> None:
    options = tuple(Option(one, one, (one, "Enter")) for one in ("y", "j", "J"))
    asking = Asking(InputKind.CHOICE, "0", "?", options)
    assert [found and found.id for found in map(partial(find_option, asking), ("j", "J", "Y", "3", "yes"))] == [
        "j",
        "J",
        "y",
        "J",
        "y",
    ]


def test_a_single_key_is_the_answer_it_chooses() -> None:
    asking = Asking(
        InputKind.CHOICE, "0", "?", (Option("edit-anyway", "Edit anyway", ("e",)), Option("quit", "Quit", ("q",)))
    )
    found = find_option(asking, "q")
    assert found is not None
    assert found.id == "quit"


@pytest.mark.on("tmux")
def test_a_password_is_decided_by_a_secret_only(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    control.new("s", program("secret"))
    with pytest.raises(Usage):
        control.decide("s", "hunter2")
    monkeypatch.setenv("WORD", "hunter2")
    assert control.decide("s", secret_from_env="WORD").option == "secret"
    control.wait("s", text="it has 7 bytes")
    assert "hunter2" not in control.log("s").text


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ((), {}),
        (("allow",), {"*": "allow"}),
        (("tool=allow,trust=deny", "*=stop"), {"tool": "allow", "trust": "deny", "*": "stop"}),
    ],
)
def test_policies_are_read(texts: tuple[str, ...], found: dict[str, str]) -> None:
    assert parse_policies(texts) == found


@pytest.mark.parametrize("text", ["=allow", "tool=", ",", "foo", "yes", "allow,foo", "confirm"])
def test_a_bad_policy_is_told_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(Usage) as error:
        parse_policies((text,))
    assert error.value.reason == "bad_decision"
    assert "--decide allow, --decide deny, or --decide KIND=OPTION" in error.value.hint


@pytest.mark.on("tmux")
def test_an_empty_answer_is_what_enter_means(control: Control) -> None:
    control.new(
        "t", ("sh", "-c", "printf 'Install? [Y/n] '; read -r a; printf 'Name: '; read -r b; echo \"<$a><$b>\"; cat")
    )
    control.wait("t", asking=True)
    assert control.decide("t", "").option == "yes"
    control.wait("t", text="Name:", since="screen")
    control.send("t", b"x")
    assert control.wait("t", text="<y?><x>", since="screen").matched == "text"
    control.new("u", ("sh", "-c", "printf 'Remove? (y or n) '; read -r a; cat"))
    control.wait("u", asking=True)
    with pytest.raises(Usage):
        control.decide("u", "")


def test_allow_is_not_an_answer_that_the_program_advises_against() -> None:
    options = tuple(Option(one, one, (one, "Enter")) for one in "YINODZ")
    asking = Asking(InputKind.APPROVAL, "0", "keep your file?", options, "N")
    assert find_option(asking, "allow") is None
    assert [find_option(asking, word) for word in ("Y", "deny", "N")] == [options[0], options[2], options[2]]
    plain = Asking(
        InputKind.CONFIRM, "0", "continue?", (Option("yes", "yes", ("y",)), Option("no", "no", ("n",))), "no"
    )
    assert find_option(plain, "allow") == plain.options[0]


@pytest.mark.on("tmux")
def test_a_turn_that_ends_in_half_a_command_is_not_complete(control: Control) -> None:
    control.new("py", ("python3", "-q"))
    begun = control.ask("py", b"for i in range(2): print(i)")
    assert (begun.kind, begun.complete) == ("continuation", False)
    assert control.ask("py", b"").complete


@pytest.mark.on("tmux")
def test_a_prompt_that_the_journal_has_late_is_not_part_of_an_answer(control: Control, place: Path, until: Any) -> None:
    folder = place / "state/tmuxctl/t/sessions" / str(control.new("t", ("sh",)).id)
    writer = int(until(lambda: (folder / "journal.pid").read_text().strip()))
    rows = find_tree(control.machine.transport.processes(), writer)
    for row in rows:
        os.kill(row.pid, signal.SIGSTOP)
    control.keys("t", ("Enter",))
    until(lambda: control.screen("t").text.count("\n") >= 1)
    control.send("t", b"printf 'o%s\\n' ne two")
    until(lambda: "otwo" in control.screen("t").text)
    for row in rows:
        os.kill(row.pid, signal.SIGCONT)
    until(lambda: "otwo" in control.log("t").text)
    _, output = printed.read_since_input(control.machine, "t")
    assert output.text.startswith("one\notwo")


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("python3", "-q"), b"import time; time.sleep(0.5); print('T' + 'WO')"),
        (("sh", "-c", "while read -r line; do sleep 0.5; echo T''WO; done"), b"two"),
    ],
    ids=["prompt", "no prompt"],
)
def test_output_that_is_not_in_the_journal_yet_is_waited_for(
    control: Control, place: Path, until: Any, argv: tuple[str, ...], text: bytes
) -> None:
    """On a busy machine its writer gets no time for a moment, here between the echo and the answer."""
    folder = place / "state/tmuxctl/t/sessions" / str(control.new("t", argv).id)
    writer = int(until(lambda: (folder / "journal.pid").read_text().strip()))

    def signal_writer(number: int) -> None:
        for row in find_tree(control.machine.transport.processes(), writer):
            os.kill(row.pid, number)

    def hold_up() -> None:
        until(lambda: text in control.log("t", raw=True).data)
        signal_writer(signal.SIGSTOP)
        until(lambda: "TWO" in control.screen("t").text)
        threading.Event().wait(0.5)
        signal_writer(signal.SIGCONT)

    holding = threading.Thread(target=hold_up)
    holding.start()
    answer = control.ask("t", text)
    holding.join()
    assert answer.answer == "TWO"
