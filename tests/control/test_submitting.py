"""Giving a text to a program with a composer: whole, once, seen to be taken, and never into a question."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from control.agent import Agent

from tmuxctl import errors
from tmuxctl.control import Control
from tmuxctl.control.input import submitting
from tmuxctl.errors import Conflict, Usage
from tmuxctl.evidence import Look
from tmuxctl.model import State
from tmuxctl.results import Submitted
from tmuxctl.timing import SubmissionTiming, Timing

pytestmark = pytest.mark.on("tmux")

TEXTS = {
    "a line": "say hello",
    "several lines": "hello\n\n  indented\n\ttab\nlast",
    "other scripts": "日本語 👩‍💻 naïve é ▓ \u202b",
    "longer than a row": "x" * 350,
    "signs of the program": "❯ esc to interrupt\n● Bash(rm)\n❯ 1. Yes\n Esc to cancel",
    "like an option": "-x --help; $(touch no) `id` \\ %s #{pane_id} '\"",
    "escape codes": "red \x1b[31m and \x1b]0;title\x07 and \x1b[2J",
    "no text of any encoding": "half \udce6\udc97 a character, and \udcff",
    "blanks at the end": "hello   ",
    "a note about a paste": "[Pasted text #1 +3 lines]",
}


@pytest.fixture
def agent(control: Control, place: Path) -> Agent:
    return Agent(control, place)


@pytest.fixture
def hasty(agent: Agent, another: Callable[..., Control]) -> None:
    """What never comes is waited for less long."""
    agent.control = another(timing=Timing(submission=SubmissionTiming(proof_seconds=2.0, shown_seconds=2.0)))


@pytest.mark.night
def test_a_text_is_submitted_once_and_as_it_is(agent: Agent) -> None:
    agent.start(tells=True)
    for what, text in TEXTS.items():
        assert agent.ask(text).submitted.ok, what
        assert agent.submitted[-1] == text, what
    assert len(agent.submitted) == len(TEXTS)
    assert set(agent.log("enter")) == {"taken"}


JOINED = {
    "family": "say who are 👨\u200d👧 and 👩\u200d👩\u200d👧\u200d👦",
    "family at the end": "say hello 👨\u200d👧",
    "profession and flag": "say 👩🏽\u200d💻 in 🇩🇪🇫🇷 ☝🏽 done ❤\ufe0f",
    "keycaps and marks": "say 1\ufe0f\u20e3 e\u0301 नमस्ते \u1112\u1161\u11ab end",
    "longer than a row": "say " + "👨\u200d👧 and " * 30 + "end",
    "several lines": "say 👨\u200d👧\n  👩\u200d💻\n\nend 🏳\ufe0f\u200d🌈",
}


CURSORS = {
    "the terminal's": "--cursor-behind",
    "where it counts": "--no-notes",
    "drawn": "--draws-cursor",
    "hidden": "--hides-cursor",
}


@pytest.mark.night
@pytest.mark.parametrize("cursor", CURSORS.values(), ids=CURSORS)
def test_a_text_with_joined_emoji_is_submitted_once(agent: Agent, cursor: str) -> None:
    agent.start(cursor)
    for what, text in JOINED.items():
        found = agent.ask(text)
        assert found.submitted.ok, (what, found.submitted)
        assert agent.submitted[-1] == text, what
    assert len(agent.submitted) == len(JOINED)


@pytest.mark.on("pipe")
def test_a_text_is_submitted_on_another_machine(agent: Agent) -> None:
    agent.start(tells=True)
    for text in ("say hello\n\n  日本", "x\n" * 900 + "end"):
        assert agent.ask(text).submitted == Submitted(True, "hook")
    assert agent.submitted == ["say hello\n\n  日本", "x\n" * 900 + "end"]


def test_what_was_submitted_is_told_with_what_shows_it(agent: Agent) -> None:
    agent.start(tells=True)
    assert agent.ask("think 0.3; say hello").submitted == Submitted(True, "hook")


def test_without_hooks_the_program_shows_that_it_took_a_text(agent: Agent) -> None:
    agent.start()
    # its sign of work, or its composer that is empty again, whichever is seen first
    seen = agent.ask("think 0.5; say hello").submitted
    assert seen in (Submitted(True, "busy-mark"), Submitted(True, "prompt"))


@pytest.mark.night
@pytest.mark.parametrize("size", [50_000, 1 << 20])
def test_a_long_text_arrives_whole(agent: Agent, size: int) -> None:
    letters = random.Random(size).choices("abcdefghij klmnop\nü日", k=size)
    text = f"say got it\n{''.join(letters)}".encode()[:size].decode("utf-8", "ignore") + "end"
    agent.start(tells=True)
    found = agent.ask(text)
    assert (found.submitted.ok, found.answer) == (True, "got it")
    assert agent.submitted == [text]


@pytest.mark.parametrize("lines", [8, 40, 400])
def test_a_text_that_hides_the_prompt_is_given_once(agent: Agent, lines: int) -> None:
    agent.start("--no-notes")
    text = "say hello\n" + "".join(f"line {number}\n" for number in range(lines)) + "end"
    found = agent.ask(text)
    assert (found.submitted.ok, found.answer) == (True, "hello")
    assert (agent.submitted, len(agent.log("pasted")), agent.log("enter")) == ([text], 1, ["taken"])


def test_a_program_without_bracketed_paste_gets_the_same_lines(agent: Agent) -> None:
    agent.start("--no-bracketed")
    text = "say hello\n\n  two  \nthree 日本"
    assert agent.ask(text).answer == "hello"
    assert agent.submitted == [text]


def test_a_carriage_return_is_a_new_line_there_and_sends_nothing(agent: Agent) -> None:
    agent.start("--no-bracketed")
    assert agent.ask("one\r\ntwo\rthree").submitted.ok
    assert agent.submitted == ["one\ntwo\nthree"]


def test_what_would_end_its_bracket_is_refused(agent: Agent) -> None:
    agent.start()
    with pytest.raises(Usage) as error:
        agent.ask("a\x1b[201~\rb")
    assert error.value.reason == "bad_text"
    assert agent.ask("say fine").submitted.ok
    assert agent.submitted == ["say fine"]


NO_SIGN = {"prompt": "{id: footer, re: '^  [?] for shortcuts', detail: agent}"}

DRAFTS = {"a line": "old text", "lines": "old\n\n  text of\nlines", "more than it shows": "old\n" * 30 + "end"}


@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS)
def test_what_somebody_left_in_the_composer_is_cleared(agent: Agent, draft: str) -> None:
    agent.start("--draft", draft)
    agent.ask("say new")
    assert agent.submitted == ["say new"]


def test_keys_that_clear_are_pressed_one_by_one(agent: Agent) -> None:
    keys = "{mode: paste, newline: [M-Enter], verify: echo, clear: [C-u, BSpace]}"
    agent.start("--chunks", "--no-bracketed", "--draft", "old\ntext", changed={"submit": keys})
    assert agent.ask("say new").submitted.ok
    assert agent.submitted == ["say new"]


def test_what_somebody_typed_since_is_cleared_too(agent: Agent) -> None:
    agent.start()
    agent.ask("say one")
    agent.control.send(agent.name, b"and mind the", enter=False)
    assert agent.ask("say two").answer == "two"
    assert agent.submitted == ["say one", "say two"]


@pytest.mark.night
def test_what_cannot_be_cleared_is_not_glued_to_a_text(agent: Agent) -> None:
    agent.start("--draft", "old", "--no-leave")
    with pytest.raises(Conflict) as error:
        agent.ask("new")
    assert error.value.reason == "leftovers"
    assert (agent.submitted, agent.log("pasted"), agent.log("enter")) == ([], [], [])


def test_what_a_profile_cannot_clear_is_not_glued_to_a_text(agent: Agent) -> None:
    agent.start("--draft", "old", changed={"submit": "{mode: paste, verify: echo}"})
    with pytest.raises(Conflict) as error:
        agent.ask("new")
    assert (error.value.reason, error.value.exit) == ("leftovers", 4)
    assert "tmuxctl keys a C-u" in error.value.hint
    assert (agent.submitted, agent.log("pasted"), agent.log("enter")) == ([], [], [])


@pytest.mark.night
@pytest.mark.usefixtures("hasty")
def test_a_text_that_did_not_show_is_not_glued_to_the_next(agent: Agent) -> None:
    no_clear = {**NO_SIGN, "submit": "{mode: paste, verify: echo}"}
    agent.start("--no-sign", "--never-shows", changed=no_clear)
    assert agent.ask("old").submitted == Submitted(False, "the text did not appear")
    with pytest.raises(Conflict) as error:
        agent.ask("new")
    assert (error.value.reason, agent.log("pasted")) == ("leftovers", [3])
    # the remedy it names
    agent.control.keys(agent.name, ("C-u",))
    agent.ask("newer")
    assert (agent.submitted, agent.log("pasted"), agent.log("enter")) == ([], [3, 5], [])


@pytest.mark.night
@pytest.mark.usefixtures("hasty")
def test_a_text_that_did_not_show_is_cleared_though_it_cannot_be_seen(agent: Agent) -> None:
    agent.start("--never-shows")
    assert not agent.ask("old").submitted.ok
    agent.control.keys(agent.name, ("Enter",))
    agent.control.wait(agent.name, idle=True)
    assert (agent.submitted, agent.log("enter")) == ([], ["empty"])


def test_enter_comes_after_the_pause_that_a_program_needs(agent: Agent) -> None:
    agent.start("--slow-enter", "250", changed={"submit": "{mode: paste, delay: 300ms, verify: echo, clear: C-u}"})
    agent.ask("say hello\nworld")
    assert (agent.submitted, agent.log("enter")) == (["say hello\nworld"], ["taken"])


@pytest.mark.night
@pytest.mark.parametrize("text", ["say hello", "say hello\n" + "line\n" * 50 + "end"], ids=["shown", "only noted"])
@pytest.mark.usefixtures("hasty")
def test_where_enter_made_a_new_line_it_is_pressed_once_more(agent: Agent, text: str) -> None:
    agent.start("--slow-enter", "900")
    found = agent.ask(text)
    assert (found.submitted.ok, found.answer) == (True, "hello")
    assert agent.log("enter") == ["new line", "taken"]
    assert [text.strip() for text in agent.submitted] == [text]


@pytest.mark.night
@pytest.mark.parametrize("text", ["say hello", "say hello\n" + "line\n" * 50 + "end"], ids=["shown", "only noted"])
@pytest.mark.usefixtures("hasty")
def test_where_enter_was_lost_it_is_pressed_once_more(agent: Agent, text: str) -> None:
    agent.start("--swallow-enter", "1")
    assert agent.ask(text).submitted.ok
    assert (agent.submitted, agent.log("enter")) == ([text], ["lost", "taken"])


@pytest.mark.night
@pytest.mark.usefixtures("hasty")
def test_enter_is_pressed_twice_at_most(agent: Agent) -> None:
    agent.start("--swallow-enter", "9")
    found = agent.ask("say hello")
    assert found.submitted == Submitted(False, "nothing shows that the program took it")
    assert (agent.submitted, agent.log("enter")) == ([], ["lost", "lost"])


@pytest.mark.night
@pytest.mark.usefixtures("hasty")
def test_what_a_program_wants_shows_not_that_it_took_a_text(agent: Agent, place: Path) -> None:
    agent.start("--deaf", tells=True)
    [told] = place.glob("state/tmuxctl/*/sessions/*/events")
    (told / "PermissionRequest.1.1").write_text("{}")
    soon = time.time() + 4
    os.utime(told / "PermissionRequest.1.1", (soon, soon))
    assert agent.ask("say hello").submitted == Submitted(False, "nothing shows that the program took it")


def test_a_question_that_comes_late_is_of_the_text_before_it(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(self: submitting.Submission, shown: Look) -> None:
        self._observe_until(lambda: self._verdict().state is State.ASKING, 10.0)

    monkeypatch.setattr(submitting.Submission, "_await_proof", late)
    agent.start()
    found = agent.ask("tool ls; say done", decide=("tool=allow",))
    assert (found.answer, found.submitted) == ("done", Submitted(True, "asking"))
    assert (agent.submitted, agent.log("ran")) == (["tool ls; say done"], ["ls"])


@pytest.mark.night
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("text", ["say hello and no more", "say hello\n!rm notes"], ids=["line", "lines"])
def test_a_text_of_which_a_part_was_lost_is_not_sent(agent: Agent, text: str) -> None:
    agent.start("--loses", "10")
    assert agent.ask(text).submitted == Submitted(False, "the text did not appear")
    assert (agent.submitted, agent.log("enter")) == ([], [])


@pytest.mark.night
@pytest.mark.usefixtures("hasty")
def test_a_text_that_does_not_show_is_not_sent(agent: Agent) -> None:
    agent.start("--never-shows")
    assert agent.ask("say hello").submitted == Submitted(False, "the text did not appear")
    assert (agent.submitted, agent.log("enter")) == ([], [])


@pytest.mark.night
def test_a_program_that_shows_nothing_is_given_texts_if_its_profile_says_so(agent: Agent) -> None:
    agent.start("--never-shows", tells=True, changed={"submit": "{mode: paste, delay: 100ms, verify: none}"})
    assert agent.ask("say hello").submitted.ok
    assert agent.submitted == ["say hello"]


@pytest.mark.night
def test_a_text_that_shows_late_is_waited_for(agent: Agent) -> None:
    agent.start("--late-show", "1200", "--slow-enter", "1000")
    assert agent.ask("say hello").submitted.ok
    assert (agent.submitted, agent.log("enter")) == (["say hello"], ["taken"])


MODALS = {
    "first key": ("--modal-first-key",),
    "first key that clears": ("--modal-first-key", "--draft", "old"),
    "after paste": ("--modal-after-paste", "0"),
    "late mark": ("--modal-first-key", "--late-mark"),
}


@pytest.mark.parametrize("vice", MODALS)
def test_enter_is_never_pressed_into_a_dialog_that_came_in_its_place(agent: Agent, vice: str) -> None:
    agent.start(*MODALS[vice])
    with pytest.raises(errors.DecisionNeeded) as error:
        agent.ask("say 1 hello")
    assert error.value.reason == "trust"
    assert [one for what in ("trusted", "distrusted", "enter", "submitted") for one in agent.log(what)] == []
    shown = agent.control.show(agent.name)
    assert (shown.state, shown.kind) == (State.ASKING, "trust")


@pytest.mark.night
@pytest.mark.parametrize("vice", MODALS)
def test_a_dialog_that_is_decided_leaves_the_text_to_be_given_once(agent: Agent, vice: str) -> None:
    agent.start(*MODALS[vice])
    found = agent.ask("say 1 hello", decide=("trust=deny",))
    assert (found.submitted.ok, found.answer) == (True, "1 hello")
    assert (agent.submitted, agent.log("trusted"), len(agent.log("distrusted"))) == (["say 1 hello"], [], 1)


@pytest.mark.parametrize("policy", ["allow", "*=allow", "tool=allow"])
def test_trust_is_given_only_by_name(agent: Agent, policy: str) -> None:
    agent.start("--modal-first-key")
    with pytest.raises(errors.DecisionNeeded) as error:
        agent.ask("say 1 hello", decide=(policy,))
    assert (error.value.reason, agent.log("trusted"), agent.submitted) == ("trust", [], [])


def test_an_option_is_chosen_that_the_program_has_marked_before_enter(agent: Agent) -> None:
    agent.start("--modal-first-key", "--late-mark")
    with pytest.raises(errors.DecisionNeeded):
        agent.ask("say one")
    agent.control.decide(agent.name, "deny")
    assert (agent.log("trusted"), agent.log("distrusted")) == ([], ["Enter"])


@pytest.mark.night
def test_nothing_is_chosen_where_the_mark_does_not_move(agent: Agent) -> None:
    agent.start("--modal-first-key", "--stuck-mark")
    with pytest.raises(errors.DecisionNeeded):
        agent.ask("say one")
    with pytest.raises(errors.Conflict) as error:
        agent.control.decide(agent.name, "deny")
    assert (error.value.reason, agent.log("trusted"), agent.log("distrusted")) == ("not_marked", [], [])
    assert agent.control.decide(agent.name, "allow").option == "allow"


@pytest.mark.night
def test_a_dialog_that_is_decided_by_hand_leaves_nothing_that_is_glued_on(agent: Agent) -> None:
    agent.start("--modal-after-paste", "0")
    with pytest.raises(errors.DecisionNeeded):
        agent.ask("say one")
    agent.control.decide(agent.name, "deny")
    assert agent.ask("say two").answer == "two"
    assert agent.submitted == ["say two"]


def test_a_question_that_is_open_is_not_typed_into(agent: Agent) -> None:
    agent.start()
    assert agent.ask("tool rm notes; say done").state is State.ASKING
    with pytest.raises(errors.DecisionNeeded):
        agent.ask("1")
    assert (agent.log("ran"), agent.log("denied"), len(agent.submitted)) == ([], [], 1)


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is so quick that it is never seen at work."""
    monkeypatch.setattr(submitting.Submission, "_is_busy", lambda self, verdict: False)


