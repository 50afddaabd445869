"""The start-up files that make bash, zsh and fish mark their prompts and commands (OSC 133); shells.py hands them out.

The user's own files come first and our hooks last, so that prompts which frameworks rewrite before every command line
are wrapped again each time. `@TOKEN@` is bare, `@RC@`, `@FOLDER@` and `@ZDOTDIR@` are quoted words.
"""

from __future__ import annotations

from tmuxctl.terminal.launch.shell_scripts import fill_template

BASH_INTERACTIVE = r"""[ ! -r @RC@ ] || \builtin . @RC@
"""

# The order of bash(1), INVOCATION.
BASH_LOGIN = r"""[ ! -r /etc/profile ] || \builtin . /etc/profile
if [ -r ~/.bash_profile ]; then \builtin . ~/.bash_profile
elif [ -r ~/.bash_login ]; then \builtin . ~/.bash_login
elif [ -r ~/.profile ]; then \builtin . ~/.profile
fi
"""

# PS0 takes no \[ \]: bash prints them as ^A and ^B there. The status handed on is for a PROMPT_COMMAND of one string
# (bash < 5.1); since 5.1 every element sees it anyway.
BASH_HOOKS = r"""__tmuxctl_done() {
    \builtin local status=$?
    \builtin printf '\033]133;D;%s;tmuxctl=@TOKEN@\007' "$status" >/dev/tty
    \builtin return "$status"
} 2>/dev/null
__tmuxctl_prompt() {
    \builtin local status=$? c='\e]133;C;tmuxctl=@TOKEN@\a'
    \builtin local a='\[\e]133;A;tmuxctl=@TOKEN@\a\]' b='\[\e]133;B;tmuxctl=@TOKEN@\a\]'
    PS1=${PS1//"$a"/}
    PS1=$a${PS1//"$b"/}$b
    PS0=${PS0//"$c"/}$c
    \builtin return "$status"
} 2>/dev/null
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
    PROMPT_COMMAND=(__tmuxctl_done "${PROMPT_COMMAND[@]}" __tmuxctl_prompt)
else
    PROMPT_COMMAND=$'__tmuxctl_done\n'${PROMPT_COMMAND:+$PROMPT_COMMAND$'\n'}__tmuxctl_prompt
fi
"""

# The user's .zshenv may set ZDOTDIR; what it left is kept in a variable of ours until the last start-up file.
ZSHENV = r"""@RESTORE@
[[ ! -r ${ZDOTDIR-$HOME}/.zshenv ]] || \builtin source "${ZDOTDIR-$HOME}/.zshenv"
if [[ -o rcs ]]; then
    (( ! ${+ZDOTDIR} )) || \builtin typeset -g __tmuxctl_zdotdir=$ZDOTDIR
    ZDOTDIR=@FOLDER@
else
    \builtin source @FOLDER@/hooks.zsh
fi
"""
ZSH_USER = r"""if (( ${+__tmuxctl_zdotdir} )); then
    \builtin export ZDOTDIR=$__tmuxctl_zdotdir
else
    \builtin unset ZDOTDIR
fi
[[ ${HISTFILE-} != @FOLDER@/* ]] || HISTFILE=${ZDOTDIR-$HOME}/${HISTFILE:t}
[[ ! -r ${ZDOTDIR-$HOME}/@NAME@ ]] || \builtin source "${ZDOTDIR-$HOME}/@NAME@"
"""
ZSH_AGAIN = r"""if (( ${+ZDOTDIR} )); then
    \builtin typeset -g __tmuxctl_zdotdir=$ZDOTDIR
else
    \builtin unset __tmuxctl_zdotdir
fi
ZDOTDIR=@FOLDER@
"""
ZSH_LAST = r"""\builtin unset __tmuxctl_zdotdir
\builtin source @FOLDER@/hooks.zsh
"""

