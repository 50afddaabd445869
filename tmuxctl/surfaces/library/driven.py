"""One session as an object: what `tmuxctl.session` and `Client.new` return."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal, get_args

from tmuxctl.errors import DecisionNeeded, Exited, NotFound, Timeout, TmuxctlError, Unreachable, Usage
from tmuxctl.model import State, parse_seconds
from tmuxctl.surfaces.library import matching
from tmuxctl.surfaces.library.matching import EOF, TIMEOUT, TextMatch

if TYPE_CHECKING:
    import libtmux

    from tmuxctl import results
    from tmuxctl.control.service import Control
    from tmuxctl.model import Asking, Session
    from tmuxctl.surfaces.library.client import Client
    from tmuxctl.surfaces.library.screens import TerminalScreen

Text = str | bytes
Duration = float | str
"""Seconds, or as on the command line: `500ms`, `10s`, `5m`."""
Answerer = Callable[["Asking"], "str | bytes | None"]
"""Called with a question; returns the answer (an option's id, label or number, or a text; bytes are a secret), or None to
leave the question open."""
Until = Literal["idle", "prompt", "input", "asking", "exit", "change"]

ANSWERS_LIMIT = 50
"""Questions answered in one wait."""


class TerminalSession:
    """One program on a terminal of its own, which lives in tmux.

    As a context manager it is ended, with all its processes, where the block ends. Waits take a timeout in seconds, and
    have a finite one where none is given (the settings wait.timeout, wait.ask_timeout, wait.exec_timeout). Errors are those
    of `tmuxctl.errors`, with `session` and `screen`, and the last rows of the screen at the end of their message.
    """

    before: str | None = None
    """After `expect`: the output before the match, since the last match or input."""
    after: str | type | None = None
    """After `expect`: the text that matched, or EOF or TIMEOUT."""
    match: TextMatch | type | None = None
    """After `expect`: the match, or EOF or TIMEOUT."""
    match_index: int | None = None
    """After `expect`: which of the patterns matched."""

    def __init__(self, client: Client, facts: Session) -> None:
        self.client = client
        self.id: str = facts.target or facts.lasting_address
        self._name: str = facts.name
        self._expected = matching.Expected()

    def __repr__(self) -> str:
        return f"<session {self._name} of {self.client!r}>"

    def __enter__(self) -> TerminalSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Drive

    def send(
        self,
        text: Text = "",
        *,
        enter: bool = True,
        paste: bool = False,
        multiline: bool = False,
        insecure: bool = False,
    ) -> TerminalSession:
        """Type text exactly as given, press Enter, and return the session without waiting. Options as of `tmuxctl send`.

        >>> sh.send("echo hello").wait_for("^hello$").found
        'hello'
        """
        data = to_bytes(text)
        with self._explaining():
            if enter and not data:
                self._control.keys(self.id, ("Enter",), insecure=insecure)
                return self
            self._control.send(self.id, data, enter=enter, paste=paste, multiline=multiline, insecure=insecure)
        return self

    def send_secret(self, secret: Text) -> TerminalSession:
        """Type a secret and Enter where the terminal does not show it; Conflict `echo_on` where it would. It is kept nowhere.

        >>> sh.send("read -rs word; echo ${#word}").wait("input").wants
        'input'
        >>> sh.send_secret("hunter2").wait_for("^7$").found
        '7'
        """
        from tmuxctl.control.input import sending

        with self._explaining():
            control, name = self._control.reach(self.id)
            sending.send(control.machine, name, b"", secret=to_bytes(secret))
        return self

    def keys(self, *keys: str, repeat: int = 1, insecure: bool = False) -> TerminalSession:
        """Press named keys (C-c, Up, Enter, F5, alt+x), and return the session; all names are checked before the first.

        >>> sh.keys("e", "c", "h", "o", "Space", "h", "i", "Enter").wait_for("^hi$").found
        'hi'
        """
        with self._explaining():
            self._control.keys(self.id, keys, repeat=repeat, insecure=insecure)
        return self

    def send_and_see(self, text: Text, pattern: str, *, timeout: Duration | None = None) -> results.Written:
        """Type text and Enter, wait until the output after it matches, and take the screen, in one call: the loop of every
        caller that watches a screen. Returns what became of each: `wait` and `screen`. Timeout where it did not match.

        >>> sh.send_and_see("echo one; echo two", "^two$").screen.text.splitlines()[1:3]
        ['one', 'two']
        """
        data = to_bytes(text)
        with self._explaining():
            written = self._control.send(self.id, data, wait_text=pattern, screen=True, timeout=to_seconds(timeout))
            assert written.wait is not None
            self._refuse_timeout(written.wait)
        return written

    def ask(
        self,
        text: Text,
        *,
        timeout: Duration | None = None,
        on_asking: Answerer | None = None,
        decide: Sequence[str] = (),
        raw: bool = False,
        queue: bool = False,
        interrupt: bool = False,
        strict: bool = False,
    ) -> results.Answer:
        """Type text into a program, wait for the end of its turn, and return the answer: `text`, without echo and prompt.

        `on_asking` is called with each question that the program asks meanwhile. Raises Timeout, DecisionNeeded where a
        question stays open, Exited where the program ended, Conflict `busy`; each has the `result` so far.

        >>> py.ask("6*7").text
        '42'
        """
        data, limit = to_bytes(text), to_seconds(timeout)
        from tmuxctl.control.input import deciding
        from tmuxctl.control.turns import turn

        with self._explaining():
            asked = turn.Asked(limit, deciding.parse_policies(decide), raw, queue, interrupt, strict, on_asking)
            control, name = self._control.reach(self.id)
            answer = turn.ask(control.machine, name, data, asked)
            if answer.timed_out:
                raise self._timeout(f"{answer.session} has not ended its turn", answer)
            if answer.state is State.ASKING and answer.asking:
                raise DecisionNeeded(
                    f"{answer.session} asks: {answer.asking.question}",
                    hint="answer it: decide(), or on_asking=",
                    result=answer,
                )
            if answer.state is State.EXITED:
                raise Exited(f"{answer.session} ended during the turn", hint="see its log()", result=answer)
        return answer

    def exec(
        self, *command: str, timeout: Duration | None = None, max_bytes: int = 1 << 20, stdin: str | None = None
    ) -> results.Ran:
        """Run a command in the session's shell and return its exact `output` and `exit_status`; one argument is shell text,
        several are a program and its arguments. Timeout where it goes on.

        >>> sh.exec("cd /tmp; pwd").output
        '/tmp\\n'
        >>> sh.exec("sh", "-c", "exit 3").exit_status
        3
        """
        with self._explaining():
            limit = to_seconds(timeout)
            ran = self._control.exec(self.id, command, timeout=limit, max_bytes=max_bytes, stdin=stdin)
            if ran.timed_out:
                raise self._timeout(f"the command in {ran.session} goes on", ran)
        return ran

    def decide(
        self,
        option: str | None = None,
        *,
        id: str | None = None,
        secret: Text | None = None,
        wait: bool = False,
        timeout: Duration | None = None,
    ) -> results.Decided:
        """Answer the question that stands, by an option's id, label or number, or by a text; or return it (no option).

        >>> sh.send("read -p 'Go on? [y/n] ' answer; echo $answer").wait("asking").matched == "asking"
        True
        >>> sh.decide("yes").option
        'yes'
        """
        from tmuxctl.control.input import deciding

        with self._explaining():
            control, name = self._control.reach(self.id)
            data = None if secret is None else to_bytes(secret)
            return deciding.decide(
                control.machine, name, option, id=id, secret=data, wait=wait, timeout=to_seconds(timeout)
            )

    def batch(
        self, steps: Sequence[Mapping[str, Any]], *, keep_going: bool = False, timeout: Duration | None = None
    ) -> results.Batch:
        """Carry out several steps in one call, as `tmuxctl batch` does.

        >>> [step.outcome for step in sh.batch([{"send": "echo hi"}, {"wait": {"text": "^hi$"}}]).steps]
        ['done', 'done']
        """
        with self._explaining():
            return self._control.batch(self.id, list(steps), keep_going=keep_going, timeout=to_seconds(timeout))

    # Wait

    def wait(
        self, until: Until = "idle", *, timeout: Duration | None = None, on_asking: Answerer | None = None
    ) -> results.Wait:
        """Wait until the program is `idle` (takes input of any kind), at its `prompt`, wants other `input`, is `asking`, has
        ended (`exit`), or prints anything (`change`).

        `on_asking` is called with each question that comes meanwhile. Raises Timeout, DecisionNeeded where it asks before it
        is idle, Exited where it ends before.

        >>> sh.send("sleep 0.1").wait("prompt").matched == "prompt"
        True
        """
        deadline = self._deadline(timeout)
        check_until(until)
        for _ in range(ANSWERS_LIMIT):
            wanted: dict[str, Any] = {until: True}
            if on_asking is not None:
                wanted["asking"] = True
            with self._explaining():
                found = self._control.wait(self.id, timeout=self._left(deadline), **wanted)
                self._refuse_timeout(found)
            if found.matched == until or on_asking is None or found.asking is None:
                return found
            self._answer(found.asking, on_asking)
        raise Usage(f"{self._name} asked {ANSWERS_LIMIT} questions", reason="too_many", hint="wait again")

    def wait_for(self, pattern: str, *, timeout: Duration | None = None, since: str | None = None) -> TextMatch:
        """Wait until the output after the last input, without its echo, matches a regular expression, in which ^ and $ match at
        every line; what is there already counts. `since` is a cursor, or `screen` for all that is visible.

        >>> found = sh.send("echo Name: Ada").wait_for(r"Name: (\\w+)")
        >>> found[1]
        'Ada'
        """
        with self._explaining():
            found = self._control.wait(self.id, text=pattern, timeout=to_seconds(timeout), since=since)
            self._refuse_timeout(found)
        return matching.to_match(found, pattern)

    def wait_gone(self, pattern: str, *, timeout: Duration | None = None) -> results.Wait:
        """Wait until the screen does not match a regular expression.

        >>> sh.send("clear").wait_gone("Name: Ada").matched == "gone"
        True
        """
        with self._explaining():
            found = self._control.wait(self.id, gone=pattern, timeout=to_seconds(timeout))
            self._refuse_timeout(found)
        return found

    def wait_settled(self, seconds: Duration = 0.5, *, timeout: Duration | None = None) -> results.Wait:
        """Wait until nothing was printed for so long. Silence says nothing of what a program does; `wait` does.

        >>> sh.wait_settled(0.1).matched == "settle"
        True
        """
        with self._explaining():
            found = self._control.wait(self.id, settle=to_seconds(seconds), timeout=to_seconds(timeout))
            self._refuse_timeout(found)
        return found

    def expect(self, patterns: matching.Patterns, *, timeout: Duration | None = None) -> int:
        """As pexpect's: wait until the output since the last match, or since the last input where that is newer, matches one of
        the patterns (a regular expression, EOF, TIMEOUT, or a list of these), and return its index.

        Sets `before`, `after`, `match` and `match_index`. Unlike there, the echo of what was typed does not count, nor do
        escape sequences, and lines end with a newline alone. Raises Timeout and Exited where the list has no TIMEOUT or EOF.

        >>> sh.send("echo one two").expect(["three", "t.o"])
        1
        >>> sh.before, sh.after
        ('one ', 'two')
        """
        return self._expect(matching.compile_patterns(patterns), timeout)

    def expect_exact(self, texts: matching.Patterns, *, timeout: Duration | None = None) -> int:
        """`expect` for texts in which nothing has a meaning of its own.

        >>> sh.send("echo '1 + 1 = 2 (sure)'").expect_exact("= 2 (sure)")
        0
        """
        return self._expect(matching.compile_patterns(texts, exact=True), timeout)

    def _expect(self, patterns: matching.Compiled, timeout: Duration | None) -> int:
        deadline = self._deadline(timeout)
        with self._explaining():
            try:
                found = self._expected.wait(self._control, self.id, patterns, lambda: self._left(deadline))
            except Timeout:
                return self._ended_with(TIMEOUT, patterns)
            except Exited:
                return self._ended_with(EOF, patterns)
        self.before, self.after, self.match, self.match_index = (
            found.before,
            found.match.found,
            found.match,
            found.which,
        )
        return found.which

    def _ended_with(self, what: type, patterns: matching.Compiled) -> int:
        self.before, self.after, self.match, self.match_index = self._expected.rest(), what, what, None
        if what not in patterns:
            raise
        self.match_index = patterns.index(what)
        return self.match_index

    # Look

    @property
    def screen(self) -> TerminalScreen:
        """What a person would see now.

        >>> sh.send_and_see("echo on the screen", "^on the").screen.cols
        120
        >>> "on the screen" in sh.screen.text
        True
        """
        from tmuxctl.control.output import captured
        from tmuxctl.control.sessions import finding
        from tmuxctl.surfaces.library.screens import TerminalScreen

        control, name = self._control.reach(self.id)
        capture = captured.capture_session(control.machine, name)
        end = finding.output_end(control.machine, capture.pane)
        return TerminalScreen(capture, finding.cursor_at(capture.pane, end))

    def scrollback(self, lines: int = 0) -> list[str]:
        """The last lines that scrolled away above the screen, oldest first; 0: all that tmux keeps.

        >>> shown = sh.send_and_see("seq 100", "^100$")
        >>> "1" in sh.scrollback()
        True
        """
        shown = self._control.screen(self.id, scrollback=lines, state=False)
        return list(shown.scrollback or ())

    def read(self, since: str | None = None) -> results.Output:
        """The output after a cursor as text, by default after the last input and without its echo, and the `cursor` behind it.

        >>> sh.send_and_see("echo hello", "^hello$").wait.text
        'hello'
        >>> sh.read().text.splitlines()[0]
        'hello'
        """
        return _whole(self._control.read(self.id, since=since))

    def log(self, tail: int | None = None, *, raw: bool = False) -> results.Output:
        """Everything that was printed, as far back as the journal goes, or its last lines: `text`, and with `raw` the bytes
        as they came in `data`.

        >>> sh.ask("echo hello").text
        'hello'
        >>> "hello" in sh.log().text
        True
        """
        return _whole(self._control.log(self.id, tail=tail, raw=raw))

    @property
    def info(self) -> Session:
        """Everything known about the session, as `tmuxctl show`.

        >>> sh.info.profile
        'bash'
        """
        return self._control.show(self.id)

    @property
    def name(self) -> str:
        """Its name now.

        >>> sh.name
        'sh'
        """
        self._name = self.info.name
        return self._name

    @property
    def state(self) -> State:
        """What the program does: busy, idle, asking, exited, lost or unknown.

        >>> sh.wait("prompt").state == sh.state == "idle"
        True
        """
        return self.info.state

    @property
    def asking(self) -> Asking | None:
        """The question that stands now; None if there is none.

        >>> sh.asking is None
        True
        """
        return self.info.asking

    @property
    def wants(self) -> str | None:
        """`prompt` where the program is ready for its next command, `input` where anything else has to be typed, else None.

        >>> sh.wants
        'prompt'
        """
        return self.info.wants

    @property
    def exit_status(self) -> int | None:
        """The exit status of the program; None while it runs, and where a signal ended it.

        >>> client.new("t", ["sh", "-c", "exit 4"]).wait("exit").exit_status
        4
        """
        return self.info.exit_status

    @property
    def signal(self) -> str | None:
        """The signal that ended the program, without SIG; None while it runs, and where it ended by itself.

        >>> sh.signal is None
        True
        """
        return self.info.signal

    @property
    def alive(self) -> bool:
        """Whether the program runs.

        >>> sh.alive
        True
        """
        return self.info.state not in (State.EXITED, State.LOST)

    def explain(self) -> results.Explained:
        """Why the session has its state, with all evidence.

        >>> sh.explain().state.value
        'idle'
        """
        return self._control.explain(self.id)

    def events(self, state: Any = None) -> Iterator[results.Event]:
        """The state now, then every change of it, until the program has ended; `state` leaves out all others.

        >>> next(sh.events()).state.value
        'idle'
        """
        yield from self._control.watch((self.id,), state=state)

    # Life

    def resize(self, size: str) -> TerminalSession:
        """Change the size of the terminal, columns x rows.

        >>> sh.resize("100x30").screen.cols
        100
        """
        self._control.resize(self.id, size)
        return self

    def rename(self, name: str) -> TerminalSession:
        """Give the session another name; this object and cursors stay valid.

        >>> sh.rename("other").name
        'other'
        """
        self._name = self._control.rename(self.id, name).name
        return self

    def tag(self, *tags: str, remove: Sequence[str] = ()) -> tuple[str, ...]:
        """Add tags and remove some; return those it has.

        >>> sh.tag("nightly", "web")
        ('nightly', 'web')
        """
        return self._control.tag(self.id, tags, remove=tuple(remove)).tags

    def kill(self, *, signal: str = "TERM", grace: Duration = 3.0, force: bool = False) -> results.End:
        """End the program with all its processes, and remove the session; its output stays readable until `tmuxctl prune`.

        >>> client.new("t", ["sleep", "60"]).kill().signal
        'TERM'
        """
        ended = self._control.kill((self.id,), signal=signal, grace=to_seconds(grace) or 0.0, force=force)
        self.client.forget(self)
        return ended.killed[0]

    def close(self) -> None:
        """End it if it is there; twice is as once.

        >>> closed = client.new("t", ["sleep", "60"])
        >>> closed.close(), closed.close()
        (None, None)
        """
        self.client.forget(self)
        with suppress(NotFound, Unreachable):
            self._control.kill((self.id,))

    @property
    def tmux(self) -> libtmux.Session:
        """The session as libtmux has it, to do what tmux can and tmuxctl does not.

        >>> sh.tmux.active_pane.pane_width
        '120'
        """
        import libtmux

        control, name = self._control.reach(self.id)
        server = libtmux.Server(socket_name=control.machine.settings.tmux_socket)
        return server.sessions.get(session_name=control.show(name).name)  # type: ignore[return-value]

    # what the methods share

    @property
    def _control(self) -> Control:
        return self.client.control

    def _answer(self, asking: Asking, on_asking: Answerer) -> None:
        """Answer a question as the caller says; DecisionNeeded where that is not at all."""
        chosen = on_asking(asking)
        if chosen is None:
            with self._explaining():
                raise DecisionNeeded(f"{self._name} asks: {asking.question}", hint="answer it: decide()")
        if isinstance(chosen, bytes):
            self.decide(id=asking.id, secret=chosen)
        else:
            self.decide(chosen, id=asking.id)

    def _deadline(self, timeout: Duration | None) -> float:
        limit = to_seconds(timeout)
        return time.monotonic() + (self.client.settings.wait_timeout if limit is None else limit)

    @staticmethod
    def _left(deadline: float) -> float:
        return max(0.0, deadline - time.monotonic())

    def _refuse_timeout(self, found: results.Wait) -> None:
        if found.timed_out:
            raise self._timeout(f"{found.session}: {found.why}", found)

    def _timeout(self, message: str, result: Any) -> Timeout:
        error = Timeout(message, hint="give it more time: timeout=", result=result)
        error.cursor = result.cursor
        return error

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Let errors show the session's screen."""
        try:
            yield
        except TmuxctlError as error:
            if error.screen is None and not isinstance(error, Usage):
                error.session = self._name
                with suppress(TmuxctlError):
                    error.screen = self.screen.text
            raise


def check_until(until: str) -> None:
    """Usage for a word that no wait is for."""
    if until not in get_args(Until):
        hint = f"it takes: {', '.join(get_args(Until))}; for a text there is wait_for"
        raise Usage(f"{ascii(until)[:40]} is nothing to wait for", reason="bad_option", hint=hint)


def _whole(output: Any) -> results.Output:
    """A stretch of output that is not followed."""
    return output  # type: ignore[no-any-return]


def to_bytes(text: Text) -> bytes:
    """A text as UTF-8, and bytes as they are; Usage `bad_text` for a text that is no Unicode, or holds NUL."""
    from tmuxctl.operations import parse_input

    return parse_input(text)


def to_seconds(duration: Duration | None) -> float | None:
    """A duration in seconds; Usage `bad_duration`. No limit (`none`) is not taken: every wait is finite."""
    seconds = parse_seconds(duration)
    if duration is not None and (seconds is None or isinstance(duration, bool)):
        raise Usage(f"{ascii(duration)} is not a duration", reason="bad_duration", hint="seconds, or 500ms, 10s, 5m")
    return seconds
