"""What of a terminal is no part of a message."""

from __future__ import annotations

import json

import pytest

from tmuxctl.surfaces.adapters.agentapi.screens import EVENT_BYTES, Begin, may_be_redrawn, remove_redrawn, trim

BEGIN = Begin(("Hello", "", "> one", "First."), "> ")


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("Hello\n\n> one\nFirst.\n> two\nSecond.", "Second."),
        ("Hello  \n\n> one\nFirst.\n> two\n\nSecond.\n", "\nSecond.\n"),
        ("> one\nFirst.\n> two\nSecond.", "Second."),
        ("First.\n> two", ""),
        ("Hello\n\n> one\nFirst.\n> two\n>\nHello\n\n> one\nFirst.\n> two\nSecond.", "Second."),
        ("Second.", "Second."),
        ("Something else\n> two\nSecond.", "Something else\n> two\nSecond."),
        ("> two\nSecond.", "Second."),
        ("two", "two"),
    ],
)
def test_what_was_drawn_again_is_left_out(answer, kept):
    assert remove_redrawn(answer, BEGIN, "two") == kept


def test_where_nothing_stood_before_the_text_alone_is_left_out():
    assert remove_redrawn("> two\n>\n> two\nSecond.", Begin((), "> "), "two") == "Second."
    assert remove_redrawn("Second.\n> two\nThird.", Begin((), "> "), "two") == "Second.\n> two\nThird."


def test_a_text_of_several_lines_is_left_out_whole():
    assert remove_redrawn("First.\n> two\nthree\nSecond.", BEGIN, "two\nthree") == "Second."


def test_only_an_answer_with_the_text_in_it_may_have_been_drawn_again():
    assert may_be_redrawn("First.\n> two\nSecond.", "two")
    assert not may_be_redrawn("Second.", "two")
    assert not may_be_redrawn("Second.", "\n")


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (("Hello",), "Hello"),
        (("", "Hello ", "", "╭──────╮"), "Hello"),
        (("Hello", "────────", ""), "Hello"),
        ((), ""),
    ],
)
def test_the_frame_of_an_input_box_is_no_text(rows, text):
    assert Begin(rows, "").text == text


@pytest.mark.parametrize("letter", ["a", "\x01", "漢", "😀", '"'])
def test_a_message_is_cut_so_that_clients_can_read_it(letter):
    text = trim(letter * 300_000)
    assert len(json.dumps(text, ensure_ascii=False).encode()) <= EVENT_BYTES
    assert len(text) > 10_000
    assert text.endswith("…")
