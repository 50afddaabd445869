"""The script that a program's hooks call: each event a file of its own, and never a trouble for who calls it."""

from __future__ import annotations

import os
import pty
import re
import resource
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.terminal.launch import hooks

SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
NOBODY = 65534

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, needs: Callable[..., None]) -> list[str]:
    needs(request.param)
    return SHELLS[request.param]


@pytest.fixture
def folder(place: Path) -> Path:
    """A folder of events, with a blank in its path."""
    made = place / "my events"
    made.mkdir()
    (made / hooks.FILE).write_text(hooks.SCRIPT)
    return made


@pytest.fixture
def run(shell: list[str], folder: Path) -> Run:
    """Calls the script as a program does; it always ends well and says nothing."""

    def call(*words: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
        how = {"input": b"", **how} if "stdin" not in how else how
        done = subprocess.run([*shell, f"{folder}/{hooks.FILE}", *words], capture_output=True, timeout=60, **how)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        return done

    return call


def told(folder: Path) -> list[tuple[str, bytes]]:
    """The events that were told, each with what came with it; nothing half written is left."""
    files = [path for path in folder.iterdir() if path.name != hooks.FILE]
    assert all(re.fullmatch(r"[\w-]{1,40}\.[0-9]{1,10}\.[0-9]{1,20}", path.name, re.ASCII) for path in files), files
    return sorted((path.name.partition(".")[0], path.read_bytes()) for path in files)


def test_it_has_three_lines() -> None:
    assert hooks.SCRIPT.count("\n") == 3


def test_what_comes_with_an_event_is_an_argument_or_its_input(run: Run, folder: Path) -> None:
    run("Stop", input=b'{"text": "a\nb \xc3\xa9 \xff"}')
    run("notify", r'{"a": "%s \n $(x) `x`"}')
    run("notify", "", input=b"not this")
    run("bare", stdin=subprocess.DEVNULL)
    assert told(folder) == [
        ("Stop", b'{"text": "a\nb \xc3\xa9 \xff"}'),
        ("bare", b""),
        ("notify", b""),
        ("notify", rb'{"a": "%s \n $(x) `x`"}'),
    ]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir() if path.name != hooks.FILE} == {0o600}


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("a-b_9", "a-b_9"), ("a/../b", "a"), ("../b", "event"), ("", "event"), (".x", "event"),
        ("x" * 90, "x" * 40), ("a\nb", "a"), ("é", "event"),
    ],
)  # fmt: skip
def test_a_name_is_what_a_files_name_may_be(run: Run, folder: Path, event: str, name: str) -> None:
    run(event, "")
    assert told(folder) == [(name, b"")]
    assert hooks.event_file_name(event, 12, 34) == f"{name}.12.34"


def test_without_any_word_it_is_an_event_without_a_name(run: Run, folder: Path) -> None:
    run(input=b"x")
    assert told(folder) == [("event", b"x")]


def test_it_does_not_wait_for_a_terminal(run: Run, folder: Path) -> None:
    keyboard, terminal = pty.openpty()
    run("Stop", stdin=terminal)
    os.close(keyboard)
    os.close(terminal)
    assert told(folder) == [("Stop", b"")]


def test_closed_input_is_nothing(run: Run, folder: Path) -> None:
    run("Stop", stdin=None, preexec_fn=lambda: os.close(0))
    assert told(folder) == [("Stop", b"")]


@pytest.mark.night
def test_too_much_is_cut_and_its_writer_does_not_fail(run: Run, folder: Path, shell: Sequence[str]) -> None:
    writer = f"head -c {3 * hooks.LIMIT} /dev/zero"
    call = f"{' '.join(shell)} '{folder}/{hooks.FILE}' big"
    done = subprocess.run(
        ["bash", "-c", f"{writer} | {call}; echo ${{PIPESTATUS[*]}}"], capture_output=True, timeout=60
    )
    assert done.stdout == b"0 0\n"
    assert told(folder) == [("big", bytes(hooks.LIMIT))]


def test_many_at_once_lose_nothing(shell: list[str], folder: Path) -> None:
    calls = [
        subprocess.Popen([*shell, f"{folder}/{hooks.FILE}", "Stop"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for _ in range(20)
    ]
    for number, call in enumerate(calls):
        call.communicate(f"{number:02}".encode() * 1000, timeout=60)
    assert told(folder) == [("Stop", f"{number:02}".encode() * 1000) for number in range(20)]


def test_a_folder_that_is_gone_is_no_trouble(place: Path, shell: list[str]) -> None:
    words = [*shell, "-c", hooks.SCRIPT, f"{place}/gone/{hooks.FILE}", "Stop"]
    done = subprocess.run(words, input=b"x" * 200_000, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not list(place.iterdir())


def test_where_nothing_can_be_written_it_still_ends_well(run: Run, folder: Path) -> None:
    run("Stop", input=b"x" * 200_000, preexec_fn=lambda: _limited(folder, resource.RLIMIT_FSIZE, 0))
    assert [(name, len(text)) for name, text in told(folder)] in ([("Stop", 0)], [])


@pytest.mark.night
def test_where_no_process_can_be_started_it_still_ends_well(run: Run, folder: Path) -> None:
    run("Stop", "x", preexec_fn=lambda: _limited(folder, resource.RLIMIT_NPROC, 0))


def _limited(folder: Path, what: int, limit: int) -> None:
    """Have no more than this, as a user whom limits are for."""
    if os.getuid() == 0:
        folder.parent.chmod(0o755)
        folder.chmod(0o777)
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    resource.setrlimit(what, (limit, limit))
