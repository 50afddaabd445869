rm -f '/tmp/tc-recorded/state/tmuxctl/t/sessions/9eee6c72-bbb1-42e1-b0bd-c990691a12b6'/launch.sh
(umask 077; echo $$ >'/tmp/tc-recorded/state/tmuxctl/t/sessions/9eee6c72-bbb1-42e1-b0bd-c990691a12b6'/pid)
{ tree= own=
while IFS=: read -r number names path; do [ "$number" = 0 ] && own=$path; done </proc/self/cgroup
while read -r id parent device root point rest; do
    case $rest in *' - cgroup2 '*) [ "$root" != / ] || tree=$point ;; esac
done </proc/self/mountinfo
[ -n "$tree" ] && [ -w "$tree$own" ] && mkdir -p -m 755 "$tree$own/tmuxctl-9eee6c72-bbb1-42e1-b0bd-c990691a12b6" && echo $$ >"$tree$own/tmuxctl-9eee6c72-bbb1-42e1-b0bd-c990691a12b6/cgroup.procs" &&
    (umask 077; echo "$tree$own/tmuxctl-9eee6c72-bbb1-42e1-b0bd-c990691a12b6" >'/tmp/tc-recorded/state/tmuxctl/t/sessions/9eee6c72-bbb1-42e1-b0bd-c990691a12b6'/cgroup)
unset tree own number names path id parent device root point rest
} 2>/dev/null
n=0
while [ "$(stty size 2>/dev/null)" != '40 120' ] && [ $n -lt 50 ]; do sleep 0.02; n=$((n+1)); done
cd '/tmp/tc-recorded/box' || exit 126
unset n OLDPWD
export TERM='tmux-256color'
export COLORTERM='truecolor'
export XDG_STATE_HOME='/tmp/tc-recorded/state'
export HOME='/tmp/tc-recorded'
export PATH='/usr/local/bin:/usr/bin:/bin'
export SHELL='/bin/sh'
export LANG='C.UTF-8'
export TMUXCTL_SESSION='9eee6c72-bbb1-42e1-b0bd-c990691a12b6'
export TMUXCTL_EVENTS='/tmp/tc-recorded/state/tmuxctl/t/sessions/9eee6c72-bbb1-42e1-b0bd-c990691a12b6/events'
[ -e /usr/share/terminfo/t/tmux-256color ] || [ -e /lib/terminfo/t/tmux-256color ] || command -p infocmp tmux-256color >/dev/null 2>&1 || TERM=screen-256color
ulimit -S -n 20000 2>/dev/null
command -v '/bin/sh' >/dev/null 2>&1 || { printf 'tmuxctl: %s: not found\n' '/bin/sh' >&2; exit 127; }
exec '/bin/sh' '-c' 'filter=$(command -p mktemp /tmp/tmuxctl.XXXXXXXXXX) && printf "$1" >"$filter" && exec 8<"$filter" && command -p rm -f "$filter" ||
    { echo '\''tmuxctl: the filter of the sandbox cannot be written'\'' >&2; exit 125; }
