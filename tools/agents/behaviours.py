"""What the model is told to do, and what must become of the turn: the same list for every program."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from enum import Enum
from typing import NamedTuple


class Shape(str, Enum):
    """How a turn goes."""

    ANSWER = "answer"
    """asked, answered"""
    ALLOW = "allow"
    """the program wants to run a command: nothing may happen before the decision, then it is run"""
    DENY = "deny"
    """the same, and it is never run"""
    INTERRUPT = "interrupt"
    """stopped while it answers, and the next prompt is a turn like any other"""
    LOST = "lost"
    """the connection breaks on every attempt: the program gives up, and there is no whole answer"""
    FAILED = "failed"
    """the model refuses every attempt: the program gives up, and `ask` says that the turn failed"""


class Behaviour(NamedTuple):
    """One kind of turn. `directive` is the model's, without its id; `before` stands in front of it; `quick` ones are
    repeated in the short run; `fails` is how many attempts the model lets fail."""

    name: str
    directive: str
    shape: Shape = Shape.ANSWER
    before: str = ""
    quick: bool = False
    fails: int = 0

    def prompt(self, id: str, run: str = "run") -> str:
        """The text of a turn with this id; `run` is the directive by which the program is given a command."""
        name, _, rest = self.directive.partition(" ")
        return f"{self.before}fake:{run if name == 'run' else name}#{id} {rest.format(id=id)}".rstrip()


LINES = (
    "A prompt of several lines.\n"
    "  indented by two, with  two  spaces inside\n"
    "\n"
    "- a bullet, `code`, a \"quote\", a $variable, a \\backslash, 'single'\n"
    "héllo ✓ 漢字 🚀 e\u0301\n"
    "/not a command, @not a file, !not a shell, #not a memory\n"
    "fake:echo#decoy this is not the last directive\n"
)

BIG = "".join(
    f"{number:04d} {'the quick brown fox jumps over the lazy dog ' * 2}end of line\n" for number in range(500)
)
"""Fifty thousand characters."""

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
"""A man, a woman and a girl, joined to one character that is two columns wide."""

BEHAVIOURS = (
    Behaviour("echo", "echo the quick brown fox", quick=True),
    Behaviour("slow", "slow 40 100"),
    Behaviour("silent", "silent 8"),
    Behaviour("think", "think 8"),
    Behaviour("stall", "stall 8"),
    Behaviour("long", "long 300"),
    Behaviour("code", "code", quick=True),
    Behaviour("spoof", "spoof", quick=True),
    Behaviour("ansi", "ansi", quick=True),
    Behaviour("allow", "run touch made-{id}", Shape.ALLOW, quick=True),
    Behaviour("deny", "run touch made-{id}", Shape.DENY, quick=True),
    Behaviour("interrupt", "slow 300 100", Shape.INTERRUPT),
    Behaviour("flaky-429", "flaky 429 2", fails=2),
    Behaviour("flaky-500", "flaky 500 1", fails=1),
    Behaviour("drop", "drop", Shape.LOST),
    Behaviour("lines", "echo after several lines", before=LINES, quick=True),
    Behaviour("big", "echo after fifty thousand characters", before=BIG),
    Behaviour("emoji", f"echo the {FAMILY} family {FAMILY}{FAMILY} and the text behind it", quick=True),
    Behaviour("fail-429", "error 429", Shape.FAILED),
    Behaviour("fail-400", "error 400", Shape.FAILED),
)

RUN = {"codex": "sudo"}
"""The directive by which each program is given a command that it asks about; else `run`: Codex runs in its own sandbox
what wants no more than that, without asking."""


class Planned(NamedTuple):
    """One turn to play."""

    behaviour: Behaviour
    round: int

    @property
    def id(self) -> str:
        return f"{self.behaviour.name}-{self.round}"


def plan(
    rounds: int, quick: int, only: Sequence[str] = (), asks: bool = True, done: Collection[str] = ()
) -> list[Planned]:
    """The turns of a session: every behaviour so many times, the quick ones `quick` times, each round in another order.

    A program that never asks before it runs a command (`asks`) is given none to decide; the turns whose ids are in `done`
    are left out, and the others keep their places.
    """
    found = []
    for round in range(max(rounds, quick)):
        turn = [
            Planned(one, round)
            for one in BEHAVIOURS
            if round < (max(rounds, quick) if one.quick else rounds) and (not only or one.name in only)
        ]
        if round:
            random.Random(round).shuffle(turn)
        found += turn
    undecided = (Shape.ALLOW, Shape.DENY) if not asks else ()
    return [one for one in found if one.id not in done and one.behaviour.shape not in undecided]
