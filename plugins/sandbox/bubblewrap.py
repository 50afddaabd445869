"""A view of the machine as a sandbox of bubblewrap: in a session's terminal, or for one command of ours."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tmuxctl.errors import Failed

from . import start
from .seccomp import filter_for
from .view import EMPTY, NOTHING, Access, Part, View

SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"
"""Where the programs that make a sandbox are looked for: no folder of PATH, which could be one that a sandbox writes."""

FLAGS = (
    "--ro-bind / / --dev /dev --proc /proc --ro-bind /proc/sys /proc/sys --unshare-pid --unshare-ipc --unshare-uts "
    "--unshare-cgroup-try --die-with-parent --cap-drop ALL --unsetenv TMUX --unsetenv TMUX_PANE"
)

SIGNALS = ("HUP", "INT", "QUIT", "TERM")
RESTORING = (
    ("/usr/bin/env", f"--default-signal={','.join(SIGNALS)}"),
    ("/usr/bin/perl", "-e", f"$SIG{{$_}} = 'DEFAULT' for qw({' '.join(SIGNALS)}); exec {{ $ARGV[0] }} @ARGV; exit 127"),
)
"""What starts a program with the signals as they were that bubblewrap is told to ignore."""
AS_IT_IS = ("/bin/sh", "-c", 'exec "$@"', "sh")
"""For a program with `=` in its name, which env would take for a variable."""

TRIES = 3
"""How often a command of ours is tried: a file that is hidden may be replaced just then (useradd(8), measured)."""

MOST_MEMORY = 1 << 32
"""Of a command of ours, in bytes: what it reads may be made to swell."""


class SandboxedResult(NamedTuple):
    """How a command ended, and what it wrote to its standard output and standard error."""

    status: int
    out: bytes
    error: str


def system_program(name: str) -> str:
    """The path of a program of the machine's own; "" if there is none."""
    return shutil.which(name, path=SYSTEM) or ""


def find_missing() -> str | None:
    """What has to be installed before a sandbox can be made, in words; None if all is there."""
    if not system_program("bwrap"):
        return "there is no bwrap in the folders of the system: apt install bubblewrap (same name for dnf, pacman, apk, zypper)"
    if not system_program("python3"):
        return "there is no python3 in the folders of the system: apt install python3"
    if not _signal_restorer():
        return "Ctrl-C could not work in it: there is neither env of GNU coreutils 8.31 nor perl in /usr/bin"
    return None


def command(
    view: View,
    folder: str,
    argv: Sequence[str],
    *,
    network: bool,
    variables: Mapping[str, str] | None = None,
    limits: Mapping[str, int] | None = None,
) -> tuple[str, ...]:
    """The words that start a program in a sandbox. `variables` are set inside only: by name, that of the variable outside
    which carries the value. `limits` are those of setrlimit(2), by name."""
    plan = {
        "bwrap": system_program("bwrap"),
        "flags": [*FLAGS.split(), *(() if network else ("--unshare-net",))],
        "mounts": [_plan_mount(path, view[path]) for path in sorted(view, key=lambda path: path.split("/"))],
        "descriptors": takes_descriptors(),
        "folder": folder,
        "filter": filter_for(os.uname().machine).hex(),
        "variables": dict(variables or {}),
        "limits": dict(limits or {}),
        "before": [*_signal_restorer(), *(AS_IT_IS if "=" in argv[0] else ())],
    }
    return (system_program("python3"), "-I", "-S", "-c", _start_source(), json.dumps(plan), *argv)


def run(
    view: View,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    seconds: float,
    most: int,
    stdin: Any = subprocess.DEVNULL,
) -> SandboxedResult:
    """Run a command of ours in a sandbox without network, and end it all when its time is over: Failed `timeout`. Failed
    `too_large` if it writes `most` bytes, to its output or to any file."""
    words = command(view, "/", argv, network=False, limits={"RLIMIT_FSIZE": most, "RLIMIT_AS": MOST_MEMORY})
    for _ in range(TRIES):
        if stdin is not subprocess.DEVNULL:
            stdin.seek(0)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            status = _wait_for(words, env, seconds, stdin, out, error)
            if os.fstat(out.fileno()).st_size >= most:
                raise Failed(f"git wrote more than {most >> 20} MiB", reason="too_large", hint="fetch it by hand")
            for file in (out, error):
                file.seek(0)
            ran = SandboxedResult(status, out.read(), error.read(1 << 16).decode(errors="replace"))
        if not (status == start.REFUSED and ran.error.startswith("tmuxctl: ")):
            break
    return ran


def _wait_for(words: Sequence[str], env: Mapping[str, str], seconds: float, stdin: Any, out: Any, error: Any) -> int:
    process = subprocess.Popen(
        words, env=dict(env), cwd="/", stdin=stdin, stdout=out, stderr=error, start_new_session=True
    )
    try:
        return process.wait(seconds)
    except BaseException as reason:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if not isinstance(reason, subprocess.TimeoutExpired):
            raise
        message = f"git did not end within {seconds:g} s"
        raise Failed(message, reason="timeout", hint="is a file of the repository a pipe, or the disk slow?") from None


def try_sandbox() -> str | None:
    """Why bubblewrap can make no sandbox here, in its own words: found out by making one."""
    done = subprocess.run(
        command({}, "/", ("true",), network=True),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False, timeout=60,
    )  # fmt: skip
    said = done.stderr.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
    return said if done.returncode else None


@functools.cache
def takes_descriptors() -> bool:
    """True if bubblewrap mounts what a descriptor stands for: tried, as distributions have it in versions that did not."""
    folder = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        words = [system_program("bwrap"), "--ro-bind", "/", "/", "--ro-bind-fd", str(folder), "/", "true"]
        done = subprocess.run(
            words, pass_fds=[folder], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60
        )
        return not done.returncode
    except (OSError, subprocess.SubprocessError):
        return False
    finally:
        os.close(folder)


def _plan_mount(path: str, part: Part) -> list[Any]:
    """One mount, as `start` takes it: a path that was looked at is known by its device and inode."""
    if part == EMPTY:
        return ["--tmpfs", path, None, None, False, True]
    source = "/dev/null" if part == NOTHING else part.source or path
    kind = "--bind" if part.access is Access.WRITE else "--ro-bind"
    identity = None
    if not part.source:
        with suppress(OSError, start.PlanRefused):
            descriptor, found = start.open_without_links(source)
            os.close(descriptor)
            identity = [found.st_dev, found.st_ino]
    # what is hidden lies in folders of the system, where useradd(8) may replace it just now (measured)
    return [kind, path, source, identity, part.optional, part != NOTHING]


@functools.cache
def _signal_restorer() -> tuple[str, ...]:
    """What starts a program with the signals that were ignored as they were before, of the ways that work here."""
    for words in RESTORING:
        with suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(
                [*words, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=10
            )
            if not done.returncode:
                return words
    return ()


@functools.cache
def _start_source() -> str:
    # the loader of pytest, which rewrites what belongs to one of its plugins, has data but no source
    loader: Any = start.__loader__
    data: bytes = loader.get_data(f"{os.path.splitext(start.__file__)[0]}.py")
    return data.decode()
