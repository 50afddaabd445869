"""Restoring: what a dead server took is started again where it was; what cannot be is told with its reason."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import LINES

from tmuxctl import config
from tmuxctl.control import Control
from tmuxctl.errors import Conflict, NotFound, Usage

pytestmark = pytest.mark.on("tmux")

Crash = Callable[[], None]


@pytest.fixture
def crash(control: Control) -> Crash:
    """Kills the tmux server, as kill -9 does."""

    def kill() -> None:
        pid = int(control.transport.run([("display-message", "-p", "#{pid}")]))
        os.kill(pid, signal.SIGKILL)
        while os.path.exists(f"/proc/{pid}/exe"):
            pass

    return kill


def outcomes(control: Control, *names: str) -> dict[str, str]:
    return {one.session: one.outcome for one in control.restore(names).sessions}


@pytest.mark.on("tmux", "pipe")
def test_a_lost_session_is_started_again_with_its_id_folder_size_and_words(
    control: Control, crash: Crash, place: Path
) -> None:
    (place / "a folder").mkdir()
    made = control.new("t", LINES, cwd=str(place / "a folder"), size="77x22", env={"MARK": "a b"}, tag=("nightly",))
    control.send("t", b"last words")
    assert control.wait("t", text="^last words$").matched
    crash()
    (one,) = control.restore().sessions
    assert (one.session, one.id, one.outcome, one.argv) == ("t", made.id, "relaunched", LINES)
    now = control.show("t")
    assert (now.id, now.argv, now.cwd, now.cols, now.rows, now.tags) == (
        made.id, LINES, str(place / "a folder"), 77, 22, ("nightly",)
    )  # fmt: skip
    environment = Path(f"/proc/{now.pid}/environ").read_bytes().split(b"\0")
    assert b"MARK=a b" in environment
    assert os.readlink(f"/proc/{now.pid}/cwd") == str(place / "a folder")
    control.send("t", b"new life")
    assert control.wait("t", text="^new life$").matched
    assert "last words" in control.log("t").text  # type: ignore[union-attr]
    assert "new life" in control.log("t").text  # type: ignore[union-attr]


def test_a_new_life_is_told_from_the_one_before(control: Control, crash: Crash) -> None:
    before = control.new("t", LINES)
    control.send("t", b"one")
    cursor = control.wait("t", text="^one$").cursor
    assert (before.incarnation or "").endswith(".1")
    for life in (2, 3):
        crash()
        control.restore()
        assert control.show("t").incarnation == f"{before.id[:8]}.{life}"
        with pytest.raises(Conflict) as old:
            control.read("t", since=cursor)
        assert old.value.reason == "cursor_lost"


def test_a_marked_shell_is_marked_again(control: Control, crash: Crash) -> None:
    for shell in ("bash", "zsh"):
        control.new(shell, (shell,))
        assert control.exec(shell, ("echo hi",)).output == "hi\n"
    crash()
    assert outcomes(control) == {"bash": "relaunched", "zsh": "relaunched"}
    for shell in ("bash", "zsh"):
        assert control.wait(shell).by == "shell-mark"
        assert control.exec(shell, ("echo ${ZDOTDIR-none}",)).output == "none\n"


def test_a_program_that_had_ended_is_not_started_again(control: Control, crash: Crash, until: Any) -> None:
    made = control.new("done", ("sh", "-c", "[ ! -e again ] || exec cat; touch again; exit 3"))
    control.new("t", LINES)
    until(lambda: (Path(control.transport.home) / "sessions" / made.id / "exit").exists())
    crash()
    found = {one.name: one for one in control.ls().sessions}
    assert (found["done"].state.value, found["done"].exit_status) == ("exited", 3)
    assert found["t"].state.value == "lost"
    assert outcomes(control) == {"t": "relaunched"}
    assert outcomes(control, "done") == {"done": "relaunched"}
    crash()
    assert {one.name: one.state.value for one in control.ls().sessions} == {"done": "lost", "t": "lost"}


def test_a_dry_run_starts_nothing(control: Control, crash: Crash) -> None:
    control.new("t", LINES)
    crash()
    done = control.restore(dry_run=True)
    assert [(one.session, one.outcome) for one in done.sessions] == [("t", "relaunched")]
    assert [one.state.value for one in control.ls().sessions] == ["lost"]


def test_what_cannot_be_started_is_told_and_holds_up_no_other(control: Control, crash: Crash, place: Path) -> None:
    (place / "gone").mkdir()
    (place / "tool").write_text("#!/bin/sh\nexec cat\n")
    (place / "tool").chmod(0o755)
    control.new("folder", LINES, cwd=str(place / "gone"))
    control.new("program", (str(place / "tool"),))
    control.new("well", LINES)
    crash()
    (place / "gone").rmdir()
    (place / "tool").unlink()
    done = control.restore()
    assert {one.session: (one.outcome, one.reason) for one in done.sessions} == {
        "folder": ("lost", "bad_cwd"), "program": ("lost", "command_not_found"), "well": ("relaunched", None)
    }  # fmt: skip
    assert not done.ok
    states = {one.name: one.state.value for one in control.ls().sessions}
    assert (states["folder"], states["program"]) == ("lost", "lost") != states["well"]
    (place / "gone").mkdir()
    assert outcomes(control, "folder") == {"folder": "relaunched"}


def test_a_secret_is_taken_from_the_environment_again_or_said_to_be_missing(
    control: Control, crash: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INHERITED_TOKEN", "came along")
    made = control.new("t", LINES, env={"DB_PASSWORD": "s3cret"})
    spec = Path(control.transport.home) / "sessions" / made.id / "spec.json"
    assert "s3cret" not in spec.read_text()
    crash()
    (one,) = control.restore().sessions
    assert (one.outcome, one.reason) == ("lost", "secret_missing")
    assert "DB_PASSWORD" in (one.message or "")
    monkeypatch.setenv("DB_PASSWORD", "s3cret")
    monkeypatch.delenv("INHERITED_TOKEN")
    (one,) = control.restore().sessions
    assert (one.outcome, one.secret_missing) == ("relaunched", ("INHERITED_TOKEN",))
    environment = Path(f"/proc/{control.show('t').pid}/environ").read_bytes()
    assert b"DB_PASSWORD=s3cret" in environment
    assert b"INHERITED_TOKEN" not in environment


def test_a_profile_says_how_its_program_goes_on(control: Control, crash: Crash, place: Path) -> None:
    profiles = Path(config.config_folder()) / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "mine.yaml").write_text(
        "schema: tmuxctl/profile@1\nname: mine\ndetect: {argv0: [mine]}\nresume: {argv: [--continue]}\n"
    )
    tool = place / "mine"
    tool.write_text('#!/bin/sh\necho "began with: $*"\nexec cat\n')
    tool.chmod(0o755)
    control.new("t", (str(tool), "--fast"))
    crash()
    for _ in range(2):
        (one,) = control.restore().sessions
        assert (one.outcome, one.argv) == ("restored", (str(tool), "--fast", "--continue"))
        assert control.wait("t", text="began with: --fast --continue", since="screen").matched
        crash()


def test_what_still_runs_from_before_is_told_and_left_alone(control: Control, crash: Crash, until: Any) -> None:
    made = control.new("t", ("sh", "-c", "trap '' HUP; sleep 1000 & exec cat"))
    until(lambda: [row for row in control.transport.marked(made.id) if row.name == "sleep"])
    crash()
    until(lambda: not [row for row in control.transport.marked(made.id) if row.name != "sleep"])
    (one,) = control.restore().sessions
    (left,) = one.running
    assert left.name == "sleep"
    assert os.path.exists(f"/proc/{left.pid}/exe")
    assert control.kill(("t",), grace=0.2).killed[0].escaped == ()
    assert not os.path.exists(f"/proc/{left.pid}/exe")


def test_a_session_that_runs_cannot_be_restored(control: Control) -> None:
    control.new("t", LINES)
    with pytest.raises(NotFound) as refused:
        control.restore(("t",))
    assert refused.value.reason == "not_lost"
    with pytest.raises(NotFound):
        control.restore(("nobody",))
    assert control.restore().sessions == ()


def test_a_name_that_was_taken_meanwhile_stays_with_who_took_it(control: Control, crash: Crash) -> None:
    control.new("t", LINES)
    lost = control.new("u", LINES)
    crash()
    control.new("other", LINES)
    control.rename("other", "u")
    done = {one.session: (one.outcome, one.reason) for one in control.restore().sessions}
    assert done == {"t": ("relaunched", None), "u": ("lost", "exists")}
    assert control.show("u").id != lost.id


def test_a_size_and_a_name_given_later_are_restored_too(control: Control, crash: Crash) -> None:
    control.new("t", LINES)
    control.resize("t", "66x11")
    control.rename("t", "u")
    crash()
    assert outcomes(control) == {"u": "relaunched"}
    assert (control.show("u").cols, control.show("u").rows) == (66, 11)


def test_lifetimes_and_environments_of_plugins_hold_in_the_new_life(
    control: Control, crash: Crash, place: Path
) -> None:
    (place / "vars").write_text("FROM_FILE=yes\n")
    control.new("t", LINES, env_file=str(place / "vars"), with_=("env:set=PLAIN=1",), lifetime="1h")
    crash()
    (place / "vars").unlink()
    assert outcomes(control) == {"t": "relaunched"}
    now = control.show("t")
    environment = Path(f"/proc/{now.pid}/environ").read_bytes().split(b"\0")
    assert {b"FROM_FILE=yes", b"PLAIN=1"} <= set(environment)
    assert set(now.plugins) == {"env", "timeout"}


def test_twenty_sessions_are_lost_together_and_come_back_by_one_command(control: Control, crash: Crash) -> None:
    names = [f"s{number:02}" for number in range(20)]
    for name in names:
        control.new(name, LINES, wait=False)
    for name in names:
        control.send(name, name.encode())
        assert control.wait(name, text=f"^{name}$").matched
    crash()
    assert [(one.name, one.state.value) for one in control.ls().sessions] == [(name, "lost") for name in names]
    assert outcomes(control) == dict.fromkeys(names, "relaunched")
    for name in names:
        assert f"{name}\n{name}" in control.log(name).text  # type: ignore[union-attr]
        control.send(name, b"again")
        assert control.wait(name, text="^again$").matched
    servers = [row for row in control.transport.processes() if row.name.startswith("tmux: server")]
    assert len([row for row in servers if _ours(row.pid, control)]) == 1


def _ours(pid: int, control: Control) -> bool:
    try:
        return control.transport.home.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_restore_beside_another_one_starts_nothing_twice(
    control: Control, another: Callable[[], Control], crash: Crash
) -> None:
    import threading

    names = [f"s{number}" for number in range(5)]
    for name in names:
        control.new(name, LINES, wait=False)
    crash()
    found: list[str] = []
    threads = [threading.Thread(target=lambda mine: found.extend(outcomes(mine)), args=(another(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == names
    assert sorted(one.name for one in control.ls().sessions if one.state.value != "lost") == names


def test_options_that_are_wrong_start_nothing(control: Control) -> None:
    with pytest.raises(Usage):
        control.new("t", LINES, lifetime="soon")
