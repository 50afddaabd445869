"""The connection of a process to a gateway, which the channels to all its machines there share."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tmuxctl.errors import TmuxctlError
from tmuxctl.gateway import subjects
from tmuxctl.gateway.connection import CarriedMessage, Connection
from tmuxctl.gateway.credentials import Credentials
from tmuxctl.timing import GatewayTiming
from tmuxctl.value import Value


class ChannelOutput(Value):
    """What takes the output of one channel. `first` is given each message in the connection's thread, where nothing may be waited
    for; what it leaves is given to `later`, in a thread in which the output of all channels is handled in turn."""

    first: Callable[[bytes], bytes | None]
    later: Callable[[bytes], None]


class SharedConnection:
    """A connection with a client's credentials, as `join` gives it; each who joined leaves it once."""

    def __init__(self, credentials: Credentials, timing: GatewayTiming, connection_class: type[Connection]) -> None:
        self.users = 0
        self.connection = connection_class(credentials, timing)
        self._outputs: dict[str, ChannelOutput] = {}
        # one subscription for all: each further channel costs no round trip
        every = subjects.output(subjects.ANY, credentials.id, subjects.ANY)
        self._left = self.connection.subscribe(every, first=self._give)
        self._timing = timing
        self._later = threading.Thread(target=self._give_later, name="gateway output", daemon=True)
        self._later.start()

    def follow(self, host: str, channel: str, output: ChannelOutput) -> str:
        """Have the output of a channel taken by this, until `leave` with the subject that this returns."""
        subject = subjects.output(host, self.connection.credentials.id, channel)
        self._outputs[subject] = output
        return subject

    def leave(self, subject: str | None) -> None:
        """Use the connection no more; the last one closes it."""
        if subject is not None:
            self._outputs.pop(subject, None)
        with _lock:
            self.users -= 1
            last = self.users == 0
            if last:
                for key in [key for key, one in _joined.items() if one is self]:
                    del _joined[key]
        if last:
            self.connection.close()
            if self._later is not threading.current_thread():
                # what came is handled before the process ends: a host's new key is told once for each call
                self._later.join(self._timing.close_seconds)

    def _give(self, message: CarriedMessage) -> tuple[ChannelOutput, bytes] | None:
        output = self._outputs.get(message.subject)
        left = output.first(message.data) if output is not None else None
        return None if output is None or left is None else (output, left)

    def _give_later(self) -> None:
        while True:
            try:
                output, data = self._left.next()
            except TmuxctlError as error:
                if error.reason == "closed":
                    return
                continue
            output.later(data)


_joined: dict[tuple[Credentials, type[Connection]], SharedConnection] = {}
_lock = threading.Lock()


def join(credentials: Credentials, timing: GatewayTiming, connection_class: type[Connection]) -> SharedConnection:
    """The connection of this process with these credentials, which is opened in the background if it is the first to use it."""
    key = credentials, connection_class
    with _lock:
        found = _joined.get(key)
        if found is None:
            found = _joined[key] = SharedConnection(credentials, timing, connection_class)
        found.users += 1
        return found
