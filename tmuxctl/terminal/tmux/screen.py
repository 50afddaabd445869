"""What tmux printed of a screen, as text that is safe to show: pure functions over `capture-pane -p -e`."""

from __future__ import annotations

import re

from tmuxctl import widths

# patterns are compiled when they are first used: few screens need more than one
_SEQUENCE = (
    r"\x1b(?:"
    r"\[[0-?]*+[ -/]*+[@-~]?"  # CSI
    r"|\][^\x07\x18\x1a\x1b\n]*+(?:\x07|\x1b\\)?"  # OSC
    r"|[PX^_k](?:[^\x1b]*+\x1b\\|[^\x1b\n]*+)"  # DCS, SOS, PM, APC, title: newlines are part of a terminated one only
    r"|[ -/]*+[0-~]"
    r")?"
)
_STYLE = r"\x1b\[([0-9:;]*)m"
_DRAWN = r"\x0e([^\x0f]*+)\x0f?"
_STYLED_OR_DRAWN = r"(\x1b\[[0-9:;]*m)|(\x0e)|(\x0f)"
_CONTROL = r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
_CONTROL_BUT_TAB = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"

_SEEN_ON_BLANKS = {"bg", "reverse", "underline", "strike", "overline"}

LINE_DRAWING = dict(
    zip(
        map(ord, "+,-.0`abcdefghijklmnopqrstuvwxyz{|}~"),
        "→←↑↓▮◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·",
        strict=True,
    )
)
"""DEC special graphics as tmux draws them (tty-acs.c): with arrows and a block that the VT100 had not."""


def plain_text(captured: bytes, *, trim: bool = True) -> str:
    """The plain text of a captured screen, one line a row.

    Line drawing (between SO and SI, in effect across rows) becomes Unicode; no control character but the newline is
    left; bytes that are not UTF-8 become U+FFFD. `trim` removes each row's trailing blanks and trailing empty rows.
    """
    plain = captured.decode("utf-8", "replace")
    if "\x1b" in plain:
        plain = re.sub(_SEQUENCE, "", plain)
    if "\x0e" in plain:
        plain = re.sub(_DRAWN, lambda found: found[1].translate(LINE_DRAWING), plain)
    if not plain.replace("\n", "").isprintable():
        plain = re.sub(_CONTROL, "", plain)
    if not trim:
        return plain
    return "\n".join([row.rstrip(" ") for row in plain.split("\n")]).rstrip("\n")


def styled_text(captured: bytes) -> str:
    """The captured screen with its colours and attributes (SGR) and no other control; each row can be shown by itself.

    A row starts with what is in effect and ends in a reset if anything is. Trailing rows on which nothing is seen are
    removed.
    """
    rows = styled_rows(captured)
    while rows and not _is_visible(rows[-1]):
        rows.pop()
    return "\n".join(rows)


def styled_rows(captured: bytes) -> list[str]:
    """All rows of a captured screen, each as `styled_text` has it."""
    rows: list[str] = []
    style: dict[str, str] = {}
    drawing = False
    for line in _keep_styles(captured.decode("utf-8", "replace")).removesuffix("\n").split("\n"):
        row_parts = [f"\x1b[{';'.join(style.values())}m" if style else ""]
        for part in re.split(_STYLED_OR_DRAWN, line):
            if not part:
                continue
            if part == "\x0e" or part == "\x0f":
                drawing = part == "\x0e"
            elif part[0] == "\x1b":
                _apply_style(style, part[2:-1])
                row_parts.append(part)
            else:
                row_parts.append(part.translate(LINE_DRAWING) if drawing else part)
        if style:
            row_parts.append("\x1b[0m")
        rows.append("".join(row_parts))
    return rows


