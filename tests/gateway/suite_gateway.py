"""The gateway of one worker of `pytest --elsewhere=gateway`: a real nats-server, a client, and as many hosts as a test uses."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from gateway.gateway_site import GatewaySite

from tmuxctl.gateway import carrier
from tmuxctl.gateway.credentials import Credentials
from tmuxctl.machines import MachineEntry
from tmuxctl.operations import RIGHTS
from tmuxctl.rpc.records import Carrier, Receive
from tmuxctl.sealed.keys import KeyFiles
from tmuxctl.sealed.trust import AuthorizedClient, AuthorizedClients, KnownMachine

NAME = "elsewhere"


class SuiteGateway:
    """The gateway, in a folder of its own: hosts and client have one user's key there."""

    def __init__(self, site: GatewaySite) -> None:
        self.site, self.folder = site, str(site.place)
        # tests move on, the gateway stays
        site.environment = dict(os.environ)
        self.client = site.add("client", "--out", f"{self.folder}/client.json")
        self.hosts: list[Credentials] = []
        self.lock = threading.Lock()
        key = KeyFiles(f"{self.folder}/keys").load().current.public
        AuthorizedClients(f"{self.folder}/authorized_clients").add(AuthorizedClient("tester", key, RIGHTS, ("*",)))
        self.key = key

    def words(self, number: int) -> list[str]:
        """What the process of this number is given."""
        with self.lock:
            while len(self.hosts) <= number:
                self.hosts.append(self.site.add("host", "--out", f"{self.folder}/host{len(self.hosts)}.json"))
        return [self.folder, f"{self.folder}/host{number}.json"]

    def carrier(self, number: int, receive: Receive, lost: Callable[[], None]) -> Carrier:
        """A channel to the process of this number."""
        return carrier.GatewayCarrier(MachineEntry(NAME, gateway=self.hosts[number].id), receive, lost)

    def find_known(self, entry: MachineEntry) -> KnownMachine:
        """What is known of a process."""
        return KnownMachine(entry.name, entry.gateway or "", self.key)


def move_home(patch: pytest.MonkeyPatch, folder: str) -> None:
    """Have this be the home of what is started."""
    for name in [name for name in os.environ if name.startswith(("XDG_", "TMUXCTL_"))]:
        patch.delenv(name)
    for name in ("HOME", "TMPDIR"):
        patch.setenv(name, folder)


@contextmanager
def run_gateway() -> Iterator[SuiteGateway]:
    """A gateway, until the end of the worker."""
    with tempfile.TemporaryDirectory(prefix="tcs-gateway-", dir="/tmp") as folder:
        with pytest.MonkeyPatch.context() as patch:
            move_home(patch, folder)
            site = GatewaySite(Path(folder))
            site.start()
            made = SuiteGateway(site)
        with pytest.MonkeyPatch.context() as patch:
            # the test's own user is no client
            patch.setattr(carrier, "find_known", made.find_known)
            patch.setattr(carrier, "read_client_credentials", lambda: made.client)
            patch.setattr(carrier, "KeyFiles", lambda: KeyFiles(f"{folder}/keys"))
            yield made
        site.end()
