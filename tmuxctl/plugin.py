"""A plugin turns one spawn request into another before tmux sees it, and may clean up after the session.

It is a module with `transform(spec, *, option=...) -> spec`, or an executable that gets one JSON object and prints the
new spec. Whatever it does wrong stops the spawn with an error that names it; those that went before are cleaned up.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeGuard, Union, get_args, get_origin, get_type_hints

from tmuxctl import alarm
from tmuxctl.config import suggest
from tmuxctl.errors import Failed, TmuxctlError, Unreachable, Usage
from tmuxctl.extensions import Extension, find_plugin, load_module, run_program
from tmuxctl.model import NAME, SessionSpec, Size, parse_size
from tmuxctl.plugin_machine import PluginMachine, this_machine
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import parse_json


class PluginKind(NamedTuple):
    """What plugins of a kind may change in a spec: those applied after them rely on the rest. `wraps`: the command stays,
    word for word, at the end of what is run; `restored`: they are applied again when a session is restored."""

    may_change: tuple[str, ...]
    wraps: bool = False
    restored: bool = True


KINDS: Mapping[str, PluginKind] = {
    "cwd": PluginKind(("cwd", "env", "notes")),
    "env": PluginKind(("env", "notes"), restored=False),
    "wrap": PluginKind(("argv", "env", "size", "history", "notes"), wraps=True),
}
"""What a plugin changes, in the order in which plugins are applied."""

ORDER = 50
"""Where a plugin without an `ORDER` of its own stands within its kind; of two wrappers the higher is the outer one."""

Wanted = tuple[str, Any]
_load_locks: dict[str, threading.RLock] = {}
"""A lock for each name: the code of a plugin that never ends loading holds up no other."""


class TransformOption(NamedTuple):
    """A keyword parameter of `transform`. A `secret` one is never stored. A `local` one names what is on this machine, such as a
    file to read: who calls from another one may not give it."""

    name: str
    type: Any
    help: str = ""
    default: Any = None
    required: bool = False
    secret: bool = False
    local: bool = False


class Plugin(NamedTuple):
    """A plugin that was found and read: `help` is the first line of what it says of itself, `text` all of it. `options` is
    None for an executable that does not say which it takes; `problem` is why an executable cannot work here, `tried_with`
    the options it names to be tried with; `clean_env` that its sessions start from the short list of variables; `confines` that
    its programs see other files than we do; `run_seconds` how long `run` waits for a program of its unless the caller says
    so, None without end."""

    name: str
    kind: str
    order: int
    options: tuple[TransformOption, ...] | None
    help: str
    found: Extension
    module: ModuleType | None = None
    problem: str | None = None
    clean_env: bool = False
    confines: bool = False
    run_seconds: float | None = None
    text: str = ""
    tried_with: Mapping[str, Any] | None = None

    @property
    def traits(self) -> PluginKind:
        return KINDS[self.kind]


class AppliedPlugin(NamedTuple):
    """What was applied with which options; `one._asdict()` is what JSON stores, `AppliedPlugin(**stored)` reads it back."""

    name: str
    options: Mapping[str, Any]


class SessionEnd(NamedTuple):
    """What `cleanup` learns: the exit status, None if it is unknown or nothing was started; `kept` is true while the
    session's screen and output stay readable; `force` that what would be lost by it is to be removed all the same."""

    exit_status: int | None
    kept: bool
    force: bool = False


def parse_with(text: str) -> tuple[str, str | dict[str, Any]]:
    """`NAME`, `NAME=ARG` or `NAME:option=value,option=value` (a comma in a value: `\\,`) as the pair `apply` takes."""
    found = re.fullmatch(rf"({NAME.pattern})(?:=(.+)|:(.+))?", text, re.DOTALL)
    if not found:
        hint = "write NAME, NAME=ARG or NAME:option=value,option=value"
        raise Usage(f"{ascii(text[:60])} is not a plugin with options", reason="bad_option", hint=hint)
    if found[3] is None:
        return found[1], found[2] or ""
    options: dict[str, Any] = {}
    for pair in re.split(r"(?<!\\),", found[3]):
        name, equals, value = pair.replace("\\,", ",").partition("=")
        if not equals:
            hint = f"write {found[1]}:{name or 'option'}=VALUE"
            raise Usage(f"plugin {found[1]!r}: {ascii(pair[:40])} has no `=`", reason="bad_option", hint=hint)
        options.setdefault(name, []).append(value)
    return found[1], {name: values if len(values) > 1 else values[0] for name, values in options.items()}


