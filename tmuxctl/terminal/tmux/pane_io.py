"""The narrow way to a pane: observe it, keep options of ours for it, type into it.

Everything else in here asks for fields and gives values; only this module, and that of panes of other servers
(`terminal/panes/foreign`), know by which commands of tmux that is done.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tmuxctl.errors import NotFound
from tmuxctl.transport.base import Command, Transport


def session_target(name: str) -> str:
    """How tmux is told exactly this session's pane: `=NAME:` (facts: a bare name matches by prefix)."""
    return f"={name}:"


def field_format(field: str) -> str:
    """The format that asks for a field of a session of ours."""
    # tmux 3.2a dies of a time that belongs to no session, as when the target is missing (format_find, measured)
    return f"#{{?session_name,#{{{field}}},0}}" if field.endswith("_activity") else f"#{{{field}}}"


class Looked(NamedTuple):
    """What one look showed: the values of fields, and the rows that each capture printed, all from one instant."""

    values: list[str]
    captures: list[bytes]


class PaneIO:
    """The sessions of one tmux server, as far as `transport` reaches it. A field is a variable of tmux (tmux(1), FORMATS) or
    an option of ours. What a subclass knows of them without tmux is `known`."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.known: Mapping[str, str] = {}

    def target(self, name: str) -> str:
        """How tmux is told a session's pane."""
        return session_target(name)

    def format_field(self, field: str) -> str:
        """The format that asks for a field."""
        return field_format(field)

    def list(self, fields: Sequence[str], *, timeout: float = 8.0) -> list[list[str]]:
        """The values of these fields for every pane of the server."""
        end = _make_separator()
        listing = ("list-panes", "-a", "-F", "".join(self.format_field(field) + end for field in fields))
        try:
            printed = self.transport.run([listing], timeout=timeout).decode(errors="replace")
        except NotFound as error:
            if error.reason != "no_sessions":
                raise
            return []
        return [row.split(end) for row in printed.split(f"{end}\n")[:-1]]

    def look(
        self, name: str, fields: Sequence[str], captures: Sequence[Sequence[str]] = (), *, timeout: float = 8.0
    ) -> Looked:
        """The values of these fields of a session, and its rows by the flags of each `capture-pane`: one command list. The
        values are empty if there is no such session, unless rows are asked for: then NotFound."""
        known, target, end = self.known, self.target(name), _make_separator()
        asked = "".join(self.format_field(field) + end for field in fields if field not in known)
        commands: list[Command] = [("display-message", "-p", "-t", target, asked or end)]
        for flags in captures:
            commands += [("capture-pane", "-p", *flags, "-t", target), ("display-message", "-p", end)]
        first, *rows = self.transport.run(commands, timeout=timeout).split(f"{end}\n".encode())
        values = iter(first.decode(errors="replace").split(end))
        return Looked([known[field] if field in known else next(values) for field in fields], rows[:-1])


def _make_separator() -> str:
    """What stands between values: a program chooses its title, and others the options, but nobody guesses this."""
    return os.urandom(6).hex()
