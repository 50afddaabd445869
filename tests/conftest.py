"""What behaviour tests run on: `control`, over memory, real tmux, and sh behind a pipe; each test in a place of its own.

A test that asks for `control` runs over `memory`, `tmux` and `pipe`; the marker `on("tmux", ...)` chooses others.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from tmuxctl.control import Control
from tmuxctl.milestones import VARIABLE, Milestone
from tmuxctl.surfaces.cli.command_server import client as command_client
from tmuxctl.surfaces.cli.setup import serving
from tmuxctl.terminal.launch.tmux_conf import CONFIG
from tmuxctl.transport.pipe import PipeTransport

if TYPE_CHECKING:
    from gateway.suite_gateway import SuiteGateway
    from machines.ssh_suite import SshSuite
    from rpc.elsewhere_suite import ElsewhereSuite

EVERYWHERE = ("memory", "tmux", "pipe")
KEPT = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE",
    # what coverage.py says to the processes that are started
    "COVERAGE_PROCESS_CONFIG",
)  # fmt: skip
SOCKET = "t"
PATIENCE = 20.0
"""Seconds after which a test gives up; no test may depend on how long anything takes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--save-screens", action="store_true", help="keep the screens that plays of real programs name")
    parser.addoption(
        "--over-ssh", action="store_true", help="run tests of the backend pipe on a machine behind sshd instead"
    )
    parser.addoption(
        "--elsewhere",
        nargs="?",
        const="socket",
        choices=("socket", "gateway"),
        help="run tests of the backend pipe by a second process instead, by name",
    )
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order, the same for a seed")
    parser.addoption("--write-golden", action="store_true", help="keep the surface as it comes out now: tests/golden")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "on(*transports): run over these of memory, tmux, pipe and resident only")
    config.addinivalue_line("markers", "pipe: drives tmux through a shell at the end of a pipe; set by `on`")
    config.addinivalue_line("markers", "ssh: what `pipe` would run over, on a machine behind sshd: --over-ssh")
    config.addinivalue_line(
        "markers", "elsewhere: what `pipe` would run over, carried out by a second process: --elsewhere"
    )
    config.addinivalue_line("markers", "night: takes long; left to `make nightly` by `make test` and .ci/run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if seed := config.getoption("--shuffle"):
        random.Random(seed).shuffle(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The tests stay to the end: to look for garbage among these thousands costs seconds, in each process that a test forks too."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_report_header() -> str:
    found = shutil.which("tmux")
    return subprocess.check_output([found, "-V"], text=True).strip() if found else "no tmux"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "control" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("on")
        backends = marker.args if marker else EVERYWHERE
        marks: dict[str, Sequence[pytest.MarkDecorator]] = {"pipe": (pytest.mark.pipe,)}
        if metafunc.config.getoption("--over-ssh"):
            away = "pipe" if "pipe" in backends else "tmux"
            marks["ssh"] = (pytest.mark.ssh, *marks.get(away, ()))
            backends = tuple("ssh" if name == away else name for name in backends)
        if metafunc.config.getoption("--elsewhere"):
            away = "pipe" if "pipe" in backends else "tmux"
            marks["elsewhere"] = (pytest.mark.elsewhere, *marks.get(away, ()))
            backends = tuple("elsewhere" if name == away else name for name in backends)
        metafunc.parametrize("backend", [pytest.param(name, marks=marks.get(name, ())) for name in backends])


@pytest.fixture(scope="session", autouse=True)
def signals_as_usual() -> None:
    """Programs that tests start begin with no signal ignored, under nohup and in the background of a script too: a signal
    that is handled here, if only by doing nothing, is as usual there."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture(scope="session", autouse=True)
def ssh_suite(request: pytest.FixtureRequest) -> Iterator[SshSuite | None]:
    """The machine of this worker behind sshd, with --over-ssh. It belongs to no test, and is there before the first one."""
    if not request.config.getoption("--over-ssh"):
        yield None
        return
    from machines.ssh_suite import run_suite

    with run_suite() as suite:
        yield suite


@pytest.fixture(scope="session")
def suite_gateway(request: pytest.FixtureRequest) -> Iterator[SuiteGateway | None]:
    """The gateway of this worker, with --elsewhere=gateway."""
    if request.config.getoption("--elsewhere") != "gateway":
        yield None
        return
    from gateway.suite_gateway import run_gateway

    with run_gateway() as gateway:
        yield gateway


@pytest.fixture
def plugin_modules() -> Iterator[None]:
    """Forget the plugins that the test loads: a test of another file in this process goes on with its own module."""

    def loaded() -> dict[str, ModuleType]:
        return {name: module for name, module in sys.modules.items() if name.startswith("tmuxctl.plugins.")}

    before = loaded()
    yield
    for name in loaded():
        del sys.modules[name]
    sys.modules.update(before)


@pytest.fixture(scope="session")
def python_first() -> Iterator[str]:
    """A PATH whose `python3` is the interpreter itself, in a virtual environment with nothing in it.

    A version manager (pyenv) puts a script in its place that forks fifty times: 110 ms of CPU time for a start instead of 13.
    """
    folder = Path(tempfile.mkdtemp(prefix="tc-python-", dir="/tmp"))
    # other users start it, too
    folder.chmod(0o755)
    python = os.path.realpath(sys.executable)
    (folder / "bin").mkdir()
    (folder / "bin/python3").symlink_to(python)
    (folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(python)}\n")
    yield f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    shutil.rmtree(folder)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, python_first: str) -> Iterator[Path]:
    """A home of its own, with a path short enough for a socket; nothing of the caller's environment but the basics. What was
    started with it is ended behind the test, and its control groups are removed."""
    with own_place(monkeypatch, python_first) as folder:
        yield folder


@contextlib.contextmanager
def own_place(monkeypatch: pytest.MonkeyPatch, path: str) -> Iterator[Path]:
    """What `place` is, for as long as it takes."""
    before = list_pids()
    folder = Path(tempfile.mkdtemp(prefix="tc-", dir="/tmp"))
    for name in set(os.environ) - set(KEPT):
        if not name.startswith("PYTEST"):
            monkeypatch.delenv(name)
    for name in ("HOME", "TMUX_TMPDIR", "TMPDIR"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("PS1", "$ ")
    monkeypatch.setenv("TMUXCTL_SOCKET", SOCKET)
    monkeypatch.setenv("TMUXCTL_TIMEOUT", f"{PATIENCE:g}")
    monkeypatch.chdir(folder)
    try:
        yield folder
    finally:
        sweep(folder, before)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def another(
    request: pytest.FixtureRequest,
    backend: str,
    place: Path,
    ssh_suite: SshSuite | None,
    suite_gateway: SuiteGateway | None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Control]]:
    """Makes Controls of one and the same server, as several processes would have; each with the `timing`, `limits` and `clock`
    it is given."""
    memory: list[Any] = []
    made: list[Control] = []
    elsewhere: ElsewhereSuite | None = None
    if backend == "elsewhere":
        from rpc.elsewhere_suite import ElsewhereSuite

        elsewhere = ElsewhereSuite(suite_gateway)
        elsewhere.refuse(request.node.nodeid)

    def make(**given: Any) -> Control:
        if backend == "memory":
            from memory.transport import MemoryTransport

            if not memory:
                memory.append(MemoryTransport())
            made.append(Control(memory[0], **given))
        elif backend == "pipe":
            made.append(Control(PipeTransport(socket=SOCKET, config=CONFIG), **given))
        elif backend == "ssh":
            assert ssh_suite
            made.append(ssh_suite.control(monkeypatch, **given))
        elif elsewhere:
            made.append(elsewhere.control(**given))
        else:
            made.append(Control(resident=backend == "resident", **given))
        return made[-1]

    if ssh_suite and backend == "ssh":
        ssh_suite.refuse(request.node.nodeid)
        ssh_suite.move(monkeypatch)
    yield make
    for one in made:
        one.close()
    if elsewhere:
        elsewhere.close()


@pytest.fixture
def control(backend: str, place: Path, another: Callable[..., Control]) -> Iterator[Control]:
    """A Control with no session yet. What a test starts is ended behind it; of a session it ended nothing may be left."""
    before = list_pids()
    made = another()
    yield made
    made.close()
    if backend == "memory":
        return
    ended = {one.name for one in (place / "state" / "tmuxctl" / SOCKET / "ended").glob("*")}
    left = [words for session, words in sweep(place, before) if session in ended]
    assert not left, f"left behind by a session that was ended: {left}"


def start_command_server() -> subprocess.Popen[bytes]:
    """A server of commands in this environment, once it listens."""
    process = serving.start_command_server()
    deadline = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, "the server of commands ended"
        assert time.monotonic() < deadline, "the server of commands does not listen"
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(command_client.find_socket())
            return process
        time.sleep(0.01)


@contextlib.contextmanager
def served_commands() -> Iterator[None]:
    """A server of commands in this environment, which has to be used."""
    process = start_command_server()
    before = count_child_faults(process.pid)
    yield
    deadline = time.monotonic() + PATIENCE
    while count_child_faults(process.pid) == before:
        assert time.monotonic() < deadline, "no command went through the server"
        time.sleep(0.01)
    process.kill()
    process.wait()


def count_child_faults(pid: int) -> int:
    """The page faults of a process's children that have ended (proc(5), cminflt): more, if there were some."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[8])


def crash_server(control: Control) -> None:
    """Kill the tmux server, as kill -9 does, and wait until it is gone."""
    pid = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while os.path.exists(f"/proc/{pid}/exe"):
        assert time.monotonic() < deadline, "the tmux server cannot be killed"
        time.sleep(0.002)


def list_pids() -> set[str]:
    """The pids of all processes that there are."""
    return {name for name in os.listdir("/proc") if name.isdigit()}


def sweep(place: Path, before: set[str]) -> list[tuple[str, str]]:
    """End all that was started with this place as its home: what each one's session was, and its command."""
    found: dict[str, tuple[str, str]] = {}
    deadline = time.monotonic() + PATIENCE
    while left := {pid: about for pid in list_pids() - before if (about := _about(pid, f"{place}".encode()))}:
        found = {**left, **found}
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        assert time.monotonic() < deadline, f"cannot be ended: {left}"
    _remove_groups(place)
    return list(found.values())


def _remove_groups(place: Path) -> None:
    """Remove the control groups of sessions that nobody killed. A process may leave its group a moment after it has ended."""
    for file in place.rglob("cgroup"):
        with contextlib.suppress(OSError, ValueError):
            group = Path(_read_line(file)) if file.is_file() else place
            if group.is_relative_to("/sys/fs/cgroup") and group.name.startswith("tmuxctl-"):
                _remove_group(group)


def _read_line(file: Path) -> str:
    """The only line of a file, which a test may have made a very large one."""
    with file.open("rb") as opened:
        return opened.read(4096).decode().strip()


def _remove_group(group: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while group.is_dir():
        for folder in (*group.rglob("*/"), group):
            with contextlib.suppress(OSError):
                folder.rmdir()
        assert time.monotonic() < deadline, f"cannot be removed: {group}"
        time.sleep(0.002)


def _about(pid: str, place: bytes) -> tuple[str, str] | None:
    """The session and command of a living process whose environment names the place."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    if place not in environment or not words:
        return None
    session = environment.partition(b"TMUXCTL_SESSION=")[2].partition(b"\0")[0].decode(errors="replace")
    return session, words


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Below a failed test, the screens it saw."""
    report = yield
    control = getattr(item, "funcargs", {}).get("control")
    if report.when == "call" and report.failed and control is not None:
        report.sections.append(("sessions", "\n".join(_pictures(control))))
    return report


def _pictures(control: Control) -> Iterator[str]:
    try:
        for one in control.ls().sessions:
            how = f" status {one.exit_status} signal {one.signal}" if one.state == "exited" else ""
            yield f"--- {one.name}: {' '.join(one.argv)!r} {one.state.value}{how}"
            if one.state != "lost":
                yield control.screen(one.name).text
    except Exception as error:
        yield f"--- no screens: {error}"


def send_to_another_thread(pid: int, number: int) -> None:
    """A signal that interrupts a thread other than the main one of a process: tgkill(2). The kernel sometimes does so with
    what is sent to the process, if that thread has just started a process."""
    thread = max(int(name) for name in os.listdir(f"/proc/{pid}/task") if int(name) != pid)
    if ctypes.CDLL(None, use_errno=True).tgkill(pid, thread, number):
        raise OSError(ctypes.get_errno(), "tgkill")


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], Any]:
    """Waits for a condition, and returns what it gave."""

    def wait(condition: Callable[[], Any]) -> Any:
        deadline, pause = time.monotonic() + PATIENCE, 0.01
        while not (found := condition()):
            assert time.monotonic() < deadline, "it did not come true"
            # a condition may cost a question to tmux
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return found

    return wait


class Milestones:
    """What this process and those that it starts have done: `tmuxctl.milestones`."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(path)
        self._reached: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
        # the socket holds a few messages only
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while message := self._socket.recv(4096):
            self._reached.put(message.decode().split("\0"))

    def wait(self, milestone: Milestone, session: str, about: str | None = None) -> None:
        """Wait until this is reached, from the last one that was waited for on."""
        seen: list[list[str]] = []
        wanted = [milestone, session, about]
        while not seen or seen[-1][: 2 + (about is not None)] != wanted[: 2 + (about is not None)]:
            try:
                seen.append(self._reached.get(timeout=PATIENCE))
            except queue.Empty:
                raise AssertionError(f"{wanted} was not reached, but {seen}") from None

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"", self._socket.getsockname())
        self._reader.join()
        self._socket.close()


@pytest.fixture
def milestones(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Milestones]:
    """Waits by name for what processes do that are started behind it, and for this one."""
    path = f"{place}/milestones"
    monkeypatch.setenv(VARIABLE, path)
    reader = Milestones(path)
    yield reader
    reader.close()


@pytest.fixture
def needs() -> Callable[..., None]:
    """Skips a test, by name, when a program it drives is not installed."""

    def look(*names: str) -> None:
        for name in names:
            if not shutil.which(name):
                pytest.skip(f"{name} is not installed")

    return look
