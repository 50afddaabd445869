"""From a screen to the question on it: its kind, its text, the options with the keys that choose them, and an id.

The keys answer this very screen: for a menu they count from the option that is marked now. Nothing here answers anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

from tmuxctl.reading import patterns
from tmuxctl.reading.lazy import Pattern
from tmuxctl.reading.patterns import Match, Text
from tmuxctl.results import Asking, Option

CONTEXT = 4
"""Rows above a question that belong to it."""

SHORT = 12
"""A question shorter than this needs the row above to be understood."""

LABEL_LENGTH = 200
LONGEST_OPTION = 3
"""Rows an option may go on for."""

MANY = 40
"""Options of a menu that are told."""

DESTRUCTIVE = Pattern(
    r"\b(?:delet\w+|remov\w+|overwrit\w+|rm -\w*[rf]|drop(?:ping)?|truncat\w+|format(?:ting)?|eras\w+|wip\w+|destroy\w*|purg\w+"
    r"|uninstall\w*|discard\w*|force[- ]push|reset --hard|permanent\w*|irreversibl\w+)\b",
    re.IGNORECASE,
)

# what moves by itself: a clock, a counter of seconds, a spinner
MOVING = Pattern(r"\b\d{1,2}:\d{2}(?::\d{2})?\b|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds|%)(?!\w)|[⠁-⣿◐◓◑◒✢✳✶✻✽█▌]")

MARKER = Pattern(r"^(?P<before>[\s│┃║|]*)(?P<marker>[❯›▸➤►▶→»●◉⦿>*])(?P<gap>\s+)(?P<label>\S.*)$")
LEAD = Pattern(r"[\s│┃║|○◯☐\[\]()]*")
NUMBERED = Pattern(r"^(?P<number>\d{1,2}|[a-z])[.)\]:]\s+(?P<label>\S.*)$")
LISTED = Pattern(r"^\s*\(?(?P<number>\d{1,2})[.)\]:]\s+(?P<label>\S.*)$")
CHOOSING = Pattern(
    r"(?:^#\?|\b(?:choose|choice|select\w*|pick|option|number|enter)\b[^\n]{0,60}[:?>]|\[\d+(?:-\d+)?\]:?|\(\d+-\d+\):?)$",
    re.I,
)
FRAME = Pattern(r"[\s│┃║|]+$")
WANTS = Pattern(
    r"\b(?:do you want|would you like|allow|approve|permission|proceed|apply this|run this)\b", re.IGNORECASE
)
TRUST = Pattern(r"\btrust\b", re.IGNORECASE)
RULED = Pattern(r"^[\s─━═╌╭╮╰╯┌┐└┘│┃-]*$")


class Tells(NamedTuple):
    """What is known beside the text: `single`: keys count at once, without Enter; `raw`: the program reads keys, not lines;
    `pager`: the reader shows a text page by page; `secret`: what is typed is not shown; `line`: an answer is written at the
    cursor, which a program that draws a whole screen may keep anywhere."""

    single: bool = False
    raw: bool = False
    pager: bool = False
    secret: bool = False
    line: bool = True


def by_rule(match: Match, seen: Text) -> Asking:
    """The question a profile's rule found."""
    rule = match.rule
    question = _worded(match)
    options = tuple(Option(name, name, tuple(keys)) for name, keys in rule.options.items())
    rows = match.region.split("\n")
    at = match.region.count("\n", 0, match.found.start())
    near = rows[max(0, at - 2 * CONTEXT) : at + patterns.BOTTOM]
    if rule.where in ("cursor-line", "last-line"):
        near = [*seen.above(2 * CONTEXT), *near]
    risk = rule.risk if rule.risk != "unknown" else _risk([question])
    return Asking(rule.kind or "question", _id(rule.id, question, near), question, options, rule.default, risk)


def _worded(match: Match) -> str:
    """The question's text: what its own pattern tells, else the row that fitted."""
    pattern = patterns.compiled(match.rule.question) if match.rule.question else None
    if pattern and "q" in pattern.groupindex:
        found = list(pattern.finditer(match.region))
        nearest = [one for one in found if one.start() <= match.found.end()] or found
        if nearest and nearest[-1]["q"]:
            return nearest[-1]["q"].strip()
    start = match.region.rfind("\n", 0, match.found.start()) + 1
    end = match.region.find("\n", match.found.end())
    row = match.region[start : end if end >= 0 else None].strip()
    return _unframed(row.split("\n")[0])


