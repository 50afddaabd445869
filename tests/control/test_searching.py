"""Searches with a user's pattern: as Python's `re` has it, and none that goes astray holds up anybody."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tmuxctl.control.waiting import search_pool, search_worker, searching
from tmuxctl.control.waiting.search_pool import POOL, Pool
from tmuxctl.control.waiting.searching import Found, Search
from tmuxctl.errors import Timeout, TmuxctlError, Usage
from tmuxctl.profile_files.patterns import find_problem
from tmuxctl.surfaces.library.matching import compile_patterns

ROOT = Path(__file__).resolve().parents[2]

BOMBS = {
    r"(a+)+$": "a" * 40 + "!",
    r"(a|a)*b": "a" * 60,
    r"^(\w+\s?)*$": "some words that have no end and then some more!",
    r"a*a*a*a*a*a*b": "a" * 2000,
    r"(x+x+)+y": "x" * 60,
    r"(a|a){40}b": "a" * 60,
    "a?" * 40 + "a" * 40 + "b": "a" * 60,
    r"(?=(a+)+b)": "a" * 60,
}
RISKY = r"(\w+)\s*=\s*(\d+)"
"""A pattern with an end, of which that cannot be seen beforehand if the text is long enough."""

LINES = "nothing to see\n" * 100
TEXT = LINES * 10 + "retries = 12\n"

PATTERNS = (
    "",
    "b",
    "word",
    "^b",
    "b$",
    r"\Aab",
    r"c\Z",
    "a*",
    "a+?b",
    "x*$",
    "a{2,3}",
    "(a)|(b)",
    "(a)?(b)?(z)?",
    "(?P<first>[a-z]+) (?P<second>[a-z]+)",
    r"(\w+)\s*=\s*(\d+)",
    "(?i)WORD",
    "(?i)straße",
    "(?i)k",
    "(?s)b.c",
    "b.c",
    "(?m)^c$",
    "(?-m:^)c",
    "(?x) b  # a comment",
    "(?a)\\w+$",
    "(?i:A)b",
    "(?<=a)b",
    "(?<!a)b",
    r"(?<=ab\n)c",
    "a(?=b)",
    "a(?!b)",
    r"(.)\1",
    "(?P<q>['\"]).*?(?P=q)",
    "(a)?b(?(1)c|d)",
    r"\bc",
    r"\Bb",
    "[^a-z\\n]+",
    r"[\w.-]+@[\w.-]+",
    "é+",
    "[😀-😎]",
    "(?>a+)b",
    "a++b",
    "(?:ab|cd)+",
    r"\d+ rows? in set",
    "((a)|b)*",
    "\udcff",
)
TEXTS = (
    "",
    "ab",
    "aab\nc",
    "b\nc\n",
    "some WORD words",
    "x = 1\nretries  =\n 12",
    "say \"hello\" or 'bye'",
    "Straße STRASSE K ſ",
    "éé\u0301 à 😀😃 漢字 ٣\u00a0\u2028",
    "me@example.com, 2 rows in set",
    "abc bd cdcdab aabb",
    "bytes \udcff\udcfe",
)


@pytest.fixture(autouse=True)
def pool() -> Iterator[Pool]:
    """Workers of the test's own; none is left behind it."""
    POOL.close()
    yield POOL
    POOL.end()
    assert not workers()
    # an ended pool starts none, nor does one that could not, for a while
    POOL._start_after = 0.0


def elsewhere(pattern: str) -> Search:
    """A search that is never short enough to be done here."""
    return Search(pattern, short_steps=-1)


