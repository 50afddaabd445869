"""Quick commands through a server of commands: the same output and exit status as without it, byte for byte, whatever is given."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import pty
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, own_place, start_command_server

from tmuxctl import __version__
from tmuxctl.control import Control
from tmuxctl.surfaces.cli.command_server import client, loaded
from tmuxctl.surfaces.cli.commands.options import global_options

ROOT = Path(__file__).resolve().parents[2]
NOT_BEGUN = 99
ALONE = "import sys; from tmuxctl.surfaces.cli import run; sys.exit(run())"
THROUGH = f"""
import sys
from tmuxctl.surfaces.cli.command_server import client
status = client.run(sys.argv[1:])
assert "click" not in sys.modules
sys.exit({NOT_BEGUN} if status is None else status)
"""
"""What the command does first; `NOT_BEGUN` where it would go on alone."""

Done = subprocess.CompletedProcess[bytes]


class Place:
    """A server of commands, and the command with it and without it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = start_command_server()

    def start(self, way: str, *words: str | bytes, behind: Sequence[str] = (), **given: Any) -> subprocess.Popen[bytes]:
        """The command, running, alone or through the server."""
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([*behind, sys.executable, "-c", way, *words], **pipes | given)

    def run(self, way: str, *words: str | bytes, input: bytes | None = None, **given: Any) -> Done:
        given |= {"stdin": subprocess.PIPE} if input is not None else {}
        with self.start(way, *words, **given) as process:
            out, err = process.communicate(input, timeout=60)
        return Done(words, process.returncode, out, err)

    def same(self, *words: str | bytes, **given: Any) -> Done:
        """How the command ends through the server, which is how it ends alone."""
        alone, through = self.run(ALONE, *words, **given), self.run(THROUGH, *words, **given)
        assert (through.returncode, through.stdout, through.stderr) == (alone.returncode, alone.stdout, alone.stderr)
        return through

    def runs_here(self, *words: str | bytes, **given: Any) -> bool:
        """True if the command does not go through the server, and is carried out all the same."""
        done = self.run(THROUGH, *words, **given)
        return (done.returncode, done.stdout, done.stderr) == (NOT_BEGUN, b"", b"")


CAT = "stty -echo; echo ready; exec cat"


@pytest.fixture(scope="module")
def world(python_first: str) -> Iterator[Path]:
    """A place for all tests here, with the sessions `cat` and `sh`."""
    with pytest.MonkeyPatch.context() as patched, own_place(patched, python_first) as folder:
        patched.setenv("XDG_RUNTIME_DIR", str(folder))
        with Control() as control:
            control.new("cat", ("sh", "-c", CAT))
            control.new("sh", ("sh",))
            control.wait("cat", text="ready", since="screen")
        yield folder


@pytest.fixture(scope="module")
def shared(world: Path) -> Iterator[Place]:
    """A server of commands for tests that leave it as it is."""
    found = Place(world)
    yield found
    found.server.kill()
    found.server.wait()


