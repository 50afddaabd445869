"""Callers of `tmuxctl serve`, over its Unix socket and over TCP: requests, and streams of events."""

from __future__ import annotations

import http.client
import json
import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from typing import IO, Any

PATIENCE = 20.0


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class HttpReply:
    """An answer, read whole."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """The reason in an error object."""
        assert self.status >= 400, self.text
        return str(self.json["error"]["reason"])


class HttpServer:
    """A running server. Calls go over its Unix socket, or with `tcp` over its address, with the token that is given."""

    def __init__(self, process: subprocess.Popen[str], addresses: list[str], token: str) -> None:
        self.process, self.token = process, token
        self.path = next(one[5:] for one in addresses if one.startswith("unix:"))
        found = [one for one in addresses if not one.startswith("unix:")]
        self.port = int(found[0].rpartition(":")[2]) if found else 0
        self.origin = f"{found[0].partition('://')[0]}://127.0.0.1:{self.port}" if found else ""

    def connect(self, tcp: bool = False) -> http.client.HTTPConnection:
        """A connection of its own."""
        return (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE) if tcp else UnixConnection(self.path)
        )

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        tcp: bool = False,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> HttpReply:
        """Send a request; `body` is JSON, or bytes as they are."""
        given = dict(headers or {})
        if tcp and token is not None:
            given["Authorization"] = f"Bearer {token}"
        if body is not None and not isinstance(body, bytes):
            body, given["Content-Type"] = json.dumps(body).encode(), "application/json"
        connection = self.connect(tcp)
        try:
            connection.request(method, path, body, given)
            return HttpReply(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str, **about: Any) -> HttpReply:
        return self.call("GET", path, **about)

    def post(self, path: str, body: Any = None, **about: Any) -> HttpReply:
        return self.call("POST", path, {} if body is None else body, **about)

    def new(self, name: str, *command: str, **about: Any) -> dict[str, Any]:
        """Start a session."""
        reply = self.post("/v1/sessions", {"name": name, "command": [*command] or ["sh"], **about})
        assert reply.status == 201, reply.text
        return dict(reply.json)

    def screen(self, name: str) -> str:
        return self.get(f"/v1/sessions/{name}/screen?format=text").text

    def events(self, path: str, **headers: str) -> EventStream:
        return EventStream(self, path, headers)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the server, and wait for that; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


class EventStream:
    """Server-sent events, read in a thread."""

    def __init__(self, server: HttpServer, path: str, headers: dict[str, str], *, tcp: bool = False) -> None:
        self.connection = server.connect(tcp)
        self.connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        self.found: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, args=(self.response,), daemon=True).start()

    def _read(self, lines: IO[bytes]) -> None:
        event: dict[str, Any] = {}
        try:
            for line in lines:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    event[name] = value
                elif event:
                    self.found.put({**event, "data": json.loads(event["data"])} if "data" in event else None)
                    event = {}
        except (OSError, ValueError, AttributeError):
            # it was closed while it was read
            pass
        self.found.put(None)

    def next(self, wanted: Callable[[dict[str, Any]], Any] = lambda event: True) -> dict[str, Any]:
        """The next event that is wanted; others are passed over."""
        while True:
            event = self.found.get(timeout=PATIENCE)
            assert event is not None, "the stream ended"
            if wanted(event):
                return event

    def await_end(self) -> None:
        while self.found.get(timeout=PATIENCE) is not None:
            pass

    def close(self) -> None:
        self.response.close()
        self.connection.close()
