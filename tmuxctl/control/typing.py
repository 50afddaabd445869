"""Typing into sessions: what a write needs to know first, and what it returns."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tmuxctl.control import sessions
from tmuxctl.errors import Conflict, Exited, NotFound, Usage
from tmuxctl.operations import current
from tmuxctl.results import Written
from tmuxctl.terminal import paste as pasting
from tmuxctl.terminal.paste import Input, Write
from tmuxctl.terminal.server import Pane

if TYPE_CHECKING:
    from tmuxctl.control.service import Control

SECRET_LIMIT = 4000
REPEAT_LIMIT = 1000


def send(
    control: Control,
    session: str,
    text: bytes,
    *,
    enter: bool,
    paste: bool,
    multiline: bool,
    secret: bytes | None = None,
    write_id: str | None = None,
) -> Written:
    """Type text and Enter in one guarded write."""
    if secret is not None and text:
        raise Usage("give either text or a secret", reason="bad_option", hint="leave the text out")
    data = text if secret is None else secret
    own, write_id = write_id, _id(write_id)
    pane = sessions.known(control, session)
    if pane.dead:
        raise pasting.ended(pane)
    if not data:
        return Written(pane.name, "done", write_id, 0, None)
    tty = control.transport.tty(pane.tty)
    if secret is not None and (tty is None or tty.echo or not tty.canonical):
        raise Conflict(
            f"{pane.name} does not ask for a secret: its terminal would show what is typed",
            reason="echo_on",
            hint=f"wait for the question first: tmuxctl screen {pane.name}",
        )
    bracketed = paste and _knows_paste(control, pane)
    pasting.check_text(data, canonical=bool(tty and tty.canonical), bracketed=bracketed or paste, multiline=multiline)
    if paste and not bracketed and (b"\n" in data or b"\r" in data) and not multiline:
        pasting.check_text(data, canonical=False, bracketed=False, multiline=False)
    fresh = own is None and control.panes is not None and not current().repeated
    one = Write(write_id, data=data, enter=enter, bracketed=bracketed, fresh=fresh)
    echo = "none" if tty and tty.canonical and not tty.echo else "tty" if tty and tty.canonical else "editor"
    return _write(control, pane, one, echo, typed=b"" if secret is not None else data)


def keys(
    control: Control, session: str, names: tuple[str, ...], *, repeat: int, write_id: str | None = None
) -> Written:
    """Press named keys, all checked first."""
    if not 1 <= repeat <= REPEAT_LIMIT:
        raise Usage(f"repeat {repeat} is not between 1 and {REPEAT_LIMIT}", reason="bad_number", hint="--repeat 3")
    from tmuxctl.terminal.keys import tmux_keys

    found = tmux_keys(names)
    if not found:
        raise Usage("no key given", reason="missing", hint="tmuxctl keys NAME C-c")
    pane = sessions.known(control, session)
    if pane.dead:
        raise pasting.ended(pane)
    one = Write(_id(write_id), keys=[(key,) for key in found * repeat])
    return _write(control, pane, one, "none", typed=b"")


def line(control: Control, pane: Pane, text: bytes, offset: int) -> Input:
    """Type one line of a turn and Enter, and return it as an input; `offset` is how far the output had come before."""
    tty = control.transport.tty(pane.tty)
    canonical = bool(tty and tty.canonical)
    pasting.check_text(text, canonical=canonical, bracketed=False, multiline=False)
    echo = "tty" if tty and canonical and tty.echo else "none" if canonical else "editor"
    one = Write(os.urandom(8).hex(), data=text, enter=True)
    at = control.transport.clock()
    remember = Input.remember(control.holder.pid, one.id, offset, echo, text, at)
    pasting.write(control.transport, control.holder, pane, one, remember)
    return Input(one.id, offset, pane.x, pane.y, pane.cols, pane.rows, pane.alternate, echo, text, at)


def press(control: Control, session: str, names: tuple[str, ...]) -> Written:
    """Press keys as one of several writes of a call: it has an id of its own."""
    return keys(control, session, names, repeat=1, write_id=os.urandom(8).hex())


def _write(control: Control, pane: Pane, one: Write, echo: str, *, typed: bytes) -> Written:
    offset = sessions.journal(control, pane).end()
    remember = Input.remember(control.holder.pid, one.id, offset, echo, typed, control.transport.clock())
    try:
        result = pasting.write(control.transport, control.holder, pane, one, remember)
    except (Exited, NotFound):
        fresh = sessions.find(control, pane.name)
        if fresh.dead:
            raise pasting.ended(fresh) from None
        if fresh.id == pane.id:
            raise
        # what was known of the name is of an earlier session: nothing was typed into the new one yet
        return _write(control, fresh, one, echo, typed=typed)
    return Written(pane.name, result, one.id, len(one.data), sessions.cursor(pane, offset))


def _knows_paste(control: Control, pane: Pane) -> bool:
    """True if the program last switched bracketed paste on (xterm's mode 2004), as far as the journal reaches back."""
    recent = sessions.journal(control, pane).tail(1 << 20).data
    return recent.rfind(b"\x1b[?2004h") > recent.rfind(b"\x1b[?2004l")


def _id(given: str | None) -> str:
    if given is None:
        return current().request_id
    if not (8 <= len(given) <= 64 and given.isalnum() and given.isascii()):
        raise Usage(
            "an id is 8 to 64 letters and digits, as an earlier error gave it",
            reason="bad_id",
            hint="leave it out for a new write",
        )
    return given


def secret(env: str | None, file: str | None, fd: int | None) -> bytes | None:
    """A secret from the one place named: a variable, a file's first line, a descriptor. None if none is."""
    if sum(place is not None for place in (env, file, fd)) > 1:
        hint = "--secret-from-env, --secret-from-file or --secret-from-fd"
        raise Usage("name one place for the secret", reason="bad_option", hint=hint)
    try:
        if env is not None:
            found = os.environb[env.encode()]
        elif file is not None:
            with open(os.path.expanduser(file), "rb") as handle:
                found = handle.readline(SECRET_LIMIT + 1)
        elif fd is not None:
            with os.fdopen(fd, "rb", closefd=False) as handle:
                found = handle.read(SECRET_LIMIT + 1)
        else:
            return None
    except (KeyError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such variable"
        hint = "set the variable, or name a file or descriptor that can be read"
        raise Usage(f"the secret cannot be read: {reason}", reason="no_secret", hint=hint) from None
    line = found.rstrip(b"\r\n")
    if not line or len(line) > SECRET_LIMIT or b"\n" in line or b"\r" in line or b"\0" in line:
        hint = f"one line of at most {SECRET_LIMIT} bytes"
        raise Usage("the secret is empty, too long, or more than one line", reason="bad_secret", hint=hint)
    return line
