"""The git branch of a folder, read without git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tmuxctl.surfaces.web.branches import Branches, read_branch


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/topic/one\n")
    (folder / "deep/er").mkdir(parents=True)
    return folder


def test_the_branch_of_a_folder_and_of_those_below_it(repository):
    assert read_branch(str(repository)) == "topic/one"
    assert read_branch(str(repository / "deep/er")) == "topic/one"
    (repository / ".git/HEAD").write_text("0123456789abcdef0123456789abcdef01234567\n")
    assert read_branch(str(repository)) == "01234567"


def test_a_worktree_says_where_its_branch_is(repository, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    place = repository / ".git/worktrees/tree"
    place.mkdir(parents=True)
    (place / "HEAD").write_text("ref: refs/heads/two\n")
    (tree / ".git").write_text(f"gitdir: {place}\n")
    assert read_branch(str(tree)) == "two"


def test_git_agrees(tmp_path, needs):
    needs("git")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path / "real")]
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path / "real")], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "-b", "other", str(tmp_path / "beside")], check=True)
    assert read_branch(str(tmp_path / "real")) == "main"
    assert read_branch(str(tmp_path / "beside")) == "other"


@pytest.mark.parametrize(
    "text",
    ["", "secret\n", "ref: refs/heads/", "ref: refs/heads/a b\n", "ref: refs/heads/a\u202eb\n", "ref: /etc/passwd\n",
     "ref: refs/heads/" + "x" * 5000, "ref: refs/heads/a\nmore\n"],
)  # fmt: skip
def test_what_is_no_branch_is_not_told(repository, text):
    (repository / ".git/HEAD").write_text(text)
    assert read_branch(str(repository)) is None


def test_no_link_and_no_fifo_is_followed(repository, tmp_path):
    (tmp_path / "HEAD").write_text("ref: refs/heads/elsewhere\n")
    head = repository / ".git/HEAD"
    head.unlink()
    head.symlink_to(tmp_path / "HEAD")
    assert read_branch(str(repository)) is None
    head.unlink()
    os.mkfifo(head)
    assert read_branch(str(repository)) is None
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").symlink_to(repository / ".git")
    assert read_branch(str(other)) is None
    (other / ".git").unlink()
    (other / ".git").write_text(f"gitdir: {tmp_path}\n")
    assert read_branch(str(other)) is None


def test_who_asks_is_not_held_up_and_is_told_of_changes(repository, until):
    told: list[bool] = []
    branches = Branches(lambda: told.append(True))
    assert branches.find(str(repository)) is None
    branches.renew([str(repository), "/nowhere"])
    assert until(lambda: branches.find(str(repository)) == "topic/one")
    (repository / ".git/HEAD").write_text("ref: refs/heads/next\n")
    branches.renew([str(repository)])
    assert until(lambda: branches.find(str(repository)) == "next")
    assert len(told) == 2
    branches.stop()
