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
from tmuxctl.reading.questions.questions import (
    LABEL_LENGTH,
    MANY,
    RULED,
    TRAILING,
    assess_risk,
    make_question_id,
    strip_frame,
)
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern
from tmuxctl.reading.text.patterns import ScreenText
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


class _BoxLine(NamedTuple):
    y: int
    text: str


class _Box(NamedTuple):
    """`y` is the buttons' row, `left` the column of the frame before them, -1 without one; `lines` stand above them."""

    y: int
    left: int
    buttons: tuple[_Button, ...]
    title: str
    lines: tuple[_BoxLine, ...]


class _ListEntry(NamedTuple):
    """A row of a list: its text, and the signs of a box to check before it."""

    y: int
    text: str
    check: str
    mark: str


class _EntryList(NamedTuple):
    """`current` is the entry with the cursor, None where that stays on the buttons."""

    entries: tuple[_ListEntry, ...]
    current: int | None


def find_dialog(
    screen: ScreenText, cursor: tuple[int, int], *, visible: bool, hides: bool | None = None
) -> Asking | None:
    """A dialog or menu that takes keys: a box with buttons, a list with a marked option, or bare buttons. `hides`: a field of
    it does not show what is written there; None where that has to be guessed from its words."""
    box = _find_lowest_box(screen)
    framed = box is not None and box.left >= 0
    found = None if framed else menus.find_menu(screen, cursor, visible=visible)
    return found or (_build_dialog_question(box, cursor, visible=visible, hides=hides) if box else None)


# The box


def _find_lowest_box(screen: ScreenText) -> _Box | None:
    """The box, or the bare row, with the lowest buttons."""
    rows = screen.rows
    for y in range(len(rows) - 1, max(0, len(rows) - patterns.BOTTOM) - 1, -1):
        if ("<" in rows[y] or "[" in rows[y]) and (found := _find_box_at(screen, y)):
            return found
    return None


def _find_box_at(screen: ScreenText, y: int) -> _Box | None:
    """The box whose buttons stand on this row: two at least, or nothing beside the one."""
    row = _row_cells(screen, y)
    known, own = (
        [_Button(match.start(), match.end(), _cell_words(match[1])) for match in pattern.finditer(row)]
        for pattern in (patterns.BUTTON, OWN_WORDS)
    )
    if own and (len(own) == PAIR or known) and (edges := _find_edges(row, own)) and _stand_alone(row, own):
        buttons = own
    elif known and (len(known) > 1 or _stand_alone(row, known)):
        buttons, edges = known, _find_edges(row, known)
    else:
        return None
    left, right = edges or (-1, len(row))
    title, lines = _read_frame(screen, y, left, right) if edges else ("", _read_rows_above(screen.rows, y))
    return _Box(y, left, tuple(buttons), title, lines)


def _row_cells(screen: ScreenText, y: int) -> str:
    """A row with one character for each column: behind a wide one stands NUL."""
    row = screen.rows[y]
    if row.isascii():
        return row
    return "".join(cell[0] + "\0" * (columns - 1) for cell, columns in widths.cells(row, screen.tmux) if columns)


def _cell_words(cells: str) -> str:
    return cells.replace("\0", "").strip()


def _find_edges(row: str, buttons: Sequence[_Button]) -> tuple[int, int] | None:
    """The columns of the frame around these buttons."""
    left = max(row.rfind(edge, 0, buttons[0].start) for edge in UPRIGHT)
    right = [at for edge in UPRIGHT if (at := row.find(edge, buttons[-1].end)) >= 0]
    return (left, min(right)) if left >= 0 and right else None


def _stand_alone(row: str, buttons: Sequence[_Button]) -> bool:
    """Nothing but a frame stands beside the buttons."""
    gaps = [0, *(edge for button in buttons for edge in (button.start, button.end)), len(row)]
    return all(RULED.match(row[begin:end]) for begin, end in zip(gaps[::2], gaps[1::2], strict=True))


def _read_frame(screen: ScreenText, y: int, left: int, right: int) -> tuple[str, tuple[_BoxLine, ...]]:
    """The title and the lines of the frame above its buttons."""
    lines: list[_BoxLine] = []
    for at in range(y - 1, -1, -1):
        row = _row_cells(screen, at)
        edge = row[left : left + 1]
        goes_on = at > 0 and _row_cells(screen, at - 1)[left : left + 1] in tuple(UPRIGHT)
        if edge and edge in TOPS and not (edge == "+" and goes_on):
            return _cell_words(row[left + 1 : right].strip("─━═╌-┤├╡╞|+ ")), tuple(reversed(lines))
        if not edge or edge not in UPRIGHT + JOINTS + "+":
            break
        if edge in UPRIGHT:
            lines.append(_BoxLine(at, row[left + 1 : right]))
    return "", tuple(reversed(lines))


