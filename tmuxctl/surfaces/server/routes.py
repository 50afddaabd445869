"""The operations as routes below `/v1`: which there are, what they take, and how each request becomes a call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from starlette.convertors import Convertor, register_url_convertor

from tmuxctl.control.service import Control
from tmuxctl.errors import Usage
from tmuxctl.operations import Operation, Parameter, find, list_names, to_json
from tmuxctl.surfaces.server import calls
from tmuxctl.surfaces.server.admission.guard import PRINCIPAL, REQUEST
from tmuxctl.untrusted import parse_json
from tmuxctl.value import Value

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from tmuxctl.surfaces.server.calls import Calls

GROUPS = ("Drive", "Look", "Sessions")
OTHERS = ("profile_ls", "profile_show", "doctor")
"""Operations of other groups that are offered."""

NOT_OFFERED = ("watch", "export", "report", "rec", "status")
"""`watch` is `/v1/events`; the others write files of the server, or a line for a terminal."""

NOT_TAKEN = ("follow", "secret_from_fd", "fix")
"""Parameters that belong to a command line: what goes on without end is `events` here."""

PLACES = {
    "ls": ("GET", "/sessions"),
    "new": ("POST", "/sessions"),
    "show": ("GET", "/sessions/{id}"),
    "kill": ("DELETE", "/sessions/{id}"),
    "wait": ("POST", "/sessions/{id}/wait"),
    "decide": ("POST", "/sessions/{id}/decide"),
    "inbox_ls": ("GET", "/sessions/{id}/inbox"),
    "inbox_clear": ("DELETE", "/sessions/{id}/inbox"),
    "profile_ls": ("GET", "/profiles"),
    "profile_show": ("GET", "/profiles/{name}"),
}
"""Where an operation is that is not where its name and its right would have it."""

ID = "id"


class AddressConvertor(Convertor[str]):
    """A session in a path; the slash behind a machine is escaped there: `web1%2Fbuild`."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """The address, of what stands in a path."""
        return unquote(value)

    def to_string(self, value: str) -> str:
        """What stands in a path, of an address."""
        return quote(value, safe="")


register_url_convertor("address", AddressConvertor())

BODY_LIMIT = 16 << 20
SECRET_CHARS = 4096

FORMATS = {
    "text": "text/plain; charset=utf-8",
    "ansi": "text/plain; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Forms of a screen beside JSON, and their media types."""

ERROR_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "reason", "message", "hint", "exit", "details"],
            "properties": {
                "code": {"type": "string"},
                "reason": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": ["string", "null"]},
                "exit": {"type": "integer"},
                "details": {"type": ["object", "null"]},
            },
        }
    },
}

STATUSES = (400, 401, 403, 404, 408, 409, 410, 413, 422, 503)

VALUES_LIMIT = 100_000
"""Values in the JSON of a body. 16 MiB of `{},` are 5 million: they take 400 MB and, while they are read, hold up all callers."""

JSON_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


