"""What a user can rely on when sessions share a scratchpad."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tmuxctl import plugin
from tmuxctl.errors import Conflict, Denied, Failed, TmuxctlError, Usage
from tmuxctl.model import SessionSpec
from tmuxctl.plugin_machine import PluginMachine

SESSIONS = "state/tmuxctl/t/sessions"
needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


GONE = plugin.SessionEnd(0, kept=True)


def git(folder: Path | str, *words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert not ran.returncode, ran.stderr
    return ran.stdout.strip()


class Desk:
    """Folders to work in, and sessions that start there."""

    def __init__(self, place: Path, machine: PluginMachine) -> None:
        self.machine = machine
        self.place, self.pads = place, place / "state" / "tmuxctl" / "scratchpads"
        self.scratchpad: Any = plugin.load("scratchpad").module
        self.here = self.folder("here")

    def folder(self, name: str) -> Path:
        (self.place / name).mkdir()
        return self.place / name

    def spec(self, session: str = "one", cwd: Path | None = None) -> SessionSpec:
        notes = {"folder": str(self.place / SESSIONS / session)}
        return SessionSpec(("cat",), str(cwd or self.here), {"A": "1"}, name=session, notes=notes)

    def start(self, session: str = "one", cwd: Path | None = None, **options: Any) -> SessionSpec:
        made: SessionSpec = self.scratchpad.transform(self.spec(session, cwd), self.machine, **options)
        Path(made.notes["folder"]).mkdir(parents=True)
        return made

    def end(self, spec: SessionSpec, ended: plugin.SessionEnd = GONE) -> str | None:
        left: str | None = self.scratchpad.cleanup(spec, ended, self.machine)
        shutil.rmtree(spec.notes["folder"], ignore_errors=True)
        return left

    def refused(self, kind: type[TmuxctlError], reason: str, session: str = "two", **options: Any) -> TmuxctlError:
        with pytest.raises(kind) as caught:
            self.start(session, **options)
        assert (caught.value.reason, type(caught.value)) == (reason, kind)
        assert caught.value.hint
        return caught.value


@pytest.fixture
def desk(place: Path, plugin_modules: None, plugin_machine: PluginMachine) -> Desk:
    return Desk(place, plugin_machine)


def test_sessions_of_a_group_see_each_others_files_at_one_path(desk):
    there = desk.folder("there")
    one, two = desk.start("one"), desk.start("two", there)
    (desk.here / ".scratchpad" / "plan").write_text("first the till")
    assert (there / ".scratchpad" / "plan").read_text() == "first the till"
    assert one.env == {"A": "1", "TMUXCTL_SCRATCHPAD": str(desk.pads / "shared")}
    assert two.env == one.env
    assert json.loads(json.dumps(one.notes["binds"])) == [str(desk.pads / "shared")]
    for folder in (desk.pads, desk.pads / "shared"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_groups_do_not_see_each_other(desk):
    one = desk.start("one", name="web")
    desk.start("two", desk.folder("there"), name="db")
    (desk.here / ".scratchpad" / "plan").touch()
    assert not (desk.place / "there" / ".scratchpad" / "plan").exists()
    assert one.notes["binds"] == [str(desk.pads / "web")]


@pytest.mark.parametrize("name", ["../up", "a/b", ".", "..", "", "-x", "a b", "a~users", "x" * 64, "a\n", "/etc"])
def test_a_name_is_never_a_path(desk, name):
    desk.refused(Usage, "bad_name", name=name)
    assert not desk.pads.exists()


def test_what_other_plugins_bind_is_kept(desk):
    spec = desk.spec()
    spec = replace(spec, notes={**spec.notes, "binds": ("/data",)})
    made = desk.scratchpad.transform(spec, desk.machine)
    assert list(made.notes["binds"]) == ["/data", str(desk.pads / "shared")]
    again = desk.scratchpad.transform(made, desk.machine)
    assert list(again.notes["binds"]) == ["/data", str(desk.pads / "shared")]


@pytest.mark.parametrize(
    "ended", [GONE, plugin.SessionEnd(None, kept=False), plugin.SessionEnd(0, kept=True, force=True)]
)
def test_the_link_goes_with_the_session_and_the_files_stay(desk, ended):
    made = desk.start()
    (desk.here / ".scratchpad" / "plan").touch()
    assert desk.end(made, ended) is None
    assert not os.path.lexists(desk.here / ".scratchpad")
    assert (desk.pads / "shared" / "plan").exists()
    assert desk.end(made, ended) is None


def test_the_link_stays_while_another_session_has_it(desk):
    one, two = desk.start("one"), desk.start("two")
    assert desk.end(one) is None
    assert (desk.here / ".scratchpad").exists()
    assert desk.end(one) is None
    assert (desk.here / ".scratchpad").exists()
    assert desk.end(two) is None
    assert not os.path.lexists(desk.here / ".scratchpad")
    assert not list((desk.pads / "shared~users").iterdir())


def test_a_session_elsewhere_does_not_keep_the_link(desk):
    one = desk.start("one")
    two = desk.start("two", desk.folder("there"))
    assert desk.end(one) is None
    assert not os.path.lexists(desk.here / ".scratchpad")
    assert (desk.place / "there" / ".scratchpad").exists()
    assert desk.end(two) is None


def test_a_session_that_was_lost_does_not_keep_the_link(desk):
    lost, one = desk.start("lost"), desk.start("one")
    note = desk.pads / "shared~users" / "lost"
    note.write_text(json.dumps({**json.loads(note.read_text()), "since": 0}))
    shutil.rmtree(lost.notes["folder"])
    assert desk.end(one) is None
    assert not os.path.lexists(desk.here / ".scratchpad")


def test_a_session_that_is_about_to_start_keeps_the_link(desk):
    one = desk.start("one")
    desk.scratchpad.transform(desk.spec("two"), desk.machine)
    assert desk.end(one) is None
    assert (desk.here / ".scratchpad").exists()


def test_a_session_that_is_brought_back_has_it_again(desk):
    made = desk.start()
    (desk.here / ".scratchpad").unlink()
    again = desk.scratchpad.transform(desk.spec(), desk.machine)
    assert again == made
    assert (desk.here / ".scratchpad").exists()


@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_what_is_in_the_way_stays(desk, what):
    path, aim = desk.here / ".scratchpad", desk.folder("aim")
    {"file": path.touch, "folder": path.mkdir, "link": lambda: path.symlink_to(aim)}[what]()
    error = desk.refused(Failed, "exists")
    assert str(path) in error.message
    assert {"file": path.is_file, "folder": path.is_dir, "link": path.is_symlink}[what]()
    assert not list(aim.iterdir())
    assert not list((desk.pads / "shared~users").iterdir())


def test_what_somebody_put_in_the_place_of_the_link_stays(desk):
    made = desk.start()
    (desk.here / ".scratchpad").unlink()
    (desk.here / ".scratchpad").mkdir()
    assert desk.end(made) is None
    assert (desk.here / ".scratchpad").is_dir()


def test_a_folder_is_in_one_group_at_a_time(desk):
    one = desk.start("one", name="web")
    error = desk.refused(Conflict, "in_use", name="db")
    assert "scratchpad web" in error.message
    assert desk.end(one) is None
    lost = desk.start("lost", name="web")
    shutil.rmtree(lost.notes["folder"])
    note = desk.pads / "web~users" / "lost"
    note.write_text(json.dumps({**json.loads(note.read_text()), "since": 0}))
    desk.start("two", name="db")
    assert os.readlink(desk.here / ".scratchpad") == str(desk.pads / "db")


@pytest.mark.parametrize("what", ["", "shared", "shared~users"])
def test_a_link_in_place_of_a_folder_is_refused(desk, what):
    desk.end(desk.start())
    path, aim = desk.pads / what, desk.folder("aim")
    shutil.rmtree(path)
    aim.chmod(0o700)
    path.symlink_to(aim)
    desk.refused(Denied, "bad_owner")
    assert not list(aim.iterdir())
    assert not os.path.lexists(desk.here / ".scratchpad")


def test_a_scratchpad_that_is_open_to_others_is_refused(desk):
    desk.end(desk.start())
    (desk.pads / "shared").chmod(0o755)
    desk.refused(Denied, "bad_mode")


def test_a_note_that_is_damaged_or_a_link_harms_nobody(desk):
    made, aim = desk.start(), desk.place / "aim"
    aim.write_text("mine")
    for name, text in (("a", ""), ("b", "[1]"), ("c", "{}"), ("d", "\xff")):
        (desk.pads / "shared~users" / name).write_text(text, encoding="latin-1")
    (desk.pads / "shared~users" / "e").symlink_to(aim)
    os.mkfifo(desk.pads / "shared~users" / "f")
    assert desk.end(made) is None
    assert not os.path.lexists(desk.here / ".scratchpad")
    assert aim.read_text() == "mine"


def test_a_scratchpad_that_somebody_removed_leaves_no_link(desk):
    made = desk.start()
    shutil.rmtree(desk.pads)
    assert desk.end(made) is None
    assert not os.path.lexists(desk.here / ".scratchpad")


@pytest.mark.night
def test_many_at_once_get_the_same_one(desk):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: desk.start(f"s{number}"), range(8)))
        assert (desk.here / ".scratchpad").exists()
        assert list(pool.map(desk.end, made)) == [None] * 8
    assert not os.path.lexists(desk.here / ".scratchpad")


# git


@pytest.fixture
def shop(desk):
    git(desk.place, "init", "-q", "-b", "main", "shop")
    git(desk.place / "shop", "config", "user.name", "A")
    git(desk.place / "shop", "config", "user.email", "a@example.org")
    git(desk.place / "shop", "commit", "-q", "--allow-empty", "-m", "Begin")
    (desk.place / "shop" / "till").mkdir()
    (desk.place / "shop" / ".git/info/exclude").write_text("mine")
    return desk.place / "shop"


@needs_git
def test_git_does_not_see_the_link(desk, shop):
    for number, folder in enumerate((shop, shop / "till", shop)):
        desk.start(f"s{number}", folder)
        assert git(shop, "status", "--porcelain", "--untracked-files=all") == ""
    assert (shop / ".git/info/exclude").read_text() == "mine\n.scratchpad\n"


@needs_git
def test_a_list_is_added_to_once(desk, shop):
    (shop / ".gitignore").write_text("!.scratchpad\n")
    for number in range(2):
        desk.start(f"s{number}", shop)
    assert (shop / ".git/info/exclude").read_text() == "mine\n.scratchpad\n"


@needs_git
def test_git_does_not_see_the_link_in_a_worktree_either(desk, shop):
    git(shop, "worktree", "add", "-q", "-b", "fix", str(desk.place / "fix"))
    desk.start("one", desk.place / "fix")
    assert (desk.place / "fix" / ".scratchpad").exists()
    assert git(desk.place / "fix", "status", "--porcelain") == ""


@needs_git
def test_a_repository_that_ignores_it_already_is_left_alone(desk, shop):
    (shop / ".git/info/exclude").unlink()
    (shop / ".gitignore").write_text(".scratch*\n")
    desk.start("one", shop)
    assert not (shop / ".git/info/exclude").exists()


@needs_git
def test_a_planted_list_is_not_written_to(desk, shop):
    aim = desk.place / "aim"
    aim.write_text("mine\n")
    (shop / ".git/info/exclude").unlink()
    (shop / ".git/info/exclude").symlink_to(aim)
    desk.refused(Failed, "bad_exclude", cwd=shop)
    assert aim.read_text() == "mine\n"
    assert not os.path.lexists(shop / ".scratchpad")


@needs_git
def test_variables_that_lead_git_elsewhere_lead_nobody_astray(desk, shop, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(shop / ".git"))
    desk.start()
    assert (shop / ".git/info/exclude").read_text() == "mine"


# real sessions


@pytest.mark.on("tmux")
def test_two_programs_leave_notes_for_each_other(control, desk):
    there = desk.folder("there")
    writer = ("sh", "-c", "echo from a >.scratchpad/note; echo done; exec cat")
    control.new("a", writer, with_=("scratchpad=web",), cwd=str(desk.here))
    assert control.wait("a", text="(?m)^done$", since="screen").matched
    reader = ("sh", "-c", 'cat .scratchpad/note; echo and b >>"$TMUXCTL_SCRATCHPAD/note"; exec cat')
    made = control.new("b", reader, with_=("scratchpad=web",), cwd=str(there))
    assert made.plugins == ("scratchpad",)
    assert control.wait("b", text="(?m)^from a$", since="screen").matched
    control.kill(["a"])
    assert not os.path.lexists(desk.here / ".scratchpad")
    assert (there / ".scratchpad").exists()
    control.kill(["b"])
    assert not os.path.lexists(there / ".scratchpad")
    assert (desk.pads / "web" / "note").read_text() == "from a\nand b\n"


@pytest.mark.night
@needs_git
@pytest.mark.on("tmux")
def test_sessions_in_worktrees_share_a_scratchpad_and_leave_nothing_else(control, desk, shop):
    trees = []
    for name in ("a", "b"):
        with_ = ("scratchpad", f"worktree={name}")
        trees.append(control.new(name, ("cat",), with_=with_, cwd=str(shop)).cwd)
    Path(trees[0], ".scratchpad", "note").write_text("seen")
    assert Path(trees[1], ".scratchpad", "note").read_text() == "seen"
    control.kill(["a", "b"])
    assert not [tree for tree in trees if Path(tree).exists()]
    assert (desk.pads / "shared" / "note").exists()
