"""`exec` and `run`: a command's exact output and exit status."""

from __future__ import annotations

import base64
import os
import re
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tmuxctl.control.caller_files import read_given_file
from tmuxctl.control.lifecycle.creation import SessionRequest, new, run_seconds
from tmuxctl.control.observation.consumption import input_consumed
from tmuxctl.control.sessions import finding, records
from tmuxctl.errors import Conflict, DecisionNeeded, Exited, Failed, NotFound, Timeout, TmuxctlError, Unreachable, Usage
from tmuxctl.evidence import Kernel
from tmuxctl.model import Confidence, State
from tmuxctl.operations import current
from tmuxctl.reading.text import marks
from tmuxctl.results import Ran
from tmuxctl.terminal.input import paste
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.launch import shells
from tmuxctl.terminal.tmux import layout, lease, options, server
from tmuxctl.terminal.tmux.journal import Journal, JournalSlice
from tmuxctl.terminal.tmux.lease import LeaseHolder
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.transport.base import Process, shell_word
from tmuxctl.transport.probe import WAITING
from tmuxctl.vocabulary import InputKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.control.observation.observing import StabilityTracker

E = TypeVar("E", bound=TmuxctlError)


class Shell(NamedTuple):
    """The shell that has a session's terminal."""

    process: Process
    kind: str


def execute(
    machine: Machine,
    session: str,
    command: tuple[str, ...],
    *,
    timeout: float | None,
    max_bytes: int,
    stdin: str | None = None,
) -> Ran:
    """Run a command in the session's shell. With `stdin` it reads this file in place of the terminal; Conflict `no_stdin`
    if the shell cannot open it."""
    if not command or not any(command):
        raise Usage("no command given", reason="missing", hint="tmuxctl exec NAME -- CMD")
    began = time.monotonic()
    limit = current().left(machine.settings.wait_exec_timeout if timeout is None else timeout)
    deadline = None if limit is None else began + limit
    pane, remembered = finding.find_with_input(machine, session)
    if pane.dead:
        raise paste.ended_error(pane)
    journal = finding.open_journal(machine, pane)
    if not journal.streams:
        raise Conflict(
            f"what is printed in {pane.name} is not kept, so the output of a command could not be returned",
            reason="no_journal",
            hint=f"adopt it, if no other program reads its output: tmuxctl adopt {pane.spec.get('target') or pane.name}",
        )
    # threads of one process are as many writers
    holder = machine.new_holder()
    _lease(machine, pane, holder, deadline)
    given = None
    try:
        shell = _ready(machine, pane, journal, deadline, LastInput.parse(remembered))
        # a shell that was still starting may have taken the lease's time
        _lease(machine, pane, holder, deadline)
        if stdin is not None and machine.address:
            stdin = given = _bring_input(machine, pane, stdin)
        elif stdin is not None:
            _check_input(machine, pane, shell, stdin)
        text = command[0] if len(command) == 1 else " ".join(_quoted(shell.kind, word) for word in command)
        run = _Run(machine, pane, journal, shell, holder, began, max_bytes, stdin)
        run.type(text)
        run.follow(deadline, until_begun=True)
        run.hand_over()
    except BaseException:
        _remove_input(machine, given)
        raise
    finally:
        with suppress(TmuxctlError):
            lease.release_lease(machine.io, holder, pane.name)
    try:
        return run.follow(deadline)
    finally:
        _remove_input(machine, given)


SEES = """
[ -r "$2" ] || exit
[ -e "/proc/$1/root" ] || exit 0
user=$(stat -c %u "/proc/$1") || exit
[ "$user" = 0 ] || [ "$user" = "$(id -u)" ] || exit
[ "$(stat -Lc %d:%i -- "$2")" = "$(stat -Lc %d:%i -- "/proc/$1/root$2")" ]
"""
"""Whether process $1 finds behind the path $2 what we find there, and may read it: in a sandbox it may be another file."""


def _bring_input(machine: Machine, pane: Pane, file: str) -> str:
    """Put the standard input for a command where a session of another machine can read it; the path of it there. Usage
    `too_large` for more than one write may have."""
    data = read_given_file(file)
    if len(data) > paste.SIZE_LIMIT:
        hint = "copy the file there first, and name it in the command"
        raise Usage(f"the standard input has more than {paste.SIZE_LIMIT >> 20} MiB", reason="too_large", hint=hint)
    path = f"{records.session_folder(machine, pane.id)}/{layout.SHELL}/stdin-{os.urandom(6).hex()}"
    machine.transport.put(path, data)
    return path