def load(name: str) -> Plugin:
    """The plugin of this name, read but not applied. NotFound if there is none, Failed `plugin` if it is broken."""
    found = find_plugin(name)
    if found.form == "executable":
        return _load_executable(found)
    with _load_locks.setdefault(name, threading.RLock()):
        module = _call_plugin(name, lambda: load_module(found))
    transform, kind, order = (getattr(module, word, ORDER) for word in ("transform", "KIND", "ORDER"))
    if not callable(transform) or not _is_kind(kind) or not isinstance(order, int):
        raise _plugin_failed(
            name, f"needs a function transform, a KIND ({', '.join(KINDS)}), and ORDER, if any, a number"
        )
    options = _call_plugin(name, lambda: _read_options(transform))
    text = inspect.cleandoc(module.__doc__ or "")
    clean_env, confines = (bool(getattr(module, word, False)) for word in ("CLEAN_ENV", "CONFINES"))
    run_seconds = getattr(module, "RUN_SECONDS", None)
    return Plugin(
        name, kind, order, options, _first_line(text), found, module,
        clean_env=clean_env, confines=confines, text=text, run_seconds=float(run_seconds) if run_seconds else None,
    )  # fmt: skip


def local_options(wanted: Wanted) -> tuple[str, ...]:
    """The names of the options in this wish that name files or other things of this machine. NotFound if there is no such
    plugin, Failed `plugin` if it is broken."""
    plugin = load(wanted[0])
    given = _name_options(plugin, wanted[1])
    return tuple(option.name for option in plugin.options or () if option.local and option.name in given)


def find_obstacle(plugin: Plugin, machine: PluginMachine | None = None) -> str | None:
    """Why the plugin cannot work on a machine (by default this one), in its own words, or None."""
    check = getattr(plugin.module, "check", None)
    return plugin.problem if check is None else _call_plugin(plugin.name, _bind_machine(check, machine))


def example_options(plugin: Plugin, folder: str) -> dict[str, Any] | None:
    """The options that the plugin says it is to be tried with, after it made `folder` one it can work in; None if it does
    not say. Failed `plugin` if that went wrong."""
    prepare = getattr(plugin.module, "example", None)
    given = (
        plugin.tried_with
        if prepare is None
        else _call_plugin(plugin.name, lambda: _bind_machine(prepare, None)(folder))
    )
    if given is None or isinstance(given, Mapping):
        return None if given is None else dict(given)
    raise _plugin_failed(plugin.name, f"example returned {ascii(given)[:60]}, not options by name")


def apply(
    spec: SessionSpec,
    wanted: Sequence[Wanted],
    *,
    folder: str = "/",
    machine: PluginMachine | None = None,
    watch: Callable[[Plugin, SessionSpec], None] = lambda plugin, spec: None,
) -> tuple[SessionSpec, tuple[AppliedPlugin, ...]]:
    """The spec that the wanted plugins make of this one, and what was applied.

    Each is a name with its argument: text for the first option, a mapping of options, or None or "" for none. All are
    loaded and their options checked before the first one runs, in the order of KINDS. Executables run in `folder`. `machine` is
    where the session will be, by default this one. `watch` is told each plugin and the spec it is given.
    Raises NotFound, Usage `bad_option`, and Failed `plugin` or (the machine does not answer) Unreachable, after those already
    applied were cleaned up.
    """
    applied: list[AppliedPlugin] = []
    for plugin, options in _load_all(wanted, machine):
        try:
            watch(plugin, spec)
            spec = _run_transform(plugin, options, spec, folder, machine)
        except BaseException as error:
            left = cleanup(spec, applied, SessionEnd(None, kept=False), folder=folder, machine=machine)
            if left and isinstance(error, TmuxctlError):
                error.details["cleanup"] = list(left)
            raise
        secret = {option.name for option in plugin.options or () if option.secret}
        applied.append(
            AppliedPlugin(plugin.name, {name: value for name, value in options.items() if name not in secret})
        )
    return spec, tuple(applied)


