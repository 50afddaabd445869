"""The page as a part of the server: its files, who the caller is, and the board of all sessions."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse

from tmuxctl import __version__
from tmuxctl.errors import NotFound
from tmuxctl.surfaces.server.app import Served, access_of, token_check
from tmuxctl.surfaces.server.streams import sse
from tmuxctl.surfaces.web.assets import Asset, is_whole, load_assets
from tmuxctl.surfaces.web.board import Board, read_tiles, stream_tiles
from tmuxctl.surfaces.web.rows import RowWords

if TYPE_CHECKING:
    from tmuxctl.surfaces.server.admission.access import CallerAccess

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        # xterm.js makes elements of style, and styles of elements, while it runs
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""The Content-Security-Policy of every page."""

HEADERS = {
    "content-security-policy": POLICY,
    # a form that is sent under `no-referrer` has the Origin `null` (Fetch, "append a request Origin header")
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}

AT_ROOT = {"/manifest.webmanifest": "manifest.webmanifest", "/worker.js": "worker.js", "/favicon.svg": "favicon.svg"}
"""Files that stand at the root too: a service worker is for what is below its own path."""


class Page:
    """What the routes of the page share."""

    def __init__(self, served: Served, assets: Mapping[str, Asset], board: Board) -> None:
        self.served, self.assets, self.board = served, assets, board
        self.whole = is_whole(assets)

    def describe_caller(self, access: CallerAccess) -> dict[str, Any]:
        """What the page is told of who reads it."""
        return {
            "version": __version__,
            "rights": list(access.rights),
            "token": access.token or None,
            "limited": not access.unlimited,
            "private": access.private,
            "logged_in": False,
            "machine": socket.gethostname(),
        }

    def answer_asset(self, request: Request, name: str) -> Response:
        """A file of the page; 304 where the caller has it already."""
        asset = self.assets.get(name)
        if asset is None:
            raise NotFound(f"nothing is at {ascii(request.url.path[:80])}", reason="no_path", hint="GET /docs")
        headers = {"etag": asset.tag, "cache-control": "no-cache", "vary": "accept-encoding"}
        if asset.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        packed = asset.packed if "gzip" in request.headers.get("accept-encoding", "") else None
        if packed is not None:
            headers["content-encoding"] = "gzip"
        if name.endswith(".html"):
            headers |= HEADERS
        return Response(packed or asset.data, headers=headers, media_type=asset.media_type)

    def answer_shell(self, request: Request) -> Response | None:
        """The page that draws itself by JavaScript; None where that is not wanted, or not there."""
        if not self.whole or request.query_params.get("plain"):
            return None
        return self.answer_asset(request, "index.html")


def make_page(words: RowWords) -> Any:
    """The part of a server that serves the page, which says of sessions what these words say."""

    def add_page(app: FastAPI, served: Served) -> None:
        page = Page(served, load_assets(), Board(served.control, served.hub, words))
        _add_files(app, page)
        _add_readings(app, page)

    return add_page


def _add_files(app: FastAPI, page: Page) -> None:
    @app.get("/", include_in_schema=False)
    async def overview(request: Request) -> Response:
        access_of(request).demand("read", "the page")
        if (shell := page.answer_shell(request)) is not None:
            return shell
        tiles = await read_tiles(page.board, access_of(request))
        names = "".join(f"<li>{one['name']}</li>" for one in tiles["rows"])
        return HTMLResponse(f"<!doctype html><title>tmuxctl</title><ul>{names}</ul>", headers=HEADERS)

    @app.get("/session/{id}", include_in_schema=False)
    async def session(request: Request, id: str) -> Response:
        access_of(request).demand("read", "the page")
        return page.answer_shell(request) or HTMLResponse("<!doctype html><title>tmuxctl</title>", headers=HEADERS)

    @app.get("/assets/{path:path}", include_in_schema=False)
    async def asset(request: Request, path: str) -> Response:
        return page.answer_asset(request, path)

    for path, name in AT_ROOT.items():
        app.add_api_route(path, _make_file_route(page, name), methods=["GET"], include_in_schema=False)


def _make_file_route(page: Page, name: str) -> Any:
    async def answer(request: Request) -> Response:
        return page.answer_asset(request, name)

    return answer


def _add_readings(app: FastAPI, page: Page) -> None:
    @app.get("/page/me", include_in_schema=False)
    async def me(request: Request) -> Response:
        return JSONResponse(page.describe_caller(access_of(request)), headers={"cache-control": "no-store"})

    @app.get("/page/tiles", include_in_schema=False)
    async def tiles(request: Request) -> Response:
        access = access_of(request)
        access.demand("read", "the board")
        events: AsyncIterator[str] = stream_tiles(page.board, access, token_check(page.served, access))
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(events, media_type=sse.MEDIA_TYPE, headers=headers)
