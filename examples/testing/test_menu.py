"""Tests of a curses program, with the fixture `tmuxctl`: each starts the program in a terminal of its own.

`pytest --tmuxctl-update` keeps the screens of `to_match_snapshot` in test_menu_snapshots/; read them before you commit them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

MENU = [sys.executable, str(Path(__file__).with_name("menu.py"))]
SIZE = "60x8"


@pytest.fixture
def menu(tmuxctl):
    """The program, when it has drawn its menu."""
    app = tmuxctl(MENU, size=SIZE)
    tmuxctl.expect(app).to_have_text("Settings")
    return app


def test_the_menu_is_shown_on_the_whole_screen(tmuxctl, menu):
    tmuxctl.expect(menu).to_match_snapshot("start")
    assert menu.screen.alt
    assert menu.screen.find("Volume").row == 2


def test_the_arrow_keys_change_the_volume(tmuxctl, menu):
    menu.keys("Right")
    tmuxctl.expect(menu).to_have_text(re.compile(r"Volume .*\] +60"))
    menu.keys("Left", repeat=3)
    tmuxctl.expect(menu).to_have_text(re.compile(r"Volume .*\] +30"))


@pytest.mark.parametrize(
    ("volume", "key", "shown"), [(0, "Left", 0), (5, "Left", 0), (95, "Right", 100), (100, "Right", 100)]
)
def test_the_volume_stays_within_its_bounds(tmuxctl, volume, key, shown):
    app = tmuxctl([*MENU, f"--volume={volume}"], size=SIZE)
    # keys that come before curses has set up the terminal are not those that it expects
    tmuxctl.expect(app).to_have_text("Settings")
    app.keys(key, "q")
    tmuxctl.expect(app).to_have_text(f"volume {shown}, sound on")


def test_a_loud_volume_is_red(tmuxctl):
    app = tmuxctl([*MENU, "--volume=80"], size=SIZE)
    # with its colours, in the file loud.styled
    tmuxctl.expect(app).to_match_snapshot("loud", style=True)


def test_enter_switches_the_sound_off(tmuxctl, menu):
    menu.keys("Down", "Enter")
    tmuxctl.expect(menu).to_have_text(re.compile("Sound +off"))
    tmuxctl.expect(menu).not_to_have_text(re.compile("Sound +on"))


def test_the_bar_is_as_wide_as_the_terminal_lets_it(tmuxctl, menu):
    menu.resize("90x12")
    tmuxctl.expect(menu).to_match_snapshot("wide")


@pytest.mark.parametrize("keys", [["q"], ["Down", "Down", "Enter"]], ids="-".join)
def test_it_prints_the_settings_and_ends(tmuxctl, menu, keys):
    menu.keys(*keys)
    tmuxctl.expect(menu).to_have_exited(0)
    tmuxctl.expect(menu).to_have_text("volume 50, sound on")
    tmuxctl.expect(menu).not_to_have_text("Settings")


@pytest.mark.parametrize("volume", ["-1", "101", "loud"])
def test_a_wrong_volume_is_refused(tmuxctl, volume):
    app = tmuxctl([*MENU, f"--volume={volume}"])
    tmuxctl.expect(app).to_have_exited(2)
    tmuxctl.expect(app).to_have_text("menu: error: argument --volume")
