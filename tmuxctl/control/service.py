"""`Control`: every operation, declared once. The work is in the modules beside this one; here is what it is called,
what it takes, who may, and what a person reads about it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from inspect import unwrap
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tmuxctl.control.lifecycle.reach import on_one_machine, reach
from tmuxctl.control.machine import Machine
from tmuxctl.errors import Usage
from tmuxctl.model import check_tags
from tmuxctl.operations import (
    NAMES,
    RIGHTS,
    TEXT,
    TEXTS,
    Bytes,
    CursorText,
    Factor,
    FileName,
    Flag,
    FolderName,
    Input,
    Key,
    Names,
    NewName,
    Pattern,
    Seconds,
    SessionName,
    SessionNames,
    SizeText,
    Until,
    ValueKind,
    Waiting,
    find,
    invoke,
    operation,
    set_up,
)
from tmuxctl.timing import CLOCK, LIMITS, TIMING, Clock, Limits, Timing
from tmuxctl.value import changed
from tmuxctl.vocabulary import StateFilter

if TYPE_CHECKING:
    from tmuxctl import results
    from tmuxctl.config import Settings
    from tmuxctl.control.input.sending import Typed
    from tmuxctl.model import Session
    from tmuxctl.operations import Caller, Operation
    from tmuxctl.transport.base import Transport

ProfileName = Annotated[str, ValueKind("profile", TEXT.schema, TEXT.parse)]
AdoptedNames = Annotated[tuple[str, ...], ValueKind("name", TEXTS.schema, TEXTS.parse)]
Tags = Annotated[tuple[str, ...], ValueKind("tag", TEXTS.schema, TEXTS.parse)]
ProfileChoice = Annotated[
    str, ValueKind("text", TEXT.schema, TEXT.parse, completes="profile"), "auto, none, or a profile's name"
]
ProfileNames = Annotated[tuple[str, ...], ValueKind("profile", TEXTS.schema, TEXTS.parse)]
ProfileList = Annotated[tuple[str, ...], ValueKind("profiles", NAMES.schema, NAMES.parse)]
MachineName = Annotated[str, ValueKind("machine", TEXT.schema, TEXT.parse)]
AllMachines = Annotated[bool, "also those of all machines of machines.toml"]
MachineOption = Annotated[MachineName | None, "on this machine, as `MACHINE/NAME` says it"]
OptionName = Annotated[str, ValueKind("option", TEXT.schema, TEXT.parse)]
PluginName = Annotated[str, ValueKind("plugin", TEXT.schema, TEXT.parse), "the name of the plugin"]
PluginNames = Annotated[tuple[str, ...], ValueKind("plugin", TEXTS.schema, TEXTS.parse)]
OptionValues = Annotated[tuple[str, ...], ValueKind("name=value", TEXTS.schema, TEXTS.parse)]

Steps = Annotated[
    Any,
    ValueKind(
        "steps", {"type": ["array", "string"], "items": {"type": "object"}}, lambda value: value, from_input=True
    ),
]

WaitText = Annotated[
    Pattern | None, "then wait until the output after it matches this regular expression", Until("to print it")
]
ScreenAfter = Annotated[bool, "then print the screen"]
TextTimeout = Annotated[Seconds | None, "wait at most this long (default: 30s, the setting wait.timeout)"]

_drive = partial(operation, group="Drive")
_look = partial(operation, group="Look")
_sessions = partial(operation, group="Sessions")


class Control:
    """Drives the sessions of one tmux server.

    `resident` is for a process that stays: one control-mode client serves all its calls. Safe to share between threads.
    `timing`, `limits` and `clock` replace the durations, sizes and clock of this one.
    """

    def __init__(
        self,
        transport: Transport | None = None,
        settings: Settings | None = None,
        *,
        resident: bool = False,
        timing: Timing = TIMING,
        limits: Limits = LIMITS,
        clock: Clock = CLOCK,
    ) -> None:
        from tmuxctl import config

        settings = settings or config.load()
        if transport is None:
            from tmuxctl.terminal.launch.tmux_conf import CONFIG
            from tmuxctl.transport.local import LocalTransport

            transport = LocalTransport(
                settings.tmux_socket, tmux=settings.tmux_binary, config=CONFIG, resident=resident
            )
        self.machine = Machine(
            transport, settings, resident=resident, timing=timing, limits=limits, clock=clock, service=type(self)
        )

    @classmethod
    def of(cls, machine: Machine) -> Control:
        """The operations on a machine that something else drives already."""
        control = cls.__new__(cls)
        control.machine = machine
        return control

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        rights: Sequence[str] = RIGHTS,
        request_id: str | None = None,
        timeout: float | None = None,
        cancelled: threading.Event | None = None,
        caller: Caller | None = None,
    ) -> Any:
        """Call an operation by name with plain values, as every surface does.

        `rights` is what the caller may (read, write, create, kill); `request_id` makes a repeated write happen once;
        `timeout` (seconds) bounds the whole call; setting `cancelled` ends a wait, not the program.
        `caller` restricts what is changed. Raises TmuxctlError.
        """
        return invoke(
            self,
            name,
            arguments,
            rights=rights,
            request_id=request_id,
            timeout=timeout,
            cancelled=cancelled,
            caller=caller,
        )

    def reach(self, session: str) -> tuple[Control, str]:
        """The operations on the server that a session is on, and its name there: `reach.reach`. `MACHINE/` alone leads to that
        machine, and to no session of it."""
        machine, name = reach(self.machine, session)
        return (self if machine is self.machine else Control.of(machine)), name

    def carry_out(
        self,
        call: Callable[[], Any],
        session: str = "",
        *,
        name: str = "",
        patience: float | None = 0.0,
        changes: bool = True,
    ) -> Any:
        """What `call`, one on this machine, gives to who reached it from another one: each session by its address. `name` is the
        operation's; the rest as of `Transport.carry_out`."""
        if not self.machine.address:
            return call()
        from tmuxctl.control.machines import addresses

        return self.machine.transport.carry_out(
            f"{name} {session}",
            lambda: addresses.carry_out(self.machine.address, call, session),
            patience,
            changes=changes,
        )

    def close(self) -> None:
        """End what this process keeps open; sessions go on."""
        self.machine.close()
        searching = sys.modules.get("tmuxctl.control.waiting.searching")
        if searching is not None:
            searching.close()

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Drive

    @_drive(
        right="write",
        several=True,
        waiting=Waiting("{names} {until}", until="to take the text"),
        examples=(
            "send db 'select 1;'",
            "send db --no-enter -- -R",
            "send db 'select 6*7;' --wait-text '^42$' --screen",
            "printf 'a\\0b' | tmuxctl send db - --no-enter",
        ),
    )
    def send(
        self,
        session: SessionName,
        text: Annotated[Input, "the text to type; - reads standard input, byte for byte"] = b"",
        *,
        enter: Annotated[bool, "press Enter after it"] = True,
        paste: Annotated[bool, "send it as a bracketed paste, if the program has asked for that"] = False,
        multiline: Annotated[bool, "allow several lines without a bracketed paste"] = False,
        secret_from_env: Annotated[str | None, "type the value of this variable, if echo is off"] = None,
        secret_from_file: Annotated[FileName | None, "type the first line of this file, if echo is off"] = None,
        secret_from_fd: Annotated[int | None, "type what can be read from this descriptor, if echo is off"] = None,
        insecure: Annotated[bool, "type the text even at a password prompt"] = False,
        id: Annotated[str | None, "repeat an earlier write whose outcome is unknown: it is typed at most once"] = None,
        wait_text: WaitText = None,
        screen: ScreenAfter = False,
        timeout: TextTimeout = None,
    ) -> results.Written:
        """Type text exactly as given, then press Enter, and return without waiting.

        With --wait-text it then waits, as `wait --text` does, for output after this text that matches; the echo of the
        text does not count. With --screen it then prints the screen, without a state. So one command does what three do.

        Nothing in the text is special: no key names, no formats, no shell syntax. Text that begins with - goes after
        --. Nothing is typed while a person types, after the program has ended, or if the terminal would cut the text.
        At a password prompt text is refused too, because other users can see a command line: type a password with
        --secret-from-env or a similar option.

        If the profile says that the program takes a pasted text (submit), Enter is pressed once the text is on the
        screen.
        """
        from tmuxctl.control.caller_files import read_secret
        from tmuxctl.control.input import sending

        secret = read_secret(secret_from_env, secret_from_file, secret_from_fd)
        write = partial(
            sending.send,
            self.machine,
            session,
            text,
            enter=enter,
            paste=paste,
            multiline=multiline,
            secret=secret,
            insecure=insecure,
            write_id=id,
        )
        return _carry_out(self.machine, write, wait_text, screen, timeout)

    @_drive(
        right="write",
        waiting=Waiting("{names} {until}", until="to take the keys"),
        examples=(
            "keys db C-c",
            "keys db Up Enter",
            "keys db ctrl+r",
            "keys db Up Enter --wait-text '^42$' --screen",
        ),
    )
    def keys(
        self,
        session: SessionName,
        keys: Annotated[Key, "C-c ctrl+c Enter Up shift+tab F5 ..."],
        *,
        repeat: Annotated[int, "how many times to press them"] = 1,
        insecure: Annotated[bool, "press keys that type text even at a password prompt"] = False,
        id: Annotated[str | None, "repeat an earlier write whose outcome is unknown: it is typed at most once"] = None,
        wait_text: WaitText = None,
        screen: ScreenAfter = False,
        timeout: TextTimeout = None,
    ) -> results.Written:
        """Press named keys.

        Names are spelled as in tmux (C-c, Up, M-x) or in full (ctrl+c, up, alt+x). All of them are checked before the
        first key is sent.
        """
        from tmuxctl.control.input import sending

        write = partial(sending.press_named, self.machine, session, keys, repeat=repeat, insecure=insecure, write_id=id)
        return _carry_out(self.machine, write, wait_text, screen, timeout)

    @_drive(
        right="write",
        passes_status=True,
        several=True,
        waiting=Waiting("{names} to run {program}"),
        examples=(
            "exec build -- make -j4",
            "exec build 'cd src && git status'",
            "exec build --timeout 10m -- ./run-tests",
            "exec web1/sh,web2/sh -- uptime",
            "exec @web/sh --limit 4 -- uptime",
            "printf 'b\\na\\n' | tmuxctl exec build -- sort",
        ),
    )
    def exec(
        self,
        session: SessionName,
        command: Annotated[tuple[str, ...], "one argument is shell text; several are a program and its arguments"],
        *,
        timeout: Annotated[
            Seconds | None,
            "stop waiting after this long (default: 60s, the setting wait.exec_timeout); the command goes on",
        ] = None,
        max_bytes: Annotated[Bytes, "return at most this much of the output"] = 1 << 20,
        stdin: Annotated[
            FileName | None,
            "the file that the command reads instead of the terminal; /dev/tty is the terminal",
            Flag(own_input=True),
        ] = None,
    ) -> results.Ran:
        """Run a command in a session's shell, print its exact output, and exit with its status.

        The command runs in the shell itself, so the effects of cd, export, functions and aliases stay. It is refused
        unless a shell waits at its prompt. A command that asks a question or waits for a line of input is left running;
        the error says what it waits for.

        The command reads the terminal, or the file given with --stdin. On the command line it reads the standard input
        of tmuxctl, if that is a pipe or a file of which nothing was read yet. The command does not appear in the
        shell's history.
        """
        from tmuxctl.control.turns import commands

        given = None if stdin in (None, "/dev/tty") else os.path.abspath(os.path.expanduser(stdin))
        return commands.execute(self.machine, session, command, timeout=timeout, max_bytes=max_bytes, stdin=given)

    @_drive(
        right="write",
        several=True,
        waiting=Waiting("{names} to answer"),
        examples=(
            "ask db 'select count(*) from orders;'",
            "ask py 'sum(range(10))' --timeout 10s",
            "ask build 'apt-get install mc' --decide confirm=yes",
            "ask helper 'what does make test do?' --fallback codex --fallback gemini",
        ),
    )
    def ask(
        self,
        session: SessionName,
        text: Annotated[Input | None, "the text to type; - reads standard input"] = None,
        *,
        timeout: Annotated[
            Seconds | None,
            "stop waiting after this long (default: 120s, the setting wait.ask_timeout); the program goes on",
        ] = None,
        decide: Annotated[tuple[str, ...], "answer questions: allow, deny, KIND=OPTION, *=stop"] = (),
        raw: Annotated[bool, "return everything that was drawn, echo and prompts too"] = False,
        file: Annotated[FileName | None, "type the contents of this file"] = None,
        queue: Annotated[bool, "wait until the program is ready, as long as the timeout allows"] = False,
        interrupt: Annotated[bool, "interrupt what is running first"] = False,
        strict: Annotated[bool, "go on waiting if nothing shows whether the program is done"] = False,
        new: Annotated[str | None, "start the session with this command if it does not exist"] = None,
        fallback: Annotated[
            ProfileNames,
            "the profile of a program that takes the turn if this one is at its usage limit, has ended or is not installed",
        ] = (),
        id: Annotated[
            str | None, "go on with the turn of an earlier call with this id, if there was one: its text is given once"
        ] = None,
    ) -> results.Answer:
        """Type text into a program, wait for its answer, and print it.

        The answer contains neither prompt nor echo. If the program asks a question, the turn ends (exit status 6),
        unless --decide answers it. The text is refused (4) while something else runs, also an earlier turn that timed
        out.

        If the program has reached its usage limit, has ended or is not installed, another program takes the turn: first
        those of --fallback, then the other candidates of the session (`new --candidates`). It runs in a session of its
        own, NAME-PROFILE, and the result says which session answered. No other program takes the turn if the first one
        may have received it, is busy, asks a question, or takes too long.
        """
        from tmuxctl.control.input import deciding
        from tmuxctl.control.turns import turn

        given = turn.text(text, file)
        policies = deciding.parse_policies(decide)
        asked = turn.Asked(
            timeout=timeout, decide=policies, raw=raw, queue=queue, interrupt=interrupt, strict=strict, id=id
        )
        if not fallback and not turn.has_candidates(self.machine):
            return turn.ask(self.machine, session, given, asked, new=new)
        from tmuxctl.control.turns import failover

        return failover.ask(self.machine, session, given, asked, fallback=fallback, new=new)

    @_drive(
        right="write",
        examples=(
            "decide fix",
            "decide fix allow",
            "decide setup yes --id 3f2a91c0",
            "decide box --secret-from-env PW",
        ),
    )
    def decide(
        self,
        session: SessionName,
        option: Annotated[
            OptionName | None, "an option's id, label or number; any text where the question takes text"
        ] = None,
        *,
        id: Annotated[str | None, "answer only if the question with this id is still open"] = None,
        secret_from_env: Annotated[str | None, "a password: the value of this variable"] = None,
        secret_from_file: Annotated[FileName | None, "a password: the first line of this file"] = None,
        secret_from_fd: Annotated[int | None, "a password: what can be read from this descriptor"] = None,
        wait: Annotated[bool, "then wait until the program is idle, asks again or has ended"] = False,
        timeout: Annotated[Seconds | None, "wait at most this long (default: 30s, the setting wait.timeout)"] = None,
    ) -> results.Decided:
        """Answer a program's question, or print it with its options.

        An empty answer chooses what Enter alone would choose. Nothing is typed if no question is open, or if --id names
        another one.
        """
        from tmuxctl.control.caller_files import read_secret
        from tmuxctl.control.input import deciding

        secret = read_secret(secret_from_env, secret_from_file, secret_from_fd)
        return deciding.decide(self.machine, session, option, id=id, secret=secret, wait=wait, timeout=timeout)

    @_drive(
        right="read",
        several=True,
        waiting=Waiting("{names} {until}", unless=("now",), until="to be idle"),
        examples=(
            "wait db",
            "wait build --exit --timeout 10m",
            "wait db --text 'rows? in set'",
            "wait build --prompt",
            "wait --any web,worker --input",
            "wait web,worker --exit",
            "wait db --now",
        ),
    )
    def wait(
        self,
        session: SessionName | None = None,
        *,
        idle: Annotated[bool, "until it takes input of any kind (the default)", Until("to be idle")] = False,
        prompt: Annotated[bool, "until it is ready for the next command", Until("to be at its prompt")] = False,
        input: Annotated[
            bool, "until it wants any other input: a decision, a password, a line, a key", Until("to want input")
        ] = False,
        asking: Annotated[bool, "until it asks a question", Until("to ask")] = False,
        exit: Annotated[bool, "until the program has ended", Until("to end")] = False,
        text: Annotated[
            Pattern | None, "until its output matches this regular expression", Until("to print it")
        ] = None,
        gone: Annotated[
            Pattern | None, "until its screen does not match this regular expression", Until("to clear it")
        ] = None,
        change: Annotated[bool, "until it prints anything", Until("to print something")] = False,
        settle: Annotated[Seconds | None, "until it has printed nothing for this long", Until("to fall silent")] = None,
        timeout: Annotated[
            Seconds | None, "stop waiting after this long (default: 30s, the setting wait.timeout)"
        ] = None,
        since: Annotated[
            CursorText | None, "look at output after this cursor, or with `screen` at all that is visible"
        ] = None,
        now: Annotated[bool, "check once, do not wait; exit status 1 if the condition does not hold"] = False,
        any: Annotated[Names | None, "until the condition holds for one of these sessions: A,B,C"] = None,
        all: Annotated[Names | None, "until the condition holds for each of these sessions: A,B,C"] = None,
    ) -> results.Wait | results.Waits:
        """Wait until a program takes input, asks, ends, or prints a text.

        The first condition that holds ends the wait. Silence does not make a program idle: the marks of its shell, the
        kernel (which process waits for the terminal) and its prompts show whether it takes input. If it asks a question
        before it is idle, the exit status is 6; if it ends, 5.

        A program is also idle if a command that it runs reads a line. --prompt and --input tell the two apart: --prompt
        waits until the program is ready for its next command (exit status 6 if a command wants input first), --input
        until something else has to be typed.

        --text searches the output after the last input, without its echo. If nothing was ever typed, or with --since
        screen, it searches all that is visible. Silence never ends such a wait. Patterns are Python regular
        expressions, in which ^ and $ match at every line.
        """
        from tmuxctl.control.waiting import waits

        wanted = waits.Conditions(idle, asking, exit, text, gone, change, settle, prompt=prompt, input=input)
        names = waits.sessions_of(session, any, all)
        if session is None:
            every = all is not None
            return waits.several(self.machine, names, wanted, every=every, timeout=timeout, since=since, now=now)
        return waits.wait(self.machine, session, wanted, timeout=timeout, since=since, now=now)

    @_drive(
        right="write",
        waiting=Waiting("{names} to carry out the steps"),
        examples=(
            """batch db '[{"ask": "select 6*7;"}, {"screen": {}}]'""",
            """batch sh '[{"send": "make"}, {"wait": {"prompt": true, "timeout": "5m"}}, {"exec": "git status"}]'""",
            """printf '%s\\n' '{"send": "select 6*7;"}' '{"wait": {"text": "^42$"}}' | tmuxctl batch db -""",
            "batch sh --file steps.json --keep-going --json",
        ),
    )
    def batch(
        self,
        session: SessionName,
        steps: Annotated[
            Steps | None, "the steps as JSON: an array of objects, or an object on each line; - reads standard input"
        ] = None,
        *,
        file: Annotated[FileName | None, "read the steps from this file"] = None,
        keep_going: Annotated[bool, "carry out the other steps though one failed"] = False,
        timeout: Annotated[Seconds | None, "stop after this long, at whatever step (default: none)"] = None,
    ) -> results.Batch:
        """Carry out several steps on a session in one call, in order, and print the result of each.

        A step is an object with one key, which is send, keys, ask, exec, decide, wait or screen. Its value holds the
        parameters of that command, with _ for each - inside their names: {"wait": {"text": "RE", "timeout": "10s"}}.
        Instead of an object it may be the first argument alone: {"send": "TEXT"}, {"keys": ["Up", "Enter"]}, {"exec":
        ["make", "-j4"]}. All steps are checked before the first is carried out: their names, parameters, keys and patterns.

        A wait looks at what comes after the last step that typed something, even if others type in between; the echo of
        that input does not count. A step fails if its command alone would not have ended with 0. The steps after it are
        not run, unless --keep-going is given. Each step has the timeout of its command; --timeout bounds the whole.

        A session has one batch at a time. Other commands can type between its steps, to answer a question or to stop
        what runs.
        """
        from tmuxctl.control.turns import batch

        find_step: Callable[[str], Operation] = partial(find, type(self))  # type: ignore[arg-type]  # a class is hashable
        planned = batch.parse_steps(steps, file, find_step, limit=self.machine.limits.batch_steps)

        def carry_out(step: batch.PlannedStep) -> Any:
            return unwrap(step.operation.function)(self, session, **step.arguments)

        return batch.run(self.machine, session, planned, carry_out, keep_going=keep_going, timeout=timeout)

    @_drive(
        right="write",
        several=True,
        waiting=Waiting("{names} to take the message"),
        examples=(
            "tell helper 'The tests in src/ fail since Monday.'",
            "tell helper 'Is the release ready?' --from reviewer --wait",
            "git log -1 | tmuxctl tell helper -",
        ),
    )
    def tell(
        self,
        session: SessionName,
        text: Annotated[Input, "the message; - reads standard input"],
        *,
        from_: Annotated[
            str | None, "who sends it: a name (default: that of the session in which this runs, else the user's)"
        ] = None,
        wait: Annotated[bool, "wait until it is delivered, and for the answer"] = False,
        timeout: Annotated[
            Seconds | None, "with --wait: wait at most this long (default: 120s, the setting wait.ask_timeout)"
        ] = None,
        force: Annotated[
            bool, "also tell a program that is no agent: a shell executes each line of the message as a command"
        ] = False,
        id: Annotated[str | None, "repeat a message whose outcome is unknown: it is kept at most once"] = None,
    ) -> results.Told:
        """Put a message into the inbox of an agent program, which gets it when it takes its next text.

        A program that takes a text now gets it at once. Else the message waits, while the program works, asks a question
        or a person types; the next `tell`, a `tell --wait` and `serve` deliver it, with all others that wait, as one text
        in the order in which they came. Each begins with a line [from NAME]; a line in a message that looks like that gets
        a > before it. Nothing is submitted twice.

        Other programs than agents are refused, because a shell would execute the message: the profile of the session
        has to have `detail: agent` in a rule for its prompt, and `submit: {mode: paste}`.
        """
        from tmuxctl.control.turns import inbox

        return inbox.tell(
            self.machine, session, text, sender=from_, force=force, wait=wait, timeout=timeout, message_id=id
        )

    @_drive(right="read", family=True, examples=("inbox ls helper", "inbox ls helper --json"))
    def inbox_ls(self, session: SessionName) -> results.Inbox:
        """List the messages that wait for an agent program, oldest first."""
        from tmuxctl.control.turns import inbox

        return inbox.list_messages(self.machine, session)

    @_drive(right="write", family=True, idempotent=True, examples=("inbox clear helper",))
    def inbox_clear(self, session: SessionName) -> results.Inbox:
        """Remove the messages that wait for an agent program, and print them."""
        from tmuxctl.control.turns import inbox

        return inbox.clear(self.machine, session)

    # Look

    @_look(
        right="read",
        examples=(
            "screen db",
            "screen db --svg db.svg",
            "screen db --scrollback 200",
            "screen db --at -1",
            "screen db --at 14:05",
        ),
    )
    def screen(
        self,
        session: SessionName,
        *,
        at: Annotated[
            str | None,
            "as it was then: at a cursor, at the end of a turn (3; -1: the one before the last), at a time (14:05:30, ISO 8601,"
            " -5m), at mark:TEXT",
        ] = None,
        ansi: Annotated[bool, "with colours, as escape sequences"] = False,
        html: Annotated[bool, "as an HTML page", Flag(to_file=True)] = False,
        svg: Annotated[bool, "as an SVG picture", Flag(to_file=True)] = False,
        scrollback: Annotated[
            int | None, "also the last N lines that scrolled away (0: all)", Flag(bare="0", value=r"\d+")
        ] = None,
        trim: Annotated[bool, "remove spaces at the end of rows"] = True,
        wide: Annotated[bool, "join rows that the terminal wrapped"] = False,
        state: Annotated[bool, "also say what the program does, which takes most of the time"] = True,
    ) -> results.Screen:
        """Print what a person would see now: rows of text without control characters.

        With --at it prints what stood there earlier, also of a full-screen program and after its end, as far back as
        the journal reaches. Times are known of what was typed, asked, answered and marked; another time means the
        nearest of these, and the result says which. It also says if a part of the screen is not known (approximate).
        """
        if at is not None:
            from tmuxctl.control.output import moments

            if scrollback is not None or wide:
                raise Usage(
                    "--at shows the screen alone", reason="bad_option", hint="leave --scrollback and --wide out"
                )
            return moments.screen_at(self.machine, session, at, ansi=ansi, html=html, svg=svg, trim=trim)
        from tmuxctl.control.output import captured

        return captured.screen(
            self.machine,
            session,
            ansi=ansi,
            html=html,
            svg=svg,
            scrollback=scrollback,
            trim=trim,
            wide=wide,
            state=state,
        )

    @_look(
        right="read",
        streams=True,
        view="cursor",
        examples=("read db", "read db --since c1:9f2c.1:118", "read build --follow"),
    )
    def read(
        self,
        session: SessionName,
        *,
        since: Annotated[
            CursorText | None, "print output after this cursor; default: after the last input, without its echo"
        ] = None,
        follow: Annotated[bool, "keep printing until the program ends", Flag(("-f",))] = False,
        raw: Annotated[bool, "print the bytes as they came, with escape sequences"] = False,
        answer_to: Annotated[str | None, "print the answer to the last input that contains this text"] = None,
        turn: Annotated[int | None, "print the answer of this turn of `ask` (-1: the one before the last)"] = None,
    ) -> results.Output | Iterator[results.Output]:
        """Print a session's output after a cursor, as text, with the cursor for the next read."""
        if turn is not None:
            from tmuxctl.control.output import moments

            return moments.answer_of_turn(self.machine, session, turn)
        if answer_to is not None:
            from tmuxctl.control.turns.turn import answer_to as find_answer

            return find_answer(self.machine, session, answer_to)
        from tmuxctl.control.output import printed

        return printed.read(self.machine, session, since=since, follow=follow, raw=raw)

    @_look(right="read", streams=True, examples=("log build", "log build -n 20 -f", "log build --timestamps"))
    def log(
        self,
        session: SessionName,
        *,
        tail: Annotated[int | None, "only the last N lines", Flag(("-n",))] = None,
        follow: Annotated[bool, "keep printing until the program ends", Flag(("-f",))] = False,
        raw: Annotated[bool, "print the bytes as they came, with escape sequences"] = False,
        timestamps: Annotated[bool, "print before each line when it was printed (~: estimated)"] = False,
    ) -> results.Output | Iterator[results.Output]:
        """Print everything that a session printed, as far back as its journal goes.

        With --timestamps each line begins with its time of day. Times are known of what was typed, asked, answered and
        marked; those of the lines between are estimated, as if the output had come evenly, and begin with ~.
        """
        from tmuxctl.control.output import printed

        if timestamps and raw:
            raise Usage("bytes have no timestamps", reason="bad_option", hint="leave --raw or --timestamps out")
        return printed.log(self.machine, session, tail=tail, follow=follow, raw=raw, stamped=timestamps)

    @_look(right="write", examples=("mark build 'tests begin'",))
    def mark(
        self,
        session: SessionName,
        text: Annotated[str, "what to call this moment"],
    ) -> results.Marked:
        """Give this moment of a session a name: `screen NAME --at mark:TEXT` shows what stood there then.

        Nothing is typed into the session.
        """
        from tmuxctl.control.output import moments

        return moments.mark(self.machine, session, text)

    @_look(right="write", examples=("rec build", "rec build build.cast", "rec build --stop"))
    def rec(
        self,
        session: SessionName,
        file: Annotated[str | None, "the asciicast to write at the end"] = None,
        *,
        stop: Annotated[bool, "end the recording, and write the file"] = False,
    ) -> results.Recorded:
        """Record a session: keep exactly when its output comes.

        What a session prints is kept anyway, and `export` can write a recording of it afterwards; but the times between
        what was typed, asked and answered are then estimated. A recording ends with --stop or with the session. It takes
        a process of its own as long as it lasts.
        """
        from tmuxctl.control.recordings import recorder

        return recorder.rec(self.machine, session, file, stop=stop)

    @_look(
        right="read",
        waiting=Waiting("the file to be written"),
        examples=(
            "export build build.cast",
            "export build build.html --since -10m --idle-limit 1s",
            "export demo.cast demo.svg --speed 2",
            "export build build.png --until mark:ready",
        ),
    )
    def export(
        self,
        source: Annotated[str, "a session, or an asciicast: a path, or a name that ends in .cast"],
        file: Annotated[str, "the file to write: .cast, .svg, .html, .gif, .png; - is an asciicast on standard output"],
        *,
        since: Annotated[str | None, "begin at this moment of the session: see screen --at"] = None,
        until: Annotated[str | None, "end at this moment of the session"] = None,
        idle_limit: Annotated[Seconds | None, "shorten pauses to this"] = None,
        speed: Annotated[Factor, "so many times as fast"] = 1.0,
        cast_version: Annotated[int, "the version of asciicast: 2 or 3"] = 3,
        font: Annotated[str | None, "the font of a .gif or .png: a file, or a family"] = None,
        theme: Annotated[Literal["dark", "light"], "the colours of a picture where the program chose none"] = "dark",
    ) -> results.Exported | None:
        """Write what a session printed as a recording: an asciicast, an SVG or GIF that plays by itself, a page with a
        player; or as a PNG the screen at its end.

        It reaches as far back as the journal, and needs no preparation. Times are known of what was typed, asked,
        answered and marked; between them the output counts as evenly spread, and the result says so (estimated). What
        was typed is in it where the terminal showed it; secrets are not.

        .gif and .png need the extra `pictures`: pip install 'tmux-control-plane[pictures]'. Their font is that which
        fontconfig calls monospace, unless --font names one.
        """
        from tmuxctl.control.recordings import exporting

        return exporting.export(
            self.machine,
            source,
            file,
            since=since,
            until=until,
            idle_limit=idle_limit,
            speed=speed,
            version=cast_version,
            font=font,
            theme=theme,
        )

    @_look(
        right="read",
        waiting=Waiting("the file to be written"),
        examples=("report build build.md", "report build build.html"),
    )
    def report(
        self,
        session: SessionName,
        file: Annotated[str, "the file to write: .md or .html"],
    ) -> results.Reported:
        """Write what a session did as one file to read: its turns and their answers, what it asked, what was typed, how it
        ended, and its screen at each question, at each mark and at the end.

        Secrets are not in it. What the program printed is, so read it before you send it to anybody.
        """
        from tmuxctl.control.recordings import reporting

        return reporting.report(self.machine, session, file)

    @_look(
        right="read",
        events=True,
        streams=True,
        examples=(
            "watch",
            "watch db fix --json",
            "watch --state input",
            """watch fix --on-asking 'notify-send "$TMUXCTL_SESSION asks"'""",
            "watch --notify",
            "watch --all-machines --state input",
        ),
    )
    def watch(
        self,
        session: Annotated[SessionNames, "names or ids; default: all sessions, also new ones"] = (),
        *,
        state: Annotated[
            StateFilter | None,
            "print only changes to this state; prompt: ready for the next command, input: wants any other input",
        ] = None,
        all_machines: AllMachines = False,
    ) -> Iterator[results.Event]:
        """Print each session's state, then every change of it; end when all named sessions have ended.

        With --all-machines, of a machine that cannot be followed its own state is told, `unknown` with the reason, under its
        name with a slash (`web1/`), and each of its sessions is `unknown` until it can be followed again.
        """
        from tmuxctl.control.waiting import watching

        if not all_machines:
            return watching.watch(self.machine, session, state)
        if session:
            hint = "name sessions of other machines so: watch web1/build"
            raise Usage("--all-machines watches all sessions", reason="bad_option", hint=hint)
        from tmuxctl.control.machines import everywhere

        def look(machine: Machine) -> Iterator[results.Event]:
            if machine.remote is not None:
                return Control.of(machine).watch(state=state)
            return watching.watch(machine, (), state)

        events = everywhere.watch(self.machine, look)
        return events if state is None else (one for one in events if state in (one.state.value, one.wants))

    @_look(
        right="read",
        examples=("explain db", "explain --file screen.txt --profile python", "explain db --evidence --json >why.json"),
    )
    def explain(
        self,
        session: SessionName | None = None,
        *,
        file: Annotated[FileName | None, "a saved screen, or the saved output of --evidence"] = None,
        profile: Annotated[ProfileChoice | None, "judge the file by this profile"] = None,
        title: Annotated[str | None, "the terminal title that belongs to the file"] = None,
        cursor: Annotated[
            str | None, "the cursor position on that screen, X,Y from 0; default: after its last text"
        ] = None,
        before: Annotated[FileName | None, "the screen before the last input: print the answer that came since"] = None,
        evidence: Annotated[bool, "include the evidence itself, which --file can judge again"] = False,
    ) -> results.Explained:
        """Say why a session has its state, with all evidence.

        It prints each piece of evidence, its age, and the state that it speaks for.
        """
        from tmuxctl.control.observation import explaining

        if file is not None and session is None:
            return explaining.explain_saved(
                file, profile=profile, title=title, cursor=cursor, before=before, evidence=evidence
            )
        if session is None or file is not None:
            raise Usage("name a session or a file", reason="missing", hint="tmuxctl explain NAME, or --file SCREEN")
        return explaining.explain_live(self.machine, session, evidence=evidence)

    @_look(right="read", view="facts", examples=("show db", "show db --json"))
    def show(self, session: SessionName) -> Session:
        """Print everything known about one session."""
        from tmuxctl.control.lifecycle import listing

        return listing.show(self.machine, session)

    # Sessions

    @_sessions(
        right="create",
        waiting=Waiting("{names} to be ready", unless=("wait", "dry_run")),
        view="started",
        examples=(
            "new db -- sqlite3 shop.db",
            "new -- python3 -q",
            "new task --worktree task-1 --sandbox -- bash",
            "new web1/job -- make",
            "new build --cwd ~/src --lifetime 2h -- make",
            "new fix --candidates claude,codex,gemini",
            "new fix --candidates claude,codex --route cheapest --dry-run",
        ),
    )
    def new(
        self,
        name: Annotated[NewName | None, "the name of the session; default: after the command"] = None,
        command: Annotated[
            tuple[str, ...], "the program and its arguments, started without a shell; default: $SHELL"
        ] = (),
        *,
        cwd: Annotated[FolderName | None, "the folder to start in; default: the current one"] = None,
        env: Annotated[dict[str, str] | None, "set a variable", Flag(("-e",))] = None,
        size: Annotated[SizeText | None, "columns x rows (default: 120x40, the setting tmux.size)"] = None,
        history: Annotated[
            int | None, "how many lines of scrollback to keep (default: 2000, the setting tmux.history)"
        ] = None,
        profile: ProfileChoice = "auto",
        clean_env: Annotated[bool, "start from a short list of variables instead of your whole environment"] = False,
        login: Annotated[bool, "start a shell as a login shell"] = False,
        shell_marks: Annotated[bool, "let bash, zsh and fish mark their prompts and commands"] = True,
        if_exists: Annotated[
            Literal["error", "reuse", "replace"], "what to do if a session of this name exists"
        ] = "error",
        with_: Annotated[tuple[str, ...], "apply a plugin: NAME, NAME=VALUE or NAME:option=value"] = (),
        worktree: Annotated[
            str | None, "the worktree plugin: a git worktree of this branch, made if there is none"
        ] = None,
        sandbox: Annotated[
            str | None,
            "the sandbox plugin: read-only, workspace or workspace+net",
            Flag(bare="workspace", value="read-only|workspace.*"),
        ] = None,
        scratchpad: Annotated[
            str | None,
            "the scratchpad plugin: a folder shared by the sessions that name it",
            Flag(bare="shared", value="[^-].*"),
        ] = None,
        env_file: Annotated[FileName | None, "the env plugin: variables from a file"] = None,
        lifetime: Annotated[str | None, "the timeout plugin: end the program after this long"] = None,
        tag: Annotated[Tags, "a word to find the session by"] = (),
        owner: Annotated[str | None, "who starts it: a word that `show --json` tells"] = None,
        candidates: Annotated[
            ProfileList | None,
            "start the first of these profiles (A,B,C) whose program is installed and starts",
        ] = None,
        route: Annotated[
            Literal["first", "cheapest", "round-robin", "least-limited"],
            "the order in which candidates are tried: as given, the cheapest first, in turn, or longest without a limit",
        ] = "first",
        rec: Annotated[bool, "record it from its start on: see `rec`"] = False,
        machine: MachineOption = None,
        wait: Annotated[bool, "wait until it is ready, asks, has ended, or has been busy for 2 s"] = True,
        dry_run: Annotated[bool, "print what would be done, and do nothing"] = False,
    ) -> Session | results.Plan:
        """Start a program in a session of its own, which outlives this command and your terminal."""
        from tmuxctl.control.lifecycle import creation

        flags = {"worktree": worktree, "sandbox": sandbox, "scratchpad": scratchpad, "env": env_file}
        plugins = (*with_, *creation.plugin_words(flags, lifetime, self.machine.settings.limits_idle_kill))
        wanted = creation.SessionRequest(
            name=name,
            command=command,
            cwd=cwd,
            env=env or {},
            size=size,
            history=history,
            profile=profile,
            clean_env=clean_env,
            login=login,
            shell_marks=shell_marks,
            if_exists=if_exists,
            plugins=plugins,
            tags=check_tags(tag, self.machine.limits.tags),
            owner=owner,
        )
        if candidates is not None:
            from tmuxctl.control.turns import candidates as choice

            if dry_run:
                return choice.plan(self.machine, wanted, candidates, route)
            made = choice.new(self.machine, wanted, candidates, route, wait=wait)
        elif dry_run:
            return creation.plan(self.machine, wanted)
        else:
            made = creation.new(self.machine, wanted)
        if rec:
            from tmuxctl.control.recordings import recorder

            recorder.record_new(self.machine, made.id)
        if not wait or candidates is not None:
            return made
        from tmuxctl.control.observation import observing

        return observing.wait_until_ready(self.machine, made)

    @_sessions(
        right="create",
        passes_status=True,
        waiting=Waiting("{program} in {names} to end", transient=True),
        examples=("run -- make test", "run --timeout 10m -- ./deploy.sh", "run --machine web1 -- df -h"),
    )
    def run(
        self,
        command: Annotated[tuple[str, ...], "the program and its arguments, started without a shell"],
        *,
        name: Annotated[NewName | None, "the name of the session while it runs"] = None,
        cwd: Annotated[FolderName | None, "the folder to start in; default: the current one"] = None,
        env: Annotated[dict[str, str] | None, "set a variable", Flag(("-e",))] = None,
        size: Annotated[SizeText | None, "columns x rows (default: 120x40, the setting tmux.size)"] = None,
        clean_env: Annotated[bool, "start from a short list of variables instead of your whole environment"] = False,
        with_: Annotated[tuple[str, ...], "apply a plugin: NAME, NAME=VALUE or NAME:option=value"] = (),
        timeout: Annotated[Seconds | None, "end the program after this long (default: none; in a sandbox 1h)"] = None,
        max_bytes: Annotated[Bytes, "return at most this much of the output"] = 64 << 20,
        machine: MachineOption = None,
    ) -> results.Ran:
        """Run a program in a new session, print its output, and remove the session.

        The exit status is that of the program, or 124 if it took too long. If the program asks a question and gets no
        answer within three seconds, it is ended; the error says what it asked.
        """
        from tmuxctl.control.lifecycle import creation
        from tmuxctl.control.turns import commands

        wanted = creation.SessionRequest(
            name=name,
            command=command,
            cwd=cwd,
            env=env or {},
            size=size,
            clean_env=clean_env,
            plugins=with_,
            shell_marks=False,
            linger=True,
        )
        return commands.run(self.machine, wanted, timeout=timeout, max_bytes=max_bytes)

    @_sessions(
        right="read",
        rows=True,
        examples=("ls", "ls --state input", "ls --tag nightly -F '{name}\\t{state}'", "ls --json", "ls web1/"),
    )
    def ls(
        self,
        machine: Annotated[MachineName | None, "list those of this machine: NAME, or NAME/"] = None,
        *,
        state: Annotated[
            StateFilter | None,
            "only sessions in this state; prompt: ready for the next command, input: wants any other input",
        ] = None,
        tag: Annotated[str | None, ValueKind("tag", TEXT.schema, TEXT.parse), "only sessions with this tag"] = None,
        all_sockets: Annotated[bool, "also the panes of your other tmux servers"] = False,
        ended: Annotated[bool, "also killed sessions whose output is still kept", Flag(("-a",))] = False,
        all_machines: AllMachines = False,
    ) -> results.Sessions:
        """List all sessions, including ended, lost and adopted ones."""
        from tmuxctl.control.lifecycle import listing

        def look(machine: Machine) -> results.Sessions:
            if machine.remote is not None:
                listed: results.Sessions = Control.of(machine).ls(state=state, tag=tag, ended=ended)
                return listed
            return listing.ls(
                machine, state=state, tag=tag, all_sockets=all_sockets and not machine.address, ended=ended
            )

        if not all_machines:
            return listing.ls(self.machine, state=state, tag=tag, all_sockets=all_sockets, ended=ended)
        from tmuxctl.control.machines import everywhere

        return everywhere.list_sessions(self.machine, look)

    @_look(
        right="read",
        streams=True,
        examples=("status", "status --format json", "status --follow", "status --all-machines"),
    )
    def status(
        self,
        *,
        follow: Annotated[bool, "go on, and print the line anew whenever it changes", Flag(("-f",))] = False,
        all_machines: AllMachines = False,
        format: Annotated[
            Literal["plain", "tmux", "json"], "json: an object that waybar, i3blocks and i3bar read"
        ] = "plain",
    ) -> results.StatusLine | Iterator[results.StatusLine]:
        """Print how many sessions are busy and how many want input: `3 busy  !2`.

        For the status line of tmux, shell prompts and bars; nothing is printed where there is neither. A session that
        is ready for its next command does not count; one with a question does. `attach --next-asking` goes to it. With
        --follow one process goes on, so that a bar that reads it starts none, and shows each change at once. With
        --all-machines, a machine that does not answer is told on standard error.
        """
        from tmuxctl.control.waiting import status_line

        found = self.ls(all_machines=all_machines)
        if follow:
            return status_line.follow(found.sessions, self.watch(all_machines=all_machines), format)
        return changed(status_line.sum_up(found.sessions, format), problems=found.problems)

    @_sessions(right="create", examples=("adopt tmux:work:1.0 build", "adopt tmux@other:%3 --profile psql"))
    def adopt(
        self,
        target: Annotated[str, "tmux:TARGET, or tmux@SOCKET:TARGET; see ls --all-sockets"],
        name: Annotated[NewName | None, "the name to give it; default: that of its tmux session"] = None,
        *,
        profile: ProfileChoice = "auto",
    ) -> Session:
        """Drive a pane of another tmux server under a name.

        The pane gets a profile, and a journal of its output from now on. Nothing on that server changes: no option, no
        layout. If another program already reads the output of the pane (pipe-pane), it goes on, and tmuxctl has no
        journal. The exit status of a program there cannot be known. `release` gives the pane back.
        """
        from tmuxctl.control.lifecycle import adopting

        return adopting.adopt(self.machine, target, name, profile=profile)

    @_sessions(right="kill", idempotent=True, view="pairs", examples=("release build",))
    def release(self, names: Annotated[AdoptedNames, "the names of adopted panes"]) -> results.Released:
        """Stop driving adopted panes; their programs go on, and tmuxctl removes what it kept about them."""
        from tmuxctl.control.lifecycle import adopting

        return adopting.release(self.machine, names)

    @_sessions(
        right="write",
        idempotent=True,
        view="tags",
        examples=("tag build nightly web", "tag build --remove web", "tag build"),
    )
    def tag(
        self,
        session: SessionName,
        tags: Annotated[Tags, "tags to add"] = (),
        *,
        remove: Annotated[Tags, "remove this tag"] = (),
    ) -> Session:
        """Add tags to a session or remove some, and print the tags it has."""
        from tmuxctl.control.lifecycle import tags as tagging

        return tagging.change_tags(self.machine, session, tags, remove)

    @_sessions(
        right="kill",
        idempotent=True,
        examples=("kill db", "kill --all", "kill build --signal INT --grace 10s", "kill tmux:work:1.0 --force"),
    )
    def kill(
        self,
        session: Annotated[SessionNames, "names or ids"] = (),
        *,
        all: Annotated[bool, "every session of this server"] = False,
        signal: Annotated[str, "the signal to send first"] = "TERM",
        grace: Annotated[Seconds, "how long to wait before KILL"] = 3.0,
        force: Annotated[
            bool, "also end panes of another tmux, and remove unsaved work that plugins would keep"
        ] = False,
    ) -> results.Killed:
        """End sessions with all their processes.

        Each process gets the signal, and KILL after the grace period; then the session is removed. Its output and its
        exit status stay readable until `prune`.
        """
        from tmuxctl.control.lifecycle import ending

        return ending.kill(self.machine, session, everything=all, signal=signal, grace=grace, force=force)

    @_sessions(right="write", examples=("rename db shop",))
    def rename(self, session: SessionName, name: Annotated[NewName, "the new name"]) -> Session:
        """Give a session another name; its id and cursors stay valid."""
        from tmuxctl.control.lifecycle import changing

        return changing.rename(self.machine, session, name)

    @_sessions(right="write", idempotent=True, examples=("resize db 100x30",))
    def resize(self, session: SessionName, size: Annotated[SizeText, "columns x rows"]) -> Session:
        """Change a session's terminal size."""
        from tmuxctl.control.lifecycle import changing

        return changing.resize(self.machine, session, size)

    @_sessions(right="create", idempotent=True, examples=("restore --dry-run", "restore", "restore db build"))
    def restore(
        self,
        session: Annotated[SessionNames, "names or ids; default: every lost session"] = (),
        *,
        dry_run: Annotated[bool, "print what would be done, and start nothing"] = False,
        timeout: Annotated[Seconds, "how long preparing each session may take"] = 60.0,
    ) -> results.Restored:
        """Start lost sessions again, after tmux's server died or the machine was restarted.

        A session gets back its name, id, folder, size, environment and plugins, and its earlier output can still be
        read. Its program starts from the beginning. Sessions are started at the same time: one that fails, or takes
        longer than --timeout, does not delay the others. The exit status is 1 if one could not be started.
        """
        from tmuxctl.control.lifecycle import restoring

        # what it names is lost: on its machine it is nowhere but there
        place, session = on_one_machine(self.machine, session)
        if place.remote is not None:
            wanted = {"session": session, "dry_run": dry_run, "timeout": timeout}
            there: results.Restored = place.remote.call("restore", wanted, address=place.address)
            return there
        restored: results.Restored = Control.of(place).carry_out(
            lambda: restoring.restore(place, session, dry_run=dry_run, timeout=timeout)
        )
        return restored

    @_sessions(right="write", idempotent=True, examples=("sync", "sync topic"))
    def sync(
        self, session: Annotated[SessionNames, "names or ids; default: every session that has something to bring"] = ()
    ) -> results.Synced:
        """Bring what was committed in a sandbox to your repository, while its session goes on.

        `kill` does so too. The branch that is checked out in the sandbox is moved, unless you moved it yourself. What
        cannot be brought under its own name is kept as `refs/sandbox/...`, and the result names it.
        """
        from tmuxctl.control.lifecycle import ending

        place, session = on_one_machine(self.machine, session)
        if place.remote is not None:
            there: results.Synced = place.remote.call("sync", {"session": session}, address=place.address)
            return there
        brought: results.Synced = Control.of(place).carry_out(lambda: ending.sync(place, session))
        return brought

    @_sessions(right="kill", idempotent=True, examples=("prune --dry-run", "prune"))
    def prune(
        self,
        *,
        dry_run: Annotated[bool, "print what would be removed, and remove nothing"] = False,
        force: Annotated[bool, "also remove what plugins keep: worktrees with unsaved work"] = False,
    ) -> results.Pruned:
        """Remove sessions whose program has ended, and what is kept of lost and killed ones.

        A worktree with work that exists nowhere else is kept, and the result names it.
        """
        from tmuxctl.control.lifecycle import ending

        return ending.prune(self.machine, dry_run=dry_run, force=force)

    # Set up

    @operation(right="read", group="Set up", examples=("doctor", "doctor --fix", "doctor --machine web1"))
    def doctor(
        self,
        *,
        fix: Annotated[bool, "end processes that sessions of this server left behind"] = False,
        machine: MachineOption = None,
    ) -> results.Doctor:
        """Check what tmuxctl needs; say what to do about problems.

        It looks at Python, tmux, its server, the folders of tmuxctl and the limits of the machine. Of another machine
        it looks at all but Python, the settings and the terminal, which are those of this one.
        """
        from tmuxctl.control.setup import doctor

        return doctor.examine(self.machine, fix=fix)

    @set_up(right="read", examples=("profile ls", "profile ls --json"))
    def profile_ls(self) -> results.Profiles:
        """List the profiles, which say how programs look; your own come before the shipped ones."""
        from tmuxctl.control.setup import profiles

        return profiles.ls()

    @set_up(right="read", examples=("profile show python", "profile show bash >~/.config/tmuxctl/profiles/mine.yaml"))
    def profile_show(self, name: Annotated[ProfileName, "the name of the profile, or a file"]) -> results.ProfileFile:
        """Print a profile as one file, with everything it extends."""
        from tmuxctl.control.setup import profiles

        return profiles.show(name)

    @set_up(right="read", examples=("profile test", "profile test mine", "profile test ./mine.yaml"))
    def profile_test(
        self, name: Annotated[ProfileNames, "names, or files; default: every profile"] = ()
    ) -> results.ProfilesTested:
        """Test profiles on their saved screens; exit status 1 if one is judged wrongly."""
        from tmuxctl.control.setup import profiles

        return profiles.test(name)

    @set_up(right="create", examples=("profile check python", "profile check bash -- bash --norc"))
    def profile_check(
        self,
        name: Annotated[ProfileName, "the name of the profile, or a file"],
        command: Annotated[tuple[str, ...], "start this instead of the profile's own command"] = (),
        *,
        timeout: Annotated[Seconds, "how long the program may take to be ready"] = 30.0,
        machine: MachineOption = None,
    ) -> results.ProfileChecked:
        """Try a profile on the installed program; exit status 1 if it does not fit.

        The program is started in a session and an empty folder of its own. Nothing is typed except what ends it. The
        result shows for each rule the row that it matched, or that it was not seen, which is normal for signs of work,
        questions and errors. If the program asks for trust or a login before it is ready, the check ends there.
        """
        from tmuxctl.control.setup import profile_check

        return profile_check.check_profile(self.machine, name, command, timeout=timeout)

    @set_up(right="create", examples=("profile new irb -- irb", "profile new shop --stdout -- ./shop --console"))
    def profile_new(
        self,
        name: Annotated[ProfileName, "the name of the new profile"],
        command: Annotated[tuple[str, ...], "the program and its arguments, started without a shell"],
        *,
        timeout: Annotated[Seconds, "how long the program may take to start"] = 20.0,
        stdout: Annotated[bool, "print the profile, write no file"] = False,
        force: Annotated[bool, "overwrite a profile of this name"] = False,
    ) -> results.ProfileFile:
        """Start a program once and write a first profile for it, with its prompt, and its screen as a test.

        The file is written to your folder, where it takes precedence over a shipped profile of the same name.
        """
        from tmuxctl.control.setup import first_profile

        return first_profile.make_profile(self.machine, name, command, timeout=timeout, print_only=stdout, force=force)

    @set_up(right="read", examples=("plugin ls", "plugin ls --json"))
    def plugin_ls(self) -> results.Plugins:
        """List the plugins: your own, installed and shipped ones; and why one of them cannot be used."""
        from tmuxctl.control.setup import plugins

        return plugins.ls(self.machine.timing.plugin)

    @set_up(right="read", examples=("plugin show env", "plugin show nice --json"))
    def plugin_show(self, name: PluginName) -> results.PluginPage:
        """Describe a plugin: what it is for, its options, how to give them, and whether it can work here."""
        from tmuxctl.control.setup import plugins

        return plugins.show(name, self.machine.timing.plugin)

    @set_up(
        right="create", examples=("plugin test nice", "plugin test nice --option level=15", "plugin test env timeout")
    )
    def plugin_test(
        self,
        name: Annotated[PluginNames, "names; default: every plugin"] = (),
        *,
        option: Annotated[OptionValues, "test a single plugin with this value of an option"] = (),
    ) -> results.PluginsTested:
        """Test plugins without starting a session; exit status 1 if one breaks the rules for plugins.

        The tests apply a plugin to commands, folders and variables of every kind, and check that it cleans up. Each
        plugin is tested in folders of its own, with its own home and state folder.
        """
        from tmuxctl.control.setup import plugins

        return plugins.test(name, option)


def _carry_out(
    machine: Machine, write: Callable[..., Typed], wait_text: str | None, screen: bool, timeout: float | None
) -> results.Written:
    """Write, and wait and look where that is asked for."""
    if wait_text is None and timeout is None and not screen:
        return write().written
    from tmuxctl.control.input import following

    return following.write_and_follow(machine, write, text=wait_text, screen=screen, timeout=timeout)
