"""What every request passes before anything of it is used: Host, Origin, token, length and duration of its body.

An ASGI application around the server's own (ASGI 3.0), so that it stands before WebSockets and mounted applications too.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from starlette.requests import ClientDisconnect

from tmuxctl.access import CallerAccess
from tmuxctl.errors import Denied, TmuxctlError, Unreachable, Usage
from tmuxctl.operations import to_json
from tmuxctl.surfaces.server.admission import logins
from tmuxctl.timing import TIMING
from tmuxctl.value import Value

if TYPE_CHECKING:
    from tmuxctl.surfaces.server.admission.logins import LoginFiles
    from tmuxctl.surfaces.server.admission.tokens import TokenFiles
    from tmuxctl.surfaces.server.logs import RequestLog

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_BYTES = 16 << 20
"""Bytes of a body at most: the largest text that is typed, or file that is uploaded, and some more."""

BODIES_BYTES = 128 << 20
"""Bytes of all bodies together that are in memory at most: of requests that are not answered yet."""

REQUESTS_PER_TOKEN = 256
"""Requests, streams and WebSockets among them, that one token may have under way: fewer than the calls of all (calls.py), so
that one caller does not keep the others out."""

OPEN = ("/healthz", "/docs", "/openapi.json", "/login", "/login.js", "/favicon.svg", "/manifest.webmanifest")
"""What tells nothing of the sessions, and needs no token."""

LOGIN = "/login"
PAGES, BELOW = ("/", "/teams"), ("/session/", "/team/")
"""The pages of a browser, and what begins with one of the second: who has not signed in is sent to sign in."""

OWN_KEY = "/hooks/"
"""Below this a session's own key stands for the token."""

GONE = 499
"""What the log says of a caller that went away, as nginx does."""

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

PRINCIPAL = "tmuxctl.access"
REQUEST = "tmuxctl.request"
"""Under these names the scope tells who calls (CallerAccess), and the id of the request."""


class TooLarge(TmuxctlError):
    """A body with more bytes than a body may have."""

    http_status = 413


class TooSlow(TmuxctlError):
    """A body that did not come in time."""

    code, http_status = "timeout", 408


class Busy(Unreachable):
    """More is under way than the server takes at once."""


class Unauthorized(Denied):
    """A caller on TCP without a token that holds."""

    http_status = 401


class SignInFirst(Unauthorized):
    """A browser that wants a page and has not signed in."""


class ServerBug(TmuxctlError):
    """A failure of the server's own."""

    http_status = 500


class AdmissionRules(Value):
    """How strict the guard of a server is. `hosts` are names that a Host header may have, without port, beside loopback;
    `origins` are those of pages that may call. `tokens` is None where no token is asked for; `logins` are those of browsers, which
    stand for a token. `encrypted`: TLS."""

    tokens: TokenFiles | None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    encrypted: bool = False
    logins: LoginFiles | None = None


