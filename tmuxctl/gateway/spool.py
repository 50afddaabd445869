"""Events on disk until a gateway's stream has confirmed them: they outlive the process, and any time without a connection.

A spool is a folder of ours. Events are numbered from 1 and appended to segments, `NUMBER.events`, named by the first one. What
the stream has confirmed stands in `confirmed.json`. Segments that are confirmed are removed, and, where the spool grows beyond
its limit, the oldest that are not: what was lost is then a gap between the two numbers, which is published in its place.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import struct
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import EINVAL

from tmuxctl.errors import Conflict, Denied, Failed, TmuxctlError, Usage
from tmuxctl.gateway.connection import EVENT_BYTES, Connection
from tmuxctl.ownership import make_parents
from tmuxctl.state_files import make_private_folder, take_lock, write_record
from tmuxctl.timing import TIMING, GatewayTiming
from tmuxctl.untrusted import open_file, parse_record, read_file
from tmuxctl.value import NamedTuple

SPOOL_BYTES, SEGMENT_BYTES = 64 << 20, 4 << 20
"""Bytes of a spool, and of one segment: what is lost where there is no more room."""

KEPT_EVENTS = 64
"""New events that are kept in memory too, so that a segment is not read again for each."""

MOST_LIVES = (1 << 32) - 1
"""How often a spool may be opened: its count is told in 32 bits."""

_HEAD = struct.Struct(">IIQ")
"""Before each event: its length, the CRC-32 of its bytes, its number."""

_SEGMENT = re.compile(r"([0-9]{20})\.events\Z")
_ID = re.compile(r"([0-9a-f]{16})-([0-9]{1,19})-[0-9a-z]{1,8}\Z")


class SpooledEvent(NamedTuple):
    """An event that is not confirmed yet. `lost`: it stands for so many events that were dropped, and `data` is that of the event
    behind them, empty if there is none."""

    number: int
    data: bytes
    lost: int = 0


class SpoolFiles:
    """The files of a spool as they are, whichever process has it. `name` is 16 hex digits, those of a spool that is made later are
    greater; `life` counts how often it was opened, `confirmed` is the number up to which all is confirmed, `newest` that of the
    event that was appended last, 0 before the first. Failed and Denied `bad_spool` for what no spool has."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.name, self.confirmed, self.life = self._read_confirmed()
        self._sizes = self._read_sizes()
        self._newest = self._find_newest()

    @property
    def newest(self) -> int:
        """The number of the event that was appended last; 0 before the first."""
        return self._newest

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _segment(self, start: int) -> str:
        return self._path(f"{start:020d}.events")

    def _read_confirmed(self) -> tuple[str, int, int]:
        """Its name, the number up to which all is confirmed, and how often it was opened."""
        path = self._path("confirmed.json")
        try:
            found = parse_record(read_file(path, 4097), path, limit=4096)
        except FileNotFoundError:
            return f"{int(time.time() * 1000):012x}{secrets.token_hex(2)}", 0, 0
        except (OSError, ValueError):
            found = {}
        name, number, life = str(found.get("name")), found.get("confirmed"), found.get("life")
        whole = type(number) is int and type(life) is int and number >= 0 and 0 <= life < MOST_LIVES
        if not re.fullmatch(r"[0-9a-f]{16}", name) or not whole:
            hint = f"move the folder away, and with it events that were not published: {self.folder}"
            raise Failed(f"{path} was changed", reason="bad_spool", hint=hint)
        return name, int(number or 0), int(life or 0)

    def _read_sizes(self) -> dict[int, int]:
        """The bytes of each segment, by its first number."""
        found = {}
        for name in os.listdir(self.folder):
            if segment := _SEGMENT.match(name):
                about = os.lstat(self._path(name))
                if not stat.S_ISREG(about.st_mode):
                    raise Denied(f"{self._path(name)} is no regular file", reason="bad_spool", hint="remove it")
                found[int(segment[1])] = about.st_size
        return found

    def _find_newest(self) -> int:
        """The number of the last event; what a process that was killed had not written to its end is not counted. The next
        segment begins behind it, so nothing is ever appended to such a part."""
        newest = self.confirmed
        for start in sorted(self._sizes):
            newest = max([newest, start - 1, *(one.number for one in self._read(start))])
        return newest

    def _read(self, start: int) -> Iterator[SpooledEvent]:
        """The events of a segment, up to the first that is damaged."""
        with suppress(FileNotFoundError), os.fdopen(open_file(self._segment(start)), "rb") as file:
            expected = start
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                length, crc, number = _HEAD.unpack(head)
                if length > EVENT_BYTES or number != expected:
                    return
                data = file.read(length)
                if len(data) != length or zlib.crc32(data) != crc:
                    return
                yield SpooledEvent(number, data)
                expected += 1


