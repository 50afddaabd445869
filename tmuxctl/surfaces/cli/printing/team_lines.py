"""Teams as lines of text: the plan of a connector file, how far a run has come, and what happens in it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tmuxctl import results
from tmuxctl.surfaces.cli.printing import table
from tmuxctl.surfaces.cli.printing.cells import age, cut
from tmuxctl.surfaces.cli.printing.output import flat, width

TEXT_MOST = 200
"""Columns of a message's text where there is no terminal."""

PLANNED_MOST = 1500
"""Characters of a text in a plan."""


def plan_lines(plan: results.TeamPlan) -> Iterator[str]:
    """What a connector file would do."""
    yield f"team {plan.team}: {plan.topology}, at most {plan.turns} turns and {age(plan.seconds)}"
    for agent in plan.agents:
        yield f"  {agent.name}" + ("" if agent.runs else "   started for each task")
        yield f"      session   {flat(agent.session)}"
        yield f"      program   {flat(_program(agent))}"
        if agent.machines:
            yield f"      machines  {flat(', '.join(agent.machines))}"
        if agent.cwd is not None:
            yield f"      folder    {flat(agent.cwd)}"
        for name, value in agent.isolation.items():
            told = ", ".join(f"{key}={one}" for key, one in value.items()) if isinstance(value, Mapping) else value
            yield f"      {name:9} {flat(told if isinstance(told, str) else ' '.join(told))}"
        if agent.role is not None:
            yield f"      role      {_planned_text(agent.role)}"
        if agent.decide:
            told = ", ".join(f"{question}: {option}" for question, option in agent.decide.items())
            yield f"      decides   {flat(told)}"
    for name, words in plan.machines.items():
        yield f"  machine {name}: {flat(shlex.join(words))}"
    for turn in plan.first:
        yield f"  first to {turn.agent}: {_planned_text(turn.text)}"
    for turn in plan.later:
        yield f"  then to {turn.agent}: {_planned_text(turn.text)}"
    yield f"  transcript: {flat(plan.transcript)}"
    yield f"  sessions stay: {'yes' if plan.keep else 'until the run ends'}"


def _program(agent: results.PlannedAgent) -> str:
    if agent.candidates:
        return f"the first that can be started of {', '.join(agent.candidates)}"
    profile = "" if agent.profile == "auto" else f" (profile {agent.profile})"
    return (shlex.join(agent.command) or "that of its profile") + profile


def _planned_text(text: str) -> str:
    """A text on one line: what somebody agrees to is not cut where it fits in a screen."""
    shown = flat(text)
    more = len(shown) - PLANNED_MOST
    return f"{shown[:PLANNED_MOST]} … and {more} characters more, which --json shows" if more > 0 else shown


def record_line(record: Mapping[str, Any]) -> str:
    """One line for what happened in a run."""
    sender, to, event = record["from"], ", ".join(record["to"]), record["event"]
    who = f"{sender} -> {to}" if sender and to else sender or to or "team"
    took = f" ({record['elapsed']:.1f} s)" if isinstance(record.get("elapsed"), (int, float)) else ""
    about = record.get("reason") or (record.get("session") if event == "session" else None) or ""
    text = " ".join(dict.fromkeys(part for part in (str(about), flat(record["text"] or "")) if part))
    room = width()
    line = f"{record['at'][11:19]}  {event:9} {who}{took}  "
    return flat(line) + cut(flat(text), max(20, room - len(line)) if room else TEXT_MOST)


def status_lines(status: results.TeamStatus) -> Iterator[str]:
    """How far a run has come: what all of it does, and each agent."""
    why = f" ({flat(status.reason)})" if status.reason else ""
    yield f"{status.team}  {status.state}{why}  {status.turns} of {status.turns_most} turns, {status.messages} messages"
    rows = [["AGENT", "STATE", "TURNS", "NOW", "LAST"]]
    for agent in status.agents:
        now = f"{agent.turn} {age(agent.seconds or 0)}" if agent.turn else "-"
        if agent.waits:
            now = f"waits: {flat(agent.waits)}"
        last = cut(flat(agent.last or "-"), 60)
        rows.append([flat(agent.name), agent.state or "-", str(agent.turns), cut(now, 60), last])
    yield from table.align(rows)
    for agent in status.agents:
        if agent.waits and agent.session:
            yield f"  {flat(agent.name)} waits for you: tmuxctl decide {flat(agent.session)}"


def team_rows(teams: Sequence[results.TeamStatus]) -> Iterator[str]:
    """A line for each team."""
    rows = [["TEAM", "STATE", "TURNS", "AGENTS", "FILE"]]
    for one in teams:
        rows.append([one.team, one.state, f"{one.turns}/{one.turns_most}", str(len(one.agents)), flat(one.path)])
    yield from table.align(rows)
