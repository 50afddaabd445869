"""A client of agentapi's HTTP API, which knows nothing but a base URL, and servers of ours for it."""

from __future__ import annotations

import http.client
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from served import PATIENCE, HttpReply, UnixConnection

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


class ApiReply(HttpReply):
    """An answer, read whole."""

    @property
    def problem(self) -> str:
        """What a problem says."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        assert self.json["status"] == self.status
        assert self.json["title"]
        return " ".join([self.json["detail"], *(one["message"] for one in self.json["errors"])])


class ApiClient:
    """Calls what is below a base, as agentapi's own clients do. `where` is a port of this machine, or a path."""

    def __init__(self, where: int | str, base: str = "", token: str | None = None) -> None:
        self.where, self.base, self.token = where, base, token

    def connect(self) -> http.client.HTTPConnection:
        if isinstance(self.where, int):
            return http.client.HTTPConnection("127.0.0.1", self.where, timeout=PATIENCE)
        return UnixConnection(self.where)

    def call(self, method: str, path: str, body: bytes | None = None, **headers: str) -> ApiReply:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            named["Authorization"] = f"Bearer {self.token}"
        connection = self.connect()
        try:
            connection.request(method, self.base + path, body, named)
            return ApiReply(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str) -> ApiReply:
        return self.call("GET", path)

    def post(self, path: str, body: Any) -> ApiReply:
        return self.call("POST", path, json.dumps(body).encode(), Content_Type="application/json")

    def say(self, content: str, kind: str = "user") -> ApiReply:
        return self.post("/message", {"content": content, "type": kind})

    def upload(self, name: str, data: bytes, field: str = "file") -> ApiReply:
        head = f'--limit\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
        body = head.encode() + b"Content-Type: application/octet-stream\r\n\r\n" + data + b"\r\n--limit--\r\n"
        return self.call("POST", "/upload", body, Content_Type="multipart/form-data; boundary=limit")

    @property
    def status(self) -> str:
        return str(self.get("/status").json["status"])

    @property
    def messages(self) -> list[dict[str, Any]]:
        reply = self.get("/messages")
        assert reply.status == 200, reply.body
        return list(reply.json["messages"])

    @property
    def contents(self) -> list[str]:
        return [one["content"].strip() for one in self.messages]

    def events(self, path: str = "/events") -> ApiEvents:
        return ApiEvents(self, path)

    def wait_stable(self) -> None:
        """As agentapi's own test waits: for the first such event of a subscription."""
        events = self.events()
        events.next(lambda event: event["event"] == "status_change" and event["data"]["status"] == "stable")
        events.close()


class ApiEvents:
    """Server-sent events, read in a thread."""

    def __init__(self, client: ApiClient, path: str) -> None:
        headers = {"Authorization": f"Bearer {client.token}"} if client.token else {}
        self.connection = client.connect()
        self.connection.request("GET", client.base + path, headers=headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        assert self.response.headers["content-type"].startswith("text/event-stream")
        self.found: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, args=(self.response,), daemon=True).start()

    def _read(self, lines: IO[bytes]) -> None:
        event: dict[str, Any] = {}
        try:
            for line in lines:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    event[name] = json.loads(value) if name == "data" else value
                elif "data" in event:
                    self.found.put(event)
                    event = {}
        except (OSError, ValueError, AttributeError):
            pass
        self.found.put(None)

    def next(self, wanted: Callable[[dict[str, Any]], Any] = lambda event: True) -> dict[str, Any]:
        """The next event that is wanted; others are passed over."""
        while True:
            event = self.found.get(timeout=PATIENCE)
            assert event is not None, "the stream ended"
            if wanted(event):
                return event

    def rest(self) -> list[dict[str, Any]]:
        """All events until the stream ends."""
        found = []
        while (event := self.found.get(timeout=PATIENCE)) is not None:
            found.append(event)
        return found

    def close(self) -> None:
        if self.connection.sock:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.connection.close()


class ApiServer:
    """A process of `tmuxctl serve`."""

    def __init__(self, place: Path, *options: str) -> None:
        runtime = place / "run"
        runtime.mkdir(mode=0o700, exist_ok=True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
        words = [sys.executable, "-m", "tmuxctl", "--json", "serve", "--listen", "127.0.0.1:0", *options]
        self.log = (place / "serve.log").open("a")
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.environment, start_new_session=True
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, (place / "serve.log").read_text()
        unix, tcp = json.loads(line)["listening"]
        self.path, self.port = unix[5:], int(tcp.rpartition(":")[2])

    def below(self, session: str, **about: Any) -> ApiClient:
        """A client below a session, over the Unix socket."""
        return ApiClient(self.path, f"/v1/sessions/{session}/agentapi", **about)

    def operate(self, method: str, path: str, **arguments: Any) -> Any:
        """What an operation of the server returns."""
        client = ApiClient(self.path, f"/v1/sessions{path}")
        body = json.dumps(arguments).encode() if arguments else None
        reply = client.call(method, "", body, Content_Type="application/json")
        assert reply.status < 300, reply.body
        return reply.json

    def new(self, name: str, *command: str, **about: Any) -> Any:
        """Start a session."""
        return self.operate("POST", "", name=name, command=command, **about)

    def tmuxctl(self, *words: str) -> Any:
        """What a command prints as JSON."""
        command = [sys.executable, "-m", "tmuxctl", "--json", *words]
        ran = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert ran.stdout, ran.stderr
        return json.loads(ran.stdout)

    def stop(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        assert self.process.stdout
        self.process.stdout.close()
        self.log.close()


def start_scripted(server: ApiServer, place: Path, *steps: dict[str, Any], name: str = "fix") -> None:
    """Start the agent that answers by a script, in a session."""
    script = place / f"{name}.json"
    script.write_text(json.dumps(steps))
    server.new(name, sys.executable, str(PROGRAMS / "scripted.py"), str(script))


def await_true(condition: Callable[[], Any]) -> Any:
    """What a condition gave once it held."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)
    return found
