"""What a connector file says but for its topology: its keys, those of an agent, and those of what stands in them."""

from __future__ import annotations

import os
from typing import Any

from tmuxctl.config import suggest
from tmuxctl.errors import TmuxctlError
from tmuxctl.extensions import read_extension
from tmuxctl.fleet.connector import SCHEMA, Agent, Isolation, OnError, Stop
from tmuxctl.fleet.files.field_kinds import (
    MONTH,
    NEW_AGENT,
    PATTERN,
    SIZE,
    TEXT,
    TRUTH,
    ConnectorReader,
    FieldKind,
    FileKey,
    FileKeys,
    checked,
    either,
    keys_schema,
    list_of,
    map_of,
    one_of,
    record,
    seconds,
    spelled,
    whole_number,
)
from tmuxctl.fleet.files.topology_keys import AGENTS_MOST, TOPOLOGY
from tmuxctl.machines import MACHINE, check_machine_name, parse_machine
from tmuxctl.model import NAME, NAME_HINT
from tmuxctl.plugin import parse_with
from tmuxctl.profile_files.library import find_file
from tmuxctl.profile_files.yaml_tree import YamlNode
from tmuxctl.value import changed

ROUTES = ("first", "cheapest", "round-robin", "least-limited")

HERE = "local"
"""The name of this machine."""

YEAR = 365 * 86400.0
"""The longest that a program may live, in seconds: the limit of the timeout plugin."""

WORD = spelled(NAME.pattern, "a valid name", NAME_HINT)
VARIABLE = spelled("[A-Za-z_][A-Za-z0-9_]*", "the name of a variable", "letters, digits and _")
POLICY = spelled(r"[^,=\s][^,=\x00-\x1f\x7f]{0,99}", "a question or an option", "without , and =, as in tool: allow")
"""What `--decide` takes on either side of its `=`."""

SCALAR = FieldKind(ConnectorReader.text, {"type": ["string", "number", "boolean"]})
PROGRAM_WORD = FieldKind(ConnectorReader.text, {"type": "string"})


def _read_duration(reader: ConnectorReader, node: YamlNode, what: str) -> str:
    LIFETIME.read(reader, node, what)
    return reader.text(node, what)


LIFETIME = seconds(YEAR)

ISOLATION: FileKeys = {
    "worktree": FileKey(TEXT, "a git worktree of this branch"),
    "sandbox": FileKey(TEXT, "a sandbox: read-only, workspace or workspace+net"),
    "scratchpad": FileKey(TEXT, "a folder that is shared by the agents that name it"),
    "env": FileKey(map_of(VARIABLE, SCALAR, 200), "variables of its environment"),
    "timeout": FileKey(FieldKind(_read_duration, LIFETIME.schema), "end its program after this long"),
    "with": FileKey(
        list_of(checked(parse_with, {"type": "string", "pattern": f"^{NAME.pattern}(?:[=:]|$)"}), 20),
        "other plugins, as `tmuxctl new --with` takes them",
        "plugins",
    ),
}


def _read_command(reader: ConnectorReader, node: YamlNode, what: str) -> tuple[str, ...]:
    if isinstance(node.value, str):
        import shlex

        try:
            words = shlex.split(node.value)
        except ValueError:
            words = [node.value]
        raise reader.wrong(node, what, "expected a list of words, not text", f"{what.rpartition('.')[2]}: {words!r}")
    found: tuple[str, ...] = COMMAND_WORDS.read(reader, node, what)
    if not found[0].strip() or found[0].startswith("-"):
        raise reader.wrong(node, what, f"{ascii(found[0][:40])} is not a program", "the program comes first")
    return found


COMMAND_WORDS = list_of(PROGRAM_WORD, 1000, unique=False)
COMMAND = FieldKind(_read_command, COMMAND_WORDS.schema)

MACHINE_NAME = checked(check_machine_name, {"type": "string", "pattern": f"^{MACHINE.pattern}$"})


PLACES = list_of(MACHINE_NAME, 20)


