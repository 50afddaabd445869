"""Calls of a program's own tools: found by their names, their arguments filled in from the schemas it sent."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from .conversation import Json, Tool, Turn
from .events import ToolCall

SHELLS = ("Bash", "bash", "shell_command", "exec_command", "shell", "local_shell", "run_shell_command")
WRITERS = ("Write", "write", "write_file", "apply_patch")

PATCH = "*** Begin Patch\n*** Add File: {path}\n{lines}\n*** End Patch\n"


def shell_call(turn: Turn, command: str, *, escalated: bool = False) -> ToolCall | None:
    """The call that runs a command, outside the program's sandbox if `escalated`; None if it offers no tool for that."""
    tool = _find_tool(turn.tools, SHELLS, r"bash|shell|exec|terminal|command")
    if not tool:
        return None
    words = ["bash", "-lc", command]
    if not tool.schema:
        return ToolCall(tool.name, {"command": words})
    takes_words = tool.schema.get("properties", {}).get("command", {}).get("type") == "array"
    known: dict[str, Any] = {
        "command": words if takes_words else command,
        "cmd": command,
        "description": "Run a scripted command",
        "is_background": False,
    }
    if escalated:
        known |= {
            "sandbox_permissions": "require_escalated",
            "with_escalated_permissions": True,
            "justification": "the script asked for it",
        }
    return ToolCall(tool.name, fill(tool.schema, known=known))


def write_call(turn: Turn, path: str, content: str) -> ToolCall | None:
    """The call that makes a file, through the shell if the program offers no other way; None if it offers none."""
    tool = _find_tool(turn.tools, WRITERS, r"write.*file|create.*file|apply_patch|^write$")
    if not tool:
        return shell_call(turn, f"printf '%s\\n' {shlex.quote(content.rstrip())} > {path}")
    patch = PATCH.format(path=path, lines="\n".join(f"+{line}" for line in content.splitlines()))
    if tool.custom:
        return ToolCall(tool.name, patch, custom=True)
    known = dict.fromkeys(("file_path", "path", "absolute_path"), path)
    known |= {"content": content, "input": patch, "patch": patch}
    return ToolCall(tool.name, fill(tool.schema, known=known))


def named_call(turn: Turn, name: str, arguments: str) -> ToolCall:
    """The call of any tool, with its arguments as JSON; what is required and not given is filled in."""
    given = json.loads(arguments or "{}")
    schema = next((tool.schema for tool in turn.tools if tool.name == name), None)
    filled = fill(schema, known=given)
    return ToolCall(name, {**filled, **given} if isinstance(filled, Mapping) else given)


def _find_tool(tools: Sequence[Tool], names: Sequence[str], pattern: str) -> Tool | None:
    """The tool with the first of the names that is offered, else the first that is called in a way that fits."""
    by_name = {tool.name: tool for tool in tools}
    named = next((by_name[name] for name in names if name in by_name), None)
    return named or next((tool for tool in tools if re.search(pattern, tool.name, re.IGNORECASE)), None)


def fill(schema: Json | None, name: str = "", known: Json | None = None) -> Any:
    """The least value that a JSON schema takes, with the values of properties that are known."""
    schema, known = schema or {}, known or {}
    kind = _kind(schema)
    if name in known and kind != "object":
        value = known[name]
        return [value] if kind == "array" and not isinstance(value, list) else value
    for key in ("const", "default"):
        if schema.get(key) is not None:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return fill(schema[key][0], name, known)
    if kind == "object":
        wanted = {*schema.get("required", ()), *known}
        properties = schema.get("properties", {})
        return {key: fill(inner, key, known) for key, inner in properties.items() if key in wanted}
    if kind == "array":
        return [fill(schema.get("items"), name, known) for _ in range(schema.get("minItems", 0))]
    if kind in ("number", "integer"):
        return schema.get("minimum", 0)
    return False if kind == "boolean" else f"fake {name}".rstrip()


def _kind(schema: Json) -> str:
    """The type that a schema asks for, the first of several; Gemini's are written large."""
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return str(kind[0] if isinstance(kind, list) else kind).lower()
