"""Where a setting comes from, and what becomes of a wrong one."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from tmuxctl import config
from tmuxctl.errors import Denied, Usage
from tmuxctl.model import Size
from tmuxctl.value import changed

DOCUMENTED = """
[tmux]
socket = "tmuxctl"
binary = "tmux"
size = "120x40"
history = 2000

[wait]
timeout = "30s"
ask_timeout = "120s"
exec_timeout = "60s"

[limits]
sessions = 200
idle_kill = "none"

[journal]
limit = "64M"
keep = "7d"

[serve]
listen = "unix"
tls_cert = "none"
tls_key = "none"
gateway = "none"
direct = "on"
"""


@pytest.fixture
def home(tmp_path):
    """A home of its own: `write(text)` makes its config.toml, `load(...)` reads it."""
    folder = tmp_path / ".config/tmuxctl"
    folder.mkdir(parents=True)
    file = folder / "config.toml"

    def write(text):
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.chmod(0o600)

    def load(options=None, **variables):
        return config.load(options, {"HOME": str(tmp_path), **variables})

    def refused(options=None, **variables):
        with pytest.raises(Usage) as error:
            load(options, **variables)
        assert error.value.reason == "bad_config"
        assert error.value.hint
        return error.value

    return SimpleNamespace(file=file, write=write, load=load, refused=refused, path=tmp_path)


def shown(settings):
    return {name: (value, source) for name, value, source, _ in settings.listed()}


@pytest.mark.parametrize("name", config.RULES)
def test_the_value_of_a_default_is_what_its_text_says(name):
    rule = config.RULES[name]
    assert (rule.value, type(rule.value)) == (checked := rule.check(rule.default), type(checked))


def test_the_documented_file_says_exactly_the_defaults(home):
    defaults = home.load()
    home.write(DOCUMENTED)
    assert changed(home.load(), origins={}) == changed(defaults, origins={})
    assert [name for name, *_ in home.load().listed()] == list(config.RULES)
    assert [name for name, *_ in defaults.listed()] == list(config.RULES)
    assert {source for _, _, source, _ in home.load().listed()} == {str(home.file)}
    assert {source for _, _, source, _ in defaults.listed()} == {"default"}


def test_every_setting_has_its_type(home):
    settings = home.load()
    assert (settings.tmux_socket, settings.tmux_size, settings.tmux_history) == ("tmuxctl", Size(120, 40), 2000)
    assert (settings.wait_timeout, settings.wait_ask_timeout) == (30.0, 120.0)
    assert (settings.limits_idle_kill, settings.journal_limit, settings.journal_keep) == (None, 64 << 20, 7 * 86400.0)


def test_where_the_http_server_listens(home, monkeypatch):
    settings = home.load()
    assert (settings.serve_listen, settings.serve_tls_cert, settings.serve_tls_key) == ("unix", None, None)
    monkeypatch.setenv("HOME", "/home/ada")
    home.write('[serve]\nlisten = "[::1]:8765"\ntls_cert = "/etc/cert.pem"\ntls_key = "~/key.pem"\n')
    settings = home.load()
    assert settings.serve_listen == "[::1]:8765"
    assert (settings.serve_tls_cert, settings.serve_tls_key) == ("/etc/cert.pem", "/home/ada/key.pem")
    home.write("[serve]\nlisten = 8765\n")
    assert home.load().serve_listen == "8765"


def test_a_file_that_names_what_nothing_uses_any_more_is_taken(home):
    home.write('[wait]\nsettle = "1s"\n[limits]\noutput_chars = 7\nsessions = 3\n')
    settings = home.load()
    assert settings.limits_sessions == 3
    assert settings.unused() == ("wait.settle", "limits.output_chars")
    assert shown(settings)["wait.settle"] == ("1s", str(home.file))
    assert home.load(TMUXCTL_CONFIG="/dev/null").unused() == ()


def test_option_then_environment_then_file_then_default(home):
    home.write('[wait]\ntimeout = "1m"\nask_timeout = "1s"\n[tmux]\nsocket = "file"\n')
    settings = home.load({"wait.timeout": "3m", "tmux.size": None}, TMUXCTL_TIMEOUT="2m", TMUXCTL_SOCKET="variable")
    assert shown(settings)["wait.timeout"] == (180.0, "option")
    assert shown(settings)["tmux.socket"] == ("variable", "TMUXCTL_SOCKET")
    assert shown(settings)["wait.ask_timeout"] == (1.0, str(home.file))
    assert shown(settings)["tmux.size"] == ("120x40", "default")
    assert {line.name: line.written for line in settings.listed()}["wait.timeout"] == "3m"


def test_an_empty_variable_counts_as_unset(home):
    home.write('[tmux]\nsocket = "file"\n')
    assert home.load(TMUXCTL_SOCKET="", TMUXCTL_CONFIG="", TMUXCTL_SIZE="80x24").tmux_socket == "file"


def test_another_file_by_variable(home):
    other = home.path / "other.toml"
    other.write_text("[limits]\nsessions = 7\n")
    home.write("this is not even TOML")
    assert home.load(TMUXCTL_CONFIG=str(other)).limits_sessions == 7
    assert home.load(TMUXCTL_CONFIG="/dev/null").limits_sessions == 200
    assert "no file" in home.refused(TMUXCTL_CONFIG=str(home.path / "missing")).message
    assert "not absolute" in home.refused(TMUXCTL_CONFIG="other.toml").message


def test_nothing_is_read_from_the_current_directory(home, monkeypatch):
    here = home.path / "project"
    (here / "tmuxctl").mkdir(parents=True)
    for name in ("config.toml", "tmuxctl/config.toml", "tmuxctl.toml"):
        (here / name).write_text('[tmux]\nsocket = "planted"\n')
    monkeypatch.chdir(here)
    assert home.load(XDG_CONFIG_HOME="").tmux_socket == "tmuxctl"
    assert home.load(XDG_CONFIG_HOME=".").tmux_socket == "tmuxctl"
    assert home.load(XDG_CONFIG_HOME="../project").tmux_socket == "tmuxctl"


def test_the_xdg_folder_is_used(home):
    folder = home.path / "xdg/tmuxctl"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[tmux]\nsocket = "xdg"\n')
    assert home.load(XDG_CONFIG_HOME=str(home.path / "xdg")).tmux_socket == "xdg"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('[tmux]\nsocket = "a/b"', "line 2: tmux.socket: 'a/b' is not a valid socket name"),
        ('[tmux]\nsocket = "-L"', "is not a valid socket name"),
        (f'[tmux]\nsocket = "{"x" * 64}"', "is not a valid socket name"),
        ('[tmux]\nsocket = "a\\n"', "is not a valid socket name"),
        ("[tmux]\nsocket = 5", "line 2: tmux.socket: '5' is not a valid socket name"),
        ('[tmux]\nbinary = "./tmux"', "'./tmux' is not a valid program"),
        ('[tmux]\nbinary = ""', "is not a valid program"),
        ('[tmux]\nsize = "1x40"', "line 2: tmux.size: '1x40' is not a valid size"),
        ("[tmux]\nsize = 12040", "is not a valid size"),
        ("[tmux]\nhistory = -1", "tmux.history: '-1' is not a valid number"),
        ("[tmux]\nhistory = true", "'True' is not a valid number"),
        ("[tmux]\nhistory = 1.5", "'1.5' is not a valid number"),
        ('\n\n[wait]\n\ntimeout = "3 parsecs"', "line 5: wait.timeout: '3 parsecs' is not a valid duration"),
        ('[wait]\ntimeout = "none"', "'none' is not a valid duration"),
        ("[wait]\ntimeout = inf", "is not a valid duration"),
        ("[wait]\nask_timeout = true", "is not a valid duration"),
        ("[wait]\nask_timeout = -1", "is not a valid duration"),
        ("wait.timeout = []", "line 1: wait.timeout: '[]' is not a valid duration"),
        ("[wait.timeout]\nx = 1", "line 1: wait.timeout:"),
        ("[limits]\nsessions = 0", "is not a valid number"),
        ("[limits]\nidle_kill = 0.1", "is not a valid duration"),
        ('[journal]\nlimit = "1k"', "is not a valid number of bytes"),
        ("[journal]\nlimit = 64.5", "is not a valid number of bytes"),
        ('[serve]\nlisten = "localhost"', "line 2: serve.listen: 'localhost' is not a valid address"),
        ('[serve]\nlisten = "127.0.0.1:99999"', "is not a valid address"),
        ("[serve]\nlisten = true", "is not a valid address"),
        ("[serve]\nlisten = []", "is not a valid address"),
        ('[serve]\ntls_cert = "cert.pem"', "line 2: serve.tls_cert: 'cert.pem' is not a valid file"),
        ("[serve]\ntls_key = 7", "is not a valid file"),
    ],
)
def test_a_wrong_value_names_file_line_setting_and_what_is_right(home, line, message):
    home.write(line + "\n")
    error = home.refused()
    assert message in error.message
    assert str(home.file) in error.message


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[tmux]\nsokcet = "a"', "line 2: no setting 'tmux.sokcet'", "did you mean 'tmux.socket'"),
        ("[limit]\nsessions = 2", "no setting 'limit'", "there are"),
        ("[nosuch]", "line 1: no setting 'nosuch'", "there are: tmux.socket"),
        ("timeout = 3", "line 1: no setting 'timeout'", "'wait.timeout'"),
        ("tmux = 3", "no setting 'tmux'", "'tmux.size'"),
        ("[[wait]]\ntimeout = 3", "no setting 'wait'", "wait.timeout"),
        ('[wait]\ntimeout = "1s"\ntimeout = "2s"', "line 3", ""),
        ("[wait\n", "line 1", "toml.io"),
        (b'[tmux]\n# x\nsocket = "\xff"\n', "line 3: not UTF-8", ""),
        ("x = " + "[" * 3000, "nested too deeply", ""),
        ("#" * (1 << 20) + "\n", "larger than 1 MiB", ""),
    ],
)
def test_a_file_that_makes_no_sense_says_where(home, text, message, hint):
    home.write(text)
    error = home.refused()
    assert message in error.message
    assert str(home.file) in error.message
    assert hint in error.hint


def test_a_wrong_value_is_told_even_where_it_is_overridden(home):
    home.write("[wait]\ntimeout = 'x'\n")
    home.refused({"wait.timeout": "1s"}, TMUXCTL_TIMEOUT="2s")


def test_a_wrong_variable_or_option_is_named(home):
    assert home.refused(TMUXCTL_SOCKET="../x").message.startswith("TMUXCTL_SOCKET: tmux.socket: ")
    assert home.refused(TMUXCTL_SIZE="big").message.startswith("TMUXCTL_SIZE: tmux.size: ")
    assert home.refused({"wait.timeout": "soon"}).message.startswith("wait.timeout: 'soon' is not a valid duration")


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(home, mode):
    home.write("")
    home.file.chmod(mode)
    with pytest.raises(Denied) as error:
        home.load()
    assert error.value.reason == "unsafe_file"
    assert "chmod go-w" in error.value.hint


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_somebody_elses_file_is_refused(home):
    home.write("[wait]\ntimeout = 'x'\n")
    os.chown(home.file, 12345, 0)
    with pytest.raises(Denied, match="belongs to user 12345"):
        home.load()


def test_a_folder_in_place_of_the_file_is_told(home):
    home.file.mkdir()
    assert "directory" in home.refused().message
