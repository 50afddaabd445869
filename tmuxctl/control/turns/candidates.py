"""Several programs for one task: in which order they are tried, which of them is started, and who was passed over and why.

Candidates are names of profiles. What is remembered of them, whose turn it was, who is limited until when and whose limit ended
when, lies in a folder of the server's state, which is not there before somebody uses candidates: until then they cost one look.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tmuxctl.control.lifecycle import creation
from tmuxctl.control.observation import observing
from tmuxctl.control.sessions import chosen_profile, finding, summaries
from tmuxctl.errors import Denied, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.model import NOTHING, Session, State
from tmuxctl.program_profile import Profile
from tmuxctl.results import Passed, Plan
from tmuxctl.terminal.tmux import layout
from tmuxctl.transport.base import read_object
from tmuxctl.untrusted import to_record
from tmuxctl.value import changed
from tmuxctl.vocabulary import Detail

if TYPE_CHECKING:
    from tmuxctl.control.lifecycle.creation import SessionRequest
    from tmuxctl.control.machine import Machine

MOST = 16
"""Candidates in one list: it is told with every session, in an option of tmux."""

REMEMBERED_MOST = 200
"""Lists whose last turn is remembered, and programs whose last limit is."""

Kept = TypeVar("Kept", str, float)

SAID_MOST = 200
"""Characters of what a program said last."""

STACK = re.compile(r"\d+: |at (?:\S+ \(|/|\S+:\d)|File \"|note: |stack backtrace:|Traceback |Node\.js v|[\W\d]+$")
"""How the lines begin that Rust, Node.js and Python print around an error, and a line without words."""

ERROR = re.compile(
    r"\b(?:errors?|fatal|panic|cannot|can't|could not|unable|fail(?:ed|ure)|denied|no such|not found|invalid|missing)\b"
    r"|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)


class Candidate(NamedTuple):
    """One of several programs: what it was called by, and its profile."""

    given: str
    profile: Profile

    @property
    def name(self) -> str:
        return self.profile.name


def known(names: Sequence[str]) -> tuple[Candidate, ...]:
    """The candidates of these names, each once. A mistake in the list is told, not passed over: NotFound `no_profile`,
    Usage `bad_profile`, `no_command` for a profile that says no command to start."""
    found: dict[str, Candidate] = {}
    for given in names:
        profile = chosen_profile.choose_profile(_whole(given), ())
        if profile is None or not profile.command:
            hint = f"add to the profile: command: [{given}]"
            raise Usage(
                f"the profile of candidate {ascii(given)[:60]} names no command to start",
                reason="no_command",
                hint=hint,
            )
        found.setdefault(profile.name, Candidate(_whole(given), profile))
    if len(found) > MOST:
        hint = "leave some out"
        raise Usage(f"{len(found)} candidates are too many (at most {MOST})", reason="too_large", hint=hint)
    return tuple(found.values())


def _whole(given: str) -> str:
    """A file's name as it is found from any folder; a profile's as it is."""
    if given in ("auto", "none", ""):
        raise Usage(f"{given!r} is not a candidate", reason="bad_option", hint="name profiles: tmuxctl profile ls")
    path = "/" in given or given.endswith(".yaml")
    return os.path.abspath(os.path.expanduser(given)) if path else given


def kept(names: Sequence[str], passed: list[Passed]) -> tuple[Candidate, ...]:
    """The candidates a session was started with; one whose profile is gone, or broken by now, is among the passed."""
    found: list[Candidate] = []
    for given in names:
        try:
            found += known((given,))
        except (Denied, NotFound, Usage) as error:
            passed.append(Passed(given, error.reason, error.message, error.hint))
    return tuple(found)


def ordered(
    found: Sequence[Candidate], route: str, last: str | None = None, limits: Mapping[str, float] = NOTHING
) -> tuple[Candidate, ...]:
    """The candidates in the order in which they are tried. `last` is the name of the one that was taken last; `limits` when
    the last limit of each ended or will, in seconds since 1970."""
    if route == "cheapest":
        # what nobody knows the cost of is dearest
        return tuple(sorted(found, key=lambda one: (one.profile.cost is None, one.profile.cost or 0.0)))
    if route == "least-limited":
        return tuple(sorted(found, key=lambda one: limits.get(one.name, 0.0)))
    names = [one.name for one in found]
    at = names.index(last) + 1 if route == "round-robin" and last in names else 0
    return (*found[at:], *found[:at])


# starting one


def new(machine: Machine, wanted: SessionRequest, names: Sequence[str], route: str, *, wait: bool) -> Session:
    """Start the first candidate, by the route, that is installed and starts; errors as `creation.new`, and Failed
    `no_candidate` that tells of each why not.

    `wait`: until it is ready; else it is not known yet whether it goes on, and it is taken for started.
    """
    found = _checked(wanted, names)
    if there := _there(machine, wanted):
        return observing.wait_until_ready(machine, there) if wait else there
    order, reserved = _reserved(machine, wanted, found, route)
    passed: list[Passed] = []
    for one in order:
        made = _started(machine, as_wanted(wanted, one, found, route), one, wait=wait)
        if not isinstance(made, Passed):
            _note_turn(machine, found, one.name, reserved)
            return changed(made, passed=tuple(passed))
        passed.append(made)
    raise none_left("no candidate could be started", passed)


def plan(machine: Machine, wanted: SessionRequest, names: Sequence[str], route: str) -> Plan:
    """What `new` would do, and why it would take none of the others; nothing is written and nothing starts."""
    found = _checked(wanted, names)
    order = ordered(found, route, _last_taken(machine, found), limits(machine, route))
    missing = {one.name: not_installed(machine, wanted, one) for one in order}
    taken = next((one for one in order if missing[one.name] is None), None)
    if taken is None:
        raise none_left("no candidate could be started", [one for one in missing.values() if one])
    later = f"comes after {taken.name}"
    passed = [missing[one.name] or Passed(one.name, "later", later) for one in order if one is not taken]
    return changed(creation.plan(machine, as_wanted(wanted, taken, found, route)), passed=tuple(passed))


def _checked(wanted: SessionRequest, names: Sequence[str]) -> tuple[Candidate, ...]:
    if wanted.command or wanted.profile != "auto":
        what = "a command" if wanted.command else "--profile"
        hint = "the profiles say what is started: tmuxctl new NAME --candidates claude,codex"
        raise Usage(f"--candidates and {what} exclude each other", reason="bad_option", hint=hint)
    return known(names)


def _there(machine: Machine, wanted: SessionRequest) -> Session | None:
    """The session that is to be reused, if it is there and alive: then there is nothing to choose."""
    if wanted.if_exists != "reuse" or wanted.name is None:
        return None
    with suppress(NotFound, Unreachable):
        pane = finding.find_session(machine, wanted.name)
        return None if pane.dead else summaries.describe_session(machine, pane)
    return None


def as_wanted(wanted: SessionRequest, one: Candidate, found: Sequence[Candidate], route: str) -> SessionRequest:
    """What is to be started, with this candidate for its program; its spec keeps the whole list."""
    kept = {"candidates": [each.given for each in found], "route": route}
    return wanted._replace(profile=one.given, also={**wanted.also, **kept})


def not_installed(machine: Machine, wanted: SessionRequest, one: Candidate) -> Passed | None:
    """Why a candidate's program cannot be found where it is to be started, or None if it can."""
    place = machine.transport.starting_place()
    env = {**(place.environment if wanted.base is None else wanted.base), **one.profile.env, **wanted.env}
    folder = place.expand(wanted.cwd or "")
    if machine.transport.which(one.profile.command[0], env.get("PATH", os.defpath), folder):
        return None
    return _missing(one)


