"""Plays scenarios beside busy loops in one place, with the surfaces that tell of it all, and scores what they told."""

from __future__ import annotations

import json
import os
import pwd
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tools.processes import busy_loops
from tools.states import told
from tools.states.place import ROOT, environment, libraries_python
from tools.states.recorder import SOCKET, end_with_parent
from tools.states.scenarios import parse
from tools.states.told import Call
from tools.states.truth import Session, read_record

PATIENCE = 600.0
"""Seconds one scenario may take on a busy machine."""


class Place(NamedTuple):
    """Where a run plays: its folder, the words before a command of the playing user, and that user's environment."""

    folder: Path
    command: tuple[str, ...]
    variables: Mapping[str, str]

    def start(self, *words: str, **more: Any) -> subprocess.Popen[Any]:
        """Start a module of Python as that user in a session of its own, as in another terminal."""
        return subprocess.Popen(
            [*self.command, "-m", *words],
            cwd=ROOT,
            env={**self.variables, **more.pop("env", {})},
            start_new_session=True,
            **more,
        )


def run(place: Place, jobs: Mapping[str, dict[str, Any]], *, loops: int, at_once: int, verbose: bool) -> int:
    """Play the jobs, and print what was told of them; returns the exit status: 0 if all that must hold holds."""
    began = time.monotonic()
    print(
        f"-- {len(jobs)} scenarios, {at_once} at once, beside {loops} busy loops on {os.cpu_count()} cores", flush=True
    )
    calls: list[Call] = []
    with _recorded(place) as lines, _listed(place, calls), busy_loops(loops):
        played = list(_play_all(place, jobs, at_once))
    record = read_record(map(json.loads, lines.read_text().splitlines()))
    sessions = [Session(parse(jobs[one["scenario"]]["scenario"]), one, record) for one in played]
    windows = [window for session in sessions for window in told.score(session, calls)]
    holds = show(windows, verbose=verbose)
    late = record.lateness
    print(
        f"-- the recorder ({late['priority']} priority) was {1000 * late['p99']:.1f} ms late in 99 % of {late['samples']}"
        f" samples at most, {1000 * late['max']:.1f} ms at the worst; {len(record.gaps)} gaps;"
        f" it took {late['cpu']:.1f} s of a processor"
    )
    print(f"-- {len(played)} of {len(jobs)} scenarios in {time.monotonic() - began:.0f} s")
    return 0 if holds and played else 1


def show(windows: Sequence[told.Window], *, verbose: bool) -> bool:
    """Print what is wrong, the table, and what must hold; True if that holds."""
    print("\n== told wrong, or unknown")
    for line in told.failures(windows):
        print(line)
    for line in told.delays(windows) if verbose else ():
        print(line)
    by_surface = {surface: told.figures(one for one in windows if one.surface == surface) for surface in told.SURFACES}
    print()
    for line in told.table(by_surface):
        print(line)
    lines = [(surface, *line) for surface, of in by_surface.items() for line in told.must_hold(surface, of)]
    for surface, text, holds in lines:
        print(f"-- {'holds' if holds else 'DOES NOT HOLD'}: {surface}: {text}")
    return all(holds for _, _, holds in lines)


