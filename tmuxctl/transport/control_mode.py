"""Runs tmux command lists over one control-mode client that stays: a tenth of a millisecond, not a process, each.

tmux(1), CONTROL MODE: each command answers with a block between `%begin TIME NUMBER FLAGS` and the same words after
`%end` or `%error`; other lines beginning with % are notifications. The client sits in a hidden session of its own.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache

from tmuxctl.errors import NotFound, Unreachable
from tmuxctl.transport.base import (
    Command,
    Guard,
    error_of_complaint,
    format_control_line,
    quote_argument,
    timeout_error,
)
from tmuxctl.transport.keeper import ClientKeeper

SESSION = "_tmuxctl"
BUFFER_LIMIT = 16 * 1024
"""In bytes: tmux 3.3a reads `set-buffer` at 0.2 ms a KB and does nothing else meanwhile; above this, a spawned
`load-buffer` is quicker (measured: even at 16 to 32 KB)."""
CHUNK = 8 * 1024
READ = 16 * 1024
"""More than most answers, and little enough that room for it costs nothing (measured: 256 KB took 20 us each time)."""

# Not `new-session -A`: a session that is made tells the other control clients, which must not be opening then (local.py).
ATTACH = ("attach-session", "-E", "-t", f"={SESSION}", "-f", "no-output,ignore-size")

# `cat -` in two words is executed without a shell; it sleeps on its terminal with 0.1 MB of its own.
MAKE = ("new-session", "-d", "-s", SESSION, "-x", "80", "-y", "24", "cat", "-")

GUARD_LENGTH = 64
"""Bytes that the rest of a `%begin`, `%end` or `%error` line takes at most."""

NEEDS_CLIENT = re.compile(
    r"attach(-session)?|detach(-client)?|kill-server|load(b|-buffer)|new(-session)?|run(-shell)?|save(b|-buffer)"
    r"|show(b|-buffer)|source(-file)?|start(-server)?|suspend(c|-client)|switch(c|-client)|wait(-for)?"
)
"""Commands that mean the client itself, wait for others, or print otherwise to a control client than to a spawned one."""

SILENT = frozenset(("set-option", "set-buffer", "paste-buffer", "delete-buffer", "send-keys", "resize-window"))
"""Commands that print nothing a program chose, so that their blocks need no telling apart; a Guard is another."""

FREED, RAW = (3, 6), (3, 4)
"""Before tmux 3.6 what `capture-pane -p` prints to a control client is never freed (cmd-capture-pane.c): there it goes
through a paste buffer. `show-buffer` prints that as it is since 3.4, before escaped as by vis(3)."""

# `~` is a home folder to tmux even behind an opening quote (measured on 3.3a)
UNSAFE = re.compile(rb"[^ !#%-\[\]-}]")


class NeedsSpawn(Exception):
    """This list cannot go over the channel and nothing of it was sent: spawn tmux instead."""


class ControlChannel:
    """One control-mode client on the server of `socket`; opening it raises Unreachable when there is none.

    Once `closed` (by `close`, by the watchdog, or because tmux ended the client) it stays so: open another.
    """

    def __init__(self, socket: str, *, tmux: str = "tmux", timeout: float = 8.0, held: int | None = None) -> None:
        """`held` is the descriptor of the lock under which it opens: with it, another process looks after the client if this
        one is killed."""
        self._lock, self._held = threading.Lock(), held
        try:
            self._open(socket, tmux, timeout)
        except NotFound:
            # another process may make it at the same moment: attaching again tells
            with suppress(subprocess.TimeoutExpired):
                subprocess.run([tmux, "-N", "-L", socket, *MAKE], capture_output=True, timeout=timeout, check=False)
            self._open(socket, tmux, timeout)
        self._captures = CaptureMethod(FREED)
        version = self.run([("display-message", "-p", "#{version}")], timeout=timeout)
        if found := re.search(rb"(\d+)\.(\d+)", version):
            self._captures = CaptureMethod((int(found[1]), int(found[2])))

    @property
    def tells_of_buffers(self) -> bool:
        """True if tmux tells every control client of each paste buffer that comes or goes."""
        return self._captures.told

    @property
    def fills_buffers(self) -> bool:
        """True if a capture fills a paste buffer here of which tmux tells every control client."""
        return self._captures.tells

    def _open(self, socket: str, tmux: str, timeout: float) -> None:
        self.closed = False
        self._received = bytearray()
        environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
        self._keeper = None
        (stdin, self._input), (self._output, stdout), (self._errors, stderr) = (os.pipe() for _ in range(3))
        try:
            if self._held is not None:
                # before there is a client: we may be killed at any time
                self._keeper = ClientKeeper(self._held, self._input, self._output)
            self._client = subprocess.Popen(
                [tmux, "-u", "-N", "-L", socket, "-C", *ATTACH],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
                env={**environment, "LC_ALL": "C.UTF-8"},
            )
        except BaseException as error:
            self._let_go()
            if isinstance(error, FileNotFoundError):
                raise Unreachable("tmux is not installed", reason="no_tmux", hint="install tmux 3.2 or later") from None
            raise
        finally:
            for end in (stdin, stdout, stderr):
                os.close(end)
        self.pid = self._client.pid
        for pipe in (self._input, self._output, self._errors):
            os.set_blocking(pipe, False)
        self._readable, self._both = select.poll(), select.poll()
        self._readable.register(self._output, select.POLLIN)
        self._both.register(self._output, select.POLLIN)
        self._both.register(self._input, select.POLLOUT)
        self._wait_until_attached(timeout)

    def _wait_until_attached(self, timeout: float) -> None:
        """Wait until the client is attached, or raise what tmux said instead."""
        deadline = time.monotonic() + timeout
        try:
            # what is sent earlier may be carried out before the client has its session
            while b"\n%session-changed " not in self._received:
                self._receive(memoryview(b""), deadline, timeout)
        except BaseException as error:
            self._end_client()
            if isinstance(error, Unreachable) and error.reason == "no_server":
                raise error_of_complaint(self._last_words) from None
            raise

    def run(
        self, commands: Sequence[Command], *, buffer: tuple[str, bytes] | None = None, timeout: float = 8.0
    ) -> bytes:
        """Run one list and return what it printed, as `Transport.run` does; `timeout` in seconds.

        Raises NeedsSpawn before anything was sent, what `error_of_complaint` makes of tmux's complaint, Unreachable
        `backend_timeout` when tmux did not answer in time and `no_server` when the client ended meanwhile.
        """
        deadline = time.monotonic() + timeout
        if True in map(_needs_client, [command[0] for command in commands]):
            raise NeedsSpawn(f"{commands[0][0]} needs a client of its own")
        mark, last = os.urandom(8).hex(), os.urandom(8).hex()
        request, parts = _build_request(commands, buffer, mark, last, self._captures)
        if not self._lock.acquire(timeout=timeout):
            raise timeout_error(timeout)
        try:
            self._drop_notifications()
            answer = self._exchange(request, last.encode(), deadline, timeout)
        except BaseException:
            # an answer that was not read to its end would be taken for the next one's
            self._end_client()
            raise
        finally:
            self._lock.release()
        return _read_answer(answer, mark.encode(), parts)

    def close(self) -> None:
        """End the client; sessions go on. May be called twice, and while a call is in flight (which then fails)."""
        with suppress(ProcessLookupError):
            self._client.kill()
        with self._lock:
            self._end_client()

    def _drop_notifications(self) -> None:
        """Drop notifications that came since the last call; NeedsSpawn if the client has ended."""
        self._received.clear()
        try:
            while not self.closed and os.read(self._output, READ):
                pass
        except BlockingIOError:
            return
        raise NeedsSpawn("the control client has ended")

    def _exchange(self, request: bytes, last: bytes, deadline: float, timeout: float) -> bytes:
        """Send `request`, collect the answer up to the block that holds `last`, and return it without that block. An error
        ends a list before that: then another line asks for the end, whether it was one or a screen that shows such a line."""
        received, searched, asked, word = self._received, 0, False, last
        unsent = self._write(memoryview(request))
        while True:
            unsent = self._receive(unsent, deadline, timeout)
            if _find_block(received, word, searched) >= 0:
                end = _find_block(received, last)
                return bytes(received[: end if end >= 0 else _find_block(received, word)])
            if not asked and received.find(b"\n%error ", max(0, searched - len(b"\n%error "))) >= 0:
                asked, word = True, last + b"."
                unsent = self._write(memoryview(bytes(unsent) + _format_mark(word)))
            searched = len(received)

    def _receive(self, unsent: memoryview, deadline: float, timeout: float) -> memoryview:
        """Wait for some of the answer, writing what is left of the request; what is left then."""
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not (self._both if unsent else self._readable).poll(remaining * 1000):
            raise timeout_error(timeout)
        if unsent:
            unsent = self._write(unsent)
        try:
            data = os.read(self._output, READ)
        except BlockingIOError:
            return unsent
        if not data:
            raise Unreachable("tmux ended the control client", reason="no_server", hint="tmuxctl ls")
        self._received += data
        return unsent

    def _write(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._input, unsent) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            return unsent[:0]

    def _end_client(self) -> None:
        if self.closed:
            return
        self.closed = True
        with suppress(ProcessLookupError):
            self._client.kill()
        self._client.wait()
        self._last_words = _read_last_words(bytes(self._received), self._errors)
        self._let_go()

    def _let_go(self) -> None:
        """Close our ends of the client's pipes, and end who looks after it."""
        if self._keeper:
            self._keeper.end()
        for pipe in (self._input, self._output, self._errors):
            os.close(pipe)


