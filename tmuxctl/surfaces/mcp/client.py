"""What the client of this server may do, whose sessions are its own, and the defaults it is given by variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from tmuxctl.errors import Usage
from tmuxctl.model import check_owner
from tmuxctl.operations import RIGHTS, Caller
from tmuxctl.value import Value

RIGHTS_OF: Mapping[str, tuple[str, ...]] = {"read": ("read",), "drive": RIGHTS, "all": RIGHTS}
"""The rights of each value of TMUXCTL_MCP_TOOLS."""

COLS, ROWS, SCROLLBACK = (10, 500), (5, 200), (0, 100_000)
"""The least and the most of each, as in ptyai."""


class ClientSettings(Value):
    """What holds for one client. `scrollback` is in lines, what ends with `_ms` in milliseconds; None: tmuxctl's default."""

    tools: str = "drive"
    owner: str = ""
    own_session: str | None = None
    """The id of the session that the server itself runs in."""
    processes: frozenset[int] = frozenset()
    """The server's own process and those above it."""
    shell: str = "/bin/sh"
    cols: int = 120
    rows: int = 40
    scrollback: int | None = None
    sessions: int | None = None
    """How many sessions it may have at once."""
    wait_ms: int = 10_000
    settle_ms: int = 300
    idle_ms: int | None = None
    """How long a session that it started may print nothing before it is ended; None: for ever."""
    allowed: tuple[str, ...] = RIGHTS
    """What its token lets it do, where it has one."""

    @property
    def rights(self) -> tuple[str, ...]:
        """What `Control` lets it do."""
        return tuple(right for right in RIGHTS_OF[self.tools] if right in self.allowed)

    @property
    def caller(self) -> Caller:
        """What of the sessions is the client's own."""
        return Caller(None if self.tools == "all" else self.owner, self.own_session, self.processes)


def read_settings(env: Mapping[str, str]) -> ClientSettings:
    """The settings of a client by these variables: TMUXCTL_MCP_TOOLS, TMUXCTL_MCP_OWNER, and ptyai's where they are set."""
    tools = env.get("TMUXCTL_MCP_TOOLS") or "drive"
    if tools not in RIGHTS_OF:
        hint = "TMUXCTL_MCP_TOOLS is read, drive or all"
        raise Usage(f"TMUXCTL_MCP_TOOLS: {ascii(tools[:40])} is no choice", reason="bad_choice", hint=hint)
    return ClientSettings(
        tools=tools,
        owner=check_owner(env.get("TMUXCTL_MCP_OWNER") or _name_parent()),
        own_session=env.get("TMUXCTL_SESSION") or None,
        processes=_list_processes(),
        shell=env.get("PTYAI_DEFAULT_SHELL") or env.get("SHELL") or "/bin/sh",
        cols=_read_number(env, "PTYAI_DEFAULT_COLS", *COLS) or 120,
        rows=_read_number(env, "PTYAI_DEFAULT_ROWS", *ROWS) or 40,
        scrollback=_read_number(env, "PTYAI_DEFAULT_SCROLLBACK", *SCROLLBACK),
        sessions=_read_number(env, "PTYAI_MAX_SESSIONS"),
        wait_ms=_read_number(env, "PTYAI_WAIT_TIMEOUT_MS") or 10_000,
        settle_ms=_read_number(env, "PTYAI_WAIT_SETTLE_MS") or 300,
        idle_ms=_read_number(env, "PTYAI_IDLE_TIMEOUT_MS") or None,
    )


def _read_number(env: Mapping[str, str], name: str, low: int = 0, high: int = 999_999_999) -> int | None:
    text = env.get(name, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high):
        what = f"a whole number from {low} to {high}"
        raise Usage(f"{name}: {ascii(text[:40])} is not {what}", reason="bad_number", hint=f"unset {name}")
    return int(text) if text else None


def _list_processes() -> frozenset[int]:
    """Our process and those above it, whatever was taken out of our environment: a client gives its servers a short one."""
    import psutil

    own = psutil.Process()
    with suppress(psutil.Error):
        return frozenset({own.pid, *(process.pid for process in own.parents() if process.pid > 1)})
    return frozenset({own.pid})


def _name_parent() -> str:
    """The process that started us, by pid and start time: the same for every server that one client starts."""
    import psutil

    parent = os.getppid()
    try:
        return f"{parent}.{psutil.Process(parent).create_time():.0f}"
    except psutil.Error:
        return str(parent)
