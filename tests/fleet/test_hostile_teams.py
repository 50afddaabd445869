"""Connector files and agents that mean harm: what a plan shows, what is left alone, and what every text is bounded by."""

from __future__ import annotations

import json
import resource
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fleet.teams import PROFILE, ScriptedAgents, connector, tmuxctl
from programs import HERE

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Failed, NotFound, Usage
from tmuxctl.fleet.connector import Mesh, Recursive
from tmuxctl.fleet.files.reading import read_connector
from tmuxctl.fleet.rules.conversation import TEXT_MOST, AgentReply, fill_in
from tmuxctl.fleet.rules.topologies import make_conversation
from tmuxctl.fleet.running.agents import session_name
from tmuxctl.fleet.running.planning import plan
from tmuxctl.fleet.running.runs import RunFolder
from tmuxctl.fleet.running.transcript import LINE_MOST, RunTranscript, last_run
from tmuxctl.fleet.teams import Teams
from tmuxctl.results import TeamReport, TeamRun
from tmuxctl.surfaces.cli.printing import show
from tmuxctl.surfaces.cli.printing.output import Options
from tmuxctl.vocabulary import RunEvent

ECHO = [{"re": ".", "say": "answer {n}"}]
ONE_STAGE = {"type": "pipeline", "stages": [{"agent": "a", "prompt": "{input}"}]}


@dataclass
class Here:
    """A folder with agents, and the teams of a tmux server."""

    control: Control
    folder: Path

    def __post_init__(self) -> None:
        self.agents, self.teams = ScriptedAgents(self.folder), Teams(self.control)
        self.file = self.folder / "team.json"

    def write(self, topology: dict[str, Any], **given: Any) -> None:
        agents = given.pop("agents", None) or {"a": self.agents.agent("a", ECHO)}
        self.agents.write(topology, agents, **given)

    def up(self, **options: Any) -> Any:
        return self.teams.up(self.teams.read(str(self.file)), **options)

    def names(self) -> set[str]:
        return {one.name for one in self.control.call("ls", {}).sessions}


@pytest.fixture
def here(control: Control, place: Path) -> Here:
    return Here(control, place)


# what is agreed to


def test_a_plan_shows_every_text_and_the_command_of_a_profile(place: Path):
    (place / "own.yaml").write_text("schema: tmuxctl/profile@1\ncommand: [sh, -c, 'rm everything']\n")
    agents = {"a": {"command": ["bash"], "role": "touch role"}, "b": {"profile": "./own.yaml"}}
    stages = [{"agent": "a", "prompt": "{input}"}, {"agent": "b", "prompt": "touch later {previous}"}]
    file = ScriptedAgents(place).write({"type": "pipeline", "stages": stages}, agents)
    shown = tmuxctl("connect", "plan", str(file)).stdout
    assert "touch role" in shown
    assert "then to b: touch later {previous}" in shown
    assert "sh -c 'rm everything' (profile " in shown


def test_a_profile_is_found_beside_the_file_and_a_part_of_what_is_agreed_to(place: Path, monkeypatch: Any):
    project = place / "project"
    project.mkdir()
    profile = project / "own.yaml"
    profile.write_text("schema: tmuxctl/profile@1\ncommand: [sh]\n")
    file = ScriptedAgents(project).write(ONE_STAGE, {"a": {"profile": "own.yaml"}})
    before = read_connector(str(file))
    assert before.agents["a"].profile == str(profile)
    profile.write_text("schema: tmuxctl/profile@1\ncommand: [sh, -c, other]\n")
    assert read_connector(str(file)).digest != before.digest
    profile.unlink()
    with pytest.raises(Usage, match=r"agents\.a\.profile: .*No such file"):
        read_connector(str(file))


def test_a_plan_of_texts_that_multiply_is_small(place: Path):
    (place / "in.txt").write_text("x" * TEXT_MOST)
    agents = {f"a{number}": {"command": ["true"]} for number in range(5)}
    start = dict.fromkeys(agents, "{input}" * 1000)
    file = ScriptedAgents(place).write({"type": "mesh", "start": start}, agents, input={"file": "in.txt"})
    found = plan(read_connector(str(file)), RunFolder(str(place)))
    assert {len(one.text) for one in found.first} == {TEXT_MOST}
    assert fill_in("<{input}>", "x" * TEXT_MOST) == "<" + "x" * (TEXT_MOST - 1)


@pytest.mark.parametrize("name", ["runner", "Runner", "tmuxctl"])
def test_no_agent_has_the_name_of_the_session_that_carries_a_run_out(place: Path, name: str):
    topology = {"type": "mesh", "start": {name: "x"}}
    file = ScriptedAgents(place).write(topology, {name: {"command": ["true"]}})
    with pytest.raises(Usage, match="no agent may be called"):
        read_connector(str(file))


# the transcript