def cleanup(
    spec: SessionSpec,
    applied: Sequence[AppliedPlugin],
    ended: SessionEnd,
    *,
    folder: str = "/",
    machine: PluginMachine | None = None,
) -> tuple[str, ...]:
    """Let each applied plugin clean up, the last one first; in words what they left behind and what went wrong. It raises
    nothing, and may be called again: what was left then may be gone by now."""
    left = []
    for plugin in reversed(applied):
        try:
            left.append(_run_cleanup(spec, plugin, ended, folder, machine))
        except TmuxctlError as error:
            left.append(error.message)
    return tuple(filter(None, left))


def sync(
    spec: SessionSpec, applied: Sequence[AppliedPlugin], *, machine: PluginMachine | None = None
) -> tuple[str, ...] | None:
    """Let each applied plugin that has a function `sync` bring what its session made to where it belongs; in words what it
    did. None if none has one. Failed `plugin` if one cannot."""
    modules = [
        (plugin.name, load(plugin.name).module) for plugin in applied if find_plugin(plugin.name).form == "module"
    ]
    able = [(name, module) for name, module in modules if hasattr(module, "sync")]
    if not able:
        return None
    told = [
        _call_plugin(name, partial(_bind_machine(getattr(module, "sync"), machine), spec), _read_deadline(module))  # noqa: B009
        for name, module in able
    ]
    return tuple(str(plugin) for plugin in told if plugin)


def spec_to_json(spec: SessionSpec) -> dict[str, Any]:
    """A spec as executables see it; `size` as in 120x40."""
    return {
        "argv": list(spec.argv),
        "cwd": spec.cwd,
        "env": dict(spec.env),
        "size": str(spec.size),
        "name": spec.name,
        "machine": spec.machine,
        "history": spec.history,
        "notes": dict(spec.notes),
    }


def spec_from_json(data: object) -> SessionSpec:
    """The spec that `spec_to_json` wrote; Usage `bad_spec` for a missing, unknown or wrong field."""
    if not isinstance(data, dict):
        raise _bad_spec("a spec", "an object")
    for field in data:
        if field not in SessionSpec.__dataclass_fields__:
            hint = suggest(str(field), SessionSpec.__dataclass_fields__)
            raise Usage(f"spec has no field {ascii(field)[:40]}", reason="bad_spec", hint=hint)
    argv = data.get("argv")
    fields = {"cwd": None, **data, "argv": tuple(argv) if isinstance(argv, list) else argv}
    if isinstance(fields.get("size"), str):
        fields["size"] = parse_size(fields["size"])
    spec = SessionSpec(**fields)
    check_spec(spec)
    return spec


def check_spec(spec: object) -> None:
    """Usage `bad_spec` naming the field unless every one holds what the launcher can work with."""
    if not isinstance(spec, SessionSpec):
        raise _bad_spec("what came back", f"a SessionSpec, not {type(spec).__name__}")
    size = spec.size
    fits: Sequence[tuple[bool, str, str]] = (
        (isinstance(spec.argv, tuple) and all(map(_is_text, spec.argv)), "argv", "a tuple of text without NUL"),
        (bool(spec.argv and spec.argv[0]), "argv", "at least a program"),
        (spec.machine is None or _is_text(spec.machine), "machine", "a name or None"),
        (_is_text(spec.cwd) and (bool(spec.machine) or os.path.isabs(spec.cwd)), "cwd", "an absolute path without NUL"),
        (
            isinstance(spec.env, Mapping) and all(map(_is_variable_pair, spec.env.items())),
            "env",
            "names with text without NUL",
        ),
        (
            isinstance(size, Size) and all(_is_whole(side, 2, 1000) for side in (size.cols, size.rows)),
            "size",
            "2 to 1000",
        ),
        (isinstance(spec.name, str) and (not spec.name or bool(NAME.fullmatch(spec.name))), "name", "a session's name"),
        (_is_whole(spec.history, 0, 10_000_000), "history", "a number of lines"),
        (isinstance(spec.notes, Mapping) and _is_json(spec.notes), "notes", "a mapping that JSON can hold"),
    )
    for right, field, what in fits:
        if not right:
            raise _bad_spec(f"spec.{field}", what)


