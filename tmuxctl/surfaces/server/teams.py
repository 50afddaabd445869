"""Teams below `/v1/connect`: the plan of a connector, its run in a session of its own, and what became of it.

All of it is for callers whose token means every session, as a transcript tells of each session of its team. A connector is a file
of this machine, which only a caller on the Unix socket may name, like any file; or it is sent whole, and kept in the state folder.
One that is sent names no file and brings no machine, and its agents are started with what `new` takes from that caller.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from tmuxctl import results
from tmuxctl.access import CallerAccess, check_arguments
from tmuxctl.control.service import Control
from tmuxctl.errors import Conflict, Denied, TmuxctlError, Usage
from tmuxctl.fleet.connector import Connector
from tmuxctl.fleet.files.drawing import to_svg
from tmuxctl.fleet.files.reading import read_connector
from tmuxctl.fleet.running.runs import KnownRun
from tmuxctl.fleet.running.transcript import read_last_run
from tmuxctl.fleet.teams import Teams
from tmuxctl.machines import find_machine
from tmuxctl.operations import find, to_json
from tmuxctl.state_files import make_private_file, make_private_folder
from tmuxctl.surfaces.server import routes
from tmuxctl.surfaces.server.app import Served, access_of, token_check
from tmuxctl.surfaces.server.streams import sse
from tmuxctl.timing import TIMING
from tmuxctl.value import changed
from tmuxctl.vocabulary import RunEvent

T = TypeVar("T")

GIVEN = "given"
"""The folder beside the transcripts with the connectors that were sent."""

FIELDS: Mapping[str, tuple[type, str]] = {
    "file": (str, "the connector file, by its absolute path; on the Unix socket only"),
    "connector": (dict, "the connector itself, as the file would have it"),
    "input": (str, "the text that the run is given, in the place of the connector's"),
    "digest": (str, "that of the plan, which says what would be done"),
    "resume": (bool, "go on with a run that stopped; nothing is typed twice"),
}
"""What a body may have."""

KINDS = {str: "string", dict: "object", bool: "boolean"}
PLAN_FIELDS = ("file", "connector", "input")

SVG_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "cache-control": "no-store",
}
SVG, MARKDOWN = "image/svg+xml", "text/markdown"


class TeamRoutes:
    """What the routes of teams share. `tmuxctl` are the words that start this program."""

    def __init__(self, served: Served, tmuxctl: Sequence[str]) -> None:
        self.served, self.tmuxctl = served, tmuxctl
        self.teams = Teams(served.control)

    async def call(
        self, request: Request, name: str, rights: tuple[str, ...], work: Callable[[], T], team: str | None = None
    ) -> T:
        """What a function returns, called in a thread for a caller with these rights who may know of every session."""
        call, served = routes.make_request(request), self.served
        changes, spoken = rights != ("read",), name.replace("_", " ")
        try:
            for right in rights:
                call.access.demand(right, spoken)
            call.access.demand_all(spoken)
            result = await served.calls.in_thread(work, call.gone)
        except TmuxctlError as error:
            served.metrics.note_error(name, error.code)
            if changes or isinstance(error, Denied):
                served.audit.note(call.access, call.id, name, team, error.reason)
            raise
        if changes:
            served.audit.note(call.access, call.id, name, team or getattr(result, "team", None), "done")
        return result

    async def call_with_body(
        self, request: Request, name: str, rights: tuple[str, ...], work: Callable[[CallerAccess, bytes, str], T]
    ) -> T:
        """As `call`, of a function of the caller, the bytes of the body and their media type."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        access, body = access_of(request), await request.body()
        return await self.call(request, name, rights, lambda: work(access, body, kind))

    # of a connector

    def plan(self, access: CallerAccess, body: bytes, kind: str) -> results.TeamPlan:
        """What a run of it would do."""
        return self.teams.plan(self._read(access, parse_fields(body, kind, PLAN_FIELDS))[0])

    def up(self, access: CallerAccess, body_bytes: bytes, kind: str) -> results.TeamStatus:
        """Begin the run of a connector whose plan the caller was shown, or go on with it."""
        body = parse_fields(body_bytes, kind)
        connector, data = self._read(access, body)
        if body.get("digest") is None:
            hint = "POST /v1/connect/plan, and send its digest"
            raise Denied("a run needs the digest of its plan", reason="not_confirmed", hint=hint)
        self.teams.refuse_unconfirmed(connector, body["digest"])
        resume = bool(body.get("resume"))
        self.teams.check_startable(connector, resume)
        self.teams.folder.confirm(connector.digest)
        if data is not None and not os.path.lexists(connector.path):
            make_private_folder(os.path.dirname(connector.path))
            make_private_file(connector.path, data)
        return self.teams.start(connector, self.tmuxctl, body.get("input"), resume=resume)

    def _read(self, access: CallerAccess, body: Mapping[str, Any]) -> tuple[Connector, bytes | None]:
        """The connector that a body names or holds, and its bytes where it holds it."""
        path, given, text = body.get("file"), body.get("connector"), body.get("input")
        if (path is None) == (given is None):
            raise Usage("one of file and connector", reason="bad_parameter", hint="give the connector itself")
        data = None
        if given is None:
            path = _check_path(access, str(path))
        else:
            _check_keys(given)
            data = json.dumps(given).encode()
            path = f"{self.teams.folder.path}/{GIVEN}/{hashlib.sha256(data).hexdigest()[:32]}.json"
        connector = read_connector(path, data)
        if given is not None:
            self._check_agents(access, connector)
        return (connector if text is None else changed(connector, input=text)), data

    def _check_agents(self, access: CallerAccess, connector: Connector) -> None:
        """Raise what `new` refuses from this caller, and Usage for an agent without a folder of its own."""
        for agent in connector.agents.values():
            wanted = {"profile": agent.profile, "with_": list(agent.isolation.plugins)}
            check_arguments(access, find(Control, "new"), wanted, self.served.control)
            for machine in agent.machines:
                if machine is not None:
                    find_machine(machine, listed_only=True)
            if None in (agent.machines or (None,)) and not os.path.isabs(os.path.expanduser(agent.cwd or "")):
                raise Usage(
                    f"agents.{agent.name}.cwd: a connector that is sent has no folder of its own",
                    reason="bad_connector",
                    hint="an absolute path, or ~",
                )

    # of a run

    def log(self, team: str, since: int) -> list[dict[str, Any]]:
        """The records of the last run behind this number."""
        records, _ = read_last_run(self.find(team).transcript)
        return [one.to_json() for one in records if one.number > since]

    def graph(self, team: str) -> str:
        """Who talks to whom, with what each agent does, as SVG. Conflict `changed` for another file than the run began with."""
        run = self.find(team)
        connector = read_connector(run.path)
        if connector.digest != run.digest:
            hint = "its report tells what was said: /report"
            raise Conflict(f"{ascii(run.path)} was changed since the run began", reason="changed", hint=hint)
        agents = self.teams.status(run.team).agents
        return to_svg(connector, {one.name: "asking" if one.waits else one.state or "" for one in agents})

    def find(self, team: str) -> KnownRun:
        """The last run of a team by its name, which is never that of a file here."""
        return self.teams.folder.find(team)

    async def follow(self, team: str, last_id: str | None, holds: Callable[[], bool]) -> AsyncIterator[str]:
        """The records of the last run behind the one with this id, then those that come, of later runs too. Ends for a token
        that was revoked, and where the transcript is gone."""
        path = self.find(team).transcript
        life, _, number = (last_id or "").rpartition("-")
        known, run, offset, told = int(number) if number.isdecimal() and len(number) < 16 else 0, "", 0, 0.0
        while holds() and not self.served.hub.stopped:
            try:
                records, offset = await self.served.calls.in_thread(partial(read_last_run, path, offset))
            except TmuxctlError:
                return
            for record in records:
                if record.event is RunEvent.BEGIN:
                    run = str(record.about.get("run"))
                if run != life or record.number > known:
                    told = time.monotonic()
                    yield sse.format_event("record", record.to_json(), f"{run}-{record.number}")
            if time.monotonic() - told >= TIMING.http.ping_seconds:
                told = time.monotonic()
                yield sse.PING
            await asyncio.sleep(TIMING.fleet.follow_seconds)


