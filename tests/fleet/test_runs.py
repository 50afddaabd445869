"""Runs of teams with real programs: what happens when one fails, asks, ends, or a person types; limits; what is resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import send_to_another_thread
from fleet.teams import ScriptedAgents

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Denied, Failed, NotFound, Usage
from tmuxctl.fleet.running.transcript import RunTranscript
from tmuxctl.fleet.teams import Teams
from tmuxctl.results import TeamRun

pytestmark = pytest.mark.on("tmux")
Until = Callable[[Callable[[], Any]], Any]

ECHO = [{"re": ".", "say": "answer {n}"}]


class Team:
    """A team in a folder, and its runs."""

    def __init__(self, control: Control, folder: Path) -> None:
        self.control, self.folder = control, folder
        self.agents, self.teams = ScriptedAgents(folder), Teams(control)
        self.file = folder / "team.json"
        self.ended: list[TeamRun | BaseException] = []

    def write(self, topology: Mapping[str, Any], agents: Mapping[str, Any], **given: Any) -> None:
        self.agents.write(topology, agents, **given)

    def up(self, **options: Any) -> TeamRun:
        return self.teams.up(self.teams.read(str(self.file)), **options)

    def start(self, **options: Any) -> threading.Thread:
        """Have the run in a thread; `ended` has what it came to."""

        def run() -> None:
            try:
                self.ended.append(self.up(**options))
            except BaseException as error:
                self.ended.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def records(self, event: str = "") -> list[dict[str, Any]]:
        found = [record.to_json() for record in self.teams.log("team")]
        return [one for one in found if event in ("", one["event"])]

    def names(self) -> set[str]:
        return {one.name for one in self.control.call("ls", {}).sessions}


@pytest.fixture
def team(control: Control, place: Path) -> Team:
    return Team(control, place)


def talk(*between: str) -> dict[str, Any]:
    return {"type": "dialogue", "between": list(between), "first": between[0], "opening": "{input}"}


def stages(*names: str) -> dict[str, Any]:
    return {"type": "pipeline", "stages": [{"agent": name, "prompt": f"{name}: {{previous}}"} for name in names]}


# limits


def test_a_run_ends_after_its_turns_and_its_sessions_with_it(team: Team):
    team.write(talk("a", "b"), {name: team.agents.agent(name, ECHO) for name in "ab"}, stop={"turns": 3})
    run = team.up()
    assert (run.ok, run.state, run.reason, run.turns) == (False, "ended", "turns", 3)
    assert team.agents.given("a") == ["the input", "[from b]\nanswer 1"]
    assert team.agents.given("b") == ["[from a]\nanswer 1"]
    assert team.names() == set()


@pytest.mark.night
def test_a_run_ends_when_its_time_is_over(team: Team):
    agents = {"a": team.agents.agent("a", [{"re": ".", "say": "late", "think": 60}]), "b": team.agents.agent("b", ECHO)}
    team.write(talk("a", "b"), agents, stop={"time": "2s"})
    run = team.up()
    assert (run.ok, run.reason) == (False, "time")
    assert team.names() == set()


def test_a_run_ends_at_a_text(team: Team):
    agents = {"a": team.agents.agent("a", ECHO), "b": team.agents.agent("b", [{"re": ".", "say": "fine.\nAGREED"}])}
    team.write(talk("a", "b"), agents, stop={"text": "(?m)^AGREED$"})
    run = team.up()
    assert (run.ok, run.reason, run.result) == (True, "text", "fine.\nAGREED")


def test_sessions_stay_where_the_file_says_so_until_the_team_is_down(team: Team):
    team.write(stages("a"), {"a": team.agents.agent("a", ECHO)}, keep=True)
    assert team.up().ok
    assert team.names() == {"team-a"}
    run = team.up()
    assert (run.state, run.reason) == ("stopped", "exists")
    assert "team-a is there already" in (run.message or "")
    assert team.teams.down("team").ended == ("team-a",)
    assert team.names() == set()


# what an agent's program does


@pytest.mark.night
def test_a_role_is_given_first_and_once(team: Team):
    agents = {name: team.agents.agent(name, ECHO, role=f"You are {name}.\nBe brief.") for name in "ab"}
    team.write(talk("a", "b"), agents, stop={"turns": 4})
    team.up()
    assert team.agents.given("a") == ["You are a.\nBe brief.", "the input", "[from b]\nanswer 2"]
    assert team.agents.given("b")[0] == "You are b.\nBe brief."


@pytest.mark.night
def test_a_question_pauses_its_agent_only_until_somebody_decides(team: Team, until: Until):
    agents = {
        "a": team.agents.agent("a", [{"re": ".", "ask": "Overwrite it?", "say": "done"}]),
        "b": team.agents.agent("b", ECHO),
        "c": team.agents.agent("c", ECHO),
    }
    topology = {"type": "mesh", "start": {"a": "{input}", "b": "x"}}
    agents["b"] = team.agents.agent("b", [{"re": "x", "say": "@c: go on"}, {"re": ".", "say": "enough"}])
    team.write(topology, agents)
    thread = team.start()
    try:
        until(lambda: [one for one in team.records("message") if one["from"] == "c"] if running(team) else None)
        until(lambda: team.teams.status("team").state == "waiting")
        (waits,) = [one for one in team.teams.status("team").agents if one.waits]
        assert (waits.name, waits.waits) == ("a", "Overwrite it?")
        team.control.decide("team-a", "allow")
    finally:
        thread.join(60)
    (run,) = team.ended
    assert isinstance(run, TeamRun)
    assert run.reason == "quiet"
    assert run.results["a"] == "done"
    assert team.agents.given("a") == ["the input"]


def running(team: Team) -> bool:
    try:
        return bool(team.records())
    except NotFound:
        return False


@pytest.mark.night
def test_without_people_a_run_stops_where_everything_waits_for_a_decision_and_goes_on_later(team: Team):
    agents = {"a": team.agents.agent("a", [{"re": ".", "ask": "Go on?", "say": "went on"}])}
    team.write(stages("a"), agents)
    run = team.up(waits_for_people=False)
    assert (run.ok, run.state, run.reason) == (False, "stopped", "asking")
    assert team.names() == {"team-a"}
    team.control.decide("team-a", "allow")
    run = team.up(resume=True)
    assert (run.ok, run.result) == (True, "went on")
    assert team.agents.given("a") == ["a: the input"]


def test_a_question_that_the_file_decides_pauses_nobody(team: Team):
    agents = {"a": team.agents.agent("a", [{"re": ".", "ask": "Go on?", "say": "went on"}], decide={"ask": "allow"})}
    team.write(stages("a"), agents)
    assert team.up(waits_for_people=False).result == "went on"


def test_an_agent_that_ends_stops_the_run(team: Team):
    team.write(stages("a"), {"a": team.agents.agent("a", [{"re": ".", "exit": 3}])})
    run = team.up()
    assert (run.state, run.reason) == ("stopped", "exited")
    assert "a: the program ended in its turn, with status 3" in (run.message or "")


def test_an_agent_that_ends_is_started_again_where_the_file_says_so(team: Team):
    agents = {name: team.agents.agent(name, [{"re": ".", "exit": 3}]) for name in "ab"}
    team.write(stages("a", "b", "a"), agents, stop={"agent_exit": "restart"})
    run = team.up()
    assert run.reason == "done"
    assert len(team.agents.given("a")) == 2
    assert len([one for one in team.records("session") if one["from"] == "a"]) == 2


def test_an_agent_that_ends_takes_no_part_any_more_where_the_file_says_so(team: Team):
    agents = {"a": team.agents.agent("a", [{"re": ".", "exit": 0}]), "b": team.agents.agent("b", ECHO)}
    team.write(stages("a", "b", "a"), agents, stop={"agent_exit": "ignore"})
    run = team.up()
    assert (run.reason, run.result) == ("done", "answer 1")
    assert len(team.agents.given("a")) == 1


@pytest.mark.night
def test_a_turn_that_takes_too_long_is_tried_again_and_then_left_out(team: Team):
    slow: list[dict[str, Any]] = [{"re": ".", "say": "late", "think": 8, "times": 1}, {"re": ".", "say": "quick"}]
    agents = {"a": team.agents.agent("a", slow, turn_timeout="5s"), "b": team.agents.agent("b", ECHO)}
    team.write(stages("a", "b"), agents, on_error="retry:2")
    run = team.up()
    assert run.ok
    # the second try waits until the first has ended
    assert team.agents.given("a") == ["a: the input"] * 2
    assert [one["reason"] for one in team.records("failed")] in (["timeout"], ["timeout", "needs_recovery"])


def test_a_program_that_cannot_be_started_stops_the_run_before_anything_is_typed(team: Team):
    agents = {"a": team.agents.agent("a", ECHO), "b": {"command": ["no-such-program"]}}
    team.write(stages("a", "b"), agents)
    run = team.up()
    assert (run.state, run.reason) == ("stopped", "command_not_found")
    assert team.agents.given("a") == []


# a person


class Person:
    """Somebody who attaches a session in another tmux, and types."""

    def attach(self, session: str) -> None:
        command = [sys.executable, "-m", "tmuxctl", "attach", session]
        self.outer("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "-s", "desk", *command)

    def press(self, *keys: str) -> None:
        self.outer("send-keys", "-t", "=desk:", *keys)

    @staticmethod
    def outer(*words: str) -> None:
        subprocess.run(["tmux", "-L", "desk", *words], check=True, capture_output=True)


@pytest.mark.night
def test_a_person_who_types_pauses_that_agent_only(team: Team, until: Until):
    """While a person types into b's session, a and c go on; b gets its text when they have stopped."""
    hello = [{"re": "start", "say": "@b: hello\n@c: hello"}, {"re": ".", "say": "ok"}]
    agents = {"a": team.agents.agent("a", hello), "b": team.agents.agent("b", ECHO), "c": team.agents.agent("c", ECHO)}
    team.write({"type": "mesh", "start": {"a": "start"}}, agents)
    # the session of b is there, with a person at it, before the run hands anything over
    connector = team.teams.read(str(team.file))
    person, stop = Person(), threading.Event()

    def type_on() -> None:
        while not stop.wait(0.2):
            person.press("x")

    typing = threading.Thread(target=type_on)

    def watch(record: Any) -> None:
        if record.event == "session" and record.sender == "b":
            person.attach("team-b")
            until(lambda: team.control.show("team-b").attached == 1)
            person.press("x")
            typing.start()

    def run() -> None:
        team.ended.append(team.teams.up(connector, show=watch))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        until(lambda: running(team) and [one for one in team.records("message") if one["from"] == "c"])
        until(lambda: team.records("paused"))
        assert {one["from"] for one in team.records("paused")} == {"b"}
        assert not [one for one in team.records("message") if one["from"] == "b"]
    finally:
        stop.set()
        typing.join()
        person.press("C-u")
        thread.join(60)
    (ended,) = team.ended
    assert isinstance(ended, TeamRun)
    assert ended.reason == "quiet"
    assert team.agents.given("b") == ["[from a]\nhello"]


