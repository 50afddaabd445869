"""How a machine behind a gateway is written down, and what it costs those who have none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.control import Control
from tmuxctl.control.machines import remote
from tmuxctl.errors import Failed, Usage
from tmuxctl.machines import machine_table, parse_machine


def test_a_table_names_the_machine_at_its_gateway() -> None:
    entry = parse_machine("far", {"gateway": "h4f2c"})
    assert (entry.gateway, entry.ssh, entry.command) == ("h4f2c", None, ())
    assert parse_machine("far", machine_table(entry)) == entry


def test_a_table_may_name_a_way_to_a_shell_besides() -> None:
    for table in ({"ssh": "host", "gateway": "x", "socket": "s"}, {"command": ["sh"], "gateway": "x", "tmux": "t"}):
        entry = parse_machine("far", table)
        assert entry.gateway == "x"
        assert parse_machine("far", machine_table(entry)) == entry


@pytest.mark.parametrize(
    "table",
    [
        {"gateway": "x", "ssh": "-o"},
        {"gateway": "x", "ssh": "host", "command": ["sh"]},
        {"gateway": "x", "tmux": "tmux"},
        {"gateway": "x", "socket": "s"},
        {"gateway": ""},
        {"gateway": 3},
        {"gateway": "-o"},
        {"gateway": "a b"},
        {"gateway": "a" * 300},
    ],
    ids=str,
)
def test_a_table_that_says_more_or_nothing_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(Usage):
        parse_machine("far", table)


def test_without_what_makes_carriers_that_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(remote.CARRIERS, "gateway", "tmuxctl.no_such_module:connect_to")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    (place / "config/tmuxctl").mkdir(parents=True, mode=0o700)
    (place / "config/tmuxctl/machines.toml").write_text('[far]\ngateway = "far"\n')
    with Control() as control, pytest.raises(Failed) as caught:
        control.screen("far/sh")
    assert caught.value.reason == "no_gateway_extra"


def test_ordinary_commands_load_nothing_of_it(place: Path) -> None:
    words = [sys.executable, "-X", "importtime", "-m", "tmuxctl", "--no-server", "ls"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "tmuxctl.control.service" in loaded
    assert not [name for name in loaded if name.startswith("tmuxctl.rpc") or name.endswith("machines.remote")]
