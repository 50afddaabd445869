"""Carries out a run: hands its turns out, writes down what comes of them, and ends it at its limits."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import singledispatchmethod

from tmuxctl.control import Control
from tmuxctl.errors import NotFound, TmuxctlError, Unreachable
from tmuxctl.fleet.connector import Agent, Connector
from tmuxctl.fleet.rules.conversation import TEXT_MOST
from tmuxctl.fleet.running.agents import (
    GONE,
    AgentBroke,
    AgentContinues,
    AgentReleased,
    AgentStarted,
    AgentThread,
    AgentWaits,
    Answered,
    CameToNothing,
    Crew,
    Outcome,
    RoleTaken,
    run_tag,
)
from tmuxctl.fleet.running.progress import Progress, TurnAttempt
from tmuxctl.fleet.running.transcript import Record, RunTranscript
from tmuxctl.operations import to_json
from tmuxctl.timing import TIMING
from tmuxctl.value import changed
from tmuxctl.vocabulary import RunEvent

TIME_LEAST = 0.01
"""Seconds that are waited at least, so that a limit that is over is seen."""


class Runner:
    """One run, in the process that carries it out. `transcript` is open, with the records of the run that is to be resumed, or
    none. `show` is told each record once it is written. Without `waits_for_people` a run stops where every turn waits for a
    decision."""

    def __init__(
        self,
        control: Control,
        connector: Connector,
        transcript: RunTranscript,
        *,
        show: Callable[[Record], None] = lambda record: None,
        waits_for_people: bool = True,
    ) -> None:
        self.control, self.connector, self.transcript, self.show = control, connector, transcript, show
        self.waits_for_people = waits_for_people
        self.progress = Progress(connector)
        self.left: tuple[str, ...] = ()
        """What the plugins of sessions left behind that were ended, in words."""
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._crew: Crew
        self._threads: dict[str, AgentThread] = {}
        self._starting: set[str] = set()
        self._records: list[Record] = []
        """Made and not written yet."""
        self._due: list[TurnAttempt] = []
        """Turns that are given out as soon as they are written down."""

    def carry_out(self) -> Record:
        """Begin the run, or go on with it, until it ends or stops; its last record. What interrupts this process leaves a run
        that can be resumed."""
        self._begin()
        self._crew = Crew(self.control, self.progress, self._outcomes.put)
        try:
            last = self._work()
        except BaseException as error:
            self._break_off(error)
            raise
        self._finish(last)
        return last

    # its beginning

    def _begin(self) -> None:
        resumed = bool(self.transcript.records)
        if resumed:
            self.progress.note_all(self.transcript.records, self.transcript.path)
            self._make(RunEvent.RESUMED)
        else:
            self._make(
                RunEvent.BEGIN,
                None,
                (),
                self.connector.input,
                team=self.connector.name,
                run=os.urandom(8).hex(),
                digest=self.connector.digest,
            )
        # what it read is a part of the state by now
        self.transcript.records = []
        self._due += self.progress.attempts.values()

    def _make(self, event: RunEvent, *given: object, **about: object) -> None:
        """A record, from which everything follows at once that does; it is written before anything is done."""
        record = self.transcript.make(event, *given, **about)  # type: ignore[arg-type]  # as it takes them
        messages = self.progress.note(record)
        if messages:
            record = changed(record, to=tuple(dict.fromkeys(one.to for one in messages)))
        self._records.append(record)

    # its work

    def _work(self) -> Record:
        for name in self.progress.conversation.agents:
            if name not in self.progress.sessions:
                self._starting.add(name)
                self._thread(name).begin()
        while True:
            self._take_turns()
            self._end_if_over()
            last = self._write()
            if last is not None:
                return last
            self._give_out()
            for outcome in self._next_outcomes():
                self._note_outcome(outcome)

    def _take_turns(self) -> None:
        """Write down every turn that may begin now."""
        if self._starting or self.progress.stopped or self.progress.ended:
            return
        while self.progress.turns < self.connector.stop.turns:
            attempt = self.progress.take()
            if attempt is None:
                return
            self._note_turn(attempt)

    def _note_turn(self, attempt: TurnAttempt) -> None:
        delivery = attempt.delivery
        self._records.append(
            self.transcript.make(
                RunEvent.TURN,
                ", ".join(delivery.senders) or None,
                (delivery.agent,),
                delivery.text,
                turn=delivery.id,
                tries=attempt.tries or None,
                id=attempt.id,
            )
        )
        self._due.append(attempt)

    def _end_if_over(self) -> None:
        progress, stop = self.progress, self.connector.stop
        if progress.stopped or progress.ended:
            return
        conversation = progress.conversation
        if progress.active_until(time.time()) >= stop.seconds:
            conversation.end("time", ok=False, message=f"{stop.seconds:g} s are over")
        elif progress.turns >= stop.turns and not progress.attempts:
            conversation.end("turns", ok=False, message=f"all {stop.turns} turns were taken")
        if ending := conversation.ending:
            self._make(
                RunEvent.END,
                None,
                (),
                ending.result if isinstance(ending.result, str) else None,
                reason=ending.reason,
                ok=ending.ok,
                message=ending.message or None,
                results=None if isinstance(ending.result, str) else ending.result,
            )
        elif not self.waits_for_people and self._only_waits():
            self._make(RunEvent.STOPPED, None, (), "every turn waits for a decision", reason="asking")

    def _only_waits(self) -> bool:
        """Whether every turn under way waits for a decision."""
        asking = {name for name, record in self.progress.waiting.items() if record.event is RunEvent.ASKING}
        return bool(asking) and asking >= self.progress.attempts.keys() and not self._starting - asking

    def _write(self) -> Record | None:
        """Write what was made; the record with which this run is over for now, if there is one."""
        records, self._records = self._records, []
        if records:
            self.transcript.append(records)
        for record in records:
            self.show(record)
        return self.progress.ended or self.progress.stopped

    def _give_out(self) -> None:
        """What is written down is done."""
        if not self._starting:
            due, self._due = self._due, []
            for attempt in due:
                self._thread(attempt.delivery.agent).give(attempt)
        released, self.progress.conversation.released = self.progress.conversation.released, []
        for name in released:
            if thread := self._threads.get(name):
                thread.release()

    def _next_outcomes(self) -> Iterable[Outcome]:
        """Wait for what happens next, and take what has happened with it."""
        left = self.connector.stop.seconds - self.progress.active_until(time.time())
        with suppress(queue.Empty):
            yield self._outcomes.get(timeout=max(TIME_LEAST, min(left, TIMING.wait.signal_seconds)))
            while True:
                yield self._outcomes.get_nowait()

    def _thread(self, name: str) -> AgentThread:
        found = self._threads.get(name)
        if found is None:
            agent, branch = self._settings_of(name)
            found = self._threads[name] = AgentThread(
                self._crew,
                name,
                agent,
                self.progress.sessions.get(name),
                has_role=name in self.progress.roles,
                branch=branch,
            )
            found.start()
        return found

    def _settings_of(self, name: str) -> tuple[Agent, str | None]:
        """What the file says of an agent, or of the one in whose place it was started; and the branch of its worktree."""
        origin = self.progress.conversation.agents.get(name, name)
        agent = self.connector.agents[origin]
        branch = agent.isolation.worktree
        return agent, f"{branch}-{name}" if branch and origin != name else branch

    # what comes of it

    @singledispatchmethod
    def _note_outcome(self, outcome: object) -> None:
        raise TypeError(outcome)

    @_note_outcome.register
    def _(self, outcome: AgentStarted) -> None:
        about = {"session": outcome.session.address, "id": outcome.session.id, "machine": outcome.session.machine}
        self._starting.discard(outcome.agent)
        self._make(RunEvent.SESSION, outcome.agent, (), None, profile=outcome.profile, **about)

    @_note_outcome.register
    def _(self, outcome: RoleTaken) -> None:
        self._make(RunEvent.ROLE, outcome.agent, (), outcome.answer.answer, outcome.answer.elapsed)

    @_note_outcome.register
    def _(self, outcome: AgentWaits) -> None:
        question = outcome.question
        if question is None:
            self._make(RunEvent.PAUSED, outcome.agent, (), "a person types")
        else:
            asked = {"id": question.id, "kind": question.kind.value, "options": [one.id for one in question.options]}
            self._make(RunEvent.ASKING, outcome.agent, (), question.question, question=asked)

    @_note_outcome.register
    def _(self, outcome: AgentContinues) -> None:
        self._make(RunEvent.CONTINUED, outcome.agent)

    @_note_outcome.register
    def _(self, outcome: Answered) -> None:
        if self.progress.attempts.get(outcome.agent) != outcome.attempt:
            return
        answer, text = outcome.answer, outcome.answer.answer
        self._make(
            RunEvent.MESSAGE,
            outcome.agent,
            (),
            text,
            answer.elapsed,
            turn=outcome.attempt.delivery.id,
            session=answer.session,
            answered_by=answer.answered_by,
            exit_status=answer.exit_status,
            complete=answer.complete,
            cut=True if len(text) > TEXT_MOST else None,
            output_tokens=answer.usage.get("output_tokens"),
            passed=to_json(answer.passed) or None,
            ends=outcome.ends,
        )

    @_note_outcome.register
    def _(self, outcome: CameToNothing) -> None:
        attempt = outcome.attempt
        if attempt and self.progress.attempts.get(outcome.agent) != attempt:
            return
        turn = attempt.delivery.id if attempt else None
        self._make(RunEvent.FAILED, outcome.agent, (), outcome.message, reason=outcome.reason, turn=turn)
        rule = self.connector.on_error
        if attempt and (rule.action == "skip" or outcome.reason == GONE):
            self._make(RunEvent.SKIPPED, outcome.agent, (), outcome.message, turn=turn)
        elif attempt and rule.action == "retry" and attempt.tries < rule.retries:
            self._note_turn(self.progress.take_again(outcome.agent))
        else:
            told = f"{outcome.agent}: {outcome.message}"
            self._make(RunEvent.STOPPED, None, (), told, reason=outcome.reason)

    @_note_outcome.register
    def _(self, outcome: AgentReleased) -> None:
        self._threads.pop(outcome.agent, None)
        self.left += outcome.left
        self._make(RunEvent.RELEASED, outcome.agent, (), None, left=list(outcome.left) or None)

    @_note_outcome.register
    def _(self, outcome: AgentBroke) -> None:
        raise outcome.error

    # its end

    def _finish(self, last: Record) -> None:
        """End what was there for the run alone: of one that only stopped the sessions stay."""
        self._end_threads()
        if last.event is RunEvent.END and not self.connector.keep:
            # a session that was being started has no record yet
            starting = {machine for name in self._starting for machine in self._threads[name].agent.machines}
            machines = {None, *starting, *self.progress.machines}
            self.left += end_sessions(self.control, run_tag(self.progress.run), machines)[1]

    def _break_off(self, error: BaseException) -> None:
        self._end_threads()
        with suppress(TmuxctlError):
            # what cannot be written is not told either: it was the transcript that failed
            told = str(error) if isinstance(error, Exception) else ""
            self._make(RunEvent.STOPPED, None, (), told or "interrupted", reason="interrupted")
            self._write()

    def _end_threads(self) -> None:
        crew = getattr(self, "_crew", None)
        if crew is None:
            return
        crew.break_off()
        for thread in self._threads.values():
            thread.finish()
        deadline = time.monotonic() + TIMING.fleet.finish_seconds
        for thread in self._threads.values():
            thread.join(max(0.0, deadline - time.monotonic()))


def end_sessions(control: Control, tag: str, machines: Iterable[str | None]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """End the sessions with this tag on these machines (None: this one). Their addresses, and what their
    plugins left behind, in words; of a machine that is not reached, or not known here, that it was not."""
    ended: list[str] = []
    left: list[str] = []
    for machine in dict.fromkeys(machines):
        try:
            listed = control.call("ls", {"machine": machine} if machine else {}).sessions
            there = [one for one in listed if tag in one.tags]
            if there:
                killed = control.call("kill", {"session": [one.lasting_address for one in there]})
                ended += [one.address for one in there]
                left += [text for one in killed.killed for text in one.left]
        except (NotFound, Unreachable) as error:
            if machine or error.reason != "no_server":
                left.append(f"{machine or 'this machine'} is not reached: {error.message}")
    return tuple(ended), tuple(left)
