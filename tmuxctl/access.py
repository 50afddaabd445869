"""What a caller from elsewhere may: rights, the sessions that are meant by its token, and nothing that names files here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from tmuxctl import plugin
from tmuxctl.errors import Denied, NotFound, Unreachable
from tmuxctl.machines import MACHINE
from tmuxctl.operations import RIGHTS, Operation, Parameter, find
from tmuxctl.results import Sessions
from tmuxctl.value import Value, changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tmuxctl.control import Control
    from tmuxctl.control.machine import Machine
    from tmuxctl.model import Session
    from tmuxctl.terminal.tmux.server import Pane

EVERY = ("*",)

ADDRESS = re.compile(rf"{MACHINE.pattern}/[A-Za-z0-9-][\w-]*", re.ASCII)
"""A session of another machine, by its name or id."""

PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")

LOCAL = ("secret_from_env", "secret_from_fd", "fix")
"""Parameters that, like each that takes a FILE, concern this machine's own files, variables and descriptors."""

PLUGINS = "with_"
"""The parameter that names plugins with their options, each of which says whether it names what is on this machine."""

SPREADING = (
    "all",
    "all_sockets",
    "candidates",
    "fallback",
    "route",
    "sessions",
    "names",
    "target",
    "machine",
    "all_machines",
)
"""Parameters by which a call reaches sessions that it does not name."""

LISTING = ("ls", "profile_ls", "profile_show")
"""Operations that name no session: of what `ls` lists, the caller is told what it may know."""


class CallerAccess(Value):
    """What a caller may. `token` is the name of its token, empty where none is needed. `remote`: it came over TCP. `private`:
    nobody can read along, on a Unix socket or through TLS. `login` is the hash of the browser's login, empty for any other
    caller. `kind` is what `token` names: a token, or a client of a gateway."""

    token: str = ""
    rights: tuple[str, ...] = RIGHTS
    sessions: tuple[str, ...] = EVERY
    remote: bool = False
    private: bool = True
    login: str = ""
    kind: str = "token"

    @property
    def unlimited(self) -> bool:
        """Whether every session is meant."""
        return "*" in self.sessions

    def means(self, name: str) -> bool:
        """Whether the session of this name is one of those that the token is for: one of another machine only by a pattern
        that names its machine too, as `web1/*`."""
        machine, _, session = name.rpartition("/")
        return self.unlimited or any(fnmatchcase(session, pattern) for pattern in self._patterns_for(machine))

    def means_machine(self, machine: str) -> bool:
        """Whether any session of this machine may be one that the token is for."""
        return self.unlimited or any(True for _ in self._patterns_for(machine))

    def _patterns_for(self, machine: str) -> Iterator[str]:
        """The patterns for names of sessions of a machine; of this one for an empty name."""
        for pattern in self.sessions:
            place, slash, session = pattern.rpartition("/")
            if bool(slash) == bool(machine) and fnmatchcase(machine, place):
                yield session

    def demand(self, right: str, what: str) -> None:
        """Raise Denied unless the caller has this right."""
        if right not in self.rights:
            hint = f"this {self.kind} may: {', '.join(self.rights) or 'nothing'}"
            raise Denied(f"{what} needs the right to {right}", reason="right", hint=hint)

    def demand_all(self, what: str) -> None:
        """Raise Denied unless every session is meant: what is counted over all of them tells of those that are not."""
        if not self.unlimited:
            hint = f"it is for: {', '.join(self.sessions)}"
            raise Denied(f"{what} reaches sessions that this {self.kind} is not for", reason="sessions", hint=hint)

    def select(self, sessions: Sequence[Session]) -> tuple[Session, ...]:
        """Those of these sessions that the caller may know of."""
        return tuple(session for session in sessions if self.means(session.address))


