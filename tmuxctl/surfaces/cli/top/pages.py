"""The pages of `tmuxctl top`: sessions, a width and a height in, lines of styled text out. Pure: knows no terminal."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from tmuxctl.model import Asking, Option, Session, State, natural_key
from tmuxctl.results import MachineProblem
from tmuxctl.surfaces.cli.printing.cells import columns, cut, fit
from tmuxctl.surfaces.cli.printing.output import flat
from tmuxctl.surfaces.cli.printing.table import INPUT, asked, command, idle, state, state_and_kind
from tmuxctl.value import Value
from tmuxctl.widths import WIDTHS

SPOKEN_KEYS = {"y": ("yes",), "n": ("no", "deny")}
"""Keys that stand for an answer whatever its number is."""

ANSWER_KEYS = "123456789abcdefghijklmnopqrstuvwxyz"
"""The keys that choose an answer, by its number."""

MARK, GAP = 2, 2
"""Columns in front of a row, where `>` marks the one that is selected, and between two columns."""

HELP = (
    ("Up Down j k", "select a session; PgUp, PgDn, Home, End too"),
    ("Enter a", "attach to it in this terminal; C-b d comes back here"),
    ("d", "decide: show its question; one key chooses the answer"),
    ("t", "type a line to it"),
    ("n Tab", "select the next session that wants input"),
    ("i", "interrupt it, by the keys its profile names (else C-c)"),
    ("x K", "kill it, after y; a session that has ended is removed"),
    ("/", "filter: words that a row must contain; a state is a word too"),
    ("s", "sort by state, name, processor time, memory, idle time"),
    ("g", "group by tag, folder, machine"),
    ("v", "show or hide what the selected session shows"),
    ("b", "ring the bell when a session begins to want input, or no more"),
    ("mouse", "click selects, twice attaches; with Shift the terminal selects text"),
    ("h ?", "this page"),
    ("q Ctrl-C", "quit; all sessions go on"),
)

ABOUT = (
    "IDLE: time since the last output. CPU%: share of one processor. MEM: memory in use,",
    "both of all processes of the session. Sessions that want input come first.",
)

KEYS = (
    ("Enter", "attach"), ("d", "decide"), ("t", "type"), ("n", "next"), ("x", "kill"), ("/", "filter"), ("?", "help"),
    ("q", "quit"),
)  # fmt: skip


class Load(NamedTuple):
    """What a session's processes take: percent of one processor (None until it was measured twice), bytes of memory."""

    cpu: float | None
    memory: int


class Row(Value):
    """One session of the table; `load` is None if it runs nothing, or nobody knows."""

    session: Session
    load: Load | None = None

    @cached_property
    def cells(self) -> Mapping[str, str]:
        """Its texts by the heads of their columns, but for what time alone changes."""
        return {one.head: one.text(self, 0.0) for one in COLUMNS if one.head != "IDLE"}

    @cached_property
    def name_key(self) -> Any:
        """By what it is sorted among those that are equal else."""
        return natural_key(self.session.address)

    @cached_property
    def words(self) -> str:
        """What a filter looks at."""
        one = self.session
        parts = (one.address, words_of(one), one.wants or "", one.profile or "", command(one.argv), question(one))
        return " ".join(parts).casefold()

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """How many columns of the terminal each of them takes."""
        return {head: columns(text) for head, text in self.cells.items()}


class Piece(NamedTuple):
    """A stretch of one line, without control characters. `style` is words: `bold dim key reverse error`, or a state."""

    text: str
    style: str = ""


Line = Sequence[Piece]


class Styled(NamedTuple):
    """A stretch of one line with SGR sequences (ECMA-48) in it, and no other control."""

    text: str


class Page(NamedTuple):
    """What stands on the terminal, line by line; `first` is the first line of the table that is visible, `owners` whose each
    line is, by the session's id."""

    lines: Sequence[Line]
    first: int = 0
    owners: Sequence[str | None] = ()


