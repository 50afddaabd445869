"""The arguments of a tool: checked against its schema, with the right one named where one is misspelt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tmuxctl.errors import Usage

ELSEWHERE: Mapping[str, str] = {
    "pattern": "wait_for (pty_write, pty_sendkey) or pattern (pty_wait)",
    "wait_for": "pattern (pty_wait) or wait_for (pty_write, pty_sendkey)",
    "timeout": "timeout_ms, in milliseconds",
    "text": "input (pty_write) or text (pty_ask)",
    "input": "text (pty_ask), command (pty_exec) or input (pty_write)",
    "session": "session_id",
    "name": "session_id, which takes a name too",
}
"""What is meant by the names that tools often get from one another."""

KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}

ESCAPE = re.compile(r"\\(?:([rnt\\])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4}))")
CONTROLS = {"r": "\r", "n": "\n", "t": "\t", "\\": "\\"}


def check_arguments(
    tool: str, given: Mapping[str, Any], parameters: Mapping[str, Mapping[str, Any]], required: Sequence[str]
) -> None:
    """Raise Usage for an argument that the tool does not take, one that is missing, or one of another type or range."""
    for name in given.keys() - parameters.keys():
        from difflib import get_close_matches

        near = get_close_matches(name, parameters, 1)
        hint = f"did you mean {near[0]}" if near else ELSEWHERE.get(name, "it takes " + ", ".join(parameters))
        raise Usage(f"{tool} does not take {ascii(name[:40])}", reason="bad_parameter", hint=hint)
    for name in required:
        if name not in given:
            raise Usage(f"{tool} needs {name}", reason="missing", hint="it takes " + ", ".join(parameters))
    for name, value in given.items():
        _check_value(f"{tool}: {name}", value, parameters[name])


def _check_value(called: str, value: Any, schema: Mapping[str, Any]) -> None:
    types = schema.get("type", ())
    types = (types,) if isinstance(types, str) else types
    # a bool is an int to Python
    if types and not any(
        isinstance(value, KINDS[one]) and (one != "integer" or not isinstance(value, bool)) for one in types
    ):
        raise Usage(f"{called} is no {' or '.join(types)}", reason="bad_type")
    choices = schema.get("enum")
    if choices and value not in choices:
        raise Usage(f"{called}: {ascii(value)[:40]} is no choice", reason="bad_choice", hint=", ".join(choices))
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        low, high = schema.get("minimum", ""), schema.get("maximum", "")
        raise Usage(f"{called}: {ascii(value)[:40]} is not within {low}..{high}", reason="bad_number")
    if isinstance(value, list) and "items" in schema:
        if len(value) > schema.get("maxItems", len(value)):
            raise Usage(f"{called}: {len(value)} are more than {schema['maxItems']}", reason="bad_number")
        for item in value:
            _check_value(called, item, schema["items"])


def unescape(text: str) -> bytes:
    r"""The bytes of an input in which `\r`, `\n`, `\t`, `\\`, `\xHH` and `\uHHHH` may be written out, as ptyai takes it."""

    def replace(found: re.Match[str]) -> str:
        control, byte, unit = found.groups()
        return CONTROLS[control] if control else chr(int(byte or unit, 16))

    # half of a pair of \u that stands alone is no character
    return ESCAPE.sub(replace, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
