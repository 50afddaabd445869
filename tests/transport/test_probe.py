"""What the kernel tells of a terminal: who is in the foreground, and which of them waits for what is typed."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import LINES, SHELL, program

from tmuxctl.control import Control
from tmuxctl.errors import Unreachable
from tmuxctl.evidence import FULL, NONE, PS, WCHAN, Evidence, Kernel, Look, Program, Thread, Tty, from_json, to_json
from tmuxctl.transport import calls, probe, procfs
from tmuxctl.transport.base import Probe, Transport
from tmuxctl.transport.local import LocalTransport
from tmuxctl.transport.pipe import PipeTransport

Until = Callable[[Callable[[], Any]], Any]
Needs = Callable[..., None]
NUMBERS = itertools.count()

BUSY_JOB = "while :; do :; done &"
NO_PROC = ("sh", "-c", "sed -u s,/proc,/nowhere,g | sh")


class Pane:
    """A program on a terminal of its own, and what the kernel tells of it."""

    def __init__(self, transport: Transport, name: str) -> None:
        self.transport, self.name = transport, name
        shown = transport.run([("display-message", "-p", "-t", f"={name}:", "#{pane_pid} #{pane_tty}")]).split()
        self.pid, self.path = int(shown[0]), shown[1].decode()

    def look(self, level: str = FULL) -> Probe:
        (found,) = self.transport.probe([(self.pid, self.path)], level=level)
        return found

    def kernel(self, level: str = FULL) -> Kernel:
        kernel = self.look(level).kernel
        assert kernel is not None
        return kernel

    def type(self, text: str) -> None:
        self.transport.run([("send-keys", "-t", f"={self.name}:", "-l", "--", text)])


@pytest.fixture(params=["local", "pipe"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def start(kind: str, place: Path) -> Iterator[Callable[..., Pane]]:
    """Starts a program on a terminal."""
    socket = f"tmuxctl-probe-{os.getpid()}"
    config = b"set -g exit-empty off\nset -g remain-on-exit on\n"
    transport: Transport = (
        LocalTransport(socket, config=config) if kind == "local" else PipeTransport(socket=socket, config=config)
    )

    def begin(*argv: str) -> Pane:
        name = f"s{next(NUMBERS)}"
        # env: one argument alone would be a line for a shell
        transport.create([("new-session", "-d", "-s", name, "-x", "80", "-y", "24", "env", *argv)])
        return Pane(transport, name)

    yield begin
    with contextlib.suppress(Unreachable):
        transport.run([("kill-server",)])
    transport.close()


def python(source: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", source)


def front(kernel: Kernel) -> list[Program]:
    return [one for one in kernel.programs if one.foreground]


def names(kernel: Kernel) -> list[str]:
    return sorted(one.name for one in kernel.programs)


def threads(kernel: Kernel) -> list[Thread]:
    return [thread for one in kernel.programs for thread in one.threads]


def reading(kernel: Kernel | None, name: str) -> Thread | None:
    """The thread of this program that reads, if it is the only one there."""
    if kernel is None:
        return None
    return sleeping(kernel, "read") if names(kernel) == [name] else None


def sleeping(kernel: Kernel, *callers: str) -> Thread | None:
    """The first thread that sleeps in one of these calls."""
    return next((thread for thread in threads(kernel) if thread.call in callers), None)


def sleeping_in_epoll(seen: Pane, until: Until) -> Thread:
    """The thread of a program that waits in epoll, as a look tells of it that began when it did: an earlier one may have read
    its descriptors before it registered any."""
    until(lambda: sleeping(seen.kernel(), "epoll_wait", "epoll_pwait"))
    thread = sleeping(seen.kernel(), "epoll_wait", "epoll_pwait")
    assert thread
    return thread


# what every machine tells


def pane(control: Control, name: str) -> Pane:
    return Pane(control.machine.transport, name)


def settings(seen: Pane) -> tuple[bool, bool, int | None]:
    """Whether the terminal takes whole lines, echoes, and how many bytes it keeps unread."""
    tty = seen.kernel().tty
    assert tty is not None
    return tty[:3]


def test_a_program_that_waits_for_a_line_reads_its_terminal(control: Control, until: Until) -> None:
    control.new("t", LINES)
    seen = pane(control, "t")
    thread = until(lambda: reading(seen.kernel(), "cat"))
    assert (thread.tty, thread.alone, thread.state) == (True, True, "S")
    kernel = seen.kernel()
    (reader,) = kernel.programs
    assert (reader.name, reader.pid, reader.foreground, reader.level) == ("cat", seen.pid, True, FULL)
    assert (kernel.group, kernel.inner, kernel.via) == (seen.pid, None, None)
    assert kernel.tty is not None
    counted = None if isinstance(control.machine.transport, PipeTransport) else 0
    assert (kernel.tty.canonical, kernel.tty.unread) == (True, counted)


# the process in between ends at once: no parent leads from the one that reads to the terminal's programs
STRANGER = """
terminal=$(tty)
(setsid sh -c "read line < $terminal" < /dev/null > /dev/null 2>&1 &)
exec sleep 1000
"""


def test_a_reader_that_does_not_belong_to_the_terminal_is_found_when_it_is_looked_for(
    start: Callable[..., Pane], kind: str, until: Until
) -> None:
    seen = start("sh", "-c", STRANGER)

    def found(*, beyond: bool) -> list[str]:
        (probe,) = seen.transport.probe([(seen.pid, seen.path)], beyond=beyond)
        assert probe.kernel is not None
        return [one.name for one in probe.kernel.programs if any(thread.tty for thread in one.threads)]

    if kind == "local":
        until(lambda: found(beyond=True) == ["sh"])
    assert found(beyond=False) == []
    seen.type("x\n")
    until(lambda: found(beyond=True) == [])


def test_a_program_without_echo_shows_in_its_terminal(control: Control, until: Until) -> None:
    control.new("t", program("secret"))
    seen = pane(control, "t")
    assert until(lambda: (tty := seen.kernel().tty) and tty.canonical and not tty.echo)


def test_who_took_a_line_has_slept_and_woken_since(control: Control, until: Until) -> None:
    control.new("t", LINES)
    seen = pane(control, "t")
    before = until(lambda: reading(seen.kernel(), "cat"))
    control.send("t", b"hello")
    assert until(lambda: (now := sleeping(seen.kernel(), "read")) and now.switches > before.switches)


def test_a_command_in_the_foreground_hides_its_shell(control: Control, until: Until) -> None:
    control.new("t", SHELL)
    seen = pane(control, "t")
    assert until(lambda: (thread := sleeping(seen.kernel(), "read")) and thread.tty)
    control.send("t", b"sleep 600")
    until(lambda: names(seen.kernel()) == ["sleep"] and sleeping(seen.kernel(), "clock_nanosleep"))
    kernel = seen.kernel()
    assert [thread.tty for thread in threads(kernel)] == [False]
    assert kernel.group == kernel.programs[0].pid != seen.pid


def test_what_is_typed_ahead_waits_unread(control: Control, until: Until) -> None:
    control.new("t", SHELL)
    seen = pane(control, "t")
    control.send("t", b"sleep 600")
    until(lambda: names(seen.kernel()) == ["sleep"])
    control.send("t", b"12345")
    if isinstance(control.machine.transport, PipeTransport):
        assert until(lambda: settings(seen) == (True, True, None)), "no stty counts what is unread"
    else:
        assert until(lambda: settings(seen) == (True, True, 6))


@pytest.mark.parametrize("level", [WCHAN, NONE])
def test_no_more_is_asked_than_the_level(control: Control, until: Until, level: str) -> None:
    control.new("t", LINES)
    seen = pane(control, "t")
    until(lambda: reading(seen.kernel(), "cat"))
    (reader,) = seen.kernel(level).programs
    (thread,) = reader.threads
    assert (reader.level, reader.name, thread.state) == (level, "cat", "S")
    assert (thread.call, thread.tty, thread.alone) == (None, None, False)
    assert bool(thread.wchan) == (level == WCHAN)
    assert (reader.holds, reader.sockets) == ((True, 0) if level == WCHAN else (None, None))


def test_after_its_end_a_program_is_not_told_of(control: Control, until: Until) -> None:
    control.new("t", SHELL)
    seen = pane(control, "t")
    control.send("t", b"exit 3")
    assert until(lambda: seen.kernel()[1:5] == (0, (), None, None))


def test_a_probe_tells_when_it_was(control: Control) -> None:
    control.new("t", LINES)
    seen, machine = pane(control, "t"), control.machine.transport
    before = machine.clock()
    machine.put(f"{machine.home}/before", b"")
    found = seen.look()
    assert before <= found.at <= machine.clock()
    assert machine.files(machine.home)["before"].modified <= found.wall
    machine.put(f"{machine.home}/after", b"")
    # a file's time lags by up to a tick of the kernel's
    assert found.wall <= machine.files(machine.home)["after"].modified + 0.1


def test_several_panes_are_told_in_order(control: Control, until: Until) -> None:
    control.new("a", LINES)
    control.new("b", SHELL)
    one, other = pane(control, "a"), pane(control, "b")
    until(lambda: reading(one.kernel(), "cat") and reading(other.kernel(), "sh"))
    asked = [(other.pid, other.path), (one.pid, one.path), (other.pid, other.path)]
    found = [names(one.kernel) for one in control.machine.transport.probe(asked) if one.kernel]
    assert found == [["sh"], ["cat"], ["sh"]]
    assert control.machine.transport.probe([]) == []


# who waits for the terminal


POLLS = {
    "alone": ("p.poll()", (True, True)),
    "with a timeout": ("p.poll(600_000)", (True, False)),
    "with a socket": ("p.register(s, 1); p.poll()", (True, False)),
    "for output only": ("p.register(0, 0); p.register(s, 1); p.poll()", (False, False)),
    "a socket": ("p.unregister(0); p.register(s, 1); p.poll()", (False, False)),
    "inside an epoll": ("e.register(0, 1); p.unregister(0); p.register(e, 1); p.poll()", (True, True)),
    "inside an epoll with a socket": (
        "e.register(0, 1); e.register(s, 1); p.unregister(0); p.register(e, 1); p.poll()",
        (True, False),
    ),
}


@pytest.mark.parametrize("case", POLLS)
def test_poll(start: Callable[..., Pane], until: Until, case: str) -> None:
    source, expected = POLLS[case]
    about = (
        "import select, socket; s, t = socket.socketpair(); e = select.epoll(); p = select.poll(); p.register(0, 1);"
    )
    seen = start(*python(about + source))
    thread = until(lambda: sleeping(seen.kernel(), "poll", "ppoll"))
    assert (thread.tty, thread.alone) == expected
    (waiter,) = seen.kernel().programs
    assert (waiter.sockets, waiter.holds, waiter.level) == (2, True, FULL)


SELECTS = {
    "alone": ("[0], [], []", (True, True)),
    "with a timeout": ("[0], [], [], 600", (True, False)),
    "with a socket": ("[0, s], [], []", (True, False)),
    "for a socket's output": ("[0], [f], []", (True, False)),
    "a socket": ("[s], [], []", (False, False)),
    "another descriptor of the terminal": ("[70], [], []", (True, True)),
}


@pytest.mark.parametrize("case", SELECTS)
def test_select(start: Callable[..., Pane], until: Until, case: str) -> None:
    source, expected = SELECTS[case]
    about = "import fcntl, os, select, socket; s, t = socket.socketpair(); f, g = socket.socketpair(); os.dup2(0, 70)"
    full = "f.setblocking(False)\ntry:\n while True: f.send(bytes(65536))\nexcept BlockingIOError: pass"
    seen = start(*python(f"{about}\n{full}\nselect.select({source})"))
    thread = until(lambda: sleeping(seen.kernel(), "select", "pselect6"))
    assert (thread.tty, thread.alone) == expected


EPOLLS = {
    "alone": ("e.register(0, 1); e.poll()", (True, True), True),
    "with a timeout": ("e.register(0, 1); e.poll(600)", (True, False), True),
    "with a socket": ("e.register(0, 1); e.register(s, 1); e.poll()", (True, False), True),
    "a socket": ("e.register(s, 1); e.poll()", (False, False), False),
    "one of two": ("e.register(0, 1); f = select.epoll(); f.register(s, 1); f.poll()", (False, False), None),
    "neither of two": ("e.register(s, 1); f = select.epoll(); f.register(s, 1); f.poll()", (False, False), False),
}


@pytest.mark.parametrize("case", EPOLLS)
def test_epoll(start: Callable[..., Pane], until: Until, case: str) -> None:
    source, told, guessed = EPOLLS[case]
    about = "import select, socket; s, t = socket.socketpair(); e = select.epoll();"
    seen = start(*python(about + source))
    thread = sleeping_in_epoll(seen, until)
    assert (thread.tty, thread.alone) == told
    (thread,) = threads(seen.kernel(WCHAN))
    assert (thread.call, thread.tty, thread.alone) == (None, guessed, False)


def test_a_shell_at_its_prompt_waits_for_nothing_else(start: Callable[..., Pane], until: Until, needs: Needs) -> None:
    needs("bash")
    seen = start("HISTFILE=", "bash", "--norc", "-i")
    thread = until(lambda: sleeping(seen.kernel(), "pselect6"))
    assert (thread.tty, thread.alone) == (True, True)
    assert names(seen.kernel()) == ["bash"]


def test_a_program_that_sleeps_waits_for_nothing(start: Callable[..., Pane], until: Until) -> None:
    seen = start(*python("import time; time.sleep(600)"))
    thread = until(lambda: sleeping(seen.kernel(), "clock_nanosleep"))
    assert (thread.tty, thread.alone) == (False, False)


def test_a_thread_that_reads_is_seen_behind_one_that_does_not(start: Callable[..., Pane], until: Until) -> None:
    seen = start(*python("import sys, threading; threading.Thread(target=sys.stdin.readline).start()"))
    until(lambda: [thread.call for thread in threads(seen.kernel())] == ["futex", "read"])
    main, reader = threads(seen.kernel())
    assert (main.id, main.tty, reader.tty) == (seen.pid, False, True)


def test_reading_by_way_of_dev_tty_counts(start: Callable[..., Pane], until: Until) -> None:
    seen = start("sh", "-c", "exec cat </dev/tty 2>/dev/null")
    assert until(lambda: (thread := reading(seen.kernel(), "cat")) and thread.tty)


def test_reading_something_else_does_not_count(start: Callable[..., Pane], place: Path, until: Until) -> None:
    os.mkfifo(place / "fifo")
    seen = start(*python(f"import os; os.read(os.open({str(place / 'fifo')!r}, os.O_RDWR), 1)"))
    thread = until(lambda: sleeping(seen.kernel(), "read"))
    assert (thread.tty, thread.alone) == (False, False)


# which processes are told of


def test_a_pipeline_is_all_in_the_foreground_and_waits_for_nothing(start: Callable[..., Pane], until: Until) -> None:
    seen = start("sh", "-c", "sleep 600 | cat; :")
    until(lambda: names(seen.kernel()) == ["cat", "sh", "sleep"] and sleeping(seen.kernel(), "read"))
    kernel = seen.kernel()
    assert names(kernel) == sorted(one.name for one in front(kernel))
    assert {thread.tty for thread in threads(kernel)} == {False}


def test_a_job_in_the_background_is_none_of_the_shells(start: Callable[..., Pane], until: Until, needs: Needs) -> None:
    needs("bash")
    seen = start("HISTFILE=", "bash", "--norc", "-i")
    until(lambda: sleeping(seen.kernel(), "pselect6"))
    seen.type(BUSY_JOB + "\n")
    children = Path(f"/proc/{seen.pid}/task/{seen.pid}/children")
    until(lambda: children.read_text() and sleeping(seen.kernel(), "pselect6"))
    assert names(seen.kernel()) == ["bash"]
    os.kill(int(children.read_text()), signal.SIGKILL)


def test_a_stopped_job_is_in_the_background(start: Callable[..., Pane], until: Until, needs: Needs) -> None:
    needs("bash")
    seen = start("HISTFILE=", "bash", "--norc", "-i")
    until(lambda: sleeping(seen.kernel(), "pselect6"))
    seen.type("sleep 600\n")
    until(lambda: names(seen.kernel()) == ["sleep"])
    seen.type("\x1a")
    assert until(lambda: names(seen.kernel()) == ["bash"])


def test_a_stopped_program_waits_for_nothing(start: Callable[..., Pane], until: Until) -> None:
    seen = start("sh", "-c", "cat; :")
    until(lambda: sleeping(seen.kernel(), "read"))
    reader = next(one for one in seen.kernel().programs if one.name == "cat")
    os.kill(reader.pid, signal.SIGSTOP)
    until(lambda: any(thread.state == "T" for thread in threads(seen.kernel())))
    assert True not in [thread.tty for thread in threads(seen.kernel())]


# it ends with its parent, who holds the other end of the pipe
ELSEWHERE = "import subprocess as s; child = s.Popen(['cat'], stdin=s.PIPE, start_new_session=True); s.os.read(0, 1)"


def test_what_a_program_runs_elsewhere_belongs_to_it(start: Callable[..., Pane], until: Until) -> None:
    seen = start(*python(ELSEWHERE))
    until(lambda: "cat" in names(seen.kernel()) and True in [thread.tty for thread in threads(seen.kernel())])
    kernel = seen.kernel()
    assert [(one.name == "cat", one.foreground) for one in kernel.programs] == [(False, True), (True, False)]
    assert [thread.tty for thread in threads(kernel)] == [True, False]


ORPHAN = """
import os, signal, time
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    if os.fork() == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.read(0, 1)
        time.sleep(600)
    os._exit(0)
