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


KNOWN = 500
"""A typed text of so many characters may be only the beginning of it."""


class Event(NamedTuple):
    """One event of a program's hooks: what the profile says of it, and its JSON."""

    told: HookEventRule
    data: Any

    @property
    def means(self) -> str:
        return self.told.means

    @property
    def text(self) -> str | None:
        """The answer's text, None if this event carries none."""
        return _joined(self.data, self.told.text)

    @property
    def input(self) -> str | None:
        """The input the event is about, None if it does not say."""
        return _joined(self.data, self.told.input)

    @property
    def transcript(self) -> str | None:
        """The path of the transcript, None if it names none."""
        return _joined(self.data, self.told.transcript)

    @property
    def tokens(self) -> int | None:
        """How many tokens the answer took, None if it does not say."""
        return _number(self.data, self.told.tokens)


class Spoken(NamedTuple):
    """An answer out of a transcript, and how many tokens it took, None if that is not told."""

    text: str
    tokens: int | None


def event(name: str, payload: bytes, hooks: Hooks) -> Event | None:
    """The event of this name and JSON; None if the profile says nothing of it."""
    fitting = [told for told in hooks.events if told.on == name]
    if not fitting:
        return None
    try:
        data = parse_json(payload) if payload.strip() else {}
    except ValueError:
        data = {}
    return next((Event(told, data) for told in fitting if matches(data, told.where)), None)


def squeezed(text: str) -> str:
    """Without blanks: programs trim what they are given, and wrap what they show."""
    return "".join(text.split())


def alike(said: str, typed: str, *, kept: int = KNOWN) -> bool:
    """Whether a text is what was typed, of which with `kept` characters or more the end may not be known any more."""
    one, other = squeezed(said), squeezed(typed)
    return one == other or (len(other) >= kept and one.startswith(other))


def values(data: Any, path: str) -> list[Any]:
    """What stands at a path: `a.b`, `a[].b` for every item of a list, `a[-1]` for its last; empty where there is nothing."""
    found = [data]
    for step in path.split("."):
        name, bracket, index = step.partition("[")
        found = [one[name] for one in found if isinstance(one, Mapping) and name in one]
        if bracket:
            found = list(_items(found, index.rstrip("]")))
        if len(found) > VALUES_LIMIT:
            return []
    return found


def _items(lists: Sequence[Any], index: str) -> Iterator[Any]:
    for one in lists:
        if isinstance(one, list) and not index:
            yield from one
        elif isinstance(one, list) and -len(one) <= int(index) < len(one):
            yield one[int(index)]
        elif isinstance(one, str) and not index:
            # what may be one text or a list of parts
            yield {"text": one, "type": "text"}


def matches(data: Any, where: Mapping[str, str]) -> bool:
    """Whether each of these paths leads to a text that its pattern is found in."""
    return all(_fits(pattern, values(data, path)) for path, pattern in where.items())


def _fits(pattern: str, found: Sequence[Any]) -> bool:
    known = patterns.compiled(pattern)
    return known is not None and any(known.search(_text(one)) for one in found)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _joined(data: Any, path: str | None) -> str | None:
    found = [one for one in values(data, path) if isinstance(one, str)] if path else []
    return "\n".join(found) if found else None


def _number(data: Any, path: str | None) -> int | None:
    found = [one for one in values(data, path) if isinstance(one, int) and not isinstance(one, bool)] if path else []
    return sum(found) if found else None


# Transcripts


def spoken(data: bytes, how: Transcript, typed: str) -> Spoken | None:
    """What the transcript holds in answer to the last input of this text; None if that does not stand there.

    The answer is the last message the program wrote to it: those before it lead to its actions.
    """
    if how.form == "markdown":
        return _of_markdown(data.decode("utf-8", "replace"), how, typed)
    entries = _entries(data, how)
    if how.time:
        # what was written later may stand before (measured: Claude's first turn)
        entries.sort(key=lambda one: _joined(one, how.time) or "")
    asked = [at for at, one in enumerate(entries) if matches(one, how.user) and _said(one, how, typed)]
    if not asked:
        return None
    texts: dict[str, list[str]] = {}
    tokens: dict[str, int] = {}
    for at, one in enumerate(entries[asked[-1] + 1 :]):
        if how.user and matches(one, how.user) and _joined(one, how.input):
            break
        if not matches(one, how.agent):
            continue
        # one message may stand in several entries
        key = str(next(iter(values(one, how.id)), at) if how.id else at)
        text = _joined(one, how.text)
        if text and text not in texts.get(key, ()):
            texts.setdefault(key, []).append(text)
        if (count := _number(one, how.tokens)) is not None:
            tokens[key] = count
    if not texts:
        return None
    return Spoken("\n".join(list(texts.values())[-1]), sum(tokens.values()) if tokens else None)


def _said(entry: Any, how: Transcript, typed: str) -> bool:
    said = _joined(entry, how.input)
    return said is not None and alike(said, typed)


def _entries(data: bytes, how: Transcript) -> list[Any]:
    if how.form == "json":
        try:
            whole = parse_json(data, limit=len(data))
        except ValueError:
            return []
        return values(whole, how.items) if how.items else whole if isinstance(whole, list) else []
    found = []
    for line in data.split(b"\n"):
        try:
            entry = parse_json(line, limit=len(line)) if line.strip() else None
        except ValueError:
            # the last line may be half written
            continue
        found += [entry] if entry is not None else []
    return found


def _of_markdown(text: str, how: Transcript, typed: str) -> Spoken | None:
    """The lines behind the last input that are neither input nor what the program says of itself."""
    echo = re.compile(how.user.get("line", r"(?!)"))
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
    for given, lines in reversed(turns):
        if alike("\n".join(given), typed):
            answer = _last_part(lines, how)
            for pattern in how.drop:
                answer = re.sub(pattern, "", answer)
            answer = answer.strip("\n")
            return Spoken(answer, _counted(lines, how)) if answer else None
    return None


def _counted(lines: Sequence[str], how: Transcript) -> int | None:
    """The tokens that the lines behind the answers tell, as `119` or `1.2k`: the group `tokens` of `until`."""
    ends = [found for line in lines if how.until and (found := re.search(how.until, line))]
    counts = [one["tokens"].lower() for one in ends if "tokens" in one.groupdict() and one["tokens"]]
    if not counts or not all(re.fullmatch(r"\d+(?:\.\d+)?k?", one) for one in counts):
        return None
    return round(sum(float(one.rstrip("k")) * (1000 if one.endswith("k") else 1) for one in counts))


def _last_part(lines: Sequence[str], how: Transcript) -> str:
    """What was said last, up to what the program writes behind it; its own lines before that are left out."""
    skipped = [re.compile(one) for one in how.skip]

    def own(line: str) -> bool:
        return any(one.search(line) for one in skipped)

    ends = [at for at, line in enumerate(lines) if how.until and re.search(how.until, line)]
    if not ends:
        return "\n".join(line for line in lines if not own(line))
    begin = ends[-2] + 1 if len(ends) > 1 else 0
    while begin < ends[-1] and (own(lines[begin]) or not lines[begin]):
        begin += 1
    return "\n".join(lines[begin : ends[-1]])
