"""Panes of other tmux servers: driven by their target, or adopted under a name with a profile and a journal.

Nothing of such a server changes: no option, no layout, no pipe that is already there. What tmuxctl remembers of a pane
stands in its own files: in `adopted/NAME/` of an adopted one, in `foreign/` of one that is only used.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, cast

from tmuxctl.control.lifecycle import listing, reach
from tmuxctl.control.machine import Machine
from tmuxctl.control.observation import observing
from tmuxctl.control.sessions import finding, records
from tmuxctl.errors import Conflict, Denied, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.model import NAME, Session, State, Status, check_name, natural_key
from tmuxctl.program_profile import to_json
from tmuxctl.results import Released
from tmuxctl.terminal.panes import foreign, journals
from tmuxctl.terminal.panes.foreign import ForeignIO, ForeignPane, ForeignTransport
from tmuxctl.terminal.tmux import layout, screen
from tmuxctl.terminal.tmux.journal import pipe_command, writer_script
from tmuxctl.transport.base import Guard, GuardRefused, read_object
from tmuxctl.untrusted import NewerFormat, to_record

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.results import Released
    from tmuxctl.transport.base import Transport

SOCKET = re.compile(r"[A-Za-z0-9._-]{1,64}")

TARGET = re.compile(rf"tmux(?:@({SOCKET.pattern}))?:(.+)", re.DOTALL)
"""`tmux:TARGET` is a pane of the person's default server, `tmux@SOCKET:TARGET` of another."""

DEFAULT = "default"
"""The name of tmux's socket where none is given (tmux(1), -L)."""


def reach_adopted(machine: Machine, session: str) -> tuple[Machine, str] | None:
    """The machine that drives a target or an adopted session, and the session's name there; None for one of ours.

    NotFound `no_target`, Unreachable `no_server`.
    """
    if found := TARGET.fullmatch(session):
        return _reach_target(machine, found[1] or DEFAULT, found[2])
    if NAME.fullmatch(session) and (name := _find_adopted(machine, session)):
        return _machine_of_adopted(machine, name), name
    return None


def _find_adopted(machine: Machine, session: str) -> str | None:
    """The name of the adopted pane that has this name or id; None if there is none."""
    home = _adopted_folder(machine)
    try:
        if os.path.exists(f"{home}/{session}/{layout.ADOPTION}"):
            return session
        if not re.fullmatch(records.UUID, session):
            return None
        return next(
            (name for name in list_names(machine) if os.path.exists(f"{home}/{name}/{layout.SESSIONS}/{session}")), None
        )
    except OSError:
        return None


def _adopted_folder(machine: Machine) -> str:
    return f"{machine.transport.home}/{layout.ADOPTED}"


def list_names(machine: Machine) -> list[str]:
    """The names of the adopted panes, in order; of those too that a later release adopted."""
    found = (name for name in machine.transport.files(_adopted_folder(machine)) if NAME.fullmatch(name))
    return sorted((name for name in found if _is_readable(machine, name) is not False), key=natural_key)


def _is_readable(machine: Machine, name: str) -> bool | None:
    """Whether the record of an adopted pane can be read; None if a later release wrote it."""
    try:
        return bool(_read_adoption(machine, name))
    except NewerFormat:
        return None


def _names_by_uuid(machine: Machine) -> dict[str, str]:
    """The panes that are adopted, as far as they are known, each with its name."""
    readable = [name for name in list_names(machine) if _is_readable(machine, name)]
    return {_parse_pane(_read_adoption(machine, name)).uuid: name for name in readable}


def _read_adoption(machine: Machine, name: str) -> dict[str, Any]:
    try:
        adoption = read_object(machine.transport, f"{_adopted_folder(machine)}/{name}/{layout.ADOPTION}")
        pane = _parse_pane(adoption)
        texts = (adoption["socket"], adoption["cwd"], adoption["profile"] or "", *adoption["argv"])
        texts += (pane.id, pane.session, pane.window, pane.pane)
        numbers = (pane.server, pane.server_started, pane.pid, pane.started)
        valid = all(isinstance(text, str) for text in texts) and all(isinstance(number, int) for number in numbers)
        return adoption if valid and SOCKET.fullmatch(adoption["socket"]) else {}
    except (NotFound, ValueError, KeyError, TypeError):
        return {}


