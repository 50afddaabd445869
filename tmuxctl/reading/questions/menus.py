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
    assess_risk,
    build_question,
    make_question_id,
    slug,
    strip_decoration,
    strip_frame,
)
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern
from tmuxctl.reading.text.patterns import ScreenText
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


def find_menu(screen: ScreenText, cursor: tuple[int, int], *, visible: bool) -> Asking | None:
    """A menu that takes keys: yes and no beside each other, or a list with a marked option."""
    return _find_toggle(screen) or _find_marked_list(screen, cursor, visible=visible) or _find_circles(screen)


def find_menu_below_cursor(screen: ScreenText, cursor: tuple[int, int]) -> Asking | None:
    """A list to choose from below the row in which a person writes what to look for in it: `? Which host` above that."""
    asks = [
        strip_frame(row) for row in (*screen.above(1), screen.rows[cursor[1]] if cursor[1] < len(screen.rows) else "")
    ]
    if not any(row.startswith("? ") for row in asks):
        return None
    found = _find_marked_list(
        changed(screen, rows=("",) * (cursor[1] + 1) + screen.rows[cursor[1] + 1 :]), cursor, visible=True
    )
    return changed(found, question=asks[0] or asks[-1]) if found else None


class _MenuOption(NamedTuple):
    row: int
    label: str
    number: str | None


def _find_marked_list(screen: ScreenText, cursor: tuple[int, int], *, visible: bool) -> Asking | None:
    """A list whose present option is marked: `❯ 1. Yes` above `  2. No`."""
    start = max(0, len(screen.rows) - patterns.BOTTOM)
    for y in range(len(screen.rows) - 1, start - 1, -1):
        marked = MARKER.match(screen.rows[y])
        if not marked:
            continue
        # a person is typing there: a prompt, not a menu
        if visible and cursor[1] == y and cursor[0] >= len(strip_frame(screen.rows[y], keep_left=True)):
            continue
        column = marked.start("label")
        if marked["marker"] in FILLED and (circles := _list_circled(screen.rows, y)):
            return _build_list_question(screen, circles, y)
        items = [
            *_list_options(screen.rows, y, column, -1),
            _parse_option(y, screen.rows[y][column:]),
            *_list_options(screen.rows, y, column, 1),
        ]
        if _is_list(items, marked["marker"]) and not (visible and _is_being_written(items, screen.rows, cursor)):
            return _build_list_question(screen, items, y)
    return None


def _list_circled(rows: Sequence[str], y: int) -> list[_MenuOption]:
    """The options around this one that have a circle or a box each, in the same column; none if it is the only one."""
    found: dict[int, _MenuOption] = {}
    column = HOLLOW.match(rows[y])
    for step in (-1, 1):
        at = y
        while 0 <= at < len(rows) and len(found) < MANY and (match := HOLLOW.match(rows[at])):
            if column is None or match.start("label") != column.start("label"):
                break
            found[at] = _parse_option(at, match["label"])
            at += step
    marks = {match["mark"] for at in found if (match := HOLLOW.match(rows[at]))}
    # rows that all begin with the same filled circle are paragraphs
    return [found[at] for at in sorted(found)] if len(found) > 1 and marks - set(FILLED) else []


def _find_circles(screen: ScreenText) -> Asking | None:
    """A list with a circle or a box for each option of which the marked one shows by its colour only: the keys for an
    option are not known."""
    for y in range(len(screen.rows) - 1, max(0, len(screen.rows) - patterns.BOTTOM) - 1, -1):
        items = _list_circled(screen.rows, y) if HOLLOW.match(screen.rows[y]) else []
        if items:
            return changed(_build_list_question(screen, items, y), options=(), default=None)
    return None


def _find_toggle(screen: ScreenText) -> Asking | None:
    """Yes and no beside each other at the bottom."""
    for y in range(len(screen.rows) - 1, max(0, len(screen.rows) - TOGGLE_ROWS) - 1, -1):
        found = TOGGLE.search(screen.rows[y])
        if not found or found["one"].lower() == found["other"].lower():
            continue
        words = [found["one"], found["other"]]
        filled = [bool(mark and mark.strip() in FILLED) for mark in (found["left"], found["right"])]
        keys = [("Enter",) if filled[index] else (key, "Enter") for index, key in enumerate(("Left", "Right"))]
        options = tuple(Option(word.lower(), word, key) for word, key in zip(words, keys, strict=True))
        near = [
            strip_frame(screen.rows[y][: found.start()]).rstrip(" ›»"),
            *(strip_frame(row) for row in reversed(screen.rows[max(0, y - 2) : y])),
        ]
        question = next((row for row in near if row and not RULED.match(row)), "")
        default = words[filled.index(True)].lower() if True in filled else None
        return build_question(InputKind.CONFIRM, screen, question, options, default)
    return None


def _list_options(rows: Sequence[str], y: int, column: int, step: int) -> list[_MenuOption]:
    """The options above (step -1) or below (step 1) the marked one: their text begins in the same column, what stands
    further right goes on with an option."""
    found: list[_MenuOption] = []
    at, further = y + step, 0
    while 0 <= at < len(rows) and len(found) < MANY and further <= LONGEST_OPTION:
        row = rows[at]
        lead, rest = row[:column], row[column:]
        if not rest.strip() or not LEAD.fullmatch(lead) or MARKER.match(row):
            break
        if rest[0].isspace():
            further += 1
        else:
            found.append(_parse_option(at, rest))
            further = 0
        at += step
    return found[::step]


