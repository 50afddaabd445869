"""What every plugin has to keep to, tried on one of them without starting a session.

A package tests its own plugin with `assert not contract.failures("nice", {"level": "15"})`. The tests run in a process
and in folders of their own: a plugin that hangs is ended, and nothing it writes goes to its user's state folder or home.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from shutil import rmtree
from typing import IO, Any

from tmuxctl.config import config_folder
from tmuxctl.errors import from_json
from tmuxctl.extensions import find_plugin, trusted_path
from tmuxctl.results import PluginTested
from tmuxctl.timing import TIMING, PluginTiming
from tmuxctl.untrusted import parse_json

START = "from tmuxctl.contract.child import main; main()"


def failures(name: str, options: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """What the plugin of this name does not keep to, in words; none if it keeps to all."""
    return tuple(f"{test.test}: {test.why}" for test in run(name, options) if test.outcome == "failed")


def run(
    name: str, options: Mapping[str, Any] | None = None, *, timing: PluginTiming = TIMING.plugin
) -> tuple[PluginTested, ...]:
    """Each test with what it gave, tried with these options, else with those the plugin's `example` names, else with none.

    NotFound `no_plugin`, Denied `unsafe_file`, Usage `bad_option` if one of the options is none of its own.
    """
    find_plugin(name)
    folder = os.path.realpath(tempfile.mkdtemp(prefix="tmuxctl-plugin-"))
    try:
        return tuple(_run_tests(name, dict(options or {}), folder, timing.test_seconds))
    finally:
        rmtree(folder, ignore_errors=True)


def _run_tests(name: str, options: Mapping[str, Any], folder: str, seconds: float) -> Iterator[PluginTested]:
    with open(f"{folder}/said", "w+b") as said, _start_child(folder, said) as process:
        test = "loads"
        try:
            _send_request(process, {"name": name, "options": options, "folder": folder})
            for line in _read_lines(process, seconds):
                told = parse_json(line)
                if "refused" in told:
                    raise from_json(told["refused"])
                if (outcome := told.get("outcome")) is None:
                    test = told["test"]
                    continue
                yield PluginTested(name, test, outcome, told["why"])
                test = ""
            process.wait(seconds)
            why = f"it ended the test process, with status {process.returncode}: {_last_words(said)}"
        except subprocess.TimeoutExpired:
            why = f"it did not end within {seconds:g} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if test or process.returncode:
            yield PluginTested(name, test or "ends", "failed", why)


def _start_child(folder: str, said: IO[bytes]) -> subprocess.Popen[bytes]:
    """The process that tries it: with our packages, and a home and state folder of its own."""
    own = {name: f"{folder}/{name.lower()}" for name in ("HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    for path in own.values():
        os.mkdir(path, 0o700)
    given = {"XDG_CONFIG_HOME": os.path.dirname(config_folder()), "PYTHONPATH": os.pathsep.join(trusted_path())}
    kept = {name: value for name, value in os.environ.items() if name not in ("XDG_RUNTIME_DIR", "XDG_DATA_HOME")}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-P", "-c", START],
        stdin=pipe,
        stdout=pipe,
        stderr=said,
        cwd=folder,
        env={**kept, **own, **given},
        start_new_session=True,
    )


def _send_request(process: subprocess.Popen[bytes], request: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as stdin:
        stdin.write(json.dumps(request).encode())


def _read_lines(process: subprocess.Popen[bytes], seconds: float) -> Iterator[bytes]:
    """The lines it prints; TimeoutExpired if the next one does not come in time."""
    assert process.stdout is not None
    source, read = process.stdout.fileno(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while selector.select(seconds):
            part = os.read(source, 1 << 16)
            *lines, read = (read + part).split(b"\n")
            yield from lines
            if not part:
                return
    raise subprocess.TimeoutExpired(START, seconds)


def _last_words(said: IO[bytes]) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().split("\n")
    return lines[-1].strip()[:200] or "it printed nothing"
