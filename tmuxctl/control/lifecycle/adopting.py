"""Panes of other tmux servers: driven as they are by their target, or adopted under a name with a profile and a journal.

Nothing of theirs changes: no option, no layout, no pipe that somebody has there. What we remember stands in files of
ours, `adopted/NAME/` for what is adopted, `foreign/` for what is only used.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, cast

from tmuxctl.control.lifecycle import listing
from tmuxctl.control.observation import observing
from tmuxctl.control.sessions import finding, records
from tmuxctl.errors import Conflict, Denied, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.model import NAME, Session, State, Status, check_name, natural_key
from tmuxctl.terminal.panes import foreign
from tmuxctl.terminal.panes.foreign import ForeignPane, ForeignTransport
from tmuxctl.terminal.tmux import layout, screen
from tmuxctl.terminal.tmux.journal import pipe_command, writer_script
from tmuxctl.transport.base import read_object
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


def reach(machine: Machine, session: str) -> tuple[Machine, str] | None:
    """Who drives a target or an adopted session, and what it is called there; None for a session of our own.

    NotFound `no_target`, Unreachable `no_server`.
    """
    if found := TARGET.fullmatch(session):
        return _direct(machine, found[1] or DEFAULT, found[2])
    if NAME.fullmatch(session) and (name := _known(machine, session)):
        return _adopted(machine, name), name
    return None


def _known(machine: Machine, session: str) -> str | None:
    """The name of what was adopted under this name or has this id."""
    home = _home(machine)
    try:
        if os.path.exists(f"{home}/{session}/{layout.ADOPTION}"):
            return session
        if not records.UUID.fullmatch(session):
            return None
        return next(
            (name for name in names(machine) if os.path.exists(f"{home}/{name}/{layout.SESSIONS}/{session}")), None
        )
    except OSError:
        return None


def _home(machine: Machine) -> str:
    return f"{machine.transport.home}/{layout.ADOPTED}"


def names(machine: Machine) -> list[str]:
    """What is adopted, by name."""
    found = (name for name in machine.transport.files(_home(machine)) if NAME.fullmatch(name))
    return sorted((name for name in found if _readable(machine, name) is not False), key=natural_key)


def _readable(machine: Machine, name: str) -> bool | None:
    """Whether it is told what was adopted under a name; None if a later release did that."""
    try:
        return bool(_about(machine, name))
    except NewerFormat:
        return None


def _uuids(machine: Machine) -> dict[str, str]:
    """The panes that are adopted, as far as they are known, each with its name."""
    return {_remembered(_about(machine, name)).uuid: name for name in names(machine) if _readable(machine, name)}


def _about(machine: Machine, name: str) -> dict[str, Any]:
    try:
        about = read_object(machine.transport, f"{_home(machine)}/{name}/{layout.ADOPTION}")
        pane = _remembered(about)
        texts = (about["socket"], about["cwd"], about["profile"] or "", pane.id, pane.session, pane.window, pane.pane)
        numbers = (pane.server, pane.server_started, pane.pid, pane.started)
        whole = all(isinstance(one, str) for one in (*texts, *about["argv"])) and SOCKET.fullmatch(about["socket"])
        return about if whole and all(isinstance(one, int) for one in numbers) else {}
    except (NotFound, ValueError, KeyError, TypeError):
        return {}


# Reaching one


def _direct(machine: Machine, socket: str, target: str) -> tuple[Machine, str]:
    pane = _pane(machine, socket, target)
    if name := _adopted_as(machine, pane):
        # one pane has one memory of who types and what was typed, whatever it is called by
        return _adopted(machine, name), name
    return _driving(machine, socket, pane), label(socket, pane)


def _adopted_as(machine: Machine, pane: ForeignPane) -> str | None:
    """The name under which a pane is adopted; None if it is not."""
    return _uuids(machine).get(pane.uuid)


def _remembered(about: Mapping[str, Any]) -> ForeignPane:
    return ForeignPane(**about["pane"])


def label(socket: str, pane: ForeignPane) -> str:
    """A pane's target as people write it, or by its id where its session's name is no plain word."""
    return _target(socket, pane.place if re.fullmatch(r"[A-Za-z0-9_-]+", pane.session) else pane.id)


def _target(socket: str, place: str) -> str:
    return f"tmux:{place}" if socket == DEFAULT else f"tmux@{socket}:{place}"


def _pane(machine: Machine, socket: str, target: str) -> ForeignPane:
    try:
        there = foreign.list_panes(server(machine, socket))
    except Unreachable as error:
        if error.reason != "no_server":
            raise
        name = "" if socket == DEFAULT else f"@{socket}"
        hint = f"servers that run: tmuxctl ls --all-sockets; a target is tmux{name}:SESSION:WINDOW.PANE"
        raise Unreachable(f"no tmux server {socket} is running", reason="no_server", hint=hint) from None
    found = foreign.find_pane(there, target)
    if found is None:
        known = ", ".join(label(socket, one) for one in there[:6])
        raise NotFound(
            f"no pane {ascii(target[:60])} on tmux server {socket}", reason="no_target", hint=f"it has {known}"
        )
    return found


def server(machine: Machine, socket: str) -> Transport:
    """A transport to another tmux server of this machine."""
    from tmuxctl.transport.local import LocalTransport

    return LocalTransport(
        socket, tmux=machine.settings.tmux_binary, home=f"{machine.transport.home}/{layout.FOREIGN}/{socket}"
    )


def _driving(machine: Machine, socket: str, pane: ForeignPane, name: str | None = None) -> Machine:
    """The service for one pane: the same as any other, over a transport that changes nothing but the pane's input."""
    from tmuxctl.control.machine import Machine

    about = _about(machine, name) if name else {}
    inner = server(machine, socket)
    folder = f"{_home(machine)}/{name}" if name else f"{machine.transport.home}/{layout.FOREIGN}/{socket}/{pane.uuid}"
    first = next(iter(inner.processes([pane.pid])), None)
    spec = {
        "argv": about.get("argv") or ([first.name] if first else []),
        "cwd": about.get("cwd") or _folder(pane.pid),
        "profile": about.get("profile"),
        "plain": about.get("plain", False),
        "marks": "",
        # windows are moved and sessions renamed: what is adopted is told by what stays
        "target": _target(socket, pane.id) if name else label(socket, pane),
    }
    kept = bool(about.get("journal")) and _writing(machine, f"{folder}/{layout.SESSIONS}/{pane.uuid}")
    transport = ForeignTransport(inner, pane, name or label(socket, pane), folder, spec, journal=kept)
    return Machine(
        cast("Transport", transport),
        machine.settings,
        known=machine.known,
        timing=machine.timing,
        limits=machine.limits,
        clock=machine.clock,
    )


