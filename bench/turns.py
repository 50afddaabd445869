"""Turns of real programs: `send` then `wait`, and `ask`, beside the true end, which each command tells itself.

The last thing a command does is to make a file. A turn that ended before the file was there ended too early; what passed
between the file and the return is the overhead. In the environment, EACH=number sets how many turns of a kind, LENGTHS=0,0.5
how many seconds their commands take, PROGRAMS=name,name of which programs (`spawned`: those through the command line), and
AT_ONCE=number how many sessions are measured at the same time.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import truths
from place import Place, Row, tmuxctl, until

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import State
from tmuxctl.operations import Call, current, under

SECONDS = tuple(map(float, os.environ.get("LENGTHS", "0,0.05,0.5,2").replace(",", " ").split()))
EACH = int(os.environ.get("EACH", "25"))
AT_ONCE = int(os.environ.get("AT_ONCE", "3"))
"""Sessions measured at the same time: nearly all of a turn is waiting."""

SPAWNED = "spawned"
"""What the turns through the command line are called in PROGRAMS."""

LIMIT = 20.0
STEPS = 5
"""Lines of a command that prints, its time spread over them."""

HALF_TICK = time.clock_getres(5) / 2 if sys.platform == "linux" else 0.0
"""Seconds by which a file's time lies before its making, on average: it is that of the kernel's last tick (clock_getres(2),
CLOCK_REALTIME_COARSE)."""

WHAT = "turns of {}: ended too early, missed; median and p95 after the true end"
WORDS = [f"line {step}" for step in range(STEPS)]


class Program(NamedTuple):
    """How it is started, what is typed first, the command for a kind of turn, and the median overhead it may have, in
    seconds."""

    command: tuple[str, ...]
    line: Callable[[Kind, str], str]
    limit: float
    first: str = ""


class Kind(NamedTuple):
    """How long a command takes, in seconds, whether it prints meanwhile, and its number: odd and even ones may work in
    different ways."""

    seconds: float
    prints: bool
    number: int

    @property
    def odd(self) -> bool:
        """Whether the number is odd."""
        return self.number % 2 == 1


class Turn(NamedTuple):
    """How one turn went. `overhead` is in seconds; `wrong` is empty, or says what was; `early` is True if the turn ended
    before the command."""

    kind: Kind
    overhead: float | None
    early: bool
    wrong: str


def _shell(kind: Kind, file: str) -> str:
    if kind.prints:
        rest = f"sleep {kind.seconds / STEPS}" if kind.seconds else ":"
        return f"for i in {' '.join(map(str, range(STEPS)))}; do echo line $i; {rest}; done; : >{file}"
    return f"sleep {kind.seconds}; : >{file}" if kind.seconds else f": >{file}"


def _python(kind: Kind, file: str) -> str:
    if kind.prints:
        return f"[print('line', i) or time.sleep({kind.seconds / STEPS}) for i in range({STEPS})] and open('{file}', 'w').close()"
    return f"time.sleep({kind.seconds}); open('{file}', 'w').close()"


def _node(kind: Kind, file: str) -> str:
    """Even ones stop the whole process, odd ones leave the prompt's event loop at work."""
    end = f"fs.writeFileSync('{file}', '')"
    stop = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, {:g})"
    rest = ("await new Promise(r => setTimeout(r, {:g}))" if kind.odd else stop).format(
        kind.seconds * 1000 / (STEPS if kind.prints else 1)
    )
    if kind.prints:
        return f"for (let i = 0; i < {STEPS}; i++) {{ console.log('line ' + i); {rest} }} {end}"
    return f"{rest}; {end}" if kind.seconds else end


def _sqlite(kind: Kind, file: str) -> str:
    """Even ones compute, odd ones wait for a shell below."""
    if kind.odd:
        return ".shell " + _shell(kind, file)
    end = f"select 1 where writefile('{file}', '') is null;"
    steps = STEPS if kind.prints else 1
    counted = _count(max(1, int(kind.seconds / steps * _rate())))
    if kind.prints:
        return "".join(f"select 'line {step}' where {counted}; " for step in range(STEPS)) + end
    return (f"select 1 where not {counted}; " if kind.seconds else "") + end


def _count(rows: int) -> str:
    """A condition that holds, and takes as long as it takes to count so many rows."""
    return f"(with recursive n(i) as (select 1 union all select i+1 from n limit {rows}) select count(*) from n)>0"


@cache
def _rate() -> float:
    """Rows a second that sqlite counts here."""
    began = time.process_time()
    sqlite3.connect(":memory:").execute("select 1 where " + _count(1_000_000)).fetchall()
    return 1_000_000 / (time.process_time() - began)


