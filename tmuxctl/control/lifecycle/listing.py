"""What is known of sessions: one with its state, or all of them, the lost and the adopted ones too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.control.sessions.finding import FOLDER_GONE, GONE, find_with_input, has_folder, list_panes
from tmuxctl.control.sessions.records import list_ended, list_lost
from tmuxctl.control.sessions.summaries import describe_session, summarize
from tmuxctl.errors import Exited, Unreachable
from tmuxctl.model import Session, check_tag, with_status
from tmuxctl.terminal.tmux import layout
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.untrusted import FORMAT, NEWER, NewerFormat
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.results import Sessions


def show(machine: Machine, session: str) -> Session:
    """One session, with its cursor."""
    try:
        from tmuxctl.control.observation import observing
        from tmuxctl.terminal.input.paste import LastInput

        pane, remembered = find_with_input(machine, session)
        if pane.dead:
            return describe_session(machine, pane)
        return _with_load(
            machine, pane, observing.session_with_state(observing.observe(machine, pane, LastInput.parse(remembered)))
        )
    except (Unreachable, Exited) as error:
        if error.reason not in GONE:
            raise
        return next(one for one in list_lost(machine, list_panes(machine)) if session in (one.name, one.id))


def _with_load(machine: Machine, pane: Pane, session: Session) -> Session:
    """The session with what its processes take of the machine."""
    load = machine.transport.load(pane.pid)
    return changed(session, processes=load.processes, memory=load.memory, cpu=load.cpu)


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
    panes = list_panes(machine)
    found = [*_list_own(machine, panes), *list_lost(machine, panes), *_list_elsewhere(machine, all_sockets)]
    found += list_ended(machine) if ended else []
    wanted = (session for session in found if state is None or state in (session.state.value, session.wants))
    return Sessions(tuple(session for session in wanted if tag is None or tag in session.tags))


def _list_elsewhere(machine: Machine, everywhere: bool) -> list[Session]:
    """What is adopted, and if it is wanted the panes of other servers."""
    if not everywhere and not machine.transport.files(f"{machine.transport.home}/{layout.ADOPTED}"):
        return []
    from tmuxctl.control.lifecycle import adopting

    return [*adopting.list_adopted(machine), *(adopting.list_everywhere(machine) if everywhere else ())]


def _list_own(machine: Machine, panes: list[Pane]) -> list[Session]:
    """The sessions with their states, each judged by one look."""
    if all(pane.dead for pane in panes):
        return [summarize(pane) for pane in panes]
    from tmuxctl.control.observation import observing

    reasons = {pane.id: why for pane in panes if (why := _why_not_observed(machine, pane))}
    living = [pane for pane in panes if not pane.dead and pane.id not in reasons]
    try:
        states = observing.observe_many(machine, living)
    except NewerFormat:
        # a file of one of them is a later release's
        states = {}
        for pane in living:
            try:
                states |= observing.observe_many(machine, [pane])
            except NewerFormat as newer:
                reasons[pane.id] = newer.reason
    found = (observing.session_with_state(states[pane.id]) if pane.id in states else summarize(pane) for pane in panes)
    return [with_status(session, detail=reasons[session.id]) if session.id in reasons else session for session in found]


def _why_not_observed(machine: Machine, pane: Pane) -> str | None:
    """Why no more is told of a session than what tmux knows; None if it can be looked at."""
    if pane.format > FORMAT:
        return NEWER
    whole = not pane.spec.get("journal", True) or has_folder(machine, pane)
    return None if whole else FOLDER_GONE