def _folder(pid: int) -> str | None:
    """The folder a pane's first process is in; None if that is not told."""
    with suppress(OSError):
        return screen.strip_escapes(os.readlink(f"/proc/{pid}/cwd")).replace("\n", " ")
    return None


def _adopted(machine: Machine, name: str) -> Machine:
    about = _about(machine, name)
    return _driving(machine, about["socket"], _remembered(about), name)


def _writing(machine: Machine, folder: str) -> bool:
    """Whether our writer still reads along."""
    try:
        pid = int(machine.transport.read(f"{folder}/{layout.WRITER_PID}"))
    except (NotFound, ValueError):
        return False
    return any(row.pid == pid and row.state not in ("Z", "X") for row in machine.transport.processes([pid]))


# Adopting


def adopt(machine: Machine, target: str, name: str | None, *, profile: str) -> Session:
    """Give a pane a name, a profile, and a journal if nothing reads along there yet."""
    found = TARGET.fullmatch(target)
    if not found:
        raise Usage(
            f"{ascii(target[:60])} is no pane of another tmux",
            reason="bad_target",
            hint="tmux:SESSION:WINDOW.PANE, or tmux@SOCKET:...; see tmuxctl ls --all-sockets",
        )
    socket = found[1] or DEFAULT
    if socket == machine.transport.socket:
        raise Conflict(f"{target} is a session of tmuxctl's own", reason="ours", hint="use it by its name: tmuxctl ls")
    pane = _pane(machine, socket, found[2])
    if pane.ours:
        raise foreign.own_session_error(target, socket)
    with _adopting(machine, target):
        chosen = _free_name(machine, name, pane)
        folder = f"{_home(machine)}/{chosen}"
        try:
            _keep(machine, folder, chosen, pane, _facts(machine, socket, pane, profile))
        except BaseException:
            _give_back(machine, folder)
            raise
    return listing.show(_adopted(machine, chosen), chosen)


def _adopting(machine: Machine, target: str) -> AbstractContextManager[None]:
    """Be the only one who adopts: a pane gets one name, and a name one pane."""
    machine.transport.make_folder(_home(machine))
    return foreign.hold_lock(f"{machine.transport.home}/{layout.ADOPT_LOCK}", target)


