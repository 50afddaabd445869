"""What a program tells of its turns itself: events of its hooks, and the transcript it keeps.

Both are the program's text: they say what an answer was, never that something is allowed. Where in their JSON a thing
stands is said by the profile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tmuxctl.reading.text import patterns
from tmuxctl.untrusted import parse_json

if TYPE_CHECKING:
    from tmuxctl.program_profile import HookEventRule, Hooks, Transcript

VALUES_LIMIT = 100_000
"""Values that one path may reach."""


KNOWN_LENGTH = 500
"""Characters from which on a kept input may be only the beginning of what was typed."""


class HookEvent(NamedTuple):
    """One event of a program's hooks: what the profile says of it, and its JSON."""

    rule: HookEventRule
    data: Any

    @property
    def means(self) -> str:
        return self.rule.means

    @property
    def text(self) -> str | None:
        """The answer's text, None if this event carries none."""
        return _join_texts(self.data, self.rule.text)

    @property
    def input(self) -> str | None:
        """The input the event is about, None if it does not say."""
        return _join_texts(self.data, self.rule.input)

    @property
    def transcript(self) -> str | None:
        """The path of the transcript, None if it names none."""
        return _join_texts(self.data, self.rule.transcript)

    @property
    def tokens(self) -> int | None:
        """How many tokens the answer took, None if it does not say."""
        return _sum_numbers(self.data, self.rule.tokens)


class TranscriptAnswer(NamedTuple):
    """An answer out of a transcript, and how many tokens it took, None if that is not told."""

    text: str
    tokens: int | None


def parse_event(name: str, payload: bytes, hooks: Hooks) -> HookEvent | None:
    """The event of this name and JSON; None if the profile says nothing of it."""
    fitting = [rule for rule in hooks.events if rule.on == name]
    if not fitting:
        return None
    try:
        data = parse_json(payload)
    except ValueError:
        data = {}
    return next((HookEvent(rule, data) for rule in fitting if matches(data, rule.where)), None)


def remove_blanks(text: str) -> str:
    """Without blanks: programs trim what they are given, and wrap what they show."""
    return "".join(text.split())


def is_same_input(said: str, typed: str, *, kept: int = KNOWN_LENGTH) -> bool:
    """Whether a text is what was typed, of which with `kept` characters or more the end may not be known any more."""
    without_blanks, other = remove_blanks(said), remove_blanks(typed)
    return without_blanks == other or (len(other) >= kept and without_blanks.startswith(other))


def find_values(data: Any, path: str) -> list[Any]:
    """What stands at a path: `a.b`, `a[].b` for every item of a list, `a[-1]` for its last; empty where there is nothing."""
    found = [data]
    for step in path.split("."):
        name, bracket, index = step.partition("[")
        found = [value[name] for value in found if isinstance(value, Mapping) and name in value]
        if bracket:
            found = list(_list_items(found, index.rstrip("]")))
        if len(found) > VALUES_LIMIT:
            return []
    return found


def _list_items(lists: Sequence[Any], index: str) -> Iterator[Any]:
    for value in lists:
        if isinstance(value, list) and not index:
            yield from value
        elif isinstance(value, list) and -len(value) <= int(index) < len(value):
            yield value[int(index)]
        elif isinstance(value, str) and not index:
            # what may be one text or a list of parts
            yield {"text": value, "type": "text"}


def matches(data: Any, where: Mapping[str, str]) -> bool:
    """Whether each of these paths leads to a text that its pattern is found in."""
    return all(_matches_any(pattern, find_values(data, path)) for path, pattern in where.items())


def _matches_any(pattern: str, found: Sequence[Any]) -> bool:
    known = patterns.compile_pattern(pattern)
    return known is not None and any(
        known.search(value if isinstance(value, str) else json.dumps(value)) for value in found
    )


def _join_texts(data: Any, path: str | None) -> str | None:
    found = [value for value in find_values(data, path) if isinstance(value, str)] if path else []
    return "\n".join(found) if found else None


def _sum_numbers(data: Any, path: str | None) -> int | None:
    values = find_values(data, path) if path else ()
    found = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    return sum(found) if found else None


# Transcripts


