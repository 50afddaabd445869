"""Bringing sessions back that a dead server or a reboot took: the same command in the same place, a new life.

No program survives the death of its terminal's server, and none is said to. A session keeps its name, its id and its
journal; what it printed before can be read, and a cursor of an earlier life is refused as such.
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
from tmuxctl.terminal.panes import foreign
from tmuxctl.terminal.processes import process
from tmuxctl.terminal.tmux import layout
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import JSON_LIMIT
from tmuxctl.vocabulary import EventKind

if TYPE_CHECKING:
    from tmuxctl.control.lifecycle.creation import PreparedSession
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.sessions.kept_environment import RecoveredVariables

STALE = (layout.EXIT, layout.ENDED, layout.CGROUP, layout.END)
"""Files of an earlier life that would speak of the new one."""


WORDS = {"argv", "cwd", "env", "login", "shell_marks", "applied"}
"""What a spec has to say for its session to be started again."""


AT_ONCE = 4
"""How many sessions are prepared at once, but for slow ones."""


class SecretMissing(Failed):
    """A secret that was given with a session is not to be had again."""


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
    with foreign.hold_lock(f"{machine.transport.home}/{layout.RESTORE_LOCK}", "what is lost"):
        gone = records.lost(machine, finding.panes(machine))
        if names:
            gone = [_named(machine, gone, name) for name in dict.fromkeys(names)]
        else:
            gone = [one for one in gone if one.state is State.LOST]
        found = _Restoration(machine, gone, dry_run, timeout).restored()
        return Restored(all(one.outcome != "lost" for one in found), found, dry_run)


def _named(machine: Machine, gone: Sequence[Session], name: str) -> Session:
    for one in gone:
        if name in (one.name, one.id):
            return one
    if finding.find(machine, name).dead:
        hint = f"start its command again: tmuxctl new {name} --if-exists replace -- COMMAND"
        raise NotFound(f"session {name} is not lost: its program has ended", reason="not_lost", hint=hint)
    raise NotFound(f"session {name} is not lost: it runs", reason="not_lost", hint=f"tmuxctl show {name}")


class _Restoration:
    """Lost sessions that are started again side by side. One that takes long gives way to the next, and one that takes too
    long is given up: its thread is left to itself, and starts nothing any more."""

    def __init__(self, machine: Machine, gone: Sequence[Session], dry_run: bool, timeout: float) -> None:
        self.machine, self.gone, self.dry_run, self.timeout = machine, gone, dry_run, timeout
        self.living = sum(not pane.dead for pane in finding.panes(machine))
        self.call = current()
        self.changed = threading.Condition()
        self.found: dict[str, Restoring] = {}
        self.began: dict[str, float] = {}
        self.starting: set[str] = set()
        """Sessions whose program is being started: what that takes is bounded by tmux's own deadlines."""
        self.silent: Unreachable | None = None

    def restored(self) -> tuple[Restoring, ...]:
        """What became of each."""
        waiting = list(self.gone)
        with self.changed:
            while waiting or self._under_way():
                self.call.check()
                now = time.monotonic()
                for one in self.gone:
                    late = one.id in self._under_way() and now - self.began[one.id] > self.timeout
                    if late and one.id not in self.starting:
                        self.found[one.id] = _failed(one, _late(one, self.timeout))
                recent = sum(
                    now - self.began[name] < self.machine.timing.session.slow_seconds for name in self._under_way()
                )
                if waiting and recent < AT_ONCE and self._fits():
                    self._begin(waiting.pop(0))
                else:
                    self.changed.wait(0.1)
            return tuple(self.found[one.id] for one in self.gone)

    def _fits(self) -> bool:
        """Whether one more may be begun: none beyond the limits while others may yet fail."""
        under_way = len(self._under_way())
        try:
            capacity.check(self.machine, self.living + under_way)
        except TmuxctlError:
            return self.dry_run or not under_way
        return True

    def _under_way(self) -> set[str]:
        return self.began.keys() - self.found.keys()

    def _begin(self, one: Session) -> None:
        self.began[one.id] = time.monotonic()
        try:
            if self.silent:
                raise self.silent  # tmux itself is in the way, and would be for all others
            if not self.dry_run:
                capacity.check(self.machine, self.living)
            threading.Thread(target=self._restore, args=(one,), daemon=True).start()
        except TmuxctlError as error:
            self.found[one.id] = _failed(one, error)
        except RuntimeError:
            # a thread counts as a process (setrlimit(2), RLIMIT_NPROC)
            full = Failed("no more processes can be started here", reason="no_processes", hint="end some programs")
            self.found[one.id] = _failed(one, full)

    def _restore(self, one: Session) -> None:
        try:
            with under(self.call):
                outcome = _restore(self.machine, one, self.dry_run, lambda: self._may_start(one))
        except TmuxctlError as error:
            self.silent = error if isinstance(error, Unreachable) else self.silent
            outcome = _failed(one, error)
        except BaseException as error:
            # a mistake of ours in one session is no reason to leave the others lost
            outcome = _failed(one, Failed(f"internal error: {type(error).__name__}: {error}"[:500], reason="internal"))
        with self.changed:
            self.starting.discard(one.id)
            self.found.setdefault(one.id, outcome)
            if outcome.outcome != "lost":
                self.living += 1
            self.changed.notify()

    def _may_start(self, one: Session) -> bool:
        """Whether the program may be started now: not once the session was given up."""
        with self.changed:
            if one.id in self.found:
                return False
            self.starting.add(one.id)
            return True


