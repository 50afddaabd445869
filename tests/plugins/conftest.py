"""The machines that plugins are tried on: this one, and one that only a POSIX shell at the end of a pipe tells of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tmuxctl.plugin_machine import PluginMachine, this_machine
from tmuxctl.transport.pipe import PipeTransport


@pytest.fixture(params=["here", "pipe"])
def plugin_machine(request: pytest.FixtureRequest, place: Path) -> Iterator[PluginMachine]:
    """The machine of a plugin's sessions, with the files of this one."""
    if request.param == "here":
        yield this_machine()
        return
    transport = PipeTransport()
    yield PluginMachine(transport.shell, os.environ, name="pipe")
    transport.close()
