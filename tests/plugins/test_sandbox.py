"""The plugin `sandbox`: what a program in it cannot do, tried by programs that try; as the user who runs this, and as another."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tmuxctl import plugin
from tmuxctl.errors import Failed, TmuxctlError, from_json
from tmuxctl.model import SessionSpec

ATTACKS = (Path(__file__).parent / "attacks.py").read_text()
PYTHON = next((path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if os.path.exists(path)), "python3")
SANDBOX: Any = plugin.load("sandbox").module
CLONE_NEWNET = 0x4000_0000
STRANGER = 48_611
"""A user whom the machine does not know: unprivileged, and not the owner of this tree."""

OBSTACLES: dict[str, str] = {}
"""Why no sandbox can be made as this user, "" if one can: found out once in a process."""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bubblewrap is for Linux")


class Ran(NamedTuple):
    """A program's status and all that it printed."""

    status: int
    text: str


class Jail:
    """One user with a home, a workspace in a folder that sandboxes hide, and a way to run programs in a sandbox there."""

    def __init__(self, folder: Path, user: int) -> None:
        self.folder, self.user = folder, user
        self.home, self.workspace, self.sockets = folder / "home", folder / "home/work", folder / "sockets"
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        self.state, self.left = folder / "state", ""
        self.around = {**self.env, "TMUX_TMPDIR": str(self.sockets), "GIT_CONFIG_NOSYSTEM": "1"}
        self.around["XDG_STATE_HOME"] = str(self.state)
        for path in (folder, self.home, self.workspace, self.sockets, self.state, self.home / ".ssh"):
            self.make(path)
        (self.home / ".ssh/id").write_text("the key")

    @property
    def identity(self) -> dict[str, Any]:
        """How subprocess starts a program as this user."""
        if self.user == os.getuid():
            return {}
        return {"user": self.user, "group": self.user, "extra_groups": []}

    def make(self, path: Path, mode: int = 0o755) -> Path:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
        os.chown(path, self.user, self.user if self.user != os.getuid() else -1)
        return path

    def outside(self, *command: str, cwd: Path | None = None, **env: str) -> Ran:
        """Run a program as this user without a sandbox."""
        return self._run(command, {**self.around, **env}, cwd or self.workspace)

    def wrapped(
        self, *argv: str, cwd: Path | None = None, env: Mapping[str, str] = {}, notes: Any = (), **options: Any
    ) -> SessionSpec:
        """What the plugin makes of a program, as this user."""
        spec = SessionSpec(argv, str(cwd or self.workspace), {**self.env, **env}, notes=dict(notes))
        return self.ask(lambda: plugin.apply(spec, [("sandbox", options)])[0])

    def run(self, *argv: str, **how: Any) -> Ran:
        """Run a program in a sandbox, to its end and that of its session; `left` is what the plugin says then."""
        spec = self.wrapped(*argv, **how)
        ran = self._run(
            spec.argv, {**spec.env, "TMUX": f"{self.sockets}/x,1,0", "TMUXCTL_SESSION": "me"}, Path(spec.cwd)
        )
        self.left = self.end(spec)
        return ran

    def end(self, spec: SessionSpec, *, force: bool = False) -> str:
        """What the plugin says at the end of a session."""
        ended = plugin.SessionEnd(0, kept=False, force=force)
        return self.ask(lambda: replace(spec, name="", notes={"said": SANDBOX.cleanup(spec, ended) or ""})).notes[
            "said"
        ]

    def sh(self, script: str, **how: Any) -> str:
        """What a script prints in a sandbox."""
        return self.run("sh", "-c", script, **how).text

    def attack(self, *words: str, **how: Any) -> str:
        """How an attack ends in a sandbox."""
        return self.run(PYTHON, "-I", "-c", ATTACKS, *words, **how).text

    def unhindered(self, *words: str) -> str:
        """How it ends without one."""
        return self.outside(PYTHON, "-I", "-c", ATTACKS, *words).text

    def _run(self, command: Any, env: Mapping[str, str], cwd: Path) -> Ran:
        done = subprocess.run(
            command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, timeout=60, check=False, **self.identity,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout.decode(errors="replace").strip())

    def ask(self, function: Callable[[], SessionSpec]) -> SessionSpec:
        """Call a function as this user, with what is around it: in a process of its own."""
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                os.write(theirs, json.dumps(self._answer(function)).encode())
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            said = json.loads(pipe.read())
        os.waitpid(child, 0)
        if "error" in said:
            raise from_json(said["error"])
        return plugin.spec_from_json(said["spec"])

    def _answer(self, function: Callable[[], SessionSpec]) -> dict[str, Any]:
        if self.user != os.getuid():
            os.setgroups([])
            os.setgid(self.user)
            os.setuid(self.user)
        os.environ.clear()
        os.environ.update(self.around)
        try:
            return {"spec": plugin.spec_to_json(function())}
        except TmuxctlError as error:
            return {"error": error.to_json()}


@pytest.fixture(params=["me", "stranger"])
def jail(request: pytest.FixtureRequest, needs: Callable[..., None]) -> Iterator[Jail]:
    needs("bwrap")
    if request.param == "stranger" and os.getuid():
        pytest.skip("only root can try it as somebody else")
    folder = Path(tempfile.mkdtemp(prefix="tc-", dir="/tmp"))
    try:
        made = Jail(folder, os.getuid() if request.param == "me" else STRANGER)
        if request.param not in OBSTACLES:
            # what the plugin finds out about bubblewrap once in a process, the processes of `ask` begin with
            SANDBOX.check()
            asked = made.ask(lambda: SessionSpec((SANDBOX.check() or "fine",), "/"))
            OBSTACLES[request.param] = asked.argv[0].replace("fine", "")
        if reason := OBSTACLES[request.param]:
            pytest.skip(f"no sandbox can be made as {request.param}: {reason}")
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def visible(jail: Jail) -> Iterator[Path]:
    """A folder of the user's that no sandbox hides."""
    for parent in ("/opt", "/srv", "/var/lib"):
        if os.access(parent, os.W_OK):
            folder = Path(tempfile.mkdtemp(prefix="tc-", dir=parent))
            yield jail.make(folder)
            shutil.rmtree(folder, ignore_errors=True)
            return
    pytest.skip("only root can make a folder that sandboxes do not hide")


@pytest.fixture
def tmux(jail: Jail) -> Iterator[Callable[..., str]]:
    """Starts a tmux of the user's, and says where its socket is."""
    started: list[tuple[str, ...]] = []

    def start(*where: str, folder: Path) -> str:
        command = ("tmux", "-f", "/dev/null", *where)
        done = jail.outside(*command, "new-session", "-d", "cat", TMUX_TMPDIR=str(folder))
        assert not done.status, done.text
        asked = jail.outside(*command, "display-message", "-p", "#{socket_path}", TMUX_TMPDIR=str(folder)).text
        started.append((*command[:3], "-S", asked))
        return asked

    yield start
    for command in started:
        jail.outside(*command, "kill-server")


# 80: what is hidden


@pytest.mark.parametrize("level", ["read-only", "workspace", "workspace+net"])
def test_your_home_and_its_keys_are_hidden(jail: Jail, level: str) -> None:
    assert "No such file" in jail.sh("cat ~/.ssh/id", level=level)
    assert jail.sh("cd; find . -mindepth 1", level=level) == "./work"
    assert "the key" in jail.outside("cat", str(jail.home / ".ssh/id")).text


