"""What a program may do on macOS, as a profile for sandbox-exec."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from tmuxctl.model import SessionSpec

from .view import Access, View, hidden

SANDBOX_EXEC = "/usr/bin/sandbox-exec"

PROFILE = """\
(version 1)
(allow default)
(deny file-write*)
(allow file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (regex #"^/dev/ttys[0-9]+$"))
(deny signal)
(allow signal (target same-sandbox))
(deny appleevent-send)
(deny lsopen)
"""
"""What holds at every level; of several rules that fit the last one counts."""


def command(spec: SessionSpec, view: View, network: bool, inside: Mapping[str, str]) -> tuple[str, ...]:
    """The words that start the program under a profile that says what the view says."""
    variables = tuple(f"{name}={value}" for name, value in inside.items())
    return (
        SANDBOX_EXEC,
        "-p",
        _write_profile(view, network),
        "/usr/bin/env",
        "-u",
        "TMUX",
        "-u",
        "TMUX_PANE",
        *variables,
        *spec.argv,
    )


def _write_profile(view: View, network: bool) -> str:
    """The view as rules. A hidden folder cannot be read at all there, where on Linux the program has an empty one."""
    lines = ["(deny network*)"]
    if network:
        lines = ["(deny network* (remote unix-socket))", '(allow network* (literal "/private/var/run/mDNSResponder"))']
    for path in sorted(view, key=lambda path: path.split("/")):
        place = f'(subpath "{_quote(path)}")'
        if view[path].access is Access.WRITE:
            lines += [f"(allow file-read* file-write* {place})", f"(allow network* (remote unix-socket {place}))"]
        elif hidden(view, path):
            lines.append(f"(deny file-read* file-write* {place})")
        else:
            lines += [f"(allow file-read* {place})", f"(deny file-write* {place})"]
    ways = sorted({way for path in view if not hidden(view, path) for way in _path_rules(path)})
    lines += [f'(allow file-read-metadata (literal "{_quote(way)}"))' for way in ways]
    return PROFILE + "\n".join(lines) + "\n"


def _path_rules(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _quote(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')
