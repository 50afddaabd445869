"""Keep the program to its folder: it writes there and nowhere else, and sees neither your home nor any tmux.

On Linux bubblewrap gives it a view of the machine of its own, and a filter of system calls closes what such a view
leaves open. On macOS a profile for sandbox-exec says the same. Where neither works, nothing is started.
"""

from __future__ import annotations

import errno
import glob
import os
import pwd
import re
import shutil
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import Annotated, NamedTuple

from tmuxctl.errors import Failed, Usage
from tmuxctl.model import SessionSpec

KIND = "wrap"
ORDER = 10
CLEAN_ENV = True

LEVELS = ("read-only", "workspace", "workspace+net")
NETWORK = LEVELS[2]

PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev/shm", "/home", "/root", "/Users", "/private/var/folders")
"""Folders of which the program gets empty ones of its own, as it does of your home."""

SECRET = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssh/ssh_host_*_key",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
)
"""What root may read even without a single capability. A copy that passwd(1) has for a moment is not waited for."""

KERNEL = ("/dev", "/proc", "/sys")

SETTLED_SECONDS = 10.0
"""The age at which a socket is taken for one that stays."""

SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin"
"""Where the programs that make a sandbox are looked for: no folder of PATH, which could be one that a sandbox writes."""

POINTERS = re.compile(
    r"SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|DBUS_\w+|XDG_RUNTIME_DIR|XDG_SE\w+|XDG_VTNR|DISPLAY|WAYLAND_\w+|"
    r"XAUTHORITY|ICEAUTHORITY|SESSION_MANAGER|KRB5CCNAME|TMPDIR"
)
"""Variables that name what is hidden; kept where what they name was given with `bind`."""

LOADED = re.compile(r"LD_\w+|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|NLSPATH|MALLOC_\w+|BASH_ENV|ENV|SHELLOPTS|PS4|PERL\w*")
"""Variables by which a program loads or runs files: they are set inside only, or what the program left in its folder could
run outside while the next sandbox is made."""


class Access(Enum):
    """What the program has of a path, in the words of bubblewrap."""

    READ = "--ro-bind"
    READ_IF_THERE = "--ro-bind-try"
    WRITE = "--bind"
    WRITE_IF_THERE = "--bind-try"
    PRIVATE = "--tmpfs"
    SEALED = "--remount-ro"
    EMPTY = "--ro-bind-data"
    NOTHING = "/dev/null"

    def words(self, path: str) -> tuple[str, ...]:
        """The options that give the program this of the path."""
        if self is Access.PRIVATE:
            return (self.value, path)
        if self is Access.SEALED:
            return ("--tmpfs", path, self.value, path)
        if self is Access.EMPTY:
            return (self.value, NO_DATA, path)
        return ("--ro-bind", self.value, path) if self is Access.NOTHING else (self.value, path, path)


NO_DATA = "7"
"""The number of an open file without content."""

GIVEN = (Access.WRITE, Access.WRITE_IF_THERE)
"""What is written there is written on the machine."""

View = dict[str, Access]
"""What the program has of the machine, by real path: of several that hold a path the longest counts, and where there is
none it may read."""


def transform(
    spec: SessionSpec,
    *,
    level: Annotated[str, "read-only, workspace (it writes in its folder) or workspace+net"] = "workspace",
    bind: Annotated[tuple[str, ...], "one more path it may write, or ro:PATH to read; may be repeated"] = (),
) -> SessionSpec:
    """Wrap the program. Usage for a level, folder or path that cannot be; Failed if the program itself would be hidden."""
    if level not in LEVELS:
        hint = f"one of {', '.join(LEVELS)}"
        raise Usage(f"{ascii(level[:40])} is no level of a sandbox", reason="bad_option", hint=hint)
    if spec.machine:
        raise Usage("a sandbox is made on this machine only", reason="bad_option", hint="start it without one there")
    git = _repository(os.path.realpath(spec.cwd))
    view = _view(spec, git, level, bind)
    _see_program(spec, view)
    env, inside = _environment(spec, view)
    if sys.platform == "darwin":
        argv = _sandbox_exec(spec, view, level, inside)
    else:
        argv = _bubblewrap(spec, view, git, level, inside)
    return replace(spec, argv=argv, env={**_author(git), **env})


