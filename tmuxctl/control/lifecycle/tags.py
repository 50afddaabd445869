"""Words that people give sessions to find them by; tmux keeps them, and the spec for when tmux is gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tmuxctl.control.lifecycle import listing
from tmuxctl.control.sessions import finding, records
from tmuxctl.model import Session, check_tag, check_tags
from tmuxctl.operations import current
from tmuxctl.terminal.tmux import options
from tmuxctl.terminal.tmux.pane_io import Comparison, FieldTest
from tmuxctl.terminal.tmux.server import Pane

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine


def change_tags(machine: Machine, session: str, add: Sequence[str], remove: Sequence[str]) -> Session:
    """Give a session tags and take others away; the session with those it then has.

    Usage `too_many_tags` if it would have too many.
    """
    for tag in (*add, *remove):
        check_tag(tag)
    pane = finding.find_session(machine, session)
    if add or remove:
        while not _replace_tags(machine, pane, wanted := _apply_changes(machine, pane.tags, add, remove)):
            current().check()
            pane = finding.find_session(machine, pane.id)
        records.change_spec(machine, pane.id, lambda kept: kept["asked"].update(tags=wanted))
    return listing.show(machine, pane.name)


def _apply_changes(machine: Machine, tags: Sequence[str], add: Sequence[str], remove: Sequence[str]) -> list[str]:
    wanted = [tag for tag in dict.fromkeys((*tags, *add)) if tag not in remove]
    # an earlier release may have given it more: they can be taken away, also one by one
    check_tags(wanted, max(machine.limits.tags, len(tags)))
    return wanted


def _replace_tags(machine: Machine, pane: Pane, tags: Sequence[str]) -> bool:
    """Replace the tags in tmux; False if somebody else changed them meanwhile."""
    before = " ".join(pane.tags)
    unless = {
        "other": (FieldTest(options.ID, Comparison.DIFFERS, pane.id),),
        "changed": (FieldTest(options.TAGS, Comparison.DIFFERS, before),),
    }
    return not machine.io.change(pane.name, {options.TAGS: " ".join(tags)}, unless=unless)
