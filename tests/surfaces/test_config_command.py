"""`tmuxctl config`: settings are read and changed one by one, and nothing else in the file moves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tmuxctl.errors import Failed
from tmuxctl.surfaces.cli.editing import toml_lines

ROOT = Path(__file__).resolve().parents[2]

Tmuxctl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tmuxctl(place: Path, monkeypatch: pytest.MonkeyPatch) -> Tmuxctl:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("TMUXCTL_TIMEOUT")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tmuxctl", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture
def file(place: Path) -> Path:
    (place / ".config" / "tmuxctl").mkdir(parents=True, mode=0o700)
    return place / ".config" / "tmuxctl" / "config.toml"


def test_a_setting_is_set_and_read_again(tmuxctl: Tmuxctl, place: Path) -> None:
    path = place / ".config" / "tmuxctl" / "config.toml"
    assert tmuxctl("config", "path").stdout == f"{path}\n"
    assert tmuxctl("config", "get", "wait.timeout").stdout == "30s\n"
    done = tmuxctl("config", "set", "wait.timeout", "1h30m")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert path.read_text() == '[wait]\ntimeout = "1h30m"\n'
    assert path.stat().st_mode & 0o077 == 0
    assert tmuxctl("config", "get", "wait.timeout").stdout == "1h30m\n"
    found = json.loads(tmuxctl("config", "get", "wait.timeout", "--json").stdout)
    assert (found["name"], found["value"], found["source"]) == ("wait.timeout", 5400.0, str(path))
    assert tmuxctl("config", "unset", "wait.timeout").returncode == 0
    assert tmuxctl("config", "get", "wait.timeout").stdout == "30s\n"


def test_what_stands_around_a_setting_stays(tmuxctl: Tmuxctl, file: Path) -> None:
    file.write_text(
        '# mine\n[limits]\nsessions = 20  # enough\n\n# waits\n[wait]\ntimeout="5s"\n\n[tmux]\nsize = "80x24"\n'
    )
    file.chmod(0o640)
    for words in (
        ("limits.sessions", "300"),
        ("wait.timeout", "9s"),
        ("wait.ask_timeout", "2min"),
        ("alias.l", "ls -q"),
    ):
        done = tmuxctl("config", "set", *words)
        assert done.returncode == 0, done.stderr
    assert file.read_text() == (
        '# mine\n[limits]\nsessions = 300  # enough\n\n# waits\n[wait]\ntimeout="9s"\nask_timeout = "2min"\n\n'
        '[tmux]\nsize = "80x24"\n\n[alias]\nl = "ls -q"\n'
    )
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_link_to_the_file_stays_a_link(tmuxctl: Tmuxctl, file: Path, place: Path) -> None:
    (place / "dotfiles.toml").write_text("")
    (place / "dotfiles.toml").chmod(0o600)
    file.symlink_to(place / "dotfiles.toml")
    assert tmuxctl("config", "set", "tmux.history", "5000").returncode == 0
    assert file.is_symlink()
    assert (place / "dotfiles.toml").read_text() == "[tmux]\nhistory = 5000\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "wait.timeout", "soon"), "wait.timeout: 'soon' is not a valid duration"),
        (("set", "wait.timeuot", "5s"), "did you mean 'wait.timeout'"),
        (("get", "wait.timeuot"), "did you mean 'wait.timeout'"),
        (("unset", "nosuch"), "no setting 'nosuch'"),
        (("set", "alias.ls", "ls -q"), "'ls' is a command"),
        (("set", "alias.profile", "ls -q"), "'profile' is a command"),
        (("set", "alias.a b", "ls"), "not a valid alias name"),
        (("set", "alias.x", ""), "empty"),
        (("set", "alias.x", "send db 'a"), "closing quotation"),
        (("get", "alias.nosuch"), "no alias 'nosuch'"),
    ],
)
def test_a_wrong_setting_changes_nothing(tmuxctl: Tmuxctl, file: Path, words: tuple[str, ...], said: str) -> None:
    done = tmuxctl("config", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not file.exists()


def test_a_wrong_file_can_be_mended_by_setting_it_right(tmuxctl: Tmuxctl, file: Path) -> None:
    file.write_text('[wait]\ntimeout = "soon"\n')
    file.chmod(0o600)
    assert tmuxctl("config", "get", "wait.ask_timeout").returncode == 2
    assert tmuxctl("config", "set", "wait.timeout", "5s").returncode == 0
    assert tmuxctl("config", "get", "wait.timeout").stdout == "5s\n"


def test_a_file_that_others_may_write_is_refused(tmuxctl: Tmuxctl, file: Path) -> None:
    file.write_text("")
    file.chmod(0o666)
    done = tmuxctl("config", "set", "wait.timeout", "5s")
    assert done.returncode == 8
    assert file.read_text() == ""


def test_the_file_that_a_variable_names_is_the_one_that_is_changed(
    tmuxctl: Tmuxctl, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUXCTL_CONFIG", str(place / "other.toml"))
    done = tmuxctl("config", "set", "wait.timeout", "7s")
    assert done.returncode == 0, done.stderr
    assert (place / "other.toml").read_text() == '[wait]\ntimeout = "7s"\n'


def test_a_value_that_something_else_overrides_says_so(
    tmuxctl: Tmuxctl, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUXCTL_TIMEOUT", "3s")
    done = tmuxctl("config", "set", "wait.timeout", "7s")
    assert done.returncode == 0
    assert "TMUXCTL_TIMEOUT" in done.stderr


def test_a_setting_that_nothing_uses_any_more_is_told_and_can_be_taken_out(tmuxctl: Tmuxctl, file: Path) -> None:
    file.write_text('[alias]\npy = "new -- python3"\n[wait]\nsettle = "1s"\ntimeout = "2s"\n')
    file.chmod(0o600)
    shown = tmuxctl("config", "show")
    assert "wait.settle" in shown.stdout
    assert "alias.py" in shown.stdout
    assert os.fspath(file) in shown.stdout
    for done in (shown, tmuxctl("config", "get", "wait.timeout")):
        assert done.returncode == 0
        assert "the setting wait.settle has no effect any more" in done.stderr
    told = tmuxctl("doctor", "--json")
    [check] = [one for one in json.loads(told.stdout)["checks"] if one["name"] == "settings"]
    assert (check["ok"], check["hint"]) == (None, "tmuxctl config unset wait.settle")
    assert not tmuxctl("wait", "nosuch").stderr.count("settle")
    assert tmuxctl("config", "unset", "wait.settle").returncode == 0
    assert file.read_text() == '[alias]\npy = "new -- python3"\n[wait]\ntimeout = "2s"\n'
    assert not tmuxctl("config", "show").stderr
    assert tmuxctl("config", "set", "wait.settle", "1s").returncode == 2


TEXTS = (
    "",
    "# only a comment",
    "[wait]\n",
    '[wait]\ntimeout = "1s"',
    "[wait]\r\ntimeout = '1s' # x\r\n\r\n[tmux]\r\n",
    'wait.timeout = "1s"\nwait.settle = "2s"\n[tmux]\nhistory = 1\n',
    'wait.settle = "2s"\n',
    '[ wait ]  # here\n# timeout = "9s"\nsettle = "2s"\n# end\n',
    '["wait"]\n"timeout" = "1s"\n',
    '[tmux]\nbinary = """\n[wait]\ntimeout = "1s"\n"""\n',
    "[[list]]\na = 1\n[wait]\ntimeout = \"a ] # [ b\" # c\n[wait.more]\ntimeout = 1\n",
    '[wait]\ntimeout = """1s"""\n',
    'wait = {settle = "2s"}\n',
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("value", ["5s", 'a "b" \\ # \x7f é', 7])
def test_a_line_is_changed_or_the_whole_is_refused(text: str, value: str | int) -> None:
    before = tomllib.loads(text)
    if '"""1s"""' in text or "{" in text:
        with pytest.raises(Failed, match=r"no line for wait\.timeout"):
            toml_lines.with_value(text, "wait.timeout", value, "FILE")
        return
    after = toml_lines.with_value(text, "wait.timeout", value, "FILE")
    wait = {**before.get("wait", {}), "timeout": value}
    assert tomllib.loads(after) == {**before, "wait": wait}
    kept = [line for line in text.splitlines() if "timeout" not in line]
    assert [line for line in after.splitlines() if line in kept or "timeout" not in line][: len(kept)] == kept
    back = toml_lines.without_value(after, "wait.timeout", "FILE")
    assert "timeout" not in tomllib.loads(back).get("wait", {})


def test_the_comment_behind_a_value_stays() -> None:
    text = "[wait]\r\n\ttimeout = '1s' # x\r\n"
    assert toml_lines.with_value(text, "wait.timeout", "2s", "FILE") == '[wait]\r\n\ttimeout = "2s" # x\r\n'
