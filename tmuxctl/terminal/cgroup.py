"""A control group for each session, where the kernel lets us make one: what is in it cannot leave, so all of it can be found
and ended at once (cgroups(7), version 2: `cgroup.procs`, `cgroup.kill`).

Nothing of ours stays for it: the launcher makes the group below the tmux server's own and enters it. That succeeds as root
and in a group delegated to the user, as in a systemd user service; elsewhere sessions go without.
"""

from __future__ import annotations

from contextlib import suppress

from tmuxctl.errors import TmuxctlError
from tmuxctl.transport.base import Transport, shell_word

FILE = "cgroup"
"""The file of a session's folder that names its group's absolute folder."""

PREFIX = "tmuxctl-"

FIND = r"""
tree= own=
while IFS=: read -r number names path; do [ "$number" = 0 ] && own=$path; done </proc/self/cgroup
while read -r id parent device root point rest; do
    case $rest in *' - cgroup2 '*) [ "$root" != / ] || tree=$point ;; esac
done </proc/self/mountinfo
"""
"""Sets `tree`, where version 2 is mounted, and `own`, the group of who asks, in it."""

ENTER = """{ FIND
[ -n "$tree" ] && [ -w "$tree$own" ] && mkdir -m 755 "$tree$own/GROUP" && echo $$ >"$tree$own/GROUP/cgroup.procs" &&
    (umask 077; echo "$tree$own/GROUP" >FOLDER/cgroup)
unset tree own number names path id parent device root point rest
} 2>/dev/null"""

KILL = r"""
case $1 in */tmuxctl-*) ;; *) exit 0 ;; esac
if [ -e "$1/cgroup.kill" ]; then echo 1 >"$1/cgroup.kill"
else find "$1" -name cgroup.procs -exec cat {} + | while read -r pid; do kill -KILL "$pid"; done
fi 2>/dev/null
"""

MEMBERS = r"""find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null; :"""

REMOVE = r"""
case $1 in */tmuxctl-*) ;; *) exit 0 ;; esac
tries=0
until find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || [ ! -d "$1" ] || [ $tries -ge 50 ]; do
    tries=$((tries + 1)); sleep 0.01
done
"""


def enter(folder: str, session_id: str) -> str:
    """Lines for the launcher: make the session's group, go into it and write down where it is, if all that can be done."""
    words = {"FIND": FIND.strip(), "GROUP": PREFIX + session_id, "FOLDER": shell_word(folder)}
    text = ENTER
    for name, value in words.items():
        text = text.replace(name, value)
    return text


def path(transport: Transport, folder: str, session_id: str) -> str:
    """The absolute folder of a session's group, empty if it has none."""
    with suppress(TmuxctlError, OSError):
        found = transport.read(f"{folder}/{FILE}", 0, 4096).decode(errors="replace").strip()
        if found.startswith("/") and found.endswith(f"/{PREFIX}{session_id}"):
            return found
    return ""


def members(transport: Transport, folder: str, session_id: str) -> list[int]:
    """The pids of all in a session's group, and in groups that were made inside."""
    group = path(transport, folder, session_id)
    if not group:
        return []
    return [int(word) for word in transport.shell(MEMBERS, group)[1].decode().split() if word.isdecimal()]


def kill(transport: Transport, group: str) -> None:
    """End all in a group at once, so that nothing in it can start anything meanwhile."""
    transport.shell(KILL, group)


def remove(transport: Transport, group: str) -> None:
    """Remove an empty group; what has just ended may keep it busy for a moment."""
    transport.shell(REMOVE, group)
