"""Waits that cannot lie: a state counts when what was typed was taken and two looks agree, a text only after the last
input and never in its echo; silence ends none but `settle`."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tmuxctl.control.lifecycle.reach import reach
from tmuxctl.control.observation import wanting
from tmuxctl.control.sessions import finding, records, summaries
from tmuxctl.errors import DecisionNeeded, Exited, NotFound, Unreachable, Usage
from tmuxctl.model import Confidence, State, Status
from tmuxctl.operations import Call, Cancellation, current, to_json, under
from tmuxctl.reading.text.patterns import let_blanks_end_rows
from tmuxctl.results import Wait, Waits
from tmuxctl.terminal.input.paste import LastInput, ended_error
from tmuxctl.terminal.tmux import layout, server
from tmuxctl.terminal.tmux.journal import Journal, JournalExtent
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.value import Value, changed
from tmuxctl.vocabulary import EvidenceKind, WaitCondition

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observation.observing import StabilityTracker
    from tmuxctl.control.waiting.searching import Search
    from tmuxctl.control.waiting.text_since import Seen
    from tmuxctl.reading.state.judging import Verdict
    from tmuxctl.transport.base import Watch

SHOWN_ROWS = 12
"""How many rows of the screen a wait that ran out of time tells."""

FLOOD_BYTES = 1 << 15
"""Output that comes within `flood_seconds` from which on it is a flood."""

SHOWN_BYTES = 4096
"""Bytes of the newest output in which the line is looked for that the screen shows last."""

SETTLED = Status(by=EvidenceKind.SETTLE, confidence=Confidence.GUESS)
"""What silence alone says of a program."""


class Conditions(Value):
    """What a wait is for; the first that holds ends it. `settle` is in seconds."""

    idle: bool = False
    asking: bool = False
    exit: bool = False
    text: str | None = None
    gone: str | None = None
    change: bool = False
    settle: float | None = None
    unknown: bool = False
    prompt: bool = False
    input: bool = False

    @property
    def state(self) -> bool:
        """True if it is for what the program does."""
        return self.idle or self.asking or self.prompt or self.input

    def fulfilled_by(self, state: State, wants: str | None) -> WaitCondition | None:
        """The first condition that this state, and what the program wants in it, fulfil."""
        fulfilled = {
            WaitCondition.ASKING: self.asking and state is State.ASKING,
            WaitCondition.PROMPT: self.prompt and wants == wanting.PROMPT,
            WaitCondition.INPUT: self.input and wants == wanting.INPUT,
            WaitCondition.IDLE: self.idle and state is State.IDLE,
            WaitCondition.UNKNOWN: self.unknown and state is State.UNKNOWN,
        }
        return next((condition for condition, holds in fulfilled.items() if holds), None)

    def words(self) -> str:
        """What is waited for, for a message."""
        wanted = [
            *(["an idle program"] if self.idle else []),
            *(["a prompt"] if self.prompt else []),
            *(["a question"] if self.asking else []),
            *(["a program that wants input"] if self.input else []),
            *(["the end of the program"] if self.exit else []),
            *([f"text {ascii(self.text[:60])}"] if self.text is not None else []),
            *([f"the end of text {ascii(self.gone[:60])}"] if self.gone is not None else []),
            *(["a change"] if self.change else []),
            *([f"{self.settle:g} s of silence"] if self.settle is not None else []),
        ]
        return " or ".join(wanted)


def wait(
    machine: Machine,
    session: str,
    wanted: Conditions,
    *,
    timeout: float | None,
    since: str | None = None,
    now: bool = False,
) -> Wait:
    """Wait until the first of the conditions holds; for idle if none is given.

    Raises Exited when the program ends without, DecisionNeeded when it asks while idle is waited for, or wants any other
    input while its prompt is, Usage for a bad pattern.
    """
    limit = time_limit(machine, timeout)
    try:
        with make_waiter(machine, session, wanted, since) as waiter:
            return waiter.test() if now else _with_screen(waiter, waiter.until(limit))
    except Exited as error:
        if error.reason != "ended_elsewhere" or not wanted.exit:
            raise
        # it was gone before, and nobody knows how it ended
        return Wait(session, WaitCondition.EXIT, "exit: status unknown", status=records.ended_status())


def _with_screen(waiter: Waiter, found: Wait) -> Wait:
    """A wait that ran out of time, with the last rows of the screen where it looked for no text that it could tell."""
    if not found.timed_out or found.text is not None:
        return found
    from tmuxctl.control.output import captured
    from tmuxctl.terminal.tmux import screen as screens

    try:
        rows = screens.plain_text(captured.capture_pane(waiter.machine, waiter.pane).rows).rstrip().split("\n")
    except (NotFound, Unreachable):
        return found
    return changed(found, text="\n".join(rows[-SHOWN_ROWS:]))


def time_limit(machine: Machine, timeout: float | None) -> float | None:
    """The seconds a wait may last: those given, else the setting's, cut at the caller's deadline; None is without end."""
    return current().left(machine.settings.wait_timeout if timeout is None else timeout)


def make_waiter(machine: Machine, session: str, wanted: Conditions, since: str | None) -> Waiter:
    """The wait for a session as it is now; for idle if nothing is `wanted`. `since` is a cursor, or an offset of the output
    since the session began; Usage `bad_cursor` if its output has not come that far."""
    pane, given = finding.find_with_input(machine, session)
    if since is not None and since.isascii() and since.isdecimal():
        since = _cursor_at(machine, pane, int(since))
    last_input = LastInput.parse(given)
    if anchor := current().anchor:
        last_input = anchor.last_input = anchor.last_input or last_input
    return Waiter(machine, pane, Conditions(idle=True) if wanted == Conditions() else wanted, since, last_input)


def _cursor_at(machine: Machine, pane: Pane, offset: int) -> str:
    if offset > finding.output_end(machine, pane):
        hint = "it is of an earlier run, or of another session: leave it out"
        raise Usage(f"{offset} is past the end of what {pane.name} printed", reason="bad_cursor", hint=hint)
    return finding.cursor_at(pane, offset)


def sessions_of(session: str | None, one_of: tuple[str, ...] | None, all_of: tuple[str, ...] | None) -> tuple[str, ...]:
    """The sessions of a wait; Usage unless they are named in exactly one way."""
    if sum(given is not None for given in (session, one_of, all_of)) != 1:
        raise Usage(
            "name one session, or several with --any or --all",
            reason="missing",
            hint="tmuxctl wait NAME, tmuxctl wait --any A,B",
        )
    return one_of or all_of or ((session,) if session else ())


def several(
    machine: Machine,
    names: tuple[str, ...],
    wanted: Conditions,
    *,
    every: bool,
    timeout: float | None,
    since: str | None,
    now: bool,
) -> Waits:
    """Wait for several sessions at once: until it holds for one of them, or for `every` one.

    Raises what a wait for one raises: with `every` at once, else when none is left that could end well.
    """
    names = tuple(dict.fromkeys(names))
    if not names or not all(names):
        raise Usage("name the sessions: A,B,C", reason="missing", hint="tmuxctl wait --any A,B")
    places = {name: reach(machine, name) for name in names}
    for place, called in places.values():
        if place.remote is None:
            finding.find_session(place, called)
        else:
            place.remote.call("show", {"session": called}, called, address=place.address)
    if since is not None and since != "screen":
        raise Usage("a cursor belongs to one session", reason="bad_option", hint="leave --since out, or --since screen")
    call = current()
    limit = time_limit(machine, timeout)
    ends: dict[str, Wait | BaseException] = {}
    waiters = {name: make_waiter(*places[name], wanted, since) for name in names if places[name][0].remote is None}
    over, enough = Cancellation(), threading.Event()

    def one(name: str) -> None:
        place, called = places[name]
        inner = Call(call.request_id, call.deadline, over, call.repeated)
        try:
            if place.remote is not None:
                conditions = {key: value for key, value in vars(wanted).items() if key != "unknown"}
                asked = {**conditions, "timeout": limit, "since": since, "now": now, "session": called}
                with under(inner):
                    ends[name] = place.remote.call("wait", asked, called, address=place.address)
                return
            with under(inner), waiters[name] as waiter:
                found = waiter.test() if now else _with_screen(waiter, waiter.until(limit))
                ends[name] = changed(found, session=places[name][0].address_of(found.session))
        except BaseException as error:
            ends[name] = error
        finally:
            tell(name)

    def tell(name: str) -> None:
        end = ends[name]
        if len(ends) == len(names) or isinstance(end, BaseException) if every else _held(end):
            enough.set()

    threads = [threading.Thread(target=one, args=(name,), daemon=True) for name in names]
    try:
        for thread in threads:
            thread.start()
        while not enough.wait(machine.timing.wait.signal_seconds) and len(ends) < len(names):
            call.check()
        return _together(names, dict(ends), every)
    finally:
        over.set()
        for waiter in waiters.values():
            waiter.wake()


def _held(end: Wait | BaseException) -> bool:
    return isinstance(end, Wait) and end.matched is not None


def _together(names: tuple[str, ...], ends: dict[str, Wait | BaseException], every: bool) -> Waits:
    found = [end for name in names if isinstance(end := ends.get(name), Wait)]
    held = [end for end in found if end.matched is not None]
    errors = [end for end in ends.values() if isinstance(end, BaseException)]
    # where the time is over for one, the others' ends say nothing of what it may still do
    if errors and (every or not found):
        raise errors[0]
    return Waits(tuple(found if every else held[:1] or found), len(held) == len(names) if every else bool(held))


class _Wake(Value):
    """What a wait found when it woke: whether anything was heard of, how far the journal reached before it was read (None if it
    was read without asking), whether output was added to it."""

    heard: bool
    extent: JournalExtent | None
    grown: bool

    @property
    def finished(self) -> bool:
        """Whether the journal had ended before it was read."""
        return self.extent is not None and self.extent.finished


class Waiter:
    """One wait: the output since its cursor, fed as it comes, the looks at the program, and the conditions tried on both."""

    def __init__(
        self,
        machine: Machine,
        pane: Pane,
        wanted: Conditions,
        since: str | None,
        given: LastInput | None,
        *,
        steady: StabilityTracker | None = None,
        begun: bool = False,
    ) -> None:
        """`begun`: what is searched has only just begun, so that nothing but output is looked for before the first sleep."""
        self.machine, self.pane, self.wanted = machine, pane, wanted
        self.timing, self.clock = machine.timing.wait, machine.clock
        self.began = self.changed = self.asked = machine.clock.monotonic()
        self.journal: Journal = finding.open_journal(machine, pane)
        self.watch: Watch | None = None
        self.steady = steady
        self._begun = begun
        self.seen: Seen | None = None
        self.text, self.gone = find_search(wanted.text), find_search(wanted.gone)
        if self.text:
            from tmuxctl.control.waiting.text_since import Seen

            self.seen = Seen(machine, pane, self.journal, since, given if since is None else None)
        self.offset = self.seen.offset if self.seen else self.journal.end()
        self.base = self._base(since)
        if wanted.state and not steady:
            from tmuxctl.control.observation.observer import Observer
            from tmuxctl.control.observation.observing import StabilityTracker

            self.steady = StabilityTracker(machine, Observer(machine, pane), given)
            self.steady.load_looks()
        self.gone_session = False
        self._ending = False
        """Whether the program has ended, and the last that it printed is awaited: nothing else tells when that has come."""
        self._measured = (self.began, self.offset)
        self._behind_since: float | None = None
        """Since when the screen shows what the journal does not hold yet."""

    def _base(self, since: str | None) -> int:
        """The offset after which output is a change."""
        from tmuxctl.control.output import printed

        found = printed.offset_of(self.pane, since)
        if found is None and self.behind:
            return self.journal.end()
        return self.offset if found is None else found

    @property
    def behind(self) -> bool:
        """True if there is output in which the text was not looked for yet."""
        return self.seen is not None and (self.seen.behind or (self.pane.dead and self._under_way()))

    def _under_way(self) -> bool:
        """True if the last that a program printed before its end is not read yet, or not even in the journal."""
        extent = self.journal.extent()
        late = not extent.finished and self.changed + self.timing.under_way_seconds > self.clock.monotonic()
        return late or extent.end > self.offset

    def __enter__(self) -> Waiter:
        return self

    def __exit__(self, *_: object) -> None:
        if self.watch:
            self.watch.close()
        if self.steady and self.steady.observer.looks:
            self.steady.save_looks()

    def wake(self) -> None:
        """End the sleep of the thread that waits, so that it sees that nobody wants it any more."""
        if self.watch:
            self.watch.close()

    def test(self) -> Wait:
        """Whether it holds now."""
        if self.wanted.settle is not None:
            newest = self.journal.extent().grown or self.pane.created
            self.changed -= max(0.0, self.clock.wall() - newest)
        end = self.journal.end() if self.behind else self.offset
        while not (found := self.holds(None)):
            if self.behind and self.offset < end:
                current().check()
                self._skim()
                self._grow()
                continue
            if (
                self.pane.dead
                or self.steady is None
                or self.steady.is_stable
                or self.clock.monotonic() - self.began > self.timing.moment_seconds
            ):
                return self.result(None, "the condition does not hold now")
            self.clock.sleep(self.steady.seconds_until_due())
        return found

    def until(self, limit: float | None, *, anew: bool = False) -> Wait:
        """Sleep until it holds; `limit` in seconds since the wait began, or with `anew` since now."""
        deadline = None if limit is None else limit + (self.clock.monotonic() if anew else self.began)
        if found := self.holds(deadline):
            return found
        heard = self.watch is None or self.behind or self._may_be_more()
        watch = self._open_watch()
        if self._begun:
            # whatever comes from now on ends the first sleep
            self._begun = False
            if self.journal.streams and self._grow() and (found := self.holds(deadline)):
                return found
            # that the journal's writer stopped before the watch was there is told by nothing
            heard = self.behind or self.journal.extent().stopped
        self.asked = self.clock.monotonic()
        while True:
            wake = self._take_in(heard)
            if found := self.holds(deadline):
                return found
            if self.pane.dead and not self.behind:
                return self._at_end(deadline)
            moment = self.clock.monotonic()
            if self._finds_end(wake):
                continue
            current().check()
            if deadline is not None and moment >= deadline:
                return self._search_newest(moment) or self._timed_out(limit or 0.0)
            if self._reads_on() or self._asks_again(wake, moment):
                continue
            heard = self._sleep(watch, moment, deadline)

    def _open_watch(self) -> Watch:
        if self.watch is None:
            folders = self.steady.observer.folders if self.steady else [self.journal.folder]
            self.watch = self.machine.transport.watch(folders, None if self.pane.dead else self.pane.pid)
        return self.watch

    def _take_in(self, heard: bool) -> _Wake:
        """Read what came, if anything was heard of. Whether the journal has ended is asked before a read that finds nothing."""
        if not heard:
            return _Wake(False, None, False)
        if self.seen and self.journal.streams and self._grow(quick=True):
            return _Wake(True, None, True)
        extent = self.journal.extent()
        unread = not self.journal.streams or extent.end != self.offset
        return _Wake(True, extent, unread and self._grow())

    def _skim(self) -> None:
        """Draw only output in which the text may be."""
        if self.seen and self.text:
            self.seen.skim(self.text)

    def _may_be_more(self) -> bool:
        return self.seen is not None and self.seen.may_be_more

    def _reads_on(self) -> bool:
        """True if output is there, or may be, in which the text was not looked for. What there is much of lets others go first."""
        if self.seen is None or not (self.seen.behind or self._may_be_more()):
            return False
        if self.seen.behind:
            self._skim()
            if threading.active_count() > 1:
                self.clock.sleep(self.timing.give_way_seconds)
        return True

    def _at_end(self, deadline: float | None) -> Wait:
        """The result of a wait for a program that has ended: the last of its output may have come since. Else Exited."""
        if found := self.holds(deadline):
            return found
        raise self._ended()

    def _finds_end(self, wake: _Wake) -> bool:
        """True if the journal's end turns out to be the program's; Conflict if what is waited for is not kept any more."""
        if wake.finished and not wake.grown and self._ask():
            return True
        if not wake.heard or self.behind or self._may_be_more() or not self._unheard(wake):
            return False
        # the journal of a server that dies ends before the program does
        if self._ask():
            return True
        raise finding.journal_stopped_error(self.pane)

    def _asks_again(self, wake: _Wake, moment: float) -> bool:
        """Ask tmux where that is due, or where the program may have ended; True if it has."""
        due = moment - self.asked >= self.timing.alive_seconds or wake.finished or self._ending
        due = due or (wake.heard and not self._alive())
        if due:
            self.asked = moment
        return due and self._ask()

    def _sleep(self, watch: Watch, moment: float, deadline: float | None) -> bool:
        """Sleep until something happens or a look is due; True if something did."""
        nap = self._nap(moment, deadline)
        if self.seen:
            heard = watch.wait(min(nap, max(0.0005, self.steady.seconds_until_due())) if self.steady else nap)
            if heard:
                self._rest_in_flood(deadline)
            return heard
        return self.steady.sleep(watch, nap) if self.steady else watch.wait(nap)

    def _rest_in_flood(self, deadline: float | None) -> None:
        """Let much output come together, and other threads go on meanwhile, where it comes without a pause."""
        moment, (before, offset) = self.clock.monotonic(), self._measured
        flood = moment - before < self.timing.flood_seconds
        if flood and self.offset - offset < FLOOD_BYTES:
            return
        if flood:
            self._skim()
            rest = self.timing.flood_rest_seconds
            self.clock.sleep(rest if deadline is None else max(0.0, min(rest, deadline - moment)))
        self._measured = (self.clock.monotonic(), self.offset)

    def _search_newest(self, moment: float) -> Wait | None:
        """The result in the newest output, where there was no time to search all of it."""
        if self.seen is None or not self.seen.behind:
            return None
        self.seen.skip()
        return self.holds(moment + self.timing.last_search_seconds)

    def holds(self, deadline: float | None) -> Wait | None:
        """The result if a condition holds at this moment."""
        if self.text and self.seen:
            found = self.seen.search(self.text, deadline)
            if found:
                return self.result(
                    WaitCondition.TEXT, f"text: {ascii(found.text[:60])}", text=found.text, groups=found.groups
                )
        if self.wanted.exit and self.pane.dead and not self.behind:
            return self.result(WaitCondition.EXIT, "exit: " + _how(self.pane))
        if self.wanted.change and self.offset > self.base:
            return self.result(WaitCondition.CHANGE, "change: it printed something")
        if self.gone and (gone := self._gone(self.gone, deadline)):
            return gone
        settle = self.wanted.settle
        if settle is not None and self.clock.monotonic() - self.changed >= settle:
            return self.result(WaitCondition.SETTLE, f"settle: nothing printed for {settle:g} s")
        return self._state()

    def _gone(self, pattern: Search, deadline: float | None) -> Wait | None:
        """The screen without the text. It is looked at again when something was printed."""
        if self.offset == self._looked_for:
            return None
        self._looked_for = self.offset
        found = self._newest_screen()
        if found is None or pattern.find(found[1], deadline=deadline):
            return None
        return self.result(WaitCondition.GONE, f"gone: {ascii(pattern.pattern[:60])} is not on the screen")

    _looked_for = -1

    def _newest_screen(self) -> tuple[Pane, str] | None:
        """The facts and the screen as they are now; None where the session is gone."""
        from tmuxctl.control.output import captured
        from tmuxctl.terminal.tmux import screen as screens

        try:
            pane, _, rows, *_ = captured.capture_pane(self.machine, self.pane)
        except NotFound:
            return None
        return pane, screens.plain_text(rows)

    def _state(self) -> Wait | None:
        """What the program does, if that is what is waited for and it holds. DecisionNeeded and Exited are raised where
        they are not waited for."""
        steady = self.steady
        if steady is None or self.pane.dead or steady.may_skip():
            return None
        try:
            held = steady.observe()
        except (NotFound, Unreachable) as error:
            if error.reason == "backend_timeout":
                raise
            if not self._ask():
                steady.observer.pane = self.pane
            return None
        verdict = steady.verdict
        if verdict.state is State.EXITED:
            self.pane = steady.observer.pane
            ends = self.wanted.exit and not self.behind
            return self.result(WaitCondition.EXIT, "exit: " + _how(self.pane)) if ends else None
        if not held or self.behind or not self._is_kept(steady):
            return None
        return self._fulfilled(verdict)

    def _is_kept(self, steady: StabilityTracker) -> bool:
        """Whether the journal holds what the screen shows of a program that waits. On a busy machine its writer may be behind, and
        who reads the output once the program waits would miss the last of it."""
        given, look = steady.last_input, steady.newest
        # a mark stands in the journal itself
        if steady.verdict.state is not State.IDLE or steady.verdict.by is EvidenceKind.SHELL_MARK:
            return True
        if given is None or given.alternate or look.alternate or not self.journal.streams:
            return True
        if not look.left.strip() and (found := self._newest_screen()):
            # where no prompt has to be seen, the screen of the look may be an older one
            pane, screen = found
            look = look._replace(screen=screen, x=pane.x, y=pane.y)
        from tmuxctl.reading.text.echo import holds_shown_line

        start = max(given.offset, self.journal.end() - SHOWN_BYTES)
        if holds_shown_line(self.journal.read(start).data, look.screen, look.left, look.y, look.cols):
            self._behind_since = None
            return True
        now = self.clock.monotonic()
        self._behind_since = self._behind_since or now
        return now - self._behind_since >= self.timing.journal_seconds

    def _fulfilled(self, verdict: Verdict) -> Wait | None:
        """The result if a state that holds is waited for; the error if it stands before what is."""
        wants = self._wants(verdict)
        if matched := self.wanted.fulfilled_by(verdict.state, wants):
            return self.result(matched, f"{matched}: {verdict.why}")
        if verdict.state is State.ASKING and (self.wanted.idle or self.wanted.prompt):
            raise asks(self.pane.name, verdict)
        if wants == wanting.INPUT and self.wanted.prompt and not self.wanted.idle:
            raise wanting.input_wanted(self.pane.name, verdict)
        return None

    def _wants(self, verdict: Verdict) -> str | None:
        return wanting.what_is_wanted(self.steady.observer, verdict) if self.steady else None

    def _grow(self, *, quick: bool = False) -> bool:
        """Take in what came since the last look."""
        end = self.seen.feed(quick=quick) if self.seen else self.journal.end()
        grown = end != self.offset
        if grown:
            self.offset, self.changed = end, self.clock.monotonic()
        return grown

    def _unheard(self, wake: _Wake) -> bool:
        """True if what is waited for is output, which is not kept any more though the program goes on."""
        wanted = self.wanted
        if not (self.text or self.gone or wanted.change or wanted.settle is not None):
            return False
        extent = wake.extent if wake.extent and not wake.grown else self.journal.extent()
        return (extent.finished or extent.stopped or extent.end < self.offset) and self._alive()

    def _alive(self) -> bool:
        rows = self.machine.transport.processes([self.pane.pid])
        return self.pane.dead or any(row.state not in ("Z", "X") for row in rows)

    def _ask(self) -> bool:
        """Look whether the session is still there; True if its program has ended."""
        try:
            if not self._alive():
                self.machine.io.nudge()
            now = self._now()
        except Unreachable as error:
            if error.reason != "no_server":
                raise
            raise Unreachable(
                f"session {self.pane.name} was lost: its tmux server died",
                reason="lost",
                hint=f"its output is still there: tmuxctl log {self.pane.name}",
            ) from None
        if now is None:
            self.pane, self.gone_session = self._killed(), True
            return True
        if now.dead and self._under_way():
            self._ending = True
            return False
        self.pane = now
        return now.dead

    def _now(self) -> Pane | None:
        """The session's facts, under another name too; None if it is gone."""
        with suppress(NotFound):
            now = server.read_pane(self.machine.io, self.pane.name)
            if now.id == self.pane.id:
                return now
        return next((one for one in server.list_panes(self.machine.io) if one.id == self.pane.id), None)

    def _killed(self) -> Pane:
        """The facts of a session that is gone: if tmuxctl ended it, its tombstone knows how."""
        about: dict[str, Any] = {}
        # written before the session goes, and moved after that: it may move while it is looked for
        for place in (layout.SESSIONS, layout.ENDED_SESSIONS) * 2:
            about = records.parse_ended_record(self.machine, f"{self.machine.transport.home}/{place}/{self.pane.id}")
            if about:
                break
        return changed(self.pane, dead=True, status=about.get("exit_status"), signal=about.get("signal"))

    def _ended(self) -> Exited:
        error = ended_error(self.pane)
        if self.gone_session:
            error.hint = f"what it printed is still there: tmuxctl log {self.pane.name}"
        error.details["elapsed"] = round(self.clock.monotonic() - self.began, 3)
        return error

    def _nap(self, moment: float, deadline: float | None) -> float:
        # a caller who can wake this when it gives up is not asked meanwhile
        left = [self.timing.alive_seconds if current().wakes else self.timing.nap_seconds]
        if self._ending:
            left.append(self.timing.under_way_seconds)
        if deadline is not None:
            left.append(deadline - moment)
        if self.wanted.settle is not None:
            left.append(self.changed + self.wanted.settle - moment)
        return max(0.0005, min(left))

    def result(
        self,
        matched: WaitCondition | None,
        why: str,
        *,
        text: str | None = None,
        groups: tuple[str | None, ...] | None = None,
        timed_out: bool = False,
    ) -> Wait:
        """What the caller gets."""
        dead = self.pane.dead
        verdict = self.steady.verdict if self.steady and not dead else None
        if timed_out and verdict is None and not dead:
            verdict = self._last_state()
        if dead:
            status = records.ended_status(self.pane.ended or None)
        elif verdict:
            status = summaries.status_of(verdict)
        else:
            status = SETTLED if matched is WaitCondition.SETTLE else Status()
        return Wait(
            session=self.pane.name,
            matched=matched,
            why=why,
            text=text if matched else self.seen.tail() if self.seen else None,
            groups=groups,
            status=status,
            wants=self._wants(verdict) if verdict else None,
            elapsed=round(self.clock.monotonic() - self.began, 3),
            cursor=finding.cursor_at(self.pane, self.offset),
            timed_out=timed_out,
            exit_status=self.pane.status if dead else None,
            signal=self.pane.signal if dead else None,
        )

    def _timed_out(self, limit: float) -> Wait:
        """The result after this many seconds: what was not seen, and what the program still does."""
        found = self.result(None, "", timed_out=True)
        told = [f"timed out after {round(limit, 3):g} s"]
        if (not self.wanted.state and not self.wanted.exit) or found.state is None:
            told.append(f"{self.wanted.words()} was not seen")
        if found.state is not None:
            finer = found.kind or found.detail
            told.append(f"{found.session} is still {found.state.value}" + (f" ({finer})" if finer else ""))
        return changed(found, why="; ".join(told))

    def _last_state(self) -> Verdict | None:
        """What the program does, told by one look at the end of a wait for something else."""
        from tmuxctl.control.observation import observing

        try:
            return observing.observe(self.machine, self.pane, moment=0.0).verdict
        except (NotFound, Unreachable) as error:
            if error.reason == "backend_timeout":
                raise  # nothing else would be answered either
        return None


