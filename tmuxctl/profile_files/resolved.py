"""One file built on another, made into a Profile; and a Profile as the file that would say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmuxctl.profile_files.schema import SCHEMA, by_field_name, key_of
from tmuxctl.program_profile import RECORDS, RULES, Profile, to_plain

OWN = ("name", "extends", "notes")
"""Keys that speak of their own file: they are not taken from the one it extends."""


def merge(child: Mapping[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says together with what it extends.

    The child's value wins; maps are joined key by key; rules of the child come first, then those rules of the parent
    whose id the child does not use.
    """
    found = dict(child)
    for key, value in parent.items():
        if key in OWN:
            continue
        if key not in found:
            found[key] = value
        elif key in RULES:
            ids = {rule.id for rule in found[key]}
            found[key] = (*found[key], *(rule for rule in value if rule.id not in ids))
        elif isinstance(value, dict):
            found[key] = {**value, **found[key]}
    return found


def build_profile(given: Mapping[str, Any]) -> Profile:
    """The Profile of what was said. A file that names no program is for the program of its own name."""
    maps = ((key, value) for key, value in given.items() if isinstance(value, dict))
    flat = {**given, **{f"{key}.{inner}": entry for key, value in maps for inner, entry in value.items()}}
    fields = by_field_name(Profile, flat)
    for name in ("submit", "answer"):
        if name in fields:
            fields[name] = RECORDS[name](**by_field_name(RECORDS[name], fields[name]))
    if "script" not in fields:
        fields.setdefault("argv0", (given["name"],))
    if isinstance(fields.get("hooks"), str):
        del fields["hooks"]
    return Profile(**fields)


def to_document(found: Profile) -> dict[str, Any]:
    """The Profile as the content of a file, in plain values: what differs from the defaults."""
    given: dict[str, Any] = {"schema": SCHEMA}
    for key, value in to_plain(found, key_of).items():
        outer, _, inner = key.partition(".")
        if inner:
            given.setdefault(outer, {})[inner] = value
        else:
            given[outer] = value
    return given


def as_yaml(found: Profile) -> str:
    """The Profile as a file's text."""
    import yaml

    text: str = yaml.safe_dump(
        to_document(found), sort_keys=False, allow_unicode=True, default_flow_style=None, width=118
    )
    return text
