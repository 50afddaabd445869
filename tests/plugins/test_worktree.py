"""What a user can rely on when a session starts in a git worktree of its own, and when it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tmuxctl import plugin
from tmuxctl.errors import Conflict, Denied, Failed, TmuxctlError, Usage
from tmuxctl.model import SessionSpec
from tmuxctl.plugin_machine import PluginMachine, this_machine

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = "state/tmuxctl/t/sessions"


GONE = plugin.SessionEnd(0, kept=True)
NOT_STARTED = plugin.SessionEnd(None, kept=False)
FORCED = plugin.SessionEnd(0, kept=True, force=True)


def git(folder: Path | str, *words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert not ran.returncode, ran.stderr
    return ran.stdout.strip()


class Desk:
    """A repository, and sessions that start in it."""

    def __init__(self, place: Path, machine: PluginMachine) -> None:
        self.machine = machine
        self.place, self.repo, self.state = place, place / "shop", place / "state" / "tmuxctl"
        self.worktree: Any = plugin.load("worktree").module
        self.new_repository(self.repo)

    def new_repository(self, folder: Path, *words: str) -> Path:
        git(self.place, "init", "-q", "-b", "main", *words, str(folder))
        git(folder, "config", "user.name", "A")
        git(folder, "config", "user.email", "a@example.org")
        if "--bare" not in words:
            (folder / "till").mkdir()
            (folder / "till" / "coins").write_text("1\n")
            (folder / ".gitignore").write_text("*.secret\nbuild/\nlocal/\n")
            self.commit(folder, "Begin")
        return folder

    def commit(self, folder: Path | str, words: str = "Work") -> str:
        git(folder, "add", "-A")
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        git(folder, *who, "commit", "-q", "--allow-empty", "-m", words)
        return git(folder, "rev-parse", "HEAD")

    def remote(self, name: str = "origin") -> Path:
        folder = self.new_repository(self.place / f"{name}.git", "--bare")
        git(self.repo, "remote", "add", name, str(folder))
        git(self.repo, "push", "-q", name, "main")
        return folder

    def spec(self, session: str = "one", cwd: Path | str = "") -> SessionSpec:
        notes = {"folder": str(self.place / SESSIONS / session)}
        return SessionSpec(("cat",), str(cwd or self.repo), dict(os.environ), name=session, notes=notes)

    def prepare(self, branch: str = "fix", session: str = "one", cwd: Path | str = "", **options: Any) -> SessionSpec:
        """What the plugin makes of it; nothing started."""
        made: SessionSpec = self.worktree.transform(self.spec(session, cwd), self.machine, branch=branch, **options)
        return made

    def start(self, branch: str = "fix", session: str = "one", cwd: Path | str = "", **options: Any) -> SessionSpec:
        """A session that lives."""
        made = self.prepare(branch, session, cwd, **options)
        Path(made.notes["folder"]).mkdir(parents=True)
        return made

    def end(self, spec: SessionSpec, ended: plugin.SessionEnd = GONE) -> str | None:
        """The session is gone, for good with `prune`; what was left behind."""
        left: str | None = self.worktree.cleanup(spec, ended, self.machine)
        shutil.rmtree(spec.notes["folder"], ignore_errors=True)
        return left

    def refused(self, kind: type[TmuxctlError], reason: str, *args: Any, **options: Any) -> TmuxctlError:
        """The error; nothing may be left of the attempt."""
        before = self.all()
        with pytest.raises(kind) as caught:
            self.prepare(*args, **options)
        assert (caught.value.reason, type(caught.value)) == (reason, kind)
        assert caught.value.hint
        assert self.all() == before
        return caught.value

    def all(self) -> tuple[str, str, list[Path]]:
        """Every worktree and branch that git knows, and all that lies where ours are made."""
        trees = (
            git(self.repo, "worktree", "list", "--porcelain"),
            git(self.repo, "for-each-ref") if (self.repo / ".git").exists() else "",
        )
        return (*trees, sorted(self.state.glob("worktrees/*/*")))

    def branches(self) -> set[str]:
        return set(git(self.repo, "for-each-ref", "--format=%(refname:short)", "refs/heads").split())


@pytest.fixture
def desk(place: Path, plugin_modules: None, plugin_machine: PluginMachine) -> Desk:
    return Desk(place, plugin_machine)


def status(folder: str | Path) -> str:
    return git(folder, "status", "--porcelain")


# where a session starts


def test_a_new_branch_begins_at_the_head_in_a_private_folder_outside_of_the_repository(desk):
    made = desk.start("fix")
    assert Path(made.cwd).parent.parent == desk.state / "worktrees"
    assert Path(made.cwd).name == "fix"
    assert (Path(made.cwd) / "till" / "coins").read_text() == "1\n"
    assert git(made.cwd, "rev-parse", "--abbrev-ref", "HEAD") == "fix"
    assert git(made.cwd, "rev-parse", "HEAD") == git(desk.repo, "rev-parse", "HEAD")
    for folder in (made.cwd, Path(made.cwd).parent, desk.state / "worktrees"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert (status(desk.repo), status(made.cwd)) == ("", "")
    noted = json.loads(json.dumps(dict(made.notes)))["worktree"]
    assert {"path": made.cwd, "branch": "fix", "repository": f"{desk.repo}/.git"}.items() <= noted.items()
    assert not list(Path(made.cwd).parent.glob("*.lock"))


@pytest.mark.night
def test_a_new_branch_begins_where_it_is_told_to(desk):
    first = git(desk.repo, "rev-parse", "HEAD")
    desk.commit(desk.repo)
    assert git(desk.start("fix", base="main~1").cwd, "rev-parse", "HEAD") == first
    for base in ("nowhere", "-x", "--all", "HEAD:till", ""):
        if base:
            desk.refused(Usage, "bad_base", "other", "two", base=base)


def test_a_new_branch_begins_at_the_head_of_the_checkout_one_stands_in(desk):
    git(desk.repo, "worktree", "add", "-q", "-b", "side", str(desk.place / "side"))
    tip = desk.commit(desk.place / "side")
    assert git(desk.start(cwd=desk.place / "side").cwd, "rev-parse", "HEAD") == tip


def test_a_detached_head_is_as_good_to_begin_at(desk):
    first = git(desk.repo, "rev-parse", "HEAD")
    desk.commit(desk.repo)
    git(desk.repo, "checkout", "-q", first)
    assert git(desk.start().cwd, "rev-parse", "HEAD") == first


def test_a_branch_that_exists_is_used_as_it_is(desk):
    git(desk.repo, "switch", "-q", "-c", "fix")
    tip = desk.commit(desk.repo)
    git(desk.repo, "switch", "-q", "main")
    git(desk.repo, "tag", "fix", "main")
    made = desk.start("fix", base="main")
    assert git(made.cwd, "rev-parse", "HEAD") == tip
    assert git(made.cwd, "symbolic-ref", "HEAD") == "refs/heads/fix"


def test_a_branch_of_a_remote_is_tracked(desk):
    desk.remote()
    git(desk.repo, "push", "-q", "origin", "main:fix")
    assert desk.branches() == {"main"}
    made = desk.start("fix")
    assert git(made.cwd, "rev-parse", "--abbrev-ref", "fix@{upstream}") == "origin/fix"
    assert desk.end(made, NOT_STARTED) is None
    assert desk.branches() == {"main"}
    assert "branch.fix" not in git(desk.repo, "config", "--list")


@pytest.mark.night
def test_a_branch_of_two_remotes_has_to_be_chosen(desk):
    for name in ("origin", "other"):
        desk.remote(name)
        git(desk.repo, "push", "-q", name, "main:fix")
    error = desk.refused(Failed, "ambiguous", "fix")
    assert "origin/fix and other/fix" in error.message
    assert desk.start("fix", base="other/fix").cwd


@pytest.mark.parametrize(
    "name",
    [
        "-x",
        "--orphan",
        "-",
        "",
        " ",
        "a b",
        "a..b",
        "../up",
        "a/../b",
        "/a",
        "a/",
        "a//b",
        ".a",
        "a/.b",
        "a.lock",
        "a~1",
    ]
    + [
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "@",
        "@{-1}",
        "a@{0}",
        "HEAD",
        "refs/heads/main",
        "a\n",
        "a\x1b",
        "\udcff",
    ]
    + ["a\x00b", "x" * 300, "a.", "a\u202eb"],
)
def test_what_names_no_branch_is_refused_before_git_sees_it(desk, name):
    git(desk.repo, "switch", "-q", "-c", "before")
    git(desk.repo, "switch", "-q", "main")
    desk.refused(Usage, "bad_branch", name)
    assert not (desk.state / "worktrees").exists()


@pytest.mark.night
@pytest.mark.parametrize("names", [("feature/x", "feature-x", "feature.x"), ("größe", "gr-e", "gr--e")])
def test_branches_whose_names_are_alike_have_folders_of_their_own(desk, names):
    made = [desk.start(name, f"s{number}") for number, name in enumerate(names)]
    assert [git(one.cwd, "branch", "--show-current") for one in made] == list(names)
    assert len({one.cwd for one in made}) == len(names)
    assert all(Path(one.cwd).parent == Path(made[0].cwd).parent for one in made)
    assert [desk.end(one) for one in made] == [None] * len(names)


@pytest.mark.night
def test_repositories_of_one_name_have_folders_of_their_own(desk):
    (desk.place / "other").mkdir()
    other = desk.new_repository(desk.place / "other" / "shop")
    assert desk.start("fix", "one").cwd != desk.start("fix", "two", other).cwd


@pytest.mark.night
def test_the_program_starts_in_the_same_folder_of_the_worktree(desk):
    made = desk.start(cwd=desk.repo / "till")
    assert made.cwd == f"{made.notes['worktree']['path']}/till"
    assert Path(made.cwd, "coins").exists()


@pytest.mark.night
def test_a_folder_that_the_branch_has_not_is_told_and_nothing_is_left(desk):
    (desk.repo / "build").mkdir()
    error = desk.refused(Failed, "bad_cwd", cwd=desk.repo / "build")
    assert "no folder 'build'" in error.message
    assert f"--cwd {desk.repo}" in error.hint


def test_a_folder_that_leads_out_of_the_worktree_is_refused(desk):
    git(desk.repo, "switch", "-q", "-c", "trap")
    shutil.rmtree(desk.repo / "till")
    (desk.repo / "till").symlink_to(desk.place)
    desk.commit(desk.repo)
    git(desk.repo, "switch", "-q", "main")
    desk.refused(Failed, "bad_cwd", "trap", cwd=desk.repo / "till")


@pytest.mark.night
def test_the_place_can_be_chosen(desk):
    made = desk.start("fix", path="../there")
    assert made.cwd == str(desk.place / "there")
    assert desk.end(made) is None
    assert not (desk.place / "there").exists()


@pytest.mark.night
def test_what_is_in_the_way_stays(desk):
    (desk.place / "there").mkdir()
    (desk.place / "there" / "mine").touch()
    (desk.place / "file").touch()
    (desk.place / "link").symlink_to(desk.place / "empty")
    (desk.place / "empty").mkdir()
    for name in ("there", "file", "link"):
        desk.refused(Failed, "exists", path=f"../{name}")
    for path in (".git/tree", ".git", "../nowhere/tree"):
        desk.refused(Failed if path == ".git" else Usage, "exists" if path == ".git" else "bad_path", path=path)
    assert (desk.place / "there" / "mine").exists()
    assert (desk.place / "empty").is_dir()


# what there is already


@pytest.mark.night
def test_a_branch_that_is_checked_out_elsewhere_is_refused_with_the_place(desk):
    error = desk.refused(Conflict, "checked_out", "main")
    assert str(desk.repo) in error.message
    assert f"--cwd {desk.repo}" in error.hint
    foreign = desk.place / "foreign"
    git(desk.repo, "worktree", "add", "-q", "-b", "fix", str(foreign))
    assert str(foreign) in desk.refused(Conflict, "checked_out", "fix").message
    assert str(foreign) in desk.refused(Conflict, "checked_out", "fix", path=str(foreign)).message
    shutil.rmtree(foreign)
    assert "git worktree prune" in desk.refused(Conflict, "checked_out", "fix").hint


@pytest.mark.night
def test_a_worktree_has_one_session_at_a_time(desk):
    first = desk.start("fix", "one")
    error = desk.refused(Conflict, "in_use", "fix", "two")
    assert "session one" in error.message
    assert "tmuxctl kill one" in error.hint
    (Path(first.cwd) / "more").touch()
    assert "1 new file" in desk.end(first)
    second = desk.start("fix", "two")
    assert second.cwd == first.cwd
    assert (Path(second.cwd) / "more").exists()
    assert desk.end(first) is None  # asked again, it leaves the other's alone
    assert (Path(second.cwd) / "more").exists()


@pytest.mark.night
def test_a_session_that_is_about_to_start_has_it_too(desk, monkeypatch):
    made = desk.prepare("fix", "one")
    desk.refused(Conflict, "in_use", "fix", "two")
    record = Path(made.notes["worktree"]["record"])
    ended = subprocess.Popen(["true"])
    ended.wait()
    kept = json.loads(record.read_text())
    record.write_text(json.dumps({**kept, "owner": {**kept["owner"], "pid": ended.pid}}))
    assert desk.start("fix", "two").cwd == made.cwd


def test_a_session_that_is_brought_back_gets_its_own_again(desk):
    made = desk.start("fix", "one", desk.repo / "till", base="main")
    desk.commit(made.cwd)
    git(made.cwd, "switch", "-q", "-c", "further")
    again = desk.prepare("fix", "one", desk.repo / "till", base="main")
    assert again == made
    assert git(again.cwd, "branch", "--show-current") == "further"


def test_a_worktree_that_somebody_removed_is_made_again(desk):
    made = desk.start("fix", "one")
    tip = desk.commit(made.cwd)
    shutil.rmtree(made.cwd)
    again = desk.prepare("fix", "one")
    assert git(again.cwd, "rev-parse", "HEAD") == tip


def test_a_worktree_on_another_branch_is_not_given_to_a_new_session(desk):
    made = desk.start("fix", "one")
    git(made.cwd, "switch", "-q", "-c", "further")
    (Path(made.cwd) / "more").touch()
    assert desk.end(made)
    desk.refused(Failed, "exists", "fix", "two")


@pytest.mark.night
def test_of_two_at_once_exactly_one_wins(desk):
    barrier = threading.Barrier(4)

    def attempt(number: int) -> SessionSpec | TmuxctlError:
        spec = desk.spec(f"s{number}")
        barrier.wait()
        try:
            made: SessionSpec = desk.worktree.transform(
                spec, desk.machine, branch="fix", setup="test ! -e once; : >once"
            )
            return made
        except TmuxctlError as error:
            return error

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(attempt, range(4)))
    [won] = [one for one in results if isinstance(one, SessionSpec)]
    assert {type(one) for one in results if one is not won} == {Conflict}
    assert git(won.cwd, "branch", "--show-current") == "fix"


@pytest.mark.night
def test_several_branches_can_be_made_at_once(desk):
    desk.remote()
    names = [f"fix-{number}" for number in range(6)]
    for name in names:
        git(desk.repo, "push", "-q", "origin", f"main:{name}")
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda name: desk.prepare(name, name), names))
    assert [git(one.cwd, "branch", "--show-current") for one in made] == names


def test_a_lock_of_git_is_waited_for(desk, until):
    lock = desk.repo / ".git/refs/heads/fix.lock"
    lock.touch()
    timer = threading.Timer(0.3, lock.unlink)
    timer.start()
    assert desk.start("fix").cwd
    timer.join()


@pytest.mark.night
def test_a_lock_of_git_that_stays_is_told(desk, monkeypatch):
    monkeypatch.setattr(desk.worktree, "LOCK_SECONDS", 0.2)
    lock = desk.repo / ".git/refs/heads/fix.lock"
    lock.touch()
    assert "fix.lock': File exists" in desk.refused(Conflict, "git", "fix").message


KILLED = """
import json, os, sys
from tmuxctl import plugin
from tmuxctl.model import SessionSpec
from tmuxctl.plugin_machine import this_machine
spec = SessionSpec(("cat",), sys.argv[1], dict(os.environ), name="one", notes={"folder": sys.argv[2]})
machine = this_machine()
plugin.load("worktree").module.transform(spec, machine, branch="fix", setup=f"touch half; kill -9 {os.getpid()}")
"""


@pytest.mark.night
def test_what_a_killed_tmuxctl_left_half_made_is_made_anew(desk):
    words = [sys.executable, "-c", KILLED, str(desk.repo), str(desk.place / SESSIONS / "one")]
    ran = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert ran.returncode == -signal.SIGKILL
    assert [path for path in desk.all()[2] if path.name == "fix"]
    made = desk.start("fix", "two", setup="touch whole")
    assert sorted(path.name for path in Path(made.cwd).iterdir()) == [".git", ".gitignore", "till", "whole"]
    assert desk.end(made) is None


def test_a_damaged_record_is_told_and_nothing_is_touched(desk):
    made = desk.start()
    (Path(made.cwd) / "more").touch()
    desk.end(made)
    Path(made.notes["worktree"]["record"]).write_text('{"path": ')
    assert "fix.json" in desk.refused(Failed, "bad_record", "fix", "two").hint
    assert (Path(made.cwd) / "more").exists()


# links that were planted


@pytest.mark.parametrize("what", ["worktrees", "worktrees/REPO", "worktrees/REPO/fix"])
def test_a_link_in_place_of_a_folder_is_refused(desk, what):
    made = desk.prepare()
    name = Path(made.cwd).parent.name
    assert desk.end(made, NOT_STARTED) is None
    path, aim = desk.state / what.replace("REPO", name), desk.place / "aim"
    shutil.rmtree(path, ignore_errors=True)
    aim.mkdir(mode=0o700)
    path.symlink_to(aim)
    with pytest.raises((Denied, Failed)) as caught:
        desk.prepare()
    assert caught.value.reason == ("exists" if what.endswith("fix") else "bad_owner")
    assert not list(aim.iterdir())
    assert desk.branches() == {"main"}


def test_a_link_to_somebody_elses_worktree_is_not_taken_for_ours(desk):
    made = desk.prepare()
    assert desk.end(made, NOT_STARTED) is None
    foreign = desk.place / "foreign"
    git(desk.repo, "worktree", "add", "-q", "-b", "fix", str(foreign))
    Path(made.cwd).symlink_to(foreign)
    desk.refused(Failed, "exists")


@pytest.mark.night
@pytest.mark.parametrize(("what", "reason"), [("record", "bad_record"), ("lock", "bad_lock")])
def test_a_link_in_place_of_a_file_is_refused(desk, what, reason):
    made = desk.prepare()
    record = Path(made.notes["worktree"]["record"])
    assert desk.end(made, NOT_STARTED) is None
    aim = desk.place / "aim"
    aim.write_text("mine")
    (record if what == "record" else record.with_suffix(".lock")).symlink_to(aim)
    desk.refused(Failed if what == "record" else Denied, reason)
    assert aim.read_text() == "mine"


def test_a_folder_that_is_open_to_others_is_refused(desk):
    made = desk.prepare()
    assert desk.end(made, NOT_STARTED) is None
    (desk.state / "worktrees").chmod(0o777)
    desk.refused(Denied, "bad_mode")


# what is put into a new one


def test_files_that_git_ignores_are_copied_if_they_are_asked_for(desk):
    (desk.repo / ".worktreeinclude").write_text("# keys\n*.secret\n!not.secret\nlocal/\nloose\nREADME\n")
    (desk.repo / "README").write_text("known to git\n")
    desk.commit(desk.repo)
    (desk.repo / "README").write_text("changed here\n")
    for path in ("api.secret", "not.secret", "till/deep.secret", "local/a b/c\nd", "build/out", "loose"):
        (desk.repo / path).parent.mkdir(parents=True, exist_ok=True)
        (desk.repo / path).write_text(path)
    (desk.repo / "api.secret").chmod(0o640)
    (desk.repo / "local/a b/c\nd").chmod(0o755)
    tree = Path(desk.start().cwd)
    for path in ("api.secret", "till/deep.secret", "local/a b/c\nd"):
        assert (tree / path).read_text() == path
        assert (tree / path).stat().st_mode == (desk.repo / path).stat().st_mode
    for path in ("not.secret", "build", "loose"):
        assert not (tree / path).exists()
    assert (tree / "README").read_text() == "known to git\n"


def test_no_link_is_followed_out_of_the_repository(desk):
    (desk.repo / ".worktreeinclude").write_text("local/\n*.secret\n")
    desk.commit(desk.repo)
    (desk.place / "key").write_text("private")
    local = desk.repo / "local"
    local.mkdir()
    (local / "real").write_text("real")
    for name, to in {"up": "../../key", "abs": str(desk.place / "key"), "in": "real", "dir": "../.."}.items():
        (local / name).symlink_to(to)
    os.mkfifo(local / "fifo")
    made = desk.start()
    copied = sorted(path.name for path in Path(made.cwd, "local").iterdir())
    assert copied == ["in", "real"]
    assert os.readlink(Path(made.cwd, "local", "in")) == "real"


def test_a_link_on_the_branch_does_not_lead_a_copy_astray(desk):
    git(desk.repo, "switch", "-q", "-c", "trap")
    (desk.place / "home").mkdir()
    (desk.repo / ".gitignore").write_text("*.secret\n")
    (desk.repo / "keys").symlink_to(desk.place / "home")
    (desk.repo / "one.secret").symlink_to(desk.place / "home" / "one")
    git(desk.repo, "add", "-f", "one.secret")
    desk.commit(desk.repo)
    git(desk.repo, "switch", "-q", "main")
    (desk.repo / ".worktreeinclude").write_text("*.secret\n")
    (desk.repo / "one.secret").write_text("x")
    assert desk.end(desk.start("trap", "one"), FORCED) is None
    (desk.repo / "keys").mkdir()
    (desk.repo / "keys" / "a.secret").write_text("x")
    error = desk.refused(Failed, "bad_path", "trap", "two")
    assert "leads out of the worktree" in error.message
    assert not list((desk.place / "home").iterdir())


def test_too_much_to_copy_is_told_and_undone(desk, monkeypatch):
    (desk.repo / ".worktreeinclude").write_text("*.secret\n")
    for number in range(4):
        (desk.repo / f"{number}.secret").write_text("x" * 10)
    monkeypatch.setattr(desk.worktree, "MOST_FILES", 3)
    assert "4 files" in desk.refused(Failed, "too_large").message
    monkeypatch.setattr(desk.worktree, "MOST_FILES", 5)
    monkeypatch.setattr(desk.worktree, "MOST_BYTES", 39)
    desk.refused(Failed, "too_large")


def test_setup_runs_once_where_the_program_will_start_with_its_environment(desk):
    spec = replace(desk.spec(cwd=desk.repo / "till"), env={**os.environ, "WORD": "hello"})
    options = {"branch": "fix", "setup": 'pwd >>where; echo "$WORD" >>where; cat >>where'}
    made = desk.worktree.transform(spec, desk.machine, **options)
    assert Path(made.cwd, "where").read_text() == f"{made.cwd}\nhello\n"
    desk.worktree.transform(spec, desk.machine, **options)
    assert Path(made.cwd, "where").read_text() == f"{made.cwd}\nhello\n"


def test_a_setup_that_fails_shows_its_last_lines_and_undoes_all(desk):
    command = "for n in $(seq 50); do echo line $n; done; printf 'bad \\033[31mcolour\\n' >&2; exit 3"
    message = desk.refused(Failed, "setup", setup=command).message
    assert "ended with status 3" in message
    assert message.endswith(" | line 49 | line 50 | bad ?[31mcolour")
    assert "line 40 " not in message


def test_a_setup_that_fails_leaves_the_branch_if_it_committed_to_it(desk):
    with pytest.raises(Failed):
        desk.prepare(setup="git commit --allow-empty -m Work && exit 1")
    assert git(desk.repo, "log", "--format=%s", "fix") == "Work\nBegin"
    assert not desk.all()[2]


@pytest.mark.night
def test_a_setup_that_hangs_is_ended_with_what_it_started(desk, monkeypatch, until):
    monkeypatch.setattr(desk.worktree, "SETUP_SECONDS", 0.5)
    pids = desk.place / "pids"
    error = desk.refused(Failed, "setup", setup=f"echo begun; sleep 1000 & echo $! >{pids}; wait")
    assert error.message.endswith("' did not end within 0.5 s; its last lines: begun")
    pid = pids.read_text().strip()
    until(lambda: not Path(f"/proc/{pid}").exists() or "Z (" in Path(f"/proc/{pid}/status").read_text())


@pytest.mark.night
def test_the_repositorys_own_hook_runs_and_may_refuse(desk):
    hook = desk.repo / ".git/hooks/post-checkout"
    hook.write_text(
        '#!/bin/sh\n{ echo "$GIT_TERMINAL_PROMPT"; cat; (: </dev/tty) 2>/dev/null || echo no terminal; } >hooked\n'
    )
    hook.chmod(0o755)
    made = desk.start()
    assert Path(made.cwd, "hooked").read_text() == "0\nno terminal\n"
    assert desk.end(made) is None
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    assert "not today" in desk.refused(Failed, "git", "other").message


# repositories of all kinds


def test_a_folder_in_no_repository_is_told(desk):
    (desk.place / "plain").mkdir()
    error = desk.refused(Failed, "no_repository", cwd=desk.place / "plain")
    assert "not in a git repository" in error.message
    assert "git init" in error.hint
    desk.refused(Failed, "no_repository", cwd=desk.repo / ".git")


def test_a_repository_without_a_commit_is_told(desk):
    git(desk.place, "init", "-q", "empty")
    assert "git commit" in desk.refused(Failed, "no_commit", cwd=desk.place / "empty").hint


@pytest.mark.night
def test_a_bare_repository_has_worktrees_too(desk):
    bare = desk.remote()
    made = desk.start(cwd=bare)
    assert git(made.cwd, "branch", "--show-current") == "fix"
    assert desk.end(made) is None
    assert not Path(made.cwd).exists()


@pytest.mark.night
def test_a_submodule_is_a_repository_of_its_own(desk):
    library = desk.new_repository(desk.place / "library")
    git(desk.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    desk.commit(desk.repo)
    inside = desk.start("fix", "one", desk.repo / "lib" / "till")
    assert inside.cwd.endswith("/till")
    assert git(inside.cwd, "log", "--format=%s") == "Begin"
    assert desk.end(inside) is None
    outside = desk.start("fix", "two")
    assert not list(Path(outside.cwd, "lib").iterdir())
    assert desk.end(outside) is None
    assert not Path(outside.cwd).exists()


def test_a_state_folder_inside_the_repository_is_refused(desk, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(desk.repo / "state"))
    desk.refused(Failed, "bad_path")
    assert not (desk.repo / "state").exists()


def test_without_git_it_cannot_work_there(desk, monkeypatch):
    assert desk.worktree.check(desk.machine) is None
    monkeypatch.setenv("PATH", str(desk.place))
    assert "git is not installed" in (desk.worktree.check(this_machine()) or "")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a repository away")
def test_a_repository_of_somebody_else_is_refused_in_the_words_of_git(desk):
    for folder, _, names in os.walk(desk.repo):
        for name in (".", *names):
            os.lchown(os.path.join(folder, name), 12345, 12345)
    with pytest.raises(Failed) as caught:
        desk.prepare()
    assert "dubious ownership" in caught.value.message
    assert "safe.directory" in caught.value.message


def test_an_unknown_way_to_keep_it_is_refused(desk):
    desk.refused(Usage, "bad_option", keep="never")


def test_variables_that_lead_git_elsewhere_lead_nobody_astray(desk, monkeypatch):
    other = desk.new_repository(desk.place / "other")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(other / ".git"))
    made = desk.prepare()
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"):
        monkeypatch.delenv(name)
    assert made.notes["worktree"]["repository"] == f"{desk.repo}/.git"
    assert not [name for name in made.env if name.startswith("GIT_")]
    assert "fix" in desk.branches()


# the end


@pytest.mark.night
def test_a_worktree_with_nothing_to_lose_is_removed_and_the_branch_stays(desk):
    made = desk.start()
    assert desk.end(made) is None
    assert not Path(made.cwd).exists()
    assert git(desk.repo, "worktree", "list").count("\n") == 0
    assert desk.branches() == {"main", "fix"}
    assert not desk.all()[2]
    assert desk.end(made) is None


def changed(desk: Desk, tree: Path) -> None:
    (tree / "till" / "coins").write_text("2\n")


def staged(desk: Desk, tree: Path) -> None:
    changed(desk, tree)
    git(tree, "add", "-A")


def deleted(desk: Desk, tree: Path) -> None:
    (tree / "till" / "coins").unlink()


def added(desk: Desk, tree: Path) -> None:
    git(tree, "config", "status.showUntrackedFiles", "no")
    (tree / "more").mkdir()
    (tree / "more" / "new").touch()


def repository(desk: Desk, tree: Path) -> None:
    desk.new_repository(tree / "nested")


def committed(desk: Desk, tree: Path) -> None:
    desk.commit(tree)


def detached(desk: Desk, tree: Path) -> None:
    git(tree, "checkout", "-q", "--detach")
    desk.commit(tree)


def elsewhere(desk: Desk, tree: Path) -> None:
    git(tree, "tag", "further")
    git(tree, "switch", "-q", "-c", "further")
    desk.commit(tree)


def rebasing(desk: Desk, tree: Path) -> None:
    git(tree, "-c", "sequence.editor=sed -i 1i\\break", "rebase", "-q", "-i", "--root")


def bisecting(desk: Desk, tree: Path) -> None:
    git(tree, "bisect", "start", "-q")


def locked(desk: Desk, tree: Path) -> None:
    git(tree, "worktree", "lock", ".")


def copied(desk: Desk, tree: Path) -> None:
    (tree / "api.secret").write_text("other")


def ignored_repository(desk: Desk, tree: Path) -> None:
    desk.new_repository(tree / "build" / "tool")


def ignored_repository_of_another_shape(desk: Desk, tree: Path) -> None:
    (tree / "build").mkdir()
    git(tree, "init", "-q", "--separate-git-dir=build/store", "build/tool")
    desk.commit(tree / "build" / "tool")


def bare_repository(desk: Desk, tree: Path) -> None:
    git(tree, "clone", "-q", "--bare", ".", "build/copy.git")


def repository_over_known_files(desk: Desk, tree: Path) -> None:
    """Git shows no repository that was made in a folder whose files it knows."""
    git(tree / "till", "init", "-q")
    desk.commit(tree / "till")
    assert not status(tree)


def submodule_taken_out_again(desk: Desk, tree: Path) -> None:
    library = desk.new_repository(desk.place / "library")
    git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    git(tree, "commit", "-q", "-m", "Use it")
    desk.commit(tree / "lib")
    git(tree, "submodule", "--quiet", "deinit", "--force", "lib")
    git(desk.repo, "branch", "copy", "feature/x")


def on_a_detached_head_before(desk: Desk, tree: Path) -> None:
    detached(desk, tree)
    git(tree, "checkout", "-q", "feature/x")


def on_a_branch_that_was_deleted(desk: Desk, tree: Path) -> None:
    elsewhere(desk, tree)
    git(tree, "switch", "-q", "feature/x")
    git(tree, "branch", "-q", "-D", "further")


def under_a_ref_of_the_worktree(desk: Desk, tree: Path) -> None:
    detached(desk, tree)
    git(tree, "update-ref", "refs/worktree/mine", "HEAD")
    git(tree, "checkout", "-q", "feature/x")
    own = Path(git(tree, "rev-parse", "--absolute-git-dir"))
    (own / "logs" / "HEAD").write_text("")


def before_an_empty_branch(desk: Desk, tree: Path) -> None:
    detached(desk, tree)
    git(tree, "checkout", "-q", "--orphan", "empty")


ITS_OWN_LOG = "1 commit is known only to its own log (git reflog)"


@pytest.mark.night
@pytest.mark.parametrize(
    ("work", "words"),
    [
        (ignored_repository, "build/tool is a repository of its own"),
        (ignored_repository_of_another_shape, "build/store is a repository of its own"),
        (bare_repository, "build/copy.git is a repository of its own"),
        (repository_over_known_files, "till is a repository of its own"),
        (submodule_taken_out_again, "submodule lib is a repository of its own"),
        (on_a_detached_head_before, ITS_OWN_LOG),
        (on_a_branch_that_was_deleted, ITS_OWN_LOG),
        (under_a_ref_of_the_worktree, ITS_OWN_LOG),
        (before_an_empty_branch, ITS_OWN_LOG),
        (changed, "1 changed file is not committed"),
        (staged, "1 changed file is not committed"),
        (deleted, "1 changed file is not committed"),
        (added, "1 new file is not committed"),
        (repository, "1 new file is not committed"),
        (committed, "1 commit is on no remote and no other branch"),
        (detached, "1 commit is on no remote and no other branch"),
        (elsewhere, "1 commit is on no remote and no other branch"),
        (rebasing, "a rebase is not finished"),
        (bisecting, "a bisection is not finished"),
        (locked, "it is locked"),
        (copied, "1 copied file is changed"),
    ],
)
def test_work_holds_a_worktree_back_until_somebody_says_otherwise(desk, work, words):
    (desk.repo / ".worktreeinclude").write_text("*.secret\n")
    (desk.repo / "api.secret").write_text("x")
    made = desk.start("feature/x")
    work(desk, Path(made.cwd))
    for ended in (GONE, plugin.SessionEnd(None, kept=True), NOT_STARTED, plugin.SessionEnd(1, kept=False)):
        left = desk.end(made, ended)
        assert left is not None
        assert left.startswith(f"worktree {made.cwd} of branch feature/x kept: ")
        assert words in left
        assert Path(made.cwd, ".git").exists()
        assert "feature/x" in desk.branches()
    assert desk.end(made, FORCED) is None
    assert not Path(made.cwd).exists()
    assert git(desk.repo, "worktree", "list").count("\n") == 0
    assert "feature/x" in desk.branches()
    assert not desk.all()[2]


@pytest.mark.night
def test_a_merge_that_is_not_finished_holds_it_back(desk):
    made = desk.start()
    changed(desk, Path(made.cwd))
    desk.commit(made.cwd)
    (desk.repo / "till" / "coins").write_text("3\n")
    desk.commit(desk.repo)
    subprocess.run(["git", "merge", "-q", "main"], cwd=made.cwd, capture_output=True, check=False)
    assert "a merge is not finished" in (desk.end(made) or "")


@pytest.mark.night
def test_several_reasons_are_all_told(desk):
    made = desk.start()
    committed(desk, Path(made.cwd))
    committed(desk, Path(made.cwd))
    changed(desk, Path(made.cwd))
    added(desk, Path(made.cwd))
    left = desk.end(made) or ""
    for words in ("1 changed file is", "1 new file is", "2 commits are on no remote"):
        assert words in left


@pytest.mark.night
def test_commits_that_a_remote_or_another_branch_has_are_not_lost(desk):
    desk.remote()
    for number, save in enumerate((("push", "-q", "origin", "HEAD"), ("branch", "copy"))):
        made = desk.start(f"fix-{number}", f"s{number}")
        desk.commit(made.cwd, f"Work {number}")
        assert desk.end(made) is not None
        git(made.cwd, *save)
        assert desk.end(made) is None
        assert not Path(made.cwd).exists()


@pytest.mark.night
def test_commits_that_were_there_on_main_do_not_count(desk):
    desk.remote()
    desk.commit(desk.repo)
    assert desk.end(desk.start()) is None


@pytest.mark.night
def test_what_git_ignores_and_what_was_put_there_does_not_hold_it_back(desk):
    (desk.repo / ".worktreeinclude").write_text("*.secret\n")
    desk.commit(desk.repo)
    (desk.repo / "api.secret").write_text("x")
    made = desk.start(setup="echo 1 >generated; echo 2 >till/coins; echo y >>api.secret")
    (Path(made.cwd) / "build").mkdir()
    (Path(made.cwd) / "build" / "out").write_text("x")
    assert Path(made.cwd, "api.secret").read_text() == "xy\n"
    assert desk.end(made) is None
    assert not Path(made.cwd).exists()


@pytest.mark.night
def test_what_a_setup_made_holds_it_back_once_it_is_touched(desk):
    made = desk.start(setup="echo 1 >generated; rm till/coins")
    (Path(made.cwd) / "generated").write_text("2")
    assert "1 new file is not committed" in (desk.end(made) or "")


@pytest.mark.night
def test_what_was_tried_on_the_way_and_is_kept_elsewhere_does_not_hold_it_back(desk):
    """Amended, reset and rebased commits stand in the log of the branch, which stays; steps of a rebase in nothing's."""
    made = desk.start()
    tree = Path(made.cwd)
    for number in range(3):
        (tree / f"note-{number}").write_text("x")
        desk.commit(tree, f"Work {number}")
    git(tree, "commit", "-q", "--amend", "-m", "Better")
    git(tree, "-c", "sequence.editor=sed -i 2,3s/pick/squash/", "-c", "core.editor=true", "rebase", "-q", "-i", "main")
    git(tree, "reset", "-q", "--hard", "HEAD~1")
    git(tree, "reset", "-q", "--hard", "ORIG_HEAD")
    (tree / "more").write_text("x")
    git(tree, "stash", "push", "-q", "--include-untracked")
    git(tree, "stash", "drop", "-q")
    git(desk.repo, "branch", "copy", "fix")
    assert desk.end(made) is None
    assert not tree.exists()


