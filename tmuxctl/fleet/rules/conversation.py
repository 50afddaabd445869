"""What all topologies share: turns that are to be had, those under way, and how a conversation ends.

The rules know no program and no clock. A run asks them for the next turn (`take`), and tells them what came of it (`answer`,
`skip`). The same calls in the same order lead to the same state: so a run that was broken off is brought back from what was
written down of it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from tmuxctl.fleet.connector import RUNNER
from tmuxctl.reading.text.headers import format_message
from tmuxctl.value import NamedTuple, Value

PLACE = re.compile(r"\{(input|previous)\}")

TEXT_MOST = 1 << 20
"""Characters of a text that are kept and handed over; what is longer is cut there."""


class Delivery(NamedTuple):
    """One turn that is to be had: its name in the run, the agent, the text as it is typed, and from whom that is."""

    id: str
    agent: str
    text: str
    senders: tuple[str, ...] = ()


class AgentReply(NamedTuple):
    """What came of a turn: the answer, the exit status where the agent is a shell that told one, and whether the answer
    matches the pattern of the topology's `decision`."""

    text: str
    exit_status: int | None = None
    decides: bool = False


class Message(NamedTuple):
    """What an answer is to the others: to whom it goes, and its text, which may be a part of the answer."""

    to: str
    text: str


class ConversationEnd(Value):
    """How a conversation ended: `reason` in one word; `ok` is False where it did not come to the end that its rules give it;
    `result` is what it came to, by agent where each has one."""

    reason: str
    ok: bool
    result: str | Mapping[str, str]
    message: str = ""


class TeamConversation(ABC):
    """The rules of one topology, at work. `agents` are those that take part now, each with the agent of the file whose program it
    runs."""

    def __init__(self, names: Sequence[str]) -> None:
        self.agents: dict[str, str] = {name: name for name in names}
        self.under_way: dict[str, Delivery] = {}
        """The turn that each agent has now."""
        self.ending: ConversationEnd | None = None
        self.last: dict[str, str] = {}
        """Each agent's last answer, the newest at the end."""
        self.released: list[str] = []
        """Agents that nobody needs any more, since this was last emptied."""
        self._taken: dict[str, int] = {}

    # what a run calls

    def take(self) -> Delivery | None:
        """The next turn that may begin now; None if there is none, or the conversation has ended."""
        delivery = None if self.ending else self._next()
        if delivery is not None:
            self.under_way[delivery.agent] = delivery
        return delivery

    def answer(self, agent: str, reply: AgentReply) -> list[Message]:
        """Take the answer of the turn that this agent has, and say what of it goes to whom."""
        delivery = self.under_way.pop(agent)
        self.last.pop(agent, None)
        self.last[agent] = reply.text
        messages = self._answered(delivery, reply)
        self._end_if_quiet()
        return messages

    def skip(self, agent: str, why: str) -> list[Message]:
        """Go on without the answer of the turn that this agent has, which came to nothing."""
        delivery = self.under_way.pop(agent)
        messages = self._skipped(delivery, why)
        self._end_if_quiet()
        return messages

    def end(self, reason: str, *, ok: bool = True, message: str = "") -> None:
        """The conversation is over."""
        if self.ending is None:
            self.ending = ConversationEnd(reason, ok, self.result(), message)

    def result(self) -> str | Mapping[str, str]:
        """What it has come to so far."""
        return next(reversed(self.last.values()), "")

    # what a topology says

    @abstractmethod
    def begin(self, text: str) -> None:
        """The conversation begins with this text."""

    @abstractmethod
    def _next(self) -> Delivery | None:
        """The next turn that may begin now, of an agent that has none under way."""

    @abstractmethod
    def _answered(self, delivery: Delivery, reply: AgentReply) -> list[Message]:
        """Carry on with an answer."""

    def _skipped(self, delivery: Delivery, why: str) -> list[Message]:
        """Carry on without one: as if nothing had been said."""
        return self._answered(delivery, AgentReply(""))

    def _is_quiet(self) -> bool:
        """Whether nothing is left to say once no turn is under way."""
        return False

    def _end_if_quiet(self) -> None:
        if self.ending is None and not self.under_way and self._is_quiet():
            self.end("quiet")

    def _deliver(self, agent: str, text: str, senders: Sequence[str] = ()) -> Delivery:
        """A turn of this agent, by its number."""
        self._taken[agent] = number = self._taken.get(agent, 0) + 1
        return Delivery(f"{agent}.{number}", agent, text[:TEXT_MOST], tuple(dict.fromkeys(senders)))


def fill_in(pattern: str, text: str, previous: str = "") -> str:
    """A prompt with what stands for its `{input}` and `{previous}`, up to `TEXT_MOST`; in these nothing is replaced again."""
    values, filled = {"input": text, "previous": previous}, ""
    for number, part in enumerate(PLACE.split(pattern)):
        # every other part is the name of a place
        filled += (values[part] if number % 2 else part)[: TEXT_MOST - len(filled)]
    return filled


def join_messages(messages: Sequence[tuple[str, str]]) -> str:
    """Several messages as one text: each sender and what it said."""
    return "\n\n".join(format_message(sender, text) for sender, text in messages)


def tell_agent(text: str) -> str:
    """A message of tmuxctl's own."""
    return format_message(RUNNER, text)
