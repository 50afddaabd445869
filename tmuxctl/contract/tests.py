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


def tests_for(trial: Trial) -> Iterator[tuple[str, Test]]:
    """The tests of this plugin, each with what it is that the plugin does; only the first ones if it cannot be tried."""
    yield "loads", _check_loads
    if not _passes(_check_loads, trial):
        return
    yield from ABOUT
    yield "takes a plain command", _check_plain_command
    if not _passes(_check_plain_command, trial):
        return
    yield from MAKING
    for other in _plugins_of_other_kinds(trial):
        yield f"works with {other}", partial(_check_goes_with, other)
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


def _check_loads(trial: Trial) -> None:
    assert trial.plugin


def _check_docstring(trial: Trial) -> None:
    found = trial.plugin
    if not found.text and found.module:
        raise Broken("its module has no docstring, whose first line `plugin ls` shows")
    if not found.text:
        raise Skipped("its check prints no help")


def _check_option_help(trial: Trial) -> None:
    options = trial.plugin.options
    if options is None:
        raise Skipped("its check prints no options: it takes any")
    if unsaid := [option.name for option in options if not option.help.strip()]:
        raise Broken(f"no help for {', '.join(unsaid)}: {unsaid[0]}: Annotated[TYPE, 'what it is']")


def _check_check(trial: Trial) -> str | None:
    found, began = trial.plugin, monotonic()
    reason = plugin.find_obstacle(found)
    seconds = monotonic() - began + (0 if found.module else trial.load_seconds)
    if seconds >= TIMING.plugin.program_seconds:
        raise Broken(f"check took {seconds:.0f} s; {TIMING.plugin.program_seconds:g} s are allowed")
    if not isinstance(reason, (str, type(None))):
        raise Broken(f"check returned {ascii(reason)[:60]}, neither text nor None")
    return f"it cannot work here: {reason}" if reason else None


def _check_plain_command(trial: Trial) -> None:
    trial.ready()
    try:
        trial.attempt(PLAIN)
    except Skipped as skipped:
        raise Broken(str(skipped)) from None
    except Usage as error:
        raise OptionsRefused(error) if trial.given else error from None


def _check_takes(sort: str, trial: Trial) -> None:
    trial.attempt(sort)


def _check_takes_machine(trial: Trial) -> str | None:
    try:
        _check_takes(REMOTE, trial)
    except TmuxctlError as error:
        own_words = isinstance(error.__cause__, TmuxctlError) and error.details.get("cause") != "bad_spec"
        if own_words or "said" in error.details:
            return f"it refuses: {error.message}"
        raise
    return None


def _check_repeatable(trial: Trial) -> None:
    first = trial.attempt(PLAIN)
    second = trial.again(first.before, [(trial.name, _applied_options(first, trial))])
    if different := _changed_fields(first.after, second.after, but="notes"):
        raise Broken(f"called again, it returned another {' and '.join(different)}")


def _check_input_unchanged(trial: Trial) -> None:
    if any(attempt.touched for attempt in trial.attempts()):
        raise Broken("it changed the spec it was given: make a new one with dataclasses.replace")


def _check_kind(trial: Trial) -> None:
    kind = trial.plugin.kind
    changed = {field for attempt in trial.attempts() for field in _changed_fields(attempt.before, attempt.after)}
    allowed = trial.plugin.traits.may_change
    if wrong := sorted(changed.difference(allowed)):
        raise Broken(f"of kind {kind}, it may change {', '.join(allowed)}, and changed {', '.join(wrong)}")


def _check_command_kept(trial: Trial) -> None:
    if not trial.plugin.traits.wraps:
        raise Skipped("it is not a wrapper")
    for attempt in trial.attempts():
        _refuse_lost_command(attempt)


def _check_secrets_hidden(trial: Trial) -> None:
    secret = [
        option for option in trial.plugin.options or () if option.secret and option.type in (str, tuple[str, ...])
    ]
    if not secret:
        raise Skipped("it has no secret option")
    known = trial.options(trial.plugin, f"{trial.folder}/{PLAIN}")
    values = {option.name: known.get(option.name) or SECRET for option in secret}
    try:
        attempt = trial.fresh("secret", **values)
    except TmuxctlError as error:
        raise Skipped(f"it accepts no test value ({error.message}): give one with --option") from None
    for name, value in values.items():
        for place, text in (("argv", " ".join(attempt.after.argv)), ("notes", json.dumps(dict(attempt.after.notes)))):
            if any(word in text for word in _secret_words(value)):
                raise Broken(f"{name}, which is secret, is in {place}, where others can read it")


