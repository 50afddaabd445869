"""From a screen to the question on it: its kind, its text, the options with the keys that choose them, and an id.

The keys answer this very screen: for a menu they count from the option that is marked now. Nothing here answers anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern
from tmuxctl.reading.text.patterns import RuleMatch, ScreenText
from tmuxctl.results import Asking, Option
from tmuxctl.value import Value
from tmuxctl.vocabulary import InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Rule

CONTEXT = 4
"""Rows above a question that belong to it."""

SHORT = 12
"""A question shorter than this needs the row above to be understood."""

LABEL_LENGTH = 200

QUESTION_LENGTH = 2000
"""Characters of a question that are told: a command of many lines may be what it is about."""

MANY = 40
"""Options of a menu that are told."""

DESTRUCTIVE = Pattern(
    r"\b(?:delet\w+|remov\w+|overwrit\w+|rm -\w*[rf]|drop(?:ping)?|truncat\w+|format(?:ting)?|eras\w+|wip\w+|destroy\w*|purg\w+"
    r"|uninstall\w*|discard\w*|force[- ]push|reset --hard|permanent\w*|irreversibl\w+)\b",
    re.IGNORECASE,
)

# what moves by itself: a clock, a counter of seconds, a spinner
MOVING = Pattern(r"\b\d{1,2}:\d{2}(?::\d{2})?\b|\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds|%)(?!\w)|[⠁-⣿◐◓◑◒✢✳✶✻✽█▌]")

LISTED = Pattern(r"^\s*\(?(?P<number>\d{1,2})[.)\]:]\s+(?P<label>\S.*)$")
CHOOSING = Pattern(
    r"(?:^#\?|\b(?:choose|choice|select\w*|pick|option|number|enter)\b[^\n]{0,60}[:?>]|\[\d+(?:-\d+)?\]:?|\(\d+-\d+\):?)$",
    re.I,
)
FRAME = Pattern(r"[\s│┃║|]+$")
RULED = Pattern(r"^[\s─━═╌╭╮╰╯┌┐└┘│┃-]*$")
"""A row that is only drawn."""

ASSUMED_ALONE = Pattern(r"^\s*[\[(] ?(?:y|yes|n|no) ?[\])] ?:?$", re.IGNORECASE)
"""`[no]:` on a row of its own, below the question."""

LEGEND = Pattern(
    r"(?:^|\s{2,})\s?(?:(?P<letter>[^\W\d_])|\^(?P<control>[A-Z]))\s+(?P<label>[^\W\d_][\w'-]*(?: \w+){0,3})(?=\s{2,}|\s*$)"
)
"""An answer behind its key: `Y Yes`, `^C Cancel`."""

DRAWN = Pattern(r"^[?☐☒✔✓●◉⦿○]\s+")
"""What stands before the words of a question: `? Shell  touch x`."""

LEADING = Pattern(r"^(?:[●◉⦿○◯◎◼■☑☒✔✓◻□☐❯›▸➤►▶»]|[\[(][ *xX✔✓]?[\])])\s+(?=\S)")
TRAILING = Pattern(r"(?:\s+[↑↓▲▼▮▒░█✔✓←◀])+\s*$")
"""What programs draw around the words of an option: marks of what is chosen, and the bar that scrolls the list."""


def build_rule_question(match: RuleMatch, screen: ScreenText) -> Asking:
    """The question a profile's rule found."""
    rule = match.rule
    kind = InputKind.of(rule.kind) or InputKind.QUESTION
    question = _extract_question(match)
    options, default = tuple(Option(name, name, tuple(keys)) for name, keys in rule.options.items()), rule.default
    if rule.menu:
        from tmuxctl.reading.questions import choices

        if listed := choices.read_option_list(rule, match.region):
            options, default = listed.options, listed.default
            if not rule.question:
                question = _add_rows_above(_strip_rows(listed.above, rule), question, rule.menu)
    elif kind is InputKind.CHOICE and not options:
        options, above = find_numbered_options(screen, ("Enter",))
        question = above if above and len(question) < SHORT else question
    rows = match.region.split("\n")
    at = match.region.count("\n", 0, match.found.start())
    near = rows[max(0, at - 2 * CONTEXT) : at + patterns.BOTTOM]
    if rule.where in ("cursor-line", "last-line"):
        near = [*screen.above(2 * CONTEXT), *near]
    risk = rule.risk if rule.risk != "unknown" else assess_risk([question])
    name = make_question_id(rule.id, question, near)
    return Asking(kind, name, question[:QUESTION_LENGTH], options, default, risk, rule.hidden)


