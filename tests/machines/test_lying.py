"""A machine that lies: whatever it answers, a call ends with an error that names it or with a result about it alone; nothing
here changes, nothing it sends reaches the terminal as it is, and other machines are told of as before."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from machines.conftest import Ran, is_below, tmuxctl

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError
from tmuxctl.timing import TIMING, MachineTiming
from tmuxctl.value import changed

DOOR = Path(__file__).with_name("lying_door.py")
MEMORY = 1 << 30
"""Bytes of address space that a command may take beside a machine that lies."""

FACTS, LISTING, FILES = "^.*facts", "list-panes", "look "
EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202e"
BIG, HUGE = "1000000000000", "9" * 5000

ANSWERS: dict[str, dict[str, Any]] = {
    "nothing": {"output": ""},
    "nonsense": {"output": "\udcff\udcfe\0\x1b[31m gar\tbage\n" * 5},
    "half of it": {"replace": [["(?s)(.{20}).*", "."]]},
    "negative numbers": {"replace": [["[0-9]+", "-1"]]},
    "large numbers": {"replace": [["[0-9]+", BIG]]},
    "numbers without end": {"replace": [["[0-9]+", HUGE]]},
    "no numbers": {"replace": [["[0-9]+", "nan"]]},
    "the year 10^9": {"replace": [["[0-9]{9,}", "31556952000000000"]]},
    "paths": {"replace": [["[A-Za-z]+", "../x"]]},
    "lines in another order": {"replace": [["\n", "\r"], ["\t", "\n"]]},
    "escape sequences": {"output": f"{EVIL}$OUTPUT{EVIL}"},
    "a megabyte": {"output": "A" * (1 << 20)},
    "a status of its own": {"status": 81, "complaint": EVIL},
    "a complaint without end": {"status": 1, "complaint": EVIL * 100_000},
    "a server that is lost": {"status": 1, "complaint": "server exited unexpectedly"},
    "an answer twice": {"raw": "\n$NONCE<\na\n$NONCE 0\n\n$NONCE>\n" * 2},
    "an end without a beginning": {"raw": "\n$NONCE>\n"},
    "no status": {"raw": "\n$NONCE<\na\n$NONCE>\n"},
    "a status that is none": {"raw": "\n$NONCE<\na\n$NONCE -1\n\n$NONCE>\n"},
    "a status without end": {"raw": "\n$NONCE<\n\n$NONCE " + "1" * (1 << 16) + "\n\n$NONCE>\n"},
    "the parts in another order": {"raw": "\n$NONCE 0\n\n$NONCE<\na\n$NONCE>\n"},
    "an output without end": {"raw": "\n$NONCE<\n" + "A" * (1 << 20), "endless": True},
    "something else without end": {"raw": "no answer\n" * 1000, "endless": True},
}
"""What is told in the place of an answer."""

OPERATIONS: dict[str, dict[str, Any]] = {
    "ls": {"machine": "web1"},
    "show": {"session": "web1/t"},
    "screen": {"session": "web1/t"},
    "read": {"session": "web1/t"},
    "send": {"session": "web1/t", "text": "x"},
    "wait": {"session": "web1/t", "idle": True, "timeout": 1.0},
    "explain": {"session": "web1/t"},
}


@pytest.fixture
def liar(site: Path, needs: Callable[..., None]) -> Iterator[Path]:
    """A file of rules, by which the machine web1 lies; it has a session t, and so has web2, which does not lie."""
    needs("bwrap")
    rules = site / "rules.json"
    rules.write_text("[]")
    for name in ("one", "two"):
        (site / name).mkdir()
    (site / "config/tmuxctl").mkdir(parents=True)
    # what is made of its lies is carried out there: only its own folder is to suffer
    inside = ["bwrap", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", str(site), str(site)]
    inside += ["--setenv", "TMPDIR", f"{site}/one", "--chdir", f"{site}/one", "sh"]
    if subprocess.run([*inside, "-c", ":"], check=False, capture_output=True).returncode:
        pytest.skip("bwrap does not work here")
    doors = {
        "web1": ["env", "-u", "XDG_STATE_HOME", f"HOME={site}/one", sys.executable, str(DOOR), str(rules), *inside],
        "web2": ["env", "-u", "XDG_STATE_HOME", f"HOME={site}/two", "sh"],
    }
    tables = [f'[{name}]\ncommand = {json.dumps(words)}\nsocket = "{name}"\n' for name, words in doors.items()]
    (site / "config/tmuxctl/machines.toml").write_text("\n".join(tables))
    with Control() as control:
        for name in ("here", "web1/t", "web2/t"):
            control.call("new", {"name": name, "command": ["cat"]})
    yield rules
    lie(rules)
    with Control() as control:
        control.call("kill", {"session": ["here", "web1/t", "web2/t"], "signal": "KILL"})


def lie(rules: Path, *told: tuple[str, dict[str, Any]]) -> None:
    """From now on have web1 tell this in its answers to scripts with that pattern."""
    rules.write_text(json.dumps(told))


def list_own_files(site: Path) -> dict[Path, float]:
    """This machine's own files, but for what is web1's and web2's."""
    kept = [path for name in ("state", "config") for path in (site / name).rglob("*")]
    return {path: path.stat().st_mtime for path in kept if path.is_file() and path.name != "last.json"}


