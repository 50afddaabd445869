"""Wake-ups: none is lost, none is late, and many threads share one inotify instance."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tmuxctl.transport import notify
from tmuxctl.transport.base import Watch

KINDS = ["polling"] + (["kernel"] if sys.platform == "linux" else [])


def watch(kind: str, folders: list[Path], pid: int | None = None) -> Watch:
    names = [str(folder) for folder in folders]
    if kind == "kernel":
        return notify.watch(names, pid)
    return notify.PollingWatch(partial(notify.look_at_files, names, pid))


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def append(path: Path, text: str = "x") -> None:
    with path.open("a") as file:
        file.write(text)


def asleep(threads: int) -> None:
    """Wait until so many threads sleep in the hub."""
    hub = notify._share_hub()
    while len(hub.followers) + (hub.leader is not None) < threads:
        time.sleep(0.001)


linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@pytest.mark.parametrize("kind", KINDS)
def test_a_wait_without_a_change_ends_with_its_time(kind, tmp_path):
    watched = watch(kind, [tmp_path])
    assert not watched.wait(0.03)
    assert not watched.wait(0)
    watched.close()
    watched.close()


def test_a_look_is_not_told_of_and_the_sleep_behind_it_is():
    slept: list[float] = []
    looks = iter(range(3))
    watched = notify.PollingWatch(lambda: (False, next(looks) // 2), slept.append)
    assert watched.wait(0.01)
    assert [round(seconds, 3) for seconds in slept] == [0.01]


@pytest.mark.parametrize("kind", KINDS)
def test_growth_a_new_name_and_a_removal_wake(kind, tmp_path):
    file = tmp_path / "seg"
    file.touch()
    watched = watch(kind, [tmp_path])
    append(file)
    assert watched.wait(10)
    file.rename(tmp_path / "other")
    assert watched.wait(10)
    (tmp_path / "other").unlink()
    assert watched.wait(10)
    while watched.wait(0):
        pass
    assert not watched.wait(0.02)
    watched.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_happened_before_the_wait_is_told_at_once(kind, tmp_path):
    watched = watch(kind, [tmp_path])
    append(tmp_path / "seg")
    assert watched.wait(0)
    watched.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_a_process_is_told_once(kind, tmp_path, sleeper):
    watched = watch(kind, [tmp_path], sleeper.pid)
    assert not watched.wait(0.02)
    sleeper.kill()
    sleeper.wait()
    assert watched.wait(10)
    assert not watched.wait(0.02)
    late = watch(kind, [tmp_path], sleeper.pid)
    assert late.wait(10)
    watched.close()
    late.close()


@pytest.mark.parametrize("kind", KINDS)
def test_closing_ends_a_wait(kind, tmp_path):
    watched = watch(kind, [tmp_path])
    thread = threading.Thread(target=watched.wait, args=(60,))
    thread.start()
    if kind == "kernel":
        asleep(1)
    watched.close()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_that_comes_later_wakes(kind, tmp_path):
    watched = watch(kind, [tmp_path / "later"])
    (tmp_path / "later").mkdir()
    append(tmp_path / "later" / "seg")
    assert watched.wait(10)
    watched.close()


@pytest.mark.parametrize("kind", KINDS)
def test_output_does_not_wake_who_does_not_heed_it_and_is_told_with_the_next_wait(kind, tmp_path):
    with (tmp_path / "seg").open("ab", buffering=0) as journal:
        watched, heeding = watch(kind, [tmp_path]), watch(kind, [tmp_path])
        journal.write(b"x")
        assert not watched.wait(0.02, output=False)
        assert heeding.wait(10)
        journal.write(b"x")
        assert watched.wait(10)
        assert heeding.wait(10)
    watched.close()
    heeding.close()


@linux
def test_the_kernel_tells_nothing_of_output_that_nobody_heeds(tmp_path):
    def is_told() -> bool:
        journal.write(b"x")
        try:
            return bool(os.read(notify._share_hub()._inotify, 4096))
        except BlockingIOError:
            return False

    with (tmp_path / "seg").open("ab", buffering=0) as journal:
        watched = watch("kernel", [tmp_path])
        assert is_told()
        assert not watched.wait(0, output=False)
        assert not is_told()
        heeding = watch("kernel", [tmp_path])
        assert is_told()
        assert not watched.wait(0, output=False)
        heeding.close()
        assert not is_told()
    watched.close()


@linux
def test_an_end_and_a_new_file_wake_who_does_not_heed_output(tmp_path, sleeper):
    watched = watch("kernel", [tmp_path], sleeper.pid)
    (tmp_path / "seg").touch()
    assert watched.wait(10, output=False)
    sleeper.kill()
    assert watched.wait(10, output=False)
    watched.close()


@linux
def test_a_removed_folder_wakes_and_leaves_nothing(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    watched = watch("kernel", [folder])
    folder.rmdir()
    assert watched.wait(10)
    assert not watched.wait(0.02)
    watched.close()


@linux
def test_fifty_threads_are_each_woken_by_their_own_folder_on_one_instance(tmp_path):
    folders = [tmp_path / str(number) for number in range(50)]
    for folder in folders:
        folder.mkdir()
    watches = [watch("kernel", [folder]) for folder in folders]
    woken = [threading.Semaphore(0) for _ in folders]
    going = [True] * len(folders)

    def body(number: int) -> None:
        while going[number]:
            if watches[number].wait(60):
                woken[number].release()

    threads = [threading.Thread(target=body, args=(number,)) for number in range(len(folders))]
    for thread in threads:
        thread.start()
    asleep(len(threads))
    inotify = [name for name in os.listdir("/proc/self/fd") if "inotify" in _link(name)]
    assert len(inotify) == 1
    for number in [*range(50), *reversed(range(50))]:
        append(folders[number] / "seg")
        assert woken[number].acquire(timeout=10)
    # the leader goes first each time: another takes over, and the last still wakes
    for number in range(50):
        going[number] = False
        append(folders[number] / "seg")
        threads[number].join(10)
        assert not threads[number].is_alive()
    for watched in watches:
        watched.close()


def _link(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except FileNotFoundError:
        return ""


@linux
def test_when_the_leader_times_out_the_others_are_still_woken(tmp_path, sleeper):
    short, long = watch("kernel", [tmp_path]), watch("kernel", [tmp_path], sleeper.pid)
    results: list[bool] = []
    first = threading.Thread(target=short.wait, args=(0.1,))
    first.start()
    asleep(1)
    second = threading.Thread(target=lambda: results.append(long.wait(60)))
    second.start()
    first.join(10)
    sleeper.kill()
    second.join(10)
    assert results == [True]
    short.close()
    long.close()


@linux
def test_a_follower_does_not_sleep_past_its_time(tmp_path):
    leader, follower = watch("kernel", [tmp_path]), watch("kernel", [tmp_path])
    thread = threading.Thread(target=leader.wait, args=(60,))
    thread.start()
    asleep(1)
    assert not follower.wait(0.03)
    append(tmp_path / "seg")
    thread.join(10)
    assert not thread.is_alive()
    assert follower.wait(0)
    leader.close()
    follower.close()


@linux
def test_a_leader_is_woken_by_an_event_that_another_thread_read_first(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    file = os.open(tmp_path / "own" / "seg", os.O_CREAT | os.O_WRONLY)
    leader, other = watch("kernel", [tmp_path / "own"]), watch("kernel", [tmp_path / "other"])
    woken = threading.Semaphore(0)

    def body() -> None:
        while leader.wait(60) and file:
            woken.release()

    thread = threading.Thread(target=body)
    thread.start()
    for _ in range(300):
        asleep(1)
        os.write(file, b"x")
        other.wait(0)
        assert woken.acquire(timeout=5)
    os.close(file)
    file = 0
    leader.close()
    other.close()
    thread.join(10)
    assert not thread.is_alive()


@linux
def test_two_watches_of_a_folder_are_both_told_and_one_may_go(tmp_path):
    one, two = watch("kernel", [tmp_path]), watch("kernel", [tmp_path])
    append(tmp_path / "seg")
    assert one.wait(10)
    assert two.wait(10)
    one.close()
    append(tmp_path / "seg")
    assert two.wait(10)
    two.close()


@linux
def test_a_forked_child_has_wake_ups_of_its_own_and_takes_none(tmp_path):
    watched = watch("kernel", [tmp_path])
    child = os.fork()
    if not child:
        code = 1
        try:
            watched.wait(0)
            mine = watch("kernel", [tmp_path])
            early = mine.wait(0)
            append(tmp_path / "seg")
            code = 0 if mine.wait(10) and not early else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert watched.wait(10)
    watched.close()


@linux
def test_where_the_kernel_has_no_room_it_looks_again_and_again(tmp_path):
    code = """