@lru_cache(maxsize=64)
def _needs_client(verb: str) -> bool:
    return NEEDS_CLIENT.fullmatch(verb) is not None


def _format_mark(word: bytes) -> bytes:
    """The line of a request that prints a word."""
    return b"display-message -p " + word + b"\n"


def _find_block(received: bytearray, word: bytes, searched: int = 0) -> int:
    """Where the whole block begins that holds nothing but `word`, -1 if it is not there. Its `searched` bytes hold no such."""
    token = b"\n" + word + b"\n%end "
    found = received.find(token, max(0, searched - len(token) - GUARD_LENGTH))
    if found < 0 or received.find(b"\n", found + len(token)) < 0:
        return -1
    return received.rfind(b"\n", 0, found) + 1


class CaptureMethod:
    """How a tmux of this version is asked for a screen over a control client, and its answer read, so that it keeps nothing."""

    def __init__(self, version: tuple[int, int]) -> None:
        self.leak, self._escaped = version < FREED, version < RAW
        self.told = not self._escaped
        self.tells = self.leak and self.told
        self._name = f"tmuxctl-{os.urandom(8).hex()}"

    def asked(self, command: Command, end: str) -> list[Command]:
        """`command`, a `capture-pane -p`, as commands of which one prints the same rows and, from 3.4 on, then the line `end`."""
        words = [word for word in command if word != "-p"]
        # 3.4 and 3.5a print some bytes more where a buffer's size is 48 less than a power of two
        ending = [] if self._escaped else [("set-buffer", "-a", "-b", self._name, end)]
        shown: list[Command] = [("show-buffer", "-b", self._name), ("delete-buffer", "-b", self._name)]
        return [(*words, "-b", self._name), *ending, *shown]

    def read(self, printed: bytes, end: bytes) -> bytes:
        """The rows, as `capture-pane -p` prints them."""
        if not self._escaped:
            return printed.partition(end)[0]
        rows = printed.removesuffix(b"\n")
        if b"\\" not in rows:
            return rows
        # utf8_strvis: as here for what stands on a screen, quicker than one by one
        parts = rows.split(b"\\\\")
        for index, part in enumerate(parts):
            if b"\\" in part:
                part = part.replace(b"\\033", b"\x1b").replace(b"\\016", b"\x0e").replace(b"\\017", b"\x0f")
                parts[index] = part.replace(b"\\$", b"$")
        return b"\\".join(parts)


