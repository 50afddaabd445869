"""The JSON Schema of connector files, made from the tables that they are read by; editors complete and check with it.

A schema cannot say all: that an agent exists, or that a pattern ends. And the reader takes a number in quotes too.
`python -m tmuxctl.fleet.files.json_schema` prints it, as docs/connector.schema.json has it.
"""

from __future__ import annotations

import json
from typing import Any

from tmuxctl.fleet.connector import SCHEMA
from tmuxctl.fleet.files.connector_keys import CONNECTOR_KEYS
from tmuxctl.fleet.files.field_kinds import keys_schema


def connector_schema() -> dict[str, Any]:
    """The schema, in JSON Schema draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "description": "A team of programs, each in a tmux session of its own, and who of them is given what.",
        **keys_schema(CONNECTOR_KEYS),
    }


if __name__ == "__main__":
    print(json.dumps(connector_schema(), indent=2))