class RequestGuard:
    """The application behind the rules. A request over a Unix socket needs no token: only its owner can open it. `stop` ends what
    goes on without end."""

    def __init__(
        self, application: Application, rules: AdmissionRules, log: RequestLog, stop: Callable[[], None] = lambda: None
    ) -> None:
        self.application, self.rules, self.log, self.stop = application, rules, log, stop
        self.limits = RequestLimits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] not in ("http", "websocket"):
            return await self.application(scope, receive, send)
        keep_slashes(scope)
        scope[REQUEST] = os.urandom(8).hex()
        answer = _Answer(scope, send)
        began = time.monotonic()
        try:
            headers = read_headers(scope)
            given = headers.get("x-request-id", "")
            if re.fullmatch(r"[A-Za-z0-9-]{8,64}", given, re.ASCII):
                scope[REQUEST] = given
            scope[PRINCIPAL] = access = self._check(scope, headers)
            with self.limits.request_of(access.token), self.limits.body(headers, receive) as body:
                await self.application(scope, body if scope["type"] == "http" else receive, answer)
        except TmuxctlError as error:
            await answer.refuse(error)
        except ClientDisconnect:
            # it went away while it sent its body: nobody waits for an answer
            answer.status = answer.status or GONE
        except Exception as error:
            self.log.note_bug(scope, error)
            await answer.refuse(ServerBug("internal error", reason="internal", hint="please report it"))
        finally:
            self.log.note(scope, answer.status, time.monotonic() - began)
        return None

    def _check(self, scope: Scope, headers: MutableMapping[str, str]) -> CallerAccess:
        """What the caller may; Denied, Unauthorized and Usage for one that is refused."""
        remote = scope.get("server") is not None and scope["server"][1] is not None
        host = headers.get("host", "")
        self._check_host(host, remote)
        self._check_origin(headers.get("origin"), host, remote)
        if not remote:
            return CallerAccess()
        private = self.rules.encrypted
        if self.rules.tokens is None:
            return CallerAccess(remote=True, private=private)
        path = scope["path"]
        if path in OPEN or path.startswith(OWN_KEY):
            return CallerAccess(rights=(), remote=True, private=private)
        if "authorization" not in headers and (found := self._find_login(scope, headers)):
            return found
        scheme, _, text = headers.get("authorization", "").partition(" ")
        token = self.rules.tokens.find(text.strip()) if scheme.lower() == "bearer" and text else None
        if token is None:
            hint = "send the header Authorization: Bearer TOKEN; tmuxctl serve --show-token prints one"
            refused = SignInFirst if _is_page(scope, headers) else Unauthorized
            raise refused("a token is needed", reason="no_token", hint=hint)
        return CallerAccess(token.name, token.rights, token.sessions, remote=True, private=private)

    def _find_login(self, scope: Scope, headers: MutableMapping[str, str]) -> CallerAccess | None:
        """What a browser that has signed in may: what its token may. Denied for what another page could have made it send: whatever
        changes something, and every WebSocket, has to come from a page of this server."""
        texts = logins.read_cookies(headers, self.rules.encrypted)
        found = self.rules.logins.find(texts) if self.rules.logins and texts else None
        if found is None:
            return None
        login, token = found
        changes = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        origin = headers.get("origin")
        if origin is None and scope["type"] == "http" and _is_form(scope, headers):
            # browsers without JavaScript do not know Origin; no page can make this header up, either
            origin = headers.get("referer")
        if changes and not self._is_own_origin(origin, headers.get("host", "")):
            hint = "send the header Origin, or a token: Authorization: Bearer TOKEN"
            raise Denied("only a page of this server may do this by its cookie", reason="bad_origin", hint=hint)
        private = self.rules.encrypted
        return CallerAccess(token.name, token.rights, token.sessions, remote=True, private=private, login=login)

    def _check_host(self, host: str, remote: bool) -> None:
        """Refuse another name than this server's: by it the page of a stranger would reach us (DNS rebinding). A Unix socket may be
        at the end of an ssh tunnel; its callers call it as they like, but for a name that a stranger could own."""
        name = re.sub(r":[0-9]{1,5}\Z", "", host).lower()
        if not remote and "." not in name and ":" not in name:
            return
        if name not in (*LOOPBACK, *self.rules.hosts):
            hint = "start it with --allow-host NAME"
            raise Denied(f"host {ascii(name[:60])} is not this server's", reason="bad_host", hint=hint)

    def _check_origin(self, origin: str | None, host: str, remote: bool) -> None:
        """Refuse the page of another site: a browser lets it send requests and open WebSockets."""
        if origin is not None and origin not in self.rules.origins and not self._is_own_origin(origin, host, remote):
            hint = "start it with --allow-origin ORIGIN"
            raise Denied(f"origin {ascii(origin[:60])} may not call this server", reason="bad_origin", hint=hint)

    def _is_own_origin(self, origin: str | None, host: str, remote: bool = True) -> bool:
        """Whether a page of this server sent the request. A proxy in front of it may encrypt, so both schemes count without TLS,
        as on the Unix socket."""
        try:
            parts = urlsplit(origin or "")
        except ValueError:
            return False
        schemes = ("https",) if self.rules.encrypted and remote else ("http", "https")
        return parts.scheme in schemes and bool(host) and parts.netloc.lower() == host.lower()


def _is_page(scope: Scope, headers: MutableMapping[str, str]) -> bool:
    """Whether a browser wants a page that is shown to a person."""
    wanted = scope["path"] in PAGES or scope["path"].startswith(BELOW)
    return wanted and scope.get("method") == "GET" and "text/html" in headers.get("accept", "")


def _is_form(scope: Scope, headers: MutableMapping[str, str]) -> bool:
    """Whether a request is a form of a page of ours."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/x-www-form-urlencoded" and scope["path"].startswith((BELOW[0], "/logout"))


def keep_slashes(scope: Scope) -> None:
    """Leave an escaped slash in the path as it is: it is part of a name there, as in `/v1/sessions/web1%2Fbuild` (RFC 3986 2.2),
    and no route is found by it. So is an escaped percent sign, which would pass for the beginning of one."""
    raw = scope.get("raw_path") or b""
    if re.search(b"%2f|%25", raw, re.IGNORECASE):
        parts = (unquote(part) for part in raw.decode("latin-1").split("/"))
        scope["path"] = "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def read_headers(scope: Scope) -> dict[str, str]:
    """The headers by their names in small letters. Usage for one that must stand once and stands twice."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "authorization", "content-length", "cookie"):
            raise Usage(f"the header {key} stands twice", reason="bad_header", hint="send it once")
        found[key] = value.decode("latin-1")
    return found


