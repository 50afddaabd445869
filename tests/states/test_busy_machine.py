"""On a busy machine `watch` tells states in their true order; how soon is measured by `python -m tools.states --load`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from programs import program

from tmuxctl.control import Control
from tools.processes import busy_loops

pytestmark = pytest.mark.on("tmux")

PATIENCE = 60.0
"""Seconds after which something is not believed to come any more: there are three busy loops a core."""

INPUT = ("idle", "asking")
COMMANDS = {"sleep": "touch {mark}; sleep 2; cat {go}", "tail": "touch {mark}; tail -f /dev/null"}
"""What a shell is given, by the session's name. The first goes on at the FIFO `go`, the second until Ctrl-C is pressed."""

WAYS = {"compute": ("line", "computing"), "listen": ("line", "accepting"), "hidden": ("password", "opening")}
WAYS |= {"tty": ("tty", "opening")}
"""How `secret_work.py` reads and works, by the session's name."""


class Watched:
    """What one `tmuxctl watch --json` has told so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.events: list[dict[str, Any]] = []
        self.thread = threading.Thread(target=self._read, args=(process,), daemon=True)
        self.thread.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            self.events.append(json.loads(line))

    def states(self, session: str) -> list[str]:
        """The states of a session in the order in which they were told."""
        return [event["state"] for event in self.events if event["session"] == session]

    def last(self, session: str) -> str:
        return (["nothing", *self.states(session)])[-1]


class Program(NamedTuple):
    """A program that reads a line, makes the file `mark`, and works until it is let go by `go`."""

    name: str
    text: str
    mark: Path
    go: Path

    def let_go(self) -> None:
        if self.name == "compute":
            self.go.touch()
        elif self.name == "listen":
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(str(self.go))
        elif self.name == "tail":
            press(self.name, "C-c")
        else:
            self.go.write_text("")


@contextmanager
def watched() -> Iterator[Watched]:
    command = [sys.executable, "-m", "tmuxctl", "watch", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield Watched(process)
    finally:
        process.kill()
        process.wait()


def until(condition: Callable[[], object], about: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, about()
        time.sleep(0.02)


def start(control: Control, folder: Path, name: str) -> Program:
    mark, go = folder / f"{name}.mark", folder / f"{name}.go"
    if name not in ("compute", "listen"):
        os.mkfifo(go)
    if name in COMMANDS:
        control.new(name, ("bash", "--norc", "--noprofile", "-i"), wait=False)
    else:
        control.new(name, program("secret_work", *WAYS[name], str(mark), str(go)), wait=False)
    return Program(name, COMMANDS.get(name, "blue").format(mark=mark, go=go), mark, go)


def type_by_tmuxctl(one: Program) -> None:
    command = [sys.executable, "-m", "tmuxctl", "send", one.name, one.text, "--insecure"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def type_as_a_person(one: Program) -> None:
    """What a person's client does, and nothing that tmuxctl hears of."""
    press(one.name, "-l", one.text)
    press(one.name, "Enter")


def press(session: str, *keys: str) -> None:
    subprocess.run(["tmux", "-L", os.environ["TMUXCTL_SOCKET"], "send-keys", "-t", f"={session}:", *keys], check=True)


@pytest.mark.parametrize("type_into", [type_by_tmuxctl, type_as_a_person])
def test_a_program_that_read_its_input_is_busy_until_it_has_done_its_work(
    control: Control, place: Path, type_into: Callable[[Program], None]
) -> None:
    with busy_loops(3 * (os.cpu_count() or 1)), watched() as seen:
        programs = [start(control, place, name) for name in (*COMMANDS, *WAYS)]

        def about() -> object:
            return {one.name: (one.mark.exists(), seen.states(one.name)) for one in programs}

        until(lambda: all(seen.last(one.name) in INPUT for one in programs), about)
        read = {}
        for one in programs:
            type_into(one)
            until(one.mark.exists, about)
            read[one.name] = len(seen.states(one.name))
        until(lambda: all(seen.last(one.name) == "busy" for one in programs), about)
        # while another session comes and is told of, they all go on working
        control.new("later", ("cat",), wait=False)
        until(lambda: seen.last("later") in INPUT, about)
        worked = {one.name: seen.states(one.name) for one in programs}
        for one in programs:
            one.let_go()
        until(lambda: all(seen.last(one.name) in (*INPUT, "exited") for one in programs), about)
    wrong = {name: states for name, states in worked.items() if not went_to_work_once(states[read[name] - 1 :])}
    assert not wrong, f"idle was told of programs that worked: {wrong}, where they had read at {read}"


def went_to_work_once(states: list[str]) -> bool:
    """Whether busy was told, and nothing else after that."""
    return "busy" in states and set(states[states.index("busy") :]) == {"busy"}
