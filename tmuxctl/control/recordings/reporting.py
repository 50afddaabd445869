"""What a session did as one file to read: turns, questions, what was typed, its end, and what stood on the screen then."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TextIO

from tmuxctl.control.output.moments import History, to_time
from tmuxctl.control.recordings.exporting import write_whole
from tmuxctl.errors import Usage
from tmuxctl.results import Reported
from tmuxctl.terminal.picture.render import DARK, FONT, escape_markup, render_spans
from tmuxctl.terminal.picture.replay import Cell
from tmuxctl.terminal.tmux.screen import strip_escapes
from tmuxctl.vocabulary import MomentKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.terminal.tmux.timeline import Moment

FORMS = (".md", ".html")


class Section(NamedTuple):
    """A part of a report: its heading, pairs of a label and a text that a person or a program wrote, and the rows of the screen,
    if it shows one."""

    heading: str
    texts: tuple[tuple[str, str], ...] = ()
    screen: list[list[Cell]] | None = None


def report(machine: Machine, session: str, out: str) -> Reported:
    """Write what a session did to a file, whose ending says in which form."""
    form = os.path.splitext(out)[1]
    if form not in FORMS:
        raise Usage(
            f"{ascii(out)} has no known ending",
            reason="bad_option",
            hint=f"name a file that ends in {', '.join(FORMS)}",
        )
    history = History(machine, session)
    turns = sum(moment.kind is MomentKind.TURN for moment in history.moments)
    questions = sum(moment.kind is MomentKind.QUESTION for moment in history.moments)

    def write(file: TextIO) -> tuple[int, float]:
        (_write_markdown if form == ".md" else _write_page)(history.pane.name, _list_sections(history), file)
        return turns, 0.0

    write_whole(os.path.expanduser(out), write)
    return Reported(history.pane.name, out, turns, questions)


def _list_sections(history: History) -> Iterator[Section]:
    pane = history.pane
    about = [("program", shlex.join(pane.spec.get("argv") or ())), ("folder", str(pane.spec.get("cwd") or ""))]
    about.append(("started", to_time(pane.created or None) or ""))
    yield Section("Session", tuple((label, text) for label, text in about if text))
    turns = [moment for moment in history.moments if moment.kind is MomentKind.TURN]
    for moment in history.moments:
        at = f"{datetime.fromtimestamp(moment.at):%H:%M:%S}"
        if moment.kind is MomentKind.TURN:
            answer = moment.answer if moment.whole else f"{moment.answer}\n..."
            heading = f"Turn {moment.turn}, {at}, {max(0.0, moment.until - moment.at):.1f} s"
            yield Section(heading, (("input", moment.text), ("answer", answer)))
        elif moment.kind is MomentKind.QUESTION:
            yield Section(f"Question, {at}", (("it asked", moment.text),), history.draw(moment.offset).cells())
        elif moment.kind is MomentKind.INPUT and not any(_began_with(turn, moment) for turn in turns):
            yield Section(f"Input, {at}", (("typed", moment.text or "a text that the terminal did not show"),))
        elif moment.kind is MomentKind.MARK:
            yield Section(f"Mark, {at}", (("mark", moment.text),), history.draw(moment.offset).cells())
    status = f"exit status {pane.status}" if pane.status is not None else f"ended by signal {pane.signal}"
    known = pane.status is not None or pane.signal is not None
    ended = ("end", status if known else "it ended; how is not known") if pane.dead else ("state", "it runs")
    yield Section("End", (ended,), history.draw(history.journal.end()).cells())


def _began_with(turn: Moment, typed: Moment) -> bool:
    """Whether a turn began with this input."""
    return turn.offset <= typed.offset <= turn.end and typed.text == turn.text


def _to_text(screen: list[list[Cell]]) -> str:
    return "\n".join("".join(cell.text for cell in row).rstrip(" ") for row in screen).rstrip("\n")


def _write_markdown(title: str, sections: Iterator[Section], file: TextIO) -> None:
    file.write(f"# {title}\n")
    for section in sections:
        file.write(f"\n## {section.heading}\n")
        for label, text in section.texts:
            file.write(f"\n{label}:\n\n{_fence(text)}\n")
        if section.screen is not None and (text := _to_text(section.screen)):
            file.write(f"\nscreen:\n\n{_fence(text)}\n")


def _fence(text: str) -> str:
    """A text between fences that nothing in it can end (CommonMark, 4.5)."""
    text = strip_escapes(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }}
h2 {{ font-size: 1rem; margin: 2rem 0 .5rem; border-top: 1px solid #8888; padding-top: .75rem }}
dt {{ font-size: .8rem; opacity: .7; margin-top: .5rem }}
dd {{ margin: 0 }}
pre {{ margin: .25rem 0; font: 13px/1.35 {font}; white-space: pre-wrap; overflow-wrap: anywhere }}
pre.screen {{ background: {background}; color: {foreground}; padding: .75rem; white-space: pre; overflow-x: auto;
  line-height: 1.2; border-radius: 4px; direction: ltr }}
i.c {{ display: inline-block; font-style: inherit; overflow: hidden; vertical-align: bottom; height: 1.2em }}
</style>
</head>
<body>
<h1>{title}</h1>
"""


def _write_page(title: str, sections: Iterator[Section], file: TextIO) -> None:
    file.write(
        PAGE.format(title=escape_markup(title), font=FONT, background=DARK.background, foreground=DARK.foreground)
    )
    for section in sections:
        file.write(f"<h2>{escape_markup(section.heading)}</h2>\n<dl>\n")
        for label, text in section.texts:
            lines = "\n".join(map(escape_markup, text.split("\n")))
            file.write(f"<dt>{label}</dt><dd><pre>{lines}</pre></dd>\n")
        file.write("</dl>\n")
        if section.screen is not None:
            rows = "\n".join("".join(render_spans(row)) for row in section.screen)
            file.write(f'<pre class="screen">{rows}</pre>\n')
    file.write("</body>\n</html>\n")
