"""A full disk: a new session is refused, those that run go on, what is missing of their output is told, no file is harmed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.command import Command

from tmuxctl.control import Control

pytestmark = [pytest.mark.on("tmux"), pytest.mark.usefixtures("root", "control")]


class Disk:
    """A small file system on the state folder, in a mount namespace of its own, and commands there."""

    def __init__(self, place: Path, size: str) -> None:
        self.state = place / "state"
        self.state.mkdir(mode=0o700)
        script = 'mount -t tmpfs -o "size=$1,mode=700" disk "$2" && echo ready && exec sleep 1000'
        words = ["unshare", "-m", "sh", "-c", script, "sh", size, str(self.state)]
        self.holder = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.holder.stdout
        self.ready = self.holder.stdout.readline() == "ready\n"
        # from outside, the same folder
        self.inside = Path(f"/proc/{self.holder.pid}/root{self.state}")
        self.tmuxctl = Command("nsenter", "-t", str(self.holder.pid), "-m", f"--wd={place}", "--")

    def fill(self) -> None:
        with (self.inside / "filler").open("ab", buffering=0) as file:
            for size in (1 << 16, 1 << 10, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def free(self) -> None:
        (self.inside / "filler").unlink()

    def end(self) -> None:
        self.holder.kill()
        self.holder.communicate()


@pytest.fixture
def disk(control: Control, place: Path) -> Iterator[Disk]:
    made = Disk(place, "4m")
    if not made.ready:
        made.end()
        pytest.skip("no mount namespace is to be had here")
    yield made
    made.end()


def test_a_new_session_is_refused_and_leaves_nothing(disk: Disk) -> None:
    assert disk.tmuxctl("new", "first", "--", "cat").reason == ""
    disk.fill()
    before = sorted(os.listdir(disk.inside / "tmuxctl/t/sessions"))
    assert disk.tmuxctl("new", "t", "--", "cat").reason == "disk_full"
    assert sorted(os.listdir(disk.inside / "tmuxctl/t/sessions")) == before
    assert disk.tmuxctl.states() == {"first": "idle"}
    disk.free()
    assert disk.tmuxctl("new", "t", "--", "cat").reason == ""
    assert disk.tmuxctl.states() == {"first": "idle", "t": "idle"}


def test_a_gateway_that_cannot_write_says_why(disk: Disk) -> None:
    assert disk.tmuxctl("new", "first", "--", "cat").reason == ""
    disk.fill()
    assert disk.tmuxctl("gateway", "up", "--listen=127.0.0.1:4222").reason == "disk_full"


def test_what_runs_goes_on_and_what_is_not_kept_is_told(disk: Disk, until: Callable[..., Any]) -> None:
    tmuxctl = disk.tmuxctl
    assert tmuxctl("new", "t", "--", "sh").reason == ""
    cursor = tmuxctl("show", "t").said["cursor"]
    disk.fill()
    assert tmuxctl("send", "t", "seq 3000; echo more than is left").reason == ""
    until(lambda: "more than is left" in tmuxctl("screen", "t").said["text"].splitlines())
    disk.free()
    assert tmuxctl("ask", "t", "echo $((40+2))").said["answer"] == "42"
    read = tmuxctl("read", "t", "--since", cursor).said
    assert read["truncated"] is True
    assert "42" in read["text"].splitlines()
    assert tmuxctl("doctor").said["ok"]


def test_an_answer_of_which_some_is_not_kept_is_cut(disk: Disk) -> None:
    tmuxctl = disk.tmuxctl
    assert tmuxctl("new", "t", "--", "sh").reason == ""
    assert tmuxctl("ask", "t", "echo $((40+2))").said["answer"] == "42"
    disk.fill()
    # the rest of a page is free still: the echo is kept, and the answer's beginning
    cut = tmuxctl("ask", "t", "seq 3000; echo $((40+2))").said
    assert (cut["truncated"], cut["complete"]) == (True, False)
    assert not cut["answer"].endswith("42")
    # what is printed now is seen all the same
    assert tmuxctl("send", "t", "clear; echo $((40+3))").reason == ""
    assert tmuxctl("wait", "t", "--prompt").reason == ""
    assert "43" in tmuxctl("screen", "t").said["text"].splitlines()
    disk.free()
    whole = tmuxctl("ask", "t", "echo $((40+4))").said
    assert (whole["answer"], whole["truncated"], whole["complete"]) == ("44", False, True)
    script = f"head -c 9000000 /dev/zero >{disk.state}/filler; seq 3000; echo end"
    ran = tmuxctl("run", "--", "sh", "-c", script).said
    assert (ran["truncated"], ran["exit_status"]) == (True, 0)
    assert not ran["output"].endswith("end\n")


def test_the_end_of_a_command_whose_output_is_not_kept_is_not_waited_for(disk: Disk) -> None:
    tmuxctl = disk.tmuxctl
    assert tmuxctl("new", "t", "--", "sh").reason == ""
    script = f"head -c 9000000 /dev/zero >{disk.state}/filler; seq 3000; sleep 1000"
    done = tmuxctl("exec", "t", "--", script)
    assert done.reason == "outcome_unknown"
    assert json.loads(done.errors.splitlines()[-1])["error"]["details"]["output"].count("\n1\n2\n") == 1
    disk.free()
    assert tmuxctl("keys", "t", "C-c").reason == ""
    assert tmuxctl("exec", "t", "--", "echo $((40+1))").said["output"] == "41\n"
    disk.fill()
    assert tmuxctl("send", "t", "seq 3000; sleep 1000", "--wait-text", "never").reason == "journal_stopped"
    disk.free()
    assert tmuxctl("keys", "t", "C-c").reason == ""
    assert tmuxctl("exec", "t", "--", "echo $((40+2))").said["output"] == "42\n"


@pytest.mark.night
def test_nothing_typed_is_lost_and_every_command_says_what_is_wrong(disk: Disk, until: Callable[..., Any]) -> None:
    tmuxctl = disk.tmuxctl
    for name in ("a", "b"):
        assert tmuxctl("new", name, "--", "sh").reason == ""
    disk.fill()
    said = {
        verb: tmuxctl(*verb.split(" ", 3)).reason
        for verb in ("ls", "show a", "screen a", "send a true", "keys a Enter", "wait a", "read a", "log a", "tag a x",
                     "rename b c", "resize a 90x20")
    }  # fmt: skip
    assert set(said.values()) <= {"", "disk_full"}, said
    assert [said[verb] for verb in ("ls", "show a", "screen a", "send a true", "keys a Enter")] == [""] * 5
    doctor = tmuxctl("doctor").said
    assert not doctor["ok"]
    for spec in disk.inside.glob("tmuxctl/t/sessions/*/*.json"):
        json.loads(spec.read_bytes())
    assert not list(disk.inside.rglob("*.corrupt"))
    name = "c" if "c" in tmuxctl.states() else "b"
    assert tmuxctl("kill", name).reason == ""
    assert list(tmuxctl.states()) == ["a"]
    disk.free()
    assert tmuxctl("ask", "a", "echo $((40+2))").said["answer"] == "42"
    assert tmuxctl("prune").reason == ""
    assert not list(disk.inside.rglob("*.new"))
