"""What is known of one program beforehand: its prompts, questions, busy signs and manners, as data from a YAML file.

`frozen` and `thaw` keep it in a session's folder as JSON, so that no command has to read YAML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tmuxctl.model import NOTHING
from tmuxctl.untrusted import parse_json
from tmuxctl.value import Value

FORMAT = 1
"""The form of `frozen`: another one is no profile to us."""


class Rule(NamedTuple):
    """A pattern (`re`, Python's, multi-line) and where it counts: `screen`, `bottom:N`, `cursor-line`, `last-line`, `title`.

    `begin` narrows that to the rows from the last one on that it fits; `unless` must not fit there; with `title` the rule
    counts only while that fits the terminal's title. `kind`, `question` (a pattern whose group `q` is the question's text),
    `options` (id to keys), `menu` (how an option of the list on the screen is chosen), `strip` (patterns of rows above that
    list which are no part of the question), `default`, `risk` and `hidden` (of a password that is read key by key: the
    program does not show it) are for questions; `detail` refines a state (`shell`, `repl`, `agent` for prompts;
    `streaming`, `thinking` for busy; of errors `retrying`, `limited`, and `failed` where the turn ended in the error);
    `retry` is for errors: `none` where trying again is of no use, else after how long (`30s`), None if nobody knows; their
    pattern's group `until` is when a limit is over.
    """

    id: str
    re: str
    where: str = "screen"
    kind: str | None = None
    question: str | None = None
    options: Mapping[str, tuple[str, ...]] = NOTHING
    default: str | None = None
    risk: str = "unknown"
    detail: str | None = None
    retry: str | None = None
    begin: str | None = None
    unless: str | None = None
    title: str | None = None
    menu: str | None = None
    hidden: bool = False
    strip: tuple[str, ...] = ()


class Submit(NamedTuple):
    """How text is given: typed or pasted, what makes a new line and what sends it, the pause before that (seconds), what
    is looked for before sending (`echo` or `none`), and the keys that empty the line first."""

    mode: str = "type"
    newline: tuple[str, ...] = ()
    enter: tuple[str, ...] = ("Enter",)
    delay: float = 0.0
    verify: str = "none"
    clear: tuple[str, ...] = ()


class Answer(NamedTuple):
    """Where an answer begins (a pattern, None: right after the echo), lines that are never part of it, where it ends, and
    how the program's own actions among it begin (a pattern): what comes behind the last of them is the answer. `gutter`
    is what it draws before lines of code, a pattern whose group `n` is their number."""

    begin: str | None = None
    strip: tuple[str, ...] = ()
    until: str | None = None
    tool: str | None = None
    gutter: str | None = None


class Told(NamedTuple):
    """An event the program tells of itself: its name (`on`), what it means (`submit`, `stop`, `failure`, `asking`, or
    `attention`: it wants something, nobody knows what), and
    where in its JSON the answer's text, the input it is for, the transcript's path and the number of tokens stand.
    `where` are paths with the patterns that their values have to match."""

    on: str
    means: str
    where: Mapping[str, str] = NOTHING
    text: str | None = None
    input: str | None = None
    transcript: str | None = None
    tokens: str | None = None


class Transcript(NamedTuple):
    """A file in which the program keeps its turns: its form (`json`, `jsonl`, `markdown`), the path to its entries, what an
    entry of the user's and one of the program's looks like, and where in them input, text, id, time (ISO-8601) and tokens
    stand.

    `file` is its path where no event names it; of `markdown`, `user` is the pattern of an echoed line of input, whose
    group 1 is the line, `until` of the line behind an answer, and `skip` of lines of its own where there is none. What
    `drop` fits is no part of an answer.
    """

    form: str = "jsonl"
    file: str | None = None
    items: str | None = None
    user: Mapping[str, str] = NOTHING
    agent: Mapping[str, str] = NOTHING
    input: str | None = None
    text: str | None = None
    id: str | None = None
    time: str | None = None
    tokens: str | None = None
    skip: tuple[str, ...] = ()
    until: str | None = None
    drop: tuple[str, ...] = ()


class Hooks(NamedTuple):
    """How a program is made to tell of its turns: words behind its own, variables and files it is started with, in which
    `{hook}` is the script it has to run and `{shell}` the folder of those files; and what its events say."""

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = NOTHING
    files: Mapping[str, str] = NOTHING
    events: tuple[Told, ...] = ()
    transcript: Transcript | None = None


class Profile(Value):
    """One program, resolved: `extends` merged, frozen into the session when it is created."""

    name: str
    argv0: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    foreground: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    size: str | None = None
    env: Mapping[str, str] = NOTHING
    start_timeout: float | None = None
    prompt: tuple[Rule, ...] = ()
    continuation: tuple[Rule, ...] = ()
    busy: tuple[Rule, ...] = ()
    asking: tuple[Rule, ...] = ()
    errors: tuple[Rule, ...] = ()
    title_busy: str | None = None
    title_idle: str | None = None
    password_argv: tuple[str, ...] = ()
    password_unless: tuple[str, ...] = ()
    settle: float | None = None
    submit: Submit = Submit()
    answer: Answer = Answer()
    interrupt: tuple[str, ...] = ("C-c",)
    exit_send: str | None = None
    exit_keys: tuple[str, ...] = ("C-d",)
    hooks: Hooks | None = None
    cost: float | None = None
    install: str | None = None
    resume: tuple[str, ...] = ()
    notes: str = ""


RULES = ("prompt", "continuation", "busy", "asking", "errors")
"""The fields of a Profile that hold rules."""


def frozen(profile: Profile | None) -> bytes:
    """The profile as JSON: what differs from the defaults. None, where there is no profile, is kept as that."""
    if profile is None:
        return b"{}"
    given = {name: value for name, value in vars(profile).items() if value != Profile._defaults.get(name)}
    for name in RULES:
        if name in given:
            given[name] = [_given(rule) for rule in given[name]]
    given |= {name: _given(given[name]) for name in ("submit", "answer") if name in given}
    if hooks := given.get("hooks"):
        given["hooks"] = _given(hooks)
        given["hooks"] |= {"events": [_given(one) for one in hooks.events]} if hooks.events else {}
        given["hooks"] |= {"transcript": _given(hooks.transcript)} if hooks.transcript else {}
    return json.dumps({"format": FORMAT, **given}, default=dict, ensure_ascii=False).encode()


def _given(record: Any) -> dict[str, Any]:
    """The fields of a record that were given a value of their own."""
    default = record._field_defaults
    return {name: value for name, value in record._asdict().items() if name not in default or value != default[name]}


def thaw(data: bytes) -> Profile | None:
    """The profile that `frozen` wrote. None if it says that there is none, or is nothing this version can read: then a
    state is judged without it."""
    try:
        kept = parse_json(data)
        if kept.pop("format", None) != FORMAT:
            return None
        fields: dict[str, Any] = _tuples(kept)
        for name in RULES:
            if name in fields:
                fields[name] = tuple(_thawed(Rule, one) for one in fields[name])
        for name, kind in (("submit", Submit), ("answer", Answer)):
            if name in fields:
                fields[name] = _thawed(kind, fields[name])
        if "hooks" in fields:
            fields["hooks"] = _hooks(fields["hooks"])
        return Profile(**fields) if "name" in fields else None
    except (ValueError, TypeError, AttributeError):
        return None


def _thawed(kind: Any, fields: Mapping[str, Any]) -> Any:
    found = _tuples(fields)
    if "options" in found:
        found["options"] = _tuples(found["options"])
    return kind(**found)


def _hooks(kept: Mapping[str, Any]) -> Hooks:
    found = _tuples(kept)
    if "events" in found:
        found["events"] = tuple(Told(**_tuples(one)) for one in found["events"])
    if "transcript" in found:
        found["transcript"] = Transcript(**_tuples(found["transcript"]))
    return Hooks(**found)


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
