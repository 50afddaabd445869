"""What tests of other machines share: a machine behind a real sshd, and the command that reaches it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from machines.ssh_server import SYSTEM_PATH, SshServer, configure_ssh, end_all
from serving_fixtures import start_server

from tmuxctl.control import Control

__all__ = ["start_server"]


@pytest.fixture
def site(place: Path, monkeypatch: pytest.MonkeyPatch, needs: Callable[..., None]) -> Iterator[Path]:
    """The user's own machine, with a runtime folder and an ssh of its own."""
    needs("ssh", "tmux")
    if not shutil.which("sshd", path=SYSTEM_PATH):
        pytest.skip("sshd is not installed")
    (place / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "run"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    monkeypatch.setenv("PATH", f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}")
    configure_ssh(place, [])
    yield place
    end_all(place)


@pytest.fixture
def web1(site: Path) -> SshServer:
    """A machine that the user's ssh calls web1."""
    server = SshServer(site, "web1")
    configure_ssh(site, [server])
    return server


@pytest.fixture
def far(web1: SshServer) -> Iterator[Control]:
    """The operations of this machine, from which web1 is reached."""
    with Control() as control:
        yield control


class Ran:
    """One run of the command."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr

    @property
    def error(self) -> dict[str, Any]:
        """The error object of a run with `--json`."""
        found: dict[str, Any] = json.loads(self.errors.splitlines()[-1])["error"]
        return found

    @property
    def result(self) -> Any:
        """The result of a run with `--json`."""
        return json.loads(self.output)


def tmuxctl(*words: str, stdin: str | None = None) -> Ran:
    """Run the command as a script would: without a terminal."""
    return Ran(
        subprocess.run(
            [sys.executable, "-m", "tmuxctl", *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    )


def is_below(folder: Path, name: str) -> bool:
    """Whether a file of this name is below a folder, from which others go meanwhile."""
    return any(name in (*folders, *files) for _, folders, files in os.walk(folder))
