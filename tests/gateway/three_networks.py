"""Three machines of a network each, as namespaces of this one: gateway, host and client. The host and the client reach the gateway,
and nothing reaches them, as behind NAT. Needs root, and touches no other network."""

from __future__ import annotations

import os
import shutil
import subprocess

NAMES = ("gateway", "host", "client")
ADDRESSES = {"host": ("10.204.1.1", "10.204.1.2"), "client": ("10.204.2.1", "10.204.2.2")}
"""That of the gateway, and their own, on the way that each has to it."""


class ThreeNetworks:
    """The namespaces, by the names of the machines. OSError where this machine does not allow them."""

    def __init__(self) -> None:
        self.namespaces = {name: f"tc-{name}-{os.getpid():x}" for name in NAMES}
        try:
            for namespace in self.namespaces.values():
                ip("netns", "add", namespace)
                ip("-n", namespace, "link", "set", "lo", "up")
            for name, addresses in ADDRESSES.items():
                ends = ((self.namespaces["gateway"], name), (self.namespaces[name], "out"))
                ip(
                    "-n",
                    ends[0][0],
                    "link",
                    "add",
                    ends[0][1],
                    "type",
                    "veth",
                    "peer",
                    "name",
                    "out",
                    "netns",
                    ends[1][0],
                )
                for (namespace, device), address in zip(ends, addresses, strict=True):
                    ip("-n", namespace, "addr", "add", f"{address}/30", "dev", device)
                    ip("-n", namespace, "link", "set", device, "up")
                # the gateway forwards nothing
                ip("-n", self.namespaces[name], "route", "add", "default", "via", addresses[0])
        except BaseException:
            self.close()
            raise

    def inside(self, name: str) -> list[str]:
        """The words before a command that is to run on a machine."""
        return ["ip", "netns", "exec", self.namespaces[name]]

    def close(self) -> None:
        """Take them away."""
        for namespace in self.namespaces.values():
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)


def ip(*words: str) -> None:
    """Run `ip` with these words; OSError where it fails."""
    program = shutil.which("ip") or "/sbin/ip"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")
