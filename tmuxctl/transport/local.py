"""Reaches this machine: tmux as a subprocess, files and /proc directly."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, TypeVar

from tmuxctl import untrusted
from tmuxctl.errors import Conflict, Denied, Failed, NotFound, TmuxctlError, Unreachable
from tmuxctl.evidence import FULL, NONE, PS, Kernel, Tty
from tmuxctl.operations import current
from tmuxctl.ownership import make_parents, refuse_unsafe_parent
from tmuxctl.state_files import give_lock_back, make_private_folder, state_home, take_lock
from tmuxctl.timing import TIMING
from tmuxctl.transport import base, segments, spawn
from tmuxctl.transport.base import Command, File, Probe, Process, ProcessLoad, Quota, Resources, Watch, Watched
from tmuxctl.transport.groups import LEAVE

if TYPE_CHECKING:
    from tmuxctl.transport.control_mode import ControlChannel

SERVER_ENVIRONMENT = frozenset((*base.BASICS, "TMUX_TMPDIR"))
"""What the server may know of the environment it was started from; sessions bring their own."""

FIRST_PART, PART = 1 << 14, 1 << 20
"""Bytes of a file that are read at once: first as many as most have."""

KNOWN_FOLDERS = 256
SMALL_STEP, LARGE_STEP = 100_000_000, 3_000_000_000
"""Nanoseconds that the clock of a file system may stand still: of one that tells parts of a second (10 ms at most), and of one
that does not (FAT: 2 s)."""

CONTROL_LOCK = "control.lock"
NOISY = ("kill-session", "rename-session")
"""Commands of which tmux tells every control client; since 3.4 also of every buffer that comes or goes."""

START = LEAVE + """cd /; ulimit -Sn "$(ulimit -Hn)" 2>/dev/null; exec "$@" """


T = TypeVar("T")


class LocalTransport:
    """This machine, as `tmux -L socket` sees it. `resident` keeps one control-mode client for processes that stay; `home`
    is the folder of its state, if it is not the usual one."""

    machine: str | None = None
    proc_file = "/proc/self/stat"
    """Exists where the kernel tells of processes in files; elsewhere `ps` does."""

    def __init__(
        self, socket: str, *, tmux: str = "tmux", config: bytes = b"", resident: bool = False, home: str = ""
    ) -> None:
        self.socket = socket
        self._tmux = tmux
        self._config = config
        self._resident = resident
        self._channel: ControlChannel | None = None
        self._opening = threading.Lock()
        self._spawn_until = 0.0
        self._given_home, self._home = home, ""
        self._socket_is_safe = False
        self._names: dict[str, tuple[tuple[int, int, int], tuple[str, ...]]] = {}
        """What a resident process knows of folders: which one it was, when it last changed, and the names that were there then."""

    def carry_out(
        self, key: str, operation: Callable[[], T], patience: float | None = 0.0, *, changes: bool = True
    ) -> T:
        return operation()

    def without_answer(self) -> AbstractContextManager[None]:
        return nullcontext()

    def word(self) -> str:
        return os.urandom(8).hex()

    def starting_place(self) -> base.StartingPlace:
        return base.read_own_place()

    @property
    def home(self) -> str:
        if not self._home:
            home = self._given_home or os.path.join(state_home(), "tmuxctl", self.socket)
            refuse_unsafe_parent(os.path.dirname(home))
            try:
                self.make_folder(os.path.dirname(home))
                self.make_folder(home)
            except OSError as error:
                # such as /proc, where no folder can be made
                raise _unwritable_error(home, error) from None
            self._home = home
        return self._home

    @property
    def pid(self) -> int | None:
        return os.getpid()

    # tmux

    def run(
        self, commands: Sequence[Command], *, buffer: tuple[str, bytes] | None = None, timeout: float = 8.0
    ) -> bytes:
        # opening takes the lock exclusively: the client opens before this call shares it
        channel = self._ready_channel(timeout)
        noisy = (*NOISY, "capture-pane") if channel and channel.fills_buffers else NOISY
        told = buffer is not None and (channel is None or channel.tells_of_buffers)
        if told or not {command[0] for command in commands}.isdisjoint(noisy):
            with self._hold_off_clients(timeout):
                return self._run_list(channel, commands, buffer, timeout)
        return self._run_list(channel, commands, buffer, timeout)

    def _run_list(
        self,
        channel: ControlChannel | None,
        commands: Sequence[Command],
        buffer: tuple[str, bytes] | None,
        timeout: float,
    ) -> bytes:
        if channel:
            from tmuxctl.transport.control_mode import NeedsSpawn

            with suppress(NeedsSpawn):
                return channel.run(commands, buffer=buffer, timeout=timeout)
        if buffer:
            commands = [("load-buffer", "-b", buffer[0], "-"), *commands]
        words, stdin = base.format_arguments(commands), buffer[1] if buffer else b""
        try:
            return self._spawn_tmux(words, stdin=stdin, timeout=timeout)
        except Unreachable as error:
            # nothing was carried out, and the server may only have lost its socket
            if error.reason != "no_server" or not self._recover_socket():
                raise
        return self._spawn_tmux(words, stdin=stdin, timeout=timeout)

    def run_at_end(
        self,
        journal: str,
        commands: Sequence[Command],
        *,
        buffer: tuple[str, bytes] | None = None,
        timeout: float = 8.0,
    ) -> tuple[int, bytes]:
        end = segments.find_end(self.files(journal))
        if end is None:
            raise NotFound(f"no journal in {journal}", reason="no_file")
        return end, self.run(segments.fill_in(commands, end), buffer=buffer, timeout=timeout)

    def create(self, commands: Sequence[Command], *, timeout: float = 20.0) -> bytes:
        try:
            return self._create_session(commands, timeout)
        except Unreachable as error:
            if error.reason != "no_server":
                raise
        self._start_server(timeout)
        return self._create_session(commands, timeout)

    def _create_session(self, commands: Sequence[Command], timeout: float) -> bytes:
        # never through a client in control mode: ADR 8
        words = base.format_arguments(commands)
        with self._hold_off_clients(timeout):
            return self._spawn_tmux(words, timeout=timeout)

    def _ready_channel(self, timeout: float) -> ControlChannel | None:
        """The control client of a resident process, opened if need be; None where calls are spawned."""
        if not self._resident or time.monotonic() < self._spawn_until:
            return None
        self._refuse_unsafe_socket()
        with self._opening:
            if self._channel is None or self._channel.closed:
                try:
                    with self._hold_lock(CONTROL_LOCK, timeout) as lock:
                        self._channel = self._open_channel(lock, timeout)
                except (Unreachable, Conflict) as error:
                    if error.reason in ("backend_timeout", "locked"):
                        # control mode wedges on some versions; an answer by a spawned tmux tells whether it is that
                        self._spawn_until = time.monotonic() + TIMING.tmux.spawn_seconds
                    # a spawned tmux says it better, and finds a server that only lost its socket
                    return None
            return self._channel

    def _open_channel(self, lock: int, timeout: float) -> ControlChannel:
        from tmuxctl.transport.control_mode import ControlChannel

        try:
            seconds = min(timeout, TIMING.tmux.open_seconds)
            return ControlChannel(self.socket, tmux=self._tmux, timeout=seconds, held=lock)
        finally:
            # who looks after the client has the lock too, and would keep it
            give_lock_back(lock)

    def _refuse_unsafe_socket(self) -> None:
        """tmux looks at its own folder only (tmux(1): $TMUX_TMPDIR, else /tmp), and not at whose the one above is."""
        if not self._socket_is_safe:
            refuse_unsafe_parent(os.path.join(os.environ.get("TMUX_TMPDIR") or "/tmp", "tmux"))
            self._socket_is_safe = True

    def _spawn_tmux(self, words: Sequence[str], *, stdin: bytes = b"", timeout: float) -> bytes:
        self._refuse_unsafe_socket()
        done = _run_program([self._tmux, "-u", "-N", "-L", self.socket, *words], stdin=stdin, timeout=timeout)
        if done.status:
            raise base.error_of_complaint(done.errors.decode(errors="replace").strip())
        return done.output

    # the server's life

    def _start_server(self, timeout: float) -> None:
        """Start the server unless another process just did, or bring back the socket of one that lost it."""
        with self._hold_lock("start.lock", timeout):
            if self._server_answers() or self._recover_socket():
                return
            words, environment = self._prepare_server()
            assignments = [f"{name}={value}" for name, value in environment.items()]
            done = _run_program(["env", "-i", *assignments, *words, "start-server"], timeout=timeout)
            if done.status == 127:
                raise _no_tmux_error()
            if done.status:
                raise base.error_of_complaint(done.errors.decode(errors="replace").strip())
            self._record_server()

    def become_server(self, then: Callable[[], None], *, timeout: float = 20.0) -> None:
        """Become the server: this very process, in the foreground, until it ends. Comes back where one runs already.

        `then` is called, in another process, as soon as the server answers.
        """
        with self._hold_lock("start.lock", timeout) as lock:
            if self._server_answers() or self._recover_socket():
                return
            words, environment = self._prepare_server()
            if not self.which(self._tmux, environment.get("PATH", os.defpath), "/"):
                raise _no_tmux_error()
            pid = os.getpid()
            started = next(row.started for row in _read_processes([pid]))

            def report_server() -> None:
                # this process inherits the lock and keeps it until the server answers: no other one is started
                if self._wait_for_server(pid, started, timeout):
                    self._record_server()
                    os.close(lock)
                    then()

            _run_detached(report_server)
            os.execvpe(words[0], [*words, "-D"], environment)

    def server_pid(self) -> int | None:
        """The pid of the server that answers, None if none does."""
        try:
            return self._ask_server_pid()
        except Unreachable as error:
            if error.reason == "backend_timeout":
                raise
            return None

    def _prepare_server(self) -> tuple[list[str], dict[str, str]]:
        """The words a server is started with, to which those are added that say how, and the variables it may have."""
        conf = os.path.join(self.home, base.TMUX_CONF)
        self.put(conf, self._config)
        environment = {name: value for name, value in os.environ.items() if name in SERVER_ENVIRONMENT}
        return ["sh", "-c", START, "sh", self._tmux, "-u", "-f", conf, "-L", self.socket], environment

    def _server_answers(self) -> bool:
        return self.server_pid() is not None

    def _wait_for_server(self, pid: int, started: int, seconds: float) -> bool:
        """Wait until the server that is this process answers; False if it has ended, or does not answer in time."""
        deadline = time.monotonic() + seconds
        while _is_alive(pid, started) and time.monotonic() < deadline:
            if self._server_answers():
                return True
            time.sleep(0.02)
        return False

    def _ask_server_pid(self) -> int:
        return int(self._spawn_tmux(["display-message", "-p", "#{pid}"], timeout=5.0))

    def _record_server(self) -> None:
        self.record_server(self._ask_server_pid())

    def record_server(self, pid: int) -> None:
        started = next((row.started for row in _read_processes([pid])), 0)
        self.put(os.path.join(self.home, base.SERVER), f"{pid} {started}\n".encode(), durable=True)

    def _recover_socket(self) -> bool:
        """A server whose socket file was deleted makes it anew on SIGUSR1 (tmux(1)); True if it did."""
        with suppress(NotFound, ValueError):
            pid, started = (int(word) for word in self.read(os.path.join(self.home, base.SERVER)).split())
            if not _is_alive(pid, started):
                return False
            self.signal(list(_read_processes([pid])), "USR1")
            if self._wait_for_server(pid, started, 5.0):
                return True
            if _is_alive(pid, started):
                try:
                    return bool(self._ask_server_pid())
                except Unreachable as error:
                    raise base.unreachable_server_error(pid, error.message) from None
        return False

    @contextmanager
    def _hold_lock(self, name: str, timeout: float, *, shared: bool = False) -> Iterator[int]:
        """Hold a lock file of this server's, alone or with others who share it; gives its descriptor."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with explain_write_errors(os.path.join(self.home, name)):
            lock = os.open(os.path.join(self.home, name), flags, 0o600)
        try:
            path = os.path.join(self.home, name)
            take_lock(lock, timeout, lambda: _lock_error(path, timeout), shared=shared, pause=0.002)
            yield lock
        finally:
            os.close(lock)

    def _hold_off_clients(self, timeout: float) -> AbstractContextManager[int]:
        """Keep control clients from opening while a command tells them of sessions that come, go or change their name.

        tmux before 3.7 writes that to a client that has said it is one and is not yet set up, through a null pointer:
        the server dies with every session (measured on 3.3a; docs/adr/0008). So no client opens meanwhile.
        """
        return self._hold_lock(CONTROL_LOCK, timeout, shared=True)

    # files

    def shell(self, script: str, *arguments: str, stdin: bytes = b"", timeout: float = 8.0) -> tuple[int, bytes]:
        done = _run_program(["sh", "-c", script, "sh", *arguments], stdin=stdin, timeout=timeout)
        return done.status, done.output

    def put(self, path: str, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
        new = f"{path}.{os.getpid()}.{threading.get_ident()}.new"
        with explain_write_errors(path):
            self._write_new_file(path, new, data, mode, durable)

    def _write_new_file(self, path: str, new: str, data: bytes, mode: int, durable: bool) -> None:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(new, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(new)
            raise

    def append(self, path: str, data: bytes) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with explain_write_errors(path):
            handle = os.open(path, flags, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise Denied(f"{ascii(path)} is no regular file", reason="bad_file", hint="remove it")
                os.write(handle, data)
                return os.fstat(handle).st_size
            finally:
                os.close(handle)

    def make_folder(self, path: str) -> None:
        with explain_write_errors(path):
            make_parents(path)
            make_private_folder(path)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            if os.path.isdir(path) and not os.path.islink(path):
                untrusted.remove_tree(path)
            else:
                os.unlink(path)

    def rename(self, path: str, to: str) -> None:
        os.rename(path, to)

    def files(self, folder: str) -> dict[str, File]:
        if not self._resident:
            return _list_files(folder)
        try:
            status = os.stat(folder)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        stamp = (status.st_dev, status.st_ino, status.st_mtime_ns)
        known = self._names.get(folder)
        if known and known[0] == stamp:
            return _stat_files(folder, known[1])
        listing, now = _list_files(folder), time.time_ns()
        if len(self._names) >= KNOWN_FOLDERS:
            self._names.clear()
        # the clock of a file system goes in steps: a name that comes in the same one changes no time
        step = SMALL_STEP if status.st_mtime_ns % 1_000_000_000 else LARGE_STEP
        if 0 < status.st_mtime_ns < now - step:
            self._names[folder] = (stamp, tuple(listing))
        return listing

    def names(self, folder: str) -> Collection[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return os.listdir(folder)
        return ()

    def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        try:
            handle = untrusted.open_file(path)
        except FileNotFoundError:
            raise NotFound(f"no file {path}", reason="no_file") from None
        except OSError as error:
            raise Denied(f"{path} cannot be read: {error.strerror}", reason="bad_file") from None
        try:
            return b"".join(_read_parts(handle, offset, sys.maxsize if limit is None else limit))
        finally:
            os.close(handle)

    read_grown = read

    def read_all(self, folders: Sequence[str], names: Sequence[str], limit: int) -> dict[str, dict[str, bytes]]:
        return base.read_each(self.read, folders, names, limit)

    # terminals and processes

    def tty(self, path: str) -> Tty | None:
        from tmuxctl.transport.procfs import read_tty

        return read_tty(path)

    def probe(self, panes: Sequence[tuple[int, str]], *, level: str = FULL, beyond: bool = False) -> list[Probe]:
        from tmuxctl.transport import probe, procfs

        if level == PS or not os.path.exists(self.proc_file):
            return [Probe(self.clock(), time.time(), _read_by_ps(pid, path, level)) for pid, path in panes]
        files = procfs.LocalKernelFiles()
        probes = []
        for pid, path in panes:
            kernel = probe.read_kernel(files, pid, path, level, beyond=beyond)
            probes.append(Probe(self.clock(), time.time(), kernel))
        return probes

    def stamp(self, watched: Watched) -> object | None:
        from tmuxctl.transport.procfs import read_stamp

        return read_stamp(watched)

    def processes(self, pids: Sequence[int] | None = None) -> list[Process]:
        if pids is not None:
            return list(_read_processes(pids))
        if os.path.isdir("/proc/self"):
            return list(_read_processes([int(name) for name in os.listdir("/proc") if name.isdigit()]))
        return _list_processes_by_psutil()

    def room(self, folder: str, pid: int | None) -> Resources:
        disk = os.statvfs(folder)
        return Resources(disk.f_bavail * disk.f_frsize, _count_ptys(), _count_descriptors(pid) if pid else None)

    def load(self, pid: int) -> ProcessLoad:
        if not os.path.isdir("/proc/self"):
            return _measure_load_by_psutil(pid)
        from tmuxctl.transport import probe, procfs

        table = probe.ProcessTree(procfs.LocalKernelFiles())
        table.read_descendants([pid])
        memory, cpu = 0, 0
        for pid_below in table.rows:
            # behind the name, which may hold anything: field 3 and on of proc(5)
            fields = procfs.LocalKernelFiles().stat(pid_below).rpartition(b")")[2].split()
            if len(fields) > 21:
                # its own time, and that of children that have ended
                cpu += sum(map(int, fields[11:15]))
                memory += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        return ProcessLoad(len(table.rows), memory, round(cpu / os.sysconf("SC_CLK_TCK"), 2))

    def which(self, program: str, path: str, folder: str) -> bool:
        if "/" in program:
            return os.access(os.path.join(folder, program), os.X_OK)
        places = (os.path.join(one, program) for one in path.split(os.pathsep) if path)
        return any(os.access(place, os.X_OK) and not os.path.isdir(place) for place in places)

    def marked(self, session_id: str) -> list[Process]:
        marker = b"TMUXCTL_SESSION=" + session_id.encode()
        found = []
        for row in self.processes():
            with suppress(OSError), open(f"/proc/{row.pid}/environ", "rb") as file:
                if marker in file.read().split(b"\0"):
                    found.append(row)
        return found

    def signal(self, processes: Sequence[Process], name: str) -> None:
        import signal

        number = signal.Signals["SIG" + name]
        for row in processes:
            with suppress(ProcessLookupError, PermissionError), _hold_process(row.pid) as send:
                if any(now.started == row.started for now in _read_processes([row.pid])):
                    send(number)

    def watch(self, folders: Sequence[str], pid: int | None = None, *, terminal: str = "") -> Watch:
        from tmuxctl.transport import notify

        found = notify.watch(folders, pid, terminal=terminal)
        current().wake_by(found.close)
        return found

    def wall(self) -> float:
        return time.time()

    def clock(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        with self._opening:
            if self._channel is not None:
                with self._hold_off_clients(5.0):
                    self._channel.close()
                self._channel = None


def _list_files(folder: str) -> dict[str, File]:
    """What is right in a folder; nothing where there is none."""
    listing: dict[str, File] = {}
    # waits list folders all the time: a `with suppress` for each entry takes as long as to ask for it
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    listing[entry.name] = _to_file(entry.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue
    except (FileNotFoundError, NotADirectoryError):
        pass
    return listing


def _stat_files(folder: str, names: Sequence[str]) -> dict[str, File]:
    """The same of a folder of which these names are known."""
    listing: dict[str, File] = {}
    for name in names:
        try:
            listing[name] = _to_file(os.lstat(f"{folder}/{name}"))
        except (FileNotFoundError, NotADirectoryError):
            continue
    return listing


def _to_file(facts: os.stat_result) -> File:
    return File(0 if stat.S_ISDIR(facts.st_mode) else facts.st_size, facts.st_mtime)


@contextmanager
def explain_write_errors(path: str) -> Iterator[None]:
    """Turn the reasons for which a file cannot be written into errors that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Failed(
                f"no room to write {path}", reason="disk_full", hint=f"df -h {os.path.dirname(path)}"
            ) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ELOOP):
            raise _unwritable_error(path, error) from None
        raise


def _unwritable_error(path: str, error: OSError) -> Denied:
    hint = "use another folder for what is kept of sessions: export XDG_STATE_HOME=DIR"
    return Denied(f"{path} cannot be written: {error.strerror}", reason="bad_folder", hint=hint)


@contextmanager
def _hold_process(pid: int) -> Iterator[Callable[[int], None]]:
    """A function that signals the process that has this pid now: through a descriptor where the kernel has such, so that
    another process cannot have got the pid meanwhile (pidfd_open(2))."""
    import signal

    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError) as error:
        if isinstance(error, ProcessLookupError):
            raise
        # an older kernel, a filter that refuses it, or no descriptor left: the start time alone has to do
        yield lambda number: os.kill(pid, number)
        return
    try:
        yield lambda number: signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)


def _run_detached(work: Callable[[], None]) -> None:
    """Do the work in a process of its own that is not waited for and inherits the open descriptors."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    try:
        if not os.fork():
            work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


def _is_alive(pid: int, started: int) -> bool:
    return any(row.started == started and row.lives for row in _read_processes([pid]))


def _read_processes(pids: Sequence[int]) -> Iterator[Process]:
    from tmuxctl.transport.proc import parse_stat

    if not os.path.isdir("/proc/self"):
        yield from (row for row in _list_processes_by_psutil() if row.pid in pids)
        return
    for pid in pids:
        with suppress(OSError):
            yield parse_stat(_read_file(f"/proc/{pid}/stat"))


def _read_parts(handle: int, offset: int, remaining: int) -> Iterator[bytes]:
    """A file from an offset, without a file object: most of what is read here is small."""
    size = FIRST_PART
    while remaining > 0:
        part = os.pread(handle, min(remaining, size), offset)
        yield part
        if len(part) < size:  # of a regular file that is its end, or all that was asked for
            return
        offset, remaining, size = offset + len(part), remaining - len(part), PART


def _read_file(path: str) -> bytes:
    """A small file of the kernel's, which one read gives whole."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, 4096)
    finally:
        os.close(handle)


def _count_ptys() -> Quota | None:
    """Read only: the limit is the whole machine's (pts(4))."""
    with suppress(OSError, ValueError):
        return Quota(*(int(_read_file(f"/proc/sys/kernel/pty/{name}")) for name in ("nr", "max")))
    return None


def _count_descriptors(pid: int) -> Quota | None:
    with suppress(OSError, ValueError, AttributeError):
        soft = re.search(rb"Max open files +(\d+)", _read_file(f"/proc/{pid}/limits"))
        return Quota(len(os.listdir(f"/proc/{pid}/fd")), int(soft[1])) if soft else None
    return None


def _measure_load_by_psutil(pid: int) -> ProcessLoad:
    import psutil

    processes, memory, cpu = 0, 0, 0.0
    with suppress(psutil.Error):
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.Error):
                processes, memory = processes + 1, memory + process.memory_info().rss
                cpu += sum(process.cpu_times()[:4])
    return ProcessLoad(processes, memory, round(cpu, 2))


def _list_processes_by_psutil() -> list[Process]:
    """The process table where there is no /proc (macOS): terminals' foreground groups are not to be had from psutil."""
    import psutil

    found = []
    for process in psutil.process_iter(["pid", "ppid", "status", "create_time", "name"]):
        facts = process.info
        with suppress(OSError):
            group, session = os.getpgid(facts["pid"]), os.getsid(facts["pid"])
            started = int(facts["create_time"] * 100)
            found.append(
                Process(facts["pid"], facts["ppid"], group, session, 0, 0, facts["status"], started, facts["name"])
            )
    return found


def _read_by_ps(pid: int, path: str, level: str) -> Kernel | None:
    """What is told of a terminal where there is no /proc; None if nothing is."""
    from tmuxctl.transport import procfs, ps

    table = {} if level == NONE else ps.HERE.read([pid], ps.call_ps)
    kernel = ps.read_kernel(table, pid, path, procfs.read_tty)
    return kernel if kernel.tty or kernel.programs else None


def _run_program(argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> spawn.FinishedProgram:
    try:
        return spawn.run(argv, stdin=stdin, timeout=timeout)
    except spawn.SpawnTimeout:
        raise base.timeout_error(timeout) from None
    except FileNotFoundError:
        raise _no_tmux_error() from None
    except OSError as error:
        raise _spawn_error(error) from None


def _spawn_error(error: OSError) -> TmuxctlError:
    """What fork(2) says when there may be no more processes, or no more descriptors of ours."""
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        message, reason = "no more processes can be started here", "no_processes"
    elif error.errno in (errno.EMFILE, errno.ENFILE):
        message, reason = "no more descriptors can be opened here", "no_descriptors"
    else:
        raise error
    return Failed(f"{message}: {error.strerror}", reason=reason, hint="end some programs: ps -u $USER, tmuxctl ls")


def _lock_error(path: str, timeout: float) -> Conflict:
    return Conflict(
        f"another tmuxctl has been starting or opening something for {timeout:g} s; nothing was done",
        reason="locked",
        hint=f"is a process stopped that holds this file? fuser -v {path}",
    )


def _no_tmux_error() -> TmuxctlError:
    return Unreachable(
        "tmux is not installed", reason="no_tmux", hint="apt install tmux, or brew install tmux; 3.2 or later"
    )
