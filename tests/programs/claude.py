"""A stand-in for Claude Code: the agent program beside this one, which takes Claude Code's words and runs the hooks of its
settings, those of `--settings FILE` and those of the project's `.claude/settings.local.json`, at once as Claude Code does.

`install` puts it into a folder as `claude`. Beside what the agent does, `env NAME` says the value of a variable.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from programs import agent

TRUST = (" Accessing workspace:", ["Yes, I trust this folder", "No, exit"], " Enter to confirm · Esc to cancel")


class StandIn(agent.Agent):
    """The program."""

    def __init__(self, settings: list[Path], untrusted: bool) -> None:
        super().__init__()
        self.settings, self.session = settings, str(uuid.uuid4())
        self.transcript = Path(f"claude-{os.getpid()}.jsonl").resolve()
        if untrusted:
            agent.MENUS["trust"] = TRUST
            self.after(0, lambda: self.ask("trust", os.getcwd(), self.trust))

    def tell(self, event: str, **about: str) -> None:
        """Run the hooks of this event, and wait for all of them."""
        told = {"session_id": self.session, "transcript_path": str(self.transcript), "cwd": os.getcwd()}
        payload = json.dumps(told | {"hook_event_name": event} | about).encode()
        running = [
            subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            for command in self.commands(event)
        ]
        for one in running:
            one.communicate(payload)

    def commands(self, event: str) -> Iterator[str]:
        """The commands of the hooks of an event."""
        for file in self.settings:
            for group in json.loads(file.read_text())["hooks"].get(event, ()) if file.exists() else ():
                yield from (hook["command"] for hook in group["hooks"])

    def keep(self, kind: str, message: dict[str, Any], tokens: int | None = None) -> None:
        """A line of the transcript, in Claude Code's form."""
        usage = {} if tokens is None else {"usage": {"output_tokens": tokens}}
        entry = {"type": kind, "isSidechain": False, "message": {**message, **usage}}
        with self.transcript.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def do_env(self, name: str) -> Iterator[float]:
        """Say the value of a variable."""
        yield from self.block(os.environ.get(name, "-"))


def main() -> None:
    """Be the program, with the words that it was started with."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--settings", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--continue", action="store_true", dest="goes_on")
    parser.add_argument("--dangerously-skip-permissions", action="store_true")
    parser.add_argument("--untrusted", action="store_true", help="asks whether the folder is trusted")
    given = parser.parse_args()
    project = Path(".claude/settings.local.json")
    sys.argv[1:] = []
    StandIn([project, *([given.settings] if given.settings else [])], given.untrusted).run()


def install(folder: Path) -> None:
    """Put it into a folder as `claude`."""
    tests = Path(__file__).resolve().parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "claude"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(tests)!r})\n"
        "from programs.claude import main\nmain()\n"
    )
    script.chmod(0o755)
