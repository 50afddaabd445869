"""What the overview is told: every session at first, then what changes, and nothing that the caller may not know of."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from served import PATIENCE, EventStream, HttpServer
from surfaces.web.browsing import PlainBrowser, tmuxctl

from tmuxctl.access import CallerAccess
from tmuxctl.surfaces.server.streams.hub import EventHub
from tmuxctl.surfaces.web.board import Board
from tmuxctl.surfaces.web.rows import RowWords

MENU = 'printf "Delete all? [y/N] "; read answer; echo "answer: $answer"; exec cat'


class Tiles:
    """The board as a page keeps it, from the events."""

    def __init__(self, server: HttpServer, cookie: str = "") -> None:
        self.events = EventStream(server, "/page/tiles", {"Cookie": cookie} if cookie else {}, tcp=bool(cookie))
        self.rows: dict[str, dict[str, Any]] = {}
        self.seen: list[dict[str, Any]] = []
        self.take()

    def take(self) -> dict[str, Any]:
        found = self.events.next()
        assert found["event"] == "tiles"
        data = found["data"]
        if data["all"]:
            self.rows = {}
        self.rows |= {row["id"]: row for row in data["rows"]}
        for key in data["gone"]:
            del self.rows[key]
        self.seen.append(data)
        return dict(data)

    def named(self, name: str) -> dict[str, Any] | None:
        return next((row for row in self.rows.values() if row["name"] == name), None)

    def await_row(self, name: str, holds: Any) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while (row := self.named(name)) is None or not holds(row):
            assert time.monotonic() < deadline, row
            self.take()
        return row


@pytest.mark.night
def test_every_session_is_told_then_what_changes(server, place):
    server.new("one", "sh", "-c", "echo begin; exec cat", cwd=str(place), tag=["blue"])
    tiles = Tiles(server)
    first = tiles.seen[0]
    assert first["all"] is True
    row = tiles.named("one")
    assert row
    assert (row["folder"], row["tags"], row["group"]) == ("~", ["blue"], place.name)
    assert row["command"] == "sh -c 'echo begin; exec cat'"
    tiles.await_row("one", lambda row: row["line"] == "begin" and row["needs"] and row["word"] == "idle (line)")
    server.post("/v1/sessions/one/send", {"text": "a later line"})
    tiles.await_row("one", lambda row: row["line"] == "a later line")
    assert not any(data["all"] for data in tiles.seen[1:])
    server.new("two", "cat")
    tiles.await_row("two", lambda row: row["state"] == "idle")
    server.call("PATCH", "/v1/sessions/two", {"name": "three"})
    assert tiles.await_row("three", lambda row: True)["id"] in tiles.rows
    server.call("DELETE", "/v1/sessions/three?grace=1s")
    while tiles.named("three"):
        tiles.take()


@pytest.mark.night
def test_a_question_is_told_with_its_answers_and_goes_with_them(server):
    server.new("one", "sh", "-c", MENU)
    tiles = Tiles(server)
    row = tiles.await_row("one", lambda row: row["question"])
    assert (row["state"], row["rank"], row["needs"]) == ("asking", 0, True)
    assert row["word"] == "asking confirm"
    assert "Delete all?" in row["question"]["text"]
    names = [option["name"] for option in row["question"]["options"]]
    assert "yes" in names
    assert tiles.seen[-1]["asking"] == 1
    reply = server.post("/v1/sessions/one/decide", {"option": "no", "id": row["question"]["id"]})
    assert reply.status == 200, reply.text
    tiles.await_row("one", lambda row: row["question"] is None)


@pytest.mark.night
def test_the_states_that_top_tells_are_told(server):
    server.new("gone", "sh", "-c", "exit 3")
    server.new("work", "sh", "-c", "while :; do :; done")
    tiles = Tiles(server)
    assert tiles.await_row("gone", lambda row: row["state"] == "exited")["word"] == "exited 3"
    busy = tiles.await_row("work", lambda row: row["state"] == "busy")
    assert (busy["needs"], busy["rank"]) == (False, 1)


HOSTILE = (
    r'printf "\033]2;<img src=x onerror=alert(1)>\033\\"; printf "\033]8;;http://evil.example\033\\click\033]8;;\033\\ ";'
    r' printf "\033]52;c;ZXZpbA==\033\\"; printf "<script>alert(1)</script> \342\200\256live"; exec cat'
)


@pytest.mark.night
def test_what_a_program_prints_is_text_and_short(server):
    server.new("one", "sh", "-c", HOSTILE)
    tiles = Tiles(server)
    row = tiles.await_row("one", lambda row: "script" in row["line"])
    assert row["line"] == r"click <script>alert(1)</script> \u202elive"
    assert row["title"] == "<img src=x onerror=alert(1)>"
    server.new("long", "sh", "-c", "head -c 10000000 /dev/zero | tr '\\0' x; exec cat")
    row = tiles.await_row("long", lambda row: row["line"].startswith("xx"))
    assert len(row["line"]) <= 200


@pytest.mark.night
def test_a_token_for_some_sessions_is_told_of_those_whatever_they_are_called_later(server):
    tmuxctl("token", "new", "ci", "--right", "read", "--only", "build-*")
    browser = PlainBrowser(server)
    browser.sign_in("ci")
    server.new("build-1", "cat")
    server.new("other", "cat")
    tiles = Tiles(server, browser.cookie)
    assert [row["name"] for row in tiles.rows.values()] == ["build-1"]
    server.call("PATCH", "/v1/sessions/build-1", {"name": "secret"})
    while tiles.rows:
        tiles.take()
    assert "secret" not in json.dumps(tiles.seen)
    server.call("PATCH", "/v1/sessions/other", {"name": "build-2"})
    while not tiles.named("build-2"):
        tiles.take()
    tmuxctl("token", "revoke", "ci")
    tiles.events.await_end()


@pytest.mark.night
def test_the_server_ends_though_somebody_reads(server):
    server.new("one", "cat")
    readers = [Tiles(server) for _ in range(3)]
    assert server.stop() == 0
    for reader in readers:
        reader.events.await_end()


WORDS = RowWords(lambda session: session.state.value, " ".join, str)


@pytest.mark.on("tmux")
def test_the_board_works_only_while_somebody_reads(control, until):
    control.new("one", ("cat",))
    board = Board(control, EventHub(control), WORDS)

    async def read() -> None:
        with board.read(CallerAccess()) as first, board.read(CallerAccess()) as second:
            for reader in (first, second):
                while (found := reader.take()) is None:
                    await asyncio.sleep(0.01)
                assert [row["name"] for row in found["rows"]] == ["one"]
                assert reader.take() is None
            assert count_threads() == 1

    for _ in range(2):
        asyncio.run(read())
        assert until(lambda: count_threads() == 0)


def count_threads() -> int:
    return sum(thread.name == "tmuxctl-board" for thread in threading.enumerate())