def check_arguments(
    access: CallerAccess, operation: Operation, arguments: Mapping[str, Any], control: Control
) -> dict[str, Any]:
    """The arguments with which the caller may call the operation; Denied for those with which it may not.

    Where the token is for some sessions only, each name is replaced by the id that it stands for: a session that is
    renamed meanwhile is still the one that was checked.
    """
    found = dict(arguments)
    for parameter in operation.parameters:
        if parameter.name in arguments:
            _refuse_local(access, operation, parameter, arguments[parameter.name])
    if operation.name == "batch" and arguments.get("steps") is not None:
        _check_steps(access, arguments["steps"], control)
    if access.unlimited:
        return found
    named = [
        parameter for parameter in operation.parameters if parameter.kind.target or parameter.kind.word == "newname"
    ]
    spreads = [one for one in SPREADING if arguments.get(one)]
    if (not named and operation.name not in LISTING) or spreads:
        raise _reaches_beyond(access, operation, spreads)
    several = arguments.get("any")
    for parameter in named:
        value = arguments.get(parameter.name)
        # `wait` names its sessions in the one or the other
        if value or not several:
            found[parameter.name] = _check_names(access, parameter, value, control)
    if several is not None:
        found["any"] = [find_meant(access, control, str(name)) for name in _split_names(several)]
    return found


def _check_names(access: CallerAccess, parameter: Parameter, value: Any, control: Control) -> Any:
    """A name for a new session as it is, and in the place of each name of a session its id; NotFound for one that is not meant,
    and where none is named."""
    if parameter.kind.word == "newname" and isinstance(value, str) and access.means(value):
        return value
    if parameter.kind.word != "newname" and value and isinstance(value, (str, list, tuple)):
        if isinstance(value, str):
            return find_meant(access, control, value)
        return [find_meant(access, control, str(name)) for name in value]
    raise _not_meant(access, value)


def _check_steps(access: CallerAccess, steps: Any, control: Control) -> None:
    """Denied unless the caller may call each step of a batch by itself; all of them are on the batch's own session."""
    from tmuxctl.control.turns import batch

    find_step = partial(find, type(control))  # type: ignore[arg-type]  # a class is hashable
    for step in batch.parse_steps(steps, None, find_step, limit=control.machine.limits.batch_steps):
        for parameter in step.operation.parameters:
            if parameter.name in step.arguments:
                _refuse_local(access, step.operation, parameter, step.arguments[parameter.name])
        spreads = [one for one in SPREADING if step.arguments.get(one)]
        if spreads and not access.unlimited:
            raise _reaches_beyond(access, step.operation, spreads)


def still_means(access: CallerAccess, control: Control, session: str) -> bool:
    """Whether the session of this id, which the caller follows, has a name that its token is for. One that is gone had one; of
    one that is known by its name alone, that decides."""
    if access.unlimited:
        return True
    try:
        machine, called = _reach_address(control, session)
        return access.means(machine.address_of(_find_there(machine, called).name))
    except (NotFound, Unreachable):
        return _is_id(session) or access.means(session)


def find_meant(access: CallerAccess, control: Control, session: str) -> str:
    """The id of a session that the token is for, given its name or id. NotFound for any other: nothing is told of those."""
    if access.unlimited:
        return session
    place, slash, _ = session.partition("/")
    if slash and not access.means_machine(place):
        raise _not_meant(access, session)
    try:
        machine, called = _reach_address(control, session)
        pane = _find_there(machine, called)
        name, found = machine.address_of(pane.name), machine.address_of(pane.id)
    except (NotFound, Unreachable) as error:
        # not there, or ended: only its own name can tell whether it is meant
        if error.reason == "backend_timeout" or not access.means(session) or _is_id(session):
            raise _not_meant(access, session) from None
        return session
    if not access.means(name):
        raise _not_meant(access, session)
    return found


def _reach_address(control: Control, session: str) -> tuple[Machine, str]:
    """The machine of an address and the session's name there; this one for any other name."""
    if not ADDRESS.fullmatch(session):
        return control.machine, session
    place, called = control.reach(session)
    return place.machine, called