@pytest.mark.night
def test_temporary_folders_other_homes_and_what_runs_are_hidden(jail: Jail) -> None:
    for folder in ("/tmp", "/var/tmp", "/run", "/home", "/root", "/dev/shm"):
        there = set(os.listdir(folder)) if os.access(folder, os.R_OK) else set()
        seen = set(jail.sh(f"ls -A {folder}").split())
        assert seen <= {jail.folder.name, f"tmux-{jail.user}"}, folder
        assert not there or seen != there


def test_a_home_that_is_called_by_another_name_is_hidden_too(jail: Jail, visible: Path) -> None:
    home = jail.make(visible / "user")
    (home / "secret").write_text("the key")
    (visible / "alias").symlink_to(home)
    jail.around["HOME"] = jail.env["HOME"] = str(visible / "alias")
    assert jail.sh(f"cat ~/secret {home}/secret; touch ~/new && ls ~ {home}").split()[-2:] == [f"{home}:", "new"]
    assert not (home / "new").exists()


def test_the_password_file_cannot_be_read(jail: Jail) -> None:
    assert "Permission denied" in jail.sh("cat /etc/shadow")


# 81: what cannot be written


@pytest.mark.parametrize("level", ["read-only", "workspace", "workspace+net"])
def test_nothing_outside_of_the_workspace_can_be_written(jail: Jail, visible: Path, level: str) -> None:
    (visible / "file").write_text("as it was")
    os.chown(visible / "file", jail.user, -1)
    said = jail.sh(f"touch {visible}/new; echo x >{visible}/file", level=level)
    assert said.count("Read-only file system") == 2
    assert (
        jail.sh("for one in / /etc /usr/bin /var/lib /boot /opt /srv; do test -w $one && echo $one; done", level=level)
        == ""
    )
    assert os.listdir(visible) == ["file"]
    assert (visible / "file").read_text() == "as it was"
    assert not jail.outside("touch", f"{visible}/new").status


def test_what_it_writes_into_its_workspace_stays_and_elsewhere_is_gone(jail: Jail) -> None:
    jail.sh("echo mine >new; echo gone >~/new; echo gone >/tmp/new; mkdir -p ~/.config/x")
    assert (jail.workspace / "new").read_text() == "mine\n"
    assert sorted(os.listdir(jail.home)) == [".ssh", "work"]
    assert jail.sh("ls ~ /tmp/new").splitlines()[0].startswith("ls: cannot access")


def test_read_only_leaves_the_workspace_as_it_is(jail: Jail) -> None:
    (jail.workspace / "file").write_text("text")
    assert jail.sh("cat file; echo x >new", level="read-only").startswith("text")
    assert os.listdir(jail.workspace) == ["file"]


def test_a_folder_that_would_give_it_everything_is_refused(jail: Jail) -> None:
    for folder in ("/", str(jail.home), "/tmp", "/proc", "/dev/shm", f"{jail.sockets}/tmux-{jail.user}"):
        with pytest.raises(Failed) as error:
            jail.wrapped("true", cwd=Path(folder))
        assert error.value.details["cause"] == "bad_cwd"
        assert error.value.hint


# options


def test_a_level_that_there_is_not_is_refused_by_name(jail: Jail) -> None:
    with pytest.raises(Failed) as error:
        jail.wrapped("true", level="none")
    assert (error.value.details["cause"], error.value.hint) == (
        "bad_option",
        "one of read-only, workspace, workspace+net",
    )


def test_more_paths_can_be_given_to_write_and_to_read(jail: Jail) -> None:
    for name in ("write", "read", "ro:odd", "work/near"):
        jail.make(jail.home / name)
    bind = [f"{jail.home}/write", "ro:~/read", f"ro:{jail.home}/ro:odd", "ro:near"]
    script = "for one in ~/write ~/read ~/ro:odd near; do touch $one/new 2>/dev/null && echo $one; done"
    assert jail.sh(script, bind=bind) == f"{jail.home}/write"
    assert (jail.home / "write/new").exists()
    assert jail.sh("touch ../ro:odd/new && echo ok", bind="../ro:odd") == "ok"


@pytest.mark.parametrize("path", ["/", "~", "~/none", "ro:", "/proc/sys", "STATE/tmuxctl/sessions"])
def test_what_is_never_given(jail: Jail, path: str) -> None:
    jail.make(jail.state / "tmuxctl/sessions")
    path = path.replace("STATE", str(jail.state))
    with pytest.raises(Failed) as error:
        jail.wrapped("true", bind=path)
    assert error.value.details["cause"] == "bad_option"


def test_what_another_plugin_shares_is_there(jail: Jail) -> None:
    shared = jail.make(jail.home / "shared")
    assert jail.sh(f"touch {shared}/new && echo ok", notes={"binds": [str(shared)]}) == "ok"


def test_of_the_sessions_folder_it_sees_its_events_and_the_shells_files(jail: Jail) -> None:
    folder = jail.state / "tmuxctl/t/sessions/one"
    for path in (*reversed(folder.parents[:3]), folder, *(folder / name for name in ("events", "shell", "journal"))):
        jail.make(path)
    (folder / "spec.json").write_text("{}")
    notes = {"folder": str(folder)}
    assert jail.sh(f"cd {folder}; ls; touch events/new; touch shell/new", notes=notes).split()[:2] == [
        "events",
        "shell",
    ]
    assert os.listdir(folder / "events") == ["new"]
    assert not os.listdir(folder / "shell")
    with pytest.raises(Failed):
        jail.wrapped("true", cwd=folder / "journal", notes=notes)


def test_a_program_that_would_be_hidden_is_named_before_it_starts(jail: Jail) -> None:
    mine = jail.make(jail.home / "bin") / "mine"
    mine.write_text("#!/bin/sh\necho hello\n")
    mine.chmod(0o755)
    with pytest.raises(Failed) as error:
        jail.wrapped("mine", env={"PATH": f"{mine.parent}:/usr/bin:/bin"})
    assert (error.value.details["cause"], str(mine) in error.value.message) == ("hidden", True)
    assert f"ro:{mine.parent}" in error.value.hint
    assert jail.run("mine", env={"PATH": f"{mine.parent}:/usr/bin:/bin"}, bind=f"ro:{mine.parent}").text == "hello"


# 82: tmux


@pytest.mark.night
@pytest.mark.parametrize("where", ["hidden", "workspace", "visible", "workspace -S", "visible -S"])
def test_no_socket_of_tmux_can_be_reached(
    jail: Jail, visible: Path, tmux: Callable[..., str], needs: Callable[..., None], where: str
) -> None:
    needs("tmux")
    folder = {"hidden": jail.sockets, "workspace": jail.workspace, "visible": visible}[where.split()[0]]
    path = tmux(*(["-S", f"{folder}/own"] if "-S" in where else []), folder=folder)
    jail.around["TMUX_TMPDIR"] = str(jail.sockets if "-S" in where else folder)
    jail.around["TMUX"] = f"{path},1,0"
    assert jail.unhindered("connect", path) == "done"
    for level in ("workspace", "workspace+net"):
        assert jail.attack("connect", path, level=level) in ("ENOENT", "ECONNREFUSED", "EACCES"), level
        assert jail.attack("connect", path, level=level, bind=str(jail.sockets)) in ("ENOENT", "ECONNREFUSED", "EACCES")
    assert jail.sh("tmux ls >/dev/null 2>&1 || echo $TMUX.") == "."


