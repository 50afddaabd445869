"""Which profile counts: a shell's session runs many programs, and each has its own.

Which profile a program has is kept in the state folder, as one file of JSON for all processes: an observation reads YAML only
for a program that was never seen before, and then only the files that may be for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import tmuxctl
from tmuxctl.errors import TmuxctlError
from tmuxctl.program_profile import Profile, from_json, is_named, to_json
from tmuxctl.terminal.tmux import layout
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import Transport, read_object
from tmuxctl.untrusted import to_record

REMEMBERED = 256
"""Programs and commands whose profiles are remembered for other processes. A program chooses its own name: of more of them
each process finds the profiles itself."""


class KnownProfiles:
    """The profiles of programs, for one process."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._key: list[Any] = []
        self._by_name: dict[str, Profile | None] = {}
        self._remembered: dict[str, str] = {}
        self._refreshed_at = -TIMING.profile.fresh_seconds
        self._lock = threading.Lock()

    def find(self, name: str) -> Profile | None:
        """The profile of the program with this name in the foreground; None if there is none."""

        def load() -> Profile | None:
            from tmuxctl.control.secret_values import without_secrets
            from tmuxctl.profile_files import library
            from tmuxctl.terminal.input.keys import tmux_keys

            return without_secrets(library.load_foreground(name, keys=tmux_keys))

        # a thread that asks while another reads a profile would take it for missing
        with self._lock:
            if time.monotonic() - self._refreshed_at > TIMING.profile.fresh_seconds:
                self._refresh()
            if name not in self._by_name:
                self._by_name[name] = self._find_or_load(f"foreground {name}", load)
            return self._by_name[name]

    def find_started(self, about: str, choose: Callable[[], Profile | None]) -> Profile | None:
        """The profile that `choose` returns for a command; `about` is all of the command that it depends on. It is remembered
        until a profile's file changes, unless it holds a secret."""
        with self._lock:
            self._refresh()
            return self._find_or_load(f"started {about}", choose)

    def _find_or_load(self, about: str, load: Callable[[], Profile | None]) -> Profile | None:
        """The profile that was remembered for this, else what `load` returns."""
        if isinstance(text := self._remembered.get(about), str):
            with suppress(TmuxctlError):
                return from_json(text)
        from tmuxctl.control.secret_values import without_secrets

        profile = load()
        text = to_json(without_secrets(profile)).decode()
        if len(self._remembered) < REMEMBERED and from_json(text) == profile:
            self._remembered[about] = text
            with suppress(TmuxctlError, OSError), self.transport.without_answer():
                path = f"{self.transport.home}/{layout.PROFILES}"
                self.transport.put(path, to_record({"key": self._key, "profiles": self._remembered}))
        return profile

    def _refresh(self) -> None:
        """Forget everything if a profile's file has changed, and at first; then read what other processes have remembered."""
        self._refreshed_at = time.monotonic()
        key = _stamp_profiles()
        if key == self._key:
            return
        self._key, self._by_name, self._remembered = key, {}, {}
        with suppress(TmuxctlError, OSError, ValueError, KeyError, TypeError):
            record = read_object(self.transport, f"{self.transport.home}/{layout.PROFILES}")
            if record["key"] == key and isinstance(record["profiles"], dict):
                self._remembered = record["profiles"]


def _stamp_profiles() -> list[Any]:
    """What changes with any profile's file."""
    from tmuxctl import extensions
    from tmuxctl.profile_files import library

    found = extensions.list_profiles()
    return [tmuxctl.__version__, *([one.path, *library.file_stamp(one.path)] for one in found)]


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
