"""What a worker does to its two sessions on a machine, by the library or by commands, and what it is told."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from tmuxctl.control import Control
from tmuxctl.errors import Exited, NotFound, Timeout, TmuxctlError, Unreachable, from_json
from tmuxctl.value import told_values
from tools.chaos.judge import MARGIN
from tools.chaos.schedule import Action
from tools.chaos.sites import Machine

Write = Callable[..., None]

SEND_SECONDS, TURN_SECONDS, WAIT_SECONDS, SETTLE_SECONDS = 30.0, 15.0, 10.0, 120.0
PATIENCE = 20.0

RECORDER = 'echo $$ >{file}.pid; while IFS= read -r line; do printf "%s\\n" "$line" >>{file}; printf "took %s\\n" "$line"; done'
PRINTER = 'i=0; while :; do i=$((i + 1)); printf "line %s\\n" $i >>{file}; printf "line %s\\n" $i; sleep 0.1; done'


class Untyped(Exception):
    """Something came out that is no error of tmuxctl."""


class Caller:
    """Calls operations by the library, or as commands."""

    def __init__(self, by_command: bool) -> None:
        self.control = None if by_command else Control(resident=True)

    def __call__(self, operation: str, *words: str, seconds: float = SEND_SECONDS, **options: Any) -> Any:
        """What the operation says: an object as --json prints it, or an error. `words` are its arguments."""
        if self.control is None:
            with self.start(operation, *words, **options) as process:
                try:
                    output, errors = process.communicate(timeout=seconds + MARGIN)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise Untyped("hang") from None
            return read_result(process.returncode, output, errors)
        made = getattr(self.control, operation)
        arguments: list[Any] = list(words)
        if operation == "new":
            arguments = [words[0], words[1:]]
        elif operation in ("kill", "restore"):
            arguments = [words]
        elif operation == "exec":
            arguments = [words[0], words[1:]]
        elif operation in ("send", "ask"):
            arguments = [words[0], words[1].encode()]
        elif operation == "batch":
            arguments = [words[0], json.loads(words[1])]
        return as_objects(made(*arguments, **options))

    def start(self, operation: str, *words: str, **options: Any) -> subprocess.Popen[str]:
        """The command, running."""
        given = [f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()]
        between = ["--"] if operation in ("new", "exec") else []
        argv = [sys.executable, "-m", "tmuxctl", "--json", operation, *given, *words[:1], *between, *words[1:]]
        pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(argv, **pipes)

    def close(self) -> None:
        if self.control is not None:
            self.control.close()


def as_objects(value: Any) -> Any:
    """What the library returned, as --json prints it."""
    if (told := told_values(value)) is not None:
        return {name: as_objects(one) for name, one in told.items()}
    if isinstance(value, (tuple, list)):
        return [as_objects(one) for one in value]
    return value.value if isinstance(value, Enum) else value


def read_result(status: int, output: str, errors: str) -> Any:
    """What a command with --json said, also of steps of which one failed; raises its error, and Untyped where it said none."""
    if "Traceback" in errors:
        raise Untyped(errors[-2000:])
    try:
        if status == 0 or '"ok":false' in output.partition("[")[0]:
            return json.loads(output)
        text = next(one for one in reversed([*output.splitlines(), *errors.splitlines()]) if one.startswith("{"))
        error = json.loads(text)["error"]
    except (ValueError, KeyError, StopIteration):
        raise Untyped(f"status {status}: {output[-500:]} {errors[-500:]}") from None
    raise from_json(error)


class Worker:
    """Carries its actions out, one behind the other, and writes down what it is told."""

    def __init__(self, name: str, machine: Machine, records: Path, seed: int, write: Write) -> None:
        self.name, self.machine, self.records, self.write = name, machine, records, write
        self.caller = Caller(name.endswith("command"))
        self.input, self.shell = f"{machine.prefix}{name}-in", f"{machine.prefix}{name}-sh"
        self.files = {self.input: records / name, self.shell: records / f"{name}-sh"}
        self.under_way: tuple[Action, float] | None = None
        self._random = random.Random(f"{name} kills {seed}")

    def begin(self) -> None:
        """Make its sessions."""
        for session in self.files:
            self.caller("new", session, *self.command_of(session))

    def command_of(self, session: str) -> tuple[str, ...]:
        return ("sh", "-c", RECORDER.format(file=self.files[session])) if session == self.input else ("sh",)

    def run(self, actions: list[Action], began: float, over: threading.Event) -> None:
        """Do them at their times."""
        for action in actions:
            if over.wait(max(0.0, began + action.at - time.monotonic())):
                return
            self.under_way = action, time.monotonic()
            timeout = {"ask": TURN_SECONDS, "exec": TURN_SECONDS, "wait": WAIT_SECONDS}.get(action.kind, SEND_SECONDS)
            outcome, said = self._outcome(partial(getattr(self, f"_{action.kind}"), action.number))
            seconds = time.monotonic() - self.under_way[1]
            if action.kind in ("interrupted_send", "cycle", "send") and outcome != "hang":
                # several calls: each is timed by itself
                timeout = max(timeout, SETTLE_SECONDS)
            self._note(action.kind, action.number, outcome, said, seconds, timeout, began)
            self.under_way = None
            if outcome in ("died", "gone"):
                self._renew(action.number, began, over)

    def _note(
        self, kind: str, number: int, outcome: str, said: str, seconds: float, timeout: float, began: float
    ) -> None:
        at = round(time.monotonic() - began - seconds, 2)
        told = {"worker": self.name, "kind": kind, "number": number, "outcome": outcome, "said": said[:500]}
        self.write("action", **told, at=at, seconds=round(seconds, 2), timeout=timeout)

    def _outcome(self, call: Callable[[], str]) -> tuple[str, str]:
        """How a call ended, and what it said."""
        try:
            return call() or "done", ""
        except Untyped as error:
            return ("hang" if str(error) == "hang" else "untyped"), str(error)
        except TmuxctlError as error:
            said = f"{error.code} {error.reason}: {error.message}"
            if isinstance(error, NotFound) and error.reason == "no_session":
                return "wrong", said
            return ("died" if is_death(error) else "refused"), said
        except Exception as error:
            return "untyped", repr(error)

    def _renew(self, number: int, began: float, over: threading.Event) -> None:
        """Bring its sessions back."""
        started = time.monotonic()
        said = ""
        while time.monotonic() < started + SETTLE_SECONDS:
            try:
                for session in self.files:
                    try:
                        state = self.caller("show", session)["state"]
                    except TmuxctlError as error:
                        if not is_death(error):
                            raise
                        state = "lost"
                    state = state if isinstance(state, str) else state["state"]
                    if state == "lost":
                        done = self.caller("restore", session)
                        if not done["ok"]:
                            said = str(done["sessions"])
                            break
                    elif state == "exited":
                        self.caller("kill", session)
                        self._start_again(session)
                    else:
                        continue
                    self._tell(session, "", "renewed", "")
                else:
                    self._note("renew", number, "done", said, time.monotonic() - started, SETTLE_SECONDS, began)
                    return
            except TmuxctlError as error:
                said = f"{error.code} {error.reason}: {error.message}"
                if isinstance(error, NotFound):
                    with suppress(TmuxctlError):
                        self._start_again(session)
            except Exception as error:
                self._note("renew", number, "untyped", repr(error), time.monotonic() - started, SETTLE_SECONDS, began)
            time.sleep(0.5)
        self._note("renew", number, "unsettled", said, time.monotonic() - started, SETTLE_SECONDS, began)

    def _start_again(self, session: str) -> None:
        self.caller("new", session, *self.command_of(session))
        self._tell(session, "", "renewed", "")

    def _tell(self, session: str, text: str, outcome: str, said: str) -> None:
        self.write("text", session=session, text=text, outcome=outcome, said=said[:300])

    def _send(self, number: int) -> str:
        return self._settle(f"{self.name} text {number}", f"send{number:08d}", first=True)

    def _interrupted_send(self, number: int) -> str:
        """A command is killed in the middle of it, and asked for again by its id."""
        text, call = f"{self.name} text {number}", f"send{number:08d}"
        with self.caller.start("send", self.input, text, id=call) as process:
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=self._random.uniform(0.0, 1.0))
            process.kill()
        return self._settle(text, call, first=False)

    def _settle(self, text: str, call: str, *, first: bool) -> str:
        """Give a text, and ask again by its id until it is known what became of it."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            try:
                self.caller("send", self.input, text, id=call)
            except TmuxctlError as error:
                said = f"{error.code} {error.reason}: {error.message}"
                if is_death(error) or isinstance(error, NotFound):
                    self._tell(self.input, text, "not_done" if first else "died", said)
                    self._tell(self.input, "", "died", said)
                    raise
                if first and error.reason != "outcome_unknown":
                    self._tell(self.input, text, "not_done", said)
                    raise
                if time.monotonic() > deadline:
                    self._tell(self.input, text, "died", said)
                    return "unsettled"
                first = False
                time.sleep(0.3)
            except Exception:
                self._tell(self.input, text, "died", "untyped")
                raise
            else:
                self._tell(self.input, text, "done", "")
                return "done"

    def _once(self, session: str, text: str, call: Callable[[], Any]) -> Any:
        """Carry out a call that gives a text to the shell, and write down what was told of it."""
        try:
            found = call()
        except TmuxctlError as error:
            said = f"{error.code} {error.reason}: {error.message}"
            known = not isinstance(error, (Timeout, Exited)) and error.reason not in ("outcome_unknown", "lost")
            self._tell(session, text, "not_done" if known else "open", said)
            if is_death(error):
                self._tell(session, "", "died", said)
            raise
        except Exception:
            self._tell(session, text, "open", "untyped")
            raise
        self._tell(session, text, "done", "")
        return found

    def _ask(self, number: int) -> str:
        text = f"ask {number}"
        line = f"echo {text} >>{self.files[self.shell]}; echo {number}-$((40+2))"
        seconds = f"{TURN_SECONDS}s" if self.caller.control is None else TURN_SECONDS
        found = self._once(
            self.shell, text, lambda: self.caller("ask", self.shell, line, seconds=TURN_SECONDS, timeout=seconds)
        )
        answer = found["answer"]
        if answer != f"{number}-42" and not found.get("truncated"):
            raise Untyped(f"the answer is {answer!r}")
        return "done"

    def _exec(self, number: int) -> str:
        text = f"exec {number}"
        line = f"echo {text} >>{self.files[self.shell]}; echo {number}"
        seconds = f"{TURN_SECONDS}s" if self.caller.control is None else TURN_SECONDS
        found = self._once(
            self.shell, text, lambda: self.caller("exec", self.shell, line, seconds=TURN_SECONDS, timeout=seconds)
        )
        if found["output"] != f"{number}\n" and not found.get("truncated"):
            raise Untyped(f"the output is {found['output']!r}")
        return "done"

    def _wait(self, number: int) -> str:
        seconds = f"{WAIT_SECONDS}s" if self.caller.control is None else WAIT_SECONDS
        self.caller("wait", self.shell, seconds=WAIT_SECONDS, timeout=seconds, prompt=True)
        return "done"

    def _batch(self, number: int) -> str:
        texts = [f"{self.name} batch {number} {half}" for half in "ab"]
        steps = json.dumps([{"send": text} for text in texts])
        try:
            found = self.caller("batch", self.input, steps)
        except Exception as error:
            for text in texts:
                self._tell(self.input, text, "open", str(error))
            if isinstance(error, TmuxctlError) and is_death(error):
                self._tell(self.input, "", "died", str(error))
            raise
        for text in texts:
            self._tell(self.input, text, "done" if found["ok"] else "open", "")
        return "done" if found["ok"] else "refused"

    def _cycle(self, number: int) -> str:
        """A session is started and ended: nothing of it goes on."""
        name, file = f"{self.input}-{number}", self.records / f"{self.name}-{number}.cycle"
        self.caller("new", name, "sh", "-c", f"echo $$ >{file}; exec sleep 1000")
        deadline = time.monotonic() + PATIENCE
        while not (file.exists() and file.read_text().strip()):
            if time.monotonic() > deadline:
                return "open"
            time.sleep(0.05)
        self.caller("kill", name)
        if is_living(int(file.read_text())):
            raise Untyped(f"{name} was ended, and its program goes on")
        return "done"

    def _list(self, number: int) -> str:
        found = self.caller("ls", *([self.machine.prefix] if self.machine.prefix else []))
        names = {one["name"].rpartition("/")[2] for one in found["sessions"]}
        missing = {one.rpartition("/")[2] for one in self.files} - names
        if missing and not found["problems"]:
            raise Untyped(f"not listed: {missing}")
        return "done"