class View(NamedTuple):
    """What is to be seen of all sessions. `selected` is a session's id, `words` the filter, `order` a name of ORDERS,
    `group` one of GROUPS, `now` the wall clock; `first` is what the page before began with, `footer` stands in place of the
    keys; `problems` are of machines that do not answer."""

    rows: Sequence[Row]
    width: int
    height: int
    now: float
    selected: str | None = None
    words: str = ""
    order: str = "state"
    first: int = 0
    footer: Line | None = None
    group: str = ""
    problems: Sequence[MachineProblem] = ()


# text


def shown(text: str) -> str:
    """A program's text on one line: control characters as escapes, `?` for what no terminal draws."""
    text = flat(text)
    return text if text.isascii() else "".join(one if WIDTHS[one] >= 0 else "?" for one in text)


def _length(line: Line) -> int:
    return sum(columns(piece.text) for piece in line)


def clipped(line: Line, width: int) -> Line:
    """The line in at most so many columns."""
    found = []
    for piece in line:
        if width <= 0:
            break
        text = cut(piece.text, width)
        width -= columns(text)
        found.append(piece._replace(text=text))
    return found


# the rows


def words_of(one: Session) -> str:
    """A session's state as a person reads it: `busy`, `exited 2`, `asking confirm`, `idle (line)`."""
    return f"{state(one)} {shown(one.kind)}" if one.state is State.ASKING and one.kind else shown(state_and_kind(one))


def percent(load: Load | None) -> str:
    """Processor time: `0.0`, `98.2`, `1600`."""
    if load is None or load.cpu is None:
        return "-"
    return f"{load.cpu:.1f}" if load.cpu < 999.95 else f"{load.cpu:.0f}"


def memory(load: Load | None) -> str:
    """Bytes in at most five columns: `512K`, `9.8M`, `340M`, `1.2G`."""
    if load is None:
        return "-"
    amount, unit = load.memory / 1024, "K"
    for larger in "MGT":
        if amount < 999.5:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f}{unit}" if amount < 9.95 and unit != "K" else f"{amount:.0f}{unit}"


def question(one: Session) -> str:
    """The open question with its answers, empty if there is none."""
    if not one.asking:
        return ""
    text, answers = asked(one)
    return shown(f"{text}: {answers}" if answers else text)


ORDERS: Mapping[str, Callable[[Row], Any]] = {
    "state": lambda row: (State.ASKING if row.session.wants == INPUT else row.session.state).traits.rank,
    "name": lambda row: 0,
    "cpu": lambda row: -(row.load.cpu or 0.0) if row.load else 1,
    "mem": lambda row: -row.load.memory if row.load else 1,
    "idle": lambda row: (row.session.state.traits.over, row.session.active or "~"),
}
"""What the rows can be sorted by; those that are equal stand by name."""


def _folder(one: Session) -> str:
    home = os.path.expanduser("~")
    folder = one.cwd or "-"
    return folder.replace(home, "~", 1) if (folder + "/").startswith(home + "/") else folder


WANTING, HERE = "wants input", "this machine"

PROBLEMS_MOST = 3
"""Machines that do not answer of which a line says why."""

GROUPS: Mapping[str, Callable[[Session], str]] = {
    "": lambda one: "",
    "tag": lambda one: " ".join(one.tags) or "no tag",
    "folder": _folder,
    "machine": lambda one: WANTING if one.wants == INPUT else one.machine or HERE,
}
"""What the rows can be grouped by; who wants input comes first, whatever machine it is on."""

FIRST = {"": 0, WANTING: 0, HERE: 1}
"""The groups that stand before the others, which stand by name."""


class _GroupKeys(dict[str, tuple[Any, ...]]):
    """Where each group stands."""

    def __missing__(self, name: str) -> tuple[Any, ...]:
        self[name] = found = (FIRST.get(name, 2), natural_key(name))
        return found


def arranged(rows: Iterable[Row], words: str, order: str, group: str = "") -> list[Row]:
    """The rows that hold every word of the filter, by their groups and sorted inside each."""
    wanted = words.casefold().split()
    found = [row for row in rows if _holds(row, wanted)] if wanted else rows

    def place(row: Row) -> tuple[Any, ...]:
        one = row.session
        return keys[name := name_group(one)], name, rank(row), row.name_key, one.lasting_address

    name_group, rank, keys = GROUPS[group], ORDERS[order], _GroupKeys()
    return sorted(found, key=place)


