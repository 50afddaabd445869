"""The hot verbs as commands of their own: tmux processes, modules imported, CPU time beside `import click`."""

from __future__ import annotations

import compileall
import os
import shutil
import sys

from place import HERE, TREE, Place, Row, interleaved, process

ROUNDS = 30
FORBIDDEN = ("libtmux", "yaml", "pyte", "psutil", "asyncio", "importlib.metadata")
VERBS = {
    "ls": ["ls"],
    "show": ["show", "sh"],
    "send": ["send", "sh", ":"],
    "screen": ["screen", "sh"],
    "wait --exit --now": ["wait", "sh", "--exit", "--now"],
    "wait --text --now": ["wait", "sh", "--text", "never seen", "--now"],
}
LOADED = """
import sys
from tmuxctl.surfaces.cli import run
status = run()
print("\\nLOADED " + " ".join(sys.modules), file=sys.stderr)
sys.exit(status)
"""


def measure(place: Place) -> list[Row]:
    compileall.compile_dir(TREE / "tmuxctl", quiet=2)
    python = [sys.executable]
    command = shutil.which("tmuxctl")
    ours = [command] if command else [*python, "-m", "tmuxctl"]
    with place.control() as control:
        control.new("sh", ("bash", "--norc"))
    counts = {name: _started(place, [*ours, *words]) for name, words in VERBS.items()}
    loaded = {name: _loaded([*python, "-c", LOADED, *words]) for name, words in VERBS.items()}
    subjects = {name: (lambda words=words: process([*ours, *words]).cpu) for name, words in VERBS.items()}
    click = [*python, "-c", "import click"]
    seen = interleaved(ROUNDS, {**subjects, "click": lambda: process(click).cpu})
    ratios = {name: seen[name] / seen["click"] for name in VERBS}
    base = f" (`import click`: {seen['click'] * 1000:.0f} ms; medians of {ROUNDS})"
    found = sorted({f"{name}: {module}" for name, modules in loaded.items() for module in modules})
    return [
        Row("tmux processes of a hot verb", "≤ 2", _each(counts, "d"), max(counts.values()) <= 2),
        Row("heavy modules a hot verb imports", "none", ", ".join(found) or "none", not found),
        Row(
            "CPU time of a hot verb beside `import click`",
            "≤ 1.8 x",
            _each(ratios, ".2f") + base,
            max(ratios.values()) <= 1.8,
        ),
    ]


def _each(values: dict[str, float] | dict[str, int], form: str) -> str:
    return ", ".join(f"`{name}` {value:{form}}" for name, value in values.items())


def _started(place: Place, words: list[str]) -> int:
    """How many tmux processes a command starts."""
    folder = place.folder / "shim"
    folder.mkdir(exist_ok=True)
    shim, log = folder / "tmux", folder / "log"
    if not shim.exists():
        shim.symlink_to(HERE / "shim.sh")
    log.write_text("")
    env = {"TMUX_REAL": str(shutil.which("tmux")), "TMUX_COUNT": str(log), "PATH": f"{folder}:{os.environ['PATH']}"}
    done = process(words, env={**os.environ, **env})
    assert done.status == 0 or b"--now" in " ".join(words).encode(), done.stderr
    return len(log.read_text().splitlines())


def _loaded(words: list[str]) -> list[str]:
    """Which heavy modules a command has imported at its end."""
    last = next(line for line in process(words).stderr.decode().splitlines() if line.startswith("LOADED "))
    return sorted(
        {module for module in FORBIDDEN for name in last.split() if name == module or name.startswith(module + ".")}
    )
