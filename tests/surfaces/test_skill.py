"""`tmuxctl skill`: the pages that agent programs load, and the folders where they look for them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tmuxctl.surfaces.cli import skill
from tmuxctl.surfaces.cli.skill import FILES, INSTALLED

SHIPPED = Path(skill.__file__).parents[2] / "skill"

FOLDERS = {
    "claude": (".claude/skills/tmuxctl", "CLAUDE_CONFIG_DIR", "skills/tmuxctl"),
    "codex": (".agents/skills/tmuxctl", None, ""),
    "gemini": (".agents/skills/tmuxctl", "GEMINI_CLI_HOME", ".agents/skills/tmuxctl"),
}
"""Where each program finds a skill below a home or a project; and the variable that moves it, with what is below that."""

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tmuxctl(place: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    for _, variable, _ in FOLDERS.values():
        if variable:
            monkeypatch.delenv(variable, raising=False)

    def run(*words: str, cwd: Path = place, **environment: str) -> subprocess.CompletedProcess[str]:
        found = subprocess.run(
            [sys.executable, "-m", "tmuxctl", *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=cwd,
            env={**os.environ, **environment},
        )
        assert "Traceback" not in found.stderr
        return found

    return run


def files(folder: Path) -> dict[str, str]:
    """The files below a folder, by their path in it."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def pages() -> dict[str, str]:
    return {file: (SHIPPED / file).read_text() for file in FILES.values()}


# The pages


def test_the_first_page_is_an_agent_skill() -> None:
    text = (SHIPPED / "SKILL.md").read_text()
    assert len(text) <= 5000
    assert text.startswith("---\n")
    about = yaml.safe_load(text.split("---\n")[1])
    assert about["name"] == "tmuxctl"
    assert re.fullmatch(r"[^<>]{1,1024}", about["description"])
    assert len(about["compatibility"]) <= 500
    assert set(about) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


