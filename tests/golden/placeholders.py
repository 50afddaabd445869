"""Puts a word in angle brackets where a value differs from one run or machine to the next."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tmuxctl import __version__

PATTERNS: tuple[tuple[str, str], ...] = (
    (r"\bc1:[0-9a-f]+\.\d+:\d+\b", "<cursor>"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
    (r"\b[0-9a-f]{16}\b", "<id>"),
    (r"\b[0-9a-f]{8}\.\d+\b", "<incarnation>"),
    (r"\brun-[0-9a-f]{8}\b", "run-<id>"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (r"\(\S+ ago\)", "(<age> ago)"),
    (r"\b\d+(\.\d+)? [KMG]iB\b", "<size>"),
    (r"\b\d+\.\d+ s\b", "<seconds> s"),
    # three digits of how long it took: where nothing is behind the point, there is no point
    (r"(?<=timed out after )\d+(?= s; it )", "<seconds>"),
    (r"\bpid( *:? *)\d+", r"pid\1<pid>"),
    (r"\b(waits (?:only )?for the terminal) \(\w+\)", r"\1 (<call>)"),
    (r"(?m)^(by: +\S+,) (sure|likely)$", r"\1 <confidence>"),
    (r"\btmux \d+\.\d+[a-z]?\b", "tmux <version>"),
    (r"\b(pseudoterminals|descriptors) \d+ of \d+", r"\1 <number> of <number>"),
    (r"(no profile named \S+; there are:) .*", r"\1 <profiles>"),
    (r"(?m)^(tmux: +)'.*", r"\1<commands>"),
)
"""What is replaced wherever it stands in a text."""

IDLE = re.compile(r"(?m)(?<=  )\d+[smh] +(?=\S)")
"""The column of `ls` that tells for how long there was nothing; other tables have durations that do not differ."""

NUMBERS = ("pid", "server", "elapsed", "age", "memory", "cpu")
"""Keys of JSON whose numbers differ."""


ROOT = Path(__file__).resolve().parents[2]


class Placeholders:
    """For what one home printed."""

    def __init__(self, home: Path) -> None:
        exact = {
            str(home): "<home>",
            str(ROOT): "<tree>",
            __version__: "<version>",
            platform.python_version(): "<python>",
        }
        self._patterns = [(re.compile(re.escape(found)), name) for found, name in exact.items()]
        self._patterns += [(re.compile(pattern), name) for pattern, name in PATTERNS]

    def in_text(self, text: str) -> str:
        """The text, with placeholders."""
        if text.startswith("NAME ") and " IDLE " in text:
            text = IDLE.sub("<age>  ", text)
        for pattern, name in self._patterns:
            text = pattern.sub(name, text)
        return text

    def in_json(self, value: Any, key: str = "") -> Any:
        """A value of JSON, with placeholders in its texts and for its numbers."""
        if isinstance(value, Mapping):
            return {name: self.in_json(one, name) for name, one in value.items()}
        if isinstance(value, list) and key == "tmux":
            return "<commands>"
        if isinstance(value, list):
            return [self.in_json(one, key) for one in value]
        if isinstance(value, str):
            return self._in_word(key, value)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return f"<{key}>" if number and key in NUMBERS else value

    def _in_word(self, key: str, value: str) -> str:
        if key == "title" and value == platform.node():
            return "<host>"
        # a state that was just reached is likely, and sure a moment later
        likely = key == "confidence" and value in ("sure", "likely")
        return "<confidence>" if likely else self.in_text(value)
