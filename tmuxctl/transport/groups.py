"""Control groups of version 2 (cgroups(7)), as lines of a POSIX script: where this process is, and out of a session's."""

from __future__ import annotations

PREFIX = "tmuxctl-"
"""What the name of a session's group begins with."""

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
case $own in */{PREFIX}*) [ -z "$tree" ] || echo $$ >"$tree${{own%%/{PREFIX}*}}/cgroup.procs" ;; esac
}} 2>/dev/null; """
"""Leaves the group of a session: a server that is started from inside one must not end with it."""
