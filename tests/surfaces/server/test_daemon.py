"""The daemon protocol: lines of JSON that make, change and end sessions, and a socket of raw bytes for each."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest
from programs.raw_source import made

from tmuxctl.operations import current
from tmuxctl.surfaces.server.calls import Calls
from tmuxctl.surfaces.server.logs import AuditLog
from tmuxctl.surfaces.server.metrics import Metrics

PATIENCE = 30.0
PROGRAMS = Path(__file__).resolve().parent.parent.parent / "programs"
MEGABYTE = 1 << 20
TMUXCTL = (sys.executable, "-m", "tmuxctl")


class JsonLines:
    """A client of the protocol."""

    def __init__(self, path: str) -> None:
        self.connection = connect(path)
        self.replies: IO[bytes] = self.connection.makefile("rb")

    def write(self, line: bytes) -> Any:
        """Send a line, and return the reply."""
        self.connection.sendall(line)
        return self.read()

    def read(self) -> Any:
        return json.loads(self.replies.readline() or "null")

    def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        reply = self.write(json.dumps({"type": kind, **fields}).encode() + b"\n")
        assert isinstance(reply, dict)
        return reply

    def create(self, *words: str, **fields: Any) -> tuple[str, str]:
        """A new session: its id, and the path of its socket."""
        reply = self.ask("create-session", shell=[*words], **fields)
        assert reply["success"], reply
        return reply["sessionId"], reply["socketPath"]

    def list(self) -> dict[str, dict[str, Any]]:
        return {session["sessionId"]: session for session in self.ask("list")["sessions"]}

    def close(self) -> None:
        self.replies.close()
        self.connection.close()


def connect(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE)
    connection.connect(path)
    return connection


def read_until(connection: socket.socket, word: bytes) -> bytes:
    """What comes, up to a word and what came with it."""
    found = b""
    while word not in found:
        data = connection.recv(65536)
        assert data, f"it ended: {found[-500:]!r}"
        found += data
    return found


def read_all(connection: socket.socket) -> bytes:
    found = bytearray()
    while data := connection.recv(MEGABYTE):
        found += data
    return bytes(found)


class DaemonProcess:
    """A process of `tmuxctl serve` with the protocol at a path."""

    def __init__(self, path: Path, *options: str) -> None:
        self.path = str(path)
        words = [*TMUXCTL, "--json", "serve", "--daemon-socket", self.path, *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.addresses = json.loads(self.process.stdout.readline())["listening"]

    def client(self) -> JsonLines:
        return JsonLines(self.path)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        assert self.process.stdout
        self.process.stdout.close()
        return status


Start = Callable[..., DaemonProcess]


@pytest.fixture
def start(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a server whose protocol is at `d.sock`, with these options."""
    (place / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "run"))
    made: list[DaemonProcess] = []

    def run(*options: str) -> DaemonProcess:
        made.append(DaemonProcess(place / "d.sock", *options))
        return made[-1]

    yield run
    for one in made:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)


@pytest.fixture
def daemon(start: Start) -> Iterator[JsonLines]:
    """A client of a server of its own."""
    client = start().client()
    yield client
    client.close()


def run(*words: str) -> str:
    """A command of tmuxctl's, and what it prints."""
    return subprocess.run([*TMUXCTL, *words], capture_output=True, text=True, check=True).stdout


def program(name: str) -> tuple[str, str]:
    return "python3", str(PROGRAMS / name)


