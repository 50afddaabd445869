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
    scrollback: bytes = b""
    last_input: str = ""
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
    target = server.target(name)
    # a program chooses its title: only a line it cannot guess may end it
    end = os.urandom(8).hex()
    facts = server.CHANGES if before else server.FORMAT
    rows_command = ("capture-pane", "-p", "-e", *(() if trim else ("-N",)), *(("-J",) if wide else ()), "-t", target)
    about = f"{facts}\t{end}#{{={FACTS_SIZE}:{options.INPUT}}}\t#{{pane_title}}{end}"
    commands: list[Command] = [("display-message", "-p", "-t", target, about), rows_command]
    if scrollback is not None:
        oldest = f"-{scrollback}" if scrollback else "-"
        commands += [("display-message", "-p", end), (*rows_command, "-S", oldest, "-E", "-1")]
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
    last_input, _, title = title.partition(b"\t")
    return Capture(pane, _clean_title(title), rows, back if pane.history else b"", last_input.decode(errors="replace"))


def _clean_title(title: bytes) -> str:
    return screens.strip_escapes(title).replace("\n", " ")


def capture_sessions(transport: Transport, panes: Sequence[Pane]) -> list[Capture]:
    """What tmux draws of these sessions, in as few queries as its limit of a command list allows; one that went meanwhile
    has an empty screen."""
    end = os.urandom(8).hex()
    found: dict[str, Capture] = {}
    remaining = list(panes)
    while remaining:
        commands: list[Command] = []
        size = count = 0
        while count < len(remaining) and size <= LIST_BYTES:
            query = _capture_commands(remaining[count], end)
            commands += query
            size += sum(len(word) + 1 for command in query for word in command)
            count += 1
        try:
            printed = transport.run(commands).split(f"{end}{end}\n".encode())[:-1]
        except GuardRefused as gone:
            # asked again without it: what was printed before it is lost with the list
            found |= {pane.id: Capture(pane, "", b"") for pane in remaining if pane.id == gone.answer}
            remaining = [pane for pane in remaining if pane.id != gone.answer]
            continue
        for pane, part in zip(remaining[:count], printed, strict=True):
            found[pane.id] = _parse_capture(pane, part, end.encode())
        remaining = remaining[count:]
    return [found[pane.id] for pane in panes]


def _capture_commands(pane: Pane, end: str) -> list[Command]:
    target = pane.target
    about = f"{end}#{{={FACTS_SIZE}:{options.INPUT}}}\t#{{pane_title}}{end}"
    return [
        Guard(target, f"#{{==:#{{{options.ID}}},{pane.id}}}", pane.id),
        ("display-message", "-p", "-t", target, about),
        ("capture-pane", "-p", "-e", "-t", target),
        ("display-message", "-p", f"{end}{end}"),
    ]


def _parse_capture(pane: Pane, printed: bytes, end: bytes) -> Capture:
    _, _, rest = printed.partition(end)
    title, _, rows = rest.partition(end + b"\n")
    last_input, _, title = title.partition(b"\t")
    return Capture(pane, _clean_title(title), rows, b"", last_input.decode(errors="replace"))
