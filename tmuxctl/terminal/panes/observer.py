"""Looks at one session again and again: tmux only when something was printed, the kernel each time.

The order within a look is what makes it true: first how far the output reached, then what the kernel says, then the
screen. So a program that seems to wait has read what came before, and the screen is never older than the output told of.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tmuxctl.errors import NotFound
from tmuxctl.evidence import FULL, NONE, WCHAN, Evidence, Hook, Kernel, Look, Mark
from tmuxctl.terminal.input.paste import FACTS_SIZE, Input
from tmuxctl.terminal.panes.journals import journal
from tmuxctl.terminal.tmux import options, server
from tmuxctl.terminal.tmux import screen as screens
from tmuxctl.terminal.tmux.journal import Extent
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Command, Guard, Probe, Refused, Transport

WINDOW_SECONDS = 3.3
"""How long looks are kept: an animation is judged over two seconds, and silence over three."""

LIST_BYTES = 10_000
"""About the longest command list tmux takes in one message is 16 KB (measured), with what it adds to it."""

CLOCK_SECONDS = 1.0
"""How far a file's time may lie ahead of the clock by itself."""

MARKS_BACK = 1 << 16
"""Bytes of the newest output searched for the last shell mark."""


class Capture(NamedTuple):
    """A session's facts, title, visible rows and rows that scrolled away (capture-pane -e), from one instant."""

    pane: Pane
    title: str
    rows: bytes
    back: bytes = b""
    given: str = ""
    """The last input, as `paste.Input.parse` reads it, without its text; empty if nothing was ever typed."""


def capture(
    transport: Transport,
    name: str,
    before: Pane | None = None,
    *,
    scrollback: int | None = None,
    trim: bool = True,
    wide: bool = False,
) -> Capture:
    """What tmux draws of a session: one chained query. `before`, what was known of it, makes that quicker.

    `scrollback` is in rows, 0 for all, None for none. NotFound or Unreachable if it is not there.
    """
    here = server.target(name)
    # a program chooses its title: only a line it cannot guess may end it
    end = os.urandom(8).hex()
    facts = server.CHANGES if before else server.FORMAT
    grab = ("capture-pane", "-p", "-e", *(() if trim else ("-N",)), *(("-J",) if wide else ()), "-t", here)
    about = f"{facts}\t{end}#{{={FACTS_SIZE}:{options.INPUT}}}\t#{{pane_title}}{end}"
    commands: list[Command] = [("display-message", "-p", "-t", here, about), grab]
    if scrollback is not None:
        commands += [("display-message", "-p", end), (*grab, "-S", f"-{scrollback}" if scrollback else "-", "-E", "-1")]
    first, _, rest = transport.run(commands).partition(f"\t{end}".encode())
    line = first.decode(errors="replace")
    pane = server.renewed(before, line) if before else server.known(server.settle(transport, line, 8.0), name)
    if pane is None:
        return capture(transport, name, scrollback=scrollback, trim=trim, wide=wide)
    title, _, rest = rest.partition(end.encode() + b"\n")
    rows, _, back = rest.partition(end.encode() + b"\n") if scrollback is not None else (rest, b"", b"")
    given, _, title = title.partition(b"\t")
    return Capture(pane, _plain(title), rows, back if pane.history else b"", given.decode(errors="replace"))


def _plain(title: bytes) -> str:
    return screens.clean(title).replace("\n", " ")


def captures(transport: Transport, panes: Sequence[Pane]) -> list[Capture]:
    """What tmux draws of these sessions, in as few queries as its limit of a command list allows; one that went meanwhile
    has an empty screen."""
    end = os.urandom(8).hex()
    found: dict[str, Capture] = {}
    left = list(panes)
    while left:
        commands: list[Command] = []
        size = count = 0
        while count < len(left) and size <= LIST_BYTES:
            asked = _draw(left[count], end)
            commands += asked
            size += sum(len(word) + 1 for command in asked for word in command)
            count += 1
        try:
            printed = transport.run(commands).split(f"{end}{end}\n".encode())[:-1]
        except Refused as gone:
            # asked again without it: what was printed before it is lost with the list
            found |= {one.id: Capture(one, "", b"") for one in left if one.id == gone.told}
            left = [one for one in left if one.id != gone.told]
            continue
        found |= {one.id: _drawn(one, part, end.encode()) for one, part in zip(left[:count], printed, strict=True)}
        left = left[count:]
    return [found[one.id] for one in panes]


def _draw(pane: Pane, end: str) -> list[Command]:
    here = pane.target
    about = f"{end}#{{={FACTS_SIZE}:{options.INPUT}}}\t#{{pane_title}}{end}"
    return [
        Guard(here, f"#{{==:#{{{options.ID}}},{pane.id}}}", pane.id),
        ("display-message", "-p", "-t", here, about),
        ("capture-pane", "-p", "-e", "-t", here),
        ("display-message", "-p", f"{end}{end}"),
    ]


def _drawn(pane: Pane, printed: bytes, end: bytes) -> Capture:
    _, _, rest = printed.partition(end)
    title, _, rows = rest.partition(end + b"\n")
    given, _, title = title.partition(b"\t")
    return Capture(pane, _plain(title), rows, b"", given.decode(errors="replace"))


