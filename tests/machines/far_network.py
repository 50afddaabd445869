"""A network between two namespaces of this machine that takes its time, and can be cut: a switch of our own between two TAP
devices, as some kernels have no netem. Needs root, and touches no other network."""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import threading
import time
from contextlib import suppress
from itertools import count

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
"""linux/if_tun.h"""

CLONE_NEWNET = 0x40000000
"""linux/sched.h"""

FRAME_BYTES = 65536
NEAR, FAR = "10.203.0.1", "10.203.0.2"
"""The addresses of the two sides, each in a namespace of its own."""


class FarNetwork:
    """Two namespaces, `near` and `far`, and the switch between them. `delay` is in seconds, each way."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.cut = threading.Event()
        """While it is set nothing comes through, either way."""
        self._over = threading.Event()
        mark = f"{os.getpid():x}"
        self.near, self.far = f"tc-near-{mark}", f"tc-far-{mark}"
        self._taps = [self._make_side(name, f"tc{side}{mark}", address) for side, name, address in self._sides()]
        self._switch = threading.Thread(target=self._run, daemon=True)
        self._switch.start()

    def _sides(self) -> tuple[tuple[str, str, str], ...]:
        return ("n", self.near, NEAR), ("f", self.far, FAR)

    def _make_side(self, namespace: str, device: str, address: str) -> int:
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
        _ip("netns", "add", namespace)
        _ip("link", "set", device, "netns", namespace)
        for words in (
            ("addr", "add", f"{address}/30", "dev", device),
            ("link", "set", device, "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-n", namespace, *words)
        return tap

    def inside(self, namespace: str) -> list[str]:
        """The words before a command that is to run in a namespace."""
        return ["ip", "netns", "exec", namespace]

    def enter(self, namespace: str) -> None:
        """Take this thread, and what it starts, into a namespace."""
        with open(f"/run/netns/{namespace}", "rb") as handle:
            if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

    def _run(self) -> None:
        """Carry each frame to the other side once its time has come."""
        first, second = self._taps
        across = {first: second, second: first}
        poll, waiting, numbers = select.poll(), list[tuple[float, int, int, bytes]](), count()
        for tap in across:
            poll.register(tap, select.POLLIN)
        while not self._over.is_set():
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                _, _, tap, frame = heapq.heappop(waiting)
                if not self.cut.is_set():
                    _write(tap, frame)
            pause = min(0.2, waiting[0][0] - now) if waiting else 0.2
            for tap, _ in poll.poll(max(0.0, pause) * 1000):
                if (frame := _read(tap)) and not self.cut.is_set():
                    heapq.heappush(waiting, (time.monotonic() + self.delay, next(numbers), across[tap], frame))

    def close(self) -> None:
        """Take both namespaces away, with what runs in them by way of their network."""
        self._over.set()
        self._switch.join()
        for tap in self._taps:
            os.close(tap)
        for namespace in (self.near, self.far):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _read(tap: int) -> bytes:
    try:
        return os.read(tap, FRAME_BYTES)
    except BlockingIOError:
        return b""


def _write(tap: int, frame: bytes) -> None:
    # a side that goes away loses what was on its way
    with suppress(OSError):
        os.write(tap, frame)
