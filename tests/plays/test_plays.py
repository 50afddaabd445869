"""Every profile against its real program: what is typed, what is said of it, what it answers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from plays import play as playing

from tmuxctl.control import Control
from tools.person import person
from tools.services import Running
from tools.states.place import new_python

PASSWORD = "Corr3ct-horse!"

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"

NEW_PYTHON = new_python(own=True)
"""Looked for while the home is still the user's."""


@pytest.fixture
def settings(place: Path, monkeypatch: pytest.MonkeyPatch):
    """What most programs read of their users is neutral here."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(place / "gitconfig"))
    monkeypatch.setenv("EDITOR", "vi")
    monkeypatch.setenv("NPM_CONFIG_UPDATE_NOTIFIER", "false")
    (place / "gitconfig").write_text(
        "[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n[advice]\ndetachedHead = false\n"
    )


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in playing.plays()])
def test_a_real_program_is_known(control: Control, settings, place: Path, one: playing.Play, monkeypatch, request):
    if lacks := one.lacks():
        pytest.skip(lacks)
    place.chmod(0o755)
    folder = place / "work"
    folder.mkdir()
    name = f"ada{os.getpid()}"
    places = {"USER": name, "PASSWORD": PASSWORD, "PYTHON": sys.executable, "PROGRAMS": str(PROGRAMS)}
    if "{P313}" in str(one.written):
        places["P313"] = NEW_PYTHON or pytest.skip("no Python of 3.13 or later is installed")
    wants_person = one.written.get("person", False)
    with Running(place, user=name) as running, person(name, PASSWORD) if wants_person else running:
        if service := one.written.get("service"):
            served = running.start(service)
            if served is None:
                pytest.skip(f"no {service} can be started here")
            for variable, value in served.environment.items():
                monkeypatch.setenv(variable, value)
            places |= served.environment
        for saved in playing.play(control, one, folder, places):
            if request.config.getoption("--save-screens"):
                playing.save(one.profile, saved)