def at_cursor(seen: Text, tells: Tells) -> Asking | None:
    """The question that stands left of the cursor, or that a pager or a secret's reader stands for."""
    left = seen.left.rstrip()
    if tells.secret:
        return _asking("password", seen, _question(seen, left) or "password")
    if tells.pager:
        return _pager(seen)
    if found := patterns.SPELLED.search(left):
        return _asking("confirm", seen, _until(seen, left, found), _spelled(left, found, tells), _default(found[1]))
    if found := patterns.LETTERS.search(left):
        return _letters(seen, left, found, tells)
    if found := patterns.CONFIRM.search(left):
        options, default = _yes_or_no(found[0], tells)
        return _asking("confirm", seen, _until(seen, left, found), options, default)
    if found := patterns.SLASHED.search(left):
        return _letters(seen, left, found, tells)
    if patterns.MORE.search(left.strip()) and (tells.raw or left.strip() != ":"):
        return _pager(seen)
    if patterns.pauses(left):
        return _asking("keys", seen, _question(seen, left), (Option("continue", "continue", ("Enter",)),), "continue")
    if (tells.raw or tells.single) and patterns.SECRET.search(left):
        return _asking("password", seen, _question(seen, left))
    return _numbers(seen, left, tells) or _plain(seen, left) if tells.line else None


def _plain(seen: Text, left: str) -> Asking | None:
    """A question that wants yes or no, but does not say how: any text is an answer."""
    return _asking("question", seen, _question(seen, left)) if patterns.SURELY.search(left.strip()) else None


def on_screen(seen: Text, cursor: tuple[int, int], *, visible: bool) -> Asking | None:
    """A dialog or menu that takes keys: buttons, or a list with a marked option."""
    return _menu(seen, cursor, visible=visible) or _buttons(seen, cursor)


# Options that are typed


def _typed(word: str, tells: Tells) -> tuple[str, ...]:
    return (*word,) if tells.single and len(word) == 1 else (*word, "Enter")


def _letters(seen: Text, left: str, found: re.Match[str], tells: Tells) -> Asking:
    letters = list(dict.fromkeys(re.split(r"[,/]", found[1])))
    options = tuple(Option(one, one, _typed(one, tells)) for one in letters)
    capital = [one for one in letters if one.isupper()]
    # with both cases among them, a letter and its capital are two answers
    default = capital[0] if len(capital) == 1 and capital[0].lower() not in letters else None
    return _asking("approval", seen, _until(seen, left, found), options, default)


def _yes_or_no(found: str, tells: Tells) -> tuple[tuple[Option, ...], str | None]:
    """The options of `[Y/n]`, `(yes/no/[fingerprint])`, `(y or [n])`, and what Enter alone would say."""
    closed = max(found.rfind(one) for one in "])>")
    inside = found[found[0] in "[(<" : closed if closed >= 0 else None]
    words = [(one, one.strip("[]")) for one in re.findall(r"\[?\w+\]?", inside) if one != "or"]
    options = []
    default = None
    for word, plain in words:
        name = {"y": "yes", "n": "no"}.get(plain.lower(), plain.lower())
        bracketed = word != plain
        if plain[:1].isupper() or (bracketed and len(words) == 2):
            default = name if default is None else ""
        # `[fingerprint]` stands for a text of one's own: no key chooses it
        if not (bracketed and len(plain) > 3):
            options.append(Option(name, plain, _typed(plain.lower(), tells)))
    return tuple(options), default or None


def _spelled(left: str, found: re.Match[str], tells: Tells) -> tuple[Option, ...]:
    pairs = re.findall(r"\((\w)\)([\w' ]{1,20})", found[0])
    return tuple(Option(_slug(a + b), (a + b).strip(), _typed(a.lower(), tells)) for a, b in pairs)


def _default(word: str | None) -> str | None:
    return _slug(word) if word else None


def _numbers(seen: Text, left: str, tells: Tells) -> Asking | None:
    """A list of numbered answers above, one of which is to be typed."""
    if not CHOOSING.search(left.strip()):
        return None
    rows = [part for row in seen.above(patterns.BOTTOM * 2) for part in re.split(r"\s{2,}(?=\d{1,2}\) )", row)]
    found: list[tuple[str, str]] = []
    for row in reversed(rows):
        listed = LISTED.match(row)
        if listed:
            found.append((listed["number"], listed["label"].strip()))
        elif found and row.strip():
            break
        if found and found[-1][0] == "1":
            break
    if len(found) < 2 or found[-1][0] not in ("0", "1"):
        return None
    options = tuple(Option(number, label[:LABEL_LENGTH], _typed(number, tells)) for number, label in reversed(found))
    return _asking("choice", seen, _question(seen, left), options[:MANY])


