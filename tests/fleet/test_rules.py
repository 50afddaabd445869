"""The rules of each topology: who is told what, in which order, and how it ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fleet.teams import connector

from tmuxctl.fleet.connector import Dialogue, FanOut, Meeting, Mesh, OnFail, Pipeline, Recursive, Stage, Topology
from tmuxctl.fleet.rules.conversation import AgentReply, Delivery, TeamConversation
from tmuxctl.fleet.rules.topologies import make_conversation


class Played:
    """A conversation in which each agent's answers are given beforehand; turns that may begin do so at once, and end in the
    order in which they began."""

    def __init__(self, topology: Topology, names: str, answers: dict[str, list[str]], limit: int = 50) -> None:
        self.conversation: TeamConversation = make_conversation(connector(topology, names.split()))
        self.told: list[tuple[str, str]] = []
        self.most = 0
        self.conversation.begin("the input")
        under_way: list[Delivery] = []
        while self.conversation.ending is None and len(self.told) < limit:
            while delivery := self.conversation.take():
                assert delivery.agent not in {one.agent for one in under_way}
                under_way.append(delivery)
            self.most = max(self.most, len(under_way))
            assert under_way, "nobody has anything to do"
            delivery = under_way.pop(0)
            self.told.append((delivery.agent, delivery.text))
            own = answers.get(delivery.agent.partition("-")[0], [])
            text = own.pop(0) if own else "nothing"
            status = int(text.removeprefix("status ")) if text.startswith("status ") else None
            self.conversation.answer(delivery.agent, AgentReply(text, status, text.startswith("DECISION")))

    @property
    def ended(self) -> tuple[str, bool, object]:
        ending = self.conversation.ending
        assert ending is not None
        return ending.reason, ending.ok, ending.result


# pipeline


def test_each_stage_is_given_the_answer_before_and_the_input():
    stages = (Stage("a", "write: {input}"), Stage("b", "fix: {previous} ({input})"), Stage("a", "again {previous}"))
    played = Played(Pipeline(stages), "a b", {"a": ["A1", "A2"], "b": ["B {input}"]})
    assert played.told == [
        ("a", "write: the input"),
        ("b", "fix: A1 (the input)"),
        # what an answer holds is never filled in
        ("a", "again B {input}"),
    ]
    assert played.ended == ("done", True, "A2")


@pytest.mark.parametrize("sign", ["!rm", "/exit", "\n /exit"])
def test_what_an_agent_says_is_no_command_of_the_next_ones_program(sign: str):
    stages = (Stage("a", "{input}"), Stage("b", "{previous}"), Stage("a", "/review {previous}"))
    played = Played(Pipeline(stages), "a b", {"a": [sign], "b": [sign]})
    # what stands in the file is what its user means
    assert played.told == [("a", "the input"), ("b", f"[from a]\n{sign}"), ("a", f"/review {sign}")]
    played = Played(Pipeline(stages[:2]), "a b", {"a": [f"echo {sign}"]})
    assert played.told[1] == ("b", f"echo {sign}")


def test_what_a_stage_that_failed_printed_is_no_command_either():
    stages = (Stage("a", "{previous}"), check(on_fail=OnFail(0, 1)))
    conversation = make_conversation(connector(Pipeline(stages), ("a", "sh")))
    conversation.begin("/go")
    told = []
    for reply in (AgentReply("x"), AgentReply("/bin/sh: no such command", 127)):
        delivery = conversation.take()
        assert delivery
        told.append(delivery.text)
        conversation.answer(delivery.agent, reply)
    delivery = conversation.take()
    assert delivery
    assert [*told, delivery.text] == ["/go", "test", "[from sh]\n/bin/sh: no such command"]


def check(**given: object) -> Stage:
    return Stage("sh", "test", expect_exit=0, **given)  # type: ignore[arg-type]


def test_a_stage_with_another_status_sends_the_work_back_a_number_of_times():
    stages = (Stage("a", "{input}"), Stage("b", "fix {previous}"), check(on_fail=OnFail(1, 2)))
    played = Played(Pipeline(stages), "a b sh", {"sh": ["status 1", "status 0"], "b": ["B1", "B2"]})
    assert [agent for agent, _ in played.told] == ["a", "b", "sh", "b", "sh"]
    assert played.told[3] == ("b", "fix status 1")
    assert played.ended == ("done", True, "status 0")
    played = Played(Pipeline(stages), "a b sh", {"sh": ["status 1"] * 9})
    assert [agent for agent, _ in played.told] == ["a", *["b", "sh"] * 3]
    assert played.ended == ("failed", False, "status 1")


def test_a_stage_without_a_status_where_one_is_expected_fails_at_once():
    stages = (Stage("a", "{input}"), check(on_fail=OnFail(0, 9)))
    played = Played(Pipeline(stages), "a sh", {"sh": ["no status"]})
    assert played.ended[:2] == ("failed", False)
    assert len(played.told) == 2


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        (None, "[from a]\nA\n\n[from b]\nB\n\n[from c]\nC"),
        (2, "[from a]\nA\n\n[from b]\nB"),
        (1, "[from a]\nA"),
    ],
)
def test_a_fan_out_gives_one_input_to_several_and_joins_their_answers(join: int | None, expected: str):
    stages = (FanOut(tuple(Stage(name, "do {input}") for name in "abc"), join), Stage("d", "{previous}"))
    played = Played(Pipeline(stages), "a b c d", {"a": ["A"], "b": ["B"], "c": ["C"]})
    assert played.most >= 3
    assert ("d", expected) in played.told
    assert played.ended == ("done", True, "nothing")


def test_an_agent_that_is_late_in_a_fan_out_is_waited_for_before_it_has_another_turn():
    stages = (FanOut((Stage("a", "1"), Stage("b", "2")), 1), Stage("b", "3 {previous}"))
    conversation = make_conversation(connector(Pipeline(stages), ("a", "b")))
    conversation.begin("x")
    assert [conversation.take().agent for _ in "ab"] == ["a", "b"]  # type: ignore[union-attr]
    conversation.answer("a", AgentReply("A"))
    assert conversation.take() is None
    conversation.answer("b", AgentReply("late"))
    delivery = conversation.take()
    assert delivery
    assert delivery.text == "3 [from a]\nA"


def test_a_stage_that_is_skipped_passes_on_what_it_was_given():
    conversation = make_conversation(connector(Pipeline((Stage("a", "{input}"), Stage("b", "{previous}"))), ("a", "b")))
    conversation.begin("x")
    conversation.take()
    conversation.skip("a", "it failed")
    delivery = conversation.take()
    assert delivery
    assert (delivery.agent, delivery.text) == ("b", "x")


# dialogue


def test_two_speak_by_turns_until_both_pass():
    played = Played(Dialogue(("a", "b"), "b"), "a b", {"a": ["A1", "PASS"], "b": ["B1", "B2", "PASS"]})
    assert played.told == [
        ("b", "the input"),
        ("a", "[from b]\nB1"),
        ("b", "[from a]\nA1"),
        ("a", "[from b]\nB2"),
        ("b", "[from a]\nPASS"),
    ]
    assert played.ended == ("pass", True, "PASS")


def test_one_pass_ends_nothing():
    played = Played(Dialogue(("a", "b"), "a"), "a b", {"a": ["PASS", "x", "PASS"], "b": ["y", "PASS"]})
    assert len(played.told) == 5


def test_what_was_said_last_is_the_result_of_a_dialogue_that_is_ended():
    conversation = make_conversation(connector(Dialogue(("a", "b"), "a"), ("a", "b")))
    conversation.begin("x")
    for agent, text in (("a", "A1"), ("b", "B1"), ("a", "A2")):
        conversation.take()
        conversation.answer(agent, AgentReply(text))
    conversation.end("text")
    assert conversation.ending
    assert conversation.ending.result == "A2"


# meeting


def test_members_hear_what_was_said_since_their_last_turn():
    answers = {"x": ["X1", "X2"], "y": ["Y1", "Y2"], "lead": ["go on", "DECISION: no"]}
    played = Played(Meeting("lead", ("x", "y"), 3, "in-order", "{input}", "(?m)^DECISION:"), "lead x y", answers)
    assert played.told == [
        ("x", "the input"),
        ("y", "the input\n\n[from x]\nX1"),
        ("lead", "the input\n\n[from x]\nX1\n\n[from y]\nY1"),
        ("x", "[from y]\nY1\n\n[from lead]\ngo on"),
        ("y", "[from lead]\ngo on\n\n[from x]\nX2"),
        ("lead", "[from x]\nX2\n\n[from y]\nY2"),
    ]
    assert played.ended == ("decision", True, "DECISION: no")


def test_members_that_speak_at_once_do_not_hear_each_other_in_a_round():
    answers = {"x": ["X1", "X2"], "y": ["Y1", "Y2"]}
    played = Played(Meeting("lead", ("x", "y"), 2, "parallel"), "lead x y", answers)
    assert played.most == 2
    assert played.told[:2] == [("x", "the input"), ("y", "the input")]
    assert played.told[3:5] == [
        ("x", "[from y]\nY1\n\n[from lead]\nnothing"),
        ("y", "[from x]\nX1\n\n[from lead]\nnothing"),
    ]


def test_the_chair_is_told_to_decide_in_the_last_round():
    played = Played(Meeting("lead", ("x", "y"), 1, decision="^DECISION"), "lead x y", {})
    assert played.told[-1][1].endswith("[from tmuxctl]\nThis was the last round: decide now.")
    assert played.ended == ("rounds", False, "nothing")


# mesh


def test_a_queue_is_handed_over_as_one_turn_when_its_owner_is_free():
    answers = {"a": ["@b: one\n@c: two"], "c": ["@b: three"], "b": ["thanks"]}
    conversation = make_conversation(connector(Mesh({"a": "{input}", "b": "begin"}), ("a", "b", "c")))
    conversation.begin("x")
    assert [conversation.take().agent for _ in "ab"] == ["a", "b"]  # type: ignore[union-attr]
    conversation.answer("a", AgentReply(answers["a"][0]))
    delivery = conversation.take()
    assert delivery
    assert (delivery.agent, delivery.text) == ("c", "[from a]\ntwo")
    conversation.answer("c", AgentReply("@b: three"))
    assert conversation.take() is None
    conversation.answer("b", AgentReply("thanks"))
    delivery = conversation.take()
    assert delivery
    assert (delivery.agent, delivery.text) == ("b", "[from a]\none\n\n[from c]\nthree")
    assert conversation.answer("b", AgentReply("done")) == []
    assert conversation.ending
    assert conversation.ending.reason == "quiet"
    assert conversation.ending.result == {"a": answers["a"][0], "c": "@b: three", "b": "done"}


def test_an_agent_out_of_reach_gets_nothing_and_the_sender_is_told():
    topology = Mesh({"a": "{input}"}, {"a": ("b",), "b": ("*",)})
    played = Played(
        topology, "a b c", {"a": ["@c: psst\n@b: hello\n@all: hi", "no"], "b": ["@a: x\n@c: y"], "c": ["@b: z"]}
    )
    assert ("b", "[from a]\nhello\n\n[from a]\nhi") in played.told
    assert any(agent == "a" and "[from tmuxctl]\ncannot reach c" in text for agent, text in played.told)
    # c has no entry: it reaches nobody
    assert ("c", "[from tmuxctl]\ncannot reach b") in played.told
    assert not any(agent == "c" and "psst" in text for agent, text in played.told)


def test_nobody_reaches_itself():
    played = Played(Mesh({"a": "x"}), "a b", {"a": ["@a: again"]})
    assert played.told[1] == ("a", "[from tmuxctl]\ncannot reach a")


# recursive


def task(name: str, text: str = "do it") -> str:
    return f"```task {name}\n{text}\n```"


def test_results_of_one_answer_come_together_in_its_order():
    answers = {"lead": [f"{task('one')}\n{task('two')}", "all done"], "one": ["did 1"], "two": ["did 2"]}
    played = Played(Recursive("lead", "dev"), "lead dev", answers)
    assert played.told == [
        ("lead", "the input"),
        ("one", "do it"),
        ("two", "do it"),
        ("lead", "[result one]\ndid 1\n\n[result two]\ndid 2"),
    ]
    assert played.ended == ("done", True, "all done")
    assert played.conversation.released == ["one", "two"]


def test_a_task_is_no_command_of_the_workers_program():
    played = Played(Recursive("lead", "dev"), "lead dev", {"lead": [task("one", "!rm -r /")]})
    assert played.told[1] == ("one", "[from lead]\n!rm -r /")


def test_children_may_give_tasks_too_down_to_the_depth():
    answers = {"lead": [task("one")], "one": [task("deep"), "did 1"], "deep": [task("deeper"), "did deep"]}
    played = Played(Recursive("lead", "dev", depth=2), "lead dev", answers)
    assert ("deep", "[refused deeper]\ntasks may not be given deeper than 2") in played.told
    assert ("one", "[result deep]\ndid deep") in played.told
    assert ("lead", "[result one]\ndid 1") in played.told


@pytest.mark.parametrize(
    ("limits", "tasks", "refused"),
    [
        ({"width": 2}, ["a", "b", "c"], "[refused c]\nan answer may give 2 tasks"),
        ({"total": 1}, ["a", "b"], "[refused b]\nall 1 tasks of this run were given"),
        ({}, ["a", "a"], "[refused a]\nanother task of this answer has the name"),
        ({}, ["a", "../b"], "[refused ../b]\na task's name has letters"),
    ],
)
def test_a_task_over_a_limit_is_refused(limits: dict[str, int], tasks: list[str], refused: str):
    played = Played(Recursive("lead", "dev", **limits), "lead dev", {"lead": ["\n".join(map(task, tasks))]})  # type: ignore[arg-type]
    assert refused in played.told[-1][1]


def test_only_so_many_work_at_once_and_those_that_wait_for_results_do_not_count():
    answers = {"lead": ["\n".join(task(name) for name in "abcd")], "a": [task("inner"), "A"]}
    played = Played(Recursive("lead", "dev", parallel=1), "lead dev", answers)
    assert played.most == 1
    assert played.ended[:2] == ("done", True)


def test_a_task_that_failed_is_told_its_parent():
    conversation = make_conversation(connector(Recursive("lead", "dev"), ("lead", "dev")))
    conversation.begin("x")
    conversation.take()
    conversation.answer("lead", AgentReply(task("one")))
    conversation.take()
    conversation.skip("one", "its program ended")
    delivery = conversation.take()
    assert delivery
    assert delivery.text == "[failed one]\nits program ended"


def test_a_task_named_like_an_agent_gets_a_name_of_its_own():
    played = Played(Recursive("lead", "dev"), "lead dev", {"lead": [task("dev"), task("lead")]})
    assert [agent for agent, _ in played.told] == ["lead", "dev-1", "lead", "lead-2", "lead"]


MAKERS: dict[str, Callable[[], Topology]] = {
    "pipeline": lambda: Pipeline((Stage("a", "{input}"),)),
    "dialogue": lambda: Dialogue(("a", "b"), "a"),
    "meeting": lambda: Meeting("a", ("b", "c")),
    "mesh": lambda: Mesh({"a": "x"}),
    "recursive": lambda: Recursive("a", "b"),
}


@pytest.mark.parametrize("topology", MAKERS)
def test_nothing_begins_after_the_end(topology: str):
    conversation = make_conversation(connector(MAKERS[topology](), ("a", "b", "c")))
    conversation.begin("x")
    conversation.end("turns", ok=False)
    assert conversation.take() is None
    conversation.end("later")
    assert conversation.ending
    assert conversation.ending.reason == "turns"
