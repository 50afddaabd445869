"""What a user can rely on where a machine's files cannot be seen from here: nothing reaches past the connection."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from machines.ssh_server import SYSTEM_PATH

from tmuxctl.control import Control

BEGIN = """
git init -q -b main shop && cd shop && echo 1 >coins && git add coins &&
git -c user.name=A -c user.email=a@example.org commit -q -m Begin
"""


@pytest.fixture
def box(place: Path, needs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Control]:
    """The operations of this machine, from which a machine `box` is reached whose home is on no disk of this one."""
    needs("tmux", "bwrap", "git")
    home = place / "box"
    home.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    (place / "config/tmuxctl").mkdir(parents=True)
    variables = (
        f"HOME={home}",
        f"TMUX_TMPDIR={home}",
        f"PATH={SYSTEM_PATH}",
        "LC_ALL=C.UTF-8",
        f"PLACE_OF_TEST={place}",
    )
    words = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", str(home), "--chdir", str(home), "env", "-i", *variables, "sh"]
    (place / "config/tmuxctl/machines.toml").write_text(f"[box]\ncommand = {words!r}\n".replace("'", '"'))
    with Control() as control:
        assert control.call("run", {"command": ["sh", "-c", BEGIN], "machine": "box"}).exit_status == 0
        assert not list(home.iterdir())
        yield control
        control.reach("box/")[0].machine.transport.shell("tmux -L t kill-server")
    assert not list(home.iterdir())


def run(control: Control, name: str, script: str) -> str:
    done = control.call("exec", {"session": f"box/{name}", "command": ["sh", "-c", script]})
    assert done.exit_status == 0, done.data
    return str(done.data.decode().strip())


@pytest.mark.night
def test_a_session_with_its_worktree_lives_on_files_of_its_machine_alone(box: Control):
    command = ["bash", "--norc", "--noprofile"]
    request = {"name": "box/w", "command": command, "cwd": "shop", "worktree": "fix", "scratchpad": "notes"}
    made = box.call("new", request)
    assert run(box, "w", "git branch --show-current") == "fix"
    run(box, "w", "echo 2 >coins; echo seen >.scratchpad/note")
    os.kill(int(run(box, "w", "tmux display-message -p '#{pid}'")), signal.SIGKILL)
    restored = box.call("restore", {"session": ["box/w"]})
    assert [one.outcome for one in restored.sessions] == ["relaunched"], restored
    assert run(box, "w", "pwd; cat coins .scratchpad/note").split() == [made.cwd, "2", "seen"]
    left = "".join(words for one in box.call("kill", {"session": ["box/w"]}).killed for words in one.left)
    assert "1 changed file is not committed" in left


def test_a_profile_is_checked_on_the_files_of_its_machine(box: Control):
    assert box.call("profile_check", {"name": "bash", "machine": "box"}).ok
    checks = {one.name: one for one in box.call("doctor", {"machine": "box"}).checks}
    assert checks["room"].ok
    assert checks["orphans"].ok
