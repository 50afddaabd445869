"""The programs, installed from their registries into a folder of the user's cache: once, and nothing of them elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .programs import PROGRAMS

VERSIONS = ("pinned", "newest")

RESOLVED = "TMUXCTL_AGENTS_NEWEST"
"""The versions that the registries gave, as JSON: a run in a network of its own cannot ask them again."""


class Missing(Exception):
    """A program cannot be installed."""


def lab() -> Path:
    """The folder with the installed programs: $LAB, else one in the user's cache."""
    given = os.environ.get("LAB")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else cache / "tmuxctl-agents"


def executable(program: str, version: str) -> Path:
    """Where the installed program is, or would be."""
    if PROGRAMS[program].registry == "pip":
        return _folder(program, version) / "bin" / program
    return _folder(program, version) / "node_modules/.bin" / program


def _folder(program: str, version: str) -> Path:
    """Where a program is installed, alone."""
    prefix = lab() / "newest" if version == "newest" else lab()
    return prefix / ("venv" if PROGRAMS[program].registry == "pip" else "npm") / program


def installed(program: str, version: str) -> str:
    """The number of the version that is installed; empty if there is none."""
    package, folder = PROGRAMS[program].package, _folder(program, version)
    if not executable(program, version).exists():
        return ""
    if PROGRAMS[program].registry == "npm":
        return str(json.loads((folder / "node_modules" / package / "package.json").read_text())["version"])
    found = folder.glob(f"lib/*/site-packages/{package.replace('-', '_')}-*.dist-info")
    return next((one.name.removesuffix(".dist-info").rpartition("-")[2] for one in found), "")


def install(names: Sequence[str], versions: Sequence[str], say: Callable[[str], None]) -> list[tuple[str, str]]:
    """Install what is not yet there; this alone needs the network. Returns the programs and versions to be played.

    A guest has no pinned version: it is played in its newest. Where the newest version is the pinned one, it is played once.
    """
    known: dict[str, str] = json.loads(os.environ.get(RESOLVED, "{}"))
    found = []
    for name in names:
        program = PROGRAMS[name]
        numbers = {} if program.guest or "pinned" not in versions else {"pinned": program.pinned}
        if program.guest or "newest" in versions:
            known[name] = known.get(name) or newest(name)
            if known[name] == program.pinned:
                say(f"-- the newest {name} is the pinned one, {known[name]}")
                numbers = {"pinned": program.pinned}
            else:
                numbers["newest"] = known[name]
        for version, number in numbers.items():
            _install(name, version, number, say)
            found.append((name, version))
    os.environ[RESOLVED] = json.dumps(known)
    return found


def newest(program: str) -> str:
    """The newest version, as its registry has it now. Raises Missing if the registry cannot be asked."""
    about = PROGRAMS[program]
    if about.registry == "npm":
        words = ["npm", "view", about.package, "version"]
    else:
        words = [sys.executable, "-m", "pip", "index", "versions", about.package]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d[\w.]*", done.stdout)
    if done.returncode or not found:
        raise Missing(f"the newest version of {program} cannot be asked for: {done.stderr.strip()[-300:]}")
    return found[0]


def _install(name: str, version: str, number: str, say: Callable[[str], None]) -> None:
    if installed(name, version) == number:
        return
    folder, package = _folder(name, version), PROGRAMS[name].package
    say(f"-- installing {name} {number} into {folder} (some minutes, once)")
    folder.mkdir(parents=True, exist_ok=True)
    if PROGRAMS[name].registry == "npm":
        _run(name, ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", f"{package}@{number}"])
    else:
        _run(name, [sys.executable, "-m", "venv", str(folder)])
        _run(name, [str(folder / "bin/pip"), "install", "-q", f"{package}=={number}"])
    if installed(name, version) != number:
        raise Missing(f"{name} {number} is not in {folder} after it was installed")


def _run(name: str, words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{name} cannot be installed: {(done.stderr or done.stdout).strip()[-1000:]}")
