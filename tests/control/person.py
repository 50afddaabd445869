"""A person's own tmux server, with a configuration of their own."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CONFIG = """\
set -g prefix C-a
set -g status-left '#[fg=green]#S '
set -g history-limit 5000
set -g base-index 1
setw -g mode-keys vi
setw -g automatic-rename off
set -g @mine 'a value; with "quotes" #{and} formats'
set-hook -g after-new-window 'set -g @made yes'
bind-key q kill-pane
"""


class Person:
    """A person's tmux server, on a socket of their own."""

    def __init__(self, place: Path) -> None:
        self.place, self.socket = place, "person"
        self.environment = os.environ | {"PS1": "$ "}

    def tmux(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", "-u", "-L", self.socket, *words],
            capture_output=True,
            text=True,
            check=True,
            env=self.environment,
            timeout=20,
        ).stdout

    def target(self, pane: str) -> str:
        return f"tmux@{self.socket}:{pane}"

    def everything(self) -> dict[str, Any]:
        """All that must be as before: options, keys, hooks, layout, sizes, pipes, modes, buffers, processes."""
        listing = "#{session_name}:#{window_index}.#{pane_index} #{pane_id} #{pane_pid} #{pane_dead} #{pane_pipe} #{pane_in_mode} #{pane_active} #{pane_width}x#{pane_height} #{alternate_on}"  # noqa: E501
        windows = self.tmux("list-windows", "-a", "-F", "#{window_id} #{window_layout} #{window_active} #{window_name}")
        panes = self.tmux("list-panes", "-a", "-F", listing)
        ids = re.findall(r"%\d+", panes)
        return {
            "options": [self.tmux("show-options", *scope) for scope in (("-g",), ("-s",), ("-gw",), ("-gH",))],
            "own options": [self.tmux("show-options", flag, "-t", one) for one in ids for flag in ("-q", "-wq", "-pq")],
            "keys": self.tmux("list-keys"),
            "hooks": self.tmux("show-hooks", "-g"),
            "windows": windows,
            "panes": panes,
            "buffers": self.tmux("list-buffers"),
            "clients": self.tmux("list-clients"),
            "environment": self.tmux("show-environment", "-g"),
            "processes": sorted(self.processes()),
        }

    def processes(self) -> Iterator[tuple[str, str]]:
        """What runs under the server, by id and command."""
        server = self.tmux("display-message", "-p", "#{pid}").strip()
        rows = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        parents = {row.split(None, 2)[0]: row.split(None, 2)[1:] for row in rows.splitlines()}
        for pid, (parent, words) in parents.items():
            while parent not in (server, "0", "1") and parent in parents:
                parent = parents[parent][0]
            if parent == server:
                yield pid, words
