"""The page comes back by itself: over a restart of the server, a network that is gone, and with nothing lost or doubled."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import pytest
from served import HttpServer
from web.visiting import Visitor

pytestmark = pytest.mark.night

OFFLINE_SECONDS = float(os.environ.get("TMUXCTL_OFFLINE_SECONDS", "4"))
"""How long the network is gone; 60 by hand."""

COUNTS = ("bash", "-c", "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.05; done")


def numbers(visitor: Visitor) -> list[int]:
    return [int(found) for found in re.findall(r"(?m)^line (\d+)$", visitor.terminal_text())]


def test_a_restart_of_the_server_loses_nothing_and_doubles_nothing(
    visit: Callable[..., Visitor], page_server: HttpServer, start_server: Callable[..., HttpServer]
) -> None:
    page_server.new("counts", *COUNTS, wait=False)
    one = visit()
    one.open_session("counts")
    one.await_text("line 20\n")
    page_server.stop()
    one.page.get_by_text("Not connected.").wait_for()
    again = start_server("--no-token", "--listen", f"127.0.0.1:{page_server.port}", listen=False)
    one.page.wait_for_function("() => window.tmuxctlTerminal().isLive")
    before = numbers(one)[-1]
    one.await_text(f"line {before + 20}\n")
    found = numbers(one)
    assert found == list(range(1, found[-1] + 1))
    one.page.get_by_role("button", name="All sessions").click()
    one.tile("counts").get_by_text("busy").wait_for()
    assert again.process.poll() is None


def test_sessions_that_came_and_went_meanwhile_are_told(
    visit: Callable[..., Visitor], page_server: HttpServer, start_server: Callable[..., HttpServer]
) -> None:
    page_server.new("goes", "cat")
    one = visit()
    one.open()
    one.tile("goes").wait_for()
    page_server.stop()
    one.page.get_by_text("The server does not answer.").wait_for()
    assert one.tile("goes").count() == 1
    again = start_server("--no-token", "--listen", f"127.0.0.1:{page_server.port}", listen=False)
    again.call("DELETE", "/v1/sessions/goes")
    again.new("comes", "cat")
    one.tile("comes").wait_for()
    one.tile("goes").wait_for(state="detached")
    assert one.page.locator(".banner").inner_text() == ""


def test_a_network_that_is_gone_for_a_while(visit: Callable[..., Visitor], page_server: HttpServer) -> None:
    page_server.new("counts", *COUNTS, wait=False)
    one = visit()
    one.open_session("counts")
    one.await_text("line 10\n")
    one.context.set_offline(True)
    one.page.get_by_text("The server does not answer.").wait_for()
    one.page.wait_for_timeout(OFFLINE_SECONDS * 1000)
    one.context.set_offline(False)
    one.page.wait_for_function("() => window.tmuxctlTerminal().isLive")
    one.page.wait_for_function("() => !document.querySelector('.banner').textContent")
    before = numbers(one)[-1]
    one.await_text(f"line {before + 20}\n")
    found = numbers(one)
    assert found == list(range(1, found[-1] + 1))


def test_what_is_typed_without_a_connection_is_not_kept_for_later(
    visit: Callable[..., Visitor], page_server: HttpServer, start_server: Callable[..., HttpServer]
) -> None:
    page_server.new("lines", "cat")
    one = visit()
    one.open_session("lines")
    page_server.stop()
    one.page.get_by_text("Not connected.").wait_for()
    one.page.keyboard.type("lost")
    one.page.get_by_text("Nothing was typed").first.wait_for()
    again = start_server("--no-token", "--listen", f"127.0.0.1:{page_server.port}", listen=False)
    one.page.wait_for_function("() => window.tmuxctlTerminal().isLive")
    one.page.keyboard.type("kept\n")
    one.await_text("kept\nkept")
    assert "lost" not in again.screen("lines")
