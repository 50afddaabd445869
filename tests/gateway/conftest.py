"""What tests of the gateway share: a server that runs, a host and a client."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from gateway.gateway_site import GatewaySite, connect

from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.server.running import find_server


@pytest.fixture
def site(place: Path) -> Iterator[GatewaySite]:
    """A machine on which no gateway runs yet."""
    made = GatewaySite(place)
    yield made
    made.end()


@pytest.fixture
def gateway(site: GatewaySite) -> GatewaySite:
    """A gateway that runs."""
    assert find_server()
    site.start()
    return site


class Pair(NamedTuple):
    """A host and a client, both connected."""

    gateway: GatewaySite
    host: Connection
    client: Connection


@pytest.fixture
def pair(gateway: GatewaySite) -> Iterator[Pair]:
    """A host and a client of a gateway."""
    with connect(gateway.add("host")) as host, connect(gateway.add("client")) as client:
        yield Pair(gateway, host, client)


@pytest.fixture
def other_host(pair: Pair) -> Iterator[Connection]:
    """Another host of the same gateway."""
    with connect(pair.gateway.add("host")) as made:
        yield made


@pytest.fixture
def nats_server() -> str:
    """The nats-server program."""
    return find_server().path or shutil.which("nats-server") or ""