def test_no_socket_of_another_service_can_be_reached(jail: Jail, visible: Path) -> None:
    def attack() -> None:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{visible}/daemon")
            os.chown(f"{visible}/daemon", jail.user, -1)
            server.listen()
            os.utime(f"{visible}/daemon", (0, 0))
            assert jail.unhindered("connect", f"{visible}/daemon") == "done"
            assert jail.attack("connect", f"{visible}/daemon") in ("ECONNREFUSED", "EACCES")
            assert jail.attack("connect", f"{visible}/daemon", bind=f"{visible}/daemon") == "done"

    unseen(attack)


def unseen(work: Callable[[], None]) -> None:
    """Do the work in a network namespace of its own, where that may be: a sandbox that is made elsewhere at the same time
    hears nothing of what listens here. It would take a socket that looks old for one that stays."""

    def apart() -> None:
        ctypes.CDLL(None).unshare(CLONE_NEWNET)
        work()

    # a namespace is left with the thread
    with ThreadPoolExecutor(1) as pool:
        pool.submit(apart).result()


def test_terminals_of_others_are_not_there(jail: Jail) -> None:
    ours, theirs = os.openpty()
    os.chown(os.ttyname(theirs), jail.user, -1)
    path = os.ttyname(theirs)
    assert jail.outside("sh", "-c", f"echo x >{path}").status == 0
    assert "x" not in jail.sh(f"echo x >{path}; ls /dev/pts").split()
    os.close(ours)
    os.close(theirs)


# 83, 90 and what else the kernel is not asked


@pytest.mark.parametrize("request_", ["0x5412", "0x541c"], ids=["TIOCSTI", "TIOCLINUX"])
@pytest.mark.parametrize("high", ["0", "1", "0xffffffff"])
def test_nothing_can_be_typed_into_the_terminal(jail: Jail, request_: str, high: str) -> None:
    assert jail.attack("terminal", request_, high) == "EPERM"
    # without a sandbox it works, or the kernel has been told to know of no such thing
    assert jail.unhindered("terminal", "0x5412", high) in ("done", "EIO")


def test_a_terminal_can_still_be_asked_for_its_size(jail: Jail) -> None:
    assert jail.attack("terminal", "0x541b", "0") == "done"


@pytest.mark.night
def test_a_program_cannot_make_itself_root_of_a_namespace(jail: Jail) -> None:
    for high in ("0", "0x80000000"):
        assert jail.attack("namespace", high) == "EPERM"
    assert jail.attack("child", "0x10000000") == "EPERM"
    assert jail.attack("child", "0x7c020000") == "EPERM"
    assert jail.attack("plain", "clone3", "0", "88") == "ENOSYS"
    assert jail.attack("plain", "setns", "0", "0") == "EPERM"
    assert jail.attack("child", "0") == "done"
    assert "denied" in jail.sh("unshare -r true || echo denied")


CALLS = {
    "keyctl 0 -3 0": "EPERM", "add_key 0 0 0 0 0": "EPERM", "request_key 0 0 0 0": "EPERM", "bpf 0 0 0": "EPERM",
    "userfaultfd 0": "EPERM", "perf_event_open 0 0 0 0 0": "EPERM", "open_by_handle_at 0 0 0": "EPERM",
    "io_uring_setup 8 0": "ENOSYS",
}  # fmt: skip


@pytest.mark.parametrize("words", CALLS)
def test_calls_that_a_program_in_a_sandbox_has_no_business_with(jail: Jail, words: str) -> None:
    assert jail.attack("plain", *words.split()) == CALLS[words]


def test_debuggers_work(jail: Jail) -> None:
    assert jail.attack("plain", "ptrace", "0", "0", "0", "0") == "done"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="it is about the two older ways to call the kernel of a PC")
def test_no_other_table_of_calls_leads_around_the_filter(jail: Jail) -> None:
    assert jail.attack("old_code") == "SIGSYS"
    script = "import ctypes, os; ctypes.CDLL(None, use_errno=True).syscall(0x40000000 + 39)"
    assert jail.run(PYTHON, "-c", f"{script}; print(ctypes.get_errno())").text == str(errno.ENOSYS)


@pytest.mark.night
def test_it_has_no_capability_no_device_and_no_way_to_more(jail: Jail) -> None:
    status = jail.sh("cat /proc/self/status /proc/1/status")
    for line in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert status.count(f"{line}:\t0000000000000000") == 2
    assert status.count("NoNewPrivs:\t1") == status.count("Seccomp:\t2") == 2
    assert jail.attack("device", "null") == "EPERM"
    assert jail.attack("chroot", "/") == "EPERM"
    assert jail.sh("mount -t tmpfs none /mnt 2>/dev/null || echo no") == "no"
    assert jail.sh("su -c id nobody </dev/null >/dev/null 2>&1 || echo no") == "no"


def test_no_open_file_is_left_to_it(jail: Jail) -> None:
    assert jail.sh("ls /proc/self/fd").split() == ["0", "1", "2", "3"]
    assert "socket" not in jail.sh("ls -l /proc/1/fd")
    assert not [
        name for name in os.listdir("/tmp") if name.startswith("tmp.") and os.stat(f"/tmp/{name}").st_uid == STRANGER
    ]


# 84: the kernel's settings


def test_nothing_of_the_kernel_can_be_set(jail: Jail) -> None:
    # open for root, and asking for a capability when it is written
    harmless = {"/proc/mtrr", "/proc/pressure/io", "/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/irq"}
    assert set(jail.attack("files").split()) - harmless == {"done"}


# 86: other processes


def test_no_process_outside_can_be_seen_or_signalled(jail: Jail) -> None:
    with subprocess.Popen(["sleep", "1000"], start_new_session=True, **jail.identity) as other:
        try:
            # asked for and not sent: a test that fails must not end what runs on this machine
            for whom in (other.pid, -other.pid):
                assert jail.outside("kill", "-0", "--", str(whom)).status == 0
                assert "No such process" in jail.sh(f"env kill -0 -- {whom}")
            assert len(jail.sh("cd /proc; ls -d [0-9]*").split()) <= 4
        finally:
            other.kill()


def test_it_ends_with_what_started_it(jail: Jail, until: Callable[..., Any]) -> None:
    mark = f"10{os.getpid()}{jail.user}"
    script = f"trap '' HUP TERM INT; (env -i setsid sleep {mark} &); sleep {mark}"
    spec = jail.wrapped("sh", "-c", script)
    with subprocess.Popen(spec.argv, env=spec.env, cwd=spec.cwd, start_new_session=True, **jail.identity) as started:
        until(lambda: running(mark) == 2)
        started.kill()
        until(lambda: not running(mark))


def running(mark: str) -> int:
    """How many processes were called with this argument and nothing behind it."""
    found = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            found += Path(f"/proc/{pid}/cmdline").read_bytes() == f"sleep\0{mark}\0".encode()
    return found


def test_signals_that_end_programs_reach_the_program_as_they_would(jail: Jail) -> None:
    script = "grep SigIgn /proc/self/status"
    inside, outside = (int(text.split()[1], 16) for text in (jail.sh(script), jail.outside("sh", "-c", script).text))
    assert inside == outside
    assert jail.run("sh", "-c", "exit 7").status == 7
    assert jail.run("sh", "-c", "kill -TERM $$").status == 128 + signal.SIGTERM


# 88: git


