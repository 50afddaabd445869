"""The examples of the library and of the pytest plugin do what they say, run as a reader would, and leave nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from tools import examples

PLUGIN = "tmuxctl.surfaces.testing.plugin"
INSTALLED = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
PYTEST = (sys.executable, "-m", "pytest", *(() if INSTALLED else ("-p", PLUGIN)))
WITHOUT_WORKERS = ("-p", "no:xdist")
SECRET = "hunter2-and-more"

SOME_PROGRAM = """\
def test_a_program(tmuxctl):
    app = tmuxctl(["sh", "-c", "echo this is on the screen; read word; echo $word"], name="shown")
    app.send("typed")
    tmuxctl.expect(app).to_have_text({text!r}{more})
"""

ENDLESS = """\
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_endless(tmuxctl, number):
    app = tmuxctl(["cat"])
    Path(f"begun-{number}").touch()
    app.wait("exit", timeout=1000)
"""

SLEEP = """\
#!/bin/sh
case ${TMUXCTL_SESSION-none}:$1 in
    none:* | *:0.1) exec /bin/sleep "$1" ;;
    *) exec /bin/sleep 1000 ;;
esac
"""
"""A `sleep` with which one installer asks at once, and the others never do."""


class Desk:
    """The folder of a reader, with copies of examples/, a home, and the environment that goes with it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "work"
        shutil.copytree(
            examples.EXAMPLES / "testing", self.folder / "testing", ignore=shutil.ignore_patterns(".*", "__*")
        )
        self.variables = dict(examples._environment(home)) | {"PYTHONPATH": str(examples.ROOT)}
        (home / "tmp").mkdir()
        self.variables["TMPDIR"] = str(home / "tmp")

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            words, cwd=self.folder / "testing", env=self.variables | more, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def run(self, *words: str, **more: str) -> tuple[int, str]:
        """The exit status and all that was printed."""
        running = self.start(*words, **more)
        output, _ = running.communicate(timeout=examples.PATIENCE)
        return running.returncode, output

    def test(self, file: str, *options: str) -> tuple[int, str]:
        return self.run(*PYTEST, file, *WITHOUT_WORKERS, *options)

    def processes(self) -> list[str]:
        """The commands of all processes with this home."""
        return [
            " ".join(one.info["cmdline"] or ())
            for one in psutil.process_iter(["environ", "cmdline"])
            if (one.info["environ"] or {}).get("HOME") == str(self.home)
        ]

    def left(self) -> list[str]:
        """What a run of pytest left: processes, files, sockets."""
        files = [path for folder in ("tmp", f"tmux-{os.getuid()}") for path in (self.home / folder).glob("*")]
        # pytest's own folders, which it keeps for some runs
        files = [path for path in files if not path.name.startswith("pytest-of-")]
        return [*self.processes(), *map(str, files), *map(str, (self.home / ".local").glob("**/*"))]


@pytest.fixture
def desk() -> Iterator[Desk]:
    with examples._place() as home:
        yield Desk(home)


def counts(output: str) -> str:
    """The last line of pytest without its time."""
    return re.sub(r" in [\d.]+s.*", "", output.rstrip().splitlines()[-1]).strip("= ")


# scripts


def sessions(desk: Desk) -> str:
    return desk.run("tmuxctl", "ls", "-q")[1]


def programs(desk: Desk) -> list[str]:
    """What runs of programs in sessions; the tmux server goes on after them."""
    return [words for words in desk.processes() if not words.startswith(("tmux ", "cat -"))]


