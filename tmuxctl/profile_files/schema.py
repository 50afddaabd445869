"""What a profile's file may say: every key, what it takes, and what is wrong with it if it is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tmuxctl.config import suggest
from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.model import NAME, State, parse_seconds, parse_size
from tmuxctl.profile_files.patterns import find_problem, matches_empty_line
from tmuxctl.profile_files.yaml_tree import YamlNode, parse_yaml, profile_error
from tmuxctl.program_profile import (
    RECORDS,
    AnswerRules,
    HookEventRule,
    Hooks,
    Profile,
    Rule,
    SettingsFile,
    Submit,
    Transcript,
)
from tmuxctl.untrusted import parse_json
from tmuxctl.value import Value
from tmuxctl.vocabulary import Detail, EventKind, InputKind

SCHEMA = "tmuxctl/profile@1"

ASKING_KINDS = tuple(kind for kind in InputKind if kind.traits.asks)
PROMPT_KINDS = tuple(kind for kind in InputKind if not kind.traits.asks and kind is not InputKind.CONTINUATION)

PROGRAM = re.compile(r"[\w.+@*?-]{1,100}")
"""A name of a program in `detect`; `*` and `?` stand for any text and any character."""

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PATH = re.compile(r"[\w-]+(?:\[(?:-?[0-9]{1,4})?\])?(?:\.[\w-]+(?:\[(?:-?[0-9]{1,4})?\])?){0,15}")

Keys = Callable[[Sequence[str]], Any]
"""Raises Usage for a name of a key that there is not."""


class ScreenTest(NamedTuple):
    """A saved screen and what it is to be judged as. `cursor` is its column and row from 0, None: behind the last text;
    `asking` is the id of the rule that has to find the question; `never` are states it may not be taken for."""

    line: int
    screen: str | None
    file: str | None
    title: str
    cursor: tuple[int, int] | None
    state: str | None
    kind: str | None
    detail: str | None
    asking: str | None
    never: tuple[str, ...]


class ProfileDocument(NamedTuple):
    """One file as it was written: its keys with their values, checked; nothing of what it extends."""

    where: str
    given: Mapping[str, Any]
    tests: tuple[ScreenTest, ...] = ()


def parse(data: bytes, where: str, name: str, *, keys: Keys | None = None, trusted: bool = False) -> ProfileDocument:
    """A profile's file, which is to hold the profile of this name. `where` names it in errors, `keys` knows the keys. Patterns of
    a `trusted` file are not tried for the time that they may take.

    Usage `bad_profile` names the line, what is wrong there, and what would be right.
    """
    reader = NodeReader(where, keys, trusted=trusted)
    root = parse_yaml(data, where)
    entries = reader.entries(root, "the profile", KEYS)
    said = entries.pop("schema", None)
    if said is None or said.value != SCHEMA:
        what = "no `schema`" if said is None else f"schema {ascii(said.value)[:60]} is not known"
        raise profile_error(where, said.line if said else 1, what, f"schema: {SCHEMA}")
    tests = reader.tests(entries.pop("tests", YamlNode(1, [])))
    given = {key: KEYS[key](reader, node, key) for key, node in entries.items()}
    if given.setdefault("name", name) != name:
        line = entries["name"].line
        raise profile_error(
            where, line, f"name {given['name']!r} is not that of the file", f"name: {name}, or rename the file"
        )
    return ProfileDocument(where, given, tests)


def _items(node: YamlNode) -> Sequence[YamlNode]:
    """The items of a list; a single one may stand for itself."""
    return node.value if isinstance(node.value, list) else [node]


class NodeReader:
    """Makes values of nodes; every error has a place."""

    def __init__(self, where: str, keys: Keys | None, *, trusted: bool = False) -> None:
        self.where = where
        self.check_keys = keys
        self.trusted = trusted

    def wrong(self, node: YamlNode, what: str, message: str, hint: str = "") -> Usage:
        return profile_error(self.where, node.line, f"{what}: {message}", hint)

    def entries(self, node: YamlNode, what: str, known: Mapping[str, Any] | Sequence[str]) -> dict[str, YamlNode]:
        """A map whose keys are all known and not empty."""
        if not isinstance(node.value, dict):
            raise self.wrong(node, what, f"expected key: value pairs, not {node.kind}")
        for key, value in node.value.items():
            if known and key not in known:
                hint = suggest(key, known) or f"there are: {', '.join(known)}"
                raise self.wrong(value, what, f"no key {ascii(key[:40])}", hint)
            if value.value is None:
                raise self.wrong(value, key, "is empty", "leave it out")
        return dict(node.value)

    def text(self, node: YamlNode, what: str) -> str:
        if not isinstance(node.value, str):
            raise self.wrong(node, what, f"expected text, not {node.kind}")
        if "\0" in node.value:
            raise self.wrong(node, what, "NUL is not allowed")
        return node.value

    def texts(self, node: YamlNode, what: str) -> tuple[str, ...]:
        return tuple(self.text(item, what) for item in _items(node))

    def one_of(self, node: YamlNode, what: str, choices: Sequence[str]) -> str:
        found = self.text(node, what)
        if found not in choices:
            hint = suggest(found, choices) or f"there are: {', '.join(choices)}"
            raise self.wrong(node, what, f"{ascii(found[:40])} is not one of its values", hint)
        return found

    def checked(self, node: YamlNode, what: str, check: Callable[[Any], Any], found: str | Sequence[str]) -> Any:
        """What `check` makes of what was found here; its error gets this place."""
        try:
            return check(found)
        except TmuxctlError as error:
            raise self.wrong(node, what, error.message, error.hint) from None

    def spelled(self, node: YamlNode, what: str, pattern: str | re.Pattern[str], noun: str, hint: str = "") -> str:
        """A text that is wholly of this pattern."""
        found = self.text(node, what)
        if not re.fullmatch(pattern, found):
            raise self.wrong(node, what, f"{ascii(found[:40])} is not {noun}", hint)
        return found

    def word(self, node: YamlNode, what: str) -> str:
        """A name: of a profile, a rule or an option."""
        return self.spelled(
            node, what, NAME, "a valid name", "letters, digits, _ and -, starting with a letter or digit"
        )

    def size(self, node: YamlNode, what: str) -> str:
        return str(self.checked(node, what, parse_size, self.text(node, what)))

    def seconds(self, node: YamlNode, what: str) -> float | None:
        return self.checked(node, what, parse_seconds, self.text(node, what))  # type: ignore[no-any-return]

    def pause(self, node: YamlNode, what: str) -> float:
        return self.seconds(node, what) or 0.0

    def retry(self, node: YamlNode, what: str) -> str:
        self.seconds(node, what)
        return self.text(node, what)

    def number(self, node: YamlNode, what: str) -> float:
        return float(self.spelled(node, what, r"[0-9]{1,9}(\.[0-9]{1,6})?", "a number", "0, 3 or 1.5"))

    def keys(self, node: YamlNode, what: str) -> tuple[str, ...]:
        found = self.texts(node, what)
        if self.check_keys:
            self.checked(node, what, self.check_keys, found)
        return found

    def pattern(self, node: YamlNode, what: str) -> str:
        found = self.text(node, what)
        if not self.trusted and (wrong := find_problem(found)):
            raise self.wrong(node, what, wrong, "Python's syntax, ^ and $ match at lines; put it into '...'")
        return found

    def sign(self, node: YamlNode, what: str) -> str:
        """A pattern that says something by being found: it may not be found everywhere."""
        found = self.pattern(node, what)
        if matches_empty_line(found):
            raise self.wrong(node, what, "this matches an empty line, so it would always hold")
        return found

    def question(self, node: YamlNode, what: str) -> str:
        found = self.pattern(node, what)
        if "q" not in re.compile(found).groupindex:
            raise self.wrong(node, what, "it has no group named q", "question: '(?P<q>Overwrite .+)'")
        return found

    def gutter(self, node: YamlNode, what: str) -> str:
        found = self.sign(node, what)
        if "n" not in re.compile(found).groupindex:
            raise self.wrong(node, what, "it has no group named n", "gutter: '^ *(?P<n>[0-9]+) '")
        return found

    def where_(self, node: YamlNode, what: str) -> str:
        found = self.text(node, what)
        if not re.fullmatch(r"screen|cursor-line|last-line|title|bottom:[1-9][0-9]{0,2}", found):
            known = ("screen", "bottom:6", "cursor-line", "last-line", "title")
            raise self.wrong(
                node, what, f"{ascii(found[:40])} is not a place", suggest(found, known) or ", ".join(known)
            )
        return found

    def programs(self, node: YamlNode, what: str) -> tuple[str, ...]:
        hint = "the name without its folder; * and ? match anything, as in python3*"
        return tuple(self.spelled(item, what, PROGRAM, "the name of a program", hint) for item in _items(node))

    def variables(self, node: YamlNode, what: str) -> dict[str, str]:
        found = self.texts_by_name(node, what)
        for name in found:
            self.spelled(node._replace(value=name), what, VARIABLE, "the name of a variable")
        return found

    def options(self, node: YamlNode, what: str) -> dict[str, tuple[str, ...]]:
        entries = self.entries(node, what, ())
        found = {self.word(entry._replace(value=key), what): self.keys(entry, what) for key, entry in entries.items()}
        if empty := next((key for key, keys in found.items() if not keys), None):
            raise self.wrong(entries[empty], what, f"{empty!r} has no keys", "an answer given as text has no option")
        return found

    def record(self, node: YamlNode, what: str, readers: Mapping[str, ReadNode]) -> dict[str, Any]:
        """A map with these keys."""
        found = self.entries(node, what, readers)
        return {key: readers[key](self, entry, f"{what}.{key}") for key, entry in found.items()}

    def rules(self, node: YamlNode, what: str, readers: Mapping[str, ReadNode]) -> tuple[Rule, ...]:
        rules: dict[str, Rule] = {}
        for item in _items(node):
            rule = self._rule(item, what, readers)
            if rule.id in rules:
                raise self.wrong(item, what, f"two rules with the id {rule.id!r}")
            rules[rule.id] = rule
        return tuple(rules.values())

    def _rule(self, node: YamlNode, what: str, readers: Mapping[str, ReadNode]) -> Rule:
        found = self.record(node, what, readers)
        for key in ("id", "re", "kind") if what == "asking" else ("id", "re"):
            if key not in found:
                hint = f"there are: {', '.join(ASKING_KINDS)}" if key == "kind" else "- {id: input, re: '^> '}"
                raise self.wrong(node, what, f"a rule needs `{key}`", hint)
        if "default" in found and found["default"] not in found.get("options", {}):
            raise self.wrong(node, what, f"the default {found['default']!r} is none of the options")
        return Rule(**found)

    def truth(self, node: YamlNode, what: str) -> bool:
        return self.one_of(node, what, ("true", "false")) == "true"

    def hooks(self, node: YamlNode, what: str) -> Hooks | str:
        """How the program tells of its turns; a name is that of another profile that says it."""
        if isinstance(node.value, str):
            return self.word(node, what)
        found = self.record(node, what, _readers_by_key(Hooks))
        for name in found.get("files", {}):
            self.spelled(node._replace(value=name), "hooks.files", FILE, "a plain file name")
        return Hooks(**found)

    def json_object(self, node: YamlNode, what: str) -> str:
        found = self.text(node, what)
        with suppress(ValueError):
            if isinstance(parse_json(found), dict):
                return found
        raise self.wrong(node, what, "expected a JSON object", """hook: '{"timeout": 10}'""")

    def path(self, node: YamlNode, what: str) -> str:
        """Where a value stands in JSON: `a.b`, `a[].b` for that of every item, `a[-1]` for the last."""
        found = self.text(node, what)
        if not PATH.fullmatch(found):
            raise self.wrong(
                node, what, f"{ascii(found[:60])} is not a path", "a.b, a[].b for every item, a[-1] for the last"
            )
        return found

    def matches(self, node: YamlNode, what: str) -> dict[str, str]:
        """Paths with the patterns of their values."""
        found = self.entries(node, what, ())
        return {self.path(entry._replace(value=key), what): self.pattern(entry, what) for key, entry in found.items()}

    def texts_by_name(self, node: YamlNode, what: str) -> dict[str, str]:
        return {key: self.text(entry, key) for key, entry in self.entries(node, what, ()).items()}

    def tests(self, node: YamlNode) -> tuple[ScreenTest, ...]:
        if not isinstance(node.value, list):
            raise self.wrong(node, "tests", f"expected a list, not {node.kind}")
        return tuple(self._test(item) for item in node.value)

    def _test(self, node: YamlNode) -> ScreenTest:
        found = self.record(node, "tests", TEST)
        if ("screen" in found) == ("screen_file" in found):
            raise self.wrong(node, "tests", "a test has either `screen` or `screen_file`")
        if not {"state", "not"} & found.keys():
            raise self.wrong(node, "tests", "a test needs its `state`, or the states it is `not`")
        renamed = {"file": found.pop("screen_file", None), "never": found.pop("not", ())}
        empty = {"screen": None, "title": "", **dict.fromkeys(("cursor", "state", "kind", "detail", "asking"))}
        return ScreenTest(line=node.line, **{**empty, **found, **renamed})

    def cursor(self, node: YamlNode, what: str) -> tuple[int, int]:
        found = re.fullmatch(r"([0-9]{1,4}), ?([0-9]{1,4})", self.text(node, what))
        if not found:
            raise self.wrong(node, what, "is written COLUMN,ROW, both from 0", "cursor: 4,0")
        return int(found[1]), int(found[2])


STATES = tuple(one.value for one in State)

ReadNode = Callable[[NodeReader, YamlNode, str], Any]


class Field(NamedTuple):
    """A field of a record, its key in a file (of a map in it: `outer.inner`), and what reads it there."""

    name: str
    key: str
    read: ReadNode


def _read_declarations(kind: type[Value]) -> Iterator[Field]:
    """The fields of a record, by the declarations of their class."""
    for name, annotation in kind.__annotations__.items():
        keyed = re.fullmatch(r"Annotated\[(.+), '([a-z0-9.]+)'\]", annotation)
        wanted, key = keyed.groups() if keyed else (annotation, name)
        wanted = wanted.removesuffix(" | None")
        choices = re.findall(r"'(\w+)'", wanted) if wanted.startswith("Literal[") else ()
        yield Field(name, key, _one_of_reader(*choices) if choices else READERS[wanted])


def key_of(kind: type[Value], name: str) -> str:
    """The key of a record's field in a file."""
    return next(field.key for field in FIELDS[kind] if field.name == name)


