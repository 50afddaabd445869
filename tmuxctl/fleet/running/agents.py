"""An agent of a run at work: its session, and the turns that it is given, one at a time, in a thread of its own."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from tmuxctl.control import Control
from tmuxctl.control.waiting.searching import Search
from tmuxctl.errors import Conflict, DecisionNeeded, Exited, Failed, NotFound, TmuxctlError, Unreachable
from tmuxctl.fleet.connector import Agent, Connector, Meeting
from tmuxctl.fleet.rules.conversation import TEXT_MOST
from tmuxctl.fleet.running.progress import DECISION, STOP_TEXT, AgentSession, Progress, TurnAttempt
from tmuxctl.model import Asking, Session, State
from tmuxctl.operations import Cancellation, Cancelled
from tmuxctl.results import Answer, Event
from tmuxctl.terminal.tmux.screen import strip_escapes
from tmuxctl.timing import TIMING
from tmuxctl.value import NamedTuple, changed

TAG = "team"
"""Every session of a run has this tag, that of its team, and that of its run."""

NAME_MOST = 63

STARTS_MOST = 3
"""How often a program that ends before it is given a turn is started for it."""

GONE = "gone"
"""Why a turn came to nothing whose agent takes no part any more."""

LOST = ("lost", "no_server")
"""Why a session is not reached whose tmux server died."""

PERSON = ("human", "leased", "draft")
"""Why a text is not typed that may be typed in a moment."""


class AgentStarted(NamedTuple):
    """A session was started."""

    agent: str
    session: AgentSession
    profile: str | None


class RoleTaken(NamedTuple):
    """The agent was given its role."""

    agent: str
    answer: Answer


class Answered(NamedTuple):
    """A turn ended; `ends` says which pattern its answer matches that ends the run."""

    agent: str
    attempt: TurnAttempt
    answer: Answer
    ends: str | None


class AgentWaits(NamedTuple):
    """The agent waits for a person: who is to answer this question, or is typing."""

    agent: str
    question: Asking | None


class AgentContinues(NamedTuple):
    """The agent waits no longer."""

    agent: str


class CameToNothing(NamedTuple):
    """A turn has no answer, or a session could not be started (no attempt)."""

    agent: str
    attempt: TurnAttempt | None
    reason: str
    message: str


class AgentReleased(NamedTuple):
    """The session of an agent that nobody needs was ended; what its plugins left is told."""

    agent: str
    left: tuple[str, ...]


class AgentBroke(NamedTuple):
    """A bug, which ends the run."""

    agent: str
    error: BaseException


Outcome: TypeAlias = (
    AgentStarted | RoleTaken | Answered | AgentWaits | AgentContinues | CameToNothing | AgentReleased | AgentBroke
)


class Crew:
    """What the agents of a run share: the operations, the file, the run's id, and where outcomes go."""

    def __init__(self, control: Control, progress: Progress, post: Callable[[Outcome], None]) -> None:
        self.control, self.connector, self.post = control, progress.connector, post
        self.run, self.id_of = progress.run, progress.id_of
        connector = self.connector
        topology = connector.topology
        meeting = topology if isinstance(topology, Meeting) else None
        self._chair = meeting and meeting.chair
        patterns = {DECISION: meeting and meeting.decision, STOP_TEXT: connector.stop.text}
        self._ends = {word: Search(pattern, flags=0) for word, pattern in patterns.items() if pattern}
        self._lock = threading.Lock()
        self._under_way: set[Cancellation] = set()
        self._over = False

    @contextmanager
    def cancellable(self) -> Iterator[Cancellation]:
        """What breaks off a call of this moment, which `break_off` sets; Cancelled once it did."""
        # one for each call: what is to be woken is remembered as long as it is there
        cancellation = Cancellation()
        with self._lock:
            if self._over:
                raise Cancelled
            self._under_way.add(cancellation)
        try:
            yield cancellation
        finally:
            with self._lock:
                self._under_way.discard(cancellation)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """An operation, which the end of the run breaks off."""
        with self.cancellable() as cancellation:
            return self.control.call(name, arguments, cancelled=cancellation)

    def find_end(self, agent: str, answer: str) -> str | None:
        """The first pattern that this answer ends the run by. Timeout `pattern_timeout` if it takes seconds to know."""
        for word, search in self._ends.items():
            if (word != DECISION or agent == self._chair) and search.find(answer[:TEXT_MOST]):
                return word
        return None

    def break_off(self) -> None:
        """End every call under way, and let none begin."""
        with self._lock:
            self._over = True
            under_way = list(self._under_way)
        for one in under_way:
            one.set()


