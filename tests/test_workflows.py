"""What runs on GitHub: nothing that another person can change under us, no right that is not needed, every version we name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return found


def runs(path: Path) -> list[str]:
    return [step["run"] for job in jobs(path).values() for step in job["steps"] if "run" in step]


def test_there_are_workflows() -> None:
    assert [path.name for path in WORKFLOWS] == ["test.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_their_commit(path: Path) -> None:
    used = re.findall(r"uses: *(.*)", path.read_text())
    assert used
    assert not [name for name in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", name)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_may_read_the_code_and_nothing_else(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {}
    assert not [name for name, job in jobs(path).items() if job["permissions"] != {"contents": "read"}]
    assert "secrets." not in path.read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_commands_hold_no_text_from_outside_and_make_knows_their_targets(path: Path) -> None:
    assert not [command for command in runs(path) if "${{" in command]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    words = [word for command in runs(path) if command.startswith("make ") for word in command.split()[1:]]
    assert {word for word in words if "=" not in word} <= targets


def test_every_python_that_we_name_is_tried() -> None:
    tried = jobs(ROOT / ".github/workflows/test.yml")["python"]["strategy"]["matrix"]["python"]
    named = [
        word for classifier in PROJECT["classifiers"] if re.fullmatch(r"3\.\d+", word := classifier.split(" :: ")[-1])
    ]
    assert f">={tried[0]}" == PROJECT["requires-python"]
    assert set(named) <= set(tried)