os.wait()
time.sleep(600)
"""


def test_a_foreground_whose_parent_has_gone_is_found(start: Callable[..., Pane], until: Until) -> None:
    seen = start(*python(ORPHAN))
    until(lambda: (thread := sleeping(seen.kernel(), "read")) and thread.tty)
    (orphan,) = seen.kernel().programs
    assert orphan.foreground
    assert orphan.parent != seen.pid
    os.kill(orphan.pid, signal.SIGKILL)


def test_a_kernel_without_lists_of_children_tells_the_same(start: Callable[..., Pane], until: Until) -> None:
    class Unlisted(procfs.LocalKernelFiles):
        def children(self, pid: int, threads: list[int]) -> list[int] | None:
            return None

    seen = start(*python(ELSEWHERE))
    until(lambda: "cat" in names(seen.kernel()) and True in [thread.tty for thread in threads(seen.kernel())])
    kernel = probe.read_kernel(Unlisted(), seen.pid, seen.path)
    assert [one.pid for one in kernel.programs] == [one.pid for one in seen.kernel().programs]
    assert len(kernel.programs) == 2


def test_processes_that_have_ended_are_left_out(start: Callable[..., Pane], until: Until) -> None:
    seen = start(*python("import subprocess; ended = subprocess.Popen(['true']); input()"))
    until(lambda: (thread := sleeping(seen.kernel(), "read", "poll")) and thread.tty is not False)
    child = Path(f"/proc/{seen.pid}/task/{seen.pid}/children").read_text().strip()
    until(lambda: Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    assert [one.pid for one in seen.kernel().programs] == [seen.pid]


def test_a_process_of_another_terminal_is_not_the_panes(start: Callable[..., Pane], until: Until) -> None:
    one, other = start("cat"), start("cat")
    until(lambda: reading(one.kernel(), "cat") and reading(other.kernel(), "cat"))
    for pid in (other.pid, os.getpid(), 2**22 + 1):
        (found,) = one.transport.probe([(pid, one.path)])
        assert found.kernel is not None
        assert found.kernel.tty is not None
        assert found.kernel[1:5] == (0, (), None, None)
    (found,) = one.transport.probe([(os.getpid(), "/dev/null")])
    assert found.kernel == Kernel(None, 0, ())


def test_the_terminal_inside_is_told_with_who_holds_it(start: Callable[..., Pane], until: Until, needs: Needs) -> None:
    needs("script")
    seen = start("script", "-q", "-c", "stty -echo; exec cat", "/dev/null")
    until(lambda: reading(seen.kernel().inner, "cat"))
    kernel = seen.kernel()
    assert [(one.name, one.foreground) for one in kernel.programs] == [("script", True), ("cat", False)]
    assert True not in [thread.tty for thread in kernel.programs[1].threads]
    inner = kernel.inner
    assert inner is not None
    assert (inner.via, names(inner), inner.group) == ("script", ["cat"], inner.programs[0].pid)
    assert [(thread.call, thread.tty, thread.alone) for thread in threads(inner)] == [("read", True, True)]
    assert inner.tty is not None
    assert (inner.tty.canonical, inner.tty.echo) == (True, False)


def test_terminals_are_followed_three_deep(start: Callable[..., Pane], until: Until, needs: Needs) -> None:
    needs("script")
    command = "exec cat"
    for _ in range(4):
        command = f"exec script -q -c {json.dumps(command)} /dev/null".replace("$", "\\$")
    seen = start("sh", "-c", command)

    def depth(kernel: Kernel | None) -> int:
        return 0 if kernel is None else 1 + depth(kernel.inner)

    until(lambda: "cat" in names(seen.kernel()))
    assert until(lambda: depth(seen.kernel()) == 4)


# how much is told


def test_of_another_users_process_little_is_told(start: Callable[..., Pane], kind: str, until: Until) -> None:
    if os.getuid():
        pytest.skip("only root can become another user")
    if kind == "pipe":
        pytest.skip("the shell over there is root's")
    seen = start("cat")
    until(lambda: reading(seen.kernel(), "cat"))
    (reader,) = as_nobody(seen).programs
    assert (reader.name, reader.level, reader.foreground) == ("cat", NONE, True)
    assert (reader.holds, reader.sockets, reader.state) == (None, None, "S")
    ((thread),) = reader.threads
    assert (thread.state, thread.wchan, thread.call, thread.tty) == ("S", "", None, None)


def as_nobody(seen: Pane) -> Kernel:
    """What another user is told."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(theirs, json.dumps(seen.kernel()).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        told = json.load(answer)
    os.waitpid(child, 0)
    return looked_again(told)


