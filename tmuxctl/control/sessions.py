"""Finding sessions and saying what is known about them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from types import NoneType
from typing import TYPE_CHECKING, Any

from tmuxctl.errors import Denied, Exited, Failed, NotFound, TmuxctlError, Unreachable
from tmuxctl.model import NAME, Confidence, Session, State, addressable, check_name, check_tag, natural, parse_size
from tmuxctl.terminal import journal as journals
from tmuxctl.terminal import layout, server
from tmuxctl.terminal.journal import Cursor, Journal, cursor_text, pipe_command
from tmuxctl.terminal.server import Pane
from tmuxctl.transport.base import Guard, Refused, read_object
from tmuxctl.untrusted import fits
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observing import Observed
    from tmuxctl.reading.state import Verdict
    from tmuxctl.results import Sessions

FOLDER_GONE = "folder_gone"
"""Why nothing can be told of a session whose program runs."""

GONE = ("lost", "ended_elsewhere")
"""Reasons for which a session is known and not there."""

MARKS_BACK = 1 << 18
"""Bytes before an input searched for the shell's last mark."""

RECORD_LIMIT = 200
"""Bytes of a file that holds a few words."""

MAYBE = (str, NoneType)

KEPT = {
    "id": str,
    "incarnation": MAYBE,
    "asked!": {
        "argv": [str],
        "cwd": str,
        "env": [str],
        "login": bool,
        "profile": MAYBE,
        "tags": [str],
        "shell_marks": bool,
        "plugins": [str],
        "applied": [{"name!": str, "options!": dict}],
        "marks": str,
        "unmarked": dict,
        "target": MAYBE,
    },
    "spec!": {
        "name!": str,
        "argv": [str],
        "cwd": str,
        "env": dict,
        "size": str,
        "history": int,
        "notes": dict,
    },
}
"""The shape of what is used of a `spec.json`."""

ENDED = {
    "exit_status": (int, NoneType),
    "signal": MAYBE,
    "detail": MAYBE,
    "ended": MAYBE,
    "left": [str],
    "screen": MAYBE,
}
"""The shape of an `ended.json`."""

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def find(machine: Machine, session: str, *, whole: bool = True) -> Pane:
    """The pane of a session by its exact name or its id; NotFound with the nearest name otherwise.

    Failed `folder_gone` if its files are gone, unless it need not be `whole`: then nothing it prints is kept, and what it
    printed cannot be told.
    """
    if not addressable(session):
        exact = "a name is matched exactly; several: tmuxctl wait --any A,B, tmuxctl kill A B, tmuxctl ls --tag TAG"
        hint = exact if re.search(r"[*?\[,]", session) else "tmuxctl ls"
        raise NotFound(f"no session {ascii(session[:60])}", reason="no_session", hint=hint)
    try:
        pane = server.pane(machine.transport, session)
    except (NotFound, Unreachable) as error:
        if error.reason == "backend_timeout":
            raise
        pane = _other(machine, session)
    if machine.panes is not None:
        machine.panes[session] = pane
    if not whole:
        return pane
    check_folder(machine, pane)
    return pane if pane.piped or pane.dead else resume(machine, pane)


def check_folder(machine: Machine, pane: Pane) -> None:
    """Failed `folder_gone` if a session's journal is not there."""
    if not pane.spec.get("journal", True) or has_folder(machine, pane):
        return
    # it may have been ended, and moved, since tmux was asked
    server.pane(machine.transport, pane.name)
    raise Failed(
        f"the files of session {pane.name} are gone: what it prints, and has printed, cannot be told",
        reason=FOLDER_GONE,
        hint=f"end it: tmuxctl kill {pane.name}",
    )


def has_folder(machine: Machine, pane: Pane) -> bool:
    """Whether the folder with a session's journal is there."""
    return "journal" in machine.transport.files(folder(machine, pane.id))


def resume(machine: Machine, pane: Pane) -> Pane:
    """Start a journal's writer again that ended on a full disk; what was printed meanwhile is a gap (`truncated`)."""
    here = pane.target
    again = ("pipe-pane", "-IO", "-t", here, pipe_command(folder(machine, pane.id)))
    with suppress(Refused):
        machine.transport.run([Guard(here, "#{?#{||:#{pane_pipe},#{pane_dead}},0,1}"), again])
    return server.pane(machine.transport, pane.name)


