"""The machine on which a session will be, as its plugins work with it: its files and programs, all through one POSIX shell.

A plugin whose functions have a parameter of type PluginMachine is given one, and works on every machine that is reached.
"""

from __future__ import annotations

import math
import os
import posixpath
import signal
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Protocol

from tmuxctl.errors import Conflict, Denied, Failed, NotFound, Unreachable
from tmuxctl.state_files import is_running, make_private_folder, write_record
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import JSON_LIMIT, parse_record, read_file, to_record

KILLED, NOT_STARTED, NOT_FOUND = 137, 126, 127
"""Exit statuses that a shell gives: killed (128 and SIGKILL's number), could not be started, was not found."""

MISSING, REFUSED, OWNER, MODE = 66, 73, 77, 78
"""Exit statuses by which the scripts below name a failure, as those of tmuxctl/transport/shell.py."""

RUN = r"""
cd -- "$1" || { printf '\0%s\0%s' "$1 cannot be entered" 126; exit; }
seconds=$2 written=$(umask); umask 077; shift 2; exec 3<&0
part=${TMPDIR:-/tmp}/tmuxctl.$$.$PPID count=0; set -C
until { : >"$part.o"; } 2>/dev/null; do
  count=$((count + 1)) part=$part.$count; [ "$count" -lt 9 ] || { printf '\0%s\0%s' "no room in ${TMPDIR:-/tmp}" 126; exit; }
done
: >"$part.e"; set +C; umask "$written"
trap 'rm -f -- "$part.o" "$part.e"' EXIT; trap 'exit 143' HUP INT PIPE TERM
lead=; ! command -v setsid >/dev/null || lead=setsid
if command -v timeout >/dev/null; then
  $lead timeout -s KILL "$seconds" "$@" <&3 3<&- >"$part.o" 2>"$part.e"; status=$?
else
  $lead "$@" <&3 3<&- >"$part.o" 2>"$part.e" & program=$!
  { sleep "$seconds"; kill -s KILL -- "-$program" || kill -s KILL "$program"; } 3<&- >/dev/null 2>&1 & watch=$!
  wait "$program"; status=$?; kill "$watch"
fi 2>/dev/null
[ ! -s "$part.o" ] || cat "$part.o"
printf '\0'; [ ! -s "$part.e" ] || tr -d '\0' <"$part.e"
printf '\0%s' "$status"
"""
"""Runs a command in a session of its own, without a terminal; prints its output, its complaint and its status, NUL between."""

WRITE = r"""
umask 077; new=$1.$$.new
(set -C; cat >"$new") && { [ -z "$2" ] || sync -- "$new" 2>/dev/null || sync; } && mv -f -- "$new" "$1" && exit
rm -f -- "$new"; exit 73
"""

READ = r"""
[ ! -L "$1" ] || exit 79; [ -e "$1" ] || exit 66; [ -f "$1" ] && [ -r "$1" ] || exit 79; head -c "$2" <"$1"
"""

FOLDERS = r"""
umask 077; [ -d "$1" ] || mkdir -p -- "$1" || exit 73
for one do
  [ -d "$one" ] || [ -L "$one" ] || mkdir -- "$one" 2>/dev/null || [ -d "$one" ] || exit 73
  printf %s "$one"
  [ -d "$one" ] && [ ! -L "$one" ] && [ -O "$one" ] || exit 77
  case $(ls -ldn -- "$one") in drwx------*) ;; *) exit 78 ;; esac
  printf '\0'
done
"""

LOOK = r"""
for one do
  kind=
  if [ -L "$one" ]; then kind=link; elif [ -d "$one" ]; then kind=folder; elif [ -f "$one" ]; then kind=file
  elif [ -e "$one" ]; then kind=other; fi
  to=; [ "$kind" != link ] || { to=$(readlink -- "$one"; echo .); to=${to%??}; }
  folder=; [ ! -d "$one" ] || folder=y
  up=$one rest= real=
  until [ -z "$up" ] || real=$(cd -P -- "$up" 2>/dev/null && pwd -P && echo .); do rest=/${up##*/}$rest; up=${up%/*}; done
  real=${real%??}; real=${real%/}$rest
  printf '%s\0%s\0%s\0%s\0' "$kind" "$folder" "$to" "${real:-/}"
done
"""

