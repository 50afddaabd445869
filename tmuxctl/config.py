"""The settings, and where each one came from: option, environment, `config.toml`, default, in this order.

Nothing is read from the current directory. A file that somebody else could have written is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from tmuxctl.errors import Usage
from tmuxctl.model import NAME, Size, parse_address, parse_bytes, parse_seconds, parse_size
from tmuxctl.ownership import refuse_unsafe
from tmuxctl.value import NamedTuple, Value

FILE_LIMIT = 1 << 20

UNIX_ONLY = "unix"
"""What stands in the place of an address where `tmuxctl serve` is to listen on its Unix socket alone."""


class Settings(Value):
    """Every setting by its name with `_` for `.`; durations in seconds (None: never), lengths in bytes."""

    tmux_socket: str
    tmux_binary: str
    tmux_size: Size
    tmux_history: int
    wait_timeout: float
    wait_ask_timeout: float
    wait_exec_timeout: float
    limits_sessions: int
    limits_idle_kill: float | None
    journal_limit: int
    journal_keep: float | None
    serve_listen: str
    serve_tls_cert: str | None
    serve_tls_key: str | None
    serve_gateway: str | None
    serve_direct: str
    origins: Mapping[str, Origin]

    def listed(self) -> tuple[Setting, ...]:
        """Every setting with its value and source, in the order of the documentation; then what the file sets to no effect."""
        used = (
            Setting(name, str(value) if isinstance(value, Size) else value, *self.origins[name])
            for name, value in ((name, getattr(self, name.replace(".", "_"))) for name in RULES)
        )
        return (*used, *(Setting(name, self.origins[name].written, *self.origins[name]) for name in self.unused()))

    def unused(self) -> tuple[str, ...]:
        """The settings of the file that had a meaning once."""
        return tuple(name for name in UNUSED if name in self.origins)


class Setting(NamedTuple):
    """One line of `config show`: the value in seconds or bytes, where it came from, and how it was written there."""

    name: str
    value: str | int | float | None
    source: str
    written: str


class Origin(NamedTuple):
    """Where a value came from (`option`, a variable, a file, `default`) and how it was written there."""

    source: str
    written: str


class SettingRule(Value):
    """What a setting may be: `check` makes the value of what was written, or raises Usage. `value` is what it makes of the
    default: every command has all settings, and most have the defaults."""

    default: str | int
    value: Any
    check: Callable[[Any], Any]
    variable: str = ""


def load(options: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings for this call; `options` holds those given by name (`wait.timeout`), None for those not given.

    Raises Usage `bad_config` naming the source, the setting and what would be right, and Denied `unsafe_file` for a
    file that somebody else could change, or a folder on the way to it. The whole file is checked, overridden or not.
    """
    environment = os.environ if environment is None else environment
    return _merge_settings(*read_file(environment), options or {}, environment)


def list_settings(options: Mapping[str, Any] | None = None) -> tuple[Setting, ...]:
    """What `config show` shows: the settings of this call as `Settings.listed` has them, then the aliases. The file, which
    may be a pipe, is read once."""
    path, text = read_file()
    aliases = _check_aliases(path, text, _parse_toml(path, text).get(ALIAS, {})) if text else {}
    settings = _merge_settings(path, text, options or {}, os.environ)
    return (
        *settings.listed(),
        *(Setting(f"{ALIAS}.{name}", command, path, command) for name, command in aliases.items()),
    )


