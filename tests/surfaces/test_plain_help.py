"""The help of every command is in plain English: no processes called somebody, no words that the glossary replaces."""

import re
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"

ODD = ("nobody", "somebody", "mend", "to be had", "blanks", "composer", "tombstone", "carrier", "so long")


@pytest.mark.parametrize("word", ODD)
def test_the_help_of_commands_has_no_word_that_the_glossary_replaces(word: str) -> None:
    helps = REFERENCE.read_text().partition("\n## Reasons")[0]
    found = [line for line in helps.splitlines() if re.search(rf"\b{word}\b", line, re.IGNORECASE)]
    assert not found