def by_field_name(kind: type[Value], found: Mapping[str, Any]) -> dict[str, Any]:
    """What was read of a record, by the names of its fields."""
    return {field.name: found[field.key] for field in FIELDS[kind] if field.key in found}


def _readers_by_key(kind: type[Value]) -> dict[str, ReadNode]:
    return {field.key: field.read for field in FIELDS[kind]}


def _readers_of_file() -> dict[str, ReadNode]:
    found: dict[str, Any] = {"schema": NodeReader.text, "name": NodeReader.word, "extends": NodeReader.word}
    for key, read in _readers_by_key(Profile).items():
        outer, _, inner = key.partition(".")
        if inner:
            found.setdefault(outer, {})[inner] = read
        else:
            found[outer] = read
    found["tests"] = NodeReader.text
    return {key: _record_reader(reader) if isinstance(reader, dict) else reader for key, reader in found.items()}


def _one_of_reader(*choices: str) -> ReadNode:
    return lambda reader, node, what: reader.one_of(node, what, choices)


def _details_of_rules(rules: str) -> tuple[str, ...]:
    """The details that rules of this kind may give."""
    return tuple(detail for detail in Detail if rules in detail.traits.rules)


def _record_reader(readers: Mapping[str, ReadNode]) -> ReadNode:
    return lambda reader, node, what: reader.record(node, what, readers)


