"""What a session's program tells of its turns: the files that its hooks leave in `events/`, read once each."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.errors import TmuxctlError
from tmuxctl.evidence import Hook
from tmuxctl.reading.answers import transcripts
from tmuxctl.terminal.tmux import layout
from tmuxctl.vocabulary import EventKind

if TYPE_CHECKING:
    from collections.abc import Set

    from tmuxctl.control.machine import Machine
    from tmuxctl.program_profile import Hooks, Transcript
    from tmuxctl.reading.answers.transcripts import Event, Spoken
    from tmuxctl.terminal.tmux.server import Pane

NAME = re.compile(r"(?P<event>[A-Za-z0-9_-]{1,40})\.[0-9]{1,10}\.[0-9]{1,20}")

PAYLOAD_LIMIT = 1 << 20
"""Bytes of one event that are read."""

READ_LIMIT = 8 << 20
"""Bytes of all events that are read at once: the newest. A program may write as many as it likes."""

KEPT = 500
"""Events that are looked at, and left when a turn begins: the newest."""

NEAR_LIMIT, TRANSCRIPT_LIMIT = 2 << 20, 64 << 20
"""Bytes of a transcript that are read from its end: at first, as 20 MB take 1.4 s (measured); and if the input is not among
those."""

CLOCK_SECONDS = 0.01
"""A file's time is that of the kernel's last tick (clock_getres(2), CLOCK_REALTIME_COARSE)."""

AHEAD_SECONDS = 5.0
"""A file that is so much newer than now was written before the wall clock was set back: nobody knows when."""

ENDS = (EventKind.STOP, EventKind.FAILURE)


class RecordedEvent(NamedTuple):
    """An event, the name of its file, and when it was written, by the machine's wall clock in seconds."""

    name: str
    at: float
    event: Event


class HookEvents:
    """The events of one session, for one process."""

    def __init__(self, machine: Machine, folder: str, hooks: Hooks) -> None:
        self.transport, self.hooks = machine.transport, hooks
        self.folder = f"{folder}/{layout.EVENTS}"
        self._known = {told.on for told in hooks.events}
        self._read: dict[str, RecordedEvent | None] = {}
        self._listed: Set[str] = set()

    def all(self) -> list[RecordedEvent]:
        """Every event that is kept and of which the profile says something, oldest first."""
        return self.since(-inf)

    def since(self, moment: float, until: float = inf) -> list[RecordedEvent]:
        """The events of a time, by the wall clock in seconds: of many the newest, oldest first."""
        files = self.transport.files(self.folder)
        self._listed = files.keys()
        begin = moment - CLOCK_SECONDS
        named = sorted((file.modified, name) for name, file in files.items() if begin <= file.modified <= until)
        found, room = [], READ_LIMIT
        for at, name in reversed([one for one in named if self._means(one[1])][-KEPT:]):
            room -= min(PAYLOAD_LIMIT, files[name].size)
            if room < 0:
                break
            if name not in self._read:
                self._read[name] = self._event(name, at)
            found.append(self._read[name])
        self._read = {name: one for name, one in self._read.items() if name in files}
        return [one for one in reversed(found) if one is not None]

    def _means(self, name: str) -> bool:
        """Whether a file is called like an event of which the profile says something."""
        named = NAME.fullmatch(name)
        return named is not None and named["event"] in self._known

    def _event(self, name: str, at: float) -> RecordedEvent | None:
        try:
            payload = self.transport.read(f"{self.folder}/{name}", 0, PAYLOAD_LIMIT)
        except TmuxctlError:
            return None
        found = transcripts.event(name.partition(".")[0], payload, self.hooks)
        return RecordedEvent(name, at, found) if found else None

    def hook(self, now: float, since: float, typed: bytes, cut: bool = False) -> Hook | None:
        """The newest event since an input was given, at a moment by the wall clock; None if there is none.

        The end of a turn is that of this input only if it names no other, and if the program began a turn before that,
        where it tells of beginnings: the end of an earlier turn may come late. `typed` is the input's text, or its
        beginning (`cut`); keys, which have none, go on with the turn there was.
        """
        later = self.since(since, now + AHEAD_SECONDS)
        begun = later if typed else self.since(-inf, now + AHEAD_SECONDS)
        for one in reversed(later):
            mine = about(one.event, typed, kept=1 if cut else transcripts.KNOWN) and self._follows(one, begun)
            if one.event.means in ENDS and not mine:
                continue
            return Hook(one.event.means, max(0.0, now - one.at))
        return None

    def _follows(self, end: RecordedEvent, begun: list[RecordedEvent]) -> bool:
        """Whether a turn was begun before this end of one, and not ended since: by an end of its own."""
        if not any(told.means == EventKind.SUBMIT for told in self.hooks.events):
            return True
        before = begun[: begun.index(end)]
        begins = [at for at, one in enumerate(before) if one.event.means == EventKind.SUBMIT]
        if not begins:
            return False
        given = (before[begins[-1]].event.input or "").encode("utf-8", "replace")
        ends = [one for one in (*before[begins[-1] :], end) if one.event.means in ENDS and about(one.event, given)]
        return ends == [end]

    def news(self) -> bool:
        """Whether something came since it was last looked."""
        return bool(self.transport.files(self.folder).keys() - self._listed)

    def tidy(self) -> None:
        """Remove what is older than the newest, at most KEPT at once."""
        files = self.transport.files(self.folder)
        events = sorted((file.modified, name) for name, file in files.items() if NAME.fullmatch(name))
        for _, name in events[:-KEPT][:KEPT]:
            with suppress(TmuxctlError, OSError):
                # a program may have put a folder there
                self.transport.remove(f"{self.folder}/{name}")


def about(event: Event, typed: bytes, *, kept: int = transcripts.KNOWN) -> bool:
    """Whether an event may be about an input: it names no other. Of a text of `kept` characters or more only the beginning
    may be known."""
    said, given = event.input, typed.decode("utf-8", "ignore")
    return not said or not given.strip() or transcripts.alike(said, given, kept=kept)


def spoken(machine: Machine, pane: Pane, how: Transcript, path: str | None, typed: str) -> Spoken | None:
    """What the program's transcript holds in answer to an input; None if it is not there, or says nothing of it."""
    transport, cwd = machine.transport, str(pane.spec.get("cwd", "/"))
    # what a session was started with before that was noted: the one plugin there was
    if path is not None and pane.spec.get("confined", "sandbox" in pane.spec.get("plugins", ())):
        # what a confined program names is not where it names it, and might be what it may not see
        return None
    where = os.path.join(cwd, path) if path else _found(machine, cwd, how.file)
    if where is None:
        return None
    try:
        file = transport.files(os.path.dirname(where)).get(os.path.basename(where))
        size = file.size if file else 0
        for limit in (NEAR_LIMIT, TRANSCRIPT_LIMIT) if how.form != "json" else (TRANSCRIPT_LIMIT,):
            found = transcripts.spoken(transport.read(where, max(0, size - limit)), how, typed)
            if found or size <= limit:
                return found
    except (TmuxctlError, ValueError):
        # ValueError: no path at all
        pass
    return None


def _found(machine: Machine, folder: str, name: str | None) -> str | None:
    """The file of this name in a folder, or in the nearest above that has one."""
    while name:
        if name in machine.transport.files(folder):
            return f"{folder}/{name}"
        if folder in ("/", ""):
            return None
        folder = os.path.dirname(folder)
    return None
