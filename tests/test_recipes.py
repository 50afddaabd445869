"""The recipes in packaging/: they ask for what tmuxctl needs, and the Debian package holds a command that runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tmuxctl
from tools import release

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    pytest.importorskip("hatchling", reason="hatchling is not installed: make dev")
    folder = tmp_path_factory.mktemp("deb")
    words = ["sh", str(ROOT / "packaging/debian/build.sh"), sys.executable, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [package] = folder.glob("*.deb")
    return package


@pytest.mark.night
def test_the_debian_package_says_what_it_needs(debian: Path) -> None:
    told = subprocess.run(
        ["dpkg-deb", "--field", debian, "Version", "Depends"], capture_output=True, text=True, check=True
    )
    python = PROJECT["requires-python"].removeprefix(">=")
    assert f"Version: {tmuxctl.__version__}-1\n" in told.stdout
    assert f"python3 (>= {python}), tmux" in told.stdout


@pytest.mark.night
def test_the_debian_package_holds_the_command_its_pages_and_every_licence(debian: Path, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--extract", debian, tmp_path], check=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = tmp_path / "usr/bin/tmuxctl"
    told = subprocess.run([command, "--version"], env=environment, capture_output=True, text=True, check=True)
    assert tmuxctl.__version__ in told.stdout
    assert (tmp_path / "usr/share/man/man1/tmuxctl-ask.1.gz").exists()
    copyright_file = (tmp_path / "usr/share/doc/tmuxctl/copyright").read_text()
    assert all(f"== {name}" in copyright_file for name in ("click", "libtmux", "pyte", "pyyaml", "tmuxctl", "wcwidth"))


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipes as a release fills them in."""
    folder = tmp_path_factory.mktemp("recipes")
    form = folder / "form"
    form.write_bytes(b"what is released")
    release.fill_recipes(folder, "0.2.0", "https://files.example/0.2.0/", {"sdist": form, "one-file": form})
    return folder


@pytest.mark.parametrize("name", release.RECIPES)
def test_a_release_leaves_no_place_to_fill_in(recipes: Path, name: str) -> None:
    text = (recipes / name).read_text()
    assert not re.findall(r"@(?:VERSION|URL|SHA256:[\w-]+)@", text)
    assert release.checksum(recipes / "form") in text
    assert "https://files.example/0.2.0/" in text


def test_the_recipe_for_arch_asks_for_the_versions_that_we_ask_for(recipes: Path) -> None:
    [depends] = re.findall(r"^depends=\((.*)\)$", (recipes / "aur/PKGBUILD").read_text(), re.MULTILINE)
    wanted = {f"python-{dependency}".replace("-pyyaml", "-yaml") for dependency in PROJECT["dependencies"]}
    assert {word.strip("'") for word in depends.split()} == {*wanted, f"python{PROJECT['requires-python']}", "tmux"}


def test_the_recipe_for_nix_asks_for_what_we_ask_for(recipes: Path) -> None:
    recipe = (recipes / "nix/package.nix").read_text()
    [depends] = re.findall(r"dependencies = with python3Packages; \[ (.*) \];", recipe)
    assert depends.split() == [re.split("[<>=]", dependency)[0] for dependency in PROJECT["dependencies"]]


@pytest.mark.parametrize(("program", "name"), [("bash -n", "aur/PKGBUILD"), ("ruby -c", "homebrew/tmuxctl.rb")])
def test_the_language_of_a_recipe_takes_it(recipes: Path, program: str, name: str) -> None:
    if not shutil.which(program.split()[0]):
        pytest.skip(f"{program.split()[0]} is not installed")
    subprocess.run([*program.split(), recipes / name], check=True, capture_output=True)
