"""Which programs are driven, in which versions, and how each is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# a work tree of its own may lie a folder deeper than the repository
SHARED = next((one / "shared" for one in ROOT.parents if (one / "shared/fake_llm").is_dir()), ROOT.parent / "shared")
CLIS = SHARED / "clis"
FAKE = SHARED / "fake_llm"
GUESTS = ROOT / "tests/screens/unseen"

NEEDS = (
    "install.sh and command.sh in {clis}, fake_llm.py in {fake}: the live suite drives real programs against that local "
    "model, and neither is a part of this repository"
)

VERSIONS = ("pinned", "newest")
MODES = ("hooks", "screen")

RESOLVED = "TMUXCTL_AGENTS_NEWEST"
"""The versions that the registries gave, as JSON: a run in a network of its own cannot ask them again."""


class Missing(Exception):
    """Something the live suite needs is not there."""


class Guest(NamedTuple):
    """How a program without a shipped profile is made ready: its files below its home, its environment, and its words.

    `{url}` in each is the local model's address, `{home}` the program's home. `hooks` is whether its profile makes it tell
    of its turns.
    """

    files: Mapping[str, str]
    environment: Mapping[str, str]
    words: Sequence[str]
    hooks: bool = False


class Program(NamedTuple):
    """One agent program. `guest` says how it is made ready if tmuxctl ships no profile for it: then it is driven with
    `tests/screens/unseen/NAME.yaml` alone. `asks` is whether it asks before it runs a command."""

    name: str
    registry: str
    package: str
    guest: Guest | None = None
    asks: bool = True

    @property
    def modes(self) -> Sequence[str]:
        """With its hooks and without, where it has some."""
        return MODES if not self.guest or self.guest.hooks else ("screen",)

    @property
    def profile(self) -> str:
        """What `new --profile` takes for it."""
        return str(GUESTS / f"{self.name}.yaml") if self.guest else self.name


CN_CONFIG = """\
name: fake
version: 0.0.1
schema: v1
models:
  - {name: fake, provider: openai, model: fake, apiBase: '{url}/v1', apiKey: dummy, roles: [chat]}
"""

PI_MODELS = json.dumps(
    {
        "providers": {
            "fake": {
                "baseUrl": "{url}/v1",
                "api": "openai-completions",
                "apiKey": "dummy",
                "models": [{"id": "fake", "contextWindow": 1000000}],
            }
        }
    }
)

PROGRAMS = {
    one.name: one
    for one in (
        Program("claude", "npm", "@anthropic-ai/claude-code"),
        Program("codex", "npm", "@openai/codex"),
        Program("gemini", "npm", "@google/gemini-cli"),
        Program("aider", "pip", "aider-chat"),
        Program(
            "cn",
            "npm",
            "@continuedev/cli",
            Guest(
                {".continue/config.yaml": CN_CONFIG},
                {"CONTINUE_TELEMETRY_ENABLED": "0"},
                ("--config", "{home}/.continue/config.yaml"),
            ),
        ),
        Program(
            "pi",
            "npm",
            "@mariozechner/pi-coding-agent",
            Guest(
                {".pi/agent/models.json": PI_MODELS, ".pi/agent/settings.json": '{"hideThinkingBlock": true}'},
                {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
                ("--provider", "fake", "--model", "fake"),
                hooks=True,
            ),
            asks=False,
        ),
    )
}

SHIPPED = tuple(name for name, one in PROGRAMS.items() if not one.guest)


def lab() -> Path:
    """The folder with the installed programs: $LAB, else one in the user's cache (Codex refuses a home in /tmp)."""
    given = os.environ.get("LAB")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else cache / "tmuxctl-lab"


def prefix(version: str) -> Path:
    """Where the programs of pinned or newest version are installed."""
    return lab() / "newest" if version == "newest" else lab()


def executable(program: str, version: str) -> Path:
    """Where the installed program is, or would be."""
    if PROGRAMS[program].registry == "pip":
        return prefix(version) / "venv" / program / "bin" / program
    return prefix(version) / "npm" / program / "node_modules/.bin" / program


def installed(program: str, version: str) -> str:
    """The number of the version that is installed; empty if there is none."""
    package = PROGRAMS[program].package
    if not executable(program, version).exists():
        return ""
    if PROGRAMS[program].registry == "npm":
        about = prefix(version) / "npm" / program / "node_modules" / package / "package.json"
        return str(json.loads(about.read_text())["version"])
    found = (prefix(version) / "venv" / program).glob(f"lib/*/site-packages/{package.replace('-', '_')}-*.dist-info")
    return next((one.name.removesuffix(".dist-info").rpartition("-")[2] for one in found), "")


def check() -> None:
    """Raise Missing unless the local model and the installer are there."""
    if not (CLIS / "install.sh").exists() or not (FAKE / "fake_llm.py").exists():
        raise Missing(NEEDS.format(clis=CLIS, fake=FAKE))


def install(names: Sequence[str], versions: Sequence[str], say: Callable[[str], None]) -> list[tuple[str, str]]:
    """Install what is not yet there; this alone needs the network. Returns the programs and versions to be played.

    A guest has no pinned version: it is played in its newest. Where the newest version is the pinned one, it is played once.
    """
    known: dict[str, str] = json.loads(os.environ.get(RESOLVED, "{}"))
    found = []
    for name in names:
        guest = PROGRAMS[name].guest is not None
        if "pinned" in versions and not guest:
            _install_pinned(name, say)
            found.append((name, "pinned"))
        if "newest" not in versions and not guest:
            continue
        if name not in known:
            known[name] = newest(name)
        if not guest and known[name] == pinned(name):
            say(f"-- the newest {name} is the pinned one, {known[name]}")
            if "pinned" not in versions:
                _install_pinned(name, say)
                found.append((name, "pinned"))
        else:
            _install_newest(name, known[name], say)
            found.append((name, "newest"))
    os.environ[RESOLVED] = json.dumps(known)
    return found


def pinned(program: str) -> str:
    """The version that install.sh installs."""
    found = re.search(rf"{re.escape(PROGRAMS[program].package)}(?:@|==)([\w.]+)", (CLIS / "install.sh").read_text())
    return found[1] if found else ""


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


def _install_pinned(name: str, say: Callable[[str], None]) -> None:
    if executable(name, "pinned").exists():
        return
    say(f"-- installing {name} into {lab()} (some minutes, once)")
    _run(name, "pinned", ["bash", str(CLIS / "install.sh"), name])


def _install_newest(name: str, number: str, say: Callable[[str], None]) -> None:
    if installed(name, "newest") == number:
        return
    say(f"-- installing {name} {number} into {prefix('newest')}")
    package = PROGRAMS[name].package
    if PROGRAMS[name].registry == "npm":
        folder = prefix("newest") / "npm" / name
        folder.mkdir(parents=True, exist_ok=True)
        words = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", f"{package}@{number}"]
        _run(name, "newest", words)
    else:
        folder = prefix("newest") / "venv" / name
        _run(name, "", [sys.executable, "-m", "venv", str(folder)])
        _run(name, "newest", [str(folder / "bin/pip"), "install", "-q", f"{package}=={number}"])


def _run(name: str, version: str, words: list[str]) -> None:
    done = subprocess.run(words, env={**os.environ, "LAB": str(lab())}, capture_output=True, text=True, check=False)
    if done.returncode or (version and not executable(name, version).exists()):
        raise Missing(f"{name} cannot be installed: {(done.stderr or done.stdout).strip()[-1000:]}")