def _keep(machine: Machine, folder: str, name: str, pane: ForeignPane, about: dict[str, Any]) -> None:
    """Write down what is adopted, and read along if nothing else does."""
    inside = f"{folder}/{layout.SESSIONS}/{pane.uuid}"
    for one in (
        folder,
        f"{folder}/{layout.SESSIONS}",
        inside,
        f"{inside}/{layout.JOURNAL}",
        f"{inside}/{layout.EVENTS}",
        f"{inside}/{layout.SHELL}",
    ):
        machine.transport.make_folder(one)
    for place in (folder, inside):
        machine.transport.put(f"{place}/{layout.SERVER}", f"{pane.server} {pane.server_started}\n".encode())
    machine.transport.put(f"{inside}/{layout.WRITER}", writer_script(machine.settings.journal_limit).encode())
    machine.transport.put(f"{inside}/{layout.PROFILE}", _profile(about))
    spec = {"asked": about, "id": pane.uuid, "spec": {"name": name, "cwd": about["cwd"], "size": ""}}
    machine.transport.put(f"{inside}/{layout.SPEC}", to_record(spec))
    about["journal"] = _read_along(machine, server(machine, about["socket"]), pane, inside)
    # what has this file is adopted: it comes last
    machine.transport.put(f"{folder}/{layout.ADOPTION}", to_record(about), durable=True)


def _facts(machine: Machine, socket: str, pane: ForeignPane, profile: str) -> dict[str, Any]:
    import psutil

    argv, cwd = [], None
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pane.pid)
        argv, cwd = process.cmdline(), process.cwd()
    return {
        "socket": socket,
        "target": _target(socket, pane.id),
        "pane": pane._asdict(),
        "argv": argv,
        "cwd": cwd,
        "profile": profile if profile not in ("auto", "none") else None,
        "plain": profile == "none",
        "since": time.time(),
    }


def _profile(about: Mapping[str, Any]) -> bytes:
    """The profile that is named, frozen; with `auto` the program that has the terminal decides each time."""
    from tmuxctl.control.secret_values import without_secrets
    from tmuxctl.control.sessions import chosen_profile
    from tmuxctl.program_profile import to_json

    return to_json(without_secrets(chosen_profile.chosen(about["profile"], ()) if about["profile"] else None))


def _free_name(machine: Machine, name: str | None, pane: ForeignPane) -> str:
    taken = {one.name for one in finding.panes(machine)} | set(names(machine))
    if other := _adopted_as(machine, pane):
        raise Conflict(f"{pane.place} is adopted as {other}", reason="exists", hint=f"tmuxctl release {other}")
    if name is not None:
        if check_name(name) in taken:
            raise Conflict(f"a session named {name} exists", reason="exists", hint="choose another name")
        return name
    first = re.sub(r"[^A-Za-z0-9_-]+", "-", pane.session).strip("-_")[:50] or "pane"
    return next(one for one in (first, *(f"{first}-{number}" for number in range(2, 10_000))) if one not in taken)


def _read_along(machine: Machine, there: Transport, pane: ForeignPane, folder: str) -> bool:
    """Start our writer where nothing reads along; False where something of theirs does."""
    from tmuxctl.transport.base import Guard, GuardRefused

    # tested and done in one list: nobody else's pipe is ever ended
    with suppress(GuardRefused):
        free = Guard(pane.id, "#{?#{pane_pipe},0,1}")
        there.run([free, ("pipe-pane", "-IO", "-t", pane.id, pipe_command(folder))])
    deadline = time.monotonic() + machine.timing.session.close_seconds
    while not there.files(folder).get(layout.WRITER_PID) and time.monotonic() < deadline:
        if not foreign_pipe(there, pane):
            return False
        time.sleep(0.005)
    return layout.WRITER_PID in there.files(folder)


def foreign_pipe(there: Transport, pane: ForeignPane) -> bool:
    """Whether anything reads along with this very pane now."""
    return any(one.uuid == pane.uuid and one.piped for one in foreign.list_panes(there))


def release(machine: Machine, chosen: Sequence[str]) -> Released:
    """Forget adopted panes, and end what of ours reads along there; they go on as if nobody had looked."""
    from tmuxctl.results import Released

    there = machine.transport.files(_home(machine))
    for name in chosen:
        if name not in there:
            hint = f"adopted: {', '.join(names(machine)) or 'none'}"
            raise NotFound(f"{ascii(name[:60])} is not adopted", reason="no_session", hint=hint)
    for name in chosen:
        _release(machine, name)
    return Released(tuple(chosen))


def _release(machine: Machine, name: str) -> None:
    about = _about(machine, name)
    if _give_back(machine, f"{_home(machine)}/{name}") and about:
        _until_closed(machine, about["socket"], _remembered(about))


