"""Why a state is what it is: every piece of evidence, live, of a saved screen, or of a recording."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tmuxctl import evidence as evidences
from tmuxctl.control.sessions import finding, summaries
from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.evidence import NONE, Evidence, Look
from tmuxctl.program_profile import Profile
from tmuxctl.reading.state.explanation import list_arguments
from tmuxctl.reading.state.judging import Verdict, judge
from tmuxctl.results import Explained, Reason
from tmuxctl.untrusted import parse_json

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine

SCREEN_LIMIT = 4 << 20
"""Bytes of a saved screen or a recording."""


def explain_live(machine: Machine, session: str, *, evidence: bool) -> Explained:
    """The state of a session now, and why."""
    from tmuxctl.control.observation import observing
    from tmuxctl.control.observation.observer import Observer
    from tmuxctl.terminal.input.paste import LastInput

    pane, remembered = finding.find_with_input(machine, session)
    tracker = observing.StabilityTracker(machine, Observer(machine, pane), LastInput.parse(remembered))
    tracker.observe_until_stable()
    observer = tracker.observer
    return _build_explained(observer.pane.name, tracker.verdict, observer.evidence, observer.profile, evidence=evidence)


def explain_saved(
    file: str,
    *,
    profile: str | None,
    title: str | None,
    cursor: str | None,
    before: str | None,
    evidence: bool,
) -> Explained:
    """The state of a saved screen or of recorded evidence, and why. With `before`, a screen of the time before the last
    input, also what the program wrote between the two."""
    judged_by = None
    if profile:
        from tmuxctl.profile_files.library import load

        judged_by = load(profile)
    text = _read_screen(file)
    recorded = _parse_evidence(text)
    if recorded is not None and judged_by is None:
        judged_by = _recorded_profile(text)
    shown = recorded or evidence_of_screen(text, title=title or "", cursor=_parse_position(cursor))
    answer = text_between(_read_screen(before), text) if before else None
    return _build_explained(None, judge(shown, judged_by), shown, judged_by, evidence=evidence, answer=answer)


def evidence_of_screen(text: str, *, title: str = "", cursor: tuple[int, int] | None = None) -> Evidence:
    """Evidence of a screen alone: no kernel, no history. `cursor` is a column and a row, by default behind the last text."""
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


def text_between(before: str, after: str) -> str:
    """The rows of a later screen that an earlier one does not have, without the last prompt."""
    old = [row.rstrip() for row in before.rstrip("\n").split("\n")]
    new = [row.rstrip() for row in after.rstrip("\n").split("\n")]
    # the longest end of the old screen that the new one still shows
    for start in range(len(old)):
        kept = old[start:-1]
        for at in range(len(new) - len(kept) + 1):
            if new[at : at + len(kept)] == kept:
                return "\n".join(new[at + len(kept) + 1 : -1])
    return "\n".join(new[:-1])


def _build_explained(
    name: str | None,
    verdict: Verdict,
    evidence_seen: Evidence,
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
        proc=evidence_seen.proc,
        reasons=tuple(Reason(*argument) for argument in list_arguments(evidence_seen, profile)),
        answer=answer,
        evidence=tuple(evidences.to_json(evidence_seen)) if evidence else None,
    )


def _read_screen(file: str) -> str:
    try:
        with open(os.path.expanduser(file), "rb") as handle:
            data = handle.read(SCREEN_LIMIT + 1)
    except OSError as error:
        raise Usage(f"{ascii(file)} cannot be read: {error.strerror}", reason="bad_file", hint="name a file") from None
    if len(data) > SCREEN_LIMIT:
        raise Usage(
            f"{ascii(file)} is too large",
            reason="bad_file",
            hint="name a saved screen, or saved output of explain --evidence",
        )
    from tmuxctl.terminal.tmux import screen as screens

    return screens.plain_text(data) if b"\x1b" in data else data.decode(errors="replace")


def _parse_evidence(text: str) -> Evidence | None:
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


def _recorded_profile(text: str) -> Profile | None:
    """The profile by which evidence was judged when it was recorded; None if none of that name can be read here."""
    from tmuxctl.profile_files.library import load

    name = parse_json(text.splitlines()[0]).get("profile")
    with suppress(TmuxctlError):
        return load(name) if isinstance(name, str) else None
    return None


def _parse_position(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    x, comma, y = text.partition(",")
    if not comma or not x.strip().isdecimal() or not y.strip().isdecimal():
        raise Usage(f"{ascii(text[:20])} is not a cursor position", reason="bad_number", hint="--cursor X,Y from 0")
    return int(x), int(y)
