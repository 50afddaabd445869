"""A headless browser for all tests of the page, and windows of it for each."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import HttpServer
from serving_fixtures import start_server
from web.visiting import AXE, Visitor, open_window, run_tmuxctl

from tmuxctl.surfaces.web.assets import is_whole, load_assets

__all__ = ["start_server"]

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium. It is started before any test has a place of its own, and outlives each."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("chromium-headless-shell is not installed")
    if not is_whole(load_assets()):
        pytest.skip("what `make web-assets` brings is not there")
    home = Path(tempfile.mkdtemp(prefix="tc-browser-", dir="/tmp"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
    with api.sync_playwright() as playwright:
        # root has no sandbox of the browser's, a container little /dev/shm
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        started = playwright.chromium.launch(executable_path=program, args=options, env=environment)
        yield started
        started.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def page_server(browser: Any, start_server: Callable[..., HttpServer]) -> HttpServer:
    """A server that asks for no login."""
    return start_server("--no-token")


@pytest.fixture
def visit(browser: Any, page_server: HttpServer) -> Iterator[Callable[..., Visitor]]:
    """Opens windows. None of them may complain: about a script, a policy, or a dialog that a program made."""
    opened: list[Visitor] = []

    def open_one(**about: Any) -> Visitor:
        opened.append(open_window(browser, about.pop("server", page_server), **about))
        return opened[-1]

    yield open_one
    complaints = [one for visitor in opened for one in visitor.complaints]
    for visitor in opened:
        visitor.context.close()
    assert not complaints


@pytest.fixture
def signed_in(browser: Any) -> Iterator[Callable[..., Visitor]]:
    """Opens a window that signed in by the one-time code of a token with these options."""
    opened: list[Visitor] = []

    def sign_in(server: HttpServer, *options: str, **about: Any) -> Visitor:
        run_tmuxctl("token", "new", "guest", *options)
        code = json.loads(run_tmuxctl("--json", "token", "login", "guest"))["code"]
        opened.append(open_window(browser, server, **about))
        opened[-1].open(f"/login#{code}")
        opened[-1].page.wait_for_url(opened[-1].origin + "/")
        return opened[-1]

    yield sign_in
    for one in opened:
        one.context.close()
        assert one.complaints == []


@pytest.fixture
def axe() -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: make nightly SUITES=web")