def _extract_question(match: RuleMatch) -> str:
    """The question's text: what its own pattern tells, else the row that fitted."""
    pattern = patterns.compile_pattern(match.rule.question) if match.rule.question else None
    if pattern and "q" in pattern.groupindex:
        found = list(pattern.finditer(match.region))
        nearest = [one for one in found if one.start() <= match.found.end()] or found
        if nearest and nearest[-1]["q"]:
            return _join_rows(nearest[-1]["q"])
    start = match.region.rfind("\n", 0, match.found.start()) + 1
    end = match.region.find("\n", match.found.end())
    row = match.region[start : end if end >= 0 else None].strip()
    return strip_frame(row.split("\n")[0])


def _strip_rows(above: str, rule: Rule) -> str:
    """The rows above a list without those that its rule strips."""
    return "\n".join(row for row in above.split("\n") if not any(patterns.fits(one, row) for one in rule.strip))


def _add_rows_above(above: str, question: str, menu: str) -> str:
    """What a list on the screen is about: the rows above it; where the answers stand in the question's own row, that row
    with those right above it."""
    if menu != "typed":
        return DRAWN.sub("", _join_rows(above)) or question
    near: list[str] = []
    for row in reversed(above.split("\n")[-CONTEXT * 2 :]):
        if RULED.match(row):
            break
        near.insert(0, strip_frame(row).strip())
    asks = patterns.SPELLED.sub("", question).strip() or question
    return f"{' '.join(near)} \u2014 {asks}" if near else asks


def _join_rows(text: str) -> str:
    """A question of several rows, without the box around it; a dash stands where an empty row parted them."""
    if "\n" not in text:
        return text.strip()
    rows = [strip_frame(row).strip() for row in text.split("\n")]
    parts: list[list[str]] = [[]]
    for row in ("" if RULED.match(row) else row for row in rows):
        parts[-1].append(row) if row else parts.append([])
    return " \u2014 ".join(" ".join(part) for part in parts if part)


def find_question_at_cursor(screen: ScreenText, mode: InputMode) -> Asking | None:
    """The question that stands left of the cursor, or that a pager or a secret's reader stands for."""
    left = screen.left.rstrip()
    if mode.hides_input:
        # what stands above is output of before: `Password:` needs no words of it, however short it is
        question = strip_frame(left) or _read_question(screen, left) or "password"
        return build_question(InputKind.PASSWORD, screen, question)
    if mode.pager:
        return _build_pager_question(screen)
    return _find_with_answers(screen, left, mode) or _find_without_answers(screen, left, mode)


def _find_with_answers(screen: ScreenText, left: str, mode: InputMode) -> Asking | None:
    """A question that says what may be answered: `[y/N]`, `(y)es (n)o`, or that takes yes or no."""
    default: str | None
    if found := patterns.SPELLED.search(left):
        options, default = _parse_spelled_options(left, found, mode), found[1]
    elif found := patterns.LETTERS.search(left):
        return _build_letters_question(screen, left, found, mode)
    elif found := patterns.CONFIRM.search(left):
        options, default = _parse_yes_or_no(found["answers"], mode)
        default = _find_told_default(left) or default
    elif found := patterns.SLASHED.search(left):
        return _build_letters_question(screen, left, found, mode)
    elif default := _find_assumed_answer(screen, left):
        options = _yes_and_no(mode, words=len(default) > 1)
    elif patterns.DOTTED.search(left):
        options = _yes_and_no(mode)
    else:
        return None
    question = _cut_question(screen, left, found) if found else _read_question(screen, left)
    return build_question(InputKind.CONFIRM, screen, question, options, default)


def _find_without_answers(screen: ScreenText, left: str, mode: InputMode) -> Asking | None:
    """A pager, a pause for a key, a secret, or a question that any text answers."""
    if patterns.MORE.search(left.strip()) and (mode.raw or left.strip() != ":"):
        return _build_pager_question(screen)
    if patterns.is_pause(left):
        options = (Option("continue", "continue", ("Enter",)),)
        return build_question(InputKind.KEYS, screen, _read_question(screen, left), options, "continue")
    if (mode.raw or mode.single) and patterns.asks_for_secret(left):
        return build_question(InputKind.PASSWORD, screen, _read_question(screen, patterns.STARS.sub("", left)))
    if not mode.line:
        return _find_open_question(screen, left) if screen.y >= len(screen.rows) - 1 else None
    return _find_numbered_question(screen, left, mode) or _find_open_question(screen, left)


def _find_open_question(screen: ScreenText, left: str) -> Asking | None:
    """A question that wants yes or no, but does not say how: any text is an answer."""
    if not patterns.SURELY.search(left.strip()):
        return None
    return build_question(InputKind.QUESTION, screen, _read_question(screen, left))


