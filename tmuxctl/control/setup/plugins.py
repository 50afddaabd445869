"""Plugins as a user meets them: which there are, all of one, and whether one keeps to what is asked of every plugin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tmuxctl import alarm, extensions, plugin
from tmuxctl.errors import Failed, TmuxctlError, Usage
from tmuxctl.extensions import Extension
from tmuxctl.timing import TIMING, PluginTiming

if TYPE_CHECKING:
    from tmuxctl.plugin import Plugin, TransformOption
    from tmuxctl.results import PluginLine, PluginOption, PluginPage, Plugins, PluginsTested

T = TypeVar("T")

TYPES = {str: "text", int: "whole number", float: "number", bool: "yes or no"}
"""What an option of each type takes, in words; one that is none of them may be repeated."""


def ls(timing: PluginTiming = TIMING.plugin) -> Plugins:
    """Every plugin there is, by name; why one cannot be used is told beside it."""
    from tmuxctl.results import Plugins

    return Plugins(tuple(_line(found, timing) for found in extensions.list_plugins()))


def _line(found: Extension, timing: PluginTiming) -> PluginLine:
    from tmuxctl.results import PluginLine

    try:
        one = _in_time(found.name, lambda: plugin.load(found.name), timing)
    except TmuxctlError as error:
        return PluginLine(found.name, None, None, found.source, found.form, found.path, problem=error.message)
    options = None if one.options is None else tuple(option.name for option in one.options)
    return PluginLine(
        one.name, one.kind, one.order, found.source, found.form, found.path, one.help, options, _problem(one, timing)
    )


def _problem(one: Plugin, timing: PluginTiming) -> str | None:
    """Why the plugin cannot work here, or could not say."""
    try:
        return _in_time(one.name, lambda: plugin.find_obstacle(one), timing)
    except TmuxctlError as error:
        return error.message


def _in_time(name: str, work: Callable[[], T], timing: PluginTiming) -> T:
    """What the plugin's code returns; Failed `plugin` if it takes too long, as far as there is an alarm here."""
    if not alarm.is_possible():
        return work()
    late = Failed(f"plugin {name!r}: it did not answer within {timing.program_seconds:g} s", reason="plugin")
    try:
        return alarm.run_within(timing.program_seconds, work)
    except alarm.TimeUp:
        raise late from None


def show(name: str, timing: PluginTiming = TIMING.plugin) -> PluginPage:
    """All of one plugin. NotFound `no_plugin`, Denied `unsafe_file`, Failed `plugin` if it is broken."""
    from tmuxctl.results import PluginPage

    one = _in_time(name, lambda: plugin.load(name), timing)
    found = one.found
    return PluginPage(
        name=one.name,
        kind=one.kind,
        order=one.order,
        source=found.source,
        form=found.form,
        path=getattr(one.module, "__file__", None) or found.path,
        text=one.text or one.help,
        options=None if one.options is None else tuple(_option(option) for option in one.options),
        usage=_usage(one),
        clean_env=one.clean_env,
        problem=_problem(one, timing),
    )


def _option(option: TransformOption) -> PluginOption:
    from tmuxctl.results import PluginOption

    default = list(option.default) if isinstance(option.default, tuple) else option.default
    repeated = option.type not in TYPES
    kind = TYPES.get(option.type, "text")
    return PluginOption(option.name, kind, option.help, default, option.required, repeated, option.secret)


def _usage(one: Plugin) -> tuple[str, ...]:
    """How it is asked for: by its name alone, with its first option, with options by name."""
    if one.options is None:
        return f"--with {one.name}", f"--with {one.name}=VALUE", f"--with {one.name}:OPTION=VALUE"
    required = [option for option in one.options if option.required]
    named = ",".join(f"{option.name}={option.name.upper()}" for option in required or one.options[:2])
    usage = [] if required else [f"--with {one.name}"]
    if named and required in ([], [one.options[0]]):
        usage.append(f"--with {one.name}={one.options[0].name.upper()}")
    return (*usage, *([f"--with {one.name}:{named}"] if named else []))


def test(names: Sequence[str], options: Sequence[str]) -> PluginsTested:
    """Try these plugins (default: all) against what every plugin keeps to; the options (NAME=VALUE) are for a single one."""
    from tmuxctl import contract
    from tmuxctl.results import PluginsTested

    given = _given(names, options)
    wanted = names or [found.name for found in extensions.list_plugins()]
    tests = tuple(one for name in wanted for one in contract.run(name, given))
    passed, failed, skipped = (sum(one.outcome == word for one in tests) for word in ("ok", "failed", "skipped"))
    return PluginsTested(not failed, passed, failed, skipped, tests)


def _given(names: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    """The options by name, those given more than once as lists."""
    if options and len(names) != 1:
        raise Usage(
            "options are those of one plugin", reason="bad_option", hint="tmuxctl plugin test NAME --option ..."
        )
    given: dict[str, Any] = {}
    for pair in options:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            hint = "write --option NAME=VALUE"
            raise Usage(f"{ascii(pair[:40])} is no option with its value", reason="bad_option", hint=hint)
        given.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in given.items()}
