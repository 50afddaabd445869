"""The fixture `tmuxctl`, its options, and the trace of a test that failed.

pytest loads this wherever tmuxctl is installed: what drives programs is loaded with the first test that asks for it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tmuxctl.surfaces.library.client import Client, Command
    from tmuxctl.surfaces.library.driven import Duration, TerminalSession
    from tmuxctl.surfaces.testing.assertions import SessionAssertions

TRACES = ".tmuxctl-trace"
"""The folder of traces, under pytest's root folder."""

_bench = pytest.StashKey["TestBench"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("tmuxctl", "terminal programs under test")
    group.addoption(
        "--tmuxctl-update", action="store_true", help="keep the screens of to_match_snapshot as they are now"
    )
    group.addoption("--tmuxctl-style", action="store_true", help="compare colours and attributes of snapshots too")
    group.addoption(
        "--tmuxctl-trace",
        choices=("on", "off", "on-failure"),
        default="on-failure",
        help=f"keep what was typed, printed and seen in {TRACES}/ (default: on-failure)",
    )


class TestBench:
    """What the fixture `tmuxctl` gives a test: it starts programs, and makes assertions about them."""

    __test__ = False

    def __init__(self, client: Client, request: pytest.FixtureRequest) -> None:
        self.client = client
        self.sessions: list[TerminalSession] = []
        self._config, self._path = request.config, request.path

    def __call__(self, command: Command = (), *, name: str | None = None, **options: Any) -> TerminalSession:
        """Start a program, as `tmuxctl.Client.new` with its options; it is ended behind the test."""
        from tmuxctl.surfaces.testing.tracing import TracedSession

        made = TracedSession(self.client, self.client.new(name, command, **options).info)
        self.sessions.append(made)
        return made

    def expect(self, session: TerminalSession, *, timeout: Duration | None = None) -> SessionAssertions:
        """Assertions about a session, each of which waits up to `timeout` (5 s)."""
        from tmuxctl.surfaces.testing.assertions import SessionAssertions, Snapshots

        folder = self._path.parent / f"{self._path.stem}_snapshots"
        option = self._config.getoption
        snapshots = Snapshots(folder, update=option("--tmuxctl-update"), style=option("--tmuxctl-style"))
        return SessionAssertions(session, snapshots, timeout)

    def end(self) -> None:
        """End all programs of the test."""
        for session in self.sessions:
            session.close()


@pytest.fixture(scope="session")
def tmuxctl_client() -> Iterator[Client]:
    """The client of this worker's own tmux server, which is ended with all its programs behind the last test. Nothing of it
    is kept in the user's folders."""
    from tmuxctl import config
    from tmuxctl.control.service import Control
    from tmuxctl.errors import TmuxctlError
    from tmuxctl.surfaces.library.client import Client
    from tmuxctl.terminal.launch.tmux_conf import CONFIG
    from tmuxctl.transport.local import LocalTransport

    home = tempfile.mkdtemp(prefix="tmuxctl-test-")
    socket = f"tmuxctl-test-{os.getpid()}"
    settings = config.load({"tmux.socket": socket}, {**os.environ, "XDG_CONFIG_HOME": home})

    def control() -> Control:
        transport = LocalTransport(
            socket, tmux=settings.tmux_binary, config=CONFIG, resident=True, home=os.path.join(home, "state")
        )
        return Control(transport, settings, resident=True)

    client = Client(control=control)
    try:
        yield client
    finally:
        with suppress(TmuxctlError):
            client.control.kill(all=True, grace=1.0)
        client.close()
        subprocess.run(
            [settings.tmux_binary, "-L", socket, "kill-server"], capture_output=True, timeout=10, check=False
        )
        # tmux leaves its socket (tmux(1): $TMUX_TMPDIR, else /tmp)
        Path(os.environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}", socket).unlink(missing_ok=True)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def tmuxctl(tmuxctl_client: Client, request: pytest.FixtureRequest) -> Iterator[TestBench]:
    """Starts terminal programs and says what is expected of them; they are ended behind the test.

    `app = tmuxctl("python3 -m myapp", size="80x24")`, then `tmuxctl.expect(app).to_have_text("Ready")`.
    """
    bench = TestBench(tmuxctl_client, request)
    request.node.stash[_bench] = bench
    try:
        yield bench
    finally:
        bench.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the trace of a test, and name it in its report."""
    report = yield
    wanted = item.config.getoption("--tmuxctl-trace")
    bench = item.stash.get(_bench, None)
    if (
        report.when == "call"
        and bench
        and bench.sessions
        and (wanted == "on" or (wanted == "on-failure" and report.failed))
    ):
        from tmuxctl.surfaces.testing.tracing import write_trace

        name = re.sub(r"[^\w.-]+", "-", item.nodeid)[-150:].strip("-.")
        folder = Path(item.config.rootpath) / TRACES / name
        shutil.rmtree(folder, ignore_errors=True)
        report.sections.append(("tmuxctl", write_trace(folder, bench.sessions)))
    return report
