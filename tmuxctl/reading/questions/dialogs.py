"""Boxes with buttons at their bottom, as whiptail, dialog and debconf draw them: yes or no, a list, a field to write in.

Such programs keep the cursor, shown or hidden, on what has the focus: a button, the marked row of a list, a field. Where it
stands says which keys lead from there to each answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tmuxctl import widths
from tmuxctl.reading.questions import menus
from tmuxctl.reading.questions.questions import LABEL_LENGTH, MANY, RULED, TRAILING, identity, risk_of, unframed
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern
from tmuxctl.reading.text.patterns import Text
from tmuxctl.results import Asking, Option
from tmuxctl.vocabulary import InputKind

UPRIGHT, JOINTS, TOPS = "│┃║|", "├┠╟╠┣", "┌╭╔┏+"
"""The left edge of a frame: beside its text, where a line parts it, and at its top."""

INNER = Pattern(r"^[┌╭╔┏+└╰╚┗][─━═-].*[┐╮╗┓+┘╯╝┛]$")
"""The upper or lower edge of a frame within a box."""

MORE_ABOVE = "(-)"
"""On the upper edge of a list that was scrolled."""

OWN_WORDS = Pattern(r"< {0,6}([^\W\d_][\w' ./-]{0,30}?) {0,6}>")
"""A button with words of the program's own."""

PAIR = 2
"""Buttons of which no word is known are believed in pairs: more of them are the keys of a program that stays."""

CHECK = Pattern(r"^(?P<open>[\[(])(?P<mark>[ *xX✔✓])[\])]\s+(?=\S)")
COLUMNS = Pattern(r"(?P<tag>\S+)(?P<gap>\s+)(?P<label>\S.*)$")
FILL = Pattern(r"_{2,}\s*$")
"""What is left of a field to write in."""

CHECKED = "["
"""The beginning of the boxes of a list that takes several; those of one that takes a single answer are round."""

HIDDEN = Pattern(r"^[*•●]*$")
SECRET = Pattern(r"\b(?:pass(?:word|phrase|code|wd)|pin|otp|one-time|secret|token|api key)\b", re.IGNORECASE)


class _Button(NamedTuple):
    start: int
    end: int
    label: str


class _Line(NamedTuple):
    y: int
    text: str


class _Box(NamedTuple):
    """`y` is the buttons' row, `left` the column of the frame before them, -1 without one; `lines` stand above them."""

    y: int
    left: int
    buttons: tuple[_Button, ...]
    title: str
    lines: tuple[_Line, ...]


class _Entry(NamedTuple):
    """A row of a list: its text, and the signs of a box to check before it."""

    y: int
    text: str
    check: str
    mark: str


class _List(NamedTuple):
    """`here` is the entry with the cursor, None where that stays on the buttons."""

    entries: tuple[_Entry, ...]
    here: int | None


def on_screen(seen: Text, cursor: tuple[int, int], *, visible: bool, hides: bool | None = None) -> Asking | None:
    """A dialog or menu that takes keys: a box with buttons, a list with a marked option, or bare buttons. `hides`: a field of
    it does not show what is written there; None where that has to be guessed from its words."""
    box = _lowest(seen)
    framed = box is not None and box.left >= 0
    found = None if framed else menus.on_screen(seen, cursor, visible=visible)
    return found or (_asked(box, cursor, visible=visible, hides=hides) if box else None)


# The box


def _lowest(seen: Text) -> _Box | None:
    """The box, or the bare row, with the lowest buttons."""
    rows = seen.rows
    for y in range(len(rows) - 1, max(0, len(rows) - patterns.BOTTOM) - 1, -1):
        if ("<" in rows[y] or "[" in rows[y]) and (found := _with_buttons(seen, y)):
            return found
    return None


def _with_buttons(seen: Text, y: int) -> _Box | None:
    """The box whose buttons stand on this row: two at least, or nothing beside the one."""
    row = _cells(seen, y)
    known, own = (
        [_Button(one.start(), one.end(), _words(one[1])) for one in pattern.finditer(row)]
        for pattern in (patterns.BUTTON, OWN_WORDS)
    )
    if own and (len(own) == PAIR or known) and (edges := _edges(row, own)) and _alone(row, own):
        buttons = own
    elif known and (len(known) > 1 or _alone(row, known)):
        buttons, edges = known, _edges(row, known)
    else:
        return None
    left, right = edges or (-1, len(row))
    title, lines = _inside(seen, y, left, right) if edges else ("", _above(seen.rows, y))
    return _Box(y, left, tuple(buttons), title, lines)


def _cells(seen: Text, y: int) -> str:
    """A row with one character for each column: behind a wide one stands NUL."""
    row = seen.rows[y]
    if row.isascii():
        return row
    return "".join(cell[0] + "\0" * (columns - 1) for cell, columns in widths.cells(row, seen.tmux) if columns)


def _words(cells: str) -> str:
    return cells.replace("\0", "").strip()


