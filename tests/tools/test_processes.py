"""The processes of a folder: which they are, and that all of them are ended, and no others."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tools.processes import end_processes, find_processes


def start(home: Path) -> subprocess.Popen[bytes]:
    """A shell and a program that it started, with this home."""
    command = ["sh", "-c", "sleep 1000 & wait"]
    return subprocess.Popen(command, env={**os.environ, "HOME": str(home)}, start_new_session=True)


def test_all_processes_of_a_folder_are_ended_and_no_others(tmp_path: Path) -> None:
    inside, outside = start(tmp_path / "inside/home"), start(tmp_path / "outside")
    try:
        end_processes(tmp_path / "inside")
        assert inside.wait(10) == -signal.SIGKILL
        assert find_processes(tmp_path / "inside") == []
        assert outside.pid in find_processes(tmp_path / "outside")
    finally:
        end_processes(tmp_path)
        inside.wait(10)
        outside.wait(10)
