"""What a connector file says, as values: agents, the machines they run on, the topology they talk in, and the limits of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from tmuxctl.machines import MachineEntry
from tmuxctl.model import NOTHING
from tmuxctl.value import Value

SCHEMA = "tmuxctl/connector@1"

INPUT, RUNNER, EVERYBODY, DETACHED = "input", "tmuxctl", "all", "runner"
"""Who gives a run its text, who answers for what is not delivered, all agents, and the session that carries a run out."""

RESERVED = (INPUT, RUNNER, EVERYBODY, DETACHED)
"""Names that no agent may have."""

TURNS, RUN_TIME = 20, 3600.0
"""The limits of a run that sets none: turns, and seconds."""


class Isolation(Value):
    """What the plugins do for an agent's session; `env` are variables, `timeout` is how long its program may live, as it is
    written, and `plugins` are others, as `new --with` takes them."""

    worktree: str | None = None
    sandbox: str | None = None
    scratchpad: str | None = None
    env: Mapping[str, str] = NOTHING
    timeout: str | None = None
    plugins: tuple[str, ...] = ()


class Agent(Value):
    """One program of a team. It is started by `command`, by the command of its `profile`, or as the first of `candidates` that
    can be. `machines` are where it may run, the first that is reached (None is this one, and so is an empty list); `role` is
    the text that it is given first; `decide` says which questions are answered and how, as `ask --decide` does;
    `turn_timeout` is in seconds."""

    name: str
    command: tuple[str, ...] = ()
    profile: str = "auto"
    candidates: tuple[str, ...] = ()
    route: str = "first"
    machines: tuple[str | None, ...] = ()
    cwd: str | None = None
    size: str | None = None
    role: str | None = None
    isolation: Isolation = Isolation()
    decide: Mapping[str, str] = NOTHING
    turn_timeout: float = 600.0


class OnFail(Value):
    """Where a pipeline goes on whose stage did not end with the expected status: at stage `goto` (from 0), `most` times at most
    (`max` in the file)."""

    goto: int
    most: int


class Stage(Value):
    """One step of a pipeline: its agent is given `prompt`, in which `{input}` and `{previous}` stand for the run's text and the
    answer before."""

    agent: str
    prompt: str
    expect_exit: int | None = None
    on_fail: OnFail | None = None


class FanOut(Value):
    """Stages that get the same input at the same time. `join`: how many of their answers go on, as one message; None for all."""

    stages: tuple[Stage, ...]
    join: int | None = None


class Pipeline(Value):
    """Each stage's answer is the input of the next."""

    stages: tuple[Stage | FanOut, ...]


class Dialogue(Value):
    """Two agents, strictly by turns."""

    between: tuple[str, str]
    first: str
    opening: str = "{input}"


class Meeting(Value):
    """Rounds in which all members speak, then the chair. `decision` is the pattern (as of `re`) that ends it."""

    chair: str
    members: tuple[str, ...]
    rounds: int = 3
    speak: Literal["in-order", "parallel"] = "in-order"
    opening: str = "{input}"
    decision: str | None = None


class Mesh(Value):
    """Any to any. `start` has the first texts, by agent; `links` whom each may reach, None for everybody."""

    start: Mapping[str, str]
    links: Mapping[str, tuple[str, ...]] | None = None


class Recursive(Value):
    """An agent that gives tasks to others, who are started for them. `depth` counts from 1, the children of the root; `width` is
    the most tasks of one answer, `total` of the run, `parallel` of those that are worked on at once."""

    root: str
    worker: str
    depth: int = 2
    width: int = 4
    total: int = 12
    parallel: int = 2
    opening: str = "{input}"


Topology: TypeAlias = Pipeline | Dialogue | Meeting | Mesh | Recursive


class Stop(Value):
    """The limits of a run: turns of all agents, seconds, the pattern of an answer that ends it, and what it means that an agent's
    program ends."""

    turns: int = TURNS
    seconds: float = RUN_TIME
    text: str | None = None
    agent_exit: Literal["fail", "restart", "ignore"] = "fail"


class OnError(Value):
    """What becomes of a run where a turn failed: it stops, goes on without that answer, or tries again so many times first."""

    action: Literal["stop", "skip", "retry"] = "stop"
    retries: int = 0


class Connector(Value):
    """One connector file. `path` is the file, `digest` the SHA-256 of its bytes and of the files that its input and profiles are
    read from, `output` where the transcript is to be. `raw` is the file's content as JSON has it."""

    name: str
    path: str
    digest: str
    agents: Mapping[str, Agent]
    topology: Topology
    input: str = ""
    machines: Mapping[str, MachineEntry] = NOTHING
    stop: Stop = Stop()
    on_error: OnError = OnError()
    output: str | None = None
    keep: bool = False
    raw: Mapping[str, Any] = NOTHING