def find_with_input(machine: Machine, session: str) -> tuple[Pane, str]:
    """`find`, together with what was last sent to the session."""
    if addressable(session):
        try:
            before = machine.panes.get(session) if machine.panes else None
            pane, given = server.pane_and_input(machine.transport, session, before)
            check_folder(machine, pane)
            return (pane if pane.piped or pane.dead else resume(machine, pane)), given
        except (NotFound, Unreachable) as error:
            if error.reason == "backend_timeout":
                raise
    return server.pane_and_input(machine.transport, find(machine, session).name)


def known(machine: Machine, session: str) -> Pane:
    """`find`, or in a resident process what was found before: a write checks inside tmux that it is still that session."""
    if machine.panes is None:
        return find(machine, session)
    if session not in machine.panes:
        machine.panes[session] = find(machine, session)
    else:
        check_folder(machine, machine.panes[session])
    return machine.panes[session]


def _other(machine: Machine, session: str) -> Pane:
    there = panes(machine)
    for pane in there:
        if pane.id == session:
            return pane
    gone = next((one for one in lost(machine, there) if session in (one.name, one.id)), None)
    if gone and gone.state is State.EXITED:
        how = (
            "had ended before its tmux server died"
            if gone.exit_status is not None or gone.signal
            else "was ended without tmuxctl"
        )
        raise Exited(
            f"session {session} {how}",
            reason="ended_elsewhere",
            hint=f"its output is still there: tmuxctl log {session}; start it again: tmuxctl restore {session}",
        )
    if gone:
        raise Unreachable(
            f"session {session} was lost: its tmux server died",
            reason="lost",
            hint=f"bring it back: tmuxctl restore {session}; its output is still there: tmuxctl log {session}",
        )
    if any(session in (one.name, one.id) for one in buried(machine)):
        raise NotFound(
            f"session {session} was ended",
            reason="no_session",
            hint=f"its output is still there: tmuxctl log {session}; how it ended: tmuxctl ls --ended",
        )
    from difflib import get_close_matches

    near = get_close_matches(session, [pane.name for pane in there], 1)
    raise NotFound(
        f"no session {session!r}",
        reason="no_session",
        hint=f"did you mean {near[0]!r}? tmuxctl ls" if near else "tmuxctl ls",
    )


def folder(machine: Machine, session_id: str) -> str:
    """Where a session's files are."""
    return f"{machine.transport.home}/sessions/{session_id}"


def journal(machine: Machine, pane: Pane) -> Journal:
    """A session's journal."""
    return journals.journal(machine.transport, pane, folder(machine, pane.id))


def at_prompt(journal: Journal, token: str, offset: int) -> bool:
    """True if the marked shell itself, and no program it runs, had the terminal when its output had come to `offset`."""
    if not token:
        return False
    from tmuxctl.reading.marks import marks

    found = marks(journal.read(max(0, offset - MARKS_BACK), min(MARKS_BACK, offset)).data, token)
    return bool(found) and found[-1].letter != "C"


def cursor(pane: Pane, offset: int) -> str:
    """A point in this life of the session's output; without a journal a place on its screen."""
    return cursor_text(Cursor(pane.incarnation, offset))


def show(machine: Machine, session: str) -> Session:
    """One session, with its cursor."""
    try:
        from tmuxctl.control import observing
        from tmuxctl.terminal.paste import Input

        pane, given = find_with_input(machine, session)
        if pane.dead:
            return describe(machine, pane)
        return _loaded(machine, pane, known_state(observing.now(machine, pane, Input.parse(given))))
    except (Unreachable, Exited) as error:
        if error.reason not in GONE:
            raise
        return next(one for one in lost(machine, panes(machine)) if session in (one.name, one.id))


def _loaded(machine: Machine, pane: Pane, session: Session) -> Session:
    """The session with what its processes take of the machine."""
    load = machine.transport.load(pane.pid)
    return changed(session, processes=load.processes, memory=load.memory, cpu=load.cpu)


