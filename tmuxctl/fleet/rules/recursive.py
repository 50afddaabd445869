"""Tasks that give tasks: an agent has others started for parts of its work, and is given their results."""

from __future__ import annotations

from collections import deque

from tmuxctl.fleet.connector import RESERVED, Recursive
from tmuxctl.fleet.rules.conversation import AgentReply, Delivery, Message, TeamConversation, fill_in
from tmuxctl.fleet.rules.lines import Task, find_tasks
from tmuxctl.model import NAME
from tmuxctl.reading.text.headers import format_message, name_sender
from tmuxctl.value import NamedTuple

NAME_MOST = 40
"""Characters of a task's name: those of its session are made from it."""


class _Result(NamedTuple):
    """What a parent is told of a task: `result`, `refused` or `failed`, the task's name, and the text."""

    word: str
    name: str
    text: str


class _Child:
    """An agent that was started for a task. `results` has those of the tasks of its last answer, by their place in it."""

    def __init__(self, agent: str, depth: int, name: str = "", parent: _Child | None = None, place: int = 0) -> None:
        self.agent, self.depth, self.name, self.parent, self.place = agent, depth, name, parent, place
        self.results: dict[int, _Result] = {}
        self.tasks = 0


class RecursiveRules(TeamConversation):
    """The root and the children that work for it, each with an agent of its own."""

    def __init__(self, topology: Recursive, names: tuple[str, ...]) -> None:
        super().__init__([topology.root])
        self.topology = topology
        self._known = {*names, *RESERVED}
        self._root = _Child(topology.root, 0)
        self._children = {topology.root: self._root}
        self._waiting: deque[Delivery] = deque()
        self._made = 0

    def begin(self, text: str) -> None:
        self._waiting.append(self._deliver(self.topology.root, fill_in(self.topology.opening, text)))

    def result(self) -> str:
        return self.last.get(self.topology.root, "")

    def _next(self) -> Delivery | None:
        working = sum(name != self.topology.root for name in self.under_way)
        for delivery in self._waiting:
            if delivery.agent == self.topology.root or working < self.topology.parallel:
                self._waiting.remove(delivery)
                return delivery
        return None

    def _answered(self, delivery: Delivery, reply: AgentReply) -> list[Message]:
        child = self._children[delivery.agent]
        tasks = find_tasks(reply.text)
        if not tasks:
            return self._finish(child, _Result("result", child.name, reply.text))
        child.results, child.tasks = {}, len(tasks)
        messages = []
        for place, task in enumerate(tasks):
            if why := self._refuse(child, place, task, tasks):
                child.results[place] = _Result("refused", task.name[:NAME_MOST], why)
            else:
                messages.append(self._start(child, place, task))
        self._tell_if_whole(child)
        return messages

    def _skipped(self, delivery: Delivery, why: str) -> list[Message]:
        child = self._children[delivery.agent]
        return self._finish(child, _Result("failed", child.name, why))

    def _refuse(self, child: _Child, place: int, task: Task, tasks: list[Task]) -> str | None:
        """Why a task is not begun, in words; None if it is."""
        limits = self.topology
        if not NAME.fullmatch(task.name) or len(task.name) > NAME_MOST:
            return "a task's name has letters, digits, _ and -, and begins with a letter or digit"
        if any(task.name == other.name for other in tasks[:place]):
            return "another task of this answer has the name"
        if child.depth >= limits.depth:
            return f"tasks may not be given deeper than {limits.depth}"
        if place >= limits.width:
            return f"an answer may give {limits.width} tasks"
        if self._made >= limits.total:
            return f"all {limits.total} tasks of this run were given"
        return None

    def _start(self, parent: _Child, place: int, task: Task) -> Message:
        self._made += 1
        agent, number = task.name, self._made
        while agent in self._children or agent in self._known:
            agent, number = f"{task.name}-{number}", number + 1
        self.agents[agent] = self.topology.worker
        self._children[agent] = _Child(agent, parent.depth + 1, task.name, parent, place)
        self._waiting.append(self._deliver(agent, name_sender(parent.agent, task.text), (parent.agent,)))
        return Message(agent, task.text)

    def _finish(self, child: _Child, result: _Result) -> list[Message]:
        """A child has no more to do: its parent is told, once it has all results of its answer."""
        if child.parent is None:
            if result.word == "result":
                self.end("done")
            else:
                self.end("failed", ok=False, message=result.text)
            return []
        self.agents.pop(child.agent)
        self.released.append(child.agent)
        child.parent.results[child.place] = result
        self._tell_if_whole(child.parent)
        return [Message(child.parent.agent, result.text)]

    def _tell_if_whole(self, child: _Child) -> None:
        if len(child.results) == child.tasks:
            told = [child.results[place] for place in range(child.tasks)]
            text = "\n\n".join(format_message(one.name, one.text, one.word) for one in told)
            self._waiting.append(self._deliver(child.agent, text, [one.name for one in told]))
