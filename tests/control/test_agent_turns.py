"""Turns of an agent program: ended when they are, answered whole and clean, and its questions decided by nobody else."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from control.agent import Agent

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Exited
from tmuxctl.model import State

pytestmark = pytest.mark.on("tmux")

ROOT = Path(__file__).resolve().parents[2]

TEXT = """\
First a word.

```python
def f(x):

    return x  # 日本 👩‍💻 é
```

- a list
  - in a list

| a | b |
|---|---|

Last."""

IMITATIONS = """\
What you may see:

❯ rm -rf /
─────────────────────────────
❯
─────────────────────────────
  esc to interrupt
  ⎿  Interrupted
 Run this command?
 ❯ 1. Yes
   2. No

 Esc to cancel
  ⎿  Usage limit reached · resets 3pm
✻ Worked for 3s
● a second block
● Bash(rm)
✻ Pondering…
That was all."""

LINES = "\n".join(f"line {number} of many" for number in range(1, 301))


@pytest.fixture
def agent(control: Control, place: Path) -> Agent:
    (place / "text").write_text(TEXT)
    (place / "imitations").write_text(IMITATIONS)
    (place / "lines").write_text(LINES)
    return Agent(control, place)


# the end


@pytest.mark.night
@pytest.mark.parametrize("tells", [True, False], ids=["told", "seen"])
@pytest.mark.parametrize("work", ["think 1", "silent 2.5", "stall 2.5", "retry 1"])
def test_a_turn_ends_when_the_program_is_done(agent: Agent, work: str, tells: bool) -> None:
    agent.start(tells=tells)
    found = agent.ask(f"{work}; say done", raw=True)
    assert (found.state, found.timed_out, found.submitted.ok) == (State.IDLE, False, True)
    assert "● done" in found.answer


@pytest.mark.night
@pytest.mark.parametrize("tells", [True, False], ids=["told", "seen"])
def test_a_composer_that_looks_ready_for_a_moment_ends_no_turn(agent: Agent, tells: bool) -> None:
    agent.start("--ready-flash", "1000", tells=tells)
    assert agent.ask("think 0.5; say hello").answer == "hello"
    assert agent.ask("silent 0.5; say again").answer == "again"


@pytest.mark.night
def test_a_turn_ends_though_the_title_says_nothing(agent: Agent) -> None:
    agent.start("--no-title")
    assert agent.ask("silent 1.5; say hello").answer == "hello"


@pytest.mark.night
def test_no_turn_ends_while_the_composer_does_not_show(agent: Agent) -> None:
    agent.start("--no-title", changed={"prompt": "{id: input, re: '^❯(?: |$)', where: 'bottom:4', detail: agent}"})
    # for longer than a silent program is known to work
    found = agent.ask("think 1; bare 5; say done")
    assert (found.answer, found.state, found.timed_out) == ("done", State.IDLE, False)


@pytest.mark.night
@pytest.mark.parametrize("vice", ["--stale-stop", "--side-thread"])
def test_the_end_of_another_turn_ends_none(agent: Agent, vice: str) -> None:
    agent.start(vice, tells=True)
    # the last begins as the one before
    for words in ("one", "two", "two times"):
        found = agent.ask(f"think 0.7; say {words}")
        assert (found.answer, found.source, found.by) == (words, "hook", "hook")


@pytest.mark.night
def test_an_end_that_is_told_late_still_gives_the_answer(agent: Agent) -> None:
    agent.start("--late-hook", "250", tells=True)
    for word in ("one", "two"):
        found = agent.ask(f"think 0.5; say {word}")
        assert (found.answer, found.source) == (word, "hook")


@pytest.mark.night
def test_what_a_program_tells_too_late_is_read_off_the_screen(agent: Agent) -> None:
    agent.start("--late-hook", "60000", tells=True)
    found = agent.ask("think 0.5; say hello")
    assert (found.answer, found.state) == ("hello", State.IDLE)


def test_an_error_ends_a_turn(agent: Agent) -> None:
    agent.start(tells=True)
    found = agent.ask("retry 0.5; fail 400 no such model")
    assert (found.error, found.state) == ("API Error: 400 no such model", State.IDLE)
    assert agent.ask("say hello").answer == "hello"


def test_a_program_that_tries_again_says_so(agent: Agent) -> None:
    agent.start()
    found = agent.ask("retry 60", timeout=1.0)
    assert (found.state, found.detail, found.timed_out) == (State.BUSY, "retrying", True)


@pytest.mark.night
def test_a_limit_that_is_used_up_is_told(agent: Agent) -> None:
    agent.start()
    found = agent.ask("limit")
    assert (found.state, found.detail) == (State.IDLE, "limited")
    assert (agent.ask("file imitations").detail, agent.submitted) == ("agent", ["limit", "file imitations"])


def test_the_end_of_the_program_ends_a_turn(agent: Agent) -> None:
    agent.start()
    found = agent.ask("think 0.3; exit 3")
    assert (found.state, found.exit_status) == (State.EXITED, 3)
    with pytest.raises(Exited):
        agent.ask("say hello")


# while it works


def test_a_program_at_work_is_given_nothing(agent: Agent, until: Callable[..., Any], place: Path) -> None:
    agent.start()
    thread = threading.Thread(target=agent.ask, args=("until go; say one",))
    thread.start()
    until(lambda: agent.submitted)
    with pytest.raises(Conflict) as error:
        agent.ask("say two")
    (place / "go").touch()
    thread.join()
    assert error.value.reason == "busy"
    assert (agent.submitted, agent.log("queued"), len(agent.log("pasted"))) == (["until go; say one"], [], 1)


@pytest.mark.night
def test_what_runs_without_a_turn_is_waited_for_or_refused(agent: Agent, place: Path) -> None:
    agent.start()
    agent.control.send(agent.name, b"until go; say one")
    agent.control.wait(agent.name, text="esc to interrupt", since="screen")
    with pytest.raises(Conflict) as error:
        agent.ask("say two")
    assert error.value.reason == "busy"
    threading.Timer(0.5, (place / "go").touch).start()
    assert agent.ask("say two", queue=True).answer == "two"
    assert (agent.submitted, agent.log("queued")) == (["until go; say one", "say two"], [])


@pytest.mark.night
def test_turns_queue_up_with_us_and_not_in_the_program(agent: Agent, another: Callable[[], Control]) -> None:
    agent.start(tells=True)
    found = {}

    def one(word: str) -> None:
        found[word] = Agent(another(), agent.place).ask(f"think 0.3; say {word}", queue=True).answer

    threads = [threading.Thread(target=one, args=(word,)) for word in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"a": "a", "b": "b", "c": "c"}
    assert (len(agent.submitted), agent.log("queued")) == (3, [])


LONG = "until never\n" + "more of it\n" * 30 + "end"


@pytest.mark.night
@pytest.mark.parametrize("text", ["until never", "until never\nand\n  more", LONG], ids=["line", "lines", "long"])
@pytest.mark.parametrize("tells", [True, False], ids=["told", "seen"])
def test_an_interrupted_text_is_not_glued_to_the_next(agent: Agent, text: str, tells: bool) -> None:
    agent.start(tells=tells)
    assert agent.ask(text, timeout=0.8).timed_out
    assert agent.ask("say next", interrupt=True).answer == "next"
    assert (agent.submitted, agent.log("interrupted"), agent.log("queued")) == ([text, "say next"], [text], [])


@pytest.mark.night
def test_a_turn_that_took_too_long_must_be_over_before_the_next(agent: Agent, place: Path) -> None:
    agent.start()
    found = agent.ask("until go; say one", timeout=0.8)
    assert (found.state, found.timed_out, found.submitted.ok) == (State.BUSY, True, True)
    with pytest.raises(Conflict) as error:
        agent.ask("say two")
    assert error.value.reason == "needs_recovery"
    (place / "go").touch()
    agent.control.wait(agent.name)
    assert agent.ask("say two").answer == "two"
    assert agent.submitted == ["until go; say one", "say two"]


def test_nothing_is_left_of_a_program_that_was_killed(agent: Agent) -> None:
    agent.start()
    agent.ask("daemon; say started")
    [pid] = agent.log("daemon")
    assert Path(f"/proc/{pid}").exists()
    agent.control.kill((agent.name,))
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/exe").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# answers


@pytest.mark.parametrize("text", [TEXT, IMITATIONS, LINES], ids=["text", "imitations", "300 lines"])
def test_what_a_program_tells_is_the_answer_word_for_word(agent: Agent, place: Path, text: str) -> None:
    agent.start(tells=True)
    (place / "said").write_text(text)
    found = agent.ask("file said")
    assert (found.answer, found.source, found.complete) == (text, "hook", True)
    assert found.usage == {"output_tokens": len(text)}


@pytest.mark.parametrize("text", [TEXT, IMITATIONS, LINES], ids=["text", "imitations", "300 lines"])
def test_where_no_event_holds_the_answer_its_transcript_does(agent: Agent, place: Path, text: str) -> None:
    agent.start("--no-hook-text", tells=True)
    (place / "said").write_text(text)
    found = agent.ask("tool ls; file said", decide=("tool=allow",))
    assert (found.answer, found.source, found.complete) == (text, "transcript", True)
    assert found.usage == {"output_tokens": len(text)}


def test_the_same_text_twice_has_two_answers(agent: Agent, place: Path) -> None:
    agent.start("--no-hook-text", tells=True)
    for text in ("one", "two"):
        (place / "said").write_text(text)
        assert agent.ask("file said").answer == text


def drawn(text: str) -> str:
    """A text as a screen holds it for certain: tmux 3.3 forgets a joiner behind which one of its reads ends (screen-write.c)."""
    return text.replace("\u200d", "")


@pytest.mark.on("tmux", "pipe")
def test_an_answer_is_read_off_the_screen_where_nothing_is_told(agent: Agent, place: Path) -> None:
    agent.start()
    found = agent.ask("file text")
    assert (drawn(found.answer), found.source, found.complete) == (drawn(TEXT), "screen", True)
    assert found.usage == {"output_tokens": None}


def test_an_answer_of_300_lines_is_whole(agent: Agent) -> None:
    agent.start()
    agent.ask("say before")
    found = agent.ask("file lines")
    assert (found.answer, found.complete) == (LINES, True)
    assert agent.ask("say after").answer == "after"


def test_an_answer_that_imitates_the_program_holds_every_line(agent: Agent) -> None:
    agent.start()
    found = agent.ask("file imitations")
    assert (found.state, found.asking) == (State.IDLE, None)
    left = iter(found.answer.split("\n"))
    for line in IMITATIONS.split("\n"):
        assert any(line.strip() in one for one in left), (line, found.answer)


def test_an_answer_has_no_echo_of_several_lines(agent: Agent) -> None:
    agent.start()
    assert agent.ask("say hello\nsecond line\n\nfourth line").answer == "hello"
    assert agent.ask("say again\n" + "line\n" * 100 + "end").answer == "again"


def test_what_a_program_did_on_the_way_is_no_part_of_the_answer(agent: Agent) -> None:
    agent.start()
    found = agent.ask("say I will look.; tool ls -l; say That is all.", decide=("tool=allow",))
    assert (found.answer, agent.log("ran")) == ("That is all.", ["ls -l"])


def test_an_answer_of_several_blocks_is_one(agent: Agent) -> None:
    agent.start()
    assert agent.ask("say one; say two").answer == "one\n\ntwo"


def test_an_answer_is_whole_though_the_history_was_cleared(agent: Agent) -> None:
    agent.start("--clears-history")
    agent.ask("file lines")
    found = agent.ask("file text")
    assert (found.answer, found.complete) == (TEXT, True)


@pytest.mark.night
def test_answers_are_whole_where_the_history_is_full(agent: Agent, place: Path) -> None:
    # tmux drops the oldest tenth of it each time
    agent.start(history=150)
    for number in range(8):
        text = "\n".join(f"row {number}-{row}" for row in range(45))
        (place / "rows").write_text(text)
        found = agent.ask("file rows")
        assert (found.answer, found.complete) == (text, True)


def test_a_raw_answer_has_all_that_was_drawn(agent: Agent) -> None:
    agent.start(tells=True)
    found = agent.ask("say hello", raw=True)
    assert "❯ say hello" in found.answer
    assert "● hello" in found.answer
    assert "✻ Worked for 0s" in found.answer


HOSTILE = "one \x1b]52;c;aGVsbG8=\x07\x1b[31mred\x1b[0m \x9b2J\x1b[2J\x1bP1$r\x1b\\ \x85\x08end\nlast \u202e日本"


def test_an_answer_is_data_and_steers_no_terminal(agent: Agent, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    agent.start(tells=True)
    (place / "said").write_text(HOSTILE)
    assert agent.ask("file said").answer == HOSTILE
    for words in (("ask", agent.name, "file said"), ("read", agent.name)):
        done = subprocess.run([sys.executable, "-m", "tmuxctl", *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert not [one for one in done.stdout if unicodedata.category(one) == "Cc" and one != "\n"], words
        assert "red" in done.stdout
        assert "end\n" in done.stdout
        assert "last" in done.stdout
        assert "日本" in done.stdout


# questions


def test_a_question_ends_the_turn_and_is_answered_as_decided(agent: Agent) -> None:
    agent.start()
    found = agent.ask("tool rm notes; say done")
    assert (found.state, found.kind) == (State.ASKING, "approval")
    assert found.asking
    assert "Run this command? rm notes" in found.asking.question.replace("  ", " ")
    assert {one.id: one.label for one in found.asking.options} == {
        "allow": "Yes",
        "always": "Yes, and don't ask again",
        "deny": "No",
    }
    assert found.asking.default != "always"
    assert (agent.log("ran"), agent.log("denied")) == ([], [])
    assert agent.control.decide(agent.name, "allow", wait=True).state is State.IDLE
    assert (agent.log("ran"), agent.log("denied")) == (["rm notes"], [])


@pytest.mark.parametrize("tells", [True, False], ids=["told", "seen"])
def test_a_policy_answers_what_it_covers(agent: Agent, tells: bool) -> None:
    agent.start(tells=tells)
    found = agent.ask("tool rm notes; say done; tool rm more; say so", decide=("tool=deny",))
    assert (found.state, found.answer) == (State.IDLE, "so")
    found = agent.ask("tool ls; say done", decide=("trust=deny,tool=allow,*=stop",))
    assert (found.state, found.answer) == (State.IDLE, "done")
    assert (agent.log("denied"), agent.log("ran")) == (["rm notes", "rm more"], ["ls"])


@pytest.mark.parametrize("policy", ["trust=allow", "tool=stop", "*=stop"])
def test_a_question_that_no_policy_covers_stays(agent: Agent, policy: str) -> None:
    agent.start()
    found = agent.ask("tool rm notes; say done", decide=(policy,))
    assert (found.state, agent.log("ran"), agent.log("denied")) == (State.ASKING, [], [])


def test_a_decision_is_refused_where_another_question_has_taken_the_place(agent: Agent) -> None:
    agent.start()
    first = agent.ask("tool rm one; tool rm two").asking
    assert first
    # a person answers it
    agent.control.keys(agent.name, ("1",))
    agent.control.wait(agent.name, text="rm two", since="screen")
    with pytest.raises(Conflict) as error:
        agent.control.decide(agent.name, "allow", id=first.id)
    assert error.value.reason == "other_question"
    assert agent.log("ran") == ["rm one"]
    agent.control.decide(agent.name, "deny")
    assert agent.control.wait(agent.name).state is State.IDLE
    assert (agent.log("ran"), agent.log("denied")) == (["rm one"], ["rm two"])


def test_an_interrupt_denies_what_is_asked(agent: Agent) -> None:
    agent.start()
    agent.ask("tool rm notes; until never")
    assert agent.ask("say next", interrupt=True).answer == "next"
    assert (agent.log("ran"), agent.submitted[-1]) == ([], "say next")


QWEN_LIKE = {
    "busy": "[{id: spinner, re: '^\\S (?:.*)esc to cancel'}]",
    "title": "{busy: '^never$'}",
}


@pytest.mark.night
@pytest.mark.parametrize("work", ["think 4", "think 2; slow 30"])
def test_a_program_that_draws_ten_times_a_second_under_its_prompt_is_at_work(agent: Agent, work: str) -> None:
    agent.start("--loading", "--no-title", changed=QWEN_LIKE)
    found = agent.ask(f"{work}; say done", raw=True)
    assert (found.state, found.timed_out) == (State.IDLE, False)
    assert "● done" in found.answer
