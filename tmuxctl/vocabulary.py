"""The words of every result, each declared once with what it means: states, what a program waits for, the evidence.

A word is its own text in JSON, in messages and in profiles. What follows from a word is data of it, so that no other
module compares its text.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, TypeVar

from tmuxctl.value import Value

W = TypeVar("W", bound="Word")


class Word(StrEnum):
    """A word of the output with its meaning in one sentence."""

    meaning: str
    traits: Any

    def __new__(cls: type[W], text: str, meaning: str, traits: Any = None) -> W:
        word = str.__new__(cls, text)
        word._value_, word.meaning, word.traits = text, meaning, traits
        return word

    @classmethod
    def of(cls: type[W], text: str | None) -> W | None:
        """The word of this text; None for a text that is none of these words."""
        found = cls._value2member_map_.get(text)
        return found if isinstance(found, cls) else None


class StateTraits(Value):
    """How a state is shown: its SGR attributes (ECMA-48; none where the terminal's own colour says enough), and its place
    in `top`, where the first wants to be looked at most. `over`: no program runs any more."""

    attributes: str
    rank: int
    over: bool = False


class State(Word):
    """What a program is doing, as far as the evidence goes."""

    traits: StateTraits

    STARTING = "starting", "just started; no sign yet that it is ready", StateTraits("36", 2)
    BUSY = "busy", "the program works", StateTraits("33", 1)
    IDLE = "idle", "the program takes input where a person would type next", StateTraits("32", 4)
    ASKING = "asking", "the program wants a decision before it goes on", StateTraits("1;35", 0)
    EXITED = "exited", "the program ended, with a status or a signal", StateTraits("2", 5, over=True)
    LOST = "lost", "the tmux server of the session died", StateTraits("31", 6, over=True)
    UNKNOWN = "unknown", "quiet for three seconds; nothing shows whether the program works or waits", StateTraits("", 3)


StateFilter = Literal["starting", "busy", "idle", "asking", "exited", "lost", "unknown", "prompt", "input"]
"""What `ls` and `watch` take: a state, or what a program that waits wants."""


class Confidence(Word):
    """How far a state can be trusted."""

    SURE = "sure", "nothing else fits the evidence"
    LIKELY = "likely", "most programs that look like this do so"
    GUESS = "guess", "there is little to go by"


class Traits(Value):
    """What follows from what a program waits for.

    `asks`: it wants a decision. `whole_screen`: it is driven by keys on a screen of its own. `hidden`: what is typed is a
    secret, which stands on no command line and is never told. `free`: any text is an answer. `decides`: its options are
    named by what they mean (`allow`, `always`, `deny`), so that a policy can be written once for every program.
    `explicit`: no key alone and no policy for any question (`*`) gives it. `described`: rows below an option's first
    describe it, and are no part of its label. `quoted`: its text says what is asked. `risky`: that text may speak of
    destruction.
    """

    asks: bool = False
    whole_screen: bool = False
    hidden: bool = False
    free: bool = False
    decides: bool = False
    explicit: bool = False
    described: bool = False
    quoted: bool = True
    risky: bool = True


class InputKind(Word):
    """What a program waits for: of an idle program where its input goes, of one that asks what kind of question it is."""

    traits: Traits

    PROMPT = "prompt", "its next command", Traits()
    CONTINUATION = "continuation", "the rest of an input that has begun", Traits()
    LINE = "line", "a line of input, at no prompt that is known", Traits()
    EDITOR = "editor", "keys, in an editor", Traits(whole_screen=True)
    TUI = "tui", "keys, on a screen that the program draws", Traits(whole_screen=True)
    CONFIRM = "confirm", "yes or no", Traits(asks=True)
    CHOICE = "choice", "one of several options", Traits(asks=True, described=True)
    APPROVAL = "approval", "permission to do something", Traits(asks=True, decides=True)
    TRUST = "trust", "trust in a folder or a file", Traits(asks=True, decides=True, explicit=True)
    PASSWORD = "password", "a secret", Traits(asks=True, hidden=True, quoted=False, risky=False)
    PAGER = "pager", "a key that shows more of a text", Traits(asks=True, quoted=False, risky=False)
    KEYS = "keys", "any key", Traits(asks=True, risky=False)
    QUESTION = "question", "any text", Traits(asks=True, free=True, described=True)


class DetailTraits(Value):
    """`rules`: the keys of a profile whose rules may tell it. `passing`: it comes and goes while a program works, and is no
    change worth telling."""

    rules: tuple[str, ...]
    passing: bool = False


class Detail(Word):
    """What more is known of a busy program, of the prompt of an idle one, or of its error."""

    traits: DetailTraits

    PRINTING = "printing", "it prints", DetailTraits(("busy",), passing=True)
    COMPUTING = "computing", "it uses the processor", DetailTraits(("busy",), passing=True)
    SILENT = "silent", "it neither prints nor uses the processor", DetailTraits(("busy",), passing=True)
    STREAMING = "streaming", "an agent writes its answer", DetailTraits(("busy",))
    THINKING = "thinking", "an agent is at work", DetailTraits(("busy",))
    RETRYING = "retrying", "it tries again what failed", DetailTraits(("busy", "errors"))
    LIMITED = "limited", "its limit is used up", DetailTraits(("busy", "errors"))
    STOPPED = "stopped", "it was stopped by a signal", DetailTraits(("busy",))
    FAILED = "failed", "the turn ended in an error", DetailTraits(("errors",))
    SHELL = "shell", "a shell's prompt", DetailTraits(("prompt", "continuation"))
    REPL = "repl", "the prompt of an interpreter or a client", DetailTraits(("prompt", "continuation"))
    AGENT = "agent", "the prompt of an agent", DetailTraits(("prompt", "continuation"))


class EvidenceKind(Word):
    """What a state rests on."""

    EXIT = "exit", "tmux: the pane is dead, with status or signal"
    KERNEL = "kernel", "what the processes at the terminal wait for"
    TTY = "tty", "typed bytes that no process has read"
    SHELL_MARK = "shell-mark", "OSC 133 with the session's token, in the journal"
    HOOK = "hook", "a report by the program's own hooks"
    BUSY_MARK = "busy-mark", "a busy sign on the screen or in the title"
    ASKING_MARK = "asking-mark", "a question on the screen"
    PROMPT = "prompt", "the text left of the cursor"
    ACTIVITY = "activity", "the pace of the output"
    SETTLE = "settle", "silence"


class WaitCondition(Word):
    """What ended a wait."""

    IDLE = "idle", "the program takes input"
    PROMPT = "prompt", "it is ready for its next command"
    ASKING = "asking", "it wants a decision"
    INPUT = "input", "something has to be typed before it goes on"
    EXIT = "exit", "it ended"
    TEXT = "text", "the text was printed"
    GONE = "gone", "the text is not on the screen any more"
    CHANGE = "change", "it printed something"
    SETTLE = "settle", "it was silent for this long"
    UNKNOWN = "unknown", "it is quiet; nothing shows whether it works or waits"


class StepState(Word):
    """What is with a step of a machine's preparation."""

    DONE = "done", "there is nothing to do, or it was done now"
    NEEDED = "needed", "it would be done"
    LEFT = "left", "it is left to the user: `hint` says what to do"


class MomentKind(Word):
    """What happened in a session at a moment that is known."""

    INPUT = "input", "text or keys were typed"
    TURN = "turn", "a text was given to the program, and the turn ended"
    QUESTION = "question", "the program asked a question"
    MARK = "mark", "somebody marked the moment"
    SIZE = "size", "the terminal got another size"


class EventKind(Word):
    """What an event of a program's own hooks means."""

    SUBMIT = "submit", "it took an input"
    STOP = "stop", "its turn ended"
    FAILURE = "failure", "its turn ended in an error"
    ASKING = "asking", "it wants a decision"
    ATTENTION = "attention", "it wants something; the event does not say what"


class RunEvent(Word):
    """What a line of a run's transcript tells."""

    BEGIN = "begin", "a run begins, with this text"
    RESUMED = "resumed", "another process goes on with the run"
    SESSION = "session", "a session of this agent was started"
    ROLE = "role", "the agent was given its role, and answered this"
    TURN = "turn", "a turn begins: the agent is given this text"
    MESSAGE = "message", "a turn ended with this answer; it goes to these agents"
    ASKING = "asking", "the agent's program asks something that nothing decides: the agent waits for a person"
    PAUSED = "paused", "a person types into the agent's session: the agent waits"
    CONTINUED = "continued", "the agent waits no longer"
    FAILED = "failed", "a turn came to nothing, for this reason"
    SKIPPED = "skipped", "the run goes on without the answer of that turn"
    RELEASED = "released", "nobody needs the agent any more"
    STOPPED = "stopped", "the run stopped before its end; it can be resumed"
    END = "end", "the run ended, with this result"


class RunState(Word):
    """What is known of a run."""

    RUNNING = "running", "a process hands out its turns"
    WAITING = "waiting", "a process is there, and every turn waits for a person"
    STOPPED = "stopped", "no process goes on with it; it can be resumed"
    ENDED = "ended", "it came to its end"


class GatewayRole(Word):
    """What a member of a gateway is."""

    HOST = "host", "its sessions are reached through the gateway"
    CLIENT = "client", "reaches hosts through the gateway"


class Way(Word):
    """How a machine is reached."""

    LOCAL = "local", "it is this machine: a shell here"
    SSH = "ssh", "a shell there, by the system's ssh"
    COMMAND = "command", "a shell there, by a command of machines.toml"
    GATEWAY = "gateway", "the operations of the tmuxctl there, through a gateway"
