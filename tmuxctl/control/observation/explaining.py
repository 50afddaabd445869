"""Why a state is what it is: every piece of evidence, live, of a saved screen, or of a recording."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tmuxctl import evidence as evidences
from tmuxctl.control.sessions import summaries
from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.evidence import NONE, Evidence, Look
from tmuxctl.program_profile import Profile
from tmuxctl.reading.state.judging import Verdict, arguments, judge
from tmuxctl.results import Explained, Reason
from tmuxctl.untrusted import parse_json

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine

SCREEN_LIMIT = 4 << 20
"""Bytes of a saved screen or a recording."""


def live(machine: Machine, session: str, *, evidence: bool) -> Explained:
    """What a session does now, and why."""
    from tmuxctl.control.observation import observing
    from tmuxctl.control.observation.observer import Observer
    from tmuxctl.control.sessions import finding
    from tmuxctl.terminal.input.paste import LastInput

    pane, given = finding.find_with_input(machine, session)
    steady = observing.StabilityTracker(machine, Observer(machine, pane), LastInput.parse(given))
    steady.watch()
    watched = steady.observer
    return _explained(watched.pane.name, steady.verdict, watched.evidence, watched.profile, evidence=evidence)


def saved(
    file: str,
    *,
    profile: str | None,
    title: str | None,
    cursor: str | None,
    before: str | None,
    evidence: bool,
) -> Explained:
    """What a saved screen or recorded evidence would be taken for. With `before`, a screen of the time before the last
    input, also what the program wrote between the two."""
    known = None
    if profile:
        from tmuxctl.profile_files.library import load

        known = load(profile)
    text = _read(file)
    seen = _recorded(text)
    if seen is not None and known is None:
        known = _judged_by(text)
    if seen is None:
        seen = of_screen(text, title=title or "", cursor=_position(cursor))
    answer = between(_read(before), text) if before else None
    return _explained(None, judge(seen, known), seen, known, evidence=evidence, answer=answer)


def of_screen(text: str, *, title: str = "", cursor: tuple[int, int] | None = None) -> Evidence:
    """Evidence of a screen alone: no kernel, no history. The cursor is behind the last text if it is not given."""
    rows = [row.rstrip() for row in text.rstrip("\n").split("\n")]
    x, y = cursor or (len(rows[-1]), len(rows) - 1)
    look = Look(
        at=0.0,
        journal=1,
        quiet=2.0,
        x=x,
        y=y,
        visible=True,
        alternate=False,
        cols=max(80, *map(len, rows)),
        rows=max(24, len(rows)),
        title=title,
        screen="\n".join(rows),
        dead=False,
        status=None,
        signal=None,
        mark=None,
        hook=None,
        kernel=None,
    )
    return Evidence(looks=(look,), proc=NONE)


def between(before: str, after: str) -> str:
    """The rows of a later screen that an earlier one does not have: what came between, without the last prompt."""
    old = [row.rstrip() for row in before.rstrip("\n").split("\n")]
    new = [row.rstrip() for row in after.rstrip("\n").split("\n")]
    # the longest end of the old screen that the new one still shows
    for start in range(len(old)):
        kept = old[start:-1]
        for at in range(len(new) - len(kept) + 1):
            if new[at : at + len(kept)] == kept:
                return "\n".join(new[at + len(kept) + 1 : -1])
    return "\n".join(new[:-1])


def _explained(
    name: str | None,
    verdict: Verdict,
    seen: Evidence,
    profile: Profile | None,
    *,
    evidence: bool,
    answer: str | None = None,
) -> Explained:

    return Explained(
        session=name,
        status=summaries.status_of(verdict),
        why=verdict.why,
        profile=profile.name if profile else None,
        proc=seen.proc,
        reasons=tuple(Reason(*one) for one in arguments(seen, profile)),
        answer=answer,
        evidence=tuple(evidences.to_json(seen)) if evidence else None,
    )


def _read(file: str) -> str:
    try:
        with open(os.path.expanduser(file), "rb") as handle:
            data = handle.read(SCREEN_LIMIT + 1)
    except OSError as error:
        raise Usage(f"{ascii(file)} cannot be read: {error.strerror}", reason="bad_file", hint="name a file") from None
    if len(data) > SCREEN_LIMIT:
        raise Usage(f"{ascii(file)} is too large", reason="bad_file", hint="a screen, or what explain --evidence gave")
    from tmuxctl.terminal.tmux import screen as screens

    return screens.text(data) if b"\x1b" in data else data.decode(errors="replace")


def _recorded(text: str) -> Evidence | None:
    """The evidence in a file that `explain --evidence` wrote, or None if it is a screen."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        lines: list[Any] = [parse_json(line) for line in text.splitlines() if line.strip()]
        if len(lines) == 1 and lines[0].get("evidence"):
            lines = lines[0]["evidence"]
        return evidences.from_json(lines)
    except (ValueError, AttributeError) as error:
        raise Usage(
            f"the recorded evidence cannot be read: {error}",
            reason="bad_file",
            hint="tmuxctl explain NAME --evidence --json >FILE",
        ) from None


def _judged_by(text: str) -> Profile | None:
    """The profile that evidence was judged by when it was recorded, if it is known here."""
    from tmuxctl.profile_files.library import load

    name = parse_json(text.splitlines()[0]).get("profile")
    with suppress(TmuxctlError):
        return load(name) if isinstance(name, str) else None
    return None


def _position(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    x, comma, y = text.partition(",")
    if not comma or not x.strip().isdecimal() or not y.strip().isdecimal():
        raise Usage(f"{ascii(text[:20])} is no cursor position", reason="bad_number", hint="--cursor X,Y from 0")
    return int(x), int(y)
