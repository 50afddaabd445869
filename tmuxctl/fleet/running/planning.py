"""What a connector file would do, before any of it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from tmuxctl.control.machines.reaching import door
from tmuxctl.control.sessions.chosen_profile import choose_profile
from tmuxctl.errors import TmuxctlError
from tmuxctl.fleet.connector import Agent, Connector, Isolation, Pipeline
from tmuxctl.fleet.rules.pipeline import branches
from tmuxctl.fleet.rules.topologies import make_conversation
from tmuxctl.fleet.running.agents import session_name, starting_folder
from tmuxctl.fleet.running.runs import RunFolder
from tmuxctl.results import PlannedAgent, PlannedTurn, TeamPlan


def plan(connector: Connector, folder: RunFolder) -> TeamPlan:
    """The sessions, the first turns, the limits, and what is decided without a person."""
    conversation = make_conversation(connector)
    conversation.begin(connector.input)
    first: list[PlannedTurn] = []
    while (delivery := conversation.take()) and len(first) < connector.stop.turns:
        first.append(PlannedTurn(delivery.agent, delivery.text))
    begun = make_conversation(connector).agents
    return TeamPlan(
        team=connector.name,
        path=connector.path,
        digest=connector.digest,
        confirmed=folder.is_confirmed(connector.digest),
        topology=topology_name(connector),
        agents=tuple(_plan_agent(connector, one, runs=one.name in begun) for one in connector.agents.values()),
        first=tuple(first),
        later=tuple(_later_turns(connector)),
        machines={name: tuple(door(entry)) for name, entry in connector.machines.items()},
        turns=connector.stop.turns,
        seconds=connector.stop.seconds,
        transcript=folder.transcript_of(connector),
        keep=connector.keep,
    )


def topology_name(connector: Connector) -> str:
    """The word of a connector's topology."""
    return type(connector.topology).__name__.lower()


def _later_turns(connector: Connector) -> Iterator[PlannedTurn]:
    """The stages of a pipeline after its first: what they are given is in the file, too."""
    for stage in connector.topology.stages[1:] if isinstance(connector.topology, Pipeline) else ():
        for one in branches(stage):
            yield PlannedTurn(one.agent, one.prompt)


def _find_command(agent: Agent) -> tuple[str, ...]:
    """The command that its profile has, where that is known here."""
    with suppress(TmuxctlError):
        if not agent.candidates and (profile := choose_profile(agent.profile, ())):
            return profile.command
    return ()


def _plan_agent(connector: Connector, agent: Agent, *, runs: bool) -> PlannedAgent:
    name = session_name(connector.name, agent.name)
    return PlannedAgent(
        name=agent.name,
        session=f"{agent.machines[0]}/{name}" if agent.machines and agent.machines[0] else name,
        machines=tuple(one or "local" for one in agent.machines),
        command=agent.command or _find_command(agent),
        profile=agent.profile,
        candidates=agent.candidates,
        cwd=starting_folder(connector, agent, agent.machines[0] if agent.machines else None),
        role=agent.role,
        isolation={key: value for key, value in agent.isolation.__dict__.items() if value != getattr(Isolation, key)},
        decide=agent.decide,
        turn_timeout=agent.turn_timeout,
        runs=runs,
    )
