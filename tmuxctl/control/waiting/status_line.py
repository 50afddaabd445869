"""How many sessions are at work and how many want input, in one line for status bars and prompts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from tmuxctl.model import Session, State, natural_key
from tmuxctl.results import Event, StatusLine
from tmuxctl.terminal.tmux.journal import parse_cursor
from tmuxctl.value import changed


def sum_up(found: Sequence[Session | Event], form: str) -> StatusLine:
    """The line of these sessions in the form `plain`, `tmux` (with its styles) or `json` (an object as bars read it); empty,
    except as `json`, where none is busy or wants input."""
    wanting = tuple(_name_of(one) for one in found if wants_input(one))
    busy = sum(one.state is State.BUSY for one in found)
    return StatusLine(
        _format_json(busy, wanting) if form == "json" else _join_counts(busy, len(wanting), MARKUP[form]),
        busy=busy,
        wanting=wanting,
        sessions=len(found),
    )


def follow(found: Sequence[Session], events: Iterator[Event], form: str) -> Iterator[StatusLine]:
    """The line as it is now, and anew whenever what `events` tell changes it. tmux drops an empty line that comes together with the
    one before it (evbuffer_readline takes any number of line ends for one): for it a style stands there, which shows nothing."""
    newest: dict[tuple[str, str], Session | Event] = {
        (one.machine or "", one.incarnation or one.address): one for one in found
    }

    def shown(line: StatusLine) -> StatusLine:
        return line if line.line or form != "tmux" else changed(line, line=NOTHING)

    told = sum_up(found, form)
    yield shown(told)
    for event in events:
        machine, _, name = event.session.rpartition("/")
        if machine and not name:
            # it tells of the machine, none of whose sessions is known now
            continue
        # a session may get another name
        newest[machine, parse_cursor(event.cursor).incarnation if event.cursor else event.session] = event
        now = sum_up(sorted(newest.values(), key=lambda one: natural_key(_name_of(one))), form)
        if now.line != told.line:
            told = now
            yield shown(now)


def _name_of(told: Session | Event) -> str:
    return told.session if isinstance(told, Event) else told.address


def wants_input(told: Session | Event) -> bool:
    """Whether a session waits for a decision, a line or a key."""
    return told.wants == "input"


NOTHING = "#[nobold]"
"""A line of tmux's status that shows nothing, and is not empty."""

MARKUP: Mapping[str, str] = {"plain": "!{}", "tmux": "#[bold]!{}#[nobold]"}
"""How the number of sessions that want input is written. Nothing that a program chose is in a line."""


def _join_counts(busy: int, wanting: int, markup: str) -> str:
    return "  ".join([*([f"{busy} busy"] if busy else []), *([markup.format(wanting)] if wanting else [])])


def _format_json(busy: int, wanting: Sequence[str]) -> str:
    """What waybar (`text`, `tooltip`, `class`), i3blocks and i3bar (`full_text`, `urgent`) read, and the numbers."""
    line = _join_counts(busy, len(wanting), MARKUP["plain"])
    return json.dumps(
        {
            "text": line,
            "full_text": line,
            "tooltip": "\n".join(f"{name} wants input" for name in wanting),
            "class": "input" if wanting else "busy" if busy else "idle",
            "urgent": bool(wanting),
            "busy": busy,
            "wanting": wanting,
        }
    )