import ctypes, os, resource, sys
from tmuxctl.transport import notify
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
kept = []
try:
    while True:
        kept.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
os.close(kept.pop())
watched = notify.watch([sys.argv[1]])
open(sys.argv[1] + "/seg", "w").write("x")
print(type(watched).__name__, watched.wait(10))
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["PollingWatch", "True"], done.stderr


@linux
def test_what_a_program_takes_from_its_terminal_wakes(tmp_path):
    """Nothing need be printed for it, and it does not matter who typed."""
    master, slave = os.openpty()
    with subprocess.Popen(
        ["sh", "-c", "stty -echo; echo ready; read x; exec sleep 1000"], stdin=slave, stdout=slave
    ) as reader:
        try:
            assert os.read(master, 100).strip() == b"ready"
            watched = notify.watch([str(tmp_path)], terminal=os.ttyname(slave))
            assert watched.tells_of_runs
            assert not watched.wait(0.03)
            os.write(master, b"secret\n")
            assert watched.wait(30)
            watched.close()
        finally:
            reader.kill()
            os.close(master)
            os.close(slave)


OPENS_ITS_TERMINAL = """
import os, sys, termios, time
terminal = os.open("/dev/tty", os.O_RDWR)
print("ready", flush=True)
os.read(terminal, 100)
time.sleep(1000)
"""


