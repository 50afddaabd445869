"""Which profile counts: a shell's session runs many programs, and each has its own.

The profiles of all programs are kept in the state folder as one file of JSON, written again when a profile's file has
changed: no observation reads YAML. Those that commands were started with are kept in another one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import tmuxctl
from tmuxctl.errors import TmuxctlError
from tmuxctl.program_profile import Profile, from_json, is_named, to_json
from tmuxctl.terminal.tmux import layout
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import Transport, read_object
from tmuxctl.untrusted import to_record
from tmuxctl.value import Value

if TYPE_CHECKING:
    from tmuxctl.extensions import Extension


MOST_STARTED = 64
"""Commands whose profiles are kept."""


class ProfileEntry(Value):
    """One profile as it stands in the file: the names its program has in the foreground, and what `frozen` made of it."""

    names: tuple[str, ...]
    frozen: str


class KnownProfiles:
    """The profiles of every program, for one process."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._entries: tuple[ProfileEntry, ...] = ()
        self._key: list[Any] = []
        self._by_name: dict[str, Profile | None] = {}
        self._refreshed_at = -TIMING.profile.fresh_seconds
        self._lock = threading.Lock()

    def find(self, name: str) -> Profile | None:
        """The profile of the program with this name in the foreground; None if there is none."""
        # a thread that asks while another reads them all would take every profile for missing
        with self._lock:
            if time.monotonic() - self._refreshed_at > TIMING.profile.fresh_seconds:
                self._refresh()
            if name not in self._by_name:
                exact = (entry for entry in self._entries if name in entry.names)
                alike = (entry for entry in self._entries if is_named(name, entry.names))
                entry = next(exact, None) or next(alike, None)
                self._by_name[name] = from_json(entry.frozen) if entry else None
            return self._by_name[name]

    def find_started(self, about: str, choose: Callable[[], Profile | None]) -> Profile | None:
        """The profile that `choose` finds for a command; `about` is all of the command that it goes by. What was found is kept
        until a profile's file changes, unless it holds a secret."""
        from tmuxctl.control.secret_values import without_secrets

        path = f"{self.transport.home}/{layout.STARTED_PROFILES}"
        key = _stamp_profiles(_list_profiles())
        kept: dict[str, str] = {}
        with suppress(TmuxctlError, OSError, ValueError, KeyError, TypeError):
            record = read_object(self.transport, path)
            if record["key"] == key and isinstance(record["started"], dict):
                kept = record["started"]
            if isinstance(found := kept.get(about), str):
                return from_json(found)
        profile = choose()
        frozen = to_json(without_secrets(profile)).decode()
        if from_json(frozen) == profile and len(kept) < MOST_STARTED:
            with suppress(TmuxctlError, OSError):
                self.transport.put(path, to_record({"key": key, "started": {**kept, about: frozen}}))
        return profile

    def _refresh(self) -> None:
        self._refreshed_at = time.monotonic()
        extensions_found = _list_profiles()
        key = _stamp_profiles(extensions_found)
        if key == self._key:
            return
        self._key, self._by_name = key, {}
        path = f"{self.transport.home}/{layout.PROFILES}"
        with suppress(TmuxctlError, OSError, ValueError, KeyError, TypeError):
            record = read_object(self.transport, path)
            if record["key"] == key:
                entries = [ProfileEntry(tuple(names), text) for names, text in record["programs"]]
                if all(isinstance(one, str) for entry in entries for one in (*entry.names, entry.frozen)):
                    self._entries = tuple(entries)
                    return
        self._entries = tuple(_load_entries(extensions_found))
        with suppress(TmuxctlError, OSError):
            self.transport.put(
                path, to_record({"key": key, "programs": [(entry.names, entry.frozen) for entry in self._entries]})
            )


def _list_profiles() -> Sequence[Extension]:
    from tmuxctl import extensions

    return extensions.list_profiles()


def _stamp_profiles(found: Sequence[Extension]) -> list[Any]:
    """What changes with any profile's file."""
    from tmuxctl.profile_files import library

    return [tmuxctl.__version__, *([one.path, *library.file_stamp(one.path)] for one in found)]


def _load_entries(found: Sequence[Extension]) -> list[ProfileEntry]:
    """Every profile that can be read, the user's before ours."""
    from tmuxctl.control.secret_values import without_secrets
    from tmuxctl.profile_files import library
    from tmuxctl.terminal.input.keys import tmux_keys

    entries = []
    for extension in sorted(found, key=lambda extension: library.SOURCES.index(extension.source)):
        with suppress(TmuxctlError):
            profile = library.load_found(extension, keys=tmux_keys)
            # the kernel tells the interpreter's name, not which script it runs
            if (names := profile.foreground) and not profile.script:
                entries.append(ProfileEntry(names, to_json(without_secrets(profile)).decode()))
    return entries


def foreground_profile(known: KnownProfiles, session_profile: Profile | None, names: Sequence[str]) -> Profile | None:
    """The profile of the program that has the terminal: that of the first of its `names` that has one, else the session's.
    For the same name the session's comes first. An agent may be written in any language: in an agent's session an
    interpreter is the agent."""
    if session_profile is not None and not session_profile.foreground:
        return session_profile
    for name in names:
        if session_profile is not None and is_called(session_profile, name):
            return session_profile
        found = known.find(name)
        if found is not None and not (session_profile is not None and _interprets(session_profile, found)):
            return found
    return session_profile


def _interprets(agent: Profile, interpreter: Profile) -> bool:
    """Whether the two are an agent and an interpreter, in whose language it may be written."""
    # imported here: quick commands judge no state
    from tmuxctl.reading.state import input_kinds

    return input_kinds.is_agent(agent) and input_kinds.is_interpreter(interpreter)


def is_called(profile: Profile, name: str) -> bool:
    """Whether the profile is for a program with this name in the foreground."""
    return is_named(name, profile.foreground)
