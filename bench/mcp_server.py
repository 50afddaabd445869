"""The MCP server on its pipes, driven by bare lines of JSON: type, wait and look beside npm's ptyai; its start beside importing the
SDK; and what fifty waits asleep cost.

ptyai is that of TMUXCTL_PTYAI_NODE, or of the folder that `sh tools/setup.sh npm .venv/ptyai-node ptyai@0.1.1` fills. (This file
is not called `mcp`, because the SDK is.)
"""

from __future__ import annotations

import ast
import compileall
import itertools
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from place import TREE, Place, Row

from tools.processes import cpu_seconds

ROUNDS, WARMING = 100, 5
PAUSE = 0.02
"""Seconds between two calls: neither server pays for what the other, or a shell that draws its prompt, still does."""

STARTS = 15
ASLEEP, ASLEEP_SECONDS, WAIT_MS = 50, 60.0, 50_000
PATIENCE = 60.0
"""Seconds after which an answer is missed."""

COLS, ROWS = 120, 40
BASH = {"shell": "bash", "args": ["--norc", "--noprofile"], "cols": COLS, "rows": ROWS}
PTYAI = Path(os.environ.get("TMUXCTL_PTYAI_NODE") or Path(sys.prefix) / "ptyai-node") / "node_modules" / "ptyai"
SDK = ("anyio", "mcp", "mcp_types")
ANSWERING = """
import sys
print('{"jsonrpc": "2.0", "id": 1, "result": {}}', flush=True)
sys.stdin.read()
"""
"""What a process does that has imported the SDK and nothing else: answer as a server does that is ready."""

HANDSHAKE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Answer(NamedTuple):
    """One message of a server, and when its last byte was there (`perf_counter`)."""

    message: dict[str, Any]
    at: float


