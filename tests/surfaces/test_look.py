"""What a person sees: tags, tables, everything of one session, colours, a line while waiting, help, and README's picture."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import xml.etree.ElementTree
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from programs import LINES, SHELL

from tmuxctl.control import Control
from tmuxctl.errors import Usage
from tmuxctl.model import Asking, Confidence, Option, Session, State, Status
from tmuxctl.operations import find, to_json
from tmuxctl.surfaces.cli.app import App
from tmuxctl.surfaces.cli.commands import help
from tmuxctl.surfaces.cli.manual import reference
from tmuxctl.surfaces.cli.printing import cells, color, output, progress, table
from tmuxctl.timing import LIMITS
from tmuxctl.value import changed
from tmuxctl.vocabulary import EvidenceKind, InputKind
from tools import cast

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = output.Options()

ASKING = Asking(
    InputKind.APPROVAL,
    "1",
    "Bash(rm -r build):",
    tuple(Option(one, one.upper(), (one[0],)) for one in ("allow", "always", "deny")),
    default="allow",
    risk="high",
)
DB = Session("db", "1-2", status=Status(State.IDLE), profile="sqlite3", argv=("sqlite3", "shop.db"), cwd="/srv/shop")
FIX = Session(
    "fix-the-very-long-name",
    "3-4",
    status=Status(State.ASKING, asking=ASKING),
    argv=("claude",),
    cwd="/tmp/wt/fix",
    tags=("web",),
)


# tags


def names(control: Control, tag: str) -> list[str]:
    return [one.name for one in control.ls(tag=tag).sessions]


def test_sessions_are_found_by_their_tags(control: Control) -> None:
    made = control.new("a", LINES, tag=("web", "nightly", "web"))
    control.new("b", LINES)
    assert made.tags == ("web", "nightly")
    assert control.show("a").tags == ("web", "nightly")
    assert names(control, "web") == ["a"]
    assert control.tag("b", ("web", "x_1")).tags == ("web", "x_1")
    assert names(control, "web") == ["a", "b"]
    assert control.tag("a", ("new",), remove=("web", "nosuch")).tags == ("nightly", "new")
    assert names(control, "web") == ["b"]
    assert control.tag("b", remove=("web", "x_1")).tags == ()
    assert control.tag("a").tags == ("nightly", "new")


@pytest.mark.on("memory", "tmux")
def test_sessions_stand_in_the_order_in_which_people_count(control: Control) -> None:
    for name in ("ask10", "ask2", "Ask1"):
        control.new(name, LINES, wait=False)
    assert [one.name for one in control.ls().sessions] == ["Ask1", "ask2", "ask10"]
    for name in ("ask10", "ask2"):
        control.kill((name,))
    assert [one.name for one in control.ls(ended=True).sessions] == ["Ask1", "ask2", "ask10"]


def test_tags_stay_when_a_session_gets_another_name(control: Control) -> None:
    control.new("a", LINES, tag=("web",))
    control.rename("a", "b")
    assert names(control, "web") == ["b"]


@pytest.mark.on("memory", "tmux")
@pytest.mark.parametrize("tag", ["", "two words", "a,b", "#{x}", "-x", "a" * 64, "tab\t", "ü"])
def test_a_tag_is_limited_as_a_name(control: Control, tag: str) -> None:
    control.new("a", LINES, tag=("web",))
    calls: list[Callable[[], Any]] = [
        lambda: control.new("b", LINES, tag=(tag,)),
        lambda: control.tag("a", (tag,)),
        lambda: control.tag("a", remove=(tag,)),
        lambda: control.ls(tag=tag),
    ]
    for call in calls:
        with pytest.raises(Usage) as error:
            call()
        assert error.value.reason == "bad_tag"
    assert [(one.name, one.tags) for one in control.ls().sessions] == [("a", ("web",))]


@pytest.mark.on("memory", "tmux")
def test_a_session_has_at_most_64_tags(control: Control) -> None:
    many = tuple(f"t{number}" for number in range(64))
    control.new("a", LINES, tag=(*many, "t0"))
    calls: list[Callable[[], Any]] = [
        lambda: control.new("b", LINES, tag=(*many, "more")),
        lambda: control.new("b", LINES, tag=(*many, "more"), dry_run=True),
        lambda: control.tag("a", ("more",)),
        lambda: control.tag("a", ("more", "two"), remove=("t0",)),
    ]
    for call in calls:
        with pytest.raises(Usage) as error:
            call()
        assert error.value.reason == "too_many_tags"
    assert [(one.name, one.tags) for one in control.ls().sessions] == [("a", many)]
    assert control.tag("a", ("more",), remove=("t0",)).tags == (*many[1:], "more")


@pytest.mark.on("memory", "tmux")
def test_a_session_that_has_more_tags_than_it_may_can_lose_them(
    control: Control, another: Callable[..., Control]
) -> None:
    control.new("a", LINES, tag=("x", "y", "z"))
    strict = another(limits=changed(LIMITS, tags=1))
    with pytest.raises(Usage):
        strict.tag("a", ("more",))
    assert strict.tag("a", remove=("x",)).tags == ("y", "z")
    assert strict.tag("a", ("more",), remove=("y", "z")).tags == ("more",)


@pytest.mark.on("tmux")
def test_of_many_who_tag_at_once_nobody_is_lost(control: Control, another: Callable[[], Control]) -> None:
    control.new("a", LINES)
    wanted = [f"t{number}" for number in range(8)]
    threads = [threading.Thread(target=another().tag, args=("a", (tag,))) for tag in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(control.show("a").tags) == wanted


@pytest.mark.on("tmux")
def test_a_lost_session_keeps_its_tags(control: Control, until: Callable[..., Any]) -> None:
    control.new("a", LINES, tag=("web",))
    control.tag("a", ("late",))
    server = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    os.kill(server, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{server}/exe").exists())
    assert control.ls().sessions[0].state is State.LOST
    assert control.ls(tag="late").sessions[0].tags == ("web", "late")


# tables and formats


def test_tags_have_a_column_only_if_there_are_any() -> None:
    assert "TAGS" not in table.sessions((DB,), OPTIONS)[0]
    head, db, _ = table.sessions((DB, FIX), OPTIONS)
    assert head.split() == ["NAME", "STATE", "PROFILE", "IDLE", "TAGS", "CMD", "CWD"]
    assert db.split()[4] == "-"


def test_a_question_stands_behind_its_session_with_its_answers() -> None:
    fix = table.sessions((DB, FIX), OPTIONS)[2]
    assert fix.endswith("/tmp/wt/fix  ? Bash(rm -r build): allow | always | deny")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120])
def test_on_a_terminal_names_and_answers_are_whole(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(table, "width", lambda: width)
    long = Session("x" * 63, "5-6", status=Status(State.BUSY), argv=("make", "y" * 300), cwd="/" + "z" * 300)
    lines = table.sessions((DB, FIX, long), OPTIONS)
    text = "\n".join(lines)
    assert all(one.name in text for one in (DB, FIX, long))
    if width >= 40:
        assert "allow | always | deny" in text
    lines = table.sessions((DB, FIX), OPTIONS)
    assert width < 60 or all(cells.columns(line) <= width for line in lines)


def test_a_question_without_room_goes_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "width", lambda: 70)
    *_, fix, question = table.sessions((DB, FIX), OPTIONS)
    assert fix.startswith("fix-the-very-long-name  asking")
    assert question == "  ? Bash(rm -r build): allow | always | deny"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("{name}: {asking}", "fix-the-very-long-name: Bash(rm -r build): allow | always | deny"),
        (r"{name:.<3}|{pid}|{tags}\n{state}\\t", None),
        (r"{exit_status}{signal}{profile}", ""),
    ],
)
def test_a_format_knows_every_field_and_leaves_out_what_is_unknown(form: str, text: str | None) -> None:
    if text is not None:
        table.check_form(form)
        assert table.formed(form, FIX) == text
    else:
        with pytest.raises(Usage) as error:
            table.check_form(form)
        assert all(f"{field}" in error.value.hint for field in to_json(FIX))
        assert table.formed(form.replace(":.<3", ":<3"), FIX) == "fix-the-very-long-name||web\nasking\\t"


def test_show_tells_all_in_groups() -> None:
    one = Session(
        "fix", "3-4",
        status=Status(
            State.ASKING, ASKING.kind, by=EvidenceKind.PROMPT, confidence=Confidence.LIKELY, asking=ASKING
        ),
        argv=("claude", "a b"), cwd="/tmp/wt/fix", cols=120, rows=40, pid=7, tags=("web", "x"), cursor="c1:a.1:9",
        created="2026-01-02T03:04:05Z",
    )  # fmt: skip
    groups = [group.split("\n") for group in "\n".join(table.facts(one, OPTIONS)).split("\n\n")]
    assert groups[0] == ["name:     fix", "state:    asking (approval)", "by:       prompt, likely"]
    assert groups[1] == [
        "question: Bash(rm -r build)",
        "options:  allow | always | deny",
        "answer:   tmuxctl decide fix allow",
    ]
    assert groups[2] == ["command:  claude 'a b'", "cwd:      /tmp/wt/fix", "tags:     web x", "pid:      7"]
    assert groups[3][0] == "size:     120x40"
    assert re.fullmatch(r"created:  2026-01-02T03:04:05Z  \(\d+d ago\)", groups[3][1])
    assert groups[4] == ["id:       3-4", "cursor:   c1:a.1:9"]


def test_what_is_shown_cannot_steer_the_terminal() -> None:
    one = Session(
        "x", "1", profile="\x1b]0;", argv=("\x9b",), cwd="/\x1b", owner="\x1b", machine="\x08",
        status=Status(
            State.ASKING, "\x1b[2J", "\x07",  # type: ignore[arg-type]
            asking=Asking(InputKind.CHOICE, "1", "\x1b[31m", (Option("\x1b[0m", "", ()),)),
        ),
    )  # fmt: skip
    lines = [*table.facts(one, OPTIONS), *table.sessions((one,), OPTIONS), table.line(one, OPTIONS)]
    assert all(line.isprintable() for line in lines)


def test_a_password_is_never_shown_as_a_word_to_type() -> None:
    asking = Asking(InputKind.PASSWORD, "1", "Password:")
    one = Session("x", "1", status=Status(State.ASKING, asking=asking))
    assert "answer:   tmuxctl --socket s decide x --secret-from-env VARIABLE" in table.facts(
        one, changed(OPTIONS, socket="s")
    )


@pytest.mark.parametrize(
    ("seconds", "age", "length"),
    [(0.4, "0s", "0s"), (59.9, "59s", "59s"), (200, "3m", "3m20s"), (7500, "2h", "2h05m"), (270000, "3d", "3d03h")],
)
def test_times_are_short(seconds: float, age: str, length: str) -> None:
    assert (cells.age(seconds), cells.length(seconds)) == (age, length)


# on a real terminal


@pytest.fixture
def terminal(control: Control, place: Path) -> Callable[[str], object]:
    """Types a line into a shell on a terminal, where `tmuxctl` drives the server that the terminal is on."""
    control.new("t", SHELL, size="110x24", env={"TMUXCTL_SOCKET": "t", "TMUX_TMPDIR": str(place), "PS1": "$ "})
    control.ask("t", f'tmuxctl() {{ {sys.executable} -m tmuxctl "$@"; }}'.encode())
    return lambda line: control.send("t", line.encode())


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("wait s --exit", r"waiting for s to end, \d+s: idle \(prompt\)  \(Ctrl-C stops waiting\)"),
        ("wait --all s,b --exit", r"waiting for s,b to end, \d+s: s idle \(prompt\); b busy"),
        ("ask s 'sleep 50'", r"waiting for s to answer, \d+s: busy"),
        ("exec s -- sleep 50", r"waiting for s to run sleep, \d+s: busy"),
        ("run -- sleep 50", r"waiting for sleep in run-\w+ to end, \d+s: busy \(\w+\)  \(Ctrl-C ends it\)"),
        ("run --name r -- sh -c 'printf \"Go on? [y/N] \"; read a'", r"sh in r to end, \d+s: asking: Go on\? \[y/N\]"),
    ],
)
def test_a_wait_shows_what_for_and_leaves_no_trace(
    control: Control, terminal: Callable[[str], None], command: str, shown: str
) -> None:
    control.new("s", SHELL)
    control.new("b", ("sh", "-c", "sleep 60; :"), wait=False)
    terminal(f"tmuxctl {command}")
    assert control.wait("t", text=shown).matched
    assert "waiting for" in control.screen("t").text
    control.keys("t", ("C-c",))
    assert control.wait("t").matched
    assert "waiting for" not in control.screen("t").text
    assert "tmuxctl: interrupted" in control.screen("t").text
    assert control.ask("t", b"echo status $?").answer == "status 130"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_starting_shows_a_line_too_and_it_goes_by_itself(control: Control, terminal: Callable[[str], None]) -> None:
    terminal("tmuxctl new b -- sh -c 'sleep 60; :'")
    assert control.wait("t", text=r"waiting for b to be ready, 1s").matched
    assert control.wait("t").matched
    assert "waiting for" not in control.screen("t").text
    assert "attach: tmuxctl attach b" in control.screen("t").text


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize("how", ["-q", "--json", "2>&1 | cat", "TERM=dumb"])
def test_nobody_who_did_not_ask_sees_it(control: Control, terminal: Callable[[str], None], how: str) -> None:
    before, after = ("TERM=dumb ", "") if how.startswith("TERM") else ("", how)
    terminal(f"{before}tmuxctl wait t --exit --timeout 2s {after}; echo over")
    assert control.wait("t", text="over").matched
    assert control.wait("t").matched
    printed = control.read("t", raw=True)
    assert b"over" in printed.data
    assert b"waiting for" not in printed.data


@pytest.mark.night
@pytest.mark.on("tmux")
def test_states_are_coloured_on_a_terminal_only(control: Control, terminal: Callable[[str], None]) -> None:
    control.new("s", SHELL)
    green = f"\x1b[{color.STATES['idle']}midle".encode()

    def prints(line: str) -> bytes:
        terminal(line)
        assert control.wait("t").matched
        return bytes(control.read("t", raw=True).data)

    for line in ("tmuxctl ls", "tmuxctl show s", "timeout 3 " + f"{sys.executable} -m tmuxctl watch s"):
        assert green in prints(line), line
    for line in ("NO_COLOR=1 tmuxctl ls", "TERM=dumb tmuxctl ls", "tmuxctl --no-color show s", "tmuxctl ls | cat"):
        found = prints(line)
        assert b"idle" in found, line
        assert b"midle" not in found, line


def test_only_a_run_without_a_name_is_given_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "shown", lambda options: True)
    assert re.fullmatch(r"run-[0-9a-f]{8}", progress.watched(find(Control, "run"), {}, OPTIONS)["name"])
    assert progress.watched(find(Control, "run"), {"name": "x"}, OPTIONS) == {"name": "x"}
    assert progress.watched(find(Control, "new"), {}, OPTIONS) == {}


# help


def tmuxctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tmuxctl", *words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("words", [["ask"], ["profile", "test"], ["profile"], ["help"], []])
def test_help_is_the_help_of_the_command(place: Path, words: list[str]) -> None:
    done = tmuxctl("help", *words)
    assert done.returncode == 0
    assert done.stdout.startswith("Examples:\n  ")
    assert done.stdout == tmuxctl(*words, "--help").stdout
    assert json.loads(tmuxctl("help", *words, "--json").stdout)["text"] + "\n" == done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["help", "aks"], "did you mean 'ask'?"),
        (["help", "profile", "tset"], "did you mean 'test'?"),
        (["help", "ask", "twice"], "tmuxctl ask --help"),
        (["shwo", "db"], "did you mean 'show'?"),
        (["list"], "in tmuxctl: tmuxctl ls"),
    ],
)
def test_a_command_there_is_not_is_told_with_the_nearest(place: Path, words: list[str], said: str) -> None:
    done = tmuxctl(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_every_command_has_examples_and_the_first_are_of_the_main_ones() -> None:
    every = [one for _, found in reference.commands(App()) for one in found]
    assert not [one.name for one in every if not one.operation.meta.examples]
    assert any(example.startswith("ask ") for example in help.FIRST)


# the picture in README


@pytest.fixture(scope="module")
def recording() -> list[Any]:
    return [json.loads(line) for line in (ROOT / "docs" / "hero.cast").read_text().splitlines()]


def test_the_cast_is_well_formed(recording: list[Any]) -> None:
    head, *events = recording
    assert (head["version"], head["width"], head["height"]) == (2, cast.COLUMNS, cast.ROWS)
    assert all(isinstance(at, float) and kind in ("o", "m") and isinstance(text, str) for at, kind, text in events)
    times = [0.0, *(at for at, _, _ in events)]
    assert times == sorted(times)
    assert max(after - before for before, after in pairwise(times)) <= cast.GAP_SECONDS + 0.001


def test_the_cast_plays_what_readme_shows_at_a_glance(recording: list[Any]) -> None:
    readme = (ROOT / "README.md").read_text()
    commands = list(cast.hero(readme).commands)
    assert [text for _, kind, text in recording[1:] if kind == "m"] == commands, "make cast"
    printed = "".join(text for _, kind, text in recording[1:] if kind == "o")
    assert all(f"$ {command}\r\n" in printed for command in commands)


def test_the_cast_shows_the_answers_readme_shows(recording: list[Any]) -> None:
    printed = "".join(text for _, kind, text in recording[1:] if kind == "o")
    for shown in ("\r42\r\n", "exit status 6\r", "asking", "Install it into ~/bin? [Y/n]: yes | no", "box: yes, now"):
        assert shown in printed


def test_cast_and_picture_are_of_no_machine(recording: list[Any]) -> None:
    picture = (ROOT / "docs" / "hero.svg").read_text()
    text = json.dumps(recording) + picture
    assert not re.findall(r"/home|/root|/tmp|/work|/Users|@\w+:|https?://(?!www\.w3\.org/2000/svg)", text)
    shown = "".join(xml.etree.ElementTree.fromstring(picture).itertext())
    assert cast.hero((ROOT / "README.md").read_text()).commands[0] in shown