def workers(pid: int | None = None) -> list[psutil.Process]:
    """The processes that search for this one, or for another."""
    found = []
    for child in psutil.Process(pid).children():
        try:
            if child.status() != psutil.STATUS_ZOMBIE and any("search_worker" in word for word in child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def in_thread(work: Callable[[], Any]) -> Callable[[], Any]:
    """Start it in a thread; what is returned waits for its result, or its error of ours."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except TmuxctlError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def result() -> Any:
        thread.join()
        [found] = results
        return found

    result.running = thread.is_alive  # type: ignore[attr-defined]
    return result


def bomb(pattern: str, seconds: float = 0.3) -> Any:
    return Search(pattern).find(BOMBS[pattern], deadline=time.monotonic() + seconds)


def one_shot(code: str, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a program of one thread that finds our package there."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
    )


def expected(pattern: str, text: str, start: int) -> Found | None:
    found = re.compile(pattern, re.MULTILINE).search(text, start)
    return Found(found[0], found.groups()) if found else None


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_search_here_finds_what_re_finds(pattern: str) -> None:
    search = Search(pattern)
    for text in TEXTS:
        for start in (0, 1, 3, len(text)):
            assert search.find(text, start=start) == expected(pattern, text, start), (text, start)


def test_a_search_elsewhere_finds_what_re_finds() -> None:
    for pattern in PATTERNS:
        search = elsewhere(pattern)
        for text in TEXTS:
            for start in (0, 1, 3, len(text)):
                assert search.find(text, start=start) == expected(pattern, text, start), (pattern, text, start)
    assert workers()


@pytest.mark.parametrize("pattern", BOMBS)
def test_a_bomb_ends_as_an_error(pattern: str) -> None:
    with pytest.raises(Timeout) as late:
        bomb(pattern)
    assert late.value.reason == "pattern_timeout"


@pytest.mark.night
def test_others_do_not_feel_a_bomb() -> None:
    began = threading.Barrier(len(BOMBS) + 1)

    def one(pattern: str) -> Any:
        began.wait()
        return bomb(pattern, 4.0)

    bombs = [in_thread(partial(one, pattern)) for pattern in BOMBS]
    began.wait()
    tick = Search("tick")
    for _ in range(100):
        assert tick.find("tock tick")
        time.sleep(0.001)  # lets the others run, as a wait does
    assert all(one.running() for one in bombs)  # type: ignore[attr-defined]
    assert [one().reason for one in bombs] == ["pattern_timeout"] * len(BOMBS)


def test_a_long_text_is_left_in_time() -> None:
    with pytest.raises(Timeout):
        Search(r"(?s)x.*y.*z|\w+=").find("a" * 200_000, deadline=time.monotonic() + 0.2)


def test_a_risky_pattern_finds_its_text_in_any_thread() -> None:
    found = Found("retries = 12", ("retries", "12"))
    assert Search(RISKY).find(TEXT) == found
    assert in_thread(lambda: Search(RISKY).find(TEXT))() == found
    assert in_thread(lambda: Search(RISKY).find(TEXT[:-10]))() is None


@pytest.mark.parametrize(
    "pattern", [r"\$ $", "error: .*", "[0-9]+ passed", "(?i)done", r"^>>> ?$", "(yes|no)\\?", r"^\s*$", "foo.*bar"]
)
def test_an_everyday_pattern_on_a_screen_needs_no_other_process(pattern: str) -> None:
    screen = "\n".join(["some words of a program's output"] * 24)
    assert in_thread(lambda: Search(pattern).find(screen))() == expected(pattern, screen, 0)
    assert not workers()


def test_a_worker_is_kept_for_the_next_search() -> None:
    for _ in range(3):
        assert in_thread(lambda: Search(RISKY).find(TEXT))()
        [worker] = workers()
    assert in_thread(lambda: Search(RISKY).find(TEXT))()
    assert workers() == [worker]


def test_close_ends_the_workers_and_the_next_search_starts_one() -> None:
    assert in_thread(lambda: Search(RISKY).find(TEXT))()
    searching.close()
    assert not workers()
    assert in_thread(lambda: Search(RISKY).find(TEXT))()


@pytest.mark.night
def test_twenty_at_once() -> None:
    bombs = [in_thread(lambda: bomb("(a+)+$", 5.0)) for _ in range(10)]
    found = [in_thread(lambda: Search(RISKY).find(TEXT)) for _ in range(10)]
    assert {one().text for one in found} == {"retries = 12"}
    assert any(one.running() for one in bombs)  # type: ignore[attr-defined]
    assert {one().reason for one in bombs} == {"pattern_timeout"}
    assert len(workers()) <= search_pool.KEPT


def test_workers_killed_between_two_searches_are_replaced() -> None:
    text = "b" * 150_000
    while len(workers()) < 2:
        both = [in_thread(lambda: elsewhere("b+$").find(text)) for _ in range(2)]
        assert {one().text for one in both} == {text}
    for worker in workers():
        worker.kill()
    assert in_thread(lambda: elsewhere("b+").find("abb"))() == Found("bb", ())


@pytest.mark.night
def test_a_worker_killed_while_it_searches_is_replaced(until: Callable[[Callable[[], Any]], Any]) -> None:
    late = in_thread(lambda: bomb("(a+)+$", 2.0))
    [first] = until(lambda: workers())
    until(lambda: first.cpu_times().user > 0.05)
    first.kill()
    until(lambda: workers() not in ([], [first]))
    assert late().reason == "pattern_timeout"


def test_a_worker_that_was_stopped_costs_an_error_and_no_more() -> None:
    assert in_thread(lambda: elsewhere("b+").find("abb"))()
    [worker] = workers()
    worker.suspend()
    long = "b" * 150_000
    late = in_thread(lambda: elsewhere("b+").find(long, deadline=time.monotonic() + 0.2))
    assert late().reason == "pattern_timeout"
    assert in_thread(lambda: elsewhere("b+").find(long))() == Found(long, ())
    assert worker not in workers()


def test_a_forked_child_has_workers_of_its_own(until: Callable[[Callable[[], Any]], Any]) -> None:
    assert in_thread(lambda: elsewhere("b+").find("abb"))()
    [ours] = workers()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            found = in_thread(lambda: elsewhere("c+").find("acc"))()
            os.write(writing, f"{workers()[0].pid}\n".encode())
            late = in_thread(lambda: bomb("(a+)+$"))()
            status = 0 if (found, late.reason) == (Found("cc", ()), "pattern_timeout") else 2
        finally:
            os._exit(status)
    os.close(writing)
    theirs = int(os.read(reading, 100))
    os.close(reading)
    assert in_thread(lambda: elsewhere("b+").find("abb"))() == Found("bb", ())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert theirs != ours.pid
    assert workers() == [ours]
    until(lambda: not psutil.pid_exists(theirs))


ALONE = """
    import os, psutil, signal, time
    from tmuxctl.control.waiting.searching import Search
    from tmuxctl.errors import Timeout

    def bomb(text="a" * 40 + "!"):
        try:
            Search("(a+)+$").find(text, deadline=time.monotonic() + 0.2)
        except Timeout as late:
            print(late.reason)
"""


def test_the_only_thread_of_a_process_needs_no_other_process() -> None:
    done = one_shot(
        ALONE
        + """
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    bomb()
    print(psutil.Process().children(), signal.getsignal(signal.SIGALRM).name, signal.getitimer(signal.ITIMER_REAL))
    """
    )
    assert done.stdout.split("\n") == ["pattern_timeout", "[] SIG_IGN (0.0, 0.0)", ""], done


def test_beside_other_threads_a_search_that_ends_soon_needs_no_other_process() -> None:
    done = one_shot(
        ALONE
        + r"""
    import threading
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    print(Search(r"(\w+)\s*=\s*(\d+)").find("nothing to see\n" * 500 + "retries = 12").text, psutil.Process().children())
    bomb()
    print(len(psutil.Process().children()))
    """
    )
    assert done.stdout.split("\n") == ["retries = 12 []", "pattern_timeout", "0", ""], done


def test_an_alarm_of_the_callers_own_is_left_alone() -> None:
    done = one_shot(
        ALONE
        + """
    signal.signal(signal.SIGALRM, lambda *_: print("rang"))
    signal.setitimer(signal.ITIMER_REAL, 30)
    bomb()
    print(20 < signal.getitimer(signal.ITIMER_REAL)[0] < 30)
    os.kill(os.getpid(), signal.SIGALRM)
    """
    )
    assert done.stdout.split() == ["pattern_timeout", "True", "rang"], done


def test_an_alarm_that_would_not_be_heard_is_not_relied_on() -> None:
    done = one_shot(ALONE + "\n    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n    bomb()\n")
    assert done.stdout.split() == ["pattern_timeout"], done


THREADED = """
    import os, psutil, sys, threading, time
    from tmuxctl.control.waiting.searching import Search
    from tmuxctl.errors import Timeout

    def elsewhere(pattern, text, seconds=60):
        def run():
            try:
                print(Search(pattern).find(text, deadline=time.monotonic() + seconds), flush=True)
            except Timeout as late:
                print(late.reason, flush=True)
        thread = threading.Thread(target=run)
        thread.start()
        return thread
    TEXT = "nothing to see\\n" * 1000 + "retries = 12"
"""


def test_no_process_is_left_at_exit(until: Callable[[Callable[[], Any]], Any]) -> None:
    done = one_shot(
        THREADED
        + r"""
    elsewhere(r"(\w+)\s*=\s*(\d+)", TEXT).join()
    print(*(child.pid for child in psutil.Process().children()))
    """
    )
    found, pids, _ = done.stdout.split("\n")
    assert "retries = 12" in found
    assert len(pids.split()) == 1
    assert not psutil.pid_exists(int(pids))


@pytest.mark.night
def test_a_bomb_does_not_outlive_a_killed_process(until: Callable[[Callable[[], Any]], Any]) -> None:
    done = one_shot(
        THREADED
        + r"""
    elsewhere("(a+)+$", "a" * 40 + "!")
    while not (children := psutil.Process().children()) or children[0].cpu_times().user < 0.1:
        time.sleep(0.01)
    print(children[0].pid, flush=True)
    os.kill(os.getpid(), 9)
    """
    )
    pid = int(done.stdout)
    until(lambda: not psutil.pid_exists(pid))


@pytest.mark.night
def test_a_worker_does_not_outlive_its_process_that_left_a_forked_child(
    until: Callable[[Callable[[], Any]], Any],
) -> None:
    done = one_shot(
        THREADED
        + r"""
    elsewhere(r"(\w+)\s*=\s*(\d+)", TEXT).join()
    [worker] = psutil.Process().children()
    child = os.fork()
    if not child:
        os.closerange(0, 3)
        time.sleep(60)
        os._exit(0)
    print(worker.pid, child, flush=True)
    os.kill(os.getpid(), 9)
    """
    )
    worker, child = (psutil.Process(int(pid)) for pid in done.stdout.split("\n")[1].split())
    try:
        until(lambda: not worker.is_running())
    finally:
        child.kill()


def test_it_works_from_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "one.pyz", "w") as archive:
        for file in (ROOT / "tmuxctl").rglob("*.py"):
            archive.write(file, file.relative_to(ROOT))
    done = one_shot(
        THREADED
        + r"""
    assert ".pyz" in sys.modules[Search.__module__].__file__
    elsewhere(r"(\w+)\s*=\s*(\d+)", TEXT).join()
    print(len(psutil.Process().children()))
    elsewhere("(a+)+$", "a" * 40 + "!", 0.2).join()
    """,
        tmp_path / "one.pyz",
    )
    assert done.stdout.split("\n")[1:] == ["1", "pattern_timeout", ""], done


@pytest.mark.parametrize("executable", ["", "/nonexistent/python", "/bin/true", "/bin/sh"])
def test_where_no_worker_starts_a_bomb_is_not_even_tried(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert in_thread(lambda: bomb("(a+)+$"))().reason == "pattern_timeout"
    assert in_thread(lambda: Search("b+=[0-9]").find(LINES[:500] + "b=1"))() == Found("b=1", ())


@pytest.mark.night
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such a limit is not kept")
def test_a_search_may_not_fill_the_memory() -> None:
    greedy = "(?:" + "()" * 400 + ".)*(?=never)"
    assert in_thread(lambda: Search(greedy).find("a" * 199_000))().reason == "pattern_timeout"
    assert in_thread(lambda: Search(RISKY).find(TEXT))()
    [worker] = workers()
    assert 0 < worker.rlimit(psutil.RLIMIT_AS)[0] <= search_worker.MEMORY_BYTES


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a{2,1}",
        "(?<=a*)b",
        "(?P<a>b)(?P<a>c)",
        "a" * 10_001,
        "(" * 3000 + ")" * 3000,
        "a{99999999999999999999}",
        "(?i)" + "[\x00-\uffff]" * 800,
        "(?i)" + r"[\x00-\U0010ffff]" * 800,
        "(?i)" + r"[--\uffff]" * 800,
        "(?i:" + "[^\x00-\uffff]" * 800 + ")",
        "\\",
        "(?z)",
    ],
)
def test_a_bad_pattern_is_told(pattern: str) -> None:
    with pytest.raises(Usage) as refused:
        Search(pattern)
    assert refused.value.reason == "bad_pattern"
    assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    "pattern", ["(?:a{1000}){1000}", "a" * 10_000, "[[]x", "(?i)[\x00-\uffff]", "|".join(["ab"] * 3000)]
)
def test_a_large_pattern_is_no_bad_one(pattern: str, recwarn: pytest.WarningsRecorder) -> None:
    Search(pattern).find("ab" * 1000, deadline=time.monotonic() + 5)
    assert not [str(one.message) for one in recwarn.list]


def test_patterns_of_special_characters_match_as_re_has_it_or_are_refused():
    choice, text = random.Random(1), "abc {x} 01 {2}\n" * 3
    parts = [*"{}()[]*+?|.^$\\-,:=!<>#&~ ab01x\n", "(?", "(?P<", "\\x", "{,", "{1,"]
    patterns = [
        "{x}",
        "^{",
        "{",
        "{}",
        *("".join(choice.choices(parts, k=choice.randrange(1, 9))) for _ in range(10_000)),
    ]
    found = refused = 0
    for pattern in patterns:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = re.search(pattern, text, re.MULTILINE)
            except re.error:
                assert find_problem(pattern)
                for refuses in (Search, compile_patterns):
                    with pytest.raises(Usage):
                        refuses(pattern)
                refused += 1
                continue
            find_problem(pattern)
            match = Search(pattern).find(text)
        assert (match and match.text) == (expected and expected[0]), pattern
        found += match is not None
    assert found
    assert refused


def test_what_re_cannot_compile_is_refused_typed():
    for pattern in ("a{99999999999}", "(" * 3000 + ")" * 3000):
        for refuses in (Search, compile_patterns):
            with pytest.raises(Usage) as raised:
                refuses(pattern)
            assert raised.value.reason == "bad_pattern"
