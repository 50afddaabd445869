"""A connection whose gateway loses, repeats, delays and changes records. Run as a program it is tmuxctl with such a
connection, and takes the same words."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import ClassVar

from tmuxctl.gateway.carrier import GatewayCarrier
from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.host import GatewayHost
from tmuxctl.surfaces.cli import main as tmuxctl


class RoughConnection(Connection):
    """Loses, repeats, delays and changes a tenth of what is published each. `done` counts what it did."""

    done: ClassVar[Counter[str]] = Counter()
    _random = random.Random(7)
    _held: tuple[str, bytes, str] | None = None
    _rough = threading.Lock()

    def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Publish it, or something else."""
        with self._rough:
            fate = self._random.choice(("lost", "repeated", "late", "changed", *["plain"] * 6))
            self.done[fate] += 1
            held, self._held = self._held, None
            if fate == "late":
                self._held = (subject, data, reply)
        if fate == "changed" and data:
            at = self._random.randrange(len(data))
            data = data[:at] + bytes((data[at] ^ 1 << self._random.randrange(8),)) + data[at + 1 :]
        if fate not in ("lost", "late"):
            super().publish(subject, data, reply)
        if fate == "repeated":
            super().publish(subject, data, reply)
        if held is not None:
            super().publish(*held)


class RoughCarrier(GatewayCarrier):
    """A client's carrier over such a connection."""

    connection_class = RoughConnection


def main() -> int:
    """Run tmuxctl as a host with such a connection."""
    GatewayHost.connection_class = RoughConnection
    return tmuxctl()


if __name__ == "__main__":
    raise SystemExit(main())