def _remove_input(machine: Machine, path: str | None) -> None:
    """Remove what was brought; a command that goes on has it open."""
    if path is not None:
        with suppress(TmuxctlError):
            machine.transport.remove(path)


def _check_input(machine: Machine, pane: Pane, shell: Shell, path: str) -> None:
    status, _ = machine.transport.shell(SEES, str(shell.process.pid), path)[:2]
    if status:
        raise Conflict(
            f"the shell in {pane.name} cannot open {ascii(path)}, the standard input for the command: "
            "the shell belongs to another user, or is in a sandbox",
            reason="no_stdin",
            hint="pass a file that it can read: --stdin FILE; or let the command read the terminal: --stdin /dev/tty",
        )


def _quoted(kind: str, word: str) -> str:
    if re.fullmatch(r"[\w@%+=:,./-]+", word, re.ASCII):
        return word
    return shells.fish_quote(word) if kind == "fish" else shell_word(word)


def _lease(machine: Machine, pane: Pane, holder: LeaseHolder, deadline: float | None) -> None:
    while not lease.take_lease(machine.io, holder, pane):
        current().check()
        if deadline is not None and time.monotonic() > deadline:
            raise lease.leased_error(pane.name)
        time.sleep(0.03)
        pane = finding.find_session(machine, pane.name)


def _ready(
    machine: Machine, pane: Pane, journal: Journal, deadline: float | None, last_input: LastInput | None
) -> Shell:
    """The shell that waits at its prompt; one that is just starting, or was given something just now, is given a moment, anything
    else is a conflict."""
    token = pane.spec.get("marks", "")
    began = time.monotonic()
    timing = machine.timing.command
    until = began + timing.ready_seconds
    if deadline is not None:
        until = min(until, deadline)
    with closing(machine.transport.watch([journal.folder], pane.pid)) as watch:
        while True:
            shell, running = _foreground(machine, pane)
            starting = False
            if shell and not has_read_input(machine, pane, journal, last_input):
                # still at its prompt, as nothing of a command has reached it yet
                pass
            elif shell and shell.process.pid == pane.pid and token:
                letter, entered = _last_mark(journal, token)
                starting = letter is None
                # B ends the prompt; a prompt may leave it out, then a moment without it says the same
                drawn = letter == "B" or (letter in ("A", "D") and time.monotonic() > began + timing.prompt_seconds)
                if drawn and _waits(machine, shell.process):
                    if entered:
                        _refuse_read(machine, pane)
                    return shell
            elif shell and _waits(machine, shell.process):
                _refuse_read(machine, pane)
                return shell
            if time.monotonic() > until or (not shell and not _young(machine, pane)):
                raise _busy(pane, f"a command of {running}" if shell else ascii(running), starting)
            current().check()
            watch.wait(0.02)
            if journal.finished():
                raise paste.ended_error(server.read_pane(machine.io, pane.name))


def has_read_input(machine: Machine, pane: Pane, journal: Journal, last_input: LastInput | None) -> bool:
    """Whether the program has read the last input, as far as can be told: tmux confirms keys before it writes them to the terminal,
    and a loaded machine may let the shell read them seconds later. `pane` and the input were asked of tmux after it confirmed."""
    if last_input is None:
        return True
    end, tty = journal.extent().end, machine.transport.tty(pane.tty)
    consumed = input_consumed(last_input, end, Kernel(tty, 0, ()) if tty else None, delivered=True)
    if consumed is None:
        return machine.transport.clock() - last_input.at > machine.timing.observation.unconfirmed_seconds
    return consumed


