"""`Control`: every operation, declared once. The work is in the modules beside this one; here is what it is called,
what it takes, who may, and what a person reads about it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tmuxctl.control.lifecycle.reach import reach
from tmuxctl.control.machine import Machine
from tmuxctl.errors import Usage
from tmuxctl.operations import (
    NAMES,
    RIGHTS,
    TEXT,
    TEXTS,
    Bytes,
    CursorText,
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
    invoke,
    operation,
)
from tmuxctl.timing import CLOCK, LIMITS, TIMING, Clock, Limits, Timing
from tmuxctl.vocabulary import StateFilter

if TYPE_CHECKING:
    from tmuxctl.config import Settings
    from tmuxctl.model import Session
    from tmuxctl.results import (
        Answer,
        Decided,
        Doctor,
        Event,
        Explained,
        Killed,
        Output,
        Plan,
        PluginPage,
        Plugins,
        PluginsTested,
        ProfileChecked,
        ProfileFile,
        Profiles,
        ProfilesTested,
        Pruned,
        Ran,
        Released,
        Restored,
        Screen,
        Sessions,
        Synced,
        Wait,
        Waits,
        Written,
    )
    from tmuxctl.transport.base import Transport

ProfileName = Annotated[str, ValueKind("profile", TEXT.schema, TEXT.parse)]
AdoptedNames = Annotated[tuple[str, ...], ValueKind("name", TEXTS.schema, TEXTS.parse)]
Tags = Annotated[tuple[str, ...], ValueKind("tag", TEXTS.schema, TEXTS.parse)]
ProfileChoice = Annotated[
    str, ValueKind("text", TEXT.schema, TEXT.parse, completes="profile"), "auto, none, or a profile's name"
]
ProfileNames = Annotated[tuple[str, ...], ValueKind("profile", TEXTS.schema, TEXTS.parse)]
ProfileList = Annotated[tuple[str, ...], ValueKind("profiles", NAMES.schema, NAMES.parse)]
OptionName = Annotated[str, ValueKind("option", TEXT.schema, TEXT.parse)]
PluginName = Annotated[str, ValueKind("plugin", TEXT.schema, TEXT.parse), "its name"]
PluginNames = Annotated[tuple[str, ...], ValueKind("plugin", TEXTS.schema, TEXTS.parse)]
OptionValues = Annotated[tuple[str, ...], ValueKind("name=value", TEXTS.schema, TEXTS.parse)]


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
        self.machine = Machine(transport, settings, resident=resident, timing=timing, limits=limits, clock=clock)

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
    ) -> Any:
        """Call an operation by name with plain values, as every surface does.

        `rights` is what the caller may (read, write, create, kill); `request_id` makes a repeated write happen once;
        `timeout` (seconds) bounds the whole call; setting `cancelled` ends a wait, not the program. Raises TmuxctlError.
        """
        return invoke(self, name, arguments, rights=rights, request_id=request_id, timeout=timeout, cancelled=cancelled)

    def reach(self, session: str) -> tuple[Control, str]:
        """The operations on the server that a session is on, and its name there: `reach.reach`."""
        machine, name = reach(self.machine, session)
        return (self if machine is self.machine else Control.of(machine)), name

    def close(self) -> None:
        """End what this process keeps open; sessions go on."""
        self.machine.transport.close()
        searching = sys.modules.get("tmuxctl.control.waiting.searching")
        if searching is not None:
            searching.close()

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Drive

    @operation(
        right="write",
        group="Drive",
        examples=("send db 'select 1;'", "send db --no-enter -- -R", "printf 'a\\0b' | tmuxctl send db - --no-enter"),
    )
    def send(
        self,
        session: SessionName,
        text: Annotated[Input, "what to type; - reads standard input as it is"] = b"",
        *,
        enter: Annotated[bool, "press Enter after it"] = True,
        paste: Annotated[bool, "as a bracketed paste, if the program asked for that"] = False,
        multiline: Annotated[bool, "allow several lines without a bracketed paste"] = False,
        secret_from_env: Annotated[str | None, "type this variable's value, if echo is off"] = None,
        secret_from_file: Annotated[FileName | None, "type this file's first line, if echo is off"] = None,
        secret_from_fd: Annotated[int | None, "type what this descriptor gives, if echo is off"] = None,
        insecure: Annotated[bool, "type the text even where a password is asked for"] = False,
        id: Annotated[str | None, "repeat an earlier write that ended unknown: it is typed at most once"] = None,
    ) -> Written:
        """Type text exactly as given, then Enter, and return without waiting.

        Nothing in the text is special: no key names, no formats, no shell. Text that begins with - goes after --.
        Refused when a person is typing, when the program has ended, when the terminal would not take it whole, and when a
        password is asked for, which no command line should hold: --secret-from-env and the like type it unseen.
        To a program whose profile says that it is pasted texts (submit), Enter comes when the text shows there.
        """
        from tmuxctl.control.input import sending

        secret = sending.read_secret(secret_from_env, secret_from_file, secret_from_fd)
        return sending.send(
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

    @operation(right="write", group="Drive", examples=("keys db C-c", "keys db Up Enter", "keys db ctrl+r"))
    def keys(
        self,
        session: SessionName,
        keys: Annotated[Key, "C-c ctrl+c Enter Up shift+tab F5 ..."],
        *,
        repeat: Annotated[int, "press them so many times"] = 1,
        insecure: Annotated[bool, "press keys that write text even where a password is asked for"] = False,
        id: Annotated[str | None, "repeat an earlier write that ended unknown: it is typed at most once"] = None,
    ) -> Written:
        """Press named keys.

        In tmux's spelling (C-c, Up, M-x) or ptyai's (ctrl+c, up, alt+x). Every name is checked before the first key is sent.
        """
        from tmuxctl.control.input import sending

        return sending.press_named(self.machine, session, keys, repeat=repeat, insecure=insecure, write_id=id)

    @operation(
        right="write",
        group="Drive",
        passes_status=True,
        waiting=Waiting("{names} to run {program}"),
        examples=(
            "exec build -- make -j4",
            "exec build 'cd src && git status'",
            "exec build --timeout 10m -- ./run-tests",
            "printf 'b\\na\\n' | tmuxctl exec build -- sort",
        ),
    )
    def exec(
        self,
        session: SessionName,
        command: Annotated[tuple[str, ...], "one word is shell text; several are a program and its arguments"],
        *,
        timeout: Annotated[
            Seconds | None, "give up after this long (default: 60s, the setting wait.exec_timeout); the command goes on"
        ] = None,
        max_bytes: Annotated[Bytes, "return at most so much of the output"] = 1 << 20,
        stdin: Annotated[
            FileName | None,
            "what the command reads in place of the terminal: a file; /dev/tty is the terminal",
            Flag(own_input=True),
        ] = None,
    ) -> Ran:
        """Run a command in a session's shell; its exact output on stdout, its exit status is ours.

        It runs in the shell itself, so cd, export, functions and aliases work and last. Refused when something other
        than a waiting shell has the terminal. A command that asks, or waits for a line, is not waited for: the error
        tells the question, and the command goes on.

        The command reads the terminal, or else --stdin. As a command line tmuxctl passes on its own standard input if that
        is a pipe, or a file of which nothing was read yet. It leaves no line in the shell's history.
        """
        from tmuxctl.control.turns import commands

        given = None if stdin in (None, "/dev/tty") else os.path.abspath(os.path.expanduser(stdin))
        return commands.execute(self.machine, session, command, timeout=timeout, max_bytes=max_bytes, stdin=given)

    @operation(
        right="write",
        group="Drive",
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
        text: Annotated[Input | None, "what to type; - reads standard input"] = None,
        *,
        timeout: Annotated[
            Seconds | None, "give up after this long (default: 120s, the setting wait.ask_timeout); the program goes on"
        ] = None,
        decide: Annotated[tuple[str, ...], "answer questions: allow, deny, KIND=OPTION, *=stop"] = (),
        raw: Annotated[bool, "the answer with everything that was drawn, echo and prompts too"] = False,
        file: Annotated[FileName | None, "type what this file holds"] = None,
        queue: Annotated[bool, "wait for the program to be ready, as long as the timeout allows"] = False,
        interrupt: Annotated[bool, "stop what is running first"] = False,
        strict: Annotated[bool, "go on waiting where nothing tells whether it is done"] = False,
        new: Annotated[str | None, "start this command in the session if there is none"] = None,
        fallback: Annotated[
            ProfileNames, "the program that takes the turn, beside it, when this one is limited, dead or not installed"
        ] = (),
    ) -> Answer:
        """Type a text into a program that waits for it, wait until it is done, and print what it wrote.

        The answer is without prompt and echo. A question on the way ends the turn (exit status 6) unless --decide
        covers it. Refused (4) while something else runs, or after a turn that took too long, until that is over.

        Where the program is limited, dead or not installed, the turn goes to the next of --fallback, then of the
        candidates it was chosen from (`new --candidates`), in a session of its own, NAME-PROFILE; the result says who
        answered. Never when the first may have taken it, is busy, asks, or takes too long.
        """
        from tmuxctl.control.input import deciding
        from tmuxctl.control.turns import turn

        given = turn.text(text, file)
        policies = deciding.parse_policies(decide)
        asked = turn.Asked(timeout=timeout, decide=policies, raw=raw, queue=queue, interrupt=interrupt, strict=strict)
        if not fallback and not turn.has_candidates(self.machine):
            return turn.ask(self.machine, session, given, asked, new=new)
        from tmuxctl.control.turns import failover

        return failover.ask(self.machine, session, given, asked, fallback=fallback, new=new)

    @operation(
        right="write",
        group="Drive",
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
            OptionName | None, "an option's id, label or number; text where any text is an answer"
        ] = None,
        *,
        id: Annotated[str | None, "only if this very question still stands"] = None,
        secret_from_env: Annotated[str | None, "a password: this variable's value"] = None,
        secret_from_file: Annotated[FileName | None, "a password: this file's first line"] = None,
        secret_from_fd: Annotated[int | None, "a password: what this descriptor gives"] = None,
        wait: Annotated[bool, "then wait until it is idle, asks again or has ended"] = False,
        timeout: Annotated[Seconds | None, "wait at most this long (default: 30s, the setting wait.timeout)"] = None,
    ) -> Decided:
        """Answer a program's question, or print it with its options.

        An empty answer is what Enter alone means there. Nothing is typed if no question stands, or another one than --id
        names.
        """
        from tmuxctl.control.input import deciding, sending

        secret = sending.read_secret(secret_from_env, secret_from_file, secret_from_fd)
        return deciding.decide(self.machine, session, option, id=id, secret=secret, wait=wait, timeout=timeout)

    @operation(
        right="read",
        group="Drive",
        waiting=Waiting("{names} {until}", unless=("now",), until="to be idle"),
        examples=(
            "wait db",
            "wait build --exit --timeout 10m",
            "wait db --text 'rows? in set'",
            "wait build --prompt",
            "wait --any web,worker --input",
            "wait db --now",
        ),
    )
    def wait(
        self,
        session: SessionName | None = None,
        *,
        idle: Annotated[
            bool, "until it takes the next input, whatever that is (the default)", Until("to be idle")
        ] = False,
        prompt: Annotated[bool, "until it is ready for the next command", Until("to be at its prompt")] = False,
        input: Annotated[
            bool, "until it wants anything else: a decision, a password, a line, a key", Until("to want input")
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
        timeout: Annotated[Seconds | None, "give up after this long (default: 30s, the setting wait.timeout)"] = None,
        since: Annotated[CursorText | None, "look at output after this cursor, or at the whole `screen`"] = None,
        now: Annotated[bool, "test once, do not wait: exit status 1 if it does not hold"] = False,
        any: Annotated[Names | None, "until it holds for one of these sessions: A,B,C"] = None,
        all: Annotated[Names | None, "until it holds for all of these sessions: A,B,C"] = None,
    ) -> Wait | Waits:
        """Block until something holds; the first condition that holds wins.

        Idle is known from what the program does, not from silence: from its shell's marks, from the kernel (who waits
        for this terminal) and from its prompts. A question on the way to idle is exit status 6, the program's end 5.

        A command that reads a line is idle, too. --prompt and --input tell the two apart: --prompt is ready for the next
        command, and a command that wants input first is exit status 6; --input is for what has to be typed meanwhile.

        A text counts only in output after the last input sent, its echo left out; if nothing was ever sent, or with
        --since screen, in all that is visible. It is never ended by silence. The pattern is Python's, ^ and $ match
        at lines.
        """
        from tmuxctl.control.waiting import waits

        wanted = waits.Conditions(idle, asking, exit, text, gone, change, settle, prompt=prompt, input=input)
        names = waits.sessions_of(session, any, all)
        if session is None:
            every = all is not None
            return waits.several(self.machine, names, wanted, every=every, timeout=timeout, since=since, now=now)
        return waits.wait(self.machine, session, wanted, timeout=timeout, since=since, now=now)

    # Look

    @operation(
        right="read",
        group="Look",
        examples=("screen db", "screen db --svg db.svg", "screen db --scrollback 200"),
    )
    def screen(
        self,
        session: SessionName,
        *,
        ansi: Annotated[bool, "with colours, as escape sequences"] = False,
        html: Annotated[bool, "as an HTML page", Flag(to_file=True)] = False,
        svg: Annotated[bool, "as an SVG picture", Flag(to_file=True)] = False,
        scrollback: Annotated[
            int | None, "also the last N lines that scrolled away (0: all)", Flag(bare="0", value=r"\d+")
        ] = None,
        trim: Annotated[bool, "leave out blanks at the end of rows"] = True,
        wide: Annotated[bool, "join the rows the terminal wrapped"] = False,
    ) -> Screen:
        """What a person would see now: rows of text without any control character."""
        from tmuxctl.control.output import captured

        return captured.screen(
            self.machine, session, ansi=ansi, html=html, svg=svg, scrollback=scrollback, trim=trim, wide=wide
        )

    @operation(
        right="read",
        group="Look",
        streams=True,
        view="cursor",
        examples=("read db", "read db --since c1:9f2c.1:118", "read build --follow"),
    )
    def read(
        self,
        session: SessionName,
        *,
        since: Annotated[
            CursorText | None, "output after this cursor; default: after the last input, its echo left out"
        ] = None,
        follow: Annotated[bool, "go on until the program ends", Flag(("-f",))] = False,
        raw: Annotated[bool, "the bytes as they came, escape sequences and all"] = False,
        answer_to: Annotated[str | None, "the answer to the last input that holds this text"] = None,
    ) -> Output | Iterator[Output]:
        """A session's output after a point, as text; the cursor for the next read comes with it."""
        if answer_to is not None:
            from tmuxctl.control.turns import turn

            return turn.answer_to(self.machine, session, answer_to)
        from tmuxctl.control.output import printed

        return printed.read(self.machine, session, since=since, follow=follow, raw=raw)

    @operation(right="read", group="Look", streams=True, examples=("log build", "log build -n 20 -f"))
    def log(
        self,
        session: SessionName,
        *,
        tail: Annotated[int | None, "only the last N lines", Flag(("-n",))] = None,
        follow: Annotated[bool, "go on until the program ends", Flag(("-f",))] = False,
        raw: Annotated[bool, "the bytes as they came, escape sequences and all"] = False,
    ) -> Output | Iterator[Output]:
        """All that a session printed, as far as its journal is kept."""
        from tmuxctl.control.output import printed

        return printed.log(self.machine, session, tail=tail, follow=follow, raw=raw)

    @operation(
        right="read",
        group="Look",
        events=True,
        streams=True,
        examples=(
            "watch",
            "watch db fix --json",
            "watch --state input",
            """watch fix --on-asking 'notify-send "$TMUXCTL_SESSION asks"'""",
        ),
    )
    def watch(
        self,
        session: Annotated[SessionNames, "names or ids; default: all, new ones too"] = (),
        *,
        state: Annotated[
            StateFilter | None,
            "only changes to it; prompt: ready for the next command, input: wants anything else",
        ] = None,
    ) -> Iterator[Event]:
        """Print each session's state, then every change of it; ends when all that were named have ended."""
        from tmuxctl.control.waiting import watching

        return watching.watch(self.machine, session, state)

    @operation(
        right="read",
        group="Look",
        examples=("explain db", "explain --file screen.txt --profile python", "explain db --evidence --json >why.json"),
    )
    def explain(
        self,
        session: SessionName | None = None,
        *,
        file: Annotated[FileName | None, "a saved screen, or what --evidence gave"] = None,
        profile: Annotated[ProfileChoice | None, "judge the file as this program's"] = None,
        title: Annotated[str | None, "the terminal's title with that screen"] = None,
        cursor: Annotated[str | None, "X,Y of the cursor on that screen, from 0; default: behind its last text"] = None,
        before: Annotated[FileName | None, "the screen before the last input: prints what was answered between"] = None,
        evidence: Annotated[bool, "with the evidence itself, to be judged again from a file"] = False,
    ) -> Explained:
        """Why a session's state is what it is: every piece of evidence, how old it is, and what it argued for."""
        from tmuxctl.control.observation import explaining

        if file is not None and session is None:
            return explaining.explain_saved(
                file, profile=profile, title=title, cursor=cursor, before=before, evidence=evidence
            )
        if session is None or file is not None:
            raise Usage("name a session or a file", reason="missing", hint="tmuxctl explain NAME, or --file SCREEN")
        return explaining.explain_live(self.machine, session, evidence=evidence)

    @operation(right="read", group="Look", view="facts", examples=("show db", "show db --json"))
    def show(self, session: SessionName) -> Session:
        """Everything known about one session."""
        from tmuxctl.control.lifecycle import listing

        return listing.show(self.machine, session)

    # Sessions

    @operation(
        right="create",
        group="Sessions",
        waiting=Waiting("{names} to be ready", unless=("wait", "dry_run")),
        view="started",
        examples=(
            "new db -- sqlite3 shop.db",
            "new -- python3 -q",
            "new task --worktree task-1 --sandbox -- bash",
            "new build --cwd ~/src --lifetime 2h -- make",
            "new fix --candidates claude,codex,gemini",
            "new fix --candidates claude,codex --route cheapest --dry-run",
        ),
    )
    def new(
        self,
        name: Annotated[NewName | None, "its name; default: after the command"] = None,
        command: Annotated[tuple[str, ...], "executed as given, without a shell; default: $SHELL"] = (),
        *,
        cwd: Annotated[FolderName | None, "the folder it starts in; default: here"] = None,
        env: Annotated[dict[str, str] | None, "set a variable", Flag(("-e",))] = None,
        size: Annotated[SizeText | None, "columns x rows (default: 120x40, the setting tmux.size)"] = None,
        history: Annotated[
            int | None, "lines kept of what scrolls away (default: 20000, the setting tmux.history)"
        ] = None,
        profile: ProfileChoice = "auto",
        clean_env: Annotated[bool, "start from a short list of variables, not from all of yours"] = False,
        login: Annotated[bool, "start a shell as a login shell"] = False,
        shell_marks: Annotated[bool, "let bash, zsh and fish mark their prompts and commands"] = True,
        if_exists: Annotated[Literal["error", "reuse", "replace"], "what to do about a session of this name"] = "error",
        with_: Annotated[tuple[str, ...], "apply a plugin: NAME, NAME=VALUE or NAME:option=value"] = (),
        worktree: Annotated[str | None, "the worktree plugin: a git worktree of this branch, made if need be"] = None,
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
        lifetime: Annotated[str | None, "the timeout plugin: end it after this long"] = None,
        tag: Annotated[Tags, "a word to find it by"] = (),
        candidates: Annotated[
            ProfileList | None,
            "start one of these programs, by their profiles (A,B,C): the first that is installed and starts",
        ] = None,
        route: Annotated[
            Literal["first", "cheapest", "round-robin"],
            "in which order candidates are tried: as given, by cost, by turns",
        ] = "first",
        wait: Annotated[bool, "return when it is ready, asks, has ended, or has been busy for 2 s"] = True,
        dry_run: Annotated[bool, "print what would be done, and do nothing"] = False,
    ) -> Session | Plan:
        """Start a program in a session of its own, which lives on when this command and your terminal are gone."""
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
            tags=tag,
        )
        if candidates is not None:
            from tmuxctl.control.turns import candidates as choice

            if dry_run:
                return choice.plan(self.machine, wanted, candidates, route)
            return choice.new(self.machine, wanted, candidates, route, wait=wait)
        if dry_run:
            return creation.plan(self.machine, wanted)
        made = creation.new(self.machine, wanted)
        if not wait:
            return made
        from tmuxctl.control.observation import observing

        return observing.wait_until_ready(self.machine, made)

    @operation(
        right="create",
        group="Sessions",
        passes_status=True,
        waiting=Waiting("{program} in {names} to end", transient=True),
        examples=("run -- make test", "run --timeout 10m -- ./deploy.sh"),
    )
    def run(
        self,
        command: Annotated[tuple[str, ...], "executed as given, without a shell"],
        *,
        name: Annotated[NewName | None, "the session's name while it runs"] = None,
        cwd: Annotated[FolderName | None, "the folder it starts in; default: here"] = None,
        env: Annotated[dict[str, str] | None, "set a variable", Flag(("-e",))] = None,
        size: Annotated[SizeText | None, "columns x rows (default: 120x40, the setting tmux.size)"] = None,
        clean_env: Annotated[bool, "start from a short list of variables, not from all of yours"] = False,
        with_: Annotated[tuple[str, ...], "apply a plugin: NAME, NAME=VALUE or NAME:option=value"] = (),
        timeout: Annotated[Seconds | None, "end it after this long (default: none; in a sandbox 1h)"] = None,
        max_bytes: Annotated[Bytes, "return at most so much of the output"] = 64 << 20,
    ) -> Ran:
        """Run a program on a terminal of its own, print what it printed, and remove the session.

        The exit status is the program's; 124 if it took too long. A program that asks and is not answered within three
        seconds is ended, with an error that tells the question.
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

    @operation(
        right="read",
        group="Sessions",
        rows=True,
        examples=("ls", "ls --state input", "ls --tag nightly -F '{name}\\t{state}'", "ls --json"),
    )
    def ls(
        self,
        *,
        state: Annotated[
            StateFilter | None,
            "only these; prompt: ready for the next command, input: wants anything else",
        ] = None,
        tag: Annotated[str | None, ValueKind("tag", TEXT.schema, TEXT.parse), "only those with this tag"] = None,
        all_sockets: Annotated[bool, "the panes of every other tmux server of yours too"] = False,
        ended: Annotated[bool, "those that were killed too, as long as they are kept", Flag(("-a",))] = False,
    ) -> Sessions:
        """All sessions, ended, lost and adopted ones too."""
        from tmuxctl.control.lifecycle import listing

        return listing.ls(self.machine, state=state, tag=tag, all_sockets=all_sockets, ended=ended)

    @operation(
        right="create",
        group="Sessions",
        examples=("adopt tmux:work:1.0 build", "adopt tmux@other:%3 --profile psql"),
    )
    def adopt(
        self,
        target: Annotated[str, "tmux:TARGET, or tmux@SOCKET:TARGET; see ls --all-sockets"],
        name: Annotated[NewName | None, "the name it gets; default: after its tmux session"] = None,
        *,
        profile: ProfileChoice = "auto",
    ) -> Session:
        """Give a pane of another tmux server a name, a profile, and a journal from now on.

        Nothing of that server changes: no option, no layout, and if something reads along there (pipe-pane), it goes on and
        there is no journal here. How a program ends there cannot be known. `release` gives it back.
        """
        from tmuxctl.control.lifecycle import adopting

        return adopting.adopt(self.machine, target, name, profile=profile)

    @operation(right="kill", group="Sessions", idempotent=True, view="pairs", examples=("release build",))
    def release(self, names: Annotated[AdoptedNames, "what was adopted"]) -> Released:
        """Forget adopted panes: they go on as they are, and what was kept of them here is removed."""
        from tmuxctl.control.lifecycle import adopting

        return adopting.release(self.machine, names)

    @operation(
        right="write",
        group="Sessions",
        idempotent=True,
        view="tags",
        examples=("tag build nightly web", "tag build --remove web", "tag build"),
    )
    def tag(
        self,
        session: SessionName,
        tags: Annotated[Tags, "tags to give it"] = (),
        *,
        remove: Annotated[Tags, "take this tag away"] = (),
    ) -> Session:
        """Give a session tags, or take some away, and print those it has."""
        from tmuxctl.control.lifecycle import tags as tagging

        return tagging.change_tags(self.machine, session, tags, remove)

    @operation(
        right="kill",
        group="Sessions",
        idempotent=True,
        examples=("kill db", "kill --all", "kill build --signal INT --grace 10s", "kill tmux:work:1.0 --force"),
    )
    def kill(
        self,
        session: Annotated[SessionNames, "names or ids"] = (),
        *,
        all: Annotated[bool, "every session of this server"] = False,
        signal: Annotated[str, "the first signal"] = "TERM",
        grace: Annotated[Seconds, "how long it may take before KILL"] = 3.0,
        force: Annotated[bool, "panes of another tmux too; and remove what plugins would keep, unsaved work"] = False,
    ) -> Killed:
        """End sessions: the signal to the whole process tree, after the grace period KILL, then the session goes.

        What it printed and its exit status stay readable until `prune`.
        """
        from tmuxctl.control.lifecycle import ending

        return ending.kill(self.machine, session, everything=all, signal=signal, grace=grace, force=force)

    @operation(right="write", group="Sessions", examples=("rename db shop",))
    def rename(self, session: SessionName, name: Annotated[NewName, "the new name"]) -> Session:
        """Give a session another name; its id and cursors stay."""
        from tmuxctl.control.lifecycle import changing

        return changing.rename(self.machine, session, name)

    @operation(right="write", group="Sessions", idempotent=True, examples=("resize db 100x30",))
    def resize(self, session: SessionName, size: Annotated[SizeText, "columns x rows"]) -> Session:
        """Change a session's terminal size."""
        from tmuxctl.control.lifecycle import changing

        return changing.resize(self.machine, session, size)

    @operation(
        right="create",
        group="Sessions",
        idempotent=True,
        examples=("restore --dry-run", "restore", "restore db build"),
    )
    def restore(
        self,
        session: Annotated[SessionNames, "names or ids; default: every lost session"] = (),
        *,
        dry_run: Annotated[bool, "say what would be done, and start nothing"] = False,
        timeout: Annotated[Seconds, "how long each of them may take to be prepared"] = 60.0,
    ) -> Restored:
        """Start lost sessions again after tmux's server died or the machine was restarted.

        Each has its name, id, folder, size, environment and plugins as before, and what it printed can still be read. Its
        program starts anew: none survives. They are started side by side: one that fails, or takes longer than --timeout,
        holds up no other. Exit status 1 if one could not be started.
        """
        from tmuxctl.control.lifecycle import restoring

        # what it names is lost, and so nowhere else
        return restoring.restore(self.machine, session, dry_run=dry_run, timeout=timeout)

    @operation(right="write", group="Sessions", idempotent=True, examples=("sync", "sync topic"))
    def sync(
        self, session: Annotated[SessionNames, "names or ids; default: every session that has something"] = ()
    ) -> Synced:
        """Bring what was committed in a sandbox to your repository, while its session goes on.

        `kill` does so too. The branch that is checked out moves unless you moved it; what cannot come by its own name is kept
        as `refs/sandbox/...`, and named.
        """
        from tmuxctl.control.lifecycle import ending

        return ending.sync(self.machine, session)

    @operation(right="kill", group="Sessions", idempotent=True, examples=("prune --dry-run", "prune"))
    def prune(
        self,
        *,
        dry_run: Annotated[bool, "print what would go"] = False,
        force: Annotated[bool, "remove what plugins keep too: worktrees with unsaved work"] = False,
    ) -> Pruned:
        """Remove sessions whose program has ended, and what is kept of lost and killed ones.

        A worktree that holds work which is nowhere else stays, and is named.
        """
        from tmuxctl.control.lifecycle import ending

        return ending.prune(self.machine, dry_run=dry_run, force=force)

    # Set up

    @operation(right="read", group="Set up", examples=("doctor", "doctor --fix"))
    def doctor(
        self, *, fix: Annotated[bool, "end processes that sessions of this server left behind"] = False
    ) -> Doctor:
        """Check what tmuxctl needs: tmux, its server, folders, limits; each with what to do about it."""
        from tmuxctl.control.setup import doctor

        return doctor.examine(self.machine, fix=fix)

    @operation(right="read", group="Set up", family=True, examples=("profile ls", "profile ls --json"))
    def profile_ls(self) -> Profiles:
        """List the profiles: what is known of programs beforehand, yours before ours."""
        from tmuxctl.control.setup import profiles

        return profiles.ls()

    @operation(
        right="read",
        group="Set up",
        family=True,
        examples=("profile show python", "profile show bash >~/.config/tmuxctl/profiles/mine.yaml"),
    )
    def profile_show(self, name: Annotated[ProfileName, "its name, or a file"]) -> ProfileFile:
        """Print a profile with all it extends, as a file that says the same."""
        from tmuxctl.control.setup import profiles

        return profiles.show(name)

    @operation(
        right="read",
        group="Set up",
        family=True,
        examples=("profile test", "profile test mine", "profile test ./mine.yaml"),
    )
    def profile_test(
        self, name: Annotated[ProfileNames, "names, or files; default: every profile"] = ()
    ) -> ProfilesTested:
        """Judge the saved screens of profiles; exit status 1 if one is taken for something else than it is."""
        from tmuxctl.control.setup import profiles

        return profiles.test(name)

    @operation(
        right="create",
        group="Set up",
        family=True,
        examples=("profile check python", "profile check bash -- bash --norc"),
    )
    def profile_check(
        self,
        name: Annotated[ProfileName, "its name, or a file"],
        command: Annotated[tuple[str, ...], "start this instead of the profile's own command"] = (),
        *,
        timeout: Annotated[Seconds, "how long the program may take to be ready"] = 30.0,
    ) -> ProfileChecked:
        """Try a profile on the program that is installed; exit status 1 if it does not fit.

        The program is started in a session and an empty folder of its own. Nothing is typed into it but what ends it. Each
        rule is told with the row that it fitted, or as not seen: signs of work, questions and errors need not show. A
        program that asks for trust or a login before it is ready cannot be tried further.
        """
        from tmuxctl.control.setup import profile_check

        return profile_check.check_profile(self.machine, name, command, timeout=timeout)

    @operation(
        right="create",
        group="Set up",
        family=True,
        examples=("profile new irb -- irb", "profile new shop --stdout -- ./shop --console"),
    )
    def profile_new(
        self,
        name: Annotated[ProfileName, "the name it gets"],
        command: Annotated[tuple[str, ...], "executed as given, without a shell"],
        *,
        timeout: Annotated[Seconds, "how long the program may take to start"] = 20.0,
        stdout: Annotated[bool, "print it, write no file"] = False,
        force: Annotated[bool, "write over a profile of this name"] = False,
    ) -> ProfileFile:
        """Start a program once and write a profile to go on from, with its prompt and its screen as the first test.

        It goes into your folder, where it comes before one of ours of the same name.
        """
        from tmuxctl.control.setup import first_profile

        return first_profile.make_profile(self.machine, name, command, timeout=timeout, print_only=stdout, force=force)

    @operation(right="read", group="Set up", family=True, examples=("plugin ls", "plugin ls --json"))
    def plugin_ls(self) -> Plugins:
        """List the plugins: yours, installed ones, ours; and what is wrong with one that cannot be used."""
        from tmuxctl.control.setup import plugins

        return plugins.ls(self.machine.timing.plugin)

    @operation(right="read", group="Set up", family=True, examples=("plugin show env", "plugin show nice --json"))
    def plugin_show(self, name: PluginName) -> PluginPage:
        """Print all of a plugin: what it is for, its options, how to give them, and whether it can work here."""
        from tmuxctl.control.setup import plugins

        return plugins.show(name, self.machine.timing.plugin)

    @operation(
        right="create",
        group="Set up",
        family=True,
        examples=("plugin test nice", "plugin test nice --option level=15", "plugin test env timeout"),
    )
    def plugin_test(
        self,
        name: Annotated[PluginNames, "names; default: every plugin"] = (),
        *,
        option: Annotated[OptionValues, "try a single plugin with this value of an option"] = (),
    ) -> PluginsTested:
        """Try plugins without starting a session: what they make of commands, folders and variables of every sort, and
        whether they clean up; exit status 1 if one does not keep to what is asked of every plugin.

        Each is tried in folders of its own, with a home and a state folder of its own.
        """
        from tmuxctl.control.setup import plugins

        return plugins.test(name, option)
