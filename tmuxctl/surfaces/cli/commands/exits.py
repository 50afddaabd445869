"""What each exit status means, in general and for single commands: the one table that help, man pages and reference show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tmuxctl.operations import Operation

EXITS = (
    ("0", "", "done; the condition holds"),
    ("1", "failed", "refused or failed; `wait --now`: it does not hold; `doctor`: something is missing"),
    ("2", "usage", "a bad option, name, duration, pattern, key or file"),
    ("3", "not_found", "no such session, profile or plugin"),
    ("4", "conflict", "exists already, busy, or a person is typing"),
    ("5", "exited", "the program ended while it was needed"),
    ("6", "asking", "a decision is wanted before it can go on"),
    ("7", "unreachable", "tmux or its server cannot be reached, or nobody knows whether a write arrived"),
    ("8", "denied", "a policy or a file's owner or mode forbids it"),
    ("124", "timeout", "the time given was not enough; what was seen is still printed"),
    ("130, 143", "", "interrupted or terminated; what runs in a session goes on (`run` ends its own)"),
    ("141", "", "nobody reads our output any more"),
)
"""Each exit status, the code of its error, and what it means."""

PASSED = (
    "`exec` and `run` end with the status of the program they ran: 128 and the signal's number if a signal ended it, 126 "
    "and 127 if it could not be executed or found, 124 if it took too long, 125 for a failure of tmuxctl (the error says "
    "which)."
)

_GENERAL = {status: meaning for status, _, meaning in EXITS}
_RAN = {
    "2": "",
    "124": "it took too long",
    "125": "tmuxctl failed, or the program asked and was not answered: the error says which",
    "126, 127": "it could not be executed, was not found",
    "128 and more": "a signal ended it: 128 and the signal's number",
}
_TYPED = {
    "1": "the terminal would not take it, or nothing would read it",
    "2": "",
    "3": "",
    "4": "a person, or another command, is typing there",
    "5": "the program has ended",
    "7": "",
}

_OWN: Mapping[str, Mapping[str, str]] = {
    "send": _TYPED,
    "keys": _TYPED,
    "write": _TYPED,
    "ask": {
        "0": "its turn is over, or it takes the next input; the answer is printed",
        "1": "the text was not taken, or the turn failed",
        "2": "",
        "3": "",
        "4": "it is busy with something else, or its last turn took too long and is not over yet",
        "5": "the program ended",
        "6": "it asks something that --decide does not cover; what it wrote is printed",
        "7": "",
        "124": "the time ran out; the program goes on, what it wrote is printed",
    },
    "exec": {"0-255": "the status of the command itself, and of tmuxctl:", **_RAN, "124": "it took too long, and goes on"},
    "run": {"0-255": "the status of the program itself, and of tmuxctl:", **_RAN, "124": "it took too long, and was ended"},
    "decide": {
        "0": "answered, or without OPTION: the question is printed",
        "2": "the question has no such option",
        "3": "",
        "4": "it asks nothing, or another question than --id names",
        "5": "the program has ended",
        "124": "with --wait: the time ran out; the program goes on",
    },
    "wait": {
        "0": "the condition holds; with --any for one of the sessions, with --all for each",
        "1": "with --now: it does not hold",
        "2": "",
        "3": "",
        "5": "the program ended, and that was not waited for",
        "6": "it asks, and that was not waited for",
        "7": "",
        "124": "the time ran out; the program goes on",
    },
    "wait-idle": {"0": "it takes the next input", "3": "", "5": "the program ended", "6": "it asks", "124": "the time ran out"},
    "new": {
        "0": "it was started; whether it is ready, busy or has ended already is in the result",
        "1": "it could not be started, or a plugin refused",
        "2": "",
        "3": "no such profile or plugin",
        "4": "there is a session of this name",
        "7": "",
    },
    "kill": {"0": "all of them were ended", "3": "one of the names is not there: nothing was ended"},
    "attach": {"0": "you left it, or its program ended", "2": "this is no terminal", "3": "", "7": ""},
    "watch": {"0": "all that were named have ended", "3": "", "7": "", "130, 143": "interrupted or terminated"},
    "restore": {"0": "all of them were started", "1": "one could not be started", "3": ""},
    "doctor": {"0": "nothing is missing", "1": "something is: below it stands what to do"},
    "profile test": {"0": "every screen is taken for what it is", "1": "one is not", "2": "", "3": ""},
    "plugin test": {"0": "every plugin keeps to its contract", "1": "one does not", "2": "", "3": ""},
}  # fmt: skip
"""What statuses mean for commands for which that is worth a look; an empty meaning is the general one."""


def list_statuses(operation: Operation) -> Sequence[tuple[str, str]]:
    """The exit statuses of a command, each with what it means there; none where nothing but the general ones is to say."""
    own = _OWN.get(operation.spoken, {})
    return [(status, meaning or _GENERAL[status]) for status, meaning in own.items()]


def list_commands() -> list[str]:
    """The commands that have statuses of their own to tell, as they are typed."""
    return list(_OWN)