# Reaching one


def _reach_target(machine: Machine, socket: str, target: str) -> tuple[Machine, str]:
    pane = _find_pane(machine, socket, target)
    if name := _adopted_name(machine, pane):
        # a pane has one lease and one last input, whether it is reached by its target or by its name
        return _machine_of_adopted(machine, name), name
    return _machine_of_pane(machine, socket, pane), format_label(socket, pane)


def _adopted_name(machine: Machine, pane: ForeignPane) -> str | None:
    """The name under which a pane is adopted; None if it is not."""
    return _names_by_uuid(machine).get(pane.uuid)


def _parse_pane(adoption: Mapping[str, Any]) -> ForeignPane:
    return ForeignPane(**adoption["pane"])


def format_label(socket: str, pane: ForeignPane) -> str:
    """A pane's target as people write it, or by its id where its session's name is no plain word."""
    return _format_target(socket, pane.place if re.fullmatch(r"[A-Za-z0-9_-]+", pane.session) else pane.id)


def _format_target(socket: str, place: str) -> str:
    return f"tmux:{place}" if socket == DEFAULT else f"tmux@{socket}:{place}"


def _find_pane(machine: Machine, socket: str, target: str) -> ForeignPane:
    try:
        panes = foreign.list_panes(transport_to(machine, socket))
    except Unreachable as error:
        if error.reason != "no_server":
            raise
        name = "" if socket == DEFAULT else f"@{socket}"
        hint = f"servers that run: tmuxctl ls --all-sockets; a target is tmux{name}:SESSION:WINDOW.PANE"
        raise Unreachable(f"no tmux server {socket} is running", reason="no_server", hint=hint) from None
    found = foreign.find_pane(panes, target)
    if found is None:
        known = ", ".join(format_label(socket, one) for one in panes[:6])
        raise NotFound(
            f"no pane {ascii(target[:60])} on tmux server {socket}", reason="no_target", hint=f"its panes: {known}"
        )
    return found


def transport_to(machine: Machine, socket: str) -> Transport:
    """A transport to another tmux server of this machine."""
    from tmuxctl.transport.local import LocalTransport

    return LocalTransport(
        socket, tmux=machine.settings.tmux_binary, home=f"{machine.transport.home}/{layout.FOREIGN}/{socket}"
    )


def _machine_of_pane(machine: Machine, socket: str, pane: ForeignPane, name: str | None = None) -> Machine:
    """A machine for one pane: its transport changes nothing on that server but the pane's input."""
    adoption = _read_adoption(machine, name) if name else {}
    inner = transport_to(machine, socket)
    foreign_folder = f"{machine.transport.home}/{layout.FOREIGN}/{socket}/{pane.uuid}"
    folder = f"{_adopted_folder(machine)}/{name}" if name else foreign_folder
    first = next(iter(inner.processes([pane.pid])), None)
    spec = {
        "argv": adoption.get("argv") or ([first.name] if first else []),
        "cwd": adoption.get("cwd") or _folder_of_process(pane.pid),
        "profile": adoption.get("profile"),
        "plain": adoption.get("plain", False),
        "marks": "",
        # windows are moved and sessions renamed: an adopted pane is named by its id, which stays
        "target": _format_target(socket, pane.id) if name else format_label(socket, pane),
    }
    has_journal = bool(adoption.get("journal")) and journals.is_writing(
        machine.transport, f"{folder}/{layout.SESSIONS}/{pane.uuid}"
    )
    io = ForeignIO(inner, pane, name or format_label(socket, pane), folder, spec, journal=has_journal)
    return Machine(
        cast("Transport", ForeignTransport(io)),
        machine.settings,
        io=io,
        known=machine.known,
        timing=machine.timing,
        limits=machine.limits,
        clock=machine.clock,
    )


