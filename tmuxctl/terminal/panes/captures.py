"""What tmux draws of sessions: their facts, titles and rows, asked for in chained queries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from tmuxctl.terminal.input.paste import FACTS_SIZE
from tmuxctl.terminal.tmux import options, server
from tmuxctl.terminal.tmux import screen as screens
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Command, Guard, GuardRefused, Transport

LIST_BYTES = 10_000
"""About the longest command list tmux takes in one message is 16 KB (measured), with what it adds to it."""


class Capture(NamedTuple):
    """A session's facts, title, visible rows and rows that scrolled away (capture-pane -e), from one instant."""

    pane: Pane
    title: str
    rows: bytes
    back: bytes = b""
    given: str = ""
    """The last input, as `paste.LastInput.parse` reads it, without its text; empty if nothing was ever typed."""


def capture_session(
    transport: Transport,
    name: str,
    before: Pane | None = None,
    *,
    scrollback: int | None = None,
    trim: bool = True,
    wide: bool = False,
) -> Capture:
    """What tmux draws of a session: one chained query. `before`, what was known of it, makes that quicker.

    `scrollback` is in rows, 0 for all, None for none. NotFound or Unreachable if it is not there.
    """
    here = server.target(name)
    # a program chooses its title: only a line it cannot guess may end it
    end = os.urandom(8).hex()
    facts = server.CHANGES if before else server.FORMAT
    grab = ("capture-pane", "-p", "-e", *(() if trim else ("-N",)), *(("-J",) if wide else ()), "-t", here)
    about = f"{facts}\t{end}#{{={FACTS_SIZE}:{options.INPUT}}}\t#{{pane_title}}{end}"
    commands: list[Command] = [("display-message", "-p", "-t", here, about), grab]
    if scrollback is not None:
        commands += [("display-message", "-p", end), (*grab, "-S", f"-{scrollback}" if scrollback else "-", "-E", "-1")]
    first, _, rest = transport.run(commands).partition(f"\t{end}".encode())
    line = first.decode(errors="replace")
    pane = (
        server.renew_pane(before, line)
        if before
        else server.require_pane(server.parse_with_status(transport, line, 8.0), name)
    )
    if pane is None:
        return capture_session(transport, name, scrollback=scrollback, trim=trim, wide=wide)
    title, _, rest = rest.partition(end.encode() + b"\n")
    rows, _, back = rest.partition(end.encode() + b"\n") if scrollback is not None else (rest, b"", b"")
    given, _, title = title.partition(b"\t")
    return Capture(pane, _clean_title(title), rows, back if pane.history else b"", given.decode(errors="replace"))


def _clean_title(title: bytes) -> str:
    return screens.strip_escapes(title).replace("\n", " ")


def capture_sessions(transport: Transport, panes: Sequence[Pane]) -> list[Capture]:
    """What tmux draws of these sessions, in as few queries as its limit of a command list allows; one that went meanwhile
    has an empty screen."""
    end = os.urandom(8).hex()
    found: dict[str, Capture] = {}
    left = list(panes)
    while left:
        commands: list[Command] = []
        size = count = 0
        while count < len(left) and size <= LIST_BYTES:
            asked = _capture_commands(left[count], end)
            commands += asked
            size += sum(len(word) + 1 for command in asked for word in command)
            count += 1
        try:
            printed = transport.run(commands).split(f"{end}{end}\n".encode())[:-1]
        except GuardRefused as gone:
            # asked again without it: what was printed before it is lost with the list
            found |= {one.id: Capture(one, "", b"") for one in left if one.id == gone.told}
            left = [one for one in left if one.id != gone.told]
            continue
        found |= {
            one.id: _parse_capture(one, part, end.encode()) for one, part in zip(left[:count], printed, strict=True)
        }
        left = left[count:]
    return [found[one.id] for one in panes]


def _capture_commands(pane: Pane, end: str) -> list[Command]:
    here = pane.target
    about = f"{end}#{{={FACTS_SIZE}:{options.INPUT}}}\t#{{pane_title}}{end}"
    return [
        Guard(here, f"#{{==:#{{{options.ID}}},{pane.id}}}", pane.id),
        ("display-message", "-p", "-t", here, about),
        ("capture-pane", "-p", "-e", "-t", here),
        ("display-message", "-p", f"{end}{end}"),
    ]


def _parse_capture(pane: Pane, printed: bytes, end: bytes) -> Capture:
    _, _, rest = printed.partition(end)
    title, _, rows = rest.partition(end + b"\n")
    given, _, title = title.partition(b"\t")
    return Capture(pane, _clean_title(title), rows, b"", given.decode(errors="replace"))
