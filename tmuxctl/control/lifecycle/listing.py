"""What is known of sessions: one with its state, or all of them, the lost and the adopted ones too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.control.machine import Standing
from tmuxctl.control.sessions.finding import FOLDER_GONE, GONE, find_with_input, has_folder, list_panes
from tmuxctl.control.sessions.kept_profile import profile_of
from tmuxctl.control.sessions.records import list_ended, list_lost, session_folder
from tmuxctl.control.sessions.summaries import describe_session, summarize
from tmuxctl.errors import Exited, Unreachable, Usage
from tmuxctl.evidence import FULL, WCHAN
from tmuxctl.model import Session, State, check_tag, is_addressable, with_status
from tmuxctl.terminal.tmux import layout
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Watched
from tmuxctl.untrusted import FORMAT, NEWER, NewerFormat
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observation.observing import ObservedState
    from tmuxctl.results import Sessions

WATCHED_THREADS = 32
"""How many threads of a session are watched; fewer than are told of one program (`probe.THREADS`): none is left out."""


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
    if machine.address:
        found = [session for session in found if is_addressable(session.name)]
    wanted = (session for session in found if state is None or state in (session.state.value, session.wants))
    return Sessions(tuple(session for session in wanted if tag is None or tag in session.tags))


def _list_elsewhere(machine: Machine, everywhere: bool) -> list[Session]:
    """What is adopted, and if it is wanted the panes of other servers. Both are reached from their own machine alone."""
    if machine.address and everywhere:
        hint = f"the sessions of {machine.address}: tmuxctl ls {machine.address}/"
        raise Usage("--all-sockets lists this machine's own tmux servers", reason="bad_option", hint=hint)
    if machine.address:
        return []
    if not everywhere and not machine.transport.files(f"{machine.transport.home}/{layout.ADOPTED}"):
        return []
    from tmuxctl.control.lifecycle import adopting

    return [*adopting.list_adopted(machine), *(adopting.list_everywhere(machine) if everywhere else ())]


def _list_own(machine: Machine, panes: list[Pane]) -> list[Session]:
    """The sessions with their states, each judged by one look; in a process that stays as they were told before, where nothing
    has happened since that could change it."""
    if all(pane.dead for pane in panes):
        return [summarize(pane) for pane in panes]
    from tmuxctl.control.observation import observing

    began, before = machine.clock.monotonic(), machine.standing or {}
    stamps = {pane.id: machine.transport.stamp(before[pane.id].watched) for pane in panes if pane.id in before}
    oldest = began - machine.timing.observation.stands_seconds
    standing = {
        pane.id: before[pane.id] for pane in panes if _stands(before.get(pane.id), pane, stamps.get(pane.id), oldest)
    }
    reasons = {pane.id: why for pane in panes if pane.id not in standing and (why := _why_not_observed(machine, pane))}
    living = [pane for pane in panes if not pane.dead and pane.id not in reasons and pane.id not in standing]
    try:
        states = observing.observe_many(machine, living) if living else {}
    except NewerFormat:
        # a file of one of them is a later release's
        states = {}
        for pane in living:
            try:
                states |= observing.observe_many(machine, [pane])
            except NewerFormat as newer:
                reasons[pane.id] = newer.reason
    found: dict[str, Session] = {key: known.session for key, known in standing.items()}
    for pane in panes:
        if pane.id in states:
            found[pane.id] = observing.session_with_state(states[pane.id])
            if watched := _watched_until_changed(machine, pane, states[pane.id]):
                if (known := before.get(pane.id)) and known.watched == watched:
                    # a stamp holds it: the same value is compared sooner than one that is equal
                    watched = known.watched
                # taken before the look: what changed since then is not missed
                standing[pane.id] = Standing(pane, found[pane.id], began, watched, stamps.get(pane.id))
        elif pane.id not in standing:
            session = summarize(pane)
            found[pane.id] = with_status(session, detail=reasons[pane.id]) if pane.id in reasons else session
    if machine.standing is not None:
        machine.standing = standing
    return [found[pane.id] for pane in panes]


def _stands(known: Standing | None, pane: Pane, stamp: object | None, oldest: float) -> bool:
    """Whether a session is as it was: tmux tells the same of it, its stamp is the same, and it was not told for too long."""
    if known is None or stamp is None:
        return False
    # the same answer is the same value (`server.list_panes`)
    return known.pane is pane and known.stamp == stamp and known.at > oldest


def _watched_until_changed(machine: Machine, pane: Pane, observed: ObservedState) -> Watched | None:
    """What must not change for a session to be told again as it was judged; None where time alone may change it, or what it
    was judged by is more than can be watched."""
    if machine.standing is None or not pane.spec.get("journal", True):
        return None
    look, profile = observed.look, profile_of(machine, pane)
    kernel, verdict = look.kernel, observed.verdict
    if (look.quiet is not None and look.quiet < machine.timing.observation.window_seconds) or (
        profile and profile.hooks
    ):
        return None
    if verdict.state is State.STARTING or verdict.until or kernel is None or kernel.inner or not kernel.programs:
        return None
    threads = {(program.pid, thread.id) for program in kernel.programs for thread in program.threads}
    if len(threads) > WATCHED_THREADS or any(program.level not in (FULL, WCHAN) for program in kernel.programs):
        return None
    folder = f"{session_folder(machine, pane.id)}/{layout.JOURNAL}"
    newest = max((name for name in machine.transport.files(folder) if name.startswith("seg.")), default="")
    # the shell runs if another program comes to the foreground
    return Watched((*sorted(threads | {(pane.pid, pane.pid)}),), (folder, f"{folder}/{newest}"))


def _why_not_observed(machine: Machine, pane: Pane) -> str | None:
    """Why no more is told of a session than what tmux knows; None if it can be looked at."""
    if pane.format > FORMAT:
        return NEWER
    whole = not pane.spec.get("journal", True) or has_folder(machine, pane)
    return None if whole else FOLDER_GONE