def find_next_asking(rows: Sequence[Row], selected: str | None) -> str | None:
    """Of rows as they stand, the first one below the selected one, or else from the top, that wants input; its id."""
    ids = [row.session.lasting_address for row in rows]
    after = ids.index(selected) + 1 if selected in ids else 0
    return next(
        (row.session.lasting_address for row in (*rows[after:], *rows[:after]) if row.session.wants == INPUT), None
    )


def _holds(row: Row, words: Sequence[str]) -> bool:
    return all(row.session.state.value == word if State.of(word) else word in row.words for word in words)


# the table


class Column(NamedTuple):
    """One column: its head, the order it shows, how narrow and how wide it may be, and its text for a row."""

    head: str
    order: str
    least: int
    most: int
    text: Callable[[Row, float], str]
    right: bool = False


COLUMNS = (
    Column("NAME", "name", 8, 32, lambda row, now: row.session.address),
    Column("STATE", "state", 8, 16, lambda row, now: words_of(row.session)),
    Column("IDLE", "idle", 4, 4, lambda row, now: idle(row.session, now), right=True),
    Column("CPU%", "cpu", 5, 5, lambda row, now: percent(row.load), right=True),
    Column("MEM", "mem", 5, 5, lambda row, now: memory(row.load), right=True),
    Column("PROFILE", "", 7, 12, lambda row, now: shown(row.session.profile or "-")),
    Column("COMMAND", "", 10, 1000, lambda row, now: shown(command(row.session.argv))),
)
GOING = ("PROFILE", "MEM", "CPU%", "COMMAND", "IDLE")
"""The columns that are left out where there is no room, the first first."""

LESS_THAN_NAMES = ("PROFILE", "MEM", "CPU%")
"""Those that are left out before a name is cut."""


def page(view: View) -> Page:
    """The whole table: a head, the sessions, a footer."""
    found = arranged(view.rows, view.words, view.order, view.group)
    sizes = _sizes(view, found)
    above = [_summary(view, found)] if view.height >= 4 else []
    above += [_heads(view, sizes)] if view.height >= 3 else []
    room = max(0, view.height - len(above) - (view.height >= 2))
    body = _body(view, found, sizes)
    owners = [owner for owner, _ in body]
    first = _scrolled(view, owners, room)
    lines = [*above, *(draw() for _, draw in body[first : first + room])]
    whose = [*[None] * len(above), *owners[first : first + room]]
    lines += [[]] * (view.height - 1 - len(lines))
    lines.append(view.footer if view.footer is not None else _keys(view, found))
    return Page([clipped(line, view.width) for line in lines[-view.height :]], first, whose)


def _sizes(view: View, found: Sequence[Row]) -> list[tuple[Column, int]]:
    """The columns that fit, each with its width: numbers have theirs, texts what they need as far as there is room."""
    kept = list(COLUMNS)
    # a column of numbers is as wide as it may be
    needed = {
        one: one.most if one.right else max([len(one.head), *(row.sizes[one.head] for row in found)]) for one in COLUMNS
    }
    sizes = {one: one.least if one.right else min(needed[one], one.least) for one in COLUMNS}

    def left() -> int:
        return view.width - MARK + GAP - sum(GAP + sizes[one] for one in kept)

    def cut() -> int:
        """The columns by which names and states are cut."""
        return sum(max(0, min(needed[one], one.most) - sizes[one]) for one in kept if one.head in ("NAME", "STATE"))

    for head in GOING:
        # a name that is cut may be one of many
        if left() >= (cut() if head in LESS_THAN_NAMES else 0):
            break
        kept = [one for one in kept if one.head != head]
    for one in sorted(kept, key=lambda one: one.head != "STATE"):
        sizes[one] += max(0, min(left(), min(needed[one], one.most) - sizes[one]))
    return [(one, sizes[one]) for one in kept]