def asks(name: str, verdict: Verdict) -> DecisionNeeded:
    """The error for a program that wants a decision first."""
    asking = verdict.asking
    question = asking.question if asking else verdict.why
    kind = asking.kind if asking else verdict.kind
    options = ", ".join(option.id for option in asking.options) if asking else ""
    answer = (
        f"options: {options}       answer: tmuxctl decide {name} {asking.options[0].id}" if asking and options else ""
    )
    if kind and kind.traits.hidden:
        answer = f"answer: tmuxctl decide {name} --secret-from-env VARIABLE; or cancel it: tmuxctl keys {name} C-c"
    return DecisionNeeded(
        f"{name} is asking ({kind}): {question}",
        reason=kind or "question",
        hint=answer or f"answer: tmuxctl decide {name} TEXT",
        asking=to_json(asking) if asking else None,
    )


@lru_cache(maxsize=64)
def find_search(pattern: str | None) -> Search | None:
    """How to look for a pattern, None for none. Raises Usage for a bad one."""
    if pattern is None:
        return None
    from tmuxctl.control.waiting.searching import Search

    return Search(let_blanks_end_rows(pattern))


def _how(pane: Pane) -> str:
    if pane.signal:
        return f"signal {pane.signal}"
    return "status unknown" if pane.status is None else f"status {pane.status}"
