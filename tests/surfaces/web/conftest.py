"""A process of `tmuxctl serve` for each test that asks for one."""

from __future__ import annotations

from serving_fixtures import server, start_server

__all__ = ["server", "start_server"]
