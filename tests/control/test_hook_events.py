"""What a program tells of its turns: files in its session's folder, which anything that runs there may write."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from control.agent import PROGRAM, Agent

from tmuxctl.control import Control
from tmuxctl.control.observation import hook_events
from tmuxctl.control.observation.hook_events import HookEvents
from tmuxctl.control.sessions import finding
from tmuxctl.model import State
from tmuxctl.profile_files import library
from tmuxctl.program_profile import HookEventRule, Hooks, Transcript
from tmuxctl.timing import LIMITS, Limits
from tmuxctl.value import changed

TOLD = Hooks(
    events=(
        HookEventRule("Begin", "submit", input="prompt"),
        HookEventRule("Ask", "asking"),
        HookEventRule("End", "stop", input="prompt", text="text"),
        HookEventRule("Fail", "failure", input="prompt", text="text"),
    )
)
ENDS_ONLY = Hooks(events=(HookEventRule("End", "stop", input="prompt", text="text"),))

pytestmark = pytest.mark.on("tmux")


class Folder:
    """A session's events, each written at a second of one day."""

    def __init__(self, control: Control, place: Path) -> None:
        self.control, self.path = control, place / "events"
        self.path.mkdir()
        self.count = 0

    def tell(self, name: str, at: float, **about: str) -> None:
        self.count += 1
        file = self.path / f"{name}.{1000 + self.count}.{self.count}"
        file.write_text(json.dumps(about))
        os.utime(file, (at, at))

    def events(self, hooks: Hooks = TOLD) -> HookEvents:
        return HookEvents(self.control.machine, str(self.path.parent), hooks)

    def hook(self, since: float, typed: str = "", hooks: Hooks = TOLD) -> str | None:
        found = self.events(hooks).newest_hook(1000.0, since, typed.encode())
        return found.means if found else None


@pytest.fixture
def folder(control: Control, place: Path) -> Folder:
    return Folder(control, place)


def test_the_newest_event_since_an_input_is_told_with_its_age(folder: Folder) -> None:
    folder.tell("Begin", 10)
    folder.tell("Ask", 20)
    found = folder.events().newest_hook(25.0, 5.0, b"")
    assert found == ("asking", 5.0)


def test_what_was_told_before_an_input_says_nothing_of_it(folder: Folder) -> None:
    folder.tell("Begin", 10, prompt="one")
    folder.tell("End", 20, prompt="one")
    assert folder.hook(30, "two") is None


@pytest.mark.parametrize(("end", "event"), [("End", "stop"), ("Fail", "failure")])
def test_the_end_of_a_turn_follows_its_beginning(folder: Folder, end: str, event: str) -> None:
    folder.tell(end, 31)
    assert folder.hook(30, "two") is None
    folder.tell("Begin", 32, prompt="two")
    assert folder.hook(30, "two") == "submit"
    folder.tell(end, 33)
    assert folder.hook(30, "two") == event


def test_an_end_that_names_another_input_is_not_this_turns(folder: Folder) -> None:
    folder.tell("Begin", 31, prompt="two")
    folder.tell("End", 32, prompt="make a title")
    folder.tell("End", 33, prompt="one")
    assert folder.hook(30, "two") == "submit"
    folder.tell("End", 34, prompt="two")
    assert folder.hook(30, "two") == "stop"


def test_after_a_decision_the_end_of_the_same_turn_counts(folder: Folder) -> None:
    folder.tell("Begin", 21, prompt="two")
    folder.tell("Ask", 22)
    folder.tell("End", 31, prompt="make a title")
    assert folder.hook(30) is None
    folder.tell("End", 32, prompt="two")
    assert folder.hook(30) == "stop"
    # and only once
    folder.tell("End", 41, prompt="two")
    assert folder.hook(40) is None


def test_an_input_that_begins_like_another_is_another(folder: Folder) -> None:
    folder.tell("Begin", 31, prompt="go on")
    folder.tell("End", 32, prompt="go")
    assert folder.hook(30, "go on") == "submit"
    folder.tell("Begin", 41, prompt="go")
    folder.tell("End", 42, prompt="go on")
    assert folder.hook(40, "go") == "submit"


def test_of_a_long_input_its_beginning_is_enough(folder: Folder) -> None:
    text = "word " * 2000
    folder.tell("Begin", 31, prompt=text)
    folder.tell("End", 32, prompt=text.strip())
    assert folder.hook(30, text[:2000]) == "stop"


def test_a_program_that_tells_only_ends_is_believed(folder: Folder) -> None:
    folder.tell("End", 31, prompt="two")
    assert folder.hook(30, "two", ENDS_ONLY) == "stop"
    assert folder.hook(30, "three", ENDS_ONLY) is None


def test_events_are_kept_in_the_order_they_came(folder: Folder) -> None:
    for number in (3, 1, 2):
        folder.tell("Begin", number, prompt=str(number))
    assert [one.event.input for one in folder.events().read_between()] == ["1", "2", "3"]
    assert [one.event.input for one in folder.events().read_between(2)] == ["2", "3"]