def describe(machine: Machine, pane: Pane) -> Session:
    """What is known of a session, with the point its output has reached."""
    return summary(pane, cursor(pane, journal(machine, pane).end()))


def known_state(seen: Observed) -> Session:
    """What is known of a session, with its state."""
    from tmuxctl.operations import plain

    verdict = seen.verdict
    return changed(
        summary(seen.pane, cursor(seen.pane, seen.look.journal)),
        state=verdict.state,
        kind=verdict.kind,
        detail=verdict.detail or _detail(seen.pane),
        until=until(verdict),
        by=verdict.by,
        confidence=verdict.confidence,
        profile=seen.profile,
        asking=plain(verdict.asking) if verdict.asking else None,
        wants=seen.wants,
    )


def until(verdict: Verdict) -> str | None:
    """When the limit that a program tells of ends, ISO-8601; None if it tells none, or not when."""
    if verdict.until is None:
        return None
    from datetime import datetime

    from tmuxctl.reading import limits

    return limits.until(verdict.until, datetime.now().astimezone())


def summary(pane: Pane, point: str | None = None) -> Session:
    """What tmux knows of a session."""
    spec = pane.spec
    state = State.EXITED if pane.dead else State.UNKNOWN
    return Session(
        name=pane.name,
        id=pane.id,
        incarnation=pane.incarnation,
        state=state,
        detail=_detail(pane),
        by="exit" if pane.dead else None,
        confidence=Confidence.SURE if pane.dead else None,
        profile=spec.get("profile"),
        argv=tuple(spec.get("argv", ())),
        cwd=spec.get("cwd"),
        cols=pane.cols,
        rows=pane.rows,
        pid=pane.pid or None,
        exit_status=pane.status,
        signal=pane.signal,
        created=when(pane.created),
        active=when(pane.active),
        attached=pane.attached,
        tags=pane.tags,
        plugins=tuple(spec.get("plugins", ())),
        # a place on a screen is nothing to come back to
        cursor=point if spec.get("journal", True) else None,
        target=spec.get("target"),
    )


def _detail(pane: Pane) -> str | None:
    """What else tmux tells: why tmuxctl ended the program, or that what it prints is not kept."""
    if pane.dead:
        return pane.ended or None
    return None if pane.piped else "journal_stopped"


def ls(
    machine: Machine,
    *,
    state: str | None = None,
    tag: str | None = None,
    all_sockets: bool = False,
    ended: bool = False,
) -> Sessions:
    """All sessions of the server, then the lost and the adopted ones, with `all_sockets` the panes of every other server,
    and with `ended` those that were ended and are still kept; only those in a state or with a tag, if one is given."""
    from tmuxctl.results import Sessions

    if tag is not None:
        check_tag(tag)
    there = panes(machine)
    found = [*_seen(machine, there), *lost(machine, there), *_elsewhere(machine, all_sockets)]
    found += buried(machine) if ended else []
    wanted = (one for one in found if state is None or state in (one.state.value, one.wants))
    return Sessions(tuple(one for one in wanted if tag is None or tag in one.tags))


def _elsewhere(machine: Machine, everywhere: bool) -> list[Session]:
    """What is adopted, and if it is wanted the panes of other servers."""
    if not everywhere and not machine.transport.files(f"{machine.transport.home}/adopted"):
        return []
    from tmuxctl.control import adopting

    return [*adopting.adopted(machine), *(adopting.everywhere(machine) if everywhere else ())]


def _seen(machine: Machine, panes: list[Pane]) -> list[Session]:
    """The sessions with their states, each judged by one look."""
    if all(pane.dead for pane in panes):
        return [summary(pane) for pane in panes]
    from tmuxctl.control import observing

    whole = {pane.id for pane in panes if not pane.spec.get("journal", True) or has_folder(machine, pane)}
    seen = observing.glance(machine, [pane for pane in panes if not pane.dead and pane.id in whole])
    found = (known_state(seen[pane.id]) if pane.id in seen else summary(pane) for pane in panes)
    return [one if one.id in whole else changed(one, detail=FOLDER_GONE) for one in found]


