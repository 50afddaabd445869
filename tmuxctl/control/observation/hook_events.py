"""The events that a program's hooks report of its turns: files in the session's `events/`, each read once."""

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
    from tmuxctl.reading.answers.transcripts import HookEvent, TranscriptAnswer
    from tmuxctl.terminal.tmux.server import Pane

NAME = re.compile(r"(?P<event>[A-Za-z0-9_-]{1,40})\.[0-9]{1,10}\.[0-9]{1,20}")

ENDS = (EventKind.STOP, EventKind.FAILURE)


class RecordedEvent(NamedTuple):
    """An event, the name of its file, and when it was written, by the machine's wall clock in seconds."""

    name: str
    at: float
    event: HookEvent


class HookEvents:
    """The events of one session, as one process of ours reads them."""

    def __init__(self, machine: Machine, folder: str, hooks: Hooks) -> None:
        self.transport, self.hooks = machine.transport, hooks
        self.timing, self.limits = machine.timing.events, machine.limits
        self.folder = f"{folder}/{layout.EVENTS}"
        self._event_names = {rule.on for rule in hooks.events}
        self._read: dict[str, RecordedEvent | None] = {}
        self._listed: Set[str] = set()

    def read_between(self, moment: float = -inf, until: float = inf) -> list[RecordedEvent]:
        """The events of a time, by the wall clock in seconds: of many the newest, oldest first."""
        files = self.transport.files(self.folder)
        self._listed = files.keys()
        begin = moment - self.timing.tick_seconds
        named = [(file.modified, name) for name, file in files.items() if self._is_event_file(name)]
        newest, kept, room = [], self.limits.events_kept, self.limits.events_bytes
        for at, name in sorted(((at, name) for at, name in named if begin <= at <= until), reverse=True)[:kept]:
            room -= min(self.limits.event_bytes, files[name].size)
            if room < 0:
                break
            if name not in self._read:
                self._read[name] = self._read_event(name, at)
            newest.append(self._read[name])
        self._read = {name: event for name, event in self._read.items() if name in files}
        return [event for event in reversed(newest) if event is not None]

    def _is_event_file(self, name: str) -> bool:
        """Whether a file's name is that of an event that the profile names."""
        match = NAME.fullmatch(name)
        return match is not None and match["event"] in self._event_names

    def _read_event(self, name: str, at: float) -> RecordedEvent | None:
        try:
            payload = self.transport.read(f"{self.folder}/{name}", 0, self.limits.event_bytes)
        except TmuxctlError:
            return None
        found = transcripts.parse_event(name.partition(".")[0], payload, self.hooks)
        return RecordedEvent(name, at, found) if found else None

    def newest_hook(self, now: float, since: float, typed: bytes, cut: bool = False) -> Hook | None:
        """The newest event since an input, as its kind and its age; None if there is none. `now` and `since`, the time of
        the input, are by the wall clock in seconds.

        An end of a turn counts only if it names no other input and, of a program that reports beginnings, if a turn began
        before it: the end of an earlier turn may come late. `typed` is the input's text, or its beginning (`cut`); keys,
        which have none, go on with the turn there was.
        """
        later = self.read_between(since, now + self.timing.ahead_seconds)
        begun = later if typed else self.read_between(-inf, now + self.timing.ahead_seconds)
        kept = 1 if cut else transcripts.KNOWN_LENGTH
        for event in reversed(later):
            is_end = event.event.means in ENDS
            if not is_end or (may_be_about(event.event, typed, kept=kept) and self._ends_turn_begun(event, begun)):
                return Hook(event.event.means, max(0.0, now - event.at))
        return None

    def _ends_turn_begun(self, end: RecordedEvent, begun: list[RecordedEvent]) -> bool:
        """Whether a turn began before this end, and `end` is the first end of it. True if the program reports no
        beginnings."""
        if not any(rule.means == EventKind.SUBMIT for rule in self.hooks.events):
            return True
        before = begun[: begun.index(end)]
        begins = [at for at, event in enumerate(before) if event.event.means == EventKind.SUBMIT]
        if not begins:
            return False
        turn = [*before[begins[-1] :], end]
        typed = (turn[0].event.input or "").encode("utf-8", "replace")
        return [event for event in turn if event.event.means in ENDS and may_be_about(event.event, typed)] == [end]

    def has_news(self) -> bool:
        """Whether there is a file that the last reading did not see."""
        return bool(self.transport.files(self.folder).keys() - self._listed)

    def remove_old(self) -> None:
        """Remove all events but the newest, of those that are kept; at most as many at once."""
        files = self.transport.files(self.folder)
        events = sorted((file.modified, name) for name, file in files.items() if NAME.fullmatch(name))
        for _, name in events[: -self.limits.events_kept][: self.limits.events_kept]:
            with suppress(TmuxctlError, OSError):
                # a program may have put a folder there
                self.transport.remove(f"{self.folder}/{name}")


def may_be_about(event: HookEvent, typed: bytes, *, kept: int = transcripts.KNOWN_LENGTH) -> bool:
    """Whether an event may be about an input: it names no other. Of a text of `kept` characters or more only the beginning
    may be known."""
    text = typed.decode("utf-8", "ignore")
    return not event.input or not text.strip() or transcripts.is_same_input(event.input, text, kept=kept)


def find_transcript_entry(
    machine: Machine, pane: Pane, transcript: Transcript, path: str | None, typed: str
) -> TranscriptAnswer | None:
    """The entry of the program's transcript that answers the input `typed`; None if there is no such file or entry. `path`
    is the file that an event named, None where the profile names it."""
    transport, cwd = machine.transport, str(pane.spec.get("cwd", "/"))
    # a session that is older than this note was confined by the one plugin there was
    if path is not None and pane.spec.get("confined", "sandbox" in pane.spec.get("plugins", ())):
        # a confined program's path is one of its own file system, and here might be a file it may not see
        return None
    file_path = os.path.join(cwd, path) if path else _find_upwards(machine, cwd, transcript.file)
    if file_path is None:
        return None
    try:
        file = transport.files(os.path.dirname(file_path)).get(os.path.basename(file_path))
        size = file.size if file else 0
        near, far = machine.limits.near_transcript_bytes, machine.limits.transcript_bytes
        for limit in (near, far) if transcript.form != "json" else (far,):
            found = transcripts.find_answer(transport.read(file_path, max(0, size - limit)), transcript, typed)
            if found or size <= limit:
                return found
    except (TmuxctlError, ValueError):
        # ValueError: the text is no path
        pass
    return None


def _find_upwards(machine: Machine, folder: str, name: str | None) -> str | None:
    """The file of this name in a folder, or in the nearest above that has one."""
    while name:
        if name in machine.transport.files(folder):
            return f"{folder}/{name}"
        if folder in ("/", ""):
            return None
        folder = os.path.dirname(folder)
    return None