def find_question_with_legend(screen: ScreenText) -> Asking | None:
    """A question whose answers stand below it, each behind its key, among them some that begin with that letter:
    ` Y Yes` above ` N No           ^C Cancel`."""
    found = [(m["label"], m["letter"], m["control"]) for row in screen.below() for m in LEGEND.finditer(row)]
    letters = [letter for label, letter, _ in found if letter and label.casefold().startswith(letter.casefold())]
    if len(letters) < 2 or not screen.bare:
        return None
    options = tuple(
        Option(slug(label), label, (letter.lower() if letter else f"C-{control.lower()}",))
        for label, letter, control in found
    )
    return build_question(InputKind.CONFIRM, screen, strip_frame(screen.left.rstrip()), options)


# Options that are typed


def _keys_to_type(word: str, mode: InputMode) -> tuple[str, ...]:
    return (*word,) if mode.single and len(word) == 1 else (*word, "Enter")


def _build_letters_question(screen: ScreenText, left: str, found: re.Match[str], mode: InputMode) -> Asking:
    # where commas part them, a slash is an answer of its own
    letters = list(dict.fromkeys(found[1].split("," if "," in found[1] else "/")))
    options = tuple(Option(letter, letter, _keys_to_type(letter, mode)) for letter in letters)
    capital = [letter for letter in letters if letter.isupper()]
    # with both cases among them, a letter and its capital are two answers
    default = capital[0] if len(capital) == 1 and capital[0].lower() not in letters else None
    question = _cut_question(screen, left, found)
    return build_question(InputKind.APPROVAL, screen, question, options, _find_told_default(left) or default)


def _parse_yes_or_no(found: str, mode: InputMode) -> tuple[tuple[Option, ...], str | None]:
    """The options of `[Y/n]`, `(yes/no/[fingerprint])`, `(y or [n])`, and what Enter alone would say."""
    closed = max(found.rfind(part) for part in "])>")
    inside = found[found[0] in "[(<" : closed if closed >= 0 else None].partition("default")[0]
    parts = [part.strip() for part in re.split(r"[/|,]|\bor\b", inside)]
    # what is no word is a key that a terminal need not send: `^C`, `C-r`, `!`
    words = [(part, part.strip("[]")) for part in parts if re.fullmatch(r"\[?\w+\]?", part)]
    options = []
    default = None
    for word, plain in words:
        name = {"y": "yes", "n": "no"}.get(plain.lower(), plain.lower())
        bracketed = word != plain
        # the capital of a third letter may be its name: `[y/n/A]` has an answer that allows all that comes, and no default
        further = len(plain) == 1 and name not in ("yes", "no")
        if (plain[:1].isupper() and not further) or (bracketed and len(words) == 2):
            default = name if default is None else ""
        # `[fingerprint]` stands for a text of one's own: no key chooses it
        if not (bracketed and len(plain) > 3):
            keys = ("Escape",) if name == "esc" else _keys_to_type(plain if further else plain.lower(), mode)
            options.append(Option(name, name, keys))
    return tuple(options), default or None


def _parse_spelled_options(_left: str, found: re.Match[str], mode: InputMode) -> tuple[Option, ...]:
    pairs = re.findall(r"[\[(](\w)[\])]([\w' -]{1,20})", found[0])
    return tuple(Option(slug(a + b), (a + b).strip(), _keys_to_type(a.lower(), mode)) for a, b in pairs)


def _yes_and_no(mode: InputMode, *, words: bool = False) -> tuple[Option, ...]:
    """Yes and no, typed as a letter or as a word."""
    return tuple(Option(one, one, _keys_to_type(one if words else one[0], mode)) for one in ("yes", "no"))


def _find_assumed_answer(screen: ScreenText, left: str) -> str | None:
    """What Enter alone gives to a question for yes or no that names nothing else: `Is this OK? (yes)`, `[no]:`."""
    above = screen.above(1)
    alone = ASSUMED_ALONE.search(left) and above and above[0].rstrip().endswith("?")
    return _find_told_default(left) if alone or patterns.ASSUMED.search(left) else None


def _find_told_default(left: str) -> str | None:
    found = patterns.DEFAULT.search(left)
    return (found["told"] or found["alone"]) if found else None


def _find_numbered_question(screen: ScreenText, left: str, mode: InputMode) -> Asking | None:
    """A list of numbered answers above, one of which is to be typed."""
    if not CHOOSING.search(left.strip()):
        return None
    options, above = find_numbered_options(screen, () if mode.single else ("Enter",))
    if not options:
        return None
    question = strip_frame(left)
    if len(question) < SHORT and above:
        question = f"{above} {question}" if re.search(r"\w", question) else above
    return build_question(InputKind.CHOICE, screen, question, options, _find_told_default(left))