def _summary(view: View, rows: Sequence[Row]) -> Line:
    """How many sessions there are, by state; at the right the place of the selected one, the filter and the order. What
    matters less gives way."""
    number, found = len(view.rows), len(rows)
    place = next((place for place, row in enumerate(rows, 1) if row.session.lasting_address == view.selected), None)
    line = [Piece("tmuxctl  ", "bold"), Piece(f"{number} session{'' if number == 1 else 's'}")]
    counts = Counter(row.session.state for row in view.rows)
    for one in sorted(State, key=lambda state: state.traits.rank):
        if count := counts[one]:
            line += [Piece("  "), Piece(f"{count} {one.value}", one.value)]
    if _length(line) > view.width:
        line = [Piece(f"{number}:", "bold"), Piece(" "), *line[3:]]
    about = f"by {view.order}" + (f" and {view.group}" if view.group else "")
    if view.words:
        about = f"{found} with {shown(view.words)!r}, {about}"
    if place is not None:
        about = f"{place} of {about}" if view.words else f"{place} of {found}, {about}"
    blanks = view.width - _length(line) - columns(about) - 1
    return [*line, Piece(" " * blanks), Piece(about, "dim")] if blanks >= 2 else line


def _heads(view: View, sizes: Sequence[tuple[Column, int]]) -> Line:
    line = [Piece(" " * MARK)]
    for one, size in sizes:
        style = "bold" if one.order == view.order else "dim"
        line += [Piece(fit(one.head, size, right=one.right), style), Piece(" " * GAP)]
    return line[:-1]


def _body(
    view: View, found: Sequence[Row], sizes: Sequence[tuple[Column, int]]
) -> list[tuple[str | None, Callable[[], Line]]]:
    """The lines of the table, to be drawn as far as they are seen, and whose each is; where there is no session, what to do
    about it."""
    silent: list[tuple[str | None, Callable[[], Line]]] = [
        (None, partial(_problem_line, one)) for one in view.problems[:PROBLEMS_MOST]
    ]
    if (more := len(view.problems) - PROBLEMS_MOST) > 0:
        silent.append((None, lambda: [Piece(f"! and {more} more do not answer", "error")]))
    if not found:
        text = "no session matches; Escape ends the filter" if view.words else "no sessions; tmuxctl new -- COMMAND"
        return [*silent, (None, list), (None, lambda: [Piece("  " + text, "dim")])]
    lines = silent
    group = ""
    for row in found:
        if (now := GROUPS[view.group](row.session)) != group:
            group = now
            lines.append((None, partial(_group_line, now)))
        lines.append((row.session.lasting_address, partial(_row, view, row, sizes)))
        if row.session.asking:
            lines.append((row.session.lasting_address, partial(_question_line, row.session)))
    return lines


def _group_line(name: str) -> Line:
    return [Piece(shown(name), "bold")]


def _problem_line(one: MachineProblem) -> Line:
    return [Piece(f"! {shown(one.machine)}", "error"), Piece(f"  {one.reason}: {shown(one.message)}", "dim")]


def _question_line(one: Session) -> Line:
    return [Piece("    "), Piece("? " + question(one), State.ASKING.value)]


def _row(view: View, row: Row, sizes: Sequence[tuple[Column, int]]) -> Line:
    chosen = row.session.lasting_address == view.selected
    whole = "reverse" if chosen else "dim" if row.session.state.traits.over else ""
    line = [Piece(">" + " " * (MARK - 1) if chosen else " " * MARK, whole)]
    for one, size in sizes:
        style = whole
        if one.head == "STATE":
            style = f"{whole} {row.session.state.value}".strip()
        elif one.head == "NAME" and row.session.asking:
            style = f"{whole} bold".strip()
        text = row.cells.get(one.head) or one.text(row, view.now)
        line += [Piece(fit(text, size, right=one.right), style), Piece(" " * GAP, whole)]
    blanks = view.width - _length(line)
    return [*line, Piece(" " * max(0, blanks), whole)]


def _scrolled(view: View, owners: Sequence[str | None], room: int) -> int:
    """The first visible line: as before, as far as the selected session is seen whole and no room is wasted."""
    mine = [number for number, owner in enumerate(owners) if owner is not None and owner == view.selected]
    first = view.first
    if mine:
        first = min(max(first, mine[-1] + 1 - room), mine[0])
    return max(0, min(first, len(owners) - room))


