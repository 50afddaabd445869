"""Looks at one session again and again: tmux only when something was printed, the kernel each time.

The order within a look is what makes it true: first how far the output reached, then what the kernel says, then the
screen. So a program that seems to wait has read what came before, and the screen is never older than the output told of.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxctl.control import foreground
from tmuxctl.control.sessions import finding, records
from tmuxctl.control.sessions.kept_profile import profile_of
from tmuxctl.errors import NotFound, TmuxctlError
from tmuxctl.evidence import FULL, NONE, WCHAN, Evidence, Hook, Kernel, Look, Mark
from tmuxctl.reading.evidence.tty_waits import list_program_names
from tmuxctl.reading.state.judging import Verdict, judge
from tmuxctl.terminal.input.paste import FACTS_SIZE, LastInput
from tmuxctl.terminal.panes.captures import Capture, capture
from tmuxctl.terminal.panes.journals import journal
from tmuxctl.terminal.tmux import screen as screens
from tmuxctl.terminal.tmux.journal import JournalExtent
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Probe

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observation.hook_events import HookEvents
    from tmuxctl.program_profile import Profile

WINDOW_SECONDS = 3.3
"""How long looks are kept: an animation is judged over two seconds, and silence over three."""

CLOCK_SECONDS = 1.0
"""How far a file's time may lie ahead of the clock by itself."""

MARKS_BACK = 1 << 16
"""Bytes of the newest output searched for the last shell mark."""


