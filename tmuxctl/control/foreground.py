"""Which profile counts: a shell's session runs many programs, and each is known by its own.

The profiles of all programs are kept beside the sessions as one file of JSON, made anew when a profile's file changed: no
look at a program reads YAML.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import tmuxctl
from tmuxctl.errors import TmuxctlError
from tmuxctl.program_profile import from_json, to_json
from tmuxctl.terminal.tmux import layout
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import read_object
from tmuxctl.untrusted import to_record

if TYPE_CHECKING:
    from tmuxctl.extensions import Extension
    from tmuxctl.program_profile import Profile
    from tmuxctl.transport.base import Transport


class ProfileEntry(NamedTuple):
    """One profile as it stands in the file: the names its program has in the foreground, and what `frozen` made of it."""

    names: tuple[str, ...]
    frozen: str


class KnownProfiles:
    """The profiles of every program, for one process."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._entries: tuple[ProfileEntry, ...] = ()
        self._key: list[Any] = []
        self._found: dict[str, Profile | None] = {}
        self._checked = -TIMING.profile.fresh_seconds

    def of(self, name: str) -> Profile | None:
        """The profile for a program that is called so while it has the terminal; None if there is none."""
        if time.monotonic() - self._checked > TIMING.profile.fresh_seconds:
            self._check()
        if name not in self._found:
            exact = [one for one in self._entries if name in one.names]
            alike = (one for one in self._entries if any(fnmatchcase(name, pattern) for pattern in one.names))
            entry = next(iter(exact), None) or next(alike, None)
            self._found[name] = from_json(entry.frozen) if entry else None
        return self._found[name]

    def _check(self) -> None:
        from tmuxctl import extensions
        from tmuxctl.profile_files import library

        self._checked = time.monotonic()
        found = extensions.list_profiles()
        key = [tmuxctl.__version__, *([one.path, *library.file_stamp(one.path)] for one in found)]
        if key == self._key:
            return
        self._key, self._found = key, {}
        path = f"{self.transport.home}/{layout.PROFILES}"
        with suppress(TmuxctlError, OSError, ValueError, KeyError, TypeError):
            kept = read_object(self.transport, path)
            if kept["key"] == key:
                entries = [ProfileEntry(tuple(names), text) for names, text in kept["programs"]]
                if all(isinstance(one, str) for entry in entries for one in (*entry.names, entry.frozen)):
                    self._entries = tuple(entries)
                    return
        self._entries = tuple(_entries(found))
        with suppress(TmuxctlError, OSError):
            self.transport.put(path, to_record({"key": key, "programs": self._entries}))


def _entries(found: Sequence[Extension]) -> list[ProfileEntry]:
    """Every profile that can be read, the user's before ours."""
    from tmuxctl.control.secret_values import without_secrets
    from tmuxctl.profile_files import library
    from tmuxctl.terminal.input.keys import tmux_keys

    entries = []
    for one in sorted(found, key=lambda one: library.SOURCES.index(one.source)):
        with suppress(TmuxctlError):
            profile = library.load_found(one, keys=tmux_keys)
            # the kernel tells the interpreter's name, not which script it runs
            if (names := profile.foreground) and not profile.script:
                entries.append(ProfileEntry(names, to_json(without_secrets(profile)).decode()))
    return entries


def profile(known: KnownProfiles, own: Profile | None, names: Sequence[str]) -> Profile | None:
    """The profile of the program that has the terminal, which is called one of these `names`, the most telling first: of
    the first name that has one, where the session's own comes before another for the same name; else the session's own. An
    agent may be written in anything: what is called as an interpreter in its session is the agent."""
    if own is not None and not own.foreground:
        return own
    for name in names:
        if own is not None and fits(own, name):
            return own
        found = known.of(name)
        if found is not None and not (own is not None and _runs(own, found)):
            return found
    return own


def _runs(agent: Profile, interpreter: Profile) -> bool:
    """Whether these are an agent and what it may be written in."""
    # quick commands judge nothing
    from tmuxctl.reading.state import input_kinds

    return input_kinds.is_agent(agent) and input_kinds.is_interpreter(interpreter)


def fits(one: Profile, name: str) -> bool:
    """Whether this is the profile's for a program that is called so while it has the terminal."""
    return any(fnmatchcase(name, pattern) for pattern in one.foreground)