@pytest.fixture
def served(world: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A server of commands of the test's own, for the same sessions."""
    folder = Path(tempfile.mkdtemp(dir=world))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.chdir(folder)
    found = Place(folder)
    yield found
    found.server.kill()
    found.server.wait()


def commands(pid: int) -> list[int]:
    """The processes in which a server carries out commands: all that it has forked but the one that waits for the next caller,
    which is the only other one that listens."""
    return [child for child in children(pid) if not shares_listener(child, pid)]


def children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def shares_listener(child: int, server: int) -> bool:
    return not set(sockets(child)).isdisjoint(sockets(server))


def sockets(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                yield from [name for name in [os.readlink(one)] if name == listener()]


LISTENING = "00010000"


def listener() -> str:
    """What the kernel calls the socket at which a server listens."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    return next((f"socket:[{row[6]}]" for row in rows if row[3] == LISTENING and row[-1] == client.find_socket()), "")


def listens(pid: int) -> bool:
    """True once a command sleeps until something happens."""
    with contextlib.suppress(OSError):
        return any("inotify" in os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir())
    return False


@pytest.fixture
def waiting(served: Place, until: Callable[..., Any]) -> Iterator[Callable[..., tuple[Any, int]]]:
    """Starts a command that waits; it, and the server's child that does so for it."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, **given: Any) -> tuple[subprocess.Popen[bytes], int]:
        words = words or ("wait", "cat", "--exit")
        started.append(served.start(THROUGH, *words, **given))
        [child] = until(lambda: [one for one in commands(served.server.pid) if listens(one)])
        return started[-1], child

    yield start
    for one in started:
        one.kill()
        one.communicate()


# the same, byte for byte


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("ls -q", 0), ("ls -F {name}:{argv}", 0), ("ls --state lost", 0), ("show missing", 3), ("show cat --json missing", 2),
        ("screen cat", 0), ("screen cat --json", 0), ("screen missing --json", 3), ("send cat", 0), ("send", 2),
        ("send cat a b", 2), ("send missing x --json", 3), ("keys cat nosuchkey", 2), ("keys cat C-x -q", 0),
        ("wait cat --exit --now", 1), ("wait cat --text ready --since screen", 0), ("wait cat --exit --timeout 0.2", 124),
        ("wait cat --text (", 2), ("ask cat", 2), ("exec cat -- true", 125), ("exec missing -- true --json", 125),
        ("status", 0), ("status --format json", 0), ("--json -q status", 0), ("--socket nosuch ls", 0),
        ("--socket=nosuch show cat", 3), ("ls --help", 0), ("exec -h", 0), ("show --version", 0), ("ls --nosuch", 2),
        ("show cat -F {nosuch}", 2), ("-v show missing", 3), ("--no-color --no-input ls -q", 0),
    ],
)  # fmt: skip
def test_what_is_printed_and_the_status_are_the_same(shared: Place, line: str, status: int) -> None:
    assert shared.same(*line.split()).returncode == status


@pytest.mark.night
def test_writes_and_turns_are_carried_out_once(served: Place) -> None:
    written = served.folder / "written"
    done = served.run(THROUGH, "exec", "sh", "--", "sh", "-c", f"echo x >>{written}; printf 'a\\377'; exit 9")
    assert (done.returncode, done.stdout, done.stderr) == (9, b"a\xff", b"")
    assert written.read_text() == "x\n"
    assert served.same("ask", "sh", "echo $((6*7))").stdout == b"42\n"
    assert served.run(THROUGH, "send", "sh", f"echo y >>{written}").returncode == 0
    assert served.run(THROUGH, "keys", "sh", "Enter").returncode == 0
    assert served.same("wait", "sh", "--prompt").returncode == 0
    assert written.read_text() == "x\ny\n"


@pytest.mark.parametrize(
    "words", [("send", "cat", b"\xff"), ("show", "ünï"), ("show", "\x1b[31m"), ("wait", "cat", "--text", "ä(")]
)
def test_words_are_the_same_bytes(shared: Place, words: Sequence[str | bytes]) -> None:
    assert shared.same(*words).returncode in (2, 3)


@pytest.mark.night
def test_a_large_command_goes_through(shared: Place) -> None:
    words = [f"{number:0100000d}" for number in range(15)]
    assert shared.same("keys", "cat", *words).returncode == 2
    assert (
        shared.same("show", "cat", "-q", env={**os.environ, **{f"V{at}": "x" * 100_000 for at in range(10)}}).returncode
        == 0
    )


@pytest.mark.parametrize("data", [b"", b"a\n", b"\xff\0\n", b"x" * 300_000])
def test_standard_input_is_the_callers(shared: Place, data: bytes) -> None:
    assert shared.same("exec", "sh", "--", "cksum", input=data).returncode == 0
    assert shared.same("send", "sh", "-", "--json", input=b"(" * (17 << 20)).returncode != 0


def test_a_file_as_standard_input_is_read_from_where_it_stands(served: Place) -> None:
    place = served.folder
    (place / "in").write_bytes(b"one\ntwo\n")
    with (place / "in").open("rb", buffering=0) as file:
        file.read(4)
        assert served.run(THROUGH, "send", "cat", "-", stdin=file).returncode == 0
        assert file.read() == b""
    assert served.run(THROUGH, "wait", "cat", "--text", "two").returncode == 0
    assert b"one" not in served.run(THROUGH, "screen", "cat").stdout


