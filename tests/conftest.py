"""What behaviour tests run on: `control`, over memory, real tmux, and sh behind a pipe; each test in a place of its own.

A test that asks for `control` runs over `memory`, `tmux` and `pipe`; the marker `on("tmux", ...)` chooses others.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError
from tmuxctl.terminal.tmux_conf import CONFIG
from tmuxctl.transport.pipe import PipeTransport

EVERYWHERE = ("memory", "tmux", "pipe")
KEPT = ("PATH", "LANG", "LC_ALL", "TERM", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")
SOCKET = "t"
PATIENCE = 20.0
"""Seconds after which a test gives up; no test may depend on how long anything takes."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "on(*transports): run over these of memory, tmux, pipe and resident only")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "control" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("on")
        metafunc.parametrize("backend", marker.args if marker else EVERYWHERE, scope="function")


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of its own, with a path short enough for a socket; nothing of the caller's environment but the basics."""
    folder = Path(tempfile.mkdtemp(prefix="tc-", dir="/tmp"))
    for name in set(os.environ) - set(KEPT):
        if not name.startswith("PYTEST"):
            monkeypatch.delenv(name)
    for name in ("HOME", "TMUX_TMPDIR", "TMPDIR"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("PS1", "$ ")
    monkeypatch.setenv("TMUXCTL_SOCKET", SOCKET)
    monkeypatch.setenv("TMUXCTL_TIMEOUT", f"{PATIENCE:g}")
    monkeypatch.chdir(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def another(backend: str, place: Path) -> Iterator[Callable[[], Control]]:
    """Makes Controls of one and the same server, as several processes would have."""
    memory: list[Any] = []
    made: list[Control] = []

    def make() -> Control:
        if backend == "memory":
            from memory.transport import MemoryTransport

            if not memory:
                memory.append(MemoryTransport())
            made.append(Control(memory[0]))
        elif backend == "pipe":
            made.append(Control(PipeTransport(socket=SOCKET, config=CONFIG)))
        else:
            made.append(Control(resident=backend == "resident"))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def control(backend: str, place: Path, another: Callable[[], Control]) -> Iterator[Control]:
    """A Control with no session yet. What a test starts is ended behind it, and nothing may be left of it then."""
    made = another()
    yield made
    try:
        if backend != "memory" and _server(place):
            with contextlib.suppress(TmuxctlError), Control() as last:
                last.kill(all=True, signal="HUP", grace=1.0)
            assert not (left := _marked(place)), f"left behind: {left}"
    finally:
        _sweep(place)


def _server(place: Path) -> int | None:
    """The process of this place's tmux server, if it lives and answers to signals."""
    try:
        pid = int((place / "state" / "tmuxctl" / SOCKET / "server").read_text().split()[0])
        os.kill(pid, signal.SIGCONT)
    except (OSError, ValueError, IndexError):
        return None
    return pid


def _marked(place: Path) -> dict[int, str]:
    """The living processes of this place's sessions: they carry the marker of one of them."""
    home = place / "state" / "tmuxctl" / SOCKET
    ids = {one.name for folder in ("sessions", "ended") for one in home.glob(f"{folder}/*")}
    return _carrying(lambda environment: any(f"TMUXCTL_SESSION={one}".encode() in environment for one in ids))


def _carrying(wanted: Callable[[list[bytes]], bool]) -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and wanted((entry / "environ").read_bytes().split(b"\0")):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if words and int(entry.name) != os.getpid():
                    found[int(entry.name)] = words
    return found


def _sweep(place: Path) -> None:
    """End the server of this place and all that was started with its home: they name it in their environment."""
    marks = (f"HOME={place}".encode(), f"XDG_STATE_HOME={place}/state".encode())
    deadline = time.monotonic() + PATIENCE
    while left := {**_carrying(lambda environment: any(mark in environment for mark in marks)), **_marked(place)}:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert time.monotonic() < deadline, f"cannot be ended: {left}"
        time.sleep(0.005)


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


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], Any]:
    """Waits for a condition, and returns what it gave."""

    def wait(condition: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE
        while not (found := condition()):
            assert time.monotonic() < deadline, "it did not come true"
            time.sleep(0.01)
        return found

    return wait


@pytest.fixture
def needs() -> Callable[..., None]:
    """Skips a test, by name, when a program it drives is not installed."""

    def look(*names: str) -> None:
        for name in names:
            if not shutil.which(name):
                pytest.skip(f"{name} is not installed")

    return look
