#!/usr/bin/env python3
"""One agent program supervises another over MCP, as its model would: supervise.sh does the same by commands.

It needs the Python SDK: pip install 'tmux-control-plane[mcp]'.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

WORKER = Path(__file__).with_name("supervised.py")

# without `env` the SDK gives the server HOME and PATH, but neither TMUXCTL_SOCKET nor TMUX_TMPDIR
SERVER = StdioServerParameters(command="tmuxctl", args=["mcp"], env=dict(os.environ))


async def supervise() -> None:
    """Give the task, decide the question, print the answer."""
    Path("notes.txt").write_text("tea\nmilk\nlemon\n")
    async with Client(SERVER) as client:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            if result.is_error:
                raise RuntimeError(f"{tool}: {result.content[0].text}")
            return result.structured_content

        await call("pty_create", name="worker", command=["python3", str(WORKER)], cwd=os.getcwd())
        try:
            turn = await call("pty_ask", session_id="worker", text="Count the lines of notes.txt")
            asked = turn["asking"]
            # decide what the task needs, nothing else
            if not asked["question"].startswith("Run wc -l notes.txt? "):
                raise RuntimeError(f"it asks something else: {asked['question']}")
            await call("pty_decide", session_id="worker", option="yes", id=asked["id"])
            await call("pty_wait", session_id="worker", until="idle")
            output = (await call("pty_read", session_id="worker", since=turn["cursor"]))["output"]
            print(f"It asked: {asked['question'].partition('?')[0]}?")
            print("It answered:", next(line for line in output.splitlines() if line.endswith("lines.")))
        finally:
            await call("pty_kill", session_id="worker")


asyncio.run(supervise())
