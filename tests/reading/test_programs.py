"""What kind of program one is, told by its name."""

from __future__ import annotations

import pytest

from tmuxctl.reading.evidence import programs


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("bash", {"is_shell", "edits_lines"}),
        ("-zsh", {"is_shell", "edits_lines"}),
        ("dash", {"is_shell"}),
        ("less", {"is_pager"}),
        ("vim.basic", {"is_editor"}),
        ("emacs-nox", {"is_editor"}),
        ("ssh", {"is_remote_wrapper"}),
        ("script", {"is_relay"}),
        ("sqlite3", set()),
        ("", set()),
    ],
)
def test_a_name_tells_the_kind_of_program(name: str, kinds: set[str]) -> None:
    every = ("is_shell", "edits_lines", "is_pager", "is_editor", "is_remote_wrapper", "is_relay")
    assert {kind for kind in every if getattr(programs, kind)(name)} == kinds
