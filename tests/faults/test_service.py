"""The service does what its unit says, done here by hand: sessions come back after a crash and a stop, and there is never a
second server."""

from __future__ import annotations

import array
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from programs import LINES
from served import HttpReply, UnixConnection

from tmuxctl.control import Control

pytestmark = pytest.mark.on("tmux")

TMUXCTL = (sys.executable, "-m", "tmuxctl")
GRACE = 60.0


class ByHand:
    """Does for one unit what systemd does: starts it, hears when it is ready, and looks at nothing but the unit."""

    def __init__(self, unit: Path, place: Path) -> None:
        self.lines = unit.read_text().splitlines()
        self.main: subprocess.Popen[bytes] | None = None
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(place / unit.stem))
        self.socket.settimeout(GRACE)
        given = (word(one).partition("=") for one in self.values("Environment"))
        self.environment = {"HOME": str(place), "USER": "somebody", **{name: value for name, _, value in given}}
        self.environment["NOTIFY_SOCKET"] = str(place / unit.stem)
        self.environment["XDG_RUNTIME_DIR"] = str(place)
        self.notes = (place / "notes").open("ab")

    def values(self, key: str) -> list[str]:
        return [line.partition("=")[2] for line in self.lines if line.startswith(f"{key}=")]

    def start(self) -> str:
        """ExecStart; when that is ready ExecStartPost, if there is one, whose status is told; gives what it said of its state."""
        (command,) = self.values("ExecStart")
        self.main = subprocess.Popen(
            argv(command), env=self.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=self.notes, stderr=self.notes
        )
        said = self.hear("READY=1")
        for command in self.values("ExecStartPost"):
            assert command.startswith("-")
            self.restored = subprocess.run(
                argv(command[1:]), env=self.environment, cwd="/", capture_output=True, text=True
            )
        return said

    def hear(self, wanted: str) -> str:
        """The message that holds this; descriptors that come with others are closed, as sd_notify(3) wants it."""
        while True:
            data, about, _, _ = self.socket.recvmsg(4096, 1024)
            for _, _, descriptors in about:
                for one in array.array("i", descriptors):
                    os.close(one)
            if wanted in data.decode().split("\n"):
                return data.decode()

    @property
    def pid(self) -> int:
        assert self.main is not None
        return self.main.pid

    def signal(self, number: int) -> int:
        """End the main process; its exit status."""
        assert self.main is not None
        self.main.send_signal(number)
        return self.main.wait(GRACE)

    def close(self) -> None:
        self.socket.close()
        self.notes.close()
        if self.main is not None and self.main.poll() is None:
            self.signal(signal.SIGKILL)


def word(text: str) -> str:
    """A word of a unit as systemd reads it."""
    if text.startswith('"'):
        text = re.sub(r"\\(.)", r"\1", text[1:-1])
    return text.replace("%%", "%")


def argv(command: str) -> list[str]:
    return [one.replace("%%", "%").replace("$$", "$") for one in shlex.split(command)]


@pytest.fixture
def service(control: Control, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ByHand]:
    stub = place / "bin" / "systemctl"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")
    done = subprocess.run([*TMUXCTL, "service", "install"], capture_output=True, text=True, check=True)
    made = ByHand(Path(done.stdout.strip()), place)
    yield made
    made.close()


@pytest.fixture
def http(service: ByHand, place: Path) -> Iterator[ByHand]:
    """The service of the HTTP server, beside the other one."""
    done = subprocess.run([*TMUXCTL, "service", "install", "--serve"], capture_output=True, text=True, check=True)
    made = ByHand(Path(done.stdout.splitlines()[1]), place)
    yield made
    made.close()


def new_over_http(place: Path, name: str) -> None:
    connection = UnixConnection(str(place / "tmuxctl/serve-t.sock"))
    connection.request(
        "POST", "/v1/sessions", json.dumps({"name": name, "command": LINES}), {"Content-Type": "application/json"}
    )
    reply = HttpReply(connection.getresponse())
    connection.close()
    assert reply.status == 201, reply.text


def states(control: Control) -> dict[str, str]:
    return {one.name: one.state.value for one in control.ls().sessions}