ReadBlock = Callable[[bytes], bytes]


def _build_request(
    commands: Sequence[Command], buffer: tuple[str, bytes] | None, mark: str, last: str, captures: CaptureMethod
) -> tuple[bytes, list[ReadBlock]]:
    """The list as one line, which tmux runs as one and whose last command prints `last`; and how the answers between two
    marks are read.

    Before each command that prints, but the first, `mark` is printed: text of one (a screen may show anything) cannot pass for
    another's answer.
    """
    words = _fill_buffer(*buffer) if buffer else []
    parts: list[ReadBlock] = []
    end = f"={mark}"
    for command in commands:
        if command[0] in SILENT or isinstance(command, Guard):
            words.append(format_control_line([command]))
            continue
        if parts:
            words.append(f"display-message -p {mark}")
        if captures.leak and command[0] == "capture-pane" and "-p" in command:
            words.append(format_control_line(captures.asked(command, end)))
            parts.append(lambda printed: captures.read(printed, end.encode()))
        else:
            words.append(format_control_line([command]))
            parts.append(bytes)
    words.append(f"display-message -p {last}")
    return f"{' ; '.join(words)}\n".encode(errors="surrogateescape"), parts or [bytes]


def _fill_buffer(name: str, data: bytes) -> list[str]:
    if len(data) > BUFFER_LIMIT or b"\0" in data:
        raise NeedsSpawn("set-buffer carries neither NUL nor this much")
    return [
        f'set-buffer {"-a " if at else ""}-b {quote_argument(name)} -- "{_escape_octal(data[at : at + CHUNK])}"'
        for at in range(0, len(data), CHUNK)
    ]