class AgentThread(threading.Thread):
    """One agent. `session` is where its program runs, None if it is not started yet; `branch` is that of its worktree."""

    def __init__(
        self, crew: Crew, name: str, agent: Agent, session: AgentSession | None, *, has_role: bool, branch: str | None
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.crew, self.agent, self.session, self.branch = crew, agent, session, branch
        self._agent_name = name
        self._has_role = has_role or agent.role is None
        self._is_gone = False
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    # what a run calls

    def begin(self) -> None:
        """Start the session, unless it is there."""
        self._jobs.put(self._ensure_session)

    def give(self, attempt: TurnAttempt) -> None:
        """Have a turn."""
        self._jobs.put(lambda: self._have_turn(attempt))

    def release(self) -> None:
        """End the session, and the thread."""
        self._jobs.put(self._end_session)
        self._jobs.put(None)

    def finish(self) -> None:
        """End the thread once it has nothing to do."""
        self._jobs.put(None)

    def run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Cancelled:
                return
            except BaseException as error:
                self.crew.post(AgentBroke(self._agent_name, error))
                return

    # its session

    def _ensure_session(self) -> None:
        if self.session is None:
            try:
                self._start()
            except Cancelled:
                raise
            except TmuxctlError as error:
                self._fail(None, error)

    def _start(self) -> None:
        """Start the program on the first machine that is reached."""
        for last, machine in _ends(self.agent.machines or (None,)):
            try:
                made = self._new(machine)
                break
            except Unreachable:
                if last:
                    raise
        self.session = AgentSession(made.address, made.id, machine)
        self.crew.post(AgentStarted(self._agent_name, self.session, made.profile))

    def _new(self, machine: str | None) -> Session:
        name = session_name(self.crew.connector.name, self._agent_name)
        address = name if machine is None else f"{machine}/{name}"
        tag = run_tag(self.crew.run)
        wanted = {
            "name": address,
            **self._what_to_start(machine),
            "tag": [TAG, team_tag(self.crew.connector.name), tag],
        }
        try:
            made: Session = self.crew.call("new", wanted)
            return made
        except Conflict as error:
            if error.reason != "exists":
                raise
        there: Session = self.crew.call("show", {"session": address})
        if tag not in there.tags:
            raise Conflict(
                f"a session {address} is there already",
                reason="exists",
                hint=f"end it: tmuxctl kill {address}; or give the team another name",
            )
        if there.state in (State.EXITED, State.LOST):
            return self.crew.call("new", {**wanted, "if_exists": "replace"})  # type: ignore[no-any-return]
        # an earlier process of this run started it, and ended before it could say so
        return there

    def _what_to_start(self, machine: str | None) -> dict[str, Any]:
        agent, isolation = self.agent, self.agent.isolation
        given = {
            "command": list(agent.command),
            "profile": agent.profile,
            "candidates": list(agent.candidates) or None,
            "route": agent.route,
            "cwd": starting_folder(self.crew.connector, agent, machine),
            "size": agent.size,
            "env": dict(isolation.env),
            "worktree": self.branch,
            "sandbox": isolation.sandbox,
            "scratchpad": isolation.scratchpad,
            "lifetime": isolation.timeout,
            "with_": list(isolation.plugins),
        }
        return {key: value for key, value in given.items() if value not in (None, [], {})}

    def _end_session(self) -> None:
        left: tuple[str, ...] = ()
        if self.session is not None and not self.crew.connector.keep:
            with suppress(NotFound, Unreachable):
                ended = self.crew.call("kill", {"session": [self.session.address]})
                left = tuple(text for one in ended.killed for text in one.left)
        self.crew.post(AgentReleased(self._agent_name, left))

    # a turn

    def _have_turn(self, attempt: TurnAttempt) -> None:
        try:
            answer = self._ask_somewhere(attempt)
            self._refuse_unanswered(answer)
            ends = self.crew.find_end(self._agent_name, answer.answer)
        except Cancelled:
            raise
        except TmuxctlError as error:
            self._fail(attempt, error)
            return
        if answer.state is State.EXITED:
            self._forget_session()
        self.crew.post(Answered(self._agent_name, attempt, answer, ends))

    def _refuse_unanswered(self, answer: Answer) -> None:
        """Raise Failed for a turn that came to nothing."""
        if answer.timed_out:
            raise Failed(f"no answer within {self.agent.turn_timeout:g} s", reason="timeout")
        if answer.state is State.EXITED and self._exit_rule == "fail":
            raise Failed(f"the program ended in its turn{_status(answer)}", reason="exited")
        if answer.error and not answer.answer.strip():
            raise Failed(answer.error, reason="failed")

    @property
    def _exit_rule(self) -> str:
        return self.crew.connector.stop.agent_exit

    def _forget_session(self) -> None:
        """The program has ended: it is started anew for the next turn, or has none any more."""
        self.session, self._has_role = None, self.agent.role is None
        self._is_gone = self._exit_rule == "ignore"

    def _ask_somewhere(self, attempt: TurnAttempt) -> Answer:
        """The answer to a turn; where the program has ended or its machine is not reached any more, of the one that takes its
        place."""
        starts = 0
        while not self._is_gone:
            if self.session is None:
                self._start()
                starts += 1
            try:
                self._give_role()
                return self._ask(attempt.delivery.text, attempt.id)
            except (Exited, NotFound):
                if self._exit_rule == "fail" or starts >= STARTS_MOST:
                    raise
                self._forget_session()
            except Unreachable as error:
                self._move(error)
        raise Failed(f"the program of {self._agent_name} has ended", reason=GONE)

    def _move(self, error: Unreachable) -> None:
        """Have the program started on the next machine, without the one that is not reached any more."""
        lost = error.reason in LOST and self._exit_rule != "fail"
        others = [one for one in self.agent.machines if self.session and one != self.session.machine]
        if error.reason == "outcome_unknown" or not (others or lost):
            raise error
        if others:
            self.agent = changed(self.agent, machines=tuple(others))
        self._forget_session()

    def _give_role(self) -> None:
        if not self._has_role and self.agent.role is not None and self.session is not None:
            # a session that takes the place of another is given it anew
            answer = self._ask(self.agent.role, self.crew.id_of("role", self._agent_name, self.session.id))
            self._has_role = True
            self.crew.post(RoleTaken(self._agent_name, answer))

    def _ask(self, text: str, id: str) -> Answer:
        """Give the text once, and wait for the answer, as long as a person has to decide something or types."""
        assert self.session is not None
        arguments = {
            "session": self.session.address,
            "text": text,
            "id": id,
            "timeout": self.agent.turn_timeout,
            "decide": [f"{question}={option}" for question, option in self.agent.decide.items()],
            "queue": True,
        }
        paused = False
        while True:
            try:
                answer: Answer = self.crew.call("ask", arguments)
            except DecisionNeeded:
                self._wait_for_decision()
            except Conflict as error:
                if error.reason not in PERSON:
                    raise
                if not paused:
                    paused = True
                    self.crew.post(AgentWaits(self._agent_name, None))
                with self.crew.cancellable() as cancellation:
                    cancellation.wait(TIMING.fleet.person_seconds)
            else:
                if answer.state is not State.ASKING:
                    # one that stands in the program's own transcript is not drawn, and may hold anything
                    return changed(answer, answer=strip_escapes(answer.answer))
                self._wait_for_decision()

    def _wait_for_decision(self) -> None:
        """Wait until the program asks no more."""
        assert self.session is not None
        told = ""
        watched = {"session": [self.session.address]}
        with self.crew.cancellable() as cancellation:
            events: Iterator[Event] = self.crew.control.call("watch", watched, cancelled=cancellation)
            for event in events:
                if event.state is not State.ASKING:
                    break
                if event.asking is not None and event.asking.id != told:
                    told = event.asking.id
                    self.crew.post(AgentWaits(self._agent_name, event.asking))
        self.crew.post(AgentContinues(self._agent_name))

    def _fail(self, attempt: TurnAttempt | None, error: TmuxctlError) -> None:
        self.crew.post(CameToNothing(self._agent_name, attempt, error.reason, strip_escapes(error.message)))


def session_name(team: str, agent: str) -> str:
    """What the session of an agent is called: both names, made short if need be."""
    name = f"{team}-{agent}"
    if len(name) <= NAME_MOST:
        return name
    from zlib import crc32

    return f"{name[: NAME_MOST - 9]}-{crc32(name.encode()):08x}"


def starting_folder(connector: Connector, agent: Agent, machine: str | None) -> str | None:
    """The folder in which an agent's program starts: on this machine that of the connector file, from which another one may be
    named; on another one what it says, or the home there (None)."""
    if machine is not None:
        return agent.cwd
    here = os.path.dirname(os.path.abspath(connector.path))
    return os.path.normpath(os.path.join(here, os.path.expanduser(agent.cwd or "")))


def team_tag(team: str) -> str:
    """The tag of the sessions of a team."""
    return session_name(TAG, team)


def run_tag(run: str) -> str:
    """The tag of the sessions of a run."""
    return f"run-{run}"


def _ends(places: tuple[str | None, ...]) -> Iterator[tuple[bool, str | None]]:
    """Each, and whether it is the last."""
    return ((number == len(places), place) for number, place in enumerate(places, 1))


def _status(answer: Answer) -> str:
    if answer.signal:
        return f", by signal {answer.signal}"
    return "" if answer.exit_status is None else f", with status {answer.exit_status}"
