"""Where a prompt begins in the line that ends with it: output without a newline stands before it on the same line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tmuxctl.vocabulary import InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile, Rule

LONGEST = 400
"""Characters a prompt may take on its row."""

FAMOUS = re.compile(r"(?:>>>|In \[\d+\]:|\((?:gdb|Pdb|lldb)\)) *\Z")
"""Prompts told from what may stand before them without any profile: `ab>>> ` is `>>> ` behind the output `ab`."""

COMMON = re.compile(r"\S(?:.{0,80}\S)?(?<=[#$%>❯»λ➜]) \Z")
"""A whole line that looks like a prompt and no more."""

SEPARATOR = re.compile(r"[@:/~\[(]")
"""What stands between the parts of a prompt: user, machine, folder."""

ONCE = r"(?: *(?:\.\.\.:?|\.\.\.>|[\w-]*>|\?|\S*[-'\"(*$][#>]))"
MORE_ONCE = re.compile(ONCE + r" *\Z")
MORE = re.compile(ONCE + r"+ *\Z")
"""A whole line that asks for more input, as it looks in shells, REPLs and SQL consoles; or several times."""

AGAIN = re.compile(r"(?:>|\.\.\.) ")
"""The two continuation prompts that programs without a line editor have."""


class Prompts:
    """The prompts of one program: the one that stood there before, and what its profile tells of them. `end` is the kind
    of input it waits for behind its output, None if unknown; where that is no prompt, only the one from before is one."""

    def __init__(self, before: str | None, profile: Profile | None, end: InputKind | None = None) -> None:
        self._before = (before or "").rstrip()
        self._end = end
        self.asks = end not in (None, InputKind.PROMPT, InputKind.CONTINUATION)
        self._rules = list(_compile_anchored(profile.prompt)) if profile else []
        self._more = list(_compile_anchored(profile.continuation)) if profile else []
        self._known = self._without_output(self._before)
        self._none = before == "" and not self._rules
        self._shape = re.compile(_prompt_shape(self._known) + r" *\Z") if self._known else None
        self._opening = re.compile(rf"{re.escape(self._known)} ?" if self._known else r"(?!)")

    def _without_output(self, line: str) -> str:
        """The prompt alone, where an earlier output without a newline stands before it."""
        return line[self._find_known_start(line) or 0 :]

    def _find_known_start(self, line: str) -> int | None:
        """From where on a line is a prompt by the profile's rules, or one of the well-known."""
        return _find_famous_start(line, _find_rule_start(self._rules, line))

    def find_output_before(self, line: str) -> str | None:
        """What stands before the prompt that this line ends with; None if it ends with none. The last prompt alone is
        meant: one that the program printed as its output stays."""
        tail = line[-LONGEST:]
        at = self._find_start(tail)
        return None if at is None else line[: len(line) - len(tail) + at]

    def _find_start(self, line: str) -> int | None:
        if self._none:
            return None
        if self._end is InputKind.CONTINUATION and (at := self._find_continuation_start(line)) is not None:
            return at
        if self._shape and (found := self._shape.search(line)):
            return _find_famous_start(line, found.start())
        if self.asks:
            return None
        if (at := self._find_known_start(line)) is not None:
            return at
        bare = line.rstrip()
        if bare and self._before.endswith(bare):
            return 0
        return self._find_similar_start(bare) if COMMON.match(line) else None

    def _find_continuation_start(self, line: str) -> int | None:
        """From where on a line asks for more of the same input."""
        at = _find_rule_start(self._more, line)
        return 0 if at is None and MORE_ONCE.match(line) else at

    def _find_similar_start(self, line: str) -> int | None:
        """From where on a line may be the known prompt that tells something new, such as another folder."""
        known = self._known
        if not known:
            return 0
        parted = SEPARATOR.search(known)
        another = parted is not None and known[: parted.end()] not in line
        if line[-1] != known[-1] or FAMOUS.match(known) or (another and self._end is InputKind.PROMPT):
            # another program's: all of the row, where it is known to wait at a prompt
            return 0 if self._end is InputKind.PROMPT else None
        if SEPARATOR.search(line[: count_common(line, known)]):
            return 0
        # two outputs without a newline, one before each prompt
        same = count_common(line[::-1], known[::-1])
        return len(line) - len(line[len(line) - same :].lstrip())

    def find_output_before_echo(self, line: str) -> str | None:
        """The same for what stands left of a typed line's echo: there also a continuation prompt may be."""
        kept = self.find_output_before(line)
        if kept is None or kept:
            at = _find_rule_start(self._more, line[-LONGEST:])
            if at is not None:
                return line[: max(0, len(line) - LONGEST) + at]
            if (MORE if kept is None else MORE_ONCE).match(line):
                return ""
        return kept

    def remove_prompts(self, text: str, count: int) -> str:
        """The text without `count` prompts: at its very beginning, then at beginnings of lines, then elsewhere."""
        while count and (found := self._opening.match(text) or AGAIN.match(text)):
            text, count = text[found.end() :], count - 1
        for begin in (r"^", r""):
            if count and self._known:
                pattern = re.compile(begin + self._opening.pattern, re.MULTILINE)
                text, done = pattern.subn("", text, count=count)
                count -= done
        return text


def _compile_anchored(rules: tuple[Rule, ...]) -> Iterator[re.Pattern[str]]:
    """The patterns that tell where a prompt begins, not only what it ends with."""
    for rule in rules:
        text = re.sub(r"\A\(\?[a-z]+\)", "", rule.re)
        if rule.where != "title" and text.startswith(("^", r"\A")):
            yield re.compile(rule.re, re.MULTILINE)


def _find_rule_start(rules: list[re.Pattern[str]], line: str) -> int | None:
    """From where on the line is a prompt by one of the rules; the longest counts."""
    if not rules:
        return None
    for at in range(len(line)):
        rest = line[at:]
        if any(_is_whole_match(rule, rest) or _is_whole_match(rule, rest.rstrip()) for rule in rules):
            return at
    return None


def _find_famous_start(line: str, at: int | None) -> int | None:
    """From where on the line is a well-known prompt, where another begins behind that or not at all."""
    found = FAMOUS.search(line)
    return found.start() if found and (at is None or found.start() < at) else at


def _is_whole_match(rule: re.Pattern[str], text: str) -> bool:
    found = rule.match(text)
    return found is not None and not text[found.end() :].strip()


def count_common(one: str, other: str) -> int:
    """With how many characters both begin."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _prompt_shape(prompt: str) -> str:
    """A pattern for this prompt with other numbers in it, and with psql's other signs (%R%x in psql(1), Prompting)."""
    pieces = re.split(r"(\d+|[=^!*'\"$(-][*!?]?(?=[#>]))", prompt)
    return "".join(_shape_piece(piece) if at % 2 else re.escape(piece) for at, piece in enumerate(pieces))


def _shape_piece(piece: str) -> str:
    return r"\d+" if piece.isdigit() else r"[=^!*'\"$(-][*!?]?"
