"""The library has types: what mypy (`make check` runs it on all tests) and pyright say of its uses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYRIGHT = Path(sys.prefix) / "pyright-node" / "node_modules" / ".bin" / "pyright"
"""Where `make nightly SUITES=library` installs it."""

WRONG = """
import tmuxctl

with tmuxctl.session("bash") as sh:
    sh.wait("done")
    sh.ask(7)
    sh.no_such_method()
"""


def run_pyright(*words: str) -> subprocess.CompletedProcess[str]:
    if not PYRIGHT.exists():
        pytest.skip("no pyright here: make nightly SUITES=library")
    words = ("--pythonpath", sys.executable, *words)
    return subprocess.run([PYRIGHT, *words], capture_output=True, text=True, cwd=ROOT, check=False)


def test_pyright_takes_all_uses() -> None:
    done = run_pyright("tests/typing/uses.py")
    assert done.returncode == 0, done.stdout


def test_pyright_finds_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    done = run_pyright(str(path))
    assert done.returncode == 1, done.stdout
    assert [line for line in (5, 6, 7) if f"wrong.py:{line}:" not in done.stdout] == []
