"""A Unix socket for each session that has one: its terminal as raw bytes, in both directions, and nothing else."""

from __future__ import annotations

import asyncio
import os
import re
import select
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxctl.access import CallerAccess
from tmuxctl.errors import Conflict, Exited, Failed, NotFound, TmuxctlError
from tmuxctl.ownership import make_parents
from tmuxctl.state_files import make_private_folder, write_record
from tmuxctl.surfaces.server.calls import Request
from tmuxctl.surfaces.server.listening import open_unix_socket, runtime_folder
from tmuxctl.surfaces.server.streams.raw_terminal import RawTerminal
from tmuxctl.untrusted import fits, parse_record, read_file

if TYPE_CHECKING:
    from tmuxctl.results import Output
    from tmuxctl.surfaces.server.app import Served
    from tmuxctl.surfaces.server.streams.hub import Change

READ_BYTES = 1 << 16
RECORD_BYTES = 4 << 20
BEGINNING = "screen"
"""The cursor from which everything is read that a session's journal has."""


class SocketRecord:
    """The file that tells which sessions have a socket, by their ids, and which of these nobody has read yet: a server that is
    killed leaves its sockets to the next one."""

    def __init__(self, folder: str, tmux_socket: str) -> None:
        self.folder, self.path = folder, os.path.join(folder, f"sockets-{tmux_socket}.json")

    def read(self) -> dict[str, bool]:
        """Each session, and whether its output is still to be sent from the beginning. A damaged file is set aside."""
        if not os.path.lexists(self.path):
            return {}
        try:
            kept = parse_record(read_file(self.path, RECORD_BYTES), self.path).get("sessions")
        except (OSError, ValueError):
            os.replace(self.path, f"{self.path}.damaged")
            return {}
        sessions = kept.items() if isinstance(kept, dict) else ()
        return {name: unread for name, unread in sessions if is_session_id(name) and fits(unread, bool)}

    def write(self, sessions: Mapping[str, bool]) -> None:
        """Keep these."""
        make_parents(self.folder)
        make_private_folder(self.folder)
        write_record(self.path, {"sessions": dict(sessions)})


def is_session_id(text: str) -> bool:
    """Whether it can be the id of a session, and so the name of a file."""
    return re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text) is not None


class SessionSockets:
    """The sockets of one server's sessions."""

    def __init__(self, served: Served) -> None:
        self.calls, self.audit, self.hub = served.calls, served.audit, served.hub
        machine = self.calls.control.machine
        self.timing, name = machine.timing.raw_terminal, machine.settings.tmux_socket
        self.folder = os.path.join(runtime_folder(), f"sessions-{name}")
        make_private_folder(self.folder)
        self.record = SocketRecord(self.audit.folder, name)
        self.unread = self.record.read()
        """The sessions that have a socket, and whether nobody was sent anything of their output yet."""
        self._written = dict(self.unread)
        self._open: dict[str, SessionSocket] = {}

    async def start(self) -> None:
        """Listen again for all sessions that had a socket; where it cannot be told which are there, for all."""
        loop = asyncio.get_running_loop()

        def close_gone(change: Change) -> None:
            if change.gone:
                with suppress(RuntimeError):
                    # a loop that has ended: the server stops
                    loop.call_soon_threadsafe(self.close, change.event.id or "")

        self.hub.listeners.append(close_gone)
        try:
            listed = await self.calls.operate(self.new_request(), "ls", {})
            self.close_gone([*self.unread], [session.id for session in listed.sessions])
        except TmuxctlError as error:
            self.audit.note(CallerAccess(), "start", "ls", None, error.reason)
        for session_id in self.unread:
            try:
                self._listen(session_id)
            except TmuxctlError as error:
                self.audit.note(CallerAccess(), "start", "terminal", session_id, error.reason)

    def stop(self) -> None:
        """End all connections. The sockets are there again with the next server."""
        for opened in self._open.values():
            opened.close()
            opened.abort()

    def path_of(self, session_id: str) -> str:
        """Where the socket of a session is, or would be."""
        return os.path.join(self.folder, f"{session_id}.sock")

    def find_path(self, session_id: str) -> str | None:
        """Where the socket of a session is, if it has one."""
        return self.path_of(session_id) if session_id in self._open else None

    def list_open(self) -> list[str]:
        """The ids of the sessions that have a socket."""
        return [*self._open]

    def open(self, session_id: str, *, unread: bool = False) -> str:
        """The path of the socket of a session, made unless it is there. `unread`: its first client gets its output from the
        beginning."""
        if not is_session_id(session_id):
            raise Failed(f"{ascii(session_id)[:60]} can have no socket", reason="no_socket", hint="tmuxctl attach NAME")
        if session_id not in self._open:
            self.unread[session_id] = unread
            # first the record: what a server that is killed here leaves behind is found by the next one
            self.keep()
            self._listen(session_id)
        return self.path_of(session_id)

    def _listen(self, session_id: str) -> None:
        opened = SessionSocket(self, session_id)
        opened.listen()
        self._open[session_id] = opened

    def close(self, session_id: str) -> None:
        """Listen no more for a session that is gone; who is connected gets the rest of its output."""
        self.unread.pop(session_id, None)
        if opened := self._open.pop(session_id, None):
            opened.close()
        elif is_session_id(session_id):
            remove_socket(self.path_of(session_id))
        self.keep()

    def close_gone(self, before: Iterable[str], listed: Iterable[str]) -> None:
        """Close the sockets that were there `before` the sessions were listed, of each that is not among them."""
        for session_id in {*before} - {*listed}:
            self.close(session_id)

    def note_read(self, session_id: str) -> None:
        """Its output was sent to a client: the next one gets what comes from then on."""
        if self.unread.get(session_id):
            self.unread[session_id] = False
            self.keep()

    def keep(self) -> None:
        """Write down which sockets there are."""
        if self.unread != self._written:
            self.record.write(self.unread)
            self._written = dict(self.unread)

    def new_request(self) -> Request:
        """A call of a client on a Unix socket, which only the user can open."""
        return Request(CallerAccess(), os.urandom(8).hex())


