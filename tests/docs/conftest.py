"""A reader's machine, ended behind each section."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.world import World


@pytest.fixture
def world(place: Path) -> Iterator[World]:
    made = World(place)
    yield made
    made.close()