def test_news_is_what_was_not_read_yet(folder: Folder) -> None:
    seen = folder.events()
    folder.tell("Begin", 1)
    assert seen.has_news()
    seen.read_between()
    assert not seen.has_news()


def test_old_events_go(folder: Folder) -> None:
    for number in range(LIMITS.events_kept + 5):
        folder.tell("Begin", number, prompt=str(number))
    (folder.path / "hook").write_text("its script")
    (folder.path / "notes.txt").write_text("of somebody else")
    seen = folder.events()
    seen.remove_old()
    assert [one.event.input for one in seen.read_between()][:1] == ["5"]
    assert len(list(folder.path.iterdir())) == LIMITS.events_kept + 2


NAMES = [
    "End",
    "End.1",
    "End.1.2.3",
    "End.x.1",
    ".End.1.2",
    "End.1.",
    "E nd.1.2",
    "End.1.2\n",
    "é.1.2",
    "E" * 41 + ".1.2",
]


def test_a_file_of_another_name_is_no_event(folder: Folder) -> None:
    for name in NAMES:
        (folder.path / name).write_text("{}")
    assert folder.events(ENDS_ONLY).read_between() == []


def plant_pipe(path: Path, place: Path) -> None:
    os.mkfifo(path)


def plant_folder(path: Path, place: Path) -> None:
    path.mkdir()


def plant_link(path: Path, place: Path) -> None:
    (place / "secret").write_text('{"text": "a secret"}')
    path.symlink_to(place / "secret")


def plant_dangling(path: Path, place: Path) -> None:
    path.symlink_to(place / "nothing")


def plant_device(path: Path, place: Path) -> None:
    path.symlink_to("/dev/zero")


Plant = Callable[[Path, Path], None]
PLANTS = [plant_pipe, plant_folder, plant_link, plant_dangling, plant_device]


@pytest.mark.on("tmux", "pipe")
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__.partition("_")[2])
def test_what_is_no_plain_file_is_no_event(folder: Folder, place: Path, plant: Plant) -> None:
    plant(folder.path / "End.1.1", place)
    folder.tell("End", 20, text="a plain file")
    assert [one.event.text for one in folder.events(ENDS_ONLY).read_between()] == ["a plain file"]


def test_an_event_of_any_size_is_read_as_far_as_it_may_be_long(folder: Folder) -> None:
    with (folder.path / "End.1.1").open("wb") as file:
        file.truncate(1 << 40)
    (folder.path / "End.1.2").write_text("[" * 500_000)
    assert [one.event.text for one in folder.events(ENDS_ONLY).read_between()] == [None, None]


def test_of_a_text_that_is_known_in_part_what_begins_so_counts(folder: Folder) -> None:
    text = "ファイルを読んで、要点を三つ挙げてください。"
    folder.tell("Begin", 31, prompt=text)
    folder.tell("End", 32, prompt=text)
    found = folder.events().newest_hook(1000.0, 30, text.encode()[:20], cut=True)
    assert found is not None
    assert found.means == "stop"
    assert folder.hook(30, text[:6]) == "submit"


def test_a_clock_that_was_set_back_ends_no_turn(folder: Folder) -> None:
    folder.tell("Begin", 4000, prompt="")
    folder.tell("End", 4001, prompt="")
    folder.tell("Begin", 990, prompt="")
    assert folder.hook(980) == "submit"


def test_of_many_events_the_newest_are_read(folder: Folder, another: Callable[..., Control]) -> None:
    folder.control = another(limits=Limits(events_bytes=3000))
    for number in range(5):
        folder.tell("End", number, text=str(number) * 1000)
    assert [one.event.text for one in folder.events(ENDS_ONLY).read_between()] == ["3" * 1000, "4" * 1000]


def test_what_the_profile_does_not_know_is_not_read(folder: Folder) -> None:
    folder.tell("Begin", 1, prompt="known")
    for number in range(LIMITS.events_kept + 1):
        folder.tell("Other", 2 + number)
    assert [one.event.input for one in folder.events().read_between()] == ["known"]


@pytest.mark.parametrize("at", ["first", "last"])
def test_an_input_is_found_wherever_it_stands_in_a_long_transcript(
    control: Control, place: Path, another: Callable[..., Control], at: str
) -> None:
    near = another(limits=Limits(near_transcript_bytes=300)).machine
    turns = [(name, f"answer to {name}") for name in ("first", *map(str, range(50)), "last")]
    entries = [{"is": kind, "text": text} for each in turns for kind, text in zip(("user", "agent"), each, strict=True)]
    (place / "turns.jsonl").write_text("".join(json.dumps(one) + "\n" for one in entries))
    control.new("a", ("cat",), cwd=str(place))
    how = Transcript(user={"is": "user"}, agent={"is": "agent"}, input="text", text="text")
    found = hook_events.find_transcript_entry(near, finding.find_session(near, "a"), how, "turns.jsonl", at)
    assert found is not None
    assert found.text == f"answer to {at}"


CONFINING = """\
from dataclasses import replace

KIND = "wrap"
CONFINES = {}


def transform(spec):
    return replace(spec, argv=("env", *spec.argv))
"""


