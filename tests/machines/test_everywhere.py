"""All machines of machines.toml at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from machines.conftest import tmuxctl
from machines.ssh_server import SshServer

from tmuxctl.control import Control


@pytest.fixture
def sites(site: Path, web1: SshServer) -> Iterator[Control]:
    """A session here, one on web1, and a machine that cannot be reached."""
    (site / "config/tmuxctl").mkdir(parents=True)
    (site / "config/tmuxctl/machines.toml").write_text('[web1]\nssh = "web1"\n\n[gone]\ncommand = ["false"]\n')
    with Control() as control:
        control.new("here", ("bash", "--norc"))
        control.new("web1/far", ("bash", "--norc"))
        yield control
        control.kill(("here", "web1/far"), signal="KILL")


def test_a_machine_that_cannot_be_reached_costs_its_own_sessions_alone(sites: Control):
    ran = tmuxctl("ls", "--all-machines")
    assert ran.status == 0
    assert [line.split()[:2] for line in ran.output.splitlines()[1:]] == [["here", "idle"], ["web1/far", "idle"]]
    assert "gone: " in ran.errors
    assert "machine test gone" in ran.errors
    told = tmuxctl("ls", "--all-machines", "--json").result
    assert [(one["machine"], one["name"]) for one in told["sessions"]] == [(None, "here"), ("web1", "far")]
    assert [one["machine"] for one in told["problems"]] == ["gone"]
    assert tmuxctl("ls", "--all-machines", "-q").output == "here\nweb1/far\n"
    assert tmuxctl("ls", "--json").result["problems"] == []


@pytest.mark.night
def test_all_are_in_the_status_line_and_in_top(sites: Control):
    sites.new("web1/ask", ("sh", "-c", "printf 'Go on? [y/N] '; read a"))
    told = tmuxctl("status", "--all-machines", "--json").result
    assert (told["sessions"], told["wanting"]) == (3, ["web1/ask"])
    assert [one["machine"] for one in told["problems"]] == ["gone"]
    assert "gone: " in tmuxctl("status", "--all-machines").errors
    shown = [line.split() for line in tmuxctl("top", "--once", "--all-machines").output.splitlines()[2:]]
    assert shown[0][:2] == ["!", "gone"]
    groups = [" ".join(words) for words in shown if words[0] in ("wants", "this", "web1")]
    assert groups == ["wants input", "this machine", "web1"]
    assert [words[0] for words in shown if words[0] in ("web1/ask", "here", "web1/far")] == [
        "web1/ask",
        "here",
        "web1/far",
    ]
    sites.kill(("web1/ask",), signal="KILL")


@pytest.mark.night
@pytest.mark.timeout(60)
def test_sessions_that_cannot_be_seen_any_more_are_told_and_told_anew(sites: Control, web1: SshServer):
    watching = subprocess.Popen(
        [sys.executable, "-m", "tmuxctl", "watch", "--all-machines", "--json"], stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout
    events = (json.loads(line) for line in watching.stdout)
    try:
        first = {event["session"]: event for event in islice(events, 3)}
        assert {name: event["state"] for name, event in first.items()} == {
            "here": "idle",
            "web1/far": "idle",
            "gone/": "unknown",
        }
        # of a machine that was never reached its own event tells why
        assert first["gone/"]["detail"] != "unreachable"
        assert first["gone/"]["id"] is None
        web1.go_down()
        lost = {event["session"]: event for event in islice(events, 2)}
        assert (lost["web1/far"]["state"], lost["web1/far"]["detail"]) == ("unknown", "unreachable")
        assert lost["web1/"]["why"].startswith("web1")
        web1.process = web1.start()
        again = next(event for event in events if event["session"] == "web1/far")
        assert again["state"] == "idle"
    finally:
        watching.terminate()
        watching.wait()


def test_names_and_all_machines_are_one_too_many(sites: Control):
    ran = tmuxctl("watch", "here", "--all-machines", "--json")
    assert (ran.status, ran.error["reason"]) == (2, "bad_option")
