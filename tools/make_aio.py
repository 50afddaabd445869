"""Writes tmuxctl/aio.py: the library with `await`, made from the library itself. `--check` says whether it is as it should be."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "tmuxctl" / "surfaces" / "library"
TARGET = ROOT / "tmuxctl" / "aio.py"

HEAD = '''"""The library for asyncio: the names of `tmuxctl`, with `await`.

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
'''

SESSION = '''

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
'''

RESULTS = {
    "before": "str | None",
    "after": "str | type | None",
    "match": "TextMatch | type | None",
    "match_index": "int | None",
}
"""What `expect` leaves behind, without `await`."""

CLIENT = '''

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
'''

TAIL = '''

class StartingSession:
    """A session that starts when it is awaited, or entered."""

    def __init__(self, client: AsyncClient, command: Command, name: str | None, keep: bool, options: dict[str, Any]) -> None:
        self._client, self._command, self._name, self._keep, self._options = client, command, name, keep, options
        self._session: AsyncSession | None = None

    def __await__(self) -> Generator[Any, None, AsyncSession]:
        return self._start().__await__()

    async def _start(self) -> AsyncSession:
        made = await self._client.threads.run(
            lambda: _client.start(self._client.client, self._command, name=self._name, keep=self._keep, **self._options),
            waits=False,
        )
        return AsyncSession(self._client, made)

    async def __aenter__(self) -> AsyncSession:
        self._session = await self._start()
        return self._session

    async def __aexit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None) -> None:
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
'''


def methods(module: str, name: str) -> list[ast.FunctionDef]:
    """The public methods of a class of the library."""
    tree = ast.parse((LIBRARY / f"{module}.py").read_text())
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return [node for node in found.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def twin(node: ast.FunctionDef, inner: str) -> str:
    """The method with `await`. `inner` is what has the library's method."""
    arguments = node.args
    result = ast.unparse(node.returns) if node.returns else "None"
    is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)
    text = "\n".join(_documentation(node))
    result = result.replace("TerminalSession", "AsyncSession").replace("Iterator[", "AsyncIterator[")
    call = f"self.{inner}.{node.name}"
    threads = "self.threads" if inner == "client" else "self.client.threads"
    if is_property:
        body = f"return {threads}.run(lambda: {call}, waits=False)"
        return f"@property\ndef {node.name}(self) -> Awaitable[{result}]:\n{text}\n    {body}\n"
    signature = _signature(arguments)
    given = _call(arguments)
    waits = any(one.arg == "timeout" for one in (*arguments.args, *arguments.kwonlyargs))
    if result.startswith("AsyncIterator"):
        body = f"async for item in {threads}.iterate({call}({given})):\n        yield item"
        return f"async def {node.name}({signature}) -> {result}:\n{text}\n    {body}\n"
    before = ""
    if any(one.arg == "on_asking" for one in arguments.kwonlyargs):
        before = "    answer = in_loop(on_asking)\n"
        given = given.replace("on_asking=on_asking", "on_asking=answer")
        signature = signature.replace("Answerer", "AsyncAnswerer")
    if any(one.arg == "sessions" for one in arguments.args):
        before = "    plain = [session.session for session in sessions]\n"
        given = given.replace("sessions", "plain")
        signature = signature.replace("TerminalSession", "AsyncSession")
    body = f"await {threads}.run(lambda: {call}({given}), waits={waits})"
    if inner == "session" and result == "AsyncSession":
        body = f"{body}\n    return self"
    elif result == "AsyncSession":
        body = f"return AsyncSession(self, {body})"
        if any(one.arg == "sessions" for one in arguments.args):
            body = f"found = await {threads}.run(lambda: {call}({given}), waits={waits})\n    return sessions[plain.index(found)]"
    elif result == "tuple[AsyncSession, ...]":
        body = f"return tuple(AsyncSession(self, session) for session in {body})"
    elif result != "None":
        body = f"return {body}"
    return f"async def {node.name}({signature}) -> {result}:\n{text}\n{before}    {body}\n"


def _documentation(node: ast.FunctionDef) -> list[str]:
    words = (ast.get_docstring(node) or "").split(">>>")[0].strip()
    lines = textwrap.wrap(" ".join(words.split("\n\n")[0].split()), 116)
    return textwrap.indent('"""' + "\n".join(lines) + '"""', "    ").split("\n")


def _signature(arguments: ast.arguments) -> str:
    return ast.unparse(arguments)


def _call(arguments: ast.arguments) -> str:
    given = [one.arg for one in arguments.args[1:]]
    given += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    given += [f"{one.arg}={one.arg}" for one in arguments.kwonlyargs]
    return ", ".join(given)


LEFT_OUT = ("control", "settings", "close", "own", "forget", "end_owned")
"""Methods of the client that the twin has by hand, or does not need."""


def make() -> str:
    """The whole module."""
    parts = [HEAD, SESSION]
    for name, kind in RESULTS.items():
        about = '"""After `expect`: as of `tmuxctl.TerminalSession`."""'
        parts.append(
            f"\n    @property\n    def {name}(self) -> {kind}:\n        {about}\n        return self.session.{name}\n"
        )
    parts += ["\n" + textwrap.indent(twin(node, "session"), "    ") for node in methods("driven", "TerminalSession")]
    parts.append(CLIENT)
    parts += [
        "\n" + textwrap.indent(twin(node, "client"), "    ")
        for node in methods("client", "Client")
        if node.name not in LEFT_OUT
    ]
    parts.append(TAIL)
    source = "".join(parts)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"],
        input=source, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def main() -> int:
    """Write the module, or with `--check` compare it."""
    made = make()
    if "--check" in sys.argv[1:]:
        if TARGET.exists() and TARGET.read_text() == made:
            return 0
        print("tmuxctl/aio.py is not what the library says: make docs", file=sys.stderr)
        return 1
    TARGET.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
