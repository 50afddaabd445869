"""What a field of a connector file may hold: each kind reads it, and says it as JSON Schema does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tmuxctl.config import suggest
from tmuxctl.errors import Usage
from tmuxctl.fleet.connector import RESERVED
from tmuxctl.model import NAME, NAME_HINT, parse_seconds
from tmuxctl.profile_files.patterns import LENGTH_LIMIT, find_problem
from tmuxctl.profile_files.schema import NodeReader
from tmuxctl.profile_files.yaml_tree import YamlNode
from tmuxctl.value import NamedTuple, Value

MONTH = 30 * 86400.0
"""The longest that a run or a turn may be given, in seconds."""

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, which JSON and YAML can write and UTF-8 cannot."""


def connector_error(where: str, line: int, message: str, hint: str = "") -> Usage:
    """The error for a line of a connector file."""
    hint = hint or "docs/connector.schema.json describes every key"
    return Usage(f"{where} line {line}: {message}", reason="bad_connector", hint=hint)


class ConnectorReader(NodeReader):
    """Makes values of a connector file's nodes. `folder` is that of the file, `agents` are the names that the file may refer
    to, `files` the content of other files that say what it does."""

    def __init__(self, where: str, folder: str) -> None:
        super().__init__(where, None)
        self.folder = folder
        self.agents: tuple[str, ...] = ()
        self.files: list[bytes] = []

    def wrong(self, node: YamlNode, what: str, message: str, hint: str = "") -> Usage:
        # a name in it may not have been looked at yet
        place = what if what.isprintable() else ascii(what)[1:-1]
        return connector_error(self.where, node.line, f"{place[:200]}: {message}", hint)

    def text(self, node: YamlNode, what: str) -> str:
        found = super().text(node, what)
        if SURROGATE.search(found):
            raise self.wrong(node, what, "half of a surrogate pair", "write the character itself")
        return found

    def pattern(self, node: YamlNode, what: str) -> str:
        found = self.text(node, what)
        if problem := find_problem(found):
            raise self.wrong(node, what, problem, "Python's syntax; (?m) in front lets ^ and $ match at lines")
        return found

    def agent(self, node: YamlNode, what: str) -> str:
        """The name of an agent that there is."""
        found = self.text(node, what)
        if found not in self.agents:
            hint = suggest(found, self.agents) or f"there are: {', '.join(self.agents[:20])}"
            raise self.wrong(node, what, f"no agent {ascii(found[:40])}", hint)
        return found

    def fields(self, node: YamlNode, what: str, keys: FileKeys, prefix: str | None = None) -> dict[str, Any]:
        """What a map with these keys says, by the names of fields; `prefix` stands before its keys in errors."""
        entries = self.entries(node, what, keys)
        if missing := [key for key, known in keys.items() if known.needed and key not in entries]:
            raise self.wrong(node, what, f"`{missing[0]}` is missing", keys[missing[0]].about)
        prefix = f"{what}." if prefix is None else prefix
        # in the order of the table: what others refer to comes first
        return {
            known.field or key: known.kind.read(self, entries[key], f"{prefix}{key}")
            for key, known in keys.items()
            if key in entries
        }


class FieldKind(NamedTuple):
    """How a field is read, and its JSON Schema."""

    read: Callable[[ConnectorReader, YamlNode, str], Any]
    schema: Mapping[str, Any]


class FileKey(NamedTuple):
    """A key of a map in a file: what it takes, what it is for, the field of the value (empty: called the same), and whether it
    has to stand there."""

    kind: FieldKind
    about: str
    field: str = ""
    needed: bool = False


FileKeys = Mapping[str, FileKey]


def spelled(pattern: str, noun: str, hint: str = "") -> FieldKind:
    """A text that is wholly of a pattern, which JSON Schema reads as Python does."""
    return FieldKind(
        lambda reader, node, what: reader.spelled(node, what, pattern, noun, hint),
        {"type": "string", "pattern": f"^(?:{pattern})$"},
    )


def _read_text(reader: ConnectorReader, node: YamlNode, what: str) -> str:
    found = reader.text(node, what)
    if not found.strip():
        raise reader.wrong(node, what, "is empty", "write a text, or leave it out")
    return found


TEXT = FieldKind(_read_text, {"type": "string", "pattern": r"\S"})
TRUTH = FieldKind(ConnectorReader.truth, {"type": "boolean"})
SIZE = FieldKind(ConnectorReader.size, {"type": "string", "pattern": "^[0-9]{1,4}x[0-9]{1,4}$"})
AGENT = FieldKind(ConnectorReader.agent, {"type": "string", "pattern": f"^{NAME.pattern}$"})


PATTERN = FieldKind(
    ConnectorReader.sign, {"type": "string", "format": "regex", "minLength": 1, "maxLength": LENGTH_LIMIT}
)


def checked(check: Callable[[str], Any], schema: Mapping[str, Any]) -> FieldKind:
    """A text as it is written, of which a function knows what is wrong with it."""

    def read(reader: ConnectorReader, node: YamlNode, what: str) -> str:
        found = _read_text(reader, node, what)
        reader.checked(node, what, check, found)
        return found

    return FieldKind(read, schema)