def panes(machine: Machine) -> list[Pane]:
    """The sessions of the server; none if there is no server."""
    try:
        return server.panes(machine.transport)
    except Unreachable as error:
        if error.reason != "no_server":
            raise
        return []


def lost(machine: Machine, panes: list[Pane]) -> list[Session]:
    """Sessions whose folder is there and which tmux does not know: lost with their server, which died or went with the
    machine; or, if that server lives, ended by somebody without tmuxctl (exited, nobody knows how)."""
    names = machine.transport.files(f"{machine.transport.home}/sessions")
    missing = [name for name in names.keys() - {pane.id for pane in panes} if UUID.fullmatch(name)]
    if not missing:
        return []
    now = _server(machine)
    found = [one for name in missing if (one := _lost(machine, name, now))]
    return sorted(found, key=lambda one: natural(one.name))


def _server(machine: Machine) -> bytes:
    """The record of the server that runs, empty if there is none."""
    return record(machine, f"{machine.transport.home}/{layout.SERVER}") if server_pid(machine) else b""


def record(machine: Machine, path: str) -> bytes:
    """The first bytes of a file that holds a few words; none if there is no such file, or it cannot be read."""
    with suppress(NotFound, Denied):
        return machine.transport.read(path, 0, RECORD_LIMIT)
    return b""


def buried(machine: Machine) -> list[Session]:
    """Sessions that were ended and of which the words are kept, by name."""
    home = machine.transport.home
    found = (_buried(machine, name) for name in machine.transport.files(f"{home}/ended"))
    return sorted((one for one in found if one), key=lambda one: natural(one.name))


def _buried(machine: Machine, session_id: str) -> Session | None:
    kept = spec(machine, session_id, "ended")
    if not kept:
        return None
    about = tombstone(machine, session_id)
    return changed(
        _gone(session_id, kept, State.EXITED),
        exit_status=about.get("exit_status"),
        signal=about.get("signal"),
        detail=about.get("detail"),
        active=about.get("ended"),
        left=tuple(about.get("left") or ()),
    )


def tombstone(machine: Machine, session_id: str) -> dict[str, Any]:
    """What is known of the end of a session that was ended; nothing if it cannot be read."""
    return ended_record(machine, f"{machine.transport.home}/ended/{session_id}")


def ended_record(machine: Machine, place: str) -> dict[str, Any]:
    """What the `ended.json` in a folder says; nothing if it is not there or cannot be read."""
    with suppress(TmuxctlError, ValueError):
        about = read_object(machine.transport, f"{place}/ended.json")
        if fits(about, ENDED):
            return about
    return {}


def server_pid(machine: Machine) -> int | None:
    """The process that is the server, if it is the one that was recorded, and lives."""
    try:
        words = record(machine, f"{machine.transport.home}/{layout.SERVER}").split()
        pid, started = (int(word) for word in words)
    except ValueError:
        return None
    rows = machine.transport.processes([pid])
    return pid if any(row.started == started and row.state not in ("Z", "X") for row in rows) else None


def _lost(machine: Machine, session_id: str, now: bytes) -> Session | None:
    """A session that tmux does not know: lost with the server it had, or ended by somebody while that one, `now`, lives."""
    kept = spec(machine, session_id)
    asked = kept.get("asked", {})
    here = folder(machine, session_id)
    files = machine.transport.files(here)
    # an adopted pane had started before
    if not kept or not (layout.started(files) or asked.get("target")):
        return None
    if layout.EXIT not in files:
        if not now or layout.SERVER not in files or record(machine, f"{here}/{layout.SERVER}") != now:
            return _gone(session_id, kept, State.LOST)
        answers, there = _answer(machine, str(kept["spec"].get("name")))
        if there == session_id:
            return None  # it has come since the sessions were asked for
        if answers != int(now.split()[0]):
            # a server that was killed is a process for a while after it stopped to answer
            return _gone(session_id, kept, State.LOST)
        # how it ended nobody knows, but that it did is still so when this server is gone
        machine.transport.put(f"{here}/{layout.EXIT}", b":\n")
    status, signal = exit_of(machine, session_id)
    why = None
    if layout.ENDED in files:
        why = record(machine, f"{here}/{layout.ENDED}")[:40].decode(errors="replace").strip()
    return changed(_gone(session_id, kept, State.EXITED), exit_status=status, signal=signal, detail=why)


