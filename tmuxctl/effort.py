"""How long a pattern may search at worst: an upper bound on its steps, read off the pattern before it runs.

Python's `re` tries every way to match from every place of a text. What multiplies ways is a choice that is not settled by
the next character: repetitions that overlap, or one within another. The bound never says too little; where it cannot
tell, it says infinity.
"""

from __future__ import annotations

import re
from math import inf
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

WORD, DIGIT, SPACE, REST = (1 << bit for bit in range(128, 132))
"""A set of characters is an int: a bit for each ASCII one, and one for each kind of the others."""

OTHERS = WORD | DIGIT | SPACE | REST
ASCII = (1 << 128) - 1
ANYTHING = ASCII | OTHERS
NEWLINE = 1 << ord("\n")


def _ascii(kind: Any) -> int:
    return sum(1 << number for number in range(128) if kind(chr(number)))


KINDS = {
    codes.CATEGORY_WORD: (_ascii(lambda one: one.isalnum() or one == "_"), WORD | DIGIT),
    codes.CATEGORY_DIGIT: (_ascii(str.isdecimal), DIGIT),
    codes.CATEGORY_SPACE: (_ascii(lambda one: one in " \t\n\r\f\v"), SPACE),
}
OPPOSITES = {
    codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
    codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
    codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
}
SEPARATORS = 0xF << 0x1C
"""U+001C to U+001F: white space to `\\s`, unless the pattern is (?a)."""


FOLDING = re.compile(r"\(\?[a-zA-Z]*i")


class Effort(NamedTuple):
    """Ways in which a part may match from one place, and steps to try them all."""

    ways: float
    steps: float


class Text(NamedTuple):
    """What of a text matters: its length, and that of its longest line."""

    length: int
    line: int


class Run:
    """One character of a set, so many times. `tries` is 0 if what follows may match within it; else what finding out costs."""

    def __init__(self, members: int, least: int, most: float, tries: int = 0) -> None:
        self.members, self.least, self.most, self.tries = members, least, most, tries

    def effort(self, text: Text) -> Effort:
        """A run within one line is no longer than the longest."""
        longest = min(self.most, text.length if self.members & NEWLINE else text.line)
        if self.least == self.most or self.tries:
            return Effort(1, 1 + longest * (1 + self.tries))
        return Effort(1 + max(0, longest - self.least), 1 + 2 * longest)