def _give_back(machine: Machine, folder: str) -> bool:
    """End what of ours reads along, and forget the pane; also where adopting it was broken off. True if something did."""
    inside = [f"{folder}/{layout.SESSIONS}/{one}" for one in machine.transport.files(f"{folder}/{layout.SESSIONS}")]
    writing = [one for one in inside if _writing(machine, one)]
    for one in writing:
        # the writer is ended, not the pipe: by now the pipe may be somebody else's
        machine.transport.shell(
            'exec sh "$1" end', f"{one}/{layout.WRITER}", timeout=machine.timing.session.close_seconds + 3
        )
    machine.transport.remove(folder)
    return bool(writing)


def _until_closed(machine: Machine, socket: str, pane: ForeignPane) -> None:
    there = server(machine, socket)
    deadline = time.monotonic() + machine.timing.session.close_seconds
    with suppress(TmuxctlError):
        while foreign_pipe(there, pane) and time.monotonic() < deadline:
            time.sleep(0.01)


def gone(machine: Machine) -> list[str]:
    """What was adopted and is not there any more."""
    return [one.name for one in adopted(machine) if one.state.traits.over]


def forget(machine: Machine) -> None:
    """Remove what was remembered of panes that were used by their target and are gone, and of adopting broken off."""
    if _broken_off(machine):
        # not what somebody adopts at this moment
        with _adopting(machine, "prune"):
            for name in _broken_off(machine):
                _give_back(machine, f"{_home(machine)}/{name}")
    home = f"{machine.transport.home}/{layout.FOREIGN}"
    for socket in machine.transport.files(home):
        try:
            there = {pane.uuid for pane in foreign.list_panes(server(machine, socket))}
        except TmuxctlError as error:
            if error.reason not in ("no_server", "no_sessions"):
                continue
            there = set()
        for one in machine.transport.files(f"{home}/{socket}"):
            if records.UUID.fullmatch(one) and one not in there:
                machine.transport.remove(f"{home}/{socket}/{one}")


def _broken_off(machine: Machine) -> Iterable[str]:
    return machine.transport.files(_home(machine)).keys() - set(names(machine))


# Listing


def adopted(machine: Machine) -> Iterator[Session]:
    """Every adopted session with its state; those that ended too."""
    silent: dict[str, TmuxctlError] = {}
    for name in names(machine):
        try:
            about = _about(machine, name)
            if about["socket"] not in silent:
                with _adopted(machine, name) as place:
                    yield from list(_now(place))
                continue
            error = silent[about["socket"]]
        except NewerFormat as newer:
            yield Session(name=name, id=name, status=Status(State.UNKNOWN, detail=newer.reason), left=(newer.message,))
            continue
        except TmuxctlError as found:
            # another server that does not answer is no reason not to tell of the rest
            error = silent[about["socket"]] = found
        yield _unanswered(name, about, error)


def _unanswered(name: str, about: Mapping[str, Any], error: TmuxctlError) -> Session:
    """What can be said of an adopted pane whose server gives no answer."""
    pane = _remembered(about)
    return Session(
        name=name,
        id=pane.uuid,
        status=Status(State.UNKNOWN, detail=error.reason),
        profile=about["profile"],
        argv=tuple(about["argv"]),
        cwd=about["cwd"],
        target=_target(about["socket"], pane.id),
    )


def everywhere(machine: Machine) -> Iterator[Session]:
    """Every pane of every other tmux server of this user that is not adopted, by its target, with its state."""
    mine = _uuids(machine)
    for socket in sockets(machine):
        try:
            there = foreign.list_panes(server(machine, socket))
        except TmuxctlError:
            continue
        for pane in there:
            if pane.uuid in mine:
                continue
            with suppress(NotFound, Unreachable), _driving(machine, socket, pane) as place:
                yield from _now(place)


def _now(place: Machine) -> Iterator[Session]:
    """The one session there, with its state. Nobody looked at it all the time: one look would not tell enough."""

    there = finding.panes(place)
    yield from (observing.session_with_state(observing.observe(place, pane)) for pane in there)
    yield from records.lost(place, there)


def sockets(machine: Machine) -> list[str]:
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


def refuse(name: str) -> Denied:
    """The error for ending somebody else's program."""
    return Denied(
        f"{name} is a pane of somebody else's tmux: tmuxctl does not end what it did not start",
        reason="foreign",
        hint=f"end its programs all the same: tmuxctl kill {name} --force"
        + (f"; or forget it: tmuxctl release {name}" if NAME.fullmatch(name) else ""),
    )
