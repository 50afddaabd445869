"""What people type who know tail, ls, kill, tmux and docker: taken where it can mean one thing only, else answered with ours."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tmuxctl.control import Control
from tmuxctl.errors import NotFound
from tmuxctl.operations import find
from tmuxctl.surfaces.cli import app
from tmuxctl.surfaces.cli.commands import help
from tmuxctl.surfaces.cli.commands.services import Service
from tmuxctl.surfaces.cli.here import TerminalOperations
from tmuxctl.surfaces.cli.words import spellings

Typed = Callable[[str], tuple[int, list[Any], str]]


class Recorder:
    """Takes the calls of the real operations, checks their arguments, and does nothing."""

    def __init__(self, operations: type, calls: list[Any]) -> None:
        self.operations, self.calls = operations, calls

    def call(self, name: str, arguments: dict[str, Any]) -> None:
        self.calls.append((name, find(self.operations, name).arguments(arguments)))

    def close(self) -> None:
        pass


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], place: Any) -> Iterator[Typed]:
    """Types a line: its exit status, the calls it made, and what it said on standard error."""
    before = signal.getsignal(signal.SIGTERM)

    def run(line: str) -> tuple[int, list[Any], str]:
        calls: list[Any] = []
        services = [
            Service(kind, lambda options, kind=kind: Recorder(kind, calls))  # type: ignore[misc]
            for kind in (Control, TerminalOperations)
        ]
        status = app.run(shlex.split(line), app.App(lambda: services))
        found = capsys.readouterr()
        assert found.out == ""
        assert "Traceback" not in found.err
        return status, calls, found.err

    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("log build -f", "log build --follow"),
        ("log -f build", "log build --follow"),
        ("log -n 5 build", "log build --tail 5"),
        ("log -fn5 build", "log build --follow --tail 5"),
        ("read -f build", "read build --follow"),
        ("ls -a", "ls --ended"),
        ("attach -t db", "attach db"),
        ("attach -t =db", "attach db"),
        ("attach -r db", "attach db --read-only"),
        ("kill -t db", "kill db"),
        ("kill -t db web", "kill db web"),
        ("kill -9 db", "kill db --signal KILL"),
        ("kill -KILL db", "kill db --signal KILL"),
        ("kill -SIGINT db", "kill db --signal INT"),
        ("kill -s HUP db", "kill db --signal HUP"),
        ("screen -t db", "screen db"),
        ("send -t db 'select 1;'", "send db 'select 1;'"),
        ("keys -t db C-c", "keys db C-c"),
        ("rename -t db shop", "rename db shop"),
        ("resize -t db 100x30", "resize db 100x30"),
        ("new -s db", "new db"),
        ("new -d -s db -- sqlite3 -batch", "new db -- sqlite3 -batch"),
        ("new -ds db -- sqlite3", "new db -- sqlite3"),
        ("new db --default-cwd /tmp --default-shell 'bash -l'", "new db --cwd /tmp -- bash -l"),
        ("new db --default-cwd /tmp --default-shell bash --cwd / -- make", "new db --cwd / -- make"),
        ("exec -t build -- make -j4", "exec build -- make -j4"),
        ("wait -t db --timeout 5min", "wait db --timeout 5min"),
        ("wait db --text -t", "wait db --text=-t"),
        ("send db -- -t", "send -- db -t"),
    ],
)
def test_an_option_of_another_tool_means_what_it_means_there(typed: Typed, line: str, same: str) -> None:
    status, calls, said = typed(line)
    assert (status, said) == (0, "")
    assert calls == typed(same)[1]
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("log build -F", "--follow"),
        ("log build --lines 5", "--tail"),
        ("ls -l", "--json"),
        ("ls --all", "--ended"),
        ("ls -1", "-q"),
        ("kill -a", "--all"),
        ("kill -f db", "--force"),
        ("kill -77 db", "--signal"),
        ("new -A -s db", "--if-exists reuse"),
        ("new -c /tmp -- make", "--cwd DIR"),
        ("new --name db -- make", "tmuxctl new NAME -- CMD"),
        ("new -it -- bash", "attach"),
        ("new -x 80 -y 24 -- bash", "--size 80x24"),
        ("new -n db -- bash", "tmuxctl new NAME -- CMD"),
        ("run --rm -- make", "always"),
        ("screen -p db", "tmuxctl screen NAME"),
        ("screen -e db", "--ansi"),
        ("screen -S -100 db", "--scrollback"),
        ("screen -J db", "--wide"),
        ("send -l db x", "exactly"),
        ("send -n db x", "--no-enter"),
        ("keys -N 3 db Up", "--repeat"),
        ("resize -x 100 db", "100x30"),
        ("wait -t 5 db", "--timeout"),
        ("ask db -t 30s x", "--timeout"),
        ("ask db -f note.txt", "--file"),
        ("exec sh -c 'ls -l'", "goes after --"),
        ("wait db -n", "tmuxctl wait --help"),
        ("send db -R", "goes after --"),
    ],
)
def test_an_option_that_is_no_option_here_is_answered_with_the_one_that_was_meant(
    typed: Typed, line: str, named: str
) -> None:
    status, calls, said = typed(line)
    assert (status, calls) == (2, [])
    assert named in said.partition("\n")[2]


def test_only_where_a_text_may_follow_a_hint_speaks_of_texts(typed: Typed) -> None:
    assert "goes after --" not in typed("ls --nosuch")[2]
    assert "goes after --" not in typed("show db -x")[2]


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("stop db", "tmuxctl kill db"),
        ("rm db", "tmuxctl kill db"),
        ("start", "tmuxctl new [NAME] -- CMD"),
        ("start python3", "tmuxctl new [NAME] -- CMD"),
        ("create db", "tmuxctl new [NAME] -- CMD"),
        ("tail build", "tmuxctl log build -n 20 -f"),
        ("tail -f build", "tmuxctl log build -n 20 -f"),
        ("cat build", "tmuxctl screen build"),
        ("type db hello", "tmuxctl send db TEXT"),
        ("capture db", "tmuxctl screen db"),
        ("capture-pane -p -t db", "tmuxctl screen db"),
        ("send-keys -t db C-c", "tmuxctl keys db KEY"),
        ("states", "tmuxctl ls"),
        ("info db", "tmuxctl show db"),
        ("describe db", "tmuxctl show db"),
        ("press db Enter", "tmuxctl keys db KEY"),
        ("list", "tmuxctl ls"),
        ("ps", "tmuxctl ls"),
        ("logs db", "tmuxctl log db"),
        ("answer fix yes", "tmuxctl decide fix OPTION"),
        ("approve fix", "tmuxctl decide fix OPTION"),
        ("interrupt db", "tmuxctl keys db C-c"),
        ("version", "tmuxctl --version"),
        ("alias py", "tmuxctl config set alias.WORD"),
        ("profile list", "tmuxctl profile ls"),
        ("profile validate mine", "tmuxctl profile test"),
    ],
)
def test_another_tools_verb_is_answered_with_ours_and_nothing_is_run(typed: Typed, line: str, ours: str) -> None:
    status, calls, said = typed(line)
    assert (status, calls) == (2, [])
    first, hint, *rest = said.splitlines()
    assert first.startswith("tmuxctl: no command ")
    assert ours in hint
    assert not rest
    error = json.loads(typed(f"--json {line}")[2])["error"]
    assert (error["code"], error["reason"], error["exit"]) == ("usage", "no_command", 2)


def test_each_answer_names_a_command_that_there_is() -> None:
    there = app.App().list_commands(None)  # type: ignore[arg-type]
    for theirs in " ".join(spellings._OURS.values()).split():
        ours = spellings.find_our_command([theirs])
        assert ours is not None
        assert theirs not in there, f"{theirs} is a command"
        for one in ours.split("tmuxctl ")[1:]:
            word = one.split()[0].strip(",;)")
            assert word in there or word in ("--version", "--help"), f"{theirs}: {one}"


def test_the_list_of_commands_holds_no_spelling_of_another_tool() -> None:
    listed = {typed for _, lines in help.group_commands(app.App().listed()) for typed, _ in lines}
    assert {"send", "wait", "read"} <= listed
    assert not {"write", "wait-idle", "get-answer"} & listed
    assert "Commands in the spelling of niia: write, wait-idle, get-answer, remote write,\n" in help.format_page(
        app.App(), ()
    )
    assert "tmuxctl write [OPTIONS]" in help.format_page(app.App(), ("write",))


def test_a_pattern_is_answered_with_what_names_several(place: Any) -> None:
    with Control() as control:
        for name in ("job*", "job?", "job[12]", "job1,job2"):
            with pytest.raises(NotFound) as error:
                control.call("wait", {"session": name})
            assert "matched exactly" in error.value.hint
            assert "--any A,B" in error.value.hint


DESTRUCTIVE = ("kill", "prune", "release", "uninstall")


def typos(word: str) -> Iterator[str]:
    """What a slip of the fingers makes of a word: a letter too few, twice, wrong, or at its neighbour's place."""
    for at, letter in enumerate(word):
        yield word[:at] + word[at + 1 :]
        yield word[:at] + letter + word[at:]
        yield word[:at] + "x" + word[at + 1 :]
        yield word[:at] + word[at + 1 : at + 2] + letter + word[at + 2 :]


