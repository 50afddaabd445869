"""A run as a document: who said what, how long it took, what it used and what became of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tmuxctl.fleet.running.runs import KnownRun, count_turns, list_agents
from tmuxctl.fleet.running.transcript import Record, parse_time
from tmuxctl.vocabulary import RunEvent

TOLD = {
    RunEvent.ASKING: "asks",
    RunEvent.PAUSED: "waits: a person types into its session",
    RunEvent.FAILED: "failed",
    RunEvent.SKIPPED: "is left out of this turn",
    RunEvent.ROLE: "was given its role",
}
"""Events beside messages that a reader wants to see, in words."""


def write_report(run: KnownRun, records: Sequence[Record]) -> str:
    """The records of a run as Markdown; what agents wrote stands in blocks that nothing in them can end."""
    first, last = records[0], records[-1]
    seconds = parse_time(last.at) - parse_time(first.at)
    rows = ["| agent | session | turns | seconds | tokens |", "|---|---|---|---|---|"]
    for agent in list_agents(records):
        said = [one for one in records if one.event is RunEvent.MESSAGE and one.sender == agent.name]
        busy = sum(one.elapsed or 0.0 for one in said)
        tokens = [one.about["output_tokens"] for one in said if isinstance(one.about.get("output_tokens"), int)]
        rows.append(
            f"| {agent.name} | {agent.session or ''} | {agent.turns} | {busy:.1f} | {sum(tokens) if tokens else ''} |"
        )
    parts = [
        f"# Team {run.team}",
        f"Began {first.at}, {seconds:.0f} s, {count_turns(records)} turns. {_format_end(last)}",
        "\n".join(rows),
        f"## Input\n\n{quote_block(first.text or '')}",
        "## What was said",
        *(part for part in map(_format_record, records) if part),
    ]
    if last.event is RunEvent.END and last.text:
        parts.append(f"## Result\n\n{quote_block(last.text)}")
    return "\n\n".join(parts) + "\n"


def _format_end(last: Record) -> str:
    told = str(last.about.get("reason", ""))
    if last.event is RunEvent.END:
        return f"It ended: {told}."
    return f"It stopped: {told}." if last.event is RunEvent.STOPPED else "It has not ended."


def _format_record(record: Record) -> str | None:
    time = record.at[11:19]
    if record.event is RunEvent.MESSAGE:
        to = f" to {', '.join(record.to)}" if record.to else ""
        took = f", {record.elapsed:.1f} s" if record.elapsed is not None else ""
        return f"### {time} {record.sender}{to}{took}\n\n{quote_block(record.text or '')}"
    if record.event in TOLD:
        text = f"\n\n{quote_block(record.text)}" if record.text else ""
        return f"### {time} {record.sender} {TOLD[record.event]}{text}"
    return None


def quote_block(text: str) -> str:
    """The text as a code block of Markdown, with a fence that is longer than any in it."""
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