def _missing(one: Candidate) -> Passed:
    said = f"install it: {one.profile.install}" if one.profile.install else "is it installed and in PATH?"
    message = f"{ascii(one.profile.command[0])} is not installed"
    return Passed(one.name, "not_installed", message, f"{one.name}: {said}")


def _started(machine: Machine, wanted: SessionRequest, one: Candidate, *, wait: bool) -> Session | Passed:
    """The session of this candidate, or why there is none: its name is free again then."""
    if missing := not_installed(machine, wanted, one):
        return missing
    try:
        made = creation.new(machine, wanted)
    except Failed as error:
        if error.reason != "command_not_found":
            raise
        return _missing(one)
    if not wait:
        return made
    ready = observing.wait_until_ready(machine, made)
    why = unfit(machine, ready)
    if why is None:
        return ready
    from tmuxctl.control.lifecycle import ending

    ending.end_sessions(machine, [finding.find_session(machine, ready.name)])
    if why.reason == "limited":
        note_limit(machine, one.name, None)
    # its name is another's now
    return changed(why, session=None)


def unfit(machine: Machine, made: Session) -> Passed | None:
    """Why a session that was just started is of no use: it has ended, or says that its limit is used up. Else None."""
    if made.state is State.EXITED:
        return Passed(
            made.profile, "exited", f"ended at its start{_how(made)}{_said(machine, made)}", session=made.name
        )
    if made.state is State.IDLE and made.detail == Detail.LIMITED:
        return Passed(made.profile, "limited", f"is limited{_said(machine, made)}", session=made.name)
    return None


def _how(made: Session) -> str:
    if made.signal:
        return f" by signal {made.signal}"
    return "" if made.exit_status is None else f" with status {made.exit_status}"


def _said(machine: Machine, made: Session) -> str:
    """What a session's screen says of its end."""
    with suppress(TmuxctlError):
        from tmuxctl.control.output import captured

        words = last_words(captured.screen(machine, made.name).text)
        return f": {words[:SAID_MOST]}" if words else ""
    return ""


def last_words(screen: str) -> str:
    """The last line that says something of an error, else the last that is no part of a stack; empty if there is none."""
    lines = [line.strip() for line in screen.splitlines()]
    lines = [line for line in lines if line and not STACK.match(line)]
    telling = [line for line in lines if ERROR.search(line)]
    return (telling or lines or [""])[-1]


