"""The results of a run, a line of JSON for each turn: what is played already is not played again."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .model import Request
from .programs import ROOT
from .turn import Turn


class Part(NamedTuple):
    """One program in one version, with its hooks or without: what one player plays. `number` is the version's."""

    program: str
    version: str
    number: str
    mode: str


class Results:
    """The file `turns.jsonl` of a folder. Each line stands for itself, so a run may be broken off at any moment."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "turns.jsonl"
        self.lock = threading.Lock()
        self.commit = _commit()
        self.turns: list[Turn] = []
        self.left: dict[tuple[str, str, str], list[str]] = {}
        self.failed: list[str] = []
        self.commits: list[str] = []
        for told in self._lines():
            self._count(told)
        if self.path.exists() and not self.path.read_bytes().endswith(b"\n"):
            # a run was killed as it wrote: what it began is no line, and must not spoil the next
            with self.path.open("a") as file:
                file.write("\n")
        # what failed before this start may go well now
        self.failed.clear()

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        for line in self.path.read_text().split("\n"):
            try:
                yield json.loads(line)
            except ValueError:
                # the last line of a run that was killed
                continue

    def done(self, part: Part) -> list[str]:
        """The ids of the turns that this part has behind it; those of another version of the program do not count."""
        return [
            one.id.removesuffix("-next")
            for one in self.turns
            if (one.program, one.version, one.mode) == (part.program, part.number, part.mode)
        ]

    def take(self, told: dict[str, Any], part: Part) -> Turn | None:
        """Keep one line of a player's; returns the turn that it tells of, if it does."""
        whole = {"program": part.program, "version": part.number, "mode": part.mode, "commit": self.commit, **told}
        with self.lock:
            with self.path.open("a") as file:
                file.write(json.dumps(whole, ensure_ascii=False) + "\n")
            return self._count(whole)

    def _count(self, told: dict[str, Any]) -> Turn | None:
        key = (told["program"], told["version"], told["mode"])
        if told["commit"] not in self.commits:
            self.commits.append(told["commit"])
        if "turn" in told:
            turn = _turn(told["turn"])
            self.turns.append(turn)
            return turn
        if "left" in told:
            self.left.setdefault(key, []).extend(told["left"])
        if "failed" in told:
            self.failed.append(f"{' '.join(key)}: {told['failed']}")
        return None


def _commit() -> str:
    """What is tried: the commit, and whether something was changed since."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _turn(about: dict[str, Any]) -> Turn:
    known = {name: about[name] for name in Turn._fields}
    requests = tuple(_request(one) for one in about["requests"])
    return Turn(**{**known, "requests": requests, "broken": tuple(about["broken"])})


def _request(about: dict[str, Any]) -> Request:
    return Request(**{**about, "results": tuple(about["results"]), "tools": ()})
