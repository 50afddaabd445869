"""Files that a person writes mean what stands in them."""

from __future__ import annotations

from pathlib import Path

from faults.command import Command

HEAD = "schema: tmuxctl/profile@1\nname: shop\n"


def test_words_that_yaml_takes_for_truths_and_numbers_are_words(place: Path) -> None:
    (place / "shop.yaml").write_text(HEAD + "env: {A: no, B: 1.10, C: 0x10, D: 2026-01-01}\nnotes: 1.10\n")
    text = Command(plain=True)("profile", "show", "./shop.yaml").output
    assert "{A: 'no', B: '1.10', C: '0x10', D: '2026-01-01'}" in text
    assert "notes: '1.10'" in text


def test_a_word_where_a_number_is_wanted_is_told_with_its_line(place: Path) -> None:
    (place / "shop.yaml").write_text(HEAD + "cost: no\n")
    done = Command()("profile", "show", "./shop.yaml")
    assert (done.status, "line 3" in done.errors) == (2, True)
