"""One plugin on trial: specs of every sort, in folders of their own, and what it made of each."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from time import monotonic
from typing import Any, NamedTuple

from tmuxctl import plugin
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import SessionSpec
from tmuxctl.plugin import AppliedPlugin, Plugin, SessionEnd

WORDS = ("printf", "%s\n", "it's", 'a "word"', "two\nlines", "ü日本", "$(touch x) `id`", "#{pid} ##", "", "-x")
NAME_OF_FOLDER = "it's a #{pid} ##folder ü"
MACHINE, THERE = "web", "/srv/shop"

PLAIN, QUOTED, STRANGE, EMPTY, REMOTE = "plain", "words", "folder", "environment", "machine"
"""The sorts of specs."""

SECRET = "SECRET=k3pt-0ut-0f-sight"
"""What a secret option gets that nobody gave a value."""


class Skipped(Exception):
    """Why a test cannot be made."""


class Attempt(NamedTuple):
    """A spec, what was made of it by what, and whether the plugin wrote to standard output or changed what it was given."""

    before: SessionSpec
    after: SessionSpec
    applied: tuple[AppliedPlugin, ...]
    printed: bool
    touched: bool

    @property
    def stored(self) -> SessionSpec:
        """The final spec as `cleanup` gets it: read back from JSON."""
        return plugin.spec_from_json(json.loads(json.dumps(plugin.spec_to_json(self.after))))


class Trial:
    """A plugin with the options to try it with; `folder` is empty and its own."""

    def __init__(self, name: str, given: Mapping[str, Any], folder: str) -> None:
        self.name, self.given, self.folder = name, given, folder
        self.made: list[Attempt] = []
        self._results: dict[str, Attempt | TmuxctlError] = {}
        self.load_seconds = 0.0

    @cached_property
    def plugin(self) -> Plugin:
        """The plugin, read once."""
        began = monotonic()
        try:
            return plugin.load(self.name)
        finally:
            self.load_seconds = monotonic() - began

    def ready(self) -> Plugin:
        """The plugin, if it can be tried here; else Skipped."""
        try:
            found = self.plugin
            reason = plugin.find_obstacle(found)
        except TmuxctlError as error:
            raise Skipped(f"it cannot be used: {error.message}") from None
        if reason:
            raise Skipped(f"it cannot work here: {reason}")
        return found

    def attempt(self, sort: str) -> Attempt:
        """What it makes of a spec of this sort, tried once; raises what it raised."""
        if sort not in self._results:
            try:
                self._results[sort] = self.fresh(sort, sort)
            except TmuxctlError as error:
                self._results[sort] = error
        found = self._results[sort]
        if isinstance(found, TmuxctlError):
            raise found
        return found

    def attempts(self) -> list[Attempt]:
        """What it made of the specs of every sort, without those it did not take."""
        for sort in (PLAIN, QUOTED, STRANGE, EMPTY, REMOTE):
            try:
                self.attempt(sort)
            except TmuxctlError:
                continue
        found = [result for result in self._results.values() if isinstance(result, Attempt)]
        if not found:
            raise Skipped("it accepted no spec")
        return found

    def fresh(self, label: str, sort: str = PLAIN, others: Sequence[str] = (), **options: Any) -> Attempt:
        """What it makes, together with these others, of a spec of this sort in a folder of its own."""
        found = self.ready()
        before = self._make_spec(label, sort)
        place = f"{self.folder}/{label}" if before.machine else before.cwd
        wanted = [(name, self.options(plugin.load(name), place)) for name in others]
        wanted.append((self.name, {**self.options(found, place), **options}))
        return self.again(before, wanted)

    def again(self, before: SessionSpec, wanted: Sequence[tuple[str, Any]]) -> Attempt:
        """What these plugins make of the spec."""
        told, size = json.dumps(plugin.spec_to_json(before)), os.fstat(1).st_size
        after, applied = plugin.apply(before, wanted, folder=self.folder)
        touched = json.dumps(plugin.spec_to_json(before)) != told
        self.made.append(Attempt(before, after, applied, os.fstat(1).st_size > size, touched))
        return self.made[-1]

    def options(self, found: Plugin, place: str) -> dict[str, Any]:
        """The options to try a plugin with in this folder, which it may prepare; Skipped if it needs one that nobody gave."""
        given = self.given if found.name == self.name else {}
        options = {**(plugin.example_options(found, place) or {}), **given}
        for option in found.options or ():
            if option.required and option.name not in options:
                raise Skipped(f"{found.name} needs {option.name}: give it with --option, or let its `example` name one")
        return options

    def complaints(self, attempt: Attempt, ended: SessionEnd) -> list[str]:
        """What goes wrong when the plugins clean up; what they say they leave behind is none of it."""
        said = plugin.cleanup(attempt.stored, attempt.applied, ended, folder=self.folder)
        return [words for words in said if words.startswith("plugin '")]

    def close(self) -> None:
        """Let go of all that was made."""
        ended = SessionEnd(None, kept=False, force=True)
        for attempt in self.made:
            plugin.cleanup(attempt.stored, attempt.applied, ended, folder=self.folder)

    def _make_spec(self, label: str, sort: str) -> SessionSpec:
        place = f"{self.folder}/{NAME_OF_FOLDER if sort == STRANGE else label}"
        os.makedirs(f"{self.folder}/{label}", exist_ok=True)
        os.makedirs(place, exist_ok=True)
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": f"{self.folder}/home", "EDITOR": 'it\'s "vi" #{x}'}
        notes = {"folder": f"{self.folder}/xdg_state_home/tmuxctl/try/sessions/{label}"}
        spec = SessionSpec(("sleep", "1000"), place, env, name=f"try-{label}", notes=notes)
        changes: Mapping[str, Mapping[str, Any]] = {
            QUOTED: {"argv": WORDS},
            EMPTY: {"env": {}},
            REMOTE: {
                "machine": MACHINE,
                "cwd": THERE,
                "notes": {"folder": "/home/shop/.local/state/tmuxctl/try/sessions/1"},
            },
        }
        return replace(spec, **changes.get(sort, {}))