@pytest.mark.night
@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("vices", [(), ("--cursor-behind",), ("--no-notes",)], ids=["plain", "cursor", "notes"])
def test_an_answer_shows_that_a_text_was_taken_where_the_input_box_has_no_sign(
    agent: Agent, vices: tuple[str, ...]
) -> None:
    agent.start("--no-sign", "--no-title", "--no-spinner", *vices, changed=NO_SIGN)
    for text in ("say hello", "say hello", "say two\nlines"):
        found = agent.ask(text)
        assert found.submitted == Submitted(True, "output")
    assert agent.submitted == ["say hello", "say hello", "say two\nlines"]


@pytest.mark.night
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "vice", [("--deaf",), ("--swallow-enter", "9"), ("--slow-enter", "9000")], ids=lambda vice: vice[0]
)
def test_what_it_was_given_shows_not_that_it_was_taken_where_the_input_box_has_no_sign(
    agent: Agent, vice: tuple[str, ...]
) -> None:
    agent.start("--no-sign", "--no-title", "--no-spinner", *vice, changed=NO_SIGN)
    assert not agent.ask("say hello").submitted.ok
    assert agent.submitted == []


PAUSED = {"submit": "{mode: paste, newline: [M-Enter], delay: 300ms, verify: echo, clear: C-u}"}


