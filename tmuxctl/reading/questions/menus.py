"""Menus on the screen of a program that reads keys, with the keys that choose each option.

The keys answer this very screen: for a menu they count from the option that is marked now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from tmuxctl.reading.questions.questions import (
    CONTEXT,
    LABEL_LENGTH,
    MANY,
    RULED,
    asked,
    identity,
    risk_of,
    slug,
    undecorated,
    unframed,
)
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern
from tmuxctl.reading.text.patterns import Text
from tmuxctl.results import Asking, Option
from tmuxctl.value import changed
from tmuxctl.vocabulary import InputKind

LONGEST_OPTION = 3
"""Rows an option may go on for."""

MARKER = Pattern(r"^(?P<before>[\s│┃║|]*)(?P<marker>[❯›▸➤►▶→»●◉⦿>*])(?P<gap>\s+)(?P<label>\S.*)$")
LEAD = Pattern(r"[\s│┃║|○◯☐\[\]()]*")
FILLED = "●◉⦿"
HOLLOW = Pattern(r"^(?P<before>[\s│┃║|]*)(?P<mark>[●◉⦿◼■☑☒○◯◻□☐])(?P<gap>\s+)(?P<label>\S.*)$")
"""A row of a list whose options have a circle or a box each, filled where they are chosen."""

TOGGLE = Pattern(
    r"(?:^|[\s│┃║|›»])(?P<left>[●○◉◯⦿]\s*)?(?P<one>yes|no)\s*/\s*(?P<right>[●○◉◯⦿]\s*)?(?P<other>yes|no)\s*$",
    re.IGNORECASE,
)
"""`● Yes / ○ No`, `› no / yes`: the two answers beside each other."""

TOGGLE_ROWS = 4
NUMBERED = Pattern(r"^(?P<number>\d{1,2}|[a-z])[.)\]:]\s+(?P<label>\S.*)$")
WANTS = Pattern(
    r"\b(?:do you want|would you like|allow|approve|permission|proceed|apply this|run this)\b", re.IGNORECASE
)
ALLOW, ALWAYS, DENY = "allow", "always", "deny"

NO = Pattern(
    r"^(?:no|nope|don'?t|do not|deny|reject|decline|refuse|cancel|abort|quit|exit|back|never|stop|skip|disagree)\b",
    re.IGNORECASE,
)
YES = Pattern(
    r"^(?:y|yes|yep|ok|okay|allow|approve|accept|proceed|trust|continue|confirm|run|apply|grant|authori[sz]e|agree|sure)\b",
    re.IGNORECASE,
)
WIDER = Pattern(
    r"\b(?:always|all|every(?:thing| time)?|any|session|permanent\w*|forever|from now on|remember|parent|bypass|auto(?:-\w+)?"
    r"|don'?t ask|do not ask|without asking|never ask|future|full access)\b",
    re.IGNORECASE,
)
"""What an option that allows more than is asked about now says of itself."""

TRUST = Pattern(r"\btrust\b", re.IGNORECASE)


def on_screen(seen: Text, cursor: tuple[int, int], *, visible: bool) -> Asking | None:
    """A menu that takes keys: yes and no beside each other, or a list with a marked option."""
    return _toggle(seen) or _menu(seen, cursor, visible=visible) or _circles(seen)


def below_cursor(seen: Text, cursor: tuple[int, int]) -> Asking | None:
    """A list to choose from below the row in which a person writes what to look for in it: `? Which host` above that."""
    asks = [unframed(row) for row in (*seen.above(1), seen.rows[cursor[1]] if cursor[1] < len(seen.rows) else "")]
    if not any(row.startswith("? ") for row in asks):
        return None
    found = _menu(changed(seen, rows=("",) * (cursor[1] + 1) + seen.rows[cursor[1] + 1 :]), cursor, visible=True)
    return changed(found, question=asks[0] or asks[-1]) if found else None


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
        if visible and cursor[1] == y and cursor[0] >= len(unframed(seen.rows[y], keep_left=True)):
            continue
        column = marked.start("label")
        if marked["marker"] in FILLED and (circles := _circled(seen.rows, y)):
            return _listed(seen, circles, y)
        items = [*_items(seen.rows, y, column, -1), _item(y, seen.rows[y][column:]), *_items(seen.rows, y, column, 1)]
        if _is_list(items, marked["marker"]) and not (visible and _writes(items, seen.rows, cursor)):
            return _listed(seen, items, y)
    return None


def _circled(rows: Sequence[str], y: int) -> list[_Item]:
    """The options around this one that have a circle or a box each, in the same column; none if it is the only one."""
    found: dict[int, _Item] = {}
    column = HOLLOW.match(rows[y])
    for step in (-1, 1):
        at = y
        while 0 <= at < len(rows) and len(found) < MANY and (one := HOLLOW.match(rows[at])):
            if column is None or one.start("label") != column.start("label"):
                break
            found[at] = _item(at, one["label"])
            at += step
    marks = {one["mark"] for at in found if (one := HOLLOW.match(rows[at]))}
    # rows that all begin with the same filled circle are paragraphs
    return [found[at] for at in sorted(found)] if len(found) > 1 and marks - set(FILLED) else []


def _circles(seen: Text) -> Asking | None:
    """A list with a circle or a box for each option of which the marked one shows by its colour only: the keys for an
    option are not known."""
    for y in range(len(seen.rows) - 1, max(0, len(seen.rows) - patterns.BOTTOM) - 1, -1):
        items = _circled(seen.rows, y) if HOLLOW.match(seen.rows[y]) else []
        if items:
            return changed(_listed(seen, items, y), options=(), default=None)
    return None


def _toggle(seen: Text) -> Asking | None:
    """Yes and no beside each other at the bottom."""
    for y in range(len(seen.rows) - 1, max(0, len(seen.rows) - TOGGLE_ROWS) - 1, -1):
        found = TOGGLE.search(seen.rows[y])
        if not found or found["one"].lower() == found["other"].lower():
            continue
        words = [found["one"], found["other"]]
        filled = [bool(mark and mark.strip() in FILLED) for mark in (found["left"], found["right"])]
        keys = [("Enter",) if filled[index] else (key, "Enter") for index, key in enumerate(("Left", "Right"))]
        options = tuple(Option(word.lower(), word, key) for word, key in zip(words, keys, strict=True))
        near = [
            unframed(seen.rows[y][: found.start()]).rstrip(" ›»"),
            *(unframed(row) for row in reversed(seen.rows[max(0, y - 2) : y])),
        ]
        question = next((row for row in near if row and not RULED.match(row)), "")
        default = words[filled.index(True)].lower() if True in filled else None
        return asked(InputKind.CONFIRM, seen, question, options, default)
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
    label = undecorated(label)
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
    above = [
        unframed(row) for row in seen.rows[max(0, kept[0].row - 2 * CONTEXT) : kept[0].row] if not RULED.match(row)
    ]
    question = _question_above(above)
    labels = [one.label for one in kept]
    kind = choice_kind(question, labels)
    decides = kind.traits.decides
    ids = decisions(labels) if decides else names(one.number or one.label for one in kept)
    options = tuple(
        Option(name, one.label, (*steps(index - at), "Enter"))
        for index, (name, one) in enumerate(zip(ids, kept, strict=True))
    )
    default = default_of(kind, options[at].id)
    risk = risk_of([question, *above[-CONTEXT:]])
    return Asking(kind, identity(kind, question, [*above, *labels]), question, options, default, risk)


def _question_above(above: Sequence[str]) -> str:
    """The question above a menu with what it is about: from the row that asks on, or the nearest row."""
    rows = [row for row in above if row]
    asks = [at for at, row in enumerate(rows) if row.endswith("?") or WANTS.search(row)]
    return " ".join(rows[asks[-1] if asks else -1 :])[:LABEL_LENGTH]


def steps(count: int) -> tuple[str, ...]:
    """The keys that move the mark so many options down, or up."""
    return ("Down",) * count if count > 0 else ("Up",) * -count


def names(labels: Iterable[str]) -> Iterator[str]:
    """The id of each option: its number or its words, and where those are another's, too, its place."""
    given: set[str] = set()
    for index, label in enumerate(labels, 1):
        name = slug(label) or str(index)
        if name in given:
            name = f"{name}-{index}"
        given.add(name)
        yield name


