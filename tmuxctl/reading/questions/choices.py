"""The options of a list on the screen, where a profile says how one of them is chosen.

What an option means is told by its words: to allow this once, to allow more than this, to deny. The options of every
approval have these ids, whatever the program, so that a policy can be written once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.reading.questions.menus import arrow_keys, find_default, make_decision_ids
from tmuxctl.reading.questions.questions import LABEL_LENGTH, MANY, RULED, slug, strip_decoration
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern
from tmuxctl.results import Option
from tmuxctl.vocabulary import InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Rule
    from tmuxctl.reading.text.patterns import ScreenText

ITEM = Pattern(r"^[\s│┃║|]*(?P<mark>[❯›➤▶►●◉⦿→➜>*])?[\s○◯☐◻↑↓]*(?P<number>\d{1,2})[.)]\s+(?P<label>\S.*)$")
"""`❯ 1. Yes`, `│ ● 1. Allow once`, `  2) No`."""

MARKED = Pattern(r"^(?P<before>[\s│┃║|]*[❯›➤▶►●◉→➜>] )(?P<label>\S.*)$")
"""The marked one of several options without numbers: ` ❯ No, exit`."""

KEY = Pattern(r"\s*\((?P<key>esc|escape|enter|return|tab|shift\+tab|[A-Za-z])\)$", re.IGNORECASE)
"""The key that an option names itself: `No, and tell Codex what to do differently (esc)`."""

KEYS = {"esc": "Escape", "escape": "Escape", "enter": "Enter", "return": "Enter", "tab": "Tab", "shift+tab": "BTab"}

SPELLED = Pattern(r"[\[(](?P<key>\w)[\])](?P<rest>[\w' -]{1,20})")


class _ListedOption(NamedTuple):
    label: str
    keys: tuple[str, ...]
    number: str
    marked: bool


class OptionList(NamedTuple):
    """The options on the screen, the id of the default, and the rows above them that say what is decided."""

    options: tuple[Option, ...]
    default: str | None
    above: str


def read_option_list(rule: Rule, region: str) -> OptionList | None:
    """The list of options in a rule's region; None where there is none.

    Keys that the rule gives for an option's id count. What widens a permission is no default, and trust has none.
    """
    rows = region.split("\n")
    kind = InputKind.of(rule.kind) or InputKind.QUESTION
    start, items = _parse_spelled(rows) if rule.menu == "typed" else _parse_list(rows, rule.menu or "", kind)
    if not items:
        return None
    ids = make_decision_ids([item.label for item in items]) if kind.traits.decides else _make_plain_ids(items, kind)
    options = tuple(
        Option(name, item.label, tuple(rule.options.get(name, item.keys)))
        for name, item in zip(ids, items, strict=True)
    )
    marked = next((name for name, item in zip(ids, items, strict=True) if item.marked), None)
    return OptionList(options, rule.default or find_default(kind, marked), "\n".join(rows[:start]))


def _make_plain_ids(items: Sequence[_ListedOption], kind: InputKind) -> list[str]:
    """The ids of other questions: the numbers of a choice, the words of a confirmation."""
    if kind is not InputKind.CONFIRM:
        return [item.number or slug(item.label) for item in items]
    known = [slug(item.label).partition("-")[0] for item in items]
    return [
        name if name in ("yes", "no") and known.count(name) == 1 else slug(item.label) or str(at)
        for at, (name, item) in enumerate(zip(known, items, strict=True), 1)
    ]


def _parse_spelled(rows: Sequence[str]) -> tuple[int, list[_ListedOption]]:
    """`(Y)es/(N)o/(D)on't ask again [Yes]:`: a letter, then Enter. What is decided stands right above."""
    last = max((at for at, row in enumerate(rows) if row.strip()), default=0)
    found = patterns.SPELLED.search(rows[last].rstrip())
    if found is None:
        return 0, []
    default = (found[1] or "").casefold()
    labels = [(match["key"].lower(), match["key"] + match["rest"].strip()) for match in SPELLED.finditer(found[0])]
    return last, [
        _ListedOption(label, (key, "Enter"), "", bool(default) and label.casefold() == default) for key, label in labels
    ]


class _OptionRow(NamedTuple):
    """An option as it is listed: its words, in the rows they go on in."""

    number: str
    label: str
    marked: bool


def _parse_list(rows: Sequence[str], menu: str, kind: InputKind) -> tuple[int, list[_ListedOption]]:
    start, found = _find_counted_list(rows)
    if not found and menu == "arrows":
        start, found = _find_aligned_list(rows)
    at = next((index for index, row in enumerate(found) if row.marked), 0)
    items = [
        _ListedOption(_option_label(row, kind), _option_keys(row, index - at, menu), row.number, row.marked)
        for index, row in enumerate(found)
    ]
    return start, items[:MANY]


def _find_counted_list(rows: Sequence[str]) -> tuple[int, list[_OptionRow]]:
    """The last list that counts from 1, and its first row; an option goes on in the rows right below it."""
    found: list[_OptionRow] = []
    start, going_on = 0, False
    for y, row in enumerate(rows):
        item = ITEM.match(row)
        number = int(item["number"]) if item else 0
        if item and number in (1, len(found) + 1):
            one = _OptionRow(item["number"], strip_decoration(item["label"]), item["mark"] is not None)
            start, found, going_on = (y, [one], True) if number == 1 else (start, [*found, one], True)
        elif RULED.match(row):
            going_on = False
        elif found and going_on:
            found[-1] = found[-1]._replace(label=f"{found[-1].label}\n{strip_decoration(row)}")
    return (start, found) if len(found) > 1 else (0, [])


def _find_aligned_list(rows: Sequence[str]) -> tuple[int, list[_OptionRow]]:
    """The list around the last marked row, and its first row: options without numbers, whose words begin below each other."""
    found_last = next(((y, match) for y in range(len(rows) - 1, -1, -1) if (match := MARKED.match(rows[y]))), None)
    if found_last is None:
        return 0, []
    at, marked = found_last
    edge = marked.end("before")

    def belongs(row: str) -> bool:
        return not row[:edge].strip(" │┃║|") and bool(row[edge : edge + 1].strip())

    start, end = at, at + 1
    while start and belongs(rows[start - 1]):
        start -= 1
    while end < len(rows) and belongs(rows[end]):
        end += 1
    found = [_OptionRow("", strip_decoration(rows[y][edge:]), y == at) for y in range(start, end)]
    return (start, found) if len(found) > 1 else (0, [])


def _option_label(row: _OptionRow, kind: InputKind) -> str:
    """The words of an option without its key: of a choice the first row, for what stands below describes it."""
    label = row.label.partition("\n")[0] if kind.traits.described else row.label.replace("\n", " ")
    return KEY.sub("", label).strip()[:LABEL_LENGTH]


def _option_keys(row: _OptionRow, down: int, menu: str) -> tuple[str, ...]:
    named = KEY.search(row.label.replace("\n", " ")) if menu == "letters" else None
    if named:
        return (KEYS.get(named["key"].lower(), named["key"]),)
    if menu == "digits":
        return (row.number,)
    if menu == "numbers":
        return (*row.number, "Enter")
    return (*arrow_keys(down), "Enter")


def is_menu(rows: Sequence[str], screen: ScreenText, *, visible: bool) -> bool:
    """Whether these last rows of the screen begin with a list of options, and are not what a person writes: then the
    cursor stands at the end of one of them, and shows, or has the frame of the input below it."""
    first, second = ITEM.match(rows[0]), next((one for row in rows[1:] if (one := ITEM.match(row))), None)
    if first is None or second is None or int(second["number"]) != int(first["number"]) + 1:
        return False
    at = screen.y - (len(screen.rows) - len(rows))
    written = 0 <= at < len(rows) and 0 < len(rows[at].rstrip()) <= screen.x
    return not (written and (visible or at < len(rows) - 1))
