"""Scenarios: a program, what is typed into it, and the state it truly is in from which second to which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml


class Type(NamedTuple):
    """Text to type, without Enter."""

    text: str


class Press(NamedTuple):
    """Keys to press, by tmux's names."""

    keys: tuple[str, ...]


class Pause(NamedTuple):
    """Seconds in which nothing is done."""

    seconds: float


class Until(NamedTuple):
    """A pattern to wait for on the screen, at most so many seconds."""

    pattern: str
    timeout: float


class Expect(NamedTuple):
    """The truth from `begin` to `end`, in seconds after the last step that did something.

    `state` is working, output, input or exited; `others` and `other_kinds` are right as well; `since` is when the state
    truly began; `status` and `signal` (a number) are of a program that ended.
    """

    state: str
    begin: float
    end: float
    kind: str | None = None
    others: tuple[str, ...] = ()
    other_kinds: tuple[str, ...] = ()
    since: float | None = None
    status: int | None = None
    signal: int | None = None


Step = Type | Press | Pause | Until | Expect


class Scenario(NamedTuple):
    """One program; `hard` says why no generic sign can tell its state, empty if one can."""

    id: str
    group: str
    run: str
    steps: tuple[Step, ...]
    env: Mapping[str, str]
    setup: str
    cwd: str
    hard: str


class Collection(NamedTuple):
    """A file of scenarios: each as it was written, by id, the files they need, by name, and the servers that are told how
    to start (`start`, `ready`, `stop`: the file with its process), by name."""

    scenarios: dict[str, dict[str, Any]]
    fixtures: dict[str, str]
    services: dict[str, dict[str, str]]


def read(*paths: Path) -> Collection:
    """The scenarios of these YAML files; ValueError if one is not understood, or two have the same id."""
    found = Collection({}, {}, {})
    for one in map(_read, paths):
        if both := found.scenarios.keys() & one.scenarios.keys():
            raise ValueError(f"two scenarios are called {', '.join(sorted(both))}")
        found.scenarios.update(one.scenarios)
        found.fixtures.update(one.fixtures)
        found.services.update(one.services)
    return found


def _read(path: Path) -> Collection:
    loaded = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    found = {str(one["id"]): one for one in loaded["scenarios"]}
    for one in found.values():
        parse(one)
    services = loaded["meta"].get("services", {})
    told = {name: one for name, one in services.items() if isinstance(one, dict)}
    return Collection(found, loaded["meta"]["fixtures"], told)


def filled(value: Any, places: Mapping[str, str]) -> Any:
    """The value with `{NAME}` replaced in every text of it, for the given names only."""
    if isinstance(value, str):
        for name, text in places.items():
            value = value.replace("{" + name + "}", text)
        return value
    if isinstance(value, Mapping):
        return {key: filled(one, places) for key, one in value.items()}
    return [filled(one, places) for one in value] if isinstance(value, list) else value


def texts(value: Any) -> str:
    """Every text of a scenario, a line each: to look for what it needs."""
    if isinstance(value, Mapping):
        return "\n".join(map(texts, value.values()))
    return "\n".join(map(texts, value)) if isinstance(value, list) else str(value)


def parse(written: Mapping[str, Any]) -> Scenario:
    """One scenario; ValueError if a step is not understood."""
    return Scenario(
        id=str(written["id"]),
        group=str(written.get("group", "")),
        run=str(written["run"]),
        steps=tuple(_step(one, str(written["id"])) for one in written["steps"]),
        env={name: str(value) for name, value in written.get("env", {}).items()},
        setup=str(written.get("setup", "")),
        cwd=str(written.get("cwd", "")),
        hard=str(written.get("hard", "")),
    )


def _step(step: Mapping[str, Any], scenario: str) -> Step:
    if "expect" in step:
        return Expect(
            state=str(step["expect"]),
            begin=float(step["from"]),
            end=float(step["to"]),
            kind=step.get("kind"),
            others=_several(step.get("alt")),
            other_kinds=_several(step.get("alt_kind")),
            since=step.get("true_at"),
            status=step.get("code"),
            signal=step.get("signal"),
        )
    if "type" in step:
        return Type(str(step["type"]))
    if "key" in step:
        return Press(_several(step["key"]))
    if "sleep" in step:
        return Pause(float(step["sleep"]))
    if "wait_for" in step:
        return Until(str(step["wait_for"]), float(step.get("timeout", 15)))
    raise ValueError(f"{scenario}: no such step: {', '.join(map(str, step))}")


def _several(value: str | Sequence[str] | None) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())
