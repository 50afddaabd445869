"""Aliases of config.toml: words that stand for a command, as git has them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tmuxctl.errors import Usage
from tmuxctl.surfaces.cli.words import aliases

ROOT = Path(__file__).resolve().parents[2]

Tmuxctl = Callable[..., "subprocess.CompletedProcess[str]"]

FILE = """
[alias]
py = "new py --no-wait --dry-run -- python3"
l = "ls -q"
ll = "l --json"
ls = "kill --all"
loop = "round"
round = "loop x"
self = "self"
shout = "!printf '%s|' \\"$TMUXCTL_SOCKET\\""
nothing = "!true"
fails = "!exit 7"
flag = "--json ls"
missing = "nosuch x"
"quo" = "send db 'two words'"
"""


@pytest.fixture
def tmuxctl(place: Path, monkeypatch: pytest.MonkeyPatch) -> Tmuxctl:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    folder = place / ".config" / "tmuxctl"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "config.toml").write_text(FILE)
    (folder / "config.toml").chmod(0o600)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tmuxctl", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_an_alias_stands_for_its_words(tmuxctl: Tmuxctl) -> None:
    done = tmuxctl("py", "-q", "--json")
    assert done.returncode == 0, done.stderr
    assert re.search("^argv: +python3 -q --json$", done.stdout, re.MULTILINE), done.stdout
    assert json.loads(tmuxctl("ll").stdout)["sessions"] == []
    assert json.loads(tmuxctl("--json", "l").stdout)["sessions"] == []


def test_a_command_is_never_hidden(tmuxctl: Tmuxctl) -> None:
    done = tmuxctl("ls")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no sessions" in done.stderr


def test_words_in_quotes_belong_together() -> None:
    known = {"quo": "send db 'two words'"}
    assert aliases.expand_alias(["quo", "x y"], known, lambda word: word == "send") == [
        "send",
        "db",
        "two words",
        "x y",
    ]


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("loop", "loop -> round -> loop"),
        ("self", "self -> self"),
        ("flag", "begins with an option"),
        ("missing", "no command 'nosuch'"),
    ],
)
def test_an_alias_that_leads_nowhere_is_refused(tmuxctl: Tmuxctl, word: str, says: str) -> None:
    done = tmuxctl(word)
    assert done.returncode == 2
    assert says in done.stderr


def test_a_shell_command_gets_the_words_and_gives_its_status(tmuxctl: Tmuxctl) -> None:
    assert tmuxctl("shout", "a b", "--json", "-h").stdout == "t|a b|--json|-h|"
    assert tmuxctl("--socket", "other", "shout").stdout == "other|"
    assert tmuxctl("nothing").returncode == 0
    assert tmuxctl("fails").returncode == 7


def test_help_names_what_an_alias_stands_for(tmuxctl: Tmuxctl) -> None:
    for words in (("py", "--help"), ("py", "-h"), ("help", "py")):
        done = tmuxctl(*words)
        assert (done.returncode, done.stdout) == (0, "py is an alias of: new py --no-wait --dry-run -- python3\n"), (
            words
        )
    page = tmuxctl("--help").stdout
    assert "Aliases (tmuxctl config path):" in page
    listed = page.partition("Aliases")[2].partition("Options,")[0]
    assert "new py --no-wait" in listed
    assert "kill --all" not in listed


def test_a_wrong_file_is_told_where_it_is_needed_only(tmuxctl: Tmuxctl, place: Path) -> None:
    path = place / ".config" / "tmuxctl" / "config.toml"
    for text, says in (
        ("[alias]\nx = 1\n", "alias.x"),
        ("[alias]\n'a b' = 'ls'\n", "alias.a b"),
        ("alias = 3\n", "alias"),
    ):
        path.write_text(text)
        done = tmuxctl("nosuch")
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr
        assert "config.toml" in done.stderr
        assert tmuxctl("--help").returncode == 0


@pytest.mark.parametrize("words", [[""], ["a"]])
def test_what_is_no_alias_stays(words: list[str]) -> None:
    assert aliases.expand_alias(words, {}, lambda word: False) == words
    with pytest.raises(Usage):
        aliases.expand_alias(["e"], {"e": "  "}, lambda word: False)
