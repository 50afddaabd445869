"""What an installation brings: distributions beside ours, and their size without bytecode."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from place import TREE, Place, Row

OURS = ("tmuxctl", "tmux_control_plane")
INSTALLER = ("pip", "setuptools", "_distutils_hack", "distutils-precedence.pth", "pkg_resources", "wheel")
COPIED = (
    "tmuxctl",
    "plugins",
    "profiles",
    "tools",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
)


def measure(place: Place) -> list[Row]:
    tree, venv = place.folder / "tree", place.folder / "venv"
    tree.mkdir()
    for name in COPIED:
        source = TREE / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, tree / name)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = str(venv / "bin" / "python")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-q", str(tree)], check=True, env=env, timeout=300)
    listed = json.loads(
        subprocess.run([*pip, "list", "--format=json"], check=True, env=env, capture_output=True).stdout
    )
    others = sorted(
        one["name"] for one in listed if one["name"] not in ("pip", "setuptools", "wheel", "tmux-control-plane")
    )
    packages = next((venv / "lib").glob("python*/site-packages"))
    total = sum(_size(path) for path in packages.iterdir() if not path.name.startswith((*OURS, *INSTALLER)))
    return [
        Row(
            "distributions beside ours in an installation",
            "≤ 6",
            f"{len(others)} ({', '.join(others)})",
            len(others) <= 6,
        ),
        Row("their files without bytecode", "≤ 10 MB", f"{total / 1e6:.1f} MB", total <= 10e6),
    ]


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(one.stat().st_size for one in files if one.is_file() and one.suffix != ".pyc")