def _find_there(machine: Machine, called: str) -> Pane | Session:
    """What has the name and the id of a session of this machine."""
    if machine.remote is not None:
        found: Session = machine.remote.call("show", {"session": called})
        return found
    from tmuxctl.control.sessions import finding

    return finding.find_session(machine, called, whole=False)


def _is_id(session: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{8}-[0-9a-f-]{27}|.*[:/].*", session, re.ASCII) is not None


def _reaches_beyond(access: CallerAccess, operation: Operation, spreads: Sequence[str]) -> Denied:
    what = " ".join((operation.spoken, *spreads[:1]))
    hint = f"it is for: {', '.join(access.sessions)}"
    return Denied(f"{what} reaches sessions that this {access.kind} is not for", reason="sessions", hint=hint)


def _not_meant(access: CallerAccess, session: object) -> NotFound:
    hint = f"this {access.kind} is for: {', '.join(access.sessions)}"
    return NotFound(f"no session {ascii(session)[:60]}", reason="no_session", hint=hint)


def _split_names(value: object) -> Sequence[object]:
    """The names in a value, which may be a list of them, or as it is typed, `A,B`."""
    if isinstance(value, str):
        return value.split(",")
    return value if isinstance(value, (list, tuple)) else () if value is None else (value,)


def _refuse_local(access: CallerAccess, operation: Operation, parameter: Parameter, value: object) -> None:
    """Denied for what concerns files of this machine, from a caller on another one."""
    if not access.remote:
        return
    names_file = parameter.kind.word == "file" or parameter.name in LOCAL
    if parameter.name == PLUGINS:
        names_file = any(plugin.local_options(plugin.parse_with(one)) for one in parameter.kind.parse(value))
    is_profile = "profile" in (parameter.kind.completes, parameter.kind.word.removesuffix("s"))
    names_profile = is_profile and not all(
        isinstance(one, str) and PROFILE_NAME.fullmatch(one) and not one.endswith(".yaml")
        for one in _split_names(value)
    )
    if names_file or names_profile:
        raise Denied(
            f"{operation.spoken}: {parameter.name} names a file or value of the server's machine",
            reason="local_file",
            hint="call it there: over the server's Unix socket",
        )


Note = Callable[[CallerAccess, str, str, str | None, str], None]
"""Writes down a call: whose, its id, its operation, its session, and `done` or the reason why not."""


class ServiceAccess(Value):
    """What a caller from another machine may with the operations of a service: `rpc.responder.CallAccess`. `write_down` is told of
    calls that changed something, and of those that were denied."""

    access: CallerAccess
    control: Control
    write_down: Note | None = None

    @property
    def rights(self) -> tuple[str, ...]:
        """Of operations.RIGHTS, those it has."""
        return self.access.rights

    def check(self, operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with which it may call the operation: `check_arguments`."""
        return check_arguments(self.access, operation, arguments, self.control)

    def select(self, result: Any) -> Any:
        """What of a result it may know: of a list of sessions those that it is for."""
        if isinstance(result, Sessions):
            return changed(result, sessions=self.access.select(result.sessions))
        return result

    def check_followed(self, operation: Operation, arguments: Mapping[str, Any]) -> None:
        """NotFound where a session that a call follows has a name by now that it may not know, or it may know fewer; Denied where
        the right to the call was taken from it. `arguments` are those that `check` gave."""
        self.access.demand(operation.meta.right, operation.spoken)
        for parameter in operation.parameters:
            # `wait` names several in a parameter of its own
            names_sessions = parameter.kind.target or parameter.kind.word == "names"
            for name in _split_names(arguments.get(parameter.name)) if names_sessions else ():
                if not still_means(self.access, self.control, str(name)):
                    raise _not_meant(self.access, name)

    def note(self, call_id: str, operation: str, session: str | None, result: str) -> None:
        """Write down a call that changed something, or was denied."""
        if self.write_down is not None:
            self.write_down(self.access, call_id, operation, session, result)
