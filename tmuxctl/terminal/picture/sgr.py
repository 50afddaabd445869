"""The parameters of control sequences, and SGR's rewritten into what pyte understands."""

from __future__ import annotations

BYTES = 63
"""What tmux takes of a sequence's parameters (input.c); a longer sequence is ignored."""
_PARAMETERS = 23
_LARGEST = 0x7FFFFFFF


def parse_parameters(text: bytes) -> list[int | None] | None:
    """The numbers of a sequence: None where none was written, -1 for one with colons; None if tmux refuses it all."""
    fields = text.split(b";") if text else []
    if len(fields) > _PARAMETERS or len(text) > BYTES:
        return None
    numbers = [None if not field else -1 if b":" in field else int(field) for field in fields]
    return None if any(number and number > _LARGEST for number in numbers) else numbers


def number_at(numbers: list[int | None], index: int, default: int) -> int:
    """The number at a place, or the default where none was written."""
    number = numbers[index] if index < len(numbers) else None
    return default if number is None else number


_TARGETS = {38: (30, 90), 48: (40, 100)}
UNDERLINES = 1000
"""What a form of underline is added to, so that it is a code of its own: 1 single, 2 double, 3 curly, 4 dotted, 5 dashed."""

_SAME = {21: UNDERLINES + 2}
_LEFT_OUT = (5, 6, 25)
"""Blinking: a picture stands still."""


def pyte_codes(text: bytes) -> list[int]:
    """An SGR's parameters in pyte's dialect, none if it changes nothing.

    Free of colons, of underline colours and of unfinished colours. What pyte does not know is the grid's: dim, hidden, and
    forms of underline.
    """
    numbers = parse_parameters(text)
    if numbers is None:
        return []
    fields = text.split(b";")
    codes: list[int] = [] if numbers else [0]
    at = 0
    while at < len(numbers):
        number = numbers[at] or 0
        if number == -1:
            codes += _colon_codes(fields[at])
        elif number in (38, 48, 58):
            at += 1
            kind = number_at(numbers, at, -1)
            if kind == 5:
                at += 1
                codes += _palette_codes(number, number_at(numbers, at, -1))
            elif kind == 2:
                red, green, blue = (number_at(numbers, at + step, -1) for step in (1, 2, 3))
                if all(0 <= part <= 255 for part in (red, green, blue)):
                    at += 3
                    codes += [number, 2, red, green, blue] if number != 58 else []
        elif number not in _LEFT_OUT:
            codes.append(_SAME.get(number, number))
        at += 1
    return codes


def _palette_codes(target: int, index: int) -> list[int]:
    if target not in _TARGETS:
        return []
    if not 0 <= index <= 255:
        return [target + 1]
    if index < 16:
        return [_TARGETS[target][index >> 3] + (index & 7)]
    return [target, 5, index]


def _colon_codes(field: bytes) -> list[int]:
    """One parameter with colons (ISO 8613-6): an underline's form, or a colour with or without its colour space."""
    parts = [int(part) if part else -1 for part in field.split(b":")]
    if len(parts) > 7:
        return []
    if parts[0] == 4 and len(parts) == 2:
        return [24] if parts[1] == 0 else [UNDERLINES + parts[1]] if 1 <= parts[1] <= 5 else []
    if parts[0] not in (38, 48) or len(parts) < 3:
        return []
    if parts[1] == 5:
        return _palette_codes(parts[0], parts[2])
    start = 2 if len(parts) == 5 else 3
    colour = parts[start : start + 3]
    if parts[1] == 2 and len(colour) == 3 and all(0 <= part <= 255 for part in colour):
        return [parts[0], 2, *colour]
    return []
