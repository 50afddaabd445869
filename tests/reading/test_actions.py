"""Answers behind a command that the program ran, read off its screen: what it did on the way is no part of them."""

from __future__ import annotations

from tmuxctl.profile_files import library
from tmuxctl.reading.answers import drawn_answer
from tmuxctl.terminal.input.keys import tmux_keys

SCREEN = """\
› run it

• I will run a command.

✔ You approved codex to run touch made this time

• Ran touch made
  └ (no output)

• Ran as asked:

  made
  └── of nothing

  Worked for 1s • 22:40

› Ask Codex to do anything

  gpt-5 default"""


def test_what_codex_ran_on_the_way_is_no_part_of_its_answer() -> None:
    rows = SCREEN.split("\n")
    codex = library.load("codex", keys=tmux_keys)
    assert drawn_answer.read_answer(rows, "run it", codex).text == "Ran as asked:\n\nmade\n└── of nothing"
    # a command of several rows, with output of several rows
    longer = [*rows[:6], "• Ran touch made", "  │ && ls", "  └ one", "    two", *rows[8:]]
    assert drawn_answer.read_answer(longer, "run it", codex).text == "Ran as asked:\n\nmade\n└── of nothing"


BOXED = """\
 > run it

✦ I will run a command.

╭──────────────────────────────╮
│ ✓  Shell touch made          │
│                              │
╰──────────────────────────────╯

✦ Done:

  ╭────╮
  │ so │
  ╰────╯

──────────────────────────────
 Shift+Tab to accept edits

 >   Type your message"""


def test_what_gemini_ran_on_the_way_is_no_part_of_its_answer() -> None:
    gemini = library.load("gemini", keys=tmux_keys)
    found = drawn_answer.read_answer(BOXED.split("\n"), "run it", gemini)
    assert found.text == "Done:\n\n╭────╮\n│ so │\n╰────╯"