def _folder_of_process(pid: int) -> str | None:
    """The working folder of a pane's first process; None if it cannot be read."""
    with suppress(OSError):
        return screen.strip_escapes(os.readlink(f"/proc/{pid}/cwd")).replace("\n", " ")
    return None


def _machine_of_adopted(machine: Machine, name: str) -> Machine:
    adoption = _read_adoption(machine, name)
    return _machine_of_pane(machine, adoption["socket"], _parse_pane(adoption), name)


# Adopting


def adopt(machine: Machine, target: str, name: str | None, *, profile: str) -> Session:
    """Give a pane a name, a profile, and a journal if its output goes to no other pipe."""
    found = TARGET.fullmatch(target)
    if not found:
        name, slash, called = target.partition("/")
        if slash and TARGET.fullmatch(called):
            raise reach.other_server_error(name)
        raise Usage(
            f"{ascii(target[:60])} is not a pane of another tmux server",
            reason="bad_target",
            hint="tmux:SESSION:WINDOW.PANE, or tmux@SOCKET:...; see tmuxctl ls --all-sockets",
        )
    socket = found[1] or DEFAULT
    if socket == machine.transport.socket:
        raise Conflict(f"{target} is a session of tmuxctl's own", reason="ours", hint="use it by its name: tmuxctl ls")
    pane = _find_pane(machine, socket, found[2])
    if pane.ours:
        raise foreign.own_session_error(target, socket)
    with _adoption_lock(machine, target):
        chosen = _choose_name(machine, name, pane)
        folder = f"{_adopted_folder(machine)}/{chosen}"
        try:
            _keep_adoption(machine, folder, chosen, pane, _gather_facts(socket, pane, profile))
        except BaseException:
            _undo_adoption(machine, folder)
            raise
    return listing.show(_machine_of_adopted(machine, chosen), chosen)


def _adoption_lock(machine: Machine, target: str) -> AbstractContextManager[None]:
    """The lock of adopting: a pane gets one name, and a name one pane."""
    machine.transport.make_folder(_adopted_folder(machine))
    return foreign.hold_lock(f"{machine.transport.home}/{layout.ADOPT_LOCK}", target)


def _keep_adoption(machine: Machine, folder: str, name: str, pane: ForeignPane, adoption: dict[str, Any]) -> None:
    """Write the files of an adopted pane, and start its journal if no other pipe is there."""
    inside = f"{folder}/{layout.SESSIONS}/{pane.uuid}"
    parts = (layout.JOURNAL, layout.EVENTS, layout.SHELL)
    for subfolder in (folder, f"{folder}/{layout.SESSIONS}", inside, *(f"{inside}/{part}" for part in parts)):
        machine.transport.make_folder(subfolder)
    for place in (folder, inside):
        machine.transport.put(f"{place}/{layout.SERVER}", f"{pane.server} {pane.server_started}\n".encode())
    machine.transport.put(f"{inside}/{layout.WRITER}", writer_script(machine.settings.journal_limit).encode())
    machine.transport.put(f"{inside}/{layout.PROFILE}", _profile_json(adoption))
    spec = {"asked": adoption, "id": pane.uuid, "spec": {"name": name, "cwd": adoption["cwd"], "size": ""}}
    machine.transport.put(f"{inside}/{layout.SPEC}", to_record(spec))
    adoption["journal"] = _start_journal(machine, transport_to(machine, adoption["socket"]), pane, inside)
    # a pane counts as adopted once this file is there: it comes last
    machine.transport.put(f"{folder}/{layout.ADOPTION}", to_record(adoption), durable=True)


def _gather_facts(socket: str, pane: ForeignPane, profile: str) -> dict[str, Any]:
    import psutil

    argv, cwd = [], None
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pane.pid)
        argv, cwd = process.cmdline(), process.cwd()
    return {
        "socket": socket,
        "target": _format_target(socket, pane.id),
        "pane": pane._asdict(),
        "argv": argv,
        "cwd": cwd,
        "profile": profile if profile not in ("auto", "none") else None,
        "plain": profile == "none",
        "since": time.time(),
    }


