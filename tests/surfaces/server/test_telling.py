"""Receivers of events: told each change once, in order, signed; what they never took is kept."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.server
import json
import shlex
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tmuxctl.surfaces.server.streams import webhooks


class Receiver:
    """An HTTP server that fails now and then. `taken` is what it took, in order; `seen` is every request's path and headers."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.seen: list[tuple[str, Any, bytes]] = []
        self.fails = lambda number: False
        self.status = 500
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.seen.append((self.path, self.headers, body))
                failed = receiver.fails(len(receiver.seen))
                if not failed:
                    receiver.taken.append(json.loads(body) | {"id": self.headers["webhook-id"]})
                self.send_response(receiver.status if failed else 204)
                if receiver.status == 302:
                    self.send_header("location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.night
def test_each_change_comes_once_and_in_order_though_one_request_in_three_fails(start_server, receiver, until):
    receiver.fails = lambda number: number % 3 == 0
    server = start_server("--on-event", receiver.url)
    server.new("one", "bash", "--norc")
    stream = server.events("/v1/events")
    told = [stream.next()]
    for _ in range(5):
        server.post("/v1/sessions/one/send", {"text": "sleep 100"})
        told.append(stream.next(lambda event: event["data"]["state"] == "busy"))
        server.post("/v1/sessions/one/keys", {"keys": ["C-c"]})
        told.append(stream.next(lambda event: event["data"]["state"] == "idle"))
    server.post("/v1/sessions/one/send", {"text": "exit 3"})
    told.append(stream.next(lambda event: event["event"] == "exited"))
    until(lambda: any(one["type"] == "exited" for one in receiver.taken))
    numbers = [int(one["id"].split("-")[1]) for one in receiver.taken]
    assert numbers == sorted(set(numbers))
    assert len({one["id"] for one in receiver.taken}) == len(receiver.taken)
    states = [one["data"]["state"] for one in receiver.taken]
    assert states[-11:] == ["busy", "idle"] * 5 + ["exited"]


@pytest.mark.night
def test_a_message_is_signed(start_server, receiver, until, place):
    server = start_server("--on-event", receiver.url)
    server.new("one", "cat")
    until(lambda: receiver.seen)
    path, headers, body = receiver.seen[0]
    secret = (place / "state/tmuxctl/serve/webhook-secret").read_text().strip()
    # as https://www.standardwebhooks.com has it
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert (path, headers["webhook-signature"]) == ("/hook", f"v1,{expected}")


def test_what_is_never_taken_is_kept_and_the_next_change_is_told(start_server, receiver, until, place):
    files = webhooks.WebhookFiles()
    hook = webhooks.parse_webhook(receiver.url)
    files.read_secret()
    receiver.fails = lambda number: True
    teller = webhooks.Teller(_NoHub(), hook, files)  # type: ignore[arg-type]
    assert teller._send("id", b"{}") == "it answered 500"
    files.keep(hook, "id-1", b'{"type": "state"}', "it answered 500")
    kept = json.loads((place / "state/tmuxctl/serve/dead-letters.jsonl").read_text())
    assert (kept["receiver"], kept["id"], json.loads(kept["event"])) == (receiver.url, "id-1", {"type": "state"})


class _NoHub:
    """Nothing is watched."""


def test_a_receiver_that_points_elsewhere_is_not_followed(receiver, place):
    receiver.fails, receiver.status = (lambda number: True), 302
    files = webhooks.WebhookFiles()
    teller = webhooks.Teller(_NoHub(), webhooks.parse_webhook(receiver.url), files)  # type: ignore[arg-type]
    assert teller._send("id", b"{}") == "it answered 302"
    assert [path for path, *_ in receiver.seen] == ["/hook"]


@pytest.mark.night
def test_a_command_gets_each_change_on_its_standard_input(start_server, until, place):
    told = place / "told"
    server = start_server("--on-event", f"cat >>{shlex.quote(str(told))}; echo >>{shlex.quote(str(told))}")
    server.new("one", "sh", "-c", "echo '$(touch pwned)'; exec cat")
    until(lambda: told.exists() and '"idle"' in told.read_text())
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    assert {line["data"]["session"] for line in lines} == {"one"}
    assert not (place / "pwned").exists()
