"""Give the program more environment: a file of `KEY=value` lines, single values, or both.

A file is read as dotenv files are: `#` comments, an optional `export`, values bare, in 'single quotes' (as they are) or
in "double quotes" (with \\n, \\t, \\", \\\\ and \\$), over several lines if need be. Nothing is expanded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

from tmuxctl.errors import Usage
from tmuxctl.model import SessionSpec

KIND = "env"

LIMIT = 1 << 20
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
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
    file: Annotated[str, "a file of KEY=value lines; a relative path starts at the session's folder"] = "",
    set: Annotated[tuple[str, ...], "one KEY=value; may be repeated, and wins over the file", "secret"] = (),
) -> SessionSpec:
    """Add the file's values, then the single ones. Usage `bad_env` names the file and line of what is no value."""
    values = dict(_from_file(_path(file, spec))) if file else {}
    for pair in set:
        name, equals, value = pair.partition("=")
        if not equals or not re.fullmatch(NAME, name) or "\0" in value:
            raise Usage(f"{ascii(name[:40])} is no KEY=value", reason="bad_env", hint="write set=KEY=value")
        values[name] = value
    return replace(spec, env={**spec.env, **values})


def _path(file: str, spec: SessionSpec) -> str:
    path = os.path.expanduser(file)
    if spec.machine and not os.path.isabs(path):
        hint = "the file is read here, the session's folder is elsewhere: write the whole path"
        raise Usage(f"{ascii(file)} is not absolute", reason="bad_env", hint=hint)
    return os.path.join(spec.cwd, path)


def _from_file(path: str) -> Iterator[tuple[str, str]]:
    text = _read(path)
    at = 0
    while at < len(text):
        if nothing := NOTHING.match(text, at):
            at = nothing.end()
            continue
        found = LINE.match(text, at)
        if not found:
            line, rest = text.count("\n", 0, at) + 1, text[at:].partition("\n")[0]
            raise Usage(f"{ascii(path)} line {line}: {_complaint(rest)}", reason="bad_env", hint="write KEY=value")
        yield found["name"], _value(found)
        at = found.end()


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise Usage(f"{ascii(path)}: {error.strerror}", reason="bad_env", hint="--with env=FILE") from None
    if len(data) > LIMIT:
        raise Usage(f"{ascii(path)} is larger than 1 MiB", reason="bad_env", hint="is it the right file?")
    for wrong, what in ((data.find(b"\0"), "holds a NUL"), (_undecodable(data), "not UTF-8")):
        if wrong >= 0:
            line = data.count(b"\n", 0, wrong) + 1
            raise Usage(f"{ascii(path)} line {line}: {what}", reason="bad_env", hint="is it the right file?")
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def _undecodable(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _value(found: re.Match[str]) -> str:
    if found["double"] is not None:
        return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], _kept(escape)), found["double"], flags=re.DOTALL)
    return found["bare"].rstrip() if found["single"] is None else found["single"]


def _kept(escape: re.Match[str]) -> str:
    return escape[1] if escape[1] in "\"\\$`'" else escape[0]


def _complaint(line: str) -> str:
    """What is wrong, without the value: it may be a secret."""
    name, equals, value = line.partition("=")
    if not equals:
        return "no `=`"
    if not re.fullmatch(rf"[ \t]*(?:export[ \t]+)?{NAME}[ \t]*", name):
        return f"{ascii(name.strip()[:40])} is no name of a variable"
    return f"a {value.strip()[:1]} is not closed, or something follows it"
