"""Lays out what `record.py` recorded of a release, so that it stands as after an upgrade: sessions of that release that run,
are lost or ended, and a state folder that it wrote.

What a machine chooses anew is put in: the home, the ids of sessions (tests run side by side, and processes are known by
them), pids, and the records of servers. What ran is started again by the release's launchers and commands, on real tmux;
what it had printed is in its journal, and what was typed last in its options.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

from programs import HERE as PROGRAMS
from upgrade.record import ROOT as RECORDED
from upgrade.record import git, make_repository

HERE = Path(__file__).resolve().parent
RELEASES = sorted(one.parent.name for one in HERE.glob("*/tmux.json"))
ROOT = str(RECORDED)
TMUX = ["tmux", "-u", "-L"]
OF_ONE_LIFE = ("pid", "cgroup", "journal.pid", "journal.dd", "exit", "journal/end")
"""Files that a session's own processes write again when they start."""

PANES = UUID("5b1c6c0e-6f0c-4d43-9f5f-6f3b6a0f6b0a")
"""What the ids of adopted panes are made with."""

LONG_AGO = time.time() - 3600


class Kept:
    """A recording, laid out in a home of this test."""

    def __init__(self, release: str, home: Path) -> None:
        assert len(str(home)) == len(ROOT), "offsets in journals count the letters of the home"
        self.there, self.home, self.state = HERE / release, home, home / "state/tmuxctl/t"
        self.about: dict[str, Any] = json.loads((self.there / "tmux.json").read_text())
        made = [*self.about["lost"].values(), *(one["id"] for one in self.about["sessions"].values())]
        self.new = {old: str(uuid4()) for old in [*made, *os.listdir(self.there / "home/state/tmuxctl/t/ended")]}
        self.ended = dead_pid()

    def lay_out(self) -> None:
        """Put the files where they belong, and start what ran."""
        before = os.umask(0o077)
        try:
            self._lay_out()
        finally:
            os.umask(before)

    def _lay_out(self) -> None:
        shutil.copy(PROGRAMS / "agent.py", self.home)
        (self.home / "box").mkdir()
        make_worktrees(self.home, self.there / "home")
        person = self._start_person()
        for file in (one for one in sorted((self.there / "home").rglob("*")) if one.is_file()):
            self._put(file)
        self._forget_old_processes(person)
        self._read_along()
        server = self._start_server()
        for name, one in self.about["sessions"].items():
            self._start(name, one, server)

    def _text(self, text: str) -> str:
        text = text.replace(worktrees(ROOT), worktrees(str(self.home))).replace(ROOT, str(self.home))
        for old, new in self.new.items():
            text = text.replace(old, new).replace(f"{old[:8]}.", f"{new[:8]}.")
        return text

    def _put(self, file: Path) -> None:
        to = Path(self._text(str(self.home / file.relative_to(self.there / "home"))))
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(self._text(file.read_bytes().decode("latin-1")).encode("latin-1"))
        os.utime(to, (LONG_AGO, LONG_AGO))

    def _forget_old_processes(self, person: str) -> None:
        """No pid that was recorded may be that of a process which runs now."""
        for name in ("pid", "journal.pid"):
            for file in self.state.rglob(name):
                file.write_text(f"{self.ended}\n")
        for file in self.state.parent.glob("worktrees/*/*.json"):
            file.write_text(re.sub(r'"pid": \d+', f'"pid": {self.ended}', file.read_text()))
        for file in (self.state / "adopted").rglob("server"):
            file.write_text(person)

    def _start_server(self) -> str:
        """The server as the release started it; its record."""
        run(*TMUX, "t", "-f", str(self.state / "tmux.conf"), "start-server")
        record = server_record("t")
        (self.state / "server").write_text(record)
        return record

    def _start(self, name: str, one: dict[str, Any], server: str) -> None:
        folder = self.state / "sessions" / self.new[one["id"]]
        for file in OF_ONE_LIFE:
            (folder / file).unlink(missing_ok=True)
        for part in ("events", "shell"):
            (folder / part).mkdir(exist_ok=True)  # git keeps no empty folder
        (folder / "launch.sh").write_text(self._text((self.there / f"launch/{name}.sh").read_text()))
        (folder / "server").write_text(server)
        run(*TMUX, "t", "-N", *map(self._text, one["start"]))
        for option, value in one["options"].items():
            run(*TMUX, "t", "set-option", "-t", f"={name}:", option, self._text(value))

    def _start_person(self) -> str:
        """A person's server with the pane that is adopted, which our writer reads along with; the record of the server."""
        run(*TMUX, "person", "-f", "/dev/null", "new-session", "-d", "-s", "work", "bash --norc")
        record = server_record("person")
        pane, pid = run(*TMUX, "person", "display-message", "-p", "#{pane_id} #{pane_pid}").split()
        server, began = map(int, record.split())
        known: dict[str, Any] = {
            "id": pane,
            "server": server,
            "server_started": began,
            "pid": int(pid),
            "started": started(int(pid)),
        }
        self.pane = known
        about = ".".join(str(known[part]) for part in ("server", "server_started", "id", "pid", "started"))
        self.new[self.about["adopted"]] = str(uuid5(PANES, about))
        return record

    def _read_along(self) -> None:
        adopted = self.state / "adopted/adopted"
        inside = adopted / "sessions" / self.new[self.about["adopted"]]
        for file in (adopted / "adopted.json", inside / "spec.json"):
            text = file.read_text()
            for part in ("server", "server_started", "pid", "started"):
                text = re.sub(rf'"{part}": \d+', f'"{part}": {self.pane[part]}', text)
            file.write_text(text)
        for name in OF_ONE_LIFE:
            (inside / name).unlink(missing_ok=True)
        for part in ("events", "shell"):
            (inside / part).mkdir(exist_ok=True)
        run(*TMUX, "person", "pipe-pane", "-IO", "-t", self.pane["id"], f"exec sh '{inside}/journal.sh'")


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=20).stdout


def started(pid: int) -> int:
    """When a process began, in ticks (proc(5), stat)."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def server_record(socket: str) -> str:
    """What is written down of a tmux server, by its pid and when it began."""
    pid = int(run(*TMUX, socket, "display-message", "-p", "#{pid}"))
    return f"{pid} {started(pid)}\n"


def dead_pid() -> int:
    """The pid of a process that has ended."""
    done = subprocess.Popen(["true"])
    done.wait()
    return done.pid


def worktrees(home: str) -> str:
    """What the folder of a repository's worktrees is called."""
    return f"repo~{hashlib.sha256(f'{home}/repo/.git'.encode()).hexdigest()[:10]}"


def make_worktrees(home: Path, kept: Path) -> None:
    """The repository, with the worktrees that the recording has records of."""
    make_repository(home)
    for record in kept.glob("state/tmuxctl/worktrees/*/*.json"):
        about = json.loads(record.read_text())
        place = home / "state/tmuxctl/worktrees" / worktrees(str(home)) / Path(about["path"]).name
        git(home, "worktree", "add", "-q", "-b", about["branch"], str(place))
