"""Sessions, settings and checks as lines of text: aligned, without control characters, as wide as there is room."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tmuxctl import results
from tmuxctl.errors import Usage
from tmuxctl.model import Session, State
from tmuxctl.surfaces.cli.printing import color
from tmuxctl.surfaces.cli.printing.cells import age, columns, cut, fit
from tmuxctl.surfaces.cli.printing.output import Options, flat, unicode_out, width, with_socket
from tmuxctl.value import told_names
from tmuxctl.vocabulary import Way

INPUT = "input"
"""What a program wants that cannot go on without it, and is no next command."""

LEAST = 8
"""Columns below which a command or a folder says nothing any more."""

TAGS_MOST = 24
"""Columns that tags may take on a terminal."""

ESCAPES = {"\\t": "\t", "\\n": "\n", "\\\\": "\\"}
FIELD = r"\{\{|\}\}|\{(?P<name>\w*)(?P<rest>[^{}]*)\}|[{}]"
ALIGN = r"(?::[<>^]?\d{1,3})?"


def sessions(found: Sequence[Session], options: Options) -> list[str]:
    """The table of `ls`; it fits the terminal, or is as wide as it must be where there is none. Names are never cut."""
    head = ["NAME", "STATE", "PROFILE", "IDLE", "CMD", "CWD"]
    now, room = time.time(), width()
    rows = [
        [
            flat(one.address),
            state_and_kind(one),
            flat(one.profile or "-"),
            idle(one, now),
            command(one.argv),
            _place(one),
        ]
        for one in found
    ]
    if any(one.tags for one in found):
        tags = [" ".join(one.tags) or "-" for one in found]
        for row, cell in zip([head, *rows], ["TAGS", *tags], strict=True):
            row.insert(4, cut(cell, TAGS_MOST) if room else cell)
    sizes = _sizes([head, *rows], room)
    lines = ["  ".join(map(fit, head, sizes)).rstrip()]
    for row, one in zip(rows, found, strict=True):
        cells = [fit(cell, size) for cell, size in zip(row, sizes, strict=False)]
        size = columns("  ".join(cells))
        cells[1] = _colored(one, cells[1], options)
        shown = "  ".join(cells)
        lines += _with_question(shown, size, one, room, options) if one.asking else [shown.rstrip()]
    return lines


def _sizes(rows: Sequence[Sequence[str]], room: int | None) -> list[int]:
    """The columns' widths. Where there is little room the last two, command and folder, are cut, then left out."""
    sizes = [max(columns(row[number]) for row in rows) for number in range(len(rows[0]))]
    if room is None:
        return sizes
    left = room - sum(sizes[:-2]) - 2 * (len(sizes) - 1)
    folder = min(sizes[-1], max(LEAST, left - min(sizes[-2], 20)))
    program = min(sizes[-2], max(LEAST, left - folder))
    if program + folder <= left:
        return [*sizes[:-2], program, folder]
    left += 2
    return [*sizes[:-2], min(sizes[-2], left)] if left >= LEAST else sizes[:-2]


def _with_question(line: str, size: int, one: Session, room: int | None, options: Options) -> list[str]:
    """The line of a session, so many columns wide, and its question: behind it, or below it where there is no room."""
    question, ids = asked(one)
    mark, behind = _colored(one, "?", options), f": {ids}" if ids else ""
    if room is None or size + columns(f"  ? {question}{behind}") <= room:
        return [f"{line}  {mark} {question}{behind}"]
    left = room - len("  ? ")
    return [line.rstrip(), f"  {mark} " + cut(cut(question, max(LEAST, left - columns(behind))) + behind, left)]


def asked(one: Session) -> tuple[str, str]:
    """The question a session asks, and the answers `decide` takes, each as text without control characters."""
    if one.asking is None:
        return "", ""
    ids = " | ".join(option.id for option in one.asking.options)
    return flat((one.asking.question or one.asking.kind).rstrip(": ")), flat(ids)