def _check_prints_nothing(trial: Trial) -> None:
    if any(attempt.printed for attempt in trial.attempts()):
        raise Broken("it, or a program it runs, writes to standard output, which carries the result of `new --json`")


def _check_goes_with(other: str, trial: Trial) -> None:
    Trial(other, {}, trial.folder).ready()
    attempt = trial.fresh(f"with-{other}", others=[other])
    _refuse_lost_command(attempt)
    if wrong := trial.complaints(attempt, SessionEnd(0, kept=True)):
        raise Broken(wrong[0])


def _check_undo(trial: Trial) -> None:
    _clean_up(trial, trial.fresh("undone"), SessionEnd(None, kept=False), SessionEnd(None, kept=False))


def _check_repeated_cleanup(trial: Trial) -> None:
    attempt = trial.fresh("ended")
    os.makedirs(f"{attempt.before.notes['folder']}/events")
    kept = SessionEnd(0, kept=True)
    _clean_up(trial, attempt, kept, kept, kept._replace(force=True), kept._replace(kept=False))


def _check_cleanup_of_nothing(trial: Trial) -> None:
    attempt = trial.fresh("gone")
    for folder in {attempt.before.cwd, attempt.after.cwd}:
        if folder.startswith(f"{trial.folder}/"):
            rmtree(folder, ignore_errors=True)
    _clean_up(trial, attempt, SessionEnd(None, kept=False))


def _clean_up(trial: Trial, attempt: Attempt, *ends: SessionEnd) -> None:
    for ended in ends:
        if wrong := trial.complaints(attempt, ended):
            raise Broken(wrong[0])


def _plugins_of_other_kinds(trial: Trial) -> Iterator[str]:
    """The shipped plugins that this one may be applied together with."""
    for found in extensions.list_plugins():
        if found.source == "shipped" and found.name != trial.name and _find_kind(found.name) != trial.plugin.kind:
            yield found.name


def _find_kind(name: str) -> str | None:
    try:
        return plugin.load(name).kind
    except TmuxctlError:
        return None


def _applied_options(attempt: Attempt, trial: Trial) -> dict[str, object]:
    return {**trial.given, **next(dict(made.options) for made in attempt.applied if made.name == trial.name)}


def _changed_fields(before: SessionSpec, after: SessionSpec, but: str = "") -> list[str]:
    told = [plugin.spec_to_json(spec) for spec in (before, after)]
    return [field for field in FIELDS if field != but and told[0][field] != told[1][field]]


def _refuse_lost_command(attempt: Attempt) -> None:
    command = attempt.before.argv
    if attempt.after.argv[-len(command) :] != command:
        raise Broken(f"the command {list(command)!r:.60} is not, word for word, at the end of what is run")


def _secret_words(value: object) -> Iterator[str]:
    """The values, and what stands behind the `=` of `NAME=VALUE`, as far as they can be told from other words."""
    for text in value if isinstance(value, (list, tuple)) else (value,):
        yield from (word for word in (str(text), str(text).partition("=")[2]) if len(word) > 3)


ABOUT: tuple[tuple[str, Test], ...] = (
    ("says what it is for", _check_docstring),
    ("says what each option is for", _check_option_help),
    ("says in time whether it can work here", _check_check),
)

MAKING: tuple[tuple[str, Test], ...] = (
    ("takes arguments with quotes, line ends and other alphabets", partial(_check_takes, QUOTED)),
    ("takes a folder with spaces and signs in its name", partial(_check_takes, STRANGE)),
    ("takes an empty environment", partial(_check_takes, EMPTY)),
    ("takes another machine, or refuses it with its own error", _check_takes_machine),
    ("gives the same result when called again", _check_repeatable),
    ("does not change what it is given", _check_input_unchanged),
    ("changes only what its kind allows", _check_kind),
    ("keeps the command it wraps", _check_command_kept),
    ("keeps secrets out of arguments and notes", _check_secrets_hidden),
    ("writes nothing to standard output", _check_prints_nothing),
)

CLEANING: tuple[tuple[str, Test], ...] = (
    ("cleans up where nothing was started", _check_undo),
    ("cleans up more than once", _check_repeated_cleanup),
    ("cleans up where nothing is left", _check_cleanup_of_nothing),
)
