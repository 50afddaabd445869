"""Reading a connector file: YAML or JSON, checked as a whole. Nothing is executed, and no variable is replaced."""

from __future__ import annotations

import hashlib
import os

from tmuxctl.errors import Usage
from tmuxctl.fleet.connector import Connector
from tmuxctl.fleet.files.connector_keys import read_keys
from tmuxctl.fleet.files.field_kinds import ConnectorReader, connector_error
from tmuxctl.fleet.files.json_tree import parse_json_tree, to_plain
from tmuxctl.ownership import refuse_unsafe
from tmuxctl.profile_files.yaml_tree import SIZE_LIMIT, YamlNode, parse_yaml
from tmuxctl.untrusted import read_below, read_file

INPUT_LIMIT = 1 << 20
"""Bytes that the file of a run's text may have."""


def read_connector(path: str, data: bytes | None = None) -> Connector:
    """What a connector file says, or would say with this `data` in it. A text that begins with `{` is JSON, any other YAML.

    Usage `bad_connector` names the line, what is wrong there, and what would be right; Denied `unsafe_file` for a file that
    others can write.
    """
    path = os.path.abspath(path)
    where = path if path.isprintable() else ascii(path)
    data = _read_data(path, where) if data is None else data
    is_json = data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    root = parse_json_tree(data, where, connector_error) if is_json else parse_yaml(data, where, connector_error)
    reader = ConnectorReader(where, os.path.dirname(path))
    fields = read_keys(reader, root)
    if isinstance(file := fields.get("input"), YamlNode):
        reader.files.append(_read_input(reader, file))
        fields["input"] = reader.files[-1].decode()
    parts = [data, os.fsencode(path), *reader.files]
    # a digest of digests: where one part ends cannot be moved
    digest = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
    return Connector(path=path, digest=digest, raw=to_plain(root), **fields)


def _read_data(path: str, where: str) -> bytes:
    try:
        data = read_file(path, SIZE_LIMIT + 1, follow=True)
        refuse_unsafe(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Usage(f"{where}: {why}", reason="bad_connector", hint="name the file of a connector") from None
    return data


def _read_input(reader: ConnectorReader, node: YamlNode) -> bytes:
    """The bytes of the file with the run's text, which are UTF-8."""
    what, path = "input.file", str(node.value)
    try:
        data = read_below(reader.folder, path, INPUT_LIMIT + 1)
    except OSError as error:
        hint = "a path below the folder of this file; links are not followed"
        raise reader.wrong(node, what, f"{ascii(path[:80])}: {error.strerror}", hint) from None
    if len(data) > INPUT_LIMIT:
        raise reader.wrong(node, what, f"{ascii(path[:80])} is larger than 1 MiB")
    try:
        data.decode()
    except UnicodeDecodeError:
        raise reader.wrong(node, what, f"{ascii(path[:80])} is not UTF-8", "save it as UTF-8") from None
    if b"\0" in data:
        raise reader.wrong(node, what, f"{ascii(path[:80])} has NUL in it")
    return data