class Repository(NamedTuple):
    """A working tree, the folder of its own facts and the one that is shared."""

    top: Path
    folder: Path
    common: Path


@pytest.fixture(params=["checkout", "worktree", "worktree of a hidden one", "subfolder"])
def repository(request: pytest.FixtureRequest, jail: Jail, visible: Path, needs: Callable[..., None]) -> Repository:
    needs("git")
    parent = jail.home if "hidden" in request.param or request.param == "checkout" else visible
    main, tree = jail.make(parent / "main"), jail.home / "tree"
    git = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    jail.outside(*git, "init", "-q", cwd=main)
    (jail.home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n")
    jail.outside(
        "sh",
        "-c",
        "mkdir sub; echo 1 >sub/file; git add .; git commit -qm one; git branch packed; git pack-refs --all",
        cwd=main,
    )
    folder = main / ".git"
    if "worktree" in request.param:
        assert not jail.outside("git", "worktree", "add", "-q", "-b", "topic", str(tree), cwd=main).status
        folder = main / ".git/worktrees/tree"
    jail.workspace = tree if "worktree" in request.param else main / "sub" if request.param == "subfolder" else main
    return Repository(tree if "worktree" in request.param else main, folder, main / ".git")


WORK = """
set -e
echo 2 >new; git add new; git commit -qm two
test -z "$(git status --porcelain)"
echo 3 >>new; git stash -q; git stash pop -q; git commit -qam three
git switch -q -c other HEAD~1; echo 4 >four; git add four; git commit -qm four
git rebase -q -f HEAD~1; git cherry-pick HEAD~1 --allow-empty --keep-redundant-commits >/dev/null; git tag mark
git log -1 --format=%an:%ae
"""


@pytest.mark.night
def test_it_can_commit_and_what_it_committed_is_there(jail: Jail, repository: Repository) -> None:
    assert (jail.sh(WORK), jail.left) == ("Ada:ada@example.org", "")
    log = jail.outside("git", "log", "--format=%s", "other", cwd=repository.top).text.split()
    assert log == ["two", "four", "two", "one"]
    assert jail.outside("git", "status", "--porcelain", cwd=repository.top).text == ""
    assert "dangling" not in jail.outside("git", "fsck", "--strict", cwd=repository.top).text.replace(
        "dangling commit", ""
    )


def test_it_cannot_change_what_git_outside_obeys(jail: Jail, repository: Repository) -> None:
    before = obeyed(repository)
    jail.attack("plant", f"{repository.top}/.git", str(repository.folder), str(repository.common))
    assert obeyed(repository) == before


def obeyed(repository: Repository) -> dict[str, str]:
    """What git obeys; in the folder that working trees share, all that there is."""
    linked = repository.folder != repository.common
    paths = [repository.top / ".git", repository.common / "config", *repository.common.glob("hooks/*")]
    paths += [
        *repository.common.glob("*" if linked else "hooks"),
        *repository.folder.glob("*dir" if linked else "none"),
    ]
    return {str(path): path.read_text() if path.is_file() and path.name != "index" else "" for path in paths}


@pytest.mark.parametrize("repository", ["checkout"], indirect=True)
def test_hooks_can_not_be_made_where_there_were_none(jail: Jail, repository: Repository) -> None:
    shutil.rmtree(repository.common / "hooks")
    jail.sh("mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; mv .git/hooks x; ln -s /tmp .git/hooks")
    assert not [*repository.common.glob("hooks/*")]
    assert not (repository.common / "hooks").is_symlink()


@pytest.mark.parametrize("repository", ["worktree"], indirect=True)
def test_a_worktree_leaves_nothing_in_the_repository(jail: Jail, repository: Repository) -> None:
    shutil.rmtree(repository.common / "hooks")
    before = set(os.listdir(repository.common))
    jail.sh(
        "mkdir -p $(git rev-parse --git-common-dir)/hooks; git config a.b c; git pack-refs --all; git gc -q; git branch -D packed"
    )
    assert set(os.listdir(repository.common)) == before
    assert jail.outside("git", "branch", "--list", "packed", cwd=repository.top).text == "packed"


@pytest.mark.night
@pytest.mark.parametrize("repository", ["checkout", "worktree"], indirect=True)
def test_settings_of_one_working_tree_can_not_be_made(jail: Jail, repository: Repository) -> None:
    jail.outside("git", "config", "extensions.worktreeConfig", "true", cwd=repository.top)
    own = repository.folder / "config.worktree"
    jail.sh(f"echo evil >{own}; rm {own}; mv {own} x; git config --worktree core.hooksPath evil; git status")
    assert not own.exists() or own.read_text() == ""
    assert jail.sh("git status --porcelain -uno; ls /proc/self/fd").split() == ["0", "1", "2", "3"]
    assert jail.outside("git", "status", "--porcelain", "-uno", cwd=repository.top).text == ""


@pytest.mark.night
def test_what_both_sides_committed_meanwhile_is_all_there(
    jail: Jail, repository: Repository, until: Callable[..., Any]
) -> None:
    script = """touch ready; until test -e go; do sleep 0.01; done; rm ready go
    echo evil >>"$(git rev-parse --git-dir)/config.new"; git commit -q --allow-empty -m inside; git branch kept"""
    branch = jail.outside("git", "branch", "--show-current", cwd=repository.top).text
    spec = jail.wrapped("sh", "-c", script)
    with subprocess.Popen(spec.argv, env=spec.env, cwd=spec.cwd, **jail.identity) as started:
        until((jail.workspace / "ready").exists)
        jail.outside("git", "config", "my.own", "yes", cwd=repository.top)
        jail.outside(
            "sh", "-c", "git commit --allow-empty -qm outside; git pack-refs --all --prune", cwd=repository.top
        )
        jail.outside("touch", "go")
        assert started.wait(30) == 0
    assert jail.end(spec) == f"{branch} is kept as refs/sandbox/unnamed-x/heads/{branch}"
    log = ("git", "log", "-1", "--format=%s")
    said = [jail.outside(*log, name, cwd=repository.top).text for name in (branch, "kept")]
    assert said == ["outside", "inside"]
    assert jail.outside(*log, f"refs/sandbox/unnamed-x/heads/{branch}", cwd=repository.top).text == "inside"
    assert "evil" not in (repository.common / "config").read_text()


@pytest.mark.night
def test_what_was_committed_can_be_brought_while_it_runs(
    jail: Jail, repository: Repository, until: Callable[..., Any]
) -> None:
    script = """git commit -q --allow-empty -m one; touch ready; until test -e go; do sleep 0.01; done; rm ready go
    git commit -q --allow-empty -m two"""
    spec = jail.wrapped("sh", "-c", script)
    log = ("git", "log", "--format=%s")
    with subprocess.Popen(spec.argv, env=spec.env, cwd=spec.cwd, **jail.identity) as started:
        until((jail.workspace / "ready").exists)
        said = jail.ask(lambda: replace(spec, name="", notes={"said": SANDBOX.sync(spec)})).notes["said"]
        assert said == "brought " + jail.outside("git", "branch", "--show-current", cwd=repository.top).text
        assert jail.outside(*log, cwd=repository.top).text.split() == ["one", "one"]
        jail.outside("touch", "go")
        assert started.wait(30) == 0
    assert jail.end(spec) == ""
    assert jail.outside(*log, cwd=repository.top).text.split() == ["two", "one", "one"]


@pytest.mark.parametrize("repository", ["checkout"], indirect=True)
def test_hooks_and_settings_that_lie_in_the_workspace_are_kept_too(jail: Jail, repository: Repository) -> None:
    hooks = jail.make(repository.top / ".husky")
    (hooks / "pre-commit").write_text("mine")
    (repository.top / "more").write_text("[alias]\nx = mine\n")
    jail.outside("git", "config", "core.hooksPath", ".husky", cwd=repository.top)
    jail.outside("git", "config", "include.path", "../more", cwd=repository.top)
    jail.sh(
        "echo evil >.husky/pre-commit; echo evil >.husky/post-commit; echo evil >more; rm -rf .husky more; mv .husky x"
    )
    assert [path.read_text() for path in hooks.iterdir()] == ["mine"]
    assert (repository.top / "more").read_text() == "[alias]\nx = mine\n"


def test_a_file_of_git_that_names_a_foreign_repository_gives_nothing(jail: Jail, needs: Callable[..., None]) -> None:
    needs("git")
    other = jail.make(jail.home / "other")
    jail.outside("git", "init", "-q", cwd=other)
    for named in (f"{other}/.git", f"{other}/.git/worktrees/x", str(jail.home / ".ssh")):
        (jail.workspace / ".git").write_text(f"gitdir: {named}\n")
        assert jail.sh("ls -A ~") == "work"


def test_links_in_a_planted_repository_lead_nowhere(jail: Jail) -> None:
    git = jail.make(jail.workspace / ".git")
    for name in ("hooks", "config", "modules"):
        (git / name).symlink_to("../../.ssh")
    said = jail.sh("echo up; cat .git/hooks/id .git/modules/id").splitlines()
    assert (said[0], "the key" in said) == ("up", False)
    git.rename(jail.workspace / "x")
    (jail.workspace / ".git").symlink_to("../.ssh")
    assert jail.sh("echo up; cat .git/id").splitlines()[0] == "up"
    assert "the key" not in jail.sh("cat .git/id")


EVERYTHING = """
G=$(git rev-parse --git-dir); C=$(git rev-parse --git-common-dir)
for one in $G $C; do
    for name in HEAD logs/HEAD logs/refs/heads/main logs/refs/heads/topic packed-refs index config objects/info/alternates \\
        refs/heads/zz worktrees/zz/HEAD worktrees/zz/gitdir worktrees/tree/HEAD shallow info/exclude info/attributes \\
        COMMIT_EDITMSG MERGE_HEAD; do
        mkdir -p $(dirname $one/$name); rm -f $one/$name; {make} $one/$name
    done
done
"""
"""Puts something in the place of all that git reads and writes."""


@pytest.mark.night
def test_links_put_where_git_writes_are_followed_by_no_git_outside(jail: Jail, repository: Repository) -> None:
    target = jail.home / ".bashrc"
    target.write_text("mine\n")
    jail.outside("chown", "--reference", str(jail.home), str(target))
    jail.sh("git commit -q --allow-empty -m 'x; touch owned #'; " + EVERYTHING.format(make=f"ln -s {target}"))
    for words in (("commit", "-q", "--allow-empty", "-m", "y"), ("branch", "new"), ("reset", "-q", "--hard", "HEAD~1")):
        assert not jail.outside("git", *words, cwd=repository.top).status
    assert target.read_text() == "mine\n"


@pytest.mark.night
def test_pipes_put_where_git_reads_hold_up_no_git_outside(jail: Jail, repository: Repository) -> None:
    jail.sh("git branch made; " + EVERYTHING.format(make="mkfifo"))
    for words in (
        ("status", "--porcelain"),
        ("log", "-1"),
        ("branch", "--all"),
        ("commit", "-q", "--allow-empty", "-m", "y"),
    ):
        assert not jail.outside("timeout", "20", "git", *words, cwd=repository.top).status


@pytest.mark.night
def test_what_git_would_refuse_to_fetch_is_not_brought(jail: Jail, repository: Repository) -> None:
    tree = """id=$(git hash-object -w --stdin </dev/null); tree=$(printf '100644 blob %s\\t.git\\n' $id | git mktree)
    git update-ref HEAD $(git commit-tree -m evil $tree)"""
    before = jail.outside("git", "rev-parse", "HEAD", cwd=repository.top).text
    said = jail.sh(tree)
    assert "what was committed in the sandbox is kept in" in jail.left, said
    assert "hasDotgit" in jail.left
    assert jail.outside("git", "rev-parse", "HEAD", cwd=repository.top).text == before


@pytest.mark.parametrize("repository", ["checkout", "subfolder"], indirect=True)
@pytest.mark.parametrize("there", [True, False])
def test_a_folder_of_hooks_cannot_be_put_there_or_moved_away(jail: Jail, repository: Repository, there: bool) -> None:
    hooks = jail.workspace / ".husky/_"
    if there:
        jail.make(hooks.parent)
        jail.make(hooks)
        (hooks / "pre-commit").write_text("#!/bin/sh\nexit 0\n")
    way = os.path.relpath(hooks, repository.top)
    jail.outside("git", "config", "core.hooksPath", way, cwd=repository.top)
    jail.sh(
        """mv .husky .old; mv .husky/_ .old; rm -rf .husky; mkdir -p .husky/_
        printf '#!/bin/sh\\ntouch owned\\n' >.husky/_/pre-commit; chmod +x .husky/_/pre-commit"""
    )
    assert os.listdir(hooks) == (["pre-commit"] if there else [])
    assert not jail.outside("git", "commit", "-q", "--allow-empty", "-m", "x", cwd=repository.top).status
    assert not list(repository.top.glob("**/owned"))


@pytest.mark.parametrize("repository", ["checkout"], indirect=True)
def test_settings_that_are_not_there_yet_are_made_by_no_program(jail: Jail, repository: Repository) -> None:
    jail.outside("git", "config", "include.path", "../more", cwd=repository.top)
    with pytest.raises(Failed) as error:
        jail.wrapped("true")
    assert "names" in error.value.message
    assert "touch" in error.value.hint
    jail.outside("touch", "more")
    jail.sh("printf '[core]\\nfsmonitor = touch owned\\n' >more; mv more old; rm more")
    assert (repository.top / "more").read_text() == ""


@pytest.mark.parametrize("repository", ["checkout"], indirect=True)
def test_a_program_that_settings_name_is_not_changed(jail: Jail, repository: Repository) -> None:
    filter_ = jail.make(repository.top / "tools") / "clean.sh"
    filter_.write_text("#!/bin/sh\ncat\n")
    filter_.chmod(0o755)
    jail.outside("git", "config", "filter.mine.clean", "sh tools/clean.sh %f", cwd=repository.top)
    jail.sh("echo evil >tools/clean.sh; rm -f tools/clean.sh; mv tools other; mkdir tools; echo evil >tools/clean.sh")
    assert filter_.read_text() == "#!/bin/sh\ncat\n"


@pytest.mark.parametrize("repository", ["checkout"], indirect=True)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("alias.mine", "!sh -c 'cd . && ./tools/mine'"),
        ("credential.helper", "!f() { ./tools/mine; }; f"),
        ("core.pager", "exec ${X:-tools/mine}"),
        ("core.editor", "PATH=$PWD/tools:$PATH mine"),
        ("core.fsmonitor", "tools/mine"),
    ],
)
def test_a_program_within_a_setting_is_not_changed(jail: Jail, repository: Repository, key: str, value: str) -> None:
    mine = jail.make(repository.top / "tools") / "mine"
    mine.write_text("mine")
    jail.outside("git", "config", key, value, cwd=repository.top)
    jail.sh("echo evil >tools/mine; rm -f tools/mine; mv tools away; mkdir tools; echo evil >tools/mine")
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("repository", ["checkout"], indirect=True)
def test_what_a_hook_is_a_link_to_is_not_changed(jail: Jail, repository: Repository) -> None:
    (repository.top / "check.sh").write_text("mine")
    (repository.common / "hooks/pre-commit").symlink_to("../../check.sh")
    jail.sh("echo evil >check.sh; rm -f check.sh; mv check.sh away")
    assert (repository.top / "check.sh").read_text() == "mine"


