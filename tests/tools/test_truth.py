"""The live suite's own judgement: each broken promise is seen, a turn that keeps them all is not blamed."""

from __future__ import annotations

from typing import Any

import pytest

from tools.agents.behaviours import BEHAVIOURS, plan
from tools.agents.model import Request, sha256
from tools.agents.report import promises, table
from tools.agents.truth import broken, equal
from tools.agents.turn import Turn

PROMPT = "one line\nfake:echo#e-0 hello"
TEXT = "FAKE-BEGIN:echo#e-0\n\nhello\n\nFAKE-END:echo#e-0\n"
CODE = "Look:\n\n```python\ndef f():\n    if 1:\n\n        return 2\n```\n\n- one\n- two\n"


def request(text: str = PROMPT, **about: Any) -> Request:
    known = {
        "n": 1,
        "time": 100.0,
        "end": 101.0,
        "behaviour": "echo",
        "user": text,
        "length": len(text),
        "sha256": sha256(text),
        "results": (),
        "dialect": "anthropic",
        "tools": (),
        "outcome": "done",
    }
    return Request(**{**known, **about})


def turn(**about: Any) -> Turn:
    known: dict[str, Any] = {
        "program": "claude",
        "mode": "hooks",
        "version": "2.1.197",
        "behaviour": "echo",
        "round": 0,
        "id": "e-0",
        "prompt": PROMPT,
        "asked": 99.0,
        "returned": 101.2,
        "answer": TEXT.strip(),
        "wanted": TEXT,
        "state": "idle",
        "source": "hook",
        "complete": True,
        "submitted": True,
        "evidence": "hook",
        "seen": 101.1,
        "requests": (request(),),
    }
    return Turn(**{**known, **about})


def asked(shape: str, **about: Any) -> Turn:
    """A turn in which a command was wanted, with a decision made after the question."""
    known = {"shape": shape, "state": "idle", "wanted": None, "seen": None, "decided": True, "ran": shape == "allow"}
    return turn(**{**known, **about})


def test_a_turn_that_keeps_every_promise_is_not_blamed() -> None:
    assert broken(turn()) == ()
    assert broken(asked("allow")) == broken(asked("deny")) == ()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"requests": ()}, "not submitted"),
        ({"requests": (request("one line fake:echo#e-0 hello"),)}, "not equal"),
        ({"requests": (request(), request(n=2))}, "submitted 2 times"),
        ({"submitted": False}, "told not to be"),
        ({"returned": 100.5}, "premature: told 0.500 s before"),
        ({"requests": (request(outcome="error 500"), request(n=2, end=None, outcome="open"))}, "premature"),
        ({"returned": 103.2}, "late"),
        ({"answer": TEXT[:-9]}, "answer (hook) differs"),
        ({"answer": "> " + TEXT, "source": "screen"}, "answer (screen) differs"),
        ({"answer": "", "source": "screen"}, "it is empty"),
        ({"state": "busy"}, "ended busy"),
        ({"state": "asking", "kind": "approval"}, "where no question was"),
        ({"stopped": False}, "not interrupted"),
        ({"error": "Conflict busy"}, "failed"),
        ({"complete": False}, "incomplete: the hook gives the whole answer"),
        ({"failure": "API Error: 429"}, "told to have failed: API Error: 429"),
    ],
)
def test_a_broken_promise_is_told(wrong: dict[str, Any], words: str) -> None:
    assert words in "; ".join(broken(turn(**wrong)))


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (asked("deny", ran=True), "denied, and run"),
        (asked("allow", early=True), "undecided"),
        (asked("allow", ran=False), "allowed, and not run"),
        (asked("allow", decided=False), "never asked"),
        (asked("deny", state="asking"), "after the decision it is asking"),
    ],
)
def test_a_command_that_was_run_or_not_against_the_decision_is_told(one: Turn, words: str) -> None:
    assert words in "; ".join(broken(one))


def failed(**about: Any) -> Turn:
    """A turn whose every attempt the model refused."""
    known = {
        "shape": "failed",
        "requests": (request(outcome="error 400"),),
        "wanted": None,
        "seen": None,
        "answer": "",
        "complete": False,
        "failure": "API Error: 400",
    }
    return turn(**{**known, **about})


def test_a_turn_that_failed_must_be_told_to_have_failed() -> None:
    assert broken(failed()) == ()
    assert "failure not told" in "; ".join(broken(failed(failure="", answer="API Error: 400")))
    assert "as a complete answer" in "; ".join(broken(failed(complete=True)))
    assert broken(failed(failure="", state="busy")) == ()
    gone = (request(time=10.0, end=11.0, outcome="error 429"),)
    assert "failure not told" in "; ".join(broken(failed(failure="", state="busy", requests=gone)))
    assert "premature" in "; ".join(broken(failed(requests=(request(outcome="error 429", end=101.5),))))


def test_attempts_that_failed_are_one_submission() -> None:
    tries = (request(outcome="error 429"), request(n=2, outcome="error 429"), request(n=3))
    assert broken(turn(requests=tries)) == ()


def test_what_a_program_is_known_to_add_behind_a_prompt_is_no_difference() -> None:
    added = request(f"{PROMPT}\n\nAlways answer in English.")
    assert equal(turn(program="aider"), added)
    assert not equal(turn(program="claude"), added)
    assert not equal(turn(program="aider"), request(f"one  line\nfake:echo#e-0 hello\n\n{'x' * 30}"))