def none_left(what: str, passed: Sequence[Passed], **details: object) -> Failed:
    """The error when every candidate was passed over: each with its reason."""
    each = "; ".join(f"{one.profile or one.session}: {one.message}" for one in passed)
    hints = dict.fromkeys(one.hint for one in passed if one.hint)
    told = [{name: getattr(one, name) for name in Passed._names} for one in passed]
    hint = "; ".join(hints) or "tmuxctl profile ls"
    return Failed(f"{what}: {each}", reason="no_candidate", hint=hint, candidates=told, **details)


# what is remembered


def folder(machine: Machine) -> str:
    """Where it is kept."""
    return f"{machine.transport.home}/{layout.CANDIDATES}"


def _key(found: Sequence[Candidate]) -> str:
    return " ".join(one.given for one in found)


def _reserved(
    machine: Machine, wanted: SessionRequest, found: Sequence[Candidate], route: str
) -> tuple[tuple[Candidate, ...], str | None]:
    """The order for one more session. By turns, the turn is taken at once, so that another process has the next; then the second
    value is the name of the candidate whose turn it is."""
    if route != "round-robin":
        return ordered(found, route, limits=limits(machine, route)), None
    with _alone(machine):
        order = ordered(found, route, _last_taken(machine, found))
        there = next((one for one in order if not_installed(machine, wanted, one) is None), None)
        if there is not None:
            _remember(machine, layout.TURNS, _key(found), there.name)
    return order, there.name if there else None


def _note_turn(machine: Machine, found: Sequence[Candidate], started: str, reserved: str | None) -> None:
    """Keep which candidate was started. If its turn was reserved that is known, and another process may have had the next since."""
    if started == reserved:
        return
    with _alone(machine):
        if reserved is None or _last_taken(machine, found) == reserved:
            _remember(machine, layout.TURNS, _key(found), started)


def _alone(machine: Machine) -> AbstractContextManager[None]:
    machine.transport.make_folder(folder(machine))
    return machine.hold_lock(f"{folder(machine)}/{layout.TURNS_LOCK}", "the turns of candidates")


def _last_taken(machine: Machine, found: Sequence[Candidate]) -> str | None:
    """Who of this list was taken last."""
    return _remembered(machine, layout.TURNS, str).get(_key(found))


def limits(machine: Machine, route: str) -> Mapping[str, float]:
    """When the last limit of each program ended or will, in seconds since 1970; nothing for a route that does not ask for it."""
    return _remembered(machine, layout.LIMITS, float) if route == "least-limited" else NOTHING


def note_limit(machine: Machine, name: str, until: str | None) -> None:
    """Remember that this program has met its limit, and until when that holds (ISO-8601), if it is known."""
    with _alone(machine):
        _remember(machine, layout.LIMITS, name, max(machine.clock.wall(), seconds(until or "") or 0.0))


def _remembered(machine: Machine, file: str, kind: type[Kept]) -> dict[str, Kept]:
    """What a file of the folder holds."""
    with suppress(NotFound, ValueError):
        found = read_object(machine.transport, f"{folder(machine)}/{file}")
        return {name: value for name, value in found.items() if isinstance(value, kind)}
    return {}


def _remember(machine: Machine, file: str, name: str, value: Kept) -> None:
    """Put this into a file of the folder, in the place of what it held under the name."""
    before: dict[str, Kept] = _remembered(machine, file, type(value))
    before.pop(name, None)
    newest = [*before.items(), (name, value)][-REMEMBERED_MOST:]
    machine.transport.put(f"{folder(machine)}/{file}", to_record(dict(newest)))


def limited(machine: Machine, session_id: str) -> str | None:
    """Until when a session is limited (ISO-8601), as it said itself; None if that is not known, or over."""
    path = f"{folder(machine)}/{layout.LIMITED}{session_id}"
    try:
        until = machine.transport.read(path, 0, 40).decode(errors="replace").strip()
    except (NotFound, Denied):
        return None
    if (moment := seconds(until)) is not None and moment > machine.clock.wall():
        return until
    machine.transport.remove(path)
    return None


def note_limited(machine: Machine, session_id: str, until: str | None) -> None:
    """Remember until when a session is limited. None, or a time that cannot be read, is not remembered: it is tried again."""
    if until is None or seconds(until) is None:
        machine.transport.remove(f"{folder(machine)}/{layout.LIMITED}{session_id}")
        return
    machine.transport.make_folder(folder(machine))
    for name in machine.transport.files(folder(machine)):
        if name.startswith(layout.LIMITED):
            # what is over goes, that of sessions which are gone too
            limited(machine, name.removeprefix(layout.LIMITED))
    machine.transport.put(f"{folder(machine)}/{layout.LIMITED}{session_id}", until.encode())


def seconds(until: str) -> float | None:
    """A time in ISO-8601 as seconds of the wall clock; without a zone it is UTC. None if it is none."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(until.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
