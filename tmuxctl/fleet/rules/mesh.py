"""A mesh: any agent may tell any other something, by lines that name it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from tmuxctl.fleet.connector import EVERYBODY, RUNNER, Mesh
from tmuxctl.fleet.rules.conversation import TEXT_MOST, AgentReply, Delivery, Message, TeamConversation, fill_in
from tmuxctl.fleet.rules.lines import find_addressed
from tmuxctl.reading.text.headers import format_message

ANY = "*"

MESSAGES_MOST = 1000
"""Texts of one answer that are handed over: `@all:` on each of its lines would be millions."""


class MeshRules(TeamConversation):
    """Each agent has a queue; it is handed over whole, as one turn, when its owner has none."""

    def __init__(self, topology: Mesh, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.topology = topology
        self._queues: dict[str, deque[tuple[str, str]]] = {name: deque() for name in names}
        self._order: dict[str, None] = {}
        """The agents whose queue is not empty: the one that waits longest comes first."""

    def begin(self, text: str) -> None:
        for name, pattern in self.topology.start.items():
            self._put(name, "", fill_in(pattern, text))

    def result(self) -> Mapping[str, str]:
        # all of them together are one text
        share = TEXT_MOST // max(1, len(self.last)) if sum(map(len, self.last.values())) > TEXT_MOST else TEXT_MOST
        return {name: text[:share] for name, text in self.last.items()}

    def _put(self, name: str, sender: str, text: str) -> None:
        self._queues[name].append((sender, text))
        self._order.setdefault(name)

    def _next(self) -> Delivery | None:
        name = next((name for name in self._order if name not in self.under_way), None)
        if name is None:
            return None
        del self._order[name]
        messages = list(self._queues[name])
        self._queues[name].clear()
        text = "\n\n".join(format_message(sender, text) if sender else text for sender, text in messages)
        return self._deliver(name, text, [sender for sender, _ in messages if sender])

    def _answered(self, delivery: Delivery, reply: AgentReply) -> list[Message]:
        sender = delivery.agent
        messages = []
        addressed = find_addressed(reply.text, {*self.agents, EVERYBODY})
        if len(addressed) > MESSAGES_MOST:
            self._put(
                sender, RUNNER, f"{len(addressed)} texts in an answer: the first {MESSAGES_MOST} were handed over"
            )
        for name, text in addressed[:MESSAGES_MOST]:
            for receiver in self.agents if name == EVERYBODY else (name,):
                if self._reaches(sender, receiver):
                    self._put(receiver, sender, text)
                    messages.append(Message(receiver, text))
                elif name != EVERYBODY:
                    self._put(sender, RUNNER, f"cannot reach {name}")
                    messages.append(Message(sender, f"cannot reach {name}"))
        return messages

    def _reaches(self, sender: str, receiver: str) -> bool:
        """Whether one may tell another something. Who has no entry in `links`, where there are some, reaches nobody."""
        if receiver == sender:
            return False
        links = self.topology.links
        allowed = (ANY,) if links is None else links.get(sender, ())
        return ANY in allowed or receiver in allowed

    def _is_quiet(self) -> bool:
        return not self._order