@pytest.mark.night
def test_a_typo_never_hints_at_something_destructive(typed: Typed) -> None:
    commands = app.App()
    words = {one for word in (*commands.list_commands(None), "press", "stop", "to") for one in typos(word)}  # type: ignore[arg-type]
    for word in sorted(words):
        if not word or commands.get_command(None, word) or spellings.find_our_command([word]):  # type: ignore[arg-type]
            continue
        status, calls, said = typed(word)
        assert (status, calls) == (2, []), word
        assert not any(f"'{one}'" in said for one in DESTRUCTIVE), (word, said)
    assert "'send'" in typed("sned db x")[2]


@pytest.mark.parametrize(
    ("line", "says", "hint"),
    [
        ("screen", "screen needs NAME", "tmuxctl screen [OPTIONS] NAME"),
        ("keys db", "keys needs KEY", "tmuxctl keys [OPTIONS] NAME KEY.."),
        ("rename db", "rename needs NEW-NAME", "tmuxctl rename [OPTIONS] NAME NEW-NAME"),
        ("exec sh", "exec needs COMMAND", "tmuxctl exec [OPTIONS] NAME -- COMMAND.."),
        ("resize db", "resize needs SIZE", "tmuxctl resize"),
        ("resize db big", "SIZE: 'big' is not a valid size", "120x40"),
        ("release", "release needs NAME", "tmuxctl release [OPTIONS] NAME.."),
        ("tag", "tag needs NAME", "tmuxctl tag [OPTIONS] NAME [TAG..]"),
        ("wait db --timeout soon", "--timeout: 'soon' is not a valid duration", "1h30m"),
        ("exec sh --max-bytes many -- x", "--max-bytes: 'many' is not a valid number of bytes", "64M"),
        ("ls --state tired", "--state: 'tired' is not one of its choices", "it takes"),
        ("show db web", "show: unexpected argument 'web'", "tmuxctl show --help"),
        ("send db select 1", "send: unexpected argument '1'", "quote words that belong together"),
        ("wait db web", "wait: unexpected argument 'web'", "--any db,web"),
        ("wait --any db web shop", "wait: unexpected argument 'shop'", "--any db,web,shop"),
        ("new cat shop.db", "new: unexpected argument 'shop.db'", "tmuxctl new -- cat shop.db"),
        ("new db sqlite3 shop.db", "new: unexpected argument 'sqlite3'", "tmuxctl new db -- sqlite3 shop.db"),
    ],
)
def test_a_mistake_is_told_in_the_words_of_the_help(typed: Typed, line: str, says: str, hint: str) -> None:
    status, calls, said = typed(line)
    assert (status, calls) == (2, [])
    first, second = said.splitlines()
    assert first == f"tmuxctl: {says}"
    assert hint in second
