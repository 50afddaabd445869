"""`tmuxctl top`: what its keys do. Data come from top_feed, pages from top_page, the terminal is top_terminal's."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.sessions import finding
from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.model import Session, State
from tmuxctl.surfaces.cli import attaching
from tmuxctl.surfaces.cli.printing.output import Options, colorful, flat, with_socket
from tmuxctl.surfaces.cli.top.feed import Feed
from tmuxctl.surfaces.cli.top.pages import (
    ANSWER_KEYS,
    ORDERS,
    Line,
    Page,
    Piece,
    Row,
    View,
    answer_of,
    arranged,
    help_page,
    page,
    question_page,
    writing,
)
from tmuxctl.surfaces.cli.top.selection import Selection
from tmuxctl.surfaces.cli.top.terminal import Terminal
from tmuxctl.timing import TIMING

if TYPE_CHECKING:
    from tmuxctl.control import Control

TEXT_LIMIT = 1000
"""Characters a person may write into a line here."""


HINT = "tmuxctl ls; for a program: tmuxctl ls --json, tmuxctl watch --json"


def check(options: Options, command: str = "top", hint: str = HINT) -> None:
    """Usage unless there is a terminal to draw on and somebody who may be asked."""
    if options.json or not options.prompt:
        option = "--json" if options.json else "--no-input"
        raise Usage(f"{command} is for a person at a terminal; {option} excludes that", reason="no_terminal", hint=hint)
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        raise Usage(f"{command} needs a terminal; standard input or output is not one", reason="no_terminal", hint=hint)
    if os.environ.get("TERM", "dumb") in ("dumb", ""):
        raise Usage(
            f"{command} needs a terminal that can move its cursor (TERM is dumb)", reason="no_terminal", hint=hint
        )


def run(control: Control, options: Options) -> None:
    """Show the table until the person quits."""
    terminal = Terminal(colors=colorful(sys.stdout, options))
    feed = Feed(control, terminal.ring)
    # before anything is drawn: a failure is told as that of any command, and who stops us then (Ctrl-Z) stops no one
    # who is just opening a control client, for which other processes would have to wait
    feed.start()
    try:
        with terminal, suppress(EOFError):
            Top(control, options, terminal, feed).run()
    finally:
        feed.close()


class Mode(Protocol):
    """What is on the terminal and what the keys mean now."""

    def page(self, top: Top, view: View) -> Page:
        """What to draw."""

    def press(self, top: Top, key: str) -> None:
        """A key was pressed."""


class Top:
    """The table under one person's hands."""

    def __init__(self, control: Control, options: Options, terminal: Terminal, feed: Feed) -> None:
        self.control, self.options, self.terminal, self.feed = control, options, terminal, feed
        self.mode: Mode = Browse()
        self.going = True
        self.unseen = False
        """Whether something came that the next keys were not meant for, typed as they were before anybody saw it."""
        self.rows: list[Row] = []
        self.selection = Selection()
        self.words, self.order = "", "state"
        self.note, self.wrong = "", False
        self._noted = 0.0
        self._first = 0
        self._done: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()

    def run(self) -> None:
        """Draw and obey until told to quit."""
        while self.going:
            self._hear()
            self._draw()
            self.unseen = False
            for key in self.terminal.pressed():
                self.mode.press(self, key)
                if self.unseen:
                    break

    def _draw(self) -> None:
        self.rows = self.feed.rows()
        self._follow()
        width, height = self.terminal.size
        selected = self.selection.id
        view = View(self.rows, width, height, time.time(), selected, self.words, self.order, self._first, self.footer())
        drawn = self.mode.page(self, view)
        self._first = drawn.first
        self.terminal.draw(drawn.lines)

    def footer(self) -> Line | None:
        """What stands in place of the keys, if anything is to be said."""
        if self.note and time.monotonic() - self._noted < TIMING.page.note_seconds:
            return [Piece(f" {self.note}", "error" if self.wrong else "bold")]
        if self.feed.problem:
            return [Piece(f"out of date: {flat(self.feed.problem)}", "error")]
        return None

    def _hear(self) -> None:
        """Take in what became of what was done."""
        while not self._done.empty():
            told = self._done.get()
            if isinstance(told, BaseException) and not isinstance(told, TmuxctlError):
                raise told
            self.tell(told)
            self.feed.poke()

    def tell(self, what: str | TmuxctlError) -> None:
        """Say something in the last line, until the next key or for a while."""
        self._noted = time.monotonic()
        self.wrong = isinstance(what, TmuxctlError)
        self.note = flat(what if isinstance(what, str) else self._message(what))

    def _message(self, error: TmuxctlError) -> str:
        text = error.message + (f" ({with_socket(error.hint, self.options)})" if error.hint else "")
        for row in self.rows:
            text = text.replace(row.session.id, row.session.name)
        return text

    # the selected session

    def shown(self) -> list[Row]:
        """The rows as they stand."""
        return arranged(self.rows, self.words, self.order)

    def _follow(self) -> None:
        """Let the selection know the rows as they stand."""
        self.selection.follow([row.session.id for row in self.shown()], (self.words, self.order))

    def move(self, by: int) -> None:
        """Select another session, so many rows below."""
        self._follow()
        self.selection.move(by)

    def session(self) -> Session | None:
        """The selected session."""
        return self.find(self.selection.id)

    def find(self, session_id: str | None) -> Session | None:
        """A session as it is known now; None if it is gone."""
        return next((row.session for row in self.rows if row.session.id == session_id), None)

    # what is done to sessions

    def ask(self, question: Mode) -> None:
        """Put a question to the person."""
        self.mode, self.unseen = question, True

    def do(self, doing: str, done: str, work: Callable[[], object]) -> None:
        """Do something that may take a while; what became of it is told in the last line."""
        self.tell(doing)

        def finish() -> None:
            try:
                work()
                self._done.put(done)
            except BaseException as error:
                self._done.put(error)
            self.terminal.ring()

        threading.Thread(target=finish, daemon=True).start()

    def attach(self, one: Session) -> None:
        """Bring the session to this terminal until the person leaves it."""
        if one.id == os.environ.get("TMUXCTL_SESSION"):
            self.tell(f"{one.name} is the session this runs in")
            return
        self.unseen = True
        try:
            words = attaching.attach_command(self.control, one.id)
            with self.terminal.away():
                status, said = _attached(words)
        except TmuxctlError as error:
            self.tell(error)
            return
        self.tell(
            f"back from {one.name}" if status == 0 else f"attach to {one.name}: {said or f'exit status {status}'}"
        )
        self.wrong = status != 0
        self.feed.poke()


