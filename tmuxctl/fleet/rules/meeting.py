"""A meeting: in each round all members speak, then the chair."""

from __future__ import annotations

from tmuxctl.fleet.connector import Meeting
from tmuxctl.fleet.rules.conversation import (
    AgentReply,
    Delivery,
    Message,
    TeamConversation,
    fill_in,
    join_messages,
    tell_agent,
)

DECIDE = "This was the last round: decide now."


class MeetingRules(TeamConversation):
    """Who speaks is given what was said since its last turn."""

    def __init__(self, topology: Meeting, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.topology = topology
        self.round = 1
        self.opening = ""
        self._said: list[tuple[str, str]] = []
        self._heard: dict[str, int] = {}
        """How much of what was said each has been given."""
        self._speakers: list[str] = list(topology.members)
        self._answers = 0
        self._chair_speaks = False

    def begin(self, text: str) -> None:
        self.opening = fill_in(self.topology.opening, text)

    def result(self) -> str:
        return self.last.get(self.topology.chair, "")

    def _next(self) -> Delivery | None:
        if self._chair_speaks:
            self._chair_speaks = False
            return self._give(self.topology.chair)
        if not self._speakers or (self.topology.speak == "in-order" and self.under_way):
            return None
        return self._give(self._speakers.pop(0))

    def _give(self, agent: str) -> Delivery:
        """A turn of this agent, with what was said since its last one. Those who speak at once hear what was said before."""
        parallel = self.topology.speak == "parallel" and agent != self.topology.chair
        upto = len(self._said) - (self._answers if parallel else 0)
        new = [one for one in self._said[self._heard.get(agent, 0) : upto] if one[0] != agent]
        parts = [] if agent in self._heard else [self.opening]
        parts += [join_messages(new)] if new else []
        if agent == self.topology.chair and self.round == self.topology.rounds:
            parts.append(tell_agent(DECIDE))
        self._heard[agent] = upto
        return self._deliver(agent, "\n\n".join(parts) or tell_agent("Nothing new was said."), [one for one, _ in new])

    def _answered(self, delivery: Delivery, reply: AgentReply) -> list[Message]:
        if reply.text.strip():
            self._said.append((delivery.agent, reply.text))
        if delivery.agent != self.topology.chair:
            return self._hear_member(reply)
        if reply.decides:
            self.end("decision")
        elif self.round == self.topology.rounds:
            undecided = self.topology.decision is not None
            self.end("rounds", ok=not undecided, message="the chair did not decide" if undecided else "")
        else:
            self.round += 1
            self._answers, self._speakers = 0, list(self.topology.members)
        return [Message(name, reply.text) for name in self.topology.members if not self.ending]

    def _hear_member(self, reply: AgentReply) -> list[Message]:
        # what was said in this round stands at the end
        self._answers += bool(reply.text.strip())
        if not self._speakers and not self.under_way:
            self._chair_speaks = True
        return [Message(self.topology.chair, reply.text)]
