"""The hot verbs through the server of commands, beside the bare start of the interpreter that runs them."""

from __future__ import annotations

import compileall
import socket
import sys
from contextlib import suppress

from cold import ROUNDS, each, timed_commands
from place import TREE, Place, Row, process, until

from tmuxctl.surfaces.cli.command_server.client import find_socket
from tmuxctl.surfaces.cli.setup.serving import start_command_server

MOST = 2.5
SCRIPT = """\
import sys
from tmuxctl.surfaces.cli import main
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(main())
"""
"""What pip 26 installs as the command; older ones have it load `re` first (pip 23)."""

VERBS = {
    "ls": ["ls"],
    "show": ["show", "sh"],
    "send": ["send", "sh", ":"],
    "keys": ["keys", "sh", "Enter"],
    "screen": ["screen", "sh"],
    "wait --exit --now": ["wait", "sh", "--exit", "--now"],
    "wait --text --now": ["wait", "sh", "--text", "never seen", "--now"],
    "status": ["status"],
}
TURNS = {"exec": ["exec", "shell", "--", ":"], "ask": ["ask", "shell", ":"]}
"""What waits for the program: their time is mostly the shell's."""


def measure(place: Place) -> list[Row]:
    compileall.compile_dir(TREE / "tmuxctl", quiet=2)
    command = place.folder / "tmuxctl"
    command.write_text(f"#!{sys.executable}\n{SCRIPT}")
    command.chmod(0o755)
    ours = [str(command)]
    with place.control() as control:
        control.new("sh", ("bash", "--norc"))
        control.new("shell", ("bash",))
    commands = {name: [*ours, *words] for name, words in {**VERBS, **TURNS}.items()}
    alone = {f"{name} alone": [*ours, "--no-server", *words] for name, words in TURNS.items()}
    with start_command_server() as server:
        try:
            assert until(_is_served), "no server of commands"
            missing = sorted(name for name, words in commands.items() if not _goes_through(server.pid, words))
            bare = {"pass": [sys.executable, "-c", "pass"], "re": [sys.executable, "-c", "import re"]}
            elapsed, _ = timed_commands({**commands, **alone, **bare})
        finally:
            server.kill()
    ratios = {name: elapsed[name] / elapsed["pass"] for name in VERBS}
    more = (elapsed["re"] - elapsed["pass"]) * 1000
    base = f" (`-c pass`: {elapsed['pass'] * 1000:.0f} ms; a script of pip 23 takes {more:.0f} ms more; medians of {ROUNDS})"
    what = "wall time of a hot verb through the server of commands beside its interpreter's `-c pass`"
    holds = not missing and max(ratios.values()) <= MOST
    turns = [f"`{name}` {elapsed[name] * 1000:.0f} ms, {elapsed[f'{name} alone'] * 1000:.0f} ms" for name in TURNS]
    return [
        Row(
            what,
            f"≤ {MOST} x",
            each(ratios, ".2f") + base,
            holds,
            f"not through it: {', '.join(missing)}" if missing else "",
        ),
        Row(
            "a command or turn of bash through the server of commands, and without it",
            "no limit",
            "; ".join(turns),
            None,
        ),
    ]


def _is_served() -> bool:
    with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(find_socket())
        return True
    return False


def _goes_through(server: int, words: list[str]) -> bool:
    before = _count_faults(server)
    process(words)
    return until(lambda: _count_faults(server) > before, 2.0)


def _count_faults(pid: int) -> int:
    """The page faults of a process's children that have ended (proc(5), cminflt)."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[8])
