"""The page as a part of the server: its files, who reads it, the board of all sessions, and forms for who has no JavaScript."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse

from tmuxctl import __version__
from tmuxctl.errors import NotFound, TmuxctlError, Usage
from tmuxctl.fleet.teams import Teams
from tmuxctl.surfaces.server.app import Served, access_of, token_check
from tmuxctl.surfaces.server.routes import make_request, parse_body
from tmuxctl.surfaces.server.streams import sse
from tmuxctl.surfaces.web.assets import Asset, is_whole, load_assets
from tmuxctl.surfaces.web.board import Board, read_tiles, stream_tiles
from tmuxctl.surfaces.web.markup import HEADERS
from tmuxctl.surfaces.web.moments import list_moments
from tmuxctl.surfaces.web.plain import PlainPage, cut_grid
from tmuxctl.surfaces.web.signing import add_signing, leave_for, read_fields

if TYPE_CHECKING:
    from tmuxctl.access import CallerAccess
    from tmuxctl.surfaces.web.rows import RowWords

AT_ROOT = {"/manifest.webmanifest": "manifest.webmanifest", "/worker.js": "worker.js", "/favicon.svg": "favicon.svg"}
"""Files that stand at the root too: a service worker is for what is below its own path."""

SECRET_CHARS = 4096


class WebPage:
    """What the routes of the page share."""

    def __init__(self, served: Served, assets: Mapping[str, Asset], board: Board) -> None:
        self.served, self.assets, self.board = served, assets, board
        self.whole = is_whole(assets)
        self.teams = Teams(served.control)

    def describe_caller(self, access: CallerAccess) -> dict[str, Any]:
        """What the page is told of who reads it."""
        return {
            "version": __version__,
            "rights": list(access.rights),
            "token": access.token or None,
            "limited": not access.unlimited,
            "private": access.private,
            "logged_in": bool(access.login),
            "machine": socket.gethostname(),
        }

    def answer_asset(self, request: Request, name: str) -> Response:
        """A file of the page; 304 where the caller has it already."""
        asset = self.assets.get(name)
        if asset is None:
            raise NotFound(f"nothing is at {ascii(request.url.path[:80])}", reason="no_path", hint="GET /docs")
        headers = {"etag": asset.tag, "cache-control": "no-cache", "vary": "accept-encoding"}
        if name.endswith(".html"):
            headers = {**HEADERS, **headers}
        if asset.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        packed = asset.packed if "gzip" in request.headers.get("accept-encoding", "") else None
        if packed is not None:
            headers["content-encoding"] = "gzip"
        return Response(packed or asset.data, headers=headers, media_type=asset.media_type)

    def answer_shell(self, request: Request) -> Response | None:
        """The page that draws itself by JavaScript; None where that is not wanted, or not there."""
        if not self.whole or request.query_params.get("plain"):
            return None
        return self.answer_asset(request, "index.html")

    async def answer_session(self, request: Request, session: str) -> Response:
        """A session as a page without JavaScript."""
        call, access = make_request(request), access_of(request)
        try:
            screen = await self.served.calls.operate(
                call, "screen", {"session": session, "html": True, "wide": False, "state": False}
            )
            rows = (await read_tiles(self.board, access, session))["rows"]
            row = next((row for row in rows if session in (row["id"], row["name"])), None)
            if row is None:
                raise NotFound(f"no session {ascii(session[:60])}", reason="no_session", hint="it may have ended")
        except TmuxctlError as error:
            return self.answer_failure(request, error, "/?plain=1")
        hold = bool(request.query_params.get("hold"))
        return HTMLResponse(
            PlainPage(access, self.whole).write_session(row, cut_grid(screen.html), hold), headers=HEADERS
        )

    async def answer_teams(self, request: Request, team: str | None = None) -> Response:
        """All teams, or the report of one, as a page without JavaScript."""
        access = access_of(request)
        access.demand("read", "the page")
        if (shell := self.answer_shell(request)) is not None:
            return shell
        plain = PlainPage(access, self.whole)
        try:
            access.demand_all("the teams")
            if team is None:
                found = await self.served.calls.in_thread(self.teams.list_all)
                return HTMLResponse(plain.write_teams(found), headers=HEADERS)
            run = self.teams.folder.find(team)
            report = await self.served.calls.in_thread(partial(self.teams.report, run.team))
        except TmuxctlError as error:
            return self.answer_failure(request, error, "/?plain=1")
        return HTMLResponse(plain.write_report(report), headers=HEADERS)

    def answer_failure(self, request: Request, error: TmuxctlError, back: str) -> Response:
        """A page that tells what could not be done."""
        page = PlainPage(access_of(request), self.whole).write_failure(error.message, error.hint, back)
        return HTMLResponse(page, error.http_status, headers=HEADERS)

    async def act(self, request: Request, session: str, action: str) -> Response:
        """Do what a form of a session says, and show the session again."""
        call, back = make_request(request), f"/session/{quote(session, safe='')}?plain=1"
        try:
            fields = await read_fields(request)
            if action == "type":
                arguments = {"session": session, "text": str(fields.get("text", ""))}
                await self.served.calls.operate(call, "send", arguments)
            elif action == "interrupt":
                await self.served.calls.operate(call, "keys", {"session": session, "keys": ["C-c"]})
            elif "secret" in fields:
                secret = str(fields["secret"])
                if len(secret) > SECRET_CHARS:
                    raise Usage(
                        "the password is too long", reason="too_long", hint=f"at most {SECRET_CHARS} characters"
                    )
                await self.served.calls.decide(call, session, secret, {"id": fields.get("id") or None})
            else:
                option, question = str(fields.get("option", "")), fields.get("id") or None
                await self.served.calls.operate(call, "decide", {"session": session, "option": option, "id": question})
        except TmuxctlError as error:
            return self.answer_failure(request, error, back)
        return leave_for(back)


def make_page(words: RowWords) -> Any:
    """The part of a server that serves the page, which says of sessions what these words say."""

    def add_page(app: FastAPI, served: Served) -> None:
        page = WebPage(served, load_assets(), Board(served.control, served.hub, words))
        add_signing(app, served)
        _add_pages(app, page)
        _add_files(app, page)
        _add_readings(app, page)

    return add_page


def _add_pages(app: FastAPI, page: WebPage) -> None:
    @app.get("/", include_in_schema=False)
    async def overview(request: Request) -> Response:
        access = access_of(request)
        access.demand("read", "the page")
        if (shell := page.answer_shell(request)) is not None:
            return shell
        tiles = await read_tiles(page.board, access)
        return HTMLResponse(PlainPage(access, page.whole).write_overview(tiles), headers=HEADERS)

    @app.get("/session/{id:address}", include_in_schema=False)
    async def session(request: Request, id: str) -> Response:
        access_of(request).demand("read", "the page")
        return page.answer_shell(request) or await page.answer_session(request, id)

    @app.get("/teams", include_in_schema=False)
    async def teams(request: Request) -> Response:
        return await page.answer_teams(request)

    @app.get("/team/{team}", include_in_schema=False)
    async def team(request: Request, team: str) -> Response:
        return await page.answer_teams(request, team)

    for action in ("type", "answer", "interrupt"):
        app.add_api_route(
            f"/session/{{id:address}}/{action}",
            _make_form_route(page, action),
            methods=["POST"],
            include_in_schema=False,
        )


def _make_form_route(page: WebPage, action: str) -> Any:
    async def act(request: Request, id: str) -> Response:
        return await page.act(request, id, action)

    return act


def _add_files(app: FastAPI, page: WebPage) -> None:
    @app.get("/assets/{path:path}", include_in_schema=False)
    async def asset(request: Request, path: str) -> Response:
        return page.answer_asset(request, path)

    for path, name in AT_ROOT.items():
        app.add_api_route(path, _make_file_route(page, name), methods=["GET"], include_in_schema=False)


def _make_file_route(page: WebPage, name: str) -> Any:
    async def answer(request: Request) -> Response:
        return page.answer_asset(request, name)

    return answer


def _add_readings(app: FastAPI, page: WebPage) -> None:
    @app.get("/page/me", include_in_schema=False)
    async def me(request: Request) -> Response:
        return JSONResponse(page.describe_caller(access_of(request)), headers={"cache-control": "no-store"})

    @app.get("/page/tiles", include_in_schema=False)
    async def tiles(request: Request) -> Response:
        access = access_of(request)
        access.demand("read", "the board")
        told = stream_tiles(page.board, access, token_check(page.served, access))
        events: AsyncIterator[str | bytes] = told
        headers = {"cache-control": "no-store", "x-accel-buffering": "no", "vary": "accept-encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            events = sse.pack(told)
            headers["content-encoding"] = "gzip"
        return StreamingResponse(events, media_type=sse.MEDIA_TYPE, headers=headers)

    @app.post("/page/seen", include_in_schema=False)
    async def seen(request: Request) -> Response:
        access_of(request).demand("read", "the board")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        told = parse_body(await request.body(), kind)
        reader, keys = told.get("reader"), told.get("sessions")
        if not isinstance(reader, str) or not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            hint = '{"reader": "...", "sessions": ["..."]}'
            raise Usage("a reader and its sessions are texts", reason="bad_parameter", hint=hint)
        if (found := page.board.find_reader(reader)) is None:
            raise NotFound("no such reader", reason="no_reader", hint="GET /page/tiles")
        found.look_at(keys)
        return Response(status_code=204)

    @app.get("/page/sessions/{id:address}/moments", include_in_schema=False)
    async def moments(request: Request, id: str) -> Response:
        calls = page.served.calls
        session = await calls.operate(make_request(request), "show", {"session": id})
        found = await calls.in_thread(partial(list_moments, page.served.control, session))
        return JSONResponse(found, headers={"cache-control": "no-store"})