def _list_reader(read: ReadNode) -> ReadNode:
    return lambda reader, node, what: tuple(read(reader, item, what) for item in _items(node))


def _whole_record_reader(kind: type[Value], noun: str = "it", hint: str = "") -> ReadNode:
    """Reads a record in which every field without a default has to stand."""

    def read(reader: NodeReader, node: YamlNode, what: str) -> Value:
        found = reader.record(node, what, _readers_by_key(kind))
        needed = [field.key for field in FIELDS[kind] if field.name not in kind._defaults]
        if not found.keys() >= set(needed):
            raise reader.wrong(node, what, f"{noun} needs {' and '.join(f'`{key}`' for key in needed)}", hint)
        return kind(**by_field_name(kind, found))

    return read


def _partial_record_reader(kind: type[Value]) -> ReadNode:
    """Reads a record of which a file that extends another may give some keys: a map it stays until they are joined."""
    return lambda reader, node, what: reader.record(node, what, _readers_by_key(kind))


def _rules_reader(*names: str, **choices: Sequence[str]) -> ReadNode:
    """Reads rules with the fields that all have, these besides, and those that take only some of their words."""

    def read(reader: NodeReader, node: YamlNode, what: str) -> tuple[Rule, ...]:
        known = _readers_by_key(Rule)
        narrowed = {name: _one_of_reader(*words) for name, words in choices.items()}
        return reader.rules(node, what, {name: known[name] for name in (*EVERY_RULE, *names)} | narrowed)

    return read


