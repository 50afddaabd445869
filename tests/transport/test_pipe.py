"""What the far end of a pipe may do to us, and what must not stay there."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.errors import NotFound, Unreachable, Usage
from tmuxctl.transport.pipe import PipeTransport
from tmuxctl.transport.proc import PS_COLUMNS, parse_ps, parse_stat, parse_table

# the same shell, on a machine that has no /proc
NO_PROC = ("sh", "-c", "sed -u s,/proc,/nowhere,g | sh")


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="tt-", dir="/tmp"))
    for name in ("HOME", "TMUX_TMPDIR", "TMPDIR"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    yield folder
    for record in folder.glob(".local/state/tmuxctl/*/server"):
        subprocess.run(["tmux", "-L", record.parent.name, "kill-server"], stderr=subprocess.DEVNULL, timeout=20)
    shutil.rmtree(folder)


@pytest.fixture
def pipe(place: Path) -> Iterator[PipeTransport]:
    made = PipeTransport(socket=f"tmuxctl-test-{os.getpid()}")
    yield made
    made.close()


@pytest.fixture
def without_proc(place: Path) -> Iterator[PipeTransport]:
    made = PipeTransport(NO_PROC, socket=f"tmuxctl-test-{os.getpid()}")
    yield made
    made.close()


def leftovers(place: Path) -> list[str]:
    return [path.name for path in place.glob("tmuxctl.*")]


def test_its_temporary_folder_is_private_and_goes_with_it(pipe: PipeTransport, place: Path) -> None:
    pipe.put(f"{place}/x", b"1")
    (name,) = leftovers(place)
    assert os.stat(place / name).st_mode & 0o777 == 0o700
    pipe.shell("echo one", stdin=b"two")
    assert pipe.shell("echo two") == (0, b"two\n")
    assert len(pipe.processes()) > 1
    assert {path.name for path in (place / name).iterdir()} <= {"d", "e0", "n"}
    pipe.close()
    assert leftovers(place) == []


def test_its_temporary_folder_goes_after_a_timeout_too(pipe: PipeTransport, place: Path) -> None:
    with pytest.raises(Unreachable):
        pipe.shell("sleep 60; true", timeout=0.2)
    assert leftovers(place) == []


def test_nothing_stays_when_we_die(place: Path) -> None:
    script = (
        "import os; from tmuxctl.transport.pipe import PipeTransport; p = PipeTransport(); p.home;"
        "print(os.listdir(os.environ['TMPDIR']), flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert b"tmuxctl." in done.stdout
    until(lambda: leftovers(place) == [])


def test_home_is_where_the_far_side_keeps_its_state(pipe: PipeTransport, place: Path) -> None:
    assert pipe.home == f"{place}/.local/state/tmuxctl/tmuxctl-test-{os.getpid()}"


def test_what_the_login_prints_is_no_answer(place: Path) -> None:
    noisy = PipeTransport(
        ("sh", "-c", "echo welcome; printf '\\nlast login 0 0\\n0\\n0\\n0\\n'; echo warning >&2; exec sh")
    )
    assert noisy.shell("echo fine") == (0, b"fine\n")
    noisy.close()


def test_output_that_looks_like_an_answer_is_only_output(pipe: PipeTransport) -> None:
    script = 'printf "\\n%s 0\\n3\\n0\\n3\\nabc" "$(cat)"; exit 9'
    status, shown = pipe.shell(script, stdin=b"0123456789abcdef01234567")
    assert (status, shown) == (9, b"\n0123456789abcdef01234567 0\n3\n0\n3\nabc")
    assert pipe.shell("echo next") == (0, b"next\n")


def test_a_program_left_running_does_not_write_into_later_answers(pipe: PipeTransport, place: Path) -> None:
    script = "mkfifo go; (cat go; echo late; echo late >&2; : >done) & echo first"
    assert pipe.shell(f"cd {place}; {script}") == (0, b"first\n")
    script = "echo late >go; until [ -e done ]; do sleep 0.01; done; echo second"
    assert pipe.shell(f"cd {place}; {script}") == (0, b"second\n")
    with pytest.raises(NotFound):
        pipe.read(f"{place}/nothing")


def test_a_script_keeps_the_file_mode_its_user_has(pipe: PipeTransport) -> None:
    before = os.umask(0o022)
    os.umask(before)
    assert int(pipe.shell("umask")[1], 8) == before


def test_a_nul_in_an_argument_is_refused_and_nothing_is_run(pipe: PipeTransport, place: Path) -> None:
    with pytest.raises(Usage):
        pipe.shell(f"echo >{place}/ran", "a\0b")
    assert not (place / "ran").exists()


def test_a_shell_that_died_is_started_again(pipe: PipeTransport) -> None:
    with pytest.raises(Unreachable) as caught:
        pipe.shell("kill -9 $PPID; sleep 60")
    assert caught.value.reason == "connection_lost"
    shown = pipe.shell("ps -o ppid= -p $PPID; echo fine")[1]
    assert shown.endswith(b"fine\n")


def test_a_shell_that_died_between_two_calls_is_not_noticed(pipe: PipeTransport) -> None:
    shell = int(pipe.shell("echo $PPID")[1])
    parent = int(Path(f"/proc/{shell}/stat").read_text().rpartition(")")[2].split()[1])
    ours = shell if parent == os.getpid() else parent
    os.kill(ours, 9)
    until(lambda: Path(f"/proc/{ours}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    assert pipe.shell("echo fine") == (0, b"fine\n")


def test_what_cannot_be_started_says_why(place: Path) -> None:
    with pytest.raises(Unreachable) as nothing:
        PipeTransport(("tmuxctl-no-such-program",)).shell("true")
    with pytest.raises(Unreachable) as refused:
        PipeTransport(("sh", "-c", "echo 'Permission denied (publickey).' >&2; exit 255")).shell("true")
    assert nothing.value.reason == refused.value.reason == "no_machine"
    assert "publickey" in refused.value.message


def test_a_machine_without_tmux_is_told(place: Path) -> None:
    pipe = PipeTransport(tmux="tmuxctl-no-such-tmux")
    with pytest.raises(Unreachable) as caught:
        pipe.run([("list-sessions",)])
    assert caught.value.reason == "no_tmux"
    pipe.close()


def test_waiting_for_another_threads_call_is_bounded(pipe: PipeTransport, place: Path) -> None:
    slow = threading.Thread(target=pipe.shell, args=(f"mkfifo {place}/go; : >{place}/there; cat {place}/go",))
    slow.start()
    until((place / "there").exists)
    with pytest.raises(Unreachable) as caught:
        pipe.shell("true", timeout=0.05)
    assert caught.value.reason == "backend_timeout"
    (place / "go").write_bytes(b"")
    slow.join()
    assert pipe.shell("echo fine") == (0, b"fine\n")


def test_a_lock_whose_holder_died_is_broken(pipe: PipeTransport, place: Path) -> None:
    os.symlink("999999:1", f"{pipe.home}/create.lock")
    pipe.create([("new-session", "-d", "-s", "db", "exec sleep 600")])
    assert not os.path.lexists(f"{pipe.home}/create.lock")
    pipe.run([("kill-server",)])


def test_a_lock_whose_holder_lives_is_respected(pipe: PipeTransport, place: Path) -> None:
    started = parse_stat(Path("/proc/self/stat").read_bytes()).started
    os.symlink(f"{os.getpid()}:{started}", f"{pipe.home}/create.lock")
    with pytest.raises(Unreachable) as caught:
        pipe.create([("new-session", "-d", "-s", "db", "exec sleep 600")], timeout=0.3)
    assert caught.value.reason == "backend_timeout"
    with pytest.raises(Unreachable):
        pipe.run([("list-sessions",)])


def test_programs_get_the_file_mode_of_the_user(pipe: PipeTransport, place: Path) -> None:
    before = os.umask(0o022)
    os.umask(before)
    pipe.create([("new-session", "-d", "-s", "db", "sh", "-c", f"umask >{place}/mask; exec sleep 600")])
    until(lambda: (place / "mask").exists() and (place / "mask").read_text() != "")
    pipe.run([("kill-server",)])
    assert int((place / "mask").read_text(), 8) == before


# machines without /proc


def test_without_proc_processes_come_from_ps(without_proc: PipeTransport) -> None:
    child = subprocess.Popen(["sleep", "600"])
    try:
        (row,) = [row for row in without_proc.processes() if row.pid == child.pid]
        assert (row.parent, row.group) == (os.getpid(), os.getpgrp())
        without_proc.signal([row._replace(started=row.started + 1)], "KILL")
        assert child.poll() is None
        watch = without_proc.watch([], child.pid)
        assert not watch.wait(0.0)
        without_proc.signal([row], "TERM")
        assert watch.wait(30)
    finally:
        child.kill()
        child.wait()
    assert without_proc.marked("anything") == []
    assert without_proc.clock() <= without_proc.clock()


def test_without_proc_sessions_work(without_proc: PipeTransport) -> None:
    without_proc.create([("new-session", "-d", "-s", "db", "exec sleep 600")])
    os.unlink(without_proc.run([("display-message", "-p", "#{socket_path}")]).strip())
    assert without_proc.run([("has-session", "-t", "=db")]) == b""
    without_proc.run([("kill-server",)])


# process tables

FIELDS = "S 1 2 3 34816 4 4194304 1 2 3 4 5 6 7 8 20 0 1 0 777 " + " ".join(["0"] * 30)


@pytest.mark.parametrize("name", ["sh", "tmux: server", "a) S 1 2", "(x)", "new\nline", "9 (b) S 1 1 1", ") R 1\n5 (x"])
def test_a_process_may_have_any_name(name: str) -> None:
    row = parse_stat(f"42 ({name}) {FIELDS}\n".encode())
    assert (row.pid, row.name, row.state) == (42, name, "S")
    assert (row.parent, row.group, row.session, row.tty, row.foreground, row.started) == (1, 2, 3, 34816, 4, 777)
    table = parse_table(f"1 (init) {FIELDS}\n42 ({name}) {FIELDS}\n43 (sh) {FIELDS}\n".encode())
    assert [(row.pid, row.name) for row in table] == [(1, "init"), (42, name), (43, "sh")]


def test_a_row_cut_short_is_left_out() -> None:
    table = parse_table(f"1 (a) {FIELDS}\nnonsense\n3 (c) {FIELDS}\n4 (d) S 1 2".encode())
    assert [row.pid for row in table] == [1, 3]
    assert parse_table(b"") == []
    with pytest.raises(ValueError, match="not a row"):
        parse_stat(b"2 (b) S 1")


def test_what_ps_prints_is_read() -> None:
    shown = subprocess.run(
        ["ps", "-A", "-o", PS_COLUMNS], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
    )
    rows = {row.pid: row for row in parse_ps(shown.stdout)}
    us = rows[os.getpid()]
    assert (us.parent, us.group) == (os.getppid(), os.getpgrp())
    assert us.started > 1_600_000_000
    assert parse_ps("  PID nonsense\n1 2 3 S Xyz Abc 99 99:99:99 2026 sh\n") == []


@pytest.mark.night
def test_of_a_file_that_grows_the_bytes_that_are_asked_for_are_told(pipe: PipeTransport, place: Path) -> None:
    path, written = f"{place}/journal", b""
    numbers = random.Random(1)
    for _ in range(60):
        piece = numbers.randbytes(numbers.choice([0, 1, 40, 70_000, 400_000]))
        with open(path, "ab") as file:
            file.write(piece)
        written += piece

        def read(written: bytes = written) -> None:
            pipe.names(str(place))
            for _ in range(2):
                offset = numbers.choice(
                    [0, len(written) // 2, max(0, len(written) - 60), len(written), len(written) + 5]
                )
                limit = numbers.choice([None, 0, 10, 5000, 300_000])
                expected = written[offset:][:limit]
                assert pipe.read_grown(path, offset, limit) == expected, (offset, limit)

        # the second time what is asked for is sent ahead
        pipe.carry_out("read it", read)
        pipe.carry_out("read it", read)


@pytest.mark.night
def test_the_time_there_is_known_though_the_connection_took_long() -> None:
    with closing(PipeTransport(("sh", "-c", "sleep 2; exec sh"), elsewhere=True, start_seconds=20)) as pipe:
        pipe.clock()
        before, told, after = read_uptime(), pipe.clock(), read_uptime()
        assert before - 0.3 < told < after + 0.3
        assert time.time() - 0.3 < pipe.wall() < time.time() + 0.3


def test_looks_that_are_sent_ahead_tell_when_they_were_had(pipe: PipeTransport) -> None:
    leader, follower = os.openpty()
    pane = (os.getpid(), os.ttyname(follower))

    def look() -> float:
        first = pipe.probe([pane])[0].at
        if not pipe.pause(0.06):
            time.sleep(0.06)
        return pipe.probe([pane])[0].at - first

    for _ in range(3):
        assert pipe.carry_out("look", look) > 0.05
    os.close(leader)
    os.close(follower)


def read_uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def test_what_is_written_without_waiting_is_written_and_its_size_told_later(pipe: PipeTransport, place: Path) -> None:
    path, sizes = f"{place}/notes", []
    for _ in range(4):
        with pipe.without_answer():
            sizes.append(pipe.append(path, b"12345"))
        pipe.names(str(place))
    assert sizes == [0, 5, 10, 15]
    assert Path(path).read_bytes() == b"12345" * 4


def test_sizes_are_told_though_nothing_is_ever_waited_for(pipe: PipeTransport, place: Path) -> None:
    path, written = f"{place}/notes", 0

    def grow() -> int:
        nonlocal written
        written += 1
        with pipe.without_answer():
            return pipe.append(path, b"1")

    with pipe.without_answer():
        pipe.shell(f"until [ -e {place}/go ]; do sleep 0.01; done")
    assert [grow() for _ in range(50)] == [0] * 50
    (place / "go").touch()
    # the answers of others are read by who waits for one
    pipe.names(str(place))
    assert grow() == 1
    pipe.names(str(place))
    assert grow() == written - 1


def test_what_is_not_waited_for_is_done_though_nobody_reads_its_answer_any_more(place: Path) -> None:
    posting = """if True:
        import sys
        from tmuxctl.transport.pipe import PipeTransport
        pipe = PipeTransport(elsewhere=True)
        pipe.names("/")
        with pipe.without_answer():
            pipe.shell("until [ -e gone ]; do sleep 0.01; done")
            pipe.append(sys.argv[1], b"1")
            pipe.append(sys.argv[1], b"2")
        pipe.close()
    """
    notes = place / "notes"
    subprocess.run([sys.executable, "-c", posting, str(notes)], cwd=place, check=True, timeout=60)
    (place / "gone").touch()
    until(lambda: notes.exists() and notes.read_bytes() == b"12")
    until(lambda: not leftovers(place))


def test_what_is_asked_for_around_a_note_that_is_not_waited_for_is_sent_at_once(
    pipe: PipeTransport, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    begin = PipeTransport._begin

    def count(self: PipeTransport, body: str, *arguments: Any, **options: Any) -> Any:
        sent.append(body)
        return begin(self, body, *arguments, **options)

    pipe.clock()
    monkeypatch.setattr(PipeTransport, "_begin", count)

    def look() -> list[int]:
        before, counts = len(sent), []
        for name in ("a", "b"):
            pipe.files(f"{place}/{name}")
            counts.append(len(sent) - before)
            with pipe.without_answer():
                pipe.append(f"{place}/notes", b"x")
        return counts

    assert pipe.carry_out("look", look) == [1, 3]
    # both are sent before the operation begins, and beside them the note alone
    assert pipe.carry_out("look", look) == [0, 1]


def test_what_is_not_waited_for_tests_nothing_that_was_assumed(pipe: PipeTransport, place: Path) -> None:
    leader, follower = os.openpty()
    path, echoes = os.ttyname(follower), []

    def look() -> bool | None:
        tty = pipe.tty(path)
        with pipe.without_answer():
            pipe.append(f"{place}/notes", b"x")
        return tty and tty.echo

    for echo in (True, True, False, True):
        subprocess.run(["stty", "echo" if echo else "-echo"], stdin=follower, check=True)
        echoes.append(pipe.carry_out("look", look))
    os.close(leader)
    os.close(follower)
    assert echoes == [True, True, False, True]


def test_a_change_is_made_where_what_was_assumed_holds_and_else_with_what_is_so(
    pipe: PipeTransport, place: Path
) -> None:
    leader, follower = os.openpty()
    path, file, asked = os.ttyname(follower), place / "told", []

    def write() -> None:
        tty = pipe.tty(path)
        assert tty
        asked.append(tty.echo)
        pipe.append(str(file), b"echo\n" if tty.echo else b"none\n")

    for echo in (True, True, False, False):
        subprocess.run(["stty", "echo" if echo else "-echo"], stdin=follower, check=True)
        pipe.carry_out("write", write)
    os.close(leader)
    os.close(follower)
    assert file.read_text() == "echo\necho\nnone\nnone\n"
    # once more where it was no longer so
    assert asked == [True, True, True, False, False]
