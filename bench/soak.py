"""Many turns for many minutes: the tmux server's memory is what it remembers for its sessions, and ours stays as it is.

    python bench/soak.py 30 --sessions 20
    python bench/soak.py 5 --spawned --tmux /opt/tmux-3.5a/bin/tmux

Half of the sessions run bash, half Python. Each is asked again and again for a value that is checked; every few turns a
key is pressed, the screen is taken, once in a while with what scrolled away, all sessions are listed with their states, and a
session comes and goes. It ends with status 1 if the server grew by more than 100 bytes a turn beyond what its sessions
keep (`history_bytes`), if an answer was wrong, or if this process grew or kept descriptors.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from place import Place

from tmuxctl.control import Control

MOST_BYTES = 100
"""What a turn may leave in the server beyond its history."""

OWN_BYTES, OWN_DESCRIPTORS = 8 << 20, 4
"""What this process may grow by, and how many descriptors more it may have: buffers that grew once, threads' stacks."""

WARM = 0.2
"""The part of the time in which everything reaches its size: heaps, caches, the history of each session."""

HISTORY = 200
"""Lines kept of what scrolls away: full before it is measured."""

LOOK_EVERY, BACK_EVERY, LIST_EVERY, NEW_EVERY = 3, 20, 50, 100
"""Of so many turns of a session, one comes with: a key and its screen; the history; a list; a session of its own."""


class Sizes(NamedTuple):
    """At one moment: turns so far; bytes the server has resident, and of those that its sessions' histories explain; bytes and
    descriptors of this process."""

    turns: int
    server: int
    history: int
    own: int
    descriptors: int


class Soak:
    """Sessions that are asked, each by a thread of its own, for some seconds."""

    def __init__(self, control: Control, sessions: int, pause: float) -> None:
        self.control, self.pause = control, pause
        self.wrong: list[str] = []
        self._turns = [0] * sessions
        self._end = 0.0
        for index in range(sessions):
            program = ("python3", "-q") if index % 2 else ("bash", "--norc", "--noprofile")
            control.new(f"s{index}", program, history=HISTORY)
        self.server = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))

    def run(self, seconds: float, every: float) -> list[Sizes]:
        """The sizes at the start of what is measured, every so many seconds, and once all is quiet again."""
        began = time.monotonic()
        self._end = began + seconds
        threads = [threading.Thread(target=self._ask, args=(index,)) for index in range(len(self._turns))]
        for thread in threads:
            thread.start()
        self._sleep(began + WARM * seconds)
        seen = [self._told()]
        while time.monotonic() < self._end:
            self._sleep(min(self._end, time.monotonic() + every))
            seen.append(self._told())
        for thread in threads:
            thread.join()
        return [*seen, self._told()]

    def _sleep(self, until: float) -> None:
        time.sleep(max(0.0, until - time.monotonic()))

    def _ask(self, index: int) -> None:
        name = f"s{index}"
        for turn in itertools.count(1):
            if time.monotonic() > self._end:
                return
            value = f"v{turn * 7}"
            text = f'print("v%d" % ({turn} * 7))' if index % 2 else f"echo v$(({turn} * 7))"
            try:
                self._expect(name, value, self.control.ask(name, text.encode(), timeout=30.0).text.strip())
                if turn % LOOK_EVERY == 0:
                    self.control.keys(name, ("Enter",))
                    self._expect(name, True, value in self.control.screen(name).text)
                if turn % BACK_EVERY == 0:
                    self.control.screen(name, scrollback=HISTORY)
                if turn % LIST_EVERY == 0:
                    self._expect(name, True, name in {one.name for one in self.control.ls().sessions})
                if turn % NEW_EVERY == 0:
                    self.control.new(f"{name}-more", ("cat",), history=HISTORY)
                    self.control.kill((f"{name}-more",))
            except Exception as error:
                self._expect(name, value, f"{type(error).__name__}: {error}")
            self._turns[index] = turn
            time.sleep(self.pause)

    def _expect(self, name: str, wanted: object, found: object) -> None:
        if found != wanted:
            self.wrong.append(f"{name}: {wanted!r} wanted, {str(found)[:200]!r} found")

    def _told(self) -> Sizes:
        printed = self.control.machine.transport.run([("list-panes", "-a", "-F", "#{history_bytes}")])
        gc.collect()
        sizes = Sizes(
            sum(self._turns),
            resident(self.server),
            sum(map(int, printed.split())),
            resident(os.getpid()),
            len(os.listdir("/proc/self/fd")),
        )
        print(
            f"{time.strftime('%T')}  turns {sizes.turns:6}  wrong {len(self.wrong)}  server {sizes.server >> 10} K"
            f"  its histories {sizes.history >> 10} K  this process {sizes.own >> 10} K, {sizes.descriptors} descriptors",
            flush=True,
        )
        return sizes


def resident(pid: int) -> int:
    """The bytes of memory a process has resident, those of its program and libraries left out."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) << 10


def faults(seen: Sequence[Sizes], wrong: Sequence[str]) -> list[str]:
    """What does not hold."""
    first, last = seen[0], seen[-1]
    turns = last.turns - first.turns
    beyond = (last.server - last.history) - (first.server - first.history)
    print(
        f"{turns} turns: server {last.server - first.server:+} bytes, its histories {last.history - first.history:+}:"
        f" {beyond / max(1, turns):.1f} bytes a turn beyond them; this process {last.own - first.own:+} bytes,"
        f" {last.descriptors - first.descriptors:+} descriptors; {len(wrong)} wrong"
    )
    found = [f"wrong: {one}" for one in wrong[:10]]
    if turns < 100:
        found.append(f"only {turns} turns: it tells nothing")
    if beyond > MOST_BYTES * turns:
        found.append(f"the server grew by {beyond / turns:.0f} bytes a turn beyond its histories, not by {MOST_BYTES}")
    if last.own - first.own > OWN_BYTES:
        found.append(f"this process grew by {(last.own - first.own) >> 10} K")
    if last.descriptors - first.descriptors > OWN_DESCRIPTORS:
        found.append(f"this process has {last.descriptors - first.descriptors} descriptors more")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minutes", type=float, nargs="?", default=10.0)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.3, help="seconds between two turns of a session")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two lines")
    parser.add_argument("--spawned", action="store_true", help="a tmux process for each call, not one that stays")
    parser.add_argument("--tmux", help="another tmux than the one in PATH")
    chosen = parser.parse_args()
    with Place():
        if chosen.tmux:
            os.environ["PATH"] = f"{Path(chosen.tmux).resolve().parent}:{os.environ['PATH']}"
        print(f"{shutil.which('tmux')}: {chosen.sessions} sessions, {chosen.minutes:g} minutes", flush=True)
        with Control(resident=not chosen.spawned) as control:
            soak = Soak(control, chosen.sessions, chosen.pause)
            found = faults(soak.run(60 * chosen.minutes, chosen.every), soak.wrong)
            control.kill(all=True)
    print("\n".join(found) or "the promise holds")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
