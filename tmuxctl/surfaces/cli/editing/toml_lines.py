"""A file of settings, a text of TOML, with one value or table set or taken out: no other line changes, comments and order stay.

Pure. Where the value stands is found line by line; whether that was right is known by reading the result as a whole.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tmuxctl.errors import Failed, Usage

_HEADER = re.compile(r"""\s*\[\s*["']?([\w-]+)["']?\s*\]\s*(?:#.*)?$""")
_ANY_HEADER = re.compile(r"\s*\[")
_VALUE = r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'#\[{][^\s#]*)(?=\s*(?:#.*)?$)"""


def with_value(text: str, name: str, value: str | int, path: str) -> str:
    """The text with this value for a setting (`wait.timeout`). Failed `bad_settings` if no line can be found for it."""
    tables = parse(text, path)
    table, _, key = name.partition(".")
    holder = tables.setdefault(table, {})
    if isinstance(holder, dict):
        holder[key] = value
    return _first_that_reads_as(_candidates_with_value(text, table, key, _to_literal(value)), tables, name, path)


def without_value(text: str, name: str, path: str) -> str:
    """The text without a setting, as it is if it has none. Failed as `with_value`."""
    tables = parse(text, path)
    table, _, key = name.partition(".")
    if key not in tables.get(table, {}):
        return text
    del tables[table][key]
    return _first_that_reads_as(_candidates_without_value(text, table, key), tables, name, path)


def with_table(text: str, name: str, values: Mapping[str, str | Sequence[str]], path: str) -> str:
    """The text with this table (`servers.mine`), which it does not have yet, at its end. Failed as `with_value`."""
    tables = parse(text, path)
    outer, _, inner = name.partition(".")
    holder = tables.setdefault(outer, {})
    if isinstance(holder, dict):
        holder[inner] = {key: value if isinstance(value, str) else list(value) for key, value in values.items()}
    end = "\r\n" if "\r\n" in text else "\n"
    body = text if not text or text.endswith("\n") else text + end
    lines = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}{end}" for key, value in values.items())
    found = f"{body}{end if body else ''}[{name}]{end}{lines}"
    return _first_that_reads_as(iter((found,)), tables, name, path)


def without_table(text: str, name: str, path: str) -> str:
    """The text without a table and those below it; comments between it and the next one stay. Failed as `with_value`."""
    tables = parse(text, path)
    outer, _, inner = name.partition(".")
    if inner not in tables.get(outer, {}):
        return text
    del tables[outer][inner]
    return _first_that_reads_as(_candidates_without_table(text, outer, inner), tables, name, path)


def with_named_table(text: str, name: str, values: Mapping[str, str | Sequence[str]], path: str) -> str:
    """The text with a table of its own for a name, which may hold dots, at its end. Failed as `with_value`."""
    tables = parse(text, path)
    tables[name] = {key: value if isinstance(value, str) else list(value) for key, value in values.items()}
    end = "\r\n" if "\r\n" in text else "\n"
    body = text if not text or text.endswith("\n") else text + end
    header = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)
    lines = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}{end}" for key, value in values.items())
    found = f"{body}{end if body else ''}[{header}]{end}{lines}"
    if parse(found, path) != tables:
        raise _no_line_error(name, path)
    return found


def without_named_table(text: str, name: str, path: str) -> str:
    """The text without the table of this name; comments above the next one stay. Failed as `with_value`."""
    tables = parse(text, path)
    del tables[name]
    own = re.compile(rf"""\s*\[\s*["']?{re.escape(name)}["']?\s*\]""")
    kept: list[str] = []
    inside, loose = False, 0
    for line in text.splitlines(keepends=True):
        if _ANY_HEADER.match(line):
            inside = own.match(line) is not None
            if inside and kept and not kept[-1].strip():
                # the blank line that parts it from what is before
                kept.pop()
        if inside and line.strip() and not line.lstrip().startswith("#"):
            # comments above this line belonged to the table
            del kept[len(kept) - loose :]
            loose = 0
        else:
            loose = loose + 1 if inside else 0
            kept.append(line)
    found = "".join(kept)
    if parse(found, path) != tables:
        raise _no_line_error(name, path)
    return found