@pytest.mark.parametrize("content", [b"ssh-ed25519 AAAA me@host", b"\0" * 100, b"{}"])
def test_a_file_without_a_whole_line_is_left_as_it_is(place: Path, content: bytes):
    file = place / "key"
    file.write_bytes(content)
    with pytest.raises(Failed, match="is no transcript"):
        RunTranscript(str(file))
    assert file.read_bytes() == content


def test_the_first_line_of_a_run_is_cut_off_where_it_was_not_written_to_its_end(place: Path):
    file = place / "t.jsonl"
    file.write_bytes(b'{"n": 1, "at": "20')
    RunTranscript(str(file)).close()
    assert file.read_bytes() == b""


def test_what_has_no_room_is_not_written_in_part(place: Path):
    with closing(RunTranscript(str(place / "t.jsonl"))) as transcript:
        transcript.append([transcript.make(RunEvent.BEGIN, run="r")])
        before = (place / "t.jsonl").read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
        try:
            with pytest.raises(Failed):
                transcript.append([transcript.make(RunEvent.TURN, None, ("a",), "x" * 1000)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (place / "t.jsonl").read_bytes() == before
        transcript.append([transcript.make(RunEvent.STOPPED)])
    assert [one.event for one in last_run(str(place / "t.jsonl"))] == [RunEvent.BEGIN, RunEvent.STOPPED]


@pytest.mark.on("tmux")
def test_a_run_whose_transcript_is_removed_stops_and_its_sessions_can_be_ended(here: Here):
    here.write({"type": "dialogue", "between": ["a", "b"], "first": "a"}, agents={
        name: here.agents.agent(name, ECHO) for name in "ab"
    }, output="t.jsonl")  # fmt: skip

    def remove(record: Any) -> None:
        if record.event is RunEvent.MESSAGE:
            Path("t.jsonl").unlink(missing_ok=True)

    with pytest.raises(Failed, match="was removed"):
        here.up(show=remove)
    assert len(here.agents.given("a") + here.agents.given("b")) < 3
    assert here.names() == {"team-a", "team-b"}
    assert set(here.teams.down("team").ended) == {"team-a", "team-b"}
    assert not Path("t.jsonl").exists()


@pytest.mark.on("tmux")
@pytest.mark.parametrize(
    "content",
    [
        "",
        "garbage\n",
        '{"n": 1, "at": "", "event": "turn", "from": null, "to": [], "text": null}\n',
        '{"n": 1, "at": "", "event": "role", "from": "a", "to": [], "text": null}\n',
        '{"n": 1, "at": "", "event": "begin", "from": null, "to": [], "text": "", "run": 1}\n',
    ],
)
def test_a_team_whose_transcript_is_empty_or_damaged_hides_no_other_and_can_be_ended(here: Here, content: str):
    for name in ("team", "other"):
        here.write(ONE_STAGE, name=name, keep=True)
        here.up()
    Path(here.teams.find("team").transcript).write_text(content)
    assert [one.team for one in here.teams.list_all()] == ["other"]
    for look in (here.teams.status, here.teams.report):
        with pytest.raises((NotFound, Failed)):
            look("team")
    if not content:
        assert list(here.teams.log("team", follow=True)) == []
    assert here.teams.down("team").ended == ("team-a",)
    assert Path(here.teams.find("team").transcript).read_text() == content
    here.teams.down("other")


@pytest.mark.on("tmux")
def test_the_transcript_of_another_team_is_not_written_to(here: Here):
    here.write(ONE_STAGE, output="t.jsonl", name="first")
    here.up()
    before = Path("t.jsonl").read_bytes()
    here.write(ONE_STAGE, output="t.jsonl", name="second")
    with pytest.raises(Conflict, match="that of team 'first'"):
        here.up()
    assert Path("t.jsonl").read_bytes() == before
    with pytest.raises(NotFound):
        here.teams.find("second")


# texts of agents


def test_names_of_tasks_that_are_made_to_collide_are_told_apart():
    conversation = make_conversation(connector(Recursive("root", "worker"), ["root", "worker"]))
    conversation.begin("go")
    assert conversation.take()
    tasks = "```task root-2\nx\n```\n```task root\ny\n```\n```task runner\nz\n```"
    conversation.answer("root", AgentReply(tasks))
    names = [one.agent for one in iter(conversation.take, None)]
    conversation.answer(names[0], AgentReply("X"))
    names += [one.agent for one in iter(conversation.take, None)]
    assert len(set(names)) == 3
    assert not {"root", "runner"} & set(names)
    for name in names[1:]:
        conversation.answer(name, AgentReply("Y"))
    delivery = conversation.take()
    assert delivery
    assert delivery.text == "[result root-2]\nX\n\n[result root]\nY\n\n[result runner]\nY"
    conversation.answer("root", AgentReply("done"))
    assert conversation.ending
    assert (conversation.ending.result, conversation.ending.message) == ("done", "")


def test_an_answer_that_addresses_everybody_in_each_line_is_bounded():
    names = [f"a{number}" for number in range(200)]
    conversation = make_conversation(connector(Mesh({"a0": "go"}), names))
    conversation.begin("go")
    conversation.take()
    messages = conversation.answer("a0", AgentReply("@all:x\n" * 100_000))
    assert len(messages) == 199 * 1000
    delivery = conversation.take()
    assert delivery
    assert delivery.agent == "a0"
    assert "100000 texts in an answer: the first 1000 were handed over" in delivery.text


@pytest.mark.on("tmux")
def test_what_a_program_tells_of_itself_is_handed_over_without_escape_sequences(here: Here):
    (here.folder / ".config/tmuxctl/profiles").mkdir(parents=True)
    (here.folder / ".config/tmuxctl/profiles/agent.yaml").write_text((HERE / "agent.yaml").read_text())
    (here.folder / "evil").write_text("one\x1b[201~\x1b]52;c;aGk=\x07\x03\x00two\n[from a]")
    agents = {"a": {"command": [str(HERE / "agent.py")], "profile": "agent"}, "b": here.agents.agent("b", ECHO)}
    stages = [{"agent": "a", "prompt": "file evil"}, {"agent": "b", "prompt": "{previous}"}]
    here.write({"type": "pipeline", "stages": stages}, agents=agents)
    assert here.up().ok
    assert here.agents.given("b") == ["onetwo\n[from a]"]


def test_a_result_and_a_report_move_nothing_on_a_terminal(capsys: pytest.CaptureFixture[str]):
    evil = "\x1b[2J\x1b]52;c;aGk=\x07\x9b31mred"
    run = TeamRun("t", "r", True, "ended", "done", None, evil, {"a": evil}, 1, 0.0, "t.jsonl")
    show.Printer(Options()).show(run)
    show.Printer(Options()).show(TeamReport("t", "r", f"# Team t\n{evil}\n"))
    assert "\x1b" not in capsys.readouterr().out


def test_the_results_of_many_agents_fit_in_a_line_of_the_transcript():
    conversation = make_conversation(connector(Mesh({"a": "x", "b": "x"}), ["a", "b"]))
    conversation.begin("x")
    for delivery in list(iter(conversation.take, None)):
        conversation.answer(delivery.agent, AgentReply("\0" * (TEXT_MOST - 1)))
    assert conversation.ending
    results = dict(conversation.ending.result)  # type: ignore[arg-type]
    assert {name: len(text) for name, text in results.items()} == dict.fromkeys("ab", TEXT_MOST // 2)
    assert len(json.dumps(results)) < LINE_MOST


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_pattern_that_goes_astray_on_an_answer_stops_the_run_and_nothing_hangs(here: Here):
    agents = {"a": here.agents.agent("a", [{"re": ".", "say": "y" * 20_000}])}
    here.write(ONE_STAGE, agents=agents, stop={"text": ".*y.*y.*AGREED"})
    run = here.up()
    assert (run.state, run.reason) == ("stopped", "pattern_timeout")
    here.teams.down("team")


# other teams, and machines


@pytest.mark.on("tmux")
def test_a_team_of_the_same_name_does_not_hide_one_that_is_at_work(here: Here):
    here.write(ONE_STAGE, output="one.jsonl")
    here.teams.folder.keep(here.teams.read(str(here.file)))
    with closing(RunTranscript("one.jsonl")):
        here.write(ONE_STAGE, output="other.jsonl")
        with pytest.raises(Conflict, match="in another process"):
            here.up()
    assert here.teams.folder.find("team").transcript.endswith("/one.jsonl")


@pytest.mark.night
@pytest.mark.on("tmux")
def test_sessions_on_a_machine_that_only_the_file_names_are_ended_also_once_it_was_changed(here: Here):
    agents = {"a": {"command": ["bash", "--norc"], "machine": "other"}}
    machines = {"other": {"command": ["sh"], "socket": "other"}}
    here.write(ONE_STAGE, agents=agents, machines=machines, input="true", keep=True)
    assert here.up().ok
    here.write(ONE_STAGE)
    ended = tmuxctl("connect", "down", "team", "--json")
    assert json.loads(ended.stdout)["ended"] == ["other/team-a"]


@pytest.mark.on("tmux")
def test_a_machine_of_one_team_is_never_taken_for_that_of_another(here: Here):
    agents = {"a": {"command": ["bash", "--norc"], "machine": "other"}}
    for socket in ("one", "two"):
        machines = {"other": {"command": ["sh"], "socket": socket}}
        here.write(ONE_STAGE, agents=agents, machines=machines, input="true", name=f"team-{socket}")
        if socket == "one":
            assert here.up().ok
    with pytest.raises(Usage, match="another machine of another team"):
        here.up()


@pytest.mark.on("tmux")
def test_a_team_with_the_longest_name_is_detached_and_ended(here: Here):
    name = "t" * 63
    here.agents.write(ONE_STAGE, {"a": {"command": ["cat"], "profile": PROFILE}}, name=name)
    assert tmuxctl("connect", "up", str(here.file), "--yes", "--detach").returncode == 0
    assert tmuxctl("connect", "down", str(here.file)).returncode == 0
    assert here.names() <= {session_name(name, "runner")}
