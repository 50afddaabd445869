"""This terminal as a page that is drawn anew and keys that come one by one; given back as it was."""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from tmuxctl.surfaces.cli.printing import color
from tmuxctl.surfaces.cli.printing.output import clean, unicode_out
from tmuxctl.surfaces.cli.top.pages import Piece, Styled
from tmuxctl.timing import TIMING

ESCAPE = "\x1b"

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?1000h\x1b[?1006h"
"""The alternate screen, no cursor, and no wrapping: a line that is wider than it was counted spoils no other. Clicks of the
mouse are told as SGR mouse reports (xterm)."""

LEAVE = "\x1b[m\x1b[?1006l\x1b[?1000l\x1b[?7h\x1b[?25h\x1b[?1049l"

ATTRIBUTES = {"bold": "1", "dim": "2", "reverse": "7", "key": "1", "error": "1;31"}
"""The SGR attributes (ECMA-48) of the styles that are no states."""

PLAIN = {"asking": "1", "exited": "2", "lost": "2", "error": "1"}
"""What stands in for a colour where there may be none."""

SEQUENCES = {
    "[A": "up", "[B": "down", "OA": "up", "OB": "down", "[H": "home", "[F": "end", "OH": "home", "OF": "end",
    "[1~": "home", "[4~": "end", "[7~": "home", "[8~": "end", "[5~": "pageup", "[6~": "pagedown",
}  # fmt: skip
"""The keys that terminals send as sequences, behind their escape (xterm, and the console's Home and End)."""

MOUSE = re.compile(r"\[<([0-9]{1,3});([0-9]{1,5});([0-9]{1,5})M")
WHEEL = {64: "wheelup", 65: "wheeldown"}

CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x0c": "redraw",
    "\x15": "clear",
    "\t": "tab",
}


