"""The library: its loop beside the service's, what importing it costs, and what is left of many sessions."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from place import Place, Row, interleaved, timed, until
from warm import BASH, ROUNDS, TYPED

import tmuxctl

SESSIONS, THREADS = 500, 8
IMPORTS = 31
AT_ONCE = 100
"""Sessions of the event loop at a time: the setting limits.sessions allows 200."""


def measure(_: Place) -> list[Row]:
    """All of it."""
    return [*_loop(), *_imports(), *_left()]


def _loop() -> list[Row]:
    with tmuxctl.Client() as client:
        sh = client.new("warm", list(BASH), size="80x24")
        control = client.control

        def ours() -> None:
            assert sh.send_and_see(TYPED, "mark", timeout=10).screen

        def below() -> None:
            assert control.send("warm", TYPED, wait_text="mark", screen=True, timeout=10.0).screen

        for _ in range(20):
            ours()
            below()
        seen = interleaved(ROUNDS * 2, {"ours": timed(ours), "below": timed(below)})
        sh.close()
    ratio = seen["ours"] / seen["below"]
    told = f"{ratio:.2f} x ({seen['ours'] * 1e3:.2f} ms, {seen['below'] * 1e3:.2f} ms; medians of {ROUNDS * 2})"
    return [Row("type, see it, take the screen through the library, beside `Control`", "≤ 1.1 x", told, ratio <= 1.1)]


def _imports() -> list[Row]:
    def start(script: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", script], check=True)

    seen = interleaved(IMPORTS, {"with": timed(start("import tmuxctl")), "without": timed(start("pass"))})
    ratio = seen["with"] / seen["without"]
    told = f"{ratio:.2f} x ({seen['with'] * 1e3:.1f} ms, {seen['without'] * 1e3:.1f} ms; medians of {IMPORTS})"
    return [Row("`python -c 'import tmuxctl'` beside the same without", "≤ 1.3 x", told, ratio <= 1.3)]


class Held:
    """What this process and its server hold: descriptors, threads, processes."""

    def __init__(self, client: tmuxctl.Client) -> None:
        gc.collect()
        self.descriptors = len(os.listdir("/proc/self/fd"))
        self.threads = threading.active_count()
        self.sessions = len(client.list())
        self.processes = _count_processes()

    def beyond(self, before: Held) -> list[int]:
        """How much more of each than before."""
        now = (self.descriptors, self.threads, self.sessions, self.processes)
        then = (before.descriptors, before.threads, before.sessions, before.processes)
        return [a - b for a, b in zip(now, then, strict=True)]


def _count_processes() -> int:
    """Processes that have this place's home, ours and what was started here."""
    marker, count = f"HOME={os.environ['HOME']}".encode(), 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                count += marker in file.read().split(b"\0")
        except OSError:
            continue
    return count


def _left() -> list[Row]:
    rows = []
    client = tmuxctl.Client()
    _ask_one(client, 0)
    for way, play in (("8 threads", _play_threads), ("one event loop", _play_loop)):
        before, began = Held(client), time.monotonic()
        wrong = play(client)
        seconds = time.monotonic() - began
        until(lambda before=before: Held(client).beyond(before) <= [0, 0, 0, 0], seconds=10.0, every=0.5)
        left = Held(client).beyond(before)
        what = f"{SESSIONS} sessions started, asked and closed from {way}: wrong answers"
        told = f"{wrong}; {', '.join(map(str, left))} ({seconds:.0f} s)"
        rows.append(
            Row(
                f"{what}; descriptors, threads, sessions, processes left",
                "0; 0, 0, 0, 0",
                told,
                not wrong and max(left) <= 0,
            )
        )
    client.close()
    return rows


def _ask_one(client: tmuxctl.Client, number: int) -> int:
    with client.new(f"many{number}", list(BASH)) as sh:
        return int(sh.ask(f"echo $(({number} * 2))").text != str(number * 2))


def _play_threads(client: tmuxctl.Client) -> int:
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(lambda number: _ask_one(client, number), range(SESSIONS)))


def _play_loop(client: tmuxctl.Client) -> int:
    async def ask_one(twin: tmuxctl.aio.Client, number: int) -> int:
        async with await twin.new(f"many{number}", list(BASH)) as sh:
            return int((await sh.ask(f"echo $(({number} * 2))")).text != str(number * 2))

    async def play() -> int:
        twin, room = tmuxctl.aio.Client(client=client), asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> int:
            async with room:
                return await ask_one(twin, number)

        found = await asyncio.gather(*map(one, range(SESSIONS)))
        await twin.close()
        return sum(found)

    return asyncio.run(play())
