"""A turn that goes to the next program when one is limited, fails, is dead or not installed: each in a session of its own.

No text is ever given to two programs that could both act on it: the next one gets it only if the one before did not get
it at all, or plainly ended the turn with its limit, an error or its death instead of an answer, before it did anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from zlib import crc32

from tmuxctl.control.observation import observing
from tmuxctl.control.output import captured
from tmuxctl.control.sessions import finding, records, summaries
from tmuxctl.control.sessions.kept_profile import profile_of
from tmuxctl.control.turns import turn
from tmuxctl.errors import Conflict, Exited, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.model import Session, State, with_status
from tmuxctl.operations import current
from tmuxctl.results import Answer, Passed
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.tmux import options
from tmuxctl.value import changed
from tmuxctl.vocabulary import Detail, EventKind

if TYPE_CHECKING:
    from tmuxctl.control.lifecycle.creation import SessionRequest
    from tmuxctl.control.lifecycle.restoring import KeptSession
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observation.observing import ObservedState
    from tmuxctl.control.sessions.kept_environment import RecoveredVariables
    from tmuxctl.control.turns.candidates import Candidate
    from tmuxctl.control.turns.turn import Asked
    from tmuxctl.evidence import Look
    from tmuxctl.program_profile import Profile, Rule

TAG = "fallback"
"""What a session is tagged with that stands in for another one."""

NOTICE_LINES = 10
"""What has so many lines is no notice of an error any more, but an answer that speaks of one."""

WORDS_LEAST = 12
"""Letters that a row of the screen and a line of an answer have in common where they are the same."""

SAID_MOST = 200
"""Characters of an error that are told again."""

ENDING = {"HUP": 129, "INT": 130, "QUIT": 131, "KILL": 137, "TERM": 143}
"""Signals by which somebody ends a program, `tmuxctl kill` too, and the exit statuses of programs that heed them."""

NAME_MOST = 63
"""Characters of a session's name."""


def ask(
    machine: Machine, session: str, text: bytes, asked: Asked, *, fallback: Sequence[str] = (), new: str | None = None
) -> Answer:
    """A turn in this session, or in that of the next candidate; errors as `turn.ask`, and Failed `no_candidate` that
    tells of each why not. `new` is the command that is started if there is no such session."""
    return _Failover(machine, session, text, asked, fallback).ask(new)


def spent(answer: Answer, profile: Profile | None, screen: str, text: bytes = b"") -> str | None:
    """Why a turn that came to nothing is for the next program: `limited` or `exited`. None for every other turn: it has an
    answer, or may still get one, or it is not plain that it has none.

    `screen` is what stands on the screen after it, `text` what the program was given.
    """
    rules = profile.errors if profile else ()
    if answer.state is State.IDLE and answer.detail == Detail.LIMITED:
        return "limited" if _is_error(answer.answer, _limits(profile), screen) else None
    if answer.state is State.EXITED and _died(answer):
        told_to = profile is not None and profile.exit_send == text.decode(errors="replace")
        return None if told_to or not _is_error(answer.answer, rules, screen) else "exited"
    return None


def _died(answer: Answer) -> bool:
    """True if a program ended by itself and in failure; not if somebody ended it, or if nobody knows how it did."""
    if answer.signal:
        return answer.signal not in ENDING
    return bool(answer.exit_status) and answer.exit_status not in ENDING.values()


def _limits(profile: Profile | None) -> list[Rule]:
    return [rule for rule in profile.errors if rule.detail == Detail.LIMITED] if profile else []


def _until(text: str, profile: Profile | None) -> str | None:
    """Until when (ISO-8601) by the words of the answer; on the screen older ones may stand."""
    told = [found for rule in _limits(profile) for found in re.finditer(rule.re, text, re.MULTILINE)]
    words = [found["until"] for found in told if found.groupdict().get("until")]
    if not words:
        return None
    from datetime import datetime

    from tmuxctl.reading.questions import usage_limits

    return usage_limits.parse_moment(words[-1], datetime.now().astimezone())


def _failed(there: Session, answer: Answer) -> Passed | None:
    """Why a turn that failed is for the next program; None if it did not fail, nobody knows what became of it, or something
    was done before it failed."""
    if answer.error is None or answer.source is None or answer.answer.strip() or not answer.submitted.ok:
        return None
    return Passed(there.profile, "failed", f"the turn failed{_first_line(answer.error)}", session=there.name)


