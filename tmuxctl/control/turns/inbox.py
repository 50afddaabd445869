"""Messages for an agent program: kept in its session's inbox, and given to it as one turn once it takes the next.

Whoever sees that the program waits may deliver them, also several processes at once: the key that submits them sets in tmux the
id of the last one (`options.INBOX`), and is refused where another process has set it meanwhile. So a process that is killed at
any moment leaves every message either submitted or waiting. The text is pasted as a write with that id: where it stands in the
input box and was not submitted, whoever comes next goes on from there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tmuxctl.control.input.sending import check_write_id
from tmuxctl.control.machine import Machine
from tmuxctl.control.output import printed
from tmuxctl.control.sessions import finding, records
from tmuxctl.control.sessions.kept_profile import profile_of
from tmuxctl.control.sessions.summaries import format_time
from tmuxctl.control.turns import turn
from tmuxctl.control.waiting import waits
from tmuxctl.errors import Conflict, DecisionNeeded, TmuxctlError, Usage
from tmuxctl.model import NAME, check_name
from tmuxctl.operations import current
from tmuxctl.reading.text.headers import format_message
from tmuxctl.results import Answer, Inbox, InboxMessage, Output, Submitted, Told
from tmuxctl.terminal.input import paste
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.tmux import options
from tmuxctl.terminal.tmux.inbox import LIMIT, MESSAGES, TEXT_LIMIT, InboxFile, format_line, is_text

if TYPE_CHECKING:
    from tmuxctl.terminal.tmux.server import Pane


class _Waiting:
    """The messages that wait for the program of a session, as the file and tmux say together."""

    def __init__(self, machine: Machine, pane: Pane) -> None:
        self.machine, self.pane = machine, pane
        self.file = InboxFile(machine.transport, records.session_folder(machine, pane.id))
        self.given = ""
        """The id of the last message that was given to the program."""
        self.last_input: LastInput | None = None

    def read(self) -> list[InboxMessage]:
        """Those that were not given to the program yet, oldest first."""
        # in this order: what is given meanwhile is seen by its mark, before any of these is given again
        self.given, remembered = self.machine.io.look(self.pane.name, (options.INBOX, options.INPUT_FACTS)).values
        messages = self.file.read()
        last = max((number for number, one in enumerate(messages, 1) if one.id == self.given), default=0)
        self.last_input = LastInput.parse(remembered)
        return messages[last:]

    def read_next(self) -> list[InboxMessage]:
        """Those that are given next: all of them, but where a process pasted some and did not come to submit them, those."""
        messages = self.read()
        pasted = paste.OnceMark.read_id(self.last_input.id) if self.last_input else ""
        last = next((number for number, one in enumerate(messages, 1) if one.id == pasted), None)
        return messages[:last]

    def find(self, message: InboxMessage) -> int:
        """The place of a message among them, from 1 on; 0 if it does not wait."""
        return next((number for number, one in enumerate(self.read(), 1) if one.id == message.id), 0)

    @contextmanager
    def change(self) -> Iterator[list[InboxMessage]]:
        """Those messages; what is made of the list in the block is kept. Conflict `leased` while another process does so."""
        with self.machine.hold_lock(self.file.lock, f"the inbox of {self.pane.name}"):
            messages = self.read()
            yield messages
            self.file.write(messages)


def tell(
    machine: Machine,
    session: str,
    text: bytes,
    *,
    sender: str | None = None,
    force: bool = False,
    wait: bool = False,
    timeout: float | None = None,
    message_id: str | None = None,
) -> Told:
    """Put a text into a session's inbox, and deliver what is in there if the program takes a text now. With `wait` wait for that
    too, and for the answer, at most `timeout` seconds (default: the setting wait.ask_timeout).

    Raises Exited if the program has ended, Conflict `no_agent` for one that is no agent, unless `force`, Usage `too_large` or
    `bad_text` for a text that is none, Conflict `inbox_full`. With `wait` also what `turn.ask` raises, and the message stays.
    """
    pane = finding.find_session(machine, session)
    if pane.dead:
        raise paste.ended_error(pane)
    if not force:
        _refuse_others(machine, pane)
    message = InboxMessage(
        check_write_id(message_id),
        find_sender(machine) if sender is None else check_name(sender),
        _check_text(text),
        format_time(machine.clock.wall()) or "",
    )
    waiting = _Waiting(machine, pane)
    _add(waiting, message)
    why, answer = None, None
    try:
        answer = _deliver_and_wait(machine, pane, message, timeout) if wait else deliver(machine, pane.id)
    except (Conflict, DecisionNeeded) as error:
        if wait:
            error.hint = f"the message waits: tmuxctl inbox ls {pane.name}; {error.hint}"
            raise
        why = error.message
    position = waiting.find(message)
    return Told(pane.name, message.id, message.sender, not position, position, why if position else None, answer)


def deliver(machine: Machine, session: str, asked: turn.Asked | None = None) -> Answer | None:
    """Give the program of a session the messages that wait for it, oldest first, as one turn, if it takes a text now. What is
    `asked` waits for the turn's end and gives the answer. Nothing without messages.

    Raises what `turn.ask` does where the program does not take a text, and Conflict `given` where another process delivers: the
    messages wait on, or were delivered.
    """
    pane = finding.find_session(machine, session)
    waiting = _Waiting(machine, pane)
    messages = waiting.read_next()
    if not messages:
        return None
    text = "\n\n".join(format_message(one.sender, one.text) for one in messages).encode()
    mark = paste.OnceMark(options.INBOX, waiting.given, messages[-1].id)
    try:
        if asked is not None:
            return turn.ask(machine, pane.name, text, asked._replace(mark=mark))
        turn.give(machine, pane.name, text, turn.Asked(mark=mark))
        return None
    finally:
        # what was given stands in the file until somebody writes it anew
        with suppress(TmuxctlError), waiting.change():
            pass


def has_messages(machine: Machine, session_id: str) -> bool:
    """Whether there may be messages for the session with this id: one look at its file, without tmux."""
    return bool(InboxFile(machine.transport, records.session_folder(machine, session_id)).read())


def list_messages(machine: Machine, session: str) -> Inbox:
    """The messages that wait for the program of a session."""
    pane = finding.find_session(machine, session)
    return Inbox(pane.name, tuple(_Waiting(machine, pane).read()))


def clear(machine: Machine, session: str) -> Inbox:
    """Remove the messages that wait for the program of a session, and return them. Of a delivery that is under way they are none:
    it was made before, or is refused."""
    pane = finding.find_session(machine, session)
    waiting = _Waiting(machine, pane)
    while True:
        with waiting.change() as messages:
            mark = paste.OnceMark(options.INBOX, waiting.given, os.urandom(8).hex())
            if not machine.io.change(pane.name, mark.values(), unless=mark.was_set):
                removed = tuple(messages)
                messages.clear()
                return Inbox(pane.name, removed)
        current().check()


def find_sender(machine: Machine) -> str:
    """Who sends where nobody is named: the session that the caller runs in, by its name, else the user."""
    caller = current().caller
    session = caller.session if caller else os.environ.get("TMUXCTL_SESSION")
    if session:
        with suppress(TmuxctlError):
            return finding.find_session(_own_machine(machine), session, whole=False).name
    import pwd

    with suppress(KeyError):
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", pwd.getpwuid(os.geteuid()).pw_name).lstrip("_-")[:63]
        if NAME.fullmatch(name):
            return name
    return "user"


def _own_machine(machine: Machine) -> Machine:
    """The machine whose tmux server has the session that this process runs in."""
    if not machine.address:
        return machine
    from tmuxctl import config
    from tmuxctl.transport.local import LocalTransport

    settings = config.load()
    return Machine(LocalTransport(settings.tmux_socket, tmux=settings.tmux_binary), settings)


def _refuse_others(machine: Machine, pane: Pane) -> None:
    profile = profile_of(machine, pane)
    if profile is None or not profile.is_agent:
        what = f"its profile is {profile.name}" if profile else "it has no profile"
        raise Conflict(
            f"{pane.name} is no agent program ({what}): what it is told it might execute",
            reason="no_agent",
            hint=f"type it: tmuxctl send {pane.name} TEXT; or tell it all the same: --force",
        )


def _check_text(data: bytes) -> str:
    """The text of a message; Usage where it cannot be one."""
    if len(data) > TEXT_LIMIT:
        hint = "write it to a file, and tell the program its name"
        raise Usage(f"{len(data)} bytes are more than a message may have ({TEXT_LIMIT})", reason="too_large", hint=hint)
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    if not text.strip():
        raise Usage("the message is empty", reason="missing", hint="tmuxctl tell NAME TEXT")
    if "\ufffd" in text or not is_text(text):
        hint = "lines of printable characters and tabs; for anything else, write a file and tell its name"
        raise Usage("the message holds control characters, or is no UTF-8", reason="bad_text", hint=hint)
    return text


def _add(waiting: _Waiting, message: InboxMessage) -> None:
    with waiting.change() as messages:
        if message.id in (waiting.given, *(one.id for one in messages)):
            # the call is repeated with its id
            return
        size = sum(len(format_line(one)) for one in (*messages, message))
        if len(messages) >= MESSAGES or size > LIMIT:
            name = waiting.pane.name
            raise Conflict(
                f"the inbox of {name} is full: {len(messages)} messages wait",
                reason="inbox_full",
                hint=f"look at them: tmuxctl inbox ls {name}; remove them: tmuxctl inbox clear {name}",
            )
        messages.append(message)


def _deliver_and_wait(machine: Machine, pane: Pane, message: InboxMessage, timeout: float | None) -> Answer:
    """Deliver the message with all that wait, and wait for the answer, also to a message that another process delivered."""
    until = machine.clock.monotonic() + (machine.settings.wait_ask_timeout if timeout is None else timeout)
    while True:
        current().check()
        left, answer = max(0.0, until - machine.clock.monotonic()), None
        try:
            answer = deliver(machine, pane.id, turn.Asked(timeout=left, queue=True))
        except Conflict as error:
            if error.reason != paste.GIVEN:
                raise
        if (answer is not None and not answer.submitted.ok) or not _Waiting(machine, pane).find(message):
            break
    if answer is not None:
        return answer
    end = waits.wait(machine, pane.id, waits.Conditions(), timeout=max(0.0, until - machine.clock.monotonic()))
    output = printed.read(machine, pane.id, since=None, follow=False, raw=False)
    assert isinstance(output, Output)
    return Answer(
        pane.name,
        output.text,
        end.status,
        submitted=Submitted(True, "another process delivered it"),
        complete=output.complete,
        cursor=output.cursor,
        timed_out=end.timed_out,
    )
