"""The messages of a session: its turns and their answers from its timeline, and what the turn under way has printed so far."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from tmuxctl.control.output.agent_answer import read_turn_so_far
from tmuxctl.control.output.moments import History
from tmuxctl.control.sessions import finding
from tmuxctl.errors import TmuxctlError
from tmuxctl.surfaces.adapters.agentapi.screens import (
    Begin,
    begin_of,
    may_be_redrawn,
    remove_prompt,
    remove_redrawn,
    trim,
)
from tmuxctl.terminal.tmux.journal import parse_cursor
from tmuxctl.terminal.tmux.timeline import ANSWER_LIMIT, Moment, Timeline, shorten
from tmuxctl.value import Value
from tmuxctl.vocabulary import MomentKind

if TYPE_CHECKING:
    from tmuxctl.results import Asking, Screen
    from tmuxctl.surfaces.server.calls import Calls, Request

AGENT, USER = "agent", "user"

LIVE_BYTES = 1 << 18
"""Bytes of output of a turn under way that are read as text; of more the screen is shown."""

KEPT = 200
"""Texts that are kept of turns whose timeline tells less."""


class TalkMessage(Value):
    """A message: its number, which is its place, who said it, what, and when (seconds of the wall clock)."""

    id: int
    role: str
    content: str
    at: float

    def to_json(self, content: str) -> dict[str, Any]:
        """It as an object; `content` is what its text is called."""
        return {"id": self.id, content: self.content, "role": self.role, "time": format_time(self.at)}


class PostedMessage(Value):
    """A message that is being answered: its text, what stood on the screen before it, and when it was sent."""

    text: str
    begin: Begin
    at: float


def format_time(at: float) -> str:
    """A time as RFC 3339 in UTC, to the millisecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03d}Z"


class TurnTexts:
    """What is known of turns beside the timeline: the whole text of each that was sent from here, of which the timeline keeps
    the beginning, and its answer without what was drawn again. The oldest are forgotten."""

    def __init__(self) -> None:
        self.sent: OrderedDict[int, str] = OrderedDict()
        self.begins: OrderedDict[int, Begin] = OrderedDict()
        self.answers: OrderedDict[tuple[int, int], str] = OrderedDict()
        self.greeting: tuple[int, str] | None = None
        self.live: tuple[int, int, str] | None = None
        """How far the output had come before a turn, how far it came in it, and what it was."""

    def keep(self, posted: PostedMessage, turn: int) -> None:
        """Keep what was sent in a turn, by its number."""
        _keep(self.sent, turn, posted.text)
        _keep(self.begins, turn, posted.begin)

    def find_sent(self, turn: Moment) -> str:
        """The text of a turn, whole if it is known."""
        sent = self.sent.get(turn.turn, "")
        return sent if shorten(sent) == turn.text else turn.text


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    while len(kept) > KEPT:
        kept.popitem(last=False)


