"""What tests of the library share: a client of its own, and two sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tmuxctl
from tmuxctl.surfaces.library import client as clients


@pytest.fixture
def client(place: Path, needs: Callable[..., None]) -> Iterator[tmuxctl.Client]:
    needs("tmux", "bash")
    with tmuxctl.Client() as one:
        yield one


@pytest.fixture
def sh(client: tmuxctl.Client) -> tmuxctl.TerminalSession:
    return client.new("sh", ["bash", "--norc"], env={"PS1": "$ "})


@pytest.fixture
def py(client: tmuxctl.Client) -> tmuxctl.TerminalSession:
    return client.new("py", ["python3", "-q"])


@pytest.fixture
def shared(place: Path, needs: Callable[..., None]) -> Iterator[None]:
    """The clients of `session()`, which end with the test instead of the process."""
    needs("tmux", "bash")
    yield
    for one in clients.forget_shared():
        one.close()
