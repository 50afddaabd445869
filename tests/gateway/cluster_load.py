"""A host and a client of a cluster that are busy, and what they notice of a loss.

python -m gateway.cluster_load HOST-CREDENTIALS CLIENT-CREDENTIALS FOLDER

It says a line once it goes on; for each line that it is given, how long it took until requests were answered and events stored
again; at the end of its input, how many were recorded. It fails unless those are what is stored.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.gateway_site import connect, until
from gateway.test_gateway_connection import answering, asks
from gateway.test_spool import all_confirmed, make_gap

from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.credentials import Credentials, read_credentials
from tmuxctl.gateway.spool import EventPublisher, Spool


class Load:
    """A host and a client that are busy: each request's time of the answer, and the events that were recorded."""

    def __init__(self, host: Connection, client: Connection, folder: str) -> None:
        self.host, self.client = host, client
        self.answered: list[float] = []
        self.recorded: list[bytes] = []
        self.spool = Spool(folder)
        self._publisher = EventPublisher(host, self.spool, make_gap)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._ask, self._record)]
        for one in self._threads:
            one.start()

    def _ask(self) -> None:
        while not self._over.wait(0.02):
            if asks(self.client, self.host.credentials.id, 1.0):
                self.answered.append(time.monotonic())

    def _record(self) -> None:
        while not self._over.wait(0.01):
            data = b"%d" % len(self.recorded)
            self.spool.append(data)
            self.recorded.append(data)

    def end(self) -> None:
        """Record no more, and publish what is left."""
        self._over.set()
        for one in self._threads:
            one.join()
        until(lambda: all_confirmed(self.spool), "not all is confirmed", 60)
        self._publisher.close()
        self.spool.close()


@contextmanager
def loaded(host_key: Credentials, client_key: Credentials, folder: str) -> Iterator[Load]:
    """A load while this holds; afterwards all that was recorded is stored, once each."""
    with connect(host_key) as host, connect(client_key) as client, answering(host):
        made = Load(host, client, folder)
        try:
            until(lambda: made.spool.confirmed > 20 and made.answered, "it does not begin")
            yield made
        finally:
            made.end()
        assert made.recorded
        assert stored_data_of_all(client) == made.recorded


def stored_data_of_all(client: Connection) -> list[bytes]:
    """What every stored event holds, however many there are."""
    found: list[bytes] = []
    first = 1
    while batch := client.read_events(first, most=1024).events:
        found += [one.data for one in batch]
        first = batch[-1].sequence + 1
    return found


def seconds_until_well(load: Load, since: float) -> tuple[float, float]:
    """How long it took until a request was answered that was made after a moment, and until an event was stored."""
    recorded = len(load.recorded)
    until(lambda: load.answered and load.answered[-1] > since + 0.5, "no request is answered", 60)
    answered = time.monotonic() - since
    until(lambda: load.spool.confirmed > recorded, "no event is stored", 60)
    return answered, time.monotonic() - since


def main(host: str, client: str, folder: str) -> None:
    """As the module says."""

    def say(value: object) -> None:
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()

    with loaded(read_credentials(host), read_credentials(client), folder) as load:
        say("goes on")
        for _ in sys.stdin:
            say(seconds_until_well(load, time.monotonic()))
    say(len(load.recorded))


if __name__ == "__main__":
    main(*sys.argv[1:])
