"""Which small changes of the code no test notices. `python -m tools.mutants [--sample COUNT] [PATTERN ...]`

mutmut makes the changes, in a copy of the tree in mutants/; `mutmut show NAME` shows one. They are tried here: pytest collects
its tests once, and each change is tried in a child of that process. The child runs the tests that reach the changed function,
those that noticed another change of it first, then the quickest first, until one fails.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest
from mutmut.__main__ import create_mutants
from mutmut.configuration import config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir, setup_source_paths, walk_mutatable_files

FOLDER = Path("mutants")
SURVIVED, KILLED, NO_TESTS = 0, 1, 33
"""What mutmut keeps as a change's exit status where no test failed, where one did, and where none reaches the function."""

SEED = "2026"
"""The same sample is taken each time, so that two runs can be compared."""

LEAST_SECONDS, MORE = 2.0, 3
"""Seconds of the processor that a trial may take, and how many times what its tests take: a change may make a loop endless."""

MEMORY = 3 << 30
"""Bytes that a trial may take."""


class Score(NamedTuple):
    """What became of the changes of one module."""

    module: str
    total: int
    tried: int
    survived: int
    untested: int


def read_scores(folder: Path) -> Iterator[Score]:
    """One score for each module of which at least one change was tried."""
    for path in sorted(folder.glob("**/*.py.meta")):
        statuses = [*json.loads(path.read_text())["exit_code_by_key"].values()]
        tried = [status for status in statuses if status is not None]
        if tried:
            module = str(path.relative_to(folder)).removesuffix(".py.meta")
            yield Score(module, len(statuses), len(tried), tried.count(SURVIVED), tried.count(NO_TESTS))


def print_scores(scores: Sequence[Score]) -> None:
    """Print the table, and its sum."""
    print(f"{'module':<45} {'killed':>7} {'survived':>9} {'no test':>8} {'tried':>6} {'of':>6}")
    every = Score("all", *(sum(column) for column in zip(*(score[1:] for score in scores), strict=True)))
    for score in (*scores, every):
        killed = score.tried - score.survived - score.untested
        print(
            f"{score.module:<45} {killed:>7} {score.survived:>9} {score.untested:>8} {score.tried:>6} {score.total:>6}"
        )


def make_changes() -> list[SourceFileMutationData]:
    """Make the changes of every module that is new or has changed, and return what is known of all of them."""
    set_mutant_under_test("mutant_generation")
    FOLDER.mkdir(exist_ok=True)
    # it prints the path of every file
    with contextlib.redirect_stdout(io.StringIO()):
        copy_src_dir()
        copy_also_copy_files()
        setup_source_paths()
        create_mutants(1)
    modules = [SourceFileMutationData(path=path) for path in walk_mutatable_files()]
    for module in modules:
        module.load()
        # the tests run in another folder
        module.meta_path = module.meta_path.absolute()
    return modules


def choose_changes(names: Sequence[str], patterns: Sequence[str], sample: int | None) -> list[str]:
    """The changes of one module whose names fit one of the patterns, if there are any; of more than `sample`, so many."""
    fitting = [name for name in names if not patterns or any(fnmatch(name, pattern) for pattern in patterns)]
    if sample is None or len(fitting) <= sample:
        return fitting
    return random.Random(f"{SEED} {fitting[0]}").sample(fitting, sample)


