"""A dialogue: two agents, strictly by turns."""

from __future__ import annotations

from tmuxctl.fleet.connector import Dialogue
from tmuxctl.fleet.rules.conversation import AgentReply, Delivery, Message, TeamConversation, fill_in
from tmuxctl.reading.text.headers import format_message

PASS = "PASS"
"""What an agent answers that has nothing to say: twice in a row the dialogue is over."""


class DialogueRules(TeamConversation):
    """What one says is what the other is given."""

    def __init__(self, topology: Dialogue, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.topology = topology
        self._waiting: Delivery | None = None
        self._passed = False

    def begin(self, text: str) -> None:
        self._waiting = self._deliver(self.topology.first, fill_in(self.topology.opening, text))

    def _next(self) -> Delivery | None:
        delivery, self._waiting = self._waiting, None
        return delivery

    def _answered(self, delivery: Delivery, reply: AgentReply) -> list[Message]:
        passes = reply.text.strip() in ("", PASS)
        if passes and self._passed:
            self.end("pass")
            return []
        self._passed = passes
        one, two = self.topology.between
        other = two if delivery.agent == one else one
        text = reply.text.strip() or PASS
        self._waiting = self._deliver(other, format_message(delivery.agent, text), (delivery.agent,))
        return [Message(other, text)]
