"""The transcript of runs: a line of JSON for everything that happened, written before anything is done that follows from it.

What is not in it has not happened, and what is in it is never done again. A line that was not written to its end, as the
machine lost its power, is cut off by the next run.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from errno import EDQUOT, EINVAL, ELOOP, ENOSPC
from typing import Any

from tmuxctl.errors import Conflict, Failed, NotFound, Usage
from tmuxctl.fleet.rules.conversation import TEXT_MOST
from tmuxctl.model import NOTHING
from tmuxctl.state_files import take_lock
from tmuxctl.untrusted import fits, open_file, parse_json
from tmuxctl.value import Value
from tmuxctl.vocabulary import RunEvent

FORMAT = 1

LINE_MOST = 8 << 20
"""Bytes of a line that is read: a text of `TEXT_MOST` characters in JSON, of which each may take six, and what else there is."""

FILE_MOST = 1 << 30
"""Bytes of a transcript: what is longer is not read, and not written to."""

LINE_BEGINS = b'{"n": '
"""With what every line begins: a file that holds no whole line and begins otherwise is somebody else's."""

SHAPE = {"n!": int, "at!": str, "event!": str, "from!": (str, type(None)), "to!": [str], "text!": (str, type(None))}
ABOUT = dict.fromkeys(("run", "digest", "session", "id", "machine", "turn", "reason", "message", "ends"), str)
"""What else stands in records that others than the rules read."""


class Record(Value):
    """One line of a transcript: its number in the run, when (ISO 8601, UTC), what happened, of whom, to whom, the text, the
    seconds that a turn took, and what else there is to say of such an event."""

    number: int
    at: str
    event: RunEvent
    sender: str | None = None
    to: tuple[str, ...] = ()
    text: str | None = None
    elapsed: float | None = None
    about: Mapping[str, Any] = NOTHING

    def to_json(self) -> dict[str, Any]:
        """The line's object, as docs/teams.md describes it."""
        told: dict[str, Any] = {
            "n": self.number,
            "at": self.at,
            "event": self.event.value,
            "from": self.sender,
            "to": list(self.to),
            "text": self.text,
        }
        if self.elapsed is not None:
            told["elapsed"] = self.elapsed
        return {**told, **self.about}


def parse_line(line: bytes, where: str) -> Record:
    """The record in a line; Failed `bad_transcript` for what is none."""
    try:
        value = parse_json(line, limit=LINE_MOST)
        if not fits(value, {**SHAPE, **ABOUT}):
            raise ValueError
        event = RunEvent.of(value["event"])
        elapsed = value.get("elapsed")
        if event is None or not isinstance(elapsed, (int, float, type(None))):
            raise ValueError
        if event is RunEvent.TURN and len(value["to"]) != 1:
            raise ValueError
    except ValueError:
        raise damaged_error(where) from None
    rest = {key: one for key, one in value.items() if f"{key}!" not in SHAPE and key != "elapsed"}
    return Record(value["n"], value["at"], event, value["from"], tuple(value["to"]), value["text"], elapsed, rest)


def damaged_error(where: str) -> Failed:
    """The error for a transcript that no run can have written."""
    return Failed(
        f"{ascii(where)} is no transcript, or was changed",
        reason="bad_transcript",
        hint="name another file: `output` in the connector file; or move this one away",
    )