@pytest.mark.night
def test_a_repository_without_anything_in_it_does_not_hold_it_back(desk):
    made = desk.start()
    git(made.cwd, "init", "-q", "build/empty")
    (Path(made.cwd) / "build" / "objects").mkdir()
    assert desk.end(made) is None
    assert not Path(made.cwd).exists()


@pytest.mark.night
def test_nothing_that_lies_in_it_is_waited_for_or_followed(desk):
    made = desk.start()
    build = Path(made.cwd) / "build"
    build.mkdir()
    os.mkfifo(build / "HEAD")
    (build / "loop").symlink_to("..")
    desk.new_repository(desk.place / "outside")
    (build / "away").symlink_to(desk.place / "outside")
    assert desk.end(made) is None
    assert (desk.place / "outside" / ".git").exists()


def test_a_log_that_cannot_be_read_holds_it_back(desk):
    made = desk.start()
    log = Path(git(made.cwd, "rev-parse", "--absolute-git-dir")) / "logs" / "HEAD"
    log.unlink()
    os.mkfifo(log)
    assert "not a regular file" in (desk.end(made) or "")
    assert desk.end(made, FORCED) is None


@pytest.mark.night
def test_more_folders_than_can_be_looked_through_hold_it_back(desk, monkeypatch):
    made = desk.start()
    monkeypatch.setattr(desk.worktree, "SEARCH_SECONDS", -1.0)
    assert "too many folders" in (desk.end(made) or "")
    monkeypatch.undo()
    assert desk.end(made, FORCED) is None


