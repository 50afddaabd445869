"""The conversations of examples/ do what they say, with the real programs, and wait for conditions alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tools import examples

ALL = [pytest.param(one, id=one.name) for one in examples.examples()]


@pytest.mark.night
@pytest.mark.timeout(320)
@pytest.mark.parametrize("one", ALL)
def test_an_example_does_what_it_says(one: examples.Example):
    if lacks := one.lacks():
        pytest.skip(lacks)
    played = examples.play(one)
    if played is None:
        pytest.skip(f"no {one.service} can be started here")
    assert played.ok, f"status {played.status}, left {played.left!r}\n{played.output}"


@pytest.mark.parametrize("one", ALL)
def test_an_example_waits_for_conditions_never_for_a_time(one: examples.Example):
    driving = [line for line in one.path.read_text().splitlines() if not line.lstrip().startswith("#")]
    assert not [line for line in driving if re.search(r"\bsleep\b|--settle", line)]


ENDLESS = """\
set -eu
tmuxctl new endless -- sh
echo "$HOME" >{told}.new
mv {told}.new {told}
exec sleep 1000
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_is_left_of_an_example_that_is_told_to_end(
    tmp_path: Path, until: Callable[[Callable[[], Any]], Any], number: signal.Signals
):
    told = tmp_path / "home"
    (tmp_path / "endless.sh").write_text(ENDLESS.format(told=told))
    words = f"from pathlib import Path; from tools import examples; examples.EXAMPLES = Path({str(tmp_path)!r}); examples.main()"
    running = subprocess.Popen([sys.executable, "-c", words, "endless", "--load", "1"], cwd=examples.ROOT)
    until(told.exists)
    home = told.read_text().strip()
    children = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(number)
    assert running.wait(60) != 0
    assert not os.path.exists(home)
    assert not [one for one in children if one.is_running()]
    assert not [one.pid for one in psutil.process_iter(["environ"]) if (one.info["environ"] or {}).get("HOME") == home]
