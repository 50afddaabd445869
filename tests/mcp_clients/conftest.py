"""A connection of each client, and what a test asks of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import list_pids, sweep

from mcp_clients.clients import NODE_MODULES, Client, Connection, NpmClient, PythonClient

CLIENTS = ("npm", "python-handshake", "python-modern")


@pytest.fixture
def connect(place: Path) -> Iterator[Callable[..., Connection]]:
    """Connects a client of one of these names to a server of its own; what that started is ended behind the test."""
    before = list_pids()
    opened: list[Client] = []

    def connect(name: str, **environment: str) -> Connection:
        if name == "npm":
            if not shutil.which("node") or not (NODE_MODULES / "node_modules/@modelcontextprotocol/sdk").exists():
                pytest.skip("no npm SDK for MCP here: make nightly SUITES=mcp")
            opened.append(NpmClient(environment))
        else:
            pytest.importorskip("mcp")
            opened.append(PythonClient(modern=name == "python-modern", environment=environment))
        return Connection(opened[-1])

    yield connect
    for client in opened:
        client.close()
    sweep(place, before)


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, connect: Callable[..., Connection]) -> Connection:
    """A connection of each client."""
    return connect(request.param)