def make_place(folder: Path, user: str | None, python: str | None) -> Place:
    """Where a run plays as that user or as who we are; another user's Python is this one, if it is given."""
    home = folder / "home"
    for one in (home, home / "run", home / "served"):
        one.mkdir(mode=0o700)
        if user:
            os.chown(one, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
    # in this folder for what runs there is no server: commands look for it, and would be carried out by it
    own = {"HOME": home, "XDG_STATE_HOME": home / "state", "TMUX_TMPDIR": home, "XDG_RUNTIME_DIR": home / "run"}
    # what this Python is installed in may be closed to others, as root's home is
    words = (
        ("runuser", "-u", user, "--", python or libraries_python() or "/usr/bin/python3") if user else (sys.executable,)
    )
    return Place(folder, words, {**environment(user), **{name: str(path) for name, path in own.items()}})


@contextmanager
def _recorded(place: Place) -> Iterator[Path]:
    """The recorder, and the two surfaces that go on without end; gives the file that is complete behind the block."""
    lines = place.folder / "record"
    watch = place.start("tmuxctl", "watch", "--json", stdout=subprocess.PIPE, preexec_fn=end_with_parent)
    served = {"XDG_RUNTIME_DIR": place.variables["XDG_RUNTIME_DIR"].replace("/run", "/served")}
    serve = place.start("tmuxctl", "serve", stdout=subprocess.PIPE, env=served, preexec_fn=end_with_parent)
    events = _open_events(serve)
    handles = (watch.stdout.fileno() if watch.stdout else -1, events.fileno() if events else -1)
    recorder = subprocess.Popen(
        [sys.executable, "-m", "tools.states.recorder", str(place.folder), *map(str, handles)],
        cwd=ROOT,
        env=place.variables,
        stdout=lines.open("w"),
        pass_fds=[handle for handle in handles if handle >= 0],
        start_new_session=True,
    )
    try:
        _until_listens(place.folder / SOCKET, recorder)
        yield lines
        if recorder.poll() is not None:
            raise RuntimeError("the recorder ended before the run")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as orders:
            orders.sendto(b"{}", str(place.folder / SOCKET))
        recorder.wait(10)
    finally:
        for process in (recorder, watch, serve):
            process.kill()
            process.wait()


def _open_events(serve: subprocess.Popen[bytes]) -> socket.socket | None:
    """The stream of a server's events, once it listens; None, and said, if it does not."""
    for line in serve.stdout or ():
        if line.startswith(b"listening on unix:"):
            events = socket.socket(socket.AF_UNIX)
            events.connect(line.decode().strip().partition("unix:")[2])
            # HTTP 1.0 knows no chunks: the lines come as they are
            events.sendall(b"GET /v1/events HTTP/1.0\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
            return events
    print("-- tmuxctl serve does not run here: no events")
    return None


def _until_listens(path: Path, recorder: subprocess.Popen[Any]) -> None:
    while not path.exists():
        if recorder.poll() is not None:
            raise RuntimeError("the recorder ended")
        time.sleep(0.01)


@contextmanager
def _listed(place: Place, calls: list[Call]) -> Iterator[None]:
    """Have `tmuxctl ls` called about once a second, one call behind the other."""
    over = threading.Event()

    def call() -> None:
        while not over.wait(1.0):
            begin = time.monotonic()
            text, _ = place.start(
                "tmuxctl", "ls", "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ).communicate()
            with suppress(ValueError):
                sessions = json.loads(text)["sessions"]
                calls.append(Call(begin, time.monotonic(), {one["name"]: one for one in sessions}))

    thread = threading.Thread(target=call)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _play_all(place: Place, jobs: Mapping[str, dict[str, Any]], at_once: int) -> Iterator[dict[str, Any]]:
    """Play the jobs; those that break off are said, and not counted."""
    with ThreadPoolExecutor(at_once) as pool:
        played = pool.map(lambda job: _play(place, job), jobs.values())
        for number, (name, found) in enumerate(zip(jobs, played, strict=True), 1):
            if sys.stderr.isatty():
                print(f"\r{number}/{len(jobs)} {name:40}", end="\r", file=sys.stderr, flush=True)
            if isinstance(found, str) or found["broken"]:
                why = found if isinstance(found, str) else found["broken"]
                print(f"-- broke off, not counted: {name}: {why}", flush=True)
            else:
                yield found


def _play(place: Place, job: dict[str, Any]) -> dict[str, Any] | str:
    """Play one job in a process of its own; what went wrong, in words, if it did not come to its end."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = place.start("tools.states.timed_play", **pipes)
    try:
        text, errors = process.communicate(json.dumps({**job, "recorder": str(place.folder)}), PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"it took more than {PATIENCE:g} s"
    found: dict[str, Any] = {} if process.returncode else json.loads(text)
    return found or errors.strip()[-2000:] or f"it ended with {process.returncode}"
