"""A process of a host that records numbered events, until it is killed. Says each number once it is recorded.

event_writer.py CREDENTIALS FIRST
"""

from __future__ import annotations

import sys

from gateway.test_event_order import event_of

from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.credentials import read_credentials
from tmuxctl.gateway.events.recording import EventRecorder


def main(path: str, first: int) -> None:
    """Record until the end of the process."""
    recorder = EventRecorder(Connection(read_credentials(path)))
    for number in range(first, 100_000):
        recorder.record(event_of("sh", str(number)))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
