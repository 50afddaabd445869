"""Plays what README.md shows at a glance in a real session, and writes docs/hero.cast (asciicast v2) and docs/hero.svg.

The commands are README's own, between `<!-- hero -->` and the end of its console; the output is what they print.
"""

from __future__ import annotations

import codecs
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tmuxctl.control import Control

ROOT = Path(__file__).resolve().parent.parent
README, CAST, PICTURE = ROOT / "README.md", ROOT / "docs" / "hero.cast", ROOT / "docs" / "hero.svg"

SESSION, COLUMNS, ROWS = "hero", 100, 27
SOCKET, INNER = "cast", "tmuxctl"
"""The tmux servers: of the session that is recorded, and of those that are driven in it."""

KEY_SECONDS, READ_SECONDS, GAP_SECONDS = 0.035, 1.2, 1.5
"""The pause between two keys, the one a viewer reads in, and the longest that is kept."""


class Hero(NamedTuple):
    """What is played: the script that makes the files a reader has, and the commands."""

    before: str
    commands: tuple[str, ...]


class Event(NamedTuple):
    """Output (`o`), or a mark (`m`) with the command that is typed from there on; `at` is in seconds from the start."""

    at: float
    kind: str
    text: str


def main() -> int:
    """Play and write; the exit status."""
    played = hero(README.read_text(encoding="utf-8"))
    with place(played.before) as folder, Control() as control:
        try:
            events, picture = play(control, played.commands)
        finally:
            end()
    text = cast(events)
    if found := names_of_this_machine(folder, text + picture):
        print(f"cast: it shows what belongs to this machine: {', '.join(found)}", file=sys.stderr)
        return 1
    CAST.write_text(text, encoding="utf-8")
    PICTURE.write_text(picture, encoding="utf-8")
    print(f"-- {CAST.relative_to(ROOT)}: {len(events)} events, {events[-1].at:.0f} s")
    return 0


def names_of_this_machine(folder: Path, shown: str) -> list[str]:
    """What of this machine can be read in a recording that was made in the folder."""
    return [one for one in (str(folder), str(ROOT), platform.node()) if re.search(rf"\b{re.escape(one)}\b", shown)]


def hero(readme: str) -> Hero:
    """What README shows at a glance."""
    head, found, rest = readme.partition("<!-- hero -->")[2].partition("```console\n")
    if not found:
        raise ValueError("README has no console behind <!-- hero -->")
    lines = rest.partition("\n```")[0].split("\n")
    before = re.search(r"<!-- before\n(.*?)-->", head, re.DOTALL)
    return Hero(before[1] if before else "", tuple(line[2:] for line in lines if line.startswith("$ ")))


@contextmanager
def place(before: str) -> Iterator[Path]:
    """A home of our own with the reader's files, an environment that knows nothing else; gone behind it."""
    # a Unix socket's path holds 107 bytes: keep the folder's name short
    folder = Path(tempfile.mkdtemp(prefix="tcast-", dir="/tmp"))
    shop = folder / "shop"
    shop.mkdir()
    # a session's programs drive the server of the session: what is shown has a server of its own
    (folder / ".bashrc").write_text(f"PS1='$ '\nexport TMUXCTL_SOCKET={INNER}\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    home = {name: str(folder) for name in ("HOME", "TMUX_TMPDIR", "XDG_RUNTIME_DIR")}
    os.environ.clear()
    os.environ.update(home, PATH=path, LC_ALL="C.UTF-8", SHELL="/bin/bash", TMUXCTL_SOCKET=SOCKET)
    here = Path.cwd()
    os.chdir(shop)
    try:
        subprocess.run(["sh", "-eu", "-c", before], check=True)
        yield folder
    finally:
        os.chdir(here)
        shutil.rmtree(folder, ignore_errors=True)


def play(control: Control, commands: Sequence[str]) -> tuple[list[Event], str]:
    """Type the commands as a person would; what was printed and when, and a picture of the last screen."""
    control.new(SESSION, ("bash",), size=f"{COLUMNS}x{ROWS}", shell_marks=False)
    # a pane's title is the host's name until somebody sets it
    control.machine.transport.run([("select-pane", "-t", f"={SESSION}:", "-T", "tmuxctl")])
    recorder = Recorder(control)
    for command in commands:
        recorder.mark(command)
        for key in command:
            control.send(SESSION, key.encode(), enter=False)
            time.sleep(KEY_SECONDS)
        control.keys(SESSION, ("Enter",))
        control.wait(SESSION, timeout=60.0)
        time.sleep(READ_SECONDS)
    picture = control.screen(SESSION, svg=True).svg or ""
    return recorder.events(), picture


def end() -> None:
    """End both servers, whatever runs there."""
    for socket in (SOCKET, INNER):
        subprocess.run(["tmux", "-L", socket, "kill-server"], capture_output=True, check=False)


class Recorder:
    """Takes in a session's output as it comes, in a thread of its own."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.seen: list[tuple[float, bytes | str]] = []
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        output = self.control.read(SESSION, since="screen", follow=True, raw=True)
        for part in output if isinstance(output, Iterator) else ():
            self.seen.append((time.monotonic(), part.data))

    def mark(self, command: str) -> None:
        """A command begins."""
        self.seen.append((time.monotonic(), command))

    def events(self) -> list[Event]:
        """What was seen so far, without the pauses nobody wants to watch."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        found: list[Event] = []
        before, at = self.seen[0][0], 0.0
        for moment, what in list(self.seen):
            at += min(moment - before, GAP_SECONDS)
            before = moment
            if isinstance(what, str):
                found.append(Event(at, "m", what))
            elif text := decoder.decode(what):
                found.append(Event(at, "o", text))
        return found


def cast(events: Sequence[Event]) -> str:
    """The events as an asciicast of version 2: a header, then a line for each."""
    header = {
        "version": 2,
        "width": COLUMNS,
        "height": ROWS,
        "title": "tmuxctl",
        "env": {"SHELL": "/bin/bash", "TERM": "xterm-256color"},
    }
    lines = [header, *([round(one.at, 3), one.kind, one.text] for one in events)]
    return "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
