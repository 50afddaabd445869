"""What every MCP client relies on, in both eras."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

NAMES = [
    "pty_create", "pty_ask", "pty_exec", "pty_write", "pty_sendkey", "pty_wait", "pty_read", "pty_decide", "pty_list",
    "pty_resize", "pty_kill", "pty_list_keys",
]  # fmt: skip
READING = {"pty_wait", "pty_read", "pty_list", "pty_list_keys"}


def test_a_client_sees_twelve_tools_within_the_budget(talk: Callable[..., Any], era: str) -> None:
    async def conversation(call: Any) -> None:
        tools = (await call.client.list_tools()).tools
        assert [tool.name for tool in tools] == NAMES
        assert {tool.name for tool in tools if tool.annotations.read_only_hint} == READING
        assert all(tool.output_schema for tool in tools)
        listed = json.dumps([tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools])
        assert len(listed) <= 12_000
        assert 0 < len(call.client.instructions or "") <= 1200 or era != "legacy"

    talk(conversation, era)


def test_a_session_is_started_driven_and_ended(talk: Callable[..., Any], era: str) -> None:
    async def conversation(call: Any) -> None:
        made = await call("pty_create", command=["sh"], name="one", env={"PS1": "$ "})
        assert (made["name"], made["state"], made["cols"], made["rows"]) == ("one", "idle", 120, 40)
        session = made["session_id"]
        written = await call("pty_write", session_id=session, input="echo $((6*7))\\r", wait_for="^42$")
        assert (written["matched"], written["match_text"], written["exited"]) == (True, "42", False)
        assert "42" in written["screen"].split("\n")
        assert written["generation"] > made["generation"]
        pressed = await call("pty_sendkey", session_id="one", keys=["up", "ctrl+u", "ctrl+c"], timeout_ms=5000)
        assert pressed["keys_sent"] == ["up", "ctrl+u", "ctrl+c"]
        read = await call("pty_read", session_id="one", include_scrollback=True)
        assert (read["cols"], read["rows"], read["alt_screen"]) == (120, 40, False)
        assert [one["sessionId"] for one in (await call("pty_list"))["sessions"]] == [session]
        assert await call("pty_resize", session_id="one", cols=100, rows=30) == {"cols": 100, "rows": 30}
        assert "ctrl+c" in (await call("pty_list_keys"))["keys"]
        killed = await call("pty_kill", session_id=session)
        assert (killed["killed"], killed["session_id"]) == (True, session)
        assert (await call("pty_list"))["sessions"] == []

    talk(conversation, era)