BEGUN = r"""
begun() {
  if [ -r "/proc/$1/stat" ]; then sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f20
  else LC_ALL=C ps -o lstart= -p "$1" 2>/dev/null | tr ' ' _; fi
}
"""
"""When a process began: with its number that names it."""

LOCK = (
    BEGUN
    + r"""
holder=$PPID:$(begun "$PPID")
if ln -s "$holder" "$1" 2>/dev/null; then printf %s "$holder"; exit 0; fi
[ -L "$1" ] || { [ -e "$1" ] && exit 73; [ -d "${1%/*}" ] && [ -w "${1%/*}" ] && exit 75; exit 66; }
held=$(readlink -- "$1") || exit 75
case $held in *[!0-9A-Za-z:_]*) exit 73 ;; esac
[ "$(begun "${held%%:*}")" = "${held#*:}" ] || rm -f -- "$1"
exit 75
"""
)
"""A link that names the process which keeps this shell: its end gives the lock back."""

UNLOCK_DEAD = (
    BEGUN
    + r"""
for one do
  held=$(readlink -- "$one") || continue
  case $held in *[!0-9A-Za-z:_]*) continue ;; esac
  [ "$(begun "${held%%:*}")" = "${held#*:}" ] || rm -f -- "$one"
done
"""
)
"""Removes those of these locks whose holder has ended."""

UNLOCK = '[ "$(readlink -- "$1")" != "$2" ] || rm -f -- "$1"'


class ScriptRunner(Protocol):
    """Runs a POSIX sh script on a machine with `$1`.. set; its exit status and standard output. Unreachable if there is no
    answer within `timeout` seconds."""

    def __call__(self, script: str, *arguments: str, stdin: bytes = b"", timeout: float = 8.0) -> tuple[int, bytes]: ...


class CommandResult(NamedTuple):
    """How a command ended, and what it wrote to its standard output and standard error."""

    status: int
    out: str
    error: str


class PathFacts(NamedTuple):
    """What there is at a path: its `kind` is folder, link, file or other, or "" for nothing; `is_folder` tells whether a folder is
    there or where a link leads. `target` is what a link says, `real` the path without links on the way to it."""

    kind: str
    is_folder: bool
    target: str
    real: str


