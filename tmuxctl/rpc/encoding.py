"""Results and errors of operations as JSON that keeps everything, and back: typed by the annotations of the result classes.

`operations.to_json` is for readers: it leaves bytes out and tells a status in the place of its result. Here each field of a value
stands under its own name, bytes as base64 (RFC 4648, section 4), an enum as its word. Where a class is not fixed by an annotation,
it is named: `{"class": "Answer", "value": {...}}`.

What comes back was written by another machine, which may lie. So nothing but what the annotations allow becomes a value, names of
sessions have the form of such names, and control characters are removed from what is text to a reader.
"""

from __future__ import annotations

import base64
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Union, get_args, get_origin

from tmuxctl import errors, model, results
from tmuxctl.errors import TmuxctlError, Unreachable
from tmuxctl.model import is_addressable
from tmuxctl.operations import Cancelled, find, keep_result, read_result, to_json
from tmuxctl.value import Value

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but tab and newline: what a terminal may take for a command."""

EXACT = frozenset({"output", "argv", "tmux"})
"""Fields that hold what a program printed or was started with, as it is."""

RAW = frozenset({"text", "answer"})
"""Fields that do so where raw output was asked for."""

RAW_ONLY = frozenset({"data"})
"""Fields of bytes that are left out where it was not: whoever has them prints them as they are."""

DRAWN = frozenset({"html", "svg"})
"""Documents that are never taken from another machine: a browser would take what is in them for ours. They are drawn here."""

TIMES = frozenset({"created", "active", "time"})
"""Fields that hold a time, which readers calculate with."""

TIME = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}(\.[0-9]{1,6})?(Z|\+00:00)"
)
"""A time in UTC, as ISO 8601 has it."""

SURROGATES = re.compile("[\ud800-\udfff]")
"""What is no character: it cannot be written as UTF-8."""

HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""The same, but for what stands for a byte of a file's name that is not UTF-8 (PEP 383)."""

FILE_NAMES = frozenset({"argv", "cwd"})
"""Fields that may hold such names."""

STYLES = re.compile(r"(\x1b\[[0-9;:]*m)")
"""Colours and attributes (ECMA-48, SGR): what coloured text has of control sequences."""

TEXT_MOST = 64 << 10
"""Characters of a message or hint of an error."""