@pytest.mark.parametrize(
    ("declared", "before", "is_read"),
    [(False, (), True), (True, (), False), (None, ("sandbox",), False), (None, (), True)],
)
def test_a_transcript_that_a_confined_program_names_is_not_read(
    control: Control, place: Path, declared: bool | None, before: tuple[str, ...], is_read: bool
) -> None:
    folder = place / ".config/tmuxctl/plugins"
    folder.mkdir(parents=True)
    (folder / "box.py").write_text(CONFINING.format(declared))
    (place / "turns.jsonl").write_text('{"is": "user", "text": "ask"}\n{"is": "agent", "text": "answer"}\n')
    control.new("a", ("cat",), cwd=str(place), with_=("box",))
    pane = finding.find_session(control.machine, "a")
    if declared is None:
        # a session of an older version
        facts = {name: fact for name, fact in pane.spec.items() if name != "confined"}
        pane = changed(pane, spec={**facts, "plugins": list(before)})
    how = Transcript(user={"is": "user"}, agent={"is": "agent"}, input="text", text="text")
    found = hook_events.find_transcript_entry(control.machine, pane, how, "turns.jsonl", "ask")
    assert (found is not None) is is_read


# in a session


@pytest.fixture
def agent(control: Control, place: Path) -> Agent:
    return Agent(control, place)


def its_events(place: Path) -> Path:
    [found] = place.glob("state/tmuxctl/*/sessions/*/events")
    return found


def test_when_a_turn_begins_old_events_go(agent: Agent, place: Path, another: Callable[..., Control]) -> None:
    agent.control = another(limits=Limits(events_kept=20))
    agent.start(tells=True)
    for number in range(30):
        (its_events(place) / f"{'Stop' if number % 2 else 'Other'}.{number}.1").write_text("{}")
    assert agent.ask("say hello").answer == "hello"
    # the script, and what this turn told
    assert len(list(its_events(place).iterdir())) == 20 + 1 + 2


@pytest.mark.night
def test_what_is_planted_among_them_breaks_no_turn(agent: Agent, place: Path) -> None:
    agent.start(tells=True)
    for number, plant in enumerate(PLANTS):
        plant(its_events(place) / f"Stop.{number}.1", place)
    (its_events(place) / "Stop.9.9").write_text("[" * 300_000)
    found = agent.ask("think 0.3; say hello")
    assert (found.answer, found.source, found.state) == ("hello", "hook", State.IDLE)


@pytest.mark.parametrize(
    "path", ["/dev/zero", "/dev/tty", "pipe", ".", "nothing", "a\0b", "\ud800", "x" * 5000, "link"]
)
def test_a_transcript_that_is_no_plain_file_is_not_read(agent: Agent, place: Path, path: str) -> None:
    agent.start(tells=True)
    os.mkfifo(place / "pipe")
    talk = [{"type": "user", "message": {"content": "ask"}}, {"type": "assistant", "message": {"content": "answer"}}]
    (place / "kept").write_text("\n".join(map(json.dumps, talk)))
    (place / "link").symlink_to(place / "kept")
    hooks = library.load("agent").hooks
    assert hooks
    assert hooks.transcript
    pane = finding.find_session(agent.control.machine, agent.name)
    assert hook_events.find_transcript_entry(agent.control.machine, pane, hooks.transcript, path, "ask") is None
    assert hook_events.find_transcript_entry(agent.control.machine, pane, hooks.transcript, "kept", "ask")


def test_what_a_program_tells_by_hand_counts_as_told_by_it(agent: Agent, place: Path) -> None:
    """Its events say what an answer was; that something is allowed is never theirs to say."""
    agent.start(tells=True)
    assert agent.ask("tool rm notes; say done").state is State.ASKING
    time.sleep(0.02)
    (its_events(place) / "Stop.7.7").write_text(json.dumps({"last_assistant_message": "all allowed"}))
    shown = agent.control.show(agent.name)
    assert (shown.state, agent.log("ran")) == (State.ASKING, [])


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_a_wait_is_woken_by_what_a_program_tells(agent: Agent, place: Path) -> None:
    agent.start(tells=True)
    agent.control.send(agent.name, b"think 0.4; say hello")
    found = agent.control.wait(agent.name)
    assert (found.state, found.by) == (State.IDLE, "hook")


def words(control: Control, name: str) -> list[str]:
    return Path(f"/proc/{control.show(name).pid}/cmdline").read_text().split("\0")[:-1]


def test_the_program_is_started_so_that_it_tells(agent: Agent, place: Path) -> None:
    agent.start("--no-title", tells=True)
    found = words(agent.control, agent.name)
    assert found[-3:] == ["--hook", str(its_events(place) / "hook"), "--no-title"]
    assert agent.control.show(agent.name).argv[1:] == ("--no-title",)


@pytest.mark.night
def test_a_command_that_only_starts_the_program_is_left_as_it_is(agent: Agent, place: Path) -> None:
    agent.start("--no-title", tells=True)
    agent.control.new("b", ("sh", "-c", f"exec {PROGRAM} --no-title"), profile="agent")
    assert words(agent.control, "b")[-2:] == [PROGRAM, "--no-title"]
    assert agent.control.ask("b", b"say hello").answer == "hello"
