"""Versions of tmux: those that were tried, and the commands that differ between them.

What counts is the server's version (`#{version}`): a server outlives an upgrade of the program.
"""

from __future__ import annotations

import re
from functools import lru_cache

OLDEST = (3, 2)
"""The first version that has all that is used here."""

TRIED = ("3.2a", "3.3a", "3.4", "3.5a", "3.6b", "3.7c")
"""The versions that the tests were run with (`make nightly SUITES=tmux`), oldest first."""

EXACT_PASTE = (3, 7)
"""Since this version `paste-buffer` passes the text through vis(3), and `-S` turns that off; earlier ones refuse `-S`."""


@lru_cache(maxsize=16)
def parse_version(version: str) -> tuple[int, int] | None:
    """The major and minor number in a version as tmux tells it (`3.7c`, `next-3.8`); None if it has none."""
    found = re.fullmatch(r"(?:next-)?(\d+)\.(\d+)[\w.-]*", version)
    return (int(found[1]), int(found[2])) if found else None


def is_tried(version: str) -> bool:
    """Whether tmuxctl was tried with this version or another release of the same number (3.7 with 3.7c)."""
    return not version.startswith("next-") and parse_version(version) in map(parse_version, TRIED)


def exact_paste_flags(version: str) -> tuple[str, ...]:
    """The flags with which `paste-buffer` of a server of this version alters no byte.

    A version that cannot be read is taken for a new one: an old server refuses the flag, a new one without it would
    alter the text silently.
    """
    numbers = parse_version(version)
    return ("-r",) if numbers and numbers < EXACT_PASTE else ("-r", "-S")
