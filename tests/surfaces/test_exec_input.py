"""`exec` passes its standard input on to the command, as ssh(1) does; the shell opens it itself."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from conftest import served_commands

from tmuxctl.control import Control

WORDS = [sys.executable, "-m", "tmuxctl"]
SHELLS = {"bash": ("bash", "--norc"), "zsh": ("zsh", "-f"), "fish": ("fish", "--no-config"), "sh": ("sh",)}


@pytest.fixture(params=[*SHELLS, "bash served"])
def shell(request: pytest.FixtureRequest, place: Path, needs: Callable[..., None]) -> Iterator[str]:
    """One after the other of the shells, in session `s`; one of them where a server of commands carries out the quick ones."""
    name, _, served = request.param.partition(" ")
    argv = SHELLS[name]
    needs(argv[0])
    with Control() as control, served_commands() if served else nullcontext():
        control.new("s", argv)
        yield name
        control.call("kill", {"all": True})
    subprocess.run(["tmux", "-L", "t", "kill-server"], capture_output=True, check=False)


def execute(*words: str, stdin: bytes | Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """`tmuxctl exec s` with a pipe as its standard input, a file, or none."""
    words = (*WORDS, "exec", "s", *words)
    if isinstance(stdin, bytes):
        return subprocess.run(words, capture_output=True, timeout=60, check=False, input=stdin)
    with open(stdin or os.devnull, "rb") as file:
        return subprocess.run(words, capture_output=True, timeout=60, check=False, stdin=file)


@pytest.mark.night
def test_a_pipe_is_the_commands_standard_input(shell: str) -> None:
    done = execute("--", "cat", stdin=b"data\nmore")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"data\nmore", b"")
    assert execute("--", "cat", stdin=b"").stdout == b""
    assert execute("cat; false", stdin=b"data").returncode == 1
    # the command runs in the shell itself, and the next one has the terminal again
    name = "read word; set -gx WORD $word" if shell == "fish" else "read WORD; export WORD"
    assert execute(name, stdin=b"kept\n").returncode == 0
    assert execute("--", "sh", "-c", "echo $WORD; test -t 0 && echo terminal").stdout == b"kept\nterminal\n"


@pytest.mark.night
def test_any_bytes_and_any_number_of_them_arrive(shell: str, place: Path) -> None:
    data = os.urandom(3 << 20)
    digest = hashlib.sha256(data).hexdigest().encode()
    assert execute("--", "sha256sum", stdin=data).stdout.split()[0] == digest
    (place / "data").write_bytes(data)
    assert execute("--", "sha256sum", stdin=place / "data").stdout.split()[0] == digest
    assert execute("--stdin", "data", "--", "sha256sum").stdout.split()[0] == digest


@pytest.mark.night
def test_a_command_takes_no_more_than_it_reads(shell: str, place: Path) -> None:
    loop = 'while read -r word; do "$@" -- echo "got $word"; done'
    for source in (f"printf 'a\\nb\\n' | {{ {loop}; }}", f"printf 'a\\nb\\n' >list; {loop} <list"):
        words = ["sh", "-c", source, "sh", *WORDS, "exec", "s"]
        assert subprocess.run(words, capture_output=True, timeout=60, check=False).stdout == b"got a\ngot b\n"
    done = subprocess.run(
        ["sh", "-c", 'yes | "$@"', "sh", *WORDS, "exec", "s", "--", "head", "-n", "2"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == b"y\ny\n"


@pytest.mark.night
def test_an_interrupt_ends_the_input_and_leaves_the_shell_ready(shell: str, place: Path) -> None:
    reader, writer = os.pipe()
    one = subprocess.Popen(
        [*WORDS, "exec", "s", "--", "sh", "-c", "touch begun; cat"], stdin=reader, stdout=subprocess.PIPE
    )
    os.close(reader)
    os.write(writer, b"data")
    wait = "until [ -e begun ]; do sleep 0.05; done"
    subprocess.run(["sh", "-c", wait], timeout=60, check=True)
    one.send_signal(signal.SIGINT)
    one.communicate(timeout=60)
    assert one.returncode == 130
    os.close(writer)
    subprocess.run([*WORDS, "wait", "s", "--prompt"], stdin=subprocess.DEVNULL, timeout=60, check=True)
    assert execute("--", "echo", "ready").stdout == b"ready\n"


def test_what_the_shell_cannot_open_is_refused_before_anything_is_typed(shell: str, place: Path) -> None:
    before = subprocess.run([*WORDS, "log", "s"], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    done = execute("--stdin", "missing", "--", "cat")
    assert (done.returncode, done.stdout) == (125, b"")
    assert b"cannot open" in done.stderr
    assert b"--stdin FILE" in done.stderr
    log = subprocess.run([*WORDS, "log", "s"], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    assert log == before
    assert execute("--stdin", "/dev/tty", "--", "test", "-t", "0", stdin=b"not this").returncode == 0


@pytest.mark.night
@pytest.mark.parametrize("shell", ["bash"], indirect=True)
def test_a_command_that_goes_on_after_its_time_is_told_with_how_to_stop_it(shell: str) -> None:
    done = execute("--timeout", "1", "--", "sleep", "600")
    assert done.returncode == 124
    assert b"it still runs; stop it: tmuxctl keys s C-c" in done.stderr
    subprocess.run([*WORDS, "keys", "s", "C-c"], stdin=subprocess.DEVNULL, timeout=60, check=True)
    assert (
        subprocess.run([*WORDS, "wait", "s", "--prompt"], stdin=subprocess.DEVNULL, timeout=60, check=False).returncode
        == 0
    )
