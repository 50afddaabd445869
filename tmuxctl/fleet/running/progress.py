"""How far a run has come: what follows from its records, whether they were made just now or read from its transcript."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from tmuxctl.fleet.connector import Connector
from tmuxctl.fleet.rules.conversation import AgentReply, Delivery, Message, TeamConversation
from tmuxctl.fleet.rules.topologies import make_conversation
from tmuxctl.fleet.running.transcript import Record, damaged_error, parse_time
from tmuxctl.value import NamedTuple, Value
from tmuxctl.vocabulary import RunEvent

DECISION, STOP_TEXT = "decision", "text"
"""Which pattern an answer matches that ends a run."""


class AgentSession(Value):
    """The session in which an agent's program runs: what every command calls it, its id, and on which of the agent's machines."""

    address: str
    id: str
    machine: str | None = None


class TurnAttempt(NamedTuple):
    """A turn under way: the delivery, how often it was tried before, and the id by which its text is typed at most once."""

    delivery: Delivery
    tries: int
    id: str


class Progress:
    """The state of a run. `note` takes each record once, in order; it changes nothing else."""

    def __init__(self, connector: Connector) -> None:
        self.connector = connector
        self.conversation: TeamConversation = make_conversation(connector)
        self.run = ""
        self.turns = 0
        self.sessions: dict[str, AgentSession] = {}
        self.machines: set[str | None] = set()
        """Where sessions of this run were started."""
        self.roles: set[str] = set()
        self.attempts: dict[str, TurnAttempt] = {}
        self.waiting: dict[str, Record] = {}
        """Agents that wait for a person, and what they asked or who types."""
        self.active_seconds = 0.0
        """How long processes have been at work on it, as far as its records tell."""
        self.ended: Record | None = None
        self.stopped: Record | None = None
        self._last_time = 0.0

    def note_all(self, records: Iterable[Record], where: str) -> None:
        """Take the records of a transcript; Failed `bad_transcript` where they are not those of this connector file."""
        try:
            for record in records:
                self.note(record)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise damaged_error(where) from None

    def note(self, record: Record) -> list[Message]:
        """Take one record; what of it goes to whom."""
        at = parse_time(record.at)
        if record.event not in (RunEvent.BEGIN, RunEvent.RESUMED):
            self.active_seconds += max(0.0, at - self._last_time)
        self._last_time = at
        match record.event:
            case RunEvent.BEGIN:
                self.run = str(record.about["run"])
                self.conversation.begin(record.text or "")
            case RunEvent.RESUMED:
                self.waiting.clear()
                self.stopped = None
            case RunEvent.STOPPED:
                self.stopped = record
            case RunEvent.TURN:
                self._repeat_turn(record)
            case RunEvent.END:
                self.ended = record
            case _ if record.sender is not None:
                return self._note_agent(record.sender, record)
        return []

    def _note_agent(self, agent: str, record: Record) -> list[Message]:
        """Take a record of one agent."""
        about = record.about
        if record.event in (RunEvent.ASKING, RunEvent.PAUSED):
            self.waiting[agent] = record
        elif record.event is not RunEvent.FAILED:
            self.waiting.pop(agent, None)
        match record.event:
            case RunEvent.SESSION:
                self.sessions[agent] = AgentSession(about["session"], about["id"], about.get("machine"))
                self.machines.add(about.get("machine"))
            case RunEvent.ROLE:
                self.roles.add(agent)
            case RunEvent.MESSAGE:
                del self.attempts[agent]
                ends = about.get("ends")
                reply = AgentReply(record.text or "", about.get("exit_status"), decides=ends == DECISION)
                messages = self.conversation.answer(agent, reply)
                if ends == STOP_TEXT:
                    self.conversation.end(STOP_TEXT)
                return messages
            case RunEvent.SKIPPED:
                del self.attempts[agent]
                return self.conversation.skip(agent, record.text or "")
            case RunEvent.RELEASED:
                self.sessions.pop(agent, None)
        return []

    def take(self) -> TurnAttempt | None:
        """The next turn that may begin now, which is under way from now on."""
        delivery = self.conversation.take()
        if delivery is None:
            return None
        self.turns += 1
        self.attempts[delivery.agent] = attempt = self._attempt(delivery, 0)
        return attempt

    def take_again(self, agent: str) -> TurnAttempt:
        """The turn of this agent once more, which came to nothing."""
        before = self.attempts[agent]
        self.attempts[agent] = attempt = self._attempt(before.delivery, before.tries + 1)
        return attempt

    def active_until(self, now: float) -> float:
        """Seconds of work until `now`, since 1970, of a run that is under way."""
        return self.active_seconds + max(0.0, now - self._last_time)

    def _attempt(self, delivery: Delivery, tries: int) -> TurnAttempt:
        return TurnAttempt(delivery, tries, self.id_of(delivery.id, str(tries)))

    def id_of(self, *parts: str) -> str:
        """An id of this run alone, the same in each process that carries it on."""
        return sha256("\0".join([self.run, *parts]).encode()).hexdigest()[:24]

    def _repeat_turn(self, record: Record) -> None:
        """A turn begins, as the rules have it, or is tried again."""
        (agent,) = record.to
        attempt = self.take_again(agent) if record.about.get("tries") else self.take()
        found = attempt and (attempt.delivery.id, attempt.delivery.agent, attempt.delivery.text)
        if found != (record.about["turn"], agent, record.text):
            raise ValueError("another turn comes now")