def servers(control: Control) -> list[int]:
    """The tmux servers that read our configuration."""
    found = []
    for row in control.machine.transport.processes():
        with suppress(OSError):
            words = Path(f"/proc/{row.pid}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"tmux") and f"{control.machine.transport.home}/tmux.conf".encode() in words:
                found.append(row.pid)
    return found


def end(pid: int, until: Callable[..., Any]) -> None:
    os.kill(pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{pid}/exe"))


@pytest.mark.night
def test_after_a_crash_twenty_sessions_are_back_with_what_they_had_printed(control: Control, service: ByHand) -> None:
    names = [f"s{number:02}" for number in range(20)]
    service.start()
    first = service.pid
    for name in names:
        control.new(name, LINES, wait=False)
    for name in names:
        control.send(name, f"before {name}".encode())
        assert control.wait(name, text=f"^before {name}$").matched
    ids = {one.name: one.id for one in control.ls().sessions}
    assert service.signal(signal.SIGKILL) == -signal.SIGKILL
    assert states(control) == dict.fromkeys(names, "lost")

    service.start()
    assert service.restored.returncode == 0
    assert re.findall(r"^(s\d\d) +(\w+)$", service.restored.stdout, re.MULTILINE) == [
        (name, "relaunched") for name in names
    ]
    assert servers(control) == [service.pid] != [first]
    assert {one.name: one.id for one in control.ls().sessions} == ids
    for name in names:
        assert f"before {name}" in control.log(name).text
        control.send(name, b"after")
        assert control.wait(name, text="^after$").matched


@pytest.mark.night
def test_the_server_is_as_a_command_would_have_started_it(control: Control, service: ByHand, place: Path) -> None:
    service.start()
    control.new("t", LINES)
    control.kill(("t",))
    assert servers(control) == [service.pid]
    shown = control.machine.transport.run(
        [("show-options", "-s", "exit-empty"), ("show-options", "-g", "remain-on-exit")]
    )
    assert shown.decode().split() == ["exit-empty", "off", "remain-on-exit", "on"]
    environment = Path(f"/proc/{service.pid}/environ").read_bytes()
    assert f"TMUX_TMPDIR={place}".encode() in environment.split(b"\0")
    assert b"NOTIFY_SOCKET" not in environment
    limits = re.search(r"open files +(\d+) +(\d+)", Path(f"/proc/{service.pid}/limits").read_text())
    assert limits is not None
    assert limits[1] == limits[2]


@pytest.mark.night
def test_a_server_that_a_command_started_goes_on_and_the_service_follows_it(
    control: Control, service: ByHand, until: Callable[..., Any]
) -> None:
    control.new("t", LINES)
    control.send("t", b"last words")
    assert control.wait("t", text="^last words$").matched
    (server,) = servers(control)
    assert "aiting" in service.start()
    assert servers(control) == [server]
    assert service.signal(signal.SIGTERM) == 0
    assert states(control) == {"t": "idle"}

    assert "aiting" in service.start()
    end(server, until)
    assert "Serving" in service.hear("READY=1")
    until(lambda: states(control) == {"t": "idle"})
    assert servers(control) == [service.pid]
    assert "last words" in control.log("t").text


@pytest.mark.night
def test_a_server_that_is_ended_in_order_is_followed_too(
    control: Control, service: ByHand, until: Callable[..., Any]
) -> None:
    control.new("t", LINES)
    service.start()
    control.machine.transport.run([("kill-server",)])
    service.hear("READY=1")
    until(lambda: states(control) == {"t": "idle"})
    assert servers(control) == [service.pid]


@pytest.mark.night
def test_the_stop_of_a_service_is_no_end_of_its_sessions(
    control: Control, service: ByHand, until: Callable[..., Any]
) -> None:
    """systemd signals the main process first, then all others of the unit: at a stop, a logout and a reboot."""
    trap = ("sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done")
    programs: Mapping[str, tuple[str, ...]] = {"cat": LINES, "trap": trap, "bash": ("bash",)}
    names = [f"{name}{number}" for name in programs for number in range(5)]
    service.start()
    for name in names:
        control.new(name, programs[name.rstrip("0123456789")], wait=False)
    for name in (one for one in names if one.startswith("trap")):
        assert control.wait(name, text="ready", since="screen").matched
    others = [row.pid for row in control.machine.transport.processes() if row.parent == service.pid]
    for pid in (service.pid, *others):
        os.kill(pid, signal.SIGTERM)
    assert service.main is not None
    assert service.main.wait(GRACE) == 0
    assert states(control) == dict.fromkeys(names, "lost")
    service.start()
    assert "lost" not in states(control).values()


def test_commands_beside_a_starting_service_make_no_second_server(control: Control, service: ByHand) -> None:
    names = [f"s{number}" for number in range(6)]
    pipe = subprocess.PIPE
    started = [subprocess.Popen([*TMUXCTL, "new", name, "--", *LINES], stdout=pipe, stderr=pipe) for name in names]
    service.start()
    for one in started:
        _, errors = one.communicate(timeout=GRACE)
        assert (one.returncode, errors) == (0, b"")
    assert len(servers(control)) == 1
    assert sorted(states(control)) == names
    assert "lost" not in states(control).values()


@pytest.mark.night
def test_two_services_of_one_socket_make_one_server(
    control: Control, service: ByHand, until: Callable[..., Any]
) -> None:
    service.start()
    beside = subprocess.Popen([*TMUXCTL, "service", "run"], stderr=subprocess.PIPE, text=True)
    assert beside.stderr is not None
    assert f"waiting for the running server to end: pid {service.pid}" in beside.stderr.readline()
    assert servers(control) == [service.pid]
    control.new("t", LINES)
    service.signal(signal.SIGKILL)
    until(lambda: states(control) == {"t": "idle"})
    assert servers(control) == [beside.pid]
    beside.kill()
    beside.communicate(timeout=GRACE)


def test_a_command_waits_for_a_service_that_is_about_to_serve(
    control: Control, service: ByHand, place: Path, until: Callable[..., Any]
) -> None:
    """The server takes its time here, until it is let go."""
    tmux = shutil.which("tmux")
    slow = place / "bin" / "tmux"
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *" -D") : >{place}/starting; until [ -e {place}/go ]; do sleep 0.05; done ;; esac\n'
        f'exec {tmux} "$@"\n'
    )
    slow.chmod(0o755)
    starting = threading.Thread(target=service.start)
    starting.start()
    lock = f"{control.machine.transport.home}/start.lock"
    until((place / "starting").exists)
    command = subprocess.Popen([*TMUXCTL, "new", "t", "--", *LINES], stdout=subprocess.DEVNULL)
    until(lambda: lock in opened(command.pid) or command.poll() is not None)
    (place / "go").touch()
    starting.join()
    assert command.wait(GRACE) == 0
    assert servers(control) == [service.pid]
    assert states(control) == {"t": "idle"}