def test_what_a_program_is_known_to_put_around_a_pasted_prompt_is_no_difference() -> None:
    wrapped = request(f'<pasted_content id="4cf7">\n{PROMPT}\n</pasted_content id="4cf7">')
    assert equal(turn(program="claude"), wrapped)
    assert not equal(turn(program="codex"), wrapped)
    changed = request(f'<pasted_content id="4cf7">\n{PROMPT} \n</pasted_content id="4cf7">')
    assert not equal(turn(program="claude"), changed)


def test_what_a_program_never_writes_down_cannot_be_in_its_transcript() -> None:
    of_it = {"wanted": "a \U0001f468\u200d\U0001f467 b", "answer": "a \U0001f468\U0001f467 b", "source": "transcript"}
    assert broken(turn(program="gemini", **of_it)) == ()
    assert "differs" in "".join(broken(turn(program="claude", **of_it)))
    assert "differs" in "".join(broken(turn(program="gemini", **{**of_it, "answer": "a b"})))


def test_an_answer_from_the_screen_may_draw_markdown_but_not_lose_or_add_a_line() -> None:
    drawn = "Look:\n\n  def f():\n      if 1:\n\n          return 2\n\n• one\n• two"
    assert broken(turn(source="screen", wanted=CODE, answer=drawn)) == ()
    assert "differs" in "".join(broken(turn(source="screen", wanted=CODE, answer=drawn.replace("• two", ""))))
    assert "differs" in "".join(broken(turn(source="screen", wanted=CODE, answer=f"{drawn}\nesc to interrupt")))
    assert "code block" in "".join(broken(turn(source="screen", wanted=CODE, answer=drawn.replace("      if", "  if"))))
    assert "code block" in "".join(broken(turn(source="screen", wanted=CODE, answer=drawn.replace("1:\n\n", "1:\n"))))


def test_what_a_program_never_printed_cannot_be_in_an_answer_from_its_screen() -> None:
    wanted = "FAKE-BEGIN:echo#e-0\n\none two three\n\nFAKE-END:echo#e-0"
    answer = wanted.replace(" three", "")
    of_it = {"source": "screen", "wanted": wanted, "answer": answer}
    assert broken(turn(**of_it, printed=f"\x1b[1m{answer}\x1b[m")) == ()
    assert "differs" in "".join(broken(turn(**of_it, printed=f"\x1b[1m{wanted}\x1b[m")))
    assert broken(turn(**of_it, printed=f"FAKE-BEGIN:echo#e-1\none two three\n{answer}")) == ()
    # what was printed behind the gap must be there all the same
    cut = {**of_it, "answer": answer.replace("FAKE-END", "")}
    assert "differs" in "".join(broken(turn(**cut, printed=answer)))


def test_of_escape_codes_in_an_answer_the_printable_rest_may_be_shown() -> None:
    wanted = "a \x1b]0;PWNED\x07 colour \x1b[31mred\x1b[0m bell \x07 end"
    for answer in (
        "a colour red bell end",
        "a 0;PWNED colour red bell end",
        "a ]0;PWNED colour [31mred[0m bell end",
        "a \\u001b]0;PWNED colour red bell \\u0007 end",
    ):
        assert broken(turn(source="screen", wanted=wanted, answer=answer)) == ()
    for answer in ("a colour bell end", "a colour red bell end end", "a x colour red bell end"):
        assert "differs" in "".join(broken(turn(source="screen", wanted=wanted, answer=answer)))


def test_every_round_has_every_behaviour_and_no_two_prompts_are_the_same() -> None:
    planned = plan(2, 3)
    assert [sum(one.behaviour.name == name for one in planned) for name in ("echo", "slow")] == [3, 2]
    assert {one.behaviour.name for one in planned} == {one.name for one in BEHAVIOURS}
    assert len({one.behaviour.prompt(one.id) for one in planned}) == len(planned)


def test_what_is_played_already_is_left_out_and_the_rest_keeps_its_order() -> None:
    whole = [one.id for one in plan(3, 3)]
    assert [one.id for one in plan(3, 3, done=whole[:7])] == whole[7:]


def test_a_program_that_never_asks_is_given_nothing_to_decide() -> None:
    names = {one.behaviour.name for one in plan(1, 1, asks=False)}
    assert names == {one.name for one in BEHAVIOURS} - {"allow", "deny"}


def test_the_table_counts_what_held_and_a_slow_middle_breaks_a_promise() -> None:
    turns = [turn(), turn(program="codex", returned=101.9), turn(program="codex", requests=())]
    turns = [one._replace(broken=broken(one)) for one in turns]
    rows = [[cell.strip() for cell in row.strip("| ").split("|")] for row in table(turns, {})]
    assert rows[2][:8] == ["claude", "2.1.197", "with", "1", "1", "1", "1", "0"]
    assert rows[3][:8] == ["codex", "2.1.197", "with", "2", "1", "1", "1", "0"]
    assert rows[3][8] == "0.45 / 0.80 s"
    told = promises(turns, {("claude", "2.1.197", "hooks"): ["12 node"]})
    assert any("codex 2.1.197 hooks: the end is told after" in one for one in told)
    assert any("left behind" in one for one in told)
