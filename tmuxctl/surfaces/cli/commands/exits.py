"""What each exit status means, in general and for single commands: the one table that help, man pages and reference show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tmuxctl.operations import Operation

EXITS = (
    ("0", "", "success; the condition holds"),
    ("1", "failed", "refused or failed; `wait --now`: the condition does not hold; `doctor`: something is missing"),
    ("2", "usage", "a bad option, name, duration, pattern, key or file"),
    ("3", "not_found", "no such session, profile or plugin"),
    ("4", "conflict", "the session exists already or is busy, or a person is typing"),
    ("5", "exited", "the program ended too early"),
    ("6", "asking", "the program wants a decision before it goes on"),
    ("7", "unreachable", "tmux or its server cannot be reached, or it is unknown whether a write arrived"),
    ("8", "denied", "forbidden by a policy, or by the owner or mode of a file"),
    ("124", "timeout", "timed out; what was seen is still printed"),
    ("130, 143", "", "interrupted or terminated; programs in sessions go on (except that of `run`)"),
    ("141", "", "the reader of standard output is gone"),
)
"""Each exit status, the code of its error, and what it means."""

PASSED = (
    "`exec` and `run` exit with the status of the program they ran: 128 plus the signal's number if a signal ended it, 126 "
    "if it could not be executed, 127 if it was not found, 124 if it took too long, 125 if tmuxctl failed (the error says "
    "how)."
)

_GENERAL = {status: meaning for status, _, meaning in EXITS}
_RAN = {
    "2": "",
    "124": "the program took too long",
    "125": "tmuxctl failed, or the program asked and was not answered; the error says which",
    "126, 127": "the program could not be executed, or was not found",
    "128 and more": "a signal ended the program: 128 plus the signal's number",
}
_TYPED = {
    "1": "the terminal would not take the text, or nothing would read it",
    "2": "",
    "3": "",
    "4": "a person or another command is typing",
    "5": "the program has ended",
    "7": "",
}

_OWN: Mapping[str, Mapping[str, str]] = {
    "send": _TYPED,
    "keys": _TYPED,
    "write": _TYPED,
    "ask": {
        "0": "the turn is over, or the program takes the next input; the answer is printed",
        "1": "the program did not take the text, or the turn failed",
        "2": "",
        "3": "",
        "4": "the program is busy with something else, or its last turn timed out and is not over yet",
        "5": "the program ended",
        "6": "the program asks something that --decide does not answer; what it wrote is printed",
        "7": "",
        "124": "timed out; the program goes on, and what it wrote is printed",
    },
    "exec": {"0-255": "the status of the command itself; tmuxctl adds:", **_RAN, "124": "the command took too long; it goes on"},
    "run": {"0-255": "the status of the program itself; tmuxctl adds:", **_RAN, "124": "the program took too long and was ended"},
    "decide": {
        "0": "the question was answered; without OPTION: printed",
        "2": "the question has no such option",
        "3": "",
        "4": "no question is open, or not the one that --id names",
        "5": "the program has ended",
        "124": "with --wait: timed out; the program goes on",
    },
    "tell": {
        "0": "the message was delivered, or waits; with --wait: the answer is printed",
        "1": "with --wait: the program did not take it, or the turn failed",
        "2": "",
        "3": "",
        "4": "the program is no agent, or its inbox is full; with --wait: it was busy, or a person typed; the message waits",
        "5": "the program has ended",
        "6": "with --wait: the program asks something; if that stood before, the message waits",
        "7": "",
        "124": "with --wait: timed out; the program goes on",
    },
    "wait": {
        "0": "the condition holds; with --any for one of the sessions, with --all for each",
        "1": "with --now: the condition does not hold",
        "2": "",
        "3": "",
        "5": "the program ended before the condition held",
        "6": "the program asked a question before the condition held",
        "7": "",
        "124": "timed out; the program goes on",
    },
    "batch": {
        "0": "all steps were done",
        "2": "a step is wrong, and none was carried out; or the status of the first step that failed",
        "3": "",
        "4": "another batch is under way in the session; or the status of the first step that failed",
        "124": "the time for the whole was over, or the first step that failed timed out",
        "any other": "the status of the first step that failed: what its command alone would have ended with",
    },
    "wait-idle": {"0": "the program takes the next input", "3": "", "5": "it ended", "6": "it asks", "124": "timed out"},
    "new": {
        "0": "the program was started; the result says whether it is ready, busy or has already ended",
        "1": "the program could not be started, or a plugin refused",
        "2": "",
        "3": "no such profile or plugin",
        "4": "a session of this name exists",
        "7": "",
    },
    "kill": {"0": "all sessions were ended", "3": "there is no session of one of the names; nothing was ended"},
    "attach": {"0": "you detached, or the program ended", "2": "standard input is not a terminal", "3": "", "7": ""},
    "watch": {"0": "all named sessions have ended", "3": "", "7": "", "130, 143": "interrupted or terminated"},
    "restore": {"0": "all sessions were started", "1": "a session could not be started", "3": ""},
    "doctor": {"0": "nothing is missing", "1": "something is missing; the line below it says what to do"},
    "gateway doctor": {"0": "nothing is missing", "1": "something is missing; the line below it says what to do",
        "3": "there is no gateway on this machine"},
    "gateway up": {"1": "nats-server is missing, or does not take the configuration or the store", "2": "",
        "4": "it is running, or another command changes it", "any other": "that of nats-server"},
    "gateway pair": {"0": "the client was let in", "2": "", "3": "there is no file of credentials", "4": "another client has the "
        "name, or another pairing waits", "7": "the gateway cannot be reached", "8": "the code was wrong; it is spent",
        "124": "no client used the code"},
    "machine pair": {"0": "the two machines know each other", "2": "", "3": "there is no gateway.json", "4": "the name is taken",
        "7": "the gateway or the machine cannot be reached", "8": "the code was wrong, or the machine has another key"},
    "machine test": {"0": "nothing is missing", "1": "something is missing; the line below it says what to do", "3": "", "7": ""},
    "machine setup": {"0": "all is done, or would be", "1": "something is left without which no session can be there, or you "
        "did not agree", "2": "", "3": "", "7": ""},
    "connect up": {
        "0": "the run came to its end; its result is printed",
        "1": "it came to its limit of turns, a turn failed, or you did not agree to the plan",
        "2": "the connector file has a mistake; the message names the line",
        "3": "with --resume: there is no run to resume",
        "4": "a run of the team is under way, or did not end: --resume",
        "6": "with --wait: everything waits for a decision",
        "8": "the plan of the file was not agreed to, and there is no terminal to ask on: --yes",
        "124": "the time of the run is over",
        "130, 143": "interrupted or terminated; the sessions go on: --resume",
    },
    "profile test": {"0": "every screen is judged as its test says", "1": "a screen is judged otherwise", "2": "", "3": ""},
    "plugin test": {"0": "every plugin keeps the rules for plugins", "1": "a plugin breaks a rule", "2": "", "3": ""},
}  # fmt: skip
"""What statuses mean for commands for which that is worth a look; an empty meaning is the general one."""


def list_statuses(operation: Operation) -> Sequence[tuple[str, str]]:
    """The exit statuses of a command, each with what it means there; none where nothing but the general ones is to say."""
    own = _OWN.get(operation.spoken, {})
    return [(status, meaning or _GENERAL[status]) for status, meaning in own.items()]