class Server:
    """A server on a pipe, which has answered `initialize`. Nothing of an SDK is between."""

    def __init__(self, words: Sequence[str]) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self.process.stdin
        assert self.process.stdout
        self.input, self.output = self.process.stdin, self.process.stdout
        self.numbers = itertools.count(1)
        self.received = b""
        try:
            self.start_seconds = self.ask("initialize", HANDSHAKE).at - began
            self.start_cpu = cpu_seconds(self.process.pid, with_children=True)
            self._write({"method": "notifications/initialized"})
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server."""
        with suppress(BrokenPipeError):
            self.input.close()
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()

    def begin(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request; its number."""
        number = next(self.numbers)
        self._write({"id": number, "method": method, "params": params})
        return number

    def begin_call(self, tool: str, arguments: Mapping[str, Any]) -> int:
        """Begin a call of a tool; its number."""
        return self.begin("tools/call", {"name": tool, "arguments": arguments})

    def receive(self, seconds: float = PATIENCE) -> Answer | None:
        """The next answer to a request; None if none comes in time."""
        deadline = time.perf_counter() + seconds
        while True:
            while b"\n" not in self.received:
                if not select.select([self.output], [], [], max(0.0, deadline - time.perf_counter()))[0]:
                    return None
                if not (some := os.read(self.output.fileno(), 1 << 16)):
                    raise RuntimeError(f"{self.process.args!r} ended with {self.process.wait()}")
                self.received += some
            at = time.perf_counter()
            line, _, self.received = self.received.partition(b"\n")
            message = json.loads(line)
            if "id" in message and "method" not in message:
                return Answer(message, at)

    def ask(self, method: str, params: Mapping[str, Any]) -> Answer:
        """Send a request and take its answer; no other is under way."""
        number = self.begin(method, params)
        answer = self.receive()
        if answer is None or answer.message["id"] != number or "result" not in answer.message:
            raise RuntimeError(f"{method}: {answer}")
        return answer

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a tool's result."""
        return read_fields(self.ask("tools/call", {"name": tool, "arguments": arguments}).message)

    def _write(self, message: Mapping[str, Any]) -> None:
        self.input.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def read_fields(message: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a tool's result: ptyai writes them as the text. Raises RuntimeError if it failed."""
    result = message["result"]
    if result.get("isError"):
        raise RuntimeError(result["content"][0]["text"])
    fields: dict[str, Any] = result.get("structuredContent") or json.loads(result["content"][0]["text"])
    return fields


def measure(place: Place) -> list[Row]:
    """The three promises."""
    compileall.compile_dir(TREE / "tmuxctl", quiet=2)
    command = shutil.which("tmuxctl")
    ours = [*([command] if command else [sys.executable, "-m", "tmuxctl"]), "mcp"]
    return [*_beside_ptyai(ours), *_starting(ours), *_asleep(place, ours)]


def _beside_ptyai(words: Sequence[str]) -> list[Row]:
    what = "`pty_write` over stdio: type, wait for a text, take the screen, beside ptyai"
    index = PTYAI / "dist" / "index.js"
    node = shutil.which("node")
    if not node or not index.exists():
        missing = "node" if not node else "npm's ptyai: sh tools/setup.sh npm .venv/ptyai-node ptyai@0.1.1"
        return [Row(what, "≤ 1.0 x", f"needs {missing}", None)]
    version = json.loads((PTYAI / "package.json").read_text())["version"]
    with Server(words) as ours, Server([node, str(index)]) as theirs:
        sides = [(ours, _open(ours, {**BASH, "profile": "none"})), (theirs, _open(theirs, BASH))]
        rounds = [[_trip(*side, number) for side in sides] for number in range(WARMING + ROUNDS)][WARMING:]
    # a machine that stands still for 300 ms makes ptyai give up
    pairs = [(one, other) for one, other in rounds if one is not None and other is not None]
    lost = [sum(times[side] is None for times in rounds) for side in (0, 1)]
    ratio = statistics.median(one / other for one, other in pairs)
    one, other = (statistics.median(side) * 1000 for side in zip(*pairs, strict=True))
    measured = f"{ratio:.2f} x, the median of {len(pairs)} pairs ({one:.2f} ms, {other:.2f} ms; medians)"
    late = [[f"{time * 1000:.1f}" for time in _quantiles(side)] for side in zip(*pairs, strict=True)]
    detail = f"ms at 10, 90 and 99 %: {', '.join(late[0])}; {', '.join(late[1])}; not matched: {lost[0]}, {lost[1]}"
    return [Row(f"{what} {version}", "≤ 1.0 x", measured, ratio <= 1.0 and not lost[0], detail)]


def _quantiles(times: Sequence[float]) -> list[float]:
    ordered = sorted(times)
    return [ordered[int(len(ordered) * part)] for part in (0.1, 0.9, 0.99)]


def _open(server: Server, arguments: Mapping[str, Any]) -> str:
    """A shell at its prompt."""
    session = str(server.call("pty_create", arguments)["session_id"])
    assert server.call("pty_wait", {"session_id": session, "pattern": "[$#]", "settle_ms": 5000})["matched"]
    return session


def _trip(server: Server, session: str, number: int) -> float | None:
    """Seconds from the request to the end of its answer; None if the text was not found."""
    time.sleep(PAUSE)
    mark = f"ark{1000 + number}"
    given = {"session_id": session, "input": f"echo m''{mark}\r", "wait_for": "m" + mark, "include_screen": True}
    began = time.perf_counter()
    answer = server.ask("tools/call", {"name": "pty_write", "arguments": given})
    fields = read_fields(answer.message)
    return answer.at - began if fields["matched"] and f"m{mark}" in fields["screen"] else None


def _starting(words: Sequence[str]) -> list[Row]:
    """From the start of the process until `initialize` is answered."""
    python = [sys.executable, "-c"]
    beside = {"the whole SDK": "import mcp", "what the server imports of it": _sdk_imports()}
    starts: dict[str, Sequence[str]] = {
        "ours": words,
        **{name: [*python, code + ANSWERING] for name, code in beside.items()},
    }
    # the first writes what it compiled
    rounds = [{name: _start(command) for name, command in starts.items()} for _ in range(1 + STARTS)][1:]
    return [_start_row(name, rounds) for name in beside]


def _start(words: Sequence[str]) -> tuple[float, float]:
    """Seconds of processor time, and seconds, until a server has answered."""
    with Server(words) as server:
        return server.start_cpu, server.start_seconds


def _start_row(name: str, rounds: Sequence[Mapping[str, tuple[float, float]]]) -> Row:
    ratios, told = [], []
    for at, what in enumerate(("CPU", "wall")):
        pairs = [(one["ours"][at], one[name][at]) for one in rounds]
        ratios.append(statistics.median(ours / other for ours, other in pairs))
        ours, other = (statistics.median(side) * 1000 for side in zip(*pairs, strict=True))
        told.append(f"{what} {ratios[at]:.2f} x ({ours:.0f} ms, {other:.0f} ms)")
    what = f"start of the MCP server until `initialize` is answered, beside importing {name}"
    measured = f"{', '.join(told)}; medians of {STARTS} pairs, and of {STARTS}"
    return Row(what, "≤ 1.2 x", measured, max(ratios) <= 1.2)


def _sdk_imports() -> str:
    """The lines of the server that import from the SDK."""
    tree = ast.parse((TREE / "tmuxctl" / "surfaces" / "mcp" / "server.py").read_text())
    return "\n".join(ast.unparse(node) for node in tree.body if set(_imported(node)) & set(SDK))


def _imported(node: ast.stmt) -> list[str]:
    """The packages from which a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return [str(node.module).partition(".")[0]] if isinstance(node, ast.ImportFrom) else []


def _asleep(place: Place, words: Sequence[str]) -> list[Row]:
    """Waits for a text that never comes, each begun again from its generation when its time is over."""
    with Server(words) as server:
        for _ in range(ASLEEP):
            server.begin_call("pty_create", {"command": ["sleep", "1000"]})
        created = [server.receive() for _ in range(ASLEEP)]
        sessions = [str(read_fields(one.message)["session_id"]) for one in created if one]
        tmux = int(place.tmux("display-message", "-p", "#{pid}"))
        time.sleep(2)
        pids = (server.process.pid, tmux)
        before = [cpu_seconds(pid, with_children=True) for pid in pids]
        began = time.perf_counter()
        marks, renewed, pending = _wait_for_nothing(server, sessions)
        seconds = time.perf_counter() - began
        used = [(cpu_seconds(pid, with_children=True) - at) / seconds for pid, at in zip(pids, before, strict=True)]
    told = ", ".join(f"{mark - before[0]:.2f}" for mark in marks)
    return [
        Row(
            f"CPU of the MCP server with {ASLEEP} calls of `pty_wait` asleep over {seconds:.0f} s",
            "≤ 1 % of a core",
            f"{used[0]:.2%} (tmux {used[1]:.2%}; {renewed} begun again, {pending} asleep at the end)",
            used[0] <= 0.01 and pending == ASLEEP,
            f"seconds of CPU after each sixth: {told}",
        )
    ]


def _wait_for_nothing(server: Server, sessions: Sequence[str]) -> tuple[list[float], int, int]:
    """The server's processor time after each sixth, how many waits were begun again, and how many are under way at the end."""
    given = {"pattern": "never seen", "timeout_ms": WAIT_MS}
    waits = {server.begin_call("pty_wait", {"session_id": one, **given}): one for one in sessions}
    marks: list[float] = []
    began, renewed = time.perf_counter(), 0
    while len(marks) < 6:
        sixth = began + (len(marks) + 1) * ASLEEP_SECONDS / 6
        answer = server.receive(max(0.0, sixth - time.perf_counter()))
        if answer is None:
            marks.append(cpu_seconds(server.process.pid, with_children=True))
            continue
        session, fields = waits.pop(answer.message["id"]), read_fields(answer.message)
        if not fields["timed_out"]:
            raise RuntimeError(f"a wait for nothing ended: {fields}")
        again = {"session_id": session, "since_generation": fields["generation"], **given}
        waits[server.begin_call("pty_wait", again)] = session
        renewed += 1
    return marks, renewed, len(waits)
