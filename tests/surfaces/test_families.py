"""Commands of two words: operations that share their first word are found, explained and completed below it."""

from __future__ import annotations

import json
import signal
from typing import Annotated, ClassVar

import pytest
from click.shell_completion import ShellComplete

from tmuxctl.operations import Meta, SessionName, invoke, operation
from tmuxctl.results import ProfileLine, Profiles, ProfilesTested, ProfileTested
from tmuxctl.surfaces.cli import app
from tmuxctl.surfaces.cli.commands.services import Service
from tmuxctl.surfaces.cli.manual import reference

LINE = ProfileLine("shop", "user", "the shop's console", "/p/shop.yaml", ("shop", "shop-*"))
WRONG = ProfileLine("wrong", "user", "", "/p/wrong.yaml", (), "line 2: no key\x1b[31m")


class Shop:
    tested = ProfilesTested(True, 2, 0, ())

    def call(self, name, arguments):
        self.called.append((name, dict(arguments)))
        return invoke(self, name, arguments)

    called: ClassVar[list] = []

    def close(self):
        pass

    @operation(right="read", group="Set up", family=True, examples=("profile ls",))
    def profile_ls(self) -> Profiles:
        """List the profiles."""
        return Profiles((LINE, WRONG))

    @operation(right="read", group="Set up", family=True, examples=("profile test shop",))
    def profile_test(
        self, name: Annotated[tuple[str, ...], "which"] = (), *, all_of_them: bool = False
    ) -> ProfilesTested:
        """Judge saved screens."""
        return self.tested

    @operation(right="create", group="Set up", family=True)
    def profile_new(self, name: str, command: tuple[str, ...], *, force: bool = False) -> None:
        """Write one."""

    @operation(right="read", group="Set up", leads=True)
    def till(self) -> None:
        """Serve customers."""

    @operation(right="read", group="Set up", family=True)
    def till_count(self) -> None:
        """Count the money."""

    @operation(right="read", group="Drive")
    def wait_idle(self, session: SessionName) -> None:
        """Wait."""


@pytest.fixture
def line(capsys):
    before = signal.getsignal(signal.SIGTERM)

    def run(*words):
        Shop.called = []
        status = app.run(words, app.App(lambda: [Service(Shop, lambda options: Shop())]))
        found = capsys.readouterr()
        assert "Traceback" not in found.err
        return status, found.out, found.err

    yield run
    signal.signal(signal.SIGTERM, before)


def test_an_operation_of_a_family_is_two_words():
    family, other = Meta("read", "Look", family=True), Meta("read", "Look")
    assert [family.spoken(name) for name in ("profile_ls", "machine_key_add")] == ["profile ls", "machine key-add"]
    assert [other.spoken(name) for name in ("wait_idle", "send")] == ["wait-idle", "send"]


@pytest.mark.parametrize(
    ("words", "called"),
    [
        (["profile", "ls"], ("profile_ls", {})),
        (["profile", "test", "a", "b"], ("profile_test", {"name": ["a", "b"]})),
        (["profile", "test", "a", "--all-of-them"], ("profile_test", {"name": ["a"], "all_of_them": True})),
        (["profile", "new", "a", "--force", "--", "x", "-y"],
         ("profile_new", {"name": "a", "command": ["x", "-y"], "force": True})),
        (["wait-idle", "db"], ("wait_idle", {"session": "db"})),
    ],
)  # fmt: skip
def test_words_reach_the_operation(line, words, called):
    assert line(*words)[0] == 0
    assert Shop.called == [called]


@pytest.mark.parametrize(
    "words", [["--json", "profile", "ls"], ["profile", "--json", "ls"], ["profile", "ls", "--json"]]
)
def test_options_of_every_command_stand_anywhere(line, words):
    _, out, _ = line(*words)
    assert [one["name"] for one in json.loads(out)["profiles"]] == ["shop", "wrong"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["profile", "tset"], "did you mean 'test'"),
        (["profile", "xyzzy"], "tmuxctl profile --help"),
        (["profil"], "did you mean 'profile'"),
        (["profile-ls"], "no command 'profile-ls'"),
        (["machine"], "no command 'machine'"),
        (["profile", "new"], "profile new needs NAME"),
        (["profile", "new", "a"], "tmuxctl profile new [OPTIONS] NAME -- COMMAND.."),
        (["profile", "ls", "--frce"], "profile ls: no option --frce"),
    ],
)
def test_what_is_no_command_is_told_with_what_would_be(line, words, said):
    status, out, err = line(*words)
    assert (status, out) == (2, "")
    assert said in err


def test_a_family_alone_shows_what_it_has(line):
    status, _, err = line("profile")
    assert status == 2
    assert "profile test" in err
    status, out, _ = line("profile", "--help")
    assert status == 0
    assert "tmuxctl profile test shop" in out
    assert "Judge saved screens" in out


def test_help_lists_both_words(line):
    assert "  profile ls " in line("--help")[1]
    assert "Usage: tmuxctl profile test [OPTIONS] [-- NAME..]" in line("profile", "test", "--help")[1]


@pytest.mark.night
def test_the_reference_has_both_words():
    assert "### profile ls\n\n    tmuxctl profile ls [OPTIONS]\n" in reference.text()


@pytest.mark.parametrize(
    ("typed", "start", "offered"),
    [
        ([], "pro", ["profile"]),
        (["profile"], "", ["ls", "test", "new"]),
        (["profile"], "t", ["test"]),
        (["profile", "new"], "--fo", ["--force"]),
    ],
)
def test_the_shell_completes_the_second_word(typed, start, offered):
    made = app.App(lambda: [Service(Shop, lambda options: Shop())])
    assert [one.value for one in ShellComplete(made, {}, "tmuxctl", "_X").get_completions(typed, start)] == offered


def test_profiles_are_a_table_that_cannot_steer_the_terminal(line):
    _, out, _ = line("profile", "ls")
    assert out.split("\n")[1] == "shop   user    shop shop-*  the shop's console"
    assert "\x1b" not in out
    assert line("profile", "ls", "-q")[1] == "shop\nwrong\n"


def test_a_failed_test_shows_its_screen_and_ends_with_1(line, monkeypatch):
    one = ProfileTested(
        "shop", "/p/shop.yaml", 7, False, "asking", "idle prompt", "prompt \x1b]0;", "row\x1b[2J\nshop>"
    )
    monkeypatch.setattr(Shop, "tested", ProfilesTested(False, 3, 1, (one,)))
    status, out, _ = line("profile", "test")
    assert status == 1
    assert out.split("\n")[0] == "shop: /p/shop.yaml line 7: asking was expected"
    assert "| shop>" in out
    assert "3 passed, 1 failed" in out
    assert "\x1b" not in out
    assert line("profile", "test", "--json")[0] == 1


@pytest.mark.parametrize(("words", "called"), [(("till",), "till"), (("till", "count"), "till_count")])
def test_a_first_word_may_be_a_command_itself(line, words, called):
    status, _, _ = line(*words)
    assert (status, [name for name, _ in Shop.called]) == (0, [called])


def test_the_help_of_such_a_word_lists_it_and_those_below(line):
    _, out, _ = line("till", "--help")
    assert "Serve customers" in out
    assert "till count" in out
