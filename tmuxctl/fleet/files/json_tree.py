"""JSON as the tree that YAML becomes, in which everything knows its line; and either tree as JSON has it.

YAML's parser is not asked to read JSON: it refuses an escaped surrogate pair and a key of more than 1,024 characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from tmuxctl.profile_files.yaml_tree import DEPTH_LIMIT, SIZE_LIMIT, LineError, YamlNode, decode_file
from tmuxctl.untrusted import parse_json

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]+')
"""A piece of a text that is known to be JSON."""

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,15})?")


def parse_json_tree(data: bytes, where: str, wrong: LineError) -> YamlNode:
    """The file's content; the error that `wrong` makes of `where` and the line for anything that is not JSON, for what is
    nested too deeply, and for a key given twice."""
    text = decode_file(data, where, wrong)
    try:
        parse_json(text, limit=SIZE_LIMIT, parse_constant=_refuse_constant)
    except ValueError as error:
        said = getattr(error, "msg", None) or str(error)
        hint = "a text that begins with { is read as JSON, any other as YAML"
        raise wrong(where, getattr(error, "lineno", 1), said, hint) from None
    return _TreeBuilder(text, where, wrong).build(0)


def to_plain(node: YamlNode) -> Any:
    """The tree as JSON has it: a scalar without quotes that looks like a number or a truth is one."""
    if isinstance(node.value, dict):
        return {key: to_plain(inner) for key, inner in node.value.items()}
    if isinstance(node.value, list):
        return [to_plain(inner) for inner in node.value]
    if node.plain and node.value and (node.value in ("true", "false") or NUMBER.fullmatch(node.value)):
        return parse_json(node.value)
    return node.value


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number in JSON")


class _TreeBuilder:
    """Makes nodes of the tokens, one after the other."""

    def __init__(self, text: str, where: str, wrong: LineError) -> None:
        self.where, self.wrong = where, wrong
        self._ends = [place.start() for place in re.finditer("\n", text)]
        self._tokens: Iterator[re.Match[str]] = TOKEN.finditer(text)

    def build(self, depth: int) -> YamlNode:
        """The value that begins with the next token."""
        return self._node(*self._next(), depth)

    def _next(self) -> tuple[str, int]:
        """The next token and its line."""
        token = next(self._tokens)
        return token[0], bisect_right(self._ends, token.start()) + 1

    def _node(self, token: str, line: int, depth: int) -> YamlNode:
        if token not in ("{", "["):
            return self._scalar(token, line)
        if depth >= DEPTH_LIMIT:
            raise self.wrong(self.where, line, "nested too deeply", "")
        items: list[YamlNode] = []
        entries: dict[str, YamlNode] = {}
        while (found := self._next())[0] not in ("}", "]"):
            if found[0] == ",":
                continue
            if token == "[":
                items.append(self._node(*found, depth + 1))
                continue
            key, at = str(self._scalar(*found).value), found[1]
            if key in entries:
                message = f"{ascii(key[:80])} was given before, on line {entries[key].line}"
                raise self.wrong(self.where, at, message, "")
            self._next()
            entries[key] = self.build(depth + 1)._replace(line=at)
        return YamlNode(line, items if token == "[" else entries)

    def _scalar(self, token: str, line: int) -> YamlNode:
        if not token.startswith('"'):
            return YamlNode(line, None if token == "null" else token, plain=True)
        return YamlNode(line, parse_json(token))