class SessionSocket:
    """The socket of one session, and who is connected. The first client that is sent anything gets the output from its
    beginning, every other one what comes from then on."""

    def __init__(self, sockets: SessionSockets, session_id: str) -> None:
        self.sockets, self.session_id = sockets, session_id
        self.path = sockets.path_of(session_id)
        self.first: SocketClient | None = None
        """Who gets, or is to get, the output from its beginning."""
        self.clients: set[asyncio.Task[None]] = set()
        self.listening: asyncio.Task[None] | None = None

    def listen(self) -> None:
        """Begin to listen. Raises TmuxctlError."""
        opened = open_unix_socket(self.path)
        opened.setblocking(False)
        self.listening = asyncio.create_task(self._accept(opened))

    def close(self) -> None:
        """Listen no more."""
        if self.listening is not None:
            self.listening.cancel()
            remove_socket(self.path)

    def abort(self) -> None:
        """End the connections."""
        for task in self.clients:
            task.cancel()

    async def _accept(self, opened: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with opened:
            while True:
                try:
                    connection, _ = await loop.sock_accept(opened)
                except OSError:
                    # no descriptor is left, or the client did not wait
                    await asyncio.sleep(self.sockets.timing.hold_seconds)
                    continue
                task = asyncio.create_task(self._serve(connection))
                self.clients.add(task)
                task.add_done_callback(self.clients.discard)

    async def _serve(self, connection: socket.socket) -> None:
        client = SocketClient(self, connection)
        is_first = self.first is None and self.sockets.unread.get(self.session_id, False)
        if is_first:
            self.first = client
        with connection:
            try:
                await client.run(from_beginning=is_first)
            except (TmuxctlError, OSError) as error:
                client.note(error.reason if isinstance(error, TmuxctlError) else "gone")
                if isinstance(error, NotFound):
                    self.sockets.close(self.session_id)
            finally:
                if is_first:
                    self.first = None


class SocketClient:
    """One client at the socket of a session."""

    def __init__(self, place: SessionSocket, connection: socket.socket) -> None:
        self.place, self.connection = place, connection
        self.timing, self.request = place.sockets.timing, place.sockets.new_request()
        self.terminal = RawTerminal(place.sockets.calls, self.request, place.session_id)
        self.promised = False
        """Bytes that are missing from now on are a gap in what the client was to get."""

    def note(self, what: str) -> None:
        """Write down what became of the client."""
        self.place.sockets.audit.note(self.request.access, self.request.id, "terminal", self.place.session_id, what)

    async def run(self, *, from_beginning: bool) -> None:
        """Serve the client until it goes away or the session has ended. Raises TmuxctlError and OSError."""
        since = BEGINNING if from_beginning else await self.terminal.find_end()
        self.promised = not from_beginning
        self.note("opened")
        printing = asyncio.create_task(self.terminal.print_to(since, self._send, self._refuse_gap))
        typing = asyncio.create_task(self._type())
        try:
            await asyncio.wait((printing, typing), return_when=asyncio.FIRST_COMPLETED)
            if typing.done():
                typing.result()
            elif isinstance(printing.exception(), OSError):
                # the client has gone away: what it sent before is typed all the same
                await typing
            else:
                printing.result()
                await self._end(typing)
        finally:
            for task in (printing, typing):
                task.cancel()
            await asyncio.gather(printing, typing, return_exceptions=True)

    async def _send(self, data: bytes) -> None:
        # returns when the kernel has it: no more than these bytes wait here for a client that does not read
        await asyncio.get_running_loop().sock_sendall(self.connection, data)
        self.promised = True
        self.place.sockets.note_read(self.place.session_id)

    async def _refuse_gap(self, _output: Output) -> None:
        """End a stream in which bytes are missing, which would be taken for the whole; but a first client gets what is kept."""
        if self.promised:
            raise Conflict("the client read too slowly", reason="behind", hint="connect again, and read sooner")

    async def _type(self) -> None:
        """Type what comes, until the client has gone away. Input of a program that has ended is dropped."""
        loop = asyncio.get_running_loop()
        with suppress(ConnectionResetError):
            # it has gone away without reading all that it was sent
            while data := await loop.sock_recv(self.connection, READ_BYTES):
                with suppress(Exited, NotFound):
                    await self.terminal.type(data)
        while not self._has_hung_up():
            await asyncio.sleep(self.timing.hangup_seconds)

    def _has_hung_up(self) -> bool:
        """Whether a client that sends no more (shutdown(2)) reads no more either: poll(2) tells that of a socket."""
        poll = select.poll()
        poll.register(self.connection, 0)
        return bool(poll.poll(0))

    async def _end(self, typing: asyncio.Task[None]) -> None:
        """Tell the client that nothing more will come. What it still sends is read: if bytes were left unread, it would find an
        error (ECONNRESET) behind the output, not its end."""
        self.connection.shutdown(socket.SHUT_WR)
        await asyncio.wait((typing,), timeout=self.timing.end_seconds)


def remove_socket(path: str) -> None:
    """Remove a socket of ours."""
    with suppress(FileNotFoundError):
        os.unlink(path)
