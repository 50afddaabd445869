"""Typing: text goes in as exact bytes through a guarded paste, keys by name, each write once and acknowledged.

Every rule here was measured: `send-keys -l` drops a trailing `;` and takes words for keys; an unguarded paste into an
ended program crashes the tmux 3.3a server; copy mode swallows input; a cooked terminal cuts a line at 4,095 bytes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from tmuxctl.errors import Conflict, Exited, Failed, NotFound, Unreachable, Usage
from tmuxctl.terminal.tmux import lease, options
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Command, Guard, GuardRefused, Transport
from tmuxctl.transport.versions import exact_paste_flags

LINE_LIMIT = 4095
"""Bytes of one line a terminal in canonical mode takes; it cuts the rest silently (termios(3), measured)."""

SIZE_LIMIT = 16 << 20
"""Bytes of one write."""

BUFFER = "tmuxctl"
"""How a paste buffer's name begins. tmux 3.7 frees no name that `set-buffer` was given (measured): with an id behind it, this
one just fits into the smallest block of memory but one."""

ECHO_LIMIT = 2000
"""Bytes of the typed text remembered, so that a wait can leave its echo out."""


PERSON_READS_HISTORY = "#{&&:#{pane_in_mode},#{session_attached}}"
"""A tmux condition: a person may be reading the history."""


INPUT_SHARED = "#{&&:#{pane_synchronized},#{!=:#{window_panes},1}}"
"""A tmux condition: keys pressed in this pane reach the other panes of its window too."""


class LastInput(NamedTuple):
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
    at: float = 0.0
    """When it was sent, by the machine's monotonic clock in seconds."""

    @staticmethod
    def remember(pid: int, id: str, offset: int, echo: str, typed: bytes, at: float = 0.0) -> str:
        """The tmux format that keeps an input: who sent it and when, and tmux itself fills in where the cursor stands."""
        place = "#{cursor_x}:#{cursor_y}:#{pane_width}:#{pane_height}:#{alternate_on}"
        return f"{pid}:{id}:{offset}:{place}:{echo}:{at:.3f}:{typed[:ECHO_LIMIT].hex()}"

    def again(self, pid: int) -> str:
        """What `remember` made of it, with the cursor where it stood then: for a second write of the same input."""
        place = f"{self.x}:{self.y}:{self.cols}:{self.rows}:{self.alternate:d}"
        return f"{pid}:{self.id}:{self.offset}:{place}:{self.echo}:{self.at:.3f}:{self.typed[:ECHO_LIMIT].hex()}"

    @classmethod
    def parse(cls, text: str) -> LastInput | None:
        """What `remember` made, or the first `options.FACTS_SIZE` characters of it; None if nothing was ever sent."""
        parts = text.strip().split(":")[1:]
        if len(parts) != 10:
            return None
        try:
            offset, x, y, cols, rows, alternate = (int(part) for part in parts[1:7])
            at, typed = float(parts[8]), bytes.fromhex(parts[9][: len(parts[9]) // 2 * 2])
        except ValueError:
            # another version of tmuxctl wrote it
            return None
        return cls(parts[0], offset, x, y, cols, rows, bool(alternate), parts[7], typed, at)


class Write(NamedTuple):
    """One write: exact bytes, or keys (tmux arguments of send-keys); `enter` presses Enter after it."""

    id: str
    data: bytes = b""
    keys: Sequence[tuple[str, ...]] = ()
    enter: bool = False
    bracketed: bool = False
    fresh: bool = False
    """The id was made for this write: it cannot have been carried out before."""
    part: int | None = None
    """Which part of a write that is carried out in several, from 0 on."""

    @property
    def acknowledged(self) -> str:
        """What is kept in the session once it is carried out."""
        return self.id if self.part is None else f"{self.id}p{self.part}"


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


def carry_out(
    transport: Transport, holder: lease.LeaseHolder, pane: Pane, write: Write, remember: str, *, timeout: float = 8.0
) -> str:
    """Carry out one write in one command list: `done`, or `dup` when this id was written before.

    Raises Exited, Conflict (`human`, `leased`, `copy_mode`, `input_off`), and Unreachable `outcome_unknown` when tmux
    did not answer: the write may still happen, so it is never repeated here; asking again with the same id is safe.
    """
    try:
        if write.fresh and _run_write(transport, _build_short_list(pane, write, remember), write, timeout) is None:
            return "done"
        forbidden = _run_write(transport, _build_guarded_list(transport, holder, pane, write, remember), write, timeout)
        if forbidden is None:
            return "done"
        if write.data:
            transport.run([("delete-buffer", "-b", BUFFER + write.id)], timeout=timeout)
    except Unreachable as error:
        if error.reason != "backend_timeout":
            raise
        raise Unreachable(
            f"tmux did not say in time whether the text reached {pane.name}",
            reason="outcome_unknown",
            hint=f"ask again with the same id, which types it at most once: --id {write.id}",
            id=write.id,
        ) from None
    return _raise_refusal(forbidden, pane, write)


def _run_write(transport: Transport, commands: Sequence[Command], write: Write, timeout: float) -> str | None:
    """None if it was carried out, else its guard's answer; the text is then still in the paste buffer."""
    data = write.data + b"\r" if write.enter and write.data and not write.bracketed else write.data
    buffer = (BUFFER + write.id, data) if data else None
    try:
        printed = transport.run(commands, buffer=buffer, timeout=timeout)
    except GuardRefused as refused:
        return refused.answer
    if printed.strip():
        name = ascii(printed[:80].decode(errors="replace"))
        raise Failed(f"tmux answered {name} to a write", reason="tmux")
    return None


def _build_short_list(pane: Pane, write: Write, remember: str) -> list[Command]:
    """The list for a write that nothing forbids: one comparison, a third of the time that testing each reason takes."""
    state = f"#{{{options.ID}}} #{{pane_dead}}#{{pane_input_off}}#{{pane_in_mode}} #{{session_attached}} #{{{options.LEASE}}}"
    clear = f"#{{==:{state},{pane.id} 000 0 }}"
    if _presses_keys(write):
        clear = f"#{{?{INPUT_SHARED},0,{clear}}}"
    return [Guard(pane.target, clear), *_build_typing(pane, write, remember)]


def _build_typing(pane: Pane, write: Write, remember: str) -> list[Command]:
    """The commands that acknowledge, remember and type: typing last, as the program wakes at once and takes the processor."""
    target = pane.target
    typing: list[Command] = []
    if write.data:
        flags = ("-p",) if write.bracketed else ()
        exact = exact_paste_flags(pane.version)
        typing.append(("paste-buffer", "-d", *exact, *flags, "-b", BUFFER + write.id, "-t", target))
    typing += [("send-keys", "-t", target, *key) for key in write.keys]
    if write.enter and _presses_keys(write):
        typing.append(("send-keys", "-t", target, "-H", "0d"))
    acknowledged = f"#{{=-240:{options.ACKNOWLEDGED}}} {write.acknowledged}"
    return [
        ("set-option", "-F", "-t", target, options.ACKNOWLEDGED, acknowledged),
        ("set-option", "-F", "-t", target, options.INPUT, remember),
        *typing,
    ]


def _presses_keys(write: Write) -> bool:
    """True if a part of it goes as keys, not as data: tmux copies those, and only those, into other panes."""
    return bool(write.keys) or (write.enter and (write.bracketed or not write.data))


def _build_guarded_list(
    transport: Transport, holder: lease.LeaseHolder, pane: Pane, write: Write, remember: str
) -> list[Command]:
    """The list with one guard that answers all that forbids the write, else types, acknowledges and remembers it."""
    target = pane.target
    facts = {
        "other": f"#{{!=:#{{{options.ID}}},{pane.id}}}",
        "dup": f"#{{m:*{write.acknowledged}*,#{{{options.ACKNOWLEDGED}}}}}",
        "human": lease.person_types(time.time()),
        "dead": "#{pane_dead}",
        "off": "#{pane_input_off}",
        "copying": PERSON_READS_HISTORY,
        "leased": lease.held_by_other(holder, pane, now=transport.clock(), machine=transport.machine),
    }
    if _presses_keys(write):
        facts["shared"] = INPUT_SHARED
    forbidden = "0"
    for condition in facts.values():
        forbidden = f"#{{||:{condition},{forbidden}}}"
    answer = " ".join(f"{name}=#{{?{condition},1,0}}" for name, condition in facts.items())
    guard = Guard(target, f"#{{?{forbidden},0,1}}", answer)
    # no person reads the history (else the guard refuses): leave copy mode, which would swallow the input
    return [guard, ("copy-mode", "-q", "-t", target), *_build_typing(pane, write, remember)]


def _raise_refusal(answer: str, pane: Pane, write: Write) -> str:
    """`dup`, or what forbade the write as an error."""
    name = pane.name
    facts = {word.partition("=")[0] for word in answer.split() if word.endswith("=1")}
    if "other" in facts:
        raise NotFound(f"session {name} is another one by now", reason="replaced", hint="tmuxctl ls")
    if "dup" in facts:
        # even if the program has ended: a write that ended it is still that write
        return "dup"
    if "dead" in facts:
        raise ended_error(pane)
    if "human" in facts:
        raise Conflict(
            f"a person is typing into {name}", reason="human", hint="try again when they pause, or after they detach"
        )
    if "off" in facts:
        raise Conflict(
            f"input to {name} is switched off", reason="input_off", hint="switch it on there: tmux select-pane -e"
        )
    if "leased" in facts:
        raise lease.leased_error(name)
    if "shared" in facts:
        raise Conflict(
            f"what is pressed in {name} would reach other panes too (synchronize-panes)",
            reason="shared",
            hint="text that is sent without --paste reaches this pane alone",
        )
    raise Conflict(
        f"a person is reading the history of {name} (copy mode)",
        reason="copy_mode",
        hint="try again when they are done",
    )


def ended_error(pane: Pane) -> Exited:
    """The error for a session whose program has ended."""
    how = f"by signal {pane.signal}" if pane.signal else f"with status {pane.status}"
    how = "" if pane.status is None and pane.signal is None else f" {how}"
    return Exited(
        f"the program in {pane.name} has ended{how}",
        reason="exited",
        hint=f"its output: tmuxctl log {pane.name}; start it again: tmuxctl new {pane.name} --if-exists replace -- CMD",
        exit_status=pane.status,
        signal=pane.signal,
    )