@pytest.mark.night
def test_a_worktree_can_be_kept_whatever_is_in_it(desk):
    made = desk.start(keep="always")
    assert desk.end(made) is None
    assert Path(made.cwd).is_dir()
    again = desk.start("fix", "two")
    assert again.cwd == made.cwd
    assert desk.end(again) is None
    assert not Path(made.cwd).exists()
    made = desk.start("fix", "three", keep="always")
    assert desk.end(made, FORCED) is None
    assert not Path(made.cwd).exists()


@pytest.mark.night
def test_a_worktree_that_somebody_removed_leaves_nothing(desk):
    made = desk.start()
    shutil.rmtree(made.cwd)
    assert desk.end(made) is None
    assert git(desk.repo, "worktree", "list").count("\n") == 0
    made = desk.start("fix", "two")
    git(desk.repo, "worktree", "remove", made.cwd)
    shutil.rmtree(desk.state)
    assert desk.end(made) is None


@pytest.mark.night
def test_a_session_that_did_not_start_leaves_neither_worktree_nor_branch(desk):
    made = desk.prepare()
    assert desk.end(made, NOT_STARTED) is None
    assert not Path(made.cwd).exists()
    assert desk.branches() == {"main"}
    assert not desk.all()[2]


@pytest.mark.night
def test_a_session_that_did_not_start_takes_nothing_that_was_there(desk):
    first = desk.start("fix", "one", keep="always")
    assert desk.end(first) is None
    for session in ("two", "three"):
        assert desk.end(desk.prepare("fix", session), NOT_STARTED) is None
        assert Path(first.cwd).is_dir()