def test_the_installer_is_answered_by_the_kind_of_its_questions(desk: Desk):
    status, output = desk.run(sys.executable, str(examples.EXAMPLES / "installer.py"), DB_PASSWORD=SECRET)
    assert (status, output.splitlines()) == (0, [
        "confirm: Install the database in /opt/shop? [y/N] -> yes",
        "choice: Enter a number [1-3]: -> 2",
        "password: Password of the administrator: -> (a secret)",
        "confirm: Start the server now? [Y/n] -> no",
        f"Installed: parts 2, a password of {len(SECRET)} characters, start now: n",
    ])  # fmt: skip
    assert (sessions(desk), programs(desk)) == ("", [])
    kept = [path for path in desk.home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert not kept


@pytest.mark.night
def test_the_first_installer_that_asks_is_answered_first(desk: Desk):
    status, output = desk.run(sys.executable, str(examples.EXAMPLES / "first_that_asks.py"))
    told: dict[str, list[str]] = {}
    for line in output.splitlines():
        name, _, words = line.partition(": ")
        told.setdefault(name, []).append(words)
    wanted = {
        name: [f"Install {name}? [y/N] -> yes", f"sent /opt/{name}", "ended with status 0"]
        for name in ("postgres", "redis", "node", "nginx")
    }
    assert (status, told) == (
        0, wanted | {"docker": ["Install docker? [y/N] -> no", "ended with status 3"]}
    ), output  # fmt: skip
    assert (sessions(desk), programs(desk)) == ("", [])


def test_nothing_is_left_of_installers_that_are_interrupted(desk: Desk):
    sleep = desk.home / "bin/sleep"
    sleep.parent.mkdir()
    sleep.write_text(SLEEP)
    sleep.chmod(0o755)
    running = desk.start(
        sys.executable, str(examples.EXAMPLES / "first_that_asks.py"),
        PATH=f"{sleep.parent}{os.pathsep}{desk.variables['PATH']}",
    )  # fmt: skip
    assert running.stdout
    assert running.stdout.readline() == "redis: Install redis? [y/N] -> yes\n"
    os.killpg(running.pid, signal.SIGINT)
    output, _ = running.communicate(timeout=examples.PATIENCE)
    assert (running.returncode, output.splitlines()[-1]) == (130, "interrupted: all installers are ended"), output
    assert (sessions(desk), programs(desk)) == ("", [])


# suites of pytest


@pytest.mark.night
def test_the_suite_of_a_curses_program_passes(desk: Desk):
    status, output = desk.test("test_menu.py")
    assert (status, counts(output)) == (0, "14 passed"), output
    assert not desk.left()
    assert not (desk.folder / "testing/.tmuxctl-trace").exists()


def test_the_suite_of_a_textual_program_passes_or_is_skipped_without_textual(desk: Desk):
    status, output = desk.test("test_todo.py")
    wanted = (0, "6 passed") if find_spec("textual") else (5, "1 skipped")
    assert (status, counts(output)) == wanted, output
    assert not desk.left()


@pytest.mark.night
def test_workers_test_side_by_side(desk: Desk):
    pytest.importorskip("xdist")
    status, output = desk.run(*PYTEST, "test_menu.py", "-n", "2")
    assert (status, counts(output)) == (0, "14 passed"), output
    assert not desk.left()


def test_a_test_that_fails_shows_the_screen_and_leaves_its_trace(desk: Desk):
    (desk.folder / "testing/test_some.py").write_text(
        SOME_PROGRAM.format(text="never", more=", timeout=0.1")
        + SOME_PROGRAM.format(text="typed", more="").replace("a_program", "another")
    )
    status, output = desk.test("test_some.py")
    assert (status, counts(output)) == (1, "1 failed, 1 passed"), output
    assert "AssertionError: expected shown to have text 'never' within 0.1 s" in output
    assert "|this is on the screen\n" in output
    (trace,) = (desk.folder / "testing/.tmuxctl-trace").glob("*")
    assert {path.name for path in (trace / "0").iterdir()} == {
        "typed.txt",
        "printed.log",
        "screen.txt",
        "screen.svg",
        "run.cast",
    }
    assert "send('typed')" in (trace / "0/typed.txt").read_text()
    assert (trace / "0/screen.txt").read_text().startswith("this is on the screen\n")
    assert b"this is on the screen\r\n" in (trace / "0/printed.log").read_bytes()
    assert (trace / "0/screen.svg").read_text().startswith("<svg")
    assert not desk.left()


@pytest.mark.parametrize("option", ["--tmuxctl-trace=off", "--tmuxctl-trace=on"])
def test_traces_are_kept_as_the_option_says(desk: Desk, option: str):
    (desk.folder / "testing/test_some.py").write_text(SOME_PROGRAM.format(text="this is", more=""))
    assert desk.test("test_some.py", option)[0] == 0
    assert (desk.folder / "testing/.tmuxctl-trace").exists() == option.endswith("on")


@pytest.mark.night
def test_a_screen_that_has_changed_fails_its_snapshot_until_it_is_updated(desk: Desk):
    menu, kept = desk.folder / "testing/menu.py", desk.folder / "testing/test_menu_snapshots/start"
    before = kept.read_text()
    menu.write_text(menu.read_text().replace('"Settings"', '"Settings of sound"'))
    only = ("-k", "whole_screen")
    status, output = desk.test("test_menu.py", *only)
    assert (status, counts(output)) == (1, "1 failed, 13 deselected"), output
    assert re.search(r"^E +-   Settings$", output, re.MULTILINE)
    assert re.search(r"^E +\+   Settings of sound$", output, re.MULTILINE)
    assert kept.read_text() == before
    assert desk.test("test_menu.py", *only, "--tmuxctl-update")[0] == 0
    assert kept.read_text() == before.replace("Settings", "Settings of sound")
    assert desk.test("test_menu.py", *only)[0] == 0
    assert not desk.left()


def test_a_missing_snapshot_fails_and_says_how_it_is_made(desk: Desk):
    (desk.folder / "testing/test_menu_snapshots/start").unlink()
    status, output = desk.test("test_menu.py", "-k", "whole_screen")
    assert status == 1
    assert "pytest --tmuxctl-update keeps the screen" in output


def test_nothing_is_left_of_a_suite_that_starts_no_program(desk: Desk):
    (desk.folder / "testing/test_some.py").write_text(
        "def test_none(tmuxctl): pass\n\ndef test_wrong(tmuxctl): tmuxctl(['/no/such/program'])\n"
    )
    status, output = desk.test("test_some.py")
    assert (status, counts(output)) == (1, "1 failed, 1 passed"), output
    assert not desk.left()


@pytest.mark.night
@pytest.mark.parametrize("workers", [WITHOUT_WORKERS, ("-n", "2")], ids=["alone", "workers"])
def test_nothing_is_left_of_a_suite_that_is_interrupted(
    desk: Desk, until: Callable[[Callable[[], Any]], Any], workers: tuple[str, str]
):
    if "-n" in workers:
        pytest.importorskip("xdist")
    (desk.folder / "testing/test_endless.py").write_text(ENDLESS)
    running = desk.start(*PYTEST, "test_endless.py", *workers)
    until((desk.folder / "testing/begun-1").exists)
    # as Ctrl-C in a terminal, to every process of the job
    os.killpg(running.pid, signal.SIGINT)
    output, _ = running.communicate(timeout=examples.PATIENCE)
    assert running.returncode == 2, output
    assert not desk.left()
