"""Telling what a program wrote from what was typed into it: nothing typed may ever answer a wait."""

from __future__ import annotations

import re

PROMPT = re.compile(r"[$#%>❯»λ➜:?\])|]\s*")
PROMPT_END = re.compile(PROMPT.pattern + "$")

LONGEST_PROMPT = 256
"""Characters of a line in which the prompt before an echo is looked for."""


def without_echo(text: str, typed: bytes, *, first: bool, again: bool) -> str:
    """The text with the echo of the typed lines cut out, once for each; prompts before it stay.

    `text` is what came after the input was sent, wrapped rows joined. A line that ends with a typed line is its echo: with
    `first` (the text reaches back to the input) the first such line for each; with `again` (the terminal echoed it while
    the program was busy, so that a line editor may show it a second time) also one more, if it stands behind something
    that looks like a prompt. With `first` an echo of which only the beginning is there yet is cut out, too.
    Blanks do not count: terminals and editors show tabs and wraps in their own ways.
    """
    wanted = typed_lines(typed)
    lines = text.split("\n")
    at = 0
    for prompt in [False] * first + [True] * again:
        for bare in wanted:
            behind = _cut_line(lines, bare, at, prompt=prompt)
            if behind == at and not prompt:
                lines[-1] = _cut_begun_echo(lines[-1], bare)
            at = behind
    return "\n".join(lines)


def holds_shown_line(printed: bytes, screen: str, left: str, y: int, cols: int) -> bool:
    """Whether what was printed has the line that `screen` shows last: the one `left` of the cursor, or where that is blank the
    one above it, on row `y - 1`. What has not come that far yet does not."""
    shown = left.strip()
    if shown and shown.encode() in printed.rpartition(b"\n")[2]:
        return True
    rows = screen.split("\n")
    wanted = strip_invisible(shown or (rows[y - 1] if 0 < y <= len(rows) else ""))
    if not wanted:
        return True
    from tmuxctl.reading.text.escapes import strip_escapes

    lines = map(strip_invisible, strip_escapes(printed, cols, max(1, len(rows))).text.split("\n"))
    # what was printed first stands behind an older prompt
    return any(wanted in line or (line and wanted.endswith(line)) for line in lines)


def typed_lines(typed: bytes) -> list[str]:
    """The lines of what was typed that can be told from others: without blanks, and without those that are empty then."""
    return [bare for line in re.split(r"[\r\n]", typed.decode(errors="replace")) if (bare := strip_invisible(line))]


def _cut_line(lines: list[str], bare: str, start: int, *, prompt: bool) -> int:
    """Cut the first line from `start` on that ends with `bare`, with `prompt` behind a prompt; where to go on."""
    for index in range(start, len(lines)):
        if strip_invisible(lines[index]).endswith(bare):
            kept = text_before(lines[index], len(bare))
            if not prompt or PROMPT_END.search(kept):
                lines[index] = kept
                return index + 1
    return start


def _cut_begun_echo(line: str, bare: str) -> str:
    """The last line without the beginning of an echo, which stands alone in the line or behind a prompt."""
    for start in (0, *(found.end() for found in PROMPT.finditer(line[:LONGEST_PROMPT]))):
        if (begun := strip_invisible(line[start:])) and bare.startswith(begun):
            return line[:start]
    return line


def text_before(line: str, count: int) -> str:
    """What stands before the last `count` characters that are not blank."""
    end = len(line)
    while count and end:
        end -= 1
        if not line[end].isspace() and line[end].isprintable():
            count -= 1
    return line[:end]


def strip_invisible(line: str) -> str:
    """Without blanks, and without what does not show."""
    bare = "".join(line.split())
    return bare if bare.isprintable() else "".join(filter(str.isprintable, bare))