def _pager(seen: Text) -> Asking:
    options = (Option("more", "more", ("Space",)), Option("quit", "quit", ("q",)))
    return _asking("pager", seen, _unframed(seen.rows[-1]) if seen.rows else "", options, "more")


# Options that are chosen with keys


class _Item(NamedTuple):
    row: int
    label: str
    number: str | None


def _menu(seen: Text, cursor: tuple[int, int], *, visible: bool) -> Asking | None:
    """A list whose present option is marked: `❯ 1. Yes` above `  2. No`."""
    start = max(0, len(seen.rows) - patterns.BOTTOM)
    for y in range(len(seen.rows) - 1, start - 1, -1):
        marked = MARKER.match(seen.rows[y])
        if not marked:
            continue
        # a person is typing there: a prompt, not a menu
        if visible and cursor[1] == y and cursor[0] >= len(_unframed(seen.rows[y], keep_left=True)):
            continue
        column = marked.start("label")
        items = [*_items(seen.rows, y, column, -1), _item(y, seen.rows[y][column:]), *_items(seen.rows, y, column, 1)]
        if _is_list(items, marked["marker"]) and not (visible and _writes(items, seen.rows, cursor)):
            return _listed(seen, items, y)
    return None


def _items(rows: Sequence[str], y: int, column: int, step: int) -> list[_Item]:
    """The options above (step -1) or below (step 1) the marked one: their text begins in the same column, what stands
    further right goes on with an option."""
    found: list[_Item] = []
    at, further = y + step, 0
    while 0 <= at < len(rows) and len(found) < MANY and further <= LONGEST_OPTION:
        row = rows[at]
        lead, rest = row[:column], row[column:]
        if not rest.strip() or not LEAD.fullmatch(lead) or MARKER.match(row):
            break
        if rest[0].isspace():
            further += 1
        else:
            found.append(_item(at, rest))
            further = 0
        at += step
    return found[::step]


def _item(row: int, label: str) -> _Item:
    label = _unframed(label)
    numbered = NUMBERED.match(label)
    return _Item(
        row, (numbered["label"] if numbered else label)[:LABEL_LENGTH], numbered["number"] if numbered else None
    )


def _is_list(items: Sequence[_Item], marker: str) -> bool:
    """Two or more options; where the marker is a common character they must also be numbered one after the other."""
    numbers = [one.number for one in items]
    counted = [number for number in numbers if number and number.isdigit()]
    ordered = len(counted) >= 2 and all(int(b) == int(a) + 1 for a, b in pairwise(counted))
    return len(items) >= 2 and (ordered or marker in "❯›▸➤►▶→»◉⦿")


def _writes(items: Sequence[_Item], rows: Sequence[str], cursor: tuple[int, int]) -> bool:
    """A person writes a text of several lines behind a prompt: the cursor stands at the end of one of them."""
    x, y = cursor
    numbered = all(one.number for one in items)
    return not numbered and any(one.row == y and x >= len(rows[y].rstrip(" │┃║|")) for one in items)


def _listed(seen: Text, items: Sequence[_Item], marked: int) -> Asking:
    # an option of several rows is one: where they are numbered, the others go on with the one above
    kept = [one for one in items if one.number] if sum(bool(one.number) for one in items) >= 2 else list(items)
    at = max((index for index, one in enumerate(kept) if one.row <= marked), default=0)
    options = tuple(
        Option(name, one.label, (*_steps(index - at), "Enter"))
        for index, (name, one) in enumerate(zip(_names(kept), kept, strict=True))
    )
    above = [
        _unframed(row) for row in seen.rows[max(0, kept[0].row - 2 * CONTEXT) : kept[0].row] if not RULED.match(row)
    ]
    question = _asked(above)
    labels = [one.label for one in kept]
    kind = _choice_kind(question, labels)
    risk = _risk([question, *above[-CONTEXT:]])
    return Asking(kind, _id(kind, question, [*above, *labels]), question, options, options[at].id, risk)


def _asked(above: Sequence[str]) -> str:
    """The question above a menu with what it is about: from the row that asks on, or the nearest row."""
    rows = [row for row in above if row]
    asks = [at for at, row in enumerate(rows) if row.endswith("?") or WANTS.search(row)]
    return " ".join(rows[asks[-1] if asks else -1 :])[:LABEL_LENGTH]


