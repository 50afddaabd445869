"""The daemon protocol: a Unix socket with a JSON object on each line, to create, resize, close and list sessions; each session
has a socket of its own for its terminal (`session_sockets`)."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from tmuxctl.errors import Failed, TmuxctlError, Usage
from tmuxctl.operations import to_json
from tmuxctl.ownership import refuse_unsafe_parent
from tmuxctl.surfaces.adapters.session_sockets import READ_BYTES, SessionSockets, remove_socket
from tmuxctl.surfaces.server.listening import BACKLOG, open_unix_socket
from tmuxctl.untrusted import parse_json
from tmuxctl.value import Value

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tmuxctl.model import Session
    from tmuxctl.surfaces.server.app import Part, Served
    from tmuxctl.surfaces.server.calls import Request

LINE_BYTES = 1 << 18
"""Bytes of a request: a shell's words may hold the rules of a sandbox."""

CLIENTS = 512
"""Connections at once; one more is refused."""

TEXT, WHOLE, WORDS, TEXTS = "a text", "a whole number", "a text or a list of texts", "an object of texts"

IS_A: Mapping[str, Callable[[Any], bool]] = {
    TEXT: lambda value: isinstance(value, str),
    WHOLE: lambda value: isinstance(value, int) and not isinstance(value, bool),
    WORDS: lambda value: isinstance(value, str) or is_list_of_texts(value),
    TEXTS: lambda value: isinstance(value, dict) and is_list_of_texts([*value.values()]),
}


def is_list_of_texts(value: Any) -> bool:
    """Whether it is a list with texts in it, and nothing else."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


class RequestType(Value):
    """What a type of request takes: its fields with what each is, and those that it needs."""

    name: str
    fields: Mapping[str, str]
    needed: tuple[str, ...] = ()


SESSION, SIZE = {"sessionId": TEXT}, {"cols": WHOLE, "rows": WHOLE}
CREATE = RequestType("create-session", {**SIZE, "shell": WORDS, "cwd": TEXT, "env": TEXTS})
OPEN = RequestType("open-session", SESSION, ("sessionId",))
RESIZE = RequestType("resize-session", {**SESSION, **SIZE}, ("sessionId", "cols", "rows"))
CLOSE = RequestType("close-session", SESSION, ("sessionId",))
LIST = RequestType("list-sessions", {})

TYPES = {
    word: kind for kind in (CREATE, OPEN, RESIZE, CLOSE, LIST) for word in (kind.name.partition("-")[0], kind.name)
}
"""The types of requests: each may be called by its first word alone."""

TOLD = {
    "sessionId": "name",
    "id": "id",
    "state": "state",
    "command": "argv",
    "cwd": "cwd",
    "cols": "cols",
    "rows": "rows",
    "pid": "pid",
    "exitStatus": "exit_status",
    "signal": "signal",
    "createdAt": "created",
}
"""What is told of a session, and what it is called here."""


def make_daemon(path: str) -> Part:
    """The part of a server that serves the protocol at this path. Raises TmuxctlError when it is added."""

    def add_daemon(_app: FastAPI, served: Served) -> Any:
        place = os.path.abspath(os.path.expanduser(path))
        refuse_unsafe_parent(place)
        sockets = SessionSockets(served)
        try:
            opened = open_unix_socket(place)
        except Failed as error:
            hint = "give --daemon-socket a short path, in a folder that is there"
            raise Failed(error.message, reason=error.reason, hint=hint) from None
        return DaemonSocket(served, sockets, opened, place).hold()

    return add_daemon


class DaemonSocket:
    """The socket of the protocol, and its clients."""

    def __init__(self, served: Served, sockets: SessionSockets, opened: socket.socket, path: str) -> None:
        self.served, self.sockets, self.opened, self.path = served, sockets, opened, path
        self.clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Serve while the server runs."""
        server: asyncio.Server | None = None
        try:
            await self.sockets.start()
            server = await asyncio.start_unix_server(self._serve, sock=self.opened, limit=READ_BYTES, backlog=BACKLOG)
            yield
        finally:
            if server is not None:
                server.close()
            remove_socket(self.path)
            self.sockets.stop()
            for task, writer in self.clients.items():
                writer.transport.abort()
                task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        requests = DaemonRequests(self.served, self.sockets)
        full = len(self.clients) >= CLIENTS
        self.clients[task] = writer
        try:
            if full:
                hint = "close one of the others"
                await _reply(
                    writer, _tell_failure(Failed(f"{CLIENTS} clients are connected", reason="busy", hint=hint))
                )
                return
            async for line in read_lines(reader):
                if line is None or line.strip():
                    await _reply(writer, await requests.answer(line))
        except OSError:
            # it has gone away
            return
        except asyncio.CancelledError:
            # the server stops
            return
        finally:
            del self.clients[task]
            writer.close()


async def _reply(writer: asyncio.StreamWriter, reply: Mapping[str, Any]) -> None:
    writer.write(json.dumps(reply).encode() + b"\n")
    await writer.drain()


async def read_lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes | None]:
    """Each line, the last one without its end too; None in the place of one that is too long, which is not kept."""
    kept, too_long = bytearray(), False
    while data := await reader.read(READ_BYTES):
        *whole, rest = data.split(b"\n")
        for part in whole:
            if not too_long:
                kept += part
                yield bytes(kept) if len(kept) <= LINE_BYTES else None
            kept.clear()
            too_long = False
        if not too_long:
            kept += rest
        if len(kept) > LINE_BYTES:
            yield None
            kept.clear()
            too_long = True
    if kept:
        yield bytes(kept)


