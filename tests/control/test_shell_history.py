"""What `exec` types is in no history of the user's shell: not in the one it holds, not in its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tmuxctl.control import Control


class Shell(NamedTuple):
    """A shell with its user's start-up file and the file of its history, both below HOME."""

    argv: tuple[str, ...]
    rc: tuple[str, str] | None
    kept: str


SHELLS = {
    "bash": Shell(("bash",), (".bashrc", "HISTTIMEFORMAT='%F %T '\n"), ".bash_history"),
    "bash that writes each line": Shell(("bash",), (".bashrc", "PROMPT_COMMAND='history -a'\n"), ".bash_history"),
    "bash that leaves out what begins with a blank": Shell(
        ("bash",), (".bashrc", "HISTCONTROL=ignoreboth\n"), ".bash_history"
    ),
    "bash without marks": Shell(("bash", "--norc"), None, ".bash_history"),
    "zsh": Shell(("zsh",), (".zshrc", "HISTFILE=~/.history HISTSIZE=50 SAVEHIST=50\n"), ".history"),
    "zsh that shares its history": Shell(
        ("zsh",),
        (".zshrc", "HISTFILE=~/.history HISTSIZE=50 SAVEHIST=50\nsetopt share_history extended_history\n"),
        ".history",
    ),
    "fish": Shell(("fish",), None, ".local/share/fish/fish_history"),
    "dash": Shell(("dash",), None, ".sh_history"),
    "mksh": Shell(("mksh",), (".mkshrc", "HISTFILE=~/.history\n"), ".history"),
}


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.on("tmux")
def test_a_command_leaves_no_line_in_the_shells_history(
    control: Control, place: Path, needs: Callable[..., None], until: Any, name: str
) -> None:
    shell = SHELLS[name]
    needs(shell.argv[0])
    if shell.rc:
        (place / shell.rc[0]).write_text(shell.rc[1])
    control.new("t", shell.argv)
    control.send("t", b"echo typed one")
    assert control.wait("t", prompt=True).matched
    control.send("t", b"echo typed two")
    assert control.wait("t", prompt=True).matched
    for number in range(3):
        assert control.exec("t", (f"echo {number}; false",)).exit_status == 1
    if shell.argv[0] != "dash":
        control.keys("t", ("Up",))
        until(lambda: control.screen("t").text.rstrip().endswith("echo typed two"))
        control.keys("t", ("Up",))
        until(lambda: control.screen("t").text.rstrip().endswith("echo typed one"))
        control.keys("t", ("C-c",))
        assert control.wait("t", prompt=True).matched
    control.send("t", b"exit")
    assert control.wait("t", exit=True).matched
    kept = (place / shell.kept).read_bytes() if (place / shell.kept).exists() else b""
    assert b"tmuxctl" not in kept
    assert shell.argv[0] == "dash" or kept.count(b"echo typed") >= 2


@pytest.mark.on("tmux")
def test_what_the_user_set_about_their_history_stays(control: Control, place: Path, needs: Callable[..., None]) -> None:
    needs("bash")
    settings = "HISTCONTROL=erasedups HISTIGNORE='secret*' HISTSIZE=77\n"
    (place / ".bashrc").write_text(settings)
    control.new("t", ("bash",))
    for _ in range(2):
        shown = control.exec("t", ('echo "$HISTCONTROL $HISTIGNORE $HISTSIZE"; shopt -o history; echo $?',)).output
        assert shown.split() == ["erasedups", "secret*", "77", "history", "on", "0"]
    control.send("t", b"set +o history")
    assert control.wait("t", prompt=True).matched
    control.exec("t", ("true",))
    assert "set +o history" in control.exec("t", ("history",)).output