class Observer:
    """Watches one session. `find_mark` finds the last shell mark in output that begins at an offset (None: no marks are
    expected); `find_hook` gives what the program told last, at one moment and since an input of another, both by the wall
    clock, and of this text, or of one that begins so (None: it tells nothing); `level` caps what is asked of the kernel."""

    def __init__(
        self,
        transport: Transport,
        pane: Pane,
        folder: str,
        *,
        find_mark: Callable[[bytes, int], Mark | None] | None = None,
        find_hook: Callable[[float, float, bytes, bool], Hook | None] | None = None,
        level: str = FULL,
    ) -> None:
        self.transport, self.pane, self.level = transport, pane, level
        self.journal = journal(transport, pane, folder)
        self.looks: deque[Look] = deque()
        self._find_mark, self._searched = find_mark, 0
        self._find_hook = find_hook
        self._mark: Mark | None = None
        self._drawn: Capture | None = None
        self._screen = ""
        self._asked = -1
        self._wall = 0.0

    def look(self, *, fresh: bool = False) -> Look:
        """One observation, kept in the window. tmux is asked if output came since the last time, or if `fresh`.

        NotFound or Unreachable when the session is not there any more.
        """
        extent = self.journal.extent()
        probe = self.transport.probe([(self.pane.pid, self.pane.tty)], level=self.level)[0]
        drawn = self._drawn
        if fresh or drawn is None or extent.end != self._asked or extent.finished or self._ended(probe.kernel):
            drawn = capture(self.transport, self.pane.name, self.pane if drawn and not self.pane.dead else None)
        return self.see(extent, probe, drawn)

    def see(self, extent: Extent, probe: Probe, drawn: Capture) -> Look:
        """Put together what was asked in this order: how far the output reached, the kernel, the screen."""
        if drawn.pane.id != self.pane.id:
            name = self.pane.name
            raise NotFound(f"session {name} is another one by now", reason="replaced", hint="tmuxctl ls")
        if drawn is not self._drawn:
            self._drawn, self._asked, self._screen = drawn, extent.end, screens.text(drawn.rows)
        self.pane = pane = drawn.pane
        if self._find_mark:
            self._look_for_mark(extent.end)
        look = Look(
            at=probe.at,
            journal=extent.end,
            quiet=_quiet(probe.wall, extent.grown),
            x=pane.x,
            y=pane.y,
            visible=pane.cursor_visible,
            alternate=pane.alternate,
            cols=pane.cols,
            rows=pane.rows,
            title=drawn.title,
            screen=self._screen,
            dead=pane.dead,
            status=pane.status,
            signal=pane.signal,
            mark=self._mark,
            hook=self._hook(probe, drawn),
            kernel=None if pane.dead else probe.kernel,
            tmux=pane.tmux,
        )
        self._wall = probe.wall
        self._keep(look)
        return look

    def _hook(self, probe: Probe, drawn: Capture) -> Hook | None:
        """What the program told last since it was given something."""
        if self._find_hook is None:
            return None
        given = Input.parse(drawn.given)
        if given is None:
            return self._find_hook(probe.wall, 0.0, b"", False)
        cut = len(drawn.given) >= FACTS_SIZE
        return self._find_hook(probe.wall, probe.wall - (probe.at - given.at), given.typed, cut)

    def recall(self, looks: Sequence[Look]) -> None:
        """Begin with what another process saw just before."""
        self.looks.extend(looks)

    @property
    def evidence(self) -> Evidence:
        """The looks of the last seconds, and what can be known of this session at all."""
        return Evidence(
            looks=tuple(self.looks),
            proc=_level(self.looks),
            marks=self._find_mark is not None,
            hooks=self._find_hook is not None,
            program=os.path.basename(next(iter(self.pane.spec.get("argv") or ()), "")),
            age=max(0.0, self._wall - self.pane.created) if self.pane.created else None,
            typed=bool(self._drawn and self._drawn.given),
        )

    def drawn_cursor(self) -> tuple[int, int] | None:
        """Where the program draws its cursor, by the newest look, if it hides the terminal's."""
        if self._drawn is None or self.pane.cursor_visible:
            return None
        return screens.drawn_cursor(self._drawn.rows, self.pane.tmux)

    def forget(self) -> None:
        """Begin a new window: what was seen before something was typed says nothing about what comes after."""
        self.looks.clear()

    def _ended(self, kernel: Kernel | None) -> bool:
        """The kernel told of programs before and knows none now: tmux should know how they ended."""
        before = self.looks[-1].kernel if self.looks else None
        return bool(before and before.programs and not (kernel and kernel.programs))

    def _look_for_mark(self, end: int) -> None:
        if end == self._searched:
            return
        assert self._find_mark is not None
        # a mark may be cut by the end of what was searched before
        start = max(self._searched - 300, end - MARKS_BACK, 0)
        part = self.journal.read(start, end - start)
        found = self._find_mark(part.data, part.start)
        skipped = start > self._searched
        self._mark = found if found or skipped else self._mark
        self._searched = end

    def _keep(self, look: Look) -> None:
        self.looks.append(look)
        while look.at - self.looks[0].at > WINDOW_SECONDS:
            self.looks.popleft()


def _level(looks: Sequence[Look]) -> str:
    """How much the kernel tells here: the best it told of any process in the window."""
    levels = {one.level for look in looks if look.kernel for one in look.kernel.programs}
    return FULL if FULL in levels else WCHAN if WCHAN in levels else NONE


def _quiet(wall: float, grown: float) -> float | None:
    """Seconds since the output last grew; None if it never did, or if the clock was put back since, which says nothing."""
    return max(0.0, wall - grown) if grown and grown - wall < CLOCK_SECONDS else None