def choice_kind(question: str, labels: Sequence[str]) -> InputKind:
    """What is decided by choosing one of these: trust, an approval, or no more than a choice."""
    words = [label.lower() for label in labels]
    if TRUST.search(question) or (words and TRUST.search(words[0])):
        return InputKind.TRUST
    if any(word.startswith(("yes", "allow")) for word in words) and any(
        word.startswith(("no", "deny", "don", "reject", "cancel")) for word in words
    ):
        return InputKind.APPROVAL
    return InputKind.APPROVAL if WANTS.search(question) else InputKind.CHOICE


def decisions(labels: Sequence[str]) -> list[str]:
    """An id for each option of an approval, by its words: the first that allows, allows more, or denies has that for its
    id, others have their words."""
    ids: list[str] = []
    for place, label in enumerate(labels, 1):
        wanted = (_decision(label), slug(label), f"{slug(label)}-{place}".strip("-"))
        ids.append(next(name for name in wanted if name and name not in ids))
    return ids


def _decision(label: str) -> str | None:
    words = label.strip()
    if NO.search(words):
        # `Don't ask again` of one who says neither yes nor no denies for good: words of its own
        return None if WIDER.search(words) and not words.lower().startswith("no") else DENY
    if WIDER.search(words):
        return ALWAYS
    return ALLOW if YES.search(words) else None


def default_of(kind: InputKind, marked: str | None) -> str | None:
    """What Enter alone chooses, where nobody has to think twice: what widens a permission is no default, trust has none."""
    widens = marked is None or marked.startswith(ALWAYS)
    return None if kind.traits.explicit or widens else marked
