"""What people type who know other tools: options that are taken as they mean them, and what is said to the rest.

An option is taken where it can mean one thing only, as `kill -9` or tmux's `-t NAME`. A verb never is: what a stranger's `stop`
or `rm` would do here is for its user to decide, so the answer names ours and nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from signal import Signals

from tmuxctl.errors import Usage
from tmuxctl.model import NAME, parse_seconds
from tmuxctl.operations import Operation
from tmuxctl.value import Value

# Verbs

_OURS: Mapping[str, str] = {
    "kill NAME": "stop rm remove delete del end terminate destroy close quit exit kill-session kill-pane pkill",
    "kill --all": "killall kill-server stop-all",
    "new [NAME] -- CMD": "start create spawn launch open begin add init new-session",
    "new NAME --if-exists replace -- CMD": "restart reload respawn respawn-pane",
    "log NAME -n 20 -f": "tail",
    "screen NAME": "cat capture capture-pane snapshot view see peek print display head less more",
    "log NAME": "logs history scrollback output journal",
    "send NAME TEXT": "type paste input say echo send-text enter-text",
    "keys NAME KEY": "press key hit send-keys send-key sendkeys keypress press-key",
    "keys NAME C-c": "interrupt cancel abort ctrl-c sigint",
    "ask NAME TEXT": "query prompt chat question",
    "exec NAME -- CMD": "execute shell sh bash cmd eval source",
    "wait NAME": "await wait-for poll expect until sleep",
    "decide NAME OPTION": "answer approve allow deny confirm reply respond accept reject choose select yes no",
    "ls": "list ps sessions list-sessions jobs dir",
    "ls, or for one session: tmuxctl show NAME": "state states stat",
    "show NAME": "info describe inspect details get has has-session",
    "watch": "follow monitor events stream subscribe notify",
    "top": "htop dashboard ui tui gui",
    "attach NAME": "a at join enter fg attach-session open-session",
    "attach NAME, and C-b d leaves it again; the program goes on": "detach detach-client leave bg disown",
    "restore": "recover revive relaunch resurrect resume",
    "rename NAME NEW-NAME": "mv move ren rename-session",
    "resize NAME 120x40": "size resize-window resize-pane stty",
    "prune": "clean cleanup gc purge tidy",
    "explain NAME": "why debug diagnose reason",
    "tag NAME TAG": "label mark-as",
    "adopt TARGET": "import take",
    "doctor": "check verify health selftest",
    "config set alias.WORD 'COMMAND'": "alias aliases",
    "config show": "settings set options preferences setting",
    "profile ls": "profiles",
    "plugin ls": "plugins",
    "completion bash|zsh|fish": "completions autocomplete complete",
    "help": "man usage commands",
    "--version": "version",
}
"""What tmuxctl calls it, and what it is called elsewhere."""

_FAMILIES: Mapping[str, str] = {
    "ls": "list all",
    "new": "create add init make generate",
    "show": "cat info describe inspect print view",
    "test": "check validate verify lint try",
    "install": "add enable setup",
    "status": "state info",
    "get": "read print value",
    "set": "write add put",
    "unset": "rm remove delete del reset",
}
"""The same for the second words of `profile ls` and its like."""


def find_our_command(words: Sequence[str]) -> str | None:
    """The command that does what this one does elsewhere, with the session's name if it is there; None if it is unknown."""
    found = next((one for one, theirs in _OURS.items() if words[0] in theirs.split()), None)
    if found is None:
        return None
    return "tmuxctl " + re.sub(r"(?<![\[-])\bNAME\b", _guess_session_name(words[1:]) or "NAME", found)


def find_our_family_command(family: str, word: str, there: Sequence[str]) -> str | None:
    """The same for the second word of a family that has these commands."""
    found = (one for one, theirs in _FAMILIES.items() if word in theirs.split() and one in there)
    return next((f"tmuxctl {family} {one}" for one in found), None)


def _guess_session_name(words: Sequence[str]) -> str | None:
    """What of the words after a verb is probably the session's name."""
    named = (after for word, after in pairwise(words) if word == "-t")
    plain = (word for word in words if not word.isdecimal())
    return next((word for word in (*named, *plain) if NAME.fullmatch(word)), None)


# Options that are taken


