"""What type checkers have to know of the library: mypy and pyright read this file, and nobody runs it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import assert_type

import tmuxctl
from tmuxctl import aio, results
from tmuxctl.model import Asking, Session


def answer(question: Asking) -> str | None:
    return question.default


def use(client: tmuxctl.Client) -> None:
    with tmuxctl.session("python3 -q", size="80x24", keep=True) as py:
        assert_type(py, tmuxctl.TerminalSession)
        assert_type(py.ask("6*7", on_asking=answer), results.Answer)
        assert_type(py.ask("6*7").text, str)
        assert_type(py.send("x").keys("Up", "Enter"), tmuxctl.TerminalSession)
        assert_type(py.wait_for(r"(\w+)")[1], str | None)
        assert_type(py.expect(["a", re.compile("b"), tmuxctl.EOF, tmuxctl.TIMEOUT]), int)
        assert_type(py.screen, tmuxctl.Screen)
        assert_type(py.screen.svg(), str)
        assert_type(py.info, Session)
        assert_type(py.exit_status, int | None)
        assert_type(py.exec("ls", timeout="10s").exit_status, int | None)
    made = client.new("db", ["sqlite3", "shop.db"], cwd="~/shop", with_={"timeout": "1h", "env": {"file": "x"}})
    assert_type(made, tmuxctl.TerminalSession)
    assert_type(client.list(), tuple[tmuxctl.TerminalSession, ...])
    assert_type(tmuxctl.run("make").output, str)
    try:
        made.wait(timeout=1)
    except TimeoutError as error:
        assert isinstance(error, tmuxctl.Timeout)
        assert_type(error.screen, str | None)


async def use_with_asyncio() -> None:
    async with tmuxctl.aio.session("claude") as agent:
        assert_type(agent, aio.TerminalSession)
        assert_type(await agent.ask("review the diff", on_asking=answer), results.Answer)
        assert_type(await agent.screen, tmuxctl.Screen)
        assert_type(agent.events(), AsyncIterator[results.Event])
        async for event in agent.events():
            assert_type(event, results.Event)
    started = await tmuxctl.aio.session("bash")
    assert_type(started, aio.TerminalSession)
