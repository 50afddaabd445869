"""Who is trusted: `known_machines` on a client, `authorized_clients` on a host, as ssh has known_hosts and authorized_keys.

Each is a file of lines, a line an entry, words parted by blanks; `#` begins a comment line. An entry that is added or removed
changes its own line alone. A line that says nothing sensible makes the whole file refused: what a person meant by it is unknown.

    known_machines        NAME HOST-ID KEY
    authorized_clients    NAME KEY RIGHT,RIGHT PATTERN,PATTERN
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from tmuxctl.config import config_folder
from tmuxctl.errors import Conflict, Denied, NotFound, Usage
from tmuxctl.machines import check_machine_name
from tmuxctl.operations import RIGHTS, check_rights
from tmuxctl.ownership import make_parents, refuse_unsafe
from tmuxctl.parsed_file import ParsedFile
from tmuxctl.sealed.keys import MOST_CLIENTS, fingerprint, key_text, parse_key
from tmuxctl.state_files import take_lock
from tmuxctl.timing import TIMING, SealedTiming
from tmuxctl.untrusted import read_file
from tmuxctl.value import Value

FILE_LIMIT = 1 << 20

HOST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
PATTERN = re.compile(r"[A-Za-z0-9._/*?\[\]!-]{1,128}", re.ASCII)
MOST_PATTERNS = 64


class KnownMachine(Value):
    """A host that a client knows: what the client calls it, its id, and its static key of 32 bytes."""

    name: str
    host_id: str
    key: bytes


class AuthorizedClient(Value):
    """A client that a host knows: its name, its static key of 32 bytes, what it may, and the names of the sessions that are meant,
    as patterns of fnmatch(3). Rights and patterns are those of a token of the HTTP server."""

    name: str
    key: bytes
    rights: tuple[str, ...] = RIGHTS
    sessions: tuple[str, ...] = ("*",)


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def key(self) -> bytes: ...


E = TypeVar("E", bound=_Named)


class TrustFile(Generic[E]):
    """A file of entries, read again whenever it was written anew. Looking up an entry takes as long however many there are.

    Reading raises Usage `bad_config` for a file that cannot be understood, and Denied `unsafe_file` for one that others may write
    or that is a link; changing it Conflict `busy` too.
    """

    removal = "edit {name} out"
    """The command that takes an entry out, for hints."""

    most_entries = 4096

    def __init__(
        self, path: str, parse: Callable[[list[str]], E], write: Callable[[E], str], *, timing: SealedTiming
    ) -> None:
        self.path = path
        self._parse, self._write, self._timing = parse, write, timing
        self._parsed = ParsedFile(lambda _: self._parse_text(self._read() or ""))
        """The entries of the file by name and by key."""

    def entries(self) -> tuple[E, ...]:
        """All entries, in the order of the file; none where there is no file."""
        return tuple(self._load()[0].values())

    def find(self, name: str) -> E | None:
        """The entry of this name."""
        return self._load()[0].get(name)

    def find_key(self, key: bytes) -> E | None:
        """The entry with this key of 32 bytes."""
        return self._load()[1].get(key)

    def add(self, entry: E) -> None:
        """Put an entry at the end. Conflict `exists` where its name or its key is there."""
        with self._locked():
            found, keys = self._load()
            same = found.get(entry.name) or keys.get(entry.key)
            if same is not None:
                hint = f"choose another name, or take it out first: {self.removal.format(name=same.name)}"
                raise Conflict(f"{same.name} has the key {fingerprint(same.key)}", reason="exists", hint=hint)
            if len(found) >= self.most_entries:
                raise Conflict(f"{self.path} has {self.most_entries} entries", reason="too_many", hint="remove some")
            text = self._read() or ""
            end = "" if not text or text.endswith("\n") else "\n"
            self._replace(f"{text}{end}{self._write(entry)}\n")

    def remove(self, name: str) -> E:
        """Take an entry out; it is returned. NotFound `no_key`."""
        with self._locked():
            found = self._load()[0].get(name)
            if found is None:
                hint = f"look at {self.path}"
                raise NotFound(f"no entry named {ascii(name[:64])}", reason="no_key", hint=hint)
            self._change_line(name, None)
            return found

    def replace_key(self, name: str, old: bytes, new: E) -> None:
        """Put another entry in the place of the one of this name, if that still has the key `old`: for a key whose change its owner
        has shown inside a channel. NotFound `no_key` for any other."""
        with self._locked():
            found = self._load()[0].get(name)
            if found is None or found.key != old:
                raise NotFound(
                    f"no entry {ascii(name[:64])} with this key", reason="no_key", hint=f"look at {self.path}"
                )
            self._change_line(name, new)

    def _change_line(self, name: str, new: E | None) -> None:
        lines = (self._read() or "").split("\n")
        own = next(number for number, line in enumerate(lines) if _words(line)[:1] == [name])
        self._replace("\n".join([*lines[:own], *([self._write(new)] if new else []), *lines[own + 1 :]]))

    def _load(self) -> tuple[dict[str, E], dict[bytes, E]]:
        """The entries by name and by key."""
        return self._parsed.read(self.path)

    def _parse_text(self, text: str) -> tuple[dict[str, E], dict[bytes, E]]:
        names: dict[str, E] = {}
        keys: dict[bytes, E] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if not (words := _words(line)):
                continue
            try:
                entry = self._parse(words)
            except (Usage, ValueError) as error:
                raise self._refuse_line(number, str(error)) from None
            if entry.name in names or entry.key in keys:
                raise self._refuse_line(number, f"{entry.name} or its key stands there twice")
            if len(names) >= self.most_entries:
                raise self._refuse_line(number, f"more than {self.most_entries} entries")
            names[entry.name] = keys[entry.key] = entry
        return names, keys

    def _refuse_line(self, number: int, what: str) -> Usage:
        return Usage(f"{self.path}, line {number}: {what}", reason="bad_config", hint="correct or remove the line")

    def _read(self) -> str | None:
        try:
            data = read_file(self.path, FILE_LIMIT + 1)
            refuse_unsafe(os.path.abspath(self.path))
            if len(data) > FILE_LIMIT:
                raise Usage(f"{self.path} is larger than 1 MiB", reason="bad_config", hint="remove what is not needed")
            return data.decode()
        except FileNotFoundError:
            return None
        except OSError as error:
            hint = "it has to be a regular file: links are not followed"
            raise Denied(f"{self.path}: {error.strerror}", reason="unsafe_file", hint=hint) from None
        except UnicodeDecodeError:
            raise Usage(f"{self.path} is not UTF-8", reason="bad_config", hint="save it as UTF-8") from None

    def _replace(self, text: str) -> None:
        """Put the text in the place of the file, whole or not at all, once it is known to be understood."""
        self._parse_text(text)
        data = text.encode()
        if len(data) > FILE_LIMIT:
            raise Conflict(
                f"{self.path} would be larger than 1 MiB", reason="too_many", hint="remove what is not needed"
            )
        handle, name = tempfile.mkstemp(dir=os.path.dirname(self.path), prefix=".")
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.rename(name, self.path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_parents(self.path)
        folder = os.path.dirname(self.path)
        refuse_unsafe(os.path.abspath(folder))
        busy = Conflict(f"another process changes {self.path}", reason="busy", hint="try again")
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            take_lock(handle, self._timing.lock_seconds, lambda: busy)
            yield
        finally:
            os.close(handle)


class KnownMachines(TrustFile[KnownMachine]):
    """The hosts that this user's clients know: `~/.config/tmuxctl/known_machines` unless another file is given."""

    def __init__(self, path: str | None = None, *, timing: SealedTiming = TIMING.sealed) -> None:
        path = path or os.path.join(config_folder(), "known_machines")
        super().__init__(path, parse_known_machine, write_known_machine, timing=timing)

    removal = "tmuxctl machine rm {name}"

    def put(self, entry: KnownMachine) -> None:
        """Add a machine, or give the one of this name another id. Denied `key_changed` where that is known by another key, Conflict
        `exists` where the key is known by another name."""
        if self.find(entry.name) is None:
            self.add(entry)
        else:
            self.replace_key(entry.name, self.check(entry.name, entry.key).key, entry)

    def check(self, name: str, key: bytes) -> KnownMachine:
        """The machine of this name, which says that it has this key. NotFound `no_key` if it is not known, Denied `key_changed` if
        it is known by another key: no caller may go on then, as the other side may be anybody."""
        known = self.find(name)
        if known is None:
            hint = "pair with it first"
            raise NotFound(f"the key of machine {ascii(name[:64])} is not known", reason="no_key", hint=hint)
        if known.key != key:
            raise Denied(
                f"THE KEY OF MACHINE {name} HAS CHANGED: known is {fingerprint(known.key)}, it now shows {fingerprint(key)}. "
                "Its keys may have been made anew, or another machine pretends to be it",
                reason="key_changed",
                hint="compare with what `tmuxctl gateway key` shows there; if that is the new one, forget the known key, and pair "
                f"again: tmuxctl machine rm {name}",
            )
        return known