def _escape_octal(data: bytes) -> str:
    return UNSAFE.sub(lambda found: b"\\%03o" % found[0][0], data).decode()


def _read_answer(answer: bytes, mark: bytes, parts: Sequence[ReadBlock]) -> bytes:
    """What a spawned tmux would have printed; raises what it would have failed with."""
    output, start, line = [], 0, b"\n" + mark + b"\n"
    for read in parts[:-1]:
        found = answer.find(line, start)
        if found < 0:
            # an error ended the list, and is in what is left
            break
        output.append(read(_join_blocks(answer[start : answer.rfind(b"\n", 0, found) + 1])))
        start = answer.index(b"\n", found + len(line)) + 1
    output.append(parts[-1](_join_blocks(answer[start:])))
    return b"".join(output)


def _join_blocks(part: bytes) -> bytes:
    """The texts of some commands' blocks, without notifications."""
    output, position, size = [], 0, len(part)
    while position < size:
        end = part.find(b"\n", position)
        if not part.startswith(b"%begin ", position):
            position = end + 1
            continue
        guard = part[position + 6 : end + 1]
        # the last guard is the true one: what the block shows may contain a forged one before it
        close = part.rfind(guard, end)
        while close >= 0 and not part.endswith((b"\n%end", b"\n%error"), end, close):
            close = part.rfind(guard, end, close)
        if close < 0:
            raise Unreachable(
                "tmux's answer cannot be understood", reason="outcome_unknown", hint="look, then repeat it"
            )
        text = part[end + 1 : part.rindex(b"\n", end, close) + 1]
        if part.endswith(b"\n%error", end, close):
            raise error_of_complaint(text.decode(errors="replace").strip().removeprefix("parse error: "))
        # flags 0: a block of a hook, not of our list
        if guard.endswith(b" 1\n"):
            output.append(text)
        position = close + len(guard)
    return b"".join(output)


def _read_last_words(received: bytes, errors: int) -> str:
    """Why tmux let no client in: what it wrote to standard error, or its error block."""
    found = re.search(rb"([^\n]*)\n%error ", received)
    complaint = b""
    with suppress(BlockingIOError):
        complaint = os.read(errors, 4096)
    return (complaint or (found[1] if found else b"") or b"no server running").decode(errors="replace").strip()
