"""The two tables of docs/comparison.md, and the notes below them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

ASKED, DRIVEN = "asked", "driven"
HEADS = {
    ASKED: (
        "tmuxctl `ask`",
        "tmux, unchanged for 0.5 s",
        "tmux, `; echo DONE`",
        "libtmux, unchanged for 0.5 s",
        "libtmux, `retry_until` the prompt",
        "pexpect, expect the prompt",
        "pexpect `replwrap`",
    ),
    DRIVEN: ("tmuxctl", "tmux", "libtmux", "pexpect"),
}
TITLES = {ASKED: "### Asking a program something", DRIVEN: "### Everything around it"}
NOTES = {
    "typing": "The texts of `bench/exact.py`: a `;` at the end, `-R`, key names, formats, quotes, emoji, NUL, invalid "
    "UTF-8, 1 MiB. tmux: `send-keys -l --`; libtmux: `send_keys(literal=True)`; pexpect: `sendline`, whose Enter is a "
    "newline, and `send`. `paste-buffer` needs `load-buffer` before it.",
    "own": "It is recognised with a regular expression that was written beforehand, without options.",
    "owner": "Only the process that started the program holds its terminal.",
    "kept": "Each with its own defaults: tmux and libtmux keep 2,000 lines (`history-limit`).",
    "pipe": "Python ignores SIGPIPE, and a program that pexpect starts inherits it.",
    "polled": "tmux and libtmux take the screen again and again without a pause; pexpect draws with pyte.",
}
NOTED = re.compile(r"\[\^([a-z-]+)\]")


class Line(NamedTuple):
    """A line of one of the tables: what is compared, and a cell by the head of its column."""

    table: str
    what: str
    cells: Mapping[str, str]

    def markdown(self) -> str:
        words = [self.what, *(self.cells.get(head, "–") for head in HEADS[self.table])]
        return "| " + " | ".join(" ".join(word.split()).replace("|", "\\|") for word in words) + " |"


def body(lines: Sequence[Line], old: str = "") -> str:
    """Both tables with their notes; lines of `old` that were not measured again stay."""
    parts = []
    for table, heads in HEADS.items():
        kept = _rows(old, TITLES[table])
        fresh = {line.markdown().split(" | ")[0]: line.markdown() for line in lines if line.table == table}
        rows = {**kept, **fresh}.values()
        head = "| | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 1) + "|"
        parts.append("\n".join([TITLES[table], "", head, *rows]))
    text = "\n\n".join(parts)
    notes = [f"[^{name}]: {NOTES[name]}" for name in dict.fromkeys(NOTED.findall(text))]
    return text + "\n\n" + "\n".join(notes) + "\n"


def _rows(old: str, title: str) -> dict[str, str]:
    """The lines of a table, by what they compare, in their order."""
    part = old.partition(title)[2].partition("### ")[0]
    rows = [line for line in part.splitlines() if line.startswith("| ") and not line.startswith("| | ")]
    return {row.split(" | ")[0]: row for row in rows}
