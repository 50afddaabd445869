"""Play the scenarios on the real programs, judge every sample, and print how often the state was told right.

python -m tools.states                      play all, print the table and what is wrong
python -m tools.states --only gdb vim -v    some of them, with the evidence behind each wrong sample
python -m tools.states --record             play, and keep the recordings that the tests judge again
python -m tools.states --replay             judge the kept recordings
python -m tools.states --user idleu         play as an ordinary user, to whom the kernel tells less
python -m tools.states --over-ssh           play on this machine through an sshd of its own, with no Python in the PATH there
python -m tools.states --load               play beside busy loops, and score what watch, the server, ls and wait told
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tmuxctl.evidence import FULL, NONE, PS, WCHAN
from tools.services import Running
from tools.states import load, report, scenarios, score
from tools.states.place import (
    PORTS,
    ROOT,
    USER,
    Missing,
    alone,
    environment,
    libraries_python,
    machine_behind_ssh,
    place,
    placeholders,
    user,
)
from tools.states.recording import Recording, from_lines, load_all, save, thinned
from tools.states.scenarios import Collection

SCENARIOS = (ROOT / "tests/states/scenarios.yaml", ROOT / "tests/states/edges.yaml")
RECORDINGS = ROOT / "tests/states/recordings"

ENOUGH = 140
"""So many of the project's own scenarios must be played for the run to count."""

PATIENCE = 300.0
"""Seconds one scenario may take."""


def main() -> int:
    """Play or replay, and print; returns the exit status: 0 if all that must hold holds."""
    options = _options()
    # the default would end only this process and leave servers and the user behind
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.load:
        with ExitStack() as stack:
            folder, wanted = _prepared(options, stack)
            there = load.make_place(folder, options.user, options.python)
            return load.run(there, wanted, loops=options.loops, at_once=options.jobs, verbose=options.verbose)
    began = time.monotonic()
    recordings = _kept(options) if options.replay else list(_played(options))
    if options.record:
        size = sum(save(one, options.recordings).stat().st_size for one in recordings if not one.broken)
        print(f"-- {size:,} bytes of recordings in {options.recordings}")
    good = [one for one in recordings if not one.broken]
    enough = options.only or tuple(options.scenarios) != SCENARIOS or len(good) >= ENOUGH
    holds = show(good, _levels(options), verbose=options.verbose)
    print(f"-- {len(good)} scenarios in {time.monotonic() - began:.0f} s")
    if not enough:
        print(f"-- too few: {ENOUGH} must be played")
    return 0 if holds and enough and good else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.states", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", metavar="ID", help="these scenarios; also the beginning of an id, or a group"
    )
    parser.add_argument(
        "--scenarios", type=Path, nargs="+", default=SCENARIOS, metavar="FILE", help="other files of them"
    )
    parser.add_argument(
        "--recordings", type=Path, default=RECORDINGS, metavar="FOLDER", help="another folder of recordings"
    )
    parser.add_argument("--record", action="store_true", help="keep what was seen as recordings")
    parser.add_argument("--replay", action="store_true", help="play nothing, judge the recordings")
    parser.add_argument("--level", choices=(FULL, WCHAN, PS, NONE), help="only with so much told by the kernel")
    parser.add_argument("--user", metavar="NAME", help=f"play as this user ({USER} is made if it is not there)")
    parser.add_argument("--over-ssh", action="store_true", help="reach the programs through a real sshd")
    parser.add_argument(
        "--profiles", choices=("none", "auto"), default="none", help="judge with the programs' profiles"
    )
    parser.add_argument("--python", metavar="FILE", help="the Python with the libraries that scenarios use")
    parser.add_argument("--modules", metavar="FOLDER", help="a folder with the node_modules that scenarios use")
    parser.add_argument("--marks", action="store_true", help="let the shells mark their prompts")
    parser.add_argument("--load", action="store_true", help="play beside busy loops, and score what is told of it")
    parser.add_argument(
        "--loops", type=int, default=3 * (os.cpu_count() or 1), metavar="N", help="so many of them (default: 3 a core)"
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many at once (default: 2)")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the evidence behind every wrong stretch")
    options = parser.parse_args()
    if options.user and os.getuid() != 0:
        parser.error("--user needs root")
    if options.user and options.over_ssh:
        parser.error("--over-ssh plays as who we are")
    if options.load and (options.record or options.replay or options.over_ssh or options.level):
        parser.error("--load keeps no recordings, and plays on this machine as it is")
    if options.record and options.over_ssh and options.recordings == RECORDINGS:
        parser.error("the kept recordings are this machine's own: name another folder with --recordings")
    if options.record and options.user and options.recordings == RECORDINGS:
        parser.error("the kept recordings are root's: name another folder with --recordings")
    return options


def _levels(options: argparse.Namespace) -> tuple[str, ...]:
    if options.level:
        return (str(options.level),)
    # an ordinary user's run is what it is; root's can be judged as less telling machines would have seen it
    return (WCHAN, PS, NONE) if options.user else (FULL, WCHAN, PS, NONE)


def _wanted(options: argparse.Namespace, name: str, group: str) -> bool:
    return not options.only or any(name == one or group == one or name.startswith(one + "-") for one in options.only)