def line(one: Session, options: Options) -> str:
    """What `new` says: name, state, program, size, and how to attach."""
    socket = f" --socket {options.socket}" if options.socket else ""
    program = one.profile or (os.path.basename(one.argv[0]) if one.argv else "-")
    kind = f"  ({flat(one.kind)})" if one.kind else ""
    facts = f"{flat(one.address)}  {_colored(one, state(one), options)}  {flat(program)}  {one.cols}x{one.rows}{kind}"
    label, verb = ("release", "release") if one.target else ("attach", "attach")
    if one.state.traits.over:
        label, verb = "its output", "log"
    elif one.machine is not None and _is_only_behind_gateway(one.machine):
        label, verb = "its screen", "screen"
    return f"{facts}      {label}: tmuxctl{socket} {verb} {flat(one.address)}"


def _is_only_behind_gateway(machine: str) -> bool:
    """Whether only operations reach this machine: no terminal does."""
    from tmuxctl.machines import read_machines

    found = read_machines().get(machine)
    return found is not None and found.ways == (Way.GATEWAY,)


def facts(one: Session, options: Options) -> list[str]:
    """What `show` says: all that is known, in groups, a line each."""
    groups = [[(name, value) for name, value in group if value] for group in _groups(one, options)]
    size = max(len(name) for group in groups for name, _ in group) + 1
    lines = [["", *(f"{name + ':':{size}} {value}" for name, value in group)] for group in groups if group]
    return [line for group in lines for line in group][1:]


def _groups(one: Session, options: Options) -> Iterator[list[tuple[str, str]]]:
    """What is known of a session by subject: what it does, what it asks, its program, its terminal, its ids."""
    kinds = ", ".join(flat(word) for word in (one.kind, one.detail) if word)
    shown = _colored(one, state(one), options) + (f" ({kinds})" if kinds else "")
    sure = f", {one.confidence.value}" if one.confidence else ""
    by = f"{one.by}{sure}" if one.by else ""
    yield [("name", one.name), ("state", shown), ("by", by)]
    if one.asking:
        question, ids = asked(one)
        yield [("question", question), ("options", ids), ("answer", with_socket(_decide(one), options))]
    yield [
        ("command", command(one.argv)),
        ("cwd", _place(one) if one.cwd else ""),
        ("profile", flat(one.profile or "")),
        ("plugins", _value(one.plugins)),
        ("tags", _value(one.tags)),
        ("pid", _value(one.pid, empty="")),
        ("takes", _load(one)),
        ("exit status", _value(one.exit_status, empty="")),
        ("signal", flat(one.signal or "")),
    ]
    yield [
        ("size", f"{one.cols}x{one.rows}" if one.cols else ""),
        ("attached", str(one.attached or "")),
        ("recording", "yes" if one.recording else ""),
        ("created", _ago(one.created)),
        ("active", _ago(one.active)),
    ]
    yield [
        ("machine", flat(one.machine or "")),
        ("owner", flat(one.owner or "")),
        ("id", one.id),
        ("incarnation", flat(one.incarnation or "")),
        ("cursor", flat(one.cursor or "")),
    ]


def _load(one: Session) -> str:
    """What a session's processes take of the machine."""
    if not one.processes:
        return ""
    many = "process" if one.processes == 1 else "processes"
    return f"{one.processes} {many}, {(one.memory or 0) / 2**20:.1f} MiB, {one.cpu or 0:.2f} s of processor time"


def _decide(one: Session) -> str:
    """A command that answers a session's question."""
    ids = [flat(option.id) for option in one.asking.options] if one.asking else []
    text = "--secret-from-env VARIABLE" if one.asking and one.asking.kind.traits.hidden else "TEXT"
    return f"tmuxctl decide {flat(one.address)} {command(ids[:1]) or text}"


def _ago(text: str | None) -> str:
    return f"{text}  ({age(time.time() - moment(text))} ago)" if text else ""


def pairs(items: Iterable[tuple[str, Any]]) -> list[str]:
    """`name: value` lines, the values below each other."""
    rows = [(name.replace("_", " "), _value(value)) for name, value in items]
    size = max((len(name) for name, _ in rows), default=0) + 1
    return [f"{name + ':':{size}} {value}" for name, value in rows]


