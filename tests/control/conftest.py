"""What tests of the service share."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from control.person import CONFIG, Person


@pytest.fixture
def person(place: Path, needs: Callable[..., None]) -> Iterator[Person]:
    needs("bash", "python3")
    one = Person(place)
    (place / "person.conf").write_text(CONFIG)
    one.tmux(
        "-f", str(place / "person.conf"), "new-session", "-d", "-s", "work", "-x", "100", "-y", "30", "bash --norc"
    )
    yield one
    subprocess.run(["tmux", "-L", one.socket, "kill-server"], capture_output=True, check=False)