def _merge_settings(path: str, text: str, options: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    origins: dict[str, Origin] = {}
    values = {name: rule.value for name, rule in RULES.items()}
    for source, given in (
        (path, _parse_settings(path, text) if text else {}),
        ("environment", {name: found for name, rule in RULES.items() if (found := environment.get(rule.variable))}),
        ("option", options),
    ):
        for name, value in given.items():
            if name in UNUSED:
                origins[name] = Origin(source, str(value))
            elif value is not None:
                place = RULES[name].variable if source == "environment" else source
                values[name] = _check_setting(name, value, place, text)
                origins[name] = Origin(place, str(value))
    sources = {name: Origin("default", str(rule.default)) for name, rule in RULES.items()}
    fields = {name.replace(".", "_"): value for name, value in values.items()}
    return Settings(**fields, origins=sources | origins)


def config_folder(environment: Mapping[str, str] | None = None) -> str:
    """The user's own folder, `$XDG_CONFIG_HOME/tmuxctl`; a relative variable is ignored (XDG Base Directory)."""
    environment = os.environ if environment is None else environment
    base = environment.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        home = environment.get("HOME", "")
        base = os.path.join(home if os.path.isabs(home) else os.path.expanduser("~"), ".config")
    return os.path.join(base, "tmuxctl")


def config_path(environment: Mapping[str, str] | None = None) -> str:
    """The file that is read if it is there: `$TMUXCTL_CONFIG`, else `config.toml` in the user's folder."""
    environment = os.environ if environment is None else environment
    chosen = environment.get("TMUXCTL_CONFIG", "")
    if chosen and not os.path.isabs(chosen):
        raise Usage(
            f"TMUXCTL_CONFIG: {ascii(chosen[:80])} is not absolute", reason="bad_config", hint="give an absolute path"
        )
    return chosen or os.path.join(config_folder(environment), "config.toml")


def suggest(name: str, choices: Iterable[str]) -> str:
    """`did you mean 'x'?` for the names closest to a misspelt one, or nothing."""
    from difflib import get_close_matches

    found = get_close_matches(name[:80], list(choices), 3, 0.6)
    return f"did you mean {' or '.join(map(repr, found))}?" if found else ""


def read_file(environment: Mapping[str, str] | None = None) -> tuple[str, str]:
    """The file and its text, empty if there is none; Usage `bad_config`, Denied `unsafe_file`."""
    environment = os.environ if environment is None else environment
    path = config_path(environment)
    try:
        with open(path, "rb") as file:
            refuse_unsafe(path)
            data = file.read(FILE_LIMIT + 1)
    except FileNotFoundError:
        if not environment.get("TMUXCTL_CONFIG"):
            return path, ""
        raise Usage(
            f"TMUXCTL_CONFIG: no file {ascii(path)}", reason="bad_config", hint="unset it, or create the file"
        ) from None
    except OSError as error:
        raise Usage(f"{ascii(path)}: {error.strerror}", reason="bad_config", hint="tmuxctl config path") from None
    if len(data) > FILE_LIMIT:
        raise Usage(f"{ascii(path)} is larger than 1 MiB", reason="bad_config", hint="tmuxctl config show")
    try:
        return path, data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Usage(f"{ascii(path)} line {line}: not UTF-8", reason="bad_config", hint="save it as UTF-8") from None


def load_aliases(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """What each alias of the file stands for; errors as `load`, but for settings, which are not looked at."""
    path, text = read_file(environment)
    return _check_aliases(path, text, _parse_toml(path, text).get(ALIAS, {})) if text else {}


def alias_words(name: str, stands_for: object) -> list[str]:
    """The words an alias stands for; a shell command (`!`) is one. Usage `bad_alias` if they are none."""
    import shlex

    if not NAME.fullmatch(name):
        hint = "letters, digits, _ and -, starting with a letter or digit"
        raise Usage(f"{ascii(name[:40])} is not a valid alias name", reason="bad_alias", hint=hint)
    if not isinstance(stands_for, str) or not stands_for.strip(" !"):
        what = "is empty" if isinstance(stands_for, str) else "is not text"
        raise Usage(f"alias {name} {what}", reason="bad_alias", hint=f'{name} = "new -- python3"')
    if stands_for.startswith("!"):
        return [stands_for]
    try:
        words = shlex.split(stands_for)
    except ValueError as error:
        raise Usage(
            f"alias {name}: {str(error).lower()}", reason="bad_alias", hint="quote the words as for a shell"
        ) from None
    if not words or words[0].startswith("-"):
        hint = "the command comes first, options after it"
        raise Usage(f"alias {name} begins with an option", reason="bad_alias", hint=hint)
    return words


def _check_aliases(path: str, text: str, content: object) -> dict[str, str]:
    if not isinstance(content, dict):
        at = f"{ascii(path)}{_find_line(text, ALIAS)}"
        raise Usage(f"{at}: alias is not a table", reason="bad_config", hint='write [alias] and NAME = "COMMAND"')
    for name, stands_for in content.items():
        if not isinstance(stands_for, str) or not NAME.fullmatch(name):
            at = f"{ascii(path)}{_find_line(text, f'{ALIAS}.{name}')}"
            what = "is not text" if NAME.fullmatch(name) else "is not a valid alias name"
            raise Usage(f"{at}: alias.{ascii(name)[1:-1]} {what}", reason="bad_config", hint='py = "new -- python3"')
    return content


def _parse_toml(path: str, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).removesuffix(")").rpartition(" (at ")
        if place == "end of document":
            place = f"line {len(text.splitlines())}"
        raise Usage(f"{ascii(path)} {place}: {message}", reason="bad_config", hint="see https://toml.io") from None
    except RecursionError:
        raise Usage(
            f"{ascii(path)}: nested too deeply", reason="bad_config", hint="write [table] and key = value"
        ) from None


def _parse_settings(path: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for table, content in _parse_toml(path, text).items():
        if table == ALIAS:
            _check_aliases(path, text, content)
            continue
        known = isinstance(content, dict) and any(name.startswith(f"{table}.") for name in (*RULES, *UNUSED))
        entries = {f"{table}.{key}": value for key, value in content.items()} if known else {table: content}
        for name in entries:
            if name not in (*RULES, *UNUSED):
                raise _unknown_setting(name, f"{ascii(path)}{_find_line(text, name)}")
        found |= entries
    return found


def find_rule(name: str) -> SettingRule:
    """What a setting of this name may be; Usage `bad_config` if there is none."""
    if name not in RULES:
        raise _unknown_setting(name, "config")
    return RULES[name]


def _unknown_setting(name: str, place: str) -> Usage:
    known = f"there are: {', '.join(RULES)}"
    return Usage(f"{place}: no setting {ascii(name[:80])}", reason="bad_config", hint=suggest(name, RULES) or known)


def _check_setting(name: str, value: object, source: str, text: str) -> Any:
    try:
        return RULES[name].check(value)
    except Usage as error:
        at = {"option": "", RULES[name].variable: f"{source}: "}.get(
            source, f"{ascii(source)}{_find_line(text, name)}: "
        )
        raise Usage(f"{at}{name}: {error.message}", reason="bad_config", hint=error.hint) from None


def _find_line(text: str, name: str) -> str:
    """` line 7` where the file sets this name, as far as a look without parsing can tell."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            table = header[1]
        key = re.match(r"\s*([\w-]+(?:\s*\.\s*[\w-]+)*)\s*=", line)
        here = ".".join(part for part in (table, re.sub(r"\s", "", key[1]) if key else "") if part)
        if here == name or here.startswith(f"{name}."):
            return f" line {number}"
    return ""


def _invalid_value(value: object, what: str, hint: str) -> Usage:
    return Usage(f"{ascii(str(value)[:40])} is not a valid {what}", reason="bad_config", hint=hint)


def _check_socket(value: object) -> str:
    if isinstance(value, str) and NAME.fullmatch(value):
        return value
    raise _invalid_value(
        value, "socket name", "letters, digits, _ and -, starting with a letter or digit, at most 63 characters"
    )


def _check_program(value: object) -> str:
    fits = isinstance(value, str) and value.isprintable() and ("/" not in value or os.path.isabs(value))
    if fits and value not in ("", ".", ".."):
        return str(value)
    raise _invalid_value(value, "program", "a name found through PATH, or an absolute path")


def _check_whole(low: int, high: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        number = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else value
        if isinstance(number, int) and not isinstance(number, bool) and low <= number <= high:
            return number
        raise _invalid_value(value, "number", f"a whole number from {low} to {high}")

    return check


def _check_seconds(low: float, high: float, *, never: bool = False) -> Callable[[Any], float | None]:
    def check(value: Any) -> float | None:
        seconds = parse_seconds(value)
        if (seconds is None and never) or (seconds is not None and low <= seconds <= high):
            return seconds
        also = ", or none" if never else ""
        raise _invalid_value(value, "duration", f"from {low:g} to {high:g} seconds, as in 500ms, 30s, 5m, 2h, 7d{also}")

    return check


def _check_bytes(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if low <= (number := parse_bytes(value)) <= high:
            return number
        raise _invalid_value(value, "number of bytes", f"from {low >> 10}k to {high >> 30}G")

    return check


def _check_listen(value: object) -> str:
    if value == UNIX_ONLY:
        return UNIX_ONLY
    with suppress(Usage):
        parse_address(str(value))
        return str(value)
    raise _invalid_value(value, "address", f"{UNIX_ONLY} for the Unix socket alone, or HOST:PORT, as in 127.0.0.1:8765")


def _check_file(value: object) -> str | None:
    if value == "none":
        return None
    path = os.path.expanduser(value) if isinstance(value, str) else ""
    if os.path.isabs(path) and path.isprintable():
        return path
    raise _invalid_value(value, "file", "an absolute path, one that begins with ~/, or none")


def _check_direct(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value in ("on", "off"):
        return str(value)
    with suppress(Usage):
        parse_address(str(value))
        return str(value)
    raise _invalid_value(value, "direct", "on, off, or HOST:PORT to listen there too, as in 0.0.0.0:8770")


DAY = 86400.0

RULES: Mapping[str, SettingRule] = {
    "tmux.socket": SettingRule("tmuxctl", "tmuxctl", _check_socket, "TMUXCTL_SOCKET"),
    "tmux.binary": SettingRule("tmux", "tmux", _check_program),
    "tmux.size": SettingRule("120x40", Size(120, 40), lambda value: parse_size(str(value)), "TMUXCTL_SIZE"),
    "tmux.history": SettingRule(2000, 2000, _check_whole(0, 10_000_000)),
    "wait.timeout": SettingRule("30s", 30.0, _check_seconds(0, 30 * DAY), "TMUXCTL_TIMEOUT"),
    "wait.ask_timeout": SettingRule("120s", 120.0, _check_seconds(0, 30 * DAY)),
    "wait.exec_timeout": SettingRule("60s", 60.0, _check_seconds(0, 30 * DAY)),
    "limits.sessions": SettingRule(200, 200, _check_whole(1, 100_000)),
    "limits.idle_kill": SettingRule("none", None, _check_seconds(1, 3650 * DAY, never=True)),
    "journal.limit": SettingRule("64M", 64 << 20, _check_bytes(64 << 10, 1 << 40)),
    "journal.keep": SettingRule("7d", 7 * DAY, _check_seconds(0, 3650 * DAY, never=True)),
    "serve.listen": SettingRule(UNIX_ONLY, UNIX_ONLY, _check_listen),
    "serve.tls_cert": SettingRule("none", None, _check_file),
    "serve.tls_key": SettingRule("none", None, _check_file),
    "serve.gateway": SettingRule("none", None, _check_file),
    "serve.direct": SettingRule("on", "on", _check_direct),
}
"""Every setting of the documented configuration, in its order, which is also that of Settings."""

UNUSED = ("wait.settle", "limits.output_chars")
"""Settings that nothing reads any more: a file that names one is taken, and `config show`, `config get` and `doctor` say so."""

ALIAS = "alias"
"""The table of aliases."""