@pytest.mark.night
def test_a_lost_session_that_could_not_be_brought_back_keeps_its_worktree(desk):
    desk.start("fix", "one")
    again = desk.prepare("fix", "one")
    assert desk.worktree.cleanup(again, NOT_STARTED, desk.machine) is None
    assert Path(again.cwd).is_dir()
    desk.refused(Conflict, "in_use", "fix", "two")
    assert desk.end(again) is None
    assert not Path(again.cwd).exists()


@pytest.mark.night
def test_asked_again_before_the_start_it_makes_the_same_and_undoes_all(desk):
    made = desk.prepare()
    assert desk.prepare() == made
    assert desk.end(made, NOT_STARTED) is None
    assert desk.branches() == {"main"}


@pytest.mark.night
def test_what_ended_without_a_status_long_ago_is_not_taken_for_what_never_started(desk):
    made = desk.start()
    (Path(made.cwd) / "more").touch()
    assert desk.end(made, plugin.SessionEnd(None, kept=True))
    (Path(made.cwd) / "more").unlink()
    assert desk.end(made, NOT_STARTED) is None
    assert not Path(made.cwd).exists()
    assert "fix" in desk.branches()


@pytest.mark.night
def test_a_session_that_did_not_start_leaves_a_branch_that_was_there(desk):
    git(desk.repo, "branch", "fix")
    assert desk.end(desk.prepare(), NOT_STARTED) is None
    assert desk.branches() == {"main", "fix"}