def is_death(error: TmuxctlError) -> bool:
    """True if the error says that the session's program, or its tmux server, is over."""
    return isinstance(error, Exited) or (isinstance(error, Unreachable) and error.reason == "lost")


def is_living(pid: int) -> bool:
    """Whether the process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Follower:
    """Reads what a program prints for as long as the run takes; a new session each time that one is over."""

    def __init__(self, name: str, machine: Machine, records: Path, write: Write) -> None:
        self.name, self.machine, self.records, self.write = f"{name}-out", machine, records, write

    def run(self, over: threading.Event) -> None:
        number = 0
        while not over.is_set():
            number += 1
            session, file = f"{self.machine.prefix}{self.name}-{number}", self.records / f"{self.name}-{number}.out"
            try:
                with Control(resident=True) as control:
                    control.new(session, ("sh", "-c", PRINTER.format(file=file)))
                    self._follow(control, session, file, over)
            except TmuxctlError:
                over.wait(1.0)
            except Exception as error:
                told = {"worker": self.name, "kind": "follow", "number": number, "outcome": "untyped"}
                self.write("action", **told, said=repr(error)[:500], at=0.0, seconds=0.0, timeout=0.0)
                over.wait(1.0)

    def _follow(self, control: Control, session: str, file: Path, over: threading.Event) -> None:
        pieces: list[dict[str, Any]] = []
        cursor: str | None = f"{control.show(session).id}:0"
        said = ""
        while not over.is_set():
            try:
                found = control.read(session, follow=True, since=cursor)
                assert isinstance(found, Iterator)
                for piece in found:
                    pieces.append({"text": piece.text, "gap": piece.truncated})
                    cursor = piece.cursor
                    if over.is_set():
                        break
                else:
                    break
            except TmuxctlError as error:
                said = f"{error.code} {error.reason}: {error.message}"
                if is_death(error) or isinstance(error, NotFound):
                    break
                over.wait(0.5)
        joined: list[dict[str, Any]] = []
        for one in pieces:
            if joined and not one["gap"]:
                joined[-1]["text"] += one["text"]
            else:
                joined.append(one)
        printed = file.read_text() if file.exists() else ""
        self.write("stream", session=session, printed=printed, pieces=joined, whole=False, said=said)


def read_taken(file: Path) -> list[str]:
    """What a recorder, or a shell, wrote down."""
    return file.read_text().split("\n")[:-1] if file.exists() else []