def check() -> str | None:
    """Why no sandbox can be made here: found out by making one."""
    if sys.platform == "darwin":
        return None if os.path.exists(SANDBOX_EXEC) else f"there is no {SANDBOX_EXEC}"
    if not sys.platform.startswith("linux"):
        return f"no sandbox is known for {sys.platform}"
    if os.uname().machine not in MACHINES:
        return f"no filter of system calls is known for {os.uname().machine}"
    if not _trusted("bwrap"):
        return "there is no bwrap in the folders of the system: apt install bubblewrap (dnf, pacman, apk and zypper call it so too)"
    if not _restoring():
        return "Ctrl-C could not work in it: there is neither env of GNU coreutils 8.31 nor perl in /usr/bin"
    made = _bubblewrap(SessionSpec(("true",), "/"), {}, None, NETWORK, {})
    done = subprocess.run(made, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    said = done.stderr.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
    return f"bubblewrap can make none: {said}" if done.returncode else None


# what the program sees


def _view(spec: SessionSpec, git: Git | None, level: str, bind: tuple[str, ...]) -> View:
    """Everything that differs from reading the machine as it is."""
    workspace, homes, secrets = os.path.realpath(spec.cwd), list(_homes()), _secrets(spec)
    write = Access.READ if level == "read-only" else Access.WRITE
    view = dict.fromkeys([*_private(), *homes], Access.PRIVATE) | _unreadable()
    if reason := _refused(workspace, view, secrets):
        hint = "work in a folder of its own: --cwd DIR"
        raise Usage(f"{ascii(workspace)} cannot be the folder of a sandbox: {reason}", reason="bad_cwd", hint=hint)
    if git and view.get(git.top) is not Access.PRIVATE:
        view |= {git.top: Access.READ} | git.mounts(write)
    view[workspace] = write
    view |= {os.path.realpath(path): Access.WRITE for path in spec.notes.get("binds", ())}
    for text in bind:
        path, access = _bound(text, spec.cwd)
        if reason := _refused(path, homes, secrets):
            hint = "bind the part of it that is needed"
            raise Usage(f"{ascii(text)} is not given to a sandbox: {reason}", reason="bad_option", hint=hint)
        view[path] = access
    resolver = os.path.realpath("/etc/resolv.conf")
    if level == NETWORK and _hidden(view, resolver):
        view[resolver] = Access.READ_IF_THERE
    view |= _home_inside(spec, view) | secrets
    view |= {path: Access.NOTHING for path in _sockets() if _of(view, path) is Access.READ}
    if folder := spec.notes.get("folder"):
        view |= {f"{folder}/events": Access.WRITE_IF_THERE, f"{folder}/shell": Access.READ_IF_THERE}
    return view


def _private() -> Iterator[str]:
    places = [*PRIVATE, *(os.environ.get(f"XDG_{word}_HOME", "") for word in ("CONFIG", "DATA", "CACHE", "STATE"))]
    yield from (os.path.realpath(path) for path in places if os.path.isabs(path) and os.path.isdir(path))


def _homes() -> Iterator[str]:
    """Your home, as you call it and as the machine does."""
    homes = [os.path.expanduser("~")]
    with suppress(KeyError):
        homes.append(pwd.getpwuid(os.getuid()).pw_dir)
    paths = (os.path.realpath(home) for home in homes if os.path.isabs(home) and os.path.isdir(home))
    yield from (path for path in paths if path != "/")


def _home_inside(spec: SessionSpec, view: View) -> View:
    """An empty home where the program will look for it, unless it lies in what the program was given."""
    home, real = (way(spec.env.get("HOME", "/")) for way in (os.path.normpath, os.path.realpath))
    places = [path for path in {home, real} - {"/"} if _hidden(view, path) or (path == real and os.path.isdir(path))]
    return {path: Access.PRIVATE for path in places if _of(view, path) not in GIVEN}


def _unreadable() -> View:
    paths = [path for pattern in SECRET for path in glob.glob(pattern) if os.access(path, os.R_OK)]
    return {path: Access.PRIVATE if os.path.isdir(path) else Access.NOTHING for path in paths}


def _secrets(spec: SessionSpec) -> View:
    """What nobody may be given: whoever reaches a socket of tmux is out of the sandbox."""
    temporary, state = os.environ.get("TMUX_TMPDIR") or "/tmp", os.environ.get("XDG_STATE_HOME", "")
    state = os.path.join(state if os.path.isabs(state) else os.path.expanduser("~/.local/state"), "tmuxctl")
    paths = {os.path.realpath(state)} if os.path.isdir(state) else set()
    if os.path.isdir(temporary):
        paths.add(os.path.join(os.path.realpath(temporary), f"tmux-{os.getuid()}"))
    if folder := spec.notes.get("folder"):
        paths.add(os.path.dirname(os.path.dirname(os.path.realpath(folder))))
    caller = os.path.realpath(os.environ.get("TMUX", "").partition(",")[0])
    asking = {caller: Access.NOTHING} if os.path.exists(caller) and stat.S_ISSOCK(os.stat(caller).st_mode) else {}
    return asking | dict.fromkeys(paths, Access.PRIVATE)


def _sockets() -> Iterator[str]:
    """Where something listens that could be told to do things. One that has just come may go before it is hidden, and then
    nothing would start: only those that stay."""
    with suppress(OSError), open("/proc/net/unix", errors="surrogateescape") as table:
        paths = {line.rstrip("\n").split(" ", 7)[-1].lstrip() for line in table}
        for path in sorted(path for path in paths if path.startswith("/") and os.access(path, os.W_OK)):
            with suppress(FileNotFoundError):
                if os.stat(path).st_mtime < time.time() - SETTLED_SECONDS:
                    yield path


def _refused(path: str, private: Iterable[str], secrets: Iterable[str]) -> str | None:
    """Why a path cannot be given as it is."""
    if path == "/":
        return "it is the whole machine"
    if any(_within(path, folder) for folder in KERNEL):
        return "it is the kernel's"
    if path in private:
        return "it holds what a sandbox hides"
    if any(_within(path, folder) and not _within(path, f"{folder}/worktrees") for folder in secrets):
        return "tmuxctl keeps its own there"
    return None


def _bound(text: str, cwd: str) -> tuple[str, Access]:
    given = text.removeprefix("ro:")
    path = os.path.realpath(os.path.join(cwd, os.path.expanduser(given)))
    if not given or not os.path.exists(path):
        hint = "write PATH or ro:PATH; a path that begins with ro: as ./ro:"
        raise Usage(f"there is no {ascii(given)} to bind", reason="bad_option", hint=hint)
    return path, Access.WRITE if given == text else Access.READ


def _of(view: View, path: str) -> Access:
    """What the program has of a path."""
    holding = [one for one in view if _within(path, one)]
    return view[max(holding, key=len)] if holding else Access.READ


def _hidden(view: View, path: str) -> bool:
    return _of(view, path) in (Access.PRIVATE, Access.SEALED, Access.NOTHING)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _see_program(spec: SessionSpec, view: View) -> None:
    """Failed if the program lies where the sandbox hides it: better said here than by a screen that ends at once."""
    word = spec.argv[0]
    found = os.path.join(spec.cwd, word) if "/" in word else shutil.which(word, path=spec.env.get("PATH")) or ""
    for place in (os.path.normpath(found), os.path.realpath(found)):
        if found and _hidden(view, place):
            hint = f"let it read what it needs: --with sandbox:bind=ro:{os.path.dirname(place)}"
            raise Failed(f"{ascii(word)} is {ascii(place)}, which the sandbox hides", reason="hidden", hint=hint)


# git


class Git(NamedTuple):
    """A repository: its working tree's top, the folder of that tree's own facts, and the one that all its trees share.
    `settings` are the file, key and value of each setting that git finds."""

    top: str
    folder: str
    common: str
    settings: tuple[tuple[str, str, str], ...] = ()

    @property
    def linked(self) -> bool:
        """True for a working tree beside the one that the repository was made with."""
        return self.folder != self.common

    def mounts(self, write: Access) -> View:
        """What it takes to commit, and no more; `write` is what the program has of its folder. The `.git` of the working
        tree is mounted on its own, or it could be moved out of the way."""
        view = self._linked(write) if self.linked else self._plain(write)
        return {f"{self.top}/.git": Access.READ} | view | dict.fromkeys(self._obeyed(), Access.READ)

    def _plain(self, write: Access) -> View:
        """All of it but what git outside would run, or take settings from."""
        kept = [os.path.join(self.folder, name) for name in KEPT]
        if any(map(os.path.islink, kept)):
            return {self.folder: Access.READ}
        view = {self.folder: write} | self._own_settings(write)
        if write is Access.WRITE:
            view[os.path.join(self.folder, "hooks")] = Access.SEALED
        return view | {path: Access.READ for path in kept if os.path.exists(path)}

    def _linked(self, write: Access) -> View:
        """An own folder with what is in the shared one, of which only objects, references and their logs are the real ones.

        So nothing that is made there is made in the repository: no hooks, no settings, no `commondir`. A file that git
        outside replaces (`config`, with every new branch that is pushed) stays out of reach too, which it would not if
        it were mounted in the real folder: a mount ends when its place is renamed over elsewhere (rename(2), measured).
        """
        view = {self.common: Access.PRIVATE}
        for entry in os.scandir(self.common):
            plain = entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
            if plain and entry.name != PACKED and not entry.name.endswith(".lock"):
                view[entry.path] = write if entry.name in ("objects", "refs", "logs") else Access.READ_IF_THERE
        own = [os.path.join(self.folder, name) for name in ("commondir", "gitdir", "config.worktree")]
        kept = {path: Access.READ for path in own if os.path.isfile(path)}
        return view | {self.folder: write} | self._own_settings(write) | kept

    def _own_settings(self, write: Access) -> View:
        """The settings of this working tree alone, where the repository says that there are such."""
        wanted = any(key == "extensions.worktreeconfig" and value != "false" for _, key, value in self.settings)
        return {os.path.join(self.folder, "config.worktree"): Access.EMPTY} if wanted and write is Access.WRITE else {}

    def _obeyed(self) -> Iterator[str]:
        """Files of the working tree that its settings name: more settings, and a folder of hooks."""
        paths = {file for file, _, _ in self.settings}
        paths |= {os.path.expanduser(value) for _, key, value in self.settings if key == "core.hookspath"}
        for path in (os.path.normpath(os.path.join(self.top, path)) for path in paths):
            if _within(path, self.top) and path != self.top and os.path.realpath(path) == path and os.path.exists(path):
                yield path

    def references(self) -> tuple[str, ...]:
        """The options of bubblewrap by which git inside finds the packed references as they are at any time.

        Deleting a reference locks that file, even what every rebase deletes. Git follows five links and locks what it
        finds then: here a sixth link, in the program's own folder. What it cannot do is write the file anew, for which a
        folder is in the way: `git pack-refs` would keep it in the sandbox and delete the real references.
        """
        real, chain = f"{self.common}/{CHAIN}/real", [f"{self.common}/{CHAIN}/{number}" for number in range(1, 6)]
        targets = (f"{CHAIN}/1", "2", "3", "4", "5", f"real/{PACKED}")
        links = zip(targets, (f"{self.common}/{PACKED}", *chain), strict=True)
        words = [word for target, place in links for word in ("--symlink", target, place)]
        return ("--ro-bind", self.common, real, *words, "--dir", f"{chain[-1]}.new")


KEPT = ("config", "config.worktree", "hooks", "commondir", "modules", "worktrees")
PACKED, CHAIN = "packed-refs", "tmuxctl"


def _repository(folder: str) -> Git | None:
    """The repository that git would find from a folder, if it says of itself that it belongs there: a `.git` file could
    name any."""
    while True:
        dot = os.path.join(folder, ".git")
        if not os.path.islink(dot) and os.path.isdir(dot):
            return _with_settings(Git(folder, dot, dot))
        if not os.path.islink(dot) and os.path.isfile(dot):
            found = _named(folder, dot)
            return _with_settings(found) if found else None
        if folder == "/":
            return None
        folder = os.path.dirname(folder)


def _named(top: str, dot: str) -> Git | None:
    """The repository that a `.git` file names: of a worktree if that is registered there, of a submodule if it says so."""
    folder = os.path.realpath(os.path.join(top, _text(dot).removeprefix("gitdir:").strip()))
    if os.path.basename(os.path.dirname(folder)) == "worktrees":
        back = _text(os.path.join(folder, "gitdir")).strip()
        common = os.path.dirname(os.path.dirname(folder))
        return Git(top, folder, common) if back and os.path.realpath(back) == dot else None
    back = "".join(re.findall(r'(?m)^\s*worktree\s*=\s*"?(.*?)"?\s*$', _text(os.path.join(folder, "config")))[-1:])
    return Git(top, folder, folder) if back and os.path.realpath(os.path.join(folder, back)) == top else None


def _text(path: str) -> str:
    try:
        with open(path, errors="surrogateescape") as file:
            return file.read(1 << 16)
    except OSError:
        return ""


def _with_settings(git: Git) -> Git:
    """The repository with its settings as git reads them; that runs nothing of the repository's."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = [_trusted("git"), "-C", git.top, "config", "--list", "--show-origin", "-z"]
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return git
    words = os.fsdecode(done.stdout).split("\0")
    pairs = zip(words[::2], (setting.partition("\n") for setting in words[1::2]), strict=False)
    return git._replace(settings=tuple((file.removeprefix("file:"), key, value) for file, (key, _, value) in pairs))


def _author(git: Git | None) -> Mapping[str, str]:
    """Who commits: the file that says so is hidden."""
    known = {key: value for _, key, value in git.settings} if git else {}
    wanted = ((who, what) for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL"))
    return {
        f"GIT_{who}_{what}": known[f"user.{what.lower()}"] for who, what in wanted if f"user.{what.lower()}" in known
    }


# the environment


def _environment(spec: SessionSpec, view: View) -> tuple[dict[str, str], dict[str, str]]:
    """The variables, without those that name what is hidden; and those that are set inside only."""
    env = {name: value for name, value in spec.env.items() if not POINTERS.fullmatch(name) or _of(view, value) in GIVEN}
    inside = {name: env.pop(name) for name in list(env) if LOADED.fullmatch(name)}
    if "PATH" in env:
        entries = env["PATH"].split(":")
        safe = [entry for entry in entries if os.path.isabs(entry) and not _planted(view, entry)]
        if safe != entries:
            inside["PATH"], env["PATH"] = env["PATH"], ":".join(safe) or os.defpath
    return env, inside


def _planted(view: View, folder: str) -> bool:
    """True for a folder into which the program could put one that is then run outside."""
    return any(_of(view, path) in GIVEN for path in (os.path.normpath(folder), os.path.realpath(folder)))


def _trusted(name: str) -> str:
    """A program of the machine's own; "" if there is none."""
    return shutil.which(name, path=SYSTEM) or ""


# Linux


START = """\
filter=$(command -p mktemp /tmp/tmuxctl.XXXXXXXXXX) && printf "$1" >"$filter" && exec 8<"$filter" && command -p rm -f "$filter" ||
    { echo 'tmuxctl: the filter of the sandbox cannot be written' >&2; exit 125; }
shift
trap '' HUP INT QUIT TERM
exec "$@" 9<&8 8<&-"""
"""Becomes bubblewrap, with the filter open as its ninth file and no file left behind.

bubblewrap itself is in the terminal's foreground with the program, and the first Ctrl-C would end it and all (measured):
it is told to ignore what ends programs, and the program is started with these signals as they were.
"""

SIGNALS = ("HUP", "INT", "QUIT", "TERM")
RESTORING = (
    ("/usr/bin/env", f"--default-signal={','.join(SIGNALS)}"),
    ("/usr/bin/perl", "-e", f"$SIG{{$_}} = 'DEFAULT' for qw({' '.join(SIGNALS)}); exec {{ $ARGV[0] }} @ARGV; exit 127"),
)
AS_IT_IS = ("/bin/sh", "-c", 'exec "$@"', "sh")
"""For a program with `=` in its name, which env would take for a variable."""

FLAGS = (
    "--ro-bind / / --dev /dev --proc /proc --ro-bind /proc/sys /proc/sys --unshare-pid --unshare-ipc --unshare-uts "
    "--unshare-cgroup-try --die-with-parent --cap-drop ALL --seccomp 9 --unsetenv TMUX --unsetenv TMUX_PANE"
)


def _bubblewrap(
    spec: SessionSpec, view: View, git: Git | None, level: str, inside: Mapping[str, str]
) -> tuple[str, ...]:
    words = [*FLAGS.split(), *(() if level == NETWORK else ("--unshare-net",))]
    for path in sorted(view, key=lambda path: path.split("/")):
        words += view[path].words(path)
    if git and git.linked and view.get(git.common) is Access.PRIVATE:
        words += git.references()
    words += ["--chdir", os.path.realpath(spec.cwd)]
    words += [word for name, value in inside.items() for word in ("--setenv", name, value)]
    words += ["--", *_restoring(), *(AS_IT_IS if "=" in spec.argv[0] else ())]
    octal = "".join(f"\\{byte:03o}" for byte in _filter(os.uname().machine))
    start = f"{START} {NO_DATA}</dev/null" if Access.EMPTY in view.values() else START
    return ("/bin/sh", "-c", start, "sh", octal, _trusted("bwrap"), *words, *spec.argv)


def _restoring() -> tuple[str, ...]:
    """What starts a program with the signals that were ignored as they were before, of the ways that work here."""
    for command in RESTORING:
        with suppress(OSError):
            if not subprocess.run(
                [*command, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False
            ).returncode:
                return command
    return ()


# the filter of system calls: seccomp(2), in classic BPF


class Machine(NamedTuple):
    """A processor as the kernel calls it, its system calls by number, and where numbers of another kind begin."""

    audit: int
    calls: Mapping[str, int]
    foreign: int


REFUSED = {
    **dict.fromkeys(("add_key", "request_key", "keyctl"), errno.EPERM),  # keys are shared by all of a user's programs
    **dict.fromkeys(("bpf", "userfaultfd", "perf_event_open", "open_by_handle_at", "setns"), errno.EPERM),
    # what a filter cannot look into, as a kernel answers that does not have it: programs then use the older ones
    **dict.fromkeys(("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"), errno.ENOSYS),
}
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
CLONE_NEWUSER = 0x10000000
FAMILIES = (1, 2, 10, 16)
"""Of sockets: unix, inet, inet6 and netlink. A namespace does not keep all others (vsock) on this machine."""

ALIKE = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435}
MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        ALIKE
        | {"ioctl": 16, "socket": 41, "clone": 56, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272}
        | {"perf_event_open": 298, "open_by_handle_at": 304, "setns": 308, "bpf": 321, "userfaultfd": 323},
        0x40000000,
    ),
    "aarch64": Machine(
        0xC00000B7,
        ALIKE
        | {"ioctl": 29, "unshare": 97, "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220}
        | {"perf_event_open": 241, "open_by_handle_at": 265, "setns": 268, "bpf": 280, "userfaultfd": 282},
        0xFFFFFFFF,
    ),
}

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24
"""Offsets in seccomp_data; of an argument the low half, which is all that the kernel looks at in these."""
ALLOW, FAIL, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def _filter(machine: str) -> bytes:
    """The program that the kernel runs at every system call."""
    kind = MACHINES[machine]
    code = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, kind.audit), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    code += [(AT_LEAST, 0, 1, kind.foreign), (RETURN, 0, 0, FAIL | errno.ENOSYS)]
    for name, error in REFUSED.items():
        code += [(EQUAL, 0, 1, kind.calls[name]), (RETURN, 0, 0, FAIL | error)]
    for name in ("clone", "unshare"):
        code += _judged(kind.calls[name], FIRST, ANY_BIT, (CLONE_NEWUSER,), FAIL | errno.EPERM, ALLOW)
    code += _judged(kind.calls["ioctl"], SECOND, EQUAL, (TIOCSTI, TIOCLINUX), FAIL | errno.EPERM, ALLOW)
    code += _judged(kind.calls["socket"], FIRST, EQUAL, FAMILIES, ALLOW, FAIL | errno.EAFNOSUPPORT)
    return b"".join(struct.pack("<HBBI", *one) for one in [*code, (RETURN, 0, 0, ALLOW)])


