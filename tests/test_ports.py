"""The ports of servers that tests start."""

from __future__ import annotations

import subprocess
import sys

from tools.ports import EPHEMERAL_RANGE, free_ports

SEEDED = """
import random, sys
from tools.ports import free_ports
random.seed(1)
print(*free_ports(20), flush=True)
sys.stdin.read()
"""


def test_no_outgoing_connection_can_take_the_port_of_a_server_that_is_down() -> None:
    lowest_ephemeral = int(EPHEMERAL_RANGE.read_text().split()[0])
    assert max(free_ports(50)) < lowest_ephemeral


def test_two_processes_get_different_ports() -> None:
    with start_reservation() as first, start_reservation() as second:
        assert first.stdout
        assert second.stdout
        ports = first.stdout.readline().split() + second.stdout.readline().split()
        first.communicate()
        second.communicate()
    assert len(set(ports)) == 40


def start_reservation() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SEEDED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
