"""Ends a session's program when its lifetime is over, or once it has done nothing for a while.

tmux keeps the time: its timer starts a POSIX script in the session's folder, and nothing of ours stays between two looks.
"""

from __future__ import annotations

import math

from tmuxctl.model import SessionSpec
from tmuxctl.terminal.tmux import layout, options
from tmuxctl.terminal.tmux.pane_io import session_target
from tmuxctl.transport.base import Command, shell_word

LOOKS = 4
"""How often in a row a session has to be found idle; the looks are an even part of the time apart."""

CLOSEST = 1.0
"""Seconds between two looks at least: tmux tells the time of a session's last output in whole seconds."""

GRACE = 3.0
"""Seconds between TERM and KILL where nothing else was asked for."""

AGAIN = f'sh "$(printf "#{{{options.FOLDER}}}/{layout.EXPIRE}")"'
"""The command that a timer runs; the option `@tmuxctl_folder` holds what `journal.encode_path` makes of the folder."""

# A timer belongs to one life of a session: to its pane and first process, which tmux tells when the timer is set. tmux
# itself says whether that process is still there, so no pid is trusted that might be another's by now. `@tmuxctl_ended`
# tells why the program was ended, before it is; the file `ended` tells it when tmux is gone.
# - Processes are known by their pid and when they began. Rows are `PID PARENT HOME STATE CPU BEGAN`: HOME is the session
#   of the terminal (its name, where only ps tells), CPU hundredths of a second, children that were waited for included.
# - Never the server, which may carry the marker of a session it was started in by hand, nor all that it runs; never the
#   process that all descend from.
SCRIPT = r"""
cd "${0%/*}" || exit 0
exec </dev/null >/dev/null 2>&1
LC_ALL=C
export LC_ALL
umask 077
why=$1 pane=$2 pid=$3 quiet=${4:-0} before=$5 spent=${6:-0}
server=${TMUX%,*} server=${server##*,} tmux=/proc/$server/exe
[ -x "$tmux" ] || tmux=tmux

table() {
	if [ -r /proc/self/stat ]; then
		grep -s '' /dev/null /proc/[0-9]*/stat | awk '{
			pid = substr($0, 7)
			sub(/\/.*/, "", pid)
			if (match($0, /.*\) /) && split(substr($0, RLENGTH + 1), f, " ") > 19)
				print pid, f[2], f[4], f[1], f[12] + f[13] + f[14] + f[15], f[20]
		}'
	else
		ps -A -o pid= -o ppid= -o tty= -o state= -o time= -o lstart= | awk '{
			n = split($5, t, /[-:]/)
			cpu = int(100 * (86400 * t[n - 3] + 3600 * t[n - 2] + 60 * t[n - 1] + t[n]))
			print $1, $2, $3, $4, cpu, $6 "_" $7 "_" $8 "_" $9 "_" $10
		}'
	fi
}

marked() {
	if printf 'a\0b\0' | grep -qzxF -e b; then
		grep -slzxF -e "TMUXCTL_SESSION=$id" /proc/[0-9]*/environ
	else
		for file in /proc/[0-9]*/environ; do
			tr '\0' '\n' <"$file" | grep -qxF -e "TMUXCTL_SESSION=$id" && echo "$file"
		done
	fi | sed 's|/proc/\([0-9]*\).*|marked \1|'
	[ -z "$group" ] || members | sed 's/^/marked /'
}

members() { find "$group" -name cgroup.procs -exec cat {} +; }

# The living processes of the session, as `PID BEGAN CPU`: the tree below the first one, its terminal's session, what
# carries the marker or is in the cgroup, what was seen before, and what descends from any of these.
ours() {
	{ echo "$seen" | sed 's/^/seen /'; marked; table; } | awk -v root="$pid" -v server="$server" -v me=$$ '
		$1 == "seen" { if ($2 == root) known = $3; seen[$2 " " $3]; next }
		$1 == "marked" { mine[$2]; next }
		{ parent[$1] = $2; home[$1] = $3; state[$1] = $4; cpu[$1] = $5; began[$1] = $6 }
		END {
			there = (root in parent) && (known == "" || began[root] == known)
			for (p in parent)
				if (((p " " began[p]) in seen) || there && (p == root || home[p] == home[root] && home[p] !~ /^[?0-]/))
					mine[p]
			for (p in parent) {
				if (p == me || state[p] ~ /^[ZX]/)
					continue
				n = 0
				for (q = p; (q in parent) && q != 1 && q != server && n++ < 1000; q = parent[q])
					if (q in mine) {
						print p, began[p], cpu[p]
						break
					}
			}
		}'
}

# to those in $rows
send() {
	pids=$(echo "$rows" | while read -r one rest; do echo "$one"; done)
	for signal; do kill -s "$signal" $pids; done
}

# tmux 3.2a dies of a time that belongs to no session
times='#{?session_name,#{window_activity} #{session_activity},0}'
about='#{@@id} #{pane_pid} #{pane_dead}#{@@ended}'
facts=$("$tmux" display-message -p -t "$pane" "$about $times #{=200:@@input}")
case $facts in "$id $pid 0 "*) ;; *) exit 0 ;; esac
read -r group <cgroup || group=
case $group in /*/"tmuxctl-$id") ;; *) group= ;; esac
seen=

if [ "$why" = idle ]; then
	mark=$(echo "$facts" | cksum) mark=${mark%% *}
	cpu=$(ours | awk '{ all += $3 } END { printf "%.0f", all }')
	used=$((cpu - spent))
	if [ "$mark" = "$before" ] && [ "${used#-}" -le "$noise" ]; then quiet=$((quiet + 1)); else quiet=0; fi
	if [ "$quiet" -lt "$looks" ]; then
		"$tmux" run-shell -b -d "$step" -t "$pane" "$again idle #{pane_id} $pid $quiet $mark $cpu"
		exit 0
	fi
fi

echo "$why" >ended
"$tmux" set-option -t "$pane" @@ended "$why"
rows=$(ours) seen=$rows
send TERM CONT
tenths=0 late=HUP
while rows=$(ours); [ -n "$rows" ] && [ $tenths -lt "$grace" ]; do
	# an interactive shell ignores TERM and ends on HUP; what ends in an orderly way on TERM is given half of the time
	if [ $((2 * tenths)) -ge "$grace" ]; then send $late; late=; fi
	if [ $tenths -lt 10 ]; then sleep 0.1; tenths=$((tenths + 1)); else sleep 1; tenths=$((tenths + 10)); fi
done
tries=0
while [ -n "$rows" ] && [ $tries -lt 30 ]; do
	seen="$seen
$rows"
	[ -z "$group" ] || echo 1 >"$group/cgroup.kill"
	send KILL
	tries=$((tries + 1))
	sleep 0.1
	rows=$(ours)
done
exit 0
"""