def _load_all(wanted: Sequence[Wanted], machine: PluginMachine | None) -> list[tuple[Plugin, dict[str, Any]]]:
    plugins = [load(name) for name, _ in wanted]
    prepared = [(plugin, _convert_options(plugin, given)) for plugin, (_, given) in zip(plugins, wanted, strict=True)]
    for plugin in plugins:
        if reason := find_obstacle(plugin, machine):
            raise _plugin_failed(plugin.name, f"cannot work here: {reason}")
    return sorted(prepared, key=lambda pair: (list(KINDS).index(pair[0].kind), pair[0].order))


def _load_executable(found: Extension) -> Plugin:
    """An executable's `check` may print kind, order and options; by default a wrapper that takes any option."""
    problem, said = None, b""
    try:
        said = run_program(found, {"op": "check", "options": {}, "spec": None}, "/")
    except Failed as error:
        problem = error.details.get("said") or error.message
    about = _parse_printed(found.name, said) if said.strip() else {}
    kind, order, text = (about.get(key, default) for key, default in (("kind", "wrap"), ("order", ORDER), ("help", "")))
    takes, tried_with = about.get("options"), about.get("example")
    objects = isinstance(takes, (dict, NoneType)) and isinstance(tried_with, (dict, NoneType))
    if not _is_kind(kind) or not isinstance(order, int) or not isinstance(text, str) or not objects:
        what = f"kind ({', '.join(KINDS)}), order (a number), help (text), options and example (objects)"
        raise _plugin_failed(found.name, f"check printed no {what}")
    options = None if takes is None else tuple(TransformOption(name, str, str(words)) for name, words in takes.items())
    help = _first_line(text) or f"The program {found.path}"
    confines = about.get("confines") is True
    return Plugin(
        found.name, kind, order, options, help, found,
        problem=problem, confines=confines, text=text, tried_with=tried_with,
    )  # fmt: skip


def _is_kind(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and value in KINDS


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _read_options(transform: Callable[..., Any]) -> tuple[TransformOption, ...]:
    hints = get_type_hints(transform, include_extras=True)
    options = []
    for parameter in list(inspect.signature(transform).parameters.values())[1:]:
        wanted, notes = hints.get(parameter.name, str), []
        if wanted is PluginMachine:
            continue
        if get_origin(wanted) is Annotated:
            wanted, *notes = get_args(wanted)
        if get_origin(wanted) in (Union, UnionType):
            wanted = next(choice for choice in get_args(wanted) if choice is not NoneType)
        if wanted not in CONVERTERS or parameter.kind not in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"option {parameter.name}: its type is not one of int, float, bool, str, tuple[str, ...]")
        required = parameter.default is parameter.empty
        default = None if required else parameter.default
        words = str(notes[0]) if notes else ""
        secret, local = ("secret" in notes[1:], "local" in notes[1:])
        options.append(TransformOption(parameter.name, wanted, words, default, required, secret, local))
    return tuple(options)


def _name_options(plugin: Plugin, given: Any) -> dict[str, Any]:
    """What was given by the names of options: text without a name is for the first; `-` in a name is `_`, but for an executable
    that takes any."""
    if not isinstance(given, Mapping):
        first = plugin.options[0].name if plugin.options else "value"
        return {} if given in (None, "") else {first: given}
    return {str(name) if plugin.options is None else str(name).replace("-", "_"): one for name, one in given.items()}


