"""Typing: text goes in as exact bytes through a guarded paste, keys by name, each write once and acknowledged.

Every rule here was measured: `send-keys -l` drops a trailing `;` and takes words for keys; an unguarded paste into an
ended program crashes the tmux 3.3a server; copy mode swallows input; a cooked terminal cuts a line at 4,095 bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from tmuxctl import milestones
from tmuxctl.errors import Conflict, Exited, Unreachable, Usage
from tmuxctl.operations import current
from tmuxctl.terminal.tmux import lease, options
from tmuxctl.terminal.tmux.journal import Journal
from tmuxctl.terminal.tmux.pane_io import READS_HISTORY, Comparison, Condition, FieldTest, PaneIO
from tmuxctl.terminal.tmux.server import Pane, replaced_error
from tmuxctl.terminal.tmux.timeline import Moment, shorten
from tmuxctl.transport import segments
from tmuxctl.transport.base import Command
from tmuxctl.transport.versions import exact_paste_flags
from tmuxctl.value import Value
from tmuxctl.vocabulary import MomentKind

LINE_LIMIT = 4095
"""Bytes of one line a terminal in canonical mode takes; it cuts the rest silently (termios(3), measured)."""

SIZE_LIMIT = 16 << 20
"""Bytes of one write."""

BUFFER = "tmuxctl"
"""How a paste buffer's name begins. tmux 3.7 frees no name that `set-buffer` was given (measured): with an id behind it, this
one just fits into the smallest block of memory but one."""

GIVEN = "given"
"""Why a text is not given that another process gave, or took back."""

ECHO_LIMIT = 2000
"""Bytes of the typed text remembered, so that a wait can leave its echo out."""


NO_CONDITIONS: Mapping[str, Condition] = MappingProxyType({})

TOUCHED = "touched"
"""Begins the words for what another writer did."""

INPUT_SHARED = (FieldTest("pane_synchronized"), FieldTest("window_panes", Comparison.DIFFERS, "1"))
"""Keys pressed in this pane reach the other panes of its window too."""


class LastInput(Value):
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
    def remember(pid: int, id: str, offset: int | str, echo: str, typed: bytes, at: float = 0.0) -> str:
        """The tmux format that keeps an input: who sent it and when, and tmux itself fills in where the cursor stands."""
        place = "#{cursor_x}:#{cursor_y}:#{pane_width}:#{pane_height}:#{alternate_on}"
        return f"{pid}:{id}:{offset}:{place}:{echo}:{at:.3f}:{typed[:ECHO_LIMIT].hex()}"

    def again(self, pid: int) -> str:
        """What `remember` made of it, with the cursor where it stood then: for a second write of the same input."""
        place = f"{self.x}:{self.y}:{self.cols}:{self.rows}:{self.alternate:d}"
        return f"{pid}:{self.id}:{self.offset}:{place}:{self.echo}:{self.at:.3f}:{self.typed[:ECHO_LIMIT].hex()}"

    @classmethod
    def sent(cls, id: str, offset: int, pane: Pane, echo: str, typed: bytes, at: float) -> LastInput:
        """An input that is sent where the cursor stands by the facts of its session."""
        return cls(id, offset, pane.x, pane.y, pane.cols, pane.rows, pane.alternate, echo, typed, at)

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


class Write(Value):
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


class OnceMark(Value):
    """What lets only one of several processes submit the same text: an option of the session that has to be as it was when the
    text was read, and that the key which submits it changes, in the same command list."""

    option: str
    before: str
    after: str
    place: str = ""
    """An option that keeps where the text stands, for who goes on with its turn; none unless it is named."""

    def new_id(self) -> str:
        """An id for a write of the text: each try has its own, and all of them tell what the option gets (`read_id`)."""
        return self.after + os.urandom(4).hex()

    @staticmethod
    def read_id(write_id: str) -> str:
        """What the option gets with the text of this write, if it is one with a mark."""
        return write_id[:-8]

    @property
    def was_set(self) -> dict[str, Condition]:
        """The reason against the text that another process has changed the option."""
        return {GIVEN: (FieldTest(self.option, Comparison.DIFFERS, self.before),)}

    def values(self, first: str = "", lines: int = 1, history: int = 0) -> dict[str, str | None]:
        """What the options get with the key that submits the text, or these `lines` of it: `first` is its first input as
        `LastInput` is kept, before which so many rows had scrolled away."""
        kept: dict[str, str | None] = {self.option: self.after}
        if self.place and first:
            # the text itself is what the call that goes on with it gives
            kept[self.place] = f"{lines} {history} {first.rpartition(':')[0]}:"
        return kept


class CarriedOut(Value):
    """What became of a write: `done`, or `dup` when its id was written before; and the values of the fields asked for, from
    the moment before anything was typed, none of a `dup`. `offset` is how far the journal had come, where that was asked."""

    result: str
    values: Sequence[str]
    offset: int | None = None


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
    lines = re.split(rb"[\r\n]", data) if b"\n" in data or b"\r" in data else [data]
    if canonical and max(map(len, lines)) > LINE_LIMIT:
        raise Usage(
            f"a line of {max(map(len, lines))} bytes would be cut: this terminal takes lines of at most {LINE_LIMIT}",
            reason="line_too_long",
            hint="write it to a file, and let the program read it",
        )
    if len(lines) > 1 and not bracketed and not multiline:
        raise Usage(
            "the text has several lines: the program would run each line as it arrives",
            reason="multiline",
            hint="add --multiline to send it anyway, or --paste if the program supports bracketed paste",
        )


def carry_out(
    io: PaneIO,
    holder: lease.LeaseHolder,
    pane: Pane,
    write: Write,
    remember: str,
    *,
    fields: Sequence[str] = (),
    values: Mapping[str, str | None] = lease.NO_VALUES,
    against: Mapping[str, Condition] = NO_CONDITIONS,
    journal: Journal | None = None,
    timeout: float = 8.0,
) -> CarriedOut:
    """Carry out one write in one command list, which also sets `values` of options and asks for `fields`; with a `journal` for
    its end too, which stands in the place of `segments.END` in `remember`. `against` are further reasons not to type: that
    another writer was there since the caller looked (`TOUCHED`), or that the text was given (`GIVEN`).

    Raises Denied `own_session`, Exited, Conflict (`human`, `leased`, `copy_mode`, `input_off`, `given`), and Unreachable
    `outcome_unknown` when tmux did not answer: the write may still happen, so it is never repeated here; asking again
    with the same id is safe.
    """
    if (caller := current().caller) and io.transport.pid is not None:
        caller.refuse_own(pane.name, pane.id, pane.pid)
    keys = _presses_keys(write)
    clear = {options.ID: pane.id, "pane_dead": "0", "pane_input_off": "0", "pane_in_mode": "0"}
    clear |= {"session_attached": "0", options.LEASE: "", **({"pane_synchronized": "0"} if keys else {})}
    data = write.data + b"\r" if write.enter and write.data and not write.bracketed else write.data
    try:
        done = io.change_and_look(
            pane.name,
            {options.ACKNOWLEDGED: write.acknowledged, options.INPUT: remember, **values},
            _list_typing(pane, write),
            fields=fields,
            journal=journal,
            buffer=(BUFFER + write.id, data) if data else None,
            unless=partial(_reasons_against, io, holder, pane, write, against),
            clear=clear if write.fresh and not against else None,
            timeout=timeout,
        )
    except Unreachable as error:
        if error.reason not in ("backend_timeout", "connection_lost"):
            raise
        raise Unreachable(
            f"tmux did not say in time whether the text reached {pane.name}",
            reason="outcome_unknown",
            hint=f"repeat it with the same id, which types it at most once: --id {write.id}",
            id=write.id,
        ) from None
    if done.reasons:
        return CarriedOut(_raise_refusal(done.reasons, pane), done.values)
    _note_input(io, pane, write, remember.replace(segments.END, str(done.offset)))
    milestones.reach("typed", pane.name)
    return CarriedOut("done", done.values, done.offset)


def _note_input(io: PaneIO, pane: Pane, write: Write, remember: str) -> None:
    """Keep in the timeline when this was typed, unless it is a later part of an input. What the terminal did not show is left
    out: it may be a secret."""
    sent = LastInput.parse(re.sub(r"#\{\w+\}", "0", remember))
    if sent is None or sent.id != write.id or write.part:
        return
    text = sent.typed.decode("utf-8", "replace") if sent.echo != "none" else ""
    io.open_timeline(pane).add(
        Moment(MomentKind.INPUT, sent.offset, io.transport.wall(), shorten(text or _name_keys(write)))
    )


def _name_keys(write: Write) -> str:
    """The keys of a write by their names, but those that write a character: a secret may be typed key by key."""
    keys = [key for group in write.keys for key in group]
    return " ".join(f"<{key}>" for key in keys if len(key) > 1 and not key.startswith("-"))


def _reasons_against(
    io: PaneIO, holder: lease.LeaseHolder, pane: Pane, write: Write, against: Mapping[str, Condition]
) -> dict[str, Condition]:
    """What forbids this write."""
    return {
        "other": (FieldTest(options.ID, Comparison.DIFFERS, pane.id),),
        "dup": (FieldTest(options.ACKNOWLEDGED, Comparison.HOLDS, write.acknowledged),),
        "human": lease.person_types(io.transport.wall()),
        "dead": (FieldTest("pane_dead"),),
        "off": (FieldTest("pane_input_off"),),
        "copying": (FieldTest(READS_HISTORY),),
        "leased": lease.held_by_other(io, holder, pane),
        **({"shared": INPUT_SHARED} if _presses_keys(write) else {}),
        **against,
    }


def _list_typing(pane: Pane, write: Write) -> list[Command]:
    """The commands that type, without their target."""
    typing: list[Command] = []
    if write.data:
        flags = (*exact_paste_flags(pane.version), *(("-p",) if write.bracketed else ()))
        typing.append(("paste-buffer", "-d", *flags, "-b", BUFFER + write.id))
    typing += [("send-keys", *key) for key in write.keys]
    if write.enter and _presses_keys(write):
        typing.append(("send-keys", "-H", "0d"))
    return typing


def _presses_keys(write: Write) -> bool:
    """True if a part of it goes as keys, not as data: tmux copies those, and only those, into other panes."""
    return bool(write.keys) or (write.enter and (write.bracketed or not write.data))


def _raise_refusal(reasons: Collection[str], pane: Pane) -> str:
    """`dup`, or what forbade the write as an error."""
    name = pane.name
    if "other" in reasons:
        raise replaced_error(name)
    if "dup" in reasons:
        # even if the program has ended: a write that ended it is still that write
        return "dup"
    if "dead" in reasons:
        raise ended_error(pane)
    if GIVEN in reasons:
        raise Conflict(f"another process gave this text to {name}", reason=GIVEN, hint=f"tmuxctl read {name}")
    if "human" in reasons:
        raise Conflict(
            f"a person is typing into {name}", reason="human", hint="try again when they pause, or after they detach"
        )
    if "off" in reasons:
        raise Conflict(
            f"input to {name} is switched off", reason="input_off", hint="switch it on there: tmux select-pane -e"
        )
    if "leased" in reasons or any(reason.startswith(TOUCHED) for reason in reasons):
        raise lease.leased_error(name)
    if "shared" in reasons:
        raise Conflict(
            f"keys pressed in {name} would reach other panes too (synchronize-panes)",
            reason="shared",
            hint="text sent without --paste reaches only this pane",
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