def test_what_the_settings_of_a_repository_below_name_is_not_changed(jail: Jail, needs: Callable[..., None]) -> None:
    needs("git")
    below = jail.make(jail.workspace / "below")
    jail.outside("git", "init", "-q", str(below))
    for name in ("more", "hooks.d/pre-commit"):
        jail.make((below / name).parent)
        (below / name).write_text("")
    jail.outside("git", "config", "include.path", "../more", cwd=below)
    jail.outside("git", "config", "core.hooksPath", "hooks.d", cwd=below)
    jail.sh("cd below; echo x >more; rm -f more; echo x >hooks.d/pre-commit; mv hooks.d x; mv more y; mv ../below ../z")
    assert [(below / name).read_text() for name in ("more", "hooks.d/pre-commit")] == ["", ""]


@pytest.mark.night
def test_names_that_mean_something_already_are_kept_apart(jail: Jail, repository: Repository) -> None:
    jail.outside("git", "branch", "mine", cwd=repository.top)
    commit = jail.outside("git", "rev-parse", "HEAD", cwd=repository.top).text
    names = [
        "tags/mine",
        "tags/HEAD",
        "heads/-x",
        "heads/HEAD",
        "tags/stash",
        f"heads/{commit[:7]}",
        "heads/refs/heads/x",
    ]
    names += ["tags/both"]
    updates = "; ".join(f"git update-ref refs/{name} HEAD" for name in names)
    jail.sh(f"git commit -q --allow-empty -m evil; git branch both; {updates}")
    assert len(jail.left.split("; ")) == len(names), jail.left
    there = set(jail.outside("git", "for-each-ref", "--format=%(refname)", cwd=repository.top).text.split())
    assert {f"refs/sandbox/unnamed-x/{name}" for name in names} | {"refs/heads/both"} <= there
    assert not {f"refs/{name}" for name in names} & there
    assert jail.outside("git", "rev-parse", "mine", cwd=repository.top).text == commit