# files and transcripts


def test_a_file_that_nobody_has_agreed_to_is_not_run(team: Team):
    team.write(stages("a"), {"a": team.agents.agent("a", ECHO)})
    words = [sys.executable, "-m", "tmuxctl", "connect", "up", str(team.file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, team.names()) == (8, set())
    assert "--yes" in done.stderr
    connector = team.teams.read(str(team.file))
    with pytest.raises(Denied):
        team.teams.refuse_unconfirmed(connector)
    team.teams.folder.confirm(connector.digest)
    team.teams.refuse_unconfirmed(connector)
    team.file.write_text(team.file.read_text() + "\n")
    with pytest.raises(Denied):
        team.teams.refuse_unconfirmed(team.teams.read(str(team.file)))
    with pytest.raises(Conflict, match="is not as it was"):
        team.teams.refuse_unconfirmed(team.teams.read(str(team.file)), connector.digest)


def test_one_process_at_a_time_carries_a_run_out(team: Team):
    team.write(stages("a"), {"a": team.agents.agent("a", ECHO)}, output="t.jsonl")
    with closing(RunTranscript("t.jsonl")), pytest.raises(Conflict, match="in another process"):
        team.up()


def test_a_run_that_did_not_end_is_resumed_or_given_up_and_no_other_begins(team: Team):
    team.write(stages("a"), {"a": team.agents.agent("a", [{"re": ".", "exit": 1}])})
    assert team.up().state == "stopped"
    with pytest.raises(Conflict, match="did not end"):
        team.up()
    team.teams.down("team")
    assert team.teams.status("team").reason == "given-up"
    team.write(stages("a"), {"a": team.agents.agent("a", ECHO)})
    assert team.up().ok


def test_a_changed_file_does_not_go_on_with_a_run(team: Team):
    team.write(stages("a"), {"a": team.agents.agent("a", [{"re": ".", "exit": 1}])})
    team.up()
    team.write(stages("a", "a"), {"a": team.agents.agent("a", [{"re": ".", "exit": 1}])})
    with pytest.raises(Conflict, match="was changed"):
        team.up(resume=True)


def test_there_is_nothing_to_resume_of_a_team_that_had_no_run(team: Team):
    team.write(stages("a"), {"a": team.agents.agent("a", ECHO)})
    with pytest.raises(NotFound):
        team.up(resume=True)
    with pytest.raises(NotFound, match="no run of a team"):
        team.teams.status("nobody")


@pytest.mark.night
def test_a_line_that_was_not_written_to_its_end_is_cut_off(team: Team):
    team.write(stages("a"), {"a": team.agents.agent("a", [{"re": ".", "ask": "?", "say": "x"}])}, output="t.jsonl")
    team.up(waits_for_people=False)
    with open("t.jsonl", "ab") as file:
        file.write(b'{"n": 99, "at": "2026')
    team.control.decide("team-a", "allow")
    assert team.up(resume=True).result == "x"
    assert [json.loads(line)["n"] for line in Path("t.jsonl").read_text().splitlines()] == list(
        range(1, len(Path("t.jsonl").read_text().splitlines()) + 1)
    )


@pytest.mark.parametrize(
    "content", [b"not a transcript\n", b'{"n": 1}\n', b"[]\n", b"\xff\xfe\n", b"{" * 100_000 + b"\n"]
)
def test_what_is_no_transcript_is_left_as_it_is(team: Team, content: bytes):
    team.write(stages("a"), {"a": team.agents.agent("a", ECHO)}, output="t.jsonl")
    Path("t.jsonl").write_bytes(content)
    with pytest.raises(Failed, match="is no transcript"):
        team.up()
    assert Path("t.jsonl").read_bytes() == content
    assert team.names() == set()


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_a_transcript_is_a_regular_file(team: Team, kind: str):
    team.write(stages("a"), {"a": team.agents.agent("a", ECHO)}, output="t.jsonl")
    if kind == "link":
        Path("other").write_text("kept")
        os.symlink("other", "t.jsonl")
    elif kind == "fifo":
        os.mkfifo("t.jsonl")
    else:
        Path("t.jsonl").mkdir()
    with pytest.raises(Usage, match="cannot be the transcript"):
        team.up()


def test_records_that_another_file_made_are_refused(team: Team):
    team.write(stages("a"), {"a": team.agents.agent("a", [{"re": ".", "exit": 1}])}, output="t.jsonl")
    team.up()
    text = Path("t.jsonl").read_text()
    Path("t.jsonl").write_text(text.replace("a: the input", "rm -rf /"))
    with pytest.raises(Failed, match="was changed"):
        team.up(resume=True)


def test_a_run_is_told_as_a_report_in_which_no_answer_breaks_out_of_its_block(team: Team):
    team.write(stages("a"), {"a": team.agents.agent("a", [{"re": ".", "say": "```\n# not a heading\n````"}])})
    team.up()
    text = team.teams.report("team").text
    assert "# Team team" in text
    assert "`````text\n```\n# not a heading\n````\n`````" in text


@pytest.mark.night
@pytest.mark.parametrize("send", [os.kill, send_to_another_thread])
def test_ctrl_c_stops_a_run_says_how_it_goes_on_and_leaves_its_sessions(
    team: Team, until: Until, send: Callable[[int, int], None]
):
    team.write(stages("a"), {"a": team.agents.agent("a", [{"re": ".", "ask": "Go on?", "say": "went on"}])})
    words = [sys.executable, "-m", "tmuxctl", "connect", "up", str(team.file), "--yes"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running_up:
        until(lambda: running(team) and team.records("asking"))
        send(running_up.pid, signal.SIGINT)
        out, said = running_up.communicate(timeout=60)
    assert (running_up.returncode, out) == (130, "")
    assert f"go on: tmuxctl connect up {team.file} --resume; or end its sessions: tmuxctl connect down team\n" in said
    assert team.names() == {"team-a"}
    team.control.decide("team-a", "allow")
    assert team.up(resume=True).result == "went on"
    assert team.agents.given("a") == ["a: the input"]
