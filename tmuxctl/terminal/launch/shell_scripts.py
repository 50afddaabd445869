"""The files that carry out one command inside a running shell, one text for each kind; shells.py fills them.

`@COMMAND@`, `@WORD@` (the quoted command, quoted again), `@PATH@` (the file itself), `@RUN@` and `@TRAPS@` (names
beside it) and `@LINE@` (what is typed so that the file is read) are quoted words, `@TOKEN@` is bare,
`@SHOW@` part of a printf format, `@INPUT@` where the command's standard input comes from (nothing: the terminal).
Every text keeps the last command's status for the command to see, leaves the command's own as `$?`, and defines nothing
that outlives it. A backslash or `builtin` before a name keeps the user's aliases and functions out of the way. `$?` in
double quotes after `eval` is expanded before any helper can change it, `&& :` keeps `set -e` from acting on it, and
stderr is put away so that `set -x` does not tell of the helpers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """The template with each `@NAME@` replaced once; a value that looks like a placeholder stays as it is."""
    return re.sub("@([A-Z]+)@", lambda found: values[found[1]], template)


# A command that is interrupted, or fails so that bash drops everything it was doing (division by zero), never comes
# back to the file: the element put into PROMPT_COMMAND, which takes itself out, is then the first to run. It also
# turns an array of one element back into the plain variable it nearly always was. The last group is read before the
# command runs: behind one with an unclosed quote bash 5.2 takes every quote for the other end of that.
# bash puts a line into its history before it carries it out, a leading blank or not where HISTCONTROL does not say so: the
# second group takes the line that read this file out again, by its number (`-d -1` is known since 5.0).
BASH = r"""{ PROMPT_COMMAND[4242]='\builtin printf "\033]133;D;%s;tmuxctl=@TOKEN@\007" "$?" >/dev/tty
\builtin unset "PROMPT_COMMAND[4242]"
case ${#PROMPT_COMMAND[@]} in
0) \builtin unset PROMPT_COMMAND ;;
1) [ -n "${PROMPT_COMMAND+x}" ] && \builtin eval "$(
    \builtin printf "unset PROMPT_COMMAND; PROMPT_COMMAND=%q" "$PROMPT_COMMAND")" ;;
esac'$(
    \builtin set -- "$?"
    \command -p rm -f -- @PATH@
    \builtin printf '@SHOW@\033]133;C;tmuxctl=@TOKEN@\007' >/dev/tty
    \builtin exit "$1"
) && :; } 2>/dev/null
{ \builtin eval '\builtin history -d "$(
    n=$(\builtin history 1)
    case $n in *@TOKEN@*)
        n=${n#"${n%%[0-9]*}"}
        \builtin printf %s "${n%%[!0-9]*}" ;;
    esac
)"
(\builtin exit '"$?)" && :; } 2>/dev/null
{ \builtin eval @COMMAND@@INPUT@
{ \builtin eval "
    \\builtin printf '\\033]133;D;$?;tmuxctl=@TOKEN@\\007' >/dev/tty
    \\builtin eval \"\${PROMPT_COMMAND[4242]+\${PROMPT_COMMAND[4242]#*/dev/tty}}\"
    \\builtin return $?"; } 2>/dev/null
}
"""

# The always-list runs whatever ends the command, an interrupt too (zshmisc(1), Complex Commands); $0 is the file's
# name while it is sourced.
ZSH = r"""{ () {
    \command -p rm -f -- @PATH@
    \builtin printf '@SHOW@\033]133;C;tmuxctl=@TOKEN@\007' >/dev/tty
    \builtin return $1
} $? ${0::=${ZSH_ARGZERO-$0}} && :; } 2>/dev/null
{ \builtin eval @COMMAND@@INPUT@; } always {
    { \builtin printf '\033]133;D;%s;tmuxctl=@TOKEN@\007' "$?" >/dev/tty; } 2>/dev/null
}
"""

# `exit` in a sourced file ends only the file (measured, 3.6), so the file leaves the text to be evaluated in a
# variable, which takes itself away. The function is an event handler for the next prompt, which comes when the command
# was broken off and never reached the last line.
FISH = r"""set -l code $status
command rm -f -- @PATH@
builtin history delete --exact --case-sensitive -- @LINE@
function __tmuxctl_@TOKEN@_
    functions --erase __tmuxctl_@TOKEN@_
    set --erase --global tmuxctl_run
    builtin printf '@SHOW@\e]133;C;tmuxctl=@TOKEN@\a' >/dev/tty
    return $argv[1]
end
function __tmuxctl_@TOKEN@ --on-event fish_prompt
    set -l code $status
    builtin printf '\e]133;D;%s;tmuxctl=@TOKEN@\a' $code >/dev/tty
    functions --erase __tmuxctl_@TOKEN@
    return $code
end
set --global tmuxctl_run "__tmuxctl_@TOKEN@_ $code; eval "@WORD@@INPUT@"; __tmuxctl_@TOKEN@"
"""

# The file is read twice, so that an error that makes a shell drop a dot file, or a `return`, only drops the inner
# reading: the first moves it away and reads it again, the second no longer finds it and runs the command.
# An interrupt is told by a trap that puts the shell's own way back and sends the signal again, unless the user has a
# trap (theirs decides what happens) or the shell is bash, which would go on with the rest of the line.
# dash keeps no history, and mksh leaves out of its own what begins with a blank. In ksh93 the line stays: taking it out again
# (`hist -e`, which cancels the newest one) damages a history that has just begun (measured, 93u+m/1.0.4).
SH = r"""\eval "\\trap >@TRAPS@ 2>/dev/null; (exit $?)" && :
case $(
    set -- "$?"
    exec 2>/dev/null
    traps=$(\command -p cat @TRAPS@; \command -p rm -f -- @TRAPS@)
    if \command -p mv -f -- @PATH@ @RUN@; then
        case ${BASH_VERSION:+INT}$traps in (*INT*) echo kept ;; (*) echo trap ;; esac
    else
        \command -p rm -f -- @RUN@
        \command printf '@SHOW@\033]133;C;tmuxctl=@TOKEN@\007' >/dev/tty
    fi
    exit "$1"
) in
(trap)
    \eval "\\trap '\\command printf \"\\033]133;D;130;tmuxctl=@TOKEN@\\007\" >/dev/tty
        \\trap - INT; \\command kill -INT \$\$' INT; (exit $?)" && :
    \command . @RUN@
    { \eval "\\trap >@TRAPS@
        case \$(\\command -p cat @TRAPS@; \\command -p rm -f -- @TRAPS@) in
        (*@TOKEN@*) \\command printf '\\033]133;D;$?;tmuxctl=@TOKEN@\\007' >/dev/tty; \\trap - INT ;;
        (*) \\command printf '\\033]133;D;$?;tmuxctl=@TOKEN@\\007' >/dev/tty ;;
        esac
        return $?"; } 2>/dev/null ;;
(kept)
    \command . @RUN@
    { \eval "\\command printf '\\033]133;D;$?;tmuxctl=@TOKEN@\\007' >/dev/tty; return $?"; } 2>/dev/null ;;
(*)
    \eval @COMMAND@@INPUT@ ;;
esac
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH, "sh": SH}
