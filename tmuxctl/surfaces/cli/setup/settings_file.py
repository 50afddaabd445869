"""A program's settings, a text of JSON, with our hooks put in or taken out: nothing else in it moves, not even a blank.

Pure: from a text and the place of its file, which errors name, to another text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tmuxctl.errors import Failed
from tmuxctl.untrusted import TooDeep, parse_json

KEY = "hooks"
"""The entry that holds the hooks of each event, and in a group of them the hooks themselves."""

OURS = re.compile(r"(?:\S*/)?tmuxctl hook [A-Za-z0-9_-]+(?: \|\| (?::|true))?")
"""The whole command of a hook that is ours."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\]}]+")
_BLANK = re.compile(r"[ \t\r\n]*")


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


def with_hooks(text: str, hooks: Mapping[str, Mapping[str, Any]], path: str) -> str:
    """The settings with a hook for each of these events that has none of ours."""
    for event, hook in hooks.items():
        text = _add_hook(text, event, hook, path)
    return text


def without_hooks(text: str, path: str) -> str:
    """The settings without any hook of ours, and without the lists that held nothing else."""
    while (found := _find_own_hook(parse(text, path), text, path)) is not None:
        text = _remove_item(text, *found)
    return text


def parse(text: str, path: str) -> JsonNode:
    """The settings, an object; of an empty text an empty one. Failed `bad_settings`, with line and column, for anything else."""
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


# Putting in


def _add_hook(text: str, event: str, hook: Mapping[str, Any], path: str) -> str:
    """The settings with this hook as the last of its event."""
    root = parse(text, path)
    if root.begin == root.end:
        newline = "\n"
        return f"{text.strip()}{_format_value({KEY: {event: [{KEY: [hook]}]}}, '  ', '', newline)}{newline}"
    hooks = _get_entry(root, KEY, dict, text, path)
    if hooks is None:
        return _insert_items(text, root, root, {KEY: {event: [{KEY: [hook]}]}})
    groups = _get_entry(hooks, event, list, text, path)
    if groups is None:
        return _insert_items(text, root, hooks, {event: [{KEY: [hook]}]})
    mine = re.compile(rf"(?:^|[\s/;&|('\"])tmuxctl hook {re.escape(event)}(?![\w-])")
    if any(mine.search(str(one.value.get("command", ""))) for _, one in _list_hooks(groups)):
        return text
    return _insert_items(text, root, groups, [{KEY: [hook]}])


def _get_entry(holder: JsonNode, key: str, kind: type, text: str, path: str) -> JsonNode | None:
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


def _insert_items(text: str, root: JsonNode, holder: JsonNode, new: Any) -> str:
    """The text with these items as the last of a list or an object, written as its other items are."""
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _detect_indent(text, root)
    if not holder.items:
        prefix = _line_margin(text, holder.begin)
        inner = f"{newline}{prefix}{unit}{_format_items(new, unit, prefix + unit, newline)}{newline}{prefix}"
        return text[: holder.begin + 1] + inner + text[holder.end - 1 :]
    end = holder.items[-1].node.end
    if "\n" in text[holder.begin : holder.items[0].begin]:
        prefix = _line_margin(text, holder.items[0].begin)
        return text[:end] + f",{newline}{prefix}{_format_items(new, unit, prefix, newline)}" + text[end:]
    return text[:end] + ", " + json.dumps(new, ensure_ascii=False)[1:-1] + text[end:]


def _format_items(new: Any, unit: str, prefix: str, newline: str) -> str:
    """The items of one list or object, without its brackets, for a line that has this margin."""
    # what stands in it is one step less deep than in its brackets
    lines = json.dumps(new, ensure_ascii=False, indent=unit).split("\n")[1:-1]
    return newline.join([lines[0][len(unit) :], *(prefix + line[len(unit) :] for line in lines[1:])])


def _format_value(value: Any, unit: str, prefix: str, newline: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + prefix)


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


# Taking out


def _list_hooks(groups: JsonNode) -> Iterator[tuple[tuple[int, int], JsonNode]]:
    """The hooks of an event, each with the number of its group and its own; what has another form is passed over."""
    for number, group in enumerate(groups.items):
        for inner in group.node.items:
            if inner.key == KEY and isinstance(inner.node.value, list):
                for place, one in enumerate(inner.node.items):
                    if isinstance(one.node.value, dict):
                        yield (number, place), one.node


def _find_own_hook(root: JsonNode, text: str, path: str) -> tuple[JsonNode, int] | None:
    """A hook of ours, by what holds it and its number there: or what holds nothing but it. None if there is none."""
    hooks = _get_entry(root, KEY, dict, text, path)
    for number, event in enumerate(hooks.items if hooks else ()):
        if not isinstance(event.node.value, list):
            continue
        for (group, place), one in _list_hooks(event.node):
            if one.value.get("type") == "command" and OURS.fullmatch(str(one.value.get("command", ""))):
                assert hooks is not None
                chain = _list_holders(root, hooks, number, group, place)
                return next((step for step in chain if len(step[0].items) > 1), chain[-1])
    return None


def _list_holders(root: JsonNode, hooks: JsonNode, event: int, group: int, place: int) -> list[tuple[JsonNode, int]]:
    """What holds a hook, from its list up to the settings, each with the number of what is to go from it."""
    groups = hooks.items[event].node
    number = next(at for at, item in enumerate(groups.items[group].node.items) if item.key == KEY)
    inner = groups.items[group].node.items[number].node
    top = next(at for at, item in enumerate(root.items) if item.key == KEY)
    return [(inner, place), (groups, group), (hooks, event), (root, top)]


def _remove_item(text: str, holder: JsonNode, number: int) -> str:
    """The text without one item of a list or object, and without the comma that parted it from the others."""
    items = holder.items
    if len(items) == 1:
        return text[: holder.begin + 1] + text[holder.end - 1 :]
    if number:
        return text[: items[number - 1].node.end] + text[items[number].node.end :]
    return text[: items[0].begin] + text[items[1].begin :]