def known_machines() -> KnownMachines:
    """The hosts that this user's clients know, for who only looks them up: the file is parsed once for all of them."""
    return _known_machines(KnownMachines().path)


_known_machines = lru_cache(maxsize=4)(KnownMachines)


class AuthorizedClients(TrustFile[AuthorizedClient]):
    """The clients that this user's host answers: `~/.config/tmuxctl/authorized_clients` unless another file is given."""

    removal = "tmuxctl gateway unpair {name}"
    most_entries = MOST_CLIENTS

    def put(self, client: AuthorizedClient) -> None:
        """Add a client, in the place of what its key had before. Conflict `exists` where another client has its name."""
        named, known = self.find(client.name), self.find_key(client.key)
        if named is not None and named.key != client.key:
            hint = f"choose another name, or take that one out first: {self.removal.format(name=client.name)}"
            raise Conflict(f"another client named {client.name} is authorized", reason="exists", hint=hint)
        if known is None:
            self.add(client)
        else:
            self.replace_key(known.name, client.key, client)

    def __init__(self, path: str | None = None, *, timing: SealedTiming = TIMING.sealed) -> None:
        path = path or os.path.join(config_folder(), "authorized_clients")
        super().__init__(path, parse_authorized_client, write_authorized_client, timing=timing)