def one_of(*choices: str) -> FieldKind:
    """One of these words."""
    return FieldKind(lambda reader, node, what: reader.one_of(node, what, choices), {"enum": list(choices)})


def whole_number(low: int, high: int) -> FieldKind:
    """A whole number within bounds."""

    def read(reader: ConnectorReader, node: YamlNode, what: str) -> int:
        found = reader.text(node, what)
        if not re.fullmatch("[0-9]{1,9}", found, re.ASCII) or not low <= int(found) <= high:
            raise reader.wrong(node, what, f"{ascii(found[:40])} is not a whole number from {low} to {high}")
        return int(found)

    return FieldKind(read, {"type": "integer", "minimum": low, "maximum": high})


def seconds(most: float) -> FieldKind:
    """A duration of at least something, in seconds."""

    def read(reader: ConnectorReader, node: YamlNode, what: str) -> float:
        found = reader.checked(node, what, parse_seconds, reader.text(node, what))
        if not found or found > most:
            hint = f"more than 0, at most {most / 86400:g}d: 500ms, 30s, 10m, 1h30m"
            raise reader.wrong(node, what, "is not a duration that can be used", hint)
        return float(found)

    forms = [
        {"type": "number", "exclusiveMinimum": 0, "maximum": most},
        {"type": "string", "pattern": "^[0-9][0-9.a-z ]*$"},
    ]
    return FieldKind(read, {"anyOf": forms, "examples": ["30s", "10m", "1h30m"]})


def list_of(kind: FieldKind, most: int, least: int = 1, *, unique: bool = True) -> FieldKind:
    """A list of things of one kind."""

    def read(reader: ConnectorReader, node: YamlNode, what: str) -> tuple[Any, ...]:
        if not isinstance(node.value, list):
            raise reader.wrong(node, what, f"expected a list, not {node.kind}", "[...], even of one item")
        if not least <= len(node.value) <= most:
            count = f"{least}" if least == most else f"{least} to {most}"
            raise reader.wrong(node, what, f"{len(node.value)} items instead of {count}")
        found = tuple(kind.read(reader, item, f"{what}.{number}") for number, item in enumerate(node.value))
        if unique and len(set(found)) < len(found):
            twice = next(item for item in found if found.count(item) > 1)
            raise reader.wrong(node, what, f"{ascii(twice[:40])} stands there twice")
        return found

    rest = {"uniqueItems": True} if unique else {}
    return FieldKind(read, {"type": "array", "items": kind.schema, "minItems": least, "maxItems": most, **rest})


def map_of(key: FieldKind, kind: FieldKind, most: int, least: int = 0) -> FieldKind:
    """A map whose keys are of a kind, too."""

    def read(reader: ConnectorReader, node: YamlNode, what: str) -> dict[str, Any]:
        entries = reader.entries(node, what, ())
        if not least <= len(entries) <= most:
            raise reader.wrong(node, what, f"{len(entries)} entries instead of {least} to {most}")
        found = {}
        for written, inner in entries.items():
            name = key.read(reader, inner._replace(value=written), what)
            found[name] = kind.read(reader, inner, f"{what}.{name}")
        return found

    return FieldKind(
        read,
        {
            "type": "object",
            "propertyNames": key.schema,
            "additionalProperties": kind.schema,
            "minProperties": least,
            "maxProperties": most,
        },
    )


def record(kind: type[Value], keys: FileKeys, **schema: Any) -> FieldKind:
    """A map with these keys, which becomes a value of this class."""
    return FieldKind(lambda reader, node, what: kind(**reader.fields(node, what, keys)), keys_schema(keys) | schema)


def keys_schema(keys: FileKeys) -> dict[str, Any]:
    """The JSON Schema of a map with these keys."""
    return {
        "type": "object",
        "properties": {key: {"description": known.about, **known.kind.schema} for key, known in keys.items()},
        "required": [key for key, known in keys.items() if known.needed],
        "additionalProperties": False,
    }


def either(choose: Callable[[YamlNode], bool], kind: FieldKind, other: FieldKind) -> FieldKind:
    """The first kind where `choose` says so of the node, else the other."""
    return FieldKind(
        lambda reader, node, what: (kind if choose(node) else other).read(reader, node, what),
        {"anyOf": [kind.schema, other.schema]},
    )


def _read_new_name(reader: ConnectorReader, node: YamlNode, what: str) -> str:
    found = reader.spelled(node, what, NAME, "a valid name", NAME_HINT)
    if found.lower() in RESERVED:
        raise reader.wrong(
            node, what, f"no agent may be called {found}", f"{', '.join(RESERVED)} have a meaning of their own"
        )
    return found


NEW_AGENT = FieldKind(_read_new_name, {"pattern": f"^{NAME.pattern}$", "not": {"enum": list(RESERVED)}})
"""The name that an agent is given."""