def _convert_options(plugin: Plugin, given: Any) -> dict[str, Any]:
    """The given options by name, converted to what `transform` declares, or Usage `bad_option`."""
    named = _name_options(plugin, given)
    if plugin.options is None:
        return named
    known = {option.name: option for option in plugin.options}
    values = {}
    for name, value in named.items():
        option = known.get(name)
        if option is None:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            message = f"plugin {plugin.name!r} has no option {ascii(name[:40])}"
            raise Usage(message, reason="bad_option", hint=suggest(name, known) or takes)
        values[option.name] = _convert_option(plugin, option, value)
    for option in plugin.options:
        if option.required and option.name not in values:
            message = f"plugin {plugin.name!r} needs {option.name}: {option.help}"
            raise Usage(message, reason="bad_option", hint=f"{plugin.name}:{option.name}=VALUE")
    return values


def _convert_option(plugin: Plugin, option: TransformOption, value: Any) -> Any:
    convert, what = CONVERTERS[option.type]
    try:
        return convert(value)
    except (ValueError, TypeError, KeyError):
        shown = "it" if option.secret else ascii(str(value)[:40])
        message = f"plugin {plugin.name!r}: {option.name}: {shown} is not {what}"
        raise Usage(message, reason="bad_option", hint=option.help or f"write {what}") from None


def _run_transform(
    plugin: Plugin, options: dict[str, Any], spec: SessionSpec, folder: str, machine: PluginMachine | None
) -> SessionSpec:
    name = plugin.name
    if plugin.module:
        transform = _bind_machine(plugin.module.transform, machine)
        made = _call_plugin(name, lambda: transform(spec, **options), _read_deadline(plugin.module))
    else:
        request = {"op": "transform", "options": options, "spec": spec_to_json(spec)}
        said = _parse_printed(name, run_program(plugin.found, request, folder))
        made = _call_plugin(name, lambda: spec_from_json(said))
    _call_plugin(name, lambda: check_spec(made))
    if (made.name, made.machine) != (spec.name, spec.machine):
        raise _plugin_failed(name, "a plugin may not change the session's name or machine")
    return made  # type: ignore[no-any-return]


def _read_deadline(module: ModuleType | None) -> float:
    seconds = getattr(module, "DEADLINE", TIMING.plugin.function_seconds)
    return float(seconds) if isinstance(seconds, (int, float)) and 0 < seconds < 1e6 else TIMING.plugin.function_seconds


def _run_cleanup(
    spec: SessionSpec, applied: AppliedPlugin, ended: SessionEnd, folder: str, machine: PluginMachine | None
) -> str:
    """What the plugin left behind, in its own words; nothing if it left nothing."""
    found = find_plugin(applied.name)
    if found.form == "executable":
        options, about = dict(applied.options), spec_to_json(spec)
        said = run_program(
            found, {"op": "cleanup", "options": options, "spec": about, "ended": ended._asdict()}, folder
        )
        return str(_parse_printed(applied.name, said).get("left") or "") if said.strip() else ""
    module = load(applied.name).module
    if function := getattr(module, "cleanup", None):
        clean = _bind_machine(function, machine)
        return str(_call_plugin(applied.name, lambda: clean(spec, ended), _read_deadline(module)) or "")
    return ""


def _bind_machine(function: Callable[..., Any], machine: PluginMachine | None) -> Callable[..., Any]:
    """A function of a plugin with the machine for its parameter that takes one, if any; by default this machine."""
    name = _machine_parameter(function)
    return partial(function, **{name: machine or this_machine()}) if name else function