def settings(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """What `config show` says: each setting, its value, and where that came from."""
    return align([(one["name"], _value(one["written"]), _value(one["source"])) for one in found])


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


def steps(found: Sequence[Any], options: Options) -> list[str]:
    """What `machine setup` says: a line for each step, below it the command and what the user can do. With --quiet those that are
    left alone."""
    size = max((len(one.name) for one in found), default=0)
    lines = []
    for one in found:
        if options.quiet and one.state.value != "left":
            continue
        lines.append(f"{one.state.value:6}  {flat(one.name):{size}}  {flat(one.found)}")
        lines += [f"    {flat(told)}" for told in (one.command, one.hint) if told]
    return lines


def explained(found: Any) -> list[str]:
    """What `explain` says: the state, then each piece of evidence, those it rests on marked."""
    words = [found.kind, found.detail, f"by {found.by}" if found.by else None, found.confidence]
    lines = [f"{found.state.value}  ({', '.join(flat(word) for word in words if word)})  {flat(found.why)}"]
    rows = []
    for one in found.reasons:
        age = f"{one.age:.1f} s" if one.age is not None else "-"
        rows.append(("*" if one.used else " ", flat(one.source), age, flat(one.state or "-"), flat(one.seen)))
    lines += align(rows)
    if found.asking is not None:
        lines.append(f"asking: {flat(found.asking.question)}")
        lines += [f"  {flat(one.id)}: {' '.join(map(flat, one.keys))}" for one in found.asking.options]
    if found.answer is not None:
        lines += ["answer:", *map(flat, found.answer.split("\n"))]
    return lines


def profiles(found: Sequence[Any]) -> list[str]:
    """What `profile ls` says: name, source and description of each, or what is wrong with it."""
    rows = [("NAME", "SOURCE", "PROGRAMS", "DESCRIPTION")]
    for one in found:
        told = f"! {one.problem}" if one.problem else one.description
        rows.append((one.name, one.source, cut(flat(" ".join(one.programs)), 24), flat(told)))
    return align(rows)


def tested(result: Any, options: Options) -> list[str]:
    """What `profile test` says: each screen that was taken for something else, then how many there were."""
    lines = []
    for one in (one for one in result.tests if not one.ok):
        if not one.judged:
            # the profile or the screen could not be read
            lines.append(f"{flat(one.profile)}: {flat(one.why)}")
            continue
        lines.append(f"{flat(one.profile)}: {flat(one.path)} line {one.line}: {flat(one.expected)} was expected")
        lines.append(f"  judged: {flat(one.judged)} ({flat(one.why)})")
        if not options.quiet:
            lines += [f"  | {flat(row)}" for row in (one.screen or "").rstrip().split("\n")[-12:]]
    return lines if options.quiet else [*lines, f"{result.passed} passed, {result.failed} failed"]


def plugins(found: Sequence[Any]) -> list[str]:
    """What `plugin ls` says: what each is and changes, its options, and what it is for, or why it cannot be used."""
    rows = [["NAME", "KIND", "ORDER", "SOURCE", "FORM", "OPTIONS", "DESCRIPTION"]]
    for one in found:
        order = "-" if one.order is None else str(one.order)
        options = "any" if one.options is None else " ".join(one.options) or "-"
        told = f"! {one.problem}" if one.problem else one.summary
        rows.append([one.name, one.kind or "-", order, one.source, one.form, flat(options), flat(told)])
    return align(rows)


def tokens(found: Sequence[Any]) -> list[str]:
    """What `token ls` says: what each token's bearer may, for which sessions, and since when."""
    rows = [("NAME", "RIGHTS", "SESSIONS", "CREATED")]
    for one in found:
        rows.append((one.name, ",".join(one.rights) or "-", flat(" ".join(one.sessions)), one.created or "-"))
    return align(rows)


def members(found: Sequence[Any]) -> list[str]:
    """What `gateway ls` says: the id of each host and client, the operator's label for it, and since when."""
    rows = [("ID", "ROLE", "LABEL", "TENANT", "CREATED")]
    return align(
        [*rows, *((one.id, one.role.value, flat(one.label or "-"), one.tenant, flat(one.created)) for one in found)]
    )


def gateway(found: Any) -> list[str]:
    """What `gateway status` says: facts of the server, its streams and their copies, its nodes, then its connections."""
    facts = [("process", str(found.process)), ("nats-server", found.version), ("since", found.since)]
    facts += [("address", one) for one in found.urls]
    facts += [("memory", f"{found.memory_bytes >> 20} MiB")]
    for one in found.streams:
        numbers = f", {one.first} to {one.last}" if one.events else ""
        facts += [(f"events of {one.tenant}", f"{one.events}{numbers}, {one.bytes} bytes")]
        if one.replicas:
            copies = ", ".join(f"{copy.node} {_copy_state(copy)}" for copy in one.replicas)
            facts += [("", f"leader {one.leader or 'none'}, copies: {copies}")]
    nodes = [("NODE", "STATE", "SINCE", "CONNECTIONS", "MEMORY")]
    for node in found.nodes:
        state = "away" if node.away else "leads" if node.leads else "runs"
        memory = "-" if node.memory_bytes is None else f"{node.memory_bytes >> 20} MiB"
        count = "-" if node.connections is None else str(node.connections)
        nodes.append((flat(node.name), state, flat(node.since or "-"), count, memory))
    rows = [("ID", "ROLE", "LABEL", "ADDRESS", "SENT", "RECEIVED", "WAITS")]
    for one in found.connections:
        sizes = (str(one.received_bytes), str(one.sent_bytes), str(one.pending_bytes))
        rows.append(
            (one.id or "-", one.role.value if one.role else "-", flat(one.label or "-"), flat(one.address), *sizes)
        )
    about = [*pairs((name, flat(value)) for name, value in facts), ""]
    return [*about, *([*align(nodes), ""] if found.nodes else []), *align(rows)]


def _copy_state(copy: Any) -> str:
    """Whether a copy of the events is behind."""
    return "away" if copy.away else "current" if copy.current and not copy.lag else f"{copy.lag} behind"


def plugin(found: Any) -> list[str]:
    """What `plugin show` says: what it is for, its facts, and its options, each with what it takes."""
    facts = [("name", found.name), ("kind", found.kind), ("order", found.order)]
    facts += [("source", found.source), ("form", found.form)]
    facts += [("path", found.path), ("works here", f"no: {flat(found.problem)}" if found.problem else "yes")]
    facts += [("environment", "a short list of variables")] if found.clean_env else []
    lines = [*map(flat, found.text.split("\n")), "", *pairs(facts), "", *found.usage, ""]
    if not found.options:
        return [*lines, "it takes any option" if found.options is None else "it takes no options"]
    return [*lines, *align([(flat(one.name), _takes(one), flat(one.help)) for one in found.options])]


def _takes(option: Any) -> str:
    """What an option takes, in a few words."""
    default = "required" if option.required else f"default {_value(option.default)}" if option.default else ""
    words = (option.type, "repeatable" if option.repeated else "", default, "secret" if option.secret else "")
    return ", ".join(word for word in words if word)


def plugins_tested(result: Any, options: Options) -> list[str]:
    """What `plugin test` says: a line for each test, then how many there were. With --quiet those that failed alone."""
    told = [one for one in result.tests if one.outcome == "failed" or not options.quiet]
    lines = align([(one.plugin, one.outcome, flat(f"{one.test}: {one.why}" if one.why else one.test)) for one in told])
    ends = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped"
    return lines if options.quiet else [*lines, ends]


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, the cells below each other; the last of each is as long as it is."""
    sizes = [max(map(columns, cells)) for cells in zip(*rows, strict=True)][:-1]
    return ["  ".join([*map(fit, row, sizes), row[-1]]).rstrip() for row in rows]


def state(one: Session) -> str:
    """A session's state in a word, with the exit status if it ended."""
    if one.state is State.EXITED:
        end = one.exit_status if one.signal is None else one.signal
        return f"exited {end}" if end is not None else "exited"
    return str(one.state.value)


def state_and_kind(one: Session) -> str:
    """The same, with what an idle program waits for where that is not its next command: `idle (line)`."""
    kind = one.kind if one.state is State.IDLE and one.wants == INPUT else None
    return f"{state(one)} ({flat(kind)})" if kind else state(one)


def check_form(form: str) -> None:
    """Usage `bad_format` unless the text of `-F` holds only fields of a session, each perhaps with a width."""
    known = told_names(Session)
    for found in re.finditer(FIELD, form):
        if found["name"] is None and found[0] in ("{{", "}}"):
            continue
        if found["name"] not in known or not re.fullmatch(ALIGN, found["rest"]):
            hint = f"write {{name}} or {{name:<20}}; there are: {', '.join(known)}"
            raise Usage(f"-F: no field {ascii(found[0][:40])}", reason="bad_format", hint=hint)


def formed(form: str, one: Session) -> str:
    """One session as the text of `-F`; what is not known is empty."""
    from tmuxctl.operations import to_json

    fields = {**to_json(one), "asking": ": ".join(filter(None, asked(one)))}

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


def machines(found: Sequence[results.MachineLine]) -> list[str]:
    """What `machine ls` says: each machine, how it is reached, the way that is used, and where that is written."""
    now = time.time()
    return align([(one.name, _ways_to(one), _used_way(one, now), one.source) for one in found])


def _ways_to(machine: results.MachineLine) -> str:
    shell = command(machine.command) or (machine.ssh and f"ssh {machine.ssh}")
    return " or ".join(filter(None, (shell, machine.gateway and f"gateway {machine.gateway}")))


def _used_way(machine: results.MachineLine, now: float) -> str:
    if machine.way is None:
        return "-"
    way = f"{machine.way.value}, directly" if machine.direct else machine.way.value
    return way if machine.used is None else f"{way} {age(now - moment(machine.used))} ago"


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


def _place(one: Session) -> str:
    if not one.cwd:
        return "-"
    home = os.path.expanduser("~")
    inside = one.cwd == home or one.cwd.startswith(home.rstrip("/") + "/")
    return flat("~" + one.cwd[len(home) :] if inside and home != "/" else one.cwd)


def idle(one: Session, now: float) -> str:
    """How long ago it last printed; `-` if it has ended or nobody knows."""
    return "-" if not one.active or one.state.traits.over else age(now - moment(one.active))


def moment(text: str) -> float:
    """Seconds since 1970 of an ISO-8601 time in UTC, without the half megabyte of `datetime`."""
    year, month, day, hour, minute, second = map(int, re.findall(r"\d+", text)[:6])
    # days of the civil calendar, years beginning in March: the leap day is the last of its year
    year -= month <= 2
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month + (-3 if month > 2 else 9)) + 2) // 5
    return (days + day - 719469) * 86400 + hour * 3600 + minute * 60 + second


