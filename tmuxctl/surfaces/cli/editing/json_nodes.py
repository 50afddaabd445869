"""A text of JSON, its values with where they stand, and the text with an item put in or taken out: nothing else in it moves,
not even a blank, and comments stay.

Pure: from a text and the place of its file, which errors name, to another text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tmuxctl.errors import Failed
from tmuxctl.untrusted import TooDeep, parse_json

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\]}]+")
_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|(//[^\r\n]*|/\*.*?\*/)', re.DOTALL)
_LAST_COMMA = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"|[\w}\]])(?:[ \t\r\n]*(,)(?=[ \t\r\n]*[}\]]))?')
_NO_COMMENT = " \t\r\n,"
"""What may stand between two items, but for comments."""


class JsonNode(NamedTuple):
    """A value of a text, and where it stands: from `begin` up to `end`. `items` are those of a list or an object."""

    value: Any
    begin: int
    end: int
    items: tuple[JsonItem, ...] = ()


class JsonItem(NamedTuple):
    """One item of a list, or of an object with its key: it begins at the key."""

    key: str | None
    begin: int
    node: JsonNode


class _RepeatedKey(ValueError):
    """A key that an object has twice: what holds is a guess, so is what may be changed."""


def parse(text: str, path: str, *, comments: bool = False) -> JsonNode:
    """The settings, an object; of an empty text an empty one. Failed `bad_settings`, with line and column, for anything else.

    With `comments` there may be such as JavaScript has, and a comma behind the last item (JSON with Comments, jsonc.org).
    """
    text = _blank_out(_LAST_COMMA, _blank_out(_COMMENT, text)) if comments else text
    if not text.lstrip("\ufeff").strip():
        return JsonNode({}, len(text), len(text))
    body = text.removeprefix("\ufeff")
    try:
        value = parse_json(body, limit=len(body), object_pairs_hook=_make_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise settings_error(path, f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except _RepeatedKey as error:
        raise settings_error(path, f"the key {ascii(str(error)[:60])} occurs twice in one object") from None
    except TooDeep:
        raise settings_error(path, "it is nested too deeply") from None
    except ValueError as error:
        raise settings_error(path, f"{error} is not JSON") from None
    if not isinstance(value, dict):
        raise settings_error(path, f"expected an object, not {_describe_kind(value)}")
    return _parse_node(text, len(text) - len(body))


def _blank_out(pattern: re.Pattern[str], text: str) -> str:
    """The text with blanks for the group that a match may end with: all else stays where it is."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else found[0].removesuffix(found[1]) + re.sub(r"[^\r\n]", " ", found[1])

    return pattern.sub(blank, text)


def settings_error(path: str, what: str) -> Failed:
    """The error for settings that cannot be read."""
    return Failed(f"{path}: {what}", reason="bad_settings", hint="nothing was changed; fix the file and try again")


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _RepeatedKey(key)
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _parse_node(text: str, at: int) -> JsonNode:
    """The value that begins at or behind an offset of a text that is JSON."""
    begin = _after_blank(text, at)
    if text[begin] not in "{[":
        found = _STRING.match(text, begin) or _SCALAR.match(text, begin)
        assert found is not None
        return JsonNode(json.loads(found[0]), begin, found.end())
    items = []
    at = _after_blank(text, begin + 1)
    while text[at] not in "}]":
        items.append(item := _parse_item(text, at, keyed=text[begin] == "{"))
        at = _after_blank(text, item.node.end)
        at = _after_blank(text, at + 1) if text[at] == "," else at
    value: Any = [one.node.value for one in items]
    if text[begin] == "{":
        value = {str(one.key): one.node.value for one in items}
    return JsonNode(value, begin, at + 1, tuple(items))


def _parse_item(text: str, begin: int, *, keyed: bool) -> JsonItem:
    if not keyed:
        return JsonItem(None, begin, _parse_node(text, begin))
    key = _STRING.match(text, begin)
    assert key is not None
    return JsonItem(json.loads(key[0]), begin, _parse_node(text, _after_blank(text, key.end()) + 1))


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def get_entry(holder: JsonNode, key: str, kind: type, text: str, path: str) -> JsonNode | None:
    """The entry of an object, None if it is not there; an error if it is of another kind."""
    found = next((item.node for item in holder.items if item.key == key), None)
    if found is not None and not isinstance(found.value, kind):
        before = text[: found.begin]
        line, column = before.count("\n") + 1, found.begin - before.rfind("\n")
        wanted = "an object" if kind is dict else "a list"
        raise settings_error(
            path, f"line {line}, column {column}: {key} is {_describe_kind(found.value)}; expected {wanted}"
        )
    return found


def _describe_kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