class Spool(SpoolFiles):
    """The events in a folder; one process has it at a time (Conflict `busy`). Methods may be called from any thread.

    `most_bytes` and `segment_bytes` are limits of the folder and of one segment. `name` is 16 hex digits, those of a spool that is
    made later are greater; `life` counts how often it was opened.
    """

    def __init__(self, folder: str, most_bytes: int = SPOOL_BYTES, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._most_bytes, self._segment_bytes = most_bytes, segment_bytes
        self._changed = threading.Condition(threading.RLock())
        self._waiting: deque[SpooledEvent] = deque()
        self._handle = -1
        make_parents(folder)
        make_private_folder(folder)
        self._lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            take_lock(self._lock, 0.0, lambda: Conflict(f"another process has {folder}", reason="busy"))
            super().__init__(folder)
            self.life += 1
            # numbers may be used again after a loss of power, but never with the same life
            self._write_confirmed(durable=True)
        except BaseException:
            os.close(self._lock)
            raise

    def append(self, data: bytes) -> int:
        """Keep an event; its number. Usage `too_large` for more than the stream takes, Failed `io` where it cannot be written.

        A process that is killed keeps it; a machine that loses its power may not.
        """
        if len(data) > EVENT_BYTES:
            raise Usage(f"an event has at most {EVENT_BYTES} bytes", reason="too_large")
        with self._changed:
            number = self._newest + 1
            record = _HEAD.pack(len(data), zlib.crc32(data), number) + data
            try:
                self._write(number, record)
            except OSError as error:
                raise Failed(f"{self.folder}: {error.strerror}", reason="io", hint="df -h") from None
            follows = self._waiting[-1].number if self._waiting else self.confirmed
            if follows == number - 1 and len(self._waiting) < KEPT_EVENTS:
                self._waiting.append(SpooledEvent(number, data))
            self._newest = number
            self._drop_oldest()
            self._changed.notify_all()
            return number

    def first(self) -> SpooledEvent | None:
        """The oldest event that is not confirmed, or the gap before it; None if all are."""
        with self._changed:
            if self.confirmed >= self._newest:
                return None
            oldest = min(self._sizes, default=self._newest + 1)
            if oldest > self.confirmed + 1:
                return self._gap_before(oldest)
            while self._waiting and self._waiting[0].number <= self.confirmed:
                self._waiting.popleft()
            if not self._waiting:
                start = max(one for one in self._sizes if one <= self.confirmed + 1)
                self._waiting.extend(one for one in self._read(start) if one.number > self.confirmed)
            if not self._waiting or self._waiting[0].number != self.confirmed + 1:
                # a part of the segment is damaged: what cannot be read is lost, up to what can
                end = self._waiting[0].number - 1 if self._waiting else self._end_of(self.confirmed + 1)
                return self._gap_before(end + 1)
            return self._waiting[0]

    def _gap_before(self, number: int) -> SpooledEvent:
        """What stands for the events that are not confirmed and not there any more, up to this one."""
        start = max((one for one in self._sizes if one <= number), default=0)
        following = next((one.data for one in self._read(start) if one.number == number), b"") if start else b""
        return SpooledEvent(number - 1, following, number - 1 - self.confirmed)

    def confirm(self, number: int) -> None:
        """All up to this number are in the stream: they are not needed any more."""
        with self._changed:
            if not self.confirmed < number <= self._newest:
                return
            self.confirmed = number
            self._write_confirmed()
            # the last one goes on
            for start in sorted(self._sizes)[:-1]:
                if self._end_of(start) <= number:
                    self._remove(start)

    def wait(self, timeout: float) -> bool:
        """Whether there is an event that is not confirmed; waits for one, at most for `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.confirmed < self._newest, timeout)

    def event_id(self, event: SpooledEvent) -> str:
        """The id that the event is published with, whenever that is. The CRC keeps it apart from an event that had the same
        number, but was lost as the machine lost its power."""
        return f"{self.name}-{event.number}-{'gap' if event.lost else f'{zlib.crc32(event.data):08x}'}"

    def confirm_id(self, event_id: str) -> None:
        """The event with this id is in the stream, and so are all before it. Ids of anything else change nothing."""
        found = _ID.match(event_id)
        if not found or found[1] != self.name:
            return
        number = int(found[2])
        with self._changed:
            start = max((one for one in self._sizes if one <= number), default=0)
            event = next((one for one in self._read(start) if one.number == number), None) if start else None
            gap = SpooledEvent(number, b"", 1)
            if event_id == self.event_id(gap) or (event and event_id == self.event_id(event)):
                self.confirm(number)

    def close(self) -> None:
        """Let another process have it."""
        with self._changed:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1
        os.close(self._lock)

    def _write_confirmed(self, *, durable: bool = False) -> None:
        record = {"name": self.name, "confirmed": self.confirmed, "life": self.life}
        write_record(self._path("confirmed.json"), record, durable=durable)

    def _end_of(self, number: int) -> int:
        """The last number of the segment that has this one."""
        return min((one - 1 for one in self._sizes if one > number), default=self._newest)

    def _write(self, number: int, record: bytes) -> None:
        newest = max(self._sizes, default=0)
        if self._handle < 0 or self._sizes.get(newest, 0) + len(record) > self._segment_bytes:
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(self._segment(number), flags, 0o600)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise OSError(EINVAL, "not a regular file")
            self._handle, newest = handle, number
            self._sizes[newest] = 0
        written = os.write(self._handle, record)
        if written < len(record):
            os.ftruncate(self._handle, self._sizes[newest])
            raise OSError(EINVAL, "not written to its end")
        self._sizes[newest] += written

    def _drop_oldest(self) -> None:
        while sum(self._sizes.values()) > self._most_bytes and len(self._sizes) > 1:
            self._remove(min(self._sizes))
            self._waiting.clear()

    def _remove(self, start: int) -> None:
        if start == max(self._sizes) and self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        del self._sizes[start]
        with suppress(FileNotFoundError):
            os.unlink(self._segment(start))


class EventPublisher:
    """Publishes the events of a spool in order, each until it is confirmed, in a thread of its own.

    `make_gap(GAP)` makes the bytes of an event that says how many were lost. `last_error` is why the last one is still to
    be confirmed; None while all goes well.
    """

    def __init__(
        self,
        connection: Connection,
        spool: Spool,
        make_gap: Callable[[SpooledEvent], bytes],
        timing: GatewayTiming = TIMING.gateway,
    ) -> None:
        self.last_error: TmuxctlError | None = None
        self._connection, self._spool, self._make_gap, self._timing = connection, spool, make_gap, timing
        self._asked_at = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gateway events", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Publish no more; what is not confirmed stays in the spool."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        failures = 0
        while not self._over.is_set():
            try:
                rest = self._timing.rare_pause_seconds
                if self._connection.connected.wait(rest) and self._spool.wait(rest):
                    self._publish_first()
                failures, self.last_error = 0, None
            except (TmuxctlError, OSError) as error:
                # a full disk is as a lost connection: it is tried again
                failed = error if isinstance(error, TmuxctlError) else Failed(str(error), reason="io", hint="df -h")
                self.last_error = failed
                if failed.reason == "closed":
                    return
                failures += 1
                self._over.wait(
                    min(self._timing.rare_pause_seconds, self._timing.pause_seconds * 2 ** min(failures, 10))
                )

    def _publish_first(self) -> None:
        opened = self._connection.opened
        if self._asked_at != opened:
            # what was stored, while the word of that was lost, is not published again however long ago that was
            last = self._connection.last_event()
            if last:
                self._spool.confirm_id(last.id)
            self._asked_at = opened
        if event := self._spool.first():
            data = self._make_gap(event) if event.lost else event.data
            self._connection.publish_event(data, self._spool.event_id(event))
            self._spool.confirm(event.number)
