"""The machines a user has: those of `machines.toml`, and the hosts that the user's ssh configuration names.

A name stands before a session's (`web1/build`) and may come from anywhere, so it is short and plain: nothing in it can be an
option, a path or a pattern. What is no such word, as `user@host`, stands in the file alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tmuxctl.config import FILE_LIMIT, config_folder, suggest
from tmuxctl.errors import Denied, NotFound, Usage
from tmuxctl.model import NAME
from tmuxctl.ownership import refuse_unsafe
from tmuxctl.parsed_file import ParsedFile
from tmuxctl.untrusted import read_file
from tmuxctl.value import Value
from tmuxctl.vocabulary import Way

MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

DESTINATION = re.compile(
    r"(?:ssh://)?(?:[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}@)?[A-Za-z0-9_\[][A-Za-z0-9_.:%\]-]{0,254}", re.ASCII
)
"""What ssh(1) takes for a destination, without what a shell or ssh itself would read in another way."""

KEYS = ("ssh", "tmux", "socket", "command", "gateway", "direct")

GROUPS = "groups"
"""The table of the file that names several machines by one word."""

GATEWAY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}", re.ASCII)
"""What names a machine behind a gateway: an id, or an address."""

INCLUDED_MOST, INCLUDED_DEPTH = 64, 4
"""How many files of an ssh configuration are read, and how deep they may include each other."""


class MachineEntry(Value):
    """One machine: how it is reached, by ssh to `ssh`, by `command`, which runs sh on its standard input, or through a `gateway`,
    by which a tmuxctl there carries operations out, or by that where the first does not work; the `tmux` that is used there, and
    the name of its socket (None: the same as here), which behind a gateway are those of that tmuxctl. `direct`: whether calls may
    go past the gateway where the two reach each other. `source` is `machines.toml`, `ssh config`, or empty for a name that neither
    has."""

    name: str
    ssh: str | None = None
    tmux: str = "tmux"
    socket: str | None = None
    command: tuple[str, ...] = ()
    source: str = ""
    gateway: str | None = None
    direct: bool = True

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways to it that it names, the first to be tried first."""
        named = ((Way.COMMAND, self.command), (Way.SSH, self.ssh), (Way.GATEWAY, self.gateway))
        return tuple(way for way, target in named if target)


def machines_path(environment: Mapping[str, str] | None = None) -> str:
    """The file of machines, beside `config.toml`, which may not exist."""
    return os.path.join(config_folder(environment), "machines.toml")


def is_machine_name(name: str) -> bool:
    """Whether a machine may be called this."""
    return MACHINE.fullmatch(name) is not None


def check_machine_name(name: str) -> str:
    """The name itself; Usage `bad_machine` for what no machine may be called."""
    if is_machine_name(name):
        return name
    hint = "letters, digits, . _ and -, beginning with a letter or digit, at most 64"
    raise Usage(f"{ascii(name[:40])} is not a valid name of a machine", reason="bad_machine", hint=hint)


def find_machine(name: str, *, listed_only: bool = False) -> MachineEntry:
    """The machine of this name: that of `machines.toml`, else the host that ssh knows by it. NotFound `no_machine` for what is
    no name of a machine, and with `listed_only` for one that the file does not have."""
    if not is_machine_name(name):
        raise NotFound(
            f"no machine {ascii(name[:40])}",
            reason="no_machine",
            hint="letters, digits, . _ and -, beginning with a letter or digit",
        )
    listed = read_machines()
    if name in listed:
        return listed[name]
    if listed_only:
        known = suggest(name, listed) or f"on this machine: tmuxctl machine add {name}"
        raise NotFound(f"no machine {name} in machines.toml", reason="no_machine", hint=known)
    return MachineEntry(name, ssh=name)


def list_machines() -> list[MachineEntry]:
    """The machines of the file, then the hosts of the user's ssh configuration that it does not name."""
    listed = read_machines()
    aliases = [name for name in read_ssh_hosts() if is_machine_name(name) and name not in listed]
    return [*listed.values(), *(MachineEntry(name, ssh=name, source="ssh config") for name in aliases)]


