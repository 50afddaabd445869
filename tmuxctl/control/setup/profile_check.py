"""Whether a profile fits the version of its program that is installed: the program is started once, in a folder of its own and
with nothing typed into it, and each rule is tried on what it shows; then it is left by the profile's keys."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.control import foreground
from tmuxctl.control.input import sending
from tmuxctl.control.lifecycle import creation, ending
from tmuxctl.control.lifecycle.creation import SessionRequest
from tmuxctl.control.observation.observer import Observer
from tmuxctl.control.observation.observing import SETTLED, StabilityTracker
from tmuxctl.control.sessions import finding
from tmuxctl.control.setup import profiles
from tmuxctl.control.turns import candidates, commands
from tmuxctl.errors import Failed, TmuxctlError, Usage
from tmuxctl.model import State
from tmuxctl.operations import current
from tmuxctl.profile_files import library
from tmuxctl.program_profile import RULES, Profile
from tmuxctl.reading.answers import input_box
from tmuxctl.reading.evidence.tty_waits import list_program_names
from tmuxctl.reading.text import patterns
from tmuxctl.results import Check, ProfileChecked
from tmuxctl.terminal.input.keys import tmux_keys
from tmuxctl.terminal.tmux import lease
from tmuxctl.vocabulary import InputKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.evidence import Look
    from tmuxctl.reading.state.judging import Verdict

VERSION_BYTES = 1 << 16
"""How much of what a program prints as its version is read."""

VERSION = re.compile(r"\d+\.\d+")

WORDS_MOST = 120
"""Characters of what a program shows that are told."""


class _Startup(NamedTuple):
    """What was seen of a program that was started: the last verdict and look, and the rules that fitted in any look."""

    verdict: Verdict
    look: Look
    fitted: dict[tuple[str, str], str]
    seconds: float
    programs: tuple[str, ...]


def check_profile(machine: Machine, name: str, command: Sequence[str], *, timeout: float) -> ProfileChecked:
    """Start the profile's program, or `command`, and compare what it shows with the profile.

    `timeout` is how many seconds it may take to be ready. Failed `not_installed`; Usage `no_command` if the profile is for
    no program by a plain name, or none that can be started alone.
    """
    profile = library.load(name, keys=tmux_keys)
    place = machine.transport.starting_place()
    program, *words = tuple(command) or _own_command(profile)
    # it is started in another folder
    argv = (place.expand(program) if "/" in program else program, *words)
    request = SessionRequest(name=f"check-{os.urandom(4).hex()}", command=argv, profile=name, shell_marks=False)
    if not machine.transport.which(argv[0], place.environment.get("PATH", os.defpath), place.folder):
        hint = f"install it: {profile.install}" if profile.install else "is it installed and in PATH?"
        raise Failed(f"{ascii(argv[0])} is not installed", reason="not_installed", hint=hint)
    folder = f"{machine.transport.home}/{request.name}"
    machine.transport.make_folder(folder)
    try:
        version = _read_version(machine, argv, folder)
        checks = tuple(_check_program(machine, profile, request._replace(cwd=folder), timeout))
    finally:
        machine.transport.remove(folder)
    tests = profiles.test((name,))
    judged = f"{tests.passed} judged right, {tests.failed} not" if tests.tests else "the profile has none"
    mend = f"tmuxctl profile test {name}" if tests.failed else None
    checks += (Check("saved screens", tests.ok if tests.tests else None, judged, mend),)
    ok = all(one.ok is not False for one in checks)
    return ProfileChecked(ok, profile.name, argv, version, profile.notes, checks)


def _own_command(profile: Profile) -> tuple[str, ...]:
    plain = [one for one in profile.argv0 if not re.search(r"[*?]", one)]
    if not (profile.command or plain):
        hint = f"tmuxctl profile check {profile.name} -- CMD"
        raise Usage(f"profile {profile.name} names no command to start", reason="no_command", hint=hint)
    return profile.command or (plain[0],)


def _read_version(machine: Machine, argv: Sequence[str], folder: str) -> str | None:
    """The line with a version that the program prints for --version, None if it prints none."""
    request = SessionRequest(command=(argv[0], "--version"), cwd=folder, profile="none", shell_marks=False, linger=True)
    with suppress(TmuxctlError):
        ran = commands.run(machine, request, timeout=machine.timing.profile.version_seconds, max_bytes=VERSION_BYTES)
        lines = [line.strip() for line in ran.data.decode(errors="replace").splitlines() if VERSION.search(line)]
        return lines[0][:WORDS_MOST] if lines and ran.exit_status == 0 else None
    return None


def _check_program(machine: Machine, profile: Profile, request: SessionRequest, timeout: float) -> Iterator[Check]:
    made = creation.new(machine, request)
    try:
        tracker = StabilityTracker(machine, Observer(machine, finding.find_session(machine, made.id)), None)
        startup = _observe_startup(tracker, profile, timeout)
        yield _check_ready(profile, startup, tracker)
        yield from _check_rules(profile, startup)
        if startup.verdict.state is State.IDLE:
            yield from _check_surroundings(profile, startup)
            yield _check_exit(machine, tracker, profile)
    finally:
        with suppress(TmuxctlError):
            ending.end_sessions(machine, [finding.find_session(machine, made.id)])


def _observe_startup(tracker: StabilityTracker, profile: Profile, timeout: float) -> _Startup:
    """Observe a program until it waits, asks or has ended, for at most `timeout` seconds."""
    began = time.monotonic()
    deadline = began + (current().left(timeout) or 0.0)
    fitted: dict[tuple[str, str], str] = {}
    programs: tuple[str, ...] = ()
    while True:
        current().check()
        holds = tracker.observe()
        look = tracker.newest
        programs = tuple(list_program_names(look.kernel)) or programs
        for group in RULES:
            for rule in getattr(profile, group):
                if (group, rule.id) not in fitted and (
                    match := patterns.find_match((rule,), patterns.read_screen(look))
                ):
                    row = match.region[match.row_start :].partition("\n")[0]
                    fitted[group, rule.id] = row.strip()[:WORDS_MOST]
        ended = holds and tracker.verdict.state in (*SETTLED, State.EXITED)
        if ended or time.monotonic() >= deadline:
            return _Startup(tracker.verdict, look, fitted, time.monotonic() - began, programs)
        time.sleep(min(tracker.seconds_until_due(), 0.2))


def _check_ready(profile: Profile, startup: _Startup, tracker: StabilityTracker) -> Check:
    verdict, name = startup.verdict, profile.name
    if verdict.state is State.IDLE or verdict.kind is InputKind.PAGER:
        return Check("ready", True, f"{verdict.kind} after {startup.seconds:.1f} s: {verdict.why}")
    if verdict.state is State.ASKING:
        hint = (
            f"answer that by hand once, and check again: tmuxctl new -- {' '.join(tracker.observer.pane.spec['argv'])}"
        )
        question = verdict.asking.question if verdict.asking else ""
        return Check("ready", False, f"it asks first ({verdict.kind}): {question}", hint)
    if verdict.state is State.EXITED:
        words = candidates.last_words(startup.look.screen)[:WORDS_MOST]
        hint = f"name a command that keeps running: tmuxctl profile check {name} -- CMD"
        return Check("ready", False, f"{verdict.why}" + (f": {words}" if words else ""), hint)
    hint = "is this another version? look: tmuxctl new NAME --profile none -- CMD"
    return Check("ready", False, f"{verdict.state.value} after {startup.seconds:.0f} s: {verdict.why}", hint)


def _check_rules(profile: Profile, startup: _Startup) -> Iterator[Check]:
    """Each rule with the row that it fitted. A rule that did not fit is no failure, but for the prompt of a waiting program."""
    for group in RULES:
        rules = getattr(profile, group)
        found = [rule.id for rule in rules if (group, rule.id) in startup.fitted]
        if group == "prompt" and rules and not found and startup.verdict.state is State.IDLE:
            left = startup.look.left.strip()[-WORDS_MOST:]
            stands = f"left of the cursor is {left!r}" if left else "there is no text left of the cursor"
            hint = f"is this another version? add its prompt: tmuxctl profile show {profile.name}"
            yield Check("prompt", False, f"no rule matches, though the program waits; {stands}", hint)
            continue
        if group == "errors" and found and startup.verdict.state is State.IDLE:
            # what fits before anything was typed may be no error
            yield Check("errors", None, f"{', '.join(found)} match on the first screen")
        yield from (Check(f"{group}: {one}", True, startup.fitted[group, one]) for one in found)
        if missed := [rule.id for rule in rules if rule.id not in found]:
            yield Check(group, None, f"not seen: {', '.join(missed)}")


def _check_surroundings(profile: Profile, startup: _Startup) -> Iterator[Check]:
    """The checks of a waiting program's name, title and input box."""
    look = startup.look
    if profile.foreground and startup.programs:
        known = any(foreground.is_called(profile, one) for one in startup.programs)
        told = ", ".join(startup.programs)
        hint = None if known else f"detect: {{foreground: [{startup.programs[-1]}]}}"
        yield Check("detect: foreground", True if known else None, f"the program is called {told}", hint)
    if profile.title_idle or profile.title_busy:
        busy = patterns.fits(profile.title_busy, look.title)
        fits = patterns.fits(profile.title_idle, look.title)
        yield Check("title", False if busy else fits or None, f"{look.title!r}" + (" fits `busy`" if busy else ""))
    if profile.submit.mode == "paste":
        empty = input_box.is_empty(look, profile)
        words = {True: "empty, with the cursor in it", False: "there is text in it", None: "not found by its prompt"}
        yield Check("submit: input box", True if empty else None, words[empty])