def _refuse_read(machine: Machine, pane: Pane) -> None:
    """A shell may wait for a line of its script's, or for the rest of a command that was begun, and would take what runs
    ours for that. DecisionNeeded or Conflict unless it shows a prompt."""
    from tmuxctl.control.observation import observing
    from tmuxctl.control.waiting.waits import asks

    verdict = observing.observe(machine, pane).verdict
    if verdict.state is State.ASKING:
        raise asks(pane.name, verdict)
    if verdict.state is State.IDLE and verdict.kind is not InputKind.PROMPT:
        awaited = "the rest of a command" if verdict.kind is InputKind.CONTINUATION else "a line of input"
        raise Conflict(
            f"the shell in {pane.name} shows no prompt: it may wait for {awaited} ({verdict.why})",
            reason="busy",
            hint=f"look at it: tmuxctl screen {pane.name}; to type into it: tmuxctl send {pane.name} TEXT; "
            f"to discard the input: tmuxctl keys {pane.name} C-c",
        )


def _young(machine: Machine, pane: Pane) -> bool:
    """True while the launcher is still becoming the program."""
    return (
        layout.LAUNCHER in machine.transport.files(records.session_folder(machine, pane.id))
        or machine.clock.wall() - pane.created < 1.0
    )


def _foreground(machine: Machine, pane: Pane) -> tuple[Shell | None, str]:
    """The shell that leads the terminal's foreground process group, or None and what does instead."""
    first = next(iter(machine.transport.processes([pane.pid])), None)
    if first is None:
        return None, "nothing"
    leader = next(iter(machine.transport.processes([first.foreground])), None)
    if leader is None:
        return None, "a program that is ending"
    kind = shells.find_shell_kind(leader.name)
    if leader.name == "sh":
        # bash called as sh needs bash's own way to notice an interrupt
        program = (
            machine.transport.shell('readlink "/proc/$1/exe"', str(leader.pid))[1].decode(errors="replace").strip()
        )
        kind = shells.find_shell_kind(program) or kind
    return (Shell(leader, kind) if kind else None), leader.name


def _waits(machine: Machine, process: Process) -> bool:
    """True if the process sleeps and, where the kernel tells, sleeps on input."""
    if process.state != "S":
        return False
    try:
        where = machine.transport.read(f"/proc/{process.pid}/wchan")
    except TmuxctlError:
        return True
    return where in (b"", b"0") or where.startswith(WAITING)


def _last_mark(journal: Journal, token: str) -> tuple[str | None, bool]:
    """The letter of the shell's newest mark, and whether a line was ended behind it: a command may have been begun that wants
    more lines."""
    data = journal.tail(1 << 16).data
    found = marks.find_marks(data, token)
    return (found[-1].letter, b"\n" in data[found[-1].end :]) if found else (None, False)


def _busy(pane: Pane, running: str, starting: bool) -> Conflict:
    if starting:
        return Conflict(
            f"the shell in {pane.name} has not shown its prompt yet", reason="busy", hint="try again in a moment"
        )
    return Conflict(
        f"exec needs a shell at its prompt, but {running} has the terminal of {pane.name}",
        reason="busy",
        hint=f"end it: tmuxctl keys {pane.name} C-c, or C-d; to type into it: tmuxctl send {pane.name} TEXT",
    )


class _Wants:
    """Notices what nobody would notice who waits for the end: that the program wants an answer."""

    def __init__(self, machine: Machine, pane: Pane, patience: float = 0.0) -> None:
        self.machine, self.pane, self.patience = machine, pane, patience
        self.steady: StabilityTracker | None = None
        self.since: float | None = None

    def due(self) -> float:
        """Seconds until the next look, if nothing is heard before."""
        if self.steady and self.steady.observer.looks:
            return self.steady.seconds_until_due()
        return self.machine.timing.command.silent_seconds

    def heard(self) -> None:
        """It printed something: it is silent anew from now on."""
        self.steady = self.since = None

    def look(self) -> DecisionNeeded | None:
        """Look once; the question, if one stands, and has for as long as patience is."""
        from tmuxctl.control.observation.observer import Observer
        from tmuxctl.control.observation.observing import StabilityTracker

        self.steady = self.steady or StabilityTracker(self.machine, Observer(self.machine, self.pane), None)
        held = False
        with suppress(NotFound, Unreachable):
            held = self.steady.observe()
        found = _wanted(self.steady) if held else None
        self.since = (self.since or time.monotonic()) if found else None
        return found if self.since is not None and time.monotonic() - self.since >= self.patience else None


