"""A machine whose own tmuxctl carries operations out: they are sent there by name, and results come back.

What is this machine's, a file or a secret, is read here and goes along. All else is decided there: the rights, the sessions.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from tmuxctl.control.caller_files import read_given_file, read_secret
from tmuxctl.control.machine import Machine
from tmuxctl.control.machines import addresses
from tmuxctl.errors import Failed, Unreachable, Usage
from tmuxctl.operations import RIGHTS, Operation, current, find
from tmuxctl.results import Pieces
from tmuxctl.rpc.client import CallClient, Patience
from tmuxctl.rpc.encoding import DRAWN, classes_of
from tmuxctl.rpc.records import Connect, RemoteCall
from tmuxctl.terminal.input import paste
from tmuxctl.terminal.tmux.timeline import is_size
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.machines import MachineEntry
    from tmuxctl.results import Screen
    from tmuxctl.timing import RpcTiming

CARRIERS: dict[str, str | Callable[[MachineEntry], Connect]] = {"gateway": "tmuxctl.gateway.carrier:connect_to"}
"""Who makes the carriers of each kind of machine: a function that takes a machine's entry, or where it is, as `module:name`. It
connects to nothing yet."""

WRITE_ID = "id"
"""The parameter by which an operation itself does a repeated write once."""

WRITES_WITH_ID = ("send", "keys", "ask", "tell")
"""Operations that have it; to `decide` it names a question."""

WRITES_BY_CALL = ("send", "keys")
"""Those of them that take the id of their call where none is given."""

WAITING = ("ask", "batch", "exec", "run", "wait", "watch")
"""Operations that wait by themselves; others do where that is asked for."""


class RemoteOperations:
    """The operations of one machine, by name. Nothing is reached before the first."""

    def __init__(self, name: str, client: CallClient, service: type, timing: RpcTiming) -> None:
        self.name, self.client, self.service, self.timing = name, client, service, timing

    def call(self, operation: str, arguments: Mapping[str, Any], session: str = "", *, address: str = "") -> Any:
        """Carry an operation out there, and return what it gives: a result, None, or an iterator.

        `session` is what the session that it is about is called there; with an `address` results and errors name each session by
        that. Raises what the operation raises there; Usage for what is read here; Unreachable where nothing is heard from there, or
        nothing that makes sense.
        """
        if not address:
            return self._call(operation, arguments)
        return addresses.carry_out(address, lambda: self._call(operation, arguments), session)

    def reach(self) -> None:
        """Open the connection unless it is; nothing is asked there. Raises what says why the machine cannot be reached."""
        self.client.reach()

    def close(self) -> None:
        """End the connection, and the calls that are under way."""
        self.client.close()

    def _call(self, name: str, given: Mapping[str, Any]) -> Any:
        operation: Operation = find(self.service, name)
        arguments = {key: value for key, value in given.items() if value is not None}
        drawn = [form for form in DRAWN if name == "screen" and arguments.pop(form, False)]
        if drawn:
            arguments["ansi"] = True
        secret, read = _read_local(operation, arguments)
        call, changes = current(), operation.meta.right != "read"
        given_id = arguments.get(WRITE_ID) if name in WRITES_WITH_ID else None
        # by this it is done once there, whichever process carries it out
        own_id = given_id is not None or name in WRITES_BY_CALL
        request_id = given_id or call.request_id or os.urandom(8).hex()
        seconds = call.left(None)
        data = {key: value for key, value in arguments.items() if isinstance(value, bytes)}
        plain = {key: _to_plain(value) for key, value in arguments.items() if key not in data}
        remote_call = RemoteCall(
            operation=name,
            arguments=plain,
            data=data,
            seconds=seconds,
            request_id=request_id if changes and given_id is None and (own_id or call.repeated) else None,
            rights=None if tuple(call.rights) == RIGHTS else tuple(call.rights),
            owner=call.caller.owner if call.caller else None,
            pieces=call.pieces,
            secret=secret,
            input=read,
        )
        wanted = self._waiting_seconds(operation, arguments, seconds)
        silence = self.timing.silence_seconds
        longest = self._answer_seconds(operation, arguments, wanted)
        patience = Patience(silence + wanted, wanted > 0, changes, own_id, request_id, longest)
        # what does a repeated write once by itself is asked anew: it may have more to say by now
        call_id = None if own_id or not changes else request_id
        found = self.client.call(remote_call, classes_of(self.service, name), patience, call_id=call_id)
        self._check_form(operation, arguments, found, in_pieces=call.pieces is not None)
        return _draw(found, drawn, keeps_ansi=bool(given.get("ansi"))) if drawn else found

    def _check_form(self, operation: Operation, arguments: Mapping[str, Any], found: Any, *, in_pieces: bool) -> None:
        """Unreachable `bad_answer` for one result where several were to come, or the other way round."""
        follows = operation.meta.streams and arguments.get(
            "follow", all(one.name != "follow" for one in operation.parameters)
        )
        if isinstance(found, Pieces):
            right = operation.meta.streams and in_pieces and not follows
        else:
            right = isinstance(found, Iterator) == bool(follows)
        if not right:
            raise self.client.nonsense_error("several results for one" if not follows else "one result for several")

    def _waiting_seconds(self, operation: Operation, arguments: Mapping[str, Any], left: float | None) -> float:
        """How many seconds the call waits by itself, as far as it bears to hear nothing; 0 for one that does not wait."""
        waits = operation.name in WAITING
        if not waits and not any(arguments.get(name) for name in ("follow", "wait", "wait_text", "timeout")):
            return 0.0
        wanted = float(arguments.get("timeout", self.timing.heal_seconds))
        return min(wanted, self.timing.heal_seconds, self.timing.heal_seconds if left is None else left)

    def _answer_seconds(self, operation: Operation, arguments: Mapping[str, Any], wanted: float) -> float | None:
        """How long a machine that is heard may take to answer; None for a call that waits for as long as it takes."""
        given = arguments.get("timeout")
        if given is None and wanted > 0:
            return None
        return self.timing.answer_seconds + float(given or 0.0)


def _draw(screen: Screen, forms: Sequence[str], *, keeps_ansi: bool) -> Screen:
    """The screen with these documents of it. They are drawn here: in what that machine draws might be more than a screen."""
    from tmuxctl.terminal.picture import render

    if screen.ansi is None or not is_size(screen.cols, screen.rows):
        raise Unreachable("a screen without its colours, or of no size", reason="bad_answer", hint="tmuxctl machine ls")
    rows = screen.ansi.encode()
    # rows that are joined are not those in which the cursor is told
    cursor = screen.cursor if screen.ansi.count("\n") == screen.rows else None
    documents = {
        "html": lambda: render.render_html(rows, screen.cols, screen.title, cursor=cursor),
        "svg": lambda: render.render_svg(rows, screen.cols, screen.rows, screen.title, cursor=cursor),
    }
    made = {form: documents[form]() for form in forms}
    return changed(screen, **made) if keeps_ansi else changed(screen, **made, ansi=None)


def make_remote_machine(here: Machine, entry: MachineEntry) -> Machine:
    """A machine behind a carrier of its kind. Failed `no_gateway_extra` where what makes those is not installed."""
    timing, service = here.timing.rpc, here.service
    if service is None:
        raise operations_only_error(entry.name)
    client = CallClient(entry.name, find_carrier("gateway")(entry), timing=timing)
    remote = RemoteOperations(entry.name, client, service, timing)
    transport: Any = OperationsOnly(entry.name, remote, here.transport.socket)
    return Machine(
        transport,
        here.settings,
        entry=entry,
        timing=here.timing,
        limits=here.limits,
        clock=here.clock,
        address=entry.name,
        remote=remote,
    )


def register_carrier(kind: str, connect_to: Callable[[MachineEntry], Connect]) -> None:
    """Have machines of this kind be reached by what `connect_to` makes of their entries, in this process."""
    CARRIERS[kind] = connect_to


def find_carrier(kind: str) -> Callable[[MachineEntry], Connect]:
    """What makes the carriers of this kind of machines."""
    found = CARRIERS[kind]
    if not isinstance(found, str):
        return found
    module, _, name = found.partition(":")
    try:
        made: Callable[[MachineEntry], Connect] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise Failed(
            f"machines behind a gateway cannot be reached here: {error}",
            reason="no_gateway_extra",
            hint="pip install 'tmux-control-plane[gateway]'",
        ) from None
    return made


def operations_only_error(name: str, what: str = "this") -> Usage:
    """The error for what asks tmux, a shell or files of a machine of which only operations can be asked."""
    return Usage(
        f"{name}: {what} needs the machine itself, and only operations reach it",
        reason="operations_only",
        hint="do it there, or by ssh: tmuxctl machine add NAME --ssh HOST",
    )


class OperationsOnly:
    """The transport of a machine whose tmuxctl carries operations out: nothing else can be asked of it."""

    pid = None

    def __init__(self, name: str, remote: RemoteOperations, socket: str) -> None:
        self.machine, self.socket, self._remote = name, socket, remote

    def carry_out(
        self, key: str, operation: Callable[[], Any], patience: float | None = 0.0, *, changes: bool = True
    ) -> Any:
        """What the operation gives: it is patient by itself."""
        return operation()

    def close(self) -> None:
        """End the connection."""
        self._remote.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise operations_only_error(self.machine)


def _read_local(operation: Operation, arguments: dict[str, Any]) -> tuple[bytes | None, bytes | None]:
    """The secret and the standard input that a call names on this machine, which are taken out of its arguments; a text or steps
    in a file take the place of its name."""
    places = [arguments.pop(f"secret_from_{place}", None) for place in ("env", "file", "fd")]
    secret = read_secret(*places)
    path = arguments.pop("stdin", None) if operation.name == "exec" else None
    given = None
    if path is not None and path != "/dev/tty":
        given = read_given_file(path)
        if len(given) > paste.SIZE_LIMIT:
            hint = "copy the file there first, and name it in the command"
            raise Usage(f"the standard input has more than {paste.SIZE_LIMIT >> 20} MiB", reason="too_large", hint=hint)
    if operation.name in ("ask", "batch") and (file := arguments.pop("file", None)) is not None:
        name = "text" if operation.name == "ask" else "steps"
        if name in arguments:
            hint = f"tmuxctl {operation.name} --help"
            raise Usage(f"give either {name} or a file", reason="missing", hint=hint)
        arguments[name] = read_given_file(file).removesuffix(b"\n")
    return secret, given


def _to_plain(value: Any) -> Any:
    """An argument as JSON's own types."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_to_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _to_plain(one) for key, one in value.items()}
    return value
