"""Machines with a network each, all at one switch, as namespaces of this one: any of them can be cut off without a word. Needs
root, and touches no other network."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from gateway.three_networks import ip


class Switch:
    """The machines, by their addresses. OSError where this machine does not allow namespaces."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._switch = f"tc-switch-{os.getpid():x}"
        self._namespaces = {one: f"tc-{one.rpartition('.')[2]}-{os.getpid():x}" for one in addresses}
        try:
            ip("netns", "add", self._switch)
            ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
            ip("-n", self._switch, "link", "set", "bridge", "up")
            for address, namespace in self._namespaces.items():
                port = self._port(address)
                ip("netns", "add", namespace)
                ip("-n", namespace, "link", "set", "lo", "up")
                pair = ("link", "add", port, "type", "veth", "peer", "name", "out", "netns", namespace)
                ip("-n", self._switch, *pair)
                ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")
                ip("-n", namespace, "addr", "add", f"{address}/24", "dev", "out")
                ip("-n", namespace, "link", "set", "out", "up")
        except BaseException:
            self.close()
            raise

    def inside(self, address: str) -> list[str]:
        """The words before a command that is to run on a machine."""
        return ["ip", "netns", "exec", self._namespaces[address]]

    def cut(self, address: str) -> None:
        """Carry nothing from or to a machine."""
        ip("-n", self._switch, "link", "set", self._port(address), "nomaster")

    def heal(self, address: str) -> None:
        """Carry what a machine sends, and what it is sent, again."""
        ip("-n", self._switch, "link", "set", self._port(address), "master", "bridge")

    def close(self) -> None:
        """Take all away."""
        for namespace in (*self._namespaces.values(), self._switch):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)

    @staticmethod
    def _port(address: str) -> str:
        return f"port{address.rpartition('.')[2]}"