class Trials:
    """A plugin of pytest that tries changes with the tests that it collected, instead of running these."""

    def __init__(self, chosen: Sequence[tuple[SourceFileMutationData, str]]) -> None:
        self.problem: str | None = None
        self._chosen = chosen
        self._failed = False
        self._items: dict[str, pytest.Item] = {}
        self._seconds: dict[str, float] = {}
        self._reaching: dict[str, list[str]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            # pytest has told which
            return True
        self._items = {item.nodeid: item for item in session.items}
        # it would show each test of each trial
        session.config.pluginmanager.unregister(name="terminalreporter")
        print(f"-- which of {len(self._items)} tests reach which functions", flush=True)
        status, lines = _run_in_child(self._measure_reach)
        if status != SURVIVED:
            self.problem = f"a test fails without any change: {lines[-1] if lines else 'the first'}"
            return True
        for line in lines:
            name, seconds, functions = json.loads(line)
            self._seconds[name] = seconds
            for function in functions:
                self._reaching[function].append(name)
        noticed: dict[str, list[str]] = defaultdict(list)
        for number, (module, change) in enumerate(self._chosen):
            if not number % 100:
                print(f"-- {number} of {len(self._chosen)} changes tried", flush=True)
            function = change.rpartition("__mutmut_")[0]
            module.exit_code_by_key[change] = self._try_change(change, self._reaching[function], noticed[function])
            module.save()
        return True

    def _try_change(self, change: str, reaching: Sequence[str], noticed: list[str]) -> int:
        """The exit status of a trial. `noticed` are the tests that noticed other changes of the function, the last first."""
        if not reaching:
            return NO_TESTS
        tests = [*noticed, *sorted(set(reaching) - set(noticed), key=lambda name: self._seconds[name])]
        limit = LEAST_SECONDS + MORE * sum(self._seconds[name] for name in tests)
        status, lines = _run_in_child(lambda report: self._run_tests(tests, change, limit, report))
        if status == KILLED:
            noticed[:] = [lines[-1], *(name for name in noticed if name != lines[-1])]
        return status

    def _measure_reach(self, report: Callable[[str], None]) -> int:
        """Run every test, and tell of each how many seconds it takes and which functions it reaches."""
        set_mutant_under_test("stats")
        for name in self._items:
            begun = time.process_time()
            if self._run_test(name) == KILLED:
                report(name)
                return KILLED
            report(json.dumps((name, time.process_time() - begun, sorted(state()._stats))))  # noqa: SLF001
            state()._stats.clear()  # noqa: SLF001
        return SURVIVED

    def _run_tests(self, tests: Sequence[str], change: str, limit: float, report: Callable[[str], None]) -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        set_mutant_under_test(change)
        for name in tests:
            report(name)
            if self._run_test(name) == KILLED:
                return KILLED
        return SURVIVED

    def _run_test(self, name: str) -> int:
        item = self._items[name]
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        return KILLED if self._failed else SURVIVED


def _run_in_child(run: Callable[[Callable[[str], None]], int]) -> tuple[int, list[str]]:
    """Run this in a child of the process, silent; return its exit status, negative for a signal, and what it reported."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(silence, descriptor)
        status = 3
        try:
            status = run(lambda line: _write(writing, f"{line}\n".encode()))
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading) as reports:
        lines = reports.read().splitlines()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lines


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def try_changes(chosen: Sequence[tuple[SourceFileMutationData, str]]) -> None:
    """Try these changes, and keep what became of each."""
    set_mutant_under_test("")
    arguments = ["--rootdir=.", *config().pytest_add_cli_args_test_selection, *config().pytest_add_cli_args]
    trials = Trials(chosen)
    with contextlib.chdir(FOLDER):
        status = pytest.main(arguments, plugins=[trials])
    if trials.problem or status != pytest.ExitCode.OK:
        raise SystemExit(trials.problem or f"pytest ended with status {int(status)}")


def main() -> None:
    """Try the changes that were not noticed yet, and print the table."""
    parser = argparse.ArgumentParser(description="Which small changes of the code no test notices.")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="only changes whose names fit one of these")
    parser.add_argument("--sample", type=int, metavar="COUNT", help="of a module with more changes, so many")
    given = parser.parse_args()
    modules = make_changes()
    chosen = [
        (module, name)
        for module in modules
        for name in choose_changes([*module.exit_code_by_key], given.patterns, given.sample)
        if module.exit_code_by_key[name] in (None, SURVIVED, NO_TESTS)
    ]
    if chosen:
        try_changes(chosen)
    scores = list(read_scores(FOLDER))
    if not scores:
        raise SystemExit(f"no change has a name like {' or '.join(given.patterns)}")
    print_scores(scores)


if __name__ == "__main__":
    main()
