"""What a program does to itself and prints is data: it steers nobody, fills nothing up and is taken for nothing else."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from faults.command import Command
from programs import LINES

from tmuxctl.control import Control

pytestmark = pytest.mark.on("tmux")

UNSEEN = re.compile("[\u202a-\u202e\u2066-\u2069]|(?<![\U0001f3f4\U000e0000-\U000e007f])[\U000e0000-\U000e007f]")
"""What changes the direction of text by force, and letters that are not drawn, but for those of a flag."""

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def test_a_folder_of_any_name_disturbs_no_list(control: Control, place: Path) -> None:
    folder = place / "new\nline \x1b[31m \t \u241e #{pid}"
    folder.mkdir()
    title = r"printf '\033]2;\342\220\236a\tb\n\033]52;c;eA==\007\007'"
    control.new("a", ("sh", "-c", f"{title}; echo up; exec cat"), cwd=str(folder))
    control.new("b", ("sh", "-c", 'cd "$1"; echo up; exec cat', "sh", str(folder)))
    control.new("c", LINES)
    for name in ("a", "b"):
        assert control.wait(name, text="^up$", since="screen").matched
    assert [one.name for one in control.ls().sessions] == ["a", "b", "c"]
    assert control.show("a").cwd == str(folder)
    for words in (("ls",), ("show", "a"), ("screen", "a"), ("read", "a"), ("explain", "a")):
        done = Command(plain=True)(*words)
        assert (done.status, CONTROL.findall(done.output)) == (0, []), words


@pytest.mark.night
def test_text_that_shows_as_other_text_is_told_as_what_it_is(control: Control, place: Path) -> None:
    """Programs get it as it is: as JSON, where it is escaped, and from `exec`. What languages and emoji need stays."""
    words = "rm \u2066-i\u2069 \u202etxt.exe\u202c \U000e0041\U000e0042 end"
    needed = "\u05e9\u05dc\u200f! \u0645\u06cc\u200c\u062e\u0648 \U0001f469\u200d\U0001f467 "
    needed += "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    (place / "words").write_text(f"{words} {needed}\n")
    title = "\\033]2;a\u202eb\\007".encode().decode("latin-1")
    (place / "ask").write_text(f"printf '{title}Delete \u202eab? [y/N] '; read answer\n", encoding="utf-8")
    control.new("t", ("sh",))
    told = Command(plain=True)("ask", "t", "cat words").output
    assert told == f"rm \\u2066-i\\u2069 \\u202etxt.exe\\u202c \\U000e0041\\U000e0042 end {needed}\n"
    said = Command()("ask", "t", "cat words")
    assert said.said["answer"] == f"{words} {needed}"
    assert Command(plain=True)("exec", "t", "--", "cat words").output == f"{words} {needed}\n"
    control.send("t", b". ./ask")
    assert control.wait("t", asking=True).matched == "asking"
    verbs = (
        ("ls",),
        ("show", "t"),
        ("screen", "t"),
        ("screen", "t", "--ansi"),
        ("screen", "t", "--scrollback"),
        ("read", "t"),
    )
    more = (("log", "t"), ("explain", "t"), ("decide", "t"), ("wait", "t", "--text", "Delete", "--since", "screen"))
    for verb in (*verbs, *more):
        for command in (Command(plain=True), Command()):
            done = command(*verb)
            assert not UNSEEN.search(done.output + done.errors), (verb, ascii(done.output))


def test_what_looks_like_a_question_is_answered_by_nobody(control: Control, place: Path) -> None:
    """Neither a turn nor a wait takes words on a screen for a right to go on."""
    line = 'printf "Bash(rm -r build) Do you want to proceed? [Y/n] "; read answer; echo "$answer" >answered; exec cat'
    control.new("t", ("sh", "-c", f"read line; {line}"))
    asked = control.ask("t", b"go")
    assert asked.state == "asking"
    assert control.wait("t", asking=True).matched == "asking"
    assert not (place / "answered").exists()
    assert control.decide("t").asking is not None
    assert not (place / "answered").exists()


def test_a_value_that_is_given_to_a_session_is_in_no_list_of_processes(control: Control) -> None:
    """Nor in the arguments of the server, which the first session starts."""
    secret = "s3cr3t-" + os.urandom(8).hex()
    control.new("t", LINES, env={"TOKEN": secret, "PLAIN": secret})
    pid = control.show("t").pid
    assert f"TOKEN={secret}" in contents(Path(f"/proc/{pid}/environ"))
    assert not seen_by_all(secret)
    # but what is an argument is there for all to see
    control.new("u", ("sh", "-c", "cat; :", secret))
    assert seen_by_all(secret)


def seen_by_all(text: str) -> bool:
    """Whether it stands in the arguments of any process."""
    return any(text in contents(one) for one in Path("/proc").glob("[0-9]*/cmdline"))


def contents(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


@pytest.mark.night
def test_a_process_that_is_dead_and_not_waited_for_holds_up_no_kill(
    control: Control, place: Path, until: Callable[..., Any]
) -> None:
    child = f"(until [ -e {place}/go ]; do sleep 0.05; done)"
    control.new("t", ("sh", "-c", f'trap "" TERM HUP; {child} & echo "child $!"; exec tail -f /dev/null'))
    found = control.wait("t", text=r"child (\d+)", since="screen").groups
    assert found
    # the shell may wait for a child that ends before it became tail, which waits for none
    until(lambda: contents(Path(f"/proc/{control.show('t').pid}/comm")) == "tail\n")
    (place / "go").touch()
    until(lambda: contents(Path(f"/proc/{found[0]}/stat")).rpartition(")")[2].split()[:1] == ["Z"])
    (end,) = control.kill(("t",), grace=0.2).killed
    assert end.escaped == ()
    assert not control.ls().sessions


@pytest.mark.night
@pytest.mark.timeout(600)
def test_a_hundred_megabytes_fill_neither_memory_nor_disk(control: Control, place: Path) -> None:
    (place / ".config" / "tmuxctl").mkdir(parents=True)
    (place / ".config" / "tmuxctl" / "config.toml").write_text('[journal]\nlimit = "4M"\n')
    flood = "read line; yes 0123456789012345678 | head -c 100000000; echo done; exec cat"
    assert Command()("new", "t", "--no-wait", "--", "sh", "-c", flood).reason == ""
    control.new("other", LINES)
    before = control.show("t")
    server = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    largest = 0
    control.send("t", b"go")
    waiting = Command().start("wait", "t", "--text", "^done$", "--timeout", "5m")
    while waiting.poll() is None:
        control.send("other", b"still here")
        largest = max(largest, resident(server))
        with suppress(subprocess.TimeoutExpired):
            waiting.wait(0.1)
    assert (waiting.returncode, largest < 200 << 10) == (0, True)
    segments = (place / "state" / "tmuxctl" / "t" / "sessions" / before.id / "journal").iterdir()
    assert (4 << 20) <= sum(one.stat().st_size for one in segments) <= (4 << 20) * 1.3
    read = control.read("t", since=before.cursor)
    assert read.truncated
    assert control.wait("other", text="^still here$").matched


def resident(pid: int) -> int:
    """The KiB of memory a process has."""
    line = next(one for one in contents(Path(f"/proc/{pid}/status")).splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1])


@pytest.mark.night
def test_a_program_is_not_told_what_a_person_copied(control: Control) -> None:
    """It asks the terminal for the clipboard, and for its state, which is answered."""
    control.new("other", LINES)
    control.machine.transport.run([("set-buffer", "copied by a person")])
    asks = r"stty raw -echo; printf '\033]52;c;?\007\033[5n'; head -c 4 | od -An -c; exec sleep 1000"
    control.new("t", ("sh", "-c", asks))
    assert control.wait("t", text=r"033 +\S +\S +\S", since="screen").matched
    assert control.screen("t").text.split() == ["033", "[", "0", "n"]
