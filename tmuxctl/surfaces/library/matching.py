"""What was found in a session's output: matches, and pexpect's way of going on behind the last one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tmuxctl.errors import Exited, Timeout, Usage
from tmuxctl.value import NamedTuple
from tmuxctl.vocabulary import WaitCondition

if TYPE_CHECKING:
    from tmuxctl.control.service import Control
    from tmuxctl.results import Wait


class EOF:
    """In a list for `expect`: the end of the program."""


class TIMEOUT:
    """In a list for `expect`: that nothing else matched in time."""


Pattern = str | re.Pattern[str] | type
Patterns = Pattern | Sequence[Pattern]
Compiled = list[re.Pattern[str] | type]


class TextMatch:
    """A text that matched: `found`, its groups as of `re.Match`, and the `cursor` of the output behind it, if that is known."""

    def __init__(self, found: str, groups: Sequence[str | None], names: dict[str, int], cursor: str | None) -> None:
        self.found = found
        self.cursor = cursor
        self._groups, self._names = (found, *groups), names

    def __repr__(self) -> str:
        return f"<match {ascii(self.found[:60])}>"

    def __getitem__(self, group: int | str) -> str | None:
        return self._groups[self._names[group] if isinstance(group, str) else group]

    def group(self, *groups: int | str) -> str | tuple[str | None, ...] | None:
        """The group of this number or name, by default the whole; a tuple for several.

        >>> sh.send("echo a-b").wait_for(r"^(\\w)-(?P<second>\\w)").group(1, "second")
        ('a', 'b')
        """
        found = tuple(self[group] for group in groups or (0,))
        return found if len(found) > 1 else found[0]

    def groups(self) -> tuple[str | None, ...]:
        """All groups but the whole.

        >>> sh.send("echo a-b").wait_for(r"^(\\w)-(\\w)").groups()
        ('a', 'b')
        """
        return tuple(self._groups[1:])

    def groupdict(self) -> dict[str, str | None]:
        """The named groups.

        >>> sh.send("echo a-b").wait_for(r"^(?P<first>\\w)-").groupdict()
        {'first': 'a'}
        """
        return {name: self._groups[number] for name, number in self._names.items()}


def to_match(found: Wait, pattern: str) -> TextMatch:
    """The match that ended a wait for a text."""
    names = dict(re.compile(pattern).groupindex)
    return TextMatch(found.text or "", found.groups or (), names, found.cursor)


def compile_patterns(patterns: Patterns, *, exact: bool = False) -> Compiled:
    """Patterns as they are tried: ^ and $ match at every line. Usage `bad_pattern`."""
    many = [patterns] if isinstance(patterns, (str, re.Pattern, type)) else list(patterns)
    compiled: Compiled = []
    for pattern in many:
        if isinstance(pattern, re.Pattern) or pattern in (EOF, TIMEOUT):
            compiled.append(pattern)
            continue
        if not isinstance(pattern, str):
            raise Usage(f"{ascii(pattern)[:40]} is no pattern", reason="bad_pattern", hint="a str, EOF or TIMEOUT")
        try:
            compiled.append(re.compile(_to_expression(pattern, exact), re.MULTILINE))
        except (re.error, OverflowError, RecursionError, ValueError) as error:
            raise Usage(f"{ascii(pattern[:40])}: {error}", reason="bad_pattern") from None
    return compiled


def _to_expression(pattern: str, exact: bool) -> str:
    from tmuxctl.reading.text.patterns import let_blanks_end_rows

    if not exact:
        return let_blanks_end_rows(pattern)
    kept = pattern.rstrip(" ")
    return let_blanks_end_rows(re.escape(kept) + pattern[len(kept) :])


class Expectation(NamedTuple):
    """Which pattern matched, and the output before it."""

    which: int
    match: TextMatch
    before: str


class Expected:
    """How far the output of a session was taken by `expect`: so many characters of what came since an input."""

    def __init__(self) -> None:
        self._input, self._taken, self._text = "", 0, ""

    def wait(self, control: Control, session: str, patterns: Compiled, left: Callable[[], float]) -> Expectation:
        """Wait until one of the patterns matches what was not taken yet; of several the one that begins first. Raises Timeout
        when no time is `left`, in seconds, and Exited when the program has ended without."""
        while True:
            cursor = self._look(control, session)
            if found := self._find(patterns):
                return found
            now = control.wait(session, change=True, exit=True, since=cursor, timeout=left())
            if now.timed_out:
                raise Timeout(f"{now.session}: none of the patterns matched", hint="give it more time: timeout=")
            if now.matched is WaitCondition.EXIT:
                cursor = self._look(control, session)
                if found := self._find(patterns):
                    return found
                raise Exited(f"{now.session} ended, and none of the patterns matched", hint="see its log()")

    def rest(self) -> str:
        """What was not taken when nothing matched."""
        return self._text[self._taken :]

    def _look(self, control: Control, session: str) -> str:
        """The output since the last input, and the cursor behind it; a new input begins anew."""
        from tmuxctl.control.output import printed

        place, name = control.reach(session)
        given, output = printed.read_since_input(place.machine, name)
        if given != self._input:
            self._input, self._taken = given, 0
        self._text = output.text
        # rows that were drawn anew may have become shorter
        self._taken = min(self._taken, len(self._text))
        return output.cursor

    def _find(self, patterns: Compiled) -> Expectation | None:
        best: tuple[int, int, re.Match[str]] | None = None
        for index, pattern in enumerate(patterns):
            found = pattern.search(self._text, self._taken) if isinstance(pattern, re.Pattern) else None
            if found and (best is None or found.start() < best[0]):
                best = found.start(), index, found
        if best is None:
            return None
        start, index, found = best
        before, self._taken = self._text[self._taken : start], found.end()
        return Expectation(index, TextMatch(found[0], found.groups(), dict(found.re.groupindex), None), before)