class ForeignOption(Value):
    """An option that other tools have: which parameter it fills, with its value or, if it takes none, with `value`.

    A parameter of None is filled with nothing: the option says what is so anyway. `words`: the value is split as a shell does.
    """

    flags: tuple[str, ...]
    parameter: str | None
    value: str | None = None
    takes_value: bool = True
    words: bool = False


TARGET = "-t"
"""tmux's option for the session."""


def list_foreign_options(operation: Operation) -> Iterator[ForeignOption]:
    """The options of other tools that this command takes."""
    first = next((one for one in operation.parameters if one.positional), None)
    if first is not None and first.kind.target:
        yield ForeignOption((TARGET,), first.name)
    if operation.name == "new":
        yield ForeignOption(("-s",), "name")
        # a session of ours is always started detached
        yield ForeignOption(("-d",), None, takes_value=False)
        # niia's: what counts where nothing else is said
        yield ForeignOption(("--default-cwd",), "cwd")
        yield ForeignOption(("--default-shell",), "command", words=True)
    if operation.name == "kill":
        yield ForeignOption(("-s",), "signal")
        for one in Signals:
            word = one.name.removeprefix("SIG")
            flags = (f"-{one.value}", f"-{word}", f"-SIG{word}")
            yield ForeignOption(flags, "signal", word, takes_value=False)


def parse_value(option: ForeignOption, given: str) -> str | list[str]:
    """What an option that takes a value fills its parameter with; Usage for words that cannot be split."""
    if not option.words:
        return given
    from shlex import split

    try:
        return split(given)
    except ValueError as error:
        raise Usage(f"{option.flags[0]}: {error}", reason="bad_usage", hint=f"{option.flags[0]} /bin/sh") from None


def parse_targets(operation: Operation, given: Sequence[str]) -> tuple[str, ...]:
    """The sessions that `-t` names: tmux's `=NAME` and `NAME:` are NAME. Usage for a time, which others give so."""
    times = any(one.name == "timeout" for one in operation.parameters)
    for one in given:
        if times and one[:1].isdigit() and _is_duration(one):
            hint = f"did you mean --timeout {one}?"
            raise Usage(
                f"{operation.spoken}: -t {ascii(one)} names a session, as in tmux", reason="bad_option", hint=hint
            )
    return tuple(one.removeprefix("=").removesuffix(":") for one in given)


def _is_duration(text: str) -> bool:
    try:
        return parse_seconds(text) is not None
    except Usage:
        return False


# Options that are answered

_TEXTS = ("input", "text", "key", "option")
_LITERAL = "text is typed exactly as it is given, without this"
_NEW_NAME = "the name comes first: tmuxctl new NAME -- CMD"
_ATTACH = "to use its terminal: tmuxctl attach NAME"
_SIZE = "write --size 80x24"