def _first_line(words: str) -> str:
    return f": {first}" if (first := words.strip().partition("\n")[0][:SAID_MOST]) else ""


def _told(answer: Answer, look: Look) -> bool:
    """True if these are the model's words, as the program told it itself: an answer, whatever it says. Errors are told as
    failures, or not at all."""
    failed = look.hook is not None and look.hook.means == EventKind.FAILURE
    return bool(answer.answer) and answer.source in ("hook", "transcript") and not failed


def _is_error(answer: str, rules: Sequence[Rule], screen: str) -> bool:
    """True if what a program wrote is nothing, or an error and what belongs to it: what stands before one is an answer.

    The answer has lost marks and margins that a rule may name: so a row of the screen that a rule finds counts too.
    """
    head = answer.strip().partition("\n\n")[0]
    if not head:
        return True
    if answer.strip().count("\n") >= NOTICE_LINES:
        return False
    first = _bare(head.partition("\n")[0])
    for rule in rules:
        if re.search(rule.re, head, re.MULTILINE):
            return True
        for found in re.finditer(rule.re, screen, re.MULTILINE):
            begin, end = screen.rfind("\n", 0, found.start() + 1) + 1, screen.find("\n", found.end())
            row = _bare(screen[begin : end if end >= 0 else None])
            if min(len(first), len(row)) >= WORDS_LEAST and (row.startswith(first) or first.startswith(row)):
                return True
    return False


def _bare(text: str) -> str:
    """Without blanks, and without what is drawn before the first word."""
    return re.sub(r"\A\W+", "", "".join(text.split()))


