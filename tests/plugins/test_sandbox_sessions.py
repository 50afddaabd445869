"""Sessions in a sandbox: they are driven and understood as any other, and end with all they started."""

from __future__ import annotations

import os
import shlex
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tmuxctl import plugin
from tmuxctl.control import Control
from tmuxctl.errors import Failed
from tmuxctl.model import Confidence

PYTHON = "/usr/bin/python3"

pytestmark = [
    pytest.mark.on("tmux"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bubblewrap is for Linux"),
]


@pytest.fixture
def workspace(control: Control, place: Path, needs: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, below the home that the sandbox hides."""
    needs("bwrap", "bash")
    if reason := plugin.find_obstacle(plugin.load("sandbox")):
        pytest.skip(reason)
    folder = place / "work"
    folder.mkdir()
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    return folder


def new(control: Control, workspace: Path, *command: str, level: str = "workspace", shows: str | None = None) -> Any:
    """A program in a sandbox that is idle, or `shows` this and goes on working."""
    made = control.new("t", command, cwd=str(workspace), with_=(f"sandbox={level}",), size="100x30", wait=not shows)
    assert control.wait("t", idle=not shows, text=shows).matched
    return made


def test_a_shell_is_idle_and_runs_commands(control: Control, workspace: Path) -> None:
    made = new(control, workspace, "bash", "--norc")
    assert made.plugins == ("sandbox",)
    seen = control.show("t")
    assert (seen.state.value, seen.kind) == ("idle", "prompt")
    assert seen.confidence in (Confidence.SURE, Confidence.LIKELY)
    ran = control.exec("t", ("pwd; touch made; touch ~/.ssh/id; exit_status() { return 7; }; exit_status",))
    assert (ran.exit_status, ran.output.splitlines()[0]) == (7, str(workspace))
    assert os.listdir(workspace) == ["made"]


@pytest.mark.parametrize("shell", ["sh", "zsh", "fish"])
def test_other_shells_run_commands_too(
    control: Control, workspace: Path, needs: Callable[..., None], shell: str
) -> None:
    needs(shell)
    new(control, workspace, shell)
    for number in (3, 0):
        ran = control.exec("t", (f"echo hello; sh -c 'exit {number}'",))
        assert (ran.output, ran.exit_status) == ("hello\n", number)


@pytest.mark.night
def test_python_is_asked_and_interrupted(control: Control, workspace: Path) -> None:
    if not os.path.exists(PYTHON):
        pytest.skip(f"there is no {PYTHON}")
    new(control, workspace, PYTHON, "-q")
    assert control.ask("t", b"6 * 7").text == "42"
    assert control.show("t").confidence in (Confidence.SURE, Confidence.LIKELY)
    for _ in range(2):
        control.send("t", b"import time; print('go'); time.sleep(1000)")
        control.wait("t", text="^go$")
        assert control.show("t").state.value == "busy"
        control.keys("t", ("C-c",))
        assert control.wait("t").state == "idle"
    assert "KeyboardInterrupt" in control.screen("t").text
    assert control.ask("t", b"6 * 7").text == "42"


def test_an_interrupt_ends_the_program_that_does_not_catch_it(control: Control, workspace: Path) -> None:
    new(control, workspace, "cat")
    control.keys("t", ("C-c",))
    assert control.wait("t", exit=True).matched == "exit"
    assert control.show("t").exit_status == 130


@pytest.mark.night
def test_jobs_are_stopped_and_continued(control: Control, workspace: Path) -> None:
    new(control, workspace, "bash", "--norc")
    control.send("t", b"cat")
    # a line that came while the shell still edited would not end for `cat`, and C-z before it has the terminal stops nothing
    assert control.wait("t", input=True).matched
    control.send("t", b"there")
    assert control.wait("t", text="^there$").matched
    control.keys("t", ("C-z",))
    assert control.wait("t", text=r"Stopped +cat").matched
    assert control.exec("t", ("jobs",)).output.split()[1:] == ["Stopped", "cat"]
    control.send("t", b"fg")
    assert control.wait("t", text="^cat$").matched
    control.send("t", b"hello")
    # its echo is no answer
    assert control.wait("t", text="^hello$").matched
    control.keys("t", ("C-c",))
    assert control.wait("t").state == "idle"


SIZE = "trap 'echo is $(stty size)' WINCH; echo up; while :; do sleep 0.05; done"


def test_it_learns_of_a_new_size(control: Control, workspace: Path) -> None:
    new(control, workspace, "bash", "--norc", "-c", SIZE, shows="up")
    control.resize("t", "90x20")
    assert control.wait("t", text="is 20 90").matched


def test_what_it_tells_of_its_turns_arrives(control: Control, workspace: Path) -> None:
    made = new(control, workspace, "bash", "--norc")
    events = Path(control.machine.transport.home) / "sessions" / made.id / "events"
    script = f"cd {shlex.quote(str(events))} && echo '{{}}' >.new && mv .new one && ls .. && touch ../more"
    assert control.exec("t", (script,)).output.split()[:2] == ["events", "shell"]
    assert {path.name for path in events.iterdir()} == {"one", "hook"}
    assert not (events.parent / "more").exists()


def test_tmux_and_tmuxctl_are_out_of_reach(control: Control, workspace: Path) -> None:
    new(control, workspace, "bash", "--norc", level="workspace+net")
    socket = f"{os.environ['TMUX_TMPDIR']}/tmux-{os.getuid()}/t"
    assert os.path.exists(socket)
    state = "~/state/tmuxctl/t"
    script = (
        f"echo [$TMUX$TMUX_PANE]; tmux -L t ls; tmux -S {socket} ls; ls -A {state}; cat {state}/sessions/*/spec.json"
    )
    lines = control.exec("t", (script,)).output.splitlines()
    assert lines[0] == "[]"
    assert "sessions" in lines
    assert not [line for line in lines if "attached" in line or "argv" in line]
    assert (
        len([line for line in lines if "No such file" in line or "no server" in line or "error connecting" in line])
        == 3
    )


HOW = {
    "ignores what ends programs": "trap '' HUP TERM INT QUIT; echo up; while :; do sleep {0}; done",
    "a session of its own": "setsid sleep {0} & echo up; cat",
    "nobody's child with nothing": "(env -i setsid nohup sleep {0} >/dev/null 2>&1 &) ; echo up; cat",
    "stopped": "sleep {0} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; echo up; cat",
}


@pytest.mark.parametrize("how", HOW)
def test_all_that_it_started_ends_with_it(
    control: Control, workspace: Path, until: Callable[..., Any], how: str
) -> None:
    mark = str(uuid.uuid4().int % 10**9)
    new(control, workspace, "bash", "--norc", "-c", HOW[how].format(mark), shows="up")
    until(lambda: running(mark))
    (end,) = control.kill(("t",), grace=0.2).killed
    assert not end.escaped
    until(lambda: not running(mark))


def running(mark: str) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found += [pid] if words[-2:-1] == [mark.encode()] and words[0].endswith(b"sleep") else []
    return found


@pytest.mark.night
def test_a_program_has_the_time_it_was_given_to_end(control: Control, workspace: Path) -> None:
    script = "trap '' HUP; trap 'sleep 0.3; echo saved >work; exit 4' TERM; echo up; while :; do sleep 0.05; done"
    new(control, workspace, "bash", "--norc", "-c", script, shows="up")
    control.kill(("t",), grace=10)
    assert (workspace / "work").read_text() == "saved\n"


def test_nothing_is_written_by_a_plan(control: Control, workspace: Path, needs: Callable[..., None]) -> None:
    needs("git")
    os.system(f"git -C {workspace} init -q --template=")
    before = sorted(str(path) for path in workspace.rglob("*"))
    plan = control.new("t", ("bash",), cwd=str(workspace), with_=("sandbox",), dry_run=True)
    assert plan.argv[0] == "/usr/bin/python3"
    assert sorted(str(path) for path in workspace.rglob("*")) == before


def test_a_command_can_be_run_in_one(control: Control, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    ran = control.run(("sh", "-c", "echo out; touch new ~/lost; exit 7"), with_=("sandbox",))
    assert (ran.output, ran.exit_status) == ("out\n", 7)
    assert os.listdir(workspace) == ["new"]


def test_its_variables_are_the_short_list_and_what_was_given(
    control: Control, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "wq7")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    monkeypatch.chdir(workspace)
    ran = control.run(("env",), with_=("sandbox",), env={"GIVEN": "yes"})
    names = {line.partition("=")[0] for line in ran.output.splitlines()}
    assert {"GIVEN", "PATH", "HOME", "TERM", "TMUXCTL_SESSION"} <= names
    assert not names & {"SOME_TOKEN", "SSH_AUTH_SOCK", "TMUX", "TMUX_PANE", "TMPDIR"}


def test_the_home_itself_is_no_place_to_work_in(control: Control, workspace: Path, place: Path) -> None:
    with pytest.raises(Failed) as error:
        control.new("t", ("bash",), cwd=str(place), with_=("sandbox",))
    assert "cannot be the folder of a sandbox" in error.value.message
    assert not control.ls().sessions


STOPPED = """
import ctypes, os
libc, (ours, theirs) = ctypes.CDLL(None), os.pipe()
if not os.fork():
    attached = libc.ptrace(16, 1, 0, 0)
    os.waitpid(1, 0x40000000)
    os.write(theirs, b"x")
    libc.pause()
os.read(ours, 1)
print("leaving", flush=True)
"""


@pytest.mark.night
def test_one_that_stops_the_first_process_of_its_sandbox_is_not_waited_for_without_end(
    control: Control, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    module = plugin.load("sandbox").module
    assert module
    assert module.RUN_SECONDS == 3600
    monkeypatch.setattr(module, "RUN_SECONDS", 4)
    ran = control.run((PYTHON, "-c", STOPPED), with_=("sandbox",))
    assert (ran.output, ran.timed_out) == ("leaving\n", True)