def _gdb(kind: Kind, file: str) -> str:
    """Even ones stop the debugger itself, odd ones leave it waiting for a shell below."""
    if kind.odd:
        return "shell " + _shell(kind, file)
    rest = f"time.sleep({kind.seconds / (STEPS if kind.prints else 1)})"
    body = f"[(print('line', i), {rest}) for i in range({STEPS})]" if kind.prints else rest
    return f"python import time; {body}; open('{file}', 'w').close()"


def _psql(kind: Kind, file: str) -> str:
    """Even ones wait for the server, odd ones for a shell below."""
    if kind.odd:
        return r"\! " + _shell(kind, file)
    steps = WORDS if kind.prints else ["done"]
    return " ".join(f"select '{word}', pg_sleep({kind.seconds / len(steps):g});" for word in steps) + rf" \! : >{file}"


PROGRAMS = {
    "bash": Program(("bash",), _shell, 0.1),
    "zsh": Program(("zsh",), _shell, 0.1),
    "python3": Program((getattr(sys, "_base_executable", sys.executable), "-q"), _python, 0.04, "import time"),
    "node": Program(("node",), _node, 0.3),
    "sqlite3": Program(("sqlite3",), _sqlite, 0.04),
    "psql": Program(("psql", "-X"), _psql, 0.04),
    "gdb": Program(("gdb", "-q"), _gdb, 0.04),
}


def measure(place: Place) -> list[Row]:
    only = os.environ.get("PROGRAMS", "").replace(",", " ").split() or [*PROGRAMS, SPAWNED]
    if strange := [name for name in only if name not in (*PROGRAMS, SPAWNED)]:
        raise ValueError(f"no program {strange[0]!r}; there are: {', '.join(PROGRAMS)}, {SPAWNED}")
    programs = [name for name in only if name != SPAWNED]
    there = [name for name in programs if shutil.which(PROGRAMS[name].command[0])]
    missing = [Row(WHAT.format(name), "0, 0", f"needs {name}", None) for name in programs if name not in there]
    with ExitStack() as open_:
        Path(place.folder, "home", ".zshrc").touch()
        if "psql" in there:
            open_.enter_context(truths.cluster(place.folder))
        control = open_.enter_context(place.control())
        rows = _resident(control, there) + missing
        return rows + (_spawned(control) if SPAWNED in only else [])


def _resident(control: Control, names: Sequence[str]) -> list[Row]:
    """The turns of these programs in this process; whoever ends it waits for no more than the step each thread is at."""
    over = threading.Event()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            verbs: tuple[Verb, ...] = (_wait, _ask)
            plays = {
                name: [pool.submit(_play, control, name, verb, _kinds(EACH), over) for verb in verbs] for name in names
            }
            # in steps: a signal may reach a thread that starts a process, and this one sleeps on
            while wait([play for found in plays.values() for play in found], 0.2).not_done:
                pass
            return [_row(name, [one.result() for one in found]) for name, found in plays.items()]
        finally:
            over.set()
            pool.shutdown(cancel_futures=True)


Verb = Callable[[Control, str, str], str | None]
"""Does one turn in a session; the answer if it gives one. Raises what was wrong with it."""


def _wait(control: Control, session: str, line: str) -> str | None:
    control.send(session, line.encode())
    found = control.wait(session, idle=True, timeout=LIMIT)
    if found.timed_out or found.matched != "idle" or found.state is not State.IDLE:
        raise RuntimeError(f"{found.state}: {found.why}")
    return None


def _ask(control: Control, session: str, line: str) -> str | None:
    found = control.ask(session, line.encode(), timeout=LIMIT)
    if found.timed_out or found.state is not State.IDLE:
        raise RuntimeError(f"{found.state.value}, by {found.by}, after {found.elapsed} s")
    return found.answer


def _spawned_wait(_control: Control, session: str, line: str) -> str | None:
    for words in (("send", session, "--", line), ("wait", session, "--idle", "--timeout", str(LIMIT))):
        if (done := tmuxctl(*words)).status:
            raise RuntimeError(f"{words[0]}: status {done.status}: {done.stderr.decode()[-300:]}")
    return None


def _spawned_ask(_control: Control, session: str, line: str) -> str | None:
    done = tmuxctl("ask", session, "--timeout", str(LIMIT), "--json", "--", line)
    if done.status:
        raise RuntimeError(f"ask: status {done.status}: {done.stderr.decode()[-300:]}")
    return str(json.loads(done.stdout)["answer"])


def _kinds(each: int, seconds: Sequence[float] = SECONDS) -> list[Kind]:
    """So many turns of each kind, mixed, always in the same order."""
    found = [Kind(length, prints, number) for length in seconds for prints in (False, True) for number in range(each)]
    random.Random(7).shuffle(found)
    return found


