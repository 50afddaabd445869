"""What every transport promises, asked of each: this machine, this machine with a resident client, sh over a pipe."""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tmuxctl.errors import Denied, NotFound, TmuxctlError, Unreachable
from tmuxctl.transport.base import Guard, GuardRefused, ProcessLoad, Transport
from tmuxctl.transport.pipe import PipeTransport
from tmuxctl.transport.versions import exact_paste_flags

CONFIG = b"set -g exit-empty off\nset -g remain-on-exit on\nset -g remain-on-exit-format ''\n"
HOSTILE = [
    "two words",
    "it's",
    '"',
    "#{x}",
    "#(touch x)",
    "line\nbreak",
    "-rf",
    "$HOME",
    "`id`",
    "*",
    "a\\b",
    "ü\udcff",
]
NUMBERS = itertools.count()


def until(true: Callable[..., object], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of its own with a short path; every tmux server under it is ended afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="tt-", dir="/tmp"))
    for name in ("HOME", "TMUX_TMPDIR", "TMPDIR"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    for name in ("TMUX", "TMUX_PANE"):
        monkeypatch.delenv(name, raising=False)
    yield folder
    for record in folder.glob("state/tmuxctl/*/server"):
        end(int(record.read_text().split()[0]))
    shutil.rmtree(folder)


def end(server: int) -> None:
    """Kill a tmux server by its pid, and wait until it has gone."""
    with contextlib.suppress(OSError):
        if b"tmux" in Path(f"/proc/{server}/cmdline").read_bytes():
            os.kill(server, signal.SIGKILL)
            os.kill(server, signal.SIGCONT)
    until(lambda: not Path(f"/proc/{server}/cmdline").exists() or not Path(f"/proc/{server}/cmdline").read_bytes())


def make(kind: str, socket: str) -> Transport:
    if kind == "pipe":
        return PipeTransport(socket=socket, config=CONFIG)
    local = pytest.importorskip("tmuxctl.transport.local")
    made: Transport = local.LocalTransport(socket, config=CONFIG, resident=kind == "resident")
    return made


@pytest.fixture(params=["local", "resident", "pipe"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def transport(kind: str, place: Path) -> Iterator[Transport]:
    made = make(kind, f"tmuxctl-test-{os.getpid()}-{next(NUMBERS)}")
    yield made
    made.close()


@pytest.fixture
def session(transport: Transport) -> Transport:
    """A transport with one session named `db`: a quiet program."""
    transport.create([start("db", "exec sleep 600")])
    return transport


def start(name: str, script: str) -> Sequence[str]:
    return ("new-session", "-d", "-s", name, "-x", "80", "-y", "24", "sh", "-c", script)


def server_pid(transport: Transport) -> int:
    return int(transport.run([("display-message", "-p", "#{pid}")]))


# files


def test_a_file_of_any_name_comes_back_as_it_was_put(transport: Transport, place: Path) -> None:
    data = bytes(range(256)) * 3
    for name in HOSTILE:
        folder, path = f"{place}/{name}", f"{place}/{name}/{name}"
        transport.make_folder(folder)
        assert os.stat(folder).st_mode & 0o777 == 0o700
        transport.put(path, b"before")
        transport.put(path, data)
        assert os.stat(path).st_mode & 0o777 == 0o600
        assert transport.read(path) == data
        found = transport.files(folder)
        assert list(found) == [name]
        assert found[name].size == len(data)
        assert found[name].modified == pytest.approx(os.stat(path).st_mtime, abs=0.001)
        transport.rename(path, path + "2")
        assert list(transport.files(folder)) == [name + "2"]
        transport.remove(folder)
        transport.remove(folder)
        assert transport.files(folder) == {}
        assert not os.path.lexists(folder)


def test_a_megabyte_of_any_bytes_is_put_and_read_in_parts(transport: Transport, place: Path) -> None:
    data, path = os.urandom(1 << 20), f"{place}/big"
    transport.put(path, data, mode=0o640)
    assert os.stat(path).st_mode & 0o777 == 0o640
    assert transport.read(path) == data
    assert transport.read(path, 1000, 50) == data[1000:1050]
    assert transport.read(path, len(data) - 7) == data[-7:]
    assert transport.read(path, len(data) + 5) == b""
    assert transport.read(path, 3, 0) == b""


def test_some_files_of_many_folders_are_read_together(transport: Transport, place: Path) -> None:
    folders = [f"{place}/{name}" for name in (*HOSTILE, *map(str, range(100)), "none")]
    for number, folder in enumerate(folders[:-1]):
        os.mkdir(folder)
        Path(folder, "one").write_bytes(b"\n%d\0\xff\n" % number)
    first, second = (Path(folder) for folder in folders[:2])
    (first / "two").write_bytes(b"")
    (first / "three").write_bytes(b"x" * 5000)
    (second / "two").symlink_to(second / "one")
    os.mkfifo(second / "three")
    (second / "other").touch()
    found = transport.read_all(folders, ("one", "two", "three"), 1000)
    assert found == {folder: {"one": b"\n%d\0\xff\n" % number} for number, folder in enumerate(folders[:-1])} | {
        folders[0]: {"one": b"\n0\0\xff\n", "two": b"", "three": b"x" * 1000},
        folders[-1]: {},
    }
    assert transport.read_all((), ("one",), 1000) == {}


def test_an_empty_file_is_a_file(transport: Transport, place: Path) -> None:
    transport.put(f"{place}/empty", b"", durable=True)
    assert transport.read(f"{place}/empty") == b""
    assert transport.files(str(place))["empty"].size == 0


def test_links_are_replaced_or_refused_but_never_followed(transport: Transport, place: Path) -> None:
    (place / "target").write_bytes(b"untouched")
    (place / "folder").mkdir()
    (place / "folder" / "inside").write_bytes(b"untouched")
    for link, target in (("file", "target"), ("away", "folder"), ("lost", "nowhere")):
        (place / link).symlink_to(place / target)
    with pytest.raises(Denied):
        transport.read(f"{place}/file")
    transport.put(f"{place}/file", b"mine")
    transport.put(f"{place}/lost", b"mine")
    assert (place / "target").read_bytes() == b"untouched"
    assert not (place / "nowhere").exists()
    assert transport.read(f"{place}/file") == transport.read(f"{place}/lost") == b"mine"
    with pytest.raises(Denied):
        transport.make_folder(f"{place}/away")
    transport.remove(f"{place}/away")
    assert (place / "folder" / "inside").read_bytes() == b"untouched"


def test_what_is_missing_is_said(transport: Transport, place: Path) -> None:
    with pytest.raises(NotFound) as caught:
        transport.read(f"{place}/nothing")
    assert caught.value.reason == "no_file"
    assert transport.files(f"{place}/nothing") == {}


def test_folders_are_listed_with_size_zero(transport: Transport, place: Path) -> None:
    transport.make_folder(f"{place}/a/b")
    transport.put(f"{place}/a/.hidden", b"12")
    found = transport.files(f"{place}/a")
    assert {name: file.size for name, file in found.items()} == {"b": 0, ".hidden": 2}


def test_home_is_ours_alone_or_refused(kind: str, place: Path) -> None:
    first = make(kind, "tmuxctl-test-home")
    assert first.home == f"{place}/state/tmuxctl/tmuxctl-test-home"
    assert os.stat(first.home).st_mode & 0o777 == 0o700
    first.close()
    os.chmod(first.home, 0o750)
    assert home_refused(kind) == "bad_mode"
    os.rename(first.home, place / "real")
    os.chmod(place / "real", 0o700)
    os.symlink(place / "real", first.home)
    assert home_refused(kind) == "bad_owner"
    if os.getuid() == 0:
        os.unlink(first.home)
        os.rename(place / "real", first.home)
        os.chown(first.home, 4321, 4321)
        assert home_refused(kind) == "bad_owner"


@pytest.mark.parametrize("name", [".", "above", "links"])
def test_a_home_below_a_folder_of_anybodys_is_refused(
    kind: str, place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (place / "above" / "state").mkdir(parents=True)
    (place / "links").mkdir()
    (place / "links" / "hop").symlink_to("../above/../above/state")
    (place / "state").symlink_to(place / "links" / "hop")
    (place / name).chmod(0o777)
    assert home_refused(kind) == "unsafe_file"
    assert not (place / "above" / "state" / "tmuxctl").exists()
    (place / name).chmod(0o1777)
    made = make(kind, "tmuxctl-test-home")
    assert Path(made.home).is_dir()
    made.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_home_below_a_folder_of_another_users_is_refused(kind: str, place: Path) -> None:
    (place / "state").mkdir()
    os.chown(place / "state", 4321, 4321)
    assert home_refused(kind) == "unsafe_file"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to a group")
def test_a_home_of_the_users_own_group_is_fine(kind: str, place: Path) -> None:
    """Where every user has a group of their own the umask is 002, and a home folder 0775."""
    (place / "state").mkdir()
    (place / "state").chmod(0o775)
    made = make(kind, "tmuxctl-test-home")
    assert Path(made.home).is_dir()
    made.close()
    os.chown(place / "state", 0, 4321)
    assert home_refused(kind) == "unsafe_file"


def home_refused(kind: str) -> str:
    again = make(kind, "tmuxctl-test-home")
    with pytest.raises(Denied) as caught:
        _ = again.home
    again.close()
    return caught.value.reason


# the shell


def test_the_shell_gets_its_arguments_input_and_says_its_status(transport: Transport) -> None:
    data = bytes(range(256))
    assert transport.shell('cat; printf "%s|" "$@"; exit 3', "a b", "'", stdin=data) == (3, data + b"a b|'|")
    assert transport.shell("cat") == (0, b"")
    assert transport.shell("if") != (0, b"")
    assert transport.shell("echo fine") == (0, b"fine\n")


def test_a_shell_that_takes_too_long_is_given_up(transport: Transport) -> None:
    with pytest.raises(Unreachable) as caught:
        transport.shell("exec sleep 60", timeout=0.2)
    assert caught.value.reason == "backend_timeout"
    assert transport.shell("echo fine") == (0, b"fine\n")


# tmux


def test_without_a_server_nothing_is_started(transport: Transport) -> None:
    with pytest.raises(Unreachable) as caught:
        transport.run([start("db", "exec sleep 600")])
    assert caught.value.reason == "no_server"


def test_a_missing_session_and_a_second_of_one_name_are_told_apart(session: Transport) -> None:
    with pytest.raises(NotFound) as missing:
        session.run([("display-message", "-p", "before"), ("kill-session", "-t", "=nothing")])
    with pytest.raises(TmuxctlError) as double:
        session.create([start("db", "exec sleep 600")])
    assert (missing.value.reason, double.value.reason) == ("no_session", "exists")
    assert session.run([("has-session", "-t", "=db")]) == b""


VALUES = [
    ";", "a;", "\\;", ";;", "select 1;", "#{pane_id}", "#(touch x)", "-R", "--help", "'", '"', "$HOME", "~", "~/x", "{",
    "}", "%if", "a\\b", "back`tick", "line\nbreak", "tab\there", "ünï", "👩\u200d👩", "Enter", "", " ", "\\", "\\\\",
]  # fmt: skip


def test_an_argument_reaches_tmux_as_it_is(session: Transport) -> None:
    shown = {}
    for value in VALUES:
        lines = session.run([("set-option", "-g", "--", "@value", value), ("show-options", "-gv", "@value")])
        # tmux 3.4 has it as it is, and prints it with a backslash
        shown[value] = lines.decode().replace("\\$HOME", "$HOME")
    assert shown == {value: value + "\n" for value in VALUES}


def test_answers_of_a_list_come_in_order(session: Transport) -> None:
    branch = ("if-shell", "-F", "1", "display-message -p one ; display-message -p two", "display-message -p no")
    assert session.run([branch, ("display-message", "-p", "#{session_name} ü")]) == "one\ntwo\ndb ü\n".encode().replace(
        b"db", session.run([("display-message", "-p", "#{session_name}")]).strip()
    )


def test_a_guard_ends_its_list_unless_its_condition_holds(session: Transport) -> None:
    session.run([("set-option", "-t", "=db:", "@id", "a,b c")])
    same, other = "#{==:#{@id},a#,b c}", "#{==:#{@id},x}"
    change = ("set-option", "-g", "@changed", "1")
    with pytest.raises(GuardRefused) as refused:
        session.run(
            [("display-message", "-p", "before"), Guard("=db:", other, "is=#{?#{@id},1,0} at #{session_name}"), change]
        )
    assert refused.value.answer == "is=1 at db"
    for target, condition in (("=db:", "0"), ("=db:", ""), ("=db:", "#{@none}"), ("=gone:", same), ("=db:", other)):
        with pytest.raises(GuardRefused) as refused:
            session.run([Guard(target, condition or "#{@none}"), change])
        assert refused.value.answer == ""
    assert session.run([("show-options", "-gqv", "@changed")]) == b""
    say = ("display-message", "-p", "said")
    assert session.run([Guard("=db:", same), say, Guard("=db:", same), change, say]) == b"said\nsaid\n"
    assert session.run([("show-options", "-gqv", "@changed")]) == b"1\n"


def test_every_command_of_a_list_ends_where_it_should(session: Transport) -> None:
    """However its last word ends, which stands before the next one's."""
    for value in VALUES:
        commands = [("set-option", "-g", "--", "@value", value), ("show-options", "-gv", "@value")]
        assert session.run([*commands, *commands]).decode() == 2 * f"{value}\n", value


PASTES = {
    "all bytes": bytes(range(256)) * 8,
    "no nul": bytes(range(1, 256)) * 8,
    "flag": b"-R",
    "home": b"~/~root",
    "semicolon": b"select 1;",
    "format": b"#{pane_id} #(touch x) %0 $HOME ~ \\; ' \"",
    "lines": b"one\ntwo\r\nthree\n",
    "many": os.urandom(200_000).replace(b"\0", b"0"),
    "megabyte": os.urandom(1 << 20),
}


def test_a_pasted_buffer_is_exact(transport: Transport, place: Path) -> None:
    taken, before = place / "taken", 0
    transport.create([start("raw", f"stty raw -echo; : >{place}/ready; exec cat >{taken}")])
    until((place / "ready").exists)
    exact = exact_paste_flags(transport.run([("display-message", "-p", "#{version}")]).decode().strip())
    paste = ("paste-buffer", "-d", *exact, "-b", "b#{x}", "-t", "=raw:")
    for case, data in PASTES.items():
        transport.run([paste], buffer=("b#{x}", data))
        after = before + len(data)
        until(lambda size=after: taken.exists() and taken.stat().st_size >= size)
        assert taken.read_bytes()[before:] == data, case
        before = after
    assert transport.run([("list-buffers",)]) == b""


@pytest.mark.night
def test_a_stopped_server_is_a_timeout_and_works_again_afterwards(session: Transport) -> None:
    server = server_pid(session)
    os.kill(server, signal.SIGSTOP)
    try:
        for commands in ([("list-sessions",)], [("list-sessions",), ("kill-session", "-t", "=nothing")]):
            with pytest.raises(Unreachable) as caught:
                session.run(commands, timeout=0.3)
            assert caught.value.reason == "backend_timeout"
    finally:
        os.kill(server, signal.SIGCONT)
    assert session.run([("has-session", "-t", "=db")]) == b""


def test_a_server_that_was_killed_is_missed_and_replaced(session: Transport) -> None:
    end(server_pid(session))
    with pytest.raises(Unreachable) as caught:
        session.run([("list-sessions",)])
    assert caught.value.reason == "no_server"
    session.create([start("new", "exec sleep 600")])
    assert b"new" in session.run([("list-sessions", "-F", "#{session_name}")])


def test_two_creators_at_once_start_one_server(kind: str, place: Path) -> None:
    makers = [make(kind, "tmuxctl-test-two") for _ in range(3)]
    failures: list[BaseException] = []

    def create(number: int) -> None:
        try:
            makers[number].create([start(f"s{number}", "exec sleep 600")])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    names = makers[0].run([("list-sessions", "-F", "#{session_name}")]).split()
    assert {b"s0", b"s1", b"s2"} <= set(names)
    pid, started = (int(word) for word in Path(makers[0].home, "server").read_text().split())
    assert server_pid(makers[0]) == pid
    assert started in [row.started for row in makers[0].processes() if row.pid == pid]
    # a pane's process looks like its server until it has executed its program
    until(lambda: [row.pid for row in makers[0].processes() if of_server(row.pid)] == [pid])
    for maker in makers:
        maker.close()


def of_server(pid: int) -> bool:
    return b"tmux: server" in comm(pid) and b"test-two" in command(pid)


def comm(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_bytes()
    return b""


def command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def test_a_deleted_socket_is_made_anew_and_no_second_server_started(session: Transport) -> None:
    server = server_pid(session)
    os.unlink(session.run([("display-message", "-p", "#{socket_path}")]).strip())
    session.create([start("new", "exec sleep 600")])
    assert server_pid(session) == server
    assert {b"db", b"new"} <= set(session.run([("list-sessions", "-F", "#{session_name}")]).split())


def test_the_server_has_a_clean_environment_and_all_the_descriptors(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "1")
    monkeypatch.setenv("LC_TIME", "C")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        transport.create([start("db", "exec sleep 600")])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    server = server_pid(transport)
    names = {pair.split(b"=")[0] for pair in Path(f"/proc/{server}/environ").read_bytes().split(b"\0") if pair}
    assert {b"PATH", b"HOME", b"TMUX_TMPDIR", b"XDG_STATE_HOME", b"LC_TIME"} <= names
    assert b"SECRET_TOKEN" not in names
    limits = Path(f"/proc/{server}/limits").read_text()
    soft, hard = next(line.split()[3:5] for line in limits.splitlines() if line.startswith("Max open files"))
    assert soft == hard


def test_calls_of_many_threads_do_not_mix(session: Transport) -> None:
    wrong: list[bytes] = []

    def ask(number: int) -> None:
        for turn in range(10):
            answer = session.run([("display-message", "-p", f"{number} {turn}")])
            if answer != f"{number} {turn}\n".encode():
                wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# terminals and processes


def test_a_terminal_tells_how_it_treats_input(transport: Transport, place: Path) -> None:
    transport.create([start("cooked", f": >{place}/cooked; exec sleep 600")])
    transport.create([start("raw", f"stty raw -echo; : >{place}/raw; exec sleep 600")])
    seen = {}
    for name in ("cooked", "raw"):
        until((place / name).exists)
        shown = transport.run([("display-message", "-p", "-t", f"={name}:", "#{pane_tty}")])
        seen[name] = transport.tty(shown.decode().strip())
    assert seen["cooked"] is not None
    assert seen["raw"] is not None
    assert (seen["cooked"].canonical, seen["cooked"].echo) == (True, True)
    assert (seen["raw"].canonical, seen["raw"].echo) == (False, False)
    assert transport.tty("/dev/null") is None
    assert transport.tty(f"{place}/raw") is None
    assert transport.tty(f"{place}/nothing") is None


def test_what_there_is_room_for_is_told(session: Transport, place: Path) -> None:
    pid = server_pid(session)
    room = session.room(str(place), pid)
    disk = os.statvfs(place)
    assert abs((room.free or 0) - disk.f_bavail * disk.f_frsize) < 1 << 28
    assert room.ptys
    assert 0 < room.ptys.used < room.ptys.most == int(Path("/proc/sys/kernel/pty/max").read_text())
    assert room.descriptors
    assert 4 < room.descriptors.used < room.descriptors.most
    assert room.descriptors.most == resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
    assert session.room(str(place), None).descriptors is None


def test_what_processes_take_is_told(session: Transport) -> None:
    mine = session.load(os.getpid())
    assert mine.processes >= 1
    assert mine.memory > 1 << 20
    assert mine.cpu > 0
    with subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000 & echo up; wait"], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout
            assert other.stdout.readline() == b"up\n"
            assert session.load(other.pid).processes == 3
            assert session.load(os.getpid()).processes > mine.processes
        finally:
            subprocess.run(["pkill", "-P", str(other.pid)], check=True)
    assert session.load(2**22 + 1) == ProcessLoad(0, 0, 0)


def test_the_process_table_holds_ourselves_and_a_terminals_foreground(session: Transport) -> None:
    shown = session.run([("display-message", "-p", "-t", "=db:", "#{pane_pid} #{pane_tty}")]).decode().split()
    until(lambda: b"tmux" not in command(int(shown[0])))
    rows = {row.pid: row for row in session.processes()}
    us = rows[os.getpid()]
    assert (us.parent, us.group, us.session) == (os.getppid(), os.getpgrp(), os.getsid(0))
    pane = rows[int(shown[0])]
    assert pane.tty == os.stat(shown[1]).st_rdev
    assert pane.foreground == pane.group == pane.session == pane.pid
    assert pane.name in ("sleep", "sh")


@pytest.fixture
def child(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A sleeping program with a mark, and with a name that looks like the rest of its row in the process table."""
    program = shutil.copy(shutil.which("sleep") or "sleep", place / "x) S 1 (y")
    started = subprocess.Popen([program, "600"], env={**os.environ, "TMUXCTL_SESSION": f"id-{os.getpid()}"})
    until(lambda: comm(started.pid) == b"x) S 1 (y\n")
    yield started
    started.kill()
    started.wait()


def test_marked_processes_are_found_by_the_whole_mark(transport: Transport, child: subprocess.Popen[bytes]) -> None:
    mark = f"id-{os.getpid()}"
    assert [row.pid for row in transport.marked(mark)] == [child.pid]
    assert transport.marked(mark[:-1]) == []
    assert transport.marked(mark + "1") == []


def test_a_signal_goes_only_to_the_process_that_was_meant(transport: Transport, child: subprocess.Popen[bytes]) -> None:
    row = next(row for row in transport.processes() if row.pid == child.pid)
    transport.signal([row._replace(started=row.started + 1)], "KILL")
    transport.signal([row], "STOP")
    until(lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2][0] == "T")
    assert child.poll() is None
    transport.signal([row], "KILL")
    assert child.wait(10) == -signal.SIGKILL
    transport.signal([row], "TERM")


def test_a_watch_wakes_when_a_file_grows_and_when_the_process_ends(
    kind: str, transport: Transport, place: Path, child: subprocess.Popen[bytes]
) -> None:
    if kind != "pipe":
        pytest.importorskip("tmuxctl.transport.notify")
    first, second = place / "first", place / "second"
    first.mkdir()
    second.mkdir()
    (first / "0").write_bytes(b"x")
    watch = transport.watch([str(first), str(second)], child.pid)
    try:
        assert not watch.wait(0.05)
        with open(first / "0", "ab") as file:
            file.write(b"more")
        assert watch.wait(30)
        (second / "new").write_bytes(b"1")
        assert watch.wait(30)
        quiet(watch.wait)
        child.terminate()
        assert watch.wait(30)
    finally:
        watch.close()


def test_a_watch_on_a_process_that_ended_before_wakes_at_once(kind: str, transport: Transport) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    if kind != "pipe":
        pytest.importorskip("tmuxctl.transport.notify")
    watch = transport.watch([], ended.pid)
    try:
        assert watch.wait(30)
    finally:
        watch.close()
        watch.close()


def quiet(wait: Callable[[float], bool]) -> None:
    """Use up false alarms, which are allowed."""
    until(lambda: not wait(0.03))


def test_a_watch_wakes_while_it_sleeps(kind: str, transport: Transport, place: Path) -> None:
    if kind != "pipe":
        pytest.importorskip("tmuxctl.transport.notify")
    watch = transport.watch([str(place)])
    quiet(watch.wait)
    later = subprocess.Popen(["sh", "-c", f"sleep 0.2; echo >{place}/late"])
    try:
        assert watch.wait(30)
        assert (place / "late").exists()
    finally:
        later.wait()
        watch.close()


def test_the_clock_goes_forward_with_the_machine(transport: Transport) -> None:
    first = transport.clock()
    between = float(Path("/proc/uptime").read_text().split()[0])
    assert first - 0.5 < between < transport.clock() + 0.5
    assert transport.clock() >= first


def test_closing_leaves_sessions_and_no_process_of_ours(session: Transport) -> None:
    mine = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    session.run([("list-sessions",)])
    session.close()
    session.close()
    left = [command(int(pid)) for pid in mine.read_text().split()]
    assert [words for words in left if words.startswith((b"tmux", b"sh\0"))] == []
    assert session.run([("has-session", "-t", "=db")]) == b""


def test_a_process_that_stays_lists_each_name_that_came_or_went(tmp_path: Path) -> None:
    resident = make("resident", "none")
    folder = tmp_path / "folder"
    for number in range(30):
        folder.mkdir(exist_ok=True)
        # a folder at rest, whose names are known from now on
        long_ago = time.time() - 10 - number
        os.utime(folder, (long_ago, long_ago))
        for _ in range(2):
            assert {*resident.files(str(folder))} == {*os.listdir(folder)}
        for name in ("a", "b", "c"):
            (folder / name).write_bytes(b"x" * number)
            assert {name: file.size for name, file in resident.files(str(folder)).items()} == {
                one.name: one.stat().st_size for one in folder.iterdir()
            }
        (folder / "b").unlink()
        assert {*resident.files(str(folder))} == {"a", "c"}
        if number % 3 == 0:
            folder.rename(tmp_path / f"before-{number}")
            assert resident.files(str(folder)) == {}


def test_a_name_that_came_within_one_step_of_the_clock_is_listed(tmp_path: Path) -> None:
    """The folder's time is then the same as before."""
    resident = make("resident", "none")
    for number in range(50):
        before = os.stat(tmp_path)
        assert len(resident.files(str(tmp_path))) == number
        (tmp_path / str(number)).touch()
        os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert len(resident.files(str(tmp_path))) == number + 1
        os.utime(tmp_path)


def test_files_that_grow_in_a_folder_at_rest_are_told_with_their_size(tmp_path: Path) -> None:
    resident = make("resident", "none")
    file = tmp_path / "seg"
    file.touch()
    os.utime(tmp_path, (1e9 + 0.5, 1e9 + 0.5))
    for size in range(1, 50):
        with file.open("ab") as end:
            end.write(b"x")
        assert resident.files(str(tmp_path))["seg"].size == size
