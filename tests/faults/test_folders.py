"""Configuration and state are taken only from where nobody but root and the user can change what a path leads to."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.command import Command

PLUGIN = '''"""Leaves a mark."""
KIND = "env"
open({ran!r}, "w").close()


def transform(spec):
    """Nothing."""
    return spec
'''
PROFILE = "schema: tmuxctl/profile@1\nname: mine\nprompt: {id: p, re: planted}\n"
NOBODY = 65534


@pytest.fixture(autouse=True)
def server_ended(place: Path) -> Iterator[None]:
    yield
    subprocess.run(["tmux", "-L", os.environ["TMUXCTL_SOCKET"], "kill-server"], capture_output=True)


@pytest.fixture
def config(place: Path) -> Path:
    """A user's configuration: settings, a plugin and a profile."""
    folder = place / ".config" / "tmuxctl"
    for name in ("plugins", "profiles"):
        (folder / name).mkdir(mode=0o700, parents=True)
    (folder / "config.toml").write_text("[wait]\ntimeout = '7s'\n")
    (folder / "plugins" / "mine.py").write_text(PLUGIN.format(ran=str(place / "ran")))
    (folder / "profiles" / "mine.yaml").write_text(PROFILE)
    return folder


VERBS = {
    "settings": ("config", "show"),
    "a plugin": ("plugin", "show", "mine"),
    "a plugin that is used": ("new", "t", "--with", "mine", "--no-wait", "--", "cat"),
    "a profile": ("profile", "show", "mine"),
}


def refused(place: Path, path: Path, *words: str) -> None:
    """The command is refused by the name and mode of this folder, with what mends it, and nothing planted has run."""
    (place / "ran").unlink(missing_ok=True)
    done = Command()(*words)
    assert done.reason == "unsafe_file", done
    assert repr(str(path)) in done.errors
    assert f"mode {path.stat().st_mode & 0o7777:04o}" in done.errors
    assert not (place / "ran").exists()


@pytest.mark.parametrize("what", VERBS)
@pytest.mark.parametrize("above", [".config", ".config/tmuxctl", "."])
def test_a_folder_above_the_configuration_that_others_may_write_is_refused(
    place: Path, config: Path, what: str, above: str
) -> None:
    (place / above).chmod(0o777)
    refused(place, place / above, *VERBS[what])


def test_the_command_that_a_refusal_names_mends_it(place: Path, config: Path) -> None:
    (place / ".config").chmod(0o777)
    done = Command(plain=True)("config", "show")
    mends = done.errors.splitlines()[-1].strip()
    assert mends == f"chmod go-w {place}/.config"
    subprocess.run(shlex.split(mends), check=True)
    assert Command()(*VERBS["settings"]).status == 0


@pytest.mark.parametrize("what", VERBS)
def test_links_are_followed_to_where_they_end(place: Path, config: Path, what: str) -> None:
    """Neither a folder on the way of a link's target, nor one that holds a link of a chain, may be anybody's."""
    (place / "open").mkdir()
    (place / "real").mkdir()
    (place / ".config").rename(place / "real" / "config")
    (place / "open" / "hop").symlink_to("../real/config")
    (place / ".config").symlink_to(place / "open" / "hop")
    (place / "open").chmod(0o777)
    refused(place, place / "open", *VERBS[what])
    (place / "open").chmod(0o755)
    assert Command()(*VERBS[what]).status == 0
    (place / "real").chmod(0o777)
    refused(place, place / "real", "config", "show")


def test_a_plugin_that_is_a_link_into_a_folder_of_anybodys_is_refused(place: Path, config: Path) -> None:
    (place / "open").mkdir()
    (config / "plugins" / "mine.py").rename(place / "open" / "mine.py")
    (config / "plugins" / "mine.py").symlink_to(place / "open" / "mine.py")
    (place / "open").chmod(0o777)
    refused(place, place / "open", *VERBS["a plugin that is used"])