def parse(text: str, path: str) -> dict[str, Any]:
    """The tables of a text; Usage `bad_config` if it is no TOML."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Usage(f"{path}: {error}", reason="bad_config", hint="fix the file; nothing was changed") from None


def _first_that_reads_as(candidates: Iterator[str], wanted: dict[str, Any], name: str, path: str) -> str:
    """The first candidate that reads as it should; a table that became empty may be gone."""
    for one in candidates:
        try:
            found = tomllib.loads(one)
        except tomllib.TOMLDecodeError:
            continue
        table = name.partition(".")[0]
        if found == wanted or found == {key: value for key, value in wanted.items() if key != table or value}:
            return one
    raise _no_line_error(name, path)


def _no_line_error(name: str, path: str) -> Failed:
    hint = "edit it by hand; nothing was changed"
    return Failed(f"{path}: no line for {name} was found that can be changed alone", reason="bad_settings", hint=hint)


def _candidates_with_value(text: str, table: str, key: str, literal: str) -> Iterator[str]:
    """Texts that may set the value: in its line, behind the last of its table, in a table of its own."""
    lines = text.splitlines(keepends=True)
    end = "\r\n" if "\r\n" in text else "\n"
    for number, found in _find_key_lines(lines, table, key):
        line = lines[number][: found.start(1)] + literal + lines[number][found.end(1) :]
        yield "".join([*lines[:number], line, *lines[number + 1 :]])
    last = _find_last_line(lines, table)
    if last is not None:
        number, prefix = last
        before = [*lines[:number], lines[number].rstrip("\r\n") + end]
        yield "".join([*before, f"{prefix}{key} = {literal}{end}", *lines[number + 1 :]])
    body = text if not text or text.endswith("\n") else text + end
    yield f"{body}{end if body else ''}[{table}]{end}{key} = {literal}{end}"


def _candidates_without_value(text: str, table: str, key: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    for number, _ in _find_key_lines(lines, table, key):
        yield "".join([*lines[:number], *lines[number + 1 :]])


def _candidates_without_table(text: str, outer: str, inner: str) -> Iterator[str]:
    quote = r"""\s*["']?"""
    own = re.compile(rf"\s*\[{quote}{re.escape(outer)}{quote}\.{quote}{re.escape(inner)}{quote}[.\]]")
    kept: list[str] = []
    inside, loose = False, 0
    for line in text.splitlines(keepends=True):
        if _ANY_HEADER.match(line):
            inside = own.match(line) is not None
            if inside and loose == 0 and kept and not kept[-1].strip():
                # the blank line that parts it from what is before
                kept.pop()
        if inside and line.strip() and not line.lstrip().startswith("#"):
            # comments above this line belonged to the table
            del kept[len(kept) - loose :]
            loose = 0
        else:
            loose = loose + 1 if inside else 0
            kept.append(line)
    yield "".join(kept)


def _lines_with_tables(lines: list[str]) -> Iterator[tuple[int, str, str | None]]:
    """Each line with its number and the table it stands in: empty before the first, None in one of another form."""
    table: str | None = ""
    for number, line in enumerate(lines):
        if _ANY_HEADER.match(line):
            found = _HEADER.match(line.rstrip("\r\n"))
            table = found[1] if found else None
        yield number, line, table


def _find_key_lines(lines: list[str], table: str, key: str) -> Iterator[tuple[int, re.Match[str]]]:
    """The lines that may set this key, with where the value stands (group 1)."""
    inside = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=\s*{_VALUE}""")
    dotted = re.compile(rf"""\s*["']?{re.escape(table)}["']?\s*\.\s*["']?{re.escape(key)}["']?\s*=\s*{_VALUE}""")
    for number, line, within in _lines_with_tables(lines):
        pattern = inside if within == table else dotted if within == "" else None
        if pattern is not None and (found := pattern.match(line.rstrip("\r\n"))):
            yield number, found


def _find_last_line(lines: list[str], table: str) -> tuple[int, str] | None:
    """The last line of a table that is no comment, and what a key of it begins with there; None if there is no such table."""
    found = None
    for number, line, within in _lines_with_tables(lines):
        if within == table and line.strip() and not line.lstrip().startswith("#"):
            margin = line[: len(line) - len(line.lstrip())] if not _ANY_HEADER.match(line) else ""
            found = number, margin
        elif within == "" and re.match(rf"\s*{re.escape(table)}\s*\.", line):
            found = number, f"{table}."
    return found


def _to_literal(value: str | int) -> str:
    """A value as TOML writes it; a basic string has JSON's escapes, but DEL must be escaped too."""
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
