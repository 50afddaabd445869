"""What tests of the service share."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from control.person import CONFIG, Person


class Held:
    """Words for a shell that last until they are let go; in memory for a while of a clock that only goes on where somebody
    waits."""

    def __init__(self, file: Path | None) -> None:
        self.words = f"sh -c 'until [ -e {file} ]; do sleep 0.05; done'" if file else "sleep 5"
        self._file = file

    def go(self) -> None:
        """Let them end."""
        if self._file:
            self._file.touch()


@pytest.fixture
def held(backend: str, place: Path) -> Held:
    """A command that takes as long as the test wants."""
    return Held(None if backend == "memory" else place / "held")


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