class PluginMachine:
    """The machine of a session: its `name` (None: this one), the `variables` that programs start with there, the `pid` by which
    this process is known there (None: it is not there), and its files and programs."""

    def __init__(
        self, shell: ScriptRunner, variables: Mapping[str, str], *, name: str | None = None, pid: int | None = None
    ) -> None:
        self.shell, self.variables, self.name, self.pid = shell, variables, name, pid

    @property
    def state_folder(self) -> str:
        """The folder of tmuxctl's state there; Denied `bad_folder` where no home is known."""
        state, home = self.variables.get("XDG_STATE_HOME", ""), self.variables.get("HOME", "")
        if not state.startswith("/"):
            if not home.startswith("/"):
                hint = "export XDG_STATE_HOME=DIR, or HOME"
                raise Denied("there is no HOME that is an absolute path", reason="bad_folder", hint=hint)
            state = posixpath.join(home, ".local", "state")
        return posixpath.join(state, "tmuxctl")

    def expand(self, path: str, folder: str) -> str:
        """The absolute path, seen from a folder; a leading `~` is the home there."""
        home = self.variables.get("HOME", "")
        if path == "~" or path.startswith("~/"):
            path = f"{home}{path[1:]}"
        return posixpath.normpath(posixpath.join(folder, path))

    def which(self, program: str) -> bool:
        """True if there is a program of this name."""
        return not self.shell('command -v -- "$1" >/dev/null 2>&1', program)[0]

    def run(
        self,
        command: tuple[str, ...],
        folder: str,
        *,
        stdin: str = "",
        seconds: float,
        variables: Mapping[str, str] = {},
        without: Sequence[str] = (),
    ) -> CommandResult:
        """Run a command without a terminal, and end it with all that it started when its time is over: Failed `timeout`. One that
        cannot be started has the status that a shell gives: 126, 127.

        `variables` are set in addition and stand in the list of arguments; those of the names `without` are not set.
        """
        if seconds <= 0:
            raise _late_error(command[0], seconds)
        began = time.monotonic()
        words = ["env", *(word for name in without for word in ("-u", name))]
        words += [f"{name}={value}" for name, value in variables.items()]
        given, limit = stdin.encode(errors="surrogateescape"), f"{math.ceil(seconds * 10) / 10:g}"
        status, printed = self.shell(
            RUN, folder, limit, *words, *command, stdin=given, timeout=seconds + TIMING.plugin.shell_seconds
        )
        parts = printed.rsplit(b"\0", 2)
        if status or len(parts) != 3 or not parts[2].isdigit():
            raise Failed(f"{command[0]} could not be run ({status})", reason="io", hint="is the machine overloaded?")
        out, error = (part.decode(errors="surrogateescape") for part in parts[:2])
        if int(parts[2]) == KILLED and time.monotonic() - began >= seconds * 0.95:
            raise _late_error(command[0], seconds, last_lines(out or error))
        return CommandResult(int(parts[2]), out, error)

    def look(self, *paths: str) -> list[PathFacts]:
        """What there is at each of these paths."""
        if not paths:
            return []
        _, printed = self.shell(LOOK, *paths)
        words = os.fsdecode(printed).split("\0")
        return [
            PathFacts(words[at], bool(words[at + 1]), words[at + 2], words[at + 3])
            for at in range(0, len(words) - 1, 4)
        ]

    def exists(self, path: str) -> bool:
        """Whether there is anything at this path, a link that leads nowhere too."""
        return bool(self.look(path)[0].kind)

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder, or a link to one."""
        return self.look(path)[0].is_folder

    def resolve(self, path: str) -> str:
        """The path without links on the way to it."""
        return self.look(path)[0].real

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if there is no such folder."""
        script = 'cd -- "$1" 2>/dev/null || exit 0; for one in * .*; do case $one in .|..) ;; *) '
        script += '[ ! -e "$one" ] && [ ! -L "$one" ] || printf "%s\\0" "$one" ;; esac; done'
        return [name for name in os.fsdecode(self.shell(script, folder)[1]).split("\0") if name]

    def make_private_folders(self, *folders: str) -> None:
        """Make these unless they are there, the first with its parents. Denied `bad_owner` or `bad_mode` for one that is not the
        user's, or that others may enter."""
        status, printed = self.shell(FOLDERS, *folders)
        if not status:
            return
        path = os.fsdecode(printed).rpartition("\0")[2]
        hint = f"look at it: ls -ld {path or folders[0]}"
        if status == OWNER:
            raise Denied(f"{path} is not a folder that belongs to you", reason="bad_owner", hint=hint)
        if status == MODE:
            raise Denied(f"{path} is open to others", reason="bad_mode", hint=f"chmod 700 {path}")
        raise _folder_error(folders)

    def read(self, path: str, limit: int) -> bytes:
        """At most `limit` bytes of a regular file. NotFound `no_file`, Denied `bad_file` for what is none, a link too."""
        status, printed = self.shell(READ, path, str(limit))
        if status == MISSING:
            raise NotFound(f"no file {path}", reason="no_file")
        if status:
            raise _file_error(path)
        return printed

    def read_record(self, path: str) -> dict[str, Any]:
        """A record that `write_record` wrote. NotFound, Denied as `read`; ValueError for any other content."""
        return parse_record(self.read(path, JSON_LIMIT + 1), path)

    def write_record(self, path: str, record: Mapping[str, Any], *, durable: bool = False) -> None:
        """Put JSON in the place of a file, whole or not at all; `durable`: a machine that loses power keeps one of the two."""
        if self.shell(WRITE, path, "durable" if durable else "", stdin=to_record(record))[0]:
            raise _write_error(path)

    def remove(self, path: str) -> None:
        """Remove a file or link, no error if it is gone; Denied for a folder."""
        if self.shell('rm -f -- "$1"', path)[0]:
            raise _remove_error(path)

    def is_running(self, pid: int) -> bool:
        """Whether there is a process with this number there, ours or not."""
        return not self.shell('kill -0 "$1" 2>/dev/null || [ -d "/proc/$1" ] || ps -p "$1" >/dev/null 2>&1', str(pid))[
            0
        ]

    def wall(self) -> float:
        """The wall clock there, in whole seconds."""
        return float(self.shell("date +%s")[1])

    @contextmanager
    def lock(self, path: str, busy: str, hint: str, seconds: float, *, reason: str = "busy") -> Iterator[None]:
        """Nobody else has this lock meanwhile; it goes with the connection to the machine. Conflict (`reason`) with these words if
        another holds it for so long, Denied `bad_lock` where none can be made, NotFound where its folder is gone."""
        deadline = time.monotonic() + seconds
        while True:
            if holder := self._try_lock(path):
                break
            if time.monotonic() > deadline:
                raise Conflict(busy, reason=reason, hint=hint)
            time.sleep(TIMING.plugin.lock_pause_seconds)
        try:
            yield
        finally:
            self._unlock(path, holder)

    def remove_dead_locks(self, paths: Sequence[str]) -> None:
        """Remove those locks whose holder was killed while it had them; others stay."""
        self.shell(UNLOCK_DEAD, *paths)

    def _try_lock(self, path: str) -> str:
        """Who holds the lock from now on: us; "" if another does."""
        status, holder = self.shell(LOCK, path)
        if status == REFUSED:
            raise Denied(f"{path} is no lock", reason="bad_lock", hint=f"look at it: ls -ld {path}")
        if status == MISSING:
            raise NotFound(f"no folder for {path}", reason="no_file")
        return "" if status else os.fsdecode(holder)

    def _unlock(self, path: str, holder: str) -> None:
        self.shell(UNLOCK, path, holder)


