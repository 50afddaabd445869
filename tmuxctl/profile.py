"""What is known of one program beforehand: its prompts, questions, busy signs and manners, as data from a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tmuxctl.model import NOTHING
from tmuxctl.value import Value


class Rule(NamedTuple):
    """A pattern (`re`, Python's, multi-line) and where it counts: `screen`, `bottom:N`, `cursor-line`, `last-line`, `title`.

    `kind`, `question` (a pattern whose group `q` is the question's text), `options` (id to keys), `default` and `risk` are
    for questions; `detail` refines a state (`shell`, `repl`, `agent` for prompts; `streaming`, `thinking` for busy).
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
    """Where an answer begins (a pattern, None: right after the echo), lines that are never part of it, where it ends."""

    begin: str | None = None
    strip: tuple[str, ...] = ()
    until: str | None = None


class Profile(Value):
    """One program, resolved: `extends` merged, frozen into the session when it is created."""

    name: str
    argv0: tuple[str, ...] = ()
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
    settle: float | None = None
    submit: Submit = Submit()
    answer: Answer = Answer()
    interrupt: tuple[str, ...] = ("C-c",)
    exit_send: str | None = None
    exit_keys: tuple[str, ...] = ("C-d",)
    hooks: str | None = None
    cost: float | None = None
    resume: tuple[str, ...] = ()
    notes: str = ""