def find_answer(data: bytes, transcript: Transcript, typed: str) -> TranscriptAnswer | None:
    """What the transcript holds in answer to the last input of this text; None if that does not stand there.

    The answer is the last message the program wrote to it: those before it lead to its actions.
    """
    if transcript.form == "markdown":
        return _find_in_markdown(data.decode("utf-8", "replace"), transcript, typed)
    entries = _parse_entries(data, transcript)
    if transcript.time:
        # what was written later may stand before (measured: Claude's first turn)
        entries.sort(key=lambda entry: _join_texts(entry, transcript.time) or "")
    asked = [
        at
        for at, entry in enumerate(entries)
        if matches(entry, transcript.user) and _is_typed(entry, transcript, typed)
    ]
    if not asked:
        return None
    texts: dict[str, list[str]] = {}
    tokens: dict[str, int] = {}
    for at, entry in enumerate(entries[asked[-1] + 1 :]):
        if transcript.user and matches(entry, transcript.user) and _join_texts(entry, transcript.input):
            break
        if not matches(entry, transcript.agent):
            continue
        # one message may stand in several entries
        key = str(next(iter(find_values(entry, transcript.id)), at) if transcript.id else at)
        text = _join_texts(entry, transcript.text)
        if text and text not in texts.get(key, ()):
            texts.setdefault(key, []).append(text)
        if (count := _sum_numbers(entry, transcript.tokens)) is not None:
            tokens[key] = count
    if not texts:
        return None
    return TranscriptAnswer("\n".join(list(texts.values())[-1]), sum(tokens.values()) if tokens else None)


def _is_typed(entry: Any, transcript: Transcript, typed: str) -> bool:
    said = _join_texts(entry, transcript.input)
    return said is not None and is_same_input(said, typed)


def _parse_entries(data: bytes, transcript: Transcript) -> list[Any]:
    if transcript.form == "json":
        try:
            whole = parse_json(data, limit=len(data))
        except ValueError:
            return []
        return find_values(whole, transcript.items) if transcript.items else whole if isinstance(whole, list) else []
    found = []
    for line in data.split(b"\n"):
        try:
            found.append(parse_json(line, limit=len(line)))
        except ValueError:
            # it is empty, or the last one, half written
            continue
    return found


def _find_in_markdown(text: str, transcript: Transcript, typed: str) -> TranscriptAnswer | None:
    """The lines behind the last input that are neither input nor what the program says of itself."""
    echo = re.compile(transcript.user.get("line", r"(?!)"))
    turns: list[tuple[list[str], list[str]]] = []
    asking = False
    for line in text.split("\n"):
        found = echo.search(line)
        if found:
            if not asking:
                turns.append(([], []))
            turns[-1][0].append(found[1])
        elif turns:
            turns[-1][1].append(line.removesuffix("\r"))
        asking = found is not None
    for typed_lines, lines in reversed(turns):
        if is_same_input("\n".join(typed_lines), typed):
            answer = _cut_last_part(lines, transcript)
            for pattern in transcript.drop:
                answer = re.sub(pattern, "", answer)
            answer = answer.strip("\n")
            return TranscriptAnswer(answer, _count_tokens(lines, transcript)) if answer else None
    return None


def _count_tokens(lines: Sequence[str], transcript: Transcript) -> int | None:
    """The tokens that the lines behind the answers tell, as `119` or `1.2k`: the group `tokens` of `until`."""
    ends = [found for line in lines if transcript.until and (found := re.search(transcript.until, line))]
    counts = [match["tokens"].lower() for match in ends if "tokens" in match.groupdict() and match["tokens"]]
    if not counts or not all(re.fullmatch(r"\d+(?:\.\d+)?k?", match) for match in counts):
        return None
    return round(sum(float(match.rstrip("k")) * (1000 if match.endswith("k") else 1) for match in counts))


def _cut_last_part(lines: Sequence[str], transcript: Transcript) -> str:
    """What was said last, up to what the program writes behind it; its own lines before that are left out."""
    skipped = [re.compile(pattern) for pattern in transcript.skip]

    def own(line: str) -> bool:
        return any(pattern.search(line) for pattern in skipped)

    ends = [at for at, line in enumerate(lines) if transcript.until and re.search(transcript.until, line)]
    if not ends:
        return "\n".join(line for line in lines if not own(line))
    begin = ends[-2] + 1 if len(ends) > 1 else 0
    while begin < ends[-1] and (own(lines[begin]) or not lines[begin]):
        begin += 1
    return "\n".join(lines[begin : ends[-1]])
