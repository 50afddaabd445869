"""Typing: text goes in as exact bytes through a guarded paste, keys by name, each write once and acknowledged.

Every rule here was measured: `send-keys -l` drops a trailing `;` and takes words for keys; an unguarded paste into an
ended program crashes the tmux 3.3a server; copy mode swallows input; a cooked terminal cuts a line at 4,095 bytes.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from tmuxctl.errors import Conflict, Exited, Failed, NotFound, Unreachable, Usage
from tmuxctl.terminal import lease
from tmuxctl.terminal.server import Pane
from tmuxctl.transport.base import Command, Transport, source

LINE_LIMIT = 4095
"""Bytes of one line a terminal in canonical mode takes; it cuts the rest silently (termios(3), measured)."""

SIZE_LIMIT = 16 << 20
"""Bytes of one write."""

ECHO_LIMIT = 2000
"""Bytes of the typed text remembered, so that a wait can leave its echo out."""

REPORT = (
    "id=#{@tmuxctl_id} dead=#{pane_dead} mode=#{pane_in_mode} off=#{pane_input_off} attached=#{session_attached}"
    " lease=#{@tmuxctl_lease}"
)


class Input(NamedTuple):
    """The last input of a session: where its output stood, and what the echo will look like. Kept as @tmuxctl_input."""

    id: str
    offset: int
    x: int
    y: int
    cols: int
    rows: int
    alternate: bool
    echo: str
    """`tty` (the terminal echoes), `editor` (raw mode: the program does), `none`."""
    typed: bytes

    @staticmethod
    def remember(id: str, offset: int, echo: str, typed: bytes) -> str:
        """The tmux format that keeps an input: tmux itself fills in where the cursor stands at that moment."""
        place = "#{cursor_x}:#{cursor_y}:#{pane_width}:#{pane_height}:#{alternate_on}"
        return f"{id}:{offset}:{place}:{echo}:{typed[:ECHO_LIMIT].hex()}"

    @classmethod
    def parse(cls, text: str) -> Input | None:
        """What `remember` made; None if nothing was ever sent."""
        parts = text.strip().split(":")
        if len(parts) != 9:
            return None
        offset, x, y, cols, rows, alternate = (int(part) for part in parts[1:7])
        return cls(parts[0], offset, x, y, cols, rows, bool(alternate), parts[7], bytes.fromhex(parts[8]))


class Write(NamedTuple):
    """One write: exact bytes, or keys (tmux arguments of send-keys); `enter` presses Enter after it."""

    id: str
    data: bytes = b""
    keys: Sequence[tuple[str, ...]] = ()
    enter: bool = False
    bracketed: bool = False
    secret: bool = False


def check_text(data: bytes, *, canonical: bool, bracketed: bool, multiline: bool) -> None:
    """Usage if this text cannot be typed exactly: too large, cut by the terminal, or escaping its bracket."""
    if len(data) > SIZE_LIMIT:
        raise Usage(
            f"{len(data)} bytes are more than one write may hold ({SIZE_LIMIT})",
            reason="too_large",
            hint="write a file, and let the program read it",
        )
    if bracketed and b"\x1b[201~" in data:
        raise Usage(
            "the text holds ESC[201~, which would end the bracketed paste",
            reason="bad_text",
            hint="send it without --paste",
        )
    lines = re.split(rb"[\r\n]", data)
    if canonical and max(map(len, lines)) > LINE_LIMIT:
        raise Usage(
            f"a line of {max(map(len, lines))} bytes would be cut: this terminal takes lines of at most {LINE_LIMIT}",
            reason="line_too_long",
            hint="write it to a file, and let the program read it",
        )
    if len(lines) > 1 and not bracketed and not multiline:
        raise Usage(
            "the text has several lines: the program would run each as it comes",
            reason="multiline",
            hint="add --multiline to send it so, or --paste where the program knows bracketed paste",
        )


def write(
    transport: Transport, holder: lease.Holder, pane: Pane, one: Write, remember: str, *, timeout: float = 10.0
) -> str:
    """Carry out one write in one command list: `done`, or `dup` when this id was written before.

    Raises Exited, Conflict (`human`, `leased`, `copy_mode`, `input_off`), and Unreachable `outcome_unknown` when tmux
    did not answer: the write may still happen, so it is never repeated here; asking again with the same id is safe.
    """
    buffer = "tmuxctl-" + os.urandom(8).hex()
    data = one.data + b"\r" if one.enter and one.data and not one.bracketed else one.data
    commands = _guarded(transport, holder, pane, one, buffer, remember)
    try:
        reply = transport.run(commands, buffer=(buffer, data) if data else None, timeout=timeout)
    except Unreachable as error:
        if error.reason != "backend_timeout":
            raise
        raise Unreachable(
            f"tmux did not say in time whether the text reached {pane.name}",
            reason="outcome_unknown",
            hint=f"ask again with the same id, which types it at most once: --id {one.id}",
            id=one.id,
        ) from None
    return _outcome(reply.decode(errors="replace").strip(), pane, one)


def _guarded(
    transport: Transport, holder: lease.Holder, pane: Pane, one: Write, buffer: str, remember: str
) -> list[Command]:
    here = pane.target
    # nobody is reading it (else refused below): leave copy mode, which would swallow the input
    leave = source([("send-keys", "-t", here, "-X", "cancel")])
    typing: list[Command] = [("if-shell", "-F", "-t", here, "#{pane_in_mode}", leave)]
    if one.data:
        flags = ("-p",) if one.bracketed else ()
        typing.append(("paste-buffer", "-d", "-r", *flags, "-b", buffer, "-t", here))
    typing += [("send-keys", "-t", here, *key) for key in one.keys]
    if one.enter and (one.bracketed or not one.data):
        typing.append(("send-keys", "-t", here, "-H", "0d"))
    typing += [
        ("set-option", "-F", "-t", here, "@tmuxctl_ack", f"#{{=-240:@tmuxctl_ack}} {one.id}"),
        ("set-option", "-F", "-t", here, "@tmuxctl_input", remember),
        ("set-option", "-t", here, "@tmuxctl_driver", f"tmuxctl[{holder.pid}]"),
        ("display-message", "-p", f"DONE {one.id}"),
    ]
    drop: list[Command] = [("delete-buffer", "-b", buffer)] if one.data else []
    refuse: list[Command] = [*drop, ("display-message", "-p", "-t", here, "REFUSED " + REPORT)]
    again: list[Command] = [*drop, ("display-message", "-p", f"DUP {one.id}")]
    person: list[Command] = [*drop, ("display-message", "-p", "HUMAN")]
    leased = lease.foreign(holder, pane, now=transport.clock(), machine=transport.machine)
    reading = "#{&&:#{pane_in_mode},#{session_attached}}"
    other = f"#{{!=:#{{@tmuxctl_id}},{pane.id}}}"
    unable = "0"
    for condition in (leased, reading, "#{pane_input_off}", "#{pane_dead}", other):
        unable = f"#{{||:{condition},{unable}}}"
    # dup before dead: a write that ended the program is still that write
    choose = source([("if-shell", "-F", "-t", here, unable, source(refuse), source(typing))])
    choose = source([("if-shell", "-F", "-t", here, lease.human(time.time()), source(person), choose)])
    return [("if-shell", "-F", "-t", here, f"#{{m:*{one.id}*,#{{@tmuxctl_ack}}}}", source(again), choose)]


def _outcome(reply: str, pane: Pane, one: Write) -> str:
    if reply == f"DONE {one.id}":
        return "done"
    if reply == f"DUP {one.id}":
        return "dup"
    name = pane.name
    if reply == "HUMAN":
        raise Conflict(
            f"a person is typing into {name}", reason="human", hint="try again when they pause, or after they detach"
        )
    if not reply.startswith("REFUSED "):
        raise Failed(f"tmux answered {ascii(reply[:80])} to a write into {name}", reason="tmux")
    facts = dict(word.partition("=")[::2] for word in reply.split()[1:])
    if facts["id"] != pane.id:
        raise NotFound(f"session {name} is another one by now", reason="replaced", hint="tmuxctl ls")
    if facts["dead"] == "1":
        raise ended(pane)
    if facts["off"] == "1":
        raise Conflict(
            f"input to {name} is switched off", reason="input_off", hint=f"tmux -L tmuxctl select-pane -e -t ={name}:"
        )
    if facts["lease"] and facts["mode"] == "0":
        raise lease.held(name)
    if facts["mode"] != "0":
        raise Conflict(
            f"a person is reading the history of {name} (copy mode)",
            reason="copy_mode",
            hint="try again when they are done",
        )
    raise NotFound(f"no session {name!r}", reason="no_session", hint="tmuxctl ls")


def ended(pane: Pane) -> Exited:
    """The error for a session whose program has ended."""
    how = f"by signal {pane.signal}" if pane.signal else f"with status {pane.status}"
    how = "" if pane.status is None and pane.signal is None else f" {how}"
    return Exited(
        f"the program in {pane.name} has ended{how}",
        reason="exited",
        hint=f"tmuxctl screen {pane.name}, or tmuxctl new {pane.name} --if-exists replace",
        exit_status=pane.status,
        signal=pane.signal,
    )