class Observer:
    """Watches one session, with its shell's marks, its profile and what its program tells of its turns; `level` caps what
    is asked of the kernel."""

    def __init__(
        self, machine: Machine, pane: Pane, *, level: str = FULL, profile: Profile | None = None, marked: bool = True
    ) -> None:
        self.transport, self.pane, self.level = machine.transport, pane, level
        self.folder = records.folder(machine, pane.id)
        self.journal = journal(machine.transport, pane, self.folder)
        self.looks: deque[Look] = deque()
        self.token = pane.spec.get("marks", "") if marked else ""
        self.own = profile or profile_of(machine, pane)
        self.events: HookEvents | None = None
        if self.own and self.own.hooks:
            from tmuxctl.control.observation.hook_events import HookEvents

            self.events = HookEvents(machine, self.folder, self.own.hooks)
        self._prompts: dict[int, bool] = {}
        self._argv: dict[int, set[str]] = {}
        self._known = None if profile or pane.spec.get("plain") else machine.known
        self._searched = 0
        self._mark: Mark | None = None
        self._drawn: Capture | None = None
        self._screen = ""
        self._asked = -1
        self._wall = 0.0

    @property
    def profile(self) -> Profile | None:
        """The profile of the program that has the terminal now: the session's own, or that of what its program runs."""
        if self._known is None or not self.looks:
            return self.own
        told = list_program_names(self.looks[-1].kernel)
        if not told and len(self.looks) > 1 and not self.looks[-1].dead:
            # while one program gives way to the next the kernel may tell of none
            told = list_program_names(self.looks[-2].kernel)
        return foreground.profile(self._known, self.own, told)

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

    def see(self, extent: JournalExtent, probe: Probe, drawn: Capture) -> Look:
        """Put together what was asked in this order: how far the output reached, the kernel, the screen."""
        if drawn.pane.id != self.pane.id:
            name = self.pane.name
            raise NotFound(f"session {name} is another one by now", reason="replaced", hint="tmuxctl ls")
        if drawn is not self._drawn:
            self._drawn, self._asked, self._screen = drawn, extent.end, screens.text(drawn.rows)
        self.pane = pane = drawn.pane
        if self.token:
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
        return self._look_beyond(look)

    def _look_beyond(self, look: Look) -> Look:
        """Where a question stands on the screen that no program of the terminal listens for, who else waits for this
        terminal is looked for as well."""
        from tmuxctl.reading.state import event_loops

        if not event_loops.is_unanswered(self.looks):
            return look
        found = self.transport.probe([(self.pane.pid, self.pane.tty)], level=self.level, beyond=True)[0]
        self.looks[-1] = look = look._replace(kernel=found.kernel)
        return look

    def _hook(self, probe: Probe, drawn: Capture) -> Hook | None:
        """What the program told last since it was given something."""
        if self.events is None:
            return None
        given = LastInput.parse(drawn.given)
        if given is None:
            return self.events.hook(probe.wall, 0.0, b"", False)
        cut = len(drawn.given) >= FACTS_SIZE
        return self.events.hook(probe.wall, probe.wall - (probe.at - given.at), given.typed, cut)

    def recall(self, looks: Sequence[Look]) -> None:
        """Begin with what another process saw just before."""
        self.looks.extend(looks)

    @property
    def evidence(self) -> Evidence:
        """The looks of the last seconds, and what can be known of this session at all."""
        known = self.profile
        return Evidence(
            looks=tuple(self.looks),
            proc=_level(self.looks),
            marks=bool(self.token),
            hooks=self.events is not None,
            program=os.path.basename(next(iter(self.pane.spec.get("argv") or ()), "")),
            age=max(0.0, self._wall - self.pane.created) if self.pane.created else None,
            typed=bool(self._drawn and self._drawn.given),
            hides=self._hides(known) if known and known.password_argv else None,
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
        from tmuxctl.reading.text import marks

        # a mark may be cut by the end of what was searched before
        start = max(self._searched - 300, end - MARKS_BACK, 0)
        part = self.journal.read(start, end - start)
        if found := marks.marks(part.data, self.token)[-1:]:
            self._mark = Mark(found[0].letter, found[0].status, part.start + found[0].start)
        elif start > self._searched:
            self._mark = None
        self._searched = end

    def _keep(self, look: Look) -> None:
        self.looks.append(look)
        while look.at - self.looks[0].at > WINDOW_SECONDS:
            self.looks.popleft()

    def _hides(self, known: Profile) -> bool | None:
        """Whether a field that the program draws hides what is written in it, by the words the program was started with."""
        kernel = self.looks[-1].kernel if self.looks else None
        while kernel is not None and kernel.inner is not None:
            kernel = kernel.inner
        told = [one for one in kernel.programs if one.foreground and foreground.fits(known, one.name)] if kernel else []
        if len(told) != 1:
            return None
        if told[0].pid not in self._argv:
            self._argv = {told[0].pid: self._words(told[0].pid)}
        hiding, showing = (
            bool(self._argv[told[0].pid] & {*words}) for words in (known.password_argv, known.password_unless)
        )
        return hiding if hiding != showing else None

    def _words(self, pid: int) -> set[str]:
        with suppress(TmuxctlError, OSError):
            return set(self.transport.read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0"))
        return set()

    @property
    def folders(self) -> list[str]:
        """Where something changes when the program prints, or tells of its turn."""
        return [self.journal.folder, *([self.events.folder] if self.events else [])]

    @property
    def hooked(self) -> bool:
        """True if the program was started so that it tells of its turns."""
        known = self.own.hooks if self.own else None
        argv = self.pane.spec.get("argv") or ()
        from tmuxctl.control.observation import hook_launch
        from tmuxctl.profile_files import library

        place = library.place_of(argv)
        return (
            known is not None and self.own is not None and place is not None and hook_launch.fits(argv[place], self.own)
        )

    @property
    def applied(self) -> str | None:
        """The name of that profile."""
        return self.profile.name if self.profile else None

    @property
    def interrupt(self) -> tuple[str, ...]:
        """The keys that stop what that program does."""
        return self.profile.interrupt if self.profile else ("C-c",)

    def verdict(self) -> Verdict:
        """What the looks so far say."""
        return judge(self.evidence, self.profile)

    def at_prompt(self, offset: int) -> bool:
        """True if a marked shell stood at its prompt when its output had come so far."""
        if offset not in self._prompts:
            self._prompts = {offset: finding.at_prompt(self.journal, self.token, offset)}
        return self._prompts[offset]


def _level(looks: Sequence[Look]) -> str:
    """How much the kernel tells here: the best it told of any process in the window."""
    levels = {one.level for look in looks if look.kernel for one in look.kernel.programs}
    return FULL if FULL in levels else WCHAN if WCHAN in levels else NONE


def _quiet(wall: float, grown: float) -> float | None:
    """Seconds since the output last grew; None if it never did, or if the clock was put back since, which says nothing."""
    return max(0.0, wall - grown) if grown and grown - wall < CLOCK_SECONDS else None