def test_the_folder_is_the_callers(served: Place) -> None:
    place = served.folder
    (place / "a").mkdir()
    (place / "picture.html").write_text("not this")
    assert served.run(THROUGH, "screen", "cat", "--html", "picture.html", cwd=place / "a").returncode == 0
    assert (place / "a/picture.html").exists()
    assert (place / "picture.html").read_text() == "not this"
    gone = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" "$@"'
    served.same("show", "missing", behind=("sh", "-c", gone))


@pytest.mark.night
def test_the_environment_is_the_callers(served: Place) -> None:
    place = served.folder
    (place / "config.toml").write_text("[wait]\ntimeout = 0.1\n")
    settings = {**os.environ, "TMUXCTL_CONFIG": f"{place}/config.toml"}
    del settings["TMUXCTL_TIMEOUT"]
    assert served.same("wait", "cat", "--exit", env=settings).returncode == 124
    (place / "config.toml").write_text("[wait]\ntimeout = 'soon'\n")
    assert b"config.toml" in served.same("wait", "cat", "--exit", env=settings).stderr
    assert served.same("ls", env={**os.environ, "TMUXCTL_SOCKET": "other"}).stdout == b""
    other = {**os.environ, "HOME": f"{place}/home", "XDG_STATE_HOME": "", "TMUXCTL_SOCKET": "other"}
    (place / "home").mkdir()
    assert served.same("ls", env=other).returncode == 0
    assert (place / "home/.local/state/tmuxctl/other").is_dir()
    assert (
        b"not an absolute path"
        in served.same("ls", env={**os.environ, "HOME": "somewhere", "XDG_STATE_HOME": ""}).stderr
    )
    assert served.same("show", "cat", "-q", env={**os.environ, "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}).returncode == 0
    assert served.same("show", "nü", env={**os.environ, "PYTHONUNBUFFERED": "1"}).returncode == 3
    # without UTF-8, Python is started in another way
    assert served.runs_here("show", "cat", env={**os.environ, "LC_ALL": "C"})
    no_tmux = served.same("ls", env={**os.environ, "PATH": f"{place}/home"})
    assert no_tmux.returncode != 0
    assert served.same("send", "cat", "--secret-from-env", "NOSUCH").returncode == 2


@pytest.mark.night
def test_umask_limits_and_priority_are_the_callers(served: Place) -> None:
    for line in ("umask 077", "umask 0", "ulimit -f 0", "ulimit -n 5", "ulimit -t 50; renice -n 5 $$ >&2"):
        behind = (
            "sh",
            "-c",
            f'{{ {line}; }} 2>/dev/null; rm -f page; "$0" "$@"; code=$?; ls -l page | cut -c 1-10; exit $code',
        )
        served.same("screen", "cat", "--html", "page", behind=behind)
    behind = ("sh", "-c", 'ulimit -v 300000; exec "$0" "$@"')
    assert served.run(THROUGH, "show", "cat", "-q", behind=behind).stdout == b"cat\n"


def test_what_is_ignored_stays_so_and_the_priority_too(served: Place, waiting: Callable[..., Any]) -> None:
    line = 'trap \'\' INT HUP; renice -n 5 $$ >/dev/null; exec "$0" "$@"'
    process, child = waiting(behind=("sh", "-c", line))
    [ignored] = [row.split()[1] for row in status_lines(child) if row.startswith("SigIgn")]
    assert int(ignored, 16) & 0b11 == 0b11
    assert os.getpriority(os.PRIO_PROCESS, child) == 5
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 143


def status_lines(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/status").read_text().splitlines()


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", ">/dev/full", "| true", "2>/dev/full", ">&2", "2>&1"])
def test_closed_full_and_joined_streams(shared: Place, redirection: str) -> None:
    for words in ("ls -q", "show missing", "exec cat -- true"):
        ends = [
            subprocess.run(
                ["sh", "-c", f'"$0" -c "$1" {words} {redirection}; echo $?', sys.executable, way],
                capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
            )
            for way in (ALONE, THROUGH.replace(f"{NOT_BEGUN} if", "__import__('tmuxctl.surfaces.cli').surfaces.cli.run() if"))
        ]  # fmt: skip
        assert (ends[0].stdout, ends[0].stderr) == (ends[1].stdout, ends[1].stderr)


def test_a_reader_that_is_gone_ends_the_command(shared: Place) -> None:
    for way in (ALONE, THROUGH):
        process = shared.start(way, "exec", "sh", "--", "seq", "100000")
        assert process.stdout
        assert process.stdout.read(4) == b"1\n2\n"
        process.stdout.close()
        assert process.wait(60) == 141, process.stderr and process.stderr.read()
        process.communicate()


# what has to run in the caller's own process


@pytest.mark.parametrize(
    "line",
    [
        "new x", "attach cat", "top", "watch", "--version", "--help", "ls --no-server", "--no-server ls", "nosuch", "",
        "send cat --secret-from-fd 3", "exec cat --stdin /dev/fd/3 -- cat", "screen cat --html /dev/tty", "hook Stop",
    ],
)  # fmt: skip
def test_other_commands_run_here(shared: Place, line: str) -> None:
    assert shared.runs_here(*line.split())


@pytest.mark.parametrize(
    "options", [["-O"], ["-X", "dev"], ["-W", "error"], ["-X", "utf8=0"]], ids=lambda words: words[-1]
)
def test_another_way_to_run_python_runs_here(shared: Place, options: list[str]) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"} if options[-1] == "utf8=0" else None
    command = [sys.executable, *options, "-c", THROUGH, "ls"]
    done = subprocess.run(
        command, capture_output=True, timeout=60, env=environment, stdin=subprocess.DEVNULL, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (NOT_BEGUN, b"", b"")


@pytest.mark.parametrize("name", ["PYTHONWARNINGS", "PYTHONHASHSEED", "LD_PRELOAD", "COVERAGE_PROCESS_START"])
def test_variables_that_count_at_the_start_run_here(shared: Place, name: str) -> None:
    value = "0" if name == "PYTHONHASHSEED" else ""
    assert shared.runs_here("ls", env={**os.environ, name: value})


@pytest.mark.night
def test_no_server_is_an_option_of_every_command(shared: Place) -> None:
    for words in (["--no-server", "ls", "-q"], ["ls", "-q", "--no-server"], ["config", "path", "--no-server"]):
        done = subprocess.run([sys.executable, "-m", "tmuxctl", *words], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    # behind -- it is the program's
    done = shared.run(ALONE, "run", "--", "echo", "--no-server")
    assert done.stdout == b"--no-server\n"


def test_the_client_knows_the_options_that_stand_before_a_command() -> None:
    flags = {name for one in global_options() if one.is_flag for name in one.opts}
    assert flags - {"--version", "--no-server"} == client.FLAGS


def test_a_callers_terminal_is_its_own(shared: Place) -> None:
    """In a background job the kernel stops who reads the terminal, so no server may read it."""
    leader, terminal = pty.openpty()
    try:
        assert shared.run(THROUGH, "ls", "-q", stdin=terminal).stdout == b"cat\nsh\n"
        assert shared.runs_here("send", "cat", "-", stdin=terminal)

        def become_background() -> None:
            os.setsid()
            fcntl.ioctl(terminal, 0x540E, 0)  # TIOCSCTTY
            if os.fork():
                os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
            os.setpgid(0, 0)

        assert shared.runs_here("ls", "-q", stdin=terminal, preexec_fn=become_background)
    finally:
        os.close(leader)
        os.close(terminal)


# who is served


def test_the_socket_is_the_users_alone(served: Place) -> None:
    path = Path(client.find_socket())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.name == f"commands-{__version__}.sock"
    path.chmod(0o666)
    assert served.runs_here("ls")
    path.chmod(0o600)
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))
    assert served.runs_here("ls")


def as_another(code: str) -> subprocess.Popen[bytes]:
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("only root becomes another user")
    words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c", code]
    return subprocess.Popen(words, stdout=subprocess.PIPE, cwd="/")


def test_another_users_socket_is_not_spoken_to(place: Path, until: Callable[..., Any]) -> None:
    path = Path(client.find_socket())
    path.parent.mkdir(parents=True, mode=0o700)
    os.chmod(place, 0o755)
    (place / "state").chmod(0o755)
    path.parent.chmod(0o777)
    listen = (
        f"import socket; s = socket.socket(socket.AF_UNIX); s.bind({str(path)!r}); s.listen(); print(flush=True);"
        "c = s.accept()[0]; c.sendall(b'H'); c.recv(1) and print('read')"
    )
    with as_another(listen) as other:
        assert other.stdout
        other.stdout.readline()
        ends = [
            subprocess.run(
                [sys.executable, "-c", THROUGH, "ls"], stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
        ]
        # who owns the file is not who listens
        os.chown(path, 0, 0)
        path.chmod(0o600)
        ends.append(
            subprocess.run(
                [sys.executable, "-c", THROUGH, "ls"], stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
        )
        assert [one.returncode for one in ends] == [NOT_BEGUN, NOT_BEGUN]
        other.kill()
        assert other.stdout.read() == b""


def test_another_user_is_not_served(served: Place) -> None:
    path = Path(client.find_socket())
    for folder in (served.folder.parent, served.folder, path.parent):
        folder.chmod(0o755)
    path.chmod(0o666)
    with as_another(
        f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r}); print(s.recv(1))"
    ) as other:
        assert other.stdout
        assert other.stdout.read() == b"b''\n"


@pytest.mark.parametrize(
    "behind",
    [
        ["unshare", "--mount"], ["unshare", "--net"], ["unshare", "--uts"], ["unshare", "--user", "--map-root-user"],
        ["setpriv", "--no-new-privs"], ["setpriv", "--bounding-set", "-sys_time"], ["setpriv", "--groups", "12345"],
        ["setpriv", "--ambient-caps", "+sys_time", "--inh-caps", "+sys_time"],
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
def test_a_caller_that_may_do_less_is_not_shared(shared: Place, behind: list[str], needs: Callable[..., None]) -> None:
    needs(behind[0])
    if subprocess.run([*behind, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"{' '.join(behind)} is not possible here")
    assert shared.runs_here("ls", behind=behind)


@pytest.mark.night
def test_code_that_has_changed_is_not_run(
    place: Path, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "tmuxctl", place / "code/tmuxctl", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPATH", f"{place}/code")
    served = Place(place)
    assert served.run(THROUGH, "ls", "-q", cwd="/").returncode == 0
    # another installation
    assert served.runs_here("ls", "-q", env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd="/")
    # a module that no command has loaded yet
    module = place / "code/tmuxctl/surfaces/cli/skill.py"
    before = module.stat()
    module.write_bytes(module.read_bytes().replace(b"skill", b"skull", 1))
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert served.runs_here("ls", "-q", cwd="/")
    assert served.server.wait(PATIENCE) == 0
    assert not Path(client.find_socket()).exists()


def test_another_version_is_not_found(shared: Place) -> None:
    code = f"import tmuxctl; tmuxctl.__version__ = '9.9'; {THROUGH.strip()}".replace("; import sys", "\nimport sys")
    assert shared.run(code, "ls").returncode == NOT_BEGUN


# requests


def connect() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE)
    connection.connect(client.find_socket())
    assert connection.recv(1) == client.HELLO
    return connection


@pytest.mark.parametrize(
    ("message", "descriptors"),
    [
        (b"tmuxctl1" + (1 << 40).to_bytes(8, "little"), 4), (b"x" * 100, 4), (b"tmuxctl1" + bytes(8), 4),
        (b"tmuxctl1" + (3).to_bytes(8, "little") + b"a\0b", 4), (b"tmuxctl1" + bytes(8), 0), (b"tmuxctl1" + bytes(8), 9),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(shared: Place, message: bytes, descriptors: int) -> None:
    with connect() as connection:
        socket.send_fds(connection, [message], [0] * descriptors)
        assert connection.recv(1) in (b"", b"D")
    assert shared.same("ls", "-q").stdout == b"cat\nsh\n"


def test_half_a_request_keeps_no_other_caller_waiting(shared: Place) -> None:
    with contextlib.ExitStack() as open_:
        for number in range(5):
            connection = open_.enter_context(connect())
            if number:
                socket.send_fds(connection, [b"tmuxctl1" + (99).to_bytes(8, "little") + b"x"], [0, 1, 2, 2])
        assert shared.same("ls", "-q").stdout == b"cat\nsh\n"


@pytest.mark.night
def test_a_server_that_does_not_answer_is_done_without(served: Place) -> None:
    served.server.send_signal(signal.SIGSTOP)
    with socket.socket(socket.AF_UNIX) as first:
        # the child that waits for the next caller
        first.connect(client.find_socket())
        assert served.runs_here("ls", "-q")
    served.server.send_signal(signal.SIGCONT)
    assert served.same("ls", "-q").stdout == b"cat\nsh\n"


@pytest.mark.night
def test_many_at_once(served: Place) -> None:
    processes = [served.start(THROUGH, "show", "cat", "-q") for _ in range(50)]
    ends = [(process.communicate(timeout=60), process.returncode) for process in processes]
    assert {status for _, status in ends} <= {0, NOT_BEGUN}
    assert sum(status == 0 for _, status in ends) > 1
    assert {out for (out, _), status in ends if status == 0} == {b"cat\n"}


@pytest.mark.night
def test_no_child_and_no_descriptor_is_left(served: Place, until: Callable[..., Any]) -> None:
    pid = served.server.pid

    def is_at_rest() -> bool:
        """True if it has no child but the one that waits for the next caller."""
        return len(children(pid)) == 1 and not commands(pid)

    served.same("ls", "-q")
    until(is_at_rest)
    before = len(os.listdir(f"/proc/{pid}/fd"))
    for _ in range(5):
        served.run(THROUGH, "ls", "-q")
        connect().close()
    until(is_at_rest)
    assert len(os.listdir(f"/proc/{pid}/fd")) == before


# being told to end


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_as_ever(
    served: Place, waiting: Callable[..., Any], number: signal.Signals, status: int
) -> None:
    process, _ = waiting()
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (status, b"")
    assert err == (b"tmuxctl: interrupted\n" if number == signal.SIGINT else b"")


def test_a_caller_that_is_killed_takes_its_command_with_it(
    served: Place, waiting: Callable[..., Any], until: Callable[..., Any]
) -> None:
    for number in (signal.SIGKILL, signal.SIGHUP, signal.SIGQUIT):
        process, _ = waiting()
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
        assert until(lambda: not commands(served.server.pid))
    process, _ = waiting(behind=("sh", "-c", 'trap \'\' HUP; exec "$0" "$@"'))
    process.kill()
    assert until(lambda: not commands(served.server.pid))


def test_a_command_that_is_killed_is_told_as_that(served: Place, waiting: Callable[..., Any]) -> None:
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1):
        process, child = waiting()
        os.kill(child, number)
        assert process.wait(PATIENCE) == -number


def test_a_command_goes_on_when_the_server_is_killed(served: Place, waiting: Callable[..., Any]) -> None:
    process, _ = waiting("wait", "cat", "--text", "late")
    served.server.kill()
    served.server.wait()
    # there is none any more
    assert served.runs_here("send", "cat", "late")
    assert served.run(ALONE, "send", "cat", "late").returncode == 0
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, b"text: 'late'\n", b"")


@pytest.mark.parametrize(
    ("status", "line"), [(7, "wait cat --exit --json"), (125, "exec sh --json --timeout 1 -- sleep 2")]
)
def test_an_outcome_that_nobody_can_tell_is_told_as_that(
    served: Place, waiting: Callable[..., Any], status: int, line: str
) -> None:
    process, child = waiting(*line.split())
    served.server.kill()
    served.server.wait()
    os.kill(child, signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status
    assert json.loads(err)["error"]["reason"] == "outcome_unknown"


def test_a_server_ends_with_what_started_it(served: Place) -> None:
    assert served.server.stdin
    served.server.stdin.close()
    assert served.server.wait(PATIENCE) == 0
    assert not Path(client.find_socket()).exists()


def test_a_server_that_is_told_to_end_leaves_nothing_and_ends_no_command(
    served: Place, waiting: Callable[..., Any]
) -> None:
    process, _ = waiting("wait", "cat", "--text", "told later")
    served.server.terminate()
    assert served.server.wait(PATIENCE) == 0
    assert not Path(client.find_socket()).exists()
    served.run(ALONE, "send", "cat", "told later")
    assert process.wait(PATIENCE) == 0


@pytest.mark.night
def test_one_server_at_a_time(served: Place) -> None:
    command = [sys.executable, "-m", "tmuxctl.surfaces.cli.command_server.server"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert (done.returncode, b"served already" in done.stderr) == (4, True)
    assert served.same("ls", "-q").stdout == b"cat\nsh\n"
    # the socket that one leaves behind is in no other's way
    served.server.kill()
    served.server.wait()
    assert Path(client.find_socket()).exists()
    assert served.runs_here("ls")
    served.server = start_command_server()
    assert served.same("ls", "-q").stdout == b"cat\nsh\n"


# on a terminal


class Terminal:
    """A shell in a tmux of its own, where a person would type."""

    numbers = itertools.count()

    def __init__(self, until: Callable[..., Any]) -> None:
        self.until = until
        self.tmux("new-session", "-d", "-x", "100", "-y", "20", "sh")
        self.tmux("set-option", "-g", "status", "off")

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-L", "terminal", "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, timeout=20, check=True, text=True).stdout

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-e")

    def shows(self, text: str) -> str:
        """The screen once it has this."""
        return str(self.until(lambda: next((seen for seen in [self.screen()] if text in seen), "")))


@pytest.fixture
def terminal(served: Place, until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    for name, code in (("alone", ALONE), ("through", THROUGH)):
        (served.folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -c "$(cat $0.py)" "$@"\n')
        (served.folder / f"{name}.py").write_text(code)
        (served.folder / name).chmod(0o755)
    monkeypatch.setenv("TERM", "xterm-256color")
    found = Terminal(until)
    yield found
    subprocess.run(["tmux", "-L", "terminal", "kill-server"], capture_output=True, check=False)


def test_a_terminal_is_written_as_ever(terminal: Terminal) -> None:
    seen = {}
    for way in ("alone", "through"):
        terminal.type(f"clear; ./{way} show missing; ./{way} ls -F '{{name}}'; echo end-{way}=$?")
        seen[way] = terminal.shows(f"end-{way}=0").replace(way, "")
        assert "\x1b[31mtmuxctl:" in seen[way]
    assert seen["alone"] == seen["through"]


@pytest.mark.night
def test_ctrl_c_and_ctrl_z_are_as_ever(terminal: Terminal, served: Place, until: Callable[..., Any]) -> None:
    terminal.type("clear; ./through wait cat --text never; echo status $?")
    for _ in range(2):
        terminal.shows("Ctrl-C stops waiting")
        [child] = commands(served.server.pid)
        terminal.tmux("send-keys", "C-z")
        stopped = terminal.shows("Stopped")
        until(lambda child=child: any("T (stopped)" in line for line in status_lines(child)))
        assert terminal.screen() == stopped
        terminal.type("clear; fg; echo status $?")
        # the screen of the stopped command has the words that are waited for next
        until(lambda: "Stopped" not in terminal.screen())
    terminal.shows("Ctrl-C stops waiting")
    terminal.tmux("send-keys", "C-c")
    assert "tmuxctl:\x1b[39m interrupted" in terminal.shows("status 130")


def test_a_terminal_that_goes_away_ends_the_command(
    terminal: Terminal, served: Place, until: Callable[..., Any]
) -> None:
    terminal.type("./through wait cat --text never")
    until(lambda: commands(served.server.pid))
    terminal.tmux("kill-server")
    assert until(lambda: not commands(served.server.pid))


# what is loaded

NEW = """
import sys
from tmuxctl.surfaces.cli.command_server import loaded
loaded.load_modules()
before = set(sys.modules)
from tmuxctl.surfaces.cli import app
app.run(sys.argv[1:])
print("\\nNEW", *(name for name in sys.modules if name not in before))
"""


@pytest.mark.parametrize(
    "line",
    [
        "ls", "ls --json", "show cat", "screen cat", "send cat x", "keys cat Enter", "wait cat --exit --now",
        "wait cat --text x --timeout 0.1",
        "status", "ask sh true", "exec sh -- true", "show missing", "ls --help", "ls --nosuch",
    ],
)  # fmt: skip
def test_all_that_a_quick_command_needs_is_loaded_before(shared: Place, line: str) -> None:
    done = shared.run(NEW, *line.split())
    found = done.stdout.decode().rpartition("NEW")[2].split()
    assert [name for name in found if name in sys.stdlib_module_names or name.startswith(("tmuxctl", "click"))] == []


def test_what_is_loaded_before_is_there() -> None:
    assert len(set(loaded.MODULES)) == len(loaded.MODULES)