@pytest.mark.parametrize("repository", ["checkout"], indirect=True)
def test_what_is_checked_out_stays_where_a_branch_cannot_be_made(jail: Jail, repository: Repository) -> None:
    branch = jail.outside("git", "branch", "--show-current", cwd=repository.top).text
    jail.sh(
        f"""git checkout -q --detach; git branch -q -D {branch}; mkdir -p .git/refs/heads/{branch}
        git update-ref refs/heads/{branch}/x HEAD; git symbolic-ref HEAD refs/heads/{branch}/x"""
    )
    assert "could not be written" in jail.left
    assert (repository.common / "HEAD").read_text() == f"ref: refs/heads/{branch}\n"
    assert jail.outside("git", "log", "-1", "--format=%s", cwd=repository.top).text == "one"


@pytest.mark.night
def test_a_branch_that_was_rewritten_is_told_with_what_it_was(jail: Jail, repository: Repository) -> None:
    jail.outside("git", "commit", "-q", "--allow-empty", "-m", "two", cwd=repository.top)
    was = jail.outside("git", "rev-parse", "HEAD", cwd=repository.top).text
    spec = jail.wrapped("git", "reset", "-q", "--hard", "HEAD~1")
    assert not jail._run(spec.argv, spec.env, Path(spec.cwd)).status
    said = jail.ask(lambda: replace(spec, name="", notes={"said": SANDBOX.sync(spec)})).notes["said"]
    assert said.endswith(f", rewritten: it was {was[:12]}")
    assert jail.end(spec) == ""


@pytest.mark.night
@pytest.mark.parametrize("repository", ["checkout"], indirect=True)
def test_folders_in_one_another_without_end_are_removed(jail: Jail, repository: Repository) -> None:
    jail.run(PYTHON, "-c", "import os\nos.chdir('.git')\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')")
    assert jail.left == ""
    assert [path.suffix for path in (jail.state / "tmuxctl/clones").iterdir()] == [".lock"]


def test_a_folder_of_sockets_that_is_made_anew_is_hidden(jail: Jail, visible: Path, until: Callable[..., Any]) -> None:
    sockets = jail.make(visible / "sockets")
    jail.around["TMUX_TMPDIR"] = str(sockets)
    jail.make(sockets / f"tmux-{jail.user}", 0o700)
    spec = jail.wrapped("sh", "-c", f"touch ready; until test -e go; do sleep 0.01; done; ls {sockets}/* >seen 2>&1")
    with subprocess.Popen(spec.argv, env=spec.env, cwd=spec.cwd, **jail.identity) as started:
        until((jail.workspace / "ready").exists)
        (sockets / f"tmux-{jail.user}").rename(sockets / "old")
        jail.make(sockets / f"tmux-{jail.user}", 0o700)
        (sockets / f"tmux-{jail.user}/default").touch()
        (jail.workspace / "go").touch()
        started.wait(30)
    assert "default" not in (jail.workspace / "seen").read_text()


def test_repositories_below_the_workspace_keep_their_hooks_and_settings(jail: Jail, needs: Callable[..., None]) -> None:
    needs("git")
    deep = jail.make(jail.workspace / "mono/deep")
    for path in (deep, jail.workspace / "mono/deep/deeper"):
        jail.outside("git", "init", "-q", str(path))
    jail.outside("git", "init", "-q", "--bare", str(jail.workspace / "mono/bare.git"))
    kept = {str(path): path.read_bytes() for path in jail.workspace.rglob("*") if path.is_file()}
    jail.sh(
        """for one in mono/deep/.git mono/deep/deeper/.git mono/bare.git; do
            mkdir -p $one/hooks; printf '#!/bin/sh\\ntouch owned\\n' >$one/hooks/pre-commit; echo evil >>$one/config
            rm -f $one/HEAD; mv $one away; rm -rf $one
        done
        mv mono/deep/deeper x; mv mono/deep y; mv mono z
        mkdir -p mono/deep/.git/hooks; echo evil >mono/deep/.git/hooks/pre-commit"""
    )
    assert {path: Path(path).read_bytes() for path in kept} == kept
    assert not list((jail.workspace / "mono/deep").glob("**/pre-commit"))


def test_a_workspace_that_calls_itself_a_worktree_of_your_home_gets_nothing_of_it(
    jail: Jail, needs: Callable[..., None]
) -> None:
    needs("git")
    for name in ("objects", "refs"):
        jail.make(jail.home / name)
    for name in ("HEAD", "config"):
        (jail.home / name).write_text("ref: refs/heads/main\n" if name == "HEAD" else "[core]\n")
    workspace = jail.make(jail.make(jail.home / "worktrees") / "mine")
    (workspace / ".git").write_text("gitdir: .\n")
    (workspace / "gitdir").write_text(f"{workspace}/.git\n")
    assert "id" not in jail.sh("ls -A ~ ~/.ssh; touch ~/refs/new; git status", cwd=workspace).split()
    assert not os.listdir(jail.home / "refs")


