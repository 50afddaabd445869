"""Cuts a program's raw output into what tmux acts on and gives it to a Grid.

The states are those of tmux's own parser (input.c), after Paul Williams' diagram of the VT500. Text and whole
sequences are taken by one expression; anything cut, interrupted or odd goes through the states byte by byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from tmuxctl.terminal.picture.grid import Grid
from tmuxctl.terminal.picture.sgr import number_at, parse_parameters, pyte_codes

_TOKEN = re.compile(
    rb"([\x20-\x7e\x80-\xff]+)"
    rb"|\x1b\[([0-9:;]*)m"
    rb"|([\x00-\x1a\x1c-\x1f\x7f])"
    rb"|\x1b\[([<-?]?[0-9:;]*[ -/]*[@-~])"
    rb"|\x1b([ -/]+[0-~]|[0-OQ-WYZ\\`-jl-~])"
)
_CSI = re.compile(rb"([<-?]?)([0-9:;]*)([ -/]*)([@-~])")
_SGR = re.compile(rb"([0-9:;]*)m")
_DCS_HEADER = re.compile(rb"[<-?]?[0-9;]*[ -/]*[@-~]")
# a lead byte takes as many of the following high bytes as it asks for, right or not
_CHARACTERS = re.compile(rb"[ -~]+|[\xc2-\xdf][\x80-\xff]?|[\xe0-\xef][\x80-\xff]{0,2}|[\xf0-\xf4][\x80-\xff]{0,3}")
_LENGTHS = ((0xF0, 4), (0xE0, 3), (0xC2, 2))
_INTERMEDIATES = 3
_STYLES_KEPT = 4096

# Sequences with one count, 1 unless given
_COUNTED: dict[bytes, Callable[[Grid, int], None]] = {
    b"@": Grid.insert_characters, b"A": Grid.cursor_up, b"B": Grid.cursor_down, b"C": Grid.cursor_forward,
    b"D": Grid.cursor_back, b"E": Grid.cursor_down1, b"F": Grid.cursor_up1, b"G": Grid.cursor_to_column,
    b"`": Grid.cursor_to_column, b"L": Grid.insert_lines, b"M": Grid.delete_lines, b"P": Grid.delete_characters,
    b"S": Grid.scroll_up, b"T": Grid.scroll_down, b"X": Grid.erase_characters, b"Z": Grid.back_tab,
    b"b": Grid.repeat, b"d": Grid.cursor_to_line,
}  # fmt: skip
# Sequences with one selector, 0 unless given
_SELECTED: dict[bytes, Callable[[Grid, int], None]] = {
    b"J": Grid.erase_in_display,
    b"K": Grid.erase_in_line,
    b"g": Grid.clear_tab_stop,
}
_PLACED: dict[bytes, Callable[[Grid, int, int], None]] = {
    b"H": Grid.cursor_position,
    b"f": Grid.cursor_position,
    b"r": Grid.set_margins,
}
_SWITCHED: dict[bytes, Callable[[Grid, int], None]] = {
    b"h": Grid.set_mode,
    b"?h": lambda grid, mode: grid.set_mode(mode, private=True),
    b"l": Grid.reset_mode,
    b"?l": lambda grid, mode: grid.reset_mode(mode, private=True),
}
_KNOWN = {*_COUNTED, *_SELECTED, *_PLACED}
_LAST_ROW = 0x7FFFFFFF
_BARE = {b"s": Grid.save_cursor, b"u": Grid.restore_cursor}
# Answered or noted by tmux without a change of the grid; they end what REP can repeat
_ANSWERED = {b"c", b">c", b"n", b">n", b">m", b"t", b" q", b">q"}
_ESCAPES: dict[bytes, Callable[[Grid], None]] = {
    b"(0": lambda grid: grid.define_charset("0", "("),
    b")0": lambda grid: grid.define_charset("0", ")"),
    b"(B": lambda grid: grid.define_charset("B", "("),
    b")B": lambda grid: grid.define_charset("B", ")"),
    b"7": Grid.save_cursor,
    b"8": Grid.restore_cursor,
    b"#8": Grid.alignment_display,
    b"D": Grid.index,
    b"E": Grid.next_line,
    b"H": Grid.set_tab_stop,
    b"M": Grid.reverse_index,
    b"c": Grid.reset,
    b"=": lambda grid: None,
    b">": lambda grid: None,
    b"\\": lambda grid: None,
}
_CONTROLS: dict[int, Callable[[Grid], None]] = {
    0x08: Grid.backspace,
    0x09: Grid.tab,
    0x0A: Grid.linefeed,
    0x0B: Grid.linefeed,
    0x0C: Grid.linefeed,
    0x0D: Grid.carriage_return,
    0x0E: Grid.shift_out,
    0x0F: Grid.shift_in,
}


class OutputFilter:
    """Feeds a Grid. Sequences and characters may be cut anywhere between two feeds."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.state: Callable[[bytes, int], int] = self._read_ground
        self.collected = bytearray()
        self.partial = b""
        self.styles: dict[tuple[object, bytes], object] = {}

    def feed(self, data: bytes) -> None:
        """Act on the next bytes of the output."""
        position = 0
        while position < len(data):
            position = self.state(data, position)

    # --- states: each takes what it can from `position` on and returns the place behind it

    def _read_ground(self, data: bytes, position: int) -> int:
        match, size = _TOKEN.match, len(data)
        while position < size:
            found = match(data, position)
            if not found:
                return self._enter_state(self._read_escape, position + 1)
            position = found.end()
            kind = found.lastindex
            if kind == 1:
                self._draw_text(found[1])
            elif kind == 2:
                self._act_on_style(found[2])
            elif kind == 3:
                self._act_on_control(data[position - 1])
            elif kind == 4:
                self._act_on_csi(found[4])
            else:
                self._act_on_escape(found[5])
        return position

    def _enter_state(self, state: Callable[[bytes, int], int], position: int) -> int:
        self.state = state
        self.collected.clear()
        return position

    def _interrupts(self, byte: int) -> bool:
        """Whether a byte ends any sequence (CAN, SUB) or starts another (ESC); other controls act within it."""
        if byte in (0x18, 0x1A):
            self._act_on_control(byte)
            self._enter_state(self._read_ground, 0)
            return True
        if byte == 0x1B:
            self._enter_state(self._read_escape, 0)
            return True
        return False

    def _read_escape(self, data: bytes, position: int) -> int:
        while position < len(data):
            byte = data[position]
            position += 1
            if self._interrupts(byte):
                return position
            if byte < 0x20:
                self._act_on_control(byte)
            elif byte < 0x30:
                self.collected.append(byte)
            elif byte < 0x7F:
                return self._read_introducer(byte, position)
        return position

    def _read_introducer(self, byte: int, position: int) -> int:
        introducers = {ord("["): self._read_csi, ord("]"): self._skip_command, ord("P"): self._read_device_header}
        introducers.update(dict.fromkeys(b"X^_k", self._skip_string))
        if byte in introducers and not self.collected:
            if byte != ord("["):
                self.grid.last = ""
            return self._enter_state(introducers[byte], position)
        sequence = bytes([*self.collected, byte])
        self._enter_state(self._read_ground, position)
        self._act_on_escape(sequence)
        return position

    def _read_csi(self, data: bytes, position: int) -> int:
        while position < len(data):
            byte = data[position]
            position += 1
            if self._interrupts(byte):
                return position
            if byte < 0x20:
                self._act_on_control(byte)
            elif byte < 0x7F:
                self.collected.append(byte)
                if byte >= 0x40:
                    sequence = bytes(self.collected)
                    self._enter_state(self._read_ground, position)
                    self._act_on_csi(sequence)
                    return position
        return position

    def _skip_command(self, data: bytes, position: int) -> int:
        """OSC: to BEL, or to what ends any sequence."""
        return self._skip(data, position, _END_OF_COMMAND)

    def _skip_string(self, data: bytes, position: int) -> int:
        """SOS, PM, APC, a window title: to what ends any sequence; BEL is part of it."""
        return self._skip(data, position, _END_OF_STRING)

    def _skip(self, data: bytes, position: int, end: re.Pattern[bytes]) -> int:
        found = end.search(data, position)
        if not found:
            return len(data)
        if not self._interrupts(found[0][0]):
            self._enter_state(self._read_ground, 0)
        return found.end()

    def _read_device_header(self, data: bytes, position: int) -> int:
        """DCS up to its final byte."""
        while position < len(data):
            byte = data[position]
            position += 1
            if self._interrupts(byte):
                return position
            if 0x20 <= byte < 0x7F:
                self.collected.append(byte)
                if byte >= 0x40:
                    known = _DCS_HEADER.fullmatch(bytes(self.collected))
                    return self._enter_state(self._skip_device_data if known else self._skip_string, position)
        return position

    def _skip_device_data(self, data: bytes, position: int) -> int:
        """The data of a DCS: only ESC \\ ends it."""
        while position < len(data):
            if self.collected:
                self.collected.clear()
                if data[position] == ord("\\"):
                    return self._enter_state(self._read_ground, position + 1)
                position += 1
                continue
            at = data.find(b"\x1b", position)
            if at < 0:
                return len(data)
            self.collected.append(0x1B)
            position = at + 1
        return position

    # --- what was found

    def _draw_text(self, run: bytes) -> None:
        if self.partial:
            run, self.partial = (self.partial + run if run[0] >= 0x80 else run), b""
        try:
            text = run.decode()
        except UnicodeDecodeError:
            text = self._mend_text(run)
        self.grid.last = text[-1:] if run[-1] < 0x80 else ""
        if text:
            self.grid.draw(text)

    def _mend_text(self, run: bytes) -> str:
        """The valid characters of a run; an unfinished one at its end waits for the next bytes."""
        parts = _CHARACTERS.findall(run)
        if parts and run[-1] >= 0x80 and len(parts[-1]) < _character_length(parts[-1][0]):
            self.partial = parts.pop()
        return "".join(map(_decode_character, parts))

    def _act_on_control(self, byte: int) -> None:
        if byte != 0x7F:
            self.partial = b""
            self.grid.last = ""
            action = _CONTROLS.get(byte)
            if action:
                action(self.grid)

    def _act_on_escape(self, sequence: bytes) -> None:
        action = _ESCAPES.get(sequence)
        if action:
            action(self.grid)
            self.grid.last = ""

    def _act_on_csi(self, sequence: bytes) -> None:
        style = _SGR.fullmatch(sequence)
        if style:
            self._act_on_style(style[1])
            return
        steps = _plan_steps(sequence)
        if steps is not None:
            for action, arguments in steps:
                action(self.grid, *arguments)
            self.grid.last = ""

    def _act_on_style(self, text: bytes) -> None:
        self.grid.last = ""
        cursor = self.grid.cursor
        key = (cursor.attrs, text)
        style = self.styles.get(key)
        if style is None:
            codes = pyte_codes(text)
            if codes:  # without any pyte would reset
                self.grid.select_graphic_rendition(*codes)
            if len(self.styles) >= _STYLES_KEPT:
                self.styles.clear()
            self.styles[key] = cursor.attrs
        else:
            cursor.attrs = style  # type: ignore[assignment]