def looked_again(kernel: Any) -> Kernel:
    (look,) = from_json([{"format": 1}, {**BLANK._asdict(), "kernel": kernel}]).looks
    assert look.kernel is not None
    return look.kernel


BLANK = Look(1.0, 0, None, 0, 0, True, False, 80, 24, "", "", False, None, None, None, None, None)


def test_what_was_told_can_be_kept_as_json(start: Callable[..., Pane], until: Until, needs: Needs) -> None:
    needs("script")
    seen = start("script", "-q", "-c", "exec cat", "/dev/null")
    until(lambda: reading(seen.kernel().inner, "cat"))
    evidence = Evidence((BLANK._replace(kernel=seen.kernel()), BLANK._replace(at=2.0, kernel=seen.kernel(WCHAN))))
    assert from_json(json.loads(json.dumps(to_json(evidence)))) == evidence


def test_the_size_of_a_terminal_and_how_long_its_reads_wait_are_told(start: Callable[..., Pane], until: Until) -> None:
    seen = start("sh", "-c", "stty -icanon min 0 time 7; exec sleep 600")
    tty = until(lambda: (found := seen.kernel().tty) and not found.canonical and found)
    assert (tty.vmin, tty.vtime, tty.size) == (0, 0.7, (80, 24))


def test_the_time_since_a_process_began_is_told(start: Callable[..., Pane], until: Until) -> None:
    seen = start("sleep", "600")
    began = time.monotonic()
    kernel = until(lambda: names(found := seen.kernel()) == ["sleep"] and found)
    assert kernel.clock is not None
    assert -0.1 <= (kernel.clock - kernel.programs[0].started) / 100 <= time.monotonic() - began + 5


