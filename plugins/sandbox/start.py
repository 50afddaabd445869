"""Becomes bubblewrap for one plan, and lets the program start only where each mount is what it was to be.

It runs by itself, `python3 -I -S -c THIS PLAN PROGRAM...`, in the terminal of the session: between the moment when the view of a
program was decided and the one when bubblewrap mounts it, another program that may write in the same folder can put a link
where a folder was. bubblewrap resolves paths again, the destinations of its mounts too (measured: a link planted in these
milliseconds mounted the real home). So each source is opened here component by component, following no link, and given
as a descriptor; and inside, before the program starts, each destination is compared: that a mount stands just there, that
it is read-only where it was to be, and that it is the same device and inode.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import sys

# `typing` and `shlex` would take longer to load than the rest needs
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
ARGUMENTS, FILTER, SCRIPT = 7, 8, 9
"""The descriptors of bubblewrap's arguments, of the filter of system calls, and of what is run inside. dash closes no
descriptor above 9."""

REFUSED = 125
"""The exit status where the sandbox was not made as it was to be."""

CHECK = """\
refuse() {
    printf 'tmuxctl: %s was changed while the sandbox was made; nothing was started\\n' "$1" >&2
    exit 125
}
table=
while read -r _ _ _ _ point options _; do
    table="$table$point $options
"
done </proc/self/mountinfo
set -f
IFS='
'
mounted() {
    found=
    for line in $table; do
        case $line in "$1 "*) found=$line ;; esac
    done
    case $found in "$1 $2"*) ;; *) refuse "$1" ;; esac
}
"""
"""What runs inside: a table of mount points and options. Of several mounts at one point the last is the one that is seen.
Line by line: dash needs 50 ms to find the ends of these in one text, as it tries each pattern at each letter."""


class PlanRefused(Exception):
    """The sandbox cannot be made as it was to be."""


def main(plan: dict[str, Any], program: list[str]) -> None:
    """Replace this process by bubblewrap."""
    try:
        command, sources = make_arguments(plan, program)
    except (PlanRefused, OSError) as error:
        sys.stderr.write(f"tmuxctl: the sandbox cannot be made: {error}\n")
        sys.exit(REFUSED)
    for descriptor in sources:
        os.set_inheritable(descriptor, True)
    # bubblewrap stands in the foreground with the program, and the first Ctrl-C would end it with all that is in it
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    set_limits(plan["limits"])
    os.execv(plan["bwrap"], [plan["bwrap"], *command])


def make_arguments(plan: dict[str, Any], program: list[str]) -> tuple[list[str], list[int]]:
    """The arguments of bubblewrap and the descriptors they name; most of the arguments wait in one of those."""
    options: list[str] = list(plan["flags"])
    sources: list[int] = []
    checks: list[tuple[str, str, os.stat_result | None]] = []
    for kind, path, source, identity, optional, checked in plan["mounts"]:
        if source is None:
            options += [kind, path]
            checks.append((path, "rw", None))
            continue
        try:
            descriptor, found = open_without_links(source)
        except FileNotFoundError:
            if optional:
                continue
            raise
        if identity is not None and [found.st_dev, found.st_ino] != identity:
            raise PlanRefused(f"{ascii(source)} is not what it was")
        # above those that have a fixed number
        descriptor = move_above_fixed(descriptor)
        sources.append(descriptor)
        place = [kind + "-fd", str(descriptor)] if plan["descriptors"] else [kind, f"/proc/self/fd/{descriptor}"]
        options += [*place, path]
        writable = kind == "--bind" and not os.fstatvfs(descriptor).f_flag & os.ST_RDONLY
        if checked:
            checks.append((path, "rw" if writable else "ro", found))
    options += ["--chdir", plan["folder"], "--seccomp", str(FILTER)]
    script = CHECK + "".join(script_lines(plan, checks)) + f'exec {SCRIPT}<&-\nexec "$@"\n'
    put_at("\0".join(options).encode("utf-8", "surrogateescape"), ARGUMENTS)
    put_at(bytes.fromhex(plan["filter"]), FILTER)
    put_at(script.encode("utf-8", "surrogateescape"), SCRIPT)
    inside = ["/bin/sh", f"/proc/self/fd/{SCRIPT}", *plan["before"], *program]
    return ["--args", str(ARGUMENTS), "--", *inside], sources


def script_lines(plan: dict[str, Any], checks: list[tuple[str, str, os.stat_result | None]]) -> Iterator[str]:
    """The lines of the script that compare what is mounted (`checks`: the destination of each mount, the options it has to
    have, and what lies there, if that is known), and that set the variables which are for the program alone."""
    for path, options, _ in checks:
        yield f"mounted {quote(escape_path(path))} {options}\n"
    same = [(path, f"{found.st_dev}:{found.st_ino}") for path, _, found in checks if found is not None]
    if same:
        paths = " ".join(quote(path) for path, _ in same)
        wanted = quote("\n".join(identity for _, identity in same))
        yield f'[ "$(command -p stat -c %d:%i -- {paths})" = {wanted} ] || refuse "a folder of it"\n'
    folder = quote(plan["folder"])
    yield f'[ "$(pwd -P)" = {folder} ] || refuse {folder}\n'
    for name, carried in plan["variables"].items():
        yield f"export {name}={quote(os.environ.get(carried, ''))}; unset {carried}\n"


def quote(word: str) -> str:
    """A word as a shell takes it for one, whatever is in it."""
    return "'" + word.replace("'", "'\"'\"'") + "'"


def escape_path(path: str) -> str:
    """A path as /proc/PID/mountinfo writes it: proc(5)."""
    return "".join(f"\\{ord(letter):03o}" if letter in " \t\n\\#" else letter for letter in path)


def open_without_links(path: str) -> tuple[int, os.stat_result]:
    """A descriptor of what lies at a path, reached without following any link, and what it is."""
    descriptor = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in path.split("/"):
        if name:
            below = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
            if stat.S_ISLNK(os.fstat(descriptor).st_mode):
                raise PlanRefused(f"there is a link on the way to {ascii(path)}")
    return descriptor, os.fstat(descriptor)


def move_above_fixed(descriptor: int) -> int:
    """The same descriptor, with a number above those that are fixed."""
    import fcntl

    above = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, SCRIPT + 1)
    os.close(descriptor)
    return above


def set_limits(limits: dict[str, int]) -> None:
    """Lower limits of this process and of all that it becomes and starts."""
    if limits:
        import resource

        for name, most in limits.items():
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            resource.setrlimit(number, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def put_at(data: bytes, number: int) -> None:
    """Let the next program read these bytes at this descriptor."""
    made = os.memfd_create("tmuxctl", 0)
    os.write(made, data)
    os.lseek(made, 0, os.SEEK_SET)
    if made != number:
        os.dup2(made, number, inheritable=True)
        os.close(made)
    else:
        os.set_inheritable(made, True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
