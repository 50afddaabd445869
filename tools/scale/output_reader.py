"""A client that follows the output of one session of each host: `python -m tools.scale.output_reader`, at home in HOME.

It says with a line that it follows all of them. At the next line on standard input it ends, and tells as JSON what came: `received`
pieces, of which `lost` are missing before others and `doubled` came twice. Channels, records and their encryption are the
product's; a reader of the product would also have a thread for each.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from tmuxctl.gateway.carrier import GatewayCarrier
from tmuxctl.machines import MachineEntry, read_machines
from tmuxctl.rpc.records import VERSION, WINDOW, Header, RemoteCall, now, pack_call

CALL = RemoteCall("log", {"session": "s0", "follow": True}, {})

PATIENCE = 60.0


class FollowedOutput:
    """The output of one session, as it comes."""

    def __init__(self, entry: MachineEntry) -> None:
        self.received = self.doubled = 0
        self._next = 0
        self._early: dict[int, Header] = {}
        self._id = f"follow{entry.name}"
        self.begun = threading.Event()
        self._carrier = GatewayCarrier(entry, self.receive, lambda: None)

    def begin(self) -> None:
        """Have the host begin."""
        header = {
            "v": VERSION,
            "type": "call",
            "id": self._id,
            "part": 0,
            "parts": 1,
            "window": WINDOW,
            "digest": CALL.digest,
            "repeatable": True,
            "age": 0.0,
            "until": now() - self._carrier.connected + PATIENCE,
        }
        self._carrier.send(header, pack_call(CALL))

    def receive(self, header: Header, _body: bytes) -> None:
        """Take a record of the host: the first reply says that pieces follow."""
        if header.get("type") != "reply":
            return
        self.begun.set()
        number = int(header["number"])
        if number < self._next or number in self._early:
            self.doubled += 1
            return
        self._early[number] = header
        while self._next in self._early:
            self.received += self._early.pop(self._next)["kind"] == "item"
            self._next += 1
        if self._next % (WINDOW // 2) == 0:
            self.ask_on()

    def ask_on(self) -> None:
        """Tell the host what came, and what there is room for."""
        header = {"v": VERSION, "type": "more", "id": self._id, "next": self._next, "window": self._next + WINDOW}
        self._carrier.send({**header, "again": False}, b"")

    def told(self) -> dict[str, int]:
        """What came, and what did not."""
        return {"received": self.received, "lost": len(self._early), "doubled": self.doubled}


def main() -> None:
    """Follow until standard input says to end, and tell what came."""
    followed = [FollowedOutput(entry) for entry in read_machines().values()]
    for one in followed:
        one.begin()
    for one in followed:
        assert one.begun.wait(PATIENCE), "a host does not begin"
    print(json.dumps({"followed": len(followed)}), flush=True)
    over = threading.Event()

    def beat() -> None:
        # a caller says once a second that it is there
        while not over.wait(1.0):
            for one in followed:
                one.ask_on()

    threading.Thread(target=beat, daemon=True).start()
    sys.stdin.readline()
    over.set()
    found = [one.told() for one in followed]
    total: dict[str, Any] = {name: sum(one[name] for one in found) for name in ("received", "lost", "doubled")}
    print(json.dumps(total), flush=True)


if __name__ == "__main__":
    main()
