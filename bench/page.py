"""The page of `tmuxctl serve` in headless Chromium: a key until it is on the screen, and the overview with 200 sessions.

python bench/page.py [--sessions 200 --printing 20 --seconds 30]: it prints what it measured. `make nightly SUITES=web` installs
what it needs.
With --minutes 60 it measures the memory of the page and of the server instead, once a minute for so long.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.processes import cpu_seconds, resident_bytes

KEYS, WARMING = 200, 20
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

LISTEN = """() => {
    window.pressed = 0;
    window.took = [];
    const { terminal } = window.tmuxctlTerminal();
    document.addEventListener("keydown", (event) => { window.pressed = event.timeStamp; }, true);
    // what was typed is drawn: the rows are in the document
    terminal.onRender(() => {
        if (!window.pressed) return;
        window.took.push(performance.now() - window.pressed);
        window.pressed = 0;
    });
}"""

FRAMES = """seconds => new Promise((done) => {
    const began = performance.now();
    let frames = 0, before = began, longest = 0;
    const next = (now) => {
        frames += 1;
        longest = Math.max(longest, now - before);
        before = now;
        if (now - began < seconds * 1000) requestAnimationFrame(next);
        else done([frames / ((now - began) / 1000), longest]);
    };
    requestAnimationFrame(next);
})"""


PRINTS = "while :; do date +%N; sleep 1; done"
FLOODS = "i=0; while :; do i=$((i+1)); echo line $i of what this program prints, and some more text; sleep 0.02; done"
"""Fills the lines that the page keeps of a terminal, 10,000, within the first minutes."""

NICENESS = 10
"""Of the browser while the memory is measured: an hour is long for others at work on this machine."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--printing", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--minutes", type=int, default=0, help="measure the memory for so long")
    wanted = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tc-page-", dir="/tmp"))
    run = folder / "run"
    run.mkdir(mode=0o700)
    about = {"HOME": str(folder), "TMUX_TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(run), "TMUXCTL_SOCKET": "bench"}
    env = {**os.environ, **about}
    words = [sys.executable, "-m", "tmuxctl", "--json", "serve", "--no-token", "--listen", "127.0.0.1:0"]
    program = next(found for name in PROGRAMS if (found := shutil.which(name)))
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        address = next(one for one in json.loads(server.stdout.readline())["listening"] if not one.startswith("unix:"))
        try:
            if wanted.minutes:
                start_sessions(env, wanted.sessions - 1, wanted.printing)
                flooding = tmuxctl(env, "new", "flood", "--no-wait", "--", "sh", "-c", FLOODS)["id"]
                os.nice(NICENESS)
            with sync_playwright() as playwright:
                options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
                browser = playwright.chromium.launch(executable_path=program, args=options)
                if wanted.minutes:
                    measure_memory(browser, address, flooding, wanted, server.pid)
                else:
                    measure_keys(browser, address, env)
                    measure_overview(browser, address, env, wanted, server.pid)
                browser.close()
        finally:
            server.terminate()
            subprocess.run(["tmux", "-L", "bench", "kill-server"], env=env)
    shutil.rmtree(folder, ignore_errors=True)


def tmuxctl(env: dict[str, str], *words: str) -> Any:
    done = subprocess.run([sys.executable, "-m", "tmuxctl", "--json", *words], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def measure_keys(browser: Browser, address: str, env: dict[str, str]) -> None:
    """From the event of a key in the browser until the terminal has drawn what came back for it."""
    session = tmuxctl(env, "new", "keys", "--", "cat")["id"]
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{address}/session/{session}")
    page.wait_for_function("() => window.tmuxctlTerminal?.()?.isLive")
    page.wait_for_timeout(500)
    page.evaluate(LISTEN)
    for number in range(KEYS + WARMING):
        page.keyboard.press("abcdefghij"[number % 10])
        page.wait_for_function(f"() => window.took.length > {number}")
        if number % 60 == 59:
            page.keyboard.press("Control+u")
            page.wait_for_timeout(100)
            page.evaluate("number => { window.took.length = number; window.pressed = 0; }", number + 1)
        # not in step with the frames
        page.wait_for_timeout(7 + number % 13)
    took = page.evaluate("() => window.took")[WARMING:]
    page.close()
    ninth = statistics.quantiles(took, n=10)[-1]
    print(f"key to screen: median {statistics.median(took):.1f} ms, 9 of 10 within {ninth:.1f} ms, of {len(took)} keys")


def measure_overview(
    browser: Browser, address: str, env: dict[str, str], wanted: argparse.Namespace, server: int
) -> None:
    """Frames of the page while sessions print, the processor time of the server meanwhile, and the memory of the page.
    One of the sessions is that of the keys."""
    start_sessions(env, wanted.sessions - 1, wanted.printing)
    page = browser.new_page(viewport={"width": 1920, "height": 1080})
    page.goto(address)
    page.wait_for_function(f"() => document.querySelectorAll('.tile').length >= {wanted.sessions}")
    page.wait_for_timeout(10_000)
    heap = page.evaluate("() => { window.gc?.(); return performance.memory.usedJSHeapSize / 1048576; }")
    used, began = cpu_seconds(server), time.monotonic()
    rate, longest = page.evaluate(FRAMES, wanted.seconds)
    share = (cpu_seconds(server) - used) / (time.monotonic() - began)
    after = page.evaluate("() => performance.memory.usedJSHeapSize / 1048576")
    print(
        f"{wanted.sessions} tiles, {wanted.printing} print each second: {rate:.0f} frames a second, the longest {longest:.0f} ms; "
        f"server {share:.1%} of a core; heap of the page {heap:.1f} -> {after:.1f} MiB"
    )


def start_sessions(env: dict[str, str], count: int, printing: int) -> None:
    """Start sessions of which so many print each second."""
    for number in range(count):
        tmuxctl(env, "new", f"s{number}", "--no-wait", "--", "sh", "-c", PRINTS if number < printing else "exec cat")


def measure_memory(browser: Browser, address: str, flooding: str, wanted: argparse.Namespace, server: int) -> None:
    """The memory of the overview, of a page with a terminal that prints 50 lines a second, and of the server, once a minute; and
    how the last quarter of the time differs from the first."""
    watched = {}
    for name, path, size in (("overview", "", (1920, 1080)), ("session", f"/session/{flooding}", (1280, 800))):
        page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        page.goto(address + path)
        watched[name] = page
    tiles = f"() => document.querySelectorAll('.tile').length >= {wanted.sessions}"
    watched["overview"].wait_for_function(tiles, timeout=120_000)
    watched["session"].wait_for_function("() => window.tmuxctlTerminal?.()?.isLive")
    probes = {name: MemoryProbe(page) for name, page in watched.items()}
    found: dict[str, list[float]] = {}
    began = time.monotonic()
    for minute in range(1, wanted.minutes + 1):
        watched["overview"].wait_for_timeout(max(0.0, began + 60 * minute - time.monotonic()) * 1000)
        taken = {f"{name} {what}": value for name, probe in probes.items() for what, value in probe.read().items()}
        taken["server MiB"] = resident_bytes(server) / 1048576
        print(f"minute {minute}: " + ", ".join(f"{name} {value:.1f}" for name, value in taken.items()), flush=True)
        for name, value in taken.items():
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        quarter = max(1, len(values) // 4)
        first, last = statistics.median(values[:quarter]), statistics.median(values[-quarter:])
        print(f"{name}: {first:.1f} in the first quarter, {last:.1f} in the last ({last / max(first, 0.1) - 1:+.1%})")


class MemoryProbe:
    """Reads how much memory a page's scripts and its document hold."""

    def __init__(self, page: Page) -> None:
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable")

    def read(self) -> dict[str, float]:
        """After what is not used any more was given back."""
        # what the first collection finishes the second one frees
        for _ in range(2):
            self.session.send("HeapProfiler.collectGarbage")
        told = {one["name"]: one["value"] for one in self.session.send("Performance.getMetrics")["metrics"]}
        heap = self.session.send("Runtime.getHeapUsage")
        return {
            "heap MiB": heap["usedSize"] / 1048576,
            # the rows of a terminal are typed arrays, which stand beside the heap
            "arrays MiB": heap["backingStorageSize"] / 1048576,
            "nodes": told["Nodes"],
            "listeners": told["JSEventListeners"],
        }


if __name__ == "__main__":
    main()