def test_every_page_is_listed_and_linked_and_short() -> None:
    assert {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*.md")} == set(FILES.values())
    linked = re.findall(r"\]\((references/\w+\.md)\)", (SHIPPED / "SKILL.md").read_text())
    assert ["SKILL.md", *linked] == list(FILES.values())
    assert all(len(text) <= 5000 for text in pages().values())


@pytest.mark.parametrize(
    "named", ["`sleep`", "Poll", "`send`, then `screen`", "Answer what was not decided", "password"]
)
def test_what_not_to_do_is_named(named: str) -> None:
    assert named in (SHIPPED / "SKILL.md").read_text().partition("## Do not")[2]


def test_pages_are_listed_and_printed(tmuxctl: Command) -> None:
    assert tmuxctl("skill", "list", "-q").stdout.split() == list(FILES)
    told = json.loads(tmuxctl("skill", "list", "--json").stdout)["pages"]
    assert [(one["name"], one["file"], one["characters"]) for one in told] == [
        (name, file, len(pages()[file])) for name, file in FILES.items()
    ]
    assert all(one["title"] for one in told)
    assert tmuxctl("skill", "show").stdout == pages()["SKILL.md"]
    assert tmuxctl("skill", "show", "git").stdout == pages()["references/git.md"]
    assert tmuxctl("skill", "show", "nope").returncode == 3


# The folders


@pytest.mark.parametrize("client", FOLDERS)
def test_it_is_put_where_the_program_looks(tmuxctl: Command, place: Path, client: str) -> None:
    at, variable, below = FOLDERS[client]
    assert tmuxctl("skill", "install", "--client", client).returncode == 0
    (place / "project").mkdir()
    assert tmuxctl("skill", "install", "--client", client, "--project", cwd=place / "project").returncode == 0
    folders = [place / at, place / "project" / at]
    if variable:
        assert tmuxctl("skill", "install", "--client", client, **{variable: str(place / "else")}).returncode == 0
        folders.append(place / "else" / below)
    for folder in folders:
        found = files(folder)
        assert set(json.loads(found.pop(INSTALLED))["pages"]) == set(found)
        assert found == pages()


def test_another_program_gets_the_files_as_json(tmuxctl: Command, place: Path) -> None:
    told = json.loads(tmuxctl("skill", "install", "--client", "json").stdout)
    assert told == {"name": "tmuxctl", "files": pages()}
    assert not list(place.iterdir())


def test_twice_is_as_once_and_a_dry_run_changes_nothing(tmuxctl: Command, place: Path) -> None:
    shown = tmuxctl("skill", "install", "--client", "claude", "--dry-run")
    assert (shown.returncode, list(place.iterdir())) == (0, [])
    done = tmuxctl("skill", "install", "--client", "claude")
    assert done.stdout == shown.stdout
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    again = tmuxctl("skill", "install", "--client", "claude")
    assert (again.stdout, "nothing to do" in again.stderr) == ("", True)
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


def test_an_update_replaces_what_was_installed_and_keeps_a_copy_of_what_somebody_changed(
    tmuxctl: Command, place: Path
) -> None:
    tmuxctl("skill", "install", "--client", "claude")
    folder = place / ".claude/skills/tmuxctl"
    # an earlier release: another text of one page, and a page that this one has no more
    record = json.loads((folder / INSTALLED).read_text())
    for file, text in (("references/git.md", "old"), ("references/gone.md", "old")):
        (folder / file).write_text(text)
        record["pages"][file] = skill._digest(text.encode())
    (folder / INSTALLED).write_text(json.dumps(record))
    (folder / "SKILL.md").write_text("mine")
    (folder / "notes.md").write_text("mine, too")
    told = json.loads(tmuxctl("skill", "install", "--client", "claude", "--json").stdout)
    changes = {Path(one["file"]).name: (one["change"], bool(one["backup"])) for one in told["files"]}
    assert changes == {"SKILL.md": ("update", True), "git.md": ("update", False), "gone.md": ("remove", False)}
    found = files(folder)
    (copy,) = [file for file in found if file.endswith(".bak")]
    assert (found.pop(copy), found.pop("notes.md")) == ("mine", "mine, too")
    del found[INSTALLED]
    assert found == pages()


def test_uninstall_removes_what_is_ours_and_nothing_else(tmuxctl: Command, place: Path) -> None:
    tmuxctl("skill", "install", "--client", "codex")
    assert tmuxctl("skill", "uninstall", "--client", "codex").returncode == 0
    assert [path.name for path in (place / ".agents/skills").iterdir()] == []
    assert "nothing to do" in tmuxctl("skill", "uninstall", "--client", "codex").stderr

    tmuxctl("skill", "install", "--client", "codex")
    folder = place / ".agents/skills/tmuxctl"
    (folder / "references/git.md").write_text("mine")
    (folder / "notes.md").write_text("mine, too")
    assert tmuxctl("skill", "uninstall", "--client", "codex").returncode == 0
    assert sorted(files(folder).values()) == ["mine", "mine, too"]
    assert not (folder / "SKILL.md").exists()


def test_a_link_out_of_a_project_is_not_followed(tmuxctl: Command, place: Path) -> None:
    project, elsewhere = place / "project", place / "elsewhere"
    for folder in (project / ".claude", elsewhere):
        folder.mkdir(parents=True)
    (project / ".claude/skills").symlink_to(elsewhere)
    refused = tmuxctl("skill", "install", "--client", "claude", "--project", cwd=project)
    assert (refused.returncode, "out of the project" in refused.stderr) == (8, True)
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("link", ["SKILL.md", "references", INSTALLED])
def test_a_link_among_the_pages_is_not_followed(tmuxctl: Command, place: Path, link: str) -> None:
    folder, elsewhere = place / ".claude/skills/tmuxctl", place / "elsewhere"
    folder.mkdir(parents=True)
    elsewhere.write_text("mine") if "." in link else elsewhere.mkdir()
    (folder / link).symlink_to(elsewhere)
    for verb in ("install", "uninstall"):
        refused = tmuxctl("skill", verb, "--client", "claude", "--json")
        assert json.loads(refused.stderr)["error"]["reason"] == "unsafe_file"
    assert files(place) in ({}, {"elsewhere": "mine", f".claude/skills/tmuxctl/{link}": "mine"})


def test_a_user_may_keep_skills_behind_a_link(tmuxctl: Command, place: Path) -> None:
    (place / "dotfiles").mkdir()
    (place / ".claude").mkdir()
    (place / ".claude/skills").symlink_to("../dotfiles")
    assert tmuxctl("skill", "install", "--client", "claude").returncode == 0
    assert (place / "dotfiles/tmuxctl/SKILL.md").read_text() == pages()["SKILL.md"]
    (place / "dotfiles").chmod(0o777)
    assert tmuxctl("skill", "uninstall", "--client", "claude").returncode == 8


@pytest.mark.parametrize("record", ["", "{", "[]", '{"pages": 1}', '{"pages": {"../../x": "y", "a": 1}}', "[" * 99999])
def test_a_damaged_memory_of_what_was_installed_removes_nothing(tmuxctl: Command, place: Path, record: str) -> None:
    tmuxctl("skill", "install", "--client", "claude")
    folder = place / ".claude/skills/tmuxctl"
    (folder / INSTALLED).write_text(record)
    (place / ".claude/x").write_text("mine")
    assert tmuxctl("skill", "uninstall", "--client", "claude").returncode == 0
    # whose pages they are is not known: a copy of each is kept
    assert sorted(files(place).values()) == sorted([*pages().values(), "mine"])


def at_a_terminal(words: list[str], answer: bytes, cwd: Path) -> Iterator[Any]:
    """Run it with a terminal as its standard input, on which this was typed; its status, and what it said."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        done = subprocess.run(
            [sys.executable, "-m", "tmuxctl", *words], stdin=theirs, capture_output=True, text=True, timeout=60, cwd=cwd
        )
        yield done.returncode
        yield done.stderr
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_person_at_a_terminal_is_asked_first(tmuxctl: Command, place: Path) -> None:
    words = ["skill", "install", "--client", "claude"]
    status, said = at_a_terminal(words, b"n\n", place)
    assert (status, list(place.iterdir())) == (1, [])
    assert "SKILL.md" in said
    assert "Do it? [y/N]" in said
    status, said = at_a_terminal([*words, "--no-input"], b"", place)
    assert (status, list(place.iterdir())) == (2, [])
    status, said = at_a_terminal(words, b"y\n", place)
    assert (status, files(place / ".claude/skills/tmuxctl")["SKILL.md"]) == (0, pages()["SKILL.md"])
    status, said = at_a_terminal(["skill", "uninstall", "--client", "claude", "--yes"], b"", place)
    assert (status, "Do it?" in said) == (0, False)