@lru_cache(4096)
def _plan_steps(sequence: bytes) -> tuple[tuple[Callable[..., None], tuple[int, ...]], ...] | None:
    """What a CSI sequence other than SGR asks of the grid; None for one that tmux does not know or refuses."""
    found = _CSI.fullmatch(sequence)
    if not found:
        return None
    marker, text, intermediates, final = found.groups()
    name = marker + intermediates + final
    numbers = parse_parameters(text)
    if numbers is None or len(name) > _INTERMEDIATES + 1:
        return None
    first = number_at(numbers, 0, 0)
    if name in _SWITCHED:
        return tuple((_SWITCHED[name], (mode,)) for mode in numbers if mode is not None and mode >= 0)
    if name in _BARE:
        return ((_BARE[name], ()),)
    if name in _ANSWERED or (name in _KNOWN and first < 0):
        return ()
    if name in _COUNTED:
        return ((_COUNTED[name], (first or 1,)),)
    if name in _SELECTED:
        refused = name == b"J" and first == 3 and number_at(numbers, 1, 0)
        return () if refused else ((_SELECTED[name], (first,)),)
    if name in _PLACED:
        second = number_at(numbers, 1, _LAST_ROW if name == b"r" else 1)
        return ((_PLACED[name], (first or 1, second or 1)),) if second >= 0 else ()
    return None


_END_OF_COMMAND = re.compile(rb"[\x07\x18\x1a\x1b]")
_END_OF_STRING = re.compile(rb"[\x18\x1a\x1b]")


def _character_length(lead: int) -> int:
    return next((length for first, length in _LENGTHS if lead >= first), 1)


def _decode_character(part: bytes) -> str:
    try:
        return part.decode()
    except UnicodeDecodeError:
        return ""