def _keys(view: View, found: Sequence[Row]) -> Line:
    """As many of the keys as fit; the one that answers stands out where the selected session asks."""
    asks = any(row.session.lasting_address == view.selected and row.session.asking for row in found)
    line: list[Piece] = []
    for key, word in KEYS:
        style = State.ASKING.value if asks and word == "decide" else "key"
        more = [Piece("  " if line else " "), Piece(key, style), Piece(f" {word}")]
        if _length([*line, *more]) > view.width:
            break
        line += more
    return line


# other pages


def help_page(width: int, height: int) -> Page:
    """What the keys do."""
    lines: list[Line] = [[Piece("tmuxctl top", "bold")], []]
    lines += [[Piece("  "), Piece(f"{keys:12}", "key"), Piece(f"  {what}")] for keys, what in HELP]
    lines += [[], *([Piece(f"  {text}", "dim")] for text in ABOUT)]
    return _filled(lines, [Piece(" any key goes back", "dim")], width, height)


def question_page(one: Session, width: int, height: int, typed: str | None = None) -> Page:
    """A session's question with the key of each answer; `typed` is what was written where any text is an answer."""
    asking = one.asking
    assert asking is not None
    answers = asking.options[: len(ANSWER_KEYS)]
    risk = "  risk: high" if asking.risk == "high" else ""
    head: Line = [Piece(one.address, "bold"), Piece(" asks", State.ASKING.value), Piece(risk, "error")]
    text: list[Line] = [[Piece("  "), Piece(row)] for row in wrapped(shown(asking.question), width - 4)]
    choices = list(_answers(asking, answers))
    room = height - 1 - len(choices)
    if len(text) + 3 <= room:
        lines = [head, [], *text, [], *choices]
    else:
        # the answers are what is needed most
        lines = [head, *text][: max(0, room)] if room != 1 else text[:1]
        lines += choices
    footer: Line = [Piece(" one key answers", "dim")]
    for key in SPOKEN_KEYS:
        if (named := answer_of(key, [option.id for option in answers])) in SPOKEN_KEYS[key]:
            footer = [*footer, Piece(f"  {key}", "key"), Piece(f" {named}")]
    footer = [*footer, Piece("  Escape", "key"), Piece(" leaves")]
    if not answers:
        footer = writing("answer: ", typed or "", width)
    return _filled(lines, footer, width, height)


def answer_of(key: str, answers: Sequence[str]) -> str | None:
    """The answer that a key chooses, of these in the order of their numbers: by its number, or `y` for yes and `n` for no."""
    numbered = dict(zip(ANSWER_KEYS, answers, strict=False))
    return numbered.get(key) or next((one for one in SPOKEN_KEYS.get(key, ()) if one in answers), None)


def _answers(asking: Asking, answers: Sequence[Option]) -> Iterator[Line]:
    for key, answer in zip(ANSWER_KEYS, answers, strict=False):
        name, label = shown(answer.id), shown(answer.label)
        more = f" ({label})" if label and label != name else ""
        usual = "  (what Enter alone would choose)" if answer.id == asking.default else ""
        yield [Piece("  "), Piece(key, "key"), Piece(f"  {name}{more}"), Piece(usual, "dim")]


def wrapped(text: str, width: int) -> Iterator[str]:
    """The text in lines of at most so many columns, broken between words where that can be."""
    line = ""
    for word in text.split(" "):
        if line and columns(f"{line} {word}") > width:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
        while columns(line) > max(2, width):
            start = cut(line, max(2, width) + 1)[:-1]
            yield start
            line = line[len(start) :]
    yield line


def writing(label: str, text: str, width: int) -> Line:
    """A line a person writes; its end stays in sight."""
    text = shown(text)
    while text and columns(f" {label}{text} ") > width:
        text = text[1:]
    return [Piece(f" {label}", "key"), Piece(text), Piece(" ", "reverse")]


def _filled(lines: Sequence[Line], footer: Line, width: int, height: int) -> Page:
    body = list(lines[: max(0, height - 1)])
    body += [[]] * (height - 1 - len(body))
    return Page([clipped(line, width) for line in [*body, footer]][-height:])
