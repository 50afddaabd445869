"""Kill means kill: whatever a program started, however it got away, none of it is left; and nobody else's is touched."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from programs import LINES, program

from tmuxctl.control import Control
from tmuxctl.control.sessions import finding, records
from tmuxctl.errors import Denied
from tmuxctl.terminal.processes import cgroup
from tmuxctl.terminal.processes.process import SessionTarget, end_processes, find_processes
from tmuxctl.terminal.tmux import layout
from tmuxctl.transport.base import Transport
from tmuxctl.transport.groups import LEAVE, PREFIX

pytestmark = pytest.mark.on("tmux")

KINDS = ("hup", "term", "setsid", "nohup", "double", "clean", "stopped", "loop")


def living(folder: Path) -> list[int]:
    """The processes that wrote their pid into the folder and are there."""
    found = []
    for one in folder.iterdir():
        with suppress(OSError, ValueError):
            pid = int(one.name)
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if (
                b"escape.py" in words
                and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
            ):
                found.append(pid)
    return found


@pytest.fixture
def pids(place: Path) -> Iterator[Path]:
    folder = place / "pids"
    folder.mkdir()
    yield folder
    for pid in living(folder):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def escaped(control: Control, pids: Path, until: Callable[..., Any]) -> Callable[[str], str]:
    def start(kind: str) -> str:
        made = control.new("t", program("escape", kind, str(pids)), wait=False)
        until(lambda: len(living(pids)) >= (3 if kind == "loop" else 1))
        return made.id

    return start


@pytest.fixture
def no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """No control group is to be had."""
    monkeypatch.setattr(cgroup, "enter_script", lambda folder, session_id: ":")


def group_of(control: Control, session_id: str) -> str:
    return cgroup.find_groups(
        control.machine.transport, {session_id: records.session_folder(control.machine, session_id)}
    ).get(session_id, "")


@pytest.mark.night
@pytest.mark.parametrize("kind", KINDS)
def test_none_is_left_where_a_control_group_is_to_be_had(control: Control, escaped, pids: Path, kind: str) -> None:
    session_id = escaped(kind)
    group = group_of(control, session_id)
    if not group:
        pytest.skip("no control group is to be had here")
    (end,) = control.kill(("t",), grace=0.2).killed
    assert (end.escaped, end.strays, living(pids)) == ((), (), [])
    assert not os.path.exists(group)


@pytest.mark.night
@pytest.mark.usefixtures("no_group")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "clean"])
def test_none_is_left_without_a_control_group(control: Control, escaped, pids: Path, kind: str) -> None:
    escaped(kind)
    (end,) = control.kill(("t",), grace=0.2).killed
    assert (end.escaped, living(pids)) == ((), [])


@pytest.mark.usefixtures("no_group")
def test_what_nothing_proves_to_be_the_sessions_is_told_and_left_alone(control: Control, escaped, pids: Path) -> None:
    escaped("clean")
    (pid,) = living(pids)
    (end,) = control.kill(("t",), grace=0.2).killed
    assert pid in [stray.pid for stray in end.strays]
    assert living(pids) == [pid]


@pytest.mark.usefixtures("no_group")
def test_who_holds_the_terminal_without_a_mark_ends_with_it(control: Control, place: Path, until: Any) -> None:
    line = "(env -i setsid sh -c 'echo $$ >holder; exec sleep 1000' &) ; until [ -s holder ]; do sleep 0.01; done; exec cat"
    control.new("t", ("sh", "-c", line), wait=False)
    pid = int(until(lambda: (place / "holder").exists() and (place / "holder").read_text().strip()))
    control.kill(("t",), grace=0.2)
    assert not Path(f"/proc/{pid}/exe").exists()


@pytest.mark.usefixtures("no_group")
def test_who_holds_a_terminal_of_that_name_is_not_touched_once_its_first_process_has_ended(
    control: Control, place: Path, until: Any
) -> None:
    """While that one is a zombie its terminal may be gone, and another session's may have its name."""
    line = "(env -i setsid sh -c 'echo $$ >holder; exec sleep 1000' &) ; until [ -s holder ]; do sleep 0.01; done; exec cat"
    control.new("t", ("sh", "-c", line), wait=False)
    pid = int(until(lambda: (place / "holder").exists() and (place / "holder").read_text().strip()))
    pane = finding.find_session(control.machine, "t")

    class Ended:
        """The transport, for which the first process is a zombie when it is asked about alone."""

        def __getattr__(self, name: str) -> Any:
            return getattr(control.machine.transport, name)

        def processes(self, asked: Any = None) -> Any:
            rows = control.machine.transport.processes(asked)
            return [row._replace(state="Z") if asked and row.pid == pane.pid else row for row in rows]

    def found(transport: Transport) -> list[int]:
        return [row.pid for row in find_processes(transport, [target])[pane.id]]

    target = SessionTarget(pane.id, records.session_folder(control.machine, pane.id), pane)
    assert pid in found(control.machine.transport)
    assert pid not in found(cast("Transport", Ended()))


