"""What was seen of a program: one instant is a look, a few seconds of looks are the evidence a state is judged by.

Data only. terminal/ makes it through a transport, reading/ judges it, and as JSON it is recorded and judged again: what a
machine could not tell is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tmuxctl import widths
from tmuxctl.value import NamedTuple

FULL, WCHAN, PS, NONE = "full", "wchan", "ps", "none"
"""How much is told of a process: its system call with the descriptors it waits for; only where in the kernel it sleeps (an
ordinary user under ptrace restrictions); no more than `ps` prints (no /proc: macOS, BSD); nothing (another user's process,
or no `ps` either)."""


class Tty(NamedTuple):
    """How a terminal treats input: whole lines or not, echoed or not, how many typed bytes wait unread, None if unknown, and how
    many printed bytes its reader has not taken. Where it takes no lines, a read waits for `vmin` bytes and gives up after
    `vtime` seconds (termios(3)). `size` is columns and rows, 0 and 0 if it was never set, None if unknown."""

    canonical: bool
    echo: bool
    unread: int | None
    unsent: int = 0
    vmin: int = 1
    vtime: float = 0.0
    size: tuple[int, int] | None = None


class Thread(NamedTuple):
    """One thread. `state` and `wchan` are proc(5)'s; `call` is the system call it sleeps in (`read`, `poll`, ...),
    `running`, or None where the kernel does not tell; `tty` whether that call waits for the terminal, None if unknown;
    `alone` whether for nothing else and without a timeout; `switches` counts how often it gave up the processor;
    `timeout` is after how many seconds the call gives up, None if never or unknown; `inward` whether there is no timeout
    and, beside the terminal, it waits only for what its own process writes to (eventfd, signalfd, pipes)."""

    id: int
    state: str
    wchan: str = ""
    call: str | None = None
    tty: bool | None = None
    alone: bool = False
    switches: int = 0
    timeout: float | None = None
    inward: bool = False


class Program(NamedTuple):
    """One process at the terminal. `foreground`: in the process group the terminal listens to; `cpu` is in clock ticks
    (proc(5), utime + stime); `level` is how much the kernel told (FULL, WCHAN, PS, NONE); `sockets` counts its open sockets,
    None if unknown; `holds` whether it has the terminal open, None if unknown; `started` is in clock ticks since boot.
    By ps `threads` is empty and `started` 0."""

    pid: int
    parent: int
    name: str
    state: str
    foreground: bool
    cpu: int
    started: int
    level: str
    sockets: int | None
    holds: bool | None
    threads: tuple[Thread, ...]


class Kernel(NamedTuple):
    """What the kernel tells of one terminal: its settings, its foreground process group with all that descends from it,
    and, where one of those holds the master of another terminal (script, sudo, expect), that inner terminal. Of an inner
    one `via` is the name of the process that holds its master, `holder` that process's id, and `masters` how many it
    holds, 0 if unknown. `clock` is when this was, in clock ticks since boot as `Program.started`, None if unknown."""

    tty: Tty | None
    group: int
    programs: tuple[Program, ...]
    inner: Kernel | None = None
    via: str | None = None
    holder: int = 0
    masters: int = 0
    clock: int | None = None


class LastMark(NamedTuple):
    """The last shell mark (OSC 133) that carries the session's token: its letter, D's exit status, and its offset."""

    letter: str
    status: int | None
    offset: int


class Hook(NamedTuple):
    """The last event the program told of itself since it was given something: what it means (`submit`, `stop`, `failure`,
    `asking`), and how many seconds ago that was."""

    means: str
    age: float


class Look(NamedTuple):
    """One instant of a session.

    `at` is the machine's monotonic clock in seconds; `journal` the offset behind the last byte that was printed; `quiet`
    how many seconds ago that was, None if unknown. `x`, `y`, `visible` are the cursor's, `alternate` the alternate
    screen's; `title` and `screen` (rows without trailing blanks) are text of the program: data. `mark` is the last shell
    mark, `hook` the last event the program told of itself; `kernel` is None where nothing tells of the terminal. `tmux` is
    the major and minor version of the server that drew it, None if unknown.
    """

    at: float
    journal: int
    quiet: float | None
    x: int
    y: int
    visible: bool
    alternate: bool
    cols: int
    rows: int
    title: str
    screen: str
    dead: bool
    status: int | None
    signal: str | None
    mark: LastMark | None
    hook: Hook | None
    kernel: Kernel | None
    tmux: tuple[int, int] | None = None

    @property
    def left(self) -> str:
        """The text left of the cursor, on its row."""
        rows = self.screen.split("\n")
        row = rows[self.y] if self.y < len(rows) else ""
        return row[: self.x] if row.isascii() else widths.first_columns(row, self.x, self.tmux)


class Evidence(NamedTuple):
    """What a state is judged by: the looks of the last seconds, oldest first, and what can be known here at all.

    `proc` is FULL, WCHAN, PS or NONE; `marks`: the shell marks its prompts; `hooks`: the program tells its turns; `program` is
    the name of what was started; `age` is how many seconds the session exists, None if unknown; `typed`: something was
    sent to it; `hides`: the field it draws hides what is written there, None if that is not known.
    """

    looks: tuple[Look, ...]
    proc: str = FULL
    marks: bool = False
    hooks: bool = False
    program: str = ""
    age: float | None = None
    typed: bool = False
    hides: bool | None = None

    @property
    def last(self) -> Look:
        """The newest look."""
        return self.looks[-1]


def is_unmoved(earlier: Look, later: Look) -> bool:
    """Whether nothing happened at the terminal between two looks: nothing was printed, the terminal is as it was, and its
    programs, of which the kernel tells, have slept all the time."""
    if (earlier.journal, earlier.x, earlier.y, earlier.screen) != (later.journal, later.x, later.y, later.screen):
        return False
    told = later.kernel is not None and later.kernel.programs and all(map(_sleeps, later.kernel.programs))
    return bool(told) and without_clock(earlier.kernel) == without_clock(later.kernel)


def _sleeps(program: Program) -> bool:
    """Whether each of its threads sleeps, and the kernel tells how often it has."""
    sleeping = all(thread.switches and thread.state not in ("R", "D") for thread in program.threads)
    return program.level == FULL and bool(program.threads) and sleeping


def without_clock(kernel: Kernel | None) -> Kernel | None:
    """What the kernel tells, without the time of it: two looks are compared so."""
    return kernel and kernel._replace(clock=None)


# Recorded as JSON: a header, then for each look what differs from the one before it.


def to_json(evidence: Evidence) -> list[dict[str, Any]]:
    """Evidence as JSON objects, the first about the session, then one for each look."""
    about = {name: value for name, value in evidence._asdict().items() if name != "looks"}
    return [{"format": 1, **about}, *differences(evidence.looks)]


def from_json(lines: Iterable[Mapping[str, Any]]) -> Evidence:
    """The evidence `to_json` wrote; ValueError if it is no such thing."""
    try:
        about, *rest = lines
        known = {name: about[name] for name in Evidence._fields if name in about}
        return Evidence(looks=tuple(looks(rest)), **known)
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError(f"not recorded evidence: {error}") from None


def differences(seen: Iterable[Look]) -> Iterator[dict[str, Any]]:
    """Each look as what is new in it."""
    before: dict[str, Any] = {}
    for look in seen:
        now = _flat(look)
        yield {name: value for name, value in now.items() if name not in before or before[name] != value}
        before = now


def looks(lines: Iterable[Mapping[str, Any]]) -> Iterator[Look]:
    """The looks that `differences` told."""
    fields: dict[str, Any] = {}
    clock = None
    for line in lines:
        fields |= {name: line[name] for name in Look._fields if name in line}
        clock = line.get("clock", clock)
        kernel = _kernel(fields["kernel"])
        if kernel is not None and clock is not None:
            kernel = kernel._replace(clock=clock)
        version = fields.get("tmux")
        fields["tmux"] = (version[0], version[1]) if version else None
        hook = None if fields["hook"] is None else Hook(*fields["hook"])
        yield Look(**{**fields, "mark": _mark(fields["mark"]), "hook": hook, "kernel": kernel})


def _flat(look: Look) -> dict[str, Any]:
    """A look with the kernel's clock beside the kernel: it moves where nothing else does."""
    fields = look._asdict()
    clock = look.kernel.clock if look.kernel else None
    if look.kernel is not None and clock is not None:
        fields["kernel"] = look.kernel._replace(clock=None)
    return {**fields, "clock": clock}


def _mark(value: Any) -> LastMark | None:
    return None if value is None else LastMark(*value)


def _kernel(value: Any) -> Kernel | None:
    if value is None or isinstance(value, Kernel):
        return value
    tty, group, programs, inner, *rest = value
    return Kernel(_tty(tty) if tty else None, group, tuple(map(_program, programs)), _kernel(inner), *rest)


def _tty(value: Any) -> Tty:
    tty = Tty(*value)
    return tty if tty.size is None else tty._replace(size=(tty.size[0], tty.size[1]))


def _program(value: Any) -> Program:
    return Program._make([*value[:-1], tuple(Thread(*thread) for thread in value[-1])])
