"""The backend `ssh` of behaviour tests (`pytest --over-ssh`): the operations on a machine behind a real sshd, one for each worker.

The machine has no Python in its PATH. What runs in sessions has the PATH of the test, as if each program were started by its full
path. Its user has the test's `place` for a home. Sessions have plain names, as where a user works on one machine
(`Client(machine=...)`); tests/machines tries the addresses.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from machines.ssh_server import SYSTEM_PATH, SshServer, configure_ssh, end_all

from tmuxctl.control import Control
from tmuxctl.control.machine import Machine
from tmuxctl.control.machines import addresses, reaching
from tmuxctl.transport.base import StartingPlace, shell_word
from tmuxctl.value import changed

NAME = "far"

VARIABLES = ("HOME", "TMUX_TMPDIR", "TMPDIR", "XDG_STATE_HOME", "SHELL", "PS1")
"""What a login there sets, as `place` has it."""

TOLD = ("PATH", "CHAT_LOG")
"""What programs of tests need: it stands for their full paths, and for what they are told."""

PANES = "panes of other tmux servers cannot be named there"
VARIABLE = "a variable of the caller goes to no other machine"
WRITER = "a pid means nothing there: what a dead writer held ends with its time"
LOCAL = "it is about LocalTransport"
NAMES = "it names a machine itself: tests/machines tries the addresses"
ENTER = "Enter comes later over ssh than the program takes for a part of a pasted text"
PLUGIN = "the plugin works on files of the caller's machine"

REFUSED = {
    "control/test_adopting": PANES,
    "control/test_batch.py::test_a_pane_of_another_tmux": PANES,
    "control/test_candidates.py::test_a_pane_of_another_server": PANES,
    "control/test_following.py::test_a_pane_of_another_tmux": PANES,
    "control/test_pane_io.py::test_the_transport_to_a_pane_of_another_server": PANES,
    "control/test_restoring.py::test_a_login_that_does_not_come_to_its_end": VARIABLE,
    "control/test_restoring.py::test_a_secret_is_taken_from_the_environment_again": VARIABLE,
    "control/test_restoring.py::test_what_the_environment_does_not_have": VARIABLE,
    "control/test_starting.py::test_a_session_gets_its_callers_environment": VARIABLE,
    "control/test_starting.py::test_a_session_without_a_command_runs_the_users_shell": VARIABLE,
    "plugins/test_env.py::test_a_secret_reaches_the_program": VARIABLE,
    "control/test_batch.py::test_the_batch_of_a_dead_process": WRITER,
    "control/test_lease.py::test_a_pid_used_again": WRITER,
    "control/test_lease.py::test_a_turn_is_taken_from_a_dead_process": WRITER,
    "control/test_lease.py::test_the_lease_of_a_dead_writer": WRITER,
    "control/test_typing.py::test_a_caller_neither_types": "a caller runs in no session of another machine",
    "control/test_faults.py::test_a_process_that_is_stopped_while_it_opens_a_client": LOCAL,
    "control/test_inbox.py::test_a_program_of_another_machine": NAMES,
    "control/test_profile_check.py::test_nothing_is_left": "the shell there has a temporary folder, here in the same home",
    "control/test_submitting.py::test_where_enter_made_a_new_line": ENTER,
    "control/test_candidates.py::test_both_work_in_the_worktree": PLUGIN,
    "plugins/test_env.py::test_a_restored_session": PLUGIN,
    "plugins/test_env.py::test_the_variables_of_one_session": PLUGIN,
    "plugins/test_sandbox": PLUGIN,
}
"""Tests that cannot hold on another machine, by the beginning of their ids in tests/, and why."""


class FarMachine(Machine):
    """A machine behind ssh, whose sessions are told by their plain names."""

    def address_of(self, session: str) -> str:
        """The name alone."""
        return session


class FarControl(Control):
    """The operations on a machine behind ssh. Each call comes from outside, as that of a user here does."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    @cached_property
    def there(self) -> FarControl:
        """The operations that are being carried out there: what they call themselves comes from there."""
        there = FarControl(self.machine)
        there.there = there
        return there

    def reach(self, session: str) -> tuple[Control, str]:
        """The operations there, and the session's name."""
        return self.there, super().reach(session)[1]


class SshSuite:
    """A machine behind sshd that serves the tests of a worker, one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = folder / "environment"
        self.server = SshServer(folder, NAME, login=f". {self.environment} && cd")
        configure_ssh(folder, [self.server], control=f"{folder}/c")
        self._clean = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self._master = [
            str(folder / "bin/ssh"),
            "-N",
            "-f",
            "-o",
            "ControlMaster=yes",
            "-o",
            "ControlPersist=yes",
            NAME,
        ]
        self.connect()

    def connect(self) -> None:
        """Make the connection that all use; it belongs to no test."""
        subprocess.run(self._master, check=True, env=self._clean, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def refuse(self, test: str) -> None:
        """Skip a test, given by its id, that cannot hold on another machine, and say why."""
        for beginning, reason in REFUSED.items():
            if test.removeprefix("tests/").startswith(beginning):
                pytest.skip(f"not on another machine: {reason}")

    def move(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the user there live in this test's place."""
        lines = [f"export {name}={shell_word(os.environ[name])}\n" for name in VARIABLES]
        self.environment.write_text("".join(lines))
        monkeypatch.setenv("PATH", f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setattr(addresses, "carry_out", lambda address, call, session="": call())

    def control(self, monkeypatch: pytest.MonkeyPatch, **given: Any) -> FarControl:
        """One more process's operations there."""
        here = Control(**given).machine
        found = reaching.reach_machine(here, NAME)
        as_it_is = found.transport.starting_place

        def starting_place() -> StartingPlace:
            place = as_it_is()
            told = {name: os.environ[name] for name in TOLD if name in os.environ}
            return changed(place, environment={**place.environment, **told})

        monkeypatch.setattr(found.transport, "starting_place", starting_place)
        machine = FarMachine(
            found.transport,
            found.settings,
            resident=found.panes is not None,
            timing=found.timing,
            limits=found.limits,
            clock=found.clock,
            address=found.address,
        )
        return FarControl(machine)


def is_installed() -> bool:
    """Whether this machine has an sshd and ssh."""
    return all(shutil.which(name, path=SYSTEM_PATH) for name in ("ssh", "sshd"))


@contextmanager
def run_suite() -> Iterator[SshSuite]:
    """The machine of this worker, for as long as it has tests."""
    folder = Path(tempfile.mkdtemp(prefix="tcs-ssh-", dir="/tmp"))
    try:
        suite = SshSuite(folder)
        yield suite
        subprocess.run([folder / "bin/ssh", "-O", "exit", NAME], capture_output=True, check=False)
    finally:
        end_all(folder)
        shutil.rmtree(folder, ignore_errors=True)