@pytest.mark.night
def test_a_process_of_another_session_with_the_terminal_open_is_not_touched(control: Control, until: Any) -> None:
    """A program that writes to somebody's terminal is not that somebody's program."""
    control.new("t", ("cat",))
    tty = control.machine.transport.run([("display-message", "-p", "-t", "=t:", "#{pane_tty}")]).decode().strip()
    control.new("writer", ("sh", "-c", f"exec sleep 1000 >{tty} 2>&1"), wait=False)
    other = control.show("writer")
    until(lambda: os.readlink(f"/proc/{other.pid}/fd/1") == tty)
    control.kill(("t",), grace=0.2)
    assert control.show("writer").pid == other.pid
    assert control.show("writer").state.value != "exited"


def test_a_session_that_was_lost_is_ended_with_its_group(control: Control, escaped, pids: Path) -> None:
    session_id = escaped("clean")
    if not group_of(control, session_id):
        pytest.skip("no control group is to be had here")
    server = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    os.kill(server, signal.SIGKILL)
    while Path(f"/proc/{server}/exe").exists():
        time.sleep(0.01)
    (end,) = control.kill(("t",), grace=0.2).killed
    assert (end.escaped, living(pids)) == ((), [])


@pytest.mark.night
def test_a_group_that_is_made_while_its_session_is_ended_is_removed(
    control: Control, place: Path, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    enter, find, go = cgroup.enter_script, cgroup.find_groups, place / "go"
    if not group_of(control, control.new("first", LINES).id):
        pytest.skip("no control group is to be had here")

    def enter_late(folder: str, session_id: str) -> str:
        return f"until [ -e {go} ]; do sleep 0.01; done\n{enter(folder, session_id)}"

    def find_before_it_is_made(transport: Transport, folders: Mapping[str, str]) -> dict[str, str]:
        found = find(transport, folders)
        if not go.exists():
            go.touch()
            until(lambda: [group for group in find(transport, folders).values() if members(group)])
        return found

    monkeypatch.setattr(cgroup, "enter_script", enter_late)
    made = control.new("t", LINES, wait=False)
    monkeypatch.setattr(cgroup, "find_groups", find_before_it_is_made)
    target = SessionTarget(
        made.id, records.session_folder(control.machine, made.id), finding.find_session(control.machine, "t")
    )
    end_processes(control.machine.transport, [target], signal="TERM", grace=0.2)
    group = group_of(control, made.id)
    assert group
    assert not os.path.exists(group)


def members(group: str) -> str:
    """The pids in a control group, a line each; none if there is no such group yet."""
    try:
        return Path(f"{group}/cgroup.procs").read_text()
    except FileNotFoundError:
        return ""


def test_a_launcher_that_cannot_have_a_group_starts_the_program_all_the_same(place: Path) -> None:
    """Where the kernel has no control groups of version 2, or they are not ours."""
    script = cgroup.enter_script(str(place), "0" * 8) + "\necho started"
    unknown = script.replace("/proc/self/cgroup", "/nowhere")
    without = script.replace("/proc/self/mountinfo", "/nowhere").replace("cgroup.controllers", "nowhere")
    foreign = script.replace('[ -w "$tree$own" ]', "false")
    refused = script.replace("cgroup.procs", "nowhere")
    assert len({script, unknown, without, foreign, refused}) == 5
    for text in (unknown, without, foreign, refused):
        done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("started\n", "")
    assert not (place / layout.CGROUP).exists()
    # not rglob: groups of other tests go meanwhile
    assert not [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if folder.endswith(f"/{PREFIX}{'0' * 8}")]
    assert layout.STARTED != layout.CGROUP


ID = "84fe7fb3-6775-40fb-abcf-2807f1c028f1"


@pytest.mark.parametrize(
    ("own", "target"),
    [
        (f"/app/tmuxctl-{ID}", "/app"),
        (f"/app/tmuxctl-{ID}/tmuxctl-{ID[::-1]}/inner", "/app"),
        (f"/app/tmuxctl-ci.service/tmuxctl-{ID}", "/app/tmuxctl-ci.service"),
        ("/app/tmuxctl-ci.service", None),
        ("/app/tmuxctl-serve.service", None),
        ("/app/tmuxctl.service", None),
        ("/", None),
    ],
)
def test_a_server_leaves_the_group_of_a_session_and_not_that_of_its_service(place: Path, own: str, target: str | None):
    """A unit called tmuxctl-NAME.service has a group of that name: what leaves that does not end with the service."""
    (place / "own").write_text(f"4:memory:/elsewhere\n0::{own}\n")
    tree = place / "tree"
    for folder in ("", "app", "app/tmuxctl-ci.service", own.strip("/")):
        (tree / folder).mkdir(parents=True, exist_ok=True)
    (tree / "cgroup.controllers").touch()
    script = LEAVE.replace("/proc/self/cgroup", str(place / "own")).replace("/sys/fs/cgroup", str(tree))
    done = subprocess.run(["sh", "-c", f"{script} echo $$"], capture_output=True, text=True, check=True)
    written = {str(path.parent.relative_to(tree)): path.read_text() for path in tree.rglob("cgroup.procs")}
    assert written == ({} if target is None else {target.strip("/"): done.stdout})


@pytest.mark.night
def test_doctor_finds_and_ends_what_sessions_of_this_server_left_and_nothing_else(control: Control, until: Any) -> None:
    made = control.new("t", ("sh", "-c", "trap '' HUP; setsid sleep 1000 & exec cat"))
    control.new("living", ("sh", "-c", "sleep 1000 & exec cat"))
    until(lambda: [row for row in control.machine.transport.marked(made.id) if row.name == "sleep"])
    control.machine.transport.run([("kill-session", "-t", "=t")])
    until(lambda: [row.name for row in control.machine.transport.marked(made.id)] == ["sleep"])
    foreign = subprocess.Popen(["sleep", "1000"], env={"TMUXCTL_SESSION": "0" * 8})
    try:
        (check,) = [one for one in control.doctor().checks if one.name == "orphans"]
        assert not check.ok
        assert re.fullmatch(r"processes of sessions that are gone: \d+ \(sleep\)", check.found)
        (check,) = [one for one in control.doctor(fix=True).checks if one.name == "orphans"]
        assert check.ok
        assert not control.machine.transport.marked(made.id)
        assert control.show("living").processes == 2
        assert foreign.poll() is None
        assert [one.ok for one in control.doctor().checks if one.name == "orphans"] == [True]
    finally:
        foreign.kill()
        foreign.wait()


def test_only_who_may_kill_may_let_doctor_mend(control: Control) -> None:
    with pytest.raises(Denied):
        control.call("doctor", {"fix": True}, rights=("read",))
    assert control.call("doctor", {}, rights=("read",)).checks
