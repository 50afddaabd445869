"""A tmuxctl that has no server: the one-file form, and an installation without the extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDE = (
    "import sys; sys.modules.update(dict.fromkeys({hidden!r})); from tmuxctl.surfaces.cli import main; sys.exit(main())"
)


@pytest.mark.parametrize(
    "hidden",
    [
        ("fastapi",),
        ("uvicorn",),
        ("prometheus_client",),
        ("tmuxctl.surfaces.server", "tmuxctl.surfaces.adapters.agentapi"),
        ("tmuxctl.surfaces.adapters.agentpty",),
    ],
)
def test_serve_says_what_to_install(place, hidden):
    words = [sys.executable, "-c", HIDE.format(hidden=hidden), "serve"]
    tree = str(Path(__file__).resolve().parents[3])
    refused = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": tree})
    assert refused.returncode == 1, refused.stderr
    assert "pip install 'tmux-control-plane[server]'" in refused.stderr