def _judged(
    number: int, argument: int, compare: int, values: tuple[int, ...], match: int, otherwise: int
) -> list[tuple[int, int, int, int]]:
    """One system call by the value of an argument."""
    code = [(LOAD, 0, 0, argument)]
    for value in values:
        code += [(compare, 0, 1, value), (RETURN, 0, 0, match)]
    code.append((RETURN, 0, 0, otherwise))
    return [(EQUAL, 0, len(code), number), *code]


# macOS


SANDBOX_EXEC = "/usr/bin/sandbox-exec"

PROFILE = """\
(version 1)
(allow default)
(deny file-write*)
(allow file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (regex #"^/dev/ttys[0-9]+$"))
(deny signal)
(allow signal (target same-sandbox))
(deny appleevent-send)
(deny lsopen)
"""
"""What holds at every level; of several rules that fit the last one counts."""


def _sandbox_exec(spec: SessionSpec, view: View, level: str, inside: Mapping[str, str]) -> tuple[str, ...]:
    variables = tuple(f"{name}={value}" for name, value in inside.items())
    return (
        SANDBOX_EXEC,
        "-p",
        _profile(view, level),
        "/usr/bin/env",
        "-u",
        "TMUX",
        "-u",
        "TMUX_PANE",
        *variables,
        *spec.argv,
    )


def _profile(view: View, level: str) -> str:
    """The view as rules. A hidden folder cannot be read at all there, where on Linux the program has an empty one."""
    lines = ["(deny network*)"]
    if level == NETWORK:
        lines = ["(deny network* (remote unix-socket))", '(allow network* (literal "/private/var/run/mDNSResponder"))']
    for path in sorted(view, key=lambda path: path.split("/")):
        place = f'(subpath "{_quoted(path)}")'
        if view[path] in GIVEN:
            lines += [f"(allow file-read* file-write* {place})", f"(allow network* (remote unix-socket {place}))"]
        elif _hidden(view, path):
            lines.append(f"(deny file-read* file-write* {place})")
        else:
            lines += [f"(allow file-read* {place})", f"(deny file-write* {place})"]
    ways = sorted({way for path in view if not _hidden(view, path) for way in _ways(path)})
    lines += [f'(allow file-read-metadata (literal "{_quoted(way)}"))' for way in ways]
    return PROFILE + "\n".join(lines) + "\n"


def _ways(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _quoted(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')