def _play(
    control: Control, name: str, verb: Verb, kinds: Sequence[Kind], over: threading.Event | None = None
) -> list[Turn]:
    """All turns in one session, until it is `over`."""
    program, session = PROGRAMS[name], f"{name}-{verb.__name__.strip('_')}"
    control.new(session, program.command)
    if program.first:
        control.ask(session, program.first.encode(), timeout=LIMIT)
    turns = []
    for at, kind in enumerate(kinds):
        file = Path(f"{session}-{at}")
        with under(Call(os.urandom(8).hex(), cancelled=over)):
            turns.append(_turn(control, session, verb, kind, program.line(kind, file.name), file))
    control.kill((session,))
    middle, late = _spread(turns)
    print(f"   {session}: {len(turns)} turns, {middle * 1000:.0f} ms, {late * 1000:.0f} ms", flush=True)
    return turns


def _turn(control: Control, session: str, verb: Verb, kind: Kind, line: str, file: Path) -> Turn:
    answer, wrong = None, ""
    try:
        answer = verb(control, session, line)
    except (TmuxctlError, RuntimeError) as error:
        current().check()
        wrong = f"{type(error).__name__}: {error}"
    returned, early = time.time(), not file.exists()
    wrong = wrong or ("ended before the command" if early else "")
    if kind.prints and answer is not None and [row for row in WORDS if row not in answer]:
        early, wrong = True, wrong or f"the answer lacks output: {ascii(answer[-200:])}"
    if wrong:
        wrong = f"{session}, {line}: {wrong}\n{_why(control, session)}"
        print("   " + wrong, flush=True)
        if until(file.exists, LIMIT):
            control.wait(session, settle=1.0, timeout=LIMIT)
    overhead = None if wrong else returned - file.stat().st_mtime - HALF_TICK
    return Turn(kind, overhead, early, wrong)


def _why(control: Control, session: str) -> str:
    """What is said of the session at this moment."""
    with suppress(TmuxctlError):
        found = control.explain(session)
        reasons = "".join(f"\n  {'*' if one.used else ' '} {one.source}: {one.seen}" for one in found.reasons)
        return f"  now {found.state}: {found.why}{reasons}"
    return ""


def _row(name: str, plays: list[list[Turn]]) -> Row:
    limit = PROGRAMS[name].limit
    told, detail = [], []
    holds = True
    for verb, turns in zip(("`send`, `wait`", "`ask`"), plays, strict=True):
        early = sum(turn.early for turn in turns)
        missed = sum(bool(turn.wrong) for turn in turns) - early
        middle, late = _spread(turns)
        told.append(f"{verb} {early}, {missed} of {len(turns)}; {middle * 1000:.0f} ms, {late * 1000:.0f} ms")
        detail += [turn.wrong for turn in turns if turn.wrong]
        detail.append(f"{verb}: {_by_kind(turns)}")
        holds = holds and not early and not missed and middle <= limit
    return Row(WHAT.format(name), f"0, 0; ≤ {limit * 1000:.0f} ms", " – ".join(told), holds, "\n".join(detail))


def _spread(turns: Sequence[Turn]) -> tuple[float, float]:
    """The median and the 95th percentile of the overheads; infinite without any."""
    found = sorted(turn.overhead for turn in turns if turn.overhead is not None)
    return (statistics.median(found), found[int(len(found) * 0.95)]) if found else (float("inf"), float("inf"))


def _by_kind(turns: Sequence[Turn]) -> str:
    parts = []
    for seconds in dict.fromkeys(sorted(turn.kind.seconds for turn in turns)):
        for prints in (False, True):
            some = [turn for turn in turns if turn.kind.seconds == seconds and turn.kind.prints == prints]
            middle, late = _spread(some)
            what = f"{seconds:g} s {'printing' if prints else 'silent'}"
            parts.append(f"{what} {middle * 1000:.0f}/{late * 1000:.0f} ms")
    return ", ".join(parts)


def _spawned(control: Control) -> list[Row]:
    """The same through the command line, each verb a process of its own."""
    plays = {}
    kinds = [*_kinds(3, (0.0, 0.05, 0.5)), *(Kind(2.0, prints, 0) for prints in (False, True))]
    for name in ("bash", "python3"):
        plays[name] = [_play(control, name, verb, kinds) for verb in (_spawned_wait, _spawned_ask)]
    turns = [turn for found in plays.values() for one in found for turn in one]
    early = sum(turn.early for turn in turns)
    missed = sum(bool(turn.wrong) for turn in turns) - early
    told = []
    for name, found in plays.items():
        for verb, one in zip(("`send`, `wait`", "`ask`"), found, strict=True):
            middle, late = _spread(one)
            told.append(f"{name} {verb} {middle * 1000:.0f} ms, {late * 1000:.0f} ms")
    what = "turns of bash and python3 through the command line: ended too early, missed; median and p95"
    measured = f"{early}, {missed} of {len(turns)}; {', '.join(told)}"
    detail = "\n".join(turn.wrong for turn in turns if turn.wrong)
    return [Row(what, "0, 0", measured, not early and not missed, detail)]