def _edges(row: str, buttons: Sequence[_Button]) -> tuple[int, int] | None:
    """The columns of the frame around these buttons."""
    left = max(row.rfind(one, 0, buttons[0].start) for one in UPRIGHT)
    right = [at for one in UPRIGHT if (at := row.find(one, buttons[-1].end)) >= 0]
    return (left, min(right)) if left >= 0 and right else None


def _alone(row: str, buttons: Sequence[_Button]) -> bool:
    """Nothing but a frame stands beside the buttons."""
    gaps = [0, *(edge for one in buttons for edge in (one.start, one.end)), len(row)]
    return all(RULED.match(row[begin:end]) for begin, end in zip(gaps[::2], gaps[1::2], strict=True))


def _inside(seen: Text, y: int, left: int, right: int) -> tuple[str, tuple[_Line, ...]]:
    """The title and the lines of the frame above its buttons."""
    lines: list[_Line] = []
    for at in range(y - 1, -1, -1):
        row = _cells(seen, at)
        edge = row[left : left + 1]
        goes_on = at > 0 and _cells(seen, at - 1)[left : left + 1] in tuple(UPRIGHT)
        if edge and edge in TOPS and not (edge == "+" and goes_on):
            return _words(row[left + 1 : right].strip("─━═╌-┤├╡╞|+ ")), tuple(reversed(lines))
        if not edge or edge not in UPRIGHT + JOINTS + "+":
            break
        if edge in UPRIGHT:
            lines.append(_Line(at, row[left + 1 : right]))
    return "", tuple(reversed(lines))


def _above(rows: Sequence[str], y: int) -> tuple[_Line, ...]:
    start = max(0, y - patterns.BOTTOM)
    kept = [_Line(at, rows[at]) for at in range(start, y) if unframed(rows[at]) and not RULED.match(rows[at])]
    return tuple(kept[:1])


# What it asks


def _asked(box: _Box, cursor: tuple[int, int], *, visible: bool, hides: bool | None) -> Asking:
    inner = _inner(box)
    field = _field(box, inner, cursor) if visible else None
    if field is not None:
        return _to_write(box, field, hides)
    listed = _list(box, inner, cursor, visible=visible)
    return _to_choose(box, listed, cursor) if listed else _to_press(box, inner, cursor)


def _inner(box: _Box) -> tuple[_Line, ...]:
    """The lowest frame within the box, with its edges."""
    edges = [at for at, line in enumerate(box.lines) if INNER.match(line.text.strip())]
    return box.lines[edges[-2] : edges[-1] + 1] if len(edges) > 1 else ()


def _text(lines: Sequence[_Line]) -> str:
    rows = [_words(line.text) for line in lines if not RULED.match(line.text)]
    return " ".join(row for row in rows if row)[:LABEL_LENGTH]


def _field(box: _Box, inner: tuple[_Line, ...], cursor: tuple[int, int]) -> _Line | None:
    """The line in which a person writes: what stands in it, and where."""
    line = next((line for line in box.lines if line.y == cursor[1]), None)
    if line is None:
        return None
    if line in inner:
        return _Line(line.y, line.text.strip()[1:-1].strip()) if len(inner) == 3 else None
    return _Line(line.y, FILL.sub("", line.text).strip()) if FILL.search(line.text) else None


def _to_write(box: _Box, field: _Line, hides: bool | None) -> Asking:
    """A text is wanted, which goes behind the one that stands there already."""
    question = _text([line for line in box.lines if line.y < field.y]) or box.title
    text = _words(field.text)
    known = identity("field", question, ())
    if hides or (hides is None and SECRET.search(question) and HIDDEN.match(text)):
        return Asking(InputKind.PASSWORD, known, question, hidden=bool(hides))
    return Asking(
        InputKind.QUESTION, known, f"{question} [{text}]" if text else question, (), None, risk_of([question])
    )


def _to_press(box: _Box, inner: tuple[_Line, ...], cursor: tuple[int, int]) -> Asking:
    """One of the buttons is to be chosen."""
    checks = (line.y for line in box.lines if CHECK.match(line.text.strip()))
    end = inner[0].y if inner else next(checks, box.y)
    question = _text([line for line in box.lines if line.y < end]) or _text(box.lines) or box.title
    options = _button_options(box, cursor)
    words = [one.id for one in options]
    focus = _focus(box, cursor)
    return Asking(
        InputKind.APPROVAL if {"yes", "no"} <= set(words) else InputKind.CHOICE,
        identity("buttons", question, [*(line.text for line in box.lines), *words]),
        question,
        tuple(options),
        words[focus] if focus is not None else None,
        risk_of([question]),
    )


def _focus(box: _Box, cursor: tuple[int, int]) -> int | None:
    """Which button has the cursor."""
    x, y = cursor
    return next((at for at, one in enumerate(box.buttons) if y == box.y and one.start <= x < one.end), None)


