"""The server is replaced by another version while sessions run and clients follow them."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from served import PATIENCE, HttpServer
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import unix_connect

from tmuxctl import __version__

ROOT = Path(__file__).resolve().parents[3]
NEXT = "99.0"
HALF, WHOLE = range(1, 501), range(1, 1001)
COUNT = "stty -echo; read a; seq 1 500; read a; seq 501 1000; exec cat"
BY_ITSELF = 99
THROUGH = f"""
import sys
from tmuxctl.surfaces.cli.command_server import client
status = client.run(sys.argv[1:])
sys.exit({BY_ITSELF} if status is None else status)
"""
"""A quick command, by a server of commands; `BY_ITSELF` where none of this version serves it."""


class Version:
    """A tmuxctl as it is installed: its commands, and the environment of its server."""

    def __init__(self, name: str, tree: str | None = None) -> None:
        self.name = name
        self.env = {"PYTHONPATH": tree} if tree else {}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["env", *(f"{name}={value}" for name, value in self.env.items()), sys.executable, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str]:
        """How a command ends, as a user types it, and what it prints."""
        with self.start("-m", "tmuxctl", *words) as process:
            printed, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        return process.returncode, printed

    def is_served(self) -> bool:
        """Whether a server of commands carries out its quick commands."""
        with self.start("-c", THROUGH, "ls") as process:
            process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, BY_ITSELF)
        return process.returncode == 0


@pytest.fixture(scope="module")
def following(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """The version that follows: this tree with another number."""
    tree = tmp_path_factory.mktemp("next")
    for name in ("tmuxctl", "plugins", "profiles"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    module = tree / "tmuxctl/__init__.py"
    text = module.read_text()
    assert f'__version__ = "{__version__}"' in text
    module.write_text(text.replace(f'__version__ = "{__version__}"', f'__version__ = "{NEXT}"'))
    return Version(NEXT, str(tree))


@pytest.fixture
def present() -> Version:
    return Version(__version__)


def version_of(server: HttpServer) -> str:
    return str(server.get("/healthz").json["version"])


def numbers(text: str) -> list[int]:
    return [int(line) for line in text.split() if line.isdecimal()]


def read_terminal(server: HttpServer, since: int, last: bytes) -> Iterator[bytes]:
    """The bytes of the terminal from an offset on, until these are among them; then those until the server lets it go, which says
    nothing of an end of the program."""
    with unix_connect(server.path, f"ws://localhost/v1/sessions/count/terminal?since={since}") as terminal:
        data = b""
        while last not in data:
            message = terminal.recv(PATIENCE)
            data += message if isinstance(message, bytes) else b""
        yield data
        data = b""
        with contextlib.suppress(ConnectionClosed):
            while True:
                message = terminal.recv(PATIENCE)
                assert isinstance(message, bytes) or json.loads(message)["type"] == "error", message
                data += message if isinstance(message, bytes) else b""
        yield data


@pytest.mark.night
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_is_replaced_by_another_version_under_sessions_and_clients(
    start_server: Callable[..., HttpServer],
    present: Version,
    following: Version,
    until: Callable[..., Any],
    number: signal.Signals,
) -> None:
    old = start_server()
    assert version_of(old) == present.name
    until(present.is_served)
    assert not following.is_served()
    old.new("shell", "bash", "--norc")
    old.new("count", "sh", "-c", COUNT)
    before = {one["id"]: one["pid"] for one in old.get("/v1/sessions").json["sessions"]}

    # what clients of the old one follow
    changes = old.events("/v1/events")
    seen = changes.next(lambda event: event["data"]["session"] == "count")["id"]
    output = old.events("/v1/sessions/count/events")
    waiting = old.connect()
    waiting.request("POST", "/v1/sessions/count/wait", json.dumps({"text": "never", "timeout": "none"}))
    command = present.start("-c", THROUGH, "wait", "count", "--text", "^1000$", "--timeout", "1m")
    # the server of commands has it under way
    until(lambda: psutil.Process(command.pid).net_connections("unix"))
    old.post("/v1/sessions/count/keys", {"keys": ["Enter"]})
    text, cursor = "", ""
    while "\n500\n" not in text:
        event = output.next(lambda event: event["event"] == "output")
        text, cursor = text + event["data"]["text"], event["id"]
    terminal = read_terminal(old, 0, b"\n500\r\n")
    drawn = next(terminal)

    old.stop(number)
    changes.await_end()
    output.await_end()
    assert next(terminal) == b""
    try:
        assert waiting.getresponse().status >= 400
    except (http.client.HTTPException, OSError):
        # a server that is killed says nothing
        assert number == signal.SIGKILL
    waiting.close()
    # commands of both versions do without a server
    until(lambda: not present.is_served())
    for version in (present, following):
        assert "count" in version.run("ls")[1]
    present.run("keys", "count", "Enter")
    assert command.wait(PATIENCE) == 0
    command.communicate()

    new = start_server("--listen", f"127.0.0.1:{old.port}", listen=False, **following.env)
    assert (version_of(new), new.path, new.port) == (following.name, old.path, old.port)
    assert {
        one["id"]: one["pid"] for one in new.get("/v1/sessions", tcp=True, token=old.token).json["sessions"]
    } == before
    # who comes back misses nothing: of changes it is told the present states, of the output what it has not had
    again = new.events("/v1/events", Last_Event_ID=seen)
    assert {again.next()["data"]["session"] for _ in before} == {"shell", "count"}
    resumed = new.events("/v1/sessions/count/events", Last_Event_ID=cursor)
    while "\n1000\n" not in text:
        text += resumed.next(lambda event: event["event"] == "output")["data"]["text"]
    assert numbers(text) == [*WHOLE]
    rest = next(read_terminal(new, len(drawn), b"\n1000\r\n"))
    assert numbers(drawn.decode()) == [*HALF]
    assert numbers((drawn + rest).decode()) == [*WHOLE]
    assert new.post("/v1/sessions/count/wait", {"text": "^1000$", "since": cursor}).status == 200
    assert new.post("/v1/sessions/shell/exec", {"command": ["echo still"]}).json["output"] == "still\n"
    until(following.is_served)
    assert not present.is_served()
    for version in (present, following):
        assert version.run("exec", "shell", "echo there")[1] == "there\n"
    for stream in (changes, output, again, resumed):
        stream.close()
