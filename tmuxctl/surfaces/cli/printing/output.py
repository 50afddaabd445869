"""Writes results to standard output and all else to standard error; nothing in a message can steer the terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from typing import IO, Any

from tmuxctl.errors import Failed, TmuxctlError
from tmuxctl.value import Value

UNSEEN = "\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
"""Characters that show other text than there is: overrides and isolates of direction (UAX #9), and tags, which are letters
nobody sees. Marks of direction and joiners stay: Arabic, Hebrew, Persian and emoji are written with them."""

# patterns are compiled when they are first used: most results are ASCII
_FLAG_OR_UNSEEN = f"(\U0001f3f4[\U000e0030-\U000e007a]{{1,6}}\U000e007f)|[{UNSEEN}]"
_ESCAPED_IN_JSON = f"[\x7f-\x9f\ud800-\udfff\u2028\u2029{UNSEEN}]"


class Options(Value):
    """What was said of every command: the options that stand before or after its name."""

    socket: str | None = None
    json: bool = False
    quiet: bool = False
    color: bool = True
    prompt: bool = True
    verbose: bool = False


PIECE = 1 << 20
"""Characters or bytes that are encoded and written at once."""


class ReaderGone(Exception):
    """Nobody reads our standard output any more."""


def write(data: bytes | str) -> None:
    """Put a result on standard output, now. Text goes in the encoding of the place, bytes as they are.

    Raises ReaderGone for a closed pipe, Failed `output` for a closed or full one.
    """
    stream = sys.stdout
    if stream is None:
        raise Failed("standard output is closed", reason="output")
    try:
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            stream.buffer.write(
                piece.encode(stream.encoding or "utf-8", "replace") if isinstance(piece, str) else piece
            )
        stream.buffer.flush()
    except BrokenPipeError:
        _drop_rest(stream)
        raise ReaderGone from None
    except OSError as error:
        _drop_rest(stream)
        raise Failed(f"standard output: {error.strerror}", reason="output") from None


def _drop_rest(stream: IO[str]) -> None:
    # what is still buffered would be tried again when Python ends, with a traceback
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def write_json(value: Any) -> None:
    """Put one object on a line of standard output."""
    fields = value.items() if type(value) is dict else ()
    long = [name for name, one in fields if isinstance(one, str) and len(one) > PIECE]
    if not long:
        write(as_json(value).encode() + b"\n")
        return
    text = value[long[0]]
    write_pieces(long[0], (value | {long[0]: text[at : at + PIECE]} for at in range(0, len(text), PIECE)))


def write_pieces(field: str, values: Iterable[dict[str, Any]]) -> None:
    """Put one object on a line of standard output whose one field, a text, comes in pieces: those before it are as the
    first value has them, those behind it as the last has; `truncated` if one of them is, and `missing_bytes` of them all."""
    begun, truncated, missing, value = False, False, 0, {}
    for value in values:
        at = list(value).index(field)
        if not begun:
            head = dict(list(value.items())[:at])
            write(as_json(head)[:-1] + ("," if head else "") + f'"{field}":"')
        begun, truncated = True, truncated or bool(value.get("truncated"))
        missing += value.get("missing_bytes", 0)
        write(as_json(value[field])[1:-1].encode())
    rest = dict(list(value.items())[list(value).index(field) + 1 :])
    if "truncated" in rest:
        rest["truncated"] = truncated
    if "missing_bytes" in rest:
        rest["missing_bytes"] = missing
    write(('"' + ("," if rest else "") + as_json(rest)[1:] + "\n").encode())


def as_json(value: Any) -> str:
    """One line of UTF-8-safe JSON; control characters, C1 too, and what shows other text than there is are escaped."""
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=ascii)
    return re.sub(_ESCAPED_IN_JSON, _json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def tell(text: str) -> None:
    """Put lines on standard error, whatever they hold; a closed one is no error."""
    if sys.stderr is not None:
        try:
            sys.stderr.write("".join(f"{clean(line)}\n" for line in text.split("\n")))
            sys.stderr.flush()
        except (OSError, ValueError):
            pass


def note(text: str, options: Options) -> None:
    """Tell a person something beside the result; not with --quiet or --json."""
    if not options.quiet and not options.json:
        tell(f"tmuxctl: {with_socket(text, options)}")


def with_socket(text: str, options: Options) -> str:
    """A hint whose commands go to the server this command was told to use."""
    return re.sub(r"\btmuxctl (?=[a-z])", f"tmuxctl --socket {options.socket} ", text) if options.socket else text


def report(error: TmuxctlError, options: Options) -> None:
    """Tell an error: what happened, and below it what would work. With --json as the documented object."""
    if options.json:
        from tmuxctl.operations import to_json

        tell(as_json({"error": to_json(error.to_json())}))
        return
    head = "tmuxctl:"
    if sys.stderr is not None and colorful(sys.stderr, options):
        sys.stderr.write("\x1b[31mtmuxctl:\x1b[39m")
        head = ""
    lines = [f"{head} {flat(error.message)}"]
    if error.hint:
        lines.append(f"  {flat(with_socket(error.hint, options))}")
    tell("\n".join(lines))


def shown(text: str) -> str:
    r"""A program's text with what shows other text than there is written as an escape: `\u202e`. Flags keep their tags."""
    if text.isascii():
        return text
    return re.sub(_FLAG_OR_UNSEEN, lambda found: found[1] or _escape(found[0]), text)


def clean(text: str) -> str:
    r"""The text with every character that is not printed written as an escape: ESC as `\x1b`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def flat(text: str) -> str:
    """The text on one line, clean."""
    return clean(text.replace("\n", " "))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def colorful(stream: IO[str], options: Options) -> bool:
    """True if colour may go there: a terminal that is not dumb, and nobody said no (https://no-color.org)."""
    return (
        options.color
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
        and stream.isatty()
    )


def unicode_out() -> bool:
    """True if standard output takes characters beyond ASCII."""
    return sys.stdout is not None and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def width(stream: IO[str] | None = None) -> int | None:
    """Columns of the terminal that a stream is, standard output by default; None if it is none."""
    try:
        stream = stream or sys.stdout
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError, AttributeError):
        return None