def encode(value: Any, name: str = "") -> Any:
    """A value of an operation's result, or of its field of this name, as JSON's own types; `decode` is its inverse. All it holds is
    kept, but for surrogates, as a program may write them into its transcript: each becomes U+FFFD."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value if _is_unicode(value) else _surrogates_in(name).sub("\ufffd", value)
    if isinstance(value, Value):
        kinds = field_kinds(type(value))  # type: ignore[arg-type]  # a class is hashable
        return {name: _encode_field(kinds[name], getattr(value, name), name) for name in value._names}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {encode(str(key)): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item, name) for item in value]
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _surrogates_in(name: str) -> re.Pattern[str]:
    """The surrogates that a field of this name may not hold."""
    return HALVES if name in FILE_NAMES else SURROGATES


def _encode_field(kind: Any, value: Any, name: str) -> Any:
    if kind is Any:
        return encode_any(value)
    if get_origin(kind) is tuple and get_args(kind)[0] is Any:
        return [encode_any(item) for item in value]
    return encode(value, name)


def encode_any(value: Any) -> Any:
    """A value whose class no annotation fixes, with the name of its class if it has one."""
    if isinstance(value, Value):
        return {"class": type(value).__name__, "value": encode(value)}
    return {"value": encode(to_json(value))}


def decode(kind: Any, data: Any, *, raw: bool = False) -> Any:
    """The value of this annotation that `encode` made `data` of. `raw`: raw output was asked for, so its text may hold control
    characters. Unreachable `bad_answer` for anything else."""
    return _Decoder(raw).decode(kind, data, "")


def decode_any(data: Any, allowed: Mapping[str, type[Value]], *, raw: bool = False) -> Any:
    """The value that `encode_any` made `data` of, if its class is one of these; Unreachable `bad_answer` else."""
    found = _Decoder(raw).decode_any(data, allowed)
    if not isinstance(found, Value):
        raise _bad("a result without a class")
    return found


@lru_cache(maxsize=1)
def result_classes() -> Mapping[str, type[Value]]:
    """Every class of values that results consist of, by its name."""
    found = {**vars(model), **vars(results)}
    return {
        name: kind
        for name, kind in found.items()
        if isinstance(kind, type) and issubclass(kind, Value) and kind is not Value
    }


@lru_cache(maxsize=256)
def classes_of(service: type, operation: str) -> Mapping[str, type[Value]]:
    """The classes of what an operation of this service returns, or yields, by name."""
    function = find(service, operation).function
    names = {**result_classes(), "results": results, "Iterator": Iterator, "Any": Any}
    annotation = function.__annotations__["return"]
    kind = eval(annotation, {**function.__globals__, **names}) if isinstance(annotation, str) else annotation
    return {found.__name__: found for found in _classes_in(kind)}


def _classes_in(kind: Any) -> Iterator[type[Value]]:
    if isinstance(kind, type) and issubclass(kind, results.Pieces):
        yield results.Output
    elif isinstance(kind, type) and issubclass(kind, Value):
        yield kind
    for part in get_args(kind):
        yield from _classes_in(part)


@lru_cache(maxsize=256)
def field_kinds(kind: type[Value]) -> Mapping[str, Any]:
    """The annotations of a class of values, evaluated, by the names of its fields."""
    found = typing.get_type_hints(kind)
    return {name: found[name] for name in kind._names}


def encode_error(error: TmuxctlError) -> dict[str, Any]:
    """An error as the JSON that `--json` prints, with what the library adds to it and what was done before it."""
    told = {
        **to_json(error.to_json()),
        "session": error.session,
        "screen": error.screen,
        "cursor": error.cursor,
    }
    return {**encode(told), "result": encode_any(read_result(error))}


def decode_error(data: Any) -> TmuxctlError:
    """The error that `encode_error` made `data` of; Unreachable `bad_answer` for what it made nothing of."""
    decoder = _Decoder(raw=False)
    if not isinstance(data, dict):
        raise _bad("an error is no object")
    words = {name: _text_or_none(decoder, data, name) for name in ("code", "reason", "message", "hint")}
    extra = {name: _text_or_none(decoder, data, name) for name in ("session", "screen", "cursor")}
    details = {} if data.get("details") is None else data["details"]
    if not isinstance(details, dict) or words["message"] is None:
        raise _bad("an error without a message, or with details that are no object")
    # who tells which machine an error comes from is the one who reached it
    told = {name: one for name, one in decoder.plain(details).items() if name not in ("machine", "reason", "hint")}
    made = (
        Cancelled()
        if words["reason"] == "cancelled"
        else errors.from_json({**words, "message": words["message"], "details": None})
    )
    made.details = told
    status = data.get("exit")
    if isinstance(status, int) and not isinstance(status, bool) and 0 < status < 256 and status != made.exit:
        made.exit = status  # type: ignore[misc]  # that of a class that is not told
    for name, text in extra.items():
        setattr(made, name, text)
    if data.get("result") is not None and (kept := decoder.decode_any(data["result"], result_classes())) is not None:
        keep_result(made, kept)
    return made


def _text_or_none(decoder: _Decoder, data: Mapping[str, Any], name: str) -> str | None:
    found = data.get(name)
    return None if found is None else str(decoder.decode(str, found, name))[:TEXT_MOST]


class _Decoder:
    """Makes values of what another machine sent; what does not fit raises Unreachable `bad_answer`."""

    def __init__(self, raw: bool) -> None:
        self.exact = EXACT | RAW if raw else EXACT
        self.left_out = DRAWN if raw else DRAWN | RAW_ONLY

    def decode(self, kind: Any, data: Any, name: str) -> Any:
        """The value of this annotation; `name` is that of the field it stands in."""
        read, parts = _find_reader(kind)
        return read(self, parts, data, name)

    def decode_any(self, data: Any, allowed: Mapping[str, type[Value]]) -> Any:
        """The value of a class that is named with it."""
        if not isinstance(data, dict) or "value" not in data:
            raise _bad("no value")
        if "class" not in data:
            return self.plain(data["value"])
        kind = allowed.get(data["class"]) if isinstance(data["class"], str) else None
        if kind is None:
            raise _bad("a result of another operation")
        return self.decode_value(kind, data["value"], "")

    def plain(self, data: Any) -> Any:
        """What is JSON and nothing else, without control characters."""
        if isinstance(data, str):
            return self.decode_text(str, data, "")
        if isinstance(data, list):
            return [self.plain(item) for item in data]
        if isinstance(data, dict):
            return {self.decode_text(str, key, ""): self.plain(item) for key, item in data.items()}
        return data

    def decode_untyped(self, _kind: Any, data: Any, _name: str) -> Any:
        """A value whose class is named with it."""
        return self.decode_any(data, result_classes())

    def decode_items(self, kind: Any, data: Any, name: str) -> tuple[Any, ...]:
        """Values of one annotation."""
        if not isinstance(data, list):
            raise _bad(f"{name} is no list")
        return tuple(self.decode(kind, item, name) for item in data)

    def decode_mapping(self, kind: Any, data: Any, name: str) -> dict[str, Any]:
        """Values of one annotation by words; JSON alone where that is Any."""
        if not isinstance(data, dict):
            raise _bad(f"{name} is no object")
        if kind is Any:
            return {self.decode_text(str, key, ""): self.plain(item) for key, item in data.items()}
        return {self.decode_text(str, key, ""): self.decode(kind, item, name) for key, item in data.items()}

    def decode_nothing(self, kind: Any, _data: Any, name: str) -> Any:
        """No value has this annotation."""
        raise _bad(f"{name} is no {kind}")

    def decode_choice(self, kinds: tuple[Any, ...], data: Any, name: str) -> Any:
        if data is None and type(None) in kinds:
            return None
        for kind in kinds:
            try:
                return self.decode(kind, data, name)
            except Unreachable:
                continue
        raise _bad(f"{name} is none of what it may be")

    def decode_value(self, kind: type[Value], data: Any, name: str) -> Value:
        if not isinstance(data, dict):
            raise _bad(f"{name or kind.__name__} is no object")
        # what a later release adds is not known here, and what an earlier one had not is as its default
        kinds = field_kinds(kind)  # type: ignore[arg-type]  # a class is hashable
        found = {
            field: self.decode(of, data[field], field)
            for field, of in kinds.items()
            if field in data
            and not (field in kind._defaults and (field in self.left_out or _is_default(kind, field, data)))
        }
        _check_names(kind, found)
        try:
            return kind(**found)
        except TypeError:
            raise _bad(
                f"{kind.__name__} without {', '.join(kind._names - found.keys() - kind._defaults.keys())}"
            ) from None

    def decode_word(self, kind: Any, data: Any, name: str) -> Any:
        try:
            return kind(data)
        except ValueError:
            raise _bad(f"{name} is no {kind.__name__}") from None

    def decode_text(self, kind: Any, data: Any, name: str) -> str:
        if not isinstance(data, str):
            raise _bad(f"{name} is no text")
        if not _is_unicode(data) and _surrogates_in(name).search(data):
            raise _bad(f"{name} holds what is no character")
        if name in TIMES and not TIME.fullmatch(data):
            raise _bad(f"{name} is no time")
        if name == "ansi":
            parts = enumerate(STYLES.split(data))
            return "".join(part if number % 2 else CONTROLS.sub("", part) for number, part in parts)
        return data if name in self.exact else CONTROLS.sub("", data)

    def decode_bytes(self, kind: Any, data: Any, name: str) -> bytes:
        try:
            return base64.b64decode(data, validate=True)
        except (ValueError, TypeError):
            raise _bad(f"{name} is no base64") from None

    def decode_scalar(self, kind: Any, data: Any, name: str) -> Any:
        if kind is float and type(data) is int and abs(data) < 1 << 53:
            return float(data)
        if type(data) is not kind:
            raise _bad(f"{name} is no {kind.__name__}")
        return data


def _is_default(kind: type[Value], field: str, data: Mapping[str, Any]) -> bool:
    """Whether a field is told to be None, as it is where it is not told: most of a session's are."""
    return data[field] is None and kind._defaults[field] is None


