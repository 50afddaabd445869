"""Starting sessions again that were lost with their server or at a reboot: the same command in the same place, a new life.

No program survives the death of its terminal's server. A session keeps its name, its id and its journal; what it printed
before can be read, and a cursor of an earlier life is refused as such.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tmuxctl.control.lifecycle import creation, login_shell
from tmuxctl.control.sessions import capacity, finding, kept_environment, records
from tmuxctl.errors import Denied, Failed, NotFound, Timeout, TmuxctlError, Unreachable
from tmuxctl.model import Session, State
from tmuxctl.operations import current, under
from tmuxctl.program_profile import Profile, from_json
from tmuxctl.results import Restored, Restoring, Stray
from tmuxctl.terminal.panes import journals
from tmuxctl.terminal.processes import process
from tmuxctl.terminal.tmux import layout
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import JSON_LIMIT
from tmuxctl.vocabulary import EventKind

if TYPE_CHECKING:
    from tmuxctl.control.lifecycle.creation import PreparedSession
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.sessions.kept_environment import RecoveredVariables

STALE_FILES = (layout.EXIT, layout.ENDED, layout.CGROUP, layout.END, layout.WRITER_PID)
"""Files of an earlier life that would be taken for those of the new one."""


NEEDED_KEYS = {"argv", "cwd", "env", "login", "shell_marks", "applied"}
"""The keys a record needs for its session to be started again."""


AT_ONCE = 4
"""How many sessions are prepared at once, but for slow ones."""


class SecretMissing(Failed):
    """A secret that was given with a session cannot be found again."""


class KeptSession(NamedTuple):
    """What is left of a session: the files in its folder, read."""

    session: Session
    spec: Mapping[str, Any]
    asked: Mapping[str, Any]
    profile: Profile | None
    life: int


def restore(
    machine: Machine,
    names: Sequence[str] = (),
    *,
    dry_run: bool = False,
    timeout: float = TIMING.session.prepare_seconds,
) -> Restored:
    """Start every lost session again, or those named; what became of each, in the order of their names.

    Each has `timeout` seconds to be prepared, and holds up no other. NotFound if a named one is neither lost nor ended; a
    session that runs is left as it is.
    """
    with machine.hold_lock(f"{machine.transport.home}/{layout.RESTORE_LOCK}", "what is lost"):
        lost = records.list_lost(machine, finding.list_panes(machine))
        if names:
            lost = [_find_lost(machine, lost, name) for name in dict.fromkeys(names)]
        else:
            lost = [session for session in lost if session.state is State.LOST]
        outcomes = _Restoration(machine, lost, dry_run, timeout).restore_all()
        return Restored(all(each.outcome != "lost" for each in outcomes), outcomes, dry_run)


def _find_lost(machine: Machine, lost: Sequence[Session], name: str) -> Session:
    for session in lost:
        if name in (session.name, session.id):
            return session
    if finding.find_session(machine, name).dead:
        hint = f"start its command again: tmuxctl new {name} --if-exists replace -- COMMAND"
        raise NotFound(f"session {name} is not lost: its program has ended", reason="not_lost", hint=hint)
    raise NotFound(f"session {name} is not lost: it runs", reason="not_lost", hint=f"tmuxctl show {name}")


class _Restoration:
    """Lost sessions that are started again side by side. One that takes long does not delay the next, and one that takes
    too long is given up: its thread goes on, and starts nothing any more."""

    def __init__(self, machine: Machine, lost: Sequence[Session], dry_run: bool, timeout: float) -> None:
        self.machine, self.lost, self.dry_run, self.timeout = machine, lost, dry_run, timeout
        self.living = sum(not pane.dead for pane in finding.list_panes(machine))
        self.call = current()
        self.changed = threading.Condition()
        self.outcomes: dict[str, Restoring] = {}
        self.began: dict[str, float] = {}
        self.starting: set[str] = set()
        """Sessions whose program is being started: what that takes is bounded by tmux's own deadlines."""
        self.tmux_error: Unreachable | None = None

    def restore_all(self) -> tuple[Restoring, ...]:
        """What became of each."""
        waiting = list(self.lost)
        with self.changed:
            while waiting or self._under_way():
                self.call.check()
                now = time.monotonic()
                for session in self.lost:
                    late = session.id in self._under_way() and now - self.began[session.id] > self.timeout
                    if late and session.id not in self.starting:
                        self.outcomes[session.id] = _failed_outcome(session, _late_error(session, self.timeout))
                recent = sum(
                    now - self.began[name] < self.machine.timing.session.slow_seconds for name in self._under_way()
                )
                if waiting and recent < AT_ONCE and self._has_room():
                    self._begin(waiting.pop(0))
                else:
                    self.changed.wait(0.1)
            return tuple(self.outcomes[session.id] for session in self.lost)

    def _has_room(self) -> bool:
        """Whether one more may be begun: none beyond the limits while others may yet fail."""
        under_way = len(self._under_way())
        try:
            capacity.check_capacity(self.machine, self.living + under_way)
        except TmuxctlError:
            return self.dry_run or not under_way
        return True

    def _under_way(self) -> set[str]:
        return self.began.keys() - self.outcomes.keys()

    def _begin(self, session: Session) -> None:
        self.began[session.id] = time.monotonic()
        try:
            if self.tmux_error:
                raise self.tmux_error  # tmux does not answer, and would not for the others
            if not self.dry_run:
                capacity.check_capacity(self.machine, self.living)
            threading.Thread(target=self._restore, args=(session,), daemon=True).start()
        except TmuxctlError as error:
            self.outcomes[session.id] = _failed_outcome(session, error)
        except RuntimeError:
            # a thread counts as a process (setrlimit(2), RLIMIT_NPROC)
            full = Failed("no more processes can be started here", reason="no_processes", hint="end some programs")
            self.outcomes[session.id] = _failed_outcome(session, full)

    def _restore(self, session: Session) -> None:
        try:
            with under(self.call):
                outcome = _restore_one(self.machine, session, self.dry_run, lambda: self._may_start(session))
        except TmuxctlError as error:
            self.tmux_error = error if isinstance(error, Unreachable) else self.tmux_error
            outcome = _failed_outcome(session, error)
        except BaseException as error:
            # a bug that one session meets does not leave the others lost
            internal = Failed(f"internal error: {type(error).__name__}: {error}"[:500], reason="internal")
            outcome = _failed_outcome(session, internal)
        with self.changed:
            self.starting.discard(session.id)
            self.outcomes.setdefault(session.id, outcome)
            if outcome.outcome != "lost":
                self.living += 1
            self.changed.notify()

    def _may_start(self, session: Session) -> bool:
        """Whether the program may be started now: not once the session was given up."""
        with self.changed:
            if session.id in self.outcomes:
                return False
            self.starting.add(session.id)
            return True