def _wanted(steady: StabilityTracker) -> DecisionNeeded | None:
    """The error for a program that asks, or is blocked until it is given a line."""
    from tmuxctl.control.waiting.waits import asks

    name, verdict = steady.observer.pane.name, steady.verdict
    if verdict.state is State.ASKING and verdict.confidence is not Confidence.GUESS:
        return asks(name, verdict)
    if verdict.state is State.IDLE and verdict.kind is InputKind.LINE and verdict.confidence is Confidence.SURE:
        said = f": {verdict.prompt}" if verdict.prompt else ""
        return DecisionNeeded(
            f"{name} waits for a line of input{said}", reason="line", hint=f"type it: tmuxctl send {name} TEXT"
        )
    return None


class _Run:
    """One command on its way: typed, begun, ended."""

    def __init__(
        self,
        machine: Machine,
        pane: Pane,
        journal: Journal,
        shell: Shell,
        holder: LeaseHolder,
        began: float,
        max_bytes: int,
        stdin: str | None,
    ) -> None:
        self.machine, self.pane, self.journal, self.shell, self.began = machine, pane, journal, shell, began
        self.holder, self.stdin = holder, stdin
        self.max_bytes = max_bytes
        self.id, self.token = os.urandom(8).hex(), os.urandom(8).hex()
        # a plain sh writes beside its script, and of our files a sandboxed one may write only there
        place = "events" if shell.kind == "sh" else layout.SHELL
        self.path = f"{records.session_folder(machine, pane.id)}/{place}/x{self.token}"
        self.own = pane.spec.get("marks", "")
        self.start = self.first = self.offset = journal.end()
        self.tail = b""
        self.kept = bytearray()
        self.begun = self.truncated = False
        self.result: Ran | None = None

    def type(self, text: str) -> None:
        """Put the command into a file and type the line that reads it."""
        self.pane = server.read_pane(self.machine.io, self.pane.name)
        line = shells.format_typed_line(self.shell.kind, self.path)
        # a line that just fills its row leaves terminal and line editor of two minds about where the next one is
        line += " " * max(0, 4 - (self.pane.x + len(line)) % self.pane.cols)
        show = shells.show_command_instead(line, text, x=self.pane.x, cols=self.pane.cols)
        script = shells.exec_script(self.shell.kind, text, self.token, self.path, show, self.stdin)
        # a session that an earlier tmuxctl started has no such folder
        self.machine.transport.make_folder(os.path.dirname(self.path))
        self.machine.transport.put(self.path, script.encode(errors="surrogateescape"))
        # to the end of the line and delete it: what somebody left there would become part of ours (measured: all shells)
        one = paste.Write(self.id, data=b"\x05\x15" + line.encode(), enter=True)
        remember = paste.LastInput.remember(
            self.holder.pid, self.id, self.start, "editor", line.encode(), self.machine.transport.clock()
        )
        paste.carry_out(self.machine.io, self.holder, self.pane, one, remember)

    def hand_over(self) -> None:
        """The command has begun: others may type again, and its output is what came after the last input."""
        remember = paste.LastInput.remember(
            self.holder.pid, self.id, self.first, "none", b"", self.machine.transport.clock()
        )
        self.machine.io.change(self.pane.name, {options.INPUT: remember})

    def follow(self, deadline: float | None, *, until_begun: bool = False) -> Ran:
        """Take in output until the command's end, or only its beginning. Raises DecisionNeeded if it wants an answer, and
        Unreachable `outcome_unknown` where the end cannot be seen any more."""
        if self.result:
            return self.result
        begin_by = time.monotonic() + self.machine.timing.command.start_seconds
        wants = _Wants(self.machine, self.pane)
        with closing(self.machine.transport.watch([self.journal.folder], self.pane.pid)) as watch:
            while True:
                extent = self.journal.extent()
                grown = self._grow()
                if found := self._outcome(until_begun, grown=grown, finished=extent.finished):
                    return found
                if extent.stopped and not grown:
                    raise self._with_output(self._unseen())
                current().check()
                now = time.monotonic()
                if deadline is not None and now >= deadline:
                    return self._ran(None, timed_out=True)
                if not self.begun and now >= begin_by:
                    raise self._not_begun()
                left = [max(0.001, deadline - now)] if deadline is not None else []
                if watch.wait(min(self.machine.timing.command.silent_seconds, wants.due(), *left)):
                    wants.heard()
                elif self.begun and not until_begun and (asking := wants.look()) and not self._grow():
                    raise self._with_output(asking)

    def _outcome(self, until_begun: bool, *, grown: bool, finished: bool) -> Ran | None:
        """The result once there is one, or the command's shell or session has ended; None while it goes on."""
        if self.result or (until_begun and self.begun):
            return self.result or self._ran(None)
        if grown:
            return None
        if finished:
            return self._session_ended()
        return self._shell_ended() if self.begun and not self._shell_lives() else None

    def _unseen(self) -> Unreachable:
        """The error for a command whose output is not kept any more: it may go on."""
        stopped = finding.journal_stopped_error(self.pane)
        return Unreachable(
            f"{stopped.message}, so how the command ends is not known",
            reason="outcome_unknown",
            hint=f"look at it: tmuxctl screen {self.pane.name}; is its disk full? df -h ~",
        )

    def _with_output(self, error: E) -> E:
        """The error with what was printed so far, a question last."""
        self._keep(self.tail)
        so_far = self._ran(None)
        error.details |= {"output": so_far.data.decode(errors="replace"), "cursor": so_far.cursor}
        return error

    def _grow(self) -> bool:
        part = self.journal.read(self.offset, 1 << 20)
        if part.truncated:
            self.truncated = True
        if not part.data:
            return False
        self.offset = part.end
        self._take(self.tail + part.data)
        return True

    def _take(self, data: bytes) -> None:
        """Find our marks in new bytes; what lies between them is output. A mark cut at the end waits for the rest."""
        found = marks.scan_marks(data)
        at = 0
        for mark in found.marks:
            if mark.token == self.token and mark.letter == "C":
                self.begun, at = True, mark.end
                self.first = self.offset - len(data) + at
                self.kept.clear()
            elif mark.token == self.token and mark.letter == "D" and self.begun:
                self._keep(data[at : mark.start])
                self.result = self._ran(mark.status)
                return
            elif self.own and mark.token == self.own and self.begun and mark.letter == "D":
                # the prompt is back without our end: the command was interrupted
                self._keep(data[at : mark.start])
                self.result = self._ran(130 if mark.status is None else mark.status)
                return
        self.tail = data[found.resume :]
        if self.begun:
            self._keep(data[at : found.resume])

    def _keep(self, data: bytes) -> None:
        # one more CR than asked for may be waiting for its LF
        room = self.max_bytes * 2 + 2 - len(self.kept)
        if len(data) > room:
            self.truncated = True
        self.kept += data[: max(0, room)]

    def _ran(self, status: int | None, *, signal: str | None = None, timed_out: bool = False) -> Ran:
        data = marks.undo_newlines(bytes(self.kept))
        cut = len(data) > self.max_bytes
        return ran(
            self.pane,
            data[: self.max_bytes],
            status,
            offset=self.offset,
            elapsed=time.monotonic() - self.began,
            truncated=self.truncated or cut,
            timed_out=timed_out,
            signal=signal,
        )

    def _shell_lives(self) -> bool:
        now = self.machine.transport.processes([self.shell.process.pid])
        return any(row.started == self.shell.process.started and row.state not in "ZX" for row in now)

    def _session_ended(self) -> Ran:
        """The command ended the shell, and the session with it: the program's status is the command's."""
        self._keep(self.tail)
        if not self.begun:
            raise paste.ended_error(server.read_pane(self.machine.io, self.pane.name))
        try:
            last = server.read_pane(self.machine.io, self.pane.name)
        except (NotFound, Unreachable) as error:
            if not finding.says_gone(error):
                raise
            raise Exited(f"{self.pane.name} was killed while the command ran", reason="killed") from None
        return self._ran(last.status, signal=last.signal)

    def _shell_ended(self) -> Ran:
        """The shell is gone. If it was the session's program, its end comes with the journal's; else nobody knows its status."""
        if self.shell.process.pid != self.pane.pid:
            return self._ran(None)
        until = time.monotonic() + 5.0
        while not self.journal.finished() and time.monotonic() < until:
            # tmux may not have noticed the end: asking it of a dead pane without a status nudges it
            with suppress(TmuxctlError):
                server.read_pane(self.machine.io, self.pane.name)
            time.sleep(0.01)
        while self._grow():
            pass
        return self.result or self._session_ended()

    def _not_begun(self) -> TmuxctlError:
        with suppress(TmuxctlError):
            self.machine.transport.remove(self.path)
        return Failed(
            f"the shell in {self.pane.name} did not take the command",
            reason="not_run",
            hint=f"look at what it shows: tmuxctl screen {self.pane.name}",
        )


