"""Telling others of each change: a URL is sent it (Standard Webhooks), a command gets it on standard input.

Each receiver is told one event after the other, in order. One that fails is told again; an event that it never took is kept in
`dead-letters.jsonl` of the server's state folder.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import http.client
import json
import os
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from anyio import to_thread

from tmuxctl.errors import Denied, Usage
from tmuxctl.operations import to_json
from tmuxctl.ownership import make_parents, refuse_unsafe
from tmuxctl.state_files import append_line, make_private_file, make_private_folder, state_home
from tmuxctl.surfaces.server.logs import format_time
from tmuxctl.surfaces.server.streams.hub import Change, EventHub
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import read_file
from tmuxctl.value import Value

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tmuxctl.surfaces.server.app import Served

PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before an event is sent again that was not taken."""

LETTER_BYTES = 16 << 20
"""Bytes of events that nobody took before the file becomes `dead-letters.jsonl.1`."""

SECRET_PREFIX = "whsec_"


class Webhook(Value):
    """A receiver: its URL, or a command for the shell."""

    target: str

    @property
    def is_url(self) -> bool:
        """Whether it is sent to; else it is run."""
        return self.target.startswith(("http://", "https://"))


def parse_webhook(text: str) -> Webhook:
    """`https://host/path` or a command; Usage for a URL without a host, or with a password in it."""
    hook = Webhook(text)
    if not text.strip() or "\0" in text:
        raise Usage("--on-event: nothing to tell", reason="bad_webhook", hint="give a URL or a command")
    if hook.is_url:
        parts = urlsplit(text)
        if not parts.hostname or parts.username or parts.password:
            hint = "https://HOST/PATH"
            raise Usage(f"--on-event: {ascii(text[:60])} is no such URL", reason="bad_webhook", hint=hint)
    return hook


class WebhookFiles:
    """The secret that events are signed with, and the events that nobody took; in the server's state folder."""

    def __init__(self) -> None:
        self.folder = os.path.join(state_home(), "tmuxctl", "serve")
        self.letters = os.path.join(self.folder, "dead-letters.jsonl")
        self.secret = os.path.join(self.folder, "webhook-secret")

    def read_secret(self) -> bytes:
        """The secret, made where there is none. Denied for a file that others may read."""
        make_parents(self.folder)
        make_private_folder(self.folder)
        if not os.path.lexists(self.secret):
            text = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
            make_private_file(self.secret, f"{text}\n".encode())
        refuse_unsafe(self.secret)
        if os.lstat(self.secret).st_mode & 0o077:
            raise Denied(f"{self.secret} is open to others", reason="bad_mode", hint=f"chmod 600 {self.secret}")
        kept = read_file(self.secret, 4096).decode("ascii", "replace").strip()
        try:
            return base64.b64decode(kept.removeprefix(SECRET_PREFIX), validate=True)
        except ValueError:
            hint = "remove it: a new one is made"
            raise Denied(f"{self.secret} holds no secret", reason="bad_secret", hint=hint) from None

    def keep(self, hook: Webhook, change_id: str, body: bytes, why: str) -> None:
        """Keep an event that a receiver did not take."""
        about = {"time": format_time(), "receiver": hook.target, "id": change_id, "why": why, "event": body.decode()}
        append_line(self.letters, json.dumps(about).encode(), LETTER_BYTES)


def sign(secret: bytes, change_id: str, stamp: str, body: bytes) -> str:
    """The signature of a message by Standard Webhooks: of its id, its time and its body."""
    signed = b".".join((change_id.encode(), stamp.encode(), body))
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


class Teller:
    """Tells one receiver of every change."""

    def __init__(self, hub: EventHub, hook: Webhook, files: WebhookFiles) -> None:
        self.hub, self.hook, self.files = hub, hook, files
        self.key = files.read_secret() if hook.is_url else b""
        self.number: int | None = None
        """The number of the last change that was told or kept."""

    async def run(self) -> None:
        """Tell the present state of each session, then every change, for ever."""
        while True:
            with self.hub.read(self.number) as (begin, reader):
                for change in begin:
                    await self._tell(change)
                async for change in reader.changes():
                    await self._tell(change)
            # it was too far behind: what it missed is kept by the hub
            await asyncio.sleep(PAUSES[0])

    async def _tell(self, change: Change) -> None:
        change_id = f"{self.hub.life}-{change.number}-{(change.event.id or change.event.session)[:8]}"
        body = json.dumps({"type": change.name, "data": to_json(change.event)}, ensure_ascii=False).encode()
        why = ""
        for pause in (*PAUSES, None):
            why = await to_thread.run_sync(self._send if self.hook.is_url else self._run, change_id, body)
            if not why or pause is None:
                break
            await asyncio.sleep(pause)
        if why:
            self.files.keep(self.hook, change_id, body, why)
        self.number = change.number

    def _send(self, change_id: str, body: bytes) -> str:
        """Send it; empty, or why it was not taken."""
        stamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "tmuxctl",
            "webhook-id": change_id,
            "webhook-timestamp": stamp,
            "webhook-signature": sign(self.key, change_id, stamp, body),
        }
        request = urllib.request.Request(self.hook.target, body, headers, method="POST")
        try:
            with OPENER.open(request, timeout=TIMING.http.answer_seconds) as answer:
                answer.read(1024)
                return ""
        except urllib.error.HTTPError as error:
            return f"it answered {error.code}"
        except (OSError, http.client.HTTPException, ValueError) as error:
            return str(error)[:200]

    def _run(self, change_id: str, body: bytes) -> str:
        """Run the command; what a program printed reaches it on standard input only."""
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", self.hook.target],
                input=body,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "TMUXCTL_EVENT_ID": change_id},
                timeout=TIMING.http.command_seconds,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)[:200]
        return f"exit status {done.returncode}" if done.returncode else ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A receiver that points elsewhere has not taken the event: what is signed for one host is sent to no other."""

    def redirect_request(self, *_: object) -> None:
        """urllib calls this for a redirect; None: it is an error."""


OPENER = urllib.request.build_opener(_NoRedirect)


def tell_of_events(_app: FastAPI, served: Served, hooks: Sequence[Webhook] = ()) -> object:
    """The part of a server that tells these receivers."""
    files = WebhookFiles()
    tellers = [Teller(served.hub, hook, files) for hook in hooks]

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        tasks = [asyncio.create_task(teller.run()) for teller in tellers]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return running()
