"""`make install` into a folder of the user's, and `make uninstall`: everything is found there, and nothing stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tmuxctl

ROOT = Path(__file__).resolve().parent.parent


def run(action: str, prefix: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "tools.install", action, "--prefix", str(prefix)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pytest.importorskip("hatchling", reason="hatchling is not installed: make dev")
    folder = tmp_path_factory.mktemp("prefix")
    (folder / "share/man/man1").mkdir(parents=True)
    (folder / "share/man/man1/tmuxctl-forgotten.1").write_text("a page of an earlier version\n")
    (folder / "share/man/man1/tmux.1").write_text("a page of others\n")
    done = run("install", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    yield folder
    assert run("uninstall", folder).returncode == 0
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["tmux.1"]


@pytest.mark.night
def test_the_command_runs(prefix: Path, tmp_path: Path) -> None:
    environment = {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "HOME": str(tmp_path)}
    told = subprocess.run(["tmuxctl", "--version"], env=environment, capture_output=True, text=True, check=True)
    assert tmuxctl.__version__ in told.stdout


@pytest.mark.night
def test_the_manual_pages_are_those_of_this_version(prefix: Path) -> None:
    pages = {path.name for path in (prefix / "share/man/man1").iterdir()}
    assert {"tmuxctl.1", "tmuxctl-ask.1", "tmux.1"} <= pages
    assert "tmuxctl-forgotten.1" not in pages


@pytest.mark.parametrize(
    ("shell", "script"),
    [
        ("bash", ". $0/share/bash-completion/completions/tmuxctl; complete -p tmuxctl"),
        (
            "zsh",
            "fpath=($0/share/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[tmuxctl]",
        ),
        ("fish", "source $argv[1]/share/fish/vendor_completions.d/tmuxctl.fish; complete -c tmuxctl"),
    ],
)
def test_each_shell_finds_the_completion(prefix: Path, shell: str, script: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    environment = {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "HOME": str(prefix / "home"), "TERM": "dumb"}
    told = subprocess.run(
        [shell, "-c", script, str(prefix)], env=environment, capture_output=True, text=True, check=True
    )
    assert "_tmuxctl" in told.stdout, told.stderr


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_what_another_installer_put_there_stays(tmp_path: Path, action: str) -> None:
    command = tmp_path / "bin/tmuxctl"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    done = run(action, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{command} was not put there by make install" in done.stderr
    assert command.read_text() == "#!/bin/sh\n"
