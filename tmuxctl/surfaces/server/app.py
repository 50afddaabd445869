"""The application: routes of the operations, events, terminals, the adapters of other tools, behind the guard."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from tmuxctl import __version__
from tmuxctl.access import CallerAccess, still_means
from tmuxctl.errors import NotFound, TmuxctlError, Usage
from tmuxctl.machines import read_machines
from tmuxctl.operations import to_json
from tmuxctl.surfaces.server import pages, routes
from tmuxctl.surfaces.server.admission.guard import PRINCIPAL, AdmissionRules, RequestGuard, describe_error
from tmuxctl.surfaces.server.calls import NO_DEFAULTS, Calls, NewDefaults
from tmuxctl.surfaces.server.logs import AuditLog, RequestLog
from tmuxctl.surfaces.server.metrics import MEDIA_TYPE, Metrics
from tmuxctl.surfaces.server.streams import recordings, sse
from tmuxctl.surfaces.server.streams.hub import EventHub
from tmuxctl.surfaces.server.streams.inboxes import InboxDeliverer
from tmuxctl.surfaces.server.streams.terminal import TerminalSocket
from tmuxctl.timing import TIMING
from tmuxctl.value import Value

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from tmuxctl.control import Control
    from tmuxctl.model import Session


EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "server-sent events", "content": {sse.MEDIA_TYPE: {}}},
    **routes.ERRORS,
}
CAST: dict[int | str, dict[str, Any]] = {
    200: {"description": "asciicast 3", "content": {recordings.MEDIA_TYPE: {}}},
    **routes.ERRORS,
}
PATCH_BODY = {
    "requestBody": {
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "name": {"type": "string"},
                        "size": {"type": "string"},
                        "tags": {"type": "array", "items": {"type": "string"}},
                    },
                }
            }
        }
    }
}


class Served(Value):
    """What the parts of one server share."""

    control: Control
    calls: Calls
    hub: EventHub
    metrics: Metrics
    audit: AuditLog
    rules: AdmissionRules


Part = Callable[[FastAPI, Served], Any]
"""Adds routes of its own; may return an asynchronous context manager that holds while the server runs."""


def make_server(
    control: Control,
    rules: AdmissionRules,
    *,
    log: RequestLog | None = None,
    parts: tuple[Part, ...] = (),
    defaults: NewDefaults = NO_DEFAULTS,
    all_machines: bool = False,
) -> RequestGuard:
    """The whole application of a server for one Control. `all_machines`: its events and its page are of those of machines.toml
    too."""
    # a caller may not have the server connect to any host that it names
    control.machine.listed_only = True
    hub = EventHub(control, all_machines=all_machines)
    deliverer = InboxDeliverer(hub)
    metrics, audit = Metrics(hub.count_states), AuditLog()
    served = Served(control, Calls(control, audit, metrics, defaults), hub, metrics, audit, rules)
    contexts: list[Any] = []

    def stop() -> None:
        hub.stop()
        deliverer.stop()
        served.calls.cancel_all()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            hub.start()
            deliverer.start()
            sweeper = asyncio.create_task(_sweep(served))
            for context in contexts:
                await stack.enter_async_context(context)
            try:
                yield
            finally:
                sweeper.cancel()
                stop()

    app = FastAPI(
        title="tmuxctl",
        version=__version__,
        description="Interactive programs on terminals that tmux keeps alive.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    _add_own_routes(app, served)
    app.include_router(routes.make_router(served.calls), prefix="/v1")
    contexts += [context for part in parts if (context := part(app, served)) is not None]
    app.add_exception_handler(TmuxctlError, _answer_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    return RequestGuard(app, rules, log or RequestLog(), stop)


async def _sweep(served: Served) -> None:
    while True:
        await asyncio.sleep(TIMING.http.sweep_seconds)
        try:
            await served.calls.in_thread(served.hub.forget_gone)
        except (TmuxctlError, OSError):
            # tmux does not answer now, or no descriptor is left: it is asked again
            continue


def _answer_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, TmuxctlError)
    status, body = describe_error(error)
    return Response(body, status, media_type="application/json")


def _answer_http_error(request: Request, error: Exception) -> Response:
    """What the framework refuses by itself, as an error object."""
    assert isinstance(error, HTTPException)
    path = ascii(request.url.path[:80])
    if error.status_code == 404:
        found: TmuxctlError = NotFound(f"nothing is at {path}", reason="no_path", hint="GET /docs")
    else:
        found = Usage(f"{request.method} {path}: {error.detail}", reason="bad_method", hint="GET /docs")
    headers = {"Allow": ", ".join(_list_methods(request.app, request.url.path))} if error.status_code == 405 else None
    return JSONResponse({"error": to_json(found.to_json())}, error.status_code, headers=headers)


def _list_methods(app: FastAPI, path: str) -> list[str]:
    """The methods that may be used at a path: the framework names those of one route only."""
    paths = app.openapi()["paths"]
    found: set[str] = {method.upper() for method in paths.get(path, ())}
    for template, methods in () if found else paths.items():
        if re.fullmatch(re.sub(r"\\{[a-z]+\\}", "[^/]+", re.escape(template)), path):
            found |= {method.upper() for method in methods}
    return sorted(found)


def access_of(connection: HTTPConnection) -> CallerAccess:
    """What the caller may, as the guard found."""
    access: CallerAccess = connection.scope[PRINCIPAL]
    return access


def token_check(served: Served, access: CallerAccess) -> Callable[[], bool]:
    """Says whether the token of a caller still holds, and its login: what goes on for hours ends when it is revoked."""
    tokens, logins = served.rules.tokens, served.rules.logins
    if tokens is None or not access.token:
        return lambda: True

    def holds() -> bool:
        if access.login and not (logins and logins.holds(access.login)):
            return False
        return any(
            (token.name, token.rights, token.sessions) == (access.token, access.rights, access.sessions)
            for token in tokens.list_tokens()
        )

    return holds


def follow_check(served: Served, access: CallerAccess, session: str) -> Callable[[], Awaitable[None]]:
    """Returns once the caller may not follow the session of this id any more: its token was revoked, or is not for the name that
    the session has got meanwhile."""
    holds = token_check(served, access)

    async def ended() -> None:
        while holds():
            try:
                if not await served.calls.in_thread(partial(still_means, access, served.control, session)):
                    return
            except TmuxctlError:
                # the server is busy, or tmux does not answer now: it is asked again
                pass
            await asyncio.sleep(TIMING.http.follow_seconds)

    return ended


def _add_own_routes(app: FastAPI, served: Served) -> None:
    @app.get("/healthz", tags=["Server"], summary="Whether the server answers")
    async def healthz() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    counters: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}, **routes.ERRORS}

    @app.get(
        "/metrics", tags=["Server"], summary="Counters for Prometheus", response_class=Response, responses=counters
    )
    async def metrics(request: Request) -> Response:
        access = access_of(request)
        access.demand("read", "metrics")
        access.demand_all("metrics")
        return Response(served.metrics.text(), media_type=MEDIA_TYPE)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        headers = {"content-security-policy": pages.POLICY}
        return HTMLResponse(pages.write_page(app.openapi()), headers=headers)

    @app.get("/v1/machines", tags=["Set up"], summary="The machines that can be named", responses=routes.ERRORS)
    async def machines(request: Request) -> JSONResponse:
        access = access_of(request)
        access.demand("read", "the list of machines")
        found = await served.calls.in_thread(read_machines)
        return JSONResponse({"machines": [{"name": name} for name in found if access.means_machine(name)]})

    @app.get("/v1/events", tags=["Look"], summary="Changes of all sessions", responses=EVENTS, response_class=Response)
    async def events(request: Request) -> Response:
        access = access_of(request)
        access.demand("read", "events")
        last = request.headers.get("last-event-id") or request.query_params.get("last_event_id")
        return _stream(sse.stream_all(served.hub, access, last, token_check(served, access)))

    @app.get(
        "/v1/sessions/{id:address}/events",
        tags=["Look"],
        summary="Changes of a session, and what it prints",
        responses=EVENTS,
        response_class=Response,
    )
    async def session_events(request: Request, id: str) -> Response:
        call = routes.make_request(request)
        session = await _show(served, call, id)
        since = request.headers.get("last-event-id") or request.query_params.get("since") or session.cursor or "screen"
        raw = request.query_params.get("format") == "raw"
        ended = follow_check(served, call.access, session.lasting_address)
        followed = session.lasting_address
        return _stream(sse.stream_session(served.hub, served.calls, call, followed, since, raw, ended))

    @app.get(
        "/v1/sessions/{id:address}/cast",
        tags=["Look"],
        summary="A recording of what a session printed",
        responses=CAST,
        response_class=Response,
    )
    async def cast(request: Request, id: str) -> Response:
        call = routes.make_request(request)
        session = await _show(served, call, id)
        return await recordings.answer_cast(served.calls, session.lasting_address)

    @app.patch(
        "/v1/sessions/{id:address}",
        tags=["Sessions"],
        summary="Give a session another name, size or tags",
        responses=routes.ERRORS,
        openapi_extra=PATCH_BODY,
    )
    async def patch(request: Request, id: str) -> Response:
        call = routes.make_request(request)
        wanted = routes.parse_body(await request.body(), request.headers.get("content-type", "").partition(";")[0])
        return JSONResponse(to_json(await _change(served, call, id, wanted)))

    @app.websocket("/v1/sessions/{id:address}/terminal")
    async def terminal(socket: WebSocket, id: str) -> None:
        call = routes.make_request(socket)
        session = await _show(served, call, id)
        since = socket.query_params.get("since") or session.cursor or "screen"
        if since.isdecimal() and len(since) < 16:
            # an offset in this life of the session
            since = f"c1:{session.incarnation}:{since}"
        if "write" in call.access.rights:
            served.audit.note(call.access, call.id, "terminal", session.address, "opened")
        await TerminalSocket(
            socket,
            served.calls,
            call,
            token_check(served, call.access),
            follow_check(served, call.access, session.lasting_address),
        ).run(session, since)


def _stream(events: AsyncIterator[str]) -> Response:
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(events, media_type=sse.MEDIA_TYPE, headers=headers)


async def _show(served: Served, call: Any, session: str) -> Session:
    """The session that a caller names, if it may know of it."""
    shown: Session = await served.calls.operate(call, "show", {"session": session})
    return shown


PATCHABLE = ("name", "size", "tags")


async def _change(served: Served, call: Any, session: str, wanted: dict[str, Any]) -> Any:
    """Carry out what a PATCH wants, the name last; the session as it is then."""
    if wrong := wanted.keys() - set(PATCHABLE):
        hint = f"it takes {', '.join(PATCHABLE)}"
        raise Usage(f"PATCH does not take {ascii(min(wrong))[:40]}", reason="bad_parameter", hint=hint)
    shown = await _show(served, call, session)
    operate = partial(served.calls.operate, call)
    if "size" in wanted:
        await operate("resize", {"session": shown.id, "size": wanted["size"]})
    if "tags" in wanted:
        tags = wanted["tags"]
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise Usage("tags: a list of texts", reason="bad_type", hint='{"tags": ["a"]}')
        lost = [tag for tag in shown.tags if tag not in tags]
        await operate("tag", {"session": shown.id, "tags": tags, "remove": lost})
    if "name" in wanted:
        await operate("rename", {"session": shown.id, "name": wanted["name"]})
    return await operate("show", {"session": shown.id})