def _read_machines(reader: ConnectorReader, node: YamlNode, what: str) -> tuple[str | None, ...]:
    """One name or a list of them, as values have them: None is this machine."""
    names = PLACES.read(reader, node if isinstance(node.value, list) else node._replace(value=[node]), what)
    return tuple(None if name == HERE else name for name in names)


def _read_profile(reader: ConnectorReader, node: YamlNode, what: str) -> str:
    """A profile's name, or the whole path of its file, which is a part of what is agreed to."""
    found: str = TEXT.read(reader, node, what)
    if "/" not in found and not found.endswith(".yaml"):
        return found
    path = os.path.normpath(os.path.join(reader.folder, os.path.expanduser(found)))
    try:
        reader.files.append(read_extension(find_file(path)))
    except (OSError, TmuxctlError) as error:
        raise reader.wrong(node, what, str(error), "a profile's name, or its file, beside this one") from None
    return path


AGENT_KEYS: FileKeys = {
    "command": FileKey(COMMAND, "the program and its arguments, executed without a shell"),
    "profile": FileKey(
        FieldKind(_read_profile, TEXT.schema),
        "what is known of the program: a profile's name, or its file; its command is started if there is no other",
    ),
    "candidates": FileKey(list_of(WORD, 20), "profiles: the first whose program is installed and starts is taken"),
    "route": FileKey(one_of(*ROUTES), "the order in which candidates are tried (default: first, as given)"),
    "machine": FileKey(
        FieldKind(_read_machines, {"anyOf": [MACHINE_NAME.schema, PLACES.schema]}),
        f"where it may run, the first that is reached ({HERE}: here)",
        "machines",
    ),
    "cwd": FileKey(TEXT, "its folder"),
    "size": FileKey(SIZE, "its terminal: COLUMNSxROWS"),
    "role": FileKey(TEXT, "the text that it is given first"),
    "isolation": FileKey(record(Isolation, ISOLATION), "what the plugins do for its session"),
    "decide": FileKey(map_of(POLICY, POLICY, 100), "questions that are answered, and how: as `--decide` takes them"),
    "turn_timeout": FileKey(seconds(MONTH), "how long a turn may take (default 10m)"),
}

STARTED_BY = {
    "oneOf": [{"required": ["candidates"]}, {"anyOf": [{"required": ["command"]}, {"required": ["profile"]}]}]
}
"""Candidates stand alone; a command may have a profile beside it."""


def _read_agent(reader: ConnectorReader, node: YamlNode, what: str) -> Agent:
    found = reader.fields(node, what, AGENT_KEYS)
    hint = "command: [bash], profile: claude, or candidates: [claude, codex]"
    if not found.keys() & {"command", "profile", "candidates"}:
        raise reader.wrong(node, what, "nothing says what is started", hint)
    if "candidates" in found and found.keys() & {"command", "profile"}:
        raise reader.wrong(node, what, "candidates go with neither command nor profile", hint)
    if "route" in found and "candidates" not in found:
        raise reader.wrong(node, what, "`route` is the order of candidates, and there are none", hint)
    return Agent(name=what.rpartition(".")[2], **found)


AGENT_SCHEMA = keys_schema(AGENT_KEYS) | STARTED_BY | {"dependentRequired": {"route": ["candidates"]}}


def _read_agents(reader: ConnectorReader, node: YamlNode, what: str) -> dict[str, Agent]:
    agents: dict[str, Agent] = AGENT_MAP.read(reader, node, what)
    first: dict[str, str] = {}
    for name in agents:
        if (other := first.setdefault(name.lower(), name)) != name:
            at = reader.entries(node, what, ())[name]
            raise reader.wrong(at, f"{what}.{name}", f"{other} differs from it only in upper and lower case")
    reader.agents = tuple(agents)
    return agents


AGENT_MAP = map_of(NEW_AGENT, FieldKind(_read_agent, AGENT_SCHEMA), AGENTS_MOST, 1)

MACHINE_KEYS: FileKeys = {
    "ssh": FileKey(TEXT, "what ssh is given: user@host, or a host of its configuration (default: the machine's name)"),
    "tmux": FileKey(TEXT, "the tmux that is used there"),
    "socket": FileKey(TEXT, "the name of its socket there"),
    "command": FileKey(
        list_of(PROGRAM_WORD, 100, unique=False), "a command instead of ssh, which runs sh on its input"
    ),
}


