"""Sessions, settings and checks as lines of text: aligned, without control characters, as wide as there is room."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tmuxctl.errors import Usage
from tmuxctl.model import Session, State
from tmuxctl.surfaces.cli.output import Options, colorful, flat, unicode_out, width

COLORS = {"busy": "33", "idle": "32", "asking": "35", "exited": "2", "lost": "31"}
ESCAPES = {"\\t": "\t", "\\n": "\n", "\\\\": "\\"}
FIELD = r"\{\{|\}\}|\{(?P<name>\w*)(?P<rest>[^{}]*)\}|[{}]"
ALIGN = r"(?::[<>^]?\d{1,3})?"


def sessions(found: Sequence[Session], options: Options) -> list[str]:
    """The table of `ls`; it fits the terminal, or is as wide as it must be where there is none."""
    head = ("NAME", "STATE", "PROFILE", "IDLE", "CMD", "CWD")
    rows = [head, *((one.name, state(one), _profile(one), _idle(one), command(one.argv), _place(one)) for one in found)]
    room = width()
    sizes = [max(_columns(row[number]) for row in rows) for number in range(len(head))]
    if room:
        sizes[5] = max(8, min(sizes[5], room - 10 - sum(sizes[:4]) - min(sizes[4], 20)))
        sizes[4] = max(8, min(sizes[4], room - 10 - sum(sizes[:4]) - sizes[5]))
    lines = []
    for row, one in zip(rows, [None, *found], strict=True):
        cells = [_fit(cell, size) for cell, size in zip(row, sizes, strict=True)]
        cells[1] = _colored(cells[1], one, options)
        lines.append("  ".join([*cells, *([_question(one)] if one and one.asking else [])]).rstrip())
    return lines


def line(one: Session, options: Options) -> str:
    """What `new` says: name, state, program, size, and how to attach."""
    from sys import stdout

    shown = state(one)
    color = COLORS.get(one.state.value) if stdout is not None and colorful(stdout, options) else None
    socket = f" --socket {options.socket}" if options.socket else ""
    program = one.profile or (os.path.basename(one.argv[0]) if one.argv else "-")
    kind = f"  ({one.kind})" if one.kind else ""
    facts = f"{one.name}  {_paint(shown, color)}  {flat(program)}  {one.cols}x{one.rows}{kind}"
    return f"{facts}      attach: tmuxctl{socket} attach {one.name}"


def facts(one: Session) -> list[str]:
    """What `show` says: all that is known, a line each."""
    from tmuxctl.operations import plain

    found = {**plain(one), "state": state(one), "argv": command(one.argv)}
    return pairs((name, value) for name, value in found.items() if value not in (None, [], "", {}, False))


def pairs(items: Iterable[tuple[str, Any]]) -> list[str]:
    """`name: value` lines, the values below each other."""
    rows = [(name.replace("_", " "), _value(value)) for name, value in items]
    size = max((len(name) for name, _ in rows), default=0) + 1
    return [f"{name + ':':{size}} {value}" for name, value in rows]


def settings(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """What `config show` says: each setting, its value, and where that came from."""
    rows = [(one["name"], _value(one["written"]), _value(one["source"])) for one in found]
    sizes = [max(len(row[number]) for row in rows) for number in range(2)]
    return [f"{name:{sizes[0]}}  {value:{sizes[1]}}  {source}" for name, value, source in rows]


def checks(found: Sequence[Any], options: Options) -> list[str]:
    """What `doctor` says: a line for each check, below a failed one what to do. With --quiet the failed ones alone."""
    marks = {True: "✓", False: "✗", None: "-"} if unicode_out() else {True: "ok", False: "NO", None: "- "}
    size = max((len(one.name) for one in found), default=0)
    lines = []
    for one in found:
        if one.ok is False or not options.quiet:
            lines.append(f"{marks[one.ok]} {flat(one.name):{size}}  {flat(one.found)}")
            lines += [f"    {flat(one.hint)}"] if one.hint and not one.ok else []
    return lines


def explained(found: Any) -> list[str]:
    """What `explain` says: the state, then each piece of evidence, those it rests on marked."""
    words = [found.kind, found.detail, f"by {found.by}" if found.by else None, found.confidence.value]
    lines = [f"{found.state.value}  ({', '.join(word for word in words if word)})  {flat(found.why)}"]
    rows = [
        (
            "*" if one.used else " ",
            one.source,
            f"{one.age:.1f} s" if one.age is not None else "-",
            one.state or "-",
            flat(one.seen),
        )
        for one in found.reasons
    ]
    sizes = [max((len(row[number]) for row in rows), default=0) for number in range(4)]
    lines += [
        "  ".join(f"{cell:{size}}" for cell, size in zip(row, sizes, strict=False)) + "  " + row[4] for row in rows
    ]
    if found.asking is not None:
        lines.append(f"asking: {flat(found.asking.question)}")
        lines += [f"  {flat(one.id)}: {' '.join(map(flat, one.keys))}" for one in found.asking.options]
    if found.answer is not None:
        lines += ["answer:", *map(flat, found.answer.split("\n"))]
    return lines


def profiles(found: Sequence[Any]) -> list[str]:
    """What `profile ls` says: name, source and description of each, or what is wrong with it."""
    head = ("NAME", "SOURCE", "PROGRAMS", "DESCRIPTION")
    told = [f"! {one.problem}" if one.problem else one.description for one in found]
    names = [" ".join(one.programs) for one in found]
    rows = [
        head,
        *((one.name, one.source, flat(two), flat(three)) for one, two, three in zip(found, names, told, strict=True)),
    ]
    sizes = [max(_columns(row[number]) for row in rows) for number in range(2)]
    sizes.append(min(24, max(_columns(row[2]) for row in rows)))
    fitted = ([_fit(cell, size) for cell, size in zip(row, sizes, strict=False)] for row in rows)
    return ["  ".join([*cells, row[3]]).rstrip() for cells, row in zip(fitted, rows, strict=True)]


def tested(result: Any, options: Options) -> list[str]:
    """What `profile test` says: each screen that was taken for something else, then how many there were."""
    lines = []
    for one in (one for one in result.tests if not one.ok):
        lines.append(f"{flat(one.profile)}: {flat(one.path)} line {one.line}: {flat(one.expected)} was expected")
        lines.append(f"  judged: {flat(one.judged or '-')} ({flat(one.why)})")
        if not options.quiet:
            lines += [f"  | {flat(row)}" for row in (one.screen or "").rstrip().split("\n")[-12:]]
    return lines if options.quiet else [*lines, f"{result.passed} passed, {result.failed} failed"]


def state(one: Session) -> str:
    """A session's state in a word, with the exit status if it ended."""
    if one.state is State.EXITED:
        end = one.exit_status if one.signal is None else one.signal
        return f"exited {end}" if end is not None else "exited"
    return str(one.state.value)


