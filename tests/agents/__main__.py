"""Drive real agent programs, and check every turn against the log of the local model they talk to.

python -m tests.agents                          each behaviour on each program, the quick ones three times (half an hour)
python -m tests.agents --full                   twenty times each
python -m tests.agents --only codex --behaviours echo big --rounds 3 --modes hooks
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import lab, report
from .behaviours import BEHAVIOURS
from .model import Request
from .turn import Turn

INSIDE = "TMUXCTL_AGENTS_INSIDE"
"""Set where the run already has a network of its own."""

MODES = ("hooks", "screen")

FULL = 20


def main() -> int:
    """Play, print; returns the exit status: 0 if every promise holds."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        lab.check()
        lab.install(options.only, print)
    except lab.Missing as error:
        print(f"-- {error}")
        return 1
    _alone_in_the_network()
    began = time.monotonic()
    run = Run(options)
    turns, left, failed = run.played()
    print()
    for line in report.table(turns, left):
        print(line)
    wrong = [*failed, *report.promises(turns, left)]
    for text in wrong:
        print(f"-- DOES NOT HOLD: {text}")
    print(f"-- {len(turns)} turns in {time.monotonic() - began:.0f} s; each as a line of JSON in {run.log}")
    return 1 if wrong or not turns else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.agents", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [one.name for one in BEHAVIOURS]
    parser.add_argument("--only", nargs="+", choices=lab.PROGRAMS, default=list(lab.PROGRAMS), metavar="PROGRAM")
    parser.add_argument("--behaviours", nargs="+", choices=names, default=[], metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--modes", nargs="+", choices=MODES, default=list(MODES), help="with the hooks, by the screen alone"
    )
    parser.add_argument(
        "--rounds", type=int, help="how often each behaviour (default: once, the quick ones three times)"
    )
    parser.add_argument(
        "--full", action="store_true", help=f"{FULL} times each, by the screen alone a quarter as often"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many programs at once (default: 1)")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="keep what was seen of each turn, for the tests")
    return parser.parse_args()


def _alone_in_the_network() -> None:
    """Go on in a network of nothing but the loopback interface, where the machine lets us."""
    if os.environ.get(INSIDE) or not (shutil.which("unshare") and shutil.which("ip")):
        return
    words = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-rn"]
    words += ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        print("-- no network of its own here: the programs could reach the outside")
        return
    sys.stdout.flush()
    os.execvpe(words[0], [*words, sys.executable, "-m", "tests.agents", *sys.argv[1:]], {**os.environ, INSIDE: "1"})


class Run:
    """All programs' turns, each program in a process of its own."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        folder = lab.ROOT / "build/agents"
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
        self.lock = threading.Lock()
        self.turns: list[Turn] = []
        self.left: dict[tuple[str, str], list[str]] = {}
        self.failed: list[str] = []
        self.players: list[subprocess.Popen[str]] = []

    def played(self) -> tuple[list[Turn], dict[tuple[str, str], list[str]], list[str]]:
        wanted = [(program, mode) for program in self.options.only for mode in self.options.modes]
        # a socket's path has room for 107 bytes
        with (
            tempfile.TemporaryDirectory(prefix="tca-", dir="/tmp") as folder,
            ThreadPoolExecutor(self.options.jobs) as pool,
        ):
            jobs = [pool.submit(self.play, program, mode, Path(folder)) for program, mode in wanted]
            try:
                for job in jobs:
                    job.result()
            finally:
                # where the run is broken off, each player still ends what it started
                pool.shutdown(wait=False, cancel_futures=True)
                for process in self.players:
                    process.terminate()
        return self.turns, self.left, self.failed

    def play(self, program: str, mode: str, folder: Path) -> None:
        rounds, quick = self.rounds(mode)
        about = {
            "program": program,
            "mode": mode,
            "run": f"{os.getpid()}-{program}-{mode}",
            "folder": str(folder / f"{program}-{mode}"),
            "rounds": rounds,
            "quick": quick,
            "only": self.options.behaviours,
            "record": str(self.options.record.resolve()) if self.options.record else "",
        }
        environment = {
            "LAB": str(lab.lab()),
            "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": str(lab.ROOT),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.agents.play", json.dumps(about)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=lab.ROOT,
        )
        self.players.append(process)
        try:
            assert process.stdout
            for line in process.stdout:
                self.take(json.loads(line), program, mode)
            if status := process.wait():
                self.failed.append(f"{program} {mode}: the player ended with {status}")
        finally:
            process.terminate()
            process.wait()

    def rounds(self, mode: str) -> tuple[int, int]:
        """How often each behaviour is played, and how often the quick ones."""
        if self.options.rounds:
            return self.options.rounds, self.options.rounds
        if self.options.full:
            return (FULL, FULL) if mode == "hooks" else (FULL // 4, FULL // 4)
        return (1, 3) if mode == "hooks" else (1, 1)

    def take(self, told: dict[str, Any], program: str, mode: str) -> None:
        """One line of a player's."""
        with self.lock:
            with self.log.open("a") as log:
                log.write(json.dumps({"program": program, "mode": mode, **told}, ensure_ascii=False) + "\n")
            if "turn" in told:
                turn = _turn(told["turn"])
                self.turns.append(turn)
                print(report.line(turn), flush=True)
            elif "left" in told:
                self.left.setdefault((program, mode), []).extend(told["left"])
            elif "failed" in told:
                self.failed.append(f"{program} {mode}: {told['failed']}")
                print(f"-- {program} {mode}: {told['failed']}", flush=True)
            else:
                print(f"-- {program} {mode}: {told['note']}", flush=True)


def _turn(about: dict[str, Any]) -> Turn:
    known = {name: about[name] for name in Turn._fields}
    requests = tuple(_request(one) for one in about["requests"])
    return Turn(**{**known, "requests": requests, "broken": tuple(about["broken"])})


def _request(about: dict[str, Any]) -> Request:
    return Request(**{**about, "results": tuple(about["results"]), "tools": ()})


if __name__ == "__main__":
    sys.exit(main())