EVERY_RULE = ("id", "re", "where", "begin", "unless", "title")
"""The fields that a rule has, whatever it is for."""

READERS: Mapping[str, ReadNode] = {
    "str": NodeReader.text,
    "bool": NodeReader.truth,
    "float": NodeReader.number,
    "tuple[str, ...]": NodeReader.texts,
    "Dimensions": NodeReader.size,
    "EventWord": _one_of_reader(*EventKind),
    "Gutter": NodeReader.gutter,
    "JsonObject": NodeReader.json_object,
    "Keys": NodeReader.keys,
    "Kind": _one_of_reader(*ASKING_KINDS),
    "Matches": NodeReader.matches,
    "Options": NodeReader.options,
    "Path": NodeReader.path,
    "Pattern": NodeReader.pattern,
    "Patterns": _list_reader(NodeReader.pattern),
    "Pause": NodeReader.pause,
    "Place": NodeReader.where_,
    "Programs": NodeReader.programs,
    "Question": NodeReader.question,
    "Retry": NodeReader.retry,
    "Seconds": NodeReader.seconds,
    "Sign": NodeReader.sign,
    "Texts": NodeReader.texts_by_name,
    "Variables": NodeReader.variables,
    "Word": NodeReader.word,
    "PromptRules": _rules_reader(detail=_details_of_rules("prompt"), kind=PROMPT_KINDS),
    "ContinuationRules": _rules_reader(detail=_details_of_rules("continuation")),
    "BusyRules": _rules_reader(detail=_details_of_rules("busy")),
    "AskingRules": _rules_reader("kind", "question", "options", "menu", "strip", "default", "risk", "hidden"),
    "ErrorRules": _rules_reader("retry", detail=_details_of_rules("errors")),
    "Submit": _partial_record_reader(Submit),
    "AnswerRules": _partial_record_reader(AnswerRules),
    "Hooks": NodeReader.hooks,
    "tuple[HookEventRule, ...]": _list_reader(
        _whole_record_reader(HookEventRule, "an event", "- {on: Stop, is: stop}")
    ),
    "Transcript": _whole_record_reader(Transcript),
    "SettingsFile": _whole_record_reader(SettingsFile, hint="settings: {folder: ~/.shop, file: settings.json}"),
}
"""What reads a field, by its type in `tmuxctl.program_profile`."""

_KINDS: tuple[type[Value], ...] = (Profile, *RECORDS.values())

FIELDS: Mapping[type[Value], tuple[Field, ...]] = {kind: tuple(_read_declarations(kind)) for kind in _KINDS}
"""The fields of each class of which a file says something."""

KEYS: Mapping[str, ReadNode] = _readers_of_file()
"""Every key of a file in the order of the documentation, and what reads it."""

TEST: Mapping[str, ReadNode] = {
    "screen": NodeReader.text,
    "screen_file": NodeReader.text,
    "title": NodeReader.text,
    "cursor": NodeReader.cursor,
    "state": _one_of_reader(*STATES),
    "kind": _one_of_reader(*InputKind),
    "detail": NodeReader.text,
    "asking": NodeReader.word,
    "not": _list_reader(_one_of_reader(*STATES)),
}