class _Failover:
    """One turn, on its way from one candidate to the next."""

    def __init__(self, machine: Machine, session: str, text: bytes, asked: Asked, fallback: Sequence[str]) -> None:
        from tmuxctl.control.turns import candidates

        if fallback:
            current().demand("create", "ask --fallback")
        self.machine, self.session, self.text, self.asked = machine, session, text, asked
        # a mistake in a name is told before anything is typed
        self.fallback = candidates.known(fallback)
        self.passed: list[Passed] = []
        self.first: Session | None = None
        began = machine.clock.monotonic()
        limit = current().left(machine.settings.wait_ask_timeout if asked.timeout is None else asked.timeout)
        self.deadline = None if limit is None else began + limit

    def ask(self, new: str | None) -> Answer:
        there = self.first = self._first(new)
        spec = records.read_spec(self.machine, there.id).get("asked", {}) if there else {}
        listed = spec.get("candidates") or ()
        if there is not None:
            if not self.fallback and not set(listed) - {there.profile}:
                return turn.ask(self.machine, self.session, self.text, self.asked)
            for session in (self._given_before(there), there):
                if session and (answer := self._try(session)):
                    return answer
        for one in self._others(listed, spec.get("route", "first")):
            if self._left() == 0.0:
                break
            if (made := self._beside(one)) and (answer := self._try(made)):
                return answer
        from tmuxctl.control.turns import candidates

        raise candidates.none_left(f"no program took the turn of {self.session}", self.passed)

    # who is asked

    def _first(self, new: str | None) -> Session | None:
        """The session that was named, whatever its state; None if its program could not even be started."""
        machine = self.machine
        try:
            if new is not None:
                turn.create(machine, self.session, new)
            pane = finding.find_session(machine, self.session)
        except (Unreachable, Exited) as error:
            if error.reason not in finding.GONE:
                raise
            return next(
                one
                for one in records.list_lost(machine, finding.list_panes(machine))
                if self.session in (one.name, one.id)
            )
        except Failed as error:
            if error.reason != "command_not_found" or not self.fallback:
                raise
            self.passed.append(Passed(None, "not_installed", error.message, error.hint, self.session))
            return None
        if pane.spec.get("target") and self.fallback:
            hint = "start the program with tmuxctl new"
            raise Usage("--fallback is for sessions of tmuxctl's own", reason="bad_option", hint=hint)
        return summaries.summarize(pane)

    def _given_before(self, first: Session) -> Session | None:
        """The session beside that was given the turn of this id by an earlier call: what hindered the first may be over."""
        for pane in finding.list_panes(self.machine) if self.asked.id else ():
            if pane.spec.get("beside") == first.id and not pane.dead:
                (turn_id,) = self.machine.io.look(pane.name, (options.TURN_ID,)).values
                if turn_id == self.asked.id:
                    return summaries.summarize(pane)
        return None

    def _others(self, listed: Sequence[str], route: str) -> tuple[Candidate, ...]:
        """Who comes after the first: those named with this turn, then the other candidates of its session."""
        from tmuxctl.control.turns import candidates

        own = self.first.profile if self.first else None
        limits = candidates.limits(self.machine, route)
        rest = candidates.ordered(candidates.kept(listed, self.passed), route, own, limits)
        unique: dict[str, Candidate] = {}
        for one in (*self.fallback, *rest):
            unique.setdefault(one.name, one)
        return tuple(one for one in unique.values() if one.name != own)

    # a turn

    def _try(self, there: Session) -> Answer | None:
        """A turn in this session; None, with the reason among those passed, if it is for the next one."""
        if why := self._unable(there):
            self.passed.append(why)
            return None
        before = self._last_input(there)
        try:
            asked = self.asked if not self.passed else self.asked._replace(timeout=self._left())
            answer = turn.ask(self.machine, there.name, self.text, asked)
        except Exited as error:
            # typed into, it may have got the text
            if self._last_input(there) != before:
                raise
            self.passed.append(Passed(there.profile, "exited", error.message, session=there.name))
            return None
        why = None
        with suppress(TmuxctlError):
            # who is gone meanwhile was ended by somebody: the answer is what there is
            why = self._spent(there, answer)
        if why is None:
            return changed(answer, passed=tuple(self.passed))
        self.passed.append(why)
        return None

    def _unable(self, there: Session) -> Passed | None:
        """Why this session cannot have a turn now, as far as is known without asking it."""
        from tmuxctl.control.turns import candidates

        if there.state is State.LOST:
            return Passed(there.profile, "lost", "was lost: its tmux server died", session=there.name)
        if there.state is State.EXITED:
            how = f" by signal {there.signal}" if there.signal else ""
            how = how or ("" if there.exit_status is None else f" with status {there.exit_status}")
            return Passed(there.profile, "exited", f"has ended{how}", session=there.name)
        if until := candidates.limited(self.machine, there.id):
            return Passed(there.profile, "limited", f"is limited until {until}", session=there.name)
        return None

    def _last_input(self, there: Session) -> str | None:
        """What names the last text that was typed into a session."""
        with suppress(TmuxctlError):
            found = LastInput.parse(finding.find_with_input(self.machine, there.name)[1])
            return found.id if found else None
        return "unknown"

    def _spent(self, there: Session, answer: Answer) -> Passed | None:
        """Why this turn came to nothing, None if it did not; who is limited is remembered."""
        if answer.state not in (State.IDLE, State.EXITED):
            return None
        from tmuxctl.control.turns import candidates

        pane = finding.find_session(self.machine, there.name)
        if pane.ended:
            # its time was over: nobody else gets more
            return None
        profile = profile_of(self.machine, pane)
        until: str | None = None
        words = answer.answer or answer.error or ""
        if answer.state is State.IDLE:
            # a hook may tell a limit before the screen does
            said = bool(words.strip()) and _is_error(words, _limits(profile), "")
            if answer.detail != Detail.LIMITED and not said:
                return _failed(there, answer)
            seen = self._seen(there)
            if seen.verdict.detail != Detail.LIMITED or _told(answer, seen.look):
                return _failed(there, answer)
            answer = with_status(answer, detail=Detail.LIMITED)
            until = _until(words, profile) or summaries.limit_end(seen.verdict)
        reason = spent(answer, profile, captured.screen(self.machine, there.name).text, self.text)
        if reason is None:
            return None
        if reason == "limited":
            candidates.note_limited(self.machine, there.id, until)
            candidates.note_limit(self.machine, there.profile or there.name, until)
        how = "ended in the turn" if reason == "exited" else f"is limited until {until}" if until else "is limited"
        return Passed(there.profile, reason, how + _first_line(words), session=there.name)

    def _seen(self, there: Session) -> ObservedState:
        """What a session's program does now."""
        pane, given = finding.find_with_input(self.machine, there.name)
        return observing.observe(self.machine, pane, LastInput.parse(given))

    def _left(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - self.machine.clock.monotonic())

    # the session beside

    def _beside(self, one: Candidate) -> Session | None:
        """The session in which this candidate stands in, made if need be; None, with the reason, if there can be none."""
        name = beside(self.first.name if self.first else self.session, one.name)
        there, dead = self._standing_in(name, one)
        if there:
            return there
        current().demand("create", "a session to fall back on")
        from tmuxctl.control.lifecycle import creation
        from tmuxctl.control.turns import candidates

        made: Session | None = None
        try:
            wanted = self._wanted(name, one)._replace(if_exists="replace" if dead else "error")
            why = candidates.not_installed(self.machine, wanted, one)
            if why is None:
                made = observing.wait_until_ready(self.machine, creation.new(self.machine, wanted))
                why = candidates.unfit(self.machine, made)
        except (Conflict, Failed, NotFound, Usage) as error:
            # another process may have been quicker
            there, _ = self._standing_in(name, one)
            if there:
                return there
            why = Passed(one.name, error.reason, error.message, error.hint, name)
        if why:
            self.passed.append(why)
            return None
        return made

    def _standing_in(self, name: str, one: Candidate) -> tuple[Session | None, bool]:
        """The session that was made for this before, if it is alive; and whether one of this name is, and has ended."""
        first = self.first.id if self.first else None
        dead = False
        for pane in finding.list_panes(self.machine):
            about = pane.spec.get("beside")
            if about is None or pane.spec.get("profile") != one.name or (pane.name != name and about != first):
                continue
            if not pane.dead:
                return summaries.summarize(pane), False
            dead = dead or pane.name == name
        return None, dead

    def _wanted(self, name: str, one: Candidate) -> SessionRequest:
        """What is started beside the first: this program, and all else as the first has it."""
        from tmuxctl.control.lifecycle import restoring
        from tmuxctl.control.lifecycle.creation import SessionRequest

        first = self.first
        if first is None:
            return SessionRequest(name=name, profile=one.given, tags=(TAG,), also={"beside": self.session})
        kept = restoring.read_kept_session(self.machine, first)
        found = restoring.recover_environment(self.machine, kept)
        # what its profile gave it is for its own program
        own = set(kept.profile.env if kept.profile else ()) - set(kept.asked["env"])
        cwd, plugins = _place(kept, found)
        return SessionRequest(
            name=name,
            profile=one.given,
            cwd=cwd,
            env={word: value for word, value in found.given.items() if word not in own},
            size=kept.spec["size"],
            history=kept.spec["history"],
            clean_env=kept.asked["clean_env"],
            plugins=plugins,
            tags=tuple(dict.fromkeys((*first.tags, TAG))),
            base={word: value for word, value in found.inherited.items() if word not in own},
            also={"beside": first.id},
        )


def _place(kept: KeptSession, found: RecoveredVariables) -> tuple[str, list[tuple[str, Any]]]:
    """Where the session beside starts, and its plugins. A folder that a plugin made for the first alone, such as a worktree,
    is taken as it is, without the plugin."""
    from tmuxctl.control.lifecycle import restoring

    plugins = restoring.plugins_again(kept, found)
    made = [name for name, _ in plugins if _made_folder(kept, name)]
    cwd = kept.spec["cwd"] if made else kept.asked["cwd"]
    return cwd, [(name, options) for name, options in plugins if name not in made]


def _made_folder(kept: KeptSession, plugin: str) -> bool:
    """True if the folder a session works in is this plugin's, by what it noted."""
    note = kept.spec["notes"].get(plugin)
    path = note.get("path") if isinstance(note, dict) else None
    place = kept.spec["cwd"]
    return isinstance(path, str) and place != kept.asked["cwd"] and f"{place}/".startswith(f"{path.rstrip('/')}/")


def beside(session: str, profile: str) -> str:
    """What the session is called in which a program stands in for this one: both names, made short if need be."""
    name = f"{session}-{profile}"
    return name if len(name) <= NAME_MOST else f"{name[: NAME_MOST - 9]}-{crc32(name.encode()):08x}"
