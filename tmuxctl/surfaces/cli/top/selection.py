"""Which row of `tmuxctl top` is selected while rows come, go and change places. Pure: knows ids only."""

from __future__ import annotations

from collections.abc import Sequence


class Selection:
    """A selected session (`id`, None where there is none), and whether a person `pointed` at it.

    A session that took the place of another, which ended or was killed, was not pointed at: nothing may be done to it by
    keys that were meant for the other.
    """

    def __init__(self) -> None:
        self.id: str | None = None
        self.pointed = True
        self._ids: Sequence[str] = ()
        self._view: object = None

    def follow(self, ids: Sequence[str], view: object) -> None:
        """Stay on the session wherever it stands now; where it is gone, on the one below it, the last one only from the last.

        `ids` are the sessions as they stand. `view` is what the person chose to see of them: where that changed, the row
        that is selected then was chosen with it.
        """
        if self.id not in ids:
            self.pointed = self.id is None or view != self._view
            self.id = self._beside(ids)
        self._ids, self._view = ids, view

    def move(self, by: int) -> None:
        """Select the session so many rows below, or the first or last one."""
        if self.id in self._ids:
            place = self._ids.index(self.id) + by
            self.id = self._ids[max(0, min(place, len(self._ids) - 1))]
            self.pointed = True

    def choose(self, session_id: str) -> None:
        """Select this session, if it is there."""
        if session_id in self._ids:
            self.id, self.pointed = session_id, True

    def leave(self) -> None:
        """Give up the session, which is about to end, for the one below it."""
        others = [one for one in self._ids if one != self.id]
        if others:
            self.id, self.pointed = self._beside(others), False

    def _beside(self, ids: Sequence[str]) -> str | None:
        """Of these, the one that stood nearest below the selected one, else nearest above it."""
        place = self._ids.index(self.id) if self.id in self._ids else 0
        near = (*self._ids[place:], *reversed(self._ids[:place]), *ids[:1])
        return next((one for one in near if one in ids), None)