# A line that `exec` types is put into a history of its own, which is gone with the line (zshmisc(1), zshaddhistory): a hook
# that refuses it leaves it there until the next line comes.
# Without PROMPT_PERCENT zsh has no way to say that part of a prompt takes no room: then only A is told.
ZSH_HOOKS = r"""function __tmuxctl_done {
    \builtin printf '\033]133;D;%s;tmuxctl=@TOKEN@\007' "$?" >/dev/tty
}
function __tmuxctl_prompt {
    if [[ ! -o prompt_percent ]]; then
        \builtin printf '\033]133;A;tmuxctl=@TOKEN@\007' >/dev/tty
        \builtin return
    fi
    \builtin emulate -L zsh
    \builtin local a=$'%{\e]133;A;tmuxctl=@TOKEN@\a%}' b=$'%{\e]133;B;tmuxctl=@TOKEN@\a%}'
    PS1=${PS1//$a/}
    PS1=$a${PS1//$b/}$b
}
function __tmuxctl_run {
    \builtin printf '\033]133;C;tmuxctl=@TOKEN@\007' >/dev/tty
}
function __tmuxctl_history {
    \builtin emulate -L zsh -o extended_glob
    [[ $1 != ' . '*/shell/x[0-9a-f](#c16)[\'[:space:]]# ]] || \builtin fc -p
}
() {
    \builtin emulate -L zsh
    \builtin typeset -ga precmd_functions preexec_functions zshaddhistory_functions
    zshaddhistory_functions=(__tmuxctl_history $zshaddhistory_functions)
    precmd_functions=(__tmuxctl_done $precmd_functions __tmuxctl_prompt)
    preexec_functions=($preexec_functions __tmuxctl_run)
}
"""

# The prompt is wrapped again whenever it was defined anew. Its lines are printed as fish itself would take
# them: a last newline does not count. A and B must come out of the prompt, because fish writes its `⏎` before it.
FISH_RC = r"""function __tmuxctl_wrap --on-event fish_prompt
    set -l code $status
    if not functions fish_prompt | string match --quiet '*133;A;tmuxctl=@TOKEN@*'
        functions --erase __tmuxctl_inner
        functions --copy fish_prompt __tmuxctl_inner
        function fish_prompt
            set -l lines (__tmuxctl_inner)
            builtin printf '\e]133;A;tmuxctl=@TOKEN@\a'
            test (count $lines) -lt 2; or builtin printf '%s\n' $lines[1..-2]
            builtin printf '%s\e]133;B;tmuxctl=@TOKEN@\a' $lines[-1]
        end
    end
    return $code
end
function __tmuxctl_run --on-event fish_preexec
    set -l code $status
    builtin printf '\e]133;C;tmuxctl=@TOKEN@\a' >/dev/tty
    return $code
end
function __tmuxctl_done --on-event fish_postexec
    set -l code $status
    builtin printf '\e]133;D;%s;tmuxctl=@TOKEN@\a' $code >/dev/tty
    return $code
end
"""


def bash_rc(token: str, login: bool, rc: str) -> str:
    """The rcfile of an interactive bash; `rc`, a word of bash, is the user's; a login shell reads others instead."""
    user = BASH_LOGIN if login else fill_template(BASH_INTERACTIVE, {"RC": rc})
    return user + fill_template(BASH_HOOKS, {"TOKEN": token})


def zsh_files(token: str, folder: str, zdotdir: str | None) -> dict[str, str]:
    """The files of $ZDOTDIR, in the order zsh(1), STARTUP/SHUTDOWN FILES reads them, and the hooks the last one reads.

    `folder` and `zdotdir` (the user's own, None if unset) are words of zsh.
    """
    values = {
        "FOLDER": folder,
        "RESTORE": f"\\builtin export ZDOTDIR={zdotdir}" if zdotdir else "\\builtin unset ZDOTDIR",
    }
    again, last = fill_template(ZSH_AGAIN, values), fill_template(ZSH_LAST, values)
    choose = f"if [[ -o login ]]; then\n{again}else\n{last}fi\n"
    ends = {".zprofile": again, ".zshrc": choose, ".zlogin": last}
    files = {name: fill_template(ZSH_USER, values | {"NAME": name}) + end for name, end in ends.items()}
    return files | {".zshenv": fill_template(ZSHENV, values), "hooks.zsh": fill_template(ZSH_HOOKS, {"TOKEN": token})}


def fish_rc(token: str) -> str:
    """What fish reads after its configuration."""
    return fill_template(FISH_RC, {"TOKEN": token})
