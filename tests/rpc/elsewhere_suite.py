"""The backend `elsewhere` of behaviour tests (`pytest --elsewhere`): a second process carries each operation out, by its name.

It is reached over a Unix socket, or through a real gateway (`--elsewhere=gateway`): nats-server, handshakes and encrypted channels.
That process has the home, the variables and the tmux server of the test, so a test may look at what it left there. It starts with
the first operation of a test. Sessions have plain names, as where a user works on one machine; tests/rpc tries the addresses.
"""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rpc import socket_carrier

from tmuxctl.control import Control
from tmuxctl.control.machines.remote import RemoteOperations
from tmuxctl.rpc.client import CallClient
from tmuxctl.rpc.records import Carrier, Receive

if TYPE_CHECKING:
    from gateway.suite_gateway import SuiteGateway

TESTS = Path(__file__).resolve().parent.parent

FILES = "a file of the caller's machine is named, and the operation would open it there"
OFFERED = "the operation writes a file, or drives panes of other servers, and is left to the machine's own user"
PANES = "panes of other tmux servers are left to the machine's own user"
CALLER = "a caller runs in no session of another machine"
PROCESS = "the process that carries out is another one than the test's"
LATER = "the process of the second caller begins later than the test counts on"
TEXT = "what another machine tells has no control characters, and names that are numbers come as text"

REFUSED: dict[str, str] = {
    "control/test_adopting": PANES,
    "control/test_recordings.py::test_a_recording_of_a_session": OFFERED,
    "control/test_recordings.py::test_a_recording_has_no_secret": OFFERED,
    "control/test_recordings.py::test_standard_output": OFFERED,
    "control/test_recordings.py::test_what_cannot_be_exported": OFFERED,
    "control/test_recorder": OFFERED,
    "control/test_reports": OFFERED,
    "control/test_profiles.py::test_a_first_profile": OFFERED,
    "control/test_profiles.py::test_a_program_with": OFFERED,
    "control/test_profiles.py::test_a_program_that_ends": OFFERED,
    "control/test_profiles.py::test_a_file_can_be": FILES,
    "control/test_chats": FILES,
    "control/test_knowing.py::test_recorded_evidence": FILES,
    "control/test_plugins_run.py::test_variables_come_from_a_file": FILES,
    "control/test_restoring.py::test_a_secret_from_a_file_of_variables": FILES,
    "control/test_typing.py::test_a_caller_neither_types": CALLER,
    "control/test_knowing.py::test_who_watches_all_sessions_from_one_of_them": CALLER,
    "control/test_inbox.py::test_who_names_nobody": CALLER,
    "control/test_inbox.py::test_a_program_of_another_machine": "it names a machine itself: tests/rpc tries the addresses",
    "control/test_batch.py::test_the_steps_of_a_repeated_call": "a repeated call is given the kept result",
    "control/test_faults.py::test_a_process_that_is_killed": PROCESS,
    "control/test_knowing.py::test_watch_asks_for_all_facts": PROCESS,
    "control/test_lease.py::test_with_the_lease_comes": PROCESS,
    "control/test_limits.py::test_no_more_sessions": "the settings are those of the process there",
    "control/test_lost.py::test_a_lost_session_cannot_be_used": "a process that stays says no_server where another says lost",
    "control/test_starting.py::test_a_dry_run": PROCESS,
    "control/test_typing.py::test_a_pause_follows": PROCESS,
    "control/test_agent_turns.py::test_an_answer_is_data_and_steers_no_terminal": TEXT,
    "control/test_batch.py::test_a_wrong_step_is_named_before_any_is_carried_out[elsewhere-steps6": TEXT,
    "control/test_batch.py::test_nothing_is_typed_into_another_session_of_this_name": PROCESS,
    "control/test_candidates.py::test_the_session_beside_has_place_size": FILES,
    "control/test_restoring.py::test_a_secret_is_taken_from_the_environment_again": PROCESS,
    "control/test_restoring.py::test_what_the_environment_does_not_have": PROCESS,
    "control/test_restoring.py::test_lifetimes_and_environments_of_plugins": FILES,
    "control/test_starting.py::test_sessions_do_not_inherit_from_the_one": PROCESS,
    "control/test_submitting.py::test_a_question_that_comes_late": PROCESS,
    "control/test_turns.py::test_what_another_types_after_the_look": PROCESS,
    "control/test_waits.py::test_a_kill_ends_a_wait": LATER,
    "control/test_waits.py::test_a_wait_survives_a_new_size": LATER,
    "control/test_waits.py::test_the_death_of_the_server_ends_a_wait": PROCESS,
}
"""Tests that cannot hold there, by the beginning of their ids in tests/, and why."""


class ElsewhereSuite:
    """The processes of one test. With a `gateway` they are hosts of it."""

    def __init__(self, gateway: SuiteGateway | None = None) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="tcs-rpc-", dir="/tmp")
        self.gateway = gateway
        self._numbers = itertools.count()
        self.processes: list[subprocess.Popen[str]] = []

    def refuse(self, test: str) -> None:
        """Skip a test, given by its id, that cannot hold there, and say why."""
        for beginning, reason in REFUSED.items():
            if test.removeprefix("tests/").startswith(beginning):
                pytest.skip(f"not elsewhere: {reason}")

    def control(self, **given: Any) -> Control:
        """One more process's operations."""
        number = next(self._numbers)
        path = f"{self.folder.name}/{number}"
        try:
            Path(f"{path}.given").write_bytes(pickle.dumps(given))
        except (AttributeError, TypeError, pickle.PicklingError):
            pytest.skip("not elsewhere: the test brings a clock of its own")
        started = False

        def connect(receive: Receive, lost: Any) -> Carrier:
            nonlocal started
            if not started:
                started = True
                self._start(path, number)
            if self.gateway:
                return self.gateway.carrier(number, receive, lost)
            return socket_carrier.SocketCarrier(path, receive, lost)

        control = Control(**given)
        timing = control.machine.timing.rpc
        client = CallClient("elsewhere", connect, timing=timing)
        control.machine.remote = RemoteOperations("elsewhere", client, Control, timing)
        return control

    def _start(self, path: str, number: int) -> None:
        script, words = "rpc/host.py", [path, "read,write,create,kill", "*"]
        if self.gateway:
            script, words = "gateway/suite_host.py", self.gateway.words(number)
        environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}", "TMUXCTL_TEST_GIVEN": f"{path}.given"}
        process = subprocess.Popen(
            [sys.executable, str(TESTS / script), *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        assert process.stdout
        assert process.stdout.readline() == "listening\n"

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.kill()
            process.wait()
            assert process.stdout
            process.stdout.close()
        self.folder.cleanup()