def run_bounded(*words: str) -> Ran:
    """Run the command with a bound on its memory."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    done = subprocess.run(
        [sys.executable, "-m", "tmuxctl", "--no-server", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        preexec_fn=bound,
        check=False,
    )
    return Ran(done)


PATTERNS = [FACTS, LISTING, FILES]
LIES = [
    pytest.param(
        pattern,
        third,
        marks=() if place == third else pytest.mark.night,
        id=f"{pattern}-{third + 1} of {len(PATTERNS)}",
    )
    for place, pattern in enumerate(PATTERNS)
    for third in range(len(PATTERNS))
]
"""Which third of the answers is told to which scripts: each answer once in the gate, and all of them at night."""


@pytest.mark.night
@pytest.mark.parametrize(("pattern", "third"), LIES)
def test_a_call_ends_with_a_result_or_an_error_of_that_machine(site: Path, liar: Path, pattern: str, third: int):
    before = list_own_files(site)
    for told in list(ANSWERS)[third :: len(PATTERNS)]:
        lie(liar, (pattern, ANSWERS[told]))
        call_all(told)
        assert list_own_files(site) == before, told
        assert {path.name for path in site.iterdir()} >= {"one", "two", "state"}


def call_all(told: str) -> None:
    """Carry out each operation on web1, which tells this; it has a result or an error of that machine."""
    timing = changed(TIMING, machine=MachineTiming(start_seconds=3.0))
    for name, arguments in OPERATIONS.items():
        with Control(timing=timing) as control:
            error: TmuxctlError | None = None
            found = None
            try:
                found = control.call(name, arguments, timeout=20)
            except TmuxctlError as raised:
                error = raised
        if error:
            assert error.details["machine"] == "web1", (told, name)
            assert len(error.message) < 5000, (told, name)
        assert {one.machine for one in getattr(found, "sessions", ())} <= {"web1"}, (told, name)


@pytest.mark.night
def test_memory_has_a_bound(liar: Path):
    for told in ("an output without end", "something else without end", "a status without end", "a megabyte"):
        lie(liar, (".", ANSWERS[told]))
        for words in (["ls", "web1/"], ["read", "web1/t"], ["ls", "--all-machines"]):
            ran = run_bounded(*words)
            assert "Traceback" not in ran.errors, told
            assert "MemoryError" not in ran.errors, told
            assert "internal" not in ran.errors, told
            assert "web1" in ran.errors, told


@pytest.mark.night
def test_an_answer_may_be_large_and_has_a_bound(liar: Path):
    lie(liar, ("marker", ANSWERS["an output without end"]))
    with Control() as control:
        shell = control.reach("web1/")[0].machine.transport.shell
        assert len(shell("head -c 20000000 /dev/zero")[1]) == 20_000_000
        with pytest.raises(TmuxctlError) as raised:
            shell(": marker")
        assert raised.value.reason == "bad_answer"
        # another shell is started for what comes next
        assert shell("echo on")[1] == b"on\n"


@pytest.mark.night
def test_a_file_without_end_is_not_read_to_its_end(liar: Path):
    lie(liar, ("^.*piece", {"output": "A" * (4 << 20)}))
    with Control() as control, pytest.raises(TmuxctlError) as raised:
        control.reach("web1/")[0].machine.transport.read("/etc/hostname")
    assert raised.value.reason == "bad_answer"


NAMES = ["../x", "web2/t", "web1/web2/t", "a\nb", f"x{EVIL}", "x; touch owned", "$(touch owned)", "-x", "A" * (1 << 20)]


@pytest.mark.night
@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:20])
def test_a_name_that_none_of_its_sessions_can_have_is_not_told(site: Path, liar: Path, name: str):
    lie(liar, (f"{LISTING}|display-message", {"replace": [[r"\bt(?=[0-9a-f]{16})", name]]}))
    ran = tmuxctl("ls", "--all-machines", "-q")
    assert (ran.status, ran.output) == (0, "here\nweb2/t\n")
    for words in (["screen", "web1/t"], ["kill", "web1/t"]):
        shown = tmuxctl(*words)
        assert "\x1b" not in shown.output + shown.errors
        assert "Traceback" not in shown.errors
    assert [one["machine"] for one in tmuxctl("ls", "web2/", "--json").result["sessions"]] == ["web2"]
    assert not is_below(site, "owned")


@pytest.mark.night
def test_an_event_of_it_is_of_none_of_another_machine(liar: Path):
    lie(liar, (f"{LISTING}|display-message", {"replace": [[r"\bt(?=[0-9a-f]{16})", "web2/t"]]}))
    watching = subprocess.Popen(
        [sys.executable, "-m", "tmuxctl", "watch", "--all-machines", "--json"], stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout
    try:
        told = {json.loads(watching.stdout.readline())["session"] for _ in range(2)}
    finally:
        watching.terminate()
        watching.wait()
    assert told == {"here", "web2/t"}


@pytest.mark.night
@pytest.mark.parametrize("pattern", [LISTING, FILES])
def test_the_others_are_listed_as_before(liar: Path, pattern: str):
    for told in ("nonsense", "large numbers", "the year 10^9", "escape sequences"):
        lie(liar, (pattern, ANSWERS[told]))
        ran = run_bounded("ls", "--all-machines", "--json")
        assert ran.status == 0, told
        found = [(one["machine"], one["name"]) for one in ran.result["sessions"] if one["machine"] != "web1"]
        assert found == [(None, "here"), ("web2", "t")], told
        assert "Traceback" not in ran.errors, told
        shown = run_bounded("ls", "--all-machines")
        assert "\x1b" not in shown.output + shown.errors, told
        assert "Traceback" not in shown.errors, told


@pytest.mark.night
def test_what_it_shows_reaches_the_terminal_as_text(liar: Path):
    lie(liar, ("capture-pane", {"replace": [["\n", f"{EVIL}\n"]]}), ("piece", {"output": f"$OUTPUT{EVIL}\n"}))
    for words in (["screen", "web1/t"], ["read", "web1/t"], ["log", "web1/t"], ["explain", "web1/t"]):
        ran = tmuxctl(*words)
        for character in "\x1b\x07\x9b":
            assert character not in ran.output + ran.errors, words


@pytest.mark.night
def test_sizes_that_no_screen_has(liar: Path):
    for told in ("large numbers", "numbers without end", "negative numbers"):
        lie(liar, ("display-message|list-panes", ANSWERS[told]))
        for words in (["screen", "web1/t", "--svg"], ["show", "web1/t"]):
            ran = run_bounded(*words)
            assert "Traceback" not in ran.errors, told
            assert "MemoryError" not in ran.errors, told


@pytest.mark.night
@pytest.mark.parametrize(
    "home",
    ["/etc", "/", "../..", "/proc/self", "relative", f"/tmp/{EVIL}", "/" + "a" * 100_000],
    ids=lambda home: ascii(home)[:20],
)
def test_a_home_that_is_none_changes_nothing_here(site: Path, liar: Path, home: str):
    before, etc = list_own_files(site), sorted(Path("/etc").rglob("*tmuxctl*"))
    # it tells where its files are, and takes no order to make a folder there
    forged = {"replace": [[r"(?s)^((?:[^\n]*\n){3}).*", f"\\1{home}"]]}
    rules: list[tuple[str, dict[str, Any]]] = [("^.*facts", forged), ("^.*(folder|way) ", {"output": "", "status": 0})]
    lie(liar, *rules)
    for words in (["ls", "web1/"], ["kill", "web1/t"], ["prune"]):
        ran = tmuxctl(*words)
        assert "Traceback" not in ran.errors
        assert "\x1b" not in ran.output + ran.errors
    assert list_own_files(site) == before
    # other tests add users there meanwhile
    assert sorted(Path("/etc").rglob("*tmuxctl*")) == etc