def _read_machine(reader: ConnectorReader, node: YamlNode, what: str) -> Any:
    name, table = what.partition(".")[2], reader.fields(node, what, MACHINE_KEYS)
    if name == HERE:
        raise reader.wrong(node, what, f"{HERE} is this machine", "choose another name")
    found = reader.checked(node, what, lambda _: parse_machine(name, table), ())
    # it does not come from machines.toml
    return changed(found, source="")


MACHINES = map_of(MACHINE_NAME, FieldKind(_read_machine, keys_schema(MACHINE_KEYS)), AGENTS_MOST)

STOP: FileKeys = {
    "turns": FileKey(whole_number(1, 1_000_000), "turns of all agents together (default 20)"),
    "time": FileKey(seconds(MONTH), "how long the run may take (default 1h)", "seconds"),
    "text": FileKey(PATTERN, "the pattern of an answer that ends the run"),
    "agent_exit": FileKey(
        one_of("fail", "restart", "ignore"), "what is done if an agent's program ends (default: the run fails)"
    ),
}


def _read_on_error(reader: ConnectorReader, node: YamlNode, what: str) -> OnError:
    found = ON_ERROR_WORD.read(reader, node, what)
    action, _, retries = found.partition(":")
    return OnError(action, int(retries or 0))


ON_ERROR_WORD = spelled(
    "stop|skip|retry:(?:[1-9]|10)", "one of its values", "stop, skip or retry:N, with N from 1 to 10"
)

INPUT_FILE: FileKeys = {
    "file": FileKey(TEXT, "a text file below the folder of this one, UTF-8, at most 1 MiB", needed=True)
}


def _read_input_file(reader: ConnectorReader, node: YamlNode, what: str) -> YamlNode:
    """The node of the path: the file is read once all else is known to be right."""
    reader.fields(node, what, INPUT_FILE)
    return reader.entries(node, what, ())["file"]


EDITOR = "$schema"
"""The key by which editors find the JSON Schema of a file; it says nothing of the team."""

CONNECTOR_KEYS: FileKeys = {
    EDITOR: FileKey(TEXT, "where an editor finds this schema (tmuxctl connect schema); it is not read"),
    "schema": FileKey(FieldKind(ConnectorReader.text, {"const": SCHEMA}), f"schema: {SCHEMA}", needed=True),
    "name": FileKey(WORD, "the name of the team: letters, digits, _ and -", needed=True),
    "input": FileKey(
        either(lambda node: isinstance(node.value, dict), FieldKind(_read_input_file, keys_schema(INPUT_FILE)), TEXT),
        "the run's text, or the file that holds it",
    ),
    "machines": FileKey(MACHINES, "machines that agents run on, as in machines.toml; others are found by their names"),
    "agents": FileKey(FieldKind(_read_agents, AGENT_MAP.schema), "the programs of the team, by name", needed=True),
    "topology": FileKey(TOPOLOGY, "who is given what, and when it ends", needed=True),
    "stop": FileKey(record(Stop, STOP), "the limits of a run"),
    "on_error": FileKey(
        FieldKind(_read_on_error, ON_ERROR_WORD.schema), "what is done if a turn fails: stop (default), skip, retry:N"
    ),
    "output": FileKey(TEXT, "the file of the transcript"),
    "keep": FileKey(TRUTH, "keep the sessions when the run has ended (default: false)"),
}


def read_keys(reader: ConnectorReader, root: YamlNode) -> dict[str, Any]:
    """What the keys of a file say, by the fields of a Connector."""
    found = reader.entries(root, "the connector", ()).get("schema")
    if found is None or found.value != SCHEMA:
        said = "no `schema`" if found is None else f"schema {ascii(found.value)[:60]} is not known"
        line = found or root
        raise reader.wrong(line, "schema", said, suggest(str(line.value)[:60], (SCHEMA,)) or f"schema: {SCHEMA}")
    fields = reader.fields(root, "the connector", CONNECTOR_KEYS, "")
    return {name: value for name, value in fields.items() if name not in ("schema", EDITOR)}
