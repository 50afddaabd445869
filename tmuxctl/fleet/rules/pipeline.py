"""A pipeline: the answer of each stage is what the next one is given."""

from __future__ import annotations

from collections import deque

from tmuxctl.fleet.connector import FanOut, Pipeline, Stage
from tmuxctl.fleet.rules.conversation import AgentReply, Delivery, Message, TeamConversation, fill_in, join_messages
from tmuxctl.reading.text.headers import name_sender
from tmuxctl.value import NamedTuple


class _Branch(NamedTuple):
    """A turn that is to be had for a stage; `place` is the stage's number, `entry` how often stages were begun before."""

    place: int
    entry: int
    stage: Stage


class PipelineRules(TeamConversation):
    """Its stages, one after the other; those of a fan-out at the same time."""

    def __init__(self, topology: Pipeline, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.stages = topology.stages
        self.text = self.previous = self.sender = ""
        self.place = self.entry = 0
        self._waiting: deque[_Branch] = deque()
        self._turns: dict[str, _Branch] = {}
        self._collected: dict[str, str] = {}
        self._absent = 0
        self._returns: dict[int, int] = {}
        """How often each stage has sent the work back."""

    def begin(self, text: str) -> None:
        self.text = self.previous = text
        self._enter(0)

    def result(self) -> str:
        return self.previous

    def _enter(self, place: int) -> None:
        if place == len(self.stages):
            self.end("done")
            return
        self.place, self.entry = place, self.entry + 1
        self._collected, self._absent = {}, 0
        # those that were not needed any more and have not begun never will
        self._waiting = deque(_Branch(place, self.entry, one) for one in branches(self.stages[place]))

    def _next(self) -> Delivery | None:
        for branch in self._waiting:
            if branch.stage.agent not in self.under_way:
                self._waiting.remove(branch)
                delivery = self._deliver(branch.stage.agent, self._fill_in(branch.stage.prompt))
                self._turns[delivery.id] = branch
                return delivery
        return None

    def _fill_in(self, prompt: str) -> str:
        """The text of a stage; where it begins with what an agent said, that is told if it could be taken for a command."""
        text = fill_in(prompt, self.text, self.previous)
        before, found, _ = prompt.partition("{previous}")
        begins = bool(found and self.sender) and not fill_in(before, self.text).strip()
        return name_sender(self.sender, text) if begins else text

    def _answered(self, delivery: Delivery, reply: AgentReply) -> list[Message]:
        branch = self._turns.pop(delivery.id)
        if branch.entry != self.entry:
            # a fan-out went on without it
            return []
        stage = branch.stage
        if stage.expect_exit is not None and reply.exit_status != stage.expect_exit:
            return self._fail(branch, reply)
        self._collected[stage.agent] = reply.text
        return self._join(branch)

    def _skipped(self, delivery: Delivery, why: str) -> list[Message]:
        """A stage that says nothing passes on what it was given; of a fan-out the others' answers are enough."""
        branch = self._turns.pop(delivery.id)
        if branch.entry != self.entry:
            return []
        self._absent += 1
        return self._join(branch)

    def _fail(self, branch: _Branch, reply: AgentReply) -> list[Message]:
        """The status was another one: the work goes back, or the pipeline ends. Who tells no status will tell none again."""
        stage, status = branch.stage, reply.exit_status
        told = "none, which shells tell that read their own start-up files" if status is None else str(status)
        back = stage.on_fail
        if back and status is not None and self._returns.get(branch.place, 0) < back.most:
            self._returns[branch.place] = self._returns.get(branch.place, 0) + 1
            self.previous, self.sender = reply.text, stage.agent
            self._enter(back.goto)
            return self._passed_on()
        self.previous = reply.text
        self.end(
            "failed",
            ok=False,
            message=f"stage {branch.place} ({stage.agent}): not exit status {stage.expect_exit}, but {told}",
        )
        return []

    def _join(self, branch: _Branch) -> list[Message]:
        stage = self.stages[branch.place]
        if isinstance(stage, Stage):
            if stage.agent in self._collected:
                self.previous, self.sender = self._collected[stage.agent], stage.agent
        else:
            left = len(stage.stages) - self._absent
            if len(self._collected) < min(left, stage.join or left):
                return []
            # all answers stand in the order of the stages, some in that in which they came
            order = [one.agent for one in stage.stages] if stage.join is None else list(self._collected)
            told = [(name, self._collected[name]) for name in order if name in self._collected]
            self.previous = join_messages(told) if told else self.previous
        self._enter(branch.place + 1)
        return self._passed_on()

    def _passed_on(self) -> list[Message]:
        """What goes on now, and to whom."""
        if self.ending:
            return []
        return [Message(one.agent, self.previous) for one in branches(self.stages[self.place])]


def branches(stage: Stage | FanOut) -> tuple[Stage, ...]:
    """The stages that stand at one place of a pipeline."""
    return (stage,) if isinstance(stage, Stage) else stage.stages
