"""A machine that carries operations out, as a process of its own: `host.py SOCKET RIGHTS SESSIONS`, the last two with commas
between.

It listens at the socket, and says so with a line. All connections are those of one caller.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

from rpc.socket_carrier import read_records, write_record

from tmuxctl.access import CallerAccess, ServiceAccess
from tmuxctl.control import Control
from tmuxctl.rpc.records import Header, now
from tmuxctl.rpc.responder import Responder


def main() -> None:
    path, rights, sessions = sys.argv[1:]
    # what a test says of its own Control
    given = os.environ.pop("TMUXCTL_TEST_GIVEN", None)
    control = Control(resident=True, **(pickle.loads(Path(given).read_bytes()) if given else {}))
    access = CallerAccess(rights=tuple(rights.split(",")), sessions=tuple(sessions.split(",")), remote=True)
    responder = Responder(control, ServiceAccess(access, control))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    print("listening", flush=True)
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=serve, args=(responder, connection), daemon=True).start()


def serve(responder: Responder, connection: socket.socket) -> None:
    lock = threading.Lock()

    def send(header: Header, body: bytes) -> None:
        write_record(connection, lock, header, body)

    connected = now()
    with suppress(OSError, ValueError), connection:
        read_records(connection, lambda header, body: responder.receive(header, body, send, connected=connected))


if __name__ == "__main__":
    main()
