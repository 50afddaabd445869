"""What real programs told of their turns, read with their profiles: which answer, to which input, out of which file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmuxctl.profile_files import library
from tmuxctl.program_profile import Hooks
from tmuxctl.reading.answers import transcripts

TOLD = Path(__file__).parents[1] / "hooks"

HELLO = "FAKE-BEGIN:echo#{}\n\nhello\n\nFAKE-END:echo#{}"
RUN = "FAKE-BEGIN:{}#b1\n\ntool results: 1\n\nlast result has {} lines, it ends with: {}\n\nFAKE-END:{}#b1"
CLAUDE_RUN = RUN.format("run", 1, "(Bash completed with no output)", "run")
GEMINI_RUN = RUN.format("run", 4, "</untrusted_context>", "run")


def hooks(program: str) -> Hooks:
    found = library.load(program).hooks
    assert found is not None
    return found


def event(program: str, name: str) -> transcripts.HookEvent | None:
    payload = (TOLD / program / f"{name}.json").read_bytes()
    return transcripts.parse_event(name.partition("-")[0], payload, hooks(program))


@pytest.mark.parametrize(
    ("program", "name", "means", "given", "text"),
    [
        ("claude", "UserPromptSubmit", "submit", "fake:echo#a1 hello", None),
        ("claude", "Stop", "stop", None, HELLO.format("a1", "a1")),
        ("claude", "Stop-after-tool", "stop", None, CLAUDE_RUN),
        ("claude", "PermissionRequest", "asking", None, None),
        ("claude", "StopFailure", "failure", None, "API Error: 400 fake_llm was asked for a 400"),
        ("codex", "notify", "stop", "fake:echo#a1 hello", HELLO.format("a1", "a1") + "\n"),
        ("gemini", "BeforeAgent", "submit", "fake:echo#a2 hello", None),
        ("gemini", "Notification", "asking", None, None),
        # its text is doubled: the transcript says it
        ("gemini", "AfterAgent", "stop", "fake:echo#a2 hello", None),
        ("gemini", "AfterAgent-interrupted", "stop", "fake:slow#i1 60 150", None),
    ],
)
def test_an_event_says_what_happened(program: str, name: str, means: str, given: str | None, text: str | None) -> None:
    found = event(program, name)
    assert found is not None
    assert (found.means, found.input, found.text) == (means, given, text)


@pytest.mark.parametrize("name", ["SessionStart", "Notification"])
def test_an_event_of_which_the_profile_says_nothing_is_none(name: str) -> None:
    assert event("claude", name) is None


def test_of_all_inputs_of_a_thread_the_last_is_the_turns() -> None:
    found = event("codex", "notify-later")
    assert found is not None
    assert found.input == "fake:sudo#b1 touch /home/me/x2"


def test_the_thread_that_makes_a_title_is_told_by_its_input() -> None:
    found = event("codex", "notify-title")
    assert found is not None
    assert found.means == "stop"
    assert not transcripts.is_same_input(found.input or "", "fake:echo#a1 hello")


def test_events_name_their_transcript() -> None:
    for program, name in (("claude", "Stop"), ("claude", "StopFailure"), ("gemini", "AfterAgent")):
        found = event(program, name)
        assert found is not None
        assert (found.transcript or "").startswith("/home/me/")


@pytest.mark.parametrize(
    ("program", "file", "given", "text", "tokens"),
    [
        ("claude", "transcript.jsonl", "fake:echo#a1 hello", HELLO.format("a1", "a1") + "\n", 7),
        # two messages, the first of them in two entries
        ("claude", "transcript.jsonl", "fake:run#b1 touch /home/me/x1", CLAUDE_RUN + "\n", 14),
        ("gemini", "transcript.jsonl", "fake:echo#a2 hello", HELLO.format("a2", "a2"), 7),
        ("gemini", "transcript.jsonl", "fake:run#b1 touch /home/me/x3", GEMINI_RUN, 14),
        ("aider", "transcript.md", "fake:echo#a1 hello", HELLO.format("a1", "a1"), 18),
        ("aider", "transcript.md", "fake:run#b1 echo hi", "Run this:\n\n```bash\necho hi\n```", 11),
    ],
)
def test_a_transcript_holds_the_answer_to_an_input(program: str, file: str, given: str, text: str, tokens: int) -> None:
    how = hooks(program).transcript
    assert how is not None
    found = transcripts.find_answer((TOLD / program / file).read_bytes(), how, given)
    assert found is not None
    assert (found.text, found.tokens) == (text, tokens)
    assert transcripts.find_answer((TOLD / program / file).read_bytes(), how, "never said") is None