def _read_rows_above(rows: Sequence[str], y: int) -> tuple[_BoxLine, ...]:
    start = max(0, y - patterns.BOTTOM)
    kept = [_BoxLine(at, rows[at]) for at in range(start, y) if strip_frame(rows[at]) and not RULED.match(rows[at])]
    return tuple(kept[:1])


# What it asks


def _build_dialog_question(box: _Box, cursor: tuple[int, int], *, visible: bool, hides: bool | None) -> Asking:
    inner = _find_inner_frame(box)
    field = _find_field(box, inner, cursor) if visible else None
    if field is not None:
        return _ask_for_text(box, field, hides)
    listed = _find_list(box, inner, cursor, visible=visible)
    return _ask_for_entry(box, listed, cursor) if listed else _ask_for_button(box, inner, cursor)


def _find_inner_frame(box: _Box) -> tuple[_BoxLine, ...]:
    """The lowest frame within the box, with its edges."""
    edges = [at for at, line in enumerate(box.lines) if INNER.match(line.text.strip())]
    return box.lines[edges[-2] : edges[-1] + 1] if len(edges) > 1 else ()


def _join_lines(lines: Sequence[_BoxLine]) -> str:
    rows = [_cell_words(line.text) for line in lines if not RULED.match(line.text)]
    return " ".join(row for row in rows if row)[:LABEL_LENGTH]


def _find_field(box: _Box, inner: tuple[_BoxLine, ...], cursor: tuple[int, int]) -> _BoxLine | None:
    """The line in which a person writes: what stands in it, and where."""
    line = next((line for line in box.lines if line.y == cursor[1]), None)
    if line is None:
        return None
    if line in inner:
        return _BoxLine(line.y, line.text.strip()[1:-1].strip()) if len(inner) == 3 else None
    return _BoxLine(line.y, FILL.sub("", line.text).strip()) if FILL.search(line.text) else None


def _ask_for_text(box: _Box, field: _BoxLine, hides: bool | None) -> Asking:
    """A text is wanted, which goes behind the one that stands there already."""
    question = _join_lines([line for line in box.lines if line.y < field.y]) or box.title
    text = _cell_words(field.text)
    known = make_question_id("field", question, ())
    if hides or (hides is None and SECRET.search(question) and HIDDEN.match(text)):
        return Asking(InputKind.PASSWORD, known, question, hidden=bool(hides))
    return Asking(
        InputKind.QUESTION, known, f"{question} [{text}]" if text else question, (), None, assess_risk([question])
    )


def _ask_for_button(box: _Box, inner: tuple[_BoxLine, ...], cursor: tuple[int, int]) -> Asking:
    """One of the buttons is to be chosen."""
    checks = (line.y for line in box.lines if CHECK.match(line.text.strip()))
    end = inner[0].y if inner else next(checks, box.y)
    question = _join_lines([line for line in box.lines if line.y < end]) or _join_lines(box.lines) or box.title
    options = _list_button_options(box, cursor)
    words = [button.id for button in options]
    focus = _find_focus(box, cursor)
    return Asking(
        InputKind.APPROVAL if {"yes", "no"} <= set(words) else InputKind.CHOICE,
        make_question_id("buttons", question, [*(line.text for line in box.lines), *words]),
        question,
        tuple(options),
        words[focus] if focus is not None else None,
        assess_risk([question]),
    )


def _find_focus(box: _Box, cursor: tuple[int, int]) -> int | None:
    """Which button has the cursor."""
    x, y = cursor
    return next((at for at, button in enumerate(box.buttons) if y == box.y and button.start <= x < button.end), None)


def _list_button_options(box: _Box, cursor: tuple[int, int]) -> list[Option]:
    focus = _find_focus(box, cursor)
    before = any(line.y == cursor[1] for line in box.lines) and box.left >= 0
    words = menus.make_option_ids(button.label for button in box.buttons)
    return [
        Option(word, button.label, _button_keys(at, focus, word, before=before))
        for at, (word, button) in enumerate(zip(words, box.buttons, strict=True))
    ]