class OperationRoute(Value):
    """Where an operation is called: the method, the path below `/v1`, and the name of the parameter that the path gives."""

    operation: Operation
    method: str
    path: str
    in_path: str | None

    @property
    def in_query(self) -> bool:
        """Whether the other parameters are in the query, not in a body."""
        return self.method in ("GET", "DELETE")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What a request gives beside the path."""
        return tuple(one for one in self.operation.parameters if one.name != self.in_path and one.name not in NOT_TAKEN)


@lru_cache(maxsize=1)
def list_routes() -> tuple[OperationRoute, ...]:
    """Every operation that is offered, with its place."""
    found = [find(Control, name) for name in list_names(Control)]
    offered = (one for one in found if one.meta.group in GROUPS or one.name in OTHERS)
    return tuple(_place(one) for one in offered if one.name not in NOT_OFFERED)


def _place(operation: Operation) -> OperationRoute:
    first = operation.parameters[0] if operation.parameters else None
    if operation.name in PLACES:
        method, path = PLACES[operation.name]
        in_path = first.name if first and "{" in path else None
        return OperationRoute(operation, method, path, in_path)
    method = "GET" if operation.meta.right == "read" else "POST"
    name = operation.name.replace("_", "-")
    if first and first.kind.target and not first.many:
        return OperationRoute(operation, method, f"/sessions/{{{ID}}}/{name}", first.name)
    return OperationRoute(operation, method, f"/{name}", None)


def make_router(server_calls: Calls) -> APIRouter:
    """The routes, to be put below `/v1`."""
    router = APIRouter()
    for route in list_routes():
        _add_route(router, server_calls, route)
    return router


def _add_route(router: APIRouter, server_calls: Calls, route: OperationRoute) -> None:
    operation = route.operation

    async def endpoint(request: Request) -> Response:
        arguments = await read_arguments(request, route)
        form = _find_form(request, arguments) if operation.name == "screen" else None
        call = make_request(request)
        if operation.name == "decide" and "secret" in arguments:
            result = await _decide(server_calls, call, arguments)
        else:
            result = await server_calls.operate(call, operation.name, arguments)
        if form is not None:
            # what a program shows stands in it: no scripts, and nothing of this origin
            policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
            headers = {"content-security-policy": policy}
            return Response(getattr(result, form) or "", media_type=FORMATS[form], headers=headers)
        return JSONResponse(to_json(result), status_code=201 if operation.name == "new" else 200)

    lines = operation.help.split("\n\n", 1)
    router.add_api_route(
        route.path.replace(f"{{{ID}}}", f"{{{ID}:address}}"),
        endpoint,
        methods=[route.method],
        name=operation.name,
        operation_id=operation.name,
        status_code=201 if operation.name == "new" else 200,
        summary=" ".join(lines[0].split()),
        description=lines[1] if len(lines) > 1 else "",
        tags=[operation.meta.group],
        response_class=JSONResponse,
        openapi_extra=_describe(route),
    )


async def _decide(server_calls: Calls, call: calls.Request, arguments: dict[str, Any]) -> Any:
    secret, session = arguments.pop("secret"), arguments.pop("session")
    if not isinstance(secret, str) or not secret or "\n" in secret or len(secret) > SECRET_CHARS:
        raise Usage("secret: a text of one line", reason="bad_secret", hint='{"secret": "..."}')
    return await server_calls.decide(call, session, secret, arguments)


def _describe(route: OperationRoute) -> dict[str, Any]:
    """The part of the OpenAPI document that a route has of its own."""
    schema = route.operation.schema()
    properties = {one.name: _or_null(one, schema["properties"][one.name]) for one in route.parameters}
    required = [name for name in schema["required"] if name in properties]
    parameters: list[dict[str, Any]] = []
    if route.in_path:
        name = route.path.partition("{")[2].partition("}")[0]
        about = {"type": "string", "minLength": 1}
        parameters.append({"name": name, "in": "path", "required": True, "schema": about})
    described: dict[str, Any] = {"responses": {str(status): about for status, about in ERRORS.items()}}
    if route.in_query:
        for name, about in properties.items():
            one = {"name": name, "in": "query", "required": name in required, "schema": _in_query(about)}
            parameters.append(one | {"description": about.get("description", "")})
        if route.operation.name == "screen":
            form = {"type": "string", "enum": [*FORMATS, "json"], "default": "json"}
            parameters.append({"name": "format", "in": "query", "required": False, "schema": form})
            described["responses"]["200"] = {
                "description": "The screen",
                "content": {kind.partition(";")[0]: {} for kind in FORMATS.values()},
            }
    elif properties:
        if route.operation.name == "decide":
            properties["secret"] = {"type": "string", "description": "the password; on a Unix socket or by TLS only"}
        body = {"type": "object", "properties": properties, "additionalProperties": False}
        content = {"application/json": {"schema": body | ({"required": required} if required else {})}}
        described["requestBody"] = {"required": bool(required), "content": content}
    return described | {"parameters": parameters}


def _or_null(one: Parameter, about: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a parameter: with null where it may be left out, or stands for no end, and with a text for a list of one."""
    kinds = about.get("type")
    if kinds is None:
        return dict(about)
    listed = [kinds] if isinstance(kinds, str) else list(kinds)
    if "array" in listed and "string" not in listed:
        listed.append("string")
    if not (one.optional or one.default is None or one.kind.word == "duration"):
        return {**about, "type": listed}
    found = {**about, "type": [*listed, "null"]}
    return {**found, "enum": [*about["enum"], None]} if "enum" in about else found


