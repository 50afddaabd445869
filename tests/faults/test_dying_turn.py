"""The process that gives an agent program a text is killed (-9) at every step: no text is sent twice, halved or glued on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from control.agent import PATIENCE, Agent
from faults.command import Command
from faults.test_dying import deaths  # noqa: F401

from tmuxctl.control import Control

pytestmark = [pytest.mark.on("tmux"), pytest.mark.timeout(600)]


@pytest.fixture
def agent(control: Control, place: Path) -> Agent:
    return Agent(control, place)


@pytest.mark.night
@pytest.mark.parametrize("text", ["say one", "say one\n" + "line\n" * 60 + "end"], ids=["line", "long"])
def test_a_text_that_was_pasted_and_never_sent_is_cleared(
    agent: Agent, until: Callable[..., Any], place: Path, text: str
) -> None:
    agent.start("--late-show", "2000")
    (place / "text").write_text(text)
    asking = Command().start("ask", agent.name, "--file", str(place / "text"))
    # it is pasted, and does not show yet: so long Enter is not pressed
    until(lambda: agent.log("pasted"))
    os.kill(asking.pid, signal.SIGKILL)
    asking.communicate()
    shown = "Pasted text" if "\n" in text else "❯ say one"
    until(lambda: shown in agent.control.screen(agent.name).text)
    assert agent.ask("say two").answer == "two"
    assert (agent.submitted, agent.log("enter")) == (["say two"], ["taken"])


@pytest.mark.night
@pytest.mark.parametrize("tells", [True, False], ids=["told", "seen"])
def test_ask(agent: Agent, request: pytest.FixtureRequest, tells: bool) -> None:
    agent.start(tells=tells)
    for death in request.getfixturevalue("deaths")(lambda number: ("ask", agent.name, f"say line {number}")):
        before = len(agent.submitted)
        end = f"say end {death.number}"
        assert agent.ask(end, queue=True).answer == f"end {death.number}", death
        line = f"say line {death.number}"
        assert agent.submitted.count(line) == (1 if not death.step else agent.submitted.count(line)), death
        assert agent.submitted.count(line) <= 1, death
        assert agent.submitted[before:] in ([end], [line, end]), death
    assert agent.log("queued") == []


@pytest.mark.night
def test_tell(agent: Agent, request: pytest.FixtureRequest) -> None:
    agent.start()
    lines: list[str] = []
    for death in request.getfixturevalue("deaths")(
        lambda number: ("tell", agent.name, f"line {number}", "--from", "boss")
    ):
        waited = [one.text for one in agent.control.inbox_ls(agent.name).messages]
        told = agent.control.tell(agent.name, f"end {death.number}".encode(), from_="boss", wait=True, timeout=PATIENCE)
        assert told.delivered, death
        lines = "\n".join(agent.submitted).split("\n")
        assert lines.count(f"end {death.number}") == 1, death
        # what waited came then, and nothing came twice
        assert all(lines.count(text) == 1 for text in waited), death
        assert lines.count(f"line {death.number}") <= 1, death
        assert agent.control.inbox_ls(agent.name).messages == (), death
    assert lines.count(f"line {death.number}") == 1
    assert agent.log("queued") == []
