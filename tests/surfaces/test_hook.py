"""`tmuxctl hook`: tells the session it runs in, whatever a wrapper left of its environment, and nobody else."""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tmuxctl import plugin
from tmuxctl.control import Control
from tmuxctl.surfaces.cli.setup import hook as hook_command
from tmuxctl.terminal.launch import hooks

pytestmark = pytest.mark.on("tmux")

ROOT = Path(__file__).resolve().parents[2]
TMUXCTL = shlex.join([sys.executable, "-m", "tmuxctl"])
BARE = f"/usr/bin/env -i PATH=/usr/bin:/bin PYTHONPATH={ROOT}"

Until = Callable[[Callable[[], object]], object]


def told(place: Path) -> Iterator[tuple[str, str]]:
    """The events of all sessions, in the form that the script gives them too: name, and what came with it."""
    for path in (place / "state" / "tmuxctl" / "t" / "sessions").glob("*/events/[!.]*.*"):
        assert re.fullmatch(r"[\w-]{1,40}\.[0-9]{1,10}\.[0-9]{1,20}", path.name, re.ASCII), path
        assert path.stat().st_mode & 0o777 == 0o600
        yield path.name.partition(".")[0], path.read_text()


@pytest.mark.parametrize(
    ("wrapper", "command"),
    [
        ("", f"{TMUXCTL} hook Stop"),
        ("", f"{TMUXCTL} hook Stop -v"),
        # a wrapper around the hook: a parent knows it still
        ("", f"{BARE} {TMUXCTL} hook Stop"),
        # a wrapper that became the program: the id of its session is left
        (f'exec {BARE} TMUXCTL_SESSION="$TMUXCTL_SESSION" ', f"{TMUXCTL} hook Stop"),
        # nothing is left, but it is the session's program
        (f"exec {BARE} ", f"{TMUXCTL} hook Stop"),
        (f"exec {BARE} ", f"{TMUXCTL} hook Stop -v"),
    ],
)
def test_it_finds_the_session_it_is_in(
    control: Control, place: Path, until: Until, monkeypatch: pytest.MonkeyPatch, wrapper: str, command: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    control.new("other", ("sh",))
    script = f"""printf '{{"n": 1}}' | {command}; sleep 1000"""
    control.new("t", ("sh", "-c", f"{wrapper}sh -c {shlex.quote(script)}"), wait=False)
    assert until(lambda: list(told(place))) == [("Stop", '{"n": 1}')]
    events = [path.parent for path in (place / "state").glob("tmuxctl/t/sessions/*/events/Stop.*")]
    assert [path.parent.name for path in events] == [control.show("t").id]


def test_what_comes_with_it_may_be_a_word(control: Control, place: Path, until: Until) -> None:
    control.new("t", ("sh", "-c", f"cd {ROOT}; {TMUXCTL} hook a/b '{{}}'; sleep 1000"), wait=False)
    assert until(lambda: list(told(place))) == [("a", "{}")]


@pytest.fixture
def outside(place: Path) -> None:
    """Skips where the tests themselves run in a session: it would be told."""
    if hook_command.find_events_folder() is not None:
        pytest.skip("the tests run in a session")


def test_outside_of_a_session_it_does_nothing_and_says_nothing(place: Path, outside: None) -> None:
    words = [sys.executable, "-m", "tmuxctl", "hook", "Stop"]
    done = subprocess.run(words, input="{}", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    loud = subprocess.run([*words, "-v"], input="{}", capture_output=True, text=True, timeout=60)
    assert (loud.returncode, loud.stdout, loud.stderr) == (
        0,
        "",
        "tmuxctl: this is not a session: no event was written\n",
    )
    assert not list(place.iterdir())


@pytest.fixture
def session(place: Path) -> Path:
    """The folder of events of a session, as far as a look at it tells."""
    made = place / "state/tmuxctl/t/sessions/00000000-0000-4000-8000-000000000000/events"
    made.mkdir(parents=True)
    return made


def hook(events: object, *more: str) -> list[str]:
    """Call it with TMUXCTL_EVENTS naming this, as a child of nothing that could help it; what it says."""
    words = [sys.executable, "-m", "tmuxctl", "hook", "-v", "Stop", "{}", *more]
    done = subprocess.run(
        words, env={**os.environ, "TMUXCTL_EVENTS": str(events)}, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")
    return done.stderr.splitlines()


def test_a_folder_is_believed_that_is_one_of_ours(session: Path) -> None:
    (said,) = hook(session)
    assert said == f"tmuxctl: {next(session.iterdir())}"


@pytest.mark.night
def test_what_is_no_sessions_folder_is_not_written_to(outside: None, session: Path, place: Path) -> None:
    elsewhere = place / "events"
    elsewhere.mkdir()
    link = session.parent.parent / "00000000-0000-4000-8000-000000000001" / "events"
    link.parent.mkdir()
    link.symlink_to(elsewhere)
    linked = session.parent.parent / "00000000-0000-4000-8000-000000000002"
    linked.symlink_to(session.parent)
    for one in (elsewhere, link, linked / "events", f"{session}/", f"{session}/../events", "events", session.parent):
        assert hook(one) == ["tmuxctl: this is not a session: no event was written"], one
    session.chmod(0o777)
    assert hook(session) == ["tmuxctl: this is not a session: no event was written"]
    assert not list(session.iterdir())
    assert not list(elsewhere.iterdir())


def test_a_full_disk_is_no_trouble(session: Path) -> None:
    words = [sys.executable, "-m", "tmuxctl", "hook", "Stop", "{}"]
    # coverage.py would complain that it cannot write either
    around = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        words, env={**around, "TMUXCTL_EVENTS": str(session), "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True,
        timeout=60, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not list(session.iterdir())


def test_the_script_tells_from_inside_a_sandbox(
    control: Control, place: Path, until: Until, needs: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("bwrap")
    if reason := plugin.find_obstacle(plugin.load("sandbox")):
        pytest.skip(reason)
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    (place / "work").mkdir()
    call = f"""printf '{{"n": 2}}' | sh "$TMUXCTL_EVENTS/{hooks.FILE}" Stop; echo done $?; sleep 1000"""
    control.new("t", ("sh", "-c", call), cwd=str(place / "work"), with_=("sandbox",), wait=False)
    assert until(lambda: list(told(place))) == [("Stop", '{"n": 2}')]
    until(lambda: "done 0" in control.screen("t").text)