@pytest.mark.night
def test_a_repository_that_is_gone_is_told_and_force_removes_what_is_left(desk):
    made = desk.start()
    desk.repo.rename(desk.place / "moved")
    assert "kept: " in (desk.end(made) or "")
    assert Path(made.cwd, "till").exists()
    assert desk.end(made, FORCED) is None
    assert not Path(made.cwd).exists()


def evil_repository(desk: Desk, at: Path) -> None:
    """A repository at a folder whose own settings run a program when git only looks at it."""
    script = desk.place / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {desk.place}/ran\ncat\n")
    script.chmod(0o755)
    desk.new_repository(at)
    for name in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "core.hooksPath", "alias.status"):
        git(at, "config", name, str(script))
    (at / ".gitattributes").write_text("* filter=evil\n")
    (at / "till" / "coins").write_text("9\n")


@pytest.mark.night
def test_a_program_that_rewrites_the_worktrees_own_files_makes_us_run_nothing(desk):
    made = desk.start()
    evil_repository(desk, desk.place / "evil")
    Path(made.cwd, ".git").write_text(f"gitdir: {desk.place}/evil/.git\n")
    (desk.place / "ran").unlink(missing_ok=True)
    assert "does not lead to the repository" in (desk.end(made) or "")
    desk.refused(Failed, "bad_worktree", "fix", "two")
    assert desk.end(made, FORCED) is None
    assert not Path(made.cwd).exists()
    assert git(desk.repo, "worktree", "list").count("\n") == 0
    assert (desk.place / "evil" / "till" / "coins").exists()
    assert not (desk.place / "ran").exists()


