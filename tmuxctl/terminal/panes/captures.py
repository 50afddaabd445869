"""What tmux draws of sessions: their facts, titles and rows, asked for in chained queries."""

from __future__ import annotations

from collections.abc import Sequence

from tmuxctl.terminal.tmux import options, server
from tmuxctl.terminal.tmux import screen as screens
from tmuxctl.terminal.tmux.pane_io import PaneIO
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Command, Guard, GuardRefused, Transport
from tmuxctl.value import NamedTuple

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
    io: PaneIO,
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
    flags = ("-e", *(() if trim else ("-N",)), *(("-J",) if wide else ()))
    captures = [flags]
    if scrollback is not None:
        captures.append((*flags, "-S", f"-{scrollback}" if scrollback else "-", "-E", "-1"))
    fields = (options.INPUT_FACTS, "pane_title", *(server.CHANGING if before else server.FIELDS))
    (last_input, title, *facts), (rows, *back) = io.look(name, fields, captures)
    pane = server.parse_facts(io, name, before, facts)
    if pane is None:
        return capture_session(io, name, scrollback=scrollback, trim=trim, wide=wide)
    return Capture(pane, _clean_title(title), rows, back[0] if back and pane.history else b"", last_input)


def _clean_title(title: str | bytes) -> str:
    return screens.strip_escapes(title).replace("\n", " ")


def capture_sessions(transport: Transport, panes: Sequence[Pane]) -> list[Capture]:
    """What tmux draws of these sessions, in as few queries as its limit of a command list allows; one that went meanwhile
    has an empty screen."""
    end = transport.word()
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
    about = f"{end}#{{{options.INPUT_FACTS}}}\t#{{pane_title}}{end}"
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
