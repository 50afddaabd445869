"""The recipes in packaging/: they ask for what tmuxctl needs, and the Debian package holds a command that runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tmuxctl

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    pytest.importorskip("hatchling", reason="hatchling is not installed: make dev")
    folder = tmp_path_factory.mktemp("deb")
    words = ["sh", str(ROOT / "packaging/debian/build.sh"), sys.executable, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [package] = folder.glob("*.deb")
    return package


def test_the_debian_package_says_what_it_needs(debian: Path) -> None:
    told = subprocess.run(
        ["dpkg-deb", "--field", debian, "Version", "Depends"], capture_output=True, text=True, check=True
    )
    python = PROJECT["requires-python"].removeprefix(">=")
    assert f"Version: {tmuxctl.__version__}-1\n" in told.stdout
    assert f"python3 (>= {python}), tmux" in told.stdout


def test_the_debian_package_holds_the_command_its_pages_and_every_licence(debian: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--extract", debian, tmp_path], check=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = tmp_path / "usr/bin/tmuxctl"
    told = subprocess.run([command, "--version"], env=environment, capture_output=True, text=True, check=True)
    assert tmuxctl.__version__ in told.stdout
    assert (tmp_path / "usr/share/man/man1/tmuxctl-ask.1.gz").exists()
    copyright_file = (tmp_path / "usr/share/doc/tmuxctl/copyright").read_text()
    assert all(f"== {name}" in copyright_file for name in ("click", "libtmux", "pyte", "pyyaml", "tmuxctl", "wcwidth"))
