"""Starting a session: what the user asked for is exactly what runs, and nothing else does."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import LINES, SHELL, program

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Failed, NotFound, TmuxctlError, Usage
from tmuxctl.model import State
from tmuxctl.value import changed

HOSTILE = (
    "x##y",
    "#(touch x)",
    "#{pid}",
    "new\nline",
    "%H %%",
    'it\'s "two" words',
    "$(touch x)",
    ";",
    "-c",
    "ünï",
    "tail ",
)


def about(control: Control, session: str) -> dict[str, Any]:
    """What the program `about` was started with."""
    found = control.wait(session, text=r"about ([0-9a-f\s]+)\.", since="screen").groups
    assert found
    told: dict[str, Any] = json.loads(bytes.fromhex(re.sub(r"\s", "", str(found[0]))))
    return told


BIG = "1000x60"
"""So wide that what `about` tells fits."""


def test_a_session_has_the_name_it_was_given(control: Control) -> None:
    made = control.new("db", LINES)
    assert (made.name, made.argv, made.state.value) == ("db", LINES, "idle")
    assert [one.name for one in control.ls().sessions] == ["db"]
    assert control.show("db").id == made.id


@pytest.mark.on("memory", "tmux")
def test_a_session_without_a_name_is_called_after_its_command(control: Control) -> None:
    assert [control.new(command=LINES).name for _ in range(3)] == ["cat", "cat-2", "cat-3"]


@pytest.mark.on("memory", "tmux")
def test_a_session_without_a_command_runs_the_users_shell(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "cat")
    assert control.new().argv == ("cat",)


@pytest.mark.on("memory", "tmux")
def test_an_id_is_as_good_as_a_name(control: Control) -> None:
    made = control.new("db", LINES)
    assert control.show(made.id).name == "db"
    control.send(made.id, b"hello")
    assert control.wait(made.id, text="hello").matched == "text"


@pytest.mark.parametrize(
    "name",
    ["", "-x", "..", "a.b", "a:b", "#(touch x)", "#{pid}", "a b", "a\nb", "a\x1b", "ü", "=a", "a" * 64, "x" * 5000],
)
@pytest.mark.on("memory", "tmux")
def test_a_name_that_tmux_might_read_is_refused(control: Control, place: Path, name: str) -> None:
    if name:
        with pytest.raises(Usage) as refused:
            control.new(name, LINES)
        assert refused.value.reason == "bad_name"
        assert len(refused.value.message) < 200
    with pytest.raises((Usage, NotFound)):
        control.show(name)
    assert not control.ls().sessions
    assert not (place / "x").exists()


@pytest.mark.on("memory", "tmux")
def test_a_session_is_never_found_by_a_part_of_its_name(control: Control) -> None:
    control.new("foobar", LINES)
    for name in ("foo", "foob", "foobarr"):
        with pytest.raises(NotFound) as missing:
            control.send(name, b"x")
        assert missing.value.reason == "no_session"
        with pytest.raises(NotFound):
            control.kill((name,))
    with pytest.raises(NotFound, match="foobr") as near:
        control.show("foobr")
    assert "foobar" in near.value.hint
    assert control.show("foobar").state.value == "idle"


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.on("memory", "tmux")
def test_a_program_starts_in_exactly_the_folder_named(control: Control, place: Path, name: str) -> None:
    (place / name).mkdir()
    control.new("here", program("about"), cwd=name, size=BIG)
    assert about(control, "here")["cwd"] == str(place / name)
    assert control.show("here").cwd == str(place / name)
    assert not (place / "x").exists()
    assert not (place / name / "x").exists()


@pytest.mark.on("pipe")
def test_a_program_behind_a_pipe_starts_in_exactly_the_folder_named(control: Control, place: Path) -> None:
    name = "x##y #(touch x)\n$(touch x) it's"
    (place / name).mkdir()
    control.new("here", program("about"), cwd=name, size=BIG)
    assert about(control, "here")["cwd"] == str(place / name)
    assert not (place / "x").exists()


@pytest.mark.on("memory", "tmux")
def test_a_folder_that_is_not_there_is_an_error_before_anything_starts(control: Control) -> None:
    with pytest.raises(Usage) as refused:
        control.new("here", LINES, cwd="nowhere")
    assert refused.value.reason == "bad_cwd"
    assert not control.ls().sessions


def test_values_of_variables_arrive_as_they_are(control: Control, place: Path) -> None:
    given = {f"HOSTILE_{number}": value for number, value in enumerate((*HOSTILE, "", "a=b", "\x1b[31m"))}
    control.new("here", program("about"), env=given, size=BIG)
    assert {name: about(control, "here")["env"].get(name) for name in given} == given
    assert not (place / "x").exists()


@pytest.mark.on("memory", "tmux")
def test_arguments_arrive_as_they_are(control: Control, place: Path) -> None:
    arguments = [*HOSTILE, "", "--", "*", "a  b"]
    made = control.new("here", program("about", *arguments), size=BIG)
    assert about(control, "here")["argv"] == arguments
    assert made.argv == program("about", *arguments)
    assert not (place / "x").exists()


@pytest.mark.on("memory", "tmux")
def test_a_name_that_no_variable_can_have_is_refused(control: Control) -> None:
    for bad in ({"A B": "x"}, {"1A": "x"}, {"A": "x\0y"}, {"": "x"}):
        with pytest.raises(Usage) as refused:
            control.new("here", LINES, env=bad)
        assert refused.value.reason == "bad_env"
    assert not control.ls().sessions


def test_a_session_gets_its_callers_environment_but_for_the_terminals(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "yes")
    monkeypatch.setenv("COLUMNS", "13")
    monkeypatch.setenv("TMUX", "/nowhere,1,0")
    control.new("here", program("about"), size=BIG)
    env = about(control, "here")["env"]
    assert env["MINE"] == "yes"
    assert env["TERM"] in ("tmux-256color", "screen-256color")
    assert env["COLORTERM"] == "truecolor"
    assert env["TMUXCTL_SESSION"] == control.show("here").id
    assert "COLUMNS" not in env
    assert "/nowhere" not in env.get("TMUX", "")


@pytest.mark.on("memory", "tmux")
def test_a_clean_environment_is_a_short_list(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "yes")
    control.new("here", program("about"), clean_env=True, env={"GIVEN": "too"}, size=BIG)
    env = about(control, "here")["env"]
    assert "MINE" not in env
    assert env["GIVEN"] == "too"
    assert env["PATH"] == os.environ["PATH"]


@pytest.mark.on("tmux", "pipe")
def test_sessions_do_not_inherit_from_the_one_that_started_the_server(
    control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRST_TOKEN", "s3cret")
    control.new("first", LINES)
    monkeypatch.delenv("FIRST_TOKEN")
    control.new("second", program("about"), size=BIG)
    assert "FIRST_TOKEN" not in about(control, "second")["env"]


@pytest.mark.parametrize("size", ["2x2", "33x7", "213x57", "1000x60"])
@pytest.mark.on("memory", "tmux")
def test_a_program_sees_its_size_from_the_first_moment(control: Control, size: str) -> None:
    cols, rows = (int(number) for number in size.split("x"))
    made = control.new("here", program("about"), size=size)
    assert (made.cols, made.rows) == (cols, rows)
    text = control.read("here", since="screen").text
    while "." not in text:
        text = control.read("here", since="screen").text
    told = json.loads(bytes.fromhex(re.sub(r"\s", "", text.replace("about ", "")).rstrip(".")))
    assert told["size"] == [cols, rows]


@pytest.mark.parametrize("size", ["1x10", "10x1", "1001x10", "10", "x", "10x10x10", "-5x10", "١٠x١٠"])
@pytest.mark.on("memory")
def test_a_size_that_no_terminal_has_is_refused(control: Control, size: str) -> None:
    with pytest.raises(Usage) as refused:
        control.new("here", LINES, size=size)
    assert refused.value.reason == "bad_size"


@pytest.mark.on("memory", "tmux")
def test_as_much_history_is_kept_as_was_asked_for(control: Control) -> None:
    for name, lines in (("little", 10), ("none", 0)):
        control.new(name, program("count", "60"), size="80x10", history=lines)
        assert control.wait(name, text="line 60", since="screen").matched
        assert len(control.screen(name, scrollback=0).scrollback or ()) <= lines
    control.new("much", program("count", "60"), size="80x10", history=1000)
    assert control.wait("much", text="line 60", since="screen").matched
    assert control.screen("much", scrollback=0).scrollback == tuple(f"line {number}" for number in range(1, 52))


@pytest.mark.on("tmux")
def test_a_session_with_less_history_takes_none_from_another(control: Control) -> None:
    control.new("much", program("count", "60"), size="80x10", history=1000)
    assert control.wait("much", text="line 60", since="screen").matched
    control.new("little", LINES, history=5)
    assert control.screen("much", scrollback=0).scrollback == tuple(f"line {number}" for number in range(1, 52))
    # what tmux 3.7 and later go by whenever the global value changes
    assert control.machine.transport.run([("show-options", "-v", "-t", "=much:", "history-limit")]) == b"1000\n"


@pytest.mark.on("memory", "tmux")
def test_a_dry_run_tells_all_and_writes_nothing(control: Control, place: Path) -> None:
    plan: Any = control.new("db", LINES, size="100x30", env={"A": "b"}, dry_run=True)
    assert (plan.name, plan.argv, plan.size, plan.cwd) == ("db", LINES, "100x30", str(place))
    assert "A" in plan.env
    assert "launch.sh" in plan.files
    assert any(line.startswith("new-session") for line in plan.tmux)
    assert not control.ls().sessions
    assert not [one for one in (place / "state").rglob("*") if one.is_file()]
    assert not control.machine.transport.files(control.machine.transport.home + "/sessions")


@pytest.mark.on("memory", "tmux")
def test_a_name_that_is_taken_is_an_error_and_harms_nobody(control: Control) -> None:
    first = control.new("db", LINES)
    with pytest.raises(Conflict) as refused:
        control.new("db", SHELL)
    assert refused.value.reason == "exists"
    assert "db" in refused.value.message
    assert control.show("db").id == first.id
    assert list(control.machine.transport.files(control.machine.transport.home + "/sessions")) == [first.id]


@pytest.mark.on("memory", "tmux")
def test_a_session_that_is_there_can_be_used_again(control: Control) -> None:
    first = control.new("db", LINES)
    assert control.new("db", SHELL, if_exists="reuse").id == first.id


@pytest.mark.on("memory", "tmux")
def test_an_ended_session_is_not_used_again_but_started_anew(control: Control) -> None:
    first = control.new("db", ("sh", "-c", "exit 1"))
    assert control.wait("db", exit=True).matched
    again = control.new("db", LINES, if_exists="reuse")
    assert again.id != first.id
    assert again.state.value == "idle"


def test_a_session_that_is_there_can_be_replaced(control: Control) -> None:
    first = control.new("db", LINES)
    second = control.new("db", SHELL, if_exists="replace")
    assert second.id != first.id
    assert [(one.name, one.argv) for one in control.ls().sessions] == [("db", SHELL)]


def test_a_command_that_is_not_there_is_an_error_before_anything_starts(control: Control) -> None:
    with pytest.raises(Failed) as refused:
        control.new("db", ("no-such-program-anywhere",))
    assert refused.value.reason == "command_not_found"
    assert not control.ls().sessions
    assert not control.machine.transport.files(control.machine.transport.home + "/sessions")


@pytest.mark.on("memory")
@pytest.mark.parametrize("command", [("",), ("-x",), ("a\0b",)])
def test_words_that_are_no_command_are_refused(control: Control, command: tuple[str, ...]) -> None:
    with pytest.raises(Usage) as refused:
        control.new("db", command)
    assert refused.value.reason == "bad_command"


@pytest.mark.on("tmux")
def test_a_login_shell_reads_the_users_profile(control: Control, place: Path) -> None:
    (place / ".profile").write_text("FROM_PROFILE=yes\n")
    control.new("login", SHELL, login=True)
    assert control.exec("login", ("echo $FROM_PROFILE",)).output == "yes\n"
    with pytest.raises(Usage) as refused:
        control.new("no", LINES, login=True)
    assert refused.value.reason == "bad_option"


def test_of_two_that_start_one_name_at_once_exactly_one_wins(control: Control, another: Callable[[], Control]) -> None:
    results: list[str] = []

    def start(mine: Control) -> None:
        try:
            results.append(mine.new("db", LINES).id)
        except TmuxctlError as error:
            results.append(error.reason)

    control.new("first", LINES)
    threads = [threading.Thread(target=start, args=(another(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one == "exists" for one in results) == [False, True, True, True], results
    assert [one.name for one in control.ls().sessions] == ["db", "first"]
    assert control.show("db").id in results
    assert len(control.machine.transport.files(control.machine.transport.home + "/sessions")) == 2
    control.send("db", b"alive")
    assert control.wait("db", text="alive").matched


@pytest.mark.on("tmux")
def test_two_that_start_the_first_session_at_once_share_one_server(
    control: Control, another: Callable[[], Control]
) -> None:
    ids: list[str] = []
    threads = [
        threading.Thread(target=lambda mine, name: ids.append(mine.new(name, LINES).id), args=(another(), f"s{number}"))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(control.ls().sessions) == len(set(ids)) == 4


@pytest.mark.on("tmux")
def test_the_users_own_tmux_configuration_has_no_effect(control: Control, place: Path) -> None:
    (place / ".tmux.conf").write_text("run-shell 'touch x'\nset -g remain-on-exit off\n")
    control.new("db", ("sh", "-c", "exit 3"))
    assert control.wait("db", exit=True).exit_status == 3
    assert not (place / "x").exists()


@pytest.mark.on("memory")
def test_no_more_sessions_start_than_the_settings_allow(control: Control) -> None:
    control.machine.settings = changed(control.machine.settings, limits_sessions=2)
    control.new("a", LINES)
    control.new("ended", ("sh", "-c", "exit 0"))
    assert control.wait("ended", exit=True).matched
    control.new("b", LINES)
    with pytest.raises(Failed) as refused:
        control.new("c", LINES)
    assert refused.value.reason == "too_many_sessions"


@pytest.mark.on("memory")
def test_a_profile_that_is_not_there_is_an_error_before_anything_starts(control: Control) -> None:
    with pytest.raises(NotFound):
        control.new("t", LINES, profile="no-such-program")
    assert not control.ls().sessions


@pytest.mark.on("tmux")
@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_a_session_starts_in_any_locale(control: Control, monkeypatch, locale):
    monkeypatch.setenv("LC_ALL", locale)
    assert control.new("t", ("cat",)).name == "t"


@pytest.mark.on("tmux")
def test_the_wheel_of_a_mouse_leaves_no_session_in_copy_mode(control: Control) -> None:
    """Whatever the version of tmux has for usual."""
    control.new("t", LINES)
    assert control.machine.transport.run([("show-options", "-gv", "mouse")]) == b"off\n"


@pytest.mark.on("tmux", "pipe")
def test_a_tmuxctl_inside_a_session_drives_the_same_server(control: Control) -> None:
    control.new("t", ("sh", "-c", 'echo "socket $TMUXCTL_SOCKET"; cat'), env={"TMUXCTL_SOCKET": "elsewhere"})
    assert control.screen("t").text == f"socket {control.machine.transport.socket}"


@pytest.mark.on("tmux")
def test_what_is_said_of_a_name_that_is_taken_repeats_the_command(control: Control) -> None:
    control.new("t", ("cat",))
    with pytest.raises(Conflict) as refused:
        control.new("t", ("sh", "-c", "echo it; cat"))
    assert refused.value.hint.endswith("tmuxctl new t --if-exists replace -- sh -c 'echo it; cat'")


SLOW_PROFILE = """\
schema: tmuxctl/profile@1
name: slow
detect: {argv0: [slow.py], foreground: [slow.py]}
prompt: {id: ready, re: '^ready> $'}
start: {timeout: 60s}
"""

SLOW = """\
#!/usr/bin/env python3
# Listens from the start; shows the first words at once, and its prompt so many seconds later.
import os, select, sys, time, tty

tty.setraw(0)
os.write(1, sys.argv[1].encode())
while time.process_time() < float(sys.argv[3:] and sys.argv[3] or 0):
    pass
select.select([0], [], [], float(sys.argv[2]))
os.write(1, b"\\r\\nready> ")
select.select([0], [], [])
"""


@pytest.fixture
def slow(place: Path) -> str:
    profiles = place / ".config/tmuxctl/profiles"
    profiles.mkdir(parents=True)
    (profiles / "slow.yaml").write_text(SLOW_PROFILE)
    program = place / "slow.py"
    program.write_text(SLOW)
    program.chmod(0o755)
    return str(program)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_that_has_drawn_nothing_is_waited_for_as_long_as_its_profile_says(
    control: Control, slow: str
) -> None:
    # by then nothing has told for 5 seconds what it does
    assert control.new("s", (slow, "", "8")).state is State.IDLE


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_that_works_before_it_has_drawn_anything_is_starting(control: Control, slow: str) -> None:
    assert control.new("s", (slow, "", "0", "6")).state is State.IDLE


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_that_shows_what_is_no_prompt_is_left_to_it(control: Control, slow: str) -> None:
    assert control.new("s", (slow, "Indexing 4,096 files", "40")).state is State.UNKNOWN
