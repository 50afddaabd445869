"""Control groups of version 2 (cgroups(7)), as lines of a POSIX script: where this process is, and out of a session's."""

from __future__ import annotations

PREFIX = "tmuxctl-"
"""What the name of a session's group begins with; its id follows."""

SESSION = PREFIX + "-".join("?" * length for length in (8, 4, 4, 4, 12))
"""The name of a session's group, as a pattern of the shell: that of a unit, as tmuxctl-NAME.service, is no such name."""

FIND = r"""
tree= own=
while IFS=: read -r number names path; do [ "$number" = 0 ] && own=$path; done </proc/self/cgroup
for point in /sys/fs/cgroup /sys/fs/cgroup/unified; do
    [ -n "$tree" ] || [ ! -e "$point/cgroup.controllers" ] || tree=$point
done
[ -n "$tree" ] || while read -r id parent device root point rest; do
    case $rest in *' - cgroup2 '*) [ "$root" != / ] || tree=$point ;; esac
done </proc/self/mountinfo
"""
"""Sets `tree`, where version 2 is mounted, and `own`, the asking process's group in it.

Where systemd mounts it is looked at first: a shell reads mountinfo byte by byte, 4 ms for forty mounts. If only a part of the tree
is mounted there, `own` is not found in it, and there is no such group.
"""

LEAVE = rf"""{{ {FIND.strip()}
case $own in */{SESSION}*) [ -z "$tree" ] || echo $$ >"$tree${{own%%/{SESSION}*}}/cgroup.procs" ;; esac
}} 2>/dev/null; """
"""Leaves the group of a session: a server that is started from inside one must not end with it."""