class OwnMachine(PluginMachine):
    """The machine of this process, without a shell for what Python does itself."""

    def __init__(self) -> None:
        super().__init__(_run_here, os.environ, pid=os.getpid())

    def which(self, program: str) -> bool:
        import shutil

        return shutil.which(program) is not None

    def run(
        self,
        command: tuple[str, ...],
        folder: str,
        *,
        stdin: str = "",
        seconds: float,
        variables: Mapping[str, str] = {},
        without: Sequence[str] = (),
    ) -> CommandResult:
        import subprocess
        import tempfile

        if seconds <= 0:
            raise _late_error(command[0], seconds)
        env = {name: value for name, value in os.environ.items() if name not in without}
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            given.write(stdin.encode(errors="surrogateescape"))
            given.seek(0)
            try:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env={**env, **variables},
                    stdin=given,
                    stdout=out,
                    stderr=error,
                    start_new_session=True,
                )
            except OSError as reason:
                if not os.path.isdir(folder):
                    return CommandResult(NOT_STARTED, "", f"{folder} cannot be entered")
                missing = isinstance(reason, FileNotFoundError)
                return CommandResult(NOT_FOUND if missing else NOT_STARTED, "", f"{command[0]}: {reason.strerror}")
            try:
                status = process.wait(seconds)
            except BaseException as reason:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if not isinstance(reason, subprocess.TimeoutExpired):
                    raise
                raise _late_error(command[0], seconds, last_lines(_read_whole(out) or _read_whole(error))) from None
            return CommandResult(status if status >= 0 else 128 - status, _read_whole(out), _read_whole(error))

    def look(self, *paths: str) -> list[PathFacts]:
        return [_look_here(path) for path in paths]

    def names(self, folder: str) -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return os.listdir(folder)
        return []

    def make_private_folders(self, *folders: str) -> None:
        try:
            os.makedirs(posixpath.dirname(folders[0]), mode=0o700, exist_ok=True)
            for folder in folders:
                make_private_folder(folder)
        except OSError as error:
            raise _folder_error(folders, error.strerror or "") from None

    def read(self, path: str, limit: int) -> bytes:
        try:
            return read_file(path, limit)
        except FileNotFoundError:
            raise NotFound(f"no file {path}", reason="no_file") from None
        except OSError:
            raise _file_error(path) from None

    def write_record(self, path: str, record: Mapping[str, Any], *, durable: bool = False) -> None:
        try:
            write_record(path, record, durable=durable)
        except OSError as error:
            raise _write_error(path, error.strerror or "") from None

    def remove(self, path: str) -> None:
        try:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(path)
        except OSError:
            raise _remove_error(path) from None

    def is_running(self, pid: int) -> bool:
        return is_running(pid)

    def wall(self) -> float:
        return time.time()

    def _try_lock(self, path: str) -> str:
        try:
            with open("/proc/self/stat", "rb") as file:
                holder = f"{os.getpid()}:{file.read().rpartition(b')')[2].split()[19].decode()}"
            os.symlink(holder, path)
            return holder
        except OSError:
            # held, or not to be had; or there is no /proc: the shell knows what to do about it
            return super()._try_lock(path)

    def _unlock(self, path: str, holder: str) -> None:
        with suppress(OSError):
            if os.readlink(path) == holder:
                os.unlink(path)


