"""Restoring: what a dead server took is started again where it was; what cannot be is told with its reason."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import crash_server
from programs import LINES

from tmuxctl import config
from tmuxctl.control import Control
from tmuxctl.control.lifecycle import creation
from tmuxctl.control.lifecycle.creation import SessionRequest
from tmuxctl.errors import Conflict, NotFound, Usage
from tmuxctl.terminal.tmux import layout
from tmuxctl.timing import SessionTiming, Timing
from tmuxctl.untrusted import parse_json

pytestmark = pytest.mark.on("tmux")

Crash = Callable[[], None]


@pytest.fixture
def crash(control: Control) -> Crash:
    """Kills the tmux server, as kill -9 does."""

    def kill() -> None:
        crash_server(control)

    return kill


def outcomes(control: Control, *names: str) -> dict[str, str]:
    return {one.session: one.outcome for one in control.restore(names).sessions}


def variables(control: Control, name: str, until: Any) -> dict[str, str]:
    """What the session's program was started with."""
    path = Path(f"/proc/{control.show(name).pid}/environ")
    pairs = until(lambda: b"TMUXCTL_SESSION=" in (text := path.read_bytes()) and text).decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


@pytest.mark.on("tmux", "pipe")
def test_a_lost_session_is_started_again_with_its_id_folder_size_and_words(
    control: Control, crash: Crash, place: Path, until: Any
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
    assert variables(control, "t", until)["MARK"] == "a b"
    assert os.readlink(f"/proc/{now.pid}/cwd") == str(place / "a folder")
    control.send("t", b"new life")
    assert control.wait("t", text="^new life$").matched
    assert "last words" in control.log("t").text
    assert "new life" in control.log("t").text


OTHERS: dict[str, Any] = {"clean_env": True, "login": True, "owner": "me", "shell_marks": False, "tags": ("nightly",)}
"""What is not so by default, for each field that a record keeps as it was asked for."""


def test_all_that_was_asked_for_is_wanted_again(control: Control, place: Path) -> None:
    kept = set(SessionRequest._fields) - creation.NOT_AS_ASKED
    assert kept == OTHERS.keys(), "a field is missing here, or among those that are kept otherwise"
    wanted = SessionRequest("t", ("sh",), cwd=str(place), size="77x22", history=5, profile="none", **OTHERS)
    record = parse_json(creation.prepare_session(control.machine, wanted, "t", dry_run=True).files[layout.SPEC])
    assert isinstance(record, dict)
    again = creation.request_again(record["asked"], record["spec"])
    assert again._replace(tags=tuple(again.tags), profile="none") == wanted


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
    until(lambda: (Path(control.machine.transport.home) / "sessions" / made.id / "exit").exists())
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


@pytest.mark.night
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
    assert states["folder"] == states["program"] == "lost" != states["well"]
    (place / "gone").mkdir()
    assert outcomes(control, "folder") == {"folder": "relaunched"}


def test_a_secret_is_taken_from_the_environment_again_or_said_to_be_missing(
    control: Control, crash: Crash, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    monkeypatch.setenv("INHERITED", "came along")
    made = control.new("t", LINES, env={"DB_PASSWORD": "s3cret"})
    spec = Path(control.machine.transport.home) / "sessions" / made.id / "spec.json"
    assert "s3cret" not in spec.read_text()
    assert "came along" not in spec.read_text()
    crash()
    (one,) = control.restore().sessions
    assert (one.outcome, one.reason) == ("lost", "secret_missing")
    assert "DB_PASSWORD" in (one.message or "")
    monkeypatch.setenv("DB_PASSWORD", "another")
    monkeypatch.delenv("INHERITED")
    (one,) = control.restore().sessions
    assert (one.outcome, one.secret_missing) == ("relaunched", ("INHERITED",))
    assert {"DB_PASSWORD", "HOME"} <= set(one.from_environment)
    found = variables(control, "t", until)
    assert found["DB_PASSWORD"] == "another"
    assert "INHERITED" not in found
    # what was missing once is not forgotten
    crash()
    monkeypatch.setenv("INHERITED", "came back")
    (one,) = control.restore().sessions
    assert (one.outcome, one.secret_missing) == ("relaunched", ())
    assert variables(control, "t", until)["INHERITED"] == "came back"


def test_what_the_environment_does_not_have_is_taken_from_that_of_a_login(
    control: Control, crash: Crash, place: Path, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    """As where a manager of services restores, which has few variables."""
    monkeypatch.setenv("EDITOR_OF_MINE", "in the shell")
    monkeypatch.setenv("HERE", "in the shell")
    control.new("t", LINES, env={"DB_PASSWORD": "s3cret"})
    crash()
    monkeypatch.delenv("EDITOR_OF_MINE")
    (place / ".profile").write_text(
        "echo welcome; EXTRA=x; sleep 1000 & export EDITOR_OF_MINE='two\nlines' HERE=login DB_PASSWORD=s3cret EXTRA\n"
    )
    (one,) = control.restore().sessions
    assert (one.outcome, one.message, one.secret_missing) == ("relaunched", None, ())
    assert set(one.from_login) == {"EDITOR_OF_MINE", "DB_PASSWORD"}
    assert "HERE" in one.from_environment
    found = variables(control, "t", until)
    assert (found["EDITOR_OF_MINE"], found["DB_PASSWORD"]) == ("two\nlines", "s3cret")
    assert found["HERE"] == "in the shell"
    assert "EXTRA" not in found
    assert not [row for row in control.machine.transport.processes() if row.name == "sleep" and _in(place, row.pid)]


def _in(place: Path, pid: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(place)
    except OSError:
        return False


@pytest.mark.night
@pytest.mark.parametrize("profile", ["sleep 1000", "exit 3", "yes", "exec >&-", "kill -9 $$"])
def test_a_login_that_does_not_come_to_its_end_holds_up_no_session(
    control: Control,
    another: Callable[..., Control],
    crash: Crash,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
) -> None:
    monkeypatch.setenv("INHERITED", "came along")
    control.new("t", LINES)
    crash()
    monkeypatch.delenv("INHERITED")
    (place / ".profile").write_text(profile)
    hasty = another(timing=Timing(session=SessionTiming(login_seconds=1.0)))
    (one,) = hasty.restore().sessions
    assert (one.outcome, one.secret_missing, one.from_login) == ("relaunched", ("INHERITED",), ())
    assert not [
        row for row in control.machine.transport.processes() if row.name in ("sleep", "yes") and _in(place, row.pid)
    ]


def test_a_secret_from_a_file_of_variables_is_read_from_it_again(
    control: Control, crash: Crash, place: Path, until: Any
) -> None:
    file = place / "vars"
    file.write_text("MODE=fast\nAPI_KEY=f1rst\n")
    made = control.new("t", LINES, env_file=str(file))
    assert "f1rst" not in (Path(control.machine.transport.home) / "sessions" / made.id / "spec.json").read_text()
    for value in ("new", "newer"):
        crash()
        file.write_text(f"MODE=slow\nAPI_KEY={value}\n")
        assert outcomes(control) == {"t": "relaunched"}
        found = variables(control, "t", until)
        assert (found["MODE"], found["API_KEY"]) == ("fast", value)
    crash()
    file.unlink()
    (one,) = control.restore().sessions
    assert (one.outcome, one.reason) == ("lost", "secret_missing")
    assert "API_KEY" in (one.message or "")


def test_what_was_given_is_the_same_in_the_new_life_whatever_who_restores_has(
    control: Control, crash: Crash, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    monkeypatch.setenv("MODE", "fast")
    monkeypatch.setenv("LEVEL", "3")
    path = os.environ["PATH"]
    control.new("t", LINES, env={"MODE": "fast"}, with_=("env:set=LEVEL=3",))
    for _ in range(2):
        crash()
        monkeypatch.setenv("MODE", "slow")
        monkeypatch.setenv("LEVEL", "4")
        monkeypatch.setenv("PATH", path + ":/elsewhere")
        assert outcomes(control) == {"t": "relaunched"}
        found = variables(control, "t", until)
        assert (found["MODE"], found["LEVEL"], found["PATH"]) == ("fast", "3", path)


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


def test_the_writer_of_the_life_before_does_not_end_the_new_journal(
    control: Control, crash: Crash, place: Path, until: Any
) -> None:
    folder = place / "state/tmuxctl/t/sessions" / str(control.new("t", LINES).id)
    writer = int(until(lambda: (pid := folder / "journal.pid").exists() and pid.read_text().strip()))
    # on a loaded machine it goes on long after its server has died
    os.kill(writer, signal.SIGSTOP)
    crash()
    restoring = threading.Thread(target=control.restore)
    restoring.start()
    until(lambda: told_to_end(folder) or not restoring.is_alive())
    os.kill(writer, signal.SIGCONT)
    restoring.join()
    until(lambda: not os.path.exists(f"/proc/{writer}/exe"))
    control.send("t", b"new life")
    assert control.wait("t", text="^new life$").matched
    assert not (folder / "journal" / "end").exists()


def told_to_end(folder: Path) -> bool:
    """Whether the writer of the session's journal is being told that nothing more will come."""
    return any(_has_words(int(name), f"{folder}/journal.sh\0end") for name in os.listdir("/proc") if name.isdigit())


def _has_words(pid: int, words: str) -> bool:
    try:
        return words.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_what_still_runs_from_before_is_told_and_left_alone(control: Control, crash: Crash, until: Any) -> None:
    made = control.new("t", ("sh", "-c", "trap '' HUP; sleep 1000 & exec cat"))
    until(lambda: [row for row in control.machine.transport.marked(made.id) if row.name == "sleep"])
    crash()
    until(lambda: not [row for row in control.machine.transport.marked(made.id) if row.name != "sleep"])
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


@pytest.mark.night
def test_a_name_that_was_taken_meanwhile_stays_with_who_took_it(control: Control, crash: Crash) -> None:
    control.new("t", LINES)
    lost = control.new("u", LINES)
    crash()
    control.new("other", LINES)
    control.rename("other", "u")
    done = {one.session: (one.outcome, one.reason) for one in control.restore().sessions}
    assert done == {"t": ("relaunched", None), "u": ("lost", "exists")}
    assert control.show("u").id != lost.id


@pytest.mark.night
def test_a_size_and_a_name_given_later_are_restored_too(control: Control, crash: Crash) -> None:
    control.new("t", LINES)
    control.resize("t", "66x11")
    control.rename("t", "u")
    crash()
    assert outcomes(control) == {"u": "relaunched"}
    assert (control.show("u").cols, control.show("u").rows) == (66, 11)


def test_lifetimes_and_environments_of_plugins_hold_in_the_new_life(
    control: Control, crash: Crash, place: Path, until: Any
) -> None:
    (place / "vars").write_text("FROM_FILE=yes\n")
    control.new("t", LINES, env_file=str(place / "vars"), with_=("env:set=PLAIN=1",), lifetime="1h")
    crash()
    (place / "vars").unlink()
    assert outcomes(control) == {"t": "relaunched"}
    found = variables(control, "t", until)
    assert (found["FROM_FILE"], found["PLAIN"]) == ("yes", "1")
    assert set(control.show("t").plugins) == {"env", "timeout"}


@pytest.mark.night
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
        assert f"{name}\n{name}" in control.log(name).text
        control.send(name, b"again")
        assert control.wait(name, text="^again$").matched
    servers = [row for row in control.machine.transport.processes() if row.name.startswith("tmux: server")]
    assert len([row for row in servers if _has_words(row.pid, control.machine.transport.home)]) == 1


def test_a_restore_beside_another_one_starts_nothing_twice(
    control: Control, another: Callable[[], Control], crash: Crash
) -> None:
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