def _check_exit(machine: Machine, tracker: StabilityTracker, profile: Profile) -> Check:
    """Whether the profile's keys, or else its words, end the program."""
    pane, holder = tracker.observer.pane, lease.LeaseHolder.new()
    with suppress(TmuxctlError):
        lease.take_lease(machine.io, holder, pane)
        sending.press_keys(machine, pane, profile.exit_keys, holder)
        if _await_end(machine, pane.id):
            return Check("exit", True, f"{' '.join(profile.exit_keys)} ends it")
    with suppress(TmuxctlError):
        lease.release_lease(machine.io, holder, pane.name)
        if profile.exit_send is not None:
            sending.send(machine, pane.name, profile.exit_send.encode())
        if _await_end(machine, pane.id):
            return Check("exit", True, f"{profile.exit_send} ends it")
    tried = " and ".join(filter(None, (" ".join(profile.exit_keys), profile.exit_send)))
    return Check("exit", False, f"it does not end after {tried}", "exit: {send: quit, keys: [C-d]}")


def _await_end(machine: Machine, session: str) -> bool:
    deadline = time.monotonic() + machine.timing.profile.exit_seconds
    while time.monotonic() < deadline:
        current().check()
        if finding.find_session(machine, session).dead:
            return True
        time.sleep(0.05)
    return False
