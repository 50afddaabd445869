"""What `ps` tells of a terminal where there is no /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.errors import Unreachable
from tmuxctl.evidence import PS, Kernel, Tty
from tmuxctl.transport import ps
from tmuxctl.transport.base import Transport
from tmuxctl.transport.local import LocalTransport
from tmuxctl.transport.pipe import PipeTransport

Until = Callable[[Callable[[], Any]], Any]

MACOS = """\
    1     0     1     0 Ss     1:36.87 ??       launchd
  501     1   501   777 Ss     0:00.03 ttys003  login
  502   501   502   777 S      0:00.29 ttys003  zsh
  777   502   777   777 S+     0:01.25 ttys003  python3.13
  778   777   777   777 R+    12:01.07 ttys003  Code Helper (Ren
  790   502   790   777 S      0:00.01 ttys003  sleep
  800   777   800   801 Ss     0:00.00 ttys004  bash
  801   800   801   801 U+     0:00.10 ttys004  make
  802   801   801   801 Z+     0:00.00 ttys004  cc
"""
FREEBSD = """\
    1     0     1     0 I        0:00.02 -        init
  910   900   910   955 Is       0:00.01 pts/0    sh
  955   910   955   955 S+     1:02:03.50 pts/0    top
"""
LINUX = "    7     1     7     9 S 1-02:00:01 pts/2    bash\n"
LINES = Tty(canonical=True, echo=True, unread=0)


def test_what_macos_prints_is_read() -> None:
    table = ps.parse(MACOS)
    assert table[777] == ps.ListedProcess(777, 502, 777, 777, "S", 125, "/dev/ttys003", "python3.13")
    assert (table[778].cpu, table[778].name) == (12 * 6000 + 107, "Code Helper (Ren")
    assert table[1].tty == ""
    assert 802 not in table, "it has ended"


def test_what_freebsd_and_linux_print_is_read() -> None:
    assert ps.parse(FREEBSD)[955] == ps.ListedProcess(955, 910, 955, 955, "S", 372350, "/dev/pts/0", "top")
    assert ps.parse(FREEBSD)[1].tty == ""
    assert ps.parse(LINUX)[7].cpu == 9360100


def test_what_is_no_list_of_processes_is_none() -> None:
    assert ps.parse("") == {}
    assert ps.parse("ps: bad -o argument 'tpgid', supported arguments: user,group,comm\n1 2 3\n") == {}


def test_the_foreground_and_what_it_began_are_told_of_and_no_job_in_the_background() -> None:
    found = ps.read_kernel(ps.parse(MACOS), 501, "/dev/ttys003", lambda path: LINES)
    assert found.group == 777
    assert [(one.name, one.foreground, one.level) for one in found.programs] == [
        ("python3.13", True, PS),
        ("Code Helper (Ren", True, PS),
        ("bash", False, PS),
        ("make", False, PS),
    ]


def test_a_terminal_that_was_opened_from_the_first_one_is_inside_of_it() -> None:
    keys = LINES._replace(canonical=False)
    settings = {"/dev/ttys003": keys, "/dev/ttys004": LINES}
    found = ps.read_kernel(ps.parse(MACOS), 501, "/dev/ttys003", settings.get)
    assert found.inner is not None
    assert (found.inner.via, found.inner.holder, found.inner.group) == ("python3.13", 777, 801)
    assert [(one.name, one.state) for one in found.inner.programs] == [("make", "U")]
    assert (found.tty, found.inner.tty) == (keys, LINES)


def test_of_a_pane_that_has_ended_or_has_another_terminal_no_program_is_told() -> None:
    table = ps.parse(MACOS)
    assert ps.read_kernel(table, 4242, "/dev/ttys003", lambda path: LINES) == Kernel(LINES, 0, ())
    assert ps.read_kernel(table, 501, "/dev/ttys009", lambda path: LINES).programs == ()


@pytest.fixture(params=["local", "pipe"])
def start(request: pytest.FixtureRequest, place: Path) -> Iterator[Callable[..., Callable[[], Kernel]]]:
    """Starts a program on a terminal; returns what looks at that by ps."""
    socket, config = f"tmuxctl-ps-{os.getpid()}", b"set -g exit-empty off\nset -g remain-on-exit on\n"
    local = LocalTransport(socket, config=config)
    transport: Transport = local if request.param == "local" else PipeTransport(socket=socket, config=config)

    def begin(*argv: str) -> Callable[[], Kernel]:
        local.create([("new-session", "-d", "-s", "s", "-x", "80", "-y", "24", "env", *argv)])
        pid, path = local.run([("display-message", "-p", "-t", "=s:", "#{pane_pid} #{pane_tty}")]).split()

        def look() -> Kernel:
            kernel = transport.probe([(int(pid), path.decode())], level=PS)[0].kernel
            assert kernel is not None
            return kernel

        return look

    yield begin
    with contextlib.suppress(Unreachable):
        local.run([("kill-server",)])


def test_ps_names_the_program_in_the_foreground(start: Callable[..., Callable[[], Kernel]], until: Until) -> None:
    look = start("sh", "-c", "sleep 1000; :")
    until(lambda: [one.name for one in look().programs] == ["sh", "sleep"])
    shell, sleep = look().programs
    assert (shell.foreground, sleep.foreground, sleep.parent, sleep.level) == (True, True, shell.pid, PS)
    assert look().tty is not None


def test_ps_is_called_once_for_looks_that_follow_closely() -> None:
    calls = []

    def call() -> str:
        calls.append(1)
        return MACOS

    shared, renewed = ps.ProcessList(seconds=1000.0), ps.ProcessList(seconds=0.0)
    assert [len(shared.read([777], call)) for _ in range(3)] == [len(ps.parse(MACOS))] * 3
    assert len(calls) == 1
    for _ in range(3):
        renewed.read([777], call)
    assert len(calls) == 4
    shared.read([4242], call)
    assert len(calls) == 5, "it may have begun since"