def _answer(machine: Machine, name: str) -> tuple[int, str]:
    """The pid of the server that answers now, 0 if none does, and the id of the session it has by that name, if any."""
    try:
        with suppress(NotFound):
            pane = server.pane(machine.transport, name)
            return pane.server, pane.id
        return int(machine.transport.run([("display-message", "-p", "#{pid}")])), ""
    except Unreachable as error:
        if error.reason != "no_server":
            raise
        return 0, ""


def _gone(session_id: str, kept: dict[str, Any], state: State) -> Session:
    """What a session's spec says of it when tmux is gone."""
    asked, had = kept["asked"], kept["spec"]
    cols, _, rows = str(had.get("size", "")).partition("x")
    return Session(
        name=str(had.get("name")),
        id=session_id,
        incarnation=kept.get("incarnation"),
        state=state,
        by="exit" if state is State.EXITED else None,
        confidence=Confidence.SURE,
        profile=asked.get("profile"),
        argv=tuple(asked.get("argv", ())),
        cwd=had.get("cwd"),
        cols=int(cols) if cols.isdigit() else None,
        rows=int(rows) if rows.isdigit() else None,
        tags=tuple(asked.get("tags", ())),
        plugins=tuple(asked.get("plugins", ())),
        target=asked.get("target"),
    )


def exit_of(machine: Machine, session_id: str) -> tuple[int | None, str | None]:
    """The exit status and signal that a session's program ended with, as far as tmux told it when it did."""
    said = record(machine, f"{folder(machine, session_id)}/{layout.EXIT}").decode(errors="replace")
    status, _, signal = said.strip().partition(":")
    return int(status) if status.isdecimal() else None, server.signal_name(signal) if signal else None


def spec(machine: Machine, session_id: str, place: str = "sessions") -> dict[str, Any]:
    """What a session's spec.json says; empty if it is gone, or set aside if it cannot be read."""
    path = f"{machine.transport.home}/{place}/{session_id}/spec.json"
    try:
        kept = read_object(machine.transport, path)
        if fits(kept, KEPT) and NAME.fullmatch(kept["spec"]["name"]):
            return kept
    except NotFound:
        return {}
    except ValueError:
        pass
    with suppress(OSError, TmuxctlError):
        machine.transport.rename(path, path + ".corrupt")
    return {}


def when(seconds: float) -> str | None:
    """ISO-8601 UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)) if seconds else None


def rename(machine: Machine, session: str, name: str) -> Session:
    """Give a session another name."""
    check_name(name)
    pane = find(machine, session)
    # if we die between the two, it is at least restored under the name it was to have
    amend(machine, pane.id, lambda kept: kept["spec"].update(name=name))
    try:
        machine.transport.run([("rename-session", "-t", "=" + pane.name, name)])
    except TmuxctlError:
        amend(machine, pane.id, lambda kept: kept["spec"].update(name=pane.name))
        raise
    return show(machine, name)


def amend(machine: Machine, session_id: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what is left of a session when tmux is gone; nothing if there is no spec of it."""
    if kept := spec(machine, session_id):
        change(kept)
        machine.transport.put(f"{folder(machine, session_id)}/spec.json", json.dumps(kept).encode(), durable=True)


def resize(machine: Machine, session: str, size: str) -> Session:
    """Change the size a session has when nobody is attached."""
    wanted = parse_size(size)
    pane = find(machine, session)
    if pane.dead:
        from tmuxctl.terminal.paste import ended

        raise ended(pane)
    amend(machine, pane.id, lambda kept: kept["spec"].update(size=str(wanted)))
    cols, rows = str(wanted.cols), str(wanted.rows)
    machine.transport.run(
        [
            ("set-option", "-t", pane.target, "@tmuxctl_cols", cols),
            ("set-option", "-t", pane.target, "@tmuxctl_rows", rows),
            ("resize-window", "-t", pane.target, "-x", cols, "-y", rows),
        ]
    )
    return show(machine, pane.name)