def _button_options(box: _Box, cursor: tuple[int, int]) -> list[Option]:
    focus = _focus(box, cursor)
    before = any(line.y == cursor[1] for line in box.lines) and box.left >= 0
    words = menus.names(one.label for one in box.buttons)
    return [
        Option(word, one.label, _pressed(at, focus, word, before=before))
        for at, (word, one) in enumerate(zip(words, box.buttons, strict=True))
    ]


def _pressed(index: int, focus: int | None, word: str, *, before: bool) -> tuple[str, ...]:
    """The keys for a button, from the one with the focus or from what stands `before` all of them. Where the focus cannot
    be seen, Enter is the program's own choice and Escape none at all."""
    if focus is not None:
        return ("Tab",) * (index - focus) + ("Enter",) if index >= focus else ("BTab",) * (focus - index) + ("Enter",)
    if before:
        return ("Tab",) * (index + 1) + ("Enter",)
    return ("Escape",) if word in ("no", "cancel", "abort", "back") else ("Tab",) * index + ("Enter",)


# Lists


def _list(box: _Box, inner: tuple[_Line, ...], cursor: tuple[int, int], *, visible: bool) -> _List | None:
    """The list of the box, if one answer of it is wanted and the keys to each are known."""
    lines = inner[1:-1] if inner else _around(box, cursor) if not visible and box.left >= 0 else ()
    entries = [_entry(line, framed=bool(inner)) for line in lines]
    entries = [one for one in entries if one.text]
    several = any(one.check == CHECKED for one in entries)
    unseen = inner and (MORE_ABOVE in inner[0].text or any(line.y == cursor[1] for line in inner))
    if len(entries) < (1 if inner else 2) or several or unseen:
        return None
    here = next((at for at, one in enumerate(entries) if one.y == cursor[1]), None)
    return _List(tuple(entries[:MANY]), here)


def _around(box: _Box, cursor: tuple[int, int]) -> list[_Line]:
    """The lines around the cursor's whose text begins in its column, but for a box to check before it."""
    column = cursor[0] - box.left - 1
    at = next((at for at, line in enumerate(box.lines) if line.y == cursor[1]), None)
    if at is None or not _begins(box.lines[at], column):
        return []
    first = last = at
    while first > 0 and _begins(box.lines[first - 1], column):
        first -= 1
    while last + 1 < len(box.lines) and _begins(box.lines[last + 1], column):
        last += 1
    return list(box.lines[first : last + 1])


def _begins(line: _Line, column: int) -> bool:
    lead, rest = line.text[:column], line.text[column:]
    return rest[:1].strip() != "" and (not lead.strip() or CHECK.match(lead.lstrip() + "x") is not None)


def _entry(line: _Line, *, framed: bool) -> _Entry:
    text = line.text.strip()[1:-1].strip() if framed else line.text.strip()
    text = TRAILING.sub("", text)
    check = CHECK.match(text)
    if check is None:
        return _Entry(line.y, text, "", "")
    return _Entry(line.y, text[check.end() :].strip(), check["open"], check["mark"].strip())


def _to_choose(box: _Box, listed: _List, cursor: tuple[int, int]) -> Asking:
    """One row of a list is to be chosen."""
    entries, here = listed.entries, listed.here
    question = _text([line for line in box.lines if line.y < entries[0].y and not INNER.match(line.text.strip())])
    question = question or box.title
    names = _names(entries)
    ends = ("Space", "Enter") if entries[0].check else ("Enter",)
    focus = _focus(box, cursor)
    options = [Option(name, label, (*_way(at, listed, focus), *ends)) for at, (name, label) in enumerate(names)]
    chosen = next((at for at, one in enumerate(entries) if one.mark), None) if entries[0].check else here
    taken = {one.id for one in options}
    others = [one for one in _button_options(box, cursor)[1:] if one.id not in taken]
    labels = [label for _, label in names]
    return Asking(
        menus.choice_kind(question, labels),
        identity("list", question, labels),
        question,
        (*options, *others),
        options[chosen].id if chosen is not None else None,
        risk_of([question]),
    )


def _way(index: int, listed: _List, focus: int | None) -> tuple[str, ...]:
    """The keys that mark an entry: from the marked one, or from the buttons, where that one does not show."""
    if listed.here is not None:
        return menus.steps(index - listed.here)
    return ("BTab",) * (focus or 0) + ("Home",) + ("Down",) * index


def _names(entries: Sequence[_Entry]) -> list[tuple[str, str]]:
    """The id and the words of each entry. A first word that stands in a column of its own is its tag."""
    split = [COLUMNS.match(one.text) for one in entries]
    starts = {one.start("label") for one in split if one}
    if None not in split and len(starts) == 1:
        return [(_words(one["tag"]), _words(one["label"])[:LABEL_LENGTH]) for one in split if one]
    labels = [_words(one.text)[:LABEL_LENGTH] for one in entries]
    return list(zip(menus.names(labels), labels, strict=True))
