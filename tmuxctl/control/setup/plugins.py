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

    return Plugins(tuple(_plugin_line(found, timing) for found in extensions.list_plugins()))


def _plugin_line(found: Extension, timing: PluginTiming) -> PluginLine:
    from tmuxctl.results import PluginLine

    try:
        loaded = _run_in_time(found.name, lambda: plugin.load(found.name), timing)
    except TmuxctlError as error:
        return PluginLine(found.name, None, None, found.source, found.form, found.path, problem=error.message)
    options = None if loaded.options is None else tuple(option.name for option in loaded.options)
    place, problem = (found.source, found.form, found.path), _find_problem(loaded, timing)
    return PluginLine(loaded.name, loaded.kind, loaded.order, *place, loaded.help, options, problem)


def _find_problem(loaded: Plugin, timing: PluginTiming) -> str | None:
    """Why the plugin cannot work here, or could not say."""
    try:
        return _run_in_time(loaded.name, lambda: plugin.find_obstacle(loaded), timing)
    except TmuxctlError as error:
        return error.message


def _run_in_time(name: str, work: Callable[[], T], timing: PluginTiming) -> T:
    """What the plugin's code returns; Failed `plugin` if it takes too long, where an alarm is possible."""
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

    loaded = _run_in_time(name, lambda: plugin.load(name), timing)
    found = loaded.found
    return PluginPage(
        name=loaded.name,
        kind=loaded.kind,
        order=loaded.order,
        source=found.source,
        form=found.form,
        path=getattr(loaded.module, "__file__", None) or found.path,
        text=loaded.text or loaded.help,
        options=None if loaded.options is None else tuple(_plugin_option(option) for option in loaded.options),
        usage=_usage_lines(loaded),
        clean_env=loaded.clean_env,
        problem=_find_problem(loaded, timing),
    )


def _plugin_option(option: TransformOption) -> PluginOption:
    from tmuxctl.results import PluginOption

    default = list(option.default) if isinstance(option.default, tuple) else option.default
    repeated = option.type not in TYPES
    kind = TYPES.get(option.type, "text")
    return PluginOption(option.name, kind, option.help, default, option.required, repeated, option.secret)


def _usage_lines(loaded: Plugin) -> tuple[str, ...]:
    """How it is asked for: by its name alone, with its first option, with options by name."""
    if loaded.options is None:
        return f"--with {loaded.name}", f"--with {loaded.name}=VALUE", f"--with {loaded.name}:OPTION=VALUE"
    required = [option for option in loaded.options if option.required]
    named = ",".join(f"{option.name}={option.name.upper()}" for option in required or loaded.options[:2])
    usage = [] if required else [f"--with {loaded.name}"]
    if named and required in ([], [loaded.options[0]]):
        usage.append(f"--with {loaded.name}={loaded.options[0].name.upper()}")
    return (*usage, *([f"--with {loaded.name}:{named}"] if named else []))


def test(names: Sequence[str], options: Sequence[str]) -> PluginsTested:
    """Try these plugins (default: all) against what every plugin keeps to; the options (NAME=VALUE) are for a single one."""
    from tmuxctl import contract
    from tmuxctl.results import PluginsTested

    given = _parse_options(names, options)
    wanted = names or [found.name for found in extensions.list_plugins()]
    tests = tuple(one for name in wanted for one in contract.run(name, given))
    passed, failed, skipped = (sum(one.outcome == word for one in tests) for word in ("ok", "failed", "skipped"))
    return PluginsTested(not failed, passed, failed, skipped, tests)


def _parse_options(names: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    """The options by name, those given more than once as lists."""
    if options and len(names) != 1:
        raise Usage(
            "--option needs the name of a single plugin",
            reason="bad_option",
            hint="tmuxctl plugin test NAME --option ...",
        )
    given: dict[str, Any] = {}
    for pair in options:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            hint = "write --option NAME=VALUE"
            raise Usage(f"{ascii(pair[:40])} is not NAME=VALUE", reason="bad_option", hint=hint)
        given.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in given.items()}
