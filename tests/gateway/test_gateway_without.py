"""A tmuxctl that has no gateway: the one-file form, and an installation without the extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDE = (
    "import sys; sys.modules.update(dict.fromkeys({hidden!r})); from tmuxctl.surfaces.cli import main; sys.exit(main())"
)


@pytest.mark.parametrize("hidden", [("nats",), ("nkeys",), ("cryptography",), ("tmuxctl.gateway.server",)])
@pytest.mark.parametrize("words", [("up",), ("add-client",), ("status",), ("doctor",)])
def test_commands_say_what_to_install(place: Path, hidden: tuple[str, ...], words: tuple[str, ...]):
    argv = [sys.executable, "-c", HIDE.format(hidden=hidden), "gateway", *words]
    tree = str(Path(__file__).resolve().parents[2])
    refused = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": tree})
    assert refused.returncode == 1, refused.stderr
    assert "pip install 'tmux-control-plane[gateway]'" in refused.stderr