def ran(
    pane: Pane,
    data: bytes,
    status: int | None,
    *,
    offset: int,
    elapsed: float,
    truncated: bool,
    timed_out: bool = False,
    signal: str | None = None,
) -> Ran:
    """A command's result, its bytes as text too, and as base64 where they are no text."""
    try:
        # who takes the bytes alone is spared the text of random ones, which takes four times as much
        text, encoded = "" if current().pieces == "data" else data.decode(), None
    except UnicodeDecodeError:
        text, encoded = data.decode(errors="replace"), base64.b64encode(data).decode()
    return Ran(
        session=pane.name,
        output=text,
        data=data,
        output_base64=encoded,
        exit_status=status,
        signal=signal,
        elapsed=round(elapsed, 3),
        cursor=finding.cursor_at(pane, offset),
        truncated=truncated,
        timed_out=timed_out,
    )


def run(machine: Machine, wanted: SessionRequest, *, timeout: float | None, max_bytes: int) -> Ran:
    """Start a program, wait for its end, return its output, remove the session whatever happens."""
    from tmuxctl.control.lifecycle import ending

    if not wanted.command:
        raise Usage("no command given", reason="missing", hint="tmuxctl run -- CMD")
    began = time.monotonic()
    if timeout is None:
        timeout = run_seconds(wanted)
    if wanted.name is None:
        wanted = wanted._replace(name=f"run-{os.urandom(4).hex()}")
    session = new(machine, wanted)
    pane = None
    try:
        pane = finding.find_session(machine, session.id)
        return _to_end(machine, pane, began, timeout, max_bytes)
    finally:
        with suppress(NotFound, Unreachable, Timeout):
            ending.end_sessions(machine, [pane or finding.find_session(machine, session.id)])


