"""Typing into sessions: what a write needs to know first, and what it returns."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tmuxctl.control.sessions import finding
from tmuxctl.control.sessions.kept_profile import profile_of
from tmuxctl.errors import Conflict, Exited, NotFound, TmuxctlError, Usage
from tmuxctl.operations import current
from tmuxctl.results import Written
from tmuxctl.terminal.input import paste as pasting
from tmuxctl.terminal.input.paste import CarriedOut, LastInput, OnceMark, Write
from tmuxctl.terminal.tmux import lease, options, server
from tmuxctl.terminal.tmux.lease import NO_VALUES, LeaseHolder
from tmuxctl.terminal.tmux.pane_io import Comparison, Condition, FieldTest
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport import segments
from tmuxctl.value import Value, changed

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observation.observing import StabilityTracker
    from tmuxctl.evidence import Tty

REPEAT_LIMIT = 1000
KEYS_LIMIT = 1000
"""Keys of one call: tmux 3.3a answers nobody for 17 s while it presses 20,000 (measured)."""
KEYS_AT_ONCE = 100


class Typed(Value):
    """What became of a write, and, where that was asked for and is known, the session just before it and the input that it
    was: what follows then needs not ask for them."""

    written: Written
    pane: Pane | None = None
    last_input: LastInput | None = None


PASTE_STEP = 1 << 20
"""So many bytes of the output at a time are looked through for what a program asked for."""


def send(
    machine: Machine,
    session: str,
    text: bytes,
    *,
    enter: bool = True,
    paste: bool = False,
    multiline: bool = False,
    secret: bytes | None = None,
    insecure: bool = False,
    write_id: str | None = None,
    followed: bool = False,
) -> Typed:
    """Type text and Enter in one guarded write, or in two where the program's profile says that it is pasted texts. Conflict
    `secret_wanted` for a text where a password is asked for, unless `insecure`. `followed`: the caller goes on with it."""
    if secret is not None and text:
        raise Usage("give either text or a secret", reason="bad_option", hint="leave the text out")
    data = text if secret is None else secret
    call = current()
    fresh = write_id is None and machine.panes is not None and not call.repeated
    new_write = Write(check_write_id(write_id), data=data, enter=enter)

    def write(pane: Pane) -> Typed:
        tty = machine.transport.tty(pane.tty) if data else None
        if data and secret is None and not insecure:
            _refuse_secret(machine, pane, tty)
        profile = profile_of(machine, pane) if enter and data and secret is None else None
        if profile is not None and profile.submit.mode == "paste":
            from tmuxctl.control.input import submitting

            if written := submitting.send_to_input_box(machine, pane, new_write, profile):
                return Typed(written)
        return _send_checked(
            machine,
            pane,
            changed(new_write, fresh=fresh),
            tty,
            paste=paste,
            multiline=multiline,
            secret=secret is not None,
            followed=followed,
        )

    return _write_to_session(machine, session, write)


def _send_checked(
    machine: Machine,
    pane: Pane,
    write: Write,
    tty: Tty | None,
    *,
    paste: bool,
    multiline: bool,
    secret: bool,
    hidden: bool | None = None,
    holder: LeaseHolder | None = None,
    followed: bool = False,
) -> Typed:
    data = write.data
    if not data:
        return Typed(Written(pane.name, "empty", write.id, 0))
    if secret:
        _refuse_shown(pane.name, tty, hidden)
    bracketed = paste and knows_paste(machine, pane)
    pasting.check_text(data, canonical=bool(tty and tty.canonical), bracketed=bracketed or paste, multiline=multiline)
    if paste and not bracketed and (b"\n" in data or b"\r" in data) and not multiline:
        pasting.check_text(data, canonical=False, bracketed=False, multiline=False)
    echo = "editor" if tty is None or not tty.canonical else "tty" if tty.echo else "none"
    # what the terminal does not show may be a secret, and is remembered nowhere
    typed = b"" if secret or echo == "none" else data
    write = changed(write, bracketed=bracketed)
    return _write_guarded(machine, pane, write, echo, typed=typed, holder=holder, followed=followed)


def _refuse_shown(name: str, tty: Tty | None, hidden: bool | None) -> None:
    """Refuse a secret that the terminal or the program would show. `hidden`: whether the field hides it, None if unknown."""
    # where keys are read one by one (ssh, a dialog box) a program may show them itself, whatever it says that it wants
    if hidden is False and tty and not tty.canonical:
        raise secret_would_show(name)
    if tty is None or tty.echo or not (tty.canonical or hidden):
        raise Conflict(
            f"{name} does not ask for a secret: its terminal would show what is typed",
            reason="echo_on",
            hint=f"wait for the question first: tmuxctl screen {name}",
        )


def _refuse_secret(machine: Machine, pane: Pane, tty: Tty | None) -> None:
    from tmuxctl.control.input import passwords

    if passwords.asks_for_password(machine, pane, tty):
        raise Conflict(
            f"{pane.name} asks for a password, and text on a command line can be seen and kept (ps, the shell's history)",
            reason="secret_wanted",
            hint=f"tmuxctl send {pane.name} --secret-from-env VARIABLE, --secret-from-file or --secret-from-fd; "
            "to type the text all the same: --insecure",
        )


def press_named(
    machine: Machine,
    session: str,
    names: tuple[str, ...],
    *,
    repeat: int,
    insecure: bool = False,
    write_id: str | None = None,
    followed: bool = False,
) -> Typed:
    """Press named keys, all checked first. Conflict `secret_wanted` as `send` for keys that write a character."""
    if not 1 <= repeat <= REPEAT_LIMIT:
        raise Usage(f"repeat {repeat} is not between 1 and {REPEAT_LIMIT}", reason="bad_number", hint="--repeat 3")
    from tmuxctl.terminal.input.keys import tmux_keys

    found = tmux_keys(names)
    if not found:
        raise Usage("no key given", reason="missing", hint="tmuxctl keys NAME C-c")
    if len(found) * repeat > KEYS_LIMIT:
        hint = "type text with send; press keys in several calls"
        raise Usage(f"{len(found) * repeat} keys are more than {KEYS_LIMIT}", reason="too_many_keys", hint=hint)
    parts, write_id = _split_behind_escape(found * repeat), check_write_id(write_id)
    text = any(len(key) == 1 or key == "Space" for key in found)

    def write(pane: Pane) -> Typed:
        if text and not insecure:
            _refuse_secret(machine, pane, machine.transport.tty(pane.tty))
        if len(parts) > 1:
            return Typed(_press_in_parts(machine, pane, parts, write_id))
        new_write = Write(write_id, keys=_group_keys(parts[0]))
        return _write_guarded(machine, pane, new_write, "none", typed=b"", followed=followed)

    typed = _write_to_session(machine, session, write)
    if parts[-1][-1].endswith("Escape"):
        # the next call may come within a millisecond
        machine.clock.sleep(machine.timing.input.escape_seconds)
    return typed


def _press_in_parts(machine: Machine, pane: Pane, parts: Sequence[Sequence[str]], write_id: str) -> Written:
    """Press the keys of one write with a pause behind each part, in which no other writer may type. A write
    that is repeated with its id presses only what was not pressed."""
    holder = machine.new_holder()
    result = "dup"
    with hold_lease(machine, pane, holder):
        done = count_parts_done(machine, pane, write_id)
        at, offset = machine.transport.clock(), finding.open_journal(machine, pane).end()
        remember = LastInput.remember(holder.pid, write_id, offset, "none", b"", at)
        for number, keys in enumerate(parts):
            if number < done:
                continue
            write = Write(write_id, keys=_group_keys(keys), part=number)
            result = pasting.carry_out(machine.io, holder, pane, write, remember).result
            if number + 1 < len(parts):
                current().check()
                machine.clock.sleep(machine.timing.input.escape_seconds)
    return Written(pane.name, result, write_id, 0, finding.cursor_at(pane, offset))


def count_parts_done(machine: Machine, pane: Pane, write_id: str) -> int:
    """How many parts of a write were carried out before."""
    (acknowledged,) = machine.io.look(pane.name, (options.ACKNOWLEDGED,)).values
    parts = re.findall(rf"\b{write_id}p(\d+)\b", acknowledged)
    return max((int(part) + 1 for part in parts), default=0)


def press_keys(
    machine: Machine,
    pane: Pane,
    names: tuple[str, ...],
    holder: LeaseHolder,
    *,
    continued: LastInput | None = None,
    apart: bool = False,
    mark: OnceMark | None = None,
) -> LastInput:
    """Press keys in exactly this session, as an input of its own or as the end of another (`kept`), which stays the last;
    NotFound `replaced` if its name is another's by now. `apart`: each by itself, for a program's editor. The last sets the
    `mark`; Conflict `given` where that was changed."""
    from tmuxctl.terminal.input.keys import tmux_keys

    at, offset = machine.transport.clock(), finding.open_journal(machine, pane).end()
    last_input = continued
    found = tmux_keys(names)
    parts = [[key] for key in found] if apart else _split_behind_escape(found)
    for number, keys in enumerate(parts):
        if number:
            machine.clock.sleep(machine.timing.input.escape_seconds)
        write = Write(os.urandom(8).hex(), keys=_group_keys(keys))
        last_input = last_input or LastInput.sent(write.id, offset, pane, "none", b"", at)
        new = LastInput.remember(holder.pid, last_input.id, offset, "none", b"", at)
        remember = last_input.again(holder.pid) if continued else new
        given = mark.values(remember, 1, pane.history) if mark and number == len(parts) - 1 else NO_VALUES
        against = mark.was_set if mark else pasting.NO_CONDITIONS
        pasting.carry_out(machine.io, holder, pane, write, remember, values=given, against=against)
    assert last_input is not None
    return last_input


def _group_keys(keys: Sequence[str]) -> list[tuple[str, ...]]:
    """Keys as the arguments of few `send-keys`: tmux takes time for each command that grows with their number."""
    return [tuple(keys[first : first + KEYS_AT_ONCE]) for first in range(0, len(keys), KEYS_AT_ONCE)]


def _split_behind_escape(keys: Sequence[str]) -> list[list[str]]:
    """Keys that may be pressed at once: what comes right behind Escape would be taken for Meta and that key."""
    parts: list[list[str]] = [[]]
    for key in keys:
        if parts[-1] and parts[-1][-1].endswith("Escape"):
            parts.append([])
        parts[-1].append(key)
    return parts


def paste_text(
    machine: Machine,
    pane: Pane,
    text: bytes,
    offset: int,
    holder: LeaseHolder,
    *,
    newline: tuple[str, ...] = (),
    write_id: str | None = None,
    mark: OnceMark | None = None,
) -> LastInput:
    """Put a text into a program's editor without sending it, and return it as an input: in one bracketed paste, or where
    the program asked for none line by line with the keys that make a new line there. `offset` as `line`. With a
    `write_id` a text that is pasted as a whole is pasted at most once, however often it is asked for; Conflict `given` where the
    `mark` was changed.

    Usage `multiline` if there are no such keys, `bad_text` for what would end the bracket, `line_too_long`.
    """
    # a profile says that it is given texts so
    bracketed = knows_paste(machine, pane, unknown=True)
    tty = machine.transport.tty(pane.tty)
    pasting.check_text(text, canonical=bool(tty and tty.canonical), bracketed=bracketed, multiline=bool(newline))
    at = machine.transport.clock()
    write = Write(write_id or os.urandom(8).hex(), data=text, bracketed=bracketed, part=None if write_id is None else 0)
    remember = LastInput.remember(holder.pid, write.id, offset, "editor", text, at)
    last_input = LastInput.sent(write.id, offset, pane, "editor", text, at)
    # without a bracket a carriage return would be Enter
    lines = [text] if bracketed else re.split(rb"\r\n|\r|\n", text)
    if len(lines) == 1:
        pasting.carry_out(
            machine.io, holder, pane, write, remember, against=mark.was_set if mark else pasting.NO_CONDITIONS
        )
        return last_input
    for number, line in enumerate(lines):
        if number:
            press_keys(machine, pane, newline, holder, continued=last_input)
        if line:
            part = Write(os.urandom(8).hex(), data=line)
            pasting.carry_out(machine.io, holder, pane, part, last_input.again(holder.pid))
    return last_input


def type_line(
    machine: Machine,
    pane: Pane,
    text: bytes,
    offset: int,
    holder: LeaseHolder,
    values: Mapping[str, str | None] = NO_VALUES,
    against: Mapping[str, Condition] = pasting.NO_CONDITIONS,
    keep: Callable[[str], Mapping[str, str | None]] = lambda remembered: NO_VALUES,
) -> LastInput:
    """Type one line of a turn and Enter, and return it as an input; `offset` is how far the output had come before. `values` of
    options are set with it, and those that `keep` makes of the format that keeps the input. Conflict `leased` if another writer
    may type or was there, `given`: the reasons `against` it."""
    tty = machine.transport.tty(pane.tty)
    canonical = bool(tty and tty.canonical)
    pasting.check_text(text, canonical=canonical, bracketed=False, multiline=False)
    echo = "tty" if tty and canonical and tty.echo else "none" if canonical else "editor"
    write = Write(os.urandom(8).hex(), data=text, enter=True)
    at = machine.transport.clock()
    remember = LastInput.remember(holder.pid, write.id, offset, echo, text, at)
    values = {**values, **keep(remember)}
    pasting.carry_out(machine.io, holder, pane, write, remember, values=values, against=against)
    return LastInput.sent(write.id, offset, pane, echo, text, at)


def type_into(
    machine: Machine, pane: Pane, text: bytes, *, holder: LeaseHolder, secret: bytes | None = None, hidden: bool = False
) -> Written:
    """Type a text, or the secret that is asked for, and Enter into exactly this session; errors as `send`, NotFound
    `replaced` as `press`. `hidden`: a program that reads keys does not show the secret; Conflict `secret_wanted` if it may."""
    write = Write(os.urandom(8).hex(), data=text if secret is None else secret, enter=True)
    given, tty = secret is not None, machine.transport.tty(pane.tty)
    typed = _send_checked(
        machine, pane, write, tty, paste=False, multiline=False, secret=given, hidden=hidden, holder=holder
    )
    return typed.written


def secret_would_show(name: str) -> Conflict:
    """The error for a secret where nothing says that it would be hidden."""
    return Conflict(
        f"{name} may show what is typed: its program reads keys one by one, and no profile says that it hides them here",
        reason="secret_wanted",
        hint=f"type it yourself: tmuxctl attach {name}; or let a profile say `hidden` (docs/profiles.md)",
    )


def touched_since(last_input: LastInput | None) -> Condition:
    """That somebody typed into a session after this input, or anything at all."""
    if last_input is None:
        return (FieldTest(options.INPUT),)
    return (FieldTest(options.INPUT, Comparison.LACKS, last_input.id),)


def is_untouched(machine: Machine, tracker: StabilityTracker, remembered: str | None = None) -> bool:
    """True if nobody typed into the session since it was looked at; else what was seen counts no more. `remembered`: its last
    input, where that was just asked for."""
    if remembered is None:
        _, remembered = finding.find_with_input(machine, tracker.observer.pane.name)
    last_input, before = LastInput.parse(remembered), tracker.last_input
    if last_input is None or (before and before.id == last_input.id):
        return True
    tracker.note_input(last_input, None)
    return False


@contextmanager
def hold_lease(machine: Machine, pane: Pane, holder: LeaseHolder) -> Iterator[None]:
    """Be the only writer. Conflict `leased` if another one is for a second."""
    deadline = time.monotonic() + 1.0
    while not lease.take_lease(machine.io, holder, pane):
        current().check()
        if time.monotonic() > deadline:
            raise lease.leased_error(pane.name)
        time.sleep(0.03)
    try:
        yield
    finally:
        with suppress(TmuxctlError), machine.transport.without_answer():
            lease.release_lease(machine.io, holder, pane.name)


def _write_to_session(machine: Machine, session: str, write: Callable[[Pane], Typed]) -> Typed:
    """Write into what is known of the session; if that is of an earlier one, everything is looked at anew."""
    typed = _write_to_known(machine, session, write)
    if anchor := current().anchor:
        anchor.last_input = typed.last_input
    return typed


def _write_to_known(machine: Machine, session: str, write: Callable[[Pane], Typed]) -> Typed:
    pane = finding.find_known(machine, session)
    try:
        if pane.dead:
            raise pasting.ended_error(pane)
        return write(pane)
    except (Exited, NotFound):
        fresh = finding.find_session(machine, session)
        if fresh.dead:
            raise pasting.ended_error(fresh) from None
        if (fresh.id, fresh.name) == (pane.id, pane.name) and not pane.dead:
            raise
        return write(fresh)


def _write_guarded(
    machine: Machine,
    pane: Pane,
    write: Write,
    echo: str,
    *,
    typed: bytes,
    holder: LeaseHolder | None = None,
    followed: bool = False,
) -> Typed:
    holder, at = holder or machine.holder, machine.transport.clock()
    fields = server.CHANGING if followed or current().anchor else ()
    journal = finding.open_journal(machine, pane)

    def type_it(offset: int | None) -> CarriedOut:
        end = segments.END if offset is None else offset
        remember = LastInput.remember(holder.pid, write.id, end, echo, typed, at)
        asked = journal if offset is None else None
        return pasting.carry_out(machine.io, holder, pane, write, remember, fields=fields, journal=asked)

    try:
        done = type_it(None)
        # of a write that was carried out before it is not told
        offset = journal.end() if done.offset is None else done.offset
    except NotFound as error:
        if error.reason != "no_file":
            raise
        # nothing was printed yet
        offset = finding.output_end(machine, pane)
        done = type_it(offset)
    written = Written(pane.name, done.result, write.id, len(write.data), finding.cursor_at(pane, offset))
    before = server.renew_pane(pane, done.values) if done.values else None
    if before is None:
        return Typed(written)
    return Typed(written, before, LastInput.sent(write.id, offset, before, echo, typed, at))


def knows_paste(machine: Machine, pane: Pane, *, unknown: bool = False) -> bool:
    """True if the program last switched bracketed paste on (xterm's mode 2004): tmux 3.7 and later tell, else as far as the
    journal reaches back; `unknown` where the beginning of its output is gone and what is kept does not tell.

    A program may switch it on once, and then print for days: Gemini CLI draws a MiB in a dozen turns (measured).
    """
    (flag,) = machine.io.look(pane.name, ("bracket_paste_flag",)).values
    if flag:
        return flag == "1"
    journal = finding.open_journal(machine, pane)
    part = journal.tail(PASTE_STEP)
    start, rest = journal.start(), b""
    while part.data:
        # a switch may stand across two pieces
        data = part.data + rest
        on, off = data.rfind(b"\x1b[?2004h"), data.rfind(b"\x1b[?2004l")
        if on != off:
            return on > off
        if part.start <= start or not journal.streams:
            break
        begin = max(start, part.start - PASTE_STEP)
        part, rest = journal.read(begin, part.start - begin), data[:8]
    return unknown and (start > 0 or not journal.streams)


def check_write_id(write_id: str | None) -> str:
    """The id of a write: the caller's, that of the call, or a new one; Usage `bad_id`."""
    if write_id is None:
        return current().request_id or os.urandom(8).hex()
    if not (8 <= len(write_id) <= 64 and write_id.isalnum() and write_id.isascii()):
        raise Usage(
            "an id is 8 to 64 letters and digits, as given in an earlier error",
            reason="bad_id",
            hint="leave it out for a new write",
        )
    return write_id
