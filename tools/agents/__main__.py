"""Drive real agent programs, and check every turn against the log of the local model they talk to.

python -m tools.agents                          each behaviour on each program, the quick ones three times (half an hour)
python -m tools.agents --full                   twenty times each
python -m tools.agents --only codex --behaviours echo big --rounds 3 --modes hooks
python -m tools.agents --versions pinned newest --rounds 3 --into FOLDER
                                                a line in FOLDER/turns.jsonl for each turn; started again, it goes on there
python -m tools.agents --report --into FOLDER   the table of what is played so far
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import alone, installing, programs, report
from .behaviours import BEHAVIOURS
from .results import Part, Results

FULL = 20


def main() -> int:
    """Play, print; returns the exit status: 0 if every promise holds."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = options.into or programs.ROOT / "build/agents" / time.strftime("%Y%m%d-%H%M%S")
    if options.report:
        return _report(Results(folder))
    try:
        wanted = installing.install(options.only, options.versions, _say)
    except installing.Missing as error:
        print(f"-- {error}")
        return 1
    alone.leave_the_network("tools.agents")
    run = Run(options, Results(folder))
    try:
        run.play(wanted)
    except KeyboardInterrupt:
        print(f"\n-- broken off; go on with --into {folder}")
        return 130
    return _report(run.results)


def _say(text: str) -> None:
    """Told once, not again in the network of its own."""
    if not os.environ.get(alone.INSIDE):
        print(text)


def _report(results: Results) -> int:
    print()
    for line in report.table(results.turns, results.left):
        print(line)
    wrong = [*results.failed, *report.promises(results.turns, results.left)]
    for text in wrong:
        print(f"-- DOES NOT HOLD: {text}")
    print(f"-- {len(results.turns)} turns on {', '.join(results.commits)}; each as a line of JSON in {results.path}")
    return 1 if wrong or not results.turns else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.agents", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [one.name for one in BEHAVIOURS]
    known = list(programs.PROGRAMS)
    parser.add_argument(
        "--only", nargs="+", choices=known, default=list(programs.SHIPPED), metavar="PROGRAM", help=", ".join(known)
    )
    parser.add_argument("--behaviours", nargs="+", choices=names, default=[], metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--modes",
        nargs="+",
        choices=programs.MODES,
        default=list(programs.MODES),
        help="with the hooks, by the screen alone",
    )
    parser.add_argument(
        "--versions",
        nargs="+",
        choices=installing.VERSIONS,
        default=["pinned"],
        help="the pinned version of each program (default), the newest that its registry has now",
    )
    parser.add_argument(
        "--rounds", type=int, help="how often each behaviour (default: once, the quick ones three times)"
    )
    parser.add_argument(
        "--full", action="store_true", help=f"{FULL} times each, by the screen alone a quarter as often"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many programs at once (default: 1)")
    parser.add_argument(
        "--into", type=Path, metavar="FOLDER", help="keep the results there, and play only what is missing in them"
    )
    parser.add_argument("--report", action="store_true", help="play nothing: print the table of --into FOLDER")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="keep what was seen of each turn, for the tests")
    options = parser.parse_args()
    if options.report and not options.into:
        parser.error("--report needs --into FOLDER")
    return options


class Run:
    """All programs' turns, each program in a process of its own."""

    def __init__(self, options: argparse.Namespace, results: Results) -> None:
        self.options, self.results = options, results
        self.players: list[subprocess.Popen[str]] = []

    def play(self, wanted: list[tuple[str, str]]) -> None:
        """Play what is missing in the results."""
        parts = [
            Part(program, version, installing.installed(program, version), mode)
            for program, version in wanted
            for mode in self.options.modes
            if mode in programs.PROGRAMS[program].modes
        ]
        # a socket's path has room for 107 bytes
        with (
            tempfile.TemporaryDirectory(prefix="tca-", dir="/tmp") as folder,
            ThreadPoolExecutor(self.options.jobs) as pool,
        ):
            jobs = [pool.submit(self.play_part, part, Path(folder)) for part in parts]
            try:
                for job in jobs:
                    job.result()
            finally:
                # where the run is broken off, each player still ends what it started
                pool.shutdown(wait=False, cancel_futures=True)
                for process in self.players:
                    process.terminate()

    def play_part(self, part: Part, folder: Path) -> None:
        """One program's turns, in one version and one mode."""
        rounds, quick = self.rounds(part.mode)
        name = f"{part.program}-{part.version}-{part.mode}"
        about = {
            **part._asdict(),
            "run": f"{os.getpid()}-{name}",
            "folder": str(folder / name),
            "rounds": rounds,
            "quick": quick,
            "only": self.options.behaviours,
            "done": self.results.done(part),
            "record": str(self.options.record.resolve()) if self.options.record else "",
        }
        environment = {
            "LAB": str(installing.lab()),
            "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": str(programs.ROOT),
        }
        # in a session of its own: Ctrl-C is for us, and the player is then told to end what it started
        process = subprocess.Popen(
            [sys.executable, "-m", "tools.agents.play", json.dumps(about)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=programs.ROOT,
            start_new_session=True,
        )
        self.players.append(process)
        try:
            assert process.stdout
            for line in process.stdout:
                self.take(line, part)
            if (status := process.wait()) not in (0, 143):
                self.results.failed.append(f"{name}: the player ended with {status}")
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

    def take(self, line: str, part: Part) -> None:
        """One line of a player's."""
        told = json.loads(line)
        turn = self.results.take(told, part)
        if turn:
            print(report.line(turn), flush=True)
        elif note := told.get("failed") or told.get("note"):
            print(f"-- {part.program} {part.number} {part.mode}: {note}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