def _button_keys(index: int, focus: int | None, word: str, *, before: bool) -> tuple[str, ...]:
    """The keys for a button, from the one with the focus or from what stands `before` all of them. Where the focus cannot
    be seen, Enter is the program's own choice and Escape none at all."""
    if focus is not None:
        return ("Tab",) * (index - focus) + ("Enter",) if index >= focus else ("BTab",) * (focus - index) + ("Enter",)
    if before:
        return ("Tab",) * (index + 1) + ("Enter",)
    return ("Escape",) if word in ("no", "cancel", "abort", "back") else ("Tab",) * index + ("Enter",)


# Lists


def _find_list(box: _Box, inner: tuple[_BoxLine, ...], cursor: tuple[int, int], *, visible: bool) -> _EntryList | None:
    """The list of the box, if one answer of it is wanted and the keys to each are known."""
    lines = inner[1:-1] if inner else _list_lines_around(box, cursor) if not visible and box.left >= 0 else ()
    entries = [_parse_entry(line, framed=bool(inner)) for line in lines]
    entries = [entry for entry in entries if entry.text]
    several = any(entry.check == CHECKED for entry in entries)
    unseen = inner and (MORE_ABOVE in inner[0].text or any(line.y == cursor[1] for line in inner))
    if len(entries) < (1 if inner else 2) or several or unseen:
        return None
    current = next((at for at, entry in enumerate(entries) if entry.y == cursor[1]), None)
    return _EntryList(tuple(entries[:MANY]), current)


def _list_lines_around(box: _Box, cursor: tuple[int, int]) -> list[_BoxLine]:
    """The lines around the cursor's whose text begins in its column, but for a box to check before it."""
    column = cursor[0] - box.left - 1
    at = next((at for at, line in enumerate(box.lines) if line.y == cursor[1]), None)
    if at is None or not _begins_entry(box.lines[at], column):
        return []
    first = last = at
    while first > 0 and _begins_entry(box.lines[first - 1], column):
        first -= 1
    while last + 1 < len(box.lines) and _begins_entry(box.lines[last + 1], column):
        last += 1
    return list(box.lines[first : last + 1])


def _begins_entry(line: _BoxLine, column: int) -> bool:
    lead, rest = line.text[:column], line.text[column:]
    return rest[:1].strip() != "" and (not lead.strip() or CHECK.match(lead.lstrip() + "x") is not None)


def _parse_entry(line: _BoxLine, *, framed: bool) -> _ListEntry:
    text = line.text.strip()[1:-1].strip() if framed else line.text.strip()
    text = TRAILING.sub("", text)
    check = CHECK.match(text)
    if check is None:
        return _ListEntry(line.y, text, "", "")
    return _ListEntry(line.y, text[check.end() :].strip(), check["open"], check["mark"].strip())


def _ask_for_entry(box: _Box, listed: _EntryList, cursor: tuple[int, int]) -> Asking:
    """One row of a list is to be chosen."""
    entries, current = listed.entries, listed.current
    question = _join_lines([line for line in box.lines if line.y < entries[0].y and not INNER.match(line.text.strip())])
    question = question or box.title
    names = _name_entries(entries)
    ends = ("Space", "Enter") if entries[0].check else ("Enter",)
    focus = _find_focus(box, cursor)
    options = [Option(name, label, (*_entry_keys(at, listed, focus), *ends)) for at, (name, label) in enumerate(names)]
    chosen = next((at for at, entry in enumerate(entries) if entry.mark), None) if entries[0].check else current
    taken = {entry.id for entry in options}
    others = [entry for entry in _list_button_options(box, cursor)[1:] if entry.id not in taken]
    labels = [label for _, label in names]
    return Asking(
        menus.classify_choice(question, labels),
        make_question_id("list", question, labels),
        question,
        (*options, *others),
        options[chosen].id if chosen is not None else None,
        assess_risk([question]),
    )


def _entry_keys(index: int, listed: _EntryList, focus: int | None) -> tuple[str, ...]:
    """The keys that mark an entry: from the marked one, or from the buttons, where that one does not show."""
    if listed.current is not None:
        return menus.arrow_keys(index - listed.current)
    return ("BTab",) * (focus or 0) + ("Home",) + ("Down",) * index


def _name_entries(entries: Sequence[_ListEntry]) -> list[tuple[str, str]]:
    """The id and the words of each entry. A first word that stands in a column of its own is its tag."""
    split = [COLUMNS.match(match.text) for match in entries]
    starts = {match.start("label") for match in split if match}
    if None not in split and len(starts) == 1:
        return [(_cell_words(match["tag"]), _cell_words(match["label"])[:LABEL_LENGTH]) for match in split if match]
    labels = [_cell_words(match.text)[:LABEL_LENGTH] for match in entries]
    return list(zip(menus.make_option_ids(labels), labels, strict=True))
