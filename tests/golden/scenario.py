"""A scenario: commands typed one after another, with all that they print and end with, kept in a file that reads like a page.

A line that begins with `$ ` is a command of a shell, one with `#` a remark; what is indented is what the command printed.
Each command is played twice, in two homes with a tmux server each: as it stands, and with `--json` behind `tmuxctl`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from golden.placeholders import Placeholders

LIMIT = 60.0
"""Seconds that one command may take."""

WIDTH = 112
"""Columns that a part of a JSON object may take on one line."""


class Ended(NamedTuple):
    """What one command ended with and printed, without what differs from run to run."""

    status: int
    stdout: str
    stderr: str


def play(text: str, place: Path) -> str:
    """The file of a scenario as it comes out now."""
    lines = [line for line in text.splitlines() if line.startswith(("$ ", "#"))]
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    with ThreadPoolExecutor(2) as pool:
        as_text = pool.submit(_run_all, commands, place / "text")
        as_json = pool.submit(
            _run_all, [one.replace("tmuxctl ", "tmuxctl --json ") for one in commands], place / "json"
        )
        ended = iter(zip(as_text.result(), as_json.result(), strict=True))
    shown: list[str] = []
    for line, before in zip(lines, ["#", *lines], strict=False):
        if line.startswith("#"):
            shown += [*([""] if not before.startswith("#") else []), line]
        else:
            shown += ["", line, *_render(line, *next(ended))]
    return "\n".join(shown) + "\n"


def _run_all(commands: list[str], home: Path) -> list[Ended]:
    """Type the commands in a home that is empty before."""
    work = home / "work"
    work.mkdir(parents=True)
    environment = _environment(home)
    placeholders = Placeholders(home)
    ended = []
    for command in commands:
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", command],
            cwd=work, env=environment, capture_output=True, timeout=LIMIT, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        stdout, stderr = (_tidy(stream, placeholders) for stream in (ran.stdout, ran.stderr))
        ended.append(Ended(ran.returncode, stdout, stderr))
    return ended


def _environment(home: Path) -> dict[str, str]:
    """A home, a tmux server and the installed command, and nothing of the caller's: some results tell the names of variables."""
    own = {"HOME": home, "TMUX_TMPDIR": home, "TMPDIR": home, "XDG_STATE_HOME": home / "state"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    fixed = {"PATH": path, "LC_ALL": "C.UTF-8", "SHELL": "/bin/sh", "TERM": "xterm-256color", "TMUXCTL_SOCKET": "t"}
    return {**fixed, **{name: str(value) for name, value in own.items()}}


def _tidy(printed: bytes, placeholders: Placeholders) -> str:
    text = printed.decode(errors="backslashreplace")
    try:
        values = [json.loads(line) for line in text.splitlines() if text.startswith("{")]
    except ValueError:
        values = []
    if values:
        return "\n".join(indented(placeholders.in_json(value)) for value in values)
    visible = "".join(one if one.isprintable() or one == "\n" else f"\\x{ord(one):02x}" for one in text)
    return placeholders.in_text(visible)


def indented(value: Any, indent: str = "") -> str:
    """JSON with a line for each part that is short, and for each key of one that is not."""
    short = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or (len(indent + short) <= WIDTH and indent):
        return short
    deeper = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {indented(one, deeper)}" for key, one in value.items()]
    else:
        parts = [indented(one, deeper) for one in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([first, *(f"{deeper}{one}," for one in parts), indent + last])


def _render(line: str, as_text: Ended, as_json: Ended) -> Iterator[str]:
    """What a command did, below it; of the run with --json nothing that is as in the other."""
    yield f"  exit {as_text.status}"
    yield from _stream("stdout", as_text.stdout)
    yield from _stream("stderr", as_text.stderr)
    if as_json != as_text:
        yield f"  --json: exit {as_json.status}"
        yield from _stream("stdout", as_json.stdout)
        yield from _stream("stderr", as_json.stderr)


def _stream(name: str, text: str) -> Iterator[str]:
    if text:
        yield f"  {name}"
        yield from (f"    {line}".rstrip() for line in text.rstrip("\n").splitlines())
        if not text.endswith("\n") and not text.endswith(("}", "]")):
            yield "    (no newline at its end)"
