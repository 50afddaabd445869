"""Runs of teams whose runner is killed (SIGKILL) at random moments and started again: `python -m fleet.kills 500 [SEED]` in tests/.

The truth is what the agents' own logs say they were given, text by text. Each seed is a run that can be repeated, as far as the
machine's pace lets it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fleet.teams import ScriptedAgents

KILLS_MOST = 6
PATIENCE = 120.0


class KilledRun:
    """One run of a random team, with a random number of kills."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random, self.kills = folder, random.Random(seed), 0
        self.agents = ScriptedAgents(folder)
        self.environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "TMUXCTL_SOCKET": f"kills{seed}"}
        self.socket = f"kills{seed}"

    def play(self) -> list[str]:
        """Play it to its end; what is wrong, in words."""
        file = self._write_team()
        words = [sys.executable, "-m", "tmuxctl", "--quiet", "connect", "up", str(file), "--yes"]
        try:
            deadline = time.monotonic() + PATIENCE
            kills = self.random.randint(1, KILLS_MOST)
            while time.monotonic() < deadline:
                resumes = ["--resume"] if self._records() else []
                runner = subprocess.Popen(
                    [*words, *resumes], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
                )
                if self.kills < kills and self._kill(runner):
                    continue
                _, said = runner.communicate(timeout=PATIENCE)
                records = self._records()
                if records and records[-1]["event"] == "end":
                    return list(self._find_problems(records))
                return [f"the run did not end: {said.decode()}{records[-1:]}"]
            return ["the time was over"]
        finally:
            subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True, check=False, timeout=20)

    def _kill(self, runner: subprocess.Popen[bytes]) -> bool:
        """Kill the runner after a random time; False if it had ended by then."""
        try:
            runner.wait(self.random.uniform(0.3, 2.5))
        except subprocess.TimeoutExpired:
            self.kills += 1
            runner.send_signal(signal.SIGKILL)
            runner.communicate()
            return True
        return False

    def _records(self) -> list[dict[str, Any]]:
        file = self.folder / "transcript.jsonl"
        lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
        return [json.loads(line) for line in lines]

    def _write_team(self) -> Path:
        kind = self.random.choice(["pipeline", "dialogue", "meeting", "mesh", "recursive"])
        names = ["ada", "bob", "cy", "dee"]
        topology: dict[str, Any] = {"type": kind}
        says: dict[str, list[str]] = {name: [f"{name} said {{n}}"] for name in names}
        if kind == "pipeline":
            order = [self.random.choice(names) for _ in range(6)]
            topology["stages"] = [
                {"agent": name, "prompt": f"stage {at}: {{previous}}"} for at, name in enumerate(order)
            ]
            topology["stages"].insert(3, {"fan_out": [{"agent": name, "prompt": "all: {previous}"} for name in names]})
        elif kind == "dialogue":
            names = names[:2]
            topology |= {"between": names, "first": "bob", "opening": "{input}"}
        elif kind == "meeting":
            speak = self.random.choice(["parallel", "in-order"])
            topology |= {"chair": "ada", "members": names[1:], "rounds": 2, "speak": speak, "opening": "{input}"}
        elif kind == "mesh":
            topology["start"] = {"ada": "{input}", "bob": "begin"}
            for name in names:
                others = [one for one in names if one != name]
                says[name] = [
                    f"{name} said {{n}}\n"
                    + "\n".join(f"@{self.random.choice(others)}: from {name} {{n}}" for _ in "12")
                    for _ in range(5)
                ]
        else:
            names = ["ada", "bob"]
            topology |= {"root": "ada", "worker": "bob", "depth": 1}
            tasks = "\n".join(f"```task part{number}\ndo part {number}\n```" for number in range(3))
            says["ada"] = [f"ada said {{n}}\n{tasks}", f"ada said {{n}}\n{tasks}", "ada said {n}"]
        rules = [{"re": ".", "say": says[name], "think": self.random.choice([0, 0, 0.1, 0.4])} for name in says]
        agents = {
            name: self.agents.agent(name, [rule]) for name, rule in zip(says, rules, strict=True) if name in names
        }
        if self.random.random() < 0.3:
            agents["ada"]["role"] = "You are ada.\nBe brief."
        return self.agents.write(topology, agents, stop={"turns": 14}, output="transcript.jsonl")

    def _find_problems(self, records: list[dict[str, Any]]) -> Iterator[str]:
        """What the transcript and the agents' logs do not agree on."""
        yield from self._find_lost_or_doubled(records)
        turns = [one for one in records if one["event"] == "turn"]
        messages = Counter(one["turn"] for one in records if one["event"] == "message")
        for turn in turns:
            if messages[turn["turn"]] > 1:
                yield f"two answers to turn {turn['turn']}"
        if any(one["event"] in ("failed", "skipped") for one in records):
            yield f"a turn failed: {[one for one in records if one['event'] in ('failed', 'skipped')]}"
        for number, one in enumerate(records, 1):
            if one["n"] != number:
                yield f"record {number} has the number {one['n']}"
        there = subprocess.run(
            ["tmux", "-L", self.socket, "ls"], capture_output=True, text=True, check=False, timeout=20
        )
        # the session of a control client that was killed is nobody's
        left = [line for line in there.stdout.splitlines() if not line.startswith("_tmuxctl:")]
        if left:
            yield f"sessions are left: {left}"

    def _find_lost_or_doubled(self, records: list[dict[str, Any]]) -> Iterator[str]:
        asked: dict[str, Counter[str]] = {}
        answers: dict[str, list[str]] = {}
        for one in records:
            name = one["to"][0] if one["event"] == "turn" else one["from"]
            # the children of a recursive team write to their worker's log
            name = "bob" if name and name.startswith("part") else name
            if one["event"] == "turn":
                asked.setdefault(name, Counter())[one["text"]] += 1
            elif one["event"] == "message":
                answers.setdefault(name, []).append(one["text"])
        for name in asked:
            given = Counter(text for text in self.agents.given(name) if not text.startswith("You are ada."))
            if given != asked[name]:
                yield f"{name}: asked and not given {asked[name] - given}, given and not asked {given - asked[name]}"
        for name, texts in answers.items():
            for text in texts:
                if not text.startswith(f"{name} said "):
                    yield f"{name} never said {text!r}"
            numbers = Counter(text.split()[2] for text in texts)
            if name != "bob" and max(numbers.values()) > 1:
                yield f"{name}: an answer was taken twice: {numbers}"


def play_many(count: int, first: int) -> Mapping[int, list[str]]:
    """Play so many runs; of those in which something is wrong the seed and what it is."""
    wrong = {}
    kills = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory(prefix="kills") as folder:
            run = KilledRun(Path(folder), seed)
            found = run.play()
            kills += run.kills
            if found:
                wrong[seed] = found
                print(f"seed {seed}: {found}", flush=True)
    print(f"{count} runs, {kills} kills, {len(wrong)} wrong", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(bool(play_many(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)))