def make_files(spec: SessionSpec, session_id: str) -> dict[str, bytes]:
    """The script for the session's folder, if something limits its time."""
    if not _read_limits(spec):
        return {}
    step, looks = _divide_idle_time(spec.notes.get("idle") or 0.0)
    values = {
        "id": session_id,
        "grace": math.ceil(10 * spec.notes.get("grace", GRACE)),
        "step": f"{step:.3f}",
        "looks": looks,
        # one hundredth of one processor, and what rounding makes of nothing
        "noise": math.ceil(step) + 1,
        "again": shell_word(AGAIN),
    }
    return {
        layout.EXPIRE: (
            "".join(f"{name}={value}\n" for name, value in values.items()) + options.fill_option_names(SCRIPT)
        ).encode()
    }


def make_timers(spec: SessionSpec) -> list[Command]:
    """The tmux commands that set the timers, once the session has its options."""
    return [
        ("run-shell", "-b", "-d", seconds, "-t", session_target(spec.name), f"{AGAIN} {why} #{{pane_id}} #{{pane_pid}}")
        for why, seconds in _read_limits(spec).items()
    ]


def _read_limits(spec: SessionSpec) -> dict[str, str]:
    """For each limit that the notes set, its name and the seconds until its first timer."""
    limits = {}
    if lifetime := spec.notes.get("lifetime"):
        limits["lifetime"] = str(lifetime)
    if idle := spec.notes.get("idle"):
        limits["idle"] = f"{_divide_idle_time(idle)[0]:.3f}"
    return limits


def _divide_idle_time(idle: float) -> tuple[float, int]:
    """The seconds between two looks, and how many in a row make up that time."""
    step = max(CLOSEST, idle / LOOKS)
    return step, math.ceil(idle / step)
