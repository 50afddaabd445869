"""What a process has done reaches the test that waits for it by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Milestones

from tmuxctl import milestones as sending
from tmuxctl.control import Control
from tmuxctl.terminal.tmux import options


@pytest.mark.on("tmux")
def test_a_turn_of_another_process_is_followed_by_name(control: Control, milestones: Milestones) -> None:
    control.new("sh", ("bash", "--norc"))
    asking = subprocess.Popen([sys.executable, "-m", "tmuxctl", "ask", "sh", "echo hi"], stdout=subprocess.PIPE)
    milestones.wait("typed", "sh")
    milestones.wait("observed", "sh", "idle")
    milestones.wait("answered", "sh", "idle")
    assert asking.communicate()[0] == b"hi\n"


@pytest.mark.on("memory")
def test_the_lease_of_a_batch_is_known_by_its_name(control: Control, milestones: Milestones) -> None:
    control.new("sh", ("sh",))
    control.batch("sh", [{"screen": {}}])
    milestones.wait("leased", "sh", options.BATCH)


def test_where_nobody_listens_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sending.VARIABLE, f"{tmp_path}/nothing")
    sending.reach("typed", "sh")
