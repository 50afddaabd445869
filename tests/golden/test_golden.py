"""The surface as it was kept: a change of it is seen here, and kept on purpose with `--write-golden`."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from golden import scenario, surface

FOLDER = Path(__file__).resolve().parent
RUNS = sorted((FOLDER / "runs").glob("*.txt"))


def compare(path: Path, now: str, request: pytest.FixtureRequest) -> None:
    """Fail with the difference if the file is not what there is now; or write it."""
    if request.config.getoption("--write-golden"):
        path.write_text(now)
    kept = path.read_text().splitlines()
    difference = difflib.unified_diff(kept, now.splitlines(), "kept", "now", lineterm="", n=12)
    if shown := "\n".join(difference):
        pytest.fail(f"{path.relative_to(FOLDER.parent.parent)}; if it is meant: --write-golden\n{shown}", pytrace=False)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_run_comes_out_as_kept(path: Path, place: Path, request: pytest.FixtureRequest) -> None:
    compare(path, scenario.play(path.read_text(), place), request)


PAGES = {
    "help.txt": surface.help_pages,
    "operations.json": surface.arguments,
    "results.txt": surface.result_keys,
    "errors.json": surface.error_keys,
}


@pytest.mark.parametrize("name", PAGES)
def test_what_can_be_called_is_as_kept(name: str, place: Path, request: pytest.FixtureRequest) -> None:
    compare(FOLDER / name, PAGES[name](), request)