def _late_error(session: Session, seconds: float) -> Timeout:
    name = session.name
    hint = f"look at its folder and its plugins: tmuxctl show {name}; more time: tmuxctl restore {name} --timeout 10m"
    return Timeout(f"{name} was not ready to be started within {seconds:g} s", reason="timeout", hint=hint)


def _failed_outcome(session: Session, error: TmuxctlError) -> Restoring:
    hint = error.hint or f"its output is still there: tmuxctl log {session.name}"
    # a plugin's own reason says more than that it was a plugin
    reason = str(error.details.get("cause") or error.reason)
    return Restoring(session.name, session.id, "lost", reason=reason, message=error.message, hint=hint)


def _restore_one(machine: Machine, lost: Session, dry_run: bool, may_start: Callable[[], bool]) -> Restoring:
    kept = read_kept_session(machine, lost)
    target = process.SessionTarget(lost.id, records.session_folder(machine, lost.id))
    left = process.find_processes(machine.transport, [target])[lost.id]
    variables = recover_environment(machine, kept)
    made = _prepare_next_life(machine, kept, variables, dry_run)
    if dry_run or not may_start():
        creation.undo_plugins(machine, made)
    else:
        _start_next_life(machine, made)
    outcome = "restored" if _resume_words(machine, kept) else "relaunched"
    return Restoring(
        lost.name,
        lost.id,
        outcome,
        argv=made.spec.argv,
        from_environment=variables.from_environment,
        from_login=variables.from_login,
        secret_missing=variables.missing,
        running=tuple(Stray(row.pid, row.name) for row in left),
    )


def _resume_words(machine: Machine, kept: KeptSession) -> tuple[str, ...]:
    """The words that make the program go on where it was. None if its hooks report beginnings of turns and reported none: it
    has nothing to go on with, and may not even start with these words (Claude, measured)."""
    profile = kept.profile
    if profile is None or not profile.resume or profile.hooks is None:
        return profile.resume if profile else ()
    names = {told.on for told in profile.hooks.events if told.means == EventKind.SUBMIT}
    events = machine.transport.files(f"{records.session_folder(machine, kept.session.id)}/{layout.EVENTS}")
    talked = not names or any(one.partition(".")[0] in names for one in events)
    return profile.resume if talked else ()


