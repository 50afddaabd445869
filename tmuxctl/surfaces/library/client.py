"""A tmux server as an object, and `session()`, which needs none."""

from __future__ import annotations

import atexit
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from tmuxctl import config
from tmuxctl.errors import Timeout, TmuxctlError
from tmuxctl.machines import check_machine_name
from tmuxctl.operations import current
from tmuxctl.surfaces.library.driven import Duration, TerminalSession, Until, check_until, to_seconds

if TYPE_CHECKING:
    from tmuxctl import results
    from tmuxctl.config import Settings
    from tmuxctl.control.service import Control

Command = str | Sequence[str]
"""A command: words, or one text that is split into words as a shell does (shlex), and never given to one."""

Plugins = Mapping[str, str | Mapping[str, str] | None] | Sequence[str]
"""Plugins by name with their value, their options by name, or None; or as `--with` takes them."""


class Client:
    """The sessions of one tmux server. Sessions that it starts stay when the process ends, unless they are closed.

    `socket` is the name of the tmux socket (by default the setting tmux.socket), `machine` another machine, as `MACHINE/NAME`
    says it, None for this one. Safe to share between threads. It keeps one connection to tmux, which `close` ends; sessions go on.
    """

    def __init__(
        self, socket: str | None = None, machine: str | None = None, *, control: Callable[[], Control] | None = None
    ) -> None:
        """`control` makes the operations, where they are not those of the user's settings. Usage `bad_machine` for what no machine
        may be called; that it cannot be reached is told by the first call."""
        self._socket, self._make = socket, control
        self._machine = machine if machine is None else check_machine_name(machine)
        self._made: Control | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._owned: dict[str, TerminalSession] = {}

    def __repr__(self) -> str:
        return f"<client of {self.settings.tmux_socket}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def control(self) -> Control:
        """The operations, as every surface calls them; a process that was forked from this one gets its own."""
        made = self._made
        if made is None or self._pid != os.getpid():
            made = self._make_control()
        return made

    def _make_control(self) -> Control:
        from tmuxctl.control.service import Control

        with self._lock:
            if self._pid != os.getpid():
                # the other process goes on with its connection, and ends its sessions
                self._made, self._pid, self._owned = None, os.getpid(), {}
            if self._made is None:
                make = self._make or partial(
                    Control, settings=config.load({"tmux.socket": self._socket}), resident=True
                )
                made = make()
                self._made = made if self._machine is None else made.reach(f"{self._machine}/")[0]
            return self._made

    @property
    def settings(self) -> Settings:
        """The settings that hold for it."""
        return self.control.machine.settings

    def new(
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
    ) -> TerminalSession:
        """Start a program in a session of its own, and wait until it is ready, asks, has ended, or has been busy for 2 s.

        The name is by default made after the command, which is by default $SHELL. Options as of `tmuxctl new`.

        >>> db = client.new("shop", ["sqlite3", ":memory:"], size="80x24")
        >>> db.ask("select 6*7;").text
        '42'
        """
        words = shlex.split(command) if isinstance(command, str) else [os.fspath(word) for word in command]
        made: Any = self.control.new(
            name,
            tuple(words),
            cwd=None if cwd is None else os.path.expanduser(cwd),
            env=dict(env) if env else None,
            size=size,
            history=history,
            profile=profile,
            clean_env=clean_env,
            login=login,
            shell_marks=shell_marks,
            if_exists=if_exists,
            with_=to_plugin_words(with_),
            tag=tuple(tags),
            owner=owner,
            wait=wait,
        )
        return TerminalSession(self, made)

    def get(self, session: str) -> TerminalSession:
        """The session of this name or id; NotFound if there is none.

        >>> client.get("sh").ask("echo hi").text
        'hi'
        """
        return TerminalSession(self, self.control.show(session))

    def list(self, *, state: Any = None, tag: str | None = None) -> tuple[TerminalSession, ...]:
        """All sessions by name, or those in a state or with a tag.

        >>> [session.name for session in client.list()]
        ['py', 'sh']
        """
        return tuple(TerminalSession(self, facts) for facts in self.control.ls(state=state, tag=tag).sessions)

    def run(
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
        """Run a program on a terminal of its own to its end, and return its `output` and `exit_status`.

        >>> client.run("sh -c 'tty -s && echo on a terminal'").output
        'on a terminal\\n'
        """
        words = shlex.split(command) if isinstance(command, str) else [os.fspath(word) for word in command]
        return self.control.run(
            tuple(words),
            cwd=None if cwd is None else os.path.expanduser(cwd),
            env=dict(env) if env else None,
            size=size,
            clean_env=clean_env,
            with_=to_plugin_words(with_),
            timeout=to_seconds(timeout),
            max_bytes=max_bytes,
        )

    def wait_any(
        self, sessions: Sequence[TerminalSession], until: Until = "asking", *, timeout: Duration | None = None
    ) -> TerminalSession:
        """Wait until one of several sessions is in a state, and return it; Timeout if none is in time.

        >>> client.wait_any([sh, py], "prompt") in (sh, py)
        True
        """
        return self._wait_together(sessions, until, timeout, every=False)[0]

    def wait_all(
        self, sessions: Sequence[TerminalSession], until: Until = "idle", *, timeout: Duration | None = None
    ) -> tuple[TerminalSession, ...]:
        """Wait until each of several sessions is in a state, and return them; Timeout if one is not in time.

        >>> len(client.wait_all([sh, py], "prompt"))
        2
        """
        return self._wait_together(sessions, until, timeout, every=True)

    def _wait_together(
        self, sessions: Sequence[TerminalSession], until: str, timeout: Duration | None, *, every: bool
    ) -> tuple[TerminalSession, ...]:
        check_until(until)
        by_name = {session.name: session for session in sessions}
        names = {"all" if every else "any": tuple(by_name)}
        found: Any = self.control.wait(timeout=to_seconds(timeout), **names, **{until: True})  # type: ignore[arg-type]
        if not found.ok:
            raise Timeout(f"waited for {', '.join(by_name)}: not {until} in time", hint="timeout=", result=found)
        return tuple(by_name[one.session] for one in found.waits if one.matched)

    def close(self) -> None:
        """End the sessions of `session()` that are still open, and the connection to tmux; other sessions go on."""
        if self._pid != os.getpid():
            # all of it is the other process's
            return
        for session in tuple(self._owned.values()):
            session.close()
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made.close()

    def own(self, session: TerminalSession) -> None:
        """End this session with the process, if it is still there then."""
        self._owned[session.id] = session

    def forget(self, session: TerminalSession) -> None:
        """Leave this session as it is when the process ends."""
        self._owned.pop(session.id, None)

    def end_owned(self) -> Iterator[str]:
        """End what is still open of `session()`; the names of what was."""
        for session in tuple(self._owned.values()) if self._pid == os.getpid() else ():
            with suppress(TmuxctlError):
                name = session.name
                session.close()
                yield name


def to_plugin_words(plugins: Plugins) -> tuple[str, ...]:
    """Plugins as `--with` takes them: NAME, NAME=VALUE, NAME:option=value."""
    if not isinstance(plugins, Mapping):
        return tuple(plugins)
    words = []
    for name, value in plugins.items():
        if isinstance(value, Mapping):
            words += [f"{name}:{option}={text}" for option, text in value.items()] or [name]
        else:
            words.append(name if value is None else f"{name}={value}")
    return tuple(words)


_clients: dict[str | None, Client] = {}
_lock = threading.Lock()
atexit.register(lambda: _end_at_exit())


def shared_client(socket: str | None = None) -> Client:
    """The client that `session()` uses for this socket, one for each process."""
    with _lock:
        if socket not in _clients:
            _clients[socket] = Client(socket)
        return _clients[socket]


def forget_shared() -> list[Client]:
    """The clients of `session` that there are, which the next call makes anew."""
    with _lock:
        known = list(_clients.values())
        _clients.clear()
    return known


def _end_at_exit() -> None:
    """End sessions that nobody closed, and say so; then the connections."""
    for client in _clients.values():
        for name in client.end_owned():
            print(f"tmuxctl: ended session {name}, which was still open (keep=True lets it go on)", file=sys.stderr)
        with suppress(TmuxctlError, OSError):
            client.close()


def session(
    command: Command = (), *, name: str | None = None, socket: str | None = None, keep: bool = False, **options: Any
) -> TerminalSession:
    """Start a program, as `Client.new` with its options, in a session that is ended where the `with` block ends, by `close`, or
    else with this process; with `keep` it goes on then.

    >>> with tmuxctl.session("python3 -q", socket=socket) as python:
    ...     python.ask("6*7").text
    '42'
    """
    return start(shared_client(socket), command, name=name, keep=keep, **options)


def start(client: Client, command: Command, *, name: str | None, keep: bool, **options: Any) -> TerminalSession:
    """Start a session that is ended with this process unless `keep`; interrupted on the way (Ctrl-C), it leaves none."""
    given = options.pop("owner", None)
    owner = given or f"python-{os.getpid()}-{os.urandom(4).hex()}"
    before = {facts.id for facts in client.control.ls().sessions} if given else set()
    try:
        made = client.new(name, command, owner=owner, **options)
        current().check()
    except BaseException:
        for facts in client.control.ls().sessions:
            if facts.owner == owner and facts.id not in before:
                client.control.kill((facts.id,))
        raise
    if not keep:
        client.own(made)
    return made


def run(command: Command, *, socket: str | None = None, **options: Any) -> results.Ran:
    """Run a program on a terminal of its own to its end, as `Client.run`.

    >>> tmuxctl.run("sh -c 'exit 3'", socket=socket).exit_status
    3
    """
    return shared_client(socket).run(command, **options)