def _profile_json(adoption: Mapping[str, Any]) -> bytes:
    """The profile that is named, as JSON; null for `auto`, where the program that has the terminal decides each time."""
    from tmuxctl.control.secret_values import without_secrets
    from tmuxctl.control.sessions import chosen_profile

    name = adoption["profile"]
    return to_json(without_secrets(chosen_profile.choose_profile(name, ()) if name else None))


def _choose_name(machine: Machine, name: str | None, pane: ForeignPane) -> str:
    taken = {one.name for one in finding.list_panes(machine)} | set(list_names(machine))
    if other := _adopted_name(machine, pane):
        raise Conflict(f"{pane.place} is already adopted as {other}", reason="exists", hint=f"tmuxctl release {other}")
    if name is not None:
        if check_name(name) in taken:
            raise Conflict(f"a session named {name} exists", reason="exists", hint="choose another name")
        return name
    first = re.sub(r"[^A-Za-z0-9_-]+", "-", pane.session).strip("-_")[:50] or "pane"
    return next(one for one in (first, *(f"{first}-{number}" for number in range(2, 10_000))) if one not in taken)


def _start_journal(machine: Machine, transport: Transport, pane: ForeignPane, folder: str) -> bool:
    """Start our writer of the journal; False if another pipe is there."""
    # tested and done in one command list: another's pipe is never ended
    with suppress(GuardRefused):
        free = Guard(pane.id, "#{?#{pane_pipe},0,1}")
        transport.run([free, ("pipe-pane", "-IO", "-t", pane.id, pipe_command(folder))])
    deadline = time.monotonic() + machine.timing.session.close_seconds
    while not transport.files(folder).get(layout.WRITER_PID) and time.monotonic() < deadline:
        if not is_piped(transport, pane):
            return False
        time.sleep(0.005)
    return layout.WRITER_PID in transport.files(folder)


def is_piped(transport: Transport, pane: ForeignPane) -> bool:
    """Whether the output of this very pane goes to a pipe now."""
    return any(one.uuid == pane.uuid and one.piped for one in foreign.list_panes(transport))


def release(machine: Machine, chosen: Sequence[str]) -> Released:
    """Forget adopted panes, and end our writers of their journals; their programs go on."""
    adopted = machine.transport.files(_adopted_folder(machine))
    for name in chosen:
        if name not in adopted:
            hint = f"adopted panes: {', '.join(list_names(machine)) or 'none'}"
            raise NotFound(f"{ascii(name[:60])} is not adopted", reason="no_session", hint=hint)
    for name in chosen:
        _release_one(machine, name)
    return Released(tuple(chosen))


def _release_one(machine: Machine, name: str) -> None:
    adoption = _read_adoption(machine, name)
    if _undo_adoption(machine, f"{_adopted_folder(machine)}/{name}") and adoption:
        _await_pipe_end(machine, adoption["socket"], _parse_pane(adoption))


def _undo_adoption(machine: Machine, folder: str) -> bool:
    """End our writer, and remove what was kept of the pane, also of an adoption that was broken off. True if a writer ran."""
    sessions = f"{folder}/{layout.SESSIONS}"
    folders = [f"{sessions}/{session_id}" for session_id in machine.transport.files(sessions)]
    writing = [session_folder for session_folder in folders if journals.is_writing(machine.transport, session_folder)]
    for session_folder in writing:
        # the writer is ended, not the pipe: by now the pipe may be another's
        journals.end_writer(machine.transport, session_folder, machine.timing.session.close_seconds)
    machine.transport.remove(folder)
    return bool(writing)


def _await_pipe_end(machine: Machine, socket: str, pane: ForeignPane) -> None:
    transport = transport_to(machine, socket)
    deadline = time.monotonic() + machine.timing.session.close_seconds
    with suppress(TmuxctlError):
        while is_piped(transport, pane) and time.monotonic() < deadline:
            time.sleep(0.01)


def list_gone(machine: Machine) -> list[str]:
    """The names of the adopted panes whose program has ended, or that are not there any more."""
    return [one.name for one in list_adopted(machine) if one.state.traits.over]