def opened(pid: int) -> list[str]:
    """The files that a process has open."""
    found = []
    with suppress(FileNotFoundError):
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.append(os.readlink(one))
    return found


@pytest.mark.night
def test_a_server_that_lost_its_socket_gets_it_back(control: Control, service: ByHand) -> None:
    """Whoever started it: a command, for which the service waits then, or the service."""
    control.new("t", LINES)
    (server,) = servers(control)
    unlink_socket(control)
    service.start()
    assert servers(control) == [server]
    assert states(control) == {"t": "idle"}
    control.machine.transport.run([("kill-server",)])
    service.hear("READY=1")
    unlink_socket(control)
    control.new("u", LINES)
    assert servers(control) == [service.pid]


def unlink_socket(control: Control) -> None:
    os.unlink(control.machine.transport.run([("display-message", "-p", "#{socket_path}")]).decode().strip())


@pytest.mark.night
def test_no_session_ends_with_the_service_of_the_http_server(
    control: Control, service: ByHand, http: ByHand, place: Path
) -> None:
    service.start()
    assert f"unix:{place}" in http.start()
    new_over_http(place, "a")
    (server,) = servers(control)
    assert server == service.pid
    for number in (signal.SIGTERM, signal.SIGKILL):
        # of a unit with KillMode=process systemd ends the main process alone
        assert http.values("KillMode") == ["process"]
        assert http.signal(number) == (0 if number == signal.SIGTERM else -number)
        assert states(control) == {"a": "idle"}
        http.start()
    new_over_http(place, "b")
    assert states(control) == {"a": "idle", "b": "idle"}
    assert servers(control) == [server]


@pytest.mark.night
def test_a_tmux_server_that_the_http_server_started_outlives_it(
    control: Control, http: ByHand, place: Path, until: Callable[..., Any]
) -> None:
    http.start()
    new_over_http(place, "a")
    (server,) = servers(control)
    assert b"NOTIFY_SOCKET" not in Path(f"/proc/{server}/environ").read_bytes()
    pid = http.pid
    assert http.signal(signal.SIGTERM) == 0
    assert states(control) == {"a": "idle"}
    # nothing but the tmux server, which has left it, stays of the HTTP server
    until(lambda: [row for row in control.machine.transport.processes() if row.parent == pid] == [])
    http.start()
    assert servers(control) == [server]
