"""`exec`: a command's exact output and exit status, in the session's own shell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from control.conftest import Held
from programs import LINES, SHELL

from tmuxctl.control import Control
from tmuxctl.control.sessions import finding
from tmuxctl.control.turns import commands
from tmuxctl.errors import Conflict, DecisionNeeded, Exited, Usage
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.value import changed

SHELLS = {"bash": ("bash", "--norc"), "zsh": ("zsh", "-f"), "fish": ("fish", "--no-config"), "sh": ("sh",)}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, control: Control, needs: Callable[..., None]) -> str:
    """One after the other of the shells, in session `t`."""
    needs(SHELLS[request.param][0])
    control.new("t", SHELLS[request.param])
    return str(request.param)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_every_shell_gives_output_and_status(control: Control, shell: str, place: Path) -> None:
    cases = [
        ("echo hello", "hello\n", 0),
        ("false", "", 1),
        ("printf 'no newline'", "no newline", 0),
        ("echo a; echo b; sh -c 'exit 7'", "a\nb\n", 7),
        ("true", "", 0),
        (r"printf '\033]133;D;0\007x'", "\x1b]133;D;0\x07x", 0),
        ("echo 'it''s \"quoted\" $HOME #{pid} ;'", None, 0),
        ("printf '%s\\n' one two | cat", "one\ntwo\n", 0),
    ]
    for command, output, status in cases:
        ran = control.exec("t", (command,))
        assert ran.exit_status == status, command
        assert output is None or ran.output == output, command
        assert not ran.timed_out
        assert not ran.truncated


@pytest.mark.on("tmux")
def test_every_shell_keeps_what_a_command_changed(control: Control, shell: str, place: Path) -> None:
    (place / "sub").mkdir()
    control.exec("t", ("cd sub",))
    assert control.exec("t", ("pwd",)).output == f"{place}/sub\n"
    control.exec("t", ("set -gx KEPT yes" if shell == "fish" else "export KEPT=yes",))
    assert control.exec("t", ("sh", "-c", "echo $KEPT")).output == "yes\n"


@pytest.mark.on("tmux")
def test_every_shell_can_be_ended(control: Control, shell: str) -> None:
    ran = control.exec("t", ("exit 5",))
    assert ran.exit_status == 5
    assert control.show("t").exit_status == 5
    with pytest.raises(Exited):
        control.exec("t", ("true",))


@pytest.mark.on("tmux")
def test_every_shell_takes_words_as_they_are(control: Control, shell: str, place: Path) -> None:
    words = ("two words", "it's", "$HOME", "*", "", "a\\b", "#(touch x)", "new\nline", "ünï", ";", "-n")
    assert control.exec("t", ("printf", "<%s>", *words)).output == "".join(f"<{word}>" for word in words)
    assert not (place / "x").exists()


def test_a_command_runs_in_the_sessions_shell(control: Control, place: Path) -> None:
    (place / "sub").mkdir()
    control.new("t", SHELL)
    ran = control.exec("t", ("echo hello; false",))
    assert (ran.session, ran.output, ran.data, ran.exit_status) == ("t", "hello\n", b"hello\n", 1)
    assert control.exec("t", ("cd sub",)).exit_status == 0
    assert control.exec("t", ("pwd",)).output == f"{place}/sub\n"
    assert control.exec("t", ("printf 'no newline'",)).output == "no newline"


@pytest.mark.night
def test_a_command_that_takes_longer_than_allowed_goes_on(control: Control, held: Held) -> None:
    control.new("t", SHELL)
    ran = control.exec("t", (f"echo first; {held.words}; echo second",), timeout=0.4)
    assert (ran.timed_out, ran.exit_status) == (True, None)
    assert ran.output in ("first\n", "")
    held.go()
    assert control.wait("t", text="^second", since="screen").matched
    assert control.exec("t", ("echo third",)).output == "third\n"


@pytest.mark.night
def test_nothing_is_typed_into_a_running_program(control: Control) -> None:
    control.new("t", SHELL)
    control.exec("t", ("true",))
    control.send("t", b"sleep 30")
    assert control.wait("t", settle=0.3).matched
    before = control.screen("t").text
    with pytest.raises(Conflict) as refused:
        control.exec("t", ("echo hello",))
    assert refused.value.reason == "busy"
    assert "sleep" in refused.value.message
    assert control.screen("t").text == before
    control.keys("t", ("C-c",))
    # the key is typed, and the program ends a moment later
    assert control.wait("t", prompt=True).matched
    assert control.exec("t", ("echo hello",)).output == "hello\n"


@pytest.mark.night
@pytest.mark.on("resident")
def test_nothing_is_typed_behind_a_command_that_is_still_on_its_way(control: Control, until) -> None:
    control.new("t", SHELL)
    control.exec("t", ("true",))
    control.send("t", b"true")
    assert control.wait("t", prompt=True).matched
    machine = control.machine
    pane, remembered = finding.find_with_input(machine, "t")
    journal, last_input = finding.open_journal(machine, pane), LastInput.parse(remembered)
    assert last_input
    assert commands.has_read_input(machine, pane, journal, last_input)
    # what no program reads stays unread, however long that takes
    control.send("t", b"sleep 1000")
    control.keys("t", ("Enter",))
    assert until(lambda: (tty := machine.transport.tty(pane.tty)) and tty.unread)
    pane, remembered = finding.find_with_input(machine, "t")
    typed = LastInput.parse(remembered)
    assert typed
    assert not commands.has_read_input(machine, pane, journal, changed(typed, at=typed.at - 60.0))
    control.keys("t", ("C-c",))
    assert until(lambda: commands.has_read_input(machine, pane, journal, typed))
    assert control.wait("t", prompt=True).matched
    control.send("t", b"sleep 30")
    with pytest.raises(Conflict) as refused:
        control.exec("t", ("true",))
    assert refused.value.reason == "busy"


@pytest.mark.night
@pytest.mark.on("memory", "tmux")
def test_nothing_is_typed_into_what_is_no_shell(control: Control) -> None:
    control.new("t", LINES)
    assert control.wait("t", settle=1.2).matched
    with pytest.raises(Conflict) as refused:
        control.exec("t", ("echo hello",), timeout=5.0)
    assert refused.value.reason == "busy"
    assert control.screen("t").text == ""


@pytest.mark.on("memory", "tmux")
def test_no_command_is_no_command(control: Control) -> None:
    control.new("t", SHELL)
    for command in ((), ("",)):
        with pytest.raises(Usage):
            control.exec("t", command)


@pytest.mark.on("tmux")
def test_much_output_comes_whole_or_is_called_truncated(control: Control) -> None:
    control.new("t", ("bash", "--norc"))
    ran = control.exec("t", ("seq 1 50000",))
    assert ran.output == "".join(f"{number}\n" for number in range(1, 50001))
    cut = control.exec("t", ("seq 1 50000",), max_bytes=1000)
    assert (len(cut.data), cut.truncated, cut.exit_status) == (1000, True, 0)
    assert ran.output.startswith(cut.output)


@pytest.mark.on("tmux")
def test_bytes_that_are_no_text_come_as_they_are(control: Control) -> None:
    control.new("t", ("bash", "--norc"))
    ran = control.exec("t", (r"printf '\377\0\200x'",))
    assert ran.data == b"\xff\0\x80x"
    assert ran.output_base64


@pytest.mark.on("tmux")
def test_the_users_own_start_up_file_is_read(control: Control, place: Path) -> None:
    (place / ".bashrc").write_text("PS1='mine> '; alias hi='echo aliased'\n")
    control.new("t", ("bash",))
    assert control.exec("t", ("hi",)).output == "aliased\n"
    assert "mine>" in control.screen("t").text


@pytest.mark.on("tmux")
def test_half_typed_text_does_not_become_part_of_a_command(control: Control) -> None:
    control.new("t", ("bash", "--norc"))
    control.exec("t", ("true",))
    control.send("t", b"rm -rf important ", enter=False)
    assert control.wait("t", text="important", since="screen").matched
    assert control.exec("t", ("echo safe",)).output == "safe\n"


@pytest.mark.on("tmux", "pipe")
@pytest.mark.parametrize("question", ["Format? [y/N] ", "Name: "])
def test_a_command_is_never_typed_into_a_question(control: Control, question: str) -> None:
    control.new("t", ("sh", "-c", f"printf '{question}'; read -r answer; echo got $answer; exec cat"))
    control.wait("t", text=question.strip().replace("?", "[?]").replace("[y/N]", ".*"), since="screen")
    with pytest.raises((DecisionNeeded, Conflict)):
        control.exec("t", ("ls",))
    assert control.screen("t").text == question.strip()


@pytest.mark.on("tmux")
@pytest.mark.parametrize("command", ['echo "abc', "echo 'abc", "echo )", "if true"])
def test_of_a_command_that_is_none_only_the_shells_complaint_is_told(
    control: Control, shell: str, command: str
) -> None:
    ran = control.exec("t", (command,))
    assert ran.exit_status
    assert ran.output
    assert "builtin" not in ran.output
    assert "/sessions/" not in ran.output
    assert control.exec("t", ('echo "next"',)).output == "next\n"


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_a_command_that_asks_is_not_waited_for(control: Control, shell: str, place: Path) -> None:
    (place / "kept").write_text("")
    with pytest.raises(DecisionNeeded) as asking:
        control.exec("t", ("echo so far; rm -i kept; echo done",))
    assert asking.value.details["output"].startswith("so far\n")
    assert [one["id"] for one in asking.value.details["asking"]["options"]] == ["yes", "no"]
    assert "tmuxctl decide t" in asking.value.hint
    control.decide("t", "yes")
    assert control.wait("t", text="^done$").matched
    assert not (place / "kept").exists()
    assert control.exec("t", ("echo next",)).output == "next\n"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_command_that_waits_for_a_line_is_not_waited_for(control: Control) -> None:
    control.new("t", ("bash", "--norc"))
    with pytest.raises(DecisionNeeded) as asking:
        control.exec("t", ("read -p 'Name: ' name; echo hello $name",))
    assert (asking.value.reason, asking.value.details["output"]) == ("line", "Name: ")
    control.send("t", b"Ada")
    assert control.wait("t", text="^hello Ada$").matched


@pytest.mark.night
def test_a_silent_command_is_waited_for(control: Control) -> None:
    control.new("t", SHELL)
    assert control.exec("t", ("sleep 2; echo done",)).output == "done\n"


@pytest.mark.on("tmux")
def test_a_command_never_becomes_part_of_one_that_was_begun(control: Control, shell: str) -> None:
    control.send("t", b"echo 'begun")
    assert control.wait("t", input=True).kind == "continuation"
    with pytest.raises(Conflict) as caught:
        control.exec("t", ("echo hi",))
    assert caught.value.reason == "busy"
    control.send("t", b"and ended'")
    assert control.wait("t", prompt=True).matched == "prompt"
    assert "shell/x" not in control.log("t").text
    assert control.exec("t", ("echo hi",)).output == "hi\n"
