"""What tests of runs share: scripted agents in a place of their own, and the command that has their run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet.teams import ScriptedAgents, TeamRunner, tmuxctl


@pytest.fixture
def scripted(place: Path) -> ScriptedAgents:
    """Agents in the folder of a project."""
    folder = place / "project"
    folder.mkdir()
    return ScriptedAgents(folder)


@pytest.fixture
def runner(scripted: ScriptedAgents) -> Iterator[TeamRunner]:
    """The command; behind the test no session of a run may be left."""
    yield TeamRunner()
    assert tmuxctl("ls", "-q").stdout == ""
