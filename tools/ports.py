"""Free TCP ports of loopback for programs that tests start: `python tools/ports.py 3` prints three.

They lie below the range from which the kernel takes the ports of outgoing connections (ip(7), ip_local_port_range), and
above those of well-known services: while a server is down between two starts, no connection of another test takes its port.
"""

from __future__ import annotations

import random
import socket
import sys
from pathlib import Path

LOWEST_PORT = 10_000
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")

_reservations: list[socket.socket] = []
"""Held until this process ends, whatever ends it."""


def free_ports(count: int) -> list[int]:
    """`count` different ports that nothing listens at now. No other process that asks here gets them while this one lives."""
    highest = int(EPHEMERAL_RANGE.read_text().split()[0]) if EPHEMERAL_RANGE.exists() else 32_768
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(LOWEST_PORT, highest)
        if _reserve(port):
            ports.append(port)
    return ports


def _reserve(port: int) -> bool:
    """Take the name of an abstract socket (unix(7)) for the port, unless somebody has it or the port."""
    reservation = socket.socket(socket.AF_UNIX)
    try:
        reservation.bind(f"\0tmuxctl-test-port-{port}")
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        reservation.close()
        return False
    _reservations.append(reservation)
    return True


if __name__ == "__main__":
    print(*free_ports(int(sys.argv[1])))
