"""The agent program of tests/programs in a session, and what it says it was given."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from programs import HERE

from tmuxctl.control import Control
from tmuxctl.results import Answer

PROFILE = HERE / "agent.yaml"
PROGRAM = str(HERE / "agent.py")
PATIENCE = 30.0
"""Seconds after which a turn is given up."""


class Agent:
    """`tells`: its profile has the program tell of its turns; `changed`: lines that take the place of its profile's."""

    def __init__(self, control: Control, place: Path, program: str = PROGRAM) -> None:
        self.control, self.place, self.name, self.program = control, place, "a", program

    def start(self, *vices: str, tells: bool = False, changed: dict[str, str] | None = None, **how: Any) -> Agent:
        text = PROFILE.read_text()
        for key, line in (changed or {}).items():
            rows = re.sub(rf"(?m)^{key}:.*(?:\n  - .*)*", f"{key}: {line}".replace("\\", r"\\"), text)
            assert rows != text
            text = rows
        file = self.place / ".config/tmuxctl/profiles/agent.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if tells else text.partition("hooks:")[0])
        self.control.new(self.name, (self.program, *vices), **how)
        return self

    def ask(self, text: str, **how: Any) -> Answer:
        return self.control.ask(self.name, text.encode("utf-8", "surrogateescape"), **{"timeout": PATIENCE, **how})

    def log(self, what: str) -> list[Any]:
        """What it noted under this word, oldest first."""
        file = self.place / "agent.log"
        entries = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [entry[what] for entry in entries if what in entry]

    @property
    def submitted(self) -> list[str]:
        return self.log("submitted")