def _attached(words: list[str]) -> tuple[int, str]:
    """Run tmux on this terminal; its exit status and what it complained about."""
    try:
        client = subprocess.Popen(words, env=attaching.environment_outside_tmux(), stderr=subprocess.PIPE)
    except OSError as error:
        raise attaching.missing_client_error(words[0], error) from None
    try:
        _, said = client.communicate()
    except BaseException:
        # told to end, tmux gives the terminal back
        client.terminate()
        client.wait()
        raise
    return client.returncode, said.decode(errors="replace").strip()


def interrupt(control: Control, one: Session) -> None:
    """Press the keys that stop what a session's program does, as the profile of the program that runs now names them."""
    place, called = control.reach(one.id)
    watched = Observer(place.machine, finding.find_session(place.machine, called))
    watched.observe()
    control.call("keys", {"session": one.id, "keys": watched.interrupt_keys})


# modes


class Browse:
    """The table, and a key for each thing that can be done."""

    def page(self, top: Top, view: View) -> Page:
        """The table."""
        return page(view)

    def press(self, top: Top, key: str) -> None:
        """Move, or begin what the key stands for."""
        top.note = ""
        step = {"up": -1, "k": -1, "down": 1, "j": 1, "home": -(10**6), "end": 10**6}
        step |= {"pageup": 2 - top.terminal.size[1], "pagedown": top.terminal.size[1] - 2}
        if key in step:
            top.move(step[key])
        elif key in ACTIONS:
            ACTIONS[key](top)
        elif key in FOR_SESSION and (one := top.session()):
            if key in HARMFUL and not top.selection.pointed:
                top.selection.pointed = True
                top.tell(f"the selection moved to {one.name} by itself: press {key} again if you mean that")
            else:
                FOR_SESSION[key](top, one)


class Filter:
    """The table, while its filter is being written."""

    def page(self, top: Top, view: View) -> Page:
        """The table with what was written in its last line."""
        return page(view._replace(footer=writing("filter: ", top.words, view.width)))

    def press(self, top: Top, key: str) -> None:
        """Write, or leave: with the filter after Enter, without it after Escape."""
        if key == "escape":
            top.words = ""
        if key in ("enter", "escape"):
            top.mode = Browse()
        top.words = written(top.words, key)


