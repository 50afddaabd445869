"""What every transport offers: everything tmuxctl does on a machine goes through these few calls.

A machine is a place with tmux, a POSIX shell and files: this one (local.py), or one at the other end of a pipe with
nothing of ours installed (pipe.py; over ssh the same). Callers do not distinguish them.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from tmuxctl.errors import Conflict, Denied, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.evidence import FULL, Kernel
from tmuxctl.evidence import Tty as Tty
from tmuxctl.untrusted import JSON_LIMIT, parse_record
from tmuxctl.value import NamedTuple, Value

SERVER, TMUX_CONF = "server", "tmux.conf"
"""Files of the state folder: which process the server is, and since when; what it reads as it starts."""

Command = Sequence[str]
"""One tmux command with its arguments, as in `("kill-session", "-t", "=db")`."""


class Guard(tuple[str, ...]):
    """Ends a command list inside tmux, before its next command, unless a condition holds: `run` then raises GuardRefused.

    A command as any other, that still knows its parts. `if-shell` would do the same and leaks the list it parsed, in every
    version up to 3.7c (cmd-if-shell.c keeps a reference). The name of an option is a format and must be one that exists:
    this asks for one that no session sets, which prints nothing and costs nothing, or else for one that does not exist.
    """

    target: str
    condition: str
    answer: str

    def __new__(cls, target: str, condition: str, answer: str = "") -> Guard:
        """`condition` is a format; where it is empty or 0 for `target`, the list ends. `answer` is a format for the answer that
        GuardRefused then carries, and holds neither commas outside of its braces nor `[`."""
        words = ("show-options", "-v", "-t", target, f"#{{?{condition},{UNSET},{REFUSED} {answer}}}")
        made = super().__new__(cls, words)
        made.target, made.condition, made.answer = target, condition, answer
        return made


UNSET = "lock-command"
"""An option of sessions that exists since tmux 1.0 and is set for all of them, if at all."""

REFUSED = "refused"


class GuardRefused(Failed):
    """A Guard ended a command list; `answer` is what its format made."""

    def __init__(self, answer: str) -> None:
        super().__init__("something changed meanwhile", reason="refused", hint="look, then repeat it")
        self.answer = answer


class File(Value):
    """A file's size in bytes and its last change in seconds of the wall clock."""

    size: int
    modified: float


class Process(NamedTuple):
    """One row of the process table. `started` is in the machine's clock ticks since boot: with `pid` it names a process
    for ever. `tty` is the device number of its terminal, `foreground` the process group that terminal listens to. `cpu`,
    in clock ticks too, and `threads` are told by /proc alone."""

    pid: int
    parent: int
    group: int
    session: int
    tty: int
    foreground: int
    state: str
    started: int
    name: str
    cpu: int = 0
    threads: int = 1

    @property
    def lives(self) -> bool:
        """False for a zombie, which has ended and waits for its parent only."""
        return self.state not in ("Z", "X")

    @property
    def ended(self) -> bool:
        """True if all its threads have ended, not only the first."""
        return not self.lives and self.threads <= 1


class Quota(Value):
    """How much of something is used, and how much there may be."""

    used: int
    most: int


class Resources(Value):
    """What is left of what sessions need: bytes on the disk, the machine's pseudoterminals, the server's descriptors; None
    for what cannot be asked."""

    free: int | None = None
    ptys: Quota | None = None
    descriptors: Quota | None = None


ThreadId = tuple[int, int]
"""A process and a thread of it."""


class Watched(Value):
    """What must not have changed for a session to be as it was: threads, and paths of files."""

    threads: tuple[ThreadId, ...]
    files: tuple[str, ...]


class ProcessLoad(Value):
    """What a tree of processes takes: how many they are, their resident memory in bytes, shared pages counted for each, and
    their processor time in seconds, that of children that have ended included."""

    processes: int
    memory: int
    cpu: float