class RunTranscript:
    """The file of a transcript, opened to be written by one run at a time. `wall` is the clock of its times, in seconds since
    1970."""

    def __init__(self, path: str, wall: Callable[[], float] = time.time) -> None:
        self.path = path
        self._wall = wall
        self._handle = _open(path)
        self.number = 0
        try:
            take_lock(self._handle, 0.0, lambda: running_error(path))
            self.records = self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> list[Record]:
        """Those of the last run; what was not written to its end is cut off, in a file that is a transcript."""
        records: list[Record] = []
        end = 0
        handle = os.dup(self._handle)
        with open(handle, "rb") as file:
            for line, behind in _whole_lines(file, self.path):
                record, end = parse_line(line, self.path), behind
                if record.event is RunEvent.BEGIN:
                    records.clear()
                records.append(record)
        if os.fstat(self._handle).st_size != end:
            if not end and not LINE_BEGINS.startswith(os.pread(self._handle, len(LINE_BEGINS), 0)):
                raise damaged_error(self.path)
            os.ftruncate(self._handle, end)
        self.number = records[-1].number if records else 0
        return records

    def begin(self) -> None:
        """A new run begins: its records are counted from 1."""
        self.records, self.number = [], 0

    def make(
        self,
        event: RunEvent,
        sender: str | None = None,
        to: Sequence[str] = (),
        text: str | None = None,
        elapsed: float | None = None,
        **about: Any,
    ) -> Record:
        """The next record; `append` writes it."""
        self.number += 1
        if text is not None:
            # bytes that are no text would be no JSON for others
            text = text[:TEXT_MOST].encode("utf-8", "replace").decode()
        given = {key: value for key, value in about.items() if value is not None}
        return Record(self.number, format_time(self._wall()), event, sender, tuple(to), text, elapsed, given)

    def append(self, records: Sequence[Record]) -> None:
        """Write records at the end, all or none, so that a machine that loses its power keeps them. Failed `disk_full`, `io`,
        `too_large`, and `removed` for a file that is not there any more."""
        data = b"".join(
            json.dumps(one.to_json(), ensure_ascii=False).encode("utf-8", "replace") + b"\n" for one in records
        )
        found = os.fstat(self._handle)
        if not found.st_nlink:
            raise Failed(
                f"{self.path} was removed", reason="removed", hint="tmuxctl connect down TEAM ends its sessions"
            )
        if found.st_size + len(data) > FILE_MOST:
            raise Failed(f"{self.path} has {FILE_MOST >> 30} GiB", reason="too_large", hint="move it away")
        try:
            while data:
                data = data[os.write(self._handle, data) :]
            os.fsync(self._handle)
        except OSError as error:
            with suppress(OSError):
                # a part of a line, with others behind it, would be no transcript
                os.ftruncate(self._handle, found.st_size)
            raise unwritten_error(self.path, error, "df -h; then: --resume") from None

    def close(self) -> None:
        """Let another run write to it."""
        os.close(self._handle)


def _open(path: str) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o600)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(EINVAL, "not a regular file")
    except OSError as error:
        what = "a link, which is not followed" if error.errno == ELOOP else error.strerror
        raise Usage(
            f"{ascii(path)} cannot be the transcript: {what}", reason="bad_file", hint="name a file: `output`"
        ) from None
    return handle


def unwritten_error(path: str, error: OSError, hint: str) -> Failed:
    """The error for a file that could not be written."""
    reason = "disk_full" if error.errno in (ENOSPC, EDQUOT) else "io"
    return Failed(f"{ascii(path)}: {error.strerror}", reason=reason, hint=hint)


def running_error(path: str) -> Conflict:
    """The error for a transcript that a run writes to now."""
    return Conflict(
        "the run is under way, in another process",
        reason="running",
        hint=f"tmuxctl connect log --follow; its transcript: {path}",
    )


def _no_run_error() -> NotFound:
    return NotFound("there is no transcript of such a run", reason="no_run", hint="tmuxctl connect ls")


def _whole_lines(file: Any, where: str) -> Iterator[tuple[bytes, int]]:
    """The lines that are there to their end, each with the offset behind it."""
    end = 0
    while line := file.readline(LINE_MOST + 1):
        if not line.endswith(b"\n"):
            if len(line) > LINE_MOST:
                raise damaged_error(where)
            return
        end += len(line)
        if end > FILE_MOST:
            raise damaged_error(where)
        yield line, end


def read_records(path: str, offset: int = 0) -> Iterator[tuple[Record, int]]:
    """The records in a transcript from `offset` on, each with the offset behind it, without waiting for more. NotFound
    `no_run` where there is none."""
    try:
        handle = open_file(path)
    except OSError:
        raise _no_run_error() from None
    with open(handle, "rb") as file:
        file.seek(offset)
        for line, end in _whole_lines(file, path):
            yield parse_line(line, path), offset + end


def last_run(path: str) -> list[Record]:
    """The records of the last run in a transcript, which are some; errors as `read_records`."""
    records, _ = read_last_run(path)
    if not records:
        raise _no_run_error()
    return records


def read_last_run(path: str, offset: int = 0) -> tuple[list[Record], int]:
    """The records of the last run that stand behind `offset`, and the offset behind them; errors as `read_records`."""
    records: list[Record] = []
    first = offset == 0
    for record, behind in read_records(path, offset):
        if record.event is RunEvent.BEGIN:
            records.clear()
        elif first:
            raise damaged_error(path)
        first = False
        records.append(record)
        offset = behind
    return records, offset


def is_written(path: str) -> bool:
    """Whether a run writes to this transcript now."""
    import fcntl

    with suppress(OSError):
        handle = open_file(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
    return False


def format_time(seconds: float) -> str:
    """A time as ISO 8601 in UTC with milliseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def parse_time(text: str) -> float:
    """Seconds since 1970; 0.0 for what is no time."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
