"""How fast the end-to-end encryption is: handshakes, records of 3 KB, sealed events. `python bench/sealed_speed.py`; it prints."""

from __future__ import annotations

import time
from collections.abc import Callable

from tmuxctl.sealed.handshake import ClientHandshake, HostHandshake
from tmuxctl.sealed.keys import make_key_pair
from tmuxctl.sealed.records import Channel
from tmuxctl.sealed.sealing import open_event, seal_event

CLIENT, HOST = make_key_pair(), make_key_pair()
SECONDS = 2.0
CLIENTS = 5
SCREEN = {"id": "0123456789abcdef", "result": {"rows": ["x" * 78] * 37}}


def rate(run: Callable[[], object]) -> float:
    """How often a second it runs."""
    began, count = time.perf_counter(), 0
    while (now := time.perf_counter()) - began < SECONDS:
        run()
        count += 1
    return count / (now - began)


def connect(host: HostHandshake) -> tuple[Channel, Channel]:
    asking = ClientHandshake(CLIENT, HOST.public, client_id="client", host_id="host")
    accepted = host.answer(asking.request, "client")
    return asking.read_reply(accepted.reply), accepted.channel


def main() -> None:
    host = HostHandshake([HOST], host_id="host", is_authorized=lambda key: key == CLIENT.public)
    print(f"handshakes, both sides           {rate(lambda: connect(host)):10,.0f} a second")
    client, at_host = connect(host)
    size = len(client.seal(SCREEN))
    found = rate(lambda: at_host.open(client.seal(SCREEN)))
    print(f"records of {size} bytes, both sides {found:8,.0f} a second")
    body = bytes(3000)
    found = rate(lambda: at_host.open(client.seal({"id": 1}, body)))
    print(f"records of 3,000 raw bytes       {found:10,.0f} a second")
    recipients = [CLIENT.public, *(make_key_pair().public for _ in range(CLIENTS - 1))]
    event = b"x" * 300
    sealed = seal_event(recipients, event, host=HOST, stream="s", number=1)
    found = rate(lambda: seal_event(recipients, event, host=HOST, stream="s", number=1))
    print(f"events sealed for {CLIENTS} clients      {found:10,.0f} a second ({len(sealed)} bytes for {len(event)})")
    found = rate(lambda: open_event(CLIENT, sealed, host_key=HOST.public, stream="s", number=1))
    print(f"events opened by the first       {found:10,.0f} a second")


if __name__ == "__main__":
    main()
