"""A session that hangs, fails or means harm holds up no other, and SIGTERM ends a command whatever it is at."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import crash_server
from faults.command import Command
from programs import LINES

from tmuxctl.control import Control

pytestmark = pytest.mark.on("tmux")

HANGING = """\
import os, time
KIND = "cwd"
def transform(spec):
    if os.path.exists({again!r}):
        open({begun!r}, "w").close()
        {hang}
    return spec
"""

HANGS = {
    "it sleeps": "time.sleep(1000)",
    "it reads a FIFO": "open({fifo!r}).read()",
    "it catches what it can": """while True:
            try:
                time.sleep(1000)
            except Exception:
                pass
            except SystemExit:
                pass""",
}

hanging_in = pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS.keys())


@pytest.fixture
def plugins(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's own plugins."""
    folder = place / "plugins"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TMUXCTL_PLUGIN_PATH", str(folder))
    return folder


@pytest.fixture
def hanging(plugins: Path, place: Path) -> Callable[[str], None]:
    """Makes a plugin `hang` that hangs once there is a file `again`, and then makes one `begun`."""
    os.mkfifo(place / "fifo")

    def make(hang: str) -> None:
        words = hang.format(fifo=str(place / "fifo"))
        (plugins / "hang.py").write_text(
            HANGING.format(again=str(place / "again"), begun=str(place / "begun"), hang=words)
        )

    return make


@pytest.mark.night
@hanging_in
def test_a_session_that_hangs_while_it_is_restored_holds_up_no_other(
    control: Control, place: Path, hanging: Callable[[str], None], hang: str
) -> None:
    hanging(hang)
    for name in "abcdefg":
        control.new(name, LINES, with_=("hang",) if name in "abcde" else ())
    crash_server(control)
    (place / "again").touch()
    done = Command()("restore", "--timeout", "5s")
    assert done.status == 1
    rows = {one["session"]: (one["outcome"], one["reason"]) for one in json.loads(done.output)["sessions"]}
    assert rows == {**dict.fromkeys("abcde", ("lost", "timeout")), **dict.fromkeys("fg", ("relaunched", None))}
    states = Command().states()
    assert {states[name] for name in "abcde"} == {"lost"}
    (place / "again").unlink()
    assert control.restore().ok


def test_a_session_that_was_given_up_is_not_started_later(
    control: Control, place: Path, plugins: Path, until: Any
) -> None:
    (plugins / "late.py").write_text(
        "import os, time\nKIND = 'cwd'\n"
        "def transform(spec):\n"
        f"    while os.path.exists({str(place / 'again')!r}):\n"
        "        time.sleep(0.01)\n"
        "    return spec\n"
        f"def cleanup(spec, ended):\n    open({str(place / 'cleaned')!r}, 'w').close()\n"
    )
    control.new("late", LINES, with_=("late",))
    crash_server(control)
    (place / "again").touch()
    (one,) = control.restore(timeout=0.3).sessions
    assert (one.outcome, one.reason) == ("lost", "timeout")
    (place / "again").unlink()
    until((place / "cleaned").exists)
    assert control.show("late").state.value == "lost"


@pytest.mark.night
def test_a_session_that_fails_in_any_way_while_it_is_restored_is_told(
    control: Control, place: Path, plugins: Path
) -> None:
    (plugins / "bad.py").write_text(
        "import os, sys\nKIND = 'cwd'\n"
        "def transform(spec, how: str = ''):\n"
        f"    if os.path.exists({str(place / 'again')!r}):\n"
        "        {'exit': sys.exit, 'raise': lambda: 1 / 0, 'recurse': lambda: eval('f()', {'f': lambda: eval('f()')})}[how]()\n"
        "    return spec\n"
    )
    for how in ("exit", "raise", "recurse"):
        control.new(how, LINES, with_=(f"bad={how}",))
    control.new("well", LINES)
    crash_server(control)
    (place / "again").touch()
    rows = {one.session: one for one in control.restore().sessions}
    assert {name: one.outcome for name, one in rows.items()} == {
        "exit": "lost", "raise": "lost", "recurse": "lost", "well": "relaunched"
    }  # fmt: skip
    assert "ZeroDivisionError" in (rows["raise"].message or "")