def _check_keys(given: Mapping[str, Any]) -> None:
    """Denied for what only a file may say."""
    if "output" in given or "machines" in given or not isinstance(given.get("input", ""), str):
        raise Denied(
            "a connector that is sent has no output, no machines, and its input is a text",
            reason="local_file",
            hint="name a file of the server's machine, over its Unix socket: file",
        )


def _check_path(access: CallerAccess, path: str) -> str:
    if access.remote:
        raise Denied(
            "connect: file names a file of the server's machine",
            reason="local_file",
            hint="send the connector itself: connector; or call it there: over the server's Unix socket",
        )
    if not os.path.isabs(path):
        raise Usage(f"file: {ascii(path[:80])} is not absolute", reason="bad_parameter", hint="an absolute path")
    return path


def parse_fields(data: bytes, kind: str, fields: Sequence[str] = tuple(FIELDS)) -> dict[str, Any]:
    """The fields of a body; Usage for what they cannot be."""
    body = routes.parse_body(data, kind)
    for name, value in body.items():
        if name not in fields:
            raise Usage(f"no parameter {ascii(name[:40])}", reason="bad_parameter", hint=", ".join(fields))
        if not isinstance(value, FIELDS[name][0]):
            raise Usage(f"{name}: not of the right type", reason="bad_type", hint=KINDS[FIELDS[name][0]])
    return body


def _describe_body(*needed: str, fields: Sequence[str] = tuple(FIELDS)) -> dict[str, Any]:
    properties = {name: {"type": KINDS[FIELDS[name][0]], "description": FIELDS[name][1]} for name in fields}
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    schema |= {"required": list(needed)} if needed else {}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def make_team_routes(tmuxctl: Sequence[str]) -> Any:
    """The part of a server that has the teams. `tmuxctl` are the words that start this program from anywhere."""

    def add_teams(app: FastAPI, served: Served) -> None:
        found = TeamRoutes(served, tmuxctl)
        _add_connector_routes(app, found)
        _add_run_routes(app, found)
        _add_document_routes(app, found)

    return add_teams


