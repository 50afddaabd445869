"""What the page is told of a session: one row of the board, as plain values."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from tmuxctl.model import Asking, Session, State
from tmuxctl.value import Value

INPUT = "input"
"""What a program wants that cannot go on without it, and is no next command."""

LINE_CHARS = 200
NAME_CHARS = 64
QUESTION_CHARS = 4000
OPTIONS_MOST = 64
TAGS_MOST = 32


class RowWords(Value):
    """How a session is put into words, as `ls` and `top` do: its state, its command, and a program's text on one line, with what
    is not visible as escapes."""

    state: Callable[[Session], str]
    command: Callable[[Sequence[str]], str]
    one_line: Callable[[str], str]


class Glance(Value):
    """What was seen of a session's screen: its title, and the last line that is not empty."""

    title: str = ""
    line: str = ""


def make_row(
    session: Session, words: RowWords, glance: Glance, branch: str | None, since: str | None
) -> dict[str, Any]:
    """The row of a session. `since` is when its state changed last, ISO 8601, None if that is not known."""
    asking = session.asking
    needs = session.wants == INPUT or session.state is State.ASKING
    rank = (State.ASKING if needs else session.state).traits.rank
    folder = shorten_home(session.cwd) if session.cwd else None
    return {
        "id": session.lasting_address,
        "name": session.address,
        "state": session.state.value,
        "word": _state_word(session, words),
        "detail": cut_line(session.detail, words) if session.detail else None,
        "wants": session.wants,
        "needs": needs,
        "rank": rank,
        "question": _describe_question(asking, words) if asking else None,
        "profile": session.profile[:NAME_CHARS] if session.profile else None,
        "command": cut_line(words.command(session.argv[:LINE_CHARS]), words),
        "folder": cut_line(folder, words) if folder else None,
        "branch": branch,
        "since": since,
        "active": session.active,
        "line": cut_line(glance.line, words),
        "title": cut_line(glance.title, words),
        "tags": [tag[:NAME_CHARS] for tag in session.tags[:TAGS_MOST]],
        "group": cut_line(os.path.basename(session.cwd.rstrip("/")) or "/", words) if session.cwd else None,
        "cols": session.cols,
        "rows": session.rows,
        "attached": session.attached,
        "plugins": [plugin[:NAME_CHARS] for plugin in session.plugins[:TAGS_MOST]],
        "exit_status": session.exit_status,
        "signal": session.signal,
        "machine": session.machine,
    }


def _state_word(session: Session, words: RowWords) -> str:
    text = words.state(session)
    return f"{text} {cut_line(session.kind, words)}" if session.state is State.ASKING and session.kind else text


def _describe_question(asking: Asking, words: RowWords) -> dict[str, Any]:
    """A question with its options. `secret`: what is typed is not shown. `free`: any text is an answer."""
    traits = asking.kind.traits
    options = [{"name": one.id, "label": cut_line(one.label, words)} for one in asking.options[:OPTIONS_MOST]]
    return {
        "id": asking.id,
        "kind": asking.kind.value,
        "text": "\n".join(map(words.one_line, asking.question[:QUESTION_CHARS].split("\n"))),
        "options": options,
        "default": asking.default,
        "risk": asking.risk,
        "secret": bool(traits.hidden or asking.hidden),
        "free": not options,
    }


def cut_line(text: str, words: RowWords) -> str:
    """A program's line as text of at most LINE_CHARS characters."""
    # a character may become an escape of ten
    found = words.one_line(text[: LINE_CHARS * 2]).strip()
    return found if len(found) <= LINE_CHARS else found[: LINE_CHARS - 1] + "…"


def shorten_home(folder: str) -> str:
    """A folder with `~` for this user's home."""
    home = os.path.expanduser("~")
    return folder.replace(home, "~", 1) if (folder + "/").startswith(home.rstrip("/") + "/") else folder


def last_line(text: str) -> str:
    """The last line of a screen that is not empty."""
    return next((line for line in reversed(text.split("\n")) if line.strip()), "")
