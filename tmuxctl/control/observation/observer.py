"""Observes one session again and again: asks the kernel each time, and tmux only when something was printed.

The order within a look is what makes it true: first how far the output reached, then what the kernel says, then the
screen. So a program that seems to wait has read what came before, and the screen is never older than that output.
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
from tmuxctl.errors import NotFound, TmuxctlError, Unreachable
from tmuxctl.evidence import FULL, NONE, PS, WCHAN, Evidence, Hook, Kernel, LastMark, Look
from tmuxctl.reading.evidence.tty_waits import assess_foreground, list_program_names
from tmuxctl.reading.state import event_loops
from tmuxctl.reading.state.judging import Verdict, judge
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.panes.captures import Capture, capture_session
from tmuxctl.terminal.tmux import options
from tmuxctl.terminal.tmux import screen as screens
from tmuxctl.terminal.tmux.journal import JournalExtent
from tmuxctl.terminal.tmux.server import Pane, replaced_error
from tmuxctl.transport.base import Probe
from tmuxctl.value import Value

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observation.hook_events import HookEvents
    from tmuxctl.program_profile import Profile

MARKS_BACK = 1 << 16
"""Bytes of the newest output searched for the last shell mark."""


class Glimpse(Value):
    """The part of a look for which tmux is not asked."""

    at: float
    journal: int
    quiet: float | None
    kernel: Kernel | None

    @property
    def ended(self) -> bool:
        """The kernel names no program."""
        return not (self.kernel and self.kernel.programs)

    @property
    def waits(self) -> bool:
        """A program waits for input, and has taken all there was."""
        found = assess_foreground(self.kernel)
        return found is not None and found.waits and not (found.tty and found.tty.unread)


class Observer:
    """Observes one session, with its shell's marks, its profile and the events of its program's hooks; `level` caps what
    is asked of the kernel."""

    def __init__(
        self, machine: Machine, pane: Pane, *, level: str = FULL, profile: Profile | None = None, marked: bool = True
    ) -> None:
        self.transport, self.io, self.pane, self.level = machine.transport, machine.io, pane, level
        self.timing = machine.timing.observation
        self.folder = records.session_folder(machine, pane.id)
        self.journal = machine.io.open_journal(pane, self.folder)
        self.looks: deque[Look] = deque()
        self.kept = machine.looks
        self.mark_token = pane.spec.get("marks", "") if marked else ""
        self.session_profile = profile or profile_of(machine, pane)
        self.events: HookEvents | None = None
        if self.session_profile and self.session_profile.hooks:
            from tmuxctl.control.observation.hook_events import HookEvents

            self.events = HookEvents(machine, self.folder, self.session_profile.hooks)
        self._prompts: dict[int, bool] = {}
        self._argv: dict[int, set[str]] = {}
        self._known_profiles = None if profile or pane.spec.get("plain") else machine.known
        self._searched = 0
        self._mark: LastMark | None = None
        self._capture: Capture | None = None
        self._screen = ""
        self._captured_at = -1
        self._programs_seen = False
        self._clock = 0.0
        self.input_delivered = True
        """Whether tmux has answered a query since it confirmed the last input: it writes to the terminal only after it has
        confirmed."""

    @property
    def profile(self) -> Profile | None:
        """The profile of the program that has the terminal now: the session's own, or that of what its program runs."""
        if self._known_profiles is None or not self.looks:
            return self.session_profile
        program_names = list_program_names(self.looks[-1].kernel)
        if not program_names and len(self.looks) > 1 and not self.looks[-1].dead:
            # between the end of one program and the start of the next the kernel may name none
            program_names = list_program_names(self.looks[-2].kernel)
        return foreground.foreground_profile(self._known_profiles, self.session_profile, program_names)

    def observe(self, *, fresh: bool = False) -> Look:
        """One observation, kept in the window. tmux is asked if output came since the last time, or if `fresh`, and where no output
        is kept that tells whether some came.

        NotFound or Unreachable when the session is not there any more.
        """
        self._await_delivery()
        extent = self.journal.extent()
        probe = self.transport.probe([(self.pane.pid, self.pane.tty)], level=self.level)[0]
        ended, taken = self._programs_ended(probe.kernel), self._capture
        if fresh or taken is None or extent.end != self._captured_at or extent.finished or extent.stopped or ended:
            taken = self._capture_session()
        return self.add_look(extent, probe, taken)

    def _await_delivery(self) -> None:
        """Have tmux answer once after an input, before the kernel is asked. Its answer is the screen, which counts unless something
        is printed meanwhile."""
        if not self.input_delivered:
            end = self.journal.end()
            self._take_capture(end, self._capture_session())
            self.input_delivered = True

    def _capture_session(self) -> Capture:
        return capture_session(self.io, self.pane.name, self.pane if self._capture and not self.pane.dead else None)

    def glimpse(self) -> Glimpse:
        """What can be told without tmux: how far the output reached, and the kernel."""
        with suppress(NotFound, Unreachable):
            # what is wrong with the session is reported by the next look
            self._await_delivery()
        extent = self.journal.extent()
        probe = self.transport.probe([(self.pane.pid, self.pane.tty)], level=self.level)[0]
        quiet = _quiet_seconds(probe.wall, extent.grown, self.timing.file_ahead_seconds)
        return Glimpse(probe.at, extent.end, quiet, probe.kernel)

    def capture_ahead(self, glimpse: Glimpse) -> None:
        """Ask tmux for the screen behind a glimpse in which a program waits, which is not older than what the glimpse saw: the
        look that confirms it needs no other if nothing is printed meanwhile."""
        if glimpse.journal == self._captured_at:
            return
        # what is wrong with the session is the next look's to tell
        with suppress(NotFound, Unreachable):
            self._take_capture(glimpse.journal, self._capture_session())
            self._programs_seen = True

    def add_glimpse(self, glimpse: Glimpse) -> Look | None:
        """Put a glimpse before the newest look, which is later, with the screen of that; None if the program has ended."""
        newest = self.looks[-1]
        if newest.kernel is None or glimpse.kernel is None:
            return None
        look = newest._replace(at=glimpse.at, journal=glimpse.journal, quiet=glimpse.quiet, kernel=glimpse.kernel)
        self.looks.insert(len(self.looks) - 1, look)
        return look

    def add_look(self, extent: JournalExtent, probe: Probe, capture: Capture) -> Look:
        """Put together what was asked in this order: how far the output reached, the kernel, the screen."""
        self._take_capture(extent.end, capture)
        pane = self.pane
        if self.mark_token:
            self._find_mark(extent.end)
        look = Look(
            at=probe.at,
            journal=extent.end,
            quiet=_quiet_seconds(probe.wall, extent.grown, self.timing.file_ahead_seconds),
            x=pane.x,
            y=pane.y,
            visible=pane.cursor_visible,
            alternate=pane.alternate,
            cols=pane.cols,
            rows=pane.rows,
            title=capture.title,
            screen=self._screen,
            dead=pane.dead,
            status=pane.status,
            signal=pane.signal,
            mark=self._mark,
            hook=self._newest_hook(probe, capture),
            kernel=None if pane.dead else probe.kernel,
            tmux=pane.tmux,
        )
        self._clock = probe.wall
        self.looks.append(look)
        while look.at - self.looks[0].at > self.timing.window_seconds:
            self.looks.popleft()
        return self._add_event_loops(look)

    def _take_capture(self, end: int, capture: Capture) -> None:
        """Go by this screen from now on, which was asked for when the output had come to `end`."""
        if capture.pane.id != self.pane.id:
            raise replaced_error(self.pane.name)
        if capture is not self._capture:
            self._capture, self._captured_at, self._screen = capture, end, screens.plain_text(capture.rows)
        self.pane = capture.pane

    def _add_event_loops(self, look: Look) -> Look:
        """The look, with the processes outside the terminal's own that wait for it, where a question stands on the screen
        and no program of the terminal reads."""
        if not event_loops.is_unanswered(self.looks):
            return look
        found = self.transport.probe([(self.pane.pid, self.pane.tty)], level=self.level, beyond=True)[0]
        self.looks[-1] = look = look._replace(kernel=found.kernel)
        return look

    def _newest_hook(self, probe: Probe, capture: Capture) -> Hook | None:
        """The newest event of the program's hooks since the last input."""
        if self.events is None:
            return None
        last_input = LastInput.parse(capture.last_input)
        if last_input is None:
            return self.events.newest_hook(probe.wall, 0.0, b"", False)
        cut = len(capture.last_input) >= options.FACTS_SIZE
        return self.events.newest_hook(probe.wall, probe.wall - (probe.at - last_input.at), last_input.typed, cut)

    @property
    def evidence(self) -> Evidence:
        """The looks of the last seconds, and what can be known of this session at all."""
        return self._evidence(self.profile)

    def _evidence(self, profile: Profile | None) -> Evidence:
        return Evidence(
            looks=tuple(self.looks),
            proc=_best_level(self.looks),
            marks=bool(self.mark_token),
            hooks=self.events is not None,
            program=os.path.basename(next(iter(self.pane.spec.get("argv") or ()), "")),
            age=max(0.0, self._clock - self.pane.created) if self.pane.created else None,
            typed=bool(self._capture and self._capture.last_input),
            hides=self._hides_input(profile) if profile and profile.password_argv else None,
        )

    def drawn_cursor(self) -> tuple[int, int] | None:
        """Where the program draws its cursor, by the newest look, if it hides the terminal's."""
        if self._capture is None or self.pane.cursor_visible:
            return None
        return screens.find_drawn_cursor(self._capture.rows, self.pane.tmux)

    def _programs_ended(self, kernel: Kernel | None) -> bool:
        """Whether the kernel named programs before and names none now: tmux should know how they ended."""
        before, self._programs_seen = self._programs_seen, bool(kernel and kernel.programs)
        return before and not self._programs_seen

    def _find_mark(self, end: int) -> None:
        if end == self._searched:
            return
        # a mark may be cut by the end of what was searched before
        start = max(self._searched - 300, end - MARKS_BACK, 0)
        if found := finding.find_last_mark(self.journal, self.mark_token, start, end):
            self._mark = found
        elif start > self._searched:
            self._mark = None
        self._searched = end

    def _hides_input(self, profile: Profile) -> bool | None:
        """Whether a field that the program draws hides what is written in it, by the words the program was started with."""
        kernel = self.looks[-1].kernel if self.looks else None
        while kernel is not None and kernel.inner is not None:
            kernel = kernel.inner
        rows = kernel.programs if kernel else ()
        pids = [row.pid for row in rows if row.foreground and foreground.is_called(profile, row.name)]
        if len(pids) != 1:
            return None
        if pids[0] not in self._argv:
            self._argv = {pids[0]: self._command_words(pids[0])}
        words = self._argv[pids[0]]
        hiding, showing = bool(words & {*profile.password_argv}), bool(words & {*profile.password_unless})
        return hiding if hiding != showing else None

    def _command_words(self, pid: int) -> set[str]:
        with suppress(TmuxctlError, OSError):
            return set(self.transport.read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0"))
        return set()

    @property
    def folders(self) -> list[str]:
        """The folders in which something changes when the program prints, or when its hooks report an event."""
        return [self.journal.folder, *([self.events.folder] if self.events else [])]

    @property
    def has_hooks(self) -> bool:
        """True if the program was started with hooks that report its turns."""
        hooks = self.session_profile.hooks if self.session_profile else None
        argv = self.pane.spec.get("argv") or ()
        from tmuxctl.control.observation import hook_launch
        from tmuxctl.profile_files import library

        program_index = library.program_index(argv)
        return (
            hooks is not None
            and self.session_profile is not None
            and program_index is not None
            and hook_launch.is_program_of(argv[program_index], self.session_profile)
        )

    @property
    def profile_name(self) -> str | None:
        """The name of the profile of the program that has the terminal now."""
        return self.profile.name if self.profile else None

    @property
    def interrupt_keys(self) -> tuple[str, ...]:
        """The keys that interrupt that program."""
        return self.profile.interrupt if self.profile else ("C-c",)

    def verdict(self) -> Verdict:
        """The state, judged by the looks of the window."""
        profile = self.profile
        return judge(self._evidence(profile), profile)

    def at_prompt(self, offset: int) -> bool:
        """True if a marked shell stood at its prompt when its output had come to `offset`."""
        if offset not in self._prompts:
            self._prompts = {offset: finding.was_at_prompt(self.journal, self.mark_token, offset)}
        return self._prompts[offset]


def _best_level(looks: Sequence[Look]) -> str:
    """How much the kernel tells here: the best it told of any process in the window."""
    levels = {row.level for look in looks if look.kernel for row in look.kernel.programs}
    return next((level for level in (FULL, WCHAN, PS) if level in levels), NONE)


def _quiet_seconds(wall: float, grown: float, ahead: float) -> float | None:
    """Seconds since the output last grew; None if it never did, or if the wall clock was set back since: then its time is
    `ahead` of the clock or more."""
    return max(0.0, wall - grown) if grown and grown - wall < ahead else None