def insert_items(text: str, root: JsonNode, holder: JsonNode, new: Any) -> str:
    """The text with these items as the last of a list or an object, written as its other items are."""
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _detect_indent(text, root)
    if not holder.items:
        prefix = _line_margin(text, holder.begin)
        head = text[: holder.begin + 1] + text[holder.begin + 1 : holder.end - 1].rstrip()
        inner = f"{newline}{prefix}{unit}{_format_items(new, unit, prefix + unit, newline)}{newline}{prefix}"
        return head + inner + text[holder.end - 1 :]
    last = holder.items[-1].node.end
    # comments stay with the item that they follow; a comma behind the last item stays the style
    rest = text[last : holder.end - 1].rstrip()
    comma = "," if "," in _blank_out(_COMMENT, rest) else ""
    comments = [found[1] for found in _COMMENT.finditer(rest) if found[1]]
    to_line_end = bool(comments) and comments[-1].startswith("//")
    head, tail = text[:last] + ("" if comma else ",") + rest, comma + text[last + len(rest) :]
    if to_line_end or "\n" in text[holder.begin : holder.items[0].begin]:
        prefix = _line_margin(text, holder.items[0].begin)
        return f"{head}{newline}{prefix}{_format_items(new, unit, prefix, newline)}{tail}"
    return f"{head} {json.dumps(new, ensure_ascii=False)[1:-1]}{tail}"


def _format_items(new: Any, unit: str, prefix: str, newline: str) -> str:
    """The items of one list or object, without its brackets, for a line that has this margin."""
    # what stands in it is one step less deep than in its brackets
    lines = json.dumps(new, ensure_ascii=False, indent=unit).split("\n")[1:-1]
    return newline.join([lines[0][len(unit) :], *(prefix + line[len(unit) :] for line in lines[1:])])


def begin_settings(text: str, value: Any) -> str:
    """What a text without any value becomes: its comments, if it has some, and this value."""
    head = text.rstrip() + "\n" if text.strip("\ufeff \t\r\n") else text.strip()
    return f"{head}{json.dumps(value, ensure_ascii=False, indent=2)}\n"


def _detect_indent(text: str, root: JsonNode) -> str:
    """One step of the text's own indentation; two blanks if it has none."""
    if root.items and "\n" in text[root.begin : root.items[0].begin]:
        return _line_margin(text, root.items[0].begin)[len(_line_margin(text, root.begin)) :] or "  "
    return "  "


def _line_margin(text: str, at: int) -> str:
    """The blanks that the line of an offset begins with."""
    begin = text.rfind("\n", 0, at) + 1
    found = re.compile(r"[ \t]*").match(text, begin, at)
    return found[0] if found else ""


def remove_item(text: str, holder: JsonNode, number: int) -> str:
    """The text without one item of a list or object, and without the comma that parted it from the others."""
    items, begin, end = holder.items, holder.items[number].begin, holder.items[number].node.end
    first = items[number - 1].node.end if number else holder.begin + 1
    last = items[number + 1].begin if number + 1 < len(items) else holder.end - 1
    before, after = text[first:begin].strip(_NO_COMMENT), text[end:last].strip(_NO_COMMENT)
    if len(items) == 1 and not before and not after:
        return text[:first] + text[last:]
    if number and not before:
        return text[:first] + text[end:]
    if not number and last < holder.end - 1 and not after:
        return text[:begin] + text[last:]
    return _remove_beside_comments(text, begin, end, (first, last))


def _remove_beside_comments(text: str, begin: int, end: int, gap: tuple[int, int]) -> str:
    """The text without what is between two offsets, its lines and one comma of the gap that it stands in."""
    bare = _blank_out(_COMMENT, text)
    behind, before = bare.find(",", end, gap[1]), bare.rfind(",", gap[0], begin)
    line = re.compile(r"[ \t]*,?[ \t]*(?=\r?\n)").match(text, end)
    above = re.compile(r"\r?\n[ \t]*$").search(text, 0, begin)
    if line and above:
        begin, end = above.start(), line.end()
    elif behind < 0 and not above:
        begin = len(text[:begin].rstrip(" \t"))
    if behind >= end:
        return text[:begin] + text[end:behind] + text[behind + 1 :]
    if behind < 0 <= before:
        return text[:before] + text[before + 1 : begin] + text[end:]
    return text[:begin] + text[end:]


def find_entry(root: JsonNode, table: str, name: str, text: str, path: str) -> JsonNode | None:
    """The value of this name in the object `table` of the settings, None if there is none. Failed as `parse`."""
    holder = get_entry(root, table, dict, text, path)
    return next((item.node for item in holder.items if item.key == name), None) if holder else None


def with_entry(text: str, table: str, name: str, value: Any, path: str, *, comments: bool = False) -> str:
    """The settings with this value under a name that the object `table` of theirs does not have yet. Failed as `parse`."""
    root = parse(text, path, comments=comments)
    if root.begin == root.end:
        return begin_settings(text, {table: {name: value}})
    holder = get_entry(root, table, dict, text, path)
    if holder is None:
        return insert_items(text, root, root, {table: {name: value}})
    return insert_items(text, root, holder, {name: value})


def without_entry(text: str, table: str, name: str, path: str, *, comments: bool = False) -> str:
    """The settings without this name in the object `table` of theirs, and without that object if it held nothing else; as the
    last of all it stays, empty. Failed as `parse`."""
    root = parse(text, path, comments=comments)
    holder = get_entry(root, table, dict, text, path)
    if holder is None or name not in holder.value:
        return text
    text = remove_item(text, holder, [item.key for item in holder.items].index(name))
    root = parse(text, path, comments=comments)
    holder = get_entry(root, table, dict, text, path)
    if holder and len(root.items) > 1 and text[holder.begin : holder.end] == "{}":
        text = remove_item(text, root, [item.key for item in root.items].index(table))
    return text
