"""The routes of agentapi: below each session, and for one session at the root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from tmuxctl.errors import Exited, TmuxctlError
from tmuxctl.surfaces.adapters.agentapi import feeds, problems, uploads
from tmuxctl.surfaces.adapters.agentapi.conversation import Conversation, Conversations
from tmuxctl.surfaces.adapters.agentapi.messages import MessageReader
from tmuxctl.surfaces.server import routes
from tmuxctl.surfaces.server.app import token_check
from tmuxctl.surfaces.server.streams import sse
from tmuxctl.untrusted import parse_json
from tmuxctl.value import Value, changed

if TYPE_CHECKING:
    from tmuxctl.model import Session
    from tmuxctl.surfaces.server.app import Served
    from tmuxctl.surfaces.server.calls import Request as CallRequest

PREFIX = "/v1/sessions/{id}/agentapi"
TAG = "agentapi"

SPACE = " \t\n\r\f\v"
"""What agentapi takes for blanks."""

MESSAGE_BYTES = 4 << 20
"""Bytes of a message as JSON."""

FORM_BYTES = uploads.FILE_BYTES + (64 << 10)
"""Bytes of a form with a file."""


class Visit(Value):
    """A request that was let in: who calls, and which session is meant."""

    served: Served
    request: Request
    call: CallRequest
    session: Session
    conversation: Conversation


Act = Callable[[Visit], Awaitable[Response]]


def add_routes(app: FastAPI, served: Served, *, root: str | None = None) -> None:
    """Below each session, and at the root for the session `root`, by its name or id."""
    conversations = Conversations(served)
    for path, session in ((PREFIX, None), *([("", root)] if root else [])):
        for method, name, act, about in ROUTES:
            app.add_api_route(
                f"{path}{name}",
                _make_endpoint(act, served, conversations, session),
                methods=[method],
                tags=[TAG],
                summary=about,
                operation_id=f"agentapi_{'root' if session else 'session'}_{name.strip('/').replace('/', '_')}",
                response_class=Response,
                include_in_schema=not name.startswith("/internal"),
                openapi_extra=_describe(name, in_path=session is None),
            )


def _make_endpoint(
    act: Act, served: Served, conversations: Conversations, session: str | None
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            # what it started goes on when the caller goes away
            call = changed(routes.make_request(request), gone=None)
            wanted = session or request.path_params["id"]
            shown: Session = await served.calls.operate(call, "show", {"session": wanted})
            return await act(Visit(served, request, call, shown, conversations.find(shown.id)))
        except TmuxctlError as error:
            return problems.answer_problem(error)

    return endpoint


async def _get_status(visit: Visit) -> Response:
    _refuse_ended(visit.session)
    about = {"status": visit.conversation.status(visit.session), "agent_type": feeds.agent_type(visit.session)}
    return JSONResponse({**about, "transport": "pty"})


async def _get_messages(visit: Visit) -> Response:
    messages = await visit.conversation.read(visit.call)
    return JSONResponse({"messages": [message.to_json("content") for message in messages]})


async def _post_message(visit: Visit) -> Response:
    visit.call.access.demand("write", "message")
    content, kind = parse_message(await visit.request.body())
    _refuse_ended(visit.session)
    if kind == "raw":
        # keys of a password are typed where nobody can read along
        arguments = {"session": visit.session.id, "text": content.encode(), "enter": False, "multiline": True}
        arguments["insecure"] = visit.call.access.private
        await visit.served.calls.operate(visit.call, "send", arguments)
    else:
        text = content.strip(SPACE)
        if not text:
            raise problems.refuse_message(problems.EMPTY)
        await visit.conversation.post(visit.call, text)
    return JSONResponse({"ok": True})


def parse_message(body: bytes) -> tuple[str, str]:
    """Text and type of a message; InvalidRequest for anything else."""
    try:
        given = parse_json(body, limit=MESSAGE_BYTES)
        found = {name: value for name, value in given.items() if name != "$schema"}
    except (ValueError, AttributeError):
        raise _invalid("the body is no JSON object", "body") from None
    for name in ("content", "type"):
        if name not in found:
            raise _invalid(f"expected required property {name} to be present", "body")
        if not isinstance(found[name], str):
            raise _invalid("expected string", f"body.{name}")
    if strange := sorted(found.keys() - {"content", "type"}):
        raise _invalid("unexpected property", f"body.{ascii(strange[0])[1:41]}")
    content, kind = found["content"], found["type"]
    if kind not in ("raw", "user"):
        raise _invalid('expected value to be one of "raw, user"', "body.type")
    try:
        content.encode()
    except UnicodeEncodeError:
        raise _invalid("expected text without lone surrogates", "body.content") from None
    return content, kind


def _invalid(why: str, where: str) -> problems.InvalidRequest:
    hint = '{"content": "Hello", "type": "user"}'
    return problems.InvalidRequest(why, reason="bad_message", hint=hint, location=where)


async def _post_upload(visit: Visit) -> Response:
    visit.call.access.demand("write", "upload")
    _refuse_ended(visit.session)
    path = await _take_file(visit)
    visit.served.audit.note(visit.call.access, visit.call.id, "upload", visit.session.name, "done")
    return JSONResponse({"ok": True, "filePath": path})


def _save(visit: Visit, name: str, data: bytes) -> str:
    reader = MessageReader(visit.served.calls, visit.call, visit.session.id, visit.conversation.texts)
    return uploads.save(reader.folder, name, data)


async def _take_file(visit: Visit) -> str:
    """Keep the file in a form, and say where: refused before it is read, if it says that it is too large."""
    declared = visit.request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared[:20]) > FORM_BYTES:
        raise uploads.too_large()
    try:
        form = await visit.request.form(max_files=1, max_fields=8, max_part_size=1 << 16)
    except HTTPException as error:
        raise _no_file(str(error.detail)[:200]) from None
    try:
        file = form.get("file")
        if file is None or isinstance(file, str):
            raise _no_file("File required")
        name = uploads.clean_name(file.filename)
        # one at a time is in memory, and counted
        async with visit.conversation.uploading:
            data = await file.read(uploads.FILE_BYTES + 1)
            if len(data) > uploads.FILE_BYTES:
                raise uploads.too_large()
            return await visit.served.calls.in_thread(partial(_save, visit, name, data))
    finally:
        await form.close()


def _no_file(why: str) -> problems.InvalidRequest:
    hint = "send multipart/form-data with the file as `file`: curl -F file=@NAME"
    return problems.InvalidRequest(why, reason="no_file", hint=hint, location="body.file")


async def _get_events(visit: Visit) -> Response:
    _refuse_ended(visit.session)
    holds = token_check(visit.served, visit.call.access)
    follower = feeds.Follower(visit.conversation, visit.call, visit.session, holds)
    return StreamingResponse(follower.events(), media_type=sse.MEDIA_TYPE, headers=feeds.MEDIA)


async def _get_screen(visit: Visit) -> Response:
    _refuse_ended(visit.session)
    holds = token_check(visit.served, visit.call.access)
    events = feeds.follow_screen(visit.conversation, visit.call, visit.session, holds)
    return StreamingResponse(events, media_type=sse.MEDIA_TYPE, headers=feeds.MEDIA)


def _refuse_ended(session: Session) -> None:
    """agentapi ends with its program."""
    if session.state.traits.over:
        hint = "its messages can still be read: GET messages"
        raise Exited(f"the program in {session.name} has ended", reason="ended", hint=hint)


ROUTES: tuple[tuple[str, str, Act, str], ...] = (
    ("GET", "/status", _get_status, "Whether the program waits (stable) or works (running)"),
    ("GET", "/messages", _get_messages, "What the program was told, and what it said"),
    ("POST", "/message", _post_message, "Give the program a message (user), or type it as it is (raw)"),
    ("POST", "/upload", _post_upload, "Give the session a file"),
    ("GET", "/events", _get_events, "Messages and changes of state as they come"),
    ("GET", "/internal/screen", _get_screen, "The screen as it changes"),
)


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": sorted(properties)}


TEXT = {"type": "string"}
STATUS = {"type": "string", "enum": ["running", "stable"]}
ROLE = {"type": "string", "enum": ["agent", "user"]}
MESSAGE = _object(id={"type": "integer"}, content=TEXT, role=ROLE, time={"type": "string", "format": "date-time"})

ANSWERS: dict[str, dict[str, Any]] = {
    "/status": _object(status=STATUS, agent_type=TEXT, transport={"type": "string", "enum": ["pty"]}),
    "/messages": _object(messages={"type": "array", "items": MESSAGE}),
    "/message": _object(ok={"type": "boolean"}),
    "/upload": _object(ok={"type": "boolean"}, filePath=TEXT),
}

BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "/message": ("application/json", _object(content=TEXT, type={"type": "string", "enum": ["raw", "user"]})),
    "/upload": ("multipart/form-data", _object(file={"type": "string", "format": "binary"})),
}


def _describe(name: str, *, in_path: bool) -> dict[str, Any]:
    """What the OpenAPI document says of a route."""
    content = {"application/json": {"schema": ANSWERS[name]}} if name in ANSWERS else {sse.MEDIA_TYPE: {}}
    problem = {"description": "A failure", "content": {problems.MEDIA_TYPE: {"schema": problems.SCHEMA}}}
    described: dict[str, Any] = {"responses": {"200": {"description": "OK", "content": content}, "default": problem}}
    if name in BODIES:
        kind, schema = BODIES[name]
        described["requestBody"] = {"required": True, "content": {kind: {"schema": schema}}}
    if in_path:
        about = {"type": "string", "minLength": 1}
        described["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": about}]
    return described
