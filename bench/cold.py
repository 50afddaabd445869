"""The hot verbs as commands of their own: tmux processes, modules imported, time beside `import click`; the one-file form beside
the installed one; `new`, cold and warm."""

from __future__ import annotations

import compileall
import itertools
import os
import shutil
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

from place import HERE, TREE, Place, Row, interleaved, process, timed

from tools import dist

ROUNDS = 41
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
    commands = {name: [*ours, *words] for name, words in VERBS.items()}
    elapsed, cpu = timed_commands({**commands, "click": [*python, "-c", "import click"]})
    found = sorted({f"{name}: {module}" for name, modules in loaded.items() for module in modules})
    return [
        Row("tmux processes of a hot verb", "≤ 2", each(counts, "d"), max(counts.values()) <= 2),
        Row("heavy modules a hot verb imports", "none", ", ".join(found) or "none", not found),
        _beside_click("wall time", elapsed, 1.5),
        _beside_click("CPU time", cpu, 1.8),
    ]


def one_file(place: Place) -> list[Row]:
    """The hot verbs in the one-file form, which keeps what it compiled, beside the installed form."""
    compileall.compile_dir(TREE / "tmuxctl", quiet=2)
    single = str(_build_one_file(place.folder))
    installed = shutil.which("tmuxctl")
    forms = {
        "one file": [sys.executable, single],
        "installed": [installed] if installed else [sys.executable, "-m", "tmuxctl"],
    }
    with place.control() as control:
        control.new("sh", ("bash", "--norc"))
    commands = {f"{form} {name}": [*begin, *words] for form, begin in forms.items() for name, words in VERBS.items()}
    for words in commands.values():
        process(words)
    elapsed, _ = timed_commands(commands)
    ratios = {name: elapsed[f"one file {name}"] / elapsed[f"installed {name}"] for name in VERBS}
    what = "wall time of a hot verb in the one-file form beside the installed one"
    return [Row(what, "≤ 2.0 x", f"{each(ratios, '.2f')} (medians of {ROUNDS})", max(ratios.values()) <= 2.0)]


def new_shell(place: Place) -> list[Row]:
    """`new -- bash`, marked, until its prompt is there: a call in a process that stays, and a command of its own."""
    compileall.compile_dir(TREE / "tmuxctl", quiet=2)
    numbers = itertools.count()
    ours = shutil.which("tmuxctl")
    begin = [ours] if ours else [sys.executable, "-m", "tmuxctl"]
    with place.control() as control:
        control.new("first", ("bash",))

        def warm() -> None:
            assert control.new(f"s{next(numbers)}", ("bash",)).state == "idle"

        cold = timed(lambda: process([*begin, "new", f"s{next(numbers)}", "--", "bash"]))
        seen = interleaved(ROUNDS, {"warm": timed(warm), "cold": cold})
    return [
        Row(
            f"`new -- bash` with marks, until its prompt, {name}",
            f"≤ {limit} ms",
            f"{seen[name] * 1000:.0f} ms (median of {ROUNDS})",
            seen[name] * 1000 <= limit,
        )
        for name, limit in (("warm", 40), ("cold", 150))
    ]


def timed_commands(commands: dict[str, list[str]]) -> tuple[dict[str, float], dict[str, float]]:
    """The medians of how long these take and of their CPU time, in seconds, run in turn."""
    cpu: dict[str, list[float]] = {name: [] for name in commands}

    def run(name: str) -> float:
        done = process(commands[name])
        cpu[name].append(done.cpu)
        return done.elapsed

    elapsed = interleaved(ROUNDS, {name: partial(run, name) for name in commands})
    return elapsed, {name: statistics.median(values) for name, values in cpu.items()}


def _beside_click(what: str, seen: dict[str, float], limit: float) -> Row:
    ratios = {name: seen[name] / seen["click"] for name in VERBS}
    base = f" (`import click`: {seen['click'] * 1000:.0f} ms; medians of {ROUNDS})"
    holds = max(ratios.values()) <= limit
    return Row(f"{what} of a hot verb beside `import click`", f"≤ {limit} x", each(ratios, ".2f") + base, holds)


def _build_one_file(folder: Path) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=TREE, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return dist.one_file(folder / "tmuxctl.pyz", wheel)


def each(values: dict[str, float] | dict[str, int], form: str) -> str:
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