class Probe(Value):
    """What the kernel told of a terminal, and when: `at` by the machine's monotonic clock (the same as `clock()`), `wall`
    by its wall clock in seconds, to compare with `File.modified`. Where there is no /proc, `kernel` has the settings of
    the terminal and what `ps` tells of its programs, and is None where neither is to be had."""

    at: float
    wall: float
    kernel: Kernel | None


class StartingPlace(Value):
    """From where programs start on a machine that are told nothing else: the variables they inherit, the folder, and how many
    descriptors each may open (None: not told)."""

    environment: Mapping[str, str]
    folder: str
    descriptors: int | None = None

    @property
    def user_shell(self) -> str:
        """The program that a user logs in with."""
        return self.environment.get("SHELL") or "/bin/sh"

    def expand(self, path: str) -> str:
        """The absolute path, `~` written out."""
        home = self.environment.get("HOME", "")
        if self.environment is os.environ:
            path = os.path.expanduser(path)
        elif home and (path == "~" or path.startswith("~/")):
            path = home + path[1:]
        return posixpath.join(self.folder, path).rstrip("/") or "/"


def read_own_place() -> StartingPlace:
    """The starting place of this process."""
    import resource

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    folder = ""
    with suppress(FileNotFoundError):
        folder = os.getcwd()
    return StartingPlace(os.environ, folder, soft if soft != resource.RLIM_INFINITY else None)


T = TypeVar("T")


class Watch(Protocol):
    """Sleeps until something happens to the watched journals or processes."""

    tells_of_runs: bool
    """Whether it wakes too when the program reads its terminal, or when one of the threads that `wait` is given has run."""

    def wait(
        self, timeout: float, *, output: bool = True, threads: Sequence[ThreadId] = (), timer_seconds: float = 0.0
    ) -> bool:
        """Sleep at most `timeout` seconds; True if something may have changed (false alarms are allowed). Without `output` what
        is added to a file need not wake it: who looks for that at its own times spares the process all those wake-ups. A run of one
        of the `threads` since the call before ends it early, with False, and is noticed within a second, but not in the first
        `timer_seconds`; the first call with these threads only counts their runs."""

    def close(self) -> None:
        """Give the wake-up back. May be called twice."""


