"""The JSON Schema of connector files: as published, and as the reader sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fleet.connector_cases import (
    AGENT_CASES,
    AGENTS,
    HEAD,
    NAME_CASES,
    OTHER_CASES,
    SMALL,
    TOPOLOGY,
    TOPOLOGY_CASES,
    WHOLE,
)
from jsonschema import Draft202012Validator

from tmuxctl.fleet.files.json_schema import connector_schema
from tmuxctl.fleet.files.reading import read_connector
from tmuxctl.fleet.files.templates import template

PUBLISHED = Path(__file__).resolve().parent.parent.parent / "docs" / "connector.schema.json"

READER_ONLY = (
    "no agent '", "no agent may be called All", "no agent may be called TmuxCtl", "differs from it only",
    "is neither of", "is the chair", "is the root", "comes after", "answers of", "an agent stands there twice",
    "not a regular expression", "would always hold", "matches an empty line", "too long",
    "was given before", "NUL is not allowed", "is not a program", "local is this machine", "the table of groups",
    "not a valid destination", "both ssh and command", "is not a valid size", "is not a duration that can be used",
)  # fmt: skip
"""What a schema cannot say, or says less strictly, as the reader says it."""


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return Draft202012Validator(connector_schema())


def test_the_published_file_is_the_schema_of_the_reader():
    assert json.loads(PUBLISHED.read_text()) == connector_schema(), (
        "python -m tmuxctl.fleet.files.json_schema > docs/connector.schema.json"
    )


def test_a_file_may_name_the_schema_for_an_editor(tmp_path: Path, validator: Draft202012Validator):
    file = tmp_path / "team.json"
    about = {"$schema": "./connector.schema.json", **yaml.safe_load(template("pipeline"))}
    file.write_text(json.dumps(about))
    assert not list(validator.iter_errors(about))
    assert read_connector(str(file)).name == about["name"]


def test_it_is_a_schema():
    Draft202012Validator.check_schema(connector_schema())


def described(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every key of a file, with its schema."""
    if isinstance(schema, dict):
        properties = schema.get("properties", {})
        yield from ((key, inner) for key, inner in properties.items() if key != "type")
        schema = list(schema.values())
    if isinstance(schema, list):
        for inner in schema:
            yield from described(inner)


def test_every_key_is_described():
    found = list(described(connector_schema()))
    assert len(found) > 60
    assert not [key for key, schema in found if not schema.get("description")]


@pytest.mark.parametrize("topology", ["pipeline", "dialogue", "meeting", "mesh", "recursive"])
def test_a_template_fits(validator: Draft202012Validator, topology: str):
    assert not list(validator.iter_errors(yaml.safe_load(template(topology))))


@pytest.mark.parametrize("content", [WHOLE, yaml.safe_load(SMALL)])
def test_what_the_reader_takes_fits(validator: Draft202012Validator, content: dict[str, Any]):
    assert not list(validator.iter_errors(content))


def wrong_files() -> Iterator[tuple[str, str]]:
    """What the reader says of a file, and the file."""
    one = "{command: [bash]}"
    for agent, said, _ in AGENT_CASES:
        yield said, f"{HEAD}agents:\n  a: {one}\n  b: {agent}\n{TOPOLOGY}"
    for name, said in NAME_CASES:
        yield said, f"{HEAD}agents:\n  writer: {one}\n  {name}: {one}\n{TOPOLOGY}"
    for topology, said, _ in TOPOLOGY_CASES:
        yield said, f"{HEAD}{AGENTS}topology: {topology}\n"
    for line, said, _ in OTHER_CASES:
        yield said, f"{SMALL}{line}\n"


@pytest.mark.parametrize(("said", "text"), [*wrong_files()])
def test_what_the_reader_refuses_does_not_fit(validator: Draft202012Validator, said: str, text: str):
    if validator.is_valid(yaml.safe_load(text)):
        assert any(words in said for words in READER_ONLY)


@pytest.mark.parametrize("key", ["schema", "name", "agents", "topology"])
def test_a_key_may_not_be_missing(validator: Draft202012Validator, key: str):
    assert not validator.is_valid({name: value for name, value in WHOLE.items() if name != key})