def _steps(count: int) -> tuple[str, ...]:
    return ("Down",) * count if count > 0 else ("Up",) * -count


def _names(items: Iterable[_Item]) -> Iterator[str]:
    given: set[str] = set()
    for index, one in enumerate(items, 1):
        name = one.number or _slug(one.label) or str(index)
        if name in given:
            name = f"{name}-{index}"
        given.add(name)
        yield name


def _choice_kind(question: str, labels: Sequence[str]) -> str:
    words = [label.lower() for label in labels]
    if TRUST.search(question) or (words and TRUST.search(words[0])):
        return "trust"
    if any(word.startswith(("yes", "allow")) for word in words) and any(
        word.startswith(("no", "deny", "don", "reject", "cancel")) for word in words
    ):
        return "approval"
    return "approval" if WANTS.search(question) else "choice"


def _buttons(seen: Text, cursor: tuple[int, int]) -> Asking | None:
    """A box with buttons: `<Yes> <No>`."""
    for y in range(len(seen.rows) - 1, max(0, len(seen.rows) - patterns.BOTTOM) - 1, -1):
        found = list(patterns.BUTTON.finditer(seen.rows[y]))
        if not found or (len(found) == 1 and not RULED.match(patterns.BUTTON.sub("", seen.rows[y]))):
            continue
        words = [one[1].lower() for one in found]
        focus = next(
            (index for index, one in enumerate(found) if cursor[1] == y and one.start() <= cursor[0] < one.end()), None
        )
        options = tuple(
            Option(word, one[1], _pressed(index, focus, word))
            for index, (word, one) in enumerate(zip(words, found, strict=True))
        )
        above = [_unframed(row) for row in seen.rows[max(0, y - patterns.BOTTOM) : y] if not RULED.match(row)]
        question = next((row for row in above if row), "")
        kind = "approval" if {"yes", "no"} <= set(words) else "choice"
        default = words[focus] if focus is not None else None
        return Asking(kind, _id(kind, question, [*above, *words]), question, options, default, _risk(above[-CONTEXT:]))
    return None


def _pressed(index: int, focus: int | None, word: str) -> tuple[str, ...]:
    """The keys for a button. Where the focus cannot be seen, Enter is the program's own choice and Escape none at all."""
    if focus is not None:
        return ("Tab",) * (index - focus) + ("Enter",) if index >= focus else ("BTab",) * (focus - index) + ("Enter",)
    return ("Escape",) if word in ("no", "cancel", "abort", "back") else ("Tab",) * index + ("Enter",)


# The question's text, its id, its risk


def _asking(
    kind: str, seen: Text, question: str, options: tuple[Option, ...] = (), default: str | None = None
) -> Asking:
    known = default if any(one.id == default for one in options) else None
    risk = _risk([question]) if kind not in ("password", "pager", "keys") else "unknown"
    return Asking(kind, _id(kind, question, seen.above(patterns.BOTTOM)), question, options, known, risk)


def _until(seen: Text, left: str, found: re.Match[str]) -> str:
    """The question up to the end of its pattern's brackets: what was typed behind it is no part of it."""
    closed = max(left.rfind(one, found.start()) for one in "])>?:")
    return _question(seen, left[: closed + 1] if closed >= 0 else left)


def _question(seen: Text, left: str) -> str:
    """The text left of the cursor, with the row above where it is too short to be understood."""
    text = _unframed(left)
    above = [_unframed(row) for row in seen.above(3) if _unframed(row)]
    return f"{above[-1]} {text}".strip() if len(text) < SHORT and above else text


def _unframed(row: str, *, keep_left: bool = False) -> str:
    """A row without the box around it."""
    row = FRAME.sub("", row)
    return row if keep_left else row.lstrip(" \t│┃║|")


def _slug(label: str) -> str:
    words = re.findall(r"\w+", label.replace("'", "").lower())
    return "-".join(words)[:24].strip("-")


def _risk(rows: Iterable[str]) -> str:
    return "high" if any(DESTRUCTIVE.search(row) for row in rows) else "unknown"


def _id(rule: str, question: str, rows: Iterable[str]) -> str:
    """Eight hexadecimal digits: the same for the same question on the same screen, whatever ticks on it."""
    still = [MOVING.sub("", row).strip() for row in (rule, question, *rows)]
    return f"{crc32(chr(10).join(still).encode(errors='replace')):08x}"