class RequestLimits:
    """How much may be under way at once: requests of a token, and bytes of bodies in memory."""

    def __init__(self) -> None:
        self.requests: dict[str, int] = {}
        self.body_bytes = 0

    @contextmanager
    def request_of(self, token: str) -> Iterator[None]:
        """One request more of this token, empty for the owner, who has as many as he likes. Raises Busy."""
        count = self.requests.get(token, 0)
        if token and count >= REQUESTS_PER_TOKEN:
            hint = "try again when one of them has ended"
            raise Busy(f"{count} requests of the token {token} are under way", reason="busy", hint=hint)
        self.requests[token] = count + 1
        try:
            yield
        finally:
            self.requests[token] -= 1
            if not self.requests[token]:
                del self.requests[token]

    @contextmanager
    def body(self, headers: MutableMapping[str, str], receive: Receive) -> Iterator[_Body]:
        """A request's body, whose bytes count until it is answered. Raises TooLarge."""
        body = _Body(self, headers, receive)
        try:
            yield body
        finally:
            self.body_bytes -= body.read


class _Body:
    """The request's messages, as long as its body is neither too long nor too slow, nor too much for memory with the others."""

    def __init__(self, limits: RequestLimits, headers: MutableMapping[str, str], receive: Receive) -> None:
        declared = headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared[:20]) > BODY_BYTES:
            raise _too_large()
        self.limits, self.receive = limits, receive
        self.read = 0
        self.until: float | None = time.monotonic() + TIMING.http.body_seconds

    async def __call__(self) -> Message:
        if self.until is None:
            return await self.receive()
        try:
            async with asyncio.timeout(max(0.0, self.until - time.monotonic())):
                message = await self.receive()
        except TimeoutError:
            hint = f"it has {TIMING.http.body_seconds:g} s"
            raise TooSlow("the body did not come in time", reason="slow_body", hint=hint) from None
        count = len(message.get("body", b""))
        self.read += count
        self.limits.body_bytes += count
        if self.read > BODY_BYTES:
            raise _too_large()
        if self.limits.body_bytes > BODIES_BYTES:
            raise Busy("too many large bodies are under way", reason="busy", hint="try again in a moment")
        if not message.get("more_body"):
            # from here on it tells only when the caller goes away
            self.until = None
        return message


def _too_large() -> TooLarge:
    hint = f"it has at most {BODY_BYTES} bytes"
    return TooLarge("the body is too large", reason="too_large", hint=hint)


class _Answer:
    """What is sent to the caller, with the id of the request, and what became of it."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope, self.send = scope, send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-request-id", self.scope[REQUEST].encode())]
            message = {**message, "headers": [*headers, (b"x-content-type-options", b"nosniff")]}
        elif message["type"] == "websocket.accept":
            self.status = 101
        await self.send(message)

    async def refuse(self, error: TmuxctlError) -> None:
        """Answer with an error object, unless an answer has begun."""
        if self.status:
            return None
        status, body = describe_error(error)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if isinstance(error, SignInFirst):
            status = 303
            headers += [(b"location", LOGIN.encode()), (b"cache-control", b"no-store")]
        elif status == 401:
            headers.append((b"www-authenticate", b'Bearer realm="tmuxctl"'))
        if status in (408, 413, 503):
            headers.append((b"connection", b"close"))
        kind = "http"
        if self.scope["type"] == "websocket":
            if "websocket.http.response" not in self.scope.get("extensions", {}):
                self.status = 403
                return await self.send({"type": "websocket.close", "code": 1008, "reason": error.reason})
            kind = "websocket.http"
        await self({"type": f"{kind}.response.start", "status": status, "headers": headers})
        self.status = status
        await self.send({"type": f"{kind}.response.body", "body": body})
        return None


def describe_error(error: TmuxctlError) -> tuple[int, bytes]:
    """The status of an answer that tells this error, and its body."""
    return error.http_status, json.dumps({"error": to_json(error.to_json())}, ensure_ascii=False).encode(
        "utf-8", "replace"
    )
