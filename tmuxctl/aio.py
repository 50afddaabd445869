"""The library for asyncio: the names of `tmuxctl`, with `await`.

    async with tmuxctl.aio.session("python3 -q") as py:
        print((await py.ask("6*7")).text)

Made from `surfaces/library` by tools/make_aio.py: change that, then `make docs`. A cancelled task cancels its call; the
program in the session goes on.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Generator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from tmuxctl.surfaces.library import client as _client
from tmuxctl.surfaces.library.client import Command, Plugins
from tmuxctl.surfaces.library.driven import Duration, Text, Until
from tmuxctl.surfaces.library.threads import AsyncAnswerer, CallThreads, in_loop

if TYPE_CHECKING:
    import libtmux

    from tmuxctl import results
    from tmuxctl.model import Asking, Session, State
    from tmuxctl.surfaces.library import driven, matching
    from tmuxctl.surfaces.library.matching import TextMatch
    from tmuxctl.surfaces.library.screens import TerminalScreen


class AsyncSession:
    """One program on a terminal of its own: `tmuxctl.TerminalSession` with `await`. As an asynchronous context manager it is
    ended where the block ends."""

    def __init__(self, client: AsyncClient, session: driven.TerminalSession) -> None:
        self.client, self.session = client, session

    def __repr__(self) -> str:
        return f"<asyncio {self.session!r}>"

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def id(self) -> str:
        """Its id, which stays."""
        return self.session.id

    @property
    def before(self) -> str | None:
        """After `expect`: as of `tmuxctl.TerminalSession`."""
        return self.session.before

    @property
    def after(self) -> str | type | None:
        """After `expect`: as of `tmuxctl.TerminalSession`."""
        return self.session.after

    @property
    def match(self) -> TextMatch | type | None:
        """After `expect`: as of `tmuxctl.TerminalSession`."""
        return self.session.match

    @property
    def match_index(self) -> int | None:
        """After `expect`: as of `tmuxctl.TerminalSession`."""
        return self.session.match_index

    async def send(
        self,
        text: Text = "",
        *,
        enter: bool = True,
        paste: bool = False,
        multiline: bool = False,
        insecure: bool = False,
    ) -> AsyncSession:
        """Type text exactly as given, press Enter, and return the session without waiting. Options as of `tmuxctl send`."""
        await self.client.threads.run(
            lambda: self.session.send(text, enter=enter, paste=paste, multiline=multiline, insecure=insecure),
            waits=False,
        )
        return self

    async def send_secret(self, secret: Text) -> AsyncSession:
        """Type a secret and Enter where the terminal does not show it; Conflict `echo_on` where it would. It is kept nowhere."""
        await self.client.threads.run(lambda: self.session.send_secret(secret), waits=False)
        return self

    async def keys(self, *keys: str, repeat: int = 1, insecure: bool = False) -> AsyncSession:
        """Press named keys (C-c, Up, Enter, F5, alt+x), and return the session; all names are checked before the first."""
        await self.client.threads.run(lambda: self.session.keys(*keys, repeat=repeat, insecure=insecure), waits=False)
        return self

    async def send_and_see(self, text: Text, pattern: str, *, timeout: Duration | None = None) -> results.Written:
        """Type text and Enter, wait until the output after it matches, and take the screen, in one call: the loop of every
        caller that watches a screen. Returns what became of each: `wait` and `screen`. Timeout where it did not match."""
        return await self.client.threads.run(
            lambda: self.session.send_and_see(text, pattern, timeout=timeout), waits=True
        )

    async def ask(
        self,
        text: Text,
        *,
        timeout: Duration | None = None,
        on_asking: AsyncAnswerer | None = None,
        decide: Sequence[str] = (),
        raw: bool = False,
        queue: bool = False,
        interrupt: bool = False,
        strict: bool = False,
    ) -> results.Answer:
        """Type text into a program, wait for the end of its turn, and return the answer: `text`, without echo and prompt."""
        answer = in_loop(on_asking)
        return await self.client.threads.run(
            lambda: self.session.ask(
                text,
                timeout=timeout,
                on_asking=answer,
                decide=decide,
                raw=raw,
                queue=queue,
                interrupt=interrupt,
                strict=strict,
            ),
            waits=True,
        )

    async def exec(
        self, *command: str, timeout: Duration | None = None, max_bytes: int = 1 << 20, stdin: str | None = None
    ) -> results.Ran:
        """Run a command in the session's shell and return its exact `output` and `exit_status`; one argument is shell text,
        several are a program and its arguments. Timeout where it goes on."""
        return await self.client.threads.run(
            lambda: self.session.exec(*command, timeout=timeout, max_bytes=max_bytes, stdin=stdin), waits=True
        )

    async def decide(
        self,
        option: str | None = None,
        *,
        id: str | None = None,
        secret: Text | None = None,
        wait: bool = False,
        timeout: Duration | None = None,
    ) -> results.Decided:
        """Answer the question that stands, by an option's id, label or number, or by a text; or return it (no option)."""
        return await self.client.threads.run(
            lambda: self.session.decide(option, id=id, secret=secret, wait=wait, timeout=timeout), waits=True
        )

    async def batch(
        self, steps: Sequence[Mapping[str, Any]], *, keep_going: bool = False, timeout: Duration | None = None
    ) -> results.Batch:
        """Carry out several steps in one call, as `tmuxctl batch` does."""
        return await self.client.threads.run(
            lambda: self.session.batch(steps, keep_going=keep_going, timeout=timeout), waits=True
        )

    async def wait(
        self, until: Until = "idle", *, timeout: Duration | None = None, on_asking: AsyncAnswerer | None = None
    ) -> results.Wait:
        """Wait until the program is `idle` (takes input of any kind), at its `prompt`, wants other `input`, is `asking`, has
        ended (`exit`), or prints anything (`change`)."""
        answer = in_loop(on_asking)
        return await self.client.threads.run(
            lambda: self.session.wait(until, timeout=timeout, on_asking=answer), waits=True
        )

    async def wait_for(self, pattern: str, *, timeout: Duration | None = None, since: str | None = None) -> TextMatch:
        """Wait until the output after the last input, without its echo, matches a regular expression, in which ^ and $ match
        at every line; what is there already counts. `since` is a cursor, or `screen` for all that is visible."""
        return await self.client.threads.run(
            lambda: self.session.wait_for(pattern, timeout=timeout, since=since), waits=True
        )

    async def wait_gone(self, pattern: str, *, timeout: Duration | None = None) -> results.Wait:
        """Wait until the screen does not match a regular expression."""
        return await self.client.threads.run(lambda: self.session.wait_gone(pattern, timeout=timeout), waits=True)

    async def wait_settled(self, seconds: Duration = 0.5, *, timeout: Duration | None = None) -> results.Wait:
        """Wait until nothing was printed for so long. Silence says nothing of what a program does; `wait` does."""
        return await self.client.threads.run(lambda: self.session.wait_settled(seconds, timeout=timeout), waits=True)

    async def expect(self, patterns: matching.Patterns, *, timeout: Duration | None = None) -> int:
        """As pexpect's: wait until the output since the last match, or since the last input where that is newer, matches one
        of the patterns (a regular expression, EOF, TIMEOUT, or a list of these), and return its index."""
        return await self.client.threads.run(lambda: self.session.expect(patterns, timeout=timeout), waits=True)

    async def expect_exact(self, texts: matching.Patterns, *, timeout: Duration | None = None) -> int:
        """`expect` for texts in which nothing has a meaning of its own."""
        return await self.client.threads.run(lambda: self.session.expect_exact(texts, timeout=timeout), waits=True)

    @property
    def screen(self) -> Awaitable[TerminalScreen]:
        """What a person would see now."""
        return self.client.threads.run(lambda: self.session.screen, waits=False)

    async def scrollback(self, lines: int = 0) -> list[str]:
        """The last lines that scrolled away above the screen, oldest first; 0: all that tmux keeps."""
        return await self.client.threads.run(lambda: self.session.scrollback(lines), waits=False)

    async def read(self, since: str | None = None) -> results.Output:
        """The output after a cursor as text, by default after the last input and without its echo, and the `cursor` behind it."""
        return await self.client.threads.run(lambda: self.session.read(since), waits=False)

    async def log(self, tail: int | None = None, *, raw: bool = False) -> results.Output:
        """Everything that was printed, as far back as the journal goes, or its last lines: `text`, and with `raw` the bytes as
        they came in `data`."""
        return await self.client.threads.run(lambda: self.session.log(tail, raw=raw), waits=False)

    @property
    def info(self) -> Awaitable[Session]:
        """Everything known about the session, as `tmuxctl show`."""
        return self.client.threads.run(lambda: self.session.info, waits=False)

    @property
    def name(self) -> Awaitable[str]:
        """Its name now."""
        return self.client.threads.run(lambda: self.session.name, waits=False)

    @property
    def state(self) -> Awaitable[State]:
        """What the program does: busy, idle, asking, exited, lost or unknown."""
        return self.client.threads.run(lambda: self.session.state, waits=False)

    @property
    def asking(self) -> Awaitable[Asking | None]:
        """The question that stands now; None if there is none."""
        return self.client.threads.run(lambda: self.session.asking, waits=False)

    @property
    def wants(self) -> Awaitable[str | None]:
        """`prompt` where the program is ready for its next command, `input` where anything else has to be typed, else None."""
        return self.client.threads.run(lambda: self.session.wants, waits=False)

    @property
    def exit_status(self) -> Awaitable[int | None]:
        """The exit status of the program; None while it runs, and where a signal ended it."""
        return self.client.threads.run(lambda: self.session.exit_status, waits=False)

    @property
    def signal(self) -> Awaitable[str | None]:
        """The signal that ended the program, without SIG; None while it runs, and where it ended by itself."""
        return self.client.threads.run(lambda: self.session.signal, waits=False)

    @property
    def alive(self) -> Awaitable[bool]:
        """Whether the program runs."""
        return self.client.threads.run(lambda: self.session.alive, waits=False)

    async def explain(self) -> results.Explained:
        """Why the session has its state, with all evidence."""
        return await self.client.threads.run(lambda: self.session.explain(), waits=False)

    async def events(self, state: Any = None) -> AsyncIterator[results.Event]:
        """The state now, then every change of it, until the program has ended; `state` leaves out all others."""
        async for item in self.client.threads.iterate(self.session.events(state)):
            yield item

    async def resize(self, size: str) -> AsyncSession:
        """Change the size of the terminal, columns x rows."""
        await self.client.threads.run(lambda: self.session.resize(size), waits=False)
        return self

    async def rename(self, name: str) -> AsyncSession:
        """Give the session another name; this object and cursors stay valid."""
        await self.client.threads.run(lambda: self.session.rename(name), waits=False)
        return self

    async def tag(self, *tags: str, remove: Sequence[str] = ()) -> tuple[str, ...]:
        """Add tags and remove some; return those it has."""
        return await self.client.threads.run(lambda: self.session.tag(*tags, remove=remove), waits=False)

    async def kill(self, *, signal: str = "TERM", grace: Duration = 3.0, force: bool = False) -> results.End:
        """End the program with all its processes, and remove the session; its output stays readable until `tmuxctl prune`."""
        return await self.client.threads.run(
            lambda: self.session.kill(signal=signal, grace=grace, force=force), waits=False
        )

    async def close(self) -> None:
        """End it if it is there; twice is as once."""
        await self.client.threads.run(lambda: self.session.close(), waits=False)

    @property
    def tmux(self) -> Awaitable[libtmux.Session]:
        """The session as libtmux has it, to do what tmux can and tmuxctl does not."""
        return self.client.threads.run(lambda: self.session.tmux, waits=False)


