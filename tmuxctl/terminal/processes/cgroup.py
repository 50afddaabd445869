"""A control group for each session, where the kernel lets us make one: what is in it cannot leave, so all of it can be found
and ended at once (cgroups(7), version 2: `cgroup.procs`, `cgroup.kill`).

Nothing of ours stays for it: the launcher makes the group below the tmux server's own and enters it. That succeeds as root
and in a group delegated to the user, as in a systemd user service; elsewhere sessions go without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from tmuxctl.errors import TmuxctlError
from tmuxctl.terminal.tmux import layout
from tmuxctl.transport.base import Transport, shell_word
from tmuxctl.transport.groups import FIND, PREFIX

ENTER = """{ FIND
[ -n "$tree" ] && [ -n "$own" ] && [ -w "$tree$own" ] && (umask 077; echo "$tree$own/GROUP" >FOLDER/cgroup) && {
    mkdir -p -m 755 "$tree$own/GROUP" && echo $$ >"$tree$own/GROUP/cgroup.procs" ||
        { rm -f FOLDER/cgroup; rmdir "$tree$own/GROUP"; }
}
unset tree own number names path id parent device root point rest
} 2>/dev/null"""

KILL = r"""
for group do
    if [ -e "$group/cgroup.kill" ]; then echo 1 >"$group/cgroup.kill"
    else find "$group" -name cgroup.procs -exec cat {} + | while read -r pid; do [ "$pid" -eq 0 ] || kill -KILL "$pid"; done; fi
done 2>/dev/null
"""

MEMBERS = r"""
for group do
    printf '%s\n' "$group"
    while read -r pid; do printf '%s\n' "$pid"; done <"$group/cgroup.procs"
    for inside in "$group"/*/; do
        [ ! -d "$inside" ] || find "$inside" -name cgroup.procs -exec cat {} +
    done
done 2>/dev/null; :
"""
"""The pids in each group, and in groups that were made inside, below the group's line."""

REMOVE = r"""
most=$1; shift
for group do
    tries=0
    until rmdir "$group" || [ ! -d "$group" ] || [ $tries -ge "$most" ]; do
        find "$group" -depth -mindepth 1 -type d -exec rmdir {} +
        tries=$((tries + 1)); sleep 0.01
    done
done 2>/dev/null; :
"""


def enter_script(folder: str, session_id: str) -> str:
    """Lines for the launcher: write down where the session's group will be, make it and go into it, if all that can be done:
    whoever ends the launcher in between knows what to remove."""
    words = {"FIND": FIND.strip(), "GROUP": PREFIX + session_id, "FOLDER": shell_word(folder)}
    text = ENTER
    for name, value in words.items():
        text = text.replace(name, value)
    return text


def find_groups(transport: Transport, folders: Mapping[str, str]) -> dict[str, str]:
    """The absolute folders of sessions' groups, by the id of the session; those that have one. `folders` are the sessions'."""
    groups = {}
    for session_id, folder in folders.items():
        if not folder:
            continue
        with suppress(TmuxctlError, OSError):
            path = transport.read(f"{folder}/{layout.CGROUP}", 0, 4096).decode(errors="replace").strip()
            if path.startswith("/") and path.endswith(f"/{PREFIX}{session_id}"):
                groups[session_id] = path
    return groups


def list_members(transport: Transport, folders: Mapping[str, str]) -> dict[str, list[int]]:
    """The pids of all in sessions' groups, by the id of the session; those that have one."""
    groups = {path: session_id for session_id, path in find_groups(transport, folders).items()}
    pids: dict[str, list[int]] = {session_id: [] for session_id in groups.values()}
    session_id = ""
    for line in transport.shell(MEMBERS, *groups)[1].decode().splitlines() if groups else ():
        if line in groups:
            session_id = groups[line]
        elif line.isdecimal() and session_id:
            pids[session_id].append(int(line))
    return pids


def kill_groups(transport: Transport, groups: Sequence[str]) -> None:
    """End all in these groups at once, so that nothing in them can start anything meanwhile."""
    if groups:
        transport.shell(KILL, *groups)


def remove_groups(transport: Transport, groups: Sequence[str], *, tries: int = 50) -> None:
    """Remove empty groups; what has just ended may keep one busy for a moment, so it is tried again every 10 ms."""
    if groups:
        transport.shell(REMOVE, str(tries), *groups)