class Terminal:
    """The terminal of standard input and output, from `with` to the end of it. `colors`: whether colour may be used."""

    def __init__(self, *, colors: bool) -> None:
        self._input, self._output = sys.stdin.fileno(), sys.stdout.fileno()
        self._encoding = sys.stdout.encoding or "utf-8"
        self.colors = colors
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._drawn: list[str] = []
        self._painted: dict[int, tuple[Sequence[Piece | Styled], str]] = {}
        """The lines that were drawn last, by what they are, with their SGR sequences."""
        self._size = (0, 0)
        self._stopped = False
        # never closed: a thread may ring to the end
        self._bell, self._ringer = os.pipe()
        for end in (self._bell, self._ringer):
            os.set_blocking(end, False)

    def __enter__(self) -> Terminal:
        self._before = termios.tcgetattr(self._input)
        self._handlers = {
            number: signal.signal(number, self._heard) for number in (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)
        }
        self._enter()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Give the terminal to another program meanwhile."""
        self._leave()
        try:
            yield
        finally:
            self._enter()

    def ring(self) -> None:
        """Wake `pressed`; any thread may."""
        with suppress(OSError):
            os.write(self._ringer, b"!")

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            found = os.get_terminal_size(self._output)
        except OSError:
            return 80, 24
        return found.columns or 80, found.lines or 24

    def draw(self, lines: Sequence[Sequence[Piece | Styled]]) -> None:
        """Put these lines on the terminal; only those that changed are written."""
        before, self._painted = self._painted, {}
        for line in lines:
            known = before.get(id(line))
            self._painted[id(line)] = (
                known if known and known[0] is line else (line, paint_line(line, colors=self.colors))
            )
        self.show([self._painted[id(line)][1] for line in lines])

    def show(self, rows: Sequence[str]) -> None:
        """The same of rows that hold text and SGR sequences only, each no wider than the terminal."""
        out = []
        size = self.size
        if size != self._size:
            self._size, self._drawn = size, []
            out.append("\x1b[m\x1b[2J")
        for number, text in enumerate(rows):
            if number >= len(self._drawn) or self._drawn[number] != text:
                out.append(f"\x1b[{number + 1};1H\x1b[m\x1b[2K{text}")
                self._drawn[number : number + 1] = [text]
        if out:
            self._write("".join(out))

    def sound(self) -> None:
        """Ring the bell."""
        self._write("\a")

    def redraw(self) -> None:
        """Draw every line anew the next time."""
        self._size = (0, 0)

    def pressed(self, timeout: float | None = None) -> list[str]:
        """Sleep until keys are pressed, somebody rings or `timeout` seconds have passed, and return the keys: printed characters
        as they are, others by name (`up`, `enter`, `escape`). EOFError if the terminal is gone."""
        ready, _, _ = select.select([self._input, self._bell], [], [], timeout)
        if self._bell in ready:
            os.read(self._bell, 4096)
        if self._stopped:
            self._stop()
        return self._names() if self._input in ready else []

    def _names(self) -> list[str]:
        found: list[str] = []
        while True:
            self._rest += self._read()
            names, self._rest = parse(self._rest)
            found += names
            if not self._rest:
                return found
            if not select.select([self._input], [], [], TIMING.page.escape_seconds)[0]:
                found += ["escape"] if self._rest == ESCAPE else []
                self._rest = ""
                return found

    def _read(self) -> str:
        try:
            data = os.read(self._input, 4096)
        except OSError as error:
            raise EOFError from error
        if not data:
            raise EOFError
        return self._decoder.decode(data)

    def _write(self, text: str) -> None:
        data = text.encode(self._encoding, "replace")
        try:
            while data:
                data = data[os.write(self._output, data) :]
        except OSError as error:
            raise EOFError from error

    # coming and going

    def _enter(self) -> None:
        modes: list[Any] = termios.tcgetattr(self._input)
        modes[3] &= ~(termios.ECHO | termios.ICANON)
        modes[6] = [*modes[6]]
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
        with suppress(termios.error):
            termios.tcsetattr(self._input, termios.TCSADRAIN, modes)
        self.redraw()
        self._write(ENTER)

    def _leave(self) -> None:
        with suppress(EOFError):
            self._write(LEAVE)
        with suppress(termios.error):
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self._stopped = self._stopped or number == signal.SIGTSTP
        if number == signal.SIGCONT:
            self.redraw()
        self.ring()

    def _stop(self) -> None:
        """Stop as a shell expects of a job (Ctrl-Z), and go on where the terminal is ours again."""
        self._stopped = False
        with self.away():
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            # not SIGSTOP: where nobody could let us go on, the kernel ignores this one
            signal.raise_signal(signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, self._heard)


def paint_line(line: Sequence[Piece | Styled], *, colors: bool) -> str:
    """A line with the SGR sequences of its styles, or without colours."""
    styles = ATTRIBUTES | (color.STATES if colors else PLAIN)

    def paint(piece: Piece | Styled) -> str:
        if isinstance(piece, Styled):
            return piece.text
        found = (styles.get(word) for word in piece.style.split())
        return color.paint(clean(piece.text), ";".join(filter(None, found)))

    text = "".join(map(paint, line))
    return text if unicode_out() else text.replace("…", "~")


def parse(text: str) -> tuple[list[str], str]:
    """The keys in what a terminal sent, and what may be the beginning of another one. Unknown sequences are no keys."""
    found: list[str] = []
    while text:
        if text[0] != ESCAPE:
            found += _plain(text[0])
            text = text[1:]
            continue
        length = _sequence(text)
        if length is None:
            break
        if length == 1:
            found.append("escape")
        elif text[1:length] in SEQUENCES:
            found.append(SEQUENCES[text[1:length]])
        elif report := MOUSE.fullmatch(text[1:length]):
            found += _mouse_keys(*map(int, report.groups()))
        text = text[length:]
    return found, text


def _mouse_keys(button: int, column: int, row: int) -> list[str]:
    """A mouse report as a key: a turn of the wheel, or where the first button was pressed, counted from 0."""
    if button in WHEEL:
        return [WHEEL[button]]
    return [f"click {column - 1} {row - 1}"] if button == 0 else []


def _plain(character: str) -> list[str]:
    if character in CONTROLS:
        return [CONTROLS[character]]
    return [character] if character.isprintable() else []


def _sequence(text: str) -> int | None:
    """How long the sequence is that the text begins with (ECMA-48: escape, `[` or `O`, parameters, a final letter); 1 for
    an escape alone, None if more is to come."""
    if len(text) == 1:
        return None
    if text[1] == "O":
        return 3 if len(text) > 2 else None
    if text[1] != "[":
        # Alt and a character, unless that begins a key of its own
        return 1 if text[1] == ESCAPE else 2
    for number, character in enumerate(text[2:], 2):
        if "\x40" <= character <= "\x7e":
            return number + 1
    return None