def _late(one: Session, seconds: float) -> Timeout:
    hint = f"look at its folder and its plugins: tmuxctl show {one.name}; more time: tmuxctl restore {one.name} --timeout 10m"
    return Timeout(f"{one.name} was not ready to be started within {seconds:g} s", reason="timeout", hint=hint)


def _failed(one: Session, error: TmuxctlError) -> Restoring:
    hint = error.hint or f"its output is still there: tmuxctl log {one.name}"
    # a plugin's own reason says more than that it was a plugin
    reason = str(error.details.get("cause") or error.reason)
    return Restoring(one.name, one.id, "lost", reason=reason, message=error.message, hint=hint)


def _restore(machine: Machine, lost: Session, dry_run: bool, may_start: Callable[[], bool]) -> Restoring:
    kept = kept_of(machine, lost)
    target = process.SessionTarget(lost.id, records.folder(machine, lost.id))
    left = process.find_processes(machine.transport, [target])[lost.id]
    found = environment(machine, kept)
    made = _prepared(machine, kept, found, dry_run)
    if dry_run or not may_start():
        creation.undo_plugins(made)
    else:
        _start(machine, made)
    outcome = "restored" if _resume(machine, kept) else "relaunched"
    return Restoring(
        lost.name,
        lost.id,
        outcome,
        argv=made.spec.argv,
        from_environment=found.from_environment,
        from_login=found.from_login,
        secret_missing=found.missing,
        running=tuple(Stray(row.pid, row.name) for row in left),
    )


def _resume(machine: Machine, kept: KeptSession) -> tuple[str, ...]:
    """The words that make the program go on where it was. None if it tells when a turn begins and never told of one: it has
    nothing to go on with, and may not even start with these words (Claude, measured)."""
    profile = kept.profile
    if profile is None or not profile.resume or profile.hooks is None:
        return profile.resume if profile else ()
    names = {told.on for told in profile.hooks.events if told.means == EventKind.SUBMIT}
    events = machine.transport.files(f"{records.folder(machine, kept.session.id)}/{layout.EVENTS}")
    talked = not names or any(one.partition(".")[0] in names for one in events)
    return profile.resume if talked else ()


