"""Whatever agents say, in whatever order their turns end, and wherever a run is broken off: its records bring back the same
state, no message is lost or handed over twice, and it ends at its limits."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from fleet.teams import connector
from hypothesis import given, settings
from hypothesis import strategies as st

from tmuxctl.fleet.connector import Connector, Dialogue, FanOut, Meeting, Mesh, OnFail, Pipeline, Recursive, Stage, Stop
from tmuxctl.fleet.running.progress import Progress
from tmuxctl.fleet.running.transcript import Record
from tmuxctl.vocabulary import RunEvent

NAMES = ("a", "b", "c", "d")
AT = "2026-01-01T00:00:00.000Z"

TOPOLOGIES = st.one_of(
    st.sampled_from(
        [
            Pipeline((Stage("a", "{input}"), Stage("b", "{previous}", 0, OnFail(0, 2)), Stage("a", "{previous}"))),
            Pipeline((FanOut(tuple(Stage(name, "{input}") for name in "abc"), 2), Stage("c", "{previous}"))),
            Dialogue(("a", "b"), "a"),
            Meeting("a", ("b", "c", "d"), 2, "parallel"),
            Meeting("a", ("b", "c"), 3, "in-order", decision="DECISION"),
            Mesh({"a": "{input}", "b": "go"}),
            Mesh({"a": "x"}, {"a": ("b",), "b": ("*",), "c": ("a",)}),
            Recursive("a", "b", depth=2, width=3, total=8, parallel=2),
        ]
    )
)

PIECES = st.sampled_from(
    [
        "text",
        "@a: to a",
        "@b: to b",
        "@c: to c",
        "@all: to all",
        "@nobody: to nobody",
        "[from a]",
        "PASS",
        "DECISION",
        "```",
        "```task one\nfirst\n```",
        "```task two\nsecond\n```",
        "{previous} {input}",
    ]
)
ANSWERS = st.lists(PIECES, max_size=4).map("\n".join)


class RecordedRun:
    """A run without programs: every record that a runner would write."""

    def __init__(self, file: Connector) -> None:
        self.file = file
        self.progress = Progress(file)
        self.records: list[Record] = []
        self.note(RunEvent.BEGIN, None, (), file.input, run="r")

    def note(
        self, event: RunEvent, sender: str | None, to: tuple[str, ...], text: str | None, **about: object
    ) -> Record:
        record = Record(len(self.records) + 1, AT, event, sender, to, text, None, about)
        messages = self.progress.note(record)
        self.records.append(record)
        self.messages = messages
        return record

    def take_turns(self) -> None:
        while self.progress.turns < self.file.stop.turns and (attempt := self.progress.take()):
            one = attempt.delivery
            about = {"turn": one.id}
            self.records.append(
                Record(len(self.records) + 1, AT, RunEvent.TURN, None, (one.agent,), one.text, None, about)
            )

    def state(self) -> object:
        """All that decides how the run goes on."""
        one = self.progress
        waiting = {agent: (attempt.delivery, attempt.tries, attempt.id) for agent, attempt in one.attempts.items()}
        ending = one.conversation.ending
        return (
            one.turns,
            waiting,
            one.conversation.agents,
            one.conversation.last,
            ending and (ending.reason, ending.result),
        )

    def read_again(self) -> RecordedRun:
        """The run as another process finds it."""
        other = RecordedRun(self.file)
        other.records = []
        other.progress = Progress(self.file)
        other.progress.note_all(self.records, "test")
        other.records = list(self.records)
        return other


@settings(max_examples=300, deadline=None)
@given(topology=TOPOLOGIES, data=st.data(), turns=st.integers(1, 15))
def test_a_run_goes_on_from_its_records_wherever_it_was_broken_off(topology, data, turns):
    run = RecordedRun(connector(topology, NAMES, stop=Stop(turns=turns)))
    for _ in range(40):
        run.take_turns()
        if data.draw(st.booleans(), label="broken off"):
            again = run.read_again()
            assert again.state() == run.state()
            run = again
        if run.progress.conversation.ending or not run.progress.attempts:
            break
        agent = data.draw(st.sampled_from(sorted(run.progress.attempts)), label="whose turn ends")
        turn = run.progress.attempts[agent].delivery.id
        if data.draw(st.integers(0, 9), label="fails") == 0:
            run.note(RunEvent.SKIPPED, agent, (), "it failed", turn=turn)
        else:
            status = data.draw(st.sampled_from([None, 0, 1]), label="status")
            ends = data.draw(st.sampled_from([None, None, "decision", "text"]), label="ends")
            about = {"turn": turn, "exit_status": status, "ends": ends}
            run.note(RunEvent.MESSAGE, agent, (), data.draw(ANSWERS, label="answer"), **about)
    taken = [one for one in run.records if one.event is RunEvent.TURN]
    assert len(taken) <= turns
    assert run.progress.conversation.ending or run.progress.turns == turns
    assert max(Counter(one.about["turn"] for one in taken).values()) == 1


@pytest.mark.night
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_every_message_of_a_mesh_is_handed_over_once(data):
    run = RecordedRun(connector(Mesh({"a": "begin"}), NAMES, stop=Stop(turns=30)))
    said = 0
    for _ in range(60):
        run.take_turns()
        if run.progress.conversation.ending or not run.progress.attempts:
            break
        agent = data.draw(st.sampled_from(sorted(run.progress.attempts)), label="whose turn ends")
        others = data.draw(st.lists(st.sampled_from([name for name in NAMES if name != agent]), max_size=3), label="to")
        lines = []
        for other in others:
            said += 1
            lines.append(f"@{other}: message {said}.")
        run.note(RunEvent.MESSAGE, agent, (), "\n".join(lines))
        assert [one.to for one in run.messages] == others
    given_texts = [one.text or "" for one in run.records if one.event is RunEvent.TURN]
    handed = Counter(number for text in given_texts for number in re.findall(r"message (\d+)\.", text))
    assert not handed or max(handed.values()) == 1
    if run.progress.conversation.ending:
        assert len(handed) == said


def test_what_comes_together_with_the_stop_of_a_run_does_not_have_it_go_on():
    run = RecordedRun(connector(Mesh({"a": "x", "b": "y"}), NAMES))
    run.take_turns()
    run.note(RunEvent.STOPPED, None, (), "a: its program ended", reason="exited")
    run.note(RunEvent.MESSAGE, "b", (), "@a: hello", turn="b.1")
    assert run.progress.stopped
    run.note(RunEvent.RESUMED, None, (), None)
    assert not run.progress.stopped
    assert list(run.progress.attempts) == ["a"]