@pytest.mark.night
def test_a_program_that_rewrites_where_the_repository_is_makes_us_run_nothing(desk):
    made = desk.start()
    evil_repository(desk, desk.place / "evil")
    own = Path(git(made.cwd, "rev-parse", "--absolute-git-dir"))
    (own / "commondir").write_text(f"{desk.place}/evil/.git\n")
    Path(made.cwd, ".gitattributes").write_text("* filter=evil\n")
    changed(desk, Path(made.cwd))
    (desk.place / "ran").unlink(missing_ok=True)
    assert "does not lead to the repository" in (desk.end(made) or "")
    assert desk.end(made, FORCED) is None
    assert not Path(made.cwd).exists()
    assert not (desk.place / "ran").exists()


@pytest.mark.night
def test_a_submodule_in_a_worktree_is_not_entered_and_holds_it_back(desk):
    made = desk.start()
    evil_repository(desk, Path(made.cwd, "lib"))
    git(made.cwd, "-c", "advice.addEmbeddedRepo=false", "add", "lib", ".")
    desk.commit(made.cwd)
    git(desk.repo, "branch", "copy", "fix")
    (Path(made.cwd) / "lib" / "till" / "coins").write_text("10\n")
    (desk.place / "ran").unlink(missing_ok=True)
    assert "1 submodule is checked out in it" in (desk.end(made) or "")
    assert desk.end(made, FORCED) is None
    assert not Path(made.cwd).exists()
    assert not (desk.place / "ran").exists()


