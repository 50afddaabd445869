"""A machine with a network of its own, one wire away from this one, as a namespace: the wire can be cut without a word.
Needs root, and touches no other network."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import threading
from typing import Any

CLONE_NEWNET = 0x40000000
NO_CARD = "02:00:00:00:00:99"


class OneWire:
    """The other machine, and the wire to it. OSError where this machine does not allow them."""

    def __init__(self) -> None:
        self.name, number = f"tc-wire-{os.getpid():x}", os.getpid() % 250
        self.here, self.there = f"10.205.{number}.1", f"10.205.{number}.2"
        self._here_device = f"tcw{os.getpid():x}"
        try:
            _ip("netns", "add", self.name)
            _ip("-n", self.name, "link", "set", "lo", "up")
            _ip("link", "add", self._here_device, "type", "veth", "peer", "name", "out", "netns", self.name)
            _ip("addr", "add", f"{self.here}/30", "dev", self._here_device)
            _ip("link", "set", self._here_device, "up")
            _ip("-n", self.name, "addr", "add", f"{self.there}/30", "dev", "out")
            _ip("-n", self.name, "link", "set", "out", "up")
        except BaseException:
            self.close()
            raise

    def inside(self) -> tuple[str, ...]:
        """The words before a command that is to run there."""
        return ("ip", "netns", "exec", self.name)

    def cut(self) -> None:
        """Have all that either end sends go to a network card that there is not."""
        for words, address, device in self._ends():
            _ip(*words, "neigh", "replace", address, "lladdr", NO_CARD, "nud", "permanent", "dev", device)

    def heal(self) -> None:
        """Have it arrive again."""
        for words, address, device in self._ends():
            _ip(*words, "neigh", "del", address, "dev", device)

    def _ends(self) -> tuple[tuple[tuple[str, ...], str, str], ...]:
        return ((), self.there, self._here_device), (("-n", self.name), self.here, "out")

    def listen(self) -> socket.socket:
        """A socket that listens on the loopback of the other machine."""
        made: list[Any] = []

        def make() -> None:
            try:
                # of this thread alone, which ends
                with open(f"/run/netns/{self.name}") as namespace:
                    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                made.append(socket.create_server(("127.0.0.1", 0)))
            except OSError as error:
                made.append(error)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]

    def close(self) -> None:
        """Take it away, with its wire."""
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)


def _ip(*words: str) -> None:
    program = shutil.which("ip") or "/sbin/ip"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")
