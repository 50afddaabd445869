"""Tests of a Textual program on a real terminal. Its own pilot calls its handlers; here keys come in, and rows come out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("textual")

TODO = [sys.executable, str(Path(__file__).with_name("todo.py"))]


@pytest.fixture
def todo(tmuxctl):
    """The program with two things to do."""
    app = tmuxctl(TODO, size="50x14", env={"TEXTUAL_ANIMATIONS": "none"})
    # Textual takes a second to be there
    tmuxctl.expect(app, timeout=20).to_have_text("0 to do")
    for number, thing in enumerate(["buy milk", "call Ada"], 1):
        app.send(thing)
        tmuxctl.expect(app).to_have_text(f"{number} to do")
    return app


def test_what_is_typed_is_added(tmuxctl, todo):
    tmuxctl.expect(todo).to_match_snapshot("two")
    assert todo.screen.find("buy milk").row < todo.screen.find("call Ada").row


def test_blanks_are_not_added(tmuxctl, todo):
    todo.send("   ")
    tmuxctl.expect(todo).to_have_text("Type something first")
    tmuxctl.expect(todo).to_have_text("2 to do")


def test_delete_removes_the_selected_thing(tmuxctl, todo):
    todo.keys("Tab")
    # the key may come before the focus has moved: wait for what shows it, which is the footer
    tmuxctl.expect(todo).to_have_text("Remove")
    todo.keys("End", "Delete")
    tmuxctl.expect(todo).to_have_text("1 to do")
    tmuxctl.expect(todo).to_have_text("buy milk")
    tmuxctl.expect(todo).not_to_have_text("call Ada")


def test_delete_in_the_input_removes_nothing_of_the_list(tmuxctl, todo):
    todo.send("call Bob!", enter=False)
    tmuxctl.expect(todo).to_have_text("call Bob!")
    todo.keys("Left", "Delete")
    tmuxctl.expect(todo).not_to_have_text("call Bob!")
    todo.keys("Enter")
    tmuxctl.expect(todo).to_have_text("3 to do")
    tmuxctl.expect(todo).to_have_text("call Bob")


def test_a_small_terminal_still_shows_the_count(tmuxctl, todo):
    todo.resize("30x10")
    tmuxctl.expect(todo).to_match_snapshot("small")


def test_ctrl_q_quits(tmuxctl, todo):
    todo.keys("C-q")
    tmuxctl.expect(todo).to_have_exited(0)