class AsyncClient:
    """The sessions of one tmux server: `tmuxctl.Client` with `await`. `close` ends its threads too. `client` is one to go on
    with, which `close` leaves open."""

    def __init__(
        self, socket: str | None = None, machine: str | None = None, *, client: _client.Client | None = None
    ) -> None:
        self.client = client or _client.Client(socket, machine)
        self.threads = CallThreads()
        self._lent = client is not None

    def __repr__(self) -> str:
        return f"<asyncio {self.client!r}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the sessions of `session()` that are still open, the threads, and the connection to tmux; other sessions go on."""
        if not self._lent:
            await self.threads.run(self.client.close, waits=False)
        await self.threads.close()

    async def new(
        self,
        name: str | None = None,
        command: Command = (),
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        size: str | None = None,
        history: int | None = None,
        profile: str = "auto",
        clean_env: bool = False,
        login: bool = False,
        shell_marks: bool = True,
        if_exists: Literal["error", "reuse", "replace"] = "error",
        with_: Plugins = (),
        tags: Sequence[str] = (),
        owner: str | None = None,
        wait: bool = True,
    ) -> AsyncSession:
        """Start a program in a session of its own, and wait until it is ready, asks, has ended, or has been busy for 2 s."""
        return AsyncSession(
            self,
            await self.threads.run(
                lambda: self.client.new(
                    name,
                    command,
                    cwd=cwd,
                    env=env,
                    size=size,
                    history=history,
                    profile=profile,
                    clean_env=clean_env,
                    login=login,
                    shell_marks=shell_marks,
                    if_exists=if_exists,
                    with_=with_,
                    tags=tags,
                    owner=owner,
                    wait=wait,
                ),
                waits=False,
            ),
        )

    async def get(self, session: str) -> AsyncSession:
        """The session of this name or id; NotFound if there is none."""
        return AsyncSession(self, await self.threads.run(lambda: self.client.get(session), waits=False))

    async def list(self, *, state: Any = None, tag: str | None = None) -> tuple[AsyncSession, ...]:
        """All sessions by name, or those in a state or with a tag."""
        return tuple(
            AsyncSession(self, session)
            for session in await self.threads.run(lambda: self.client.list(state=state, tag=tag), waits=False)
        )

    async def run(
        self,
        command: Command,
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        size: str | None = None,
        clean_env: bool = False,
        with_: Plugins = (),
        timeout: Duration | None = None,
        max_bytes: int = 64 << 20,
    ) -> results.Ran:
        """Run a program on a terminal of its own to its end, and return its `output` and `exit_status`."""
        return await self.threads.run(
            lambda: self.client.run(
                command,
                cwd=cwd,
                env=env,
                size=size,
                clean_env=clean_env,
                with_=with_,
                timeout=timeout,
                max_bytes=max_bytes,
            ),
            waits=True,
        )

    async def wait_any(
        self, sessions: Sequence[AsyncSession], until: Until = "asking", *, timeout: Duration | None = None
    ) -> AsyncSession:
        """Wait until one of several sessions is in a state, and return it; Timeout if none is in time."""
        plain = [session.session for session in sessions]
        found = await self.threads.run(lambda: self.client.wait_any(plain, until, timeout=timeout), waits=True)
        return sessions[plain.index(found)]

    async def wait_all(
        self, sessions: Sequence[AsyncSession], until: Until = "idle", *, timeout: Duration | None = None
    ) -> tuple[AsyncSession, ...]:
        """Wait until each of several sessions is in a state, and return them; Timeout if one is not in time."""
        plain = [session.session for session in sessions]
        return tuple(
            AsyncSession(self, session)
            for session in await self.threads.run(
                lambda: self.client.wait_all(plain, until, timeout=timeout), waits=True
            )
        )