_MEANT: Mapping[tuple[str, str], str] = {
    ("log", "-F"): "did you mean --follow?",
    ("log", "--lines"): "did you mean --tail N?",
    ("log", "-c"): "did you mean --tail N? Bytes as they came: --raw",
    ("read", "-n"): "the last lines: tmuxctl log NAME --tail N",
    ("read", "--tail"): "the last lines: tmuxctl log NAME --tail N",
    ("ls", "-l"): "the list is long already; for all that is known: --json, or tmuxctl show NAME",
    ("ls", "-1"): "did you mean -q? It prints names only",
    ("ls", "--all"): "did you mean --ended, those that were killed too, or --all-sockets, other tmux servers too?",
    ("ls", "-A"): "did you mean --ended, or --all-sockets?",
    ("ls", "-f"): "did you mean --state STATE, --tag TAG or -F FORMAT?",
    ("ls", "--filter"): "did you mean --state STATE or --tag TAG?",
    ("kill", "-a"): "did you mean --all?",
    ("kill", "-f"): "did you mean --force? It also ends panes of another tmux, and removes unsaved work that plugins keep",
    ("new", "-A"): "did you mean --if-exists reuse?",
    ("new", "-c"): "did you mean --cwd DIR? A command for a shell: tmuxctl new NAME -- sh -c 'CMD'",
    ("new", "-w"): "did you mean --cwd DIR, or --worktree BRANCH?",
    ("new", "--workdir"): "did you mean --cwd DIR?",
    ("new", "--name"): _NEW_NAME,
    ("new", "-n"): _NEW_NAME,
    ("new", "-i"): _ATTACH,
    ("new", "-x"): _SIZE,
    ("new", "-y"): _SIZE,
    ("new", "--detach"): "a session is always detached: it goes on without this terminal",
    ("new", "--rm"): "to leave nothing behind: tmuxctl run -- CMD",
    ("run", "--rm"): "it always removes the session at the end",
    ("run", "-i"): "a program to talk with: tmuxctl new NAME -- CMD",
    ("run", "-d"): "a program that goes on: tmuxctl new NAME -- CMD",
    ("run", "-c"): "a command for a shell: tmuxctl run -- sh -c 'CMD'",
    ("screen", "-p"): "it prints without an option: tmuxctl screen NAME",
    ("screen", "-e"): "did you mean --ansi?",
    ("screen", "-S"): "did you mean --scrollback N?",
    ("screen", "-J"): "did you mean --wide?",
    ("screen", "-n"): "did you mean --scrollback N? The last lines of the output: tmuxctl log NAME --tail N",
    ("screen", "-f"): "to see each change: tmuxctl attach NAME --read-only, or tmuxctl log NAME --follow",
    ("screen", "-o"): "did you mean --svg FILE or --html FILE? Text goes to standard output",
    ("send", "-l"): _LITERAL,
    ("send", "-n"): "did you mean --no-enter?",
    ("send", "-f"): "the text of a file: tmuxctl send NAME - <FILE",
    ("keys", "-l"): "text is typed with: tmuxctl send NAME --no-enter TEXT",
    ("keys", "-N"): "did you mean --repeat N?",
    ("keys", "-n"): "did you mean --repeat N?",
    ("ask", "-f"): "did you mean --file FILE?",
    ("ask", "-n"): "did you mean --new CMD?",
    ("explain", "-f"): "did you mean --file FILE?",
    ("exec", "-c"): "the command goes after --: tmuxctl exec NAME -- CMD, or as one word: tmuxctl exec NAME 'cd src && make'",
    ("exec", "-i"): _ATTACH,
    ("resize", "-x"): "write tmuxctl resize NAME 100x30",
    ("resize", "-y"): "write tmuxctl resize NAME 100x30",
    ("attach", "-d"): "others who are attached stay attached; to keep the session's size: --keep-size",
    ("watch", "-f"): "it follows by itself",
    ("watch", "-n"): "it prints each change at once; a table: tmuxctl top",
    ("restore", "-n"): "did you mean --dry-run?",
    ("prune", "-n"): "did you mean --dry-run?",
    ("prune", "-f"): "did you mean --force? It removes worktrees with unsaved work too",
    ("profile new", "-f"): "did you mean --force?",
}  # fmt: skip


def suggest_option(operation: Operation, verb: str, option: str, near: str) -> str:
    """What to say of an option that a command does not have: the one that was meant, those that are `near`, or where they
    are listed."""
    if known := _MEANT.get((verb, option)):
        return known
    if verb == "kill" and re.fullmatch("-[0-9A-Z]", option):
        return "did you mean --signal SIGNAL? TERM, INT, HUP, KILL, ..."
    text = "text that begins with - goes after --"
    typed = any(one.positional and one.kind.word in _TEXTS for one in operation.parameters)
    if near:
        return near + text if typed else near.rstrip()
    listed = f"tmuxctl {verb} --help lists the options"
    return f"{listed}; {text}" if typed else listed


# Words that are too many


def suggest_for_extra_words(
    operation: Operation, words: Sequence[str], rest: Sequence[str], several: str | None = None
) -> str:
    """What to say of words that a command has no place for; `words` are all of them, `several` the names given to --any."""
    verb = operation.spoken
    if verb == "wait":
        names = ",".join([several, *words] if several else words)
        return f"several sessions: tmuxctl wait --any {names}, or --all {names}"
    if verb == "ls":
        return f"one session: tmuxctl show {rest[0]}; some of them: --state, --tag"
    if any(one.many for one in operation.parameters if one.positional):
        from shlex import join
        from shutil import which

        if verb == "new" and which(words[0]):
            return f"the command goes after --: tmuxctl new -- {join(words)}"
        return f"the command goes after --: tmuxctl {verb} {words[0]} -- {join(rest)}"
    typed = any(one.kind.word in ("input", "text", "option") for one in operation.parameters if one.positional)
    return f"quote words that belong together: tmuxctl {verb} --help" if typed else f"tmuxctl {verb} --help"
