"""The tests: each takes a plugin on trial and returns a remark or nothing, or raises Broken with what is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from shutil import rmtree
from time import monotonic

from tmuxctl import extensions, plugin
from tmuxctl.contract.trial import EMPTY, PLAIN, QUOTED, REMOTE, SECRET, STRANGE, Attempt, Skipped, Trial
from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.model import SessionSpec
from tmuxctl.plugin import SessionEnd
from tmuxctl.timing import TIMING

Test = Callable[[Trial], str | None]

FIELDS = ("argv", "cwd", "env", "size", "history", "notes")


class Broken(Exception):
    """What the plugin does not keep to."""


class OptionsRefused(Exception):
    """The options that somebody gave are none of the plugin's."""

    def __init__(self, error: Usage) -> None:
        super().__init__(error.message)
        self.error = error


def of(trial: Trial) -> Iterator[tuple[str, Test]]:
    """The tests of this plugin, each with what it is that the plugin does; only the first ones if it cannot be tried."""
    yield "loads", _loads
    if not _passes(_loads, trial):
        return
    yield from ABOUT
    yield "takes a plain command", _can_be_tried
    if not _passes(_can_be_tried, trial):
        return
    yield from MAKING
    for other in _of_other_kinds(trial):
        yield f"goes with {other}", partial(_goes_with, other)
    yield from CLEANING


def _passes(test: Test, trial: Trial) -> bool:
    return outcome(test, trial)[0] == "ok"


def outcome(test: Test, trial: Trial) -> tuple[str, str]:
    """`ok`, `failed` or `skipped`, and why. Raises Refused."""
    try:
        return "ok", test(trial) or ""
    except Skipped as skipped:
        return "skipped", str(skipped)
    except Broken as broken:
        return "failed", str(broken)
    except TmuxctlError as error:
        return "failed", error.message


def _loads(trial: Trial) -> None:
    assert trial.plugin


def _says_what_for(trial: Trial) -> None:
    found = trial.plugin
    if not found.text and found.module:
        raise Broken("its module has no docstring, whose first line `plugin ls` shows")
    if not found.text:
        raise Skipped("its check prints no help")


def _explains_options(trial: Trial) -> None:
    options = trial.plugin.options
    if options is None:
        raise Skipped("its check prints no options: it takes any")
    if unsaid := [option.name for option in options if not option.help.strip()]:
        raise Broken(f"nothing is said of {', '.join(unsaid)}: {unsaid[0]}: Annotated[TYPE, 'what it is']")


def _checks(trial: Trial) -> str | None:
    found, began = trial.plugin, monotonic()
    reason = plugin.why_not(found)
    seconds = monotonic() - began + (0 if found.module else trial.load_seconds)
    if seconds >= TIMING.plugin.program_seconds:
        raise Broken(f"check took {seconds:.0f} s, and may take {TIMING.plugin.program_seconds:g}")
    if not isinstance(reason, (str, type(None))):
        raise Broken(f"check returned {ascii(reason)[:60]}, neither a text nor None")
    return f"it cannot work here: {reason}" if reason else None


def _can_be_tried(trial: Trial) -> None:
    trial.ready()
    try:
        trial.attempt(PLAIN)
    except Skipped as skipped:
        raise Broken(str(skipped)) from None
    except Usage as error:
        raise OptionsRefused(error) if trial.given else error from None


def _takes(sort: str, trial: Trial) -> None:
    trial.attempt(sort)


def _takes_a_machine(trial: Trial) -> str | None:
    try:
        _takes(REMOTE, trial)
    except TmuxctlError as error:
        own_words = isinstance(error.__cause__, TmuxctlError) and error.details.get("cause") != "bad_spec"
        if own_words or "said" in error.details:
            return f"it refuses: {error.message}"
        raise
    return None


def _is_repeatable(trial: Trial) -> None:
    first = trial.attempt(PLAIN)
    second = trial.again(first.before, [(trial.name, _options(first, trial))])
    if different := _changed(first.after, second.after, but="notes"):
        raise Broken(f"asked again, it gave another {' and '.join(different)}")


def _leaves_its_input(trial: Trial) -> None:
    if any(one.touched for one in trial.attempts()):
        raise Broken("it changed the spec it was given: make a new one with dataclasses.replace")


def _keeps_to_its_kind(trial: Trial) -> None:
    kind = trial.plugin.kind
    changed = {field for one in trial.attempts() for field in _changed(one.before, one.after)}
    allowed = trial.plugin.traits.may_change
    if wrong := sorted(changed.difference(allowed)):
        raise Broken(f"of kind {kind}, it may change {', '.join(allowed)}, and changed {', '.join(wrong)}")


def _keeps_the_command(trial: Trial) -> None:
    if not trial.plugin.traits.wraps:
        raise Skipped("it is no wrapper")
    for one in trial.attempts():
        _ends_with_command(one)


