"""From a spec to a running session: the files of its folder and the ONE command list that starts it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tmuxctl.model import SessionSpec
from tmuxctl.terminal.processes import cgroup, expire
from tmuxctl.terminal.tmux import journal, layout, options, timeline
from tmuxctl.terminal.tmux.pane_io import session_target
from tmuxctl.terminal.tmux.server import FORMAT
from tmuxctl.transport.base import BASICS, Command, shell_word
from tmuxctl.untrusted import FORMAT as KEPT_FORMAT
from tmuxctl.untrusted import to_record

LEFT_OUT = re.compile(
    r"TMUX(?!_TMPDIR)\w*|STY|WINDOW|WINDOWID|TERM|TERMCAP|TERM_PROGRAM\w*|COLORTERM|LINES|COLUMNS|PWD|OLDPWD|SHLVL|_|"
    r"NOTIFY_SOCKET|LISTEN_(PID|FDS|FDNAMES)|BASH_FUNC.*"
)
"""What of a caller's environment belongs to the caller's terminal or to tmuxctl, not to a program in a new one."""

ALLOWED = frozenset((*BASICS, "EDITOR", "VISUAL", "PAGER", "SSH_AUTH_SOCK"))
"""What a clean environment keeps."""

FACTS_LIMIT = 3000

CHOSEN = ("candidates", "route", "beside", "owner")
"""What is told of a session that was chosen among several programs, stands in for another one, or has an owner."""


def select_environment(caller: Mapping[str, str], *, clean: bool) -> dict[str, str]:
    """What a session gets of its caller's environment; `clean` keeps the allow-list only."""
    return {
        name: value
        for name, value in caller.items()
        if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
        and not LEFT_OUT.fullmatch(name)
        and (not clean or name in ALLOWED)
    }


def launcher_script(
    spec: SessionSpec, folder: str, session_id: str, *, socket: str, descriptors: int | None = None
) -> str:
    """The POSIX script that becomes the program: right size first, then folder, environment and limits, then exec.

    `socket` is the tmux server's: a tmuxctl that the program starts drives the same one.

    It removes itself and runs under `env -i`, so nothing shows in ps and no tmux format ever sees a path.
    """
    folder_word = shell_word(folder)
    own = {"TMUXCTL_SESSION": session_id, "TMUXCTL_EVENTS": f"{folder}/{layout.EVENTS}", "TMUXCTL_SOCKET": socket}
    env = {"TERM": "tmux-256color", "COLORTERM": "truecolor", **spec.env, **own}
    size = shell_word(f"{spec.size.rows} {spec.size.cols}")
    lines = [
        f"rm -f {folder_word}/{layout.LAUNCHER}",
        f"(umask 077; echo $$ >{folder_word}/{layout.STARTED})",
        cgroup.enter_script(folder, session_id),
        "n=0",
        f'while [ "$(stty size 2>/dev/null)" != {size} ] && [ $n -lt 50 ]; do sleep 0.02; n=$((n+1)); done',
        f"cd {shell_word(spec.cwd)} || exit 126",
        "unset n OLDPWD",
        *(f"export {name}={shell_word(value)}" for name, value in env.items()),
    ]
    if "TERM" not in spec.env:
        lines.append(
            "[ -e /usr/share/terminfo/t/tmux-256color ] || [ -e /lib/terminfo/t/tmux-256color ]"
            " || command -p infocmp tmux-256color >/dev/null 2>&1 || TERM=screen-256color"
        )
    if descriptors:
        lines.append(f"ulimit -S -n {descriptors} 2>/dev/null")
    program = shell_word(spec.argv[0])
    words = " ".join(shell_word(word) for word in spec.argv)
    lines += [
        f"command -v {program} >/dev/null 2>&1 || {{ printf 'tmuxctl: %s: not found\\n' {program} >&2; exit 127; }}",
        f"set -- {words}\n{LINGER}" if spec.notes.get("linger") else f"exec {words}",
    ]
    return "\n".join(lines) + "\n"