class Transport(Protocol):
    """Reaches one machine. Calls are thread-safe; each ends within its `timeout` (seconds) or raises Unreachable."""

    machine: str | None
    """Its name, None for this one."""

    @property
    def pid(self) -> int | None:
        """This very process there; None where it is not on that machine."""

    socket: str
    """The name of the tmux server's socket, as in `tmux -L NAME`."""

    @property
    def home(self) -> str:
        """The absolute folder of this server's state there: `$XDG_STATE_HOME/tmuxctl/SOCKET`, made 0700 when missing."""

    def carry_out(
        self, key: str, operation: Callable[[], T], patience: float | None = 0.0, *, changes: bool = True
    ) -> T:
        """Carry out an operation in this thread; `key` says which one, and of which session. A machine that is far may then be
        asked at once what it was asked last time. Where the connection is lost, what changes nothing is asked again up to
        `patience` seconds from now (None: as long as it may reasonably take to come back); of an operation that `changes`
        something, once it has."""

    def word(self) -> str:
        """A word that no program can know beforehand, to stand between the parts of an answer."""

    def starting_place(self) -> StartingPlace:
        """From where programs start there."""

    def run(
        self,
        commands: Sequence[Command],
        *,
        buffer: tuple[str, bytes] | None = None,
        timeout: float = 8.0,
    ) -> bytes:
        """Run ONE tmux command list and return what it printed; never starts a server.

        `buffer` names a paste buffer and the exact bytes it is filled with before the list runs. Raises what
        `error_of_complaint` makes of tmux's message, and Unreachable `backend_timeout` when tmux does not answer in time
        (a list that writes may still be carried out later: the caller knows whether that matters).
        """

    def run_at_end(
        self,
        journal: str,
        commands: Sequence[Command],
        *,
        buffer: tuple[str, bytes] | None = None,
        timeout: float = 8.0,
    ) -> tuple[int, bytes]:
        """`run` a list in which `segments.END` stands for how far the journal in this folder has come; that, and what was
        printed. NotFound `no_file` without a journal: nothing is run then."""

    def create(self, commands: Sequence[Command], *, timeout: float = 20.0) -> bytes:
        """Run a list that creates a session, starting the server (our configuration, clean environment) if there is none."""

    def record_server(self, pid: int) -> None:
        """Write down in `home` which process the server is: `server`, with its pid and start time."""

    def shell(self, script: str, *arguments: str, stdin: bytes = b"", timeout: float = 8.0) -> tuple[int, bytes]:
        """Run a POSIX sh script there with `$1`.. set; its exit status and standard output."""

    def put(self, path: str, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
        """Make or replace a file whole (temporary file, then rename); links are never followed. `durable`: on the disk
        before this returns, where the machine has a way to say so (fsync(2)): for what a restart must find."""

    def without_answer(self) -> AbstractContextManager[None]:
        """What changes something in this block may be sent without waiting for it: whether it was carried out is not told, and it
        prints nothing. Not for what the next step relies on."""

    def append(self, path: str, data: bytes) -> int:
        """Write at the end of a regular file in one step, made with mode 0600 if it is not there; its size then. Links are
        never followed, and nothing is waited for. Denied `bad_file` for what is no regular file."""

    def make_folder(self, path: str) -> None:
        """Make a 0700 folder and its parents; no error if it is there and ours."""

    def remove(self, path: str) -> None:
        """Remove a file or a whole folder; no error if it is gone."""

    def rename(self, path: str, to: str) -> None:
        """Rename a file or folder on the same file system."""

    def files(self, folder: str) -> dict[str, File]:
        """The names in a folder (folders too, size 0); empty if there is no such folder."""

    def names(self, folder: str) -> Collection[str]:
        """The names alone: quicker in a folder of hundreds."""

    def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a file from `offset`, at most `limit`; NotFound `no_file` if it is not there."""

    def read_all(self, folders: Sequence[str], names: Sequence[str], limit: int) -> dict[str, dict[str, bytes]]:
        """By each of these folders the first `limit` bytes of its regular files of these names, as far as they are there and can be
        read: in few round trips, however many folders there are."""

    def read_grown(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        """`read`, of a file that is only ever written at its end: what was read of it before may be told again."""

    def tty(self, path: str) -> Tty | None:
        """How the terminal device treats input, or None when it cannot be asked."""

    def probe(self, panes: Sequence[tuple[int, str]], *, level: str = FULL, beyond: bool = False) -> list[Probe]:
        """What the kernel tells of these panes' terminals, each given as the pid of the pane's first process and the
        path of its terminal; `level` (FULL, WCHAN, PS, NONE) caps how much is asked. Without programs if that process has
        ended; what ends meanwhile is left out, and no process or terminal makes it raise. `beyond` looks through all
        processes of the machine for those that wait for such a terminal without belonging to it (a daemon that asks for a
        passphrase there), where the transport can: some milliseconds."""

    def stamp(self, watched: Watched) -> object | None:
        """A value that is equal later only if the same is watched, and since then none of these threads has run, and the files
        have neither grown nor been replaced. None where that cannot be told, or something is gone."""

    def processes(self, pids: Sequence[int] | None = None) -> list[Process]:
        """The machine's process table, as much of it as may be seen; only these processes if `pids` is given."""

    def room(self, folder: str, pid: int | None) -> Resources:
        """What is left: on the disk that holds `folder`, of the machine's terminals, of a process's descriptors."""

    def load(self, pid: int) -> ProcessLoad:
        """What this process and all that descend from it take together; nothing if it has ended."""

    def which(self, program: str, path: str, folder: str) -> bool:
        """True if a shell in `folder` with this PATH would find the program."""

    def marked(self, session_id: str) -> list[Process]:
        """The processes whose environment at their start carried `TMUXCTL_SESSION=session_id`."""

    def signal(self, processes: Sequence[Process], name: str) -> None:
        """Send a signal (`TERM`, `KILL`, ...) to each process that still is what the row says; others are skipped."""

    def watch(self, folders: Sequence[str], pid: int | None = None, *, terminal: str = "") -> Watch:
        """A wake-up for changes of files in these folders and, if given, the end of a process and, where the kernel tells of
        it, each read of a terminal, by which a program takes what was typed."""

    def clock(self) -> float:
        """The machine's monotonic clock in seconds, the same for every process there."""

    def wall(self) -> float:
        """The machine's wall clock in seconds: to compare with `File.modified`, and with the times that tmux tells."""

    def close(self) -> None:
        """End what the transport keeps open. Sessions go on."""


def read_each(
    read: Callable[[str, int, int], bytes], folders: Sequence[str], names: Sequence[str], limit: int
) -> dict[str, dict[str, bytes]]:
    """`Transport.read_all` where reading one file costs nothing."""
    found: dict[str, dict[str, bytes]] = {}
    for folder in folders:
        held = found[folder] = {}
        for name in names:
            with suppress(NotFound, Denied):
                held[name] = read(f"{folder}/{name}", 0, limit)
    return found


def read_object(transport: Transport, path: str) -> dict[str, Any]:
    """The JSON object in a file of ours. NotFound if there is no file, NewerFormat if a later release wrote it, ValueError for
    any other content or kind of file: of a damaged file only what it held is lost."""
    try:
        return parse_record(transport.read(path, 0, JSON_LIMIT + 1), path)
    except Denied as error:
        raise ValueError(error.message) from None


LOCALE = (
    "LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC "
    "LC_PAPER LC_TELEPHONE LC_TIME"
)
DESKTOP = (
    "XDG_CACHE_HOME XDG_CONFIG_DIRS XDG_CONFIG_HOME XDG_CURRENT_DESKTOP XDG_DATA_DIRS XDG_DATA_HOME XDG_RUNTIME_DIR XDG_SEAT "
    "XDG_SESSION_CLASS XDG_SESSION_DESKTOP XDG_SESSION_ID XDG_SESSION_TYPE XDG_STATE_HOME XDG_VTNR"
)
BASICS = tuple(f"PATH HOME USER LOGNAME SHELL LANG TZ TMPDIR {LOCALE} {DESKTOP}".split())
"""Variables that say who the user is and where. Each by its name: what is carried through ssh is often called `LC_...`, also
a token."""

SAFE = r"[A-Za-z0-9_./@=:+,-]+"
ESCAPED = r'[\x00-\x1f\x7f\\"$~]'
ESCAPES = {code: f"\\{code:03o}" for code in (*range(0x20), 0x7F)} | {ord(one): f"\\{one}" for one in '\\"$~'}


@lru_cache(maxsize=256)
def quote_argument(argument: str) -> str:
    r"""One argument as tmux's own command parser reads it back (tmux(1), PARSING SYNTAX): bare, or in double quotes with
    octal escapes. A `~` is expanded even there (measured), so it is escaped too."""
    if re.fullmatch(SAFE, argument):
        return argument
    return f'"{argument.translate(ESCAPES) if re.search(ESCAPED, argument) else argument}"'


def shell_word(text: str) -> str:
    """One word for a POSIX shell (XCU 2.2.2): single quotes keep every byte but their own. Usage for a NUL."""
    if "\0" in text:
        raise Usage("a shell word cannot hold a NUL byte", reason="bad_text", hint="send it as data")
    return "'" + text.replace("'", "'\\''") + "'"


def format_control_line(commands: Sequence[Command]) -> str:
    """A command list as text for control mode."""
    return " ; ".join([" ".join(map(quote_argument, command)) for command in commands])


def format_arguments(commands: Sequence[Command]) -> list[str]:
    r"""A command list as arguments of the tmux program. A trailing `;` of an argument would end its command: it goes as `\;`.

    So the `;` between two commands stands behind the first one's last word: for each that is a word of its own, tmux 3.3 to
    3.6 keep 32 bytes for ever (cmd_parse_from_arguments). Only where it would be read otherwise it is.
    """
    words: list[str] = []
    for command in commands:
        if words and words[-1] and words[-1][-1] not in ";\\":
            words[-1] += ";"
        elif words:
            words.append(";")
        words.extend(word[:-1] + "\\;" if word.endswith(";") else word for word in command)
    return words


FAILURES: Sequence[tuple[str, type[TmuxctlError], str, str]] = (
    (r"no server running|error connecting to|server exited|lost server|no current client", Unreachable, "no_server", "tmuxctl ls"),
    (r"duplicate session", Conflict, "exists", "choose another name, or --if-exists reuse"),
    (r"no current target|^no sessions$", NotFound, "no_sessions", "tmuxctl new"),
    (r"can't find (session|pane|window)|no such (session|pane|window)", NotFound, "no_session", "tmuxctl ls"),
    (r"fork failed: No space left|forkpty|openpty|out of pty", Failed, "no_ptys", "end some sessions: tmuxctl kill NAME"),
    (r"fork failed", Failed, "no_processes", "end some programs, or raise the process limit"),
    (r"Too many open files|too many open files", Failed, "no_descriptors", "end some sessions: tmuxctl kill NAME"),
    (r"need UTF-8 locale|invalid LC_ALL", Failed, "no_utf8", "it needs a UTF-8 locale: locale -a lists them; C.UTF-8 will do"),
    (r"unknown command|unknown option|unknown flag|usage:", Failed, "tmux_too_old", "it needs tmux 3.2 or later: tmuxctl doctor"),
)  # fmt: skip


def error_of_complaint(message: str) -> TmuxctlError:
    """tmux's complaint as an error of ours."""
    if found := re.fullmatch(f"invalid option: {REFUSED}(?: (.*))?", message):
        return GuardRefused(found[1] or "")
    for pattern, error_class, reason, hint in FAILURES:
        if re.search(pattern, message):
            return error_class(f"tmux: {message}" if message else "tmux failed", reason=reason, hint=hint)
    return Failed(f"tmux: {message}" if message else "tmux failed without a message", reason="tmux")


def unreachable_server_error(pid: int, complaint: str) -> Unreachable:
    """The error for a server that runs and cannot be asked; `complaint` is what tmux says to that."""
    # a server of 3.6 or later hangs up on programs up to 3.5a, which take that for its end (measured)
    if "server exited" in complaint:
        return Unreachable(
            f"the tmux server (pid {pid}) runs, but does not understand this tmux: it is of another version",
            reason="other_version",
            hint=f"use the tmux that started it: TMUXCTL_TMUX_BINARY=PATH; it is /proc/{pid}/exe",
        )
    return Unreachable(
        f"the tmux server (pid {pid}) runs but its socket is gone and does not come back",
        reason="no_socket",
        hint=f"look at it, or end it and its sessions: kill {pid}",
    )


def timeout_error(timeout: float) -> Unreachable:
    """The error for a tmux that did not answer in time."""
    hint = "is its server stopped or overloaded? tmuxctl doctor"
    return Unreachable(f"tmux did not answer within {timeout:g} s", reason="backend_timeout", hint=hint)


def check_environment(values: Mapping[str, str]) -> None:
    """Usage if a name or value cannot be part of an environment (POSIX: no `=` in a name, no NUL)."""
    for name, value in values.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or "\0" in value:
            raise Usage(
                f"{ascii(name[:40])} cannot be an environment variable", reason="bad_env", hint="write -e NAME=VALUE"
            )
