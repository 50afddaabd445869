"""An answer read off what a program drew: the rows between the echo of the input and where the next input goes.

Programs that draw an input box show an answer as blocks: a mark at the edge, and the rows below it as far from the edge as
the mark is wide. What is drawn around that is told by the profile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl import widths
from tmuxctl.reading.answers import failure, input_box
from tmuxctl.reading.answers.prompts import count_common
from tmuxctl.reading.answers.transcripts import remove_blanks

if TYPE_CHECKING:
    from tmuxctl.program_profile import AnswerRules, Profile

ECHO_LENGTH = 30
"""Characters of the input's first line that are looked for."""

PROMPT = 14
"""Characters that may stand before them, where the profile's rules do not match a prompt."""

ABOVE, BELOW = 20, 3
"""How far from the row on which the text was typed its echo may stand, in rows: the input box moves when it is sent."""


MARKDOWN = re.compile(r"[`*_]")
"""What a program leaves out of an echo that it draws as Markdown (pi, measured)."""


class DrawnAnswer(NamedTuple):
    """The text; `complete` is False where its beginning is not to be seen, or the turn failed. `signed` is False where the
    profile knows the sign of an answer and it was not found: then the text is all rows of the turn, or those behind the
    last action; `fits` is False where no action was found either. `error` is what the
    program says of a turn that failed, None if it says nothing of the kind; the text is then what came before."""

    text: str
    complete: bool
    signed: bool = True
    fits: bool = True
    error: str | None = None


def read_answer(
    rows: Sequence[str],
    typed: str,
    profile: Profile,
    *,
    anchor: int | None = None,
    limited: bool = False,
    tmux: widths.Version = None,
) -> DrawnAnswer:
    """The answer to an input on rows without blanks at their end, oldest first, the last of them the screen's.

    `anchor` is the row on which the input was typed, as far as that is known: its echo stands near it. `limited`: the
    program's state says that a limit is used up. `tmux` is the version that drew them.
    """
    typed = "\n".join(widths.bases(line, tmux, drawn=False) for line in typed.split("\n"))
    bases = [widths.bases(row, tmux) for row in rows]
    start, echo_found = _find_echo(bases, typed, profile, anchor)
    region = rows[start:]
    bottom = _find_input_box(region, profile)
    kept = list(region[:bottom])
    if error := _find_error(kept, profile, limited):
        kept = kept[: error.row]
    text, signed = _read_text(kept, bases[start - 1] if start else "", typed, profile, tmux)
    tool = _compile(profile.answer.tool)
    acted = tool is not None and any(map(tool.search, kept))
    if error is not None and not signed and not acted:
        # what the program draws around an error is no answer
        text = ""
    fits = signed or acted or error is not None
    return DrawnAnswer(text, echo_found and signed and error is None, signed, fits, error.text if error else None)


def _find_error(rows: list[str], profile: Profile, limited: bool) -> failure.Failure | None:
    """The error that a turn ended in: none where the program went on behind it, and answered."""
    error = failure.find_failure(rows, profile, limited=limited)
    answered = error is not None and profile.answer.begin and _join_blocks(rows[error.end :], profile.answer).strip()
    return None if answered else error


def is_screen_replaced(before: str, now: str, typed: str) -> bool:
    """Whether a screen was drawn anew since it stood as before an input, with rows that are not of that input: more was
    written than it holds. A third of them is enough, since every second row of an answer may be empty."""
    known, typed_text = {*map(str.strip, before.split("\n"))}, remove_blanks(typed)
    rows = [row.strip() for row in now.split("\n")]
    new = [row for row in rows if row and row not in known and remove_blanks(row) not in typed_text]
    return len(new) >= len(rows) / 3


def _read_text(rows: Sequence[str], first: str, typed: str, profile: Profile, tmux: widths.Version) -> tuple[str, bool]:
    """The text on the rows of a turn, and whether the profile's signs were found there, if it knows any."""
    rules = profile.answer
    if rules.begin is None:
        return _strip_line_numbers(
            _strip_rows(_read_rows_behind_echo(rows, first, typed, profile, tmux), rules), rules
        ), True
    if text := _strip_line_numbers(_join_blocks(rows, rules).strip("\n"), rules):
        return text, True
    rows_left = [
        row
        for row in _read_rows_behind_echo(rows, first, typed, profile, tmux).split("\n")
        if not _is_stripped(row, rules)
    ]
    return dedent("\n".join(rows_left)).strip("\n"), False


def _find_echo(rows: Sequence[str], typed: str, profile: Profile, anchor: int | None) -> tuple[int, bool]:
    """The first row behind the beginning of the input's echo, and whether it was found."""
    lines = [remove_blanks(line) for line in typed.split("\n") if line.strip()]
    wanted = lines[0][:ECHO_LENGTH] if lines else ""
    behind = [
        at for at, row in enumerate(rows) if wanted and input_box.text_behind_prompt(row, profile).startswith(wanted)
    ]
    found = behind or [
        at for at, row in enumerate(rows) if wanted and wanted in remove_blanks(row)[: len(wanted) + PROMPT]
    ]
    if anchor is None:
        return (found[-1] + 1, True) if found else (0, False)
    near = [at for at in found if anchor - ABOVE <= at <= anchor + BELOW]
    return (near[-1] + 1, True) if near else (max(0, min(anchor, len(rows))), True)