# real sessions


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_works_in_its_worktree_and_leaves_nothing(control, desk):
    made = control.new(
        "t", ("sh", "-c", "git branch --show-current; pwd; exec cat"), with_=("worktree=fix",), cwd=str(desk.repo)
    )
    assert made.plugins == ("worktree",)
    seen = control.wait("t", text=r"(?m)^fix\n(/.*)$", since="screen")
    tree = made.cwd
    assert seen.groups
    assert Path(tree).parent.parent == desk.state / "worktrees"
    control.kill(["t"])
    assert not Path(tree).exists()
    assert desk.branches() == {"main", "fix"}


@pytest.mark.night
@pytest.mark.on("tmux")
def test_what_a_session_left_is_there_for_the_next(control, desk):
    with_ = ("worktree=fix",)
    first = control.new("a", ("sh", "-c", "echo work >work; exec cat"), with_=with_, cwd=str(desk.repo), wait=True)
    with pytest.raises(Failed) as caught:
        control.new("b", ("cat",), with_=with_, cwd=str(desk.repo))
    assert "in use by the session a" in caught.value.message
    assert "tmuxctl kill a" in caught.value.hint
    [ended] = control.kill(["a"]).killed
    assert ended.left == (f"worktree {first.cwd} of branch fix kept: 1 new file is not committed",)
    control.new("b", ("sh", "-c", "cat work; exec cat"), with_=with_, cwd=str(desk.repo))
    assert control.wait("b", text="(?m)^work$", since="screen").matched
    assert control.show("b").cwd == first.cwd
    assert control.kill(["b"]).killed[0].left
    assert control.prune().left
    assert Path(first.cwd, "work").read_text() == "work\n"
    Path(first.cwd, "work").unlink()
    assert not control.prune().left
    assert not Path(first.cwd).exists()