def test_a_link_that_a_program_left_is_no_way_to_another_folder(jail: Jail) -> None:
    other = jail.make(jail.home / "other")
    assert jail.sh("ln -s ../other link; ln -s .. up; echo up").endswith("up")
    for words in ({"cwd": jail.workspace / "link"}, {"bind": "link"}, {"bind": "ro:up/other"}):
        with pytest.raises(Failed) as error:
            jail.wrapped("true", **words)
        assert "is a link in a folder that programs in a sandbox can write" in error.value.message
    (jail.home / "mine").symlink_to(other)
    assert jail.sh("touch new && echo ok", cwd=jail.home / "mine") == "ok"


@pytest.mark.parametrize("name", ["config", "HEAD", "commondir", "gitdir"])
def test_a_pipe_in_a_planted_repository_holds_nothing_up(jail: Jail, needs: Callable[..., None], name: str) -> None:
    needs("git")
    (jail.workspace / ".git").write_text("gitdir: sub\n")
    os.mkfifo(jail.make(jail.workspace / "sub") / name)
    assert jail.sh("echo up") == "up"
    (jail.workspace / ".git").unlink()
    (jail.workspace / "sub").rename(jail.workspace / ".git")
    assert jail.sh("echo up") == "up"


@pytest.mark.night
@pytest.mark.parametrize("repository", ["checkout", "worktree"], indirect=True)
def test_a_merge_is_finished_inside_and_a_rebase_is_not_begun_with(jail: Jail, repository: Repository) -> None:
    script = """git switch -q -c side; echo side >sub/file; git commit -qam side; git switch -q -; echo main >sub/file
    git commit -qam main; git merge -q side; git status --porcelain"""
    assert "UU sub/file" in jail.outside("sh", "-c", script, cwd=repository.top).text
    jail.sh("echo both >sub/file; git add sub/file; git commit -q -m merged; git log -1 --format=%p | wc -w")
    assert jail.left == ""
    asked = ("git", "log", "-1", "--format=%s %P")
    assert len(jail.outside(*asked, cwd=repository.top).text.split()) == 3
    assert jail.outside("git", "status", "--porcelain", cwd=repository.top).text == ""
    assert "merging" not in jail.outside("git", "status", cwd=repository.top).text
    jail.outside("sh", "-c", "git reset -q --hard HEAD~1; git rebase side", cwd=repository.top)
    with pytest.raises(Failed) as error:
        jail.wrapped("true")
    assert "a rebase is under way" in error.value.message


@pytest.mark.night
@pytest.mark.parametrize("repository", ["checkout", "worktree"], indirect=True)
def test_what_was_staged_before_is_staged_after(jail: Jail, repository: Repository) -> None:
    jail.outside("sh", "-c", "echo mine >staged; git add staged", cwd=repository.top)
    jail.sh("git status --porcelain >seen; echo 2 >sub/file; git commit -q -m two sub/file; rm seen")
    assert jail.outside("git", "status", "--porcelain", cwd=repository.top).text == "A  staged"


@pytest.mark.night
@pytest.mark.parametrize("repository", ["checkout", "worktree"], indirect=True)
def test_what_cannot_be_brought_now_is_brought_later(jail: Jail, repository: Repository) -> None:
    lock = repository.folder / "index.lock"
    lock.touch()
    jail.sh("echo 2 >sub/file; git commit -q -m two sub/file")
    assert "index could not be written" in jail.left
    lock.unlink()
    jail.sh("true")
    assert jail.left == ""
    assert jail.outside("git", "status", "--porcelain", cwd=repository.top).text == ""
    assert jail.outside("git", "log", "--format=%s", cwd=repository.top).text.split() == ["two", "one"]


@pytest.mark.night
def test_a_commit_on_no_branch_is_brought_too(jail: Jail, repository: Repository) -> None:
    jail.sh("git checkout -q --detach; git commit -q --allow-empty -m loose")
    assert jail.left == ""
    assert jail.outside("git", "log", "-1", "--format=%s %D", cwd=repository.top).text == "loose HEAD"


@pytest.mark.night
def test_two_in_one_folder_commit_to_one_copy(jail: Jail, repository: Repository, until: Callable[..., Any]) -> None:
    folders = [jail.make(jail.make(jail.state / name) / "sessions/one") for name in ("a", "b")]
    specs = [jail.wrapped("sh", "-c", "cat >/dev/null", notes={"folder": str(folder)}) for folder in folders]
    first, second = (
        jail.wrapped("sh", "-c", f"git commit -q --allow-empty -m {name}", notes={"folder": str(folder)})
        for name, folder in zip("ab", folders, strict=True)
    )
    for spec in (first, second):
        assert not jail._run(spec.argv, spec.env, Path(spec.cwd)).status
    os.rmdir(folders[0])
    assert jail.end(first) == ""
    log = ("git", "log", "--format=%s")
    assert jail.outside(*log, cwd=repository.top).text.split() == ["b", "a", "one"]
    assert jail._run(specs[1].argv, specs[1].env, Path(specs[1].cwd)).status == 0
    os.rmdir(folders[1])
    assert jail.end(second) == ""
    assert [path.suffix for path in (jail.state / "tmuxctl/clones").iterdir()] == [".lock"]


def test_variables_that_are_set_inside_only_are_in_no_list_of_arguments(jail: Jail) -> None:
    env = {"PERL5LIB": "wq7-the-value", "LD_NOTHING": "wq7-another"}
    spec = jail.wrapped("sh", "-c", "echo $PERL5LIB $LD_NOTHING; env | grep -c INSIDE", env=env)
    assert not [word for word in spec.argv if "wq7" in word]
    assert jail._run(spec.argv, spec.env, jail.workspace).text.split() == ["wq7-the-value", "wq7-another", "0"]


def test_the_repository_of_a_home_is_hidden_with_it(jail: Jail, needs: Callable[..., None]) -> None:
    needs("git")
    jail.outside("git", "init", "-q", cwd=jail.home)
    assert jail.sh("ls -A ~") == "work"


# 89: the network


@pytest.mark.night
def test_without_the_network_nothing_of_this_machine_answers(jail: Jail) -> None:
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as abstract:
        server.bind(("127.0.0.1", 0))
        abstract.bind(f"\0tc-{os.getpid()}")
        for one in (server, abstract):
            one.listen()
        port, name = str(server.getsockname()[1]), f"tc-{os.getpid()}"
        for level in ("read-only", "workspace"):
            assert jail.attack("loopback", port, level=level) == "ECONNREFUSED"
            assert jail.attack("abstract", name, level=level) == "ECONNREFUSED"
        assert jail.attack("loopback", port, level="workspace+net") == "done"
        assert jail.attack("abstract", name, level="workspace+net") == "done"


def test_its_own_network_works_within(jail: Jail) -> None:
    script = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print('ok')"
    assert jail.run(PYTHON, "-c", script).text == "ok"


@pytest.mark.night
@pytest.mark.parametrize("family", ["17", "31", "38", "40"], ids=["packet", "bluetooth", "alg", "vsock"])
def test_sockets_that_no_namespace_holds_cannot_be_made(jail: Jail, family: str) -> None:
    assert jail.attack("family", family, level="workspace+net") == "EAFNOSUPPORT"
    for allowed in ("1", "2", "10"):
        assert jail.attack("family", allowed) == "done"