def _colored(one: Session, text: str, options: Options) -> str:
    return color.state(one.state.value, text, sys.stdout, options)


LINES: Mapping[type | str, Callable[[Any, Options], Iterable[str]]] = {
    "facts": lambda one, options: [one.name] if options.quiet else facts(one, options),
    "settings": lambda found, options: settings(found["settings"]),
    results.Explained: lambda found, options: explained(found),
    results.Doctor: lambda found, options: checks(found.checks, options),
    results.Profiles: lambda found, options: _names(found.profiles) if options.quiet else profiles(found.profiles),
    results.ProfilesTested: tested,
    results.Plugins: lambda found, options: _names(found.plugins) if options.quiet else plugins(found.plugins),
    results.PluginPage: lambda found, options: [found.name] if options.quiet else plugin(found),
    results.PluginsTested: plugins_tested,
    results.Machines: lambda found, options: _names(found.machines) if options.quiet else machines(found.machines),
    results.MachineLine: lambda found, options: [found.name] if options.quiet else machines([found]),
    results.MachineTested: lambda found, options: checks(found.checks, options),
    results.MachineSetup: lambda found, options: steps(found.steps, options),
    results.TokensKept: lambda found, options: _names(found.tokens) if options.quiet else tokens(found.tokens),
    results.GatewayMembers: lambda found, options: _ids(found.members) if options.quiet else members(found.members),
    results.PairedClients: lambda found, options: _names(found.clients) if options.quiet else clients(found.clients),
    results.GatewayStatus: lambda found, options: _ids(found.connections) if options.quiet else gateway(found),
}
"""What is printed as lines and nothing else: by the class of the result, or by the view that its operation declares."""


def clients(found: Sequence[results.PairedClient]) -> list[str]:
    """What `gateway clients` says: each client, its key, what it may, and whether it may know only the old key of this host."""
    rows = [
        (
            one.name,
            one.fingerprint,
            ",".join(one.rights),
            ",".join(one.sessions),
            "may know only the old key" if one.knows_key is False else "",
        )
        for one in found
    ]
    return align(rows) if rows else []


def _ids(found: Sequence[Any]) -> list[str]:
    return [one.id for one in found if one.id]


def _names(found: Sequence[Any]) -> list[str]:
    return [one.name for one in found]
