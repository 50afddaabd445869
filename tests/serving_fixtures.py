"""A process of `tmuxctl serve` for each test that asks for one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served import PATIENCE, HttpServer


@pytest.fixture
def start_server(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., HttpServer]]:
    """Starts servers with these options; each listens on an address of its own too."""
    runtime = place / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    started: list[subprocess.Popen[str]] = []

    def start(*options: str, listen: bool = True, **env: str) -> HttpServer:
        words = [sys.executable, "-m", "tmuxctl", "--json", "serve", *options]
        words += ["--listen", "127.0.0.1:0"] if listen else []
        errors = (place / f"serve-{len(started)}.log").open("w")
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, **env}, start_new_session=True
        )
        errors.close()
        started.append(process)
        assert process.stdout
        line = process.stdout.readline()
        assert line, (place / f"serve-{len(started) - 1}.log").read_text()
        show = subprocess.run(
            [sys.executable, "-m", "tmuxctl", "serve", "--show-token"], capture_output=True, text=True
        )
        return HttpServer(process, json.loads(line)["listening"], show.stdout.strip())

    yield start
    for process in started:
        process.kill()
        process.wait(PATIENCE)
        assert process.stdout
        process.stdout.close()


@pytest.fixture
def server(start_server: Callable[..., HttpServer]) -> HttpServer:
    return start_server()