def test_send_presses_enter_after_the_pause_that_a_program_needs(agent: Agent) -> None:
    agent.start("--slow-enter", "250", changed=PAUSED)
    for text in ("say hello", "say two\nlines 👨\u200d👧"):
        written = agent.control.send(agent.name, text.encode())
        assert (written.result, written.bytes) == ("done", len(text.encode()))
        assert agent.control.wait(agent.name, idle=True).matched
    assert (agent.submitted, agent.log("enter")) == (["say hello", "say two\nlines 👨\u200d👧"], ["taken", "taken"])


def test_send_goes_on_with_what_was_typed_without_enter(agent: Agent) -> None:
    agent.start("--slow-enter", "250", changed=PAUSED)
    agent.control.send(agent.name, b"say one ", enter=False)
    agent.control.send(agent.name, b"and two", id="abcdefgh12345678")
    assert agent.control.send(agent.name, b"and two", id="abcdefgh12345678").result == "dup"
    assert agent.control.wait(agent.name, idle=True).matched
    assert (agent.submitted, agent.log("enter")) == (["say one and two"], ["taken"])


def test_send_presses_no_enter_into_a_dialog_that_came_in_its_place(agent: Agent) -> None:
    agent.start("--modal-first-key")
    with pytest.raises(errors.DecisionNeeded):
        agent.control.send(agent.name, b"say hello")
    assert [one for what in ("trusted", "distrusted", "enter", "submitted") for one in agent.log(what)] == []


def test_send_still_answers_a_question(agent: Agent) -> None:
    agent.start()
    assert agent.ask("tool ls; say done").state is State.ASKING
    agent.control.send(agent.name, b"1", enter=False)
    assert agent.control.wait(agent.name, idle=True).matched
    assert agent.log("ran") == ["ls"]


@pytest.mark.night
@pytest.mark.usefixtures("hasty")
def test_send_says_that_a_text_did_not_show(agent: Agent) -> None:
    agent.start("--never-shows")
    with pytest.raises(Conflict) as error:
        agent.control.send(agent.name, b"say hello")
    assert (error.value.reason, agent.log("enter")) == ("not_shown", [])