def _in_query(about: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without what only a text can be in a query."""
    return {name: value for name, value in about.items() if name not in ("description", "additionalProperties")}


def error_response() -> dict[str, Any]:
    """How the document describes an answer that tells of a failure."""
    return {"description": "A failure", "content": {"application/json": {"schema": ERROR_SCHEMA}}}


ERRORS: dict[int | str, dict[str, Any]] = {status: error_response() for status in STATUSES}
"""How the document describes every failure."""


def make_request(connection: HTTPConnection) -> calls.Request:
    """Who calls, by what the guard found."""
    repeat_id = connection.headers.get("idempotency-key")
    if repeat_id is not None and not (8 <= len(repeat_id) <= 64 and repeat_id.isascii() and repeat_id.isalnum()):
        raise Usage("Idempotency-Key: 8 to 64 letters and digits", reason="bad_id", hint="leave it out")
    gone = partial(_await_end, connection) if isinstance(connection, Request) else None
    return calls.Request(connection.scope[PRINCIPAL], connection.scope[REQUEST], repeat_id, gone)


async def _await_end(request: Request) -> None:
    """Return when the caller has closed the connection (ASGI: the message http.disconnect)."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def read_arguments(request: Request, route: OperationRoute) -> dict[str, Any]:
    """The arguments of a call, from path, query and body, as plain values; Usage for what they cannot be."""
    found = dict(_read_query(request, route)) if route.in_query else await _read_body(request, route)
    if wrong := [name for name in NOT_TAKEN if name in found]:
        raise Usage(f"{route.operation.spoken} does not take {wrong[0]} here", reason="bad_parameter")
    if route.in_path:
        if route.in_path in found:
            raise Usage(f"{route.in_path} stands in the path", reason="bad_parameter", hint="leave it out")
        given: Any = next(iter(request.path_params.values()))
        first = route.operation.parameters[0]
        found[route.in_path] = [given] if first.many else given
    return found


def _read_query(request: Request, route: OperationRoute) -> Iterator[tuple[str, Any]]:
    known = {one.name: one for one in route.parameters}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        one = known.get(name)
        if one is not None and one.many:
            yield name, values
        elif len(values) > 1:
            raise Usage(f"{ascii(name[:40])} is given twice", reason="bad_parameter", hint="give it once")
        else:
            truth = one is not None and one.kind.schema.get("type") == "boolean"
            yield name, _parse_truth(name, values[0]) if truth else values[0]


def _parse_truth(name: str, text: str) -> bool:
    if text.lower() in ("", "1", "true", "yes"):
        return True
    if text.lower() in ("0", "false", "no"):
        return False
    raise Usage(f"{name}: {ascii(text[:40])} is neither true nor false", reason="bad_type", hint="true or false")


async def _read_body(request: Request, route: OperationRoute) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind == "application/octet-stream" and route.operation.name in ("send", "ask"):
        # bytes that are no text: the options are in the query
        return {**dict(_read_query(request, route)), "text": body}
    if request.query_params:
        raise Usage("parameters belong into the body", reason="bad_parameter", hint="send them as a JSON object")
    return parse_body(body, kind)


def parse_body(body: bytes, kind: str) -> dict[str, Any]:
    """The JSON object of a body, empty for an empty one; Usage for anything else."""
    if not body:
        return {}
    if kind not in ("application/json", ""):
        hint = "send a JSON object, with Content-Type: application/json"
        raise Usage(f"a body of the type {ascii(kind[:60])} is not read", reason="bad_type", hint=hint)
    if _count_values(body) > VALUES_LIMIT:
        hint = f"at most {VALUES_LIMIT} in one body"
        raise Usage("the body holds too many values", reason="bad_json", hint=hint)
    try:
        value = parse_json(body, limit=BODY_LIMIT, parse_constant=_refuse_constant)
    except (ValueError, UnicodeDecodeError) as error:
        raise Usage(f"the body is no JSON: {str(error)[:100]}", reason="bad_json", hint="send a JSON object") from None
    if not isinstance(value, dict):
        raise Usage("the body is no JSON object", reason="bad_json", hint="send a JSON object")
    return value


def _count_values(body: bytes) -> int:
    """About how many values a JSON text has; what is inside of texts counts only where little is there."""
    found = sum(body.count(mark) for mark in (b",", b"[", b"{"))
    if found <= VALUES_LIMIT:
        return found
    bare = JSON_TEXT.sub(b"", body)
    return sum(bare.count(mark) for mark in (b",", b"[", b"{"))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _find_form(request: Request, arguments: dict[str, Any]) -> str | None:
    """The form in which a screen is wanted, by `format` or the header Accept; None for JSON. What it needs is asked for."""
    form = arguments.pop("format", None)
    if form is None:
        accepted = request.headers.get("accept", "")
        kinds = {kind.partition(";")[0].strip() for kind in accepted.split(",")}
        found = (name for name in ("html", "svg", "text") if FORMATS[name].partition(";")[0] in kinds)
        form = None if "application/json" in kinds or "*/*" in kinds else next(found, None)
    if form in (None, "json"):
        return None
    if form not in FORMATS:
        raise Usage(f"format: {ascii(str(form)[:40])}", reason="bad_choice", hint=f"{', '.join(FORMATS)} or json")
    if form != "text":
        arguments[form] = True
    return str(form)


def to_text(result: Any) -> str:
    """A result as a line of JSON."""
    return json.dumps(to_json(result), ensure_ascii=False)
