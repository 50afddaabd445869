rm -f '/tmp/tc-recorded/state/tmuxctl/t/sessions/25c45e82-94dd-4f05-a249-7e8facfcc4c2'/launch.sh
(umask 077; echo $$ >'/tmp/tc-recorded/state/tmuxctl/t/sessions/25c45e82-94dd-4f05-a249-7e8facfcc4c2'/pid)
{ tree= own=
while IFS=: read -r number names path; do [ "$number" = 0 ] && own=$path; done </proc/self/cgroup
while read -r id parent device root point rest; do
    case $rest in *' - cgroup2 '*) [ "$root" != / ] || tree=$point ;; esac
done </proc/self/mountinfo
[ -n "$tree" ] && [ -w "$tree$own" ] && mkdir -p -m 755 "$tree$own/tmuxctl-25c45e82-94dd-4f05-a249-7e8facfcc4c2" && echo $$ >"$tree$own/tmuxctl-25c45e82-94dd-4f05-a249-7e8facfcc4c2/cgroup.procs" &&
    (umask 077; echo "$tree$own/tmuxctl-25c45e82-94dd-4f05-a249-7e8facfcc4c2" >'/tmp/tc-recorded/state/tmuxctl/t/sessions/25c45e82-94dd-4f05-a249-7e8facfcc4c2'/cgroup)
unset tree own number names path id parent device root point rest
} 2>/dev/null
n=0
while [ "$(stty size 2>/dev/null)" != '30 100' ] && [ $n -lt 50 ]; do sleep 0.02; n=$((n+1)); done
cd '/tmp/tc-recorded' || exit 126
unset n OLDPWD
export TERM='tmux-256color'
export COLORTERM='truecolor'
export XDG_STATE_HOME='/tmp/tc-recorded/state'
export HOME='/tmp/tc-recorded'
export TMUX_TMPDIR='/tmp/tc-recorded'
export TMPDIR='/tmp/tc-recorded'
export PATH='/usr/local/bin:/usr/bin:/bin'
export SHELL='/bin/sh'
export LANG='C.UTF-8'
export PS1='$ '
export TMUXCTL_SESSION='25c45e82-94dd-4f05-a249-7e8facfcc4c2'
export TMUXCTL_EVENTS='/tmp/tc-recorded/state/tmuxctl/t/sessions/25c45e82-94dd-4f05-a249-7e8facfcc4c2/events'
[ -e /usr/share/terminfo/t/tmux-256color ] || [ -e /lib/terminfo/t/tmux-256color ] || command -p infocmp tmux-256color >/dev/null 2>&1 || TERM=screen-256color
ulimit -S -n 20000 2>/dev/null
command -v './agent.py' >/dev/null 2>&1 || { printf 'tmuxctl: %s: not found\n' './agent.py' >&2; exit 127; }
exec './agent.py' '--hook' '/tmp/tc-recorded/state/tmuxctl/t/sessions/25c45e82-94dd-4f05-a249-7e8facfcc4c2/events/hook'