def _keeps_secrets(trial: Trial) -> None:
    secret = [
        option for option in trial.plugin.options or () if option.secret and option.type in (str, tuple[str, ...])
    ]
    if not secret:
        raise Skipped("it has no secret option")
    known = trial.options(trial.plugin, f"{trial.folder}/{PLAIN}")
    values = {option.name: known.get(option.name) or SECRET for option in secret}
    try:
        one = trial.fresh("secret", **values)
    except TmuxctlError as error:
        raise Skipped(f"it takes no value of ours ({error.message}): give one with --option") from None
    for name, value in values.items():
        for place, text in (("argv", " ".join(one.after.argv)), ("notes", json.dumps(dict(one.after.notes)))):
            if any(word in text for word in _secret_words(value)):
                raise Broken(f"{name}, which is secret, stands in {place}, where others can read it")


def _prints_nothing(trial: Trial) -> None:
    if any(one.printed for one in trial.attempts()):
        raise Broken("it, or a program it runs, writes to standard output, where the result of `new --json` stands")


def _goes_with(other: str, trial: Trial) -> None:
    Trial(other, {}, trial.folder).ready()
    one = trial.fresh(f"with-{other}", others=[other])
    _ends_with_command(one)
    if wrong := trial.complaints(one, SessionEnd(0, kept=True)):
        raise Broken(wrong[0])


def _undoes(trial: Trial) -> None:
    _clean(trial, trial.fresh("undone"), SessionEnd(None, kept=False), SessionEnd(None, kept=False))


def _cleans_up_again(trial: Trial) -> None:
    one = trial.fresh("ended")
    os.makedirs(f"{one.before.notes['folder']}/events")
    kept = SessionEnd(0, kept=True)
    _clean(trial, one, kept, kept, kept._replace(force=True), kept._replace(kept=False))


def _cleans_up_nothing(trial: Trial) -> None:
    one = trial.fresh("gone")
    for folder in {one.before.cwd, one.after.cwd}:
        if folder.startswith(f"{trial.folder}/"):
            rmtree(folder, ignore_errors=True)
    _clean(trial, one, SessionEnd(None, kept=False))


def _clean(trial: Trial, one: Attempt, *ends: SessionEnd) -> None:
    for ended in ends:
        if wrong := trial.complaints(one, ended):
            raise Broken(wrong[0])


def _of_other_kinds(trial: Trial) -> Iterator[str]:
    """The shipped plugins that this one may be applied together with."""
    for found in extensions.plugins():
        if found.source == "shipped" and found.name != trial.name and _kind(found.name) != trial.plugin.kind:
            yield found.name


def _kind(name: str) -> str | None:
    try:
        return plugin.load(name).kind
    except TmuxctlError:
        return None


def _options(one: Attempt, trial: Trial) -> dict[str, object]:
    return {**trial.given, **next(dict(made.options) for made in one.applied if made.name == trial.name)}


def _changed(before: SessionSpec, after: SessionSpec, but: str = "") -> list[str]:
    told = [plugin.spec_to_json(spec) for spec in (before, after)]
    return [field for field in FIELDS if field != but and told[0][field] != told[1][field]]


def _ends_with_command(one: Attempt) -> None:
    command = one.before.argv
    if one.after.argv[-len(command) :] != command:
        raise Broken(f"the command {list(command)!r:.60} does not stand, word for word, at the end of what is run")


def _secret_words(value: object) -> Iterator[str]:
    """The values, and what stands behind the `=` of `NAME=VALUE`, as far as they can be told from other words."""
    for text in value if isinstance(value, (list, tuple)) else (value,):
        yield from (word for word in (str(text), str(text).partition("=")[2]) if len(word) > 3)


ABOUT: tuple[tuple[str, Test], ...] = (
    ("says what it is for", _says_what_for),
    ("says what each option is for", _explains_options),
    ("says in time whether it can work here", _checks),
)

MAKING: tuple[tuple[str, Test], ...] = (
    ("takes words with quotes, line ends and other alphabets", partial(_takes, QUOTED)),
    ("takes a folder with blanks and signs in its name", partial(_takes, STRANGE)),
    ("takes an empty environment", partial(_takes, EMPTY)),
    ("takes another machine, or refuses it in its own words", _takes_a_machine),
    ("makes the same of the same", _is_repeatable),
    ("leaves what it is given as it is", _leaves_its_input),
    ("changes only what its kind may", _keeps_to_its_kind),
    ("keeps the command it wraps", _keeps_the_command),
    ("keeps secrets out of arguments and notes", _keeps_secrets),
    ("writes nothing to standard output", _prints_nothing),
)

CLEANING: tuple[tuple[str, Test], ...] = (
    ("cleans up where nothing was started", _undoes),
    ("cleans up more than once", _cleans_up_again),
    ("cleans up where nothing is left", _cleans_up_nothing),
)
