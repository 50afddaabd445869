"""YAML as a tree in which everything knows its line: maps, lists and text, nothing that could stand for something else.

Every scalar is the text that was written: `yes` is an option's name here, not a truth. Aliases, anchors, tags, a second
document and a key given twice are refused, so a small file can never become a large tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from tmuxctl.errors import Usage

SIZE_LIMIT = 256 << 10
"""Bytes a file may have."""

DEPTH_LIMIT = 8
"""Levels of maps and lists in each other; the deepest place of a profile is on the fourth."""

LineError: TypeAlias = Callable[[str, int, str, str], Usage]
"""Makes the error for a line of a file: the file, the line, what is wrong, and a hint or nothing."""


class YamlNode(NamedTuple):
    """A piece of the file: its text, its items or its entries (None: empty), and the line its key or itself is on. `plain`: the
    text was written without quotes, so it may have been meant as a number or a truth."""

    line: int
    value: str | list[YamlNode] | dict[str, YamlNode] | None
    plain: bool = False

    @property
    def kind(self) -> str:
        """What it is, in a word for messages."""
        kinds: tuple[tuple[type, str], ...] = ((str, "text"), (list, "a list"), (dict, "a map"))
        return next((name for kind, name in kinds if isinstance(self.value, kind)), "empty")


def profile_error(where: str, line: int, message: str, hint: str = "") -> Usage:
    """The error for a line of a file."""
    hint = hint or "docs/profiles.md lists every field"
    return Usage(f"{where} line {line}: {message}", reason="bad_profile", hint=hint)


def parse_yaml(data: bytes, where: str, wrong: LineError = profile_error) -> YamlNode:
    """The file's content; the error that `wrong` makes of `where` and the line for anything that is not plain YAML."""
    text = decode_file(data, where, wrong)
    import yaml

    if found := yaml.reader.Reader.NON_PRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise wrong(where, line, f"the character U+{ord(found[0]):04X} is not allowed in YAML", "")
    try:
        return _build_document(_parse_events(text, where, wrong), where, wrong)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = error.problem or error.context or "no YAML"
        line = mark.line if mark else 0
        tab = "\t" in "".join(text.split("\n")[line : line + 1])
        hint = "indent with spaces, not with tabs" if tab else "text with : # or quotes in it goes into '...'"
        raise wrong(where, line + 1, said, hint) from None


def decode_file(data: bytes, where: str, wrong: LineError) -> str:
    """The file as text; the error that `wrong` makes for one that is too large or not UTF-8."""
    if len(data) > SIZE_LIMIT:
        raise wrong(where, 1, f"the file is larger than {SIZE_LIMIT >> 10} KB", "a few hundred lines are usual")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong(where, data.count(b"\n", 0, error.start) + 1, "not UTF-8", "save it as UTF-8") from None


def _parse_events(text: str, where: str, wrong: LineError) -> Iterator[Any]:
    """What YAML's parser finds, one thing after the other, without what could stand for something else."""
    import yaml

    # the same events from C, ten times as fast, where PyYAML was built with it; a one-file application has none
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    event: Any
    for event in yaml.parse(text, Loader=loader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise wrong(
                where,
                line,
                "aliases (*) and anchors (&) are not allowed",
                "write it out; a profile may also use `extends`",
            )
        if getattr(event, "tag", None) is not None:
            raise wrong(
                where,
                line,
                f"tags ({ascii(event.tag)[1:-1]}) are not allowed",
                "text that begins with ! goes into '...'",
            )
        yield event


def _build_document(events: Iterator[Any], where: str, wrong: LineError) -> YamlNode:
    import yaml

    found: YamlNode | None = None
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            if found is not None:
                raise wrong(where, line, "a second document (---) in one file", "")
            found = _build_node(next(events), events, where, wrong, 0)
    if found is None:
        raise wrong(where, 1, "the file is empty", "")
    return found


def _build_node(event: Any, events: Iterator[Any], where: str, wrong: LineError, depth: int) -> YamlNode:
    import yaml

    line = event.start_mark.line + 1
    if isinstance(event, yaml.ScalarEvent):
        empty = not event.style and event.value in ("", "~", "null")
        return YamlNode(line, None if empty else event.value, plain=not event.style)
    if depth >= DEPTH_LIMIT:
        raise wrong(where, line, "nested too deeply", "")
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(_build_node(event, events, where, wrong, depth + 1))
        return YamlNode(line, items)
    entries: dict[str, YamlNode] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        key, at = _build_node(event, events, where, wrong, depth + 1), event.start_mark.line + 1
        if not isinstance(key.value, str):
            raise wrong(where, at, f"a key is text, not {key.kind}", "")
        if key.value in entries:
            raise wrong(where, at, f"{ascii(key.value)} was given before, on line {entries[key.value].line}", "")
        entries[key.value] = _build_node(next(events), events, where, wrong, depth + 1)._replace(line=at)
    return YamlNode(line, entries)
