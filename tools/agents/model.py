"""The local model: started for a run, its request log, and the text it gives to a prompt."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .programs import ROOT
from .scripted_model import script
from .scripted_model.conversation import Tool, Turn
from .scripted_model.events import Text
from .scripted_model.server import BODIES, REQUESTS

PATIENCE = 10.0
"""Seconds in which the model must have started."""


class Request(NamedTuple):
    """One request of a program, as the model saw it. `end` is when the last byte of the answer was given, None while it is
    open; `auxiliary` is what a program asks on its own (titles, suggestions)."""

    n: int
    time: float
    end: float | None
    behaviour: str
    user: str
    length: int
    sha256: str
    results: tuple[str, ...]
    dialect: str
    tools: tuple[str, ...]
    outcome: str

    @property
    def auxiliary(self) -> bool:
        return self.behaviour.startswith("aux-")


def request(entry: Mapping[str, Any]) -> Request:
    """A line of the log."""
    seconds = entry.get("seconds")
    return Request(
        n=entry.get("n", 0),
        time=entry["time"],
        end=None if seconds is None else entry["time"] + seconds,
        behaviour=entry.get("behaviour", ""),
        user=entry.get("user", ""),
        length=entry.get("user_length", 0),
        sha256=entry.get("user_sha256", ""),
        results=tuple(entry.get("results", ())),
        dialect=entry.get("dialect", ""),
        tools=tuple(entry.get("tools", ())),
        outcome=entry.get("outcome", ""),
    )


def sha256(text: str) -> str:
    """The model's fingerprint of a prompt: it takes no blank around a prompt into account."""
    return hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()


class Model:
    """The model's server, as a process of its own on the loopback interface."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="tca-model-"))
        self.port_file = folder / "port"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tools.agents.scripted_model", "--port-file", str(self.port_file)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.port = self._port()
        self.url = f"http://127.0.0.1:{self.port}{REQUESTS}"
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def _port(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while not (self.port_file.exists() and self.port_file.read_text().endswith("\n")):
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.process.kill()
                raise RuntimeError("the local model does not start")
            time.sleep(0.02)
        return int(self.port_file.read_text())

    def requests(self, holding: str = "") -> list[Request]:
        """Every request whose prompt holds this text, oldest first."""
        with self.opener.open(self.url, timeout=PATIENCE) as answer:
            entries = json.load(answer)
        return [one for one in map(request, entries) if holding in one.user]

    def bodies(self) -> list[str]:
        """The newest requests, whole."""
        with self.opener.open(f"http://127.0.0.1:{self.port}{BODIES}", timeout=PATIENCE) as answer:
            return [str(body) for body in json.load(answer)]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.port_file.unlink(missing_ok=True)
        self.port_file.parent.rmdir()


def text(one: Request, attempt: int = 1) -> str:
    """What the model answers to a request, by its own script; `attempt` counts the tries of a prompt that fails first."""
    turn = Turn(one.dialect, one.user, one.results, tuple(map(Tool, one.tools)))
    events = script.answer(turn, lambda _: attempt).events
    return "".join(event.text for event in events if isinstance(event, Text))


def tags(requests: Iterable[Request]) -> list[str]:
    """The marks at the answers' ends."""
    return re.findall(r"FAKE-END:\S+", "\n".join(map(text, requests)))
