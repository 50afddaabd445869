"""Give the program variables from a file, single values and secrets, or remove variables.

A file is read as dotenv files are: `#` comments, an optional `export`, values bare, in 'single quotes' (as they are) or
in "double quotes" (with \\n, \\t, \\", \\\\ and \\$), over several lines if need be. Nothing is expanded.

A secret is named by where it is: `env:VARIABLE`, `file:PATH`, `dotenv:PATH` or `command:WORDS OF SHELL`. Only that is kept,
in `notes["secrets"]` by the variable's name: a restored session is given it as the option `secret` again. `notes["given"]`
names all other variables that were set, and `notes["places"]` says which of them a file can give again.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Annotated

from tmuxctl.errors import Failed, TmuxctlError, Usage
from tmuxctl.model import SessionSpec

KIND = "env"
DEADLINE = 300.0
"""Several secrets, of which each may take some time to come."""

LIMIT = 1 << 20
SECRET_LIMIT = 1 << 16
"""Bytes of a file of variables, and of a secret: Linux starts no program with a variable of more than 128 KiB."""

SECONDS = 20.0
"""How long a secret may take to come."""

LARGE, LATE = "is larger than 64 KiB", f"did not end within {SECONDS:g} s"

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
GLOB = r"[A-Za-z0-9_*?\[\]!-]+"

Missing = Callable[[str], Failed]
"""Makes the error that names a secret from what is wrong with it."""

LINE = re.compile(
    rf"""[ \t]*(?:export[ \t]+)?(?P<name>{NAME})[ \t]*=[ \t]*
    (?: '(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\.)*)" | (?P<bare>(?!['"])(?:(?!(?<=[ \t])\#)[^\n])*) )
    [ \t]*(?:(?<=[ \t'"])\#[^\n]*)?(?:\n|\Z)""",
    re.VERBOSE | re.DOTALL,
)
NOTHING = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def transform(
    spec: SessionSpec,
    *,
    file: Annotated[str, "a file of KEY=value lines; a relative path starts at the session's folder", "local"] = "",
    set: Annotated[tuple[str, ...], "one KEY=value; may be repeated, and wins over the file", "secret"] = (),
    allow: Annotated[tuple[str, ...], "keep of the caller's variables only this name or LC_*; may be repeated"] = (),
    unset: Annotated[tuple[str, ...], "leave out this name or AWS_*; may be repeated"] = (),
    secret: Annotated[
        tuple[str, ...],
        "NAME=env:VAR, NAME=file:PATH, NAME=dotenv:PATH or NAME=command:WORDS; may be repeated",
        "local",
    ] = (),
) -> SessionSpec:
    """Take away what is not wanted, then add the file's values, the single ones and the secrets.

    Usage `bad_env` names the file and line of what is no value, Failed `secret_missing` the secret that cannot be had.
    """
    left = _inherited_variables(spec, allow, unset)
    path = _absolute_path(file, spec) if file else ""
    singles = dict(map(_parse_single, set))
    values = {**(_parse_file(path) if file else {}), **singles}
    references = dict(_parse_reference(pair, spec) for pair in secret)
    here = "/" if spec.machine else spec.cwd
    planned = bool(spec.notes.get("dry_run"))
    secrets = {name: "" if planned else _read_secret(name, where, here) for name, where in references.items()}
    env = {**left, **values, **secrets}
    before = {
        name: where for name, where in spec.notes.get("secrets", {}).items() if name in left.keys() - values.keys()
    }
    references = {**before, **_source_variables(references, env, secrets), **references}
    files = {name: f"dotenv:{path}" for name in values if name not in singles}
    places = {name: where for name, where in spec.notes.get("places", {}).items() if name not in values} | files
    ours = {"given": sorted({*spec.notes.get("given", ()), *values}), "places": places, "secrets": references}
    others = {name: note for name, note in spec.notes.items() if name not in ours}
    return replace(spec, env=env, notes=others | {name: note for name, note in ours.items() if note})


def _inherited_variables(spec: SessionSpec, allow: Sequence[str], unset: Sequence[str]) -> dict[str, str]:
    """What is left of the variables. One is the caller's if the caller has it with the same value, and nobody gave it; on
    another machine, where it is not known what there was, if nobody gave it."""
    given = spec.notes.get("given", ())
    for glob in (*allow, *unset):
        if not re.fullmatch(GLOB, glob):
            # what stands behind a `=` is left out: it may be a value
            shown = ascii(glob.partition("=")[0][:40])
            raise Usage(
                f"{shown} is not the name or a pattern of a variable", reason="bad_env", hint="allow=PATH,allow=LC_*"
            )
    return {
        name: value
        for name, value in spec.env.items()
        if not _matches_any(name, unset)
        and (not allow or name in given or _is_added(spec, name, value) or _matches_any(name, allow))
    }


def _is_added(spec: SessionSpec, name: str, value: str) -> bool:
    """Whether a plugin before this one must have added it."""
    return not spec.machine and os.environ.get(name) != value


def _matches_any(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def _parse_single(pair: str) -> tuple[str, str]:
    name, value = _split_pair(pair, "set", "KEY=value")
    if "\0" in value:
        raise Usage(f"the value of {name} holds a NUL", reason="bad_env", hint="no variable can")
    return name, value


def _split_pair(pair: str, option: str, form: str) -> tuple[str, str]:
    """A name and what it is to be; nothing of what is neither is told: it may be the value."""
    name, equals, value = pair.partition("=")
    if not equals or not re.fullmatch(NAME, name):
        message = f"what was given as {option} does not begin with a variable's name and `=`"
        raise Usage(message, reason="bad_env", hint=f"write {option}={form}")
    return name, value


# secrets


def _parse_reference(pair: str, spec: SessionSpec) -> tuple[str, str]:
    """A variable with where its value is, which is as good from another folder."""
    name, reference = _split_pair(pair, "secret", "NAME=file:PATH")
    kind, _, where = reference.partition(":")
    if kind not in SOURCES or not where or "\0" in where:
        # what it is instead may be the secret itself
        message = f"secret {name}: its place begins with none of env:, file:, dotenv: and command:"
        raise Usage(message, reason="bad_env", hint=f"secret={name}=file:PATH; a value is never written here")
    return name, f"{kind}:{_absolute_path(where, spec)}" if kind in ("file", "dotenv") else reference


def _source_variables(
    references: Mapping[str, str], env: Mapping[str, str], secrets: Mapping[str, str]
) -> dict[str, str]:
    """The caller's variables from which secrets were taken, if they are left to the program: they hold secrets too."""
    sources = {where.partition(":")[2]: name for name, where in references.items() if where.startswith("env:")}
    return {source: f"env:{source}" for source, name in sources.items() if env.get(source) == secrets[name]}


def _read_secret(name: str, reference: str, folder: str) -> str:
    kind, _, where = reference.partition(":")
    value = SOURCES[kind](name, where, folder, lambda what: _secret_missing(name, reference, what))
    for wrong, what in (
        (not value, "is empty"),
        (len(value) > SECRET_LIMIT, LARGE),
        (b"\0" in value, "holds a NUL"),
    ):
        if wrong:
            raise _secret_missing(name, reference, what)
    return value.decode("utf-8", "surrogateescape")


def _secret_missing(name: str, reference: str, what: str) -> Failed:
    message = f"secret {name}: {ascii(reference[:200])[1:-1]} {what}"
    return Failed(message, reason="secret_missing", hint="fix that, or name another place", variable=name)


def _read_variable(name: str, variable: str, folder: str, missing: Missing) -> bytes:
    if variable not in os.environ:
        raise missing("is not set")
    return os.fsencode(os.environ[variable])


def _read_dotenv(name: str, path: str, folder: str, missing: Missing) -> bytes:
    """The variable of this very name in a file of KEY=value lines."""
    try:
        found = _parse_file(path)
    except TmuxctlError as error:
        raise missing(f"cannot be read: {error.message}") from None
    if name not in found:
        raise missing(f"has no {name}")
    return found[name].encode()


def _read_secret_file(name: str, path: str, folder: str, missing: Missing) -> bytes:
    """All of a file but the newline that ends it: a key of several lines is one secret."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return _without_newline(_read_all(handle, time.monotonic() + SECONDS, missing))
        finally:
            os.close(handle)
    except OSError as error:
        raise missing(f"cannot be read: {error.strerror}") from None


def _read_command(name: str, command: str, folder: str, missing: Missing) -> bytes:
    """What a command prints but for the newline that ends it. It has no terminal to ask at; nobody sees its complaints."""
    import signal
    import subprocess

    deadline, quiet = time.monotonic() + SECONDS, subprocess.DEVNULL
    process = subprocess.Popen(
        ["sh", "-c", command], cwd=folder, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, start_new_session=True
    )
    assert process.stdout
    try:
        printed = _read_all(process.stdout.fileno(), deadline, missing)
        status = process.wait(max(0.0, deadline - time.monotonic()))
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise missing(LATE) from None
        raise
    finally:
        process.stdout.close()
    if status:
        raise missing(f"ended with status {status}")
    return _without_newline(printed)


def _read_all(handle: int, deadline: float, missing: Callable[[str], Exception], limit: int = SECRET_LIMIT) -> bytes:
    """All that comes until the end, unless that is more than `limit` bytes or too late."""
    os.set_blocking(handle, False)
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    data = b""
    while len(data) <= limit:
        if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise missing(LATE)
        more = os.read(handle, 1 << 16)
        if not more:
            return data
        data += more
    raise missing(LARGE if limit == SECRET_LIMIT else "is larger than 1 MiB")


def _without_newline(data: bytes) -> bytes:
    return data.removesuffix(b"\n").removesuffix(b"\r")


SOURCES: Mapping[str, Callable[[str, str, str, Missing], bytes]] = {
    "env": _read_variable,
    "file": _read_secret_file,
    "dotenv": _read_dotenv,
    "command": _read_command,
}
"""Where a secret may be: by the word before the colon, what reads it."""


# files of KEY=value lines


def _absolute_path(file: str, spec: SessionSpec) -> str:
    path = os.path.expanduser(file)
    if spec.machine and not os.path.isabs(path):
        hint = "the file is read here, the session's folder is elsewhere: give an absolute path"
        raise Usage(f"{ascii(file)} is not absolute", reason="bad_env", hint=hint)
    return os.path.join(spec.cwd, path)


def _parse_file(path: str) -> dict[str, str]:
    return dict(_parse_lines(path, _read_text(path)))


def _parse_lines(path: str, text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        if nothing := NOTHING.match(text, at):
            at = nothing.end()
            continue
        found = LINE.match(text, at)
        if not found:
            line, rest = text.count("\n", 0, at) + 1, text[at:].partition("\n")[0]
            raise Usage(f"{ascii(path)} line {line}: {_describe_line(rest)}", reason="bad_env", hint="write KEY=value")
        yield found["name"], _unquote(found)
        at = found.end()


def _read_text(path: str) -> str:
    def wrong_file(what: str) -> Usage:
        return Usage(f"{ascii(path)} {what}", reason="bad_env", hint="is it the right file?")

    try:
        # a shell's `<(...)` is a pipe; one that a program put into the folder has no writer, and is waited for no longer
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            data = _read_all(handle, time.monotonic() + SECONDS, wrong_file, LIMIT)
        finally:
            os.close(handle)
    except OSError as error:
        raise Usage(f"{ascii(path)}: {error.strerror}", reason="bad_env", hint="--with env=FILE") from None
    for wrong, what in ((data.find(b"\0"), "holds a NUL"), (_find_undecodable(data), "not UTF-8")):
        if wrong >= 0:
            line = data.count(b"\n", 0, wrong) + 1
            raise Usage(f"{ascii(path)} line {line}: {what}", reason="bad_env", hint="is it the right file?")
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def _find_undecodable(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _unquote(found: re.Match[str]) -> str:
    if found["double"] is not None:
        return re.sub(
            r"\\(.)", lambda escape: ESCAPES.get(escape[1], _unescape(escape)), found["double"], flags=re.DOTALL
        )
    return found["bare"].rstrip() if found["single"] is None else found["single"]


def _unescape(escape: re.Match[str]) -> str:
    return escape[1] if escape[1] in "\"\\$`'" else escape[0]


def _describe_line(line: str) -> str:
    """What is wrong, and nothing of the line: it may go on with the value of the one before."""
    name, equals, value = line.partition("=")
    if not equals:
        return "no `=`"
    if not re.fullmatch(rf"[ \t]*(?:export[ \t]+)?{NAME}[ \t]*", name):
        return "the text before the `=` is not the name of a variable"
    return f"a {value.strip()[:1]} is not closed, or something follows it"