def mode_of(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def memory_of(pid: int) -> int:
    """Bytes of a process that are in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_exchange_of_the_protocol(daemon: JsonLines, place: Path) -> None:
    (place / "workspace").mkdir()
    about = {"cols": 100, "rows": 30, "shell": "/bin/sh", "cwd": f"{place}/workspace"}
    reply = daemon.ask("create-session", **about)
    assert reply.keys() == {"success", "sessionId", "socketPath"}
    assert reply["success"] is True
    assert reply["sessionId"].startswith("pty-")
    path = reply["socketPath"]
    assert (mode_of(path), mode_of(os.path.dirname(path)), mode_of(str(place / "d.sock"))) == (0o600, 0o700, 0o600)
    terminal = connect(path)
    terminal.sendall(b"pwd; stty size\n")
    assert f"{place}/workspace\r\n30 100\r\n".encode() in read_until(terminal, b"30 100\r\n")
    session = reply["sessionId"]
    assert daemon.ask("resize", sessionId=session, cols=90, rows=20) == {
        "success": True, "sessionId": session, "cols": 90, "rows": 20,
    }  # fmt: skip
    terminal.sendall(b"stty size\n")
    read_until(terminal, b"20 90\r\n")
    listed = daemon.list()[session]
    assert (listed["socketPath"], listed["cols"], listed["command"]) == (path, 90, ["/bin/sh"])
    assert daemon.ask("close", sessionId=session) == {"success": True, "sessionId": session}
    read_all(terminal)
    assert not os.path.exists(path)
    assert session not in daemon.list()
    failed = daemon.ask("close", sessionId=session)
    assert (failed["success"], failed["error"]) == (False, f"session {session} was ended")


def test_the_first_client_gets_everything_and_others_what_comes_from_then_on(daemon: JsonLines, until: Any) -> None:
    session, path = daemon.create("sh", "-c", "echo early; read x; echo late $x")
    connect(path).close()
    until(lambda: "early" in run("log", session))
    first = connect(path)
    assert read_until(first, b"early\r\n") == b"early\r\n"
    second = connect(path)
    second.sendall(b"yes\n")
    assert read_all(second) == b"yes\r\nlate yes\r\n"
    assert read_all(first) == b"yes\r\nlate yes\r\n"
    assert read_all(connect(path)) == b""
    # a program that has ended before anybody came
    _, path = daemon.create("sh", "-c", "echo quick")
    until(lambda: all(one["state"] == "exited" for one in daemon.list().values()))
    assert read_all(connect(path)) == b"quick\r\n"


@pytest.mark.night
def test_ten_megabytes_come_and_go_byte_for_byte(daemon: JsonLines) -> None:
    size = 10 * MEGABYTE
    _, path = daemon.create(*program("raw_source.py"), f"{size}")
    terminal = connect(path)
    read_until(terminal, b"READY")
    terminal.sendall(b"x")
    assert read_all(terminal) == made(size)
    _, path = daemon.create(*program("raw_sink.py"), f"{size}")
    terminal = connect(path)
    read_until(terminal, b"READY")
    data = bytes(range(256)) * 4 + random.Random(3).randbytes(size - 1024)
    terminal.sendall(data)
    assert read_until(terminal, b"END").strip(b".") == f"{hashlib.sha256(data).hexdigest()} 0 END".encode()


def test_a_session_that_is_closed_keeps_the_rest_for_its_readers(daemon: JsonLines, until: Any) -> None:
    session, path = daemon.create(*program("raw_source.py"), f"{4 * MEGABYTE}")
    terminal = connect(path)
    read_until(terminal, b"READY")
    terminal.sendall(b"x")
    until(lambda: daemon.list()[session]["state"] == "exited")
    assert daemon.ask("close", sessionId=session)["success"]
    assert read_all(terminal) == made(4 * MEGABYTE)


@pytest.mark.night
def test_what_a_program_does_not_read_stays_with_its_client(start: Start, place: Path, until: Any) -> None:
    server = start()
    daemon, size, go = server.client(), 8 * MEGABYTE, place / "go"
    _, path = daemon.create(*program("raw_sink.py"), f"{size}", str(go))
    terminal = connect(path)
    read_until(terminal, b"READY")
    tmux = int(subprocess.check_output(["tmux", "-L", os.environ["TMUXCTL_SOCKET"], "display-message", "-p", "#{pid}"]))
    before = memory_of(server.process.pid) + memory_of(tmux)
    data, sent = random.Random(4).randbytes(size), 0
    # as long as a second goes by in which nothing more is taken
    while sent < size and select.select([], [terminal], [], 1.0)[1]:
        sent += terminal.send(data[sent : sent + 4096])
    assert sent < MEGABYTE
    assert memory_of(server.process.pid) + memory_of(tmux) - before < 4 * MEGABYTE
    other = connect(path)
    go.touch()
    # it goes away as soon as all is sent, and never reads what is printed: what it sent is typed all the same
    terminal.sendall(data[sent:])
    terminal.close()
    assert hashlib.sha256(data).hexdigest().encode() in read_until(other, b"END")


@pytest.mark.night
def test_a_reader_that_is_too_slow_gets_no_gap(
    start: Start, place: Path, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    (place / "config.toml").write_text('[journal]\nlimit = "256K"\n')
    monkeypatch.setenv("TMUXCTL_CONFIG", str(place / "config.toml"))
    daemon, size = start().client(), 4 * MEGABYTE
    _, path = daemon.create(*program("raw_source.py"), f"{size}")
    terminal = connect(path)
    read_until(terminal, b"READY")
    terminal.sendall(b"x")
    until(lambda: all(session["state"] == "exited" for session in daemon.list().values()))
    found = read_all(terminal)
    assert 0 < len(found) < size
    assert made(size).startswith(found)


@pytest.mark.night
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_sessions_and_their_sockets_outlive_the_server(start: Start, number: int) -> None:
    server = start()
    daemon = server.client()
    name, used = daemon.create("sh")
    _, unused = daemon.create("sh", "-c", "echo unread; read x")
    terminal = connect(used)
    terminal.sendall(b"x=kept; echo be''fore\n")
    read_until(terminal, b"before")
    # with the next bytes it is written down that the first ones were read
    terminal.sendall(b"echo mo''re\n")
    read_until(terminal, b"more")
    read_all_of(server, terminal, number)
    daemon = start().client()
    assert daemon.list()[name]["socketPath"] == used
    again = connect(used)
    again.sendall(b"echo $x behi''nd\n")
    found = read_until(again, b"kept behind")
    assert b"before" not in found
    assert read_until(connect(unused), b"unread\r\n") == b"unread\r\n"


def read_all_of(server: DaemonProcess, terminal: socket.socket, number: int) -> None:
    """End a server, and find the end of a connection to it."""
    assert server.end(number) == (0 if number == signal.SIGTERM else -number)
    read_all(terminal)


@pytest.mark.night
def test_sessions_that_are_gone_leave_no_socket(start: Start, until: Any) -> None:
    server = start()
    daemon = server.client()
    name, path = daemon.create("sh")
    other, left = daemon.create("sh")
    run("kill", name)
    assert daemon.list().keys() == {other}
    assert not os.path.exists(path)
    server.end(signal.SIGKILL)
    run("kill", other)
    assert os.path.exists(left)
    assert start().client().list() == {}
    assert not os.path.exists(left)


@pytest.mark.night
def test_a_session_that_was_made_elsewhere_gets_a_socket_when_it_is_opened(daemon: JsonLines) -> None:
    run("new", "mine", "--", "sh")
    assert daemon.list()["mine"]["socketPath"] is None
    reply = daemon.ask("open", sessionId="mine")
    assert reply == {"success": True, "sessionId": "mine", "socketPath": daemon.list()["mine"]["socketPath"]}
    assert daemon.ask("open-session", sessionId=daemon.list()["mine"]["id"]) == reply
    terminal = connect(reply["socketPath"])
    terminal.sendall(b"echo op''en\n")
    read_until(terminal, b"open\r\n")
    run("rename", "mine", "yours")
    # a client that sends no more reads on
    terminal.sendall(b"echo re''named\n")
    terminal.shutdown(socket.SHUT_WR)
    read_until(terminal, b"renamed\r\n")
    run("kill", "yours")
    read_all(terminal)


BAD_LINES = (
    b"nonsense", b"[1]", b'"x"', b"{}", b"\0", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 20_000,
    b'{"type": 5}', b'{"type": "bake"}', b'{"type": "list"} x', b'{"type": "list", "x": 1}',
    b'{"type": "resize", "sessionId": "x"}', b'{"type": "resize", "sessionId": "x", "cols": 1.5, "rows": 2}',
    b'{"type": "create-session", "cols": "a"}', b'{"type": "create-session", "cols": true}',
    b'{"type": "create-session", "cols": 5000}', b'{"type": "create-session", "rows": ' + b"9" * 5000 + b"}",
    b'{"type": "create-session", "cwd": "/nonexistent"}', b'{"type": "create-session", "cwd": "/\\u0000"}',
    b'{"type": "create-session", "shell": ""}', b'{"type": "create-session", "shell": "sh \\"x"}',
    b'{"type": "create-session", "shell": "/\\ud800"}', b'{"type": "create-session", "shell": "/\\u0000"}',
    b'{"type": "create-session", "shell": "/tmp"}', b'{"type": "create-session", "shell": ["nosuchprogram"]}',
    b'{"type": "create-session", "env": {"A": 1}}', b'{"type": "create-session", "env": {"A=B": "1"}}',
    b'{"type": "close", "sessionId": "../x"}', b'{"type": "close", "sessionId": "*"}',
    b'{"type": "open", "sessionId": "tmux:x:0.0"}', b'{"type": "close", "sessionId": "_tmuxctl"}',
)  # fmt: skip


def test_lines_that_are_no_request_are_answered(daemon: JsonLines, start: Start) -> None:
    for line in BAD_LINES:
        reply = daemon.write(line + b"\n")
        assert (reply["success"], bool(reply["error"])) == (False, True), line[:80]
    reply = daemon.write(b"x" * (10 * MEGABYTE) + b"\n")
    assert reply["reason"] == "too_large"
    # a line in two halves, empty ones before it
    daemon.connection.sendall(b'\n \n{"type": "li')
    assert daemon.write(b'st"}\n') == {"success": True, "sessions": []}
    # one whose end is that of the connection
    daemon.connection.sendall(b'{"type": "list"}')
    daemon.connection.shutdown(socket.SHUT_WR)
    assert daemon.read() == {"success": True, "sessions": []}
    assert daemon.read() is None


@pytest.mark.night
def test_a_hundred_clients_are_served(daemon: JsonLines, place: Path) -> None:
    many = [JsonLines(str(place / "d.sock")) for _ in range(100)]
    for one in many:
        one.connection.sendall(b'{"type": "list"}\n')
    assert all(one.read()["success"] for one in many)
    _, path = daemon.create("sh", "-c", "stty -echo; echo READY; cat")
    first = connect(path)
    read_until(first, b"READY\r\n")
    terminals = [connect(path) for _ in range(99)]
    for terminal in terminals:
        # the others get it too, as many as are connected by now
        terminal.sendall(b"here\n")
    assert read_count(first, 99 * len(b"here\r\n")) == b"here\r\n" * 99
    terminals[0].sendall(b"end\n")
    for terminal in terminals:
        read_until(terminal, b"end\r\n")
    for client in many:
        client.close()
    for terminal in terminals:
        terminal.close()


def read_count(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        data = connection.recv(count - len(found))
        assert data, found
        found += data
    return found


@pytest.mark.night
def test_what_is_at_the_path_already_is_left_alone(start: Start, place: Path) -> None:
    start()
    for name in ("file", "link", "dangling"):
        (place / "kept").write_text("mine")
        path = place / name
        if name == "file":
            path.write_text("mine")
        else:
            path.symlink_to(place / ("kept" if name == "link" else "nothing"))
        refused = serve_at(path)
        assert (refused.returncode, "is not a socket" in refused.stderr) == (8, True), refused.stderr
        assert path.is_symlink() == (name != "file")
        assert name == "dangling" or path.read_text() == "mine"
    # another server's
    refused = serve_at(place / "d.sock")
    assert (refused.returncode, "listens on" in refused.stderr) == (4, True), refused.stderr
    # a folder in which others could put another socket in its place
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    assert serve_at(place / "open" / "d.sock").returncode == 8


def serve_at(path: Path) -> subprocess.CompletedProcess[str]:
    """A server that has a tmux server of its own, and is to end by itself."""
    words = [*TMUXCTL, "--socket", "other", "serve", "--daemon-socket", str(path)]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.night
def test_a_new_session_gets_the_default_folder_and_shell(start: Start, place: Path) -> None:
    (place / "work").mkdir()
    (place / "else").mkdir()
    server = start("--default-cwd", str(place / "work"), "--default-shell", "sh -c 'pwd; cat'")
    daemon = server.client()
    reply = daemon.ask("create-session")
    read_until(connect(reply["socketPath"]), f"{place}/work\r\n".encode())
    made = daemon.list()[reply["sessionId"]]
    assert (made["command"], made["cwd"]) == (["sh", "-c", "pwd; cat"], f"{place}/work")
    _, path = daemon.create("pwd", cwd=str(place / "else"))
    assert read_all(connect(path)) == f"{place}/else\r\n".encode()
    http = connect(server.addresses[0].removeprefix("unix:"))
    http.sendall(b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    posted = json.loads(read_all(http).partition(b"\r\n\r\n")[2])
    assert (posted["argv"], posted["cwd"]) == (["sh", "-c", "pwd; cat"], f"{place}/work")
    for options, status in ((("--default-cwd", "nowhere"), 2), (("--default-shell", "nosuchprogram"), 1)):
        refused = subprocess.run([*TMUXCTL, "serve", *options], capture_output=True, text=True, timeout=PATIENCE)
        assert (refused.returncode, options[0].strip("-").replace("-", "_") in refused.stderr) == (status, True)


def test_a_thread_ends_whose_caller_has_gone_away() -> None:
    begun, ended = threading.Event(), threading.Event()

    def follow() -> None:
        begun.set()
        cancelled = current().cancelled
        assert cancelled
        if cancelled.wait(PATIENCE):
            ended.set()

    async def main() -> None:
        calls = Calls(None, AuditLog("/nonexistent"), Metrics(dict))  # type: ignore[arg-type]  # no operation is called
        task = asyncio.create_task(calls.in_thread(follow, partial(asyncio.sleep, PATIENCE)))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert ended.wait(PATIENCE)