LINGER = """\
command -v perl >/dev/null 2>&1 && PERL_BADLANG=0 exec perl -e '
    delete $ENV{PERL_BADLANG};
    my $status = system { $ARGV[0] } @ARGV;
    select undef, undef, undef, 0.03;
    kill $status & 127, $$ if $status > 0 && $status & 127;
    exit($status < 0 ? 127 : $status >> 8);
' -- "$@"
"$@"
status=$?
sleep 0.03
[ $status -le 128 ] || kill -$((status - 128)) $$ 2>/dev/null
exit $status
"""
"""Stays 30 ms after the program: tmux 3.3a drops the last output of about 3 in 1,000 programs that print and end at once,
because the kernel has not handed it over yet (measured; none of 2,000 with a pause of 20 ms). perl can tell a signal from
a status above 128; where it is missing the shell takes such a status for a signal."""


def make_files(
    spec: SessionSpec,
    asked: Mapping[str, Any],
    session_id: str,
    incarnation: str,
    limit: int,
    variables: Mapping[str, Any],
) -> dict[str, bytes]:
    """What is put into the session's folder beside the launcher, by name. `limit` bounds the journal, in bytes;
    `variables` is what may be written of the environment.
    """
    kept = {
        "argv": list(spec.argv),
        "cwd": spec.cwd,
        "env": dict(variables),
        "size": str(spec.size),
        "name": spec.name,
        "history": spec.history,
        "notes": dict(spec.notes),
    }
    written = {
        layout.SPEC: to_record({"asked": asked, "spec": kept, "id": session_id, "incarnation": incarnation}),
        layout.WRITER: journal.writer_script(limit).encode(),
        layout.SIZE_SCRIPT: timeline.SIZE_SCRIPT.encode(),
    }
    return written | expire.make_files(spec, session_id)


def format_facts(spec: SessionSpec, asked: Mapping[str, Any]) -> str:
    """What `ls` and `show` say of a session, as one line of ASCII JSON short enough for a tmux option."""
    plugins, argv, cwd = list(asked.get("plugins", ())), list(asked["argv"]), spec.cwd
    while True:
        about = {"argv": argv, "cwd": cwd, "plugins": plugins, "profile": asked.get("profile"), "marks": asked["marks"]}
        about["confined"] = asked["confined"]
        about |= {"plain": True} if asked.get("plain") else {}
        about |= {name: asked[name] for name in CHOSEN if asked.get(name)}
        # 3.4 puts a backslash before a dollar when it prints an option (measured), which JSON does not know
        line = json.dumps(about).replace("$", "\\u0024").replace("#", "\\u0023")
        if len(line) <= FACTS_LIMIT:
            return line
        longest = max((cwd, *argv), key=len)
        short = longest[: len(longest) // 2] + "…"
        argv, cwd = [short if word == longest else word for word in argv[:64]], short if cwd == longest else cwd


def creation_commands(
    spec: SessionSpec,
    folder: str,
    session_id: str,
    *,
    incarnation: str,
    created: float,
    about: str,
    tags: Sequence[str] = (),
) -> list[Command]:
    """The one list that makes the session and prints its facts: nothing comes between its first byte and the journal."""
    target_pane = session_target(spec.name)
    cols, rows = str(spec.size.cols), str(spec.size.rows)
    size = ("-x", cols, "-y", rows)
    start = 'exec env -i ${TMUX:+TMUX="$TMUX"} ${TMUX_PANE:+TMUX_PANE="$TMUX_PANE"} sh "$0"'
    launcher = ("sh", "-c", start, f"{folder}/{layout.LAUNCHER}")
    commands: list[Command] = [
        # up to tmux 3.6 fixed when the pane is created, by the global value
        ("set-option", "-g", "history-limit", str(spec.history)),
        ("new-session", "-d", "-s", spec.name, *size, "-c", "/", *launcher),
        # tmux 3.7 and later cut the scrollback of every session without a value of its own to the next global one
        ("set-option", "-t", target_pane, "history-limit", str(spec.history)),
        ("resize-window", "-t", target_pane, *size),
        ("pipe-pane", "-IO", "-t", target_pane, journal.pipe_command(folder)),
    ]
    commands += [
        ("set-option", "-t", target_pane, name, value)
        for name, value in (
            (options.ID, session_id),
            (options.FORMAT, str(KEPT_FORMAT)),
            (options.FOLDER, journal.encode_path(folder)),
            (options.INCARNATION, incarnation),
            (options.CREATED, f"{created:.3f}"),
            (options.COLUMNS, cols),
            (options.ROWS, rows),
            (options.SPEC, about),
            *([(options.TAGS, " ".join(tags))] if tags else []),
        )
    ]
    commands += expire.make_timers(spec)
    commands.append(("display-message", "-p", "-t", target_pane, FORMAT))
    return commands