shift
trap '\'''\'' HUP INT QUIT TERM
exec "$@" 9<&8 8<&-' 'sh' '\040\000\000\000\004\000\000\000\025\000\001\000\076\000\000\300\006\000\000\000\000\000\000\200\040\000\000\000\000\000\000\000\065\000\000\001\000\000\000\100\006\000\000\000\046\000\005\000\025\000\000\001\370\000\000\000\006\000\000\000\001\000\005\000\025\000\000\001\371\000\000\000\006\000\000\000\001\000\005\000\025\000\000\001\372\000\000\000\006\000\000\000\001\000\005\000\025\000\000\001\101\001\000\000\006\000\000\000\001\000\005\000\025\000\000\001\103\001\000\000\006\000\000\000\001\000\005\000\025\000\000\001\052\001\000\000\006\000\000\000\001\000\005\000\025\000\000\001\060\001\000\000\006\000\000\000\001\000\005\000\025\000\000\001\064\001\000\000\006\000\000\000\001\000\005\000\025\000\000\001\263\001\000\000\006\000\000\000\046\000\005\000\025\000\000\001\251\001\000\000\006\000\000\000\046\000\005\000\025\000\000\001\252\001\000\000\006\000\000\000\046\000\005\000\025\000\000\001\253\001\000\000\006\000\000\000\046\000\005\000\025\000\000\004\070\000\000\000\040\000\000\000\020\000\000\000\105\000\000\001\000\000\000\020\006\000\000\000\001\000\005\000\006\000\000\000\000\000\377\177\025\000\000\004\020\001\000\000\040\000\000\000\020\000\000\000\105\000\000\001\000\000\000\020\006\000\000\000\001\000\005\000\006\000\000\000\000\000\377\177\025\000\000\006\020\000\000\000\040\000\000\000\030\000\000\000\025\000\000\001\022\124\000\000\006\000\000\000\001\000\005\000\025\000\000\001\034\124\000\000\006\000\000\000\001\000\005\000\006\000\000\000\000\000\377\177\025\000\000\012\051\000\000\000\040\000\000\000\020\000\000\000\025\000\000\001\001\000\000\000\006\000\000\000\000\000\377\177\025\000\000\001\002\000\000\000\006\000\000\000\000\000\377\177\025\000\000\001\012\000\000\000\006\000\000\000\000\000\377\177\025\000\000\001\020\000\000\000\006\000\000\000\000\000\377\177\006\000\000\000\141\000\005\000\006\000\000\000\000\000\377\177' '/usr/bin/bwrap' '--ro-bind' '/' '/' '--dev' '/dev' '--proc' '/proc' '--ro-bind' '/proc/sys' '/proc/sys' '--unshare-pid' '--unshare-ipc' '--unshare-uts' '--unshare-cgroup-try' '--die-with-parent' '--cap-drop' 'ALL' '--seccomp' '9' '--unsetenv' 'TMUX' '--unsetenv' 'TMUX_PANE' '--unshare-net' '--tmpfs' '/dev/shm' '--ro-bind' '/dev/null' '/etc/gshadow' '--ro-bind' '/dev/null' '/etc/gshadow-' '--ro-bind' '/dev/null' '/etc/shadow' '--ro-bind' '/dev/null' '/etc/shadow-' '--tmpfs' '/home' '--tmpfs' '/root' '--tmpfs' '/run' '--tmpfs' '/sys/kernel/debug' '--tmpfs' '/sys/kernel/tracing' '--tmpfs' '/tmp' '--tmpfs' '/tmp/tc-recorded' '--bind' '/tmp/tc-recorded/box' '/tmp/tc-recorded/box' '--tmpfs' '/tmp/tc-recorded/state' '--tmpfs' '/tmp/tc-recorded/state/tmuxctl' '--tmpfs' '/tmp/tc-recorded/state/tmuxctl/t' '--bind-try' '/tmp/tc-recorded/state/tmuxctl/t/sessions/9eee6c72-bbb1-42e1-b0bd-c990691a12b6/events' '/tmp/tc-recorded/state/tmuxctl/t/sessions/9eee6c72-bbb1-42e1-b0bd-c990691a12b6/events' '--ro-bind-try' '/tmp/tc-recorded/state/tmuxctl/t/sessions/9eee6c72-bbb1-42e1-b0bd-c990691a12b6/shell' '/tmp/tc-recorded/state/tmuxctl/t/sessions/9eee6c72-bbb1-42e1-b0bd-c990691a12b6/shell' '--tmpfs' '/tmp/tc-recorded/tmux-0' '--tmpfs' '/var/tmp' '--chdir' '/tmp/tc-recorded/box' '--' '/usr/bin/env' '--default-signal=HUP,INT,QUIT,TERM' 'bash' '--norc'
