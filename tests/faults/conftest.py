"""What fault tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from control.conftest import person as person

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Keeps what was measured on the way, and prints it (pytest -s): nothing is asked of it."""

    def keep(what: str, *values: float) -> None:
        record_property(what, values)
        print(f"{what}: {', '.join(f'{value:.4g}' for value in values)}")

    return keep


@pytest.fixture(autouse=True)
def this_tree(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are those of the tree the tests are in."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def root() -> None:
    """Skips what only root may set up."""
    if os.getuid():
        pytest.skip("only root can set this up")