def read_machines_file(path: str) -> str | None:
    """The text of the file of machines; None if there is none. Usage `bad_config`, Denied `unsafe_file`."""
    try:
        data = read_file(path, FILE_LIMIT + 1, follow=True)
        refuse_unsafe(os.path.abspath(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Usage(f"{ascii(path)}: {error.strerror}", reason="bad_config", hint="tmuxctl machine ls") from None
    if len(data) > FILE_LIMIT:
        raise Usage(f"{ascii(path)} is larger than 1 MiB", reason="bad_config", hint="tmuxctl machine ls")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Usage(f"{ascii(path)} is not UTF-8", reason="bad_config", hint="save it as UTF-8") from None


def read_machines(path: str | None = None) -> dict[str, MachineEntry]:
    """The machines of the file, by name; errors as `read_machines_file`."""
    return dict(_listed.read(path or machines_path()))


def _parse_file(path: str) -> dict[str, MachineEntry]:
    text = read_machines_file(path)
    if text is None:
        return {}
    found = {}
    for name, table in _parse_tables(path, text).items():
        if name == GROUPS:
            continue
        try:
            found[name] = parse_machine(name, table)
        except Usage as error:
            raise Usage(f"{ascii(path)}: {error.message}", reason="bad_config", hint=error.hint) from None
    return found


_listed = ParsedFile(_parse_file)


def _parse_tables(path: str, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Usage(f"{ascii(path)}: {error}", reason="bad_config", hint="see https://toml.io") from None


def read_groups(path: str | None = None) -> dict[str, tuple[str, ...]]:
    """The groups of machines that the file names: the names of their machines, by their own; errors as `read_machines_file`."""
    path = path or machines_path()
    text = read_machines_file(path)
    groups = {} if text is None else _parse_tables(path, text).get(GROUPS, {})
    hint = '[groups] and below it: web = ["web1", "web2"]'
    if not isinstance(groups, Mapping):
        raise Usage(f"{ascii(path)}: groups is not a table", reason="bad_config", hint=hint)
    for name, members in groups.items():
        check_machine_name(name)
        if not isinstance(members, list) or not all(isinstance(one, str) and is_machine_name(one) for one in members):
            raise Usage(f"{ascii(path)}: group {name} is not a list of machines", reason="bad_config", hint=hint)
    return {name: tuple(members) for name, members in groups.items()}


def parse_machine(name: str, table: Any) -> MachineEntry:
    """One table of the file, checked; Usage names what is wrong."""
    if check_machine_name(name) == GROUPS:
        hint = f"another name, and: --ssh {GROUPS}"
        raise Usage(f"{GROUPS} is the table of groups, and no machine", reason="bad_machine", hint=hint)
    if not isinstance(table, Mapping):
        raise Usage(f"{name} is not a table", reason="bad_config", hint=f'write [{name}] and ssh = "user@host"')
    for key in table:
        if key not in KEYS:
            known = suggest(key, KEYS) or f"there are: {', '.join(KEYS)}"
            raise Usage(f"{name}: no setting {ascii(key[:40])} of a machine", reason="bad_config", hint=known)
    command = table.get("command", ())
    if command and "ssh" in table:
        raise Usage(f"{name} has both ssh and command", reason="bad_config", hint="name one way to reach it")
    gateway = _check_gateway(name, table) if "gateway" in table else None
    words = _check_command(name, command)
    direct = _check_direct(name, table)
    if gateway and not words and "ssh" not in table:
        return MachineEntry(name, gateway=gateway, source="machines.toml", direct=direct)
    return MachineEntry(
        name,
        ssh=None if words else _check_destination(name, table.get("ssh", name)),
        tmux=_check_tmux(name, table.get("tmux", "tmux")),
        socket=_check_socket(name, table["socket"]) if "socket" in table else None,
        command=words,
        source="machines.toml",
        gateway=gateway,
        direct=direct,
    )


def machine_table(entry: MachineEntry) -> dict[str, Any]:
    """The table of a machine, as `parse_machine` reads it."""
    shell = {"ssh": entry.ssh, "tmux": entry.tmux, "socket": entry.socket, "command": list(entry.command)}
    told = {**(shell if entry.ssh or entry.command else {}), "gateway": entry.gateway}
    return {**{key: value for key, value in told.items() if value}, **({} if entry.direct else {"direct": False})}


def _check_destination(name: str, value: object) -> str:
    if isinstance(value, str) and DESTINATION.fullmatch(value):
        return value
    hint = "user@host, a host of your ssh configuration, or ssh://user@host:port"
    raise Usage(f"{name}: {ascii(str(value)[:60])} is not a valid destination of ssh", reason="bad_machine", hint=hint)


def _check_tmux(name: str, value: object) -> str:
    if isinstance(value, str) and value.isprintable() and not re.match("-|$", value) and " " not in value[:1]:
        return value
    hint = "a name found through PATH there, or an absolute path"
    raise Usage(f"{name}: {ascii(str(value)[:60])} is not a valid program", reason="bad_machine", hint=hint)


def _check_socket(name: str, value: object) -> str:
    if isinstance(value, str) and NAME.fullmatch(value):
        return value
    hint = "letters, digits, _ and -, starting with a letter or digit, at most 63 characters"
    raise Usage(f"{name}: {ascii(str(value)[:60])} is not a valid socket name", reason="bad_machine", hint=hint)


def _check_command(name: str, value: object) -> tuple[str, ...]:
    words = tuple(value) if isinstance(value, (list, tuple)) else None
    if words is None or not all(isinstance(word, str) and word and "\0" not in word for word in words):
        hint = 'command = ["docker", "exec", "-i", "box", "sh"]'
        raise Usage(f"{name}: command is not a list of words", reason="bad_machine", hint=hint)
    if words and words[0].startswith("-"):
        hint = "the program comes first"
        raise Usage(f"{name}: {ascii(words[0][:40])} is not a program", reason="bad_machine", hint=hint)
    return words


def _check_direct(name: str, table: Mapping[str, Any]) -> bool:
    value = table.get("direct", True)
    if not isinstance(value, bool) or ("direct" in table and "gateway" not in table):
        hint = 'write direct = false beside gateway = "..." to have its calls go through the gateway alone'
        raise Usage(f"{name}: direct is true or false, of a machine behind a gateway", reason="bad_config", hint=hint)
    return value


def _check_gateway(name: str, table: Mapping[str, Any]) -> str:
    others = sorted(table.keys() & {"socket", "tmux"})
    if others and not table.keys() & {"ssh", "command"}:
        hint = "leave it out: the tmuxctl there has settings of its own; or name a way to a shell there too: ssh"
        raise Usage(f"{name} has both gateway and {others[0]}", reason="bad_config", hint=hint)
    value = table["gateway"]
    if isinstance(value, str) and GATEWAY.fullmatch(value):
        return value
    hint = "the id that the machine has at the gateway"
    raise Usage(f"{name}: {ascii(str(value)[:60])} names no machine of a gateway", reason="bad_machine", hint=hint)


def read_ssh_hosts(path: str = "~/.ssh/config") -> list[str]:
    """The hosts that the user's ssh configuration names without a pattern, in its order. A file that cannot be read, or is not
    the user's alone, names none: ssh itself says what is wrong with it."""
    path = os.path.expanduser(path)
    left = [INCLUDED_MOST]
    return list(dict.fromkeys(_read_hosts(path, os.path.dirname(path), 0, left)))


def _read_hosts(path: str, folder: str, depth: int, left: list[int]) -> Iterator[str]:
    left[0] -= 1
    if left[0] < 0 or depth > INCLUDED_DEPTH:
        return
    text = ""
    with suppress(OSError, Denied):
        text = read_file(path, FILE_LIMIT, follow=True).decode(errors="replace")
        refuse_unsafe(os.path.abspath(path))
    for line in text.splitlines():
        found = re.match(r"\s*(host|include)(?:\s*=\s*|\s+)(.*)", line, re.IGNORECASE)
        if not found:
            continue
        words = [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^\s"]+)', found[2])]
        if found[1].lower() == "host":
            yield from (word for word in words if not re.search(r"[*?!#]", word))
            continue
        import glob

        for word in words:
            for file in sorted(glob.glob(os.path.join(folder, os.path.expanduser(word))))[:INCLUDED_MOST]:
                yield from _read_hosts(file, folder, depth + 1, left)