def _kept(options: argparse.Namespace) -> list[Recording]:
    found = [one for one in load_all(options.recordings) if _wanted(options, one.scenario, one.group)]
    written = scenarios.read(*options.scenarios).scenarios
    lacking = set(written) - {one.scenario for one in found}
    if lacking and not options.only:
        print(f"-- not recorded, not counted: {', '.join(sorted(lacking))}")
    if options.profiles == "auto":
        return [score.with_profile(one, written[one.scenario]) for one in found if one.scenario in written]
    return found


def _played(options: argparse.Namespace) -> Iterator[Recording]:
    """Play the wanted scenarios; what is missing or breaks is said as it comes."""
    with ExitStack() as stack:
        folder, wanted = _prepared(options, stack)
        ssh = stack.enter_context(machine_behind_ssh(folder)) if options.over_ssh else ()
        pool = stack.enter_context(ThreadPoolExecutor(options.jobs))
        played = pool.map(lambda job: _play({**job, "ssh": ssh}, options.user), wanted.values())
        for number, (name, recording) in enumerate(zip(wanted, played, strict=True), 1):
            if sys.stderr.isatty():
                print(f"\r{number}/{len(wanted)} {name:40}", end="\r", file=sys.stderr, flush=True)
            if isinstance(recording, str):
                print(f"-- failed, not counted: {name}: {recording}", flush=True)
                continue
            if recording.broken:
                print(f"-- broke off, not counted: {name}: {recording.broken}", flush=True)
            yield thinned(recording)


def _prepared(options: argparse.Namespace, stack: ExitStack) -> tuple[Path, dict[str, dict[str, Any]]]:
    """The folder of a run, with all that its scenarios need while the stack is there, and what is to be played."""
    collection = scenarios.read(*options.scenarios)
    stack.enter_context(alone())
    folder = stack.enter_context(place(collection.fixtures))
    has_user = stack.enter_context(user())
    running = stack.enter_context(Running(folder, ports=PORTS, user=USER))
    missing = Missing(
        running,
        has_user=has_user,
        player=_player(options),
        services=collection.services,
        places=_places(options, folder, 0),
    )
    return folder, _jobs(options, collection, folder, missing)


def _player(options: argparse.Namespace) -> str:
    return options.user or pwd.getpwuid(os.getuid()).pw_name


def _jobs(
    options: argparse.Namespace, collection: Collection, folder: Path, missing: Missing
) -> dict[str, dict[str, Any]]:
    """What to play, by the scenario's id: all that is wanted and can be played here."""
    level = options.level or (WCHAN if options.user else FULL)
    how = {"marks": options.marks, "profile": options.profiles, "level": level}
    found = {}
    for number, (name, written) in enumerate(collection.scenarios.items()):
        if not _wanted(options, name, str(written.get("group"))):
            continue
        # who is that user already need not become it first
        written = {**written, "run": str(written["run"]).removeprefix(f"runuser -u {options.user} -- ")}
        places = _places(options, folder, number)
        if lacks := missing.of(written, places):
            print(f"-- missing, not counted: {name}: no {', no '.join(lacks)}", flush=True)
            continue
        filled = scenarios.filled(written, {key: text for key, text in places.items() if text is not None})
        found[name] = {"scenario": filled, "folder": str(folder / "work" / str(number)), "options": how}
    return found


def _places(options: argparse.Namespace, folder: Path, number: int) -> dict[str, str | None]:
    return placeholders(folder, number, options.user, python=options.python, modules=options.modules)


def _play(job: dict[str, Any], name: str | None) -> Recording | str:
    """Play one job in a process of its own; what went wrong, in words, if it gave no recording."""
    command = [sys.executable, "-m", "tools.states.play"]
    if name:
        # what this Python is installed in may be closed to others, as root's home is
        command = ["runuser", "-u", name, "--", libraries_python() or "/usr/bin/python3", *command[1:]]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(job),
            capture_output=True,
            text=True,
            env=environment(name),
            cwd=ROOT,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {PATIENCE:g} s"
    return done.stderr.strip()[-2000:] if done.returncode else from_lines(done.stdout)


def show(recordings: Sequence[Recording], levels: Sequence[str], *, verbose: bool) -> bool:
    """Print the table, what is wrong, and what must hold; True if that holds."""
    judged = {level: [one for each in recordings for one in score.judged(each, level)] for level in levels}
    for level, windows in judged.items():
        print(f"\n== {report.TITLES[level]}: wrong samples")
        for line in report.failures(windows, verbose=verbose):
            print(line)
    print()
    rows = [
        (
            f"nothing printed for {seconds} s",
            [one for each in recordings for one in score.scored(each, score.unchanged(seconds))],
        )
        for seconds in (0.5, 2.0)
    ]
    for line in report.table([*rows, *((report.TITLES[level], windows) for level, windows in judged.items())]):
        print(line)
    lines = [(level, *line) for level in levels for line in report.must_hold(level, score.figures(judged[level]))]
    for level, text, holds in lines:
        print(f"-- {'holds' if holds else 'DOES NOT HOLD'}: {report.TITLES[level]}: {text}")
    return all(holds for _, _, holds in lines)


if __name__ == "__main__":
    sys.exit(main())
