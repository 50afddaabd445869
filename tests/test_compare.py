"""What `bench/compare.py` rests on: each contender drives a real program, and the tables keep what was not measured again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCH = Path(__file__).resolve().parent.parent / "bench"
COLUMNS = 7


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    pytest.importorskip("pexpect")
    monkeypatch.syspath_prepend(str(BENCH))
    from compared import programs, recipes, table, tools
    from place import Place

    return SimpleNamespace(programs=programs, recipes=recipes, table=table, tools=tools, Place=Place)


@pytest.fixture
def own(compared: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """The place of a benchmark, with a prompt that all know."""
    with compared.Place() as place:
        place.sockets += compared.tools.SOCKETS
        monkeypatch.setenv("TERM", "dumb")
        compared.programs.prepare(place.folder / "home")
        yield place


@pytest.mark.night
def test_every_contender_answers_a_question(compared, own):
    bash = compared.programs.programs()["bash"]
    line = bash.line("seq 3; printf end")
    with own.control() as control:
        told = {}
        for number, (name, make) in enumerate(compared.recipes.recipes(control).items()):
            recipe = make()
            recipe.start(f"asked{number}", bash, own.folder / "work")
            told[name] = recipe.ask(line, 20)
    assert told == dict.fromkeys(compared.table.HEADS["asked"], compared.recipes.Said(True, "1\n2\n3\nend"))
    assert (own.folder / "work" / compared.programs.END).exists()


@pytest.mark.night
def test_only_tmuxctl_knows_a_question_it_was_not_told_of(compared, own):
    bash = compared.programs.programs()["bash"]
    asked, own_expression = "read -p 'Overwrite it? [y/N] ' reply", (r"\[y/N\] ?$",)
    with own.control() as control:
        for name, make in list(compared.recipes.recipes(control).items())[:3]:
            for given in ((), own_expression):
                recipe = make()
                recipe.start(f"{name[:4]}{len(name)}{len(given)}", bash, own.folder / "work")
                said = recipe.ask(asked, 1.5, given)
                assert bool(said.question) == (name.startswith("tmuxctl") or bool(given)), (name, said)


def test_inputs_are_fifty_different_ones_whose_truth_is_known(compared, own, needs):
    needs("sqlite3")
    for name, program in compared.programs.programs().items():
        assert len({one.text for one in program.inputs}) == 50, name
    truths = compared.programs.programs()["sqlite3"].truths()
    assert truths[:4] == ["1", "", "", "1|one\n2|two\n3|"]


def test_tables_keep_what_was_not_measured_again(compared):
    table, line = compared.table, compared.table.Line
    first = [
        line(table.DRIVEN, "kept", {"tmuxctl": "1", "pexpect": "–[^owner]"}),
        line(table.DRIVEN, "again", {"tmuxctl": "2"}),
    ]
    text = table.body([line(table.DRIVEN, "again", {"tmuxctl": "a|b"})], table.body(first))
    assert "| kept | 1 | – | – | –[^owner] |" in text
    assert "| again | a\\|b | – | – | – |" in text
    assert text.count("[^owner]:") == 1
    assert len(table.HEADS[table.ASKED]) == COLUMNS