class Repeat:
    """A longer part, so many times; a possessive one never gives back. `width`: characters it takes at least."""

    def __init__(self, body: Parts, width: int, least: int, most: float, possessive: bool) -> None:
        self.body, self.width, self.least, self.most, self.possessive = body, width, least, most, possessive

    def effort(self, text: Text) -> Effort:
        """The ways of the body multiply with each time."""
        times = min(self.most, text.length // max(1, self.width) + 1)
        ways, steps = _sequence(self.body, text)
        if ways <= 1:
            found = Effort(1 + max(0, times - self.least), (1 + times) * (1 + steps))
        else:
            paths = _power(ways, times + 1)
            found = Effort(paths, paths * (1 + steps))
        return Effort(1, found.steps) if self.possessive else found


class Choice:
    """One of several parts."""

    def __init__(self, branches: tuple[Parts, ...]) -> None:
        self.branches = branches

    def effort(self, text: Text) -> Effort:
        """The ways of all."""
        found = [_sequence(branch, text) for branch in self.branches]
        return Effort(sum(one.ways for one in found), sum(1 + one.steps for one in found))


class Aside:
    """A part that matches in one way or not at all: an anchor, a lookaround, an atomic group."""

    def __init__(self, body: Parts = ()) -> None:
        self.body = body

    def effort(self, text: Text) -> Effort:
        """Only its steps count."""
        return Effort(1, 1 + _sequence(self.body, text).steps)


class Again:
    """What a group matched, once more."""

    def effort(self, text: Text) -> Effort:
        """At most the whole text is compared."""
        return Effort(1, 1 + text.length)


class Unknown:
    """Something this module does not know."""

    def effort(self, text: Text) -> Effort:
        """No bound."""
        return Effort(inf, inf)


Part = Run | Repeat | Choice | Aside | Again | Unknown
Parts = tuple[Part, ...]


class Bound:
    """The bound of one pattern."""

    def __init__(self, pattern: str, flags: int) -> None:
        """Raises what `re.compile` raises for a bad one."""
        tree: Any = parser.parse(pattern, flags)
        flags = tree.state.flags
        self.beginning = _beginning(tree, flags)
        self.at_lines = (
            flags & re.MULTILINE and tree[:1] and tree[0][0] is codes.AT and tree[0][1] is codes.AT_BEGINNING
        )
        self.folded = _spread(tree) if FOLDING.search(pattern) else 0
        """Characters that compiling it looks at one by one."""
        self.parts = _settled(_parts(tree, flags), True)

    def steps(self, text: str, start: int, *, lines: bool) -> float:
        """Steps a search from `start` takes at most. `lines`: measure them too, a closer bound that takes a moment."""
        length = len(text) - start
        line = max(map(len, text[start:].split("\n"))) if lines else length
        return 2 * length + self._places(text, start) * _sequence(self.parts, Text(length, line)).steps

    def _places(self, text: str, start: int) -> int:
        """So many places are more than looked at."""
        if self.beginning:
            return text.count(self.beginning, start) * len(self.beginning)
        return text.count("\n", start) + 2 if self.at_lines else len(text) - start + 1


def _sequence(parts: Parts, text: Text) -> Effort:
    ways, steps = 1.0, 1.0
    for part in parts:
        found = part.effort(text)
        steps += ways * found.steps
        ways *= found.ways
    return Effort(ways, steps)


def _power(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return inf


def _beginning(tree: Any, flags: int) -> str:
    """The characters every match begins with."""
    found = ""
    for code, value in [] if flags & re.IGNORECASE else tree:
        if code is not codes.LITERAL:
            break
        found += chr(value)
    return found


def _spread(tree: Any) -> int:
    """How many characters its ranges name, counted as often as they do."""
    total, left = 0, [tree]
    while left:
        one = left.pop()
        if isinstance(one, tuple) and len(one) == 2 and one[0] is codes.RANGE:
            total += min(one[1][1], 0xFFFF) - min(one[1][0], 0xFFFF) + 1
        elif isinstance(one, (tuple, list, parser.SubPattern)):
            left.extend(one)
    return total


def _parts(tree: Any, flags: int) -> list[Part]:
    """The parts of a parsed pattern; groups that only capture are opened."""
    found: list[Part] = []
    for code, value in tree:
        if code is codes.SUBPATTERN:
            _, add, remove, body = value
            found.extend(_parts(body, (flags | add) & ~remove))
        else:
            found.append(_part(code, value, flags))
    return found


def _part(code: Any, value: Any, flags: int) -> Part:
    members = _members(code, value, flags)
    if members is not None:
        return Run(members, 1, 1)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return _repeat(value, flags, code is codes.POSSESSIVE_REPEAT)
    if code is codes.BRANCH:
        return Choice(tuple(_inner(branch, flags) for branch in value[1]))
    if code is codes.GROUPREF_EXISTS:
        return Choice(tuple(_inner(branch, flags) for branch in value[1:] if branch is not None))
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return Aside(_inner(value[1], flags))
    if code is codes.ATOMIC_GROUP:
        return Aside(_inner(value, flags))
    if code in (codes.AT, codes.FAILURE):
        return Aside()
    return Again() if code is codes.GROUPREF else Unknown()


def _inner(tree: Any, flags: int) -> Parts:
    return _settled(_parts(tree, flags), False)


def _repeat(value: Any, flags: int, possessive: bool) -> Part:
    least, most, body = value
    limit = inf if most is codes.MAXREPEAT else int(most)
    inside = _inner(body, flags)
    only = inside[0] if len(inside) == 1 and not possessive else None
    if isinstance(only, Run) and only.least == only.most == 1:
        return Run(only.members, int(least), limit)
    return Repeat(inside, int(body.getwidth()[0]), int(least), limit, possessive)


def _settled(parts: list[Part], outermost: bool) -> Parts:
    """Mark the runs that only one length can follow: what comes next, one character at least, is none of theirs."""
    for index, part in enumerate(parts):
        if isinstance(part, Run):
            part.tries = _tries(part, parts[index + 1 :], outermost)
    return tuple(parts)


def _tries(run: Run, following: list[Part], outermost: bool) -> int:
    for count, part in enumerate(following, 1):
        if not isinstance(part, Run) or part.members & run.members:
            return 0
        if part.least:
            return count
    # at the very end the first length tried is a match, and the search is over
    return 1 + len(following) if outermost else 0


def _members(code: Any, value: Any, flags: int) -> int | None:
    """A set that holds all the characters this may match; None if it is not for one character."""
    if code is codes.LITERAL:
        return _literal(value, flags)
    if code is codes.NOT_LITERAL:
        return ANYTHING & ~(_cased(1 << value, flags) if value < 128 else 0)
    if code is codes.ANY:
        return ANYTHING if flags & re.DOTALL else ANYTHING & ~NEWLINE
    if code is not codes.IN:
        return None
    if value[0][0] is codes.NEGATE:
        without = 0
        for entry, what in value[1:]:
            without |= _surely(entry, what, flags)
        return ANYTHING & ~without
    found = 0
    for entry, what in value:
        found |= _perhaps(entry, what, flags)
    return found


def _perhaps(code: Any, value: Any, flags: int) -> int:
    """All that one entry of a set may match."""
    if code is codes.LITERAL:
        return _literal(value, flags)
    if code is codes.RANGE:
        low, high = value
        if high > 127 and flags & re.IGNORECASE:
            return ANYTHING
        found = _cased(_between(low, high), flags)
        return found | (OTHERS if high > 127 else WORD if flags & re.IGNORECASE else 0)
    if code is codes.CATEGORY:
        return _category(value, flags, True)
    return ANYTHING


def _surely(code: Any, value: Any, flags: int) -> int:
    """What one entry of a set matches without doubt."""
    if code is codes.LITERAL:
        return _cased(1 << value, flags) if value < 128 else 0
    if code is codes.RANGE:
        return _cased(_between(*value), flags)
    return _category(value, flags, False) if code is codes.CATEGORY else 0


def _literal(value: int, flags: int) -> int:
    if value < 128:
        # (?i)k matches the Kelvin sign, (?i)s the long s
        return _cased(1 << value, flags) | (WORD if flags & re.IGNORECASE else 0)
    if flags & re.IGNORECASE:
        return ANYTHING
    one = chr(value)
    return DIGIT if one.isdecimal() else WORD if one.isalnum() else SPACE if one.isspace() else REST


def _between(low: int, high: int) -> int:
    return ((1 << (min(high, 127) + 1)) - 1) & ~((1 << low) - 1) & ASCII


def _cased(members: int, flags: int) -> int:
    if flags & re.IGNORECASE:
        upper = members >> 65 & 0x3FFFFFF
        lower = members >> 97 & 0x3FFFFFF
        return members | lower << 65 | upper << 97
    return members


def _category(value: Any, flags: int, generous: bool) -> int:
    """The characters of `\\w`, `\\d`, `\\s` or an opposite: at most those if `generous`, else at least those."""
    opposite = OPPOSITES.get(value)
    if opposite is not None:
        return ANYTHING & ~_category(opposite, flags, not generous)
    plain, others = KINDS.get(value, (ANYTHING, 0) if generous else (0, 0))
    if value is codes.CATEGORY_SPACE and generous and not flags & re.ASCII:
        plain |= SEPARATORS
    return plain if flags & re.ASCII else plain | others
