"""A server whose API is used as AgentPTY's is: by its clients, by curl, and by hook scripts."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from programs import HERE, claude

PATIENCE = 30.0
SCRIPT = HERE / "agentpty_hook.py"


class PtyReply:
    """An answer of the server, read whole."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body

    def __getitem__(self, name: str) -> Any:
        assert self.status == 200, self.body
        return json.loads(self.body)[name]

    def error(self) -> tuple[int, str]:
        """The status and the reason of an error object."""
        assert self.status >= 400, self.body
        return self.status, json.loads(self.body)["error"]["reason"]


class PtyServer:
    """A server on loopback. What it writes to standard error is in `log`."""

    def __init__(self, place: Path, *words: str, port: int = 0, **variables: str) -> None:
        # the socket of each server is in a folder of its own, as tests run side by side
        self.place, self.log = place, place / "serve.log"
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(place)} | variables
        environment["PATH"] = f"{place / 'bin'}{os.pathsep}{environment['PATH']}"
        started = [
            sys.executable,
            "-m",
            "tmuxctl",
            "serve",
            "--listen",
            f"127.0.0.1:{port}",
            *(words or ("--no-token",)),
        ]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*started, "--log"], env=environment, cwd=place, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout
        told = [self.process.stdout.readline(), self.process.stdout.readline()]
        assert "http://" in told[1], (told, self.log.read_text())
        self.port = int(told[1].rpartition(":")[2])

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> PtyReply:
        """One request, with JSON unless the body is bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            return PtyReply(answer.status, answer.read())
        finally:
            connection.close()

    def ask(self, session: str | None, message: str, **more: Any) -> PtyReply:
        named = {} if session is None else {"session_id": session}
        return self.call("POST", "/ask", {**named, "message": message, "timeout": PATIENCE, **more})

    def begin(self, session: str, message: str, **more: Any) -> Callable[[], PtyReply]:
        """Ask in a thread; what is returned waits for the reply."""
        found: list[PtyReply] = []
        thread = threading.Thread(target=lambda: found.append(self.ask(session, message, **more)))
        thread.start()

        def reply() -> PtyReply:
            thread.join(PATIENCE)
            return found[0]

        return reply

    def curl(self, command: str) -> Any:
        """What a command line with curl prints, as JSON."""
        typed = command.replace("127.0.0.1:8765", f"127.0.0.1:{self.port}")
        done = subprocess.run(["sh", "-c", typed], capture_output=True, text=True, timeout=PATIENCE, check=True)
        return json.loads(done.stdout)

    def stop(self) -> None:
        """End it; sessions go on."""
        self.process.terminate()
        self.process.wait(PATIENCE)


def prepare(place: Path, *, hooks: bool = False) -> None:
    """Put the stand-in for Claude Code into `bin`, and with `hooks` AgentPTY's hooks into the project's settings."""
    claude.install(place / "bin")
    if hooks:
        write_hooks(place)


def write_hooks(project: Path) -> None:
    """A project's settings with hooks that call a script as AgentPTY's example does."""
    events = {"UserPromptSubmit": "prompt-submit", "Stop": "stop", "StopFailure": "stop-failure"}
    commands = {on: f"AGENTPTY_HOOK_EVENT={event} {sys.executable} {SCRIPT}" for on, event in events.items()}
    settings = {"hooks": {on: [{"hooks": [{"type": "command", "command": one}]}] for on, one in commands.items()}}
    file = project / ".claude/settings.local.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings))
