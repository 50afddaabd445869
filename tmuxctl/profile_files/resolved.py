"""One file built on another, made into a Profile; and a Profile as the file that would say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmuxctl.profile_files.schema import SCHEMA
from tmuxctl.program_profile import RULES, Answer, Hooks, Profile, Rule, Submit, Told, Transcript

OWN = ("name", "extends", "notes")
"""Keys that speak of their own file: they are not taken from the one it extends."""

RENAMED: Mapping[tuple[str, str], str] = {
    ("detect", "argv0"): "argv0",
    ("detect", "script"): "script",
    ("detect", "foreground"): "foreground",
    ("start", "timeout"): "start_timeout",
    ("title", "busy"): "title_busy",
    ("title", "idle"): "title_idle",
    ("password", "argv"): "password_argv",
    ("password", "unless"): "password_unless",
    ("idle", "settle"): "settle",
    ("resume", "argv"): "resume",
    ("exit", "send"): "exit_send",
    ("exit", "keys"): "exit_keys",
}
"""Which field of a Profile holds what a file's map says."""

PLAIN = ("name", "command", "size", "env", "interrupt", "cost", "install", "notes")


def merged(child: Mapping[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
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


def profile(given: Mapping[str, Any]) -> Profile:
    """The Profile of what was said. A file that names no program is for the program of its own name."""
    fields = {key: given[key] for key in (*PLAIN, *RULES) if key in given}
    for (key, inner), name in RENAMED.items():
        if inner in given.get(key, {}):
            fields[name] = given[key][inner]
    if "script" not in fields:
        fields.setdefault("argv0", (given["name"],))
    submit, answer = given.get("submit", {}), dict(given.get("answer", {}))
    if "from" in answer:
        answer["begin"] = answer.pop("from")
    hooks = given.get("hooks")
    pause = {"delay": submit["delay"] or 0.0} if "delay" in submit else {}
    return Profile(
        **fields,
        submit=Submit(**{**submit, **pause}),
        answer=Answer(**answer),
        hooks=hooks if isinstance(hooks, Hooks) else None,
    )


def written(found: Profile) -> dict[str, Any]:
    """The Profile as the content of a file, in plain values: what differs from the defaults."""
    fields = vars(found)
    default = Profile(name="")
    given: dict[str, Any] = {"schema": SCHEMA, "name": found.name}
    order = (
        "detect",
        "command",
        "size",
        "env",
        "start",
        *RULES,
        "title",
        "password",
        "idle",
        "cost",
        "install",
        "resume",
    )
    for key in (*order, "submit", "answer", "interrupt", "exit", "hooks", "notes"):
        inner = {entry: fields[name] for (outer, entry), name in RENAMED.items() if outer == key}
        changed = {e: v for e, v in inner.items() if v != getattr(default, RENAMED[key, e])}
        if key in RULES:
            changed = [_record(rule, Rule("", "")) for rule in fields[key]]  # type: ignore[assignment]
        elif key == "submit":
            changed = _record(found.submit, Submit())
        elif key == "answer":
            changed = {"from" if e == "begin" else e: v for e, v in _record(found.answer, Answer()).items()}
        elif key == "hooks":
            changed = _hooks(found.hooks) if found.hooks else {}
        elif not inner:
            changed = fields[key] if fields[key] != getattr(default, key) else {}
        if changed not in ({}, [], (), "", None):
            given[key] = _plain(changed)
    return given


def as_yaml(found: Profile) -> str:
    """The Profile as a file's text."""
    import yaml

    text: str = yaml.safe_dump(written(found), sort_keys=False, allow_unicode=True, default_flow_style=None, width=118)
    return text


def _hooks(hooks: Hooks) -> dict[str, Any]:
    said = _record(hooks, Hooks())
    if hooks.events:
        said["events"] = [{"on": one.on, "is": one.means, **_event(one)} for one in hooks.events]
    if hooks.transcript:
        said["transcript"] = _record(hooks.transcript, Transcript())
    return said


def _event(event: Told) -> dict[str, Any]:
    return {name: value for name, value in _record(event, Told("", "")).items() if name not in ("on", "means")}


def _record(record: Any, default: Any) -> dict[str, Any]:
    return {name: value for name, value in record._asdict().items() if value != getattr(default, name)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value