def _parse_option(row: int, label: str) -> _MenuOption:
    label = strip_decoration(label)
    numbered = NUMBERED.match(label)
    return _MenuOption(
        row, (numbered["label"] if numbered else label)[:LABEL_LENGTH], numbered["number"] if numbered else None
    )


def _is_list(items: Sequence[_MenuOption], marker: str) -> bool:
    """Two or more options; where the marker is a common character they must also be numbered one after the other."""
    numbers = [option.number for option in items]
    counted = [number for number in numbers if number and number.isdigit()]
    ordered = len(counted) >= 2 and all(int(b) == int(a) + 1 for a, b in pairwise(counted))
    return len(items) >= 2 and (ordered or marker in "❯›▸➤►▶→»◉⦿")


def _is_being_written(items: Sequence[_MenuOption], rows: Sequence[str], cursor: tuple[int, int]) -> bool:
    """A person writes a text of several lines behind a prompt: the cursor stands at the end of one of them."""
    x, y = cursor
    numbered = all(option.number for option in items)
    return not numbered and any(option.row == y and x >= len(rows[y].rstrip(" │┃║|")) for option in items)


def _build_list_question(screen: ScreenText, listed: Sequence[_MenuOption], marked: int) -> Asking:
    # an option of several rows is one: where they are numbered, the others go on with the one above
    numbered = [option for option in listed if option.number]
    listed_options = numbered if len(numbered) >= 2 else list(listed)
    at = max((index for index, option in enumerate(listed_options) if option.row <= marked), default=0)
    above = [
        strip_frame(row)
        for row in screen.rows[max(0, listed_options[0].row - 2 * CONTEXT) : listed_options[0].row]
        if not RULED.match(row)
    ]
    question = _find_question_above(above)
    labels = [option.label for option in listed_options]
    kind = classify_choice(question, labels)
    decides = kind.traits.decides
    names = (option.number or option.label for option in listed_options)
    ids = make_decision_ids(labels) if decides else make_option_ids(names)
    options = tuple(
        Option(name, option.label, (*arrow_keys(index - at), "Enter"))
        for index, (name, option) in enumerate(zip(ids, listed_options, strict=True))
    )
    default = find_default(kind, options[at].id)
    risk = assess_risk([question, *above[-CONTEXT:]])
    return Asking(kind, make_question_id(kind, question, [*above, *labels]), question, options, default, risk)


def _find_question_above(above: Sequence[str]) -> str:
    """The question above a menu with what it is about: from the row that asks on, or the nearest row."""
    rows = [row for row in above if row]
    asks = [at for at, row in enumerate(rows) if row.endswith("?") or WANTS.search(row)]
    return " ".join(rows[asks[-1] if asks else -1 :])[:LABEL_LENGTH]


def arrow_keys(count: int) -> tuple[str, ...]:
    """The keys that move the mark `count` options down, or up where it is negative."""
    return ("Down",) * count + ("Up",) * -count


def make_option_ids(labels: Iterable[str]) -> Iterator[str]:
    """The id of each option: its number or its words, and where those are another's, too, its place."""
    given: set[str] = set()
    for index, label in enumerate(labels, 1):
        name = slug(label) or str(index)
        if name in given:
            name = f"{name}-{index}"
        given.add(name)
        yield name


def classify_choice(question: str, labels: Sequence[str]) -> InputKind:
    """What is decided by choosing one of these: trust, an approval, or no more than a choice."""
    words = [label.lower() for label in labels]
    if TRUST.search(question) or (words and TRUST.search(words[0])):
        return InputKind.TRUST
    if any(word.startswith(("yes", "allow")) for word in words) and any(
        word.startswith(("no", "deny", "don", "reject", "cancel")) for word in words
    ):
        return InputKind.APPROVAL
    return InputKind.APPROVAL if WANTS.search(question) else InputKind.CHOICE


def make_decision_ids(labels: Sequence[str]) -> list[str]:
    """An id for each option of an approval, by its words: the first that allows, allows more, or denies has that for its
    id, others have their words."""
    ids: list[str] = []
    for place, label in enumerate(labels, 1):
        wanted = (_classify_label(label), slug(label), f"{slug(label)}-{place}".strip("-"))
        ids.append(next(name for name in wanted if name and name not in ids))
    return ids


def _classify_label(label: str) -> str | None:
    words = label.strip()
    if NO.search(words):
        # `Don't ask again` of one who says neither yes nor no denies for good: words of its own
        return None if WIDER.search(words) and not words.lower().startswith("no") else DENY
    if WIDER.search(words):
        return ALWAYS
    return ALLOW if YES.search(words) else None


def find_default(kind: InputKind, marked: str | None) -> str | None:
    """The option that Enter alone may choose: none that widens a permission, and none at all where trust is decided."""
    widens = marked is None or marked.startswith(ALWAYS)
    return None if kind.traits.explicit or widens else marked