class MessageReader:
    """Reads the messages of one session, in a thread: as the caller of a request may."""

    def __init__(self, calls: Calls, request: Request, session: str, texts: TurnTexts) -> None:
        self.calls, self.request, self.session, self.texts = calls, request, session, texts
        service, self.name = calls.control.reach(session)
        self.machine = service.machine
        self.history = History(self.machine, self.name)
        self.turns = [moment for moment in self.history.moments if moment.kind is MomentKind.TURN]

    def read(self, posted: PostedMessage | None, asking: Asking | None) -> tuple[TalkMessage, ...]:
        """The messages. `posted` is under way; `asking` is the question that stands."""
        found: list[TalkMessage] = []

        def add(role: str, content: str, at: float) -> None:
            found.append(TalkMessage(len(found), role, content, at))

        if posted and self.turns and self.turns[-1].offset >= posted.begin.offset:
            # it has just ended
            posted = None
        add(AGENT, self._greet(posted), self.history.pane.created or 0.0)
        for turn in self.turns:
            add(USER, trim(self.texts.find_sent(turn)), turn.at)
            last = turn is self.turns[-1] and posted is None
            add(AGENT, trim(self._read_answer(turn, last)), turn.until or turn.at)
        if posted:
            add(USER, trim(posted.text), posted.at)
            if live := trim(self._read_live(posted)):
                add(AGENT, live, self.machine.clock.wall())
        if asking is not None and found[-1].role == AGENT:
            last_one = found.pop()
            add(AGENT, trim(_add_question(last_one.content, asking)), last_one.at)
        return tuple(found)

    def _operate(self, operation: str, **arguments: Any) -> Any:
        return self.calls.operate_here(self.request, operation, {"session": self.session, **arguments})

    def _greet(self, posted: PostedMessage | None) -> str:
        """What the program said before it was given anything."""
        first = self.turns[0].offset if self.turns else None
        if first is None:
            return posted.begin.text if posted else begin_of(self._operate("screen", state=False)).text
        if self.texts.greeting is None or self.texts.greeting[0] != first:
            begin = self._find_begin(self.turns[0])
            self.texts.greeting = first, begin.text if begin else ""
        return self.texts.greeting[1]

    def _find_begin(self, turn: Moment) -> Begin | None:
        """What stood on the screen before a turn; None if that is not known any more."""
        if begin := self.texts.begins.get(turn.turn):
            return begin
        try:
            cursor = finding.cursor_at(self.history.pane, turn.offset)
            return begin_of(self._operate("screen", at=cursor))
        except TmuxctlError:
            # of an earlier life of the session, or older than the journal
            return None

    def _read_answer(self, turn: Moment, last: bool) -> str:
        key = (turn.turn, turn.offset)
        answer = self.texts.answers.get(key)
        if answer is None:
            answer, typed = turn.answer, self.texts.find_sent(turn)
            if may_be_redrawn(answer, typed) and (begin := self._find_begin(turn)):
                answer = remove_redrawn(answer, begin, typed)
            _keep(self.texts.answers, key, answer)
        if last and not turn.whole and (more := self._read_on(turn, answer)) is not None:
            # an answer to its question, or a wait that was given up: the turn goes on
            answer = more
        return answer

    def _read_on(self, turn: Moment, answer: str) -> str | None:
        """The answer of the last turn with what came after its end; None if nothing did."""
        end = self.history.journal.end()
        if end <= turn.end:
            return None
        if so_far := read_turn_so_far(self.machine, self.history.pane):
            return so_far.text or None
        if end - turn.end > LIVE_BYTES:
            return None
        more = self._operate("read", since=finding.cursor_at(self.history.pane, turn.end)).text
        more = remove_prompt(more, begin_of(self._operate("screen", state=False)).left)
        if not answer:
            # of a turn that was given up before anybody looked
            more = more.removeprefix(self.texts.find_sent(turn)).removeprefix("\n")
        return trim(f"{answer}\n{more}")

    def _read_live(self, posted: PostedMessage) -> str:
        """What the program has written so far in the turn under way."""
        if self._find_input(posted) is None:
            return ""
        screen: Screen = self._operate("screen", state=False)
        assert screen.position
        offset = parse_cursor(screen.position).offset
        if offset - posted.begin.offset > LIVE_BYTES:
            text = screen.text
        else:
            text = remove_redrawn(self._operate("read").text, posted.begin, posted.text)
            text = remove_prompt(text, posted.begin.left)
        self.texts.live = posted.begin.offset, offset, text
        return text

    def _find_input(self, posted: PostedMessage) -> Moment | None:
        """The input with which a turn began; None while nothing was typed."""
        typed = (moment for moment in self.history.moments if moment.kind is MomentKind.INPUT)
        return next((moment for moment in typed if moment.offset >= posted.begin.offset), None)

    def note_unfinished(self, posted: PostedMessage) -> None:
        """Keep in the timeline a turn whose end is not waited for, with what was seen of its answer."""
        typed = self._find_input(posted)
        if typed is None:
            return
        number = self.turns[-1].turn + 1 if self.turns else 1
        end, text = typed.offset, ""
        if self.texts.live is not None and self.texts.live[0] == posted.begin.offset:
            _, end, text = self.texts.live
        self.texts.keep(posted, number)
        now, kept = self.machine.clock.wall(), trim(text)[:ANSWER_LIMIT]
        moment = Moment(
            MomentKind.TURN,
            typed.offset,
            posted.at,
            shorten(posted.text),
            number,
            max(end, typed.offset),
            now,
            kept,
            False,
        )
        Timeline(self.machine.transport, self.folder).add(moment)

    @property
    def folder(self) -> str:
        """The session's own folder."""
        return os.path.dirname(self.history.journal.folder)


def _add_question(content: str, asking: Asking) -> str:
    """What a program said, with the question that it asks, unless that stands there."""
    if asking.question.strip() and asking.question.strip() in content:
        return content
    options = [f"{number}. {option.label}" for number, option in enumerate(asking.options, 1)]
    question = "\n".join([asking.question, *options])
    return f"{content}\n\n{question}" if content else question
