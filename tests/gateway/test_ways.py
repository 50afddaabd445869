"""A machine with a real sshd that is behind a gateway too: it is reached by the first way that works."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from gateway.conftest import TwoWays
from gateway.gateway_site import until
from gateway.joined_host import command
from machines.ssh_server import SYSTEM_PATH, configure_ssh

from tmuxctl.control import Control
from tmuxctl.control.machines.ways import UsedWay, find_used, note_used
from tmuxctl.errors import Conflict, TmuxctlError
from tmuxctl.machines import machines_path, read_machines
from tmuxctl.sealed.keys import KeyFiles, make_key_pair
from tmuxctl.sealed.trust import KnownMachine, KnownMachines
from tmuxctl.timing import TIMING
from tmuxctl.value import changed
from tmuxctl.vocabulary import Way

pytestmark = pytest.mark.night


@pytest.fixture
def thathost(behind_both: TwoWays) -> TwoWays:
    """The same, paired by a code, with ssh besides."""
    done = behind_both.host.pair("thathost")
    assert done.returncode == 0, done.stderr
    result("machine", "add", "thathost", "--ssh", "box", "--tmux-socket", "there")
    return behind_both


def result(*words: str) -> str:
    """What a command prints that succeeds."""
    done = command(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def error_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The error that a command with --json tells."""
    assert done.returncode
    found: dict[str, Any] = json.loads(done.stdout or done.stderr)["error"]
    return found


def way() -> str | None:
    """By which way `machine ls` says that `thathost` was reached."""
    (line,) = (one for one in json.loads(result("machine", "ls", "--json"))["machines"] if one["name"] == "thathost")
    assert (line["used"] is None) == (line["way"] is None)
    found: str | None = line["way"]
    return found


def chosen_before(seconds: float) -> None:
    """Let the way that was used last have been chosen so long ago."""
    used = find_used("thathost")
    assert used is not None
    note_used("thathost", changed(used, chosen=used.chosen - seconds))


def test_ssh_is_used_where_it_works_else_the_gateway_and_ssh_again_later(thathost: TwoWays) -> None:
    assert way() is None
    result("new", "thathost/sh", "--", "sh")
    assert result("ask", "thathost/sh", "echo one") == "one\n"
    assert way() == "ssh"
    assert result("ls", "thathost/", "--quiet") == "thathost/sh\n"
    thathost.ssh.go_down()
    assert result("ask", "thathost/sh", "echo two") == "two\n"
    assert way() == "gateway"
    assert result("ls", "thathost/", "--quiet") == "thathost/sh\n"
    told = result("machine", "ls")
    assert f"ssh box or gateway {thathost.host.id}  gateway" in told
    thathost.ssh_comes_back()
    assert result("ask", "thathost/sh", "echo three") == "three\n"
    assert way() == "gateway"
    chosen_before(TIMING.machine.way_seconds)
    assert result("ask", "thathost/sh", "echo four") == "four\n"
    assert way() == "ssh"


def test_a_machine_that_has_ssh_is_paired_and_keeps_it(behind_both: TwoWays) -> None:
    result("machine", "add", "thathost", "--ssh", "box", "--tmux-socket", "there")
    done = behind_both.host.pair("thathost")
    assert done.returncode == 0, done.stderr
    entry = read_machines()["thathost"]
    assert (entry.ssh, entry.socket, entry.gateway) == ("box", "there", behind_both.host.id)
    assert command("machine", "add", "thathost", "--ssh", "other").returncode == Conflict.exit
    result("machine", "add", "thathost", "--ssh", "other", "--replace")
    assert (read_machines()["thathost"].ssh, read_machines()["thathost"].gateway) == ("other", behind_both.host.id)


def test_each_way_of_a_machine_is_tested(thathost: TwoWays) -> None:
    found = json.loads(result("machine", "test", "thathost", "--json"))
    names = [one["name"] for one in found["checks"]]
    assert names[:2] + names[-4:] == ["reached", "tmux", "host", "rights", "release", "path"]
    thathost.ssh.go_down()
    done = command("machine", "test", "thathost", "--json")
    checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert (checks["ssh"]["ok"], checks["host"]["ok"]) == (False, True)


def test_a_process_that_stays_changes_the_way_with_the_next_call(thathost: TwoWays) -> None:
    timing = changed(TIMING, rpc=changed(TIMING.rpc, silence_seconds=2.0))
    with Control(resident=True, timing=timing) as here:
        here.new("thathost/sh", ("sh",))
        assert here.ask("thathost/sh", b"echo one").text == "one"
        assert way() == "ssh"
        thathost.ssh.go_down()
        # what was under way, if anything was, has no answer; the next call has one
        until(lambda: answers(here, b"echo two") == "two", "the gateway is not used")
        assert way() == "gateway"
        thathost.host.end()
        thathost.ssh_comes_back()
        with pytest.raises(TmuxctlError) as found:
            here.screen("thathost/sh")
        assert found.value.reason == "no_answer"
        assert here.ask("thathost/sh", b"echo three").text == "three"
        assert way() == "ssh"


