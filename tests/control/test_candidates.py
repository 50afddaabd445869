"""Several programs for one task: who is started, and who takes a turn when another one cannot."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from control import agent as agent_program
from control.agent import Agent
from programs import program

from tmuxctl import errors
from tmuxctl.control import Control
from tmuxctl.control.turns import candidates, failover
from tmuxctl.control.turns.candidates import Candidate, ordered
from tmuxctl.errors import Conflict, Denied, Exited, Failed, NotFound, Usage
from tmuxctl.model import State, Status
from tmuxctl.program_profile import Profile, Rule
from tmuxctl.results import Answer
from tmuxctl.surfaces.cli.printing import show
from tmuxctl.surfaces.cli.printing.output import Options

REAL = pytest.mark.on("tmux", "pipe")

Chats = Callable[..., None]


@pytest.fixture
def chats(place: Path, monkeypatch: pytest.MonkeyPatch) -> Chats:
    """Writes profiles of chat programs: their names, each with what it does."""
    monkeypatch.setenv("CHAT_LOG", str(place / "chat.log"))
    folder = place / ".config" / "tmuxctl" / "profiles"
    folder.mkdir(parents=True)

    def write(*more: str, **modes: str) -> None:
        for name, mode in modes.items():
            command = ["nosuch-program"] if mode == "missing" else list(program("chat", mode, name))
            lines = [
                "schema: tmuxctl/profile@1",
                f"command: {json.dumps(command)}",
                f"prompt: [{{id: input, re: '^{name}>(?: |$)', where: cursor-line, detail: agent}}]",
                "errors: [{id: limit, re: 'usage limit reached', detail: limited, retry: none}]",
                "exit: {send: /exit}",
                *more,
            ]
            (folder / f"{name}.yaml").write_text("\n".join(lines) + "\n")

    return write


@pytest.fixture
def log(place: Path) -> Callable[[], Sequence[str]]:
    """The lines that chat programs were given, each behind the name of who was."""
    path = place / "chat.log"
    return lambda: path.read_text().splitlines() if path.exists() else []


def reasons(passed: Sequence[object]) -> list[tuple[str | None, str]]:
    return [(one.profile, one.reason) for one in passed]  # type: ignore[attr-defined]


# the order


def of(*names: str, **costs: float) -> tuple[Candidate, ...]:
    return tuple(Candidate(name, Profile(name, cost=costs.get(name))) for name in names)


def order(found: Sequence[Candidate], route: str, last: str | None = None) -> str:
    return "".join(one.name for one in ordered(found, route, last))


def test_the_first_route_is_the_given_order():
    assert order(of("b", "a", "c"), "first", "b") == "bac"


def test_the_cheapest_comes_first_and_who_has_no_cost_last_each_in_the_given_order():
    assert order(of("a", "b", "c", "d", "e", c=1, b=2, e=1), "cheapest") == "cebad"


def test_by_turns_the_next_after_the_last_one_comes_first():
    assert order(of("a", "b", "c"), "round-robin") == "abc"
    assert order(of("a", "b", "c"), "round-robin", "a") == "bca"
    assert order(of("a", "b", "c"), "round-robin", "c") == "abc"
    assert order(of("a", "b", "c"), "round-robin", "gone") == "abc"


def test_who_met_no_limit_comes_first_then_whose_limit_ended_longest_ago():
    limits = {"a": 30.0, "c": 10.0, "d": 20.0}
    found = ordered(of("a", "b", "c", "d", "e"), "least-limited", "b", limits)
    assert "".join(one.name for one in found) == "becda"


def test_a_session_beside_another_has_a_name_that_tmux_takes():
    assert failover.beside("fix", "codex") == "fix-codex"
    long = [failover.beside("x" * 60, name) for name in ("codex", "gemini")]
    assert {len(name) for name in long} == {63}
    assert len(set(long)) == 2


# which turn came to nothing

RULES = (Rule("limit", "usage limit", detail="limited"), Rule("server", "^■ server error"))
LIMITED = Profile("p", errors=RULES, exit_send="/exit")


def turn(text: str, state: State = State.IDLE, detail: str | None = "limited", status: int | None = None) -> Answer:
    return Answer("s", text, Status(state, detail=detail), exit_status=status)


@pytest.mark.parametrize(
    ("answer", "screen", "why"),
    [
        (turn(""), "", "limited"),
        (turn("usage limit reached\nresets 3pm\n\nsee /upgrade"), "", "limited"),
        (turn("Your plan\nhas a usage limit"), "", "limited"),
        (turn("I changed a.py.\n\nusage limit reached"), "■ usage limit reached", None),
        (turn("I changed a.py."), "■ usage limit reached", None),
        (turn("usage limit reached: what that means\n" + "It says more.\n" * 10), "", None),
        (turn("usage limit reached", detail="agent"), "", None),
        (turn("5"), "5-hour usage limit reached", None),
        (turn("all else went well", State.EXITED, None, 3), "■ server error, all else went well", None),
        (turn("", State.BUSY), "", None),
        (turn("", State.ASKING), "", None),
        (turn("", State.UNKNOWN), "", None),
        (turn("", State.EXITED, None, 3), "", "exited"),
        (turn("", State.EXITED, None, 0), "", None),
        (turn("", State.EXITED, None, None), "", None),
        (turn("", State.EXITED, None, 143), "", None),
        (Answer("s", "", Status(State.EXITED), signal="TERM"), "", None),
        (Answer("s", "", Status(State.EXITED), signal="SEGV"), "", "exited"),
        (turn("I have begun.", State.EXITED, None, 3), "", None),
        (turn("server error 500", State.EXITED, None, 3), "x\n■ server error 500\n", "exited"),
        (turn("server error 500, I am told", State.EXITED, None, 3), "x\n■ server error 5\n00\n", "exited"),
        (turn("another error", State.EXITED, None, 3), "x\n■ server error 500\n", None),
    ],
)
def test_only_a_turn_that_plainly_has_no_answer_came_to_nothing(answer: Answer, screen: str, why: str | None):
    assert failover.spent(answer, LIMITED, screen) == why


def test_who_is_told_to_exit_did_not_die():
    assert failover.spent(turn("", State.EXITED, None, 1), LIMITED, "", b"/exit") is None


# new


@REAL
def test_the_first_that_is_installed_and_starts_is_taken(control: Control, chats: Chats):
    chats(gone="missing", ill="broken", spent="used-up", well="answers", spare="answers")
    made = control.new("fix", candidates=("gone", "ill", "spent", "well", "spare"))
    assert (made.name, made.profile, made.state) == ("fix", "well", State.IDLE)
    assert [one.name for one in control.ls().sessions] == ["fix"]
    ended = control.ls(ended=True).sessions
    assert sorted((one.profile, one.exit_status) for one in ended if one.state is State.EXITED)[0] == ("ill", 3)


@pytest.mark.on("tmux")
def test_who_was_passed_over_is_told_with_the_session_that_was_started(control: Control, chats: Chats):
    chats(gone="missing", ill="broken", well="answers", spare="answers")
    made = control.new("fix", candidates=("gone", "ill", "well", "spare"))
    assert reasons(made.passed) == [("gone", "not_installed"), ("ill", "exited")]
    assert made.passed[1].message == "ended at its start with status 3: no key for this model"
    assert control.new("alone", candidates=("well", "spare")).passed == ()


@pytest.mark.on("tmux")
def test_the_command_says_who_was_passed_over_and_why(control: Control, chats: Chats, capfd):
    chats(gone="missing", well="answers")
    made = control.new("fix", candidates=("gone", "well"))
    show.Printer(Options()).show(made)
    told = capfd.readouterr()
    assert told.out.startswith("fix  idle  well")
    assert "gone: 'nosuch-program' is not installed" in told.err
    show.Printer(Options(json=True)).show(made)
    assert json.loads(capfd.readouterr().out)["passed"][0]["reason"] == "not_installed"


@pytest.mark.on("tmux")
def test_the_reason_why_a_candidate_ended_is_no_line_of_its_stack(control: Control, chats: Chats):
    chats(crash="panics", well="answers")
    [why] = control.new("fix", candidates=("crash", "well")).passed
    assert why.message == "ended at its start with status 101: cannot open its settings"


@REAL
def test_without_a_candidate_each_ones_reason_and_installation_is_told(control: Control, chats: Chats):
    chats("install: get-it now", gone="missing", ill="broken")
    with pytest.raises(Failed) as error:
        control.new("fix", candidates=("gone", "ill"))
    caught = error.value
    assert (caught.reason, caught.exit) == ("no_candidate", 1)
    assert "gone: 'nosuch-program' is not installed" in caught.message
    assert "ill: ended at its start with status 3: no key for this model" in caught.message
    assert caught.hint == "gone: install it: get-it now"
    assert [one["reason"] for one in caught.details["candidates"]] == ["not_installed", "exited"]
    assert control.ls().sessions == ()


@pytest.mark.on("tmux")
def test_a_dry_run_says_who_would_be_taken_and_why_not_the_others(control: Control, chats: Chats, place: Path):
    chats(gone="missing", well="answers", spare="answers")
    plan = control.new("fix", candidates=("gone", "well", "spare"), dry_run=True)
    assert plan.profile == "well"
    assert reasons(plan.passed) == [("gone", "not_installed"), ("spare", "later")]
    with pytest.raises(Failed, match="not installed"):
        control.new("fix", candidates=("gone",), dry_run=True)
    assert control.ls().sessions == ()
    assert not list(place.glob("state/tmuxctl/*/candidates"))


@pytest.mark.on("tmux")
def test_the_cheapest_is_taken(control: Control, chats: Chats):
    chats("cost: 3", dear="answers")
    chats("cost: 0.5", cheap="answers")
    chats(who="answers")
    assert control.new("a", candidates=("who", "dear", "cheap"), route="cheapest").profile == "cheap"


@REAL
def test_by_turns_each_is_taken_once_before_one_is_again(control: Control, chats: Chats):
    chats(a="answers", gone="missing", b="answers")
    names = ("a", "gone", "b")
    made = [control.new(f"s{number}", candidates=names, route="round-robin", wait=False) for number in range(4)]
    assert [one.profile for one in made] == ["a", "b", "a", "b"]
    control.new("only", candidates=("gone", "b"), route="round-robin", wait=False)
    assert control.new("s4", candidates=names, route="round-robin", wait=False).profile == "a"


@REAL
def test_the_least_limited_is_taken(control: Control, chats: Chats):
    chats(spent="used-up", a="limited", b="answers", c="answers")
    names = ("spent", "a", "b")
    assert control.new("one", candidates=names, route="least-limited").profile == "a"
    assert control.ask("one", b"x").answered_by == "b"
    # what has been limited at its start, and in a turn
    assert control.new("two", candidates=names, route="least-limited").profile == "b"
    plan = control.new("three", candidates=("a", "spent", "c"), route="least-limited", dry_run=True)
    assert [plan.profile, *(one.profile for one in plan.passed)] == ["c", "spent", "a"]
    candidates.note_limit(control.machine, "spent", "2999-01-01T00:00:00Z")
    plan = control.new("three", candidates=("spent", "a"), route="least-limited", dry_run=True)
    assert plan.profile == "a"


@pytest.mark.on("tmux")
def test_two_at_once_have_turns_of_their_own(control: Control, another: Callable[[], Control], chats: Chats):
    names = ("a", "b", "c", "d")
    chats(**dict.fromkeys(names, "answers"))
    found: list[str | None] = []

    def one(number: int) -> None:
        made = another().new(f"s{number}", candidates=names, route="round-robin", wait=False)
        found.append(made.profile)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(filter(None, found)) == list(names)


@pytest.mark.on("tmux")
def test_a_session_that_is_there_is_reused_whoever_s_turn_it_is(control: Control, chats: Chats):
    chats(a="answers", b="answers")
    first = control.new("fix", candidates=("a", "b"), route="round-robin")
    again = control.new("fix", candidates=("a", "b"), route="round-robin", if_exists="reuse")
    assert (again.id, again.profile) == (first.id, "a")
    assert control.new("next", candidates=("a", "b"), route="round-robin").profile == "b"
    with pytest.raises(Conflict):
        control.new("fix", candidates=("a", "b"))
    chats(gone="missing")
    with pytest.raises(Failed):
        control.new("fix", candidates=("gone",), if_exists="replace")
    assert control.show("fix").id == first.id


@pytest.mark.on("tmux")
def test_a_mistake_in_the_list_is_an_error_before_anything_starts(control: Control, chats: Chats, place: Path):
    chats(a="answers")
    (place / ".config/tmuxctl/profiles/mute.yaml").write_text("schema: tmuxctl/profile@1\n")
    with pytest.raises(NotFound, match="no profile named 'typo'"):
        control.new("fix", candidates=("a", "typo"))
    for wrong in ({"candidates": ("mute",)}, {"candidates": ("auto",)}, {"candidates": ("a",), "profile": "a"}):
        with pytest.raises(Usage):
            control.new("fix", **wrong)
    with pytest.raises(Usage):
        control.new("fix", ("cat",), candidates=("a",))
    with pytest.raises(NotFound):
        control.ask("fix", b"x", fallback=("typo",))
    assert control.ls().sessions == ()


# ask


@REAL
def test_who_answered_is_told_of_every_turn(control: Control, chats: Chats):
    chats(a="answers")
    control.new("fix", profile="a")
    assert control.ask("fix", b"x").answered_by == "a"
    control.new("bare", ("cat",), profile="none")
    assert control.ask("bare", b"x").answered_by is None


@REAL
def test_a_limited_program_s_turn_goes_to_the_next(control: Control, chats: Chats, log):
    chats(a="limited", gone="missing", b="answers")
    control.new("fix", candidates=("a", "gone", "b"))
    found = control.ask("fix", b"do it")
    assert (found.answer, found.answered_by, found.session) == ("b was told: do it", "b", "fix-b")
    assert reasons(found.passed) == [("a", "limited"), ("gone", "not_installed")]
    assert found.passed[0].message.endswith("usage limit reached, resets 3pm")
    assert log() == ["a: do it", "b: do it"]
    there = {one.name: one for one in control.ls().sessions}
    assert there["fix-b"].tags == ("fallback",)
    assert there["fix"].state is State.IDLE


@pytest.mark.night
@REAL
def test_the_session_beside_is_used_again_and_the_first_asked_first(control: Control, chats: Chats, log):
    chats(a="limited", b="answers")
    control.new("fix", candidates=("a", "b"))
    first = control.ask("fix", b"one")
    second = control.ask("fix", b"two")
    assert (first.turn, second.turn, second.session) == (1, 2, "fix-b")
    assert log() == ["a: one", "b: one", "a: two", "b: two"]
    control.rename("fix", "mend")
    assert control.ask("mend", b"three").session == "fix-b"
    control.kill(("fix-b",))
    assert control.ask("mend", b"four").session == "mend-b"
    assert control.ask("mend-b", b"/exit").state is State.EXITED
    anew = control.ask("mend", b"five")
    assert (anew.session, anew.turn) == ("mend-b", 1)


@REAL
def test_a_program_that_is_dead_is_stood_in_for(control: Control, chats: Chats, log):
    chats(a="dies", b="answers")
    control.new("fix", candidates=("a", "b"))
    found = control.ask("fix", b"one")
    assert (found.answer, found.answered_by) == ("b was told: one", "b")
    assert reasons(found.passed) == [("a", "exited")]
    again = control.ask("fix", b"two")
    assert (again.answer, again.turn) == ("b was told: two", 2)
    assert log() == ["a: one", "b: one", "b: two"]


@pytest.mark.on("tmux")
def test_a_lost_session_is_stood_in_for_as_it_was_started(control: Control, chats: Chats, place: Path, until):
    chats(a="answers")
    chats("env: {THEIRS: b}", b="about")
    (place / "work").mkdir()
    control.new("fix", profile="a", cwd=str(place / "work"), env={"MINE": "1"}, size="90x20")
    control.machine.transport.run([("kill-server",)])
    until(lambda: control.ls().sessions[0].state is State.LOST)
    found = control.ask("fix", b"x", fallback=("b",))
    assert found.answer == f"{place}/work 90 20 1 b -"
    assert reasons(found.passed) == [("a", "lost")]


@REAL
def test_the_session_beside_has_place_size_variables_and_plugins_of_the_first(control: Control, chats: Chats, place):
    chats("env: {MINE: a}", a="limited")
    chats("size: 70x9", b="about")
    (place / "work").mkdir()
    (place / "more.env").write_text("FILED=yes\n")
    started: dict[str, Any] = {"cwd": str(place / "work"), "env": {"MINE": "1"}, "size": "90x20", "tag": ("nightly",)}
    control.new("fix", profile="a", env_file=str(place / "more.env"), lifetime="1h", **started)
    control.resize("fix", "91x21")
    assert control.ask("fix", b"x", fallback=("b",)).answer == f"{place}/work 91 21 1 - yes"
    beside = control.show("fix-b")
    assert (beside.plugins, beside.tags) == (("timeout",), ("nightly", "fallback"))


@pytest.mark.on("tmux")
def test_both_work_in_the_worktree_of_the_first(control: Control, chats: Chats, place: Path, needs):
    needs("git")
    repository = str(place / "work")
    who = ("-c", "user.name=x", "-c", "user.email=x@example")
    commit = (*who, "-C", repository, "commit", "-q", "--no-gpg-sign", "--allow-empty", "-mx")
    for words in (("init", "-q", repository), commit):
        subprocess.run(("git", *words), check=True)
    chats(a="limited", b="about")
    made = control.new("fix", profile="a", cwd=repository, worktree="task", scratchpad="pad")
    found = control.ask("fix", b"x", fallback=("b",))
    assert found.answer.startswith(f"{place}/state/tmuxctl/worktrees/")
    assert (made.plugins, control.show("fix-b").plugins) == (("worktree", "scratchpad"), ("scratchpad",))


@pytest.mark.on("tmux")
def test_a_pane_of_another_server_has_nobody_beside(control: Control, chats: Chats, person):
    chats(b="answers")
    with pytest.raises(Usage, match="sessions of tmuxctl's own"):
        control.ask(f"tmux@{person.socket}:work:", b"x", fallback=("b",))


@pytest.mark.on("tmux")
def test_what_its_profile_gave_the_first_is_not_for_the_next(control: Control, chats: Chats):
    chats("env: {THEIRS: a}", a="limited")
    chats(b="about")
    control.new("fix", profile="a")
    assert control.ask("fix", b"x", fallback=("b",)).answer.endswith(" - - -")


@pytest.mark.on("tmux")
def test_who_is_named_with_the_turn_comes_before_the_other_candidates(control: Control, chats: Chats):
    chats(a="limited", b="answers", c="answers")
    control.new("fix", candidates=("a", "b"))
    assert control.ask("fix", b"x", fallback=("c", "a")).answered_by == "c"
    assert control.ask("fix", b"x").answered_by == "b"


@pytest.mark.on("tmux")
def test_a_turn_that_may_have_been_taken_is_given_to_nobody_else(control: Control, chats: Chats, log):
    chats(a="midway", b="answers", c="dies-midway", d="asks")
    for name in ("a", "c", "d"):
        control.new(name, profile=name)
    begun = control.ask("a", b"one", fallback=("b",))
    assert (begun.answered_by, begun.passed) == ("a", ())
    assert begun.answer.startswith("I have begun with one.")
    died = control.ask("c", b"two", fallback=("b",))
    assert (died.state, died.answered_by) == (State.EXITED, "c")
    asked = control.ask("d", b"three", fallback=("b",))
    assert (asked.state, asked.answered_by) == (State.ASKING, "d")
    with pytest.raises(errors.DecisionNeeded):
        control.ask("d", b"four", fallback=("b",))
    assert log() == ["a: one", "c: two", "d: three"]
    assert sorted(one.name for one in control.ls().sessions) == ["a", "c", "d"]


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_busy_program_is_no_reason(control: Control, chats: Chats):
    chats(b="answers")
    control.new("s", ("sh",))
    control.send("s", b"sleep 30")
    with pytest.raises(Conflict) as error:
        control.ask("s", b"echo x", fallback=("b",))
    assert error.value.reason == "busy"
    slow = control.ask("s", b"sleep 30", fallback=("b",), interrupt=True, timeout=8.0)
    assert (slow.timed_out, slow.session) == (True, "s")


@pytest.mark.on("tmux")
def test_a_program_told_to_exit_is_not_replaced_by_that_turn(control: Control, chats: Chats, log):
    chats(a="answers", b="answers")
    control.new("fix", candidates=("a", "b"))
    assert control.ask("fix", b"/exit").state is State.EXITED
    assert log() == []
    assert control.ask("fix", b"next").answered_by == "b"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_whose_time_was_over_or_that_was_killed_is_not_replaced_by_that_turn(
    control: Control, another: Callable[[], Control], chats: Chats, until, log
):
    chats(a="hangs", b="answers")
    control.new("fix", profile="a", lifetime="3s")
    found = control.ask("fix", b"one", fallback=("b",))
    assert (found.state, found.answered_by) == (State.EXITED, "a")
    control.new("mend", profile="a")
    ended: list[Answer] = []
    thread = threading.Thread(target=lambda: ended.append(another().ask("mend", b"two", fallback=("b",))))
    thread.start()
    until(lambda: "a: two" in log())
    control.kill(("mend",), grace=0.1)
    thread.join()
    assert [one.answered_by for one in ended] == ["a"]
    assert log() == ["a: one", "a: two"]


@pytest.mark.on("tmux")
def test_who_is_limited_until_later_is_not_asked_before(control: Control, chats: Chats, log):
    chats(a="limited", b="answers")
    made = control.new("fix", candidates=("a", "b"))
    candidates.note_limited(control.machine, made.id, "2999-01-01T00:00:00Z")
    found = control.ask("fix", b"one")
    assert found.passed[0].message == "is limited until 2999-01-01T00:00:00Z"
    assert log() == ["b: one"]
    candidates.note_limited(control.machine, made.id, "2001-01-01T00:00:00Z")
    control.ask("fix", b"two")
    assert log() == ["b: one", "a: two", "b: two"]


@pytest.mark.on("tmux")
def test_a_turn_with_an_id_stays_with_the_program_that_was_given_it(control: Control, chats: Chats, log):
    chats(a="limited", b="answers", c="answers")
    made = control.new("fix", candidates=("a", "b", "c"))
    candidates.note_limited(control.machine, made.id, "2999-01-01T00:00:00Z")
    first = control.ask("fix", b"one", id="turn0001")
    # its limit is over before the caller asks once more what became of the turn
    candidates.note_limited(control.machine, made.id, None)
    again = control.ask("fix", b"one", id="turn0001")
    assert (again.answer, again.session, again.answered_by) == (first.answer, "fix-b", "b")
    assert log() == ["b: one"]
    assert control.ask("fix", b"two", id="turn0002").session == "fix-b"
    assert log() == ["b: one", "a: two", "b: two"]


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize("tells", [True, False], ids=["telling", "silent"])
def test_the_limit_of_a_program_with_a_composer(control: Control, chats: Chats, place: Path, tells: bool):
    chats(b="answers")
    agent = Agent(control, place).start(tells=tells)
    found = agent.ask("limit", fallback=("b",))
    assert (found.answer, found.session) == ("b was told: limit", "a-b")
    assert reasons(found.passed) == [("agent", "limited")]
    died = agent.ask("exit 3", fallback=("b",))
    assert (died.answer, reasons(died.passed)) == ("b was told: exit 3", [("agent", "exited")])
    assert agent.submitted == ["limit", "exit 3"]


@pytest.mark.on("tmux")
def test_an_answer_that_a_program_told_itself_may_speak_of_limits(control: Control, chats: Chats, place: Path):
    chats(b="answers")
    agent = Agent(control, place)
    rule = "re: '^  ⎿  Usage limit reached'"
    text = agent_program.PROFILE.read_text()
    assert rule in text
    careless = place / ".config/tmuxctl/profiles/careless.yaml"
    careless.write_text(text.replace(rule, "re: 'Usage limit'").replace("name: agent", "name: careless"))
    control.new("a", (agent_program.PROGRAM,), profile="careless")
    found = agent.ask("say Usage limit reached is what it says.", fallback=("b",))
    assert (found.answered_by, found.source, found.passed) == ("careless", "hook", ())


@pytest.mark.on("tmux")
def test_a_limit_that_says_when_it_is_over_is_remembered_until_then(control: Control, chats: Chats, place: Path, log):
    chats(a="limited", b="answers")
    path = place / ".config/tmuxctl/profiles/a.yaml"
    path.write_text(path.read_text().replace("limit reached", "limit reached, resets (?P<until>.+)"))
    control.new("fix", candidates=("a", "b"))
    told = [control.ask("fix", text).passed[0].message for text in (b"one", b"two")]
    assert re.fullmatch(r"is limited until 2\d{3}-\d\d-\d\dT\d\d:00:00Z: usage limit reached, resets 3pm", told[0])
    assert told[1] == told[0].partition(": ")[0]
    assert log() == ["a: one", "b: one", "b: two"]


@pytest.mark.on("tmux")
def test_nobody_types_into_a_session_that_only_has_the_name(control: Control, chats: Chats, log):
    chats(a="limited", b="answers")
    control.new("fix", candidates=("a", "b"))
    control.new("fix-b", profile="b")
    with pytest.raises(Failed) as error:
        control.ask("fix", b"one")
    assert error.value.reason == "no_candidate"
    assert [one["reason"] for one in error.value.details["candidates"]] == ["limited", "exists"]
    assert log() == ["a: one"]


@REAL
def test_when_nobody_takes_the_turn_everybody_s_reason_is_told(control: Control, chats: Chats):
    chats("install: get-it now", a="limited", b="limited", ill="broken", gone="missing")
    control.new("fix", candidates=("a", "b", "ill", "gone"))
    with pytest.raises(Failed) as error:
        control.ask("fix", b"one")
    told = error.value.details["candidates"]
    assert [(one["profile"], one["reason"]) for one in told] == [
        ("a", "limited"), ("b", "limited"), ("ill", "exited"), ("gone", "not_installed")
    ]  # fmt: skip
    assert "ill: ended at its start with status 3: no key for this model" in error.value.message
    assert "get-it now" in error.value.hint
    assert error.value.exit == 1


@pytest.mark.on("tmux")
def test_a_limited_turn_without_anybody_else_is_a_result(control: Control, chats: Chats):
    chats(a="limited")
    control.new("fix", candidates=("a",))
    found = control.ask("fix", b"one")
    assert (found.state, found.detail, found.answered_by) == (State.IDLE, "limited", "a")


@pytest.mark.on("tmux")
def test_a_program_that_cannot_be_started_at_all_is_stood_in_for(control: Control, chats: Chats):
    chats(b="answers")
    found = control.ask("fix", b"one", new="nosuch-program --fast", fallback=("b",))
    assert (found.answered_by, found.session) == ("b", "fix-b")
    assert found.passed[0].reason == "not_installed"
    with pytest.raises(NotFound):
        control.ask("other", b"one", fallback=("b",))


@pytest.mark.on("tmux")
def test_a_caller_who_may_not_create_gets_no_session_beside(control: Control, chats: Chats, log):
    chats(a="limited", b="answers")
    control.new("fix", candidates=("a", "b"))
    for more in ({}, {"fallback": ("b",)}):
        with pytest.raises(Denied):
            control.call("ask", {"session": "fix", "text": "x", **more}, rights=("read", "write"))
        # who names one is told before anything is typed
        assert log() == ["a: x"]
    assert [one.name for one in control.ls().sessions] == ["fix"]


@pytest.mark.on("tmux")
def test_a_dead_program_without_candidates_is_an_error_as_ever(control: Control, chats: Chats):
    chats(a="dies", b="answers")
    control.new("fix", profile="a")
    control.new("other", candidates=("a", "b"))
    assert control.ask("fix", b"one").state is State.EXITED
    with pytest.raises(Exited):
        control.ask("fix", b"two")