@pytest.mark.night
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["new", "restore"])
@hanging_in
def test_a_command_ends_when_it_is_told_to(
    control: Control, place: Path, hanging: Callable[[str], None], until: Any, hang: str, command: str, stop: int
) -> None:
    if stop == signal.SIGINT and "except" in hang:
        pytest.skip("Ctrl-C is what it catches; it is pressed again then")
    hanging(hang)
    words = ["new", "other", "--with", "hang", "--", *LINES]
    if command == "restore":
        control.new("t", LINES, with_=("hang",))
        crash_server(control)
        words = ["restore"]
    (place / "again").touch()
    process = Command().start(*words)
    until((place / "begun").exists)
    process.send_signal(stop)
    assert process.wait(30) == 128 + stop
    errors = process.stderr.read() if process.stderr else ""
    assert "Traceback" not in errors
    assert "fix the plugin" not in errors
    process.communicate()


@pytest.mark.night
@hanging_in
def test_a_plugin_that_hangs_has_a_deadline(
    control: Control, plugins: Path, place: Path, hanging: Callable[[str], None], hang: str
) -> None:
    hanging(hang)
    with (plugins / "hang.py").open("a") as file:
        file.write("DEADLINE = 0.5\n")
    (place / "again").touch()
    done = Command()("new", "t", "--with", "hang", "--", *LINES)
    assert (done.status, done.reason) == (1, "plugin")
    assert "did not end within 0.5 s" in done.errors
    assert Command().states() == {}


@pytest.mark.night
def test_what_plugins_print_side_by_side_stays_out_of_the_result(control: Control, plugins: Path) -> None:
    (plugins / "loud.py").write_text(
        "import time\nKIND = 'cwd'\n"
        "def transform(spec):\n"
        "    for _ in range(20):\n        print('loud'); time.sleep(0.01)\n"
        "    return spec\n"
    )
    for number in range(6):
        control.new(f"s{number}", LINES, with_=("loud",))
    crash_server(control)
    done = Command()("restore")
    assert done.status == 0
    assert "loud" not in done.output
    assert "loud" in done.errors
    assert len(json.loads(done.output)["sessions"]) == 6


@pytest.mark.night
@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", "sub/.gitignore"])
def test_a_fifo_where_git_reads_a_file_holds_up_no_kill(control: Control, place: Path, name: str) -> None:
    shop = place / "shop"
    for words in (
        ("init", "-q", "-b", "main", str(shop)),
        (
            "-C",
            str(shop),
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-q",
            "--allow-empty",
            "-mBegin",
        ),
    ):
        subprocess.run(["git", *words], check=True)
    made = control.new("t", LINES, cwd=str(shop), with_=("worktree=fix",))
    tree = Path(made.cwd or "")
    (tree / "sub").mkdir()
    (tree / "sub" / "new").touch()
    os.mkfifo(tree / name)
    # less than git alone would wait for a single answer
    done = Command()("kill", "t", patience=19)
    (one,) = done.said["killed"]
    assert tree.is_dir()
    assert "kept" in " ".join(one["left"])


def test_a_settings_file_that_is_a_pipe_is_not_waited_for(place: Path) -> None:
    os.mkfifo(place / "settings.json")
    done = Command()("hooks", "install", "claude", "--settings", str(place / "settings.json"))
    assert (done.status, done.reason) == (2, "bad_file")


def test_settings_of_any_depth_are_refused(place: Path) -> None:
    (place / "settings.json").write_text('{"a":' + "[" * 900 + "]" * 900 + "}")
    done = Command()("hooks", "install", "claude", "--settings", str(place / "settings.json"))
    assert (done.status, done.reason) == (1, "bad_settings")
