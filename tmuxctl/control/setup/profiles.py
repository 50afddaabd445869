"""Profiles as a user meets them: which there are, what one says, whether it still fits its screens, and a first one
for a program that has none."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxctl import extensions
from tmuxctl.errors import NotFound, TmuxctlError, Usage
from tmuxctl.extensions import Extension
from tmuxctl.model import State
from tmuxctl.profile_files import library
from tmuxctl.terminal.input.keys import tmux_keys
from tmuxctl.untrusted import read_file

if TYPE_CHECKING:
    from tmuxctl.evidence import Evidence
    from tmuxctl.profile_files.schema import ScreenTest
    from tmuxctl.program_profile import Profile
    from tmuxctl.reading.state.judging import Verdict
    from tmuxctl.results import ProfileFile, ProfileLine, Profiles, ProfilesTested, ProfileTested


SCREEN_LIMIT = 1 << 20
"""Bytes a saved screen's file may have."""


def ls() -> Profiles:
    """Every profile there is, by name; what is wrong with one is told beside it."""
    from tmuxctl.results import Profiles

    return Profiles(tuple(_profile_line(found) for found in extensions.list_profiles()))


def _profile_line(found: Extension) -> ProfileLine:
    from tmuxctl.results import ProfileLine

    try:
        profile = library.load_found(found, keys=tmux_keys)
    except TmuxctlError as error:
        return ProfileLine(found.name, found.source, "", found.path, (), error.message)
    return ProfileLine(found.name, found.source, profile.notes, found.path, (*profile.argv0, *profile.script))


def show(name: str) -> ProfileFile:
    """One profile with all it extends, as the file that would say so."""
    from tmuxctl.profile_files import resolved
    from tmuxctl.results import ProfileFile

    found = library.find_file(name)
    profile = library.load_found(found, keys=tmux_keys)
    return ProfileFile(found.name, found.source, found.path, resolved.as_yaml(profile), resolved.to_document(profile))


def test(names: Sequence[str]) -> ProfilesTested:
    """Judge the saved screens of these profiles (default: all), and return which are judged other than expected."""
    from tmuxctl.results import ProfilesTested

    wanted = [library.find_file(name) for name in names] or list(extensions.list_profiles())
    tests = tuple(one for found in wanted for one in _run_tests(found))
    failed = sum(not one.ok for one in tests)
    return ProfilesTested(not failed, len(tests) - failed, failed, tests)


def _run_tests(found: Extension) -> Iterator[ProfileTested]:
    from tmuxctl.results import ProfileTested

    try:
        profile = library.load_found(found, keys=tmux_keys)
        cases = library.read(found, keys=tmux_keys).tests
    except TmuxctlError as error:
        why = f"{error.message}; {error.hint}" if error.hint else error.message
        yield ProfileTested(found.name, found.path, 1, False, "a profile that can be read", "", why)
        return
    for case in cases:
        yield run_test(case, profile, found.path, found.folder)


def run_test(case: ScreenTest, profile: Profile, path: str, folder: str) -> ProfileTested:
    """One saved screen, judged. `path` and `folder` say where the test stands and where its screen's file is from."""
    from tmuxctl.control.observation.explaining import evidence_of_screen
    from tmuxctl.reading.state.judging import judge
    from tmuxctl.results import ProfileTested

    expected = _describe_expected(case)
    try:
        screen = _read_screen(case, folder)
    except (Usage, NotFound) as error:
        return ProfileTested(profile.name, path, case.line, False, expected, "", error.message)
    program = profile.argv0[0] if profile.argv0 else profile.name
    evidence = evidence_of_screen(screen, title=case.title, cursor=case.cursor)._replace(program=program)
    verdict = judge(evidence, profile)
    rule = _find_rule(evidence, verdict, profile)
    ok = _is_expected(case, verdict, rule)
    shown = None if ok else screen
    return ProfileTested(
        profile.name, path, case.line, ok, expected, _describe_verdict(verdict, rule), verdict.why, shown
    )


def _read_screen(case: ScreenTest, folder: str) -> str:
    """The test's screen, as it stands in the profile or in a file beside it."""
    if case.screen is not None:
        return case.screen
    path = os.path.join(folder, case.file or "")
    try:
        data = read_file(path, SCREEN_LIMIT + 1, follow=True)
    except OSError as error:
        raise NotFound(f"{ascii(path)}: {error.strerror}", reason="no_file") from None
    with suppress(UnicodeDecodeError):
        if len(data) <= SCREEN_LIMIT:
            return data.decode()
    raise Usage(f"{ascii(path)} is not a screen: UTF-8 text of at most 1 MB", reason="bad_file")


def _find_rule(seen: Evidence, verdict: Verdict, profile: Profile) -> str | None:
    """The id of the profile's rule that finds the question, if there is one."""
    from tmuxctl.reading.text import patterns

    match = (
        patterns.find_match(profile.asking, patterns.read_screen(seen.last)) if verdict.state is State.ASKING else None
    )
    return match.rule.id if match else None


def _is_expected(case: ScreenTest, verdict: Verdict, rule: str | None) -> bool:
    state = verdict.state.value
    return (
        case.state in (None, state)
        and state not in case.never
        and case.kind in (None, verdict.kind)
        and case.detail in (None, verdict.detail)
        and case.asking in (None, rule)
    )


def _describe_expected(case: ScreenTest) -> str:
    words = [case.state, case.kind, case.detail, f"by rule {case.asking}" if case.asking else None]
    return " ".join(filter(None, words)) or f"not {' or '.join(case.never)}"


def _describe_verdict(verdict: Verdict, rule: str | None) -> str:
    return " ".join(
        filter(None, (verdict.state.value, verdict.kind, verdict.detail, f"by rule {rule}" if rule else ""))
    )