def _to_end(machine: Machine, pane: Pane, began: float, timeout: float | None, max_bytes: int) -> Ran:
    limit = current().left(timeout)
    journal = finding.open_journal(machine, pane)
    wants = _Wants(machine, pane, machine.timing.command.answer_seconds)
    timed_out = False
    with closing(machine.transport.watch([journal.folder], pane.pid or None)) as watch:
        while not journal.finished():
            current().check()
            left = 1.0 if limit is None else began + limit - time.monotonic()
            if left <= 0:
                timed_out = True
                break
            if watch.wait(min(1.0, left, wants.due())):
                wants.heard()
            else:
                pane = server.read_pane(machine.io, pane.name)
                if pane.dead and not pane.piped:
                    break
                if not pane.dead and (asking := wants.look()):
                    raise _unanswered(asking, journal, max_bytes)
    pane = server.read_pane(machine.io, pane.name)
    part, extent = _first(journal, max_bytes), journal.extent()
    data = marks.undo_newlines(part.data)
    return ran(
        pane,
        data[:max_bytes],
        pane.status if not timed_out else None,
        signal=pane.signal,
        offset=extent.end,
        elapsed=time.monotonic() - began,
        truncated=part.truncated or len(data) > max_bytes or part.end < extent.end or extent.stopped,
        timed_out=timed_out,
    )


def _first(journal: Journal, max_bytes: int) -> JournalSlice:
    """As much of the beginning as makes so many bytes of output for sure: of two bytes of a line's end one is left."""
    return journal.read(0, 2 * max_bytes + 2)


def _unanswered(asking: DecisionNeeded, journal: Journal, max_bytes: int) -> DecisionNeeded:
    """The error for a program that asked where nobody answers: it is ended."""
    output = marks.undo_newlines(_first(journal, max_bytes).data)[:max_bytes].decode(errors="replace")
    return DecisionNeeded(
        f"{asking.message} (there was no answer, so it was ended)",
        reason=asking.reason,
        hint="run a program that asks in a session: tmuxctl new NAME -- CMD, then tmuxctl decide NAME",
        **asking.details,
        output=output,
    )
