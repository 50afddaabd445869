"""Programs that start `tmuxctl mcp` for their model: the server put into their settings, and taken out again."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from tmuxctl.errors import Conflict, Denied, Failed, Usage
from tmuxctl.operations import set_up
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations
from tmuxctl.surfaces.cli.editing import json_nodes, toml_lines
from tmuxctl.surfaces.cli.editing.replacing import read_settings, replace_settings
from tmuxctl.surfaces.cli.printing.output import note, tell

if TYPE_CHECKING:
    from tmuxctl.results import McpClientChanged

NAME = "tmuxctl"
"""The name of our server in every client."""

SERVER: Mapping[str, Any] = {"command": "tmuxctl", "args": ["mcp"]}

VARIABLES = (
    *("TMUXCTL_SOCKET", "TMUXCTL_CONFIG", "TMUXCTL_SESSION", "TMUXCTL_MCP_TOOLS", "TMUXCTL_MCP_OWNER"),
    *("TMUX_TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"),
)
"""What decides which sessions a command reaches, and as whom; Codex gives its servers only the variables that are named."""

ClientName = Annotated[
    Literal["claude", "codex", "gemini", "cursor", "vscode", "json"],
    "the program; json: any other one that reads `mcpServers`, to which --settings leads",
]
ProjectOption = Annotated[bool, "the settings of the project in this folder, not those of the user"]
DryRunOption = Annotated[bool, "print the change, and change nothing"]
YesOption = Annotated[bool, "do not ask before the file is written"]
SettingsOption = Annotated[str | None, "the settings file, if it is not the usual one of the program"]


APPLICATIONS = "~/Library/Application Support" if sys.platform == "darwin" else "~/.config"
"""Where programs of the desktop keep their settings."""


class McpClient(NamedTuple):
    """Where a program looks for MCP servers: in `file` of the folder that `variable` names, `folder` by default, and in
    `project` of a project's folder; there in the object `table`, where a server has `more` beside its command.

    `comments`: it takes JSON with comments. `toml`: it takes TOML.
    """

    variable: str
    folder: str
    file: str
    project: str
    table: str = "mcpServers"
    more: Mapping[str, Any] = {}
    comments: bool = False
    toml: bool = False


CLIENTS: Mapping[str, McpClient] = {
    "claude": McpClient("CLAUDE_CONFIG_DIR", "~", ".claude.json", ".mcp.json", more={"type": "stdio"}),
    "codex": McpClient(
        *("CODEX_HOME", "~/.codex", "config.toml", ".codex/config.toml"),
        table="mcp_servers", more={"env_vars": [*VARIABLES]}, toml=True,
    ),
    "gemini": McpClient("GEMINI_CLI_HOME", "~", ".gemini/settings.json", ".gemini/settings.json", comments=True),
    "cursor": McpClient("", "~", ".cursor/mcp.json", ".cursor/mcp.json", comments=True),
    "vscode": McpClient(
        *("XDG_CONFIG_HOME", APPLICATIONS, "Code/User/mcp.json", ".vscode/mcp.json"),
        table="servers", more={"type": "stdio"}, comments=True,
    ),
    "json": McpClient("", "", "", "", comments=True),
}  # fmt: skip
"""What the documentation of each says, November 2026; `mcp add` of the first three writes the same."""


class McpClientOperations(CommandLineOperations):
    """Operations of the programs that use tmuxctl over MCP."""

    @set_up(
        right="write",
        idempotent=True,
        examples=("mcp install --client claude --dry-run", "mcp install --client codex --yes"),
    )
    def mcp_install(
        self,
        *,
        client: ClientName,
        project: ProjectOption = False,
        dry_run: DryRunOption = False,
        yes: YesOption = False,
        settings: SettingsOption = None,
    ) -> McpClientChanged:
        """Let an agent program start `tmuxctl mcp`, by an entry in its own settings.

        Nothing else in the file changes, no other tool is switched off, and a copy of the old file is kept beside it.
        A server of the name tmuxctl that is there already stays as it is. On a terminal the change is shown, and only
        made if you say so. --client json without --settings prints the entry for another program.
        """
        import shutil

        from tmuxctl.results import McpClientChanged

        found, path = CLIENTS[client], _settings_path(client, project, settings)
        if not path:
            return McpClientChanged(client, path, False, _with_server(found, "", path))
        before = read_settings(path)
        there = _has_server(found, before or "", path)
        after = before if there else _with_server(found, before or "", path)
        if not dry_run and shutil.which("tmuxctl") is None:
            note("tmuxctl is not in your PATH: until it is, no program can start it", self.options)
        return self._apply(client, path, before, after, ask=not (dry_run or yes), dry_run=dry_run)

    @set_up(
        right="write",
        idempotent=True,
        examples=("mcp uninstall --client claude --dry-run", "mcp uninstall --client claude"),
    )
    def mcp_uninstall(
        self,
        *,
        client: ClientName,
        project: ProjectOption = False,
        dry_run: DryRunOption = False,
        yes: YesOption = False,
        settings: SettingsOption = None,
    ) -> McpClientChanged:
        """Remove the entry for `tmuxctl mcp` from a program's settings, and nothing else."""
        found, path = CLIENTS[client], _settings_path(client, project, settings)
        if not path:
            raise Usage(f"no file is known for {client}", reason="bad_option", hint="name it: --settings FILE")
        before = read_settings(path)
        there = _has_server(found, before or "", path)
        after = _without_server(found, before, path) if before and there else before
        return self._apply(client, path, before, after, ask=not (dry_run or yes), dry_run=dry_run)

    def _apply(
        self, client: str, path: str, before: str | None, after: str | None, *, ask: bool, dry_run: bool
    ) -> McpClientChanged:
        """Write the settings, if they are to change and a person at a terminal agrees; what was done."""
        from tmuxctl.results import McpClientChanged

        if after is None or after == before:
            return McpClientChanged(client, path, False, dry_run=dry_run)
        change = _describe_change(before or "", after)
        if dry_run:
            return McpClientChanged(client, path, True, change, dry_run=True)
        if ask and sys.stdin is not None and sys.stdin.isatty():
            self._ask(path, change)
            change = "" if not self.options.json else change
        return McpClientChanged(client, path, True, change, replace_settings(path, before, after))

    def _ask(self, path: str, change: str) -> None:
        """Show the change, and ask whether it is to be made. Failed `declined` if not, Usage `no_input` if nobody may be asked."""
        if not self.options.prompt:
            raise Usage("--no-input forbids asking before the file is written", reason="no_input", hint="give --yes")
        tell(f"{path}:\n{change.rstrip()}\nWrite it? [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Failed("nothing was changed", reason="declined", hint="to write without being asked: --yes")


def _settings_path(client: str, project: bool, given: str | None) -> str:
    """The absolute path of the settings; empty where they are printed only."""
    found = CLIENTS[client]
    if given is not None:
        if project:
            raise Usage("--project and --settings exclude each other", reason="bad_option", hint="give one of them")
        return os.path.abspath(os.path.expanduser(given))
    if project and not found.project:
        raise Usage(f"no file of a project is known for {client}", reason="bad_option", hint="name it: --settings FILE")
    if project:
        return _path_in_project(found.project)
    folder = (found.variable and os.environ.get(found.variable)) or os.path.expanduser(found.folder)
    return os.path.join(os.path.abspath(folder), found.file) if found.file else ""


def _path_in_project(name: str) -> str:
    """The file of the project in this folder. Denied `unsafe_file` if a link leads out of it: what a project contains was
    not necessarily made by its user."""
    root = os.path.realpath(os.getcwd())
    path = os.path.join(root, name)
    if os.path.commonpath([root, os.path.realpath(path)]) != root:
        hint = f"to write there: --settings {os.path.realpath(path)}"
        raise Denied(f"a link leads from {path} out of the project", reason="unsafe_file", hint=hint)
    return path


def _has_server(client: McpClient, text: str, path: str) -> bool:
    """Whether the settings have our server. Conflict `exists` where its name is another one's."""
    if client.toml:
        table = toml_lines.parse(text, path).get(client.table, {})
        found = table.get(NAME) if isinstance(table, dict) else None
    else:
        root = json_nodes.parse(text, path, comments=client.comments)
        node = json_nodes.find_entry(root, client.table, NAME, text, path)
        found = node.value if node else None
    if found is not None and not _is_ours(found):
        hint = "rename or remove it there; nothing was changed"
        raise Conflict(f"{path}: the server {NAME} there starts something else", reason="exists", hint=hint)
    return found is not None


def _with_server(client: McpClient, text: str, path: str) -> str:
    server = {**client.more, **SERVER}
    if client.toml:
        return toml_lines.with_table(text, f"{client.table}.{NAME}", server, path)
    return json_nodes.with_entry(text, client.table, NAME, server, path, comments=client.comments)


def _without_server(client: McpClient, text: str, path: str) -> str:
    if client.toml:
        return toml_lines.without_table(text, f"{client.table}.{NAME}", path)
    return json_nodes.without_entry(text, client.table, NAME, path, comments=client.comments)


def _is_ours(server: Any) -> bool:
    """Whether a server's entry starts `tmuxctl mcp`, through whatever it does (`uvx`, `env`, a path)."""
    if not isinstance(server, dict):
        return False
    args = server.get("args")
    words = [server.get("command"), *(args if isinstance(args, list) else ())]
    names = [os.path.basename(word) for word in words if isinstance(word, str)]
    return "tmuxctl" in names and "mcp" in names[names.index("tmuxctl") :]


def _describe_change(before: str, after: str) -> str:
    """The lines that are taken out, with a `-`, and put in, with a `+`.

    Not the lines around them: the settings of other servers hold keys.
    """
    start = _count_equal(before, after)
    end = _count_equal(before[start:][::-1], after[start:][::-1])
    taken, put = before[start : len(before) - end], after[start : len(after) - end]
    return "".join(
        f"{sign}{line}\n"
        for sign, text in (("-", taken), ("+", put))
        for line in text.splitlines()
        if line.strip(" \t,")
    )


def _count_equal(first: str, second: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))
