"""The MCP server as a command; `tmuxctl.surfaces.mcp` is the server."""

from __future__ import annotations

from tmuxctl.errors import Failed
from tmuxctl.operations import operation
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations


class McpOperations(CommandLineOperations):
    """Operations for clients of the Model Context Protocol."""

    @operation(right="kill", group="Set up", leads=True, examples=("mcp </dev/null",))
    def mcp(self) -> None:
        """Serve the sessions to an MCP client on standard input and output, until the client closes them.

        The client, an agent program, starts this command itself. It needs the extra `mcp`: pip install
        'tmux-control-plane[mcp]'. Sessions go on when the server ends. TMUXCTL_MCP_TOOLS says what the client may do:
        read, drive (the default: end only sessions that it started) or all.
        """
        try:
            from tmuxctl.surfaces.mcp import server
        except ModuleNotFoundError as error:
            if error.name not in ("mcp", "mcp_types", "anyio"):
                raise
            raise Failed(
                "the MCP SDK is not installed",
                reason="no_mcp",
                hint="install the extra: pip install 'tmux-control-plane[mcp]'",
            ) from None
        server.serve(self.options.socket)