LEADERLESS = """
import ctypes, threading, os
threading.Thread(target=os.read, args=(0, 1)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_program_whose_first_thread_has_ended_is_read_by_another(start: Callable[..., Pane], until: Until) -> None:
    seen = start(*python(LEADERLESS))
    until(lambda: (found := seen.kernel().programs) and found[0].state == "Z")
    assert until(lambda: (thread := sleeping(seen.kernel(), "read")) and thread.tty)


MANY = """
import os, threading, time
for one in range(90):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
threading.Thread(target=os.read, args=(0, 1), daemon=True).start()
time.sleep(600)
"""


def test_a_reader_among_very_many_threads_is_seen(start: Callable[..., Pane], until: Until) -> None:
    seen = start(*python(MANY))
    assert until(lambda: (thread := sleeping(seen.kernel(), "read")) and thread.tty)
    assert len(threads(seen.kernel())) == probe.THREADS


NESTED = """
import select, time
outer, inner = select.epoll(), select.epoll()
inner.register(0, select.EPOLLIN), outer.register(inner.fileno(), select.EPOLLIN)
outer.poll()
"""


def test_an_epoll_in_an_epoll_waits_for_the_terminal(start: Callable[..., Pane], until: Until) -> None:
    seen = start(*python(NESTED))
    thread = sleeping_in_epoll(seen, until)
    assert (thread.tty, thread.alone) == (True, True)


TIMEOUT = "import select; [select.select([0], [], [], 7.5) for _ in range(99)]"


def test_how_long_a_program_waits_for_a_key_is_told(start: Callable[..., Pane], until: Until) -> None:
    seen = start(*python(TIMEOUT))
    thread = until(lambda: sleeping(seen.kernel(), "select", "pselect6"))
    assert (thread.tty, thread.alone) == (True, False)
    assert thread.timeout == 7.5


def test_without_proc_the_terminal_and_what_ps_shows_are_told(place: Path, until: Until) -> None:
    transport = PipeTransport(NO_PROC, socket=f"tmuxctl-probe-{os.getpid()}")
    transport.create([("new-session", "-d", "-s", "t", "stty -echo; exec cat")])
    seen = Pane(transport, "t")
    plain = Tty(True, False, None, size=(80, 24))
    assert until(lambda: [(one.name, one.level) for one in seen.kernel().programs] == [("cat", PS)])
    assert (seen.kernel().tty, seen.kernel().group) == (plain, seen.pid)
    assert seen.kernel(NONE) == Kernel(plain, 0, ())
    assert [one.kernel for one in transport.probe([(seen.pid, "/dev/null"), (1, "/nowhere")])] == [None, None]
    transport.run([("kill-server",)])
    transport.close()


def test_a_terminal_is_not_held_open(start: Callable[..., Pane], until: Until) -> None:
    seen = start("cat")
    until(lambda: sleeping(seen.kernel(), "read"))
    for level in (FULL, WCHAN, NONE):
        seen.kernel(level)
    assert seen.path not in (procfs.LocalKernelFiles().links(os.getpid()) or {}).values()


# system calls


class Descriptors:
    """A process that has the terminal at 0, a socket at 1, an epoll with the terminal at 5 (each next one has the one
    before it), an eventfd at 10 and an epoll with both at 11, and whose memory is one array."""

    def __init__(self, memory: bytes = b"") -> None:
        self._memory = memory

    def terminal(self, descriptor: int) -> bool | None:
        return {0: True, 9: None}.get(descriptor, False)

    def watched(self, descriptor: int) -> list[tuple[int, int]] | None:
        nested = {one: [(one - 1, 0x1)] for one in (6, 7, 8)}
        return {**nested, 5: [(0, 0x19)], 11: [(0, 0x1), (10, 0x1)], 12: [(0, 0x1), (1, 0x1)]}.get(descriptor)

    def inward(self, descriptor: int) -> bool:
        return descriptor == 10

    def memory(self, address: int, size: int) -> bytes:
        return self._memory[address : address + size]


def line(number: int, *arguments: int, counter: int = 7) -> bytes:
    given = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    return " ".join([str(number), *map(hex, [*given, 7, counter])]).encode() + b"\n"


FOREVER = 2**32 - 1
CALLS = {
    "reading": ("x86_64", line(0, 0), ("read", True, True)),
    "reading on arm": ("aarch64", line(63, 0), ("read", True, True)),
    "reading what is closed": ("x86_64", line(0, 9), ("read", None, False)),
    "reading a file": ("aarch64", line(65, 1), ("readv", False, False)),
    "epoll": ("x86_64", line(232, 5, 1, 1, FOREVER), ("epoll_wait", True, True)),
    "epoll on arm": ("aarch64", line(22, 5, 1, 1, 500), ("epoll_pwait", True, False)),
    "epoll by a struct": ("aarch64", line(441, 5, 1, 1, 0), ("epoll_pwait2", True, True)),
    "epoll by a struct with a timeout": ("x86_64", line(441, 5, 1, 1, 4096), ("epoll_pwait2", True, False)),
    "an epoll in an epoll": ("x86_64", line(232, 6, 1, 1, FOREVER), ("epoll_wait", True, True)),
    "no epoll": ("x86_64", line(232, 1, 1, 1, FOREVER), ("epoll_wait", False, False)),
    "a lock": ("aarch64", line(98), ("futex", False, False)),
    "a child": ("aarch64", line(260), ("wait4", False, False)),
    "io_uring": ("x86_64", line(426), ("io_uring_enter", None, False)),
    "a worker of io_uring": ("x86_64", line(0, 0, counter=0), (None, None, False)),
    "begun again": ("aarch64", line(128), ("restart_syscall", None, False)),
    "nothing known": ("x86_64", line(9999), ("9999", None, False)),
    "another machine": ("riscv64", line(63, 0), ("63", None, False)),
    "running": ("x86_64", b"running\n", ("running", False, False)),
    "a page": ("x86_64", b"-1 0x7ffd 0x7f9b\n", (None, False, False)),
}


def waiting(shown: bytes, process: Descriptors, machine: str) -> tuple[str | None, bool | None, bool, bool]:
    wait = calls.parse_wait(shown, process, machine)
    return wait.call, wait.tty, wait.alone, wait.readable


@pytest.mark.parametrize("case", CALLS)
def test_a_line_of_proc_is_understood(case: str) -> None:
    machine, shown, expected = CALLS[case]
    assert waiting(shown, Descriptors(), machine) == (*expected, True)


TIMES = struct.pack("=qq", 2, 500_000_000)
TIMED = {
    "poll": (line(7, 16, 1, 250), 0.25),
    "poll for ever": (line(7, 16, 1, FOREVER), None),
    "ppoll": (line(271, 16, 1, 1024), 2.5),
    "ppoll for ever": (line(271, 16, 1, 0), None),
    "pselect6": (line(270, 1, 24, 0, 0, 1024), 2.5),
    "select": (line(23, 1, 24, 0, 0, 1040), 0.2),
    "select with a time that cannot be read": (line(23, 1, 24, 0, 0, 9000), None),
    "epoll_wait": (line(232, 5, 1, 1, 1500), 1.5),
    "epoll_pwait2": (line(441, 5, 1, 1, 1024), 2.5),
}


@pytest.mark.parametrize("case", TIMED)
def test_after_how_long_a_call_gives_up_is_told(case: str) -> None:
    shown, seconds = TIMED[case]
    memory = bytes(16) + struct.pack("=ihhQ", 0, 1, 0, 1)
    memory += bytes(1024 - len(memory)) + TIMES + struct.pack("=qq", 0, 200_000)
    found = calls.parse_wait(shown, Descriptors(memory), "x86_64")
    assert (found.tty, found.timeout) == (True, seconds)
    assert found.alone == ("for ever" in case)


def test_what_a_process_writes_to_itself_is_told_from_what_others_do() -> None:
    own, others = (calls.parse_wait(line(232, one, 1, 1, FOREVER), Descriptors(), "x86_64") for one in (11, 12))
    assert (own.tty, own.alone, own.inward) == (True, False, True)
    assert (others.tty, others.alone, others.inward) == (True, False, False)
    assert not calls.parse_wait(line(232, 11, 1, 1, 500), Descriptors(), "x86_64").inward


def test_an_epoll_in_an_epoll_is_followed_three_deep() -> None:
    assert [calls.parse_wait(line(232, one, 1, 1, FOREVER), Descriptors(), "x86_64").tty for one in (5, 8, 13)] == [
        True,
        True,
        False,
    ]


def test_a_set_that_cannot_be_read_is_unknown() -> None:
    assert waiting(line(7, 0, 2, FOREVER), Descriptors(bytes(8)), "x86_64") == ("poll", None, False, False)


def test_of_a_large_set_only_a_part_is_looked_at() -> None:
    entries = b"\0\0\0\0\1\0\0\0" * 300
    assert waiting(line(7, 0, 256, FOREVER), Descriptors(entries), "x86_64") == ("poll", True, True, True)
    assert waiting(line(7, 0, 300, FOREVER), Descriptors(entries), "x86_64") == ("poll", True, False, True)


@pytest.mark.parametrize(
    ("machine", "header"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        ("aarch64", "/usr/include/asm-generic/unistd.h"),
    ],
)
def test_the_numbers_are_the_kernels(machine: str, header: str) -> None:
    if not os.path.exists(header):
        pytest.skip(f"there is no {header}")
    defined = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$", Path(header).read_text(), re.MULTILINE)
    numbers = {name.replace("fstatat", "newfstatat").replace("newnew", "new"): int(number) for name, number in defined}
    known = {name: number for number, name in calls.load_call_names(machine).items()}
    assert {name: known[name] for name in known if name in numbers} == {
        name: numbers[name] for name in known if name in numbers
    }
    assert len(known.keys() & numbers.keys()) >= len(known) - 1, "futex_wait is newer than some headers"
