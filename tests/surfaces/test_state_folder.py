"""Where what is kept of sessions cannot be written: every command names the folder and the remedy, doctor one cause once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tmuxctl.control import Control
from tmuxctl.errors import Denied
from tmuxctl.terminal.launch.tmux_conf import CONFIG
from tmuxctl.transport.pipe import PipeTransport

VERBS = (
    "ls", "new t -- cat", "show t", "send t x", "keys t Enter", "screen t", "read t", "log t", "wait t", "ask t x",
    "exec t -- ls", "run -- ls", "decide t", "watch t", "explain t", "kill t", "kill --all", "rename t u", "resize t 80x24",
    "prune", "restore", "tag t x", "attach t", "profile new shop -- cat", "release t", "sync t",
)  # fmt: skip


def tmuxctl(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command with these variables; of a variable without value nothing is left."""
    changed = {**os.environ, "XDG_STATE_HOME": "", **environment}
    return subprocess.run(
        [sys.executable, "-m", "tmuxctl", *line.split()],
        capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        env={name: value for name, value in changed.items() if value},
    )  # fmt: skip


@pytest.mark.parametrize("line", VERBS)
def test_a_home_that_cannot_be_written_is_named_with_the_remedy(place: Path, line: str) -> None:
    done = tmuxctl(line, HOME="/proc")
    # as of env(1): what `exec` and `run` exit with is the program's own, but for 125
    assert done.returncode == (125 if line.startswith(("exec ", "run ")) else 8), done.stderr
    assert "/proc/.local/state/tmuxctl" in done.stderr
    assert "export XDG_STATE_HOME=DIR" in done.stderr
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr


def test_a_file_in_the_place_of_the_folder_is_named_with_the_remedy(place: Path) -> None:
    (place / "state").write_text("")
    done = tmuxctl("ls", XDG_STATE_HOME=f"{place}/state")
    assert done.returncode == 8
    assert "Not a directory" in done.stderr
    assert "export XDG_STATE_HOME=DIR" in done.stderr


def test_a_home_that_is_no_path_is_named(place: Path) -> None:
    done = tmuxctl("ls", HOME="somewhere")
    assert done.returncode == 8
    assert "HOME is 'somewhere', which is not an absolute path" in done.stderr
    assert "export XDG_STATE_HOME=DIR" in done.stderr
    assert not (place / "somewhere").exists()


def test_with_a_state_folder_of_its_own_no_home_is_needed(place: Path) -> None:
    done = tmuxctl("ls", HOME="/proc", XDG_STATE_HOME=f"{place}/state")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(("home", "said"), [("/proc", "/proc/.local"), ("somewhere", "there is no HOME")])
def test_behind_a_pipe_it_is_named_too(place: Path, monkeypatch: pytest.MonkeyPatch, home: str, said: str) -> None:
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_STATE_HOME")
    control = Control(PipeTransport(socket="t", config=CONFIG))
    try:
        with pytest.raises(Denied, match=said) as caught:
            control.new("t", ("cat",))
        assert "XDG_STATE_HOME" in caught.value.hint
    finally:
        control.close()


def test_doctor_names_a_folder_that_cannot_be_written_once(place: Path) -> None:
    done = tmuxctl("doctor", HOME="/proc")
    assert done.returncode == 1
    assert done.stdout.count("cannot be written") == 1
    assert done.stdout.count("export XDG_STATE_HOME=DIR") == 1
    assert "not checked: see state folder" in done.stdout


def test_doctor_names_a_tmux_that_is_missing_once(place: Path) -> None:
    programs = place / "programs"
    programs.mkdir()
    for name in ("sh", "df", "sed", "ls", "ps", "uname", "cat"):
        (programs / name).symlink_to(str(shutil.which(name)))
    done = tmuxctl("doctor", PATH=str(programs), XDG_STATE_HOME=f"{place}/state")
    assert done.returncode == 1
    assert done.stdout.count("apt install tmux") == 1
    assert done.stdout.count("✗") == 1
    assert done.stdout.count("not checked: see tmux") == 4