def remove_forgotten(machine: Machine) -> None:
    """Remove the files of panes that were used by their target and are gone, and of adoptions that were broken off."""
    if _list_unfinished(machine):
        # under the lock: an adoption that is under way at this moment is not broken off
        with _adoption_lock(machine, "prune"):
            for name in _list_unfinished(machine):
                _undo_adoption(machine, f"{_adopted_folder(machine)}/{name}")
    home = f"{machine.transport.home}/{layout.FOREIGN}"
    for socket in machine.transport.files(home):
        try:
            there = {pane.uuid for pane in foreign.list_panes(transport_to(machine, socket))}
        except TmuxctlError as error:
            if error.reason not in ("no_server", "no_sessions"):
                continue
            there = set()
        for one in machine.transport.files(f"{home}/{socket}"):
            if re.fullmatch(records.UUID, one) and one not in there:
                machine.transport.remove(f"{home}/{socket}/{one}")


def _list_unfinished(machine: Machine) -> Iterable[str]:
    return machine.transport.files(_adopted_folder(machine)).keys() - set(list_names(machine))


# Listing


def list_adopted(machine: Machine) -> Iterator[Session]:
    """Every adopted session with its state; those that ended too."""
    silent: dict[str, TmuxctlError] = {}
    for name in list_names(machine):
        try:
            adoption = _read_adoption(machine, name)
            if adoption["socket"] not in silent:
                with _machine_of_adopted(machine, name) as adopted_machine:
                    yield from list(_observe_there(adopted_machine))
                continue
            error = silent[adoption["socket"]]
        except NewerFormat as newer:
            yield Session(name=name, id=name, status=Status(State.UNKNOWN, detail=newer.reason), left=(newer.message,))
            continue
        except TmuxctlError as found:
            # a server that does not answer does not keep the panes of others from being listed
            error = silent[adoption["socket"]] = found
        yield _session_without_answer(name, adoption, error)


def _session_without_answer(name: str, adoption: Mapping[str, Any], error: TmuxctlError) -> Session:
    """An adopted pane whose server does not answer, as far as its record tells."""
    pane = _parse_pane(adoption)
    return Session(
        name=name,
        id=pane.uuid,
        status=Status(State.UNKNOWN, detail=error.reason),
        profile=adoption["profile"],
        argv=tuple(adoption["argv"]),
        cwd=adoption["cwd"],
        target=_format_target(adoption["socket"], pane.id),
    )


def list_everywhere(machine: Machine) -> Iterator[Session]:
    """Every pane of every other tmux server of this user that is not adopted, by its target, with its state."""
    mine = _names_by_uuid(machine)
    for socket in list_sockets(machine):
        try:
            panes = foreign.list_panes(transport_to(machine, socket))
        except TmuxctlError:
            continue
        for pane in panes:
            if pane.uuid in mine:
                continue
            with suppress(NotFound, Unreachable), _machine_of_pane(machine, socket, pane) as pane_machine:
                yield from _observe_there(pane_machine)


def _observe_there(machine: Machine) -> Iterator[Session]:
    """The one session of such a machine, with its state. Observed until it is stable: no earlier looks were kept of it."""

    panes = finding.list_panes(machine)
    yield from (observing.session_with_state(observing.observe(machine, pane)) for pane in panes)
    yield from records.list_lost(machine, panes)


def list_sockets(machine: Machine) -> list[str]:
    """The names of the sockets of tmux servers, but for our own (tmux(1): $TMUX_TMPDIR, else /tmp)."""
    folder = os.path.join(os.environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}")
    with suppress(OSError):
        there = [name for name in os.listdir(folder) if SOCKET.fullmatch(name) and name != machine.transport.socket]
        return sorted(name for name in there if _is_socket(os.path.join(folder, name)))
    return []


def _is_socket(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(os.stat(path).st_mode)
    return False


def foreign_error(name: str) -> Denied:
    """The error for ending a program that tmuxctl did not start."""
    return Denied(
        f"{name} is a pane of another tmux server: tmuxctl does not end what it did not start",
        reason="foreign",
        hint=f"to end its programs: tmuxctl kill {name} --force"
        + (f"; to stop driving it: tmuxctl release {name}" if NAME.fullmatch(name) else ""),
    )