class DaemonRequests:
    """The requests of one client."""

    def __init__(self, served: Served, sockets: SessionSockets) -> None:
        self.calls, self.sockets = served.calls, sockets
        self.methods: Mapping[str, Callable[[Request, dict[str, Any]], Awaitable[dict[str, Any]]]] = {
            CREATE.name: self._create,
            OPEN.name: self._open,
            RESIZE.name: self._resize,
            CLOSE.name: self._close,
            LIST.name: self._list,
        }

    async def answer(self, line: bytes | None) -> dict[str, Any]:
        """The reply to a line."""
        try:
            kind, fields = parse_request(line)
            return {"success": True, **await self.methods[kind.name](self.sockets.new_request(), fields)}
        except TmuxctlError as error:
            return _tell_failure(error)
        except OSError as error:
            # no descriptor is left, or no space
            return _tell_failure(Failed(error.strerror or str(error), reason="system"))

    async def _create(self, request: Request, fields: dict[str, Any]) -> dict[str, Any]:
        arguments: dict[str, Any] = {"name": f"pty-{os.urandom(4).hex()}", "clean_env": True, "wait": False}
        arguments |= {name: fields[name] for name in ("cwd", "env") if name in fields}
        if "cols" in fields or "rows" in fields:
            size = self.calls.control.machine.settings.tmux_size
            arguments["size"] = f"{fields.get('cols', size.cols)}x{fields.get('rows', size.rows)}"
        if "shell" in fields:
            arguments["command"] = split_words(fields["shell"])
        session: Session = await self.calls.operate(request, "new", arguments)
        try:
            path = self.sockets.open(session.id, unread=True)
        except (TmuxctlError, OSError):
            # nobody would know of it
            with suppress(TmuxctlError):
                await self.calls.operate(request, "kill", {"session": [session.id], "grace": 0})
            self.sockets.close(session.id)
            raise
        return {"sessionId": session.name, "socketPath": path}

    async def _open(self, request: Request, fields: dict[str, Any]) -> dict[str, Any]:
        session: Session = await self.calls.operate(request, "show", {"session": fields["sessionId"]})
        return {"sessionId": session.name, "socketPath": self.sockets.open(session.id)}

    async def _resize(self, request: Request, fields: dict[str, Any]) -> dict[str, Any]:
        arguments = {"session": fields["sessionId"], "size": f"{fields['cols']}x{fields['rows']}"}
        session: Session = await self.calls.operate(request, "resize", arguments)
        return {"sessionId": session.name, "cols": session.cols, "rows": session.rows}

    async def _close(self, request: Request, fields: dict[str, Any]) -> dict[str, Any]:
        # what a terminal that goes away sends: a shell at its prompt does not end by TERM
        arguments = {"session": [fields["sessionId"]], "signal": "HUP"}
        killed = await self.calls.operate(request, "kill", arguments)
        for ended in killed.killed:
            self.sockets.close(ended.id)
        return {"sessionId": fields["sessionId"]}

    async def _list(self, request: Request, _fields: dict[str, Any]) -> dict[str, Any]:
        before = self.sockets.list_open()
        listed = await self.calls.operate(request, "ls", {})
        self.sockets.close_gone(before, [session.id for session in listed.sessions])
        return {"sessions": [self._tell(session) for session in listed.sessions]}

    def _tell(self, session: Session) -> dict[str, Any]:
        told = {name: to_json(getattr(session, ours)) for name, ours in TOLD.items()}
        return {**told, "socketPath": self.sockets.find_path(session.id)}


def parse_request(line: bytes | None) -> tuple[RequestType, dict[str, Any]]:
    """The type of a request, and its fields; Usage for anything that is none."""
    if line is None:
        hint = f"a request has at most {LINE_BYTES} bytes"
        raise Usage("the line is too long", reason="too_large", hint=hint)
    try:
        told = parse_json(line, limit=LINE_BYTES)
    except ValueError:
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("type"), str):
        hint = '{"type": "create-session", "cols": 120, "rows": 40}'
        raise Usage('a line is a JSON object with a "type"', reason="bad_json", hint=hint)
    kind = TYPES.get(told.pop("type"))
    if kind is None:
        raise Usage("no such type", reason="bad_type", hint=f"there are: {', '.join(TYPES)}")
    fields = {name: value for name, value in told.items() if value is not None}
    for name, value in fields.items():
        if name not in kind.fields:
            hint = f"it takes {', '.join(kind.fields) or 'nothing'}"
            raise Usage(f"{kind.name} does not take {ascii(name)[:40]}", reason="bad_parameter", hint=hint)
        if not IS_A[kind.fields[name]](value):
            raise Usage(f"{name} is not {kind.fields[name]}", reason="bad_type")
    if missing := [name for name in kind.needed if name not in fields]:
        raise Usage(f"{kind.name} needs {missing[0]}", reason="missing")
    return kind, fields


def split_words(shell: str | list[str]) -> list[str]:
    """The words of a shell and its arguments, as a shell splits them; the path of a program may have blanks in it. Usage for
    none."""
    try:
        if isinstance(shell, list):
            words = shell
        else:
            words = [shell] if shell.startswith("/") and os.access(shell, os.X_OK) else shlex.split(shell)
    except ValueError as error:
        # a quote that is not closed, or NUL
        raise Usage(f"shell: {ascii(str(error))[1:-1]}", reason="bad_command", hint='"shell": "/bin/sh"') from None
    if not words:
        raise Usage("shell: no words", reason="bad_command", hint='"shell": "/bin/sh"')
    return words


def _tell_failure(error: TmuxctlError) -> dict[str, Any]:
    about = {"code": error.code, "reason": error.reason, "hint": error.hint or None}
    return {"success": False, "error": error.message, **about}
