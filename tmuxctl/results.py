"""What the operations return, beside a Session."""

from __future__ import annotations

from tmuxctl.model import Confidence, Session, State
from tmuxctl.value import Value


class CursorPosition(Value):
    """Where the terminal's cursor stands, from 0, and whether it shows."""

    x: int
    y: int
    visible: bool


class Screen(Value):
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
    """The session's cursor (surface: `cursor` of other results), behind what the screen shows."""
    truncated: bool = False
    scrollback: tuple[str, ...] | None = None
    ansi: str | None = None
    html: str | None = None
    svg: str | None = None


class Output(Value):
    """A stretch of a session's output and the cursor behind it."""

    session: str
    text: str
    cursor: str
    truncated: bool = False
    complete: bool = True
    data: bytes = b""


class Written(Value):
    """What became of a write: `done`, or `dup` when this id was written before. `cursor` is the point before the input."""

    session: str
    result: str
    id: str
    bytes: int
    cursor: str | None = None


class Option(Value):
    """One way to answer a question: its `id` (what `decide` takes), the label on the screen, and the keys that choose it."""

    id: str
    label: str
    keys: tuple[str, ...]


class Asking(Value):
    """A decision a program wants before it goes on.

    `kind` is confirm, choice, approval, trust, password, pager, keys or question; `id` names this very question, `default`
    is the id of the option that plain Enter would choose, None if there is none or nobody knows; `risk` is low, high or
    unknown. `options` is empty where any text is an answer.
    """

    kind: str
    id: str
    question: str
    options: tuple[Option, ...] = ()
    default: str | None = None
    risk: str = "unknown"


class Wait(Value):
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
    asking: Asking | None = None
    elapsed: float = 0.0
    cursor: str | None = None
    timed_out: bool = False
    exit_status: int | None = None
    signal: str | None = None


class Ran(Value):
    """A command's exact output and exit status. `elapsed` is in seconds; `data` holds the bytes as they were, `output_base64` too
    where they are no UTF-8 (then `output` has replacement characters)."""

    session: str
    output: str
    data: bytes
    output_base64: str | None
    exit_status: int | None
    signal: str | None = None
    elapsed: float = 0.0
    cursor: str | None = None
    truncated: bool = False
    timed_out: bool = False


class End(Value):
    """How one session ended under `kill`. `escaped` are processes that were seen but could not be ended."""

    session: str
    id: str
    exit_status: int | None
    signal: str | None
    processes: int
    escaped: tuple[int, ...] = ()


class Killed(Value):
    """What `kill` ended."""

    killed: tuple[End, ...]


class Pruned(Value):
    """What `prune` removed, or would remove."""

    pruned: tuple[str, ...]
    dry_run: bool = False


class Sessions(Value):
    """All sessions, by name."""

    sessions: tuple[Session, ...]


class Plan(Value):
    """What `new` would do: the spec the plugins made, the tmux command list, and the session's files."""

    name: str
    argv: tuple[str, ...]
    cwd: str
    size: str
    history: int
    env: tuple[str, ...]
    plugins: tuple[str, ...]
    files: tuple[str, ...]
    tmux: tuple[str, ...]


class Check(Value):
    """One thing `doctor` looked at; `ok` is None where it does not apply."""

    name: str
    ok: bool | None
    found: str
    hint: str | None = None


class Doctor(Value):
    """What `doctor` found."""

    ok: bool
    checks: tuple[Check, ...]
