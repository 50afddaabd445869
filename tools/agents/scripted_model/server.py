"""The server: finds a request's dialect, plays its answer with its silences and cuts, and keeps the log of all requests."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import select
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from .conversation import Turn
from .dialects import ANTHROPIC, CHAT, GEMINI, RESPONSES, Dialect, error
from .events import Delay, Drop, Event, Refusal, Said
from .script import LONGEST, answer
from .sse import to_json

REQUESTS = "/__fake__/requests"
"""Where the log of the requests is read, as JSON."""

BODIES = "/__fake__/bodies"
"""Where the newest requests are read whole, as a JSON list of texts: what else a program tells the model."""

GEMINI_PATH = re.compile(r"/models/([^/:]+):(\w+)$")

MODEL = {"id": "fake", "object": "model", "type": "model", "created": 0, "owned_by": "fake", "display_name": "Fake"}
MODELS = {"object": "list", "has_more": False, "data": [MODEL]}


class Gone(Exception):
    """The program has hung up."""


class Dropped(Exception):
    """The script cuts the connection."""


class Server(ThreadingHTTPServer):
    """The model on a port of the loopback interface, 0 for any free one."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.tries: Counter[str] = Counter()
        self.bodies: deque[str] = deque(maxlen=20)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A program that hangs up is no error of ours."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def record(self, **entry: Any) -> dict[str, Any]:
        """A new entry of the log; whoever makes it fills in how it went."""
        with self.lock:
            entry |= {"n": len(self.requests) + 1, "time": time.time()}
            self.requests.append(entry)
        return entry

    def count_try(self, directive: str) -> int:
        """How often a directive was tried, this time counted."""
        with self.lock:
            self.tries[directive] += 1
            return self.tries[directive]


class Handler(BaseHTTPRequestHandler):
    """One connection of a program."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = LONGEST

    def log_message(self, format: str, *args: Any) -> None:
        """The log of the requests tells more."""

    def do_HEAD(self) -> None:
        self.send_json({})

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == REQUESTS:
            with self.server.lock:
                self.send_json(self.server.requests)
        elif path == BODIES:
            self.send_json(list(self.server.bodies))
        elif path.endswith("/models"):
            self.send_json(MODELS)
        else:
            self.send_missing(path)

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        body = self.read_body()
        try:
            if path.endswith("/count_tokens"):
                self.send_json({"input_tokens": 42})
            elif path.endswith("/chat/completions"):
                self.play(CHAT, CHAT.read(body))
            elif path.endswith("/responses"):
                self.play(RESPONSES, RESPONSES.read(body))
            elif path.endswith("/messages"):
                self.play(ANTHROPIC, ANTHROPIC.read(body))
            elif found := GEMINI_PATH.search(path):
                self.play_gemini(body, *found.groups())
            else:
                self.send_missing(path)
        except (Gone, ConnectionError):
            self.close_connection = True

    def play_gemini(self, body: dict[str, Any], model: str, verb: str) -> None:
        if verb == "countTokens":
            self.send_json({"totalTokens": 42})
        else:
            self.play(GEMINI, GEMINI.read(body)._replace(model=model, stream=verb == "streamGenerateContent"))

    def play(self, dialect: Dialect, turn: Turn) -> None:
        """Answer a turn, and keep in the log how that went."""
        behaviour, events = answer(turn, self.server.count_try)
        entry = self.server.record(
            path=urlsplit(self.path).path,
            dialect=turn.dialect,
            model=turn.model,
            stream=turn.stream,
            behaviour=behaviour,
            # the prompt exactly as the program sent it, as far as a log can hold it
            user=turn.user[-4000:],
            user_length=len(turn.user),
            user_sha256=hashlib.sha256(turn.user.encode("utf-8", "surrogatepass")).hexdigest(),
            results=[result[-2000:] for result in turn.results],
            tools=[tool.name for tool in turn.tools],
            outcome="open",
        )
        try:
            entry["outcome"] = self.write_answer(dialect, turn, events)
        except (Gone, OSError):
            entry["outcome"] = "aborted by the client"
            raise Gone from None
        except Dropped:
            entry["outcome"] = "dropped by the server"
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        finally:
            entry["seconds"] = round(time.time() - entry["time"], 3)

    def write_answer(self, dialect: Dialect, turn: Turn, events: Iterable[Event]) -> str:
        """Send the answer; returns its outcome for the log."""
        events = list(events)
        if isinstance(refusal := events[0], Refusal):
            headers = {} if refusal.retry_after is None else {"retry-after": str(refusal.retry_after)}
            self.send_json(error(turn.dialect, refusal), refusal.status, headers)
            return f"error {refusal.status}"
        if not any(isinstance(event, Said) for event in events):
            # nothing of a response comes, not even its headers
            events = list(self.said(events))
        if turn.stream:
            self.send_stream(dialect.stream(turn, self.said(events)))
        else:
            self.send_json(dialect.whole(turn, self.said(events)))
        return "done"

    def said(self, events: Iterable[Event]) -> Iterator[Said]:
        """What is to be put into words, each at its time; Dropped where the connection is cut."""
        for event in events:
            if isinstance(event, Delay):
                self.pause(event.seconds)
            elif isinstance(event, Drop):
                raise Dropped
            elif isinstance(event, Said):
                yield event

    def pause(self, seconds: float) -> None:
        """Be silent, and notice at once when the program hangs up, as an interrupted one does."""
        deadline = time.monotonic() + min(seconds, LONGEST)
        while (left := deadline - time.monotonic()) > 0:
            readable, _, _ = select.select([self.connection], [], [], left)
            if readable:
                if not self.connection.recv(1, socket.MSG_PEEK):
                    raise Gone
                # its next request is there already: its end is no longer seen, and stays so until that is read
                time.sleep(max(0.0, min(left, 0.05)))

    def send_json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = to_json(value).encode()
        self.send_response(status)
        for name, text in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_missing(self, path: str) -> None:
        self.server.record(method=self.command, path=path, status=404)
        self.send_json({"error": {"message": f"nothing at {path}", "type": "not_found_error"}}, 404)

    def send_stream(self, chunks: Iterable[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            data = chunk.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def read_body(self) -> dict[str, Any]:
        data = self.read_chunks() if self.headers.get("Transfer-Encoding") else self.rfile.read(self.content_length)
        if self.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        self.server.bodies.append(data.decode(errors="replace"))
        body = json.loads(data or b"{}")
        return body if isinstance(body, dict) else {}

    @property
    def content_length(self) -> int:
        return int(self.headers.get("Content-Length") or 0)

    def read_chunks(self) -> bytes:
        data = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return data