_Read = Callable[[_Decoder, Any, Any, str], Any]
"""Reads a value: what it is to be, the data, and the name of the field it stands in."""

_SCALARS: Mapping[type, _Read] = {
    str: _Decoder.decode_text,
    bytes: _Decoder.decode_bytes,
    bool: _Decoder.decode_scalar,
    int: _Decoder.decode_scalar,
    float: _Decoder.decode_scalar,
    type(None): _Decoder.decode_scalar,
}


@lru_cache(maxsize=1024)
def _find_reader(kind: Any) -> tuple[_Read, Any]:
    """What reads the values of an annotation, and what it is to be told of it: to ask an annotation takes as long as to read a
    value, and a list of 5,000 sessions has 100,000."""
    if kind is Any:
        return _Decoder.decode_untyped, kind
    if isinstance(kind, type):
        if issubclass(kind, Value):
            return _Decoder.decode_value, kind
        if issubclass(kind, Enum):
            return _Decoder.decode_word, kind
        if kind in _SCALARS:
            return _SCALARS[kind], kind
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _Decoder.decode_choice, parts
    if origin is tuple:
        return _Decoder.decode_items, parts[0]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _Decoder.decode_mapping, parts[1]
    return _Decoder.decode_nothing, kind


def _check_names(kind: type[Value], found: Mapping[str, Any]) -> None:
    """Refuse what would be taken for a session of another machine, or for none."""
    named = [found.get("session")]
    if kind is model.Session:
        if found.get("machine") is not None:
            raise _bad("a session of yet another machine")
        named += [found.get("name"), found.get("id")]
    for name in named:
        if isinstance(name, str) and not is_addressable(name):
            raise _bad("a name that no session has")


def _bad(what: str) -> Unreachable:
    return Unreachable(
        f"what it answers makes no sense: {ascii(what)[1:-1][:200]}",
        reason="bad_answer",
        hint="does a tmuxctl of the same release run there? tmuxctl --version",
    )