class StartingSession:
    """A session that starts when it is awaited, or entered."""

    def __init__(
        self, client: AsyncClient, command: Command, name: str | None, keep: bool, options: dict[str, Any]
    ) -> None:
        self._client, self._command, self._name, self._keep, self._options = client, command, name, keep, options
        self._session: AsyncSession | None = None

    def __await__(self) -> Generator[Any, None, AsyncSession]:
        return self._start().__await__()

    async def _start(self) -> AsyncSession:
        made = await self._client.threads.run(
            lambda: _client.start(
                self._client.client, self._command, name=self._name, keep=self._keep, **self._options
            ),
            waits=False,
        )
        return AsyncSession(self._client, made)

    async def __aenter__(self) -> AsyncSession:
        self._session = await self._start()
        return self._session

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()


def session(
    command: Command = (), *, name: str | None = None, socket: str | None = None, keep: bool = False, **options: Any
) -> StartingSession:
    """Start a program, as `tmuxctl.session`: await it, or enter it with `async with`."""
    return StartingSession(_shared_client(socket), command, name, keep, options)


async def run(command: Command, *, socket: str | None = None, **options: Any) -> results.Ran:
    """Run a program on a terminal of its own to its end, as `tmuxctl.run`."""
    return await _shared_client(socket).run(command, **options)


async def close() -> None:
    """End the threads that `session` and `run` started; else they end with the process."""
    while _shared:
        await _shared.popitem()[1].close()


_shared: dict[str | None, AsyncClient] = {}


def _shared_client(socket: str | None) -> AsyncClient:
    if socket not in _shared:
        _shared[socket] = AsyncClient(client=_client.shared_client(socket))
    return _shared[socket]


Client = AsyncClient
TerminalSession = AsyncSession
