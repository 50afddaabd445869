"""Several steps in one call: checked before the first, each wait behind the input before it, a result for each."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import tracemalloc
from collections.abc import Callable
from functools import partial
from inspect import unwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import Milestones
from control.conftest import Held
from control.person import Person
from programs import LINES, PYTHON, SHELL

from tmuxctl.control import Control
from tmuxctl.control.turns import batch
from tmuxctl.errors import Conflict, Denied, NotFound, Usage
from tmuxctl.operations import Call, Cancelled, find, under
from tmuxctl.results import Answer, Batch, Output, Ran, Screen, Wait, Written
from tmuxctl.terminal.tmux import lease, options
from tmuxctl.terminal.tmux.lease import LeaseHolder
from tmuxctl.terminal.tmux.server import read_pane
from tmuxctl.timing import Limits

Steps = list[dict[str, Any]]

BASH = ("bash", "--norc")


def outcomes(done: Batch) -> list[str]:
    return [one.outcome for one in done.steps]


@pytest.mark.on("tmux", "pipe", "resident")
def test_each_step_has_the_result_of_its_operation(control: Control) -> None:
    control.new("t", BASH)
    steps: Steps = [
        {"send": "echo o''ne"},
        {"wait": {"text": "^(o)ne$", "timeout": "10s"}},
        {"keys": ["Up", "Enter"]},
        {"wait": {"prompt": True}},
        {"ask": {"text": "echo two"}},
        {"exec": ["sh", "-c", "echo three; echo four"]},
        {"screen": {"state": False}},
    ]
    done = control.batch("t", steps)
    assert (done.session, done.ok, done.exit, done.failed, done.timed_out) == ("t", True, 0, None, False)
    assert [one.operation for one in done.steps] == [next(iter(step)) for step in steps]
    assert outcomes(done) == ["done"] * 7
    written, waited, _, _, answer, ran, screen = (one.result for one in done.steps)
    assert isinstance(written, Written)
    assert isinstance(waited, Wait)
    assert isinstance(answer, Answer)
    assert isinstance(ran, Ran)
    assert isinstance(screen, Screen)
    assert (waited.text, waited.groups, answer.text, ran.output) == ("one", ("o",), "two", "three\nfour\n")
    assert screen.text.split("\n").count("one") == 2


@pytest.mark.on("memory", "tmux", "pipe")
def test_steps_come_as_a_list_as_text_and_as_a_file(control: Control, place: Path) -> None:
    control.new("t", LINES)
    steps = [{"send": "ünï\u2028"}, {"wait": {"text": "n"}}]
    lines = "\n".join(json.dumps(one, ensure_ascii=False) for one in steps)
    (place / "steps").write_text(f"\n{lines}\n\n")
    assert control.batch("t", steps).ok
    for text in (lines, lines.encode(), json.dumps(steps, indent=2), b"\xef\xbb\xbf" + json.dumps(steps).encode()):
        assert control.call("batch", {"session": "t", "steps": text}).ok
    done = control.batch("t", file=str(place / "steps"))
    assert outcomes(done) == ["done", "done"]


@pytest.mark.night
@pytest.mark.on("memory", "tmux", "resident")
def test_neither_the_echo_nor_earlier_output_ends_a_wait(control: Control, held: Held) -> None:
    control.new("t", SHELL)
    steps: Steps = [
        {"send": "echo M''ARK"},
        {"wait": {"text": "^MARK$"}},
        {"send": f"{held.words}; echo MARK"},
        {"wait": {"text": "MARK", "timeout": 0.3}},
        {"screen": {}},
    ]
    done = control.batch("t", steps)
    assert (outcomes(done), done.exit, done.failed) == (["done"] * 3 + ["failed", "not_run"], 124, 4)
    assert (done.steps[3].result.timed_out, done.steps[4].result, done.steps[4].exit) == (True, None, None)
    # it was the step that took too long, not the whole
    assert not done.timed_out
    held.go()
    assert control.wait("t", text="MARK").matched == "text"


@pytest.mark.night
@pytest.mark.on("memory", "tmux", "resident")
def test_a_wait_looks_behind_the_input_of_its_batch_though_another_types(
    control: Control, another: Callable[[], Control]
) -> None:
    control.new("t", LINES)
    other = another()

    def carry_out(step: batch.PlannedStep) -> Any:
        found = unwrap(step.operation.function)(control, "t", **step.arguments)
        # between any two steps
        with under(Call(os.urandom(8).hex())):
            other.send("t", b"other")
            assert other.wait("t", text="other").matched
        return found

    wait = {"wait": {"text": "^mine$", "timeout": 10}}
    done = batch.run(control.machine, "t", parse([{"send": "mine"}, wait, wait]), carry_out)
    assert outcomes(done) == ["done"] * 3
    late = [{"send": "next"}, {"wait": {"text": "^mine$", "timeout": 0.3}}]
    assert batch.run(control.machine, "t", parse(late), carry_out).exit == 124


def parse(steps: object) -> tuple[batch.PlannedStep, ...]:
    """The steps as `Control.batch` has them."""
    return batch.parse_steps(steps, None, partial(find, Control), limit=Limits().batch_steps)


@pytest.mark.parametrize("between", [",", "\n"], ids=["array", "lines"])
def test_steps_of_too_many_values_are_refused_before_there_are_any(between: str) -> None:
    step = '{"keys": [' + ",".join(["{}"] * 999) + "]}"
    text = between.join([step] * 250)
    tracemalloc.start()
    try:
        with pytest.raises(Usage) as wrong:
            parse(text if between == "\n" else f"[{text}]")
        assert wrong.value.reason == "too_long"
        # 250,000 empty objects take 16 MB
        assert tracemalloc.get_traced_memory()[1] < 10 * len(text)
    finally:
        tracemalloc.stop()


def test_lines_are_counted_before_they_are_read() -> None:
    with pytest.raises(Usage) as wrong:
        parse("1\n" * 2000 + "no JSON")
    assert wrong.value.reason == "too_many_steps"
    # what stands in a text is no value
    assert len(parse(json.dumps([{"send": "[{,}]" * 100_000}]))) == 1


WRONG: list[tuple[Any, str, str]] = [
    ([{"wait": {"txet": "a"}}], "wait does not take 'txet'", "did you mean text"),
    ([{"wiat": {}}], "no step 'wiat'", "wait"),
    ([{"kill": {}}], "no step 'kill'", "send, keys"),
    ([{"run": "make"}], "no step 'run'", '{"exec": "CMD"}'),
    ([{"sendKeys": ["Enter"]}], "no step 'sendKeys'", '{"keys": ["Enter"]}'),
    ([{"type": "send", "text": "a"}], "no step 'type'", "send, keys"),
    ([{1: 2}], "no step 1", "send, keys"),
    ([{"batch": []}], "no step 'batch'", "send, keys"),
    ([{"send": "a", "enter": False}], "'enter' beside send", '"enter": ...'),
    ([{"send": "a", "wait": {}}], "names send and wait", "object of its own"),
    ([{}], "no step ''", "send, keys"),
    (["screen"], "is no object", '{"screen": {}}'),
    ([None], "is no object", "as in"),
    ([{"wait": "a"}], "wait takes an object", '{"wait": {}}'),
    ([{"decide": None}], "decide takes an object", '{"decide": {}}'),
    ([{"keys": ["Entr"]}], "no key named 'Entr'", "enter"),
    ([{"keys": {}}], "keys needs keys", "keys --help"),
    ([{"wait": {"text": "("}}], "not a valid pattern", ""),
    ([{"send": {"text": "a", "wait_text": "["}}], "not a valid pattern", ""),
    ([{"wait": {"timeout": "soon"}}], "timeout", ""),
    ([{"wait": {"idle": "yes"}}], "idle: 'yes' is neither true nor false", ""),
    ([{"wait": {"any": ["t"]}}], "wait does not take 'any'", ""),
    ([{"send": {"session": "u", "text": "a"}}], "send does not take 'session'", ""),
    ([{"send": "a\0b"}], "NUL", ""),
    ([{"send": 3}], "text: 3 is not text", ""),
    ([{"send": "\udc80"}], "not Unicode", ""),
    ([{"wait": {"since": "yesterday"}}], "not a valid cursor", ""),
    ([{"ask": {"text": "a", "decide": ["always"]}}], "is not a decision", ""),
]


@pytest.mark.night
@pytest.mark.on("memory", "tmux")
@pytest.mark.parametrize(("steps", "message", "hint"), WRONG)
def test_a_wrong_step_is_named_before_any_is_carried_out(
    control: Control, steps: Steps, message: str, hint: str
) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage) as wrong:
        control.batch("t", [{"send": "typed"}, *steps])
    assert "step 2" in wrong.value.message
    assert message in wrong.value.message
    assert hint in wrong.value.hint
    control.send("t", b"last", wait_text="last")
    assert "typed" not in control.screen("t").text


@pytest.mark.on("memory")
@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (None, "give the steps"),
        ([], "no steps"),
        ("", "no steps"),
        ("[]", "no steps"),
        ('{"send": "a"', "line 1 of the steps is no JSON"),
        ('{"send": "a"}\n{"send"}', "line 2 of the steps is no JSON"),
        ('{"send": "a", "send": "b"}', "the same key twice"),
        ('[{"send": "a"},]', "the steps are no JSON"),
        ("[" * 100_000, "the steps are no JSON"),
        ("1", "step 1 is no object"),
        (b"\xff", "not UTF-8"),
        (" " * (5 << 20), "more than"),
        (5, "neither"),
        ([{"screen": {}}] * 1001, "1001 steps are more than 1000"),
    ],
)
def test_what_are_no_steps_is_told(control: Control, steps: object, message: str) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage, match=message):
        control.batch("t", steps)


@pytest.mark.on("memory")
def test_a_file_that_cannot_be_read_is_told(control: Control, place: Path) -> None:
    control.new("t", LINES)
    with pytest.raises(Usage, match="cannot be read"):
        control.batch("t", file=str(place / "nowhere"))
    with pytest.raises(Usage, match="give the steps"):
        control.batch("t", [{"screen": {}}], file=str(place / "nowhere"))


@pytest.mark.night
@pytest.mark.on("tmux", "pipe", "resident")
def test_it_ends_at_the_first_step_that_fails_or_goes_on(control: Control) -> None:
    control.new("t", BASH)
    steps: Steps = [
        {"exec": "true"},
        {"exec": "exit_with() { return 7; }; exit_with"},
        {"decide": "yes"},
        {"screen": {}},
    ]
    first = control.batch("t", steps)
    assert (outcomes(first), first.exit, first.failed) == (["done", "failed", "not_run", "not_run"], 7, 2)
    every = control.batch("t", steps, keep_going=True)
    assert (outcomes(every), every.exit, every.failed, every.ok) == (["done", "failed", "failed", "done"], 7, 2, False)
    error = every.steps[2].error
    assert error is not None
    assert (error["code"], every.steps[2].exit) == ("conflict", 4)
    # as the command `exec` alone tells our failures from its program's
    busy = control.batch("t", [{"send": "sleep 60"}, {"exec": "true"}])
    assert busy.steps[1].error is not None
    assert (busy.exit, busy.steps[1].error["code"]) == (125, "conflict")


@pytest.mark.on("tmux", "resident")
def test_a_program_that_dies_in_the_middle(control: Control) -> None:
    control.new("t", (PYTHON, "-q", "-i", "-I"))
    steps: Steps = [
        {"ask": "6*7"},
        {"send": "import os; print('la' + 'st'); os._exit(4)"},
        {"wait": {"text": "never"}},
        {"screen": {}},
        {"send": "more"},
    ]
    done = control.batch("t", steps, keep_going=True)
    assert outcomes(done) == ["done", "done", "failed", "done", "failed"]
    assert (done.exit, done.failed) == (5, 3)
    assert done.steps[0].result.text == "42"
    assert done.steps[2].error is not None
    assert done.steps[2].error["details"]["exit_status"] == 4
    assert "last" in done.steps[3].result.text.split("\n")
    ends = control.batch("t", [{"wait": {"exit": True}}])
    assert (ends.ok, ends.steps[0].result.exit_status) == (True, 4)


@pytest.mark.on("tmux", "resident")
def test_a_question_is_waited_for_and_answered(control: Control) -> None:
    control.new("t", BASH)
    question = """read -p 'Overwrite it? [y/N] ' answer; echo "got $answer" """
    steps: Steps = [
        {"send": question},
        {"wait": {"asking": True}},
        {"decide": {}},
        {"decide": "yes"},
        {"wait": {"text": "^got (.*)$"}},
    ]
    done = control.batch("t", steps)
    assert outcomes(done) == ["done"] * 5
    assert (done.steps[3].result.option, done.steps[4].result.groups) == ("yes", ("y",))
    # that it asks where its prompt is waited for is a failure, as of `wait`
    asked = control.batch("t", [{"send": question}, {"wait": {}}, {"screen": {}}])
    assert (outcomes(asked), asked.exit) == (["done", "failed", "not_run"], 6)
    assert control.batch("t", [{"ask": {"text": "echo no", "queue": True}}]).exit == 6


@pytest.mark.on("tmux", "resident")
def test_a_database_is_asked_line_by_line(control: Control, needs: Callable[..., None]) -> None:
    needs("sqlite3")
    control.new("t", ("sqlite3",))
    lines = ["create table t (n);", "insert into t values (6), (7);", "select n from t;", "select max(n)*6 from t;"]
    done = control.batch("t", [{"ask": line} for line in lines])
    assert [one.result.text for one in done.steps] == ["", "", "6\n7", "42"]


@pytest.mark.night
@pytest.mark.on("tmux", "resident")
def test_a_time_for_the_whole_ends_the_step_under_way(control: Control) -> None:
    control.new("t", BASH)
    steps: Steps = [{"exec": "true"}, {"exec": {"command": "sleep 60", "timeout": "50s"}}, {"screen": {}}]
    done = control.batch("t", steps, timeout=2.0, keep_going=True)
    assert (outcomes(done), done.exit, done.timed_out) == (["done", "failed", "not_run"], 124, True)
    control.keys("t", ("C-c",))
    none = control.batch("t", steps, timeout=0.0)
    assert (outcomes(none), none.exit, none.failed, none.ok) == (["not_run"] * 3, 124, None, False)


@pytest.mark.on("tmux", "resident")
def test_what_was_done_goes_with_a_cancelled_call(control: Control, held: Held, milestones: Milestones) -> None:
    control.new("t", SHELL)
    cancelled, told = threading.Event(), list[Cancelled]()

    def run() -> None:
        steps = [{"send": "echo first"}, {"ask": f"echo BEG''IN; {held.words}; echo END"}, {"screen": {}}]
        try:
            control.call("batch", {"session": "t", "steps": steps}, cancelled=cancelled)
        except Cancelled as error:
            told.append(error)

    running = threading.Thread(target=run)
    running.start()
    # the line of the first step, and that of the turn
    milestones.wait("typed", "t")
    milestones.wait("typed", "t")
    cancelled.set()
    running.join()
    assert [one["outcome"] for one in told[0].details["batch"]["steps"]] == ["done", "interrupted", "not_run"]
    held.go()
    # the program goes on, and another batch may begin
    assert control.batch("t", [{"wait": {"text": "^END$"}}]).ok


@pytest.mark.night
@pytest.mark.on("resident")
def test_a_thousand_steps(control: Control) -> None:
    # with the terminal's echo the text of one line may come between what cat prints of the one before and its end
    control.new("t", ("sh", "-c", "stty -echo; echo ready; exec cat"))
    assert control.wait("t", text="^ready$").matched == "text"
    done = control.batch(
        "t", [{"send": f"line {number}"} for number in range(999)] + [{"wait": {"text": "^line 998$"}}]
    )
    assert (done.ok, len(done.steps)) == (True, 1000)
    told = control.log("t")
    assert isinstance(told, Output)
    printed = [line for line in told.text.split("\n") if line.startswith("line")]
    assert printed == [f"line {number}" for number in range(999)]


@pytest.mark.on("tmux")
def test_a_session_has_one_batch_at_a_time(
    control: Control, another: Callable[[], Control], held: Held, milestones: Milestones
) -> None:
    control.new("t", SHELL)
    first = list[Batch]()
    other = another()
    steps = [{"send": f"{held.words}; echo END"}, {"wait": {"text": "^END$"}}, {"exec": "echo after"}]
    running = threading.Thread(target=lambda: first.append(control.batch("t", steps)))
    running.start()
    milestones.wait("typed", "t")
    with pytest.raises(Conflict) as refused:
        other.batch("t", [{"send": "mixed"}])
    assert refused.value.reason == "busy"
    # others may type, to answer or to stop what runs
    assert other.send("t", b"").result == "empty"
    assert other.keys("t", ("C-q",)).result == "done"
    held.go()
    running.join()
    assert (first[0].ok, first[0].steps[2].result.output) == (True, "after\n")
    assert other.batch("t", [{"exec": "true"}]).ok
    assert "mixed" not in control.log("t").text


@pytest.mark.on("memory", "tmux")
def test_the_batch_of_a_dead_process_keeps_nobody_out(control: Control) -> None:
    control.new("t", LINES)
    gone = subprocess.Popen(["sleep", "60"])
    holder = LeaseHolder("dead00000000", gone.pid, lease.read_start_time(gone.pid))
    assert lease.take_turn(control.machine.io, holder, read_pane(control.machine.io, "t"), name=options.BATCH)
    with pytest.raises(Conflict, match="another batch"):
        control.batch("t", [{"send": "a"}])
    gone.kill()
    gone.wait()
    assert control.batch("t", [{"send": "a"}]).ok
    assert control.machine.io.look("t", (options.BATCH,)).values == [""]


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_long_step_keeps_the_batch_from_running_out(
    control: Control,
    another: Callable[[], Control],
    held: Held,
    milestones: Milestones,
    until: Callable[[Callable[[], Any]], Any],
) -> None:
    control.new("t", SHELL)
    other = another()
    done = list[Batch]()
    steps = [{"send": f"{held.words}; echo END"}, {"wait": {"text": "^END$", "timeout": "60s"}}]
    running = threading.Thread(target=lambda: done.append(control.batch("t", steps)))
    running.start()
    milestones.wait("typed", "t")
    other.machine.transport.run([("set-option", "-t", "=t:", options.BATCH_UNTIL, "1")])
    until(lambda: other.machine.io.look("t", (options.BATCH_UNTIL,)).values != ["1"])
    with pytest.raises(Conflict, match="another batch"):
        other.batch("t", [{"send": "a"}])
    held.go()
    running.join()
    assert done[0].ok


@pytest.mark.on("tmux", "resident")
def test_nothing_is_typed_into_another_session_of_this_name(control: Control, another: Callable[[], Control]) -> None:
    control.new("t", LINES)
    other = another()

    def carry_out(step: batch.PlannedStep) -> Any:
        found = unwrap(step.operation.function)(control, "t", **step.arguments)
        other.kill(("t",))
        other.new("t", LINES)
        return found

    done = batch.run(control.machine, "t", parse([{"send": "first"}, {"send": "second"}]), carry_out)
    assert outcomes(done) == ["done", "failed"]
    assert done.steps[1].error is not None
    assert (done.steps[1].error["reason"], done.exit) == ("replaced", 3)
    assert "second" not in other.log("t").text
    other.kill(("t",))
    with pytest.raises(NotFound):
        control.batch("u", [{"screen": {}}])


@pytest.mark.on("memory", "tmux")
def test_results_that_are_too_large_together_are_left_out(control: Control, another: Callable[..., Control]) -> None:
    control.new("t", LINES)
    done = another(limits=Limits(batch_bytes=3000)).batch(
        "t", [{"send": "x" * 2500}, {"wait": {"text": "x"}}, {"screen": {}}, {"send": "y"}]
    )
    assert outcomes(done) == ["done"] * 4
    assert [one.truncated for one in done.steps] == [False, False, True, True]
    assert [one.result is None for one in done.steps] == [False, False, True, True]


@pytest.mark.on("memory")
def test_each_step_needs_the_right_of_its_operation(control: Control) -> None:
    control.new("t", LINES)
    steps = [{"send": "typed"}, {"wait": {"text": "typed"}}]
    with pytest.raises(Denied, match=r"step 2, wait, needs the right to read"):
        control.call("batch", {"session": "t", "steps": steps}, rights=("write",))
    assert "typed" not in control.screen("t").text
    assert control.call("batch", {"session": "t", "steps": steps}, rights=("read", "write")).ok


@pytest.mark.on("tmux")
def test_the_steps_of_a_repeated_call_are_typed_once(control: Control) -> None:
    control.new("t", LINES)
    call = {"session": "t", "steps": [{"send": "one"}, {"send": "two"}, {"wait": {"text": "two"}}]}
    for expected in ("done", "dup"):
        done = control.call("batch", call, request_id="0123456789abcdef")
        assert [one.result.result for one in done.steps[:2]] == [expected] * 2
    assert control.screen("t").text.count("one") == 2


@pytest.mark.on("tmux")
def test_a_pane_of_another_tmux_goes_through_the_steps_too(control: Control, person: Person) -> None:
    shell = person.target("work:1.0")
    done = control.batch(shell, [{"send": "echo m''ark"}, {"wait": {"text": "^mark$"}}, {"screen": {}}])
    assert outcomes(done) == ["done"] * 3
    assert "mark" in done.steps[2].result.text