def _find_input_box(rows: Sequence[str], profile: Profile) -> int:
    """The row at which the program's own surroundings begin, at the bottom: its prompt, and what frames that."""
    at = input_box.find_prompt_row(rows, profile)
    if at is None:
        return len(rows)
    while at and input_box.FRAME.search(rows[at - 1]):
        at -= 1
    return at


def _join_blocks(rows: Sequence[str], rules: AnswerRules) -> str:
    """The text of the blocks behind the program's last action."""
    begin, tool, until = re.compile(rules.begin or ""), _compile(rules.tool), _compile(_end_pattern(rules))
    blocks: list[list[str]] = []
    inside: int | None = None
    for row in rows:
        if row and _is_stripped(row, rules):
            # as it stands on the screen: an answer that quotes such a row is set in
            continue
        if tool and tool.search(row):
            blocks, inside = [], None
        elif until and until.search(row):
            inside = None
        elif (found := begin.match(row)) and (inside is None or row[: found.end()].strip()):
            inside = found.end()
            blocks.append([row[inside:]])
        elif inside is not None and (found or not row[: min(inside, 2)].strip()):
            # also a row that could begin an answer without a sign (cn draws answers set in by two columns, or by one)
            blocks[-1].append(row[min(inside, len(row) - len(row.lstrip(" "))) :])
        else:
            inside = None
    return "\n\n".join("\n".join(block).strip("\n") for block in blocks)


def _compile(pattern: str | None) -> re.Pattern[str] | None:
    return re.compile(pattern) if pattern else None


def _end_pattern(rules: AnswerRules) -> str | None:
    """What a row that ends an answer looks like; None where its prompt alone ends it."""
    return None if rules.until == "prompt" else rules.until


def _is_stripped(row: str, rules: AnswerRules) -> bool:
    """Whether the profile names a row as no part of an answer."""
    return any(re.search(pattern, row) for pattern in rules.strip)


def _read_rows_behind_echo(rows: Sequence[str], first: str, typed: str, profile: Profile, tmux: widths.Version) -> str:
    """All rows behind the rest of the echo, whose first row is given, and behind the program's last action."""
    tool = _compile(profile.answer.tool)
    kept = rows[_count_echo_rows([widths.bases(row, tmux) for row in rows], first, typed, profile) :]
    acted = [at for at, row in enumerate(kept) if tool and tool.search(row)]
    return "\n".join(kept[acted[-1] + 1 if acted else 0 :]).strip("\n")


def _count_echo_rows(rows: Sequence[str], first: str, typed: str, profile: Profile) -> int:
    """How many rows go on with the echo that begins on the first. Each holds what of the input comes next: an answer may
    say again what stood there before."""
    rest = _strip_markdown(typed)
    beginning = rest[: len(_strip_markdown(typed.strip().split("\n")[0][:ECHO_LENGTH]))]
    shown = _strip_markdown(first)
    at = count_common(shown[shown.find(beginning) :], rest) if beginning in shown else 0
    last = 0
    for number, row in enumerate(rows):
        more = input_box.find_continuation_end(row, profile)
        behind = input_box.text_behind_prompt(row, profile) if more is None else remove_blanks(row[more:])
        bare = MARKDOWN.sub("", behind)
        if (found := rest.find(bare, at)) < 0 or (bare and at == len(rest)):
            break
        at = found + len(bare) if bare else at
        # a blank row is a part of the echo where more of that comes
        last = number + 1 if bare or more is not None else last
    return last


def _strip_markdown(text: str) -> str:
    return MARKDOWN.sub("", remove_blanks(text))


def _strip_rows(text: str, rules: AnswerRules) -> str:
    if until := _end_pattern(rules):
        ends = [match.start() for match in re.finditer(until, text, re.MULTILINE)]
        text = text[: ends[-1]] if ends else text
    return "\n".join(line for line in text.split("\n") if not line or not _is_stripped(line, rules)).strip("\n")


def _strip_line_numbers(text: str, rules: AnswerRules) -> str:
    """Without the numbers that the program draws before lines of code: from 1 on, one more in each."""
    if not rules.gutter:
        return text
    gutter, rows, kept = re.compile(rules.gutter), text.split("\n"), []
    last = 0
    for at, row in enumerate(rows):
        found = gutter.search(row)
        number = int(found["n"]) if found and found["n"].isdecimal() else None
        after = gutter.search(rows[at + 1]) if at + 1 < len(rows) else None
        begins = number == 1 and after is not None and after["n"] == "2"
        if found and number is not None and (begins or (last and number == last + 1)):
            last = number
            row = row[found.end() :]
        elif row.strip():
            # what is wrapped has no number of its own
            last = last if last and row.startswith(" ") else 0
        kept.append(row)
    return "\n".join(kept)