@pytest.mark.night
@pytest.mark.on("tmux")
def test_unsaved_work_goes_by_force_alone(control, desk):
    made = control.new("t", ("sh", "-c", "echo work >work; exec cat"), worktree="fix", cwd=str(desk.repo), wait=True)
    [ended] = control.kill(["t"], force=True).killed
    assert (ended.left, Path(made.cwd).exists()) == ((), False)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_session_that_is_restored_goes_on_in_its_worktree(control, desk, until):
    made = control.new("t", ("cat",), worktree="feature/x", cwd=str(desk.repo / "till"))
    (Path(made.cwd) / "build").mkdir()
    pid = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    os.kill(pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{pid}/exe").exists())
    for dry_run in (True, False):
        assert [one.outcome for one in control.restore(dry_run=dry_run).sessions] == ["relaunched"]
        assert (Path(made.cwd) / "build").is_dir()
    assert control.show("t").cwd == made.cwd
    assert not control.kill(["t"]).killed[0].left
    assert not Path(made.cwd).exists()
    assert desk.branches() == {"main", "feature/x"}


@pytest.mark.on("tmux")
def test_a_plan_leaves_nothing(control, desk):
    before = desk.all()
    made = f"worktree:branch=fix,setup=touch {desk.repo}/done"
    plan = control.new("t", ("cat",), with_=(made, "scratchpad"), cwd=str(desk.repo), dry_run=True)
    assert plan.cwd.endswith("/fix")
    assert "TMUXCTL_SCRATCHPAD" in plan.env
    assert desk.all() == before
    assert not (desk.repo / "done").exists()
    assert not (desk.repo / ".scratchpad").is_symlink()


@pytest.mark.on("tmux")
def test_a_session_that_cannot_start_leaves_no_worktree(control, desk):
    before = desk.all()
    with pytest.raises(Failed):
        control.new("t", ("cat",), with_=("worktree=fix", "timeout=never"), cwd=str(desk.repo))
    assert desk.all() == before


@pytest.mark.night
@pytest.mark.on("tmux")
def test_of_two_commands_at_once_exactly_one_gets_the_worktree(control, desk):
    words = [sys.executable, "-m", "tmuxctl", "new", "--no-wait", "--with", "worktree=fix", "--cwd", str(desk.repo)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [subprocess.Popen([*words, name, "--", "cat"], env=env, stderr=subprocess.PIPE) for name in ("a", "b")]
    errors = [one.communicate()[1].decode() for one in started]
    assert sorted(one.returncode for one in started) == [0, 1], errors
    assert "fix" in "".join(errors)
    [living] = control.ls().sessions
    control.kill([living.name])
    assert not Path(living.cwd).exists()
