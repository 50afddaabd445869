"""Messages between sessions as an agent program reads them: a line that says who sends, and the text, in which no line can
pass for such a header."""

from __future__ import annotations

from tmuxctl.reading.text.lazy_pattern import Pattern

ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
"""Characters that end a line, as `str.splitlines` has it."""

UNSEEN = rf"(?:[^\S{ENDS}]|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff])*"
"""Characters that leave no mark on a line: spaces, tabs, and those that only say how text is set."""

HEADER = Pattern(rf"(?i)(?:\A|(?<=[{ENDS}]))({UNSEEN}(?:>{UNSEEN})*\[{UNSEEN}(?:from|result|refused|failed)\b)")
"""The beginning of a line that looks like a header, also one that was quoted before."""


COMMAND_SIGNS = ("!", "/")
"""How commands of agent programs begin: `!` runs one in a shell, and nobody is asked (Claude Code, Codex, Aider)."""


def format_message(sender: str, text: str, kind: str = "from") -> str:
    """A message with its header: `[from SENDER]` on a line, or another `kind` that headers have, and the text below it."""
    return f"[{kind} {sender}]\n{quote_headers(text)}"


def quote_headers(text: str) -> str:
    """The text with a `>` before each line that looks like a header (`[from x]`, `[result x]`, `[refused x]`, `[failed x]`), as
    mbox has it of lines that begin with `From `: one that was quoted gets one more, so that it can be told from others."""
    return HEADER.sub(r">\1", text)


def name_sender(sender: str, text: str) -> str:
    """The text; with its header where it would begin as a command of an agent program does, so that it is none."""
    return format_message(sender, text) if text.lstrip().startswith(COMMAND_SIGNS) else text