def answers(here: Control, line: bytes) -> str | None:
    """What a shell there answers, if it is reached."""
    try:
        return here.ask("thathost/sh", line).text
    except TmuxctlError:
        return None


def test_the_first_way_is_tried_again_after_a_time_by_a_process_that_stays(thathost: TwoWays) -> None:
    thathost.ssh.go_down()
    timing = changed(TIMING, machine=changed(TIMING.machine, way_seconds=0.0))
    with Control(timing=timing) as here:
        here.new("thathost/sh", ("sh",))
        assert way() == "gateway"
        thathost.ssh_comes_back()
        assert here.ask("thathost/sh", b"echo one").text == "one"
        assert way() == "ssh"


def test_a_write_whose_answer_got_lost_is_not_done_again_by_the_other_way(thathost: TwoWays) -> None:
    taken = thathost.host.home / "taken"
    tmux = shutil.which("tmux", path=SYSTEM_PATH) or shutil.which("tmux")
    # by ssh it is typed, and nothing more is heard
    thathost.ssh.script("tmux", f'{tmux} "$@"\nstatus=$?\ncase "$*" in *paste-buffer*) sleep 100 ;; esac\nexit $status')
    errors: list[str | None] = []
    with Control(resident=True) as here:
        here.new("thathost/in", ("sh", "-c", f"cat >{taken}"))

        def write() -> None:
            with pytest.raises(TmuxctlError) as found:
                here.call("send", {"session": "thathost/in", "text": b"once"}, request_id="write001", timeout=20.0)
            errors.append(found.value.reason)

        writing = threading.Thread(target=write)
        writing.start()
        until(lambda: errors or (taken.exists() and taken.read_text() == "once\n"), "nothing is typed")
        assert not errors
        thathost.ssh.go_down()
        writing.join(60)
        assert errors == ["outcome_unknown"]
        here.call("send", {"session": "thathost/in", "text": b"once"}, request_id="write001", timeout=20.0)
        here.send("thathost/in", b"twice")
        assert way() == "gateway"
    until(lambda: taken.read_text() == "once\ntwice\n", "the second text does not come")


def test_what_each_way_says_is_told_if_none_works(thathost: TwoWays) -> None:
    thathost.ssh.go_down()
    thathost.host.end()
    error = error_of(command("screen", "thathost/sh", "--json"))
    assert (error["code"], error["reason"]) == ("unreachable", "no_way")
    assert error["details"]["ways"] == {"ssh": "refused", "gateway": "host_offline"}


def test_a_way_that_was_remembered_and_works_no_more_is_left(thathost: TwoWays) -> None:
    now = time.time()
    note_used("thathost", UsedWay(Way.GATEWAY, now, now))
    thathost.host.end()
    result("new", "thathost/sh", "--", "sh")
    assert way() == "ssh"


def test_what_needs_a_shell_goes_by_ssh_whichever_way_was_used_last(thathost: TwoWays, place: Path) -> None:
    now = time.time()
    result("new", "thathost/sh", "--", "sh")
    note_used("thathost", UsedWay(Way.GATEWAY, now, now))
    assert error_of(command("attach", "thathost/sh", "--json"))["reason"] == "no_terminal"
    result("export", "thathost/sh", str(place / "film.cast"))
    assert way() == "gateway"


def test_a_machine_is_this_one_if_the_key_that_is_known_of_it_is_our_own(ssh_place: Path) -> None:
    own = KeyFiles().load().current.public
    Path(machines_path()).parent.mkdir(parents=True, exist_ok=True)
    Path(machines_path()).write_text('[thathost]\nssh = "nowhere.invalid"\ngateway = "a"\n')
    configure_ssh(ssh_place, [])
    KnownMachines().add(KnownMachine("thathost", "a", make_key_pair().public))
    assert error_of(command("screen", "thathost/sh", "--json"))["details"]["ways"]["ssh"] == "unknown_host"
    KnownMachines().remove("thathost")
    KnownMachines().add(KnownMachine("thathost", "a", own))
    assert "thathost/sh" in result("new", "thathost/sh", "--", "sh")
    assert result("exec", "thathost/sh", "--", "uname") == "Linux\n"
    assert result("ls", "--quiet") == "sh\n"
    assert way() == "local"