# the environment


def test_variables_that_name_what_is_hidden_are_not_there(jail: Jail) -> None:
    names = (
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "XDG_RUNTIME_DIR",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "TMPDIR",
    )
    given = dict.fromkeys(names, f"{jail.sockets}/x")
    seen = jail.sh("env", env=given | {"KEPT": "yes"})
    assert [
        line.split("=")[0] for line in seen.splitlines() if line.split("=")[0] in (*names, "TMUX", "TMUX_PANE")
    ] == []
    assert "KEPT=yes" in seen
    assert "TMUXCTL_SESSION=me" in seen
    assert f"SSH_AUTH_SOCK={jail.sockets}/x" in jail.sh("env", env=given, bind=str(jail.sockets))


def test_no_variable_shows_in_a_list_of_processes(jail: Jail) -> None:
    spec = jail.wrapped("sh", "-c", "echo $KEY", env={"KEY": "wq7-the-value"})
    assert not [word for word in spec.argv if "wq7" in word]
    assert jail.sh("echo $KEY", env={"KEY": "wq7-the-value"}) == "wq7-the-value"


def test_what_it_left_in_its_workspace_is_not_run_when_the_next_one_starts(jail: Jail) -> None:
    planted = jail.make(jail.workspace / "bin")
    for name in ("sh", "bwrap", "env", "mktemp", "rm", "printf", "perl", "true"):
        (planted / name).write_text(f"#!/bin/sh\n/usr/bin/touch {jail.sockets}/ran-{name}\n")
        (planted / name).chmod(0o755)
    env = {"PATH": f"{planted}:bin::/usr/bin:/bin", "LD_PRELOAD": f"{planted}/evil.so", "PERL5OPT": "-Mevil"}
    spec = jail.wrapped("/bin/sh", "-c", "echo $PATH $LD_PRELOAD $PERL5OPT", env=env)
    assert (spec.env["PATH"], "LD_PRELOAD" in spec.env, "PERL5OPT" in spec.env) == ("/usr/bin:/bin", False, False)
    assert (
        jail._run(spec.argv, spec.env, jail.workspace).text.splitlines()[-1]
        == f"{env['PATH']} {planted}/evil.so -Mevil"
    )
    assert not os.listdir(jail.sockets)


# 87: where no sandbox can be made


def test_without_bubblewrap_nothing_starts(jail: Jail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SANDBOX.bubblewrap, "SYSTEM", str(jail.make(jail.folder / "empty")))
    with pytest.raises(Failed) as error:
        jail.wrapped("true")
    assert "there is no bwrap in the folders of the system: apt install bubblewrap" in error.value.message


def test_a_bubblewrap_that_does_not_work_is_told_by_its_own_words(jail: Jail, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = jail.make(jail.folder / "broken") / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(SANDBOX.bubblewrap, "SYSTEM", f"{broken.parent}:/usr/bin:/bin")
    with pytest.raises(Failed) as error:
        jail.wrapped("true")
    assert "cannot work here: bubblewrap cannot make a sandbox: bwrap: No permissions" in error.value.message


def test_a_machine_whose_calls_are_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.uname()
    monkeypatch.setattr(os, "uname", lambda: type(here)((*here[:4], "mips")))
    assert SANDBOX.check() == "no filter of system calls is known for mips"


def test_a_sandbox_that_cannot_be_made_in_the_end_says_so_and_runs_nothing(jail: Jail) -> None:
    spec = jail.wrapped("touch", "ran", bind=str(jail.make(jail.home / "gone")))
    (jail.home / "gone").rmdir()
    done = jail._run(spec.argv, spec.env, jail.workspace)
    assert done.status
    assert done.text.startswith("tmuxctl: the sandbox cannot be made: ")
    assert not os.listdir(jail.workspace)


def test_another_machine_is_refused(jail: Jail) -> None:
    with pytest.raises(Failed) as error:
        jail.ask(lambda: plugin.apply(SessionSpec(("true",), "/x", machine="far"), [("sandbox", "")])[0])
    assert "on this machine only" in error.value.message


# the filter, by calculation: also for the processors that this is not


def judged(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the filter says of a system call, by the rules of classic BPF."""
    arguments = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, audit or SANDBOX.MACHINES[machine].audit, 0, *arguments)
    code, at, held = SANDBOX.seccomp.filter_for(machine), 0, 0
    while True:
        kind, yes, no, value = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        if kind == 0x20:
            held = struct.unpack_from("<I", data, value)[0]
        elif kind == 0x06:
            return int(value)
        else:
            at += yes if {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[kind] else no


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_of_each_processor(machine: str) -> None:
    calls = SANDBOX.MACHINES[machine].calls
    allow, kill, fail = 0x7FFF0000, 0x80000000, 0x00050000
    assert judged(machine, 39) == allow
    assert judged(machine, 39, audit=0x40000003) == kill
    assert machine != "x86_64" or judged(machine, 0x40000000 + 39) == fail | errno.ENOSYS
    assert judged(machine, calls["ioctl"], 0, 0x5413) == allow
    for high in (0, 1 << 32, 0xFFFFFFFF << 32):
        assert judged(machine, calls["ioctl"], 0, 0x5412 | high) == fail | errno.EPERM
        assert judged(machine, calls["ioctl"], 0, 0x541C | high) == fail | errno.EPERM
        assert judged(machine, calls["unshare"], 0x10020000 | high) == fail | errno.EPERM
    assert judged(machine, calls["clone"], 0x10000011) == fail | errno.EPERM
    assert judged(machine, calls["clone"], 0x3D0F00) == allow
    assert judged(machine, calls["socket"], 40) == fail | errno.EAFNOSUPPORT
    assert judged(machine, calls["socket"], 1) == allow
    for name, error in SANDBOX.seccomp.REFUSED.items():
        assert judged(machine, calls[name]) == fail | error
    assert len(set(calls.values())) == len(calls)


# macOS, as text: not tried on one


def test_the_profile_for_macos_says_the_same(jail: Jail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SANDBOX.sys, "platform", "darwin")
    monkeypatch.setattr(SANDBOX, "check", lambda: None)
    odd = jail.make(jail.home / 'a "b"')
    spec = jail.wrapped("cat", bind=[f"ro:{odd}"], env={"LD_PRELOAD": "x"})
    program, option, profile, *rest = spec.argv
    assert (program, option) == ("/usr/bin/sandbox-exec", "-p")
    assert rest == ["/usr/bin/env", "-u", "TMUX", "-u", "TMUX_PANE", "LD_PRELOAD=x", "cat"]
    lines = profile.splitlines()
    assert lines[:3] == ["(version 1)", "(allow default)", "(deny file-write*)"]
    hidden = lines.index(f'(deny file-read* file-write* (subpath "{jail.home}"))')
    assert hidden < lines.index(f'(allow file-read* file-write* (subpath "{jail.workspace}"))')
    assert f'(allow file-read* (subpath "{jail.home}/a \\"b\\""))' in lines
    assert "(deny network*)" in lines
    assert profile.count("(") == profile.count(")")
    assert "(deny network*)" not in jail.wrapped("cat", level="workspace+net").argv[2]
    assert f'(deny file-write* (subpath "{jail.workspace}"))' in jail.wrapped("cat", level="read-only").argv[2]