def read_kept_session(machine: Machine, lost: Session) -> KeptSession:
    """What a session's folder keeps of how it was started; Failed `no_spec` if that is too little."""
    kept = records.read_spec(machine, lost.id)
    if not kept.get("asked", {}).keys() >= NEEDED_KEYS:
        # made by an older tmuxctl, or damaged
        raise Failed(f"too little is kept of {lost.name} to start it again", reason="no_spec")
    profile = None
    with suppress(NotFound, Denied):
        path = f"{records.session_folder(machine, lost.id)}/{layout.PROFILE}"
        profile = from_json(machine.transport.read(path, 0, JSON_LIMIT + 1), path)
    _, _, life = str(kept.get("incarnation") or ".1").rpartition(".")
    return KeptSession(lost, kept["spec"], kept["asked"], profile, int(life))


def recover_environment(machine: Machine, kept: KeptSession) -> RecoveredVariables:
    """The variables the session had, as far as they can be had again. Failed `secret_missing` if that leaves out one it was
    given; what only came along may be missing."""
    timing, place = machine.timing.session, machine.transport.starting_place()
    variables = kept_environment.recover_variables(
        kept.spec["env"],
        place.environment,
        # of another machine its shell's variables are all that is known: that shell was a login's
        login=lambda: place.environment if machine.address else login_shell.login_variables(timing),
        profile=lambda: _profile_variables(kept),
    )
    if variables.wanted:
        raise SecretMissing(
            f"{', '.join(variables.wanted)} of {kept.session.name} was never stored and is neither in the environment nor in that"
            " of a login",
            reason="secret_missing",
            hint=f"export {variables.wanted[0]}=...; tmuxctl restore {kept.session.name}",
        )
    return variables


def _profile_variables(kept: KeptSession) -> Mapping[str, str]:
    """The variables that the session's profile gives now."""
    from tmuxctl.control.sessions import chosen_profile

    with suppress(TmuxctlError):
        found = chosen_profile.choose_profile(kept.profile.name, ()) if kept.profile else None
        return found.env if found else {}
    return {}


def _prepare_next_life(
    machine: Machine, kept: KeptSession, variables: RecoveredVariables, dry_run: bool
) -> PreparedSession:
    """The session as it was asked for, in its next life, with the profile's words to go on where it was."""
    request = creation.request_again(kept.asked, kept.spec)
    notes = {"given": sorted(variables.given), "dry_run": dry_run}
    try:
        spec = creation.build_spec(machine, request, variables.env, notes, *_resume_words(machine, kept))
    except TmuxctlError as error:
        error.hint = f"put it there again, then: tmuxctl restore {request.name}"
        raise
    return creation.assemble(
        machine,
        spec,
        kept.session.id,
        kept.life + 1,
        kept.asked,
        plugins_again(kept, variables),
        kept.profile,
        inherited=(*variables.inherited, *variables.missing),
        places=kept_environment.list_places(kept.spec["env"]),
    )


def plugins_again(kept: KeptSession, variables: RecoveredVariables) -> list[tuple[str, Mapping[str, Any]]]:
    """The plugins to apply again. Of the environment only the secrets whose place is known are read anew."""
    from tmuxctl import plugin

    applied = [(plugin.load(one["name"]), one["options"]) for one in kept.asked["applied"]]
    again = [(one.name, options) for one, options in applied if one.traits.restored]
    secrets = [f"{name}={reference}" for name, reference in variables.references.items()]
    if not secrets:
        return again
    for one, _ in applied:
        if not one.traits.restored and any(option.name == "secret" for option in one.options or ()):
            return [*again, (one.name, {"secret": secrets})]
    raise Failed(
        f"none of its plugins can read these secrets again: {', '.join(variables.references)}", reason="plugin"
    )


def _start_next_life(machine: Machine, made: PreparedSession) -> None:
    """Write the files of the new life over those of the last one, and start the program.

    Until tmux has it, the session stays what it was: lost, with the output of its earlier lives.
    """
    transport, before, seconds = machine.transport, {}, machine.timing.session.close_seconds
    if journals.is_writing(transport, made.folder):
        # on a loaded machine it may outlive its server by so much that it would end the new journal
        journals.end_writer(transport, made.folder, seconds)
    try:
        for name in STALE_FILES:
            with suppress(NotFound):
                before[name] = transport.read(f"{made.folder}/{name}", 0, JSON_LIMIT)
            transport.remove(f"{made.folder}/{name}")
        creation.write_files(machine, made)
        creation.start_session(machine, made)
        # until then the journal counts as ended, and a wait for output would be refused
        journals.await_writer(transport, made.folder, seconds)
    except BaseException as error:
        for name, data in before.items():
            transport.put(f"{made.folder}/{name}", data)
        creation.undo_start(machine, made, error)
        creation.undo_plugins(machine, made)
        raise