class Kill:
    """The table with the question whether a session is to be killed."""

    def __init__(self, one: Session) -> None:
        self.one = one

    def page(self, top: Top, view: View) -> Page:
        """The table with the question in its last line; without it once the session is gone."""
        if top.find(self.one.id) is None:
            top.mode = Browse()
            top.tell(f"{self.one.name} is gone")
            return page(view._replace(footer=top.footer()))
        what = "remove" if self.one.state.traits.over else "kill"
        asked = [Piece(f" {what} {self.one.name}? ", "asking"), Piece("y", "key"), Piece(" or any other key for no")]
        return page(view._replace(footer=asked))

    def press(self, top: Top, key: str) -> None:
        """Kill after y, and after nothing else."""
        top.mode = Browse()
        one = self.one
        if key in ("y", "Y"):
            kill = {"session": [one.id]}
            top.selection.leave()
            top.do(f"killing {one.name} ...", f"killed {one.name}", lambda: top.control.call("kill", kill))


class Decide:
    """A session's question and its answers."""

    def __init__(self, one: Session) -> None:
        self.one = one
        assert one.asking is not None
        self.asking = one.asking
        self.answers = [option.id for option in one.asking.options[: len(ANSWER_KEYS)]]
        self.typed = ""

    def page(self, top: Top, view: View) -> Page:
        """The question; the table again once nobody waits for an answer any more."""
        now = top.find(self.one.id)
        if now is None or now.asking is None or now.asking.id != self.asking.id:
            top.mode = Browse()
            top.tell(f"{self.one.name} does not ask that any more")
            return page(view._replace(footer=top.footer()))
        return question_page(self.one, view.width, view.height, self.typed)

    def press(self, top: Top, key: str) -> None:
        """Answer by the key of an answer, or by a line of text where any text is one; leave by Escape."""
        if key == "escape":
            top.mode = Browse()
        elif not self.answers:
            self.typed = written(self.typed, key)
            if key == "enter" and self.typed:
                self._answer(top, self.typed)
        elif answer := answer_of(key, self.answers):
            self._answer(top, answer)

    def _answer(self, top: Top, answer: str) -> None:
        top.mode = Browse()
        name = self.one.name
        given = {"session": self.one.id, "option": answer, "id": self.asking.id}
        top.do(f"answering {name} ...", f"{name}: {answer}", lambda: top.control.call("decide", given))


class Help:
    """What the keys do."""

    def page(self, top: Top, view: View) -> Page:
        """The page of keys."""
        return help_page(view.width, view.height)

    def press(self, top: Top, key: str) -> None:
        """Any key goes back."""
        top.mode = Browse()


def written(text: str, key: str) -> str:
    """A line of text after a key."""
    if key == "backspace":
        return text[:-1]
    if key == "clear":
        return ""
    return text + key if len(key) == 1 and len(text) < TEXT_LIMIT else text


# what the keys of the table begin


def _quit(top: Top) -> None:
    top.going = False


def _help(top: Top) -> None:
    top.mode = Help()


def _filter(top: Top) -> None:
    top.mode = Filter()


def _unfilter(top: Top) -> None:
    top.words = ""


def _sort(top: Top) -> None:
    orders = list(ORDERS)
    top.order = orders[(orders.index(top.order) + 1) % len(orders)]


def _decide(top: Top, one: Session) -> None:
    if one.state is not State.ASKING or not one.asking:
        top.tell(f"{one.name} asks no question: it is {one.state.value}")
    elif one.asking.kind.traits.hidden:
        top.tell(f"{one.name} asks for a password: attach, or tmuxctl decide {one.name} --secret-from-env NAME")
    else:
        top.ask(Decide(one))


def _interrupt(top: Top, one: Session) -> None:
    top.do(f"interrupting {one.name} ...", f"interrupted {one.name}", lambda: interrupt(top.control, one))


ACTIONS: dict[str, Callable[[Top], None]] = {
    "q": _quit, "h": _help, "?": _help, "/": _filter, "escape": _unfilter, "s": _sort,
    "redraw": lambda top: top.terminal.redraw(),
}  # fmt: skip

FOR_SESSION: dict[str, Callable[[Top, Session], None]] = {
    "enter": Top.attach, "a": Top.attach, "d": _decide, "i": _interrupt,
    **dict.fromkeys(("x", "K"), lambda top, one: top.ask(Kill(one))),
}  # fmt: skip

HARMFUL = ("i", "x", "K")
"""Keys that do nothing to a session at which nobody pointed."""