def _add_connector_routes(app: FastAPI, found: TeamRoutes) -> None:
    @app.get("/v1/connect", tags=["Teams"], summary="The teams that have had a run", responses=routes.ERRORS)
    async def connect_ls(request: Request) -> JSONResponse:
        teams = await found.call(request, "connect_ls", ("read",), found.teams.list_all)
        return JSONResponse(to_json(results.TeamList(teams)))

    @app.post(
        "/v1/connect/plan",
        tags=["Teams"],
        summary="What a run of a connector would do; nothing is done",
        responses=routes.ERRORS,
        openapi_extra=_describe_body(fields=PLAN_FIELDS),
    )
    async def connect_plan(request: Request) -> JSONResponse:
        plan = await found.call_with_body(request, "connect_plan", ("create",), found.plan)
        return JSONResponse(to_json(plan))

    @app.post(
        "/v1/connect",
        tags=["Teams"],
        summary="Begin the run of a connector whose plan was shown, or go on with it",
        status_code=202,
        responses=routes.ERRORS,
        openapi_extra=_describe_body("digest"),
    )
    async def connect_up(request: Request) -> JSONResponse:
        status = await found.call_with_body(request, "connect_up", ("write", "create"), found.up)
        return JSONResponse(to_json(status), 202)


def _add_run_routes(app: FastAPI, found: TeamRoutes) -> None:
    @app.get("/v1/connect/{team}", tags=["Teams"], summary="How far the last run has come", responses=routes.ERRORS)
    async def connect_status(request: Request, team: str) -> JSONResponse:
        work = partial(_of_run, found, team, found.teams.status)
        return JSONResponse(to_json(await found.call(request, "connect_status", ("read",), work, team)))

    @app.delete("/v1/connect/{team}", tags=["Teams"], summary="End the run and its sessions", responses=routes.ERRORS)
    async def connect_down(request: Request, team: str) -> JSONResponse:
        work = partial(_of_run, found, team, found.teams.down)
        return JSONResponse(to_json(await found.call(request, "connect_down", ("kill",), work, team)))

    since = {"name": "since", "in": "query", "required": False, "schema": {"type": "integer", "minimum": 0}}

    @app.get(
        "/v1/connect/{team}/log",
        tags=["Teams"],
        summary="What happened in the last run, behind record `since`",
        responses=routes.ERRORS,
        openapi_extra={"parameters": [since]},
    )
    async def connect_log(request: Request, team: str) -> JSONResponse:
        text = request.query_params.get("since", "0")
        if not (text.isascii() and text.isdecimal()):
            raise Usage("since: the number of a record", reason="bad_type", hint="0 for all of them")
        work = partial(found.log, team, int(text[:16]))
        return JSONResponse({"records": await found.call(request, "connect_log", ("read",), work, team)})

    events: dict[int | str, dict[str, Any]] = {
        200: {"description": "server-sent events", "content": {sse.MEDIA_TYPE: {}}},
        **routes.ERRORS,
    }

    @app.get(
        "/v1/connect/{team}/events",
        tags=["Teams"],
        summary="What happened in the last run, and what happens",
        responses=events,
        response_class=Response,
    )
    async def connect_events(request: Request, team: str) -> Response:
        await found.call(request, "connect_events", ("read",), partial(found.find, team), team)
        access = access_of(request)
        last = request.headers.get("last-event-id") or request.query_params.get("since")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        stream = found.follow(team, last, token_check(found.served, access))
        return StreamingResponse(stream, media_type=sse.MEDIA_TYPE, headers=headers)


def _add_document_routes(app: FastAPI, found: TeamRoutes) -> None:
    @app.get(
        "/v1/connect/{team}/report",
        tags=["Teams"],
        summary="The last run as Markdown",
        responses=_documents(MARKDOWN),
        response_class=Response,
    )
    async def connect_report(request: Request, team: str) -> Response:
        work = partial(_of_run, found, team, found.teams.report)
        report = await found.call(request, "connect_report", ("read",), work, team)
        return Response(report.text, media_type=f"{MARKDOWN}; charset=utf-8")

    @app.get(
        "/v1/connect/{team}/graph",
        tags=["Teams"],
        summary="Who talks to whom, with what each agent does",
        responses=_documents(SVG),
        response_class=Response,
    )
    async def connect_graph(request: Request, team: str) -> Response:
        svg = await found.call(request, "connect_graph", ("read",), partial(found.graph, team), team)
        return Response(svg, media_type=SVG, headers=SVG_HEADERS)


def _documents(kind: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": "The document", "content": {kind: {}}}, **routes.ERRORS}


def _of_run(found: TeamRoutes, team: str, work: Callable[[str], T]) -> T:
    return work(found.find(team).team)
