"""A server whose machines behind a gateway are reached over Unix sockets: simulated ones by the dozen, and real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from served import PATIENCE, HttpServer

TESTS = Path(__file__).resolve().parent.parent


class FarSite:
    """What is started for one test, below its own folder: `machines` are entries for machines.toml."""

    def __init__(self, place: Path, machines: dict[str, str]) -> None:
        self.place, self.calls = place, place / "calls"
        self.started: list[subprocess.Popen[str]] = []
        for folder in (self.calls, place / "run", place / "config/tmuxctl"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.environment = {
            **os.environ,
            "PYTHONPATH": f"{TESTS}:{TESTS.parent}",
            "TMUXCTL_TEST_CALLS": str(self.calls),
            "XDG_RUNTIME_DIR": str(place / "run"),
            "XDG_CONFIG_HOME": str(place / "config"),
        }
        self.name_machines(machines)

    def name_machines(self, machines: dict[str, str]) -> None:
        """Have machines.toml name these."""
        text = "".join(f"[{name}]\n{entry}\n" for name, entry in machines.items())
        (self.place / "config/tmuxctl/machines.toml").write_text(text)

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        """Start a Python program of the tests'."""
        process = subprocess.Popen(
            [sys.executable, *words],
            env={**self.environment, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def simulate(self, machines: int, sessions: int) -> subprocess.Popen[str]:
        """Start `many_machines.py`."""
        process = self.start(str(TESTS / "web/many_machines.py"), str(self.calls), str(machines), str(sessions))
        assert process.stdout
        assert process.stdout.readline() == "listening\n"
        return process

    def serve(self) -> HttpServer:
        """Start the server, with a page of all machines that asks for no login."""
        options = ("--json", "serve", "--no-token", "--all-machines", "--listen", "127.0.0.1:0")
        process = self.start(str(TESTS / "web/served_far.py"), *options)
        assert process.stdout
        return HttpServer(process, json.loads(process.stdout.readline())["listening"], "")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        command = [sys.executable, str(TESTS / "web/served_far.py"), *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)

    def end(self) -> None:
        """End all that was started."""
        for process in self.started:
            process.kill()
            process.wait(PATIENCE)
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


def change(simulated: subprocess.Popen[str], line: str) -> None:
    """Change a session of a simulated machine: `MACHINE NUMBER STATE [TEXT]`."""
    assert simulated.stdin
    assert simulated.stdout
    simulated.stdin.write(line + "\n")
    simulated.stdin.flush()
    assert simulated.stdout.readline() == "changed\n"


def memory_of(pid: int) -> int:
    """Resident memory of a process in bytes (proc(5), VmRSS)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) << 10