@pytest.mark.parametrize(("variable", "kind"), [("TMUXCTL_PLUGIN_PATH", "plugin"), ("TMUXCTL_PROFILE_PATH", "profile")])
def test_a_folder_above_one_of_a_search_path_is_looked_at(
    place: Path, config: Path, monkeypatch: pytest.MonkeyPatch, variable: str, kind: str
) -> None:
    (place / "above").mkdir()
    config.rename(place / "above" / "own")
    monkeypatch.setenv(variable, str(place / "above" / "own" / f"{kind}s"))
    assert Command()(kind, "show", "mine").status == 0
    (place / "above").chmod(0o777)
    refused(place, place / "above", kind, "show", "mine")


@pytest.mark.night
def test_an_installed_package_in_a_folder_of_anybodys_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = place / "above" / "site"
    (site / "hello-1.dist-info").mkdir(parents=True)
    (site / "hello-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: hello\nVersion: 1\n")
    (site / "hello-1.dist-info" / "entry_points.txt").write_text("[tmuxctl.plugins]\nhello = hello_plugin\n")
    (site / "hello_plugin.py").write_text(PLUGIN.format(ran=str(place / "ran")))
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}:{site}")
    words = ("new", "t", "--with", "hello", "--no-wait", "--", "cat")
    (place / "above").chmod(0o777)
    refused(place, place / "above", *words)
    (place / "above").chmod(0o755)
    assert Command()(*words).status == 0
    assert (place / "ran").exists()


@pytest.mark.parametrize("above", [".", "state", "links"])
@pytest.mark.parametrize("words", [("ls",), ("new", "t", "--no-wait", "--", "cat")])
def test_a_folder_above_the_state_that_others_may_write_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, above: str, words: tuple[str, ...]
) -> None:
    (place / "state").mkdir()
    (place / "links").mkdir()
    (place / "links" / "state").symlink_to("../state")
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "links" / "state"))
    (place / above).chmod(0o777)
    refused(place, place / above, *words)
    (place / above).chmod(0o1777)
    assert Command()(*words).status == 0


def test_a_folder_of_anybodys_is_no_place_for_the_socket(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "sockets").mkdir()
    monkeypatch.setenv("TMUX_TMPDIR", str(place / "sockets"))
    (place / "sockets").chmod(0o777)
    refused(place, place / "sockets", "new", "t", "--no-wait", "--", "cat")
    assert not list((place / "sockets").iterdir())


def test_folders_that_were_missing_are_the_users_alone_whatever_the_umask(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    before = os.umask(0)
    try:
        for _ in range(2):
            assert Command()("ls").status == 0
    finally:
        os.umask(before)
    for name in (".local", ".local/state", ".local/state/tmuxctl"):
        assert (place / name).stat().st_mode & 0o777 == 0o700, name


def test_what_belongs_to_another_user_above_is_refused(place: Path, config: Path, root: None) -> None:
    os.chown(place / ".config", NOBODY, NOBODY)
    refused(place, place / ".config", "config", "show")
    os.chown(place / ".config", 0, 0)
    (place / "link").symlink_to(config)
    os.lchown(place / "link", NOBODY, NOBODY)
    os.environ["TMUXCTL_CONFIG"] = str(place / "link" / "config.toml")
    assert Command()("config", "show").reason == "unsafe_file"


def test_a_home_of_the_users_own_group_is_fine(place: Path, config: Path, root: None) -> None:
    """Where every user has a group of their own the umask is 002, and a home folder 0775."""
    for path in (place, place / ".config", config):
        path.chmod(path.stat().st_mode | 0o020)
    assert Command()("config", "show").status == 0
    os.chown(place / ".config", 0, NOBODY)
    refused(place, place / ".config", "config", "show")


def test_settings_from_a_pipe_are_read(place: Path) -> None:
    script = 'exec 9< <(echo "[wait]"; echo "ask_timeout = 7"); TMUXCTL_CONFIG=/dev/fd/9 exec "$@"'
    words = Command().argv("config", "show")
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=False)
    assert '"value":7.0,"source":"/dev/fd/9"' in done.stdout, done
