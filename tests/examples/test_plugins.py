"""The plugins of examples/plugins/: a package that is installed, and a program; both keep to what is asked of every one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tmuxctl import plugin
from tmuxctl.errors import Failed
from tmuxctl.model import SessionSpec, Size

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plugins"
SHELLS = {"sh": "sh", "bash": "bash", "dash": "dash", "busybox": "busybox sh", "mksh": "mksh", "zsh": "zsh"}
TRICKS = (
    "x",
    '"',
    "\\",
    "\n",
    "é\udcff",
    "}",
    '"spec": {"argv": [',
    '\\"spec\\": {\\"argv\\": [',
    "%s %d",
    "$(id) `id`",
)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package's sources, and where they were installed."""
    for needed in ("pip", "hatchling"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: make dev")
    source, target = tmp_path_factory.mktemp("source") / "tmuxctl-nice", tmp_path_factory.mktemp("target")
    shutil.copytree(EXAMPLES / "tmuxctl-nice", source, ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "-q", "install", *options, "--target", str(target), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return source, target


@pytest.fixture
def tmuxctl(place, package):
    """Runs the command in an environment that has the package."""

    def run(*words):
        command = [sys.executable, "-m", "tmuxctl", *words]
        environment = {**os.environ, "PYTHONPATH": str(package[1])}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def test_an_installed_package_is_a_plugin(tmuxctl):
    found = {one["name"]: one for one in json.loads(tmuxctl("plugin", "ls", "--json").stdout)["plugins"]}
    nice = found["nice"]
    assert (nice["source"], nice["form"], nice["kind"], nice["options"]) == ("package", "module", "wrap", ["level"])
    assert nice["problem"] is None
    assert "tmuxctl_nice/__init__.py" in tmuxctl("plugin", "show", "nice").stdout


def test_the_package_keeps_to_what_is_asked_of_every_plugin(tmuxctl):
    tried = tmuxctl("plugin", "test", "nice")
    assert tried.returncode == 0, tried.stdout
    assert " 0 failed" in tried.stdout


def test_the_package_has_a_test_of_its_own_that_holds(place, package):
    source, target = package
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(source)]
    ran = subprocess.run(
        command, cwd=source, env={**os.environ, "PYTHONPATH": str(target)}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert "5 passed" in ran.stdout


@pytest.mark.on("tmux")
def test_a_session_runs_at_the_priority_that_was_asked_for(control, tmuxctl, needs):
    needs("nice")
    made = tmuxctl("new", "t", "--with", "nice=15", "--json", "--", "sh", "-c", "nice; exec cat")
    assert json.loads(made.stdout)["plugins"] == ["nice"], made.stderr
    assert control.wait("t", text=r"^15$", since="screen").matched
    refused = tmuxctl("new", "u", "--with", "nice=20", "--", "cat")
    assert refused.returncode == 1
    assert "plugin 'nice': 20 is no level" in refused.stderr


@pytest.fixture
def lazy(place, request):
    """The program, in the user's folder; with a shell's name as parameter, run by that shell."""
    shell = getattr(request, "param", "sh")
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    path = place / ".config/tmuxctl/plugins/lazy"
    path.parent.mkdir(parents=True, mode=0o700)
    source = (EXAMPLES / "lazy").read_text()
    words = SHELLS[shell].split()
    path.write_text(source.replace("#!/bin/sh", " ".join([f"#!{shutil.which(words[0])}", *words[1:]])))
    path.chmod(0o700)
    return path


@pytest.mark.parametrize("lazy", SHELLS, indirect=True)
def test_the_program_does_in_every_shell_what_the_package_does(lazy, needs):
    needs("nice")
    notes: dict[str, Any] = {"folder": "/s", "spec": {"argv": ["x"]}, "more": [None, 1.5, {"argv": []}]}
    spec = SessionSpec(
        TRICKS, "/a b/é", {f"V{number}": one for number, one in enumerate(TRICKS)}, Size(80, 24), "n", notes=notes
    )
    for options, level in (("", "10"), ("15", "15"), ({"level": "1"}, "1"), ({"level": "19"}, "19")):
        made, applied = plugin.apply(spec, [("lazy", options)], folder="/")
        assert made == replace(spec, argv=("nice", "-n", level, *TRICKS))
    assert plugin.cleanup(made, applied, plugin.SessionEnd(0, kept=True)) == ()


@pytest.mark.parametrize("level", ["0", "20", "x", "-5", "1; id", '1"', "1\n", "\\", '5", "x": "'])
def test_the_program_takes_no_other_level(lazy, needs, level):
    needs("nice")
    with pytest.raises(Failed, match="level is 1 to 19"):
        plugin.apply(SessionSpec(("make",), "/"), [("lazy", {"level": level})], folder="/")


def test_the_program_keeps_to_what_is_asked_of_every_plugin(lazy, needs, tmuxctl):
    needs("nice")
    tried = tmuxctl("plugin", "test", "lazy")
    assert tried.returncode == 0, tried.stdout
    found = json.loads(tmuxctl("plugin", "show", "lazy", "--json").stdout)
    assert (found["source"], found["form"], found["text"]) == (
        "user",
        "executable",
        "Run the program at lower priority.",
    )
    assert [one["name"] for one in found["options"]] == ["level"]
