"""Sessions of a machine behind ssh, driven as those of this one are."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from typing import Any

import pytest
from machines.conftest import tmuxctl
from machines.ssh_server import SshServer

from tmuxctl.control import Control
from tmuxctl.control.sessions import finding
from tmuxctl.errors import NotFound, TmuxctlError, Usage
from tmuxctl.model import State
from tmuxctl.terminal.tmux import lease
from tmuxctl.transport.pipe import PipeTransport


@pytest.mark.night
def test_the_machine_has_no_python(far: Control):
    done = far.call("run", {"machine": "web1", "command": ["sh", "-c", "command -v python3 python perl; echo $?"]})
    assert done.output.strip() == "127"


@pytest.mark.night
def test_a_session_there_is_started_asked_and_ended(far: Control, web1: SshServer):
    made = far.call("new", {"name": "web1/build", "command": ["bash", "--norc"]})
    assert (made.name, made.machine, made.state) == ("build", "web1", State.IDLE)
    assert made.cwd == str(web1.home)
    ran = far.call("exec", {"session": "web1/build", "command": ["echo $((6 * 7)); false"]})
    assert (ran.output.strip(), ran.exit_status, ran.session) == ("42", 1, "web1/build")
    answer = far.call("ask", {"session": "web1/build", "text": "echo there"})
    assert (answer.answer, answer.session) == ("there", "web1/build")
    assert "there" in far.call("screen", {"session": "web1/build"}).text
    assert not far.call("ls", {}).sessions
    (listed,) = far.call("ls", {"machine": "web1/"}).sessions
    assert (listed.name, listed.machine) == ("build", "web1")
    ended = far.call("kill", {"session": ["web1/build"]})
    assert [one.session for one in ended.killed] == ["web1/build"]
    assert not far.call("ls", {"machine": "web1"}).sessions


@pytest.mark.night
def test_turns_there_are_typed_once_each_and_wait_for_few_answers(far: Control, monkeypatch: pytest.MonkeyPatch):
    asked, begin, begin_ahead = [0], PipeTransport._begin, PipeTransport._begin_ahead

    def count(self: PipeTransport, *arguments: Any, **options: Any) -> Any:
        asked[0] += not self._posts
        return begin(self, *arguments, **options)

    def count_not(self: PipeTransport, *arguments: Any) -> Any:
        asked[0] -= 1
        return begin_ahead(self, *arguments)

    monkeypatch.setattr(PipeTransport, "_begin", count)
    monkeypatch.setattr(PipeTransport, "_begin_ahead", count_not)
    far.new("web1/sh", ("bash", "--norc"))
    waited = []
    for number in range(1, 9):
        asked[0] = 0
        found = far.ask("web1/sh", f"echo {number}".encode())
        assert (found.answer, found.turn) == (str(number), number)
        waited.append(asked[0])
    # what is asked for before the text is sent ahead, and what comes behind it too
    assert min(waited) <= 2
    rows = far.screen("web1/sh").text.split("\n")
    assert [row for row in rows if row.isdecimal()] == [str(number) for number in range(1, 9)]


def test_lost_sessions_cost_no_requests_each(web1: SshServer, monkeypatch: pytest.MonkeyPatch):
    try_script, asked = PipeTransport._try_script, [0]

    def count(self: PipeTransport, *arguments: Any, **options: Any) -> Any:
        asked[0] += 1
        return try_script(self, *arguments, **options)

    # what is asked ahead is not counted: it is what was asked the last time
    monkeypatch.setattr(PipeTransport, "_try_script", count)

    def list_lost(number: int) -> int:
        asked[0] = 0
        with Control() as here:
            assert [one.state for one in here.ls("web1/").sessions] == [State.LOST] * number
        return asked[0]

    with Control() as here:
        for number in range(8):
            here.new(f"web1/t{number}", ("cat",))
    words = ["tmux", "-L", "t", "kill-server"]
    subprocess.run(words, env={**os.environ, "TMUX_TMPDIR": str(web1.home)}, check=True)
    many = list_lost(8)
    with Control() as here:
        here.kill(tuple(f"web1/t{number}" for number in range(6)))
    assert many - list_lost(2) < 6


def test_its_files_are_there_and_none_are_here(far: Control, web1: SshServer):
    made = far.call("new", {"name": "web1/build", "command": ["cat"]})
    assert (web1.home / ".local/state/tmuxctl/t/sessions" / made.id / "spec.json").is_file()
    assert not (web1.place / "state").exists() or not list((web1.place / "state").rglob(made.id))


def test_a_session_there_inherits_that_machines_variables(
    far: Control, web1: SshServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("A_SECRET_OF_THIS_MACHINE", "1")
    command = ["sh", "-c", 'echo "$HOME"; env | grep -c -e A_SECRET -e SSH_CONNECTION']
    done = far.call("run", {"machine": "web1", "command": command})
    assert done.output.split() == [str(web1.home), "0"]


@pytest.mark.night
def test_what_is_sent_arrives_byte_for_byte(far: Control, web1: SshServer):
    far.call("new", {"name": "web1/t", "command": ["cat"]})
    far.call("send", {"session": "web1/t", "text": "a;b 'c' \"d\" $e `f` ü 漢 \\n", "wait_text": "漢"})
    assert "a;b 'c' \"d\" $e `f` ü 漢 \\n" in far.call("screen", {"session": "web1/t"}).text


@pytest.mark.night
def test_a_wait_ends_with_what_is_printed_there(far: Control):
    far.call("new", {"name": "web1/t", "command": ["bash", "--norc"]})
    far.call("send", {"session": "web1/t", "text": "sleep 0.3; echo ready-$((1 + 1))"})
    found = far.call("wait", {"session": "web1/t", "text": "ready-2"})
    assert (found.matched.value, found.session) == ("text", "web1/t")
    assert far.call("wait", {"session": "web1/t"}).state is State.IDLE
    far.call("send", {"session": "web1/t", "text": "exit 3"})
    assert far.call("wait", {"session": "web1/t", "exit": True}).exit_status == 3


@pytest.mark.night
def test_a_question_there_is_decided(far: Control, web1: SshServer):
    (web1.programs / "asks").write_text(
        '#!/bin/sh\nprintf "Go on? [y/N] "; read -r answer; echo "said $answer"; exec cat\n'
    )
    (web1.programs / "asks").chmod(0o755)
    made = far.call("new", {"name": "web1/t", "command": ["asks"]})
    assert made.state is State.ASKING
    with pytest.raises(TmuxctlError) as raised:
        far.call("wait", {"session": "web1/t"})
    assert raised.value.exit == 6
    assert "tmuxctl decide web1/t" in raised.value.hint
    far.call("decide", {"session": "web1/t", "option": "yes"})
    assert far.call("wait", {"session": "web1/t", "text": "said y"}).matched


@pytest.mark.night
def test_output_is_followed(far: Control):
    far.call("new", {"name": "web1/t", "command": ["bash", "--norc"]})
    far.call("send", {"session": "web1/t", "text": "for i in 1 2 3; do echo line-$i; sleep 0.1; done; exit"})
    text = "".join(piece.text for piece in far.call("read", {"session": "web1/t", "follow": True}))
    assert [f"line-{number}" in text for number in (1, 2, 3)] == [True] * 3


@pytest.mark.night
def test_changes_there_are_watched_beside_those_of_this_machine(far: Control):
    far.call("new", {"name": "here", "command": ["cat"]})
    far.call("new", {"name": "web1/there", "command": ["cat"]})
    events = far.call("watch", {"session": ["here", "web1/there"]})
    assert {one.session for one in islice(events, 2)} == {"here", "web1/there"}
    far.call("kill", {"session": ["here", "web1/there"]})
    assert {(one.session, one.state) for one in events} >= {("here", State.EXITED), ("web1/there", State.EXITED)}


@pytest.mark.night
def test_a_wait_for_one_of_several_machines_tells_which(far: Control):
    far.call("new", {"name": "here", "command": ["cat"]})
    far.call("new", {"name": "web1/there", "command": ["sh", "-c", "sleep 0.3; echo done; exec cat"]})
    found = far.call("wait", {"any": ["here", "web1/there"], "text": "done", "since": "screen"})
    assert [one.session for one in found.waits] == ["web1/there"]


@pytest.mark.night
def test_one_name_that_is_not_there_ends_nothing_on_any_machine(far: Control):
    far.call("new", {"name": "here", "command": ["cat"]})
    far.call("new", {"name": "web1/there", "command": ["cat"]})
    with pytest.raises(NotFound):
        far.call("kill", {"session": ["here", "web1/there", "web1/missing"]})
    assert [one.name for one in far.call("ls", {}).sessions] == ["here"]
    assert [one.name for one in far.call("ls", {"machine": "web1"}).sessions] == ["there"]
    far.call("kill", {"session": ["here", "web1/there"]})


@pytest.mark.night
def test_an_error_names_the_machine_and_its_hint_goes_there(far: Control):
    far.call("new", {"name": "web1/build", "command": ["cat"]})
    with pytest.raises(NotFound) as raised:
        far.call("screen", {"session": "web1/buidl"})
    assert raised.value.message.startswith("web1: no session")
    assert "tmuxctl ls web1/" in raised.value.hint
    assert raised.value.details["machine"] == "web1"


def test_panes_of_other_tmux_servers_are_listed_on_this_machine_only(far: Control):
    with pytest.raises(Usage):
        far.call("ls", {"machine": "web1", "all_sockets": True})
    assert not far.call("ls", {"machine": "web1"}).sessions


@pytest.mark.night
def test_the_command_reaches_a_session_there_and_passes_statuses_on(web1: SshServer):
    assert tmuxctl("new", "web1/sh", "--", "bash", "--norc").status == 0
    assert tmuxctl("exec", "web1/sh", "--", "sh", "-c", "exit 7").status == 7
    assert tmuxctl("ask", "web1/sh", "echo $((40 + 2))").output.strip() == "42"
    listed = tmuxctl("ls", "web1/", "--json").result
    assert [(one["name"], one["machine"]) for one in listed["sessions"]] == [("sh", "web1")]
    ran = tmuxctl("run", "--machine", "web1", "--", "sh", "-c", "echo gone; exit 9")
    assert (ran.status, ran.output) == (9, "gone\n")
    assert tmuxctl("screen", "web1/missing").status == 3
    assert tmuxctl("kill", "web1/sh").status == 0


def test_commands_share_one_connection(web1: SshServer):
    for _ in range(3):
        assert tmuxctl("ls", "web1/").status == 0
    # sshd forks one process for each connection, which names its user
    log = (web1.folder / "log").read_text()
    assert log.count("Accepted publickey") == 1


@pytest.mark.night
def test_a_person_attaches_over_ssh(far: Control, web1: SshServer):
    far.call("new", {"name": "web1/t", "command": ["cat"]})
    far.call("new", {"name": "here", "command": ["bash", "--norc"], "size": "90x30"})
    far.call("send", {"session": "here", "text": f"exec {sys.executable} -m tmuxctl attach web1/t"})
    for _ in range(200):
        if far.call("show", {"session": "web1/t"}).attached:
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert far.call("show", {"session": "web1/t"}).attached == 1
    far.call("send", {"session": "here", "text": "typed by a person"})
    assert far.call("wait", {"session": "web1/t", "text": "typed by a person", "since": "screen"}).matched


def test_a_command_reads_the_standard_input_of_this_machine(web1: SshServer):
    assert tmuxctl("new", "web1/sh", "--", "bash", "--norc").status == 0
    ran = tmuxctl("exec", "web1/sh", "--", "sort", stdin="b\nc\na\n")
    assert (ran.status, ran.output) == (0, "a\nb\nc\n")
    assert not list(web1.home.rglob("stdin-*"))


@pytest.mark.night
def test_a_session_there_is_recorded_and_exported_here(far: Control, web1: SshServer):
    far.call("new", {"name": "web1/t", "command": ["cat"]})
    far.call("rec", {"session": "web1/t", "file": f"{web1.place}/t.cast"})
    far.call("send", {"session": "web1/t", "text": "on the record", "wait_text": "on the record"})
    recorded = far.call("rec", {"session": "web1/t", "stop": True})
    assert recorded.session == "web1/t"
    assert "on the record" in (web1.place / "t.cast").read_text()
    far.call("export", {"source": "web1/t", "file": f"{web1.place}/again.cast"})
    assert "on the record" in (web1.place / "again.cast").read_text()


@pytest.mark.night
def test_a_session_whose_server_died_there_is_restored_there(far: Control, web1: SshServer):
    made = far.call("new", {"name": "web1/t", "command": ["cat"], "env": {"GIVEN": "1"}})
    server = far.reach("web1/t")[0].machine.transport.run([("display-message", "-p", "#{pid}")]).decode().strip()
    subprocess.run(["kill", "-9", server], check=True)
    (lost,) = far.call("ls", {"machine": "web1"}).sessions
    assert (lost.state, lost.machine) == (State.LOST, "web1")
    far.call("restore", {"session": ["web1/t"]})
    again = far.call("show", {"session": "web1/t"})
    assert (again.id, again.state) == (made.id, State.IDLE)
    with pytest.raises(Usage):
        far.call("restore", {"session": ["web1/t", "here"]})


@pytest.mark.night
def test_a_writer_of_another_machine_is_not_taken_for_a_dead_one(far: Control):
    far.call("new", {"name": "web1/t", "command": ["cat"]})
    machine = far.reach("web1/t")[0].machine
    holder = machine.new_holder()
    pane = finding.find_session(machine, "t")
    assert lease.take_lease(machine.io, holder, pane)
    # what a tmuxctl over there sees: a lease whose process it cannot look for
    assert not lease.is_broken(finding.find_session(machine, "t"), None)
    assert str(holder).count(".") == 3