def parse_known_machine(words: list[str]) -> KnownMachine:
    """The entry of a line of `known_machines`, by its words. Usage names what is wrong."""
    if len(words) != 3:
        raise Usage("a line has a name, a host id and a key", reason="bad_config")
    return check_known_machine(KnownMachine(words[0], words[1], parse_key(words[2])))


def check_known_machine(entry: KnownMachine) -> KnownMachine:
    """The entry itself; Usage `bad_machine` or `bad_config` for a name or an id that there cannot be."""
    check_machine_name(entry.name)
    if not HOST_ID.fullmatch(entry.host_id):
        hint = "letters, digits, _ and -, at most 64"
        raise Usage(f"{ascii(entry.host_id[:70])} is not a host id", reason="bad_config", hint=hint)
    return entry


def write_known_machine(entry: KnownMachine) -> str:
    """The line of an entry. Raises as `check_known_machine`."""
    check_known_machine(entry)
    return f"{entry.name} {entry.host_id} {key_text(entry.key)}"


def parse_authorized_client(words: list[str]) -> AuthorizedClient:
    """The entry of a line of `authorized_clients`, by its words. Usage names what is wrong."""
    if len(words) != 4:
        raise Usage("a line has a name, a key, rights, and patterns of sessions", reason="bad_config")
    name, key, rights, sessions = words
    return check_authorized_client(
        AuthorizedClient(name, parse_key(key), tuple(rights.split(",")), tuple(sessions.split(",")))
    )


def check_authorized_client(entry: AuthorizedClient) -> AuthorizedClient:
    """The entry itself; Usage `bad_machine`, `bad_right` or `bad_config` for a name, right or pattern that there cannot be."""
    check_machine_name(entry.name)
    check_grant(entry.rights, entry.sessions)
    return entry


def check_grant(rights: tuple[str, ...], sessions: tuple[str, ...]) -> None:
    """Usage `bad_right` or `bad_config` unless these are one right or more, and one pattern or more of names of sessions."""
    if not check_rights(rights):
        raise Usage("there is no right in the list", reason="bad_right", hint=f"there are: {', '.join(RIGHTS)}")
    if not 0 < len(sessions) <= MOST_PATTERNS:
        raise Usage(f"there are 1 to {MOST_PATTERNS} patterns of sessions", reason="bad_config")
    for pattern in sessions:
        if not PATTERN.fullmatch(pattern):
            hint = "letters, digits, . _ / - and * ? [ ] !, at most 128"
            raise Usage(f"{ascii(pattern[:130])} is not a pattern of sessions", reason="bad_config", hint=hint)


def write_authorized_client(entry: AuthorizedClient) -> str:
    """The line of an entry. Raises as `check_authorized_client`."""
    check_authorized_client(entry)
    return f"{entry.name} {key_text(entry.key)} {','.join(entry.rights)} {','.join(entry.sessions)}"


def _words(line: str) -> list[str]:
    """The words of a line; none of a comment or an empty one."""
    return [] if line.lstrip().startswith("#") else line.split()
