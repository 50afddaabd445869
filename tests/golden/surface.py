"""What can be called and what comes back, told by the operations themselves: help, arguments, JSON of results and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import fields
from enum import Enum
from io import StringIO
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from golden.scenario import indented
from tmuxctl import errors
from tmuxctl.operations import Operation, Parameter, to_json
from tmuxctl.surfaces.cli import app
from tmuxctl.surfaces.cli.app import App
from tmuxctl.surfaces.cli.manual import reference
from tmuxctl.value import Value


def operations() -> dict[str, Operation]:
    """Every operation of every service, by its name, in the order of the reference."""
    return {one.operation.name: one.operation for _, found in reference.commands(App()) for one in found}


def help_pages() -> str:
    """What --help prints, of the group, of each family and of each command."""
    names = [one.spoken for one in operations().values()]
    families = sorted({name.split()[0] for name in names if " " in name})
    return "\n".join(_help(typed.split()) for typed in ("", *families, *names))


def _help(words: Sequence[str]) -> str:
    printed = StringIO()
    with redirect_stdout(printed):
        status = app.run([*words, "--help"])
    assert status == 0, words
    return f"$ {' '.join(('tmuxctl', *words))} --help\n\n{printed.getvalue()}"


def arguments() -> str:
    """Each operation with all that is declared of it, and of each of its parameters."""
    return indented({name: _operation(one) for name, one in operations().items()}) + "\n"


def _operation(operation: Operation) -> dict[str, Any]:
    meta = operation.meta
    return {
        "group": meta.group,
        "right": meta.right,
        "traits": [
            *(["idempotent"] if meta.idempotent or meta.right == "read" else []),
            *(["streams"] if meta.streams else []),
        ],
        "results": [name for name, _, _ in reference.results_of(operation)],
        "parameters": {one.name: _parameter(operation, one) for one in operation.parameters},
    }


def _parameter(operation: Operation, parameter: Parameter) -> dict[str, Any]:
    schema = operation.schema()["properties"][parameter.name]
    if isinstance(schema.get("default"), bytes):
        # what is typed has bytes as its default, which JSON does not have
        schema["default"] = schema["default"].decode()
    return {
        "kind": parameter.kind.word,
        "traits": [trait for trait in ("positional", "many", "optional", "required") if getattr(parameter, trait)],
        "flags": list(parameter.flag.names),
        "schema": schema,
    }


DEPTH = 4
"""How deep one result stands in another, at most."""


def result_keys() -> str:
    """The JSON of each class of results: its keys in their order, each with its types.

    It is taken from values made of the classes: how a class comes to its JSON is its own business.
    """
    kinds = {kind.__name__: kind for operation in operations().values() for kind in reference.result_classes(operation)}
    return "\n".join(f"{name}\n{_types(kinds[name])}" for name in sorted(kinds))


def _types(kind: type) -> str:
    """A line for each key. All of the first sample is there; of the others nothing that may be missing, from a depth on."""
    found: dict[str, set[str]] = {}
    for depth in range(DEPTH, -1, -1):
        for path, word in _walk(to_json(_sample(kind, depth))):
            found.setdefault(path, set()).add(word)
    return "".join(f"  {path}: {' or '.join(sorted(words))}\n" for path, words in found.items() if path)


def _walk(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The path and type of a value of JSON and of all in it."""
    yield path, NAMES[type(value)]
    for key, one in value.items() if isinstance(value, dict) else ():
        yield from _walk(one, f"{path}.{key}".lstrip("."))
    for one in value if isinstance(value, list) else ():
        yield from _walk(one, f"{path}[]")


NAMES = {
    str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array", NoneType: "null",
}  # fmt: skip


def _sample(hint: Any, depth: int) -> Any:
    """A value of a type; what may be None is so in values deeper than `depth`."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and depth < 0 and NoneType in inner:
        return None
    if origin in (Union, UnionType):
        return _sample(next(one for one in inner if one is not NoneType), depth)
    if origin is Literal:
        return inner[0]
    if origin is tuple:
        return tuple(_sample(one, depth) for one in inner if one is not Ellipsis)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"*": _sample(inner[1], depth)}
    if isinstance(hint, type) and issubclass(hint, Value):
        hints = get_type_hints(hint)
        return hint(**{one.name: _sample(hints[one.name], depth - 1) for one in fields(hint)})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    return "any" if hint is Any else hint()


def error_keys() -> str:
    """Each error by its code: how the command ends with it, its HTTP status, and its JSON."""
    return (
        indented(
            {one.code: {"exit": one.exit, "http_status": one.http_status, **_error(one)} for one in errors.CLASSES}
        )
        + "\n"
    )


def _error(kind: type[errors.TmuxctlError]) -> dict[str, Any]:
    full = kind("what", reason="why", hint="how", session="db").to_json()
    return {"full": full, "bare": kind("what").to_json()}