def find_drawn_cursor(captured: bytes, tmux: widths.Version = None) -> tuple[int, int] | None:
    """Column and row of the cursor that a program draws itself where it hides the terminal's: the lowest row on which one
    cell alone is in reverse video, and that cell. None if there is none."""
    style: dict[str, str] = {}
    found = None
    for y, line in enumerate(_keep_styles(captured.decode("utf-8", "replace")).split("\n")):
        x, reversed_cells, begun = 0, [], False
        for part in re.split(_STYLED_OR_DRAWN, line):
            if part and part[0] == "\x1b":
                before = "reverse" in style
                _apply_style(style, part[2:-1])
                begun = "reverse" in style and (begun or not before)
            elif part and part not in ("\x0e", "\x0f"):
                begun = False
                if "reverse" in style:
                    reversed_cells += [x] * sum(1 for _ in widths.cells(part, tmux))
                x += widths.columns(part, tmux)
        # tmux leaves out blanks at the end of a row, reversed ones too
        reversed_cells += [x] if begun else []
        if len(reversed_cells) == 1:
            found = reversed_cells[0], y
    return found


def strip_escapes(data: str | bytes) -> str:
    """A program's output made safe for a reader: no escape sequence, no control character but newline and tab.

    Bytes that are not UTF-8 and lone surrogates become U+FFFD.
    """
    plain = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if plain.replace("\n", "").isprintable():
        # most of what is printed, and the pattern takes a hundredth of a quick command to compile (measured)
        return plain
    if "\x1b" in plain:
        plain = re.sub(_SEQUENCE, "", plain)
    return re.sub(_CONTROL_BUT_TAB, lambda found: "\ufffd" if found[0] >= "\ud800" else "", plain)


def _is_visible(row: str) -> bool:
    """Whether a row holds text, or blanks with a style that shows on them."""
    style: dict[str, str] = {}
    for index, part in enumerate(re.split(_STYLE, row)):
        if index % 2:
            _apply_style(style, part)
        elif part and (part.strip(" ") or not _SEEN_ON_BLANKS.isdisjoint(style)):
            return True
    return False


def _keep_styles(plain: str) -> str:
    """The text without any sequence but SGR, and without controls but newline, SO and SI."""
    plain = re.sub(_SEQUENCE, lambda found: found[0] if re.fullmatch(_STYLE, found[0]) else "", plain)
    return re.sub(r"[\x00-\x09\x0b-\x0d\x10-\x1a\x1c-\x1f\x7f-\x9f\ud800-\udfff]", "", plain)


_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 5: "blink", 6: "blink", 7: "reverse", 8: "hidden", 9: "strike"}
_ON.update({21: "underline", 53: "overline"})
_ON.update(dict.fromkeys([*range(30, 38), *range(90, 98)], "fg"))
_ON.update(dict.fromkeys([*range(40, 48), *range(100, 108)], "bg"))
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 25: ("blink",), 27: ("reverse",), 28: ("hidden",)}
_OFF.update({29: ("strike",), 39: ("fg",), 49: ("bg",), 55: ("overline",), 59: ("line",)})
_LONG = {38: "fg", 48: "bg", 58: "line"}
_LENGTH = {"2": 5, "5": 3}


def _apply_style(style: dict[str, str], parameters: str) -> None:
    """Change the style in effect by one SGR (ECMA-48 8.3.117; colours as in ISO 8613-6 and with semicolons)."""
    fields = parameters.split(";")
    at = 0
    while at < len(fields):
        field = fields[at]
        head = field.partition(":")[0]
        code = int(head) if head and len(head) < 5 else 0 if not head else -1
        length = 1
        if code in _LONG:
            if ":" not in field:
                length = _LENGTH.get(fields[at + 1], 2) if at + 1 < len(fields) else 1
            style[_LONG[code]] = ";".join(fields[at : at + length])
        elif code == 0:
            style.clear()
        elif field == "4:0":
            style.pop("underline", None)
        elif code in _ON:
            style[_ON[code]] = field
        for name in _OFF.get(code, ()):
            style.pop(name, None)
        at += length
