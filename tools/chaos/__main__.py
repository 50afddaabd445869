"""One run: `python -m tools.chaos --seconds 60 --seed 25 --log FILE`, or `--replay LOG` with the schedule of an earlier one."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from conftest import list_pids, own_place, sweep

import tools.chaos.clock  # noqa: F401
from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError
from tools.chaos.judge import MARGIN
from tools.chaos.judge import main as judge_main
from tools.chaos.schedule import FAULTS, Fault, Schedule, draw, read_log, schedule_of
from tools.chaos.sites import Sites, sites, unmount
from tools.chaos.worker import Follower, Worker, read_taken

HEAL_SECONDS = 120.0


class Log:
    """Writes the rows of a run."""

    def __init__(self, path: Path) -> None:
        self._file, self._lock = path.open("w"), threading.Lock()

    def __call__(self, row: str, **told: Any) -> None:
        with self._lock:
            self._file.write(json.dumps({"row": row, **told}) + "\n")
            self._file.flush()


def make_faults(made: Sites, faults: list[Fault], began: float, log: Log, over: threading.Event) -> list[str]:
    """Make them at their times, and end each behind its own; what could not be ended."""
    healing: list[threading.Thread] = []
    unhealed: list[str] = []

    def heal(fault: Fault, end: Any) -> None:
        over.wait(fault.seconds)
        try:
            end()
        except BaseException as error:
            unhealed.append(f"{fault.kind}: {error!r}"[:1000])

    try:
        for fault in faults:
            if over.wait(max(0.0, began + fault.at - time.monotonic())):
                break
            now = round(time.monotonic() - began, 2)
            busy = {thread.name for thread in healing if thread.is_alive()}
            target = fault.kind.partition("_")[2]
            end = None if any(one.endswith(f"_{target} {fault.machine}") for one in busy) else made.begin(fault)
            log("fault" if end else "skipped", kind=fault.kind, machine=fault.machine, seconds=fault.seconds, at=now)
            if end:
                healing.append(threading.Thread(target=heal, args=(fault, end), name=f"{fault.kind} {fault.machine}"))
                healing[-1].start()
        over.wait(max(0.0, began + (faults[-1].at + faults[-1].seconds if faults else 0.0) - time.monotonic()))
    finally:
        # also when the run is broken off: what is brought back behind its end would be left there
        for thread in healing:
            thread.join(HEAL_SECONDS)
    return unhealed


def run(schedule: Schedule, place: Path, log: Log) -> None:
    """Do all of it, and write it down."""
    before = list_pids()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        unhealed = drive(schedule, place, log)
    finally:
        left = [(session, words) for session, words in sweep(place, before) if session]
        mounts = unmount(place)
    for session, words in left:
        log("leftover", what=f"process of session {session}: {words}")
    for what in mounts:
        log("leftover", what=what)
    log("end", unhealed=unhealed)


def drive(schedule: Schedule, place: Path, log: Log) -> list[str]:
    """Drive sessions and make faults, then end all; what was not whole again."""
    with sites(place) as made:
        workers = []
        for name in dict.fromkeys(one.worker for one in schedule.actions):
            worker = Worker(name, made.machines[name.partition("-")[0]], made.records, schedule.seed, log)
            worker.begin()
            workers.append(worker)
        followers = [Follower(name, machine, made.records, log) for name, machine in made.machines.items()]
        over, began = threading.Event(), time.monotonic()
        threads = [
            threading.Thread(
                target=one.run,
                args=([action for action in schedule.actions if action.worker == one.name], began, over),
                name=one.name,
                daemon=True,
            )
            for one in workers
        ]
        threads += [threading.Thread(target=one.run, args=(over,), name=one.name, daemon=True) for one in followers]
        for thread in threads:
            thread.start()
        ending = threading.Timer(schedule.seconds, over.set)
        ending.start()
        try:
            unhealed = make_faults(made, schedule.faults, began, log, over)
            over.wait()
        finally:
            # also when it is broken off: behind this the environment is the caller's again
            ending.cancel()
            over.set()
            deadline = time.monotonic() + 2 * MARGIN + HEAL_SECONDS
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
        for worker in workers:
            if worker.under_way:
                action, started = worker.under_way
                told = {"worker": worker.name, "kind": action.kind, "number": action.number, "outcome": "hang"}
                log("action", **told, said="", at=action.at, seconds=round(time.monotonic() - started, 1), timeout=0)
        unhealed += [f"{thread.name} does not end" for thread in threads if thread.is_alive()]
        unhealed += end_sessions(made, workers, log)
        for file in [] if unhealed else made.list_files():
            log("leftover", what=f"file {file}")
        for worker in workers:
            worker.caller.close()
    return unhealed


def end_sessions(made: Sites, workers: list[Worker], log: Log) -> list[str]:
    """All is whole: each session is reached or told as lost, is read to its end, and is ended."""
    unhealed = []
    with Control() as control:
        for worker in workers:
            for session, file in worker.files.items():
                deadline = time.monotonic() + HEAL_SECONDS
                while True:
                    try:
                        control.show(session)
                        break
                    except TmuxctlError as error:
                        if error.reason == "lost":
                            break
                        if time.monotonic() > deadline:
                            unhealed.append(f"{session}: {error.code} {error.reason}: {error.message}")
                            break
                        time.sleep(0.5)
                # what was typed is read within a moment
                earlier: list[str] | None = None
                while earlier != (taken := read_taken(file)):
                    earlier = taken
                    time.sleep(0.5)
                log("taken", session=session, texts=taken)
        for machine in made.machines.values():
            deadline = time.monotonic() + HEAL_SECONDS
            while True:
                try:
                    listed = control.ls(machine.prefix or None).sessions
                    names = tuple(f"{machine.prefix}{one.name.rpartition('/')[2]}" for one in listed)
                    if not names:
                        break
                    control.kill(names)
                except TmuxctlError as error:
                    if time.monotonic() > deadline:
                        unhealed.append(f"ending all of {machine.prefix or 'here'}: {error.reason}: {error.message}")
                        break
                    time.sleep(0.5)
    return unhealed


def main() -> int:
    """Run, and judge what was written down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--log", type=Path, default=Path("build/chaos.jsonl"))
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--only", default=",".join(FAULTS), help="kinds of faults")
    given = parser.parse_args()
    if os.geteuid() == 0 and "CHAOS_MOUNTS" not in os.environ and shutil.which("unshare"):
        os.environ["CHAOS_MOUNTS"] = "own"
        os.execvp("unshare", ["unshare", "-m", sys.executable, "-m", "tools.chaos", *sys.argv[1:]])
    only = tuple(filter(None, given.only.split(",")))
    schedule = schedule_of(read_log(given.replay)) if given.replay else draw(given.seed, given.seconds, only)
    given.log.parent.mkdir(parents=True, exist_ok=True)
    given.log = given.log.resolve()
    log = Log(given.log)
    log("schedule", **schedule.to_json())
    print(f"seed {schedule.seed}, {schedule.seconds:g} s, {given.log}", flush=True)
    mounts = os.environ.get("CHAOS_MOUNTS", "")
    with pytest.MonkeyPatch.context() as patch:
        path = os.environ["PATH"]
        with own_place(patch, f"{Path(sys.executable).parent}{os.pathsep}{path}") as place:
            patch.setenv("CHAOS_MOUNTS", mounts)
            for name in ("PYTHONPATH", "JUMP", "XDG_RUNTIME_DIR"):
                patch.setenv(name, "")
            run(schedule, place, log)
    sys.argv = ["judge", str(given.log)]
    return judge_main()


if __name__ == "__main__":
    raise SystemExit(main())