def check_form(form: str) -> None:
    """Usage `bad_format` unless the text of `-F` holds only fields of a session, each perhaps with a width."""
    from dataclasses import fields

    known = [field.name for field in fields(Session)]
    for found in re.finditer(FIELD, form):
        if found["name"] is None and found[0] in ("{{", "}}"):
            continue
        if found["name"] not in known or not re.fullmatch(ALIGN, found["rest"]):
            hint = f"write {{name}} or {{name:<20}}; there are: {', '.join(known)}"
            raise Usage(f"-F: no field {ascii(found[0][:40])}", reason="bad_format", hint=hint)


def formed(form: str, fields: Mapping[str, Any]) -> str:
    """One session as the text of `-F`."""

    def field(found: re.Match[str]) -> str:
        if not found["name"]:
            return found[0][0]
        return f"{_value(fields[found['name']], empty=''):{found['rest'][1:]}}"

    parts = re.split(r"(\\[tn\\])", form)
    return "".join(ESCAPES[part] if part in ESCAPES else re.sub(FIELD, field, part) for part in parts)


def command(argv: Sequence[str]) -> str:
    """A command as one would type it."""
    return " ".join(word if re.fullmatch(r"[\w@%+=:,./-]+", word) else _quoted(word) for word in map(flat, argv))


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _value(value: Any, *, empty: str = "-") -> str:
    if value is None:
        return empty
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return command([str(one) for one in value])
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_value(one)}" for name, one in value.items())
    return flat(str(value))


def _profile(one: Session) -> str:
    return flat(one.profile or "-")


def _place(one: Session) -> str:
    if not one.cwd:
        return "-"
    home = os.path.expanduser("~")
    inside = one.cwd == home or one.cwd.startswith(home.rstrip("/") + "/")
    return flat("~" + one.cwd[len(home) :] if inside and home != "/" else one.cwd)


def _idle(one: Session) -> str:
    seconds = time.time() - moment(one.active) if one.active else None
    if seconds is None or one.state in (State.EXITED, State.LOST):
        return "-"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def moment(text: str) -> float:
    """Seconds since 1970 of an ISO-8601 time in UTC, without the half megabyte of `datetime`."""
    year, month, day, hour, minute, second = map(int, re.findall(r"\d+", text)[:6])
    # days of the civil calendar, years beginning in March: the leap day is the last of its year
    year -= month <= 2
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month + (-3 if month > 2 else 9)) + 2) // 5
    return (days + day - 719469) * 86400 + hour * 3600 + minute * 60 + second


def _question(one: Session) -> str:
    asking = one.asking or {}
    options = " | ".join(str(option.get("label", option.get("id"))) for option in asking.get("options") or ())
    question = str(asking.get("question") or asking.get("kind") or "").rstrip(": ")
    return "  ? " + flat(question + (f": {options}" if options else ""))


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def _fit(text: str, size: int) -> str:
    if _columns(text) <= size:
        return text + " " * (size - _columns(text))
    more = "…" if unicode_out() else "~"
    while _columns(text) > size - 1:
        text = text[:-1]
    return text + more + " " * (size - 1 - _columns(text))


def _colored(cell: str, one: Session | None, options: Options) -> str:
    from sys import stdout

    return _paint(cell, COLORS.get(one.state.value) if one and stdout and colorful(stdout, options) else None)


def _paint(text: str, color: str | None) -> str:
    return f"\x1b[{color}m{text}\x1b[0m" if color else text