def _machine_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the parameter whose type is PluginMachine. Hints of other plugins may name what only a type checker loads."""
    hints = getattr(function, "__annotations__", {}).items()
    return next((name for name, hint in hints if hint in (PluginMachine, "PluginMachine")), None)


def _parse_printed(name: str, printed: bytes) -> dict[str, Any]:
    try:
        parsed = parse_json(printed)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        return parsed
    raise _plugin_failed(name, f"printed {ascii(printed[:60].decode(errors='replace'))}, not a JSON object")


def _call_plugin(name: str, act: Callable[[], Any], seconds: float = TIMING.plugin.function_seconds) -> Any:
    """What `act` returns; what a plugin's code raises, even an exit, becomes Failed naming the plugin and the cause, and so
    does taking longer than `seconds`, where an alarm is possible. What it prints goes to standard error: standard output
    is the command's result."""
    alarmed = alarm.is_possible()
    try:
        with _print_to_stderr():
            return alarm.run_within(seconds, act) if alarmed else act()
    except alarm.TimeUp:
        if not alarmed:
            raise
        hint = "fix the plugin, start without it, or let it set a longer DEADLINE = SECONDS"
        raise _plugin_failed(name, f"it did not end within {seconds:g} s", hint=hint, cause="timeout") from None
    except Unreachable:
        raise
    except TmuxctlError as error:
        raise _plugin_failed(name, error.message, hint=error.hint, cause=error.reason) from error
    except (Exception, SystemExit) as error:
        from traceback import extract_tb

        last, cause = extract_tb(error.__traceback__)[-1], f"{type(error).__name__}: {error}"
        place = f"{os.path.basename(last.filename)} line {last.lineno}"
        raise _plugin_failed(name, f"{cause} ({place})", cause=cause) from error


class _StdoutAside:
    """Stands in for standard output while plugins' code runs: what its threads print goes to standard error."""

    def __init__(self, stdout: Any) -> None:
        self.stdout, self.threads = stdout, list[int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if threading.get_ident() in self.threads else self.stdout, name)


_stdout_lock = threading.Lock()


@contextmanager
def _print_to_stderr() -> Iterator[None]:
    """What this thread prints goes to standard error. contextlib.redirect_stdout is for one thread: of two at once, the one
    that ends last leaves its own redirection behind."""
    mine = threading.get_ident()
    with _stdout_lock:
        if not isinstance(sys.stdout, _StdoutAside):
            sys.stdout = _StdoutAside(sys.stdout)
        aside = sys.stdout
        aside.threads.append(mine)
    try:
        yield
    finally:
        with _stdout_lock:
            aside.threads.remove(mine)
            if not aside.threads and sys.stdout is aside:
                sys.stdout = aside.stdout


def _plugin_failed(name: str, what: str, *, hint: str = "", **details: Any) -> Failed:
    hint = hint or "fix the plugin, or start without it"
    return Failed(f"plugin {name!r}: {what}", reason="plugin", hint=hint, plugin=name, **details)


def _bad_spec(what: str, right: str) -> Usage:
    return Usage(f"{what} has to be {right}", reason="bad_spec")


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and "\0" not in value and bool(value.encode("utf-8", "surrogateescape") or True)
    except UnicodeEncodeError:
        return False


def _is_variable_pair(pair: tuple[object, object]) -> bool:
    name, value = pair
    return isinstance(name, str) and bool(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)) and _is_text(value)


def _is_whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_json(notes: Mapping[Any, Any]) -> bool:
    try:
        json.dumps(dict(notes), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return all(isinstance(name, str) for name in notes)


def _require_type(value: Any, *types: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, types):
        raise TypeError
    return value


def _to_number(value: Any) -> float:
    number = float(_require_type(value, int, float, str))
    if not math.isfinite(number):
        raise ValueError
    return number


def _to_truth(value: Any) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    return words[str(value).lower()]


def _to_texts(value: Any) -> tuple[str, ...]:
    return tuple(str(_require_type(text, str)) for text in (value if isinstance(value, (list, tuple)) else [value]))


CONVERTERS: Mapping[Any, tuple[Callable[[Any], Any], str]] = {
    int: (lambda value: int(_require_type(value, int, str)), "a whole number"),
    float: (_to_number, "a number"),
    bool: (_to_truth, "yes or no"),
    str: (lambda value: str(_require_type(value, str, int, float)), "a single text"),
    tuple[str, ...]: (_to_texts, "a list of text"),
}
"""How text or JSON becomes an option of each type, and the words for that type."""
