"""A program's settings, a text of JSON, with our hooks put in or taken out: nothing else in it moves, not even a blank.

Pure: from a text and the place of its file, which errors name, to another text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tmuxctl.surfaces.cli.editing.json_nodes import (
    JsonNode,
    begin_settings,
    get_entry,
    insert_items,
    parse,
    remove_item,
)

KEY = "hooks"
"""The entry that holds the hooks of each event, and in a group of them the hooks themselves."""

OURS = re.compile(r"(?:\S*/)?tmuxctl hook [A-Za-z0-9_-]+(?: \|\| (?::|true))?")
"""The whole command of a hook that is ours."""


def with_hooks(text: str, hooks: Mapping[str, Mapping[str, Any]], path: str) -> str:
    """The settings with a hook for each of these events that has none of ours."""
    for event, hook in hooks.items():
        text = _add_hook(text, event, hook, path)
    return text


def without_hooks(text: str, path: str) -> str:
    """The settings without any hook of ours, and without the lists that held nothing else."""
    while (found := _find_own_hook(parse(text, path), text, path)) is not None:
        text = remove_item(text, *found)
    return text


# Putting in


def _add_hook(text: str, event: str, hook: Mapping[str, Any], path: str) -> str:
    """The settings with this hook as the last of its event."""
    root = parse(text, path)
    if root.begin == root.end:
        return begin_settings(text, {KEY: {event: [{KEY: [hook]}]}})
    hooks = get_entry(root, KEY, dict, text, path)
    if hooks is None:
        return insert_items(text, root, root, {KEY: {event: [{KEY: [hook]}]}})
    groups = get_entry(hooks, event, list, text, path)
    if groups is None:
        return insert_items(text, root, hooks, {event: [{KEY: [hook]}]})
    mine = re.compile(rf"(?:^|[\s/;&|('\"])tmuxctl hook {re.escape(event)}(?![\w-])")
    if any(mine.search(str(one.value.get("command", ""))) for _, one in _list_hooks(groups)):
        return text
    return insert_items(text, root, groups, [{KEY: [hook]}])


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
    hooks = get_entry(root, KEY, dict, text, path)
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