def kept_of(machine: Machine, lost: Session) -> KeptSession:
    """What a session's folder tells of how it was started; Failed `no_spec` if that is too little."""
    kept = records.spec(machine, lost.id)
    if not kept.get("asked", {}).keys() >= WORDS:
        # made by an older tmuxctl, or damaged
        raise Failed(f"too little is left of {lost.name} to start it from", reason="no_spec")
    profile = None
    with suppress(NotFound, Denied):
        path = f"{records.folder(machine, lost.id)}/{layout.PROFILE}"
        profile = from_json(machine.transport.read(path, 0, JSON_LIMIT + 1), path)
    _, _, life = str(kept.get("incarnation") or ".1").rpartition(".")
    return KeptSession(lost, kept["spec"], kept["asked"], profile, int(life))


def environment(machine: Machine, kept: KeptSession) -> RecoveredVariables:
    """The variables the session had, as far as they can be had again. Failed `secret_missing` if that leaves out one it was
    given; what only came along may be missing."""
    timing = machine.timing.session
    found = kept_environment.recall(
        kept.spec["env"], login=lambda: login_shell.variables(timing), profile=lambda: _of_profile(kept)
    )
    if found.wanted:
        raise SecretMissing(
            f"{', '.join(found.wanted)} of {kept.session.name} was never stored and is neither in the environment nor in that"
            " of a login",
            reason="secret_missing",
            hint=f"export {found.wanted[0]}=...; tmuxctl restore {kept.session.name}",
        )
    return found


def _of_profile(kept: KeptSession) -> Mapping[str, str]:
    """The variables that the session's profile gives now."""
    from tmuxctl.control.sessions import chosen_profile

    with suppress(TmuxctlError):
        found = chosen_profile.chosen(kept.profile.name, ()) if kept.profile else None
        return found.env if found else {}
    return {}


def _prepared(machine: Machine, kept: KeptSession, found: RecoveredVariables, dry_run: bool) -> PreparedSession:
    """The session as it was asked for, in its next life, with the profile's words to go on where it was."""
    wanted = creation.wanted_again(kept.asked, kept.spec)
    notes = {"given": sorted(found.given), "dry_run": dry_run}
    try:
        spec = creation.specified(machine, wanted, found.env, notes, *_resume(machine, kept))
    except TmuxctlError as error:
        error.hint = f"put it there again, then: tmuxctl restore {wanted.name}"
        raise
    return creation.assemble(
        machine,
        spec,
        kept.session.id,
        kept.life + 1,
        kept.asked,
        plugins(kept, found),
        kept.profile,
        inherited=(*found.inherited, *found.missing),
        places=kept_environment.places(kept.spec["env"]),
    )


def plugins(kept: KeptSession, found: RecoveredVariables) -> list[tuple[str, Mapping[str, Any]]]:
    """The plugins to apply again. Of the environment only the secrets whose place is known are read anew."""
    from tmuxctl import plugin

    applied = [(plugin.load(one["name"]), one["options"]) for one in kept.asked["applied"]]
    again = [(one.name, options) for one, options in applied if one.traits.restored]
    secrets = [f"{name}={reference}" for name, reference in found.references.items()]
    if not secrets:
        return again
    for one, _ in applied:
        if not one.traits.restored and any(option.name == "secret" for option in one.options or ()):
            return [*again, (one.name, {"secret": secrets})]
    raise Failed(f"no plugin of it takes secrets again: {', '.join(found.references)}", reason="plugin")


def _start(machine: Machine, made: PreparedSession) -> None:
    """Write the files of the new life over those of the last one, and start the program.

    Until tmux has it, the session stays what it was: lost, with the output of its earlier lives.
    """
    transport, before = machine.transport, {}
    try:
        for name in STALE:
            with suppress(NotFound):
                before[name] = transport.read(f"{made.folder}/{name}")
            transport.remove(f"{made.folder}/{name}")
        creation.put(machine, made)
        creation.start(machine, made)
    except BaseException as error:
        for name, data in before.items():
            transport.put(f"{made.folder}/{name}", data)
        creation.undo_start(machine, made, error)
        creation.undo_plugins(made)
        raise