@pytest.mark.night
@linux
def test_what_a_program_reads_from_dev_tty_wakes_who_rests_on_its_threads(tmp_path):
    """ssh, sudo and getpass open it: the kernel reports their reads for that file, not for the terminal's own."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-I", "-c", OPENS_ITS_TERMINAL])
    try:
        assert os.read(master, 100).strip() == b"ready"
        watched = notify.watch([str(tmp_path)], terminal=_name(pid))
        others = notify.watch([str(tmp_path)], terminal=_name(pid))
        threads, own = ((pid, pid),), ((os.getpid(), threading.get_native_id()),)
        # how often they had run is counted at first
        assert not watched.wait(3600, threads=threads)
        assert not watched.wait(0.05, threads=threads)
        os.write(master, b"secret\n")
        assert watched.wait(3600, threads=threads, timer_seconds=3600)
        # what runs without any read ends a rest too, as does what cannot be counted
        gone = ((pid, pid), (1, 0))
        for rested in (own, own, gone, gone):
            others.wait(3600, threads=rested)
        watched.close()
        others.close()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)


@pytest.mark.night
@linux
def test_a_watch_that_ends_while_another_counts_runs_is_in_nobodys_way(tmp_path):
    own = ((os.getpid(), threading.get_native_id()),)
    terminals = [os.openpty() for _ in range(2)]
    ended, other = (notify.watch([str(tmp_path)], terminal=os.ttyname(slave)) for _, slave in terminals)
    ended.wait(3600, threads=own)
    with ThreadPoolExecutor(1) as pool:
        resting = pool.submit(ended.wait, 3600, threads=own, timer_seconds=3600)
        other.wait(3600, threads=own)
        ended.close()
        # the check of all that rest comes now
        other.wait(3600, threads=own)
        assert resting.result(60)
    other.close()
    for pair in terminals:
        for handle in pair:
            os.close(handle)


@linux
def test_an_overflow_of_events_wakes_where_no_terminal_is_watched(tmp_path):
    """inotify(7): its descriptor is -1."""
    watched = watch("kernel", [tmp_path])
    hub = notify._share_hub()
    with hub.lock:
        hub._take_events(notify.EVENT.pack(-1, 0x4000, 0, 0))
    assert watched.wait(0)
    watched.close()


def _name(pid: int) -> str:
    """The path of a process's standard input."""
    return os.readlink(f"/proc/{pid}/fd/0")


@linux
def test_a_terminal_that_is_not_there_keeps_no_watch_from_its_folders(tmp_path):
    watched = notify.watch([str(tmp_path)], terminal="/dev/pts/nowhere")
    append(tmp_path / "seg")
    assert watched.wait(30)
    watched.close()


def _kernel_watches() -> int:
    """How many files the kernel watches for this process (proc(5), fdinfo), without /dev/tty."""
    (instance,) = [name for name in os.listdir("/proc/self/fd") if "inotify" in _link(name)]
    controlling = notify._hub is not None and notify._hub._controlling >= 0
    return Path(f"/proc/self/fdinfo/{instance}").read_text().count("inotify wd:") - controlling


@linux
def test_a_new_watch_is_told_what_comes_and_not_what_came_while_nobody_waited(tmp_path):
    for _ in range(100):
        watched = watch("kernel", [tmp_path])
        assert not watched.wait(0)
        append(tmp_path / "seg")
        assert watched.wait(10)
        watched.close()
        append(tmp_path / "seg")


@linux
def test_a_folder_that_took_the_place_of_one_that_was_waited_for_wakes(tmp_path):
    folder = tmp_path / "folder"
    for number in range(20):
        folder.mkdir()
        watched = watch("kernel", [folder])
        append(folder / "seg")
        assert watched.wait(10)
        watched.close()
        if number % 2:
            folder.rename(tmp_path / f"before-{number}")
        else:
            (folder / "seg").unlink()
            folder.rmdir()


@linux
def test_watches_that_nobody_waits_for_are_few_and_end_with_their_next_event(tmp_path):
    folders = [tmp_path / str(number) for number in range(100)]
    waiting = watch("kernel", [tmp_path])
    for folder in folders:
        folder.mkdir()
        watch("kernel", [folder]).close()
    assert _kernel_watches() <= notify.RESTING + 1
    while waiting.wait(0):
        pass
    for folder in folders:
        append(folder / "seg")
    assert not waiting.wait(0.02)
    assert _kernel_watches() == 1
    append(tmp_path / "seg")
    assert waiting.wait(10)
    waiting.close()


@linux
def test_two_watches_of_a_folder_are_told_by_turns(tmp_path):
    """One of which begins while the other waits: what is told of the one is not taken from the other."""
    for _ in range(50):
        one = watch("kernel", [tmp_path])
        append(tmp_path / "seg")
        two = watch("kernel", [tmp_path])
        assert one.wait(10)
        append(tmp_path / "seg")
        assert two.wait(10)
        one.close()
        two.close()