def find_numbered_options(screen: ScreenText, enter: tuple[str, ...]) -> tuple[tuple[Option, ...], str]:
    """The numbered answers above the cursor, and the row that introduces them; none where there is no such list."""
    found: dict[int, str] = {}
    rows = screen.above(patterns.BOTTOM * 2)
    while rows and 1 not in found:
        row = rows[-1]
        parts = [LISTED.match(part) for part in re.split(r"\s{2,}(?=\d{1,2}\) )", row)]
        listed = {int(match["number"]): strip_decoration(match["label"]) for match in parts if match}
        if not listed and found and row.strip():
            break
        found |= listed
        rows.pop()
    numbers = sorted(found)
    if len(found) < 2 or numbers[0] not in (0, 1):
        return (), ""
    options = tuple(
        Option(f"{number}", found[number][:LABEL_LENGTH], (*f"{number}", *enter)) for number in numbers[:MANY]
    )
    return options, find_introduction(rows)


def find_introduction(rows: Sequence[str]) -> str:
    """The row right above a question or a list that belongs to it: the nearest that is not empty, if no command line."""
    row = next((strip_frame(row) for row in reversed(rows) if strip_frame(row)), "")
    return "" if patterns.has_text_behind_prompt(row) or patterns.CONTINUED.search(row) else row


def _build_pager_question(screen: ScreenText) -> Asking:
    options = (Option("more", "more", ("Space",)), Option("quit", "quit", ("q",)))
    return build_question(InputKind.PAGER, screen, strip_frame(screen.rows[-1]) if screen.rows else "", options, "more")


# The question's text, its id, its risk


def build_question(
    kind: InputKind, screen: ScreenText, question: str, options: tuple[Option, ...] = (), default: str | None = None
) -> Asking:
    """A question of this kind; the default counts if it is one of the options, in whatever way it is written."""
    known = _match_default(options, default) if default else None
    risk = assess_risk([question]) if kind.traits.risky else "unknown"
    return Asking(kind, make_question_id(kind, question, screen.above(patterns.BOTTOM)), question, options, known, risk)


def _match_default(options: Iterable[Option], default: str) -> str | None:
    """The option that a default names: by its id or label, or by the letters it begins with."""
    ids = {option.id: (option.id, option.label) for option in options}
    exact = [name for name, names in ids.items() if default in names]
    begun = [name for name in ids if default.isalpha() and name.casefold().startswith(default.casefold())]
    return exact[0] if exact else begun[0] if len(begun) == 1 else None


def _cut_question(screen: ScreenText, left: str, found: re.Match[str]) -> str:
    """The question up to the end of its pattern's brackets: what was typed behind it is no part of it."""
    closed = max(left.rfind(one, found.start()) for one in "])>?:")
    return _read_question(screen, left[: closed + 1] if closed >= 0 else left)


def _read_question(screen: ScreenText, left: str) -> str:
    """The text left of the cursor, with the row above where it is too short to be understood."""
    text = strip_frame(left)
    return f"{find_introduction(screen.above(3))} {text}".strip() if len(text) < SHORT else text


def strip_frame(row: str, *, keep_left: bool = False) -> str:
    """A row without the box around it."""
    row = FRAME.sub("", row)
    return row if keep_left else row.lstrip(" \t│┃║|")


def strip_decoration(label: str) -> str:
    """An option's words without what is drawn around them."""
    return TRAILING.sub("", LEADING.sub("", strip_frame(label))).strip()


def slug(label: str) -> str:
    """The id of an option: its words in small letters."""
    words = re.findall(r"\w+", label.replace("'", "").lower())
    return "-".join(words)[:24].strip("-")


def assess_risk(rows: Iterable[str]) -> str:
    """`high` where these rows speak of destruction, else unknown: a hint."""
    return "high" if any(DESTRUCTIVE.search(row) for row in rows) else "unknown"


def make_question_id(rule: str, question: str, rows: Iterable[str]) -> str:
    """Eight hexadecimal digits: the same for the same question on the same screen, whatever ticks on it."""
    from zlib import crc32

    still = [MOVING.sub("", row).strip() for row in (rule, question, *rows)]
    return f"{crc32(chr(10).join(still).encode(errors='replace')):08x}"


class InputMode(Value):
    """What is known beside the text: `single`: keys count at once, without Enter; `raw`: the program reads keys, not lines;
    `pager`: the reader shows a text page by page; `secret`: what is typed is not shown; `line`: an answer is written at the
    cursor, which a program that draws a whole screen may keep anywhere."""

    single: bool = False
    raw: bool = False
    pager: bool = False
    hides_input: bool = False
    line: bool = True
