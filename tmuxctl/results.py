"""What the operations return beside a Session; apart from model.py so that a quick verb builds only what it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tmuxctl.model import Confidence, State


@dataclass(frozen=True)
class CursorPosition:
    """Where the terminal's cursor stands, from 0, and whether it shows."""

    x: int
    y: int
    visible: bool


@dataclass(frozen=True)
class Screen:
    """What a person would see: rows without trailing blanks, trailing empty rows removed."""

    session: str
    text: str
    cols: int
    rows: int
    cursor: CursorPosition
    alt: bool
    title: str
    state: State
    by: str | None
    position: str | None
    truncated: bool = False
    scrollback: tuple[str, ...] | None = None
    ansi: str | None = None
    html: str | None = None
    svg: str | None = None


@dataclass(frozen=True)
class Output:
    """A stretch of a session's output and the cursor behind it."""

    session: str
    text: str
    cursor: str
    truncated: bool = False
    complete: bool = True


@dataclass(frozen=True)
class Written:
    """What became of a write: `done`, or `dup` when this id was written before. `cursor` is the point before the input."""

    session: str
    result: str
    id: str
    bytes: int
    cursor: str | None = None


@dataclass(frozen=True)
class Wait:
    """How a wait ended. `matched` is the condition that held, or None; `why` says it in words; `elapsed` is in seconds."""

    session: str
    matched: str | None
    why: str
    text: str | None = None
    groups: tuple[str | None, ...] | None = None
    state: State = State.UNKNOWN
    kind: str | None = None
    detail: str | None = None
    by: str | None = None
    confidence: Confidence | None = None
    asking: Mapping[str, Any] | None = None
    elapsed: float = 0.0
    cursor: str | None = None
    timed_out: bool = False
    exit_status: int | None = None
    signal: str | None = None


@dataclass(frozen=True)
class Ran:
    """A command's exact output and exit status. `elapsed` is in seconds; `data` holds the bytes as they were."""

    session: str
    output: str
    data: bytes
    exit_status: int | None
    signal: str | None = None
    elapsed: float = 0.0
    cursor: str | None = None
    truncated: bool = False
    timed_out: bool = False


@dataclass(frozen=True)
class Killed:
    """What `kill` ended and what it could not."""

    session: str
    id: str
    exit_status: int | None
    signal: str | None
    ended: int
    escaped: tuple[int, ...] = ()
