"""`tmuxctl top`: what its keys do. Data come from top_feed, pages from top_page, the terminal is top_terminal's."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.sessions import finding
from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.model import Session, State
from tmuxctl.surfaces.cli import attaching
from tmuxctl.surfaces.cli.printing.cells import columns
from tmuxctl.surfaces.cli.printing.output import Options, colorful, flat, unicode_out, width, with_socket
from tmuxctl.surfaces.cli.printing.table import INPUT
from tmuxctl.surfaces.cli.top import live
from tmuxctl.surfaces.cli.top.feed import Feed
from tmuxctl.surfaces.cli.top.pages import (
    ANSWER_KEYS,
    GROUPS,
    ORDERS,
    Line,
    Page,
    Piece,
    Row,
    Styled,
    View,
    answer_of,
    arranged,
    clipped,
    find_next_asking,
    help_page,
    page,
    question_page,
    words_of,
    writing,
)
from tmuxctl.surfaces.cli.top.selection import Selection
from tmuxctl.surfaces.cli.top.terminal import Terminal, paint_line
from tmuxctl.timing import TIMING

if TYPE_CHECKING:
    from tmuxctl.control import Control

TEXT_LIMIT = 1000
"""Characters a person may write into a line here."""


OWN_SESSION = os.environ.get("TMUXCTL_SESSION")
"""The id of the session in which this runs, if it runs in one."""

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


def run(control: Control, options: Options, *, all_machines: bool = False) -> None:
    """Show the table until the person quits."""
    terminal = Terminal(colors=colorful(sys.stdout, options))
    feed = Feed(control, terminal.ring, OWN_SESSION, all_machines=all_machines)
    # before anything is drawn: a failure is told as that of any command, and who stops us then (Ctrl-Z) stops no one
    # who is just opening a control client, for which other processes would have to wait
    feed.start()
    try:
        with terminal, suppress(EOFError):
            Top(control, options, terminal, feed, group="machine" if all_machines else "").run()
    finally:
        feed.close()


def show_once(control: Control, options: Options, *, all_machines: bool = False) -> list[str]:
    """The table as it is now, line by line; as wide as the terminal, or 120 columns."""
    feed = Feed(control, lambda: None, all_machines=all_machines)
    feed.list_once()
    rows, colors = feed.rows(), colorful(sys.stdout, options)
    height = 3 * len(rows) + 5 + len(feed.problems)
    view = View(rows, width() or 120, height, time.time(), footer=[], group="machine" if all_machines else "")
    lines = page(view._replace(problems=feed.problems)).lines
    painted = [
        paint_line(line, colors=True) if colors else "".join(piece.text for piece in line).rstrip() for line in lines
    ]
    return painted[: max(number for number, text in enumerate(painted, 1) if text)]


class Mode(Protocol):
    """What is on the terminal and what the keys mean now."""

    def page(self, top: Top, view: View) -> Page:
        """What to draw."""

    def press(self, top: Top, key: str) -> None:
        """A key was pressed."""


class Top:
    """The table under one person's hands."""

    def __init__(self, control: Control, options: Options, terminal: Terminal, feed: Feed, group: str = "") -> None:
        self.control, self.options, self.terminal, self.feed = control, options, terminal, feed
        self.mode: Mode = Browse()
        self.going = True
        self.unseen = False
        """Whether something came that the next keys were not meant for, typed as they were before anybody saw it."""
        self.rows: list[Row] = []
        self._arranged: tuple[object, list[Row]] = None, []
        self.selection = Selection()
        self.words, self.order, self.group = "", "state", group
        self.live = live.LiveView(control, terminal.ring)
        self.view_wanted: bool | None = None
        """Whether the person wants to see the selected session; None: as the terminal has room."""
        self.sounds = True
        self._wanting: set[str] | None = None
        self._owners: Sequence[str | None] = ()
        self._clicked = (float("-inf"), "")
        self.note, self.wrong = "", False
        self._noted = 0.0
        self._first = 0
        self._done: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()

    def run(self) -> None:
        """Draw and obey until told to quit."""
        try:
            self._obey()
        finally:
            self.live.follow(None)

    def _obey(self) -> None:
        while self.going:
            self._hear()
            self._draw()
            self._sound()
            self.unseen = False
            for key in self.terminal.pressed():
                self.mode.press(self, key)
                if self.unseen:
                    break

    def _draw(self) -> None:
        self.rows = self.feed.rows()
        self._follow()
        width, height = self.terminal.size
        place = live.find_place(width, height, wanted=self.view_wanted)
        one = self.session() if place and self.selection.id != OWN_SESSION else None
        self.live.follow(one.lasting_address if one else None)
        if place:
            width, height = (place.column - 1, height) if place.beside else (width, place.row + 1)
        selected, order = self.selection.id, self.order
        view = View(
            self.rows, width, height, time.time(), selected, self.words, order, self._first, self.footer(), self.group
        )._replace(problems=self.feed.problems)
        drawn = self.mode.page(self, view)
        self._first, self._owners = drawn.first, drawn.owners
        # who sorts by loads has to know them all
        self.feed.look_at(None if order in ("cpu", "mem") else {owner for owner in drawn.owners if owner})
        self.terminal.draw(self._join(drawn.lines, place, width) if place else drawn.lines)

    def _join(self, lines: Sequence[Line], place: live.ViewPlace, width: int) -> list[Sequence[Piece | Styled]]:
        """The page with the live view beside it, or above its last line."""
        shown = self._draw_live(place)
        if not place.beside:
            return [*lines[:-1], *shown, lines[-1]]
        joined: list[Sequence[Piece | Styled]] = []
        for line, beside in zip(lines, shown, strict=True):
            blanks = width - sum(columns(piece.text) for piece in line)
            joined.append([*line, Piece(" " * max(0, blanks)), Piece("│" if unicode_out() else "|", "dim"), *beside])
        return joined

    def _draw_live(self, place: live.ViewPlace) -> list[Sequence[Piece | Styled]]:
        """The live view: a head, and as many rows as fit below it."""
        one, seen = self.session(), self.live.now
        known = seen if one and seen and seen.session == one.lasting_address else None
        head: Line = [Piece(" no session", "dim")]
        if one is not None:
            size = f"  {known.cols}x{known.lines}" if known and known.cols else ""
            head = [Piece(f" {one.address}", "bold"), Piece(f"  {words_of(one)}", one.state.value), Piece(size, "dim")]
            if one.id == OWN_SESSION:
                head = [*head, Piece("  this terminal", "dim")]
        if known and known.problem:
            head = [*head, Piece(f"  {flat(known.problem)}", "error")]
        room = place.height - 1
        rows = live.cut_rows(known, place.width, room, colors=self.terminal.colors) if known else []
        blank = " " * place.width
        return [clipped(head, place.width), *([Styled(row)] for row in rows), *([Piece(blank)],) * (room - len(rows))]

    def _sound(self) -> None:
        """Ring the bell where a session begins to want input, and nobody is attached to it."""
        wanting = {
            row.session.lasting_address for row in self.rows if row.session.wants == INPUT and not row.session.attached
        }
        if self._wanting is not None and wanting - self._wanting and self.sounds:
            self.terminal.sound()
        self._wanting = wanting

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
        view = (self.rows, self.words, self.order, self.group)
        if self._arranged[0] != view:
            self._arranged = view, arranged(*view)
        return self._arranged[1]

    def _follow(self) -> None:
        """Let the selection know the rows as they stand."""
        self.selection.follow(
            [row.session.lasting_address for row in self.shown()], (self.words, self.order, self.group)
        )

    def move(self, by: int) -> None:
        """Select another session, so many rows below."""
        self._follow()
        self.selection.move(by)

    def select(self, session_id: str) -> None:
        """Select this session."""
        self._follow()
        self.selection.choose(session_id)

    def click(self, row: int) -> None:
        """The mouse was pressed on a row of the terminal: select its session; attach to it the second time."""
        found = self._owners[row] if row < len(self._owners) else None
        if found is None:
            return
        before, now = self._clicked, time.monotonic()
        self.select(found)
        self._clicked = now, found
        if before[1] == found and now - before[0] < TIMING.page.twice_seconds and (one := self.find(found)):
            self._clicked = float("-inf"), ""
            self.attach(one)

    def session(self) -> Session | None:
        """The selected session."""
        return self.find(self.selection.id)

    def find(self, session_id: str | None) -> Session | None:
        """A session as it is known now; None if it is gone."""
        return next((row.session for row in self.rows if row.session.lasting_address == session_id), None)

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
        if one.id == OWN_SESSION:
            self.tell(f"{one.address} is the session this runs in")
            return
        self.unseen = True
        try:
            words = attaching.attach_command(self.control, one.lasting_address)
            with self.terminal.away():
                status, said = _attached(words)
        except TmuxctlError as error:
            self.tell(error)
            return
        self.tell(
            f"back from {one.address}" if status == 0 else f"attach to {one.address}: {said or f'exit status {status}'}"
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
    place, called = control.reach(one.lasting_address)
    if place.machine.remote is not None:
        # which program runs there now is not known here
        control.call("keys", {"session": one.lasting_address, "keys": ["C-c"]})
        return
    watched = Observer(place.machine, finding.find_session(place.machine, called))
    watched.observe()
    control.call("keys", {"session": one.lasting_address, "keys": watched.interrupt_keys})


# modes


class Browse:
    """The table, and a key for each thing that can be done."""

    def __init__(self) -> None:
        self._drawn: tuple[View, Page] | None = None

    def page(self, top: Top, view: View) -> Page:
        """The table; the same page where there is nothing else to see, as while the live view alone changes."""
        view = view._replace(now=float(int(view.now)))
        if self._drawn is None or self._drawn[0] != view:
            self._drawn = view, page(view)
        return self._drawn[1]

    def press(self, top: Top, key: str) -> None:
        """Move, or begin what the key stands for."""
        top.note = ""
        step = {"up": -1, "k": -1, "down": 1, "j": 1, "home": -(10**6), "end": 10**6}
        step |= {
            "pageup": 2 - top.terminal.size[1],
            "pagedown": top.terminal.size[1] - 2,
            "wheelup": -1,
            "wheeldown": 1,
        }
        if key in step:
            top.move(step[key])
        elif key.startswith("click "):
            top.click(int(key.split()[2]))
        elif key in ACTIONS:
            ACTIONS[key](top)
        elif key in FOR_SESSION and (one := top.session()):
            if key in HARMFUL and not top.selection.pointed:
                top.selection.pointed = True
                top.tell(f"the selection moved to {one.address} by itself: press {key} again if you mean that")
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


class WriteLine:
    """The table, while a line for a session is being written."""

    def __init__(self, one: Session) -> None:
        self.one, self.text = one, ""

    def page(self, top: Top, view: View) -> Page:
        """The table with what was written in its last line; without it once the session is gone."""
        if top.find(self.one.lasting_address) is None:
            top.mode = Browse()
            top.tell(f"{self.one.address} is gone")
            return page(view._replace(footer=top.footer()))
        return page(view._replace(footer=writing(f"to {self.one.address}: ", self.text, view.width)))

    def press(self, top: Top, key: str) -> None:
        """Write; Enter sends the line, Escape leaves."""
        if key in ("enter", "escape"):
            top.mode = Browse()
        if key == "enter":
            one, given = self.one, {"session": self.one.lasting_address, "text": self.text.encode()}
            top.do(f"typing to {one.address} ...", f"typed to {one.address}", lambda: top.control.call("send", given))
        self.text = written(self.text, key)


class Kill:
    """The table with the question whether a session is to be killed."""

    def __init__(self, one: Session) -> None:
        self.one = one

    def page(self, top: Top, view: View) -> Page:
        """The table with the question in its last line; without it once the session is gone."""
        if top.find(self.one.lasting_address) is None:
            top.mode = Browse()
            top.tell(f"{self.one.address} is gone")
            return page(view._replace(footer=top.footer()))
        what = "remove" if self.one.state.traits.over else "kill"
        asked = [Piece(f" {what} {self.one.address}? ", "asking"), Piece("y", "key"), Piece(" or any other key for no")]
        return page(view._replace(footer=asked))

    def press(self, top: Top, key: str) -> None:
        """Kill after y, and after nothing else."""
        top.mode = Browse()
        one = self.one
        if key in ("y", "Y"):
            kill = {"session": [one.lasting_address]}
            top.selection.leave()
            top.do(f"killing {one.address} ...", f"killed {one.address}", lambda: top.control.call("kill", kill))


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
        now = top.find(self.one.lasting_address)
        if now is None or now.asking is None or now.asking.id != self.asking.id:
            top.mode = Browse()
            top.tell(f"{self.one.address} does not ask that any more")
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
        name = self.one.address
        given = {"session": self.one.lasting_address, "option": answer, "id": self.asking.id}
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


def _group(top: Top) -> None:
    groups = list(GROUPS)
    top.group = groups[(groups.index(top.group) + 1) % len(groups)]


def _show_live(top: Top) -> None:
    shown = live.find_place(*top.terminal.size, wanted=top.view_wanted) is not None
    top.view_wanted = not shown
    if top.view_wanted and live.find_place(*top.terminal.size, wanted=True) is None:
        top.tell("the terminal is too small for it")


def _silence(top: Top) -> None:
    top.sounds = not top.sounds
    top.tell(f"the bell is {'on' if top.sounds else 'off'}")


def _select_next(top: Top) -> None:
    if found := find_next_asking(top.shown(), top.selection.id):
        top.select(found)
    else:
        top.tell("no session wants input")


def _write(top: Top, one: Session) -> None:
    if one.state.traits.over:
        top.tell(f"{one.address} is {one.state.value}: nothing can be typed to it")
    else:
        top.ask(WriteLine(one))


def _decide(top: Top, one: Session) -> None:
    if one.state is not State.ASKING or not one.asking:
        top.tell(f"{one.address} asks no question: it is {one.state.value}")
    elif one.asking.kind.traits.hidden:
        top.tell(f"{one.address} asks for a password: attach, or tmuxctl decide {one.address} --secret-from-env NAME")
    else:
        top.ask(Decide(one))


def _interrupt(top: Top, one: Session) -> None:
    top.do(f"interrupting {one.address} ...", f"interrupted {one.address}", lambda: interrupt(top.control, one))


ACTIONS: dict[str, Callable[[Top], None]] = {
    "q": _quit, "h": _help, "?": _help, "/": _filter, "escape": _unfilter, "s": _sort, "g": _group, "v": _show_live,
    "b": _silence, "n": _select_next, "tab": _select_next,
    "redraw": lambda top: top.terminal.redraw(),
}  # fmt: skip

FOR_SESSION: dict[str, Callable[[Top, Session], None]] = {
    "enter": Top.attach, "a": Top.attach, "d": _decide, "i": _interrupt, "t": _write,
    **dict.fromkeys(("x", "K"), lambda top, one: top.ask(Kill(one))),
}  # fmt: skip

HARMFUL = ("i", "t", "x", "K")
"""Keys that do nothing to a session at which nobody pointed."""
