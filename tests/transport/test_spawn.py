"""A short program: bytes in, bytes out, a deadline."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tmuxctl.transport import spawn


def test_bytes_go_in_and_come_out_whole() -> None:
    data = os.urandom(3 << 20)
    assert spawn.run(["cat"], stdin=data, timeout=30) == spawn.FinishedProgram(0, data, b"")


def test_errors_and_status_are_kept_apart() -> None:
    done = spawn.run(["sh", "-c", "echo out; echo wrong >&2; exit 3"], timeout=30)
    assert done == spawn.FinishedProgram(3, b"out\n", b"wrong\n")


def test_a_program_that_reads_nothing_is_no_trouble() -> None:
    assert spawn.run(["true"], stdin=b"x" * (1 << 20), timeout=30).status == 0


def test_a_signal_is_a_negative_status() -> None:
    assert spawn.run(["sh", "-c", "kill -9 $$"], timeout=30).status == -9


def test_what_takes_too_long_is_killed() -> None:
    with pytest.raises(spawn.SpawnTimeout):
        spawn.run(["sh", "-c", "exec sleep 1000"], timeout=0.2)
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and _sleeps(pid)]


def _sleeps(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/cmdline") as line:
            return f" {os.getpid()} " in stat.read() and "sleep\x001000" in line.read()
    except OSError:
        return False


def test_no_such_program() -> None:
    with pytest.raises(FileNotFoundError):
        spawn.run(["no-such-program-here"], timeout=5)


def test_no_descriptor_is_left_open() -> None:
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(5):
        spawn.run(["true"], timeout=30)
    time.sleep(0)
    # what earlier tests left may be collected meanwhile
    assert set(os.listdir("/proc/self/fd")) <= before


def test_modules_are_loaded_while_a_program_runs_until_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the program goes on once the first one is loaded, the second one once the program has answered
    (tmp_path / "ahead_first.py").write_text(f"open({str(tmp_path / 'loaded')!r}, 'w').close()\n")
    (tmp_path / "ahead_second.py").write_text(
        f"import os, time\nwhile not os.path.exists({str(tmp_path / 'answered')!r}): time.sleep(0.01)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(spawn, "ahead", ["ahead_first", "ahead_second", "ahead_third"])
    script = 'until [ -e "$1/loaded" ]; do sleep 0.01; done; echo out; : >"$1/answered"'
    assert spawn.run(["sh", "-c", script, "sh", str(tmp_path)], timeout=30).output == b"out\n"
    assert spawn.ahead == ["ahead_third"]
    for name in ("ahead_first", "ahead_second"):
        del sys.modules[name]


def test_a_module_that_cannot_be_loaded_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "ahead", ["tmuxctl.no_such_module"])
    with pytest.raises(ModuleNotFoundError):
        spawn.run(["sh", "-c", "exec sleep 1000"], timeout=30)
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and _sleeps(pid)]