def this_machine() -> PluginMachine:
    """The machine of this process."""
    return OwnMachine()


def _folder_error(folders: Sequence[str], why: str = "") -> Denied:
    message = f"the folders for {folders[-1]} cannot be made{why and f': {why}'}"
    return Denied(message, reason="bad_folder", hint=f"look at it: ls -ld {folders[0]}")


def _file_error(path: str) -> Denied:
    message = f"{path} is not a regular file that can be read"
    return Denied(message, reason="bad_file", hint=f"look at it: ls -ld {path}")


def _write_error(path: str, why: str = "") -> Failed:
    message = f"{path} cannot be written{why and f': {why}'}"
    return Failed(message, reason="io", hint=f"is there room? df -h {posixpath.dirname(path)}")


def _remove_error(path: str) -> Denied:
    return Denied(f"{path} cannot be removed", reason="bad_file", hint=f"look at it: ls -ld {path}")


def _look_here(path: str) -> PathFacts:
    kind, target = "", ""
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = os.lstat(path).st_mode
        kinds = ((stat.S_ISLNK, "link"), (stat.S_ISDIR, "folder"), (stat.S_ISREG, "file"))
        kind = next((name for fits, name in kinds if fits(mode)), "other")
        target = os.readlink(path) if kind == "link" else ""
    return PathFacts(kind, os.path.isdir(path), target, os.path.realpath(path))


def _read_whole(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode(errors="surrogateescape"))


def _late_error(program: str, seconds: float, said: str = "") -> Failed:
    said = f"; its last lines: {said}" if said else ""
    hint = "is the disk or the network slow, or is there a FIFO where a file is read? find DIR -type p"
    return Failed(f"{program} did not end within {seconds:.3g} s{said}", reason="timeout", hint=hint)


def last_lines(text: str) -> str:
    """The last lines of what a command wrote, in one line fit to be shown."""
    return " | ".join(line[:300] for line in printable_lines(text)[-10:])


def printable_lines(text: str) -> list[str]:
    """The lines with something in them, each fit to be shown."""
    lines = (line.strip() for line in text.splitlines())
    return ["".join(letter if letter.isprintable() else "?" for letter in line) for line in lines if line]


def _run_here(script: str, *arguments: str, stdin: bytes = b"", timeout: float = 8.0) -> tuple[int, bytes]:
    import subprocess

    process = subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = process.communicate(stdin, timeout)
        return process.returncode, printed
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        hint = "is the disk or the network slow?"
        raise Unreachable(
            f"the shell did not answer within {timeout:g} s", reason="backend_timeout", hint=hint
        ) from None
