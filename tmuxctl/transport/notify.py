"""Sleeps until files in folders change, a process ends or a terminal is read: this machine's wake-ups.

On Linux one inotify instance and one epoll serve every watch of the process (a user may have 128 instances:
fs.inotify.max_user_instances). No thread of ours stays: of the threads that wait, one leads: it sleeps in the epoll and
rings the others; when it leaves, another takes over. Elsewhere, and where the kernel refuses, a watch looks at the
files' sizes again and again.
"""

from __future__ import annotations

import errno
import math
import os
import select
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from tmuxctl.state_files import is_running
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import ThreadId, Watch

if sys.platform == "linux":
    MODIFY = 0x2
    MASK = MODIFY | 0x8 | 0x80 | 0x100 | 0x200  # and close_write, moved_to, create, delete (inotify(7))
    ACCESS = 0x1  # it was read: of a terminal, a program took what was typed
    IGNORED = 0x8000
    RESTING = 16
    """Kernel watches that are kept though nobody waits for them, for the next wait: to remove one takes the kernel 0.05 ms
    right after an event of it (it waits until no processor uses it), to set it again 5 us."""
    READ = 8192
    EVENTS = 64
    EVENT = struct.Struct("iIII")  # watch descriptor, mask, cookie, length of the name behind it

    class WatchHub:
        """The process's inotify instance, who watches what, and who of the waiting threads leads."""

        def __init__(self) -> None:
            from ctypes import CDLL, c_char_p, c_int, c_uint32, get_errno

            from tmuxctl.transport.procfs import read_runs

            library = CDLL(None, use_errno=True)
            self.pid = os.getpid()
            self.lock = threading.Lock()
            self.leader: FolderWatch | None = None
            self.followers: dict[FolderWatch, None] = {}
            self._folders: dict[int, set[FolderWatch]] = {}
            self._masks: dict[int, tuple[bytes, int]] = {}
            """The path of each folder, and what the kernel tells of it."""
            self._resting: dict[int, None] = {}
            """The kernel's watches that nobody waits for, the oldest first."""
            self._processes: dict[int, FolderWatch] = {}
            self._runs: dict[FolderWatch, tuple[Sequence[ThreadId], list[bytes] | None]] = {}
            """How often the threads of its program had run before the last observation, by watch."""
            self._resting_watches: dict[FolderWatch, float] = {}
            """Those that wait for a run of such a thread, and from when on it counts."""
            self._read_runs, self._checked_at = read_runs, time.monotonic()
            self._controlling = -2
            """The kernel's watch of /dev/tty, by which a program may read its terminal, whichever that is."""
            self._errno = get_errno
            self._add = library.inotify_add_watch
            self._add.argtypes = (c_int, c_char_p, c_uint32)
            self._rm = library.inotify_rm_watch
            self._rm.argtypes = (c_int, c_int)
            self._inotify: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if self._inotify < 0:
                raise self._last_error()
            try:
                self._epoll = select.epoll()
                self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            except OSError:
                os.close(self._inotify)
                raise
            self._epoll.register(self._inotify, select.EPOLLIN)
            self._epoll.register(self._bell, select.EPOLLIN)

        def _last_error(self) -> OSError:
            number = self._errno()
            return OSError(number, os.strerror(number))

        def add(self, watch: FolderWatch, folders: Sequence[str], pid: int | None, terminal: str) -> None:
            """Begin to tell `watch`; OSError when the kernel refuses, with nothing of it left behind. A terminal that we may
            not read tells nothing."""
            with self.lock:
                try:
                    rested = [self._attach(watch, self._add_folder(folder)) for folder in folders]
                    if terminal and (descriptor := self._add(self._inotify, os.fsencode(terminal), ACCESS)) >= 0:
                        rested.append(self._attach(watch, descriptor))
                        watch.tells_of_runs = True
                        if self._controlling < 0 and (tty := self._add(self._inotify, b"/dev/tty", ACCESS)) >= 0:
                            self._controlling = tty
                    if any(rested):
                        # what happened while nobody waited is no news
                        self._read_events()
                        watch.changed = False
                    if pid is not None:
                        self._add_process(watch, pid)
                except OSError:
                    self._remove_watch(watch)
                    raise

        def _add_folder(self, folder: str) -> int:
            """The kernel's watch of a folder, the same one if there is one."""
            path = os.fsencode(folder)
            for _ in range(2):
                descriptor: int = self._add(self._inotify, path, MASK)
                if descriptor >= 0:
                    self._masks[descriptor] = path, MASK
                    return descriptor
                error = self._last_error()
                if error.errno != errno.ENOSPC or not self._resting:
                    break
                self._drop_resting(0)
            raise error

        def _attach(self, watch: FolderWatch, descriptor: int) -> bool:
            """Tell `watch` of its events from now on; True if nobody was told of them, so that there may be old ones."""
            rested = descriptor in self._resting
            self._resting.pop(descriptor, None)
            self._folders.setdefault(descriptor, set()).add(watch)
            return rested

        def heed(self, watch: FolderWatch, output: bool) -> None:
            """Have the kernel tell `watch` of output too, or not any more; with the lock held. What nobody is told of wakes no
            thread and is not even read."""
            if watch.heeds_output == output:
                return
            watch.heeds_output = output
            for descriptor in [number for number in self._masks if watch in self._folders.get(number, ())]:
                self._set_mask(descriptor)
            # what was written meanwhile was told nobody
            watch.changed = watch.changed or output

        def _set_mask(self, descriptor: int) -> None:
            """Have the kernel tell of output in a folder if anybody heeds it."""
            path, before = self._masks[descriptor]
            mask = MASK if any(watch.heeds_output for watch in self._folders[descriptor]) else MASK & ~MODIFY
            if mask != before:
                self._masks[descriptor] = path, mask
                found = self._add(self._inotify, path, mask)
                if found not in (descriptor, -1):  # another folder has this path now
                    self._rm(self._inotify, found)

        def _drop_resting(self, most: int) -> None:
            """Have the kernel watch at most so many folders that nobody waits for."""
            while len(self._resting) > most:
                self._drop(next(iter(self._resting)))

        def _drop(self, descriptor: int) -> None:
            del self._resting[descriptor], self._folders[descriptor]
            self._masks.pop(descriptor, None)
            self._rm(self._inotify, descriptor)

        def _add_process(self, watch: FolderWatch, pid: int) -> None:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                watch.changed = True
                return
            self._processes[descriptor] = watch
            self._epoll.register(descriptor, select.EPOLLIN)

        def remove(self, watch: FolderWatch) -> None:
            """Forget `watch`; if a thread sleeps in it, wake that."""
            with self.lock:
                self._remove_watch(watch)
                self.forget_runs(watch)
                self._mark_changed(watch)

        def _remove_watch(self, watch: FolderWatch) -> None:
            for descriptor in [number for number, watches in self._folders.items() if watch in watches]:
                self._folders[descriptor].discard(watch)
                if not self._folders[descriptor]:
                    self._resting[descriptor] = None
                elif descriptor in self._masks:
                    self._set_mask(descriptor)
            self._drop_resting(RESTING)
            for process in [number for number, owner in self._processes.items() if owner is watch]:
                self._end_process(process)

        def _end_process(self, descriptor: int) -> None:
            del self._processes[descriptor]
            self._epoll.unregister(descriptor)
            os.close(descriptor)

        def _mark_changed(self, watch: FolderWatch) -> None:
            watch.changed = True
            self._wake(watch)

        def _wake(self, watch: FolderWatch) -> None:
            """End the sleep of the thread that waits on this watch; with the lock held."""
            if watch is self.leader:  # it sleeps, and its epoll has lost an event that another thread read first
                os.eventfd_write(self._bell, 1)
            elif watch in self.followers:
                watch.ring()

        def stop_sleeping(self, watch: FolderWatch) -> None:
            """Wait no more, as leader or follower, to look at what happened; with the lock held."""
            self.followers.pop(watch, None)
            if self.leader is watch:
                self.leader = None

        def start_waiting(self, watch: FolderWatch) -> bool:
            """Become the leader, or a follower where there is one; with the lock held. True for the leader."""
            if self.leader is None:
                self.leader = watch
                return True
            self.followers[watch] = None
            return False

        def stop_waiting(self, watch: FolderWatch) -> None:
            """Stop waiting, whatever the reason; one of the followers is woken to lead where there is no leader."""
            with self.lock:
                self.stop_sleeping(watch)
                self._resting_watches.pop(watch, None)
                if self.leader is None and self.followers:
                    next(iter(self.followers)).ring()

        def collect_events(self) -> None:
            """Tell every watch what the kernel has for it, without waiting; with the lock held."""
            for descriptor, _ in self._epoll.poll(0, EVENTS):
                if descriptor == self._inotify:
                    self._read_events()
                elif descriptor == self._bell:
                    if self.leader is None:  # it rings for a sleeping leader, who may not have heard it yet
                        os.eventfd_read(self._bell)
                elif descriptor in self._processes:
                    self._mark_changed(self._processes[descriptor])
                    self._end_process(descriptor)

        def _read_events(self) -> None:
            try:
                while self._take_events(os.read(self._inotify, READ)) > READ // 2:
                    pass
            except BlockingIOError:
                return

        def _take_events(self, events: bytes) -> int:
            """Tell the watches of these events; how many bytes they are."""
            position = 0
            while position < len(events):
                descriptor, mask, _, length = EVENT.unpack_from(events, position)
                position += EVENT.size + length
                if descriptor == self._controlling:
                    self.check_runs(after_read=True)
                    continue
                # an overflow (-1) may have been about any of them
                watched = self._folders.values() if descriptor < 0 else [self._folders.get(descriptor, set())]
                for watch in {watch for watches in watched for watch in watches}:
                    if watch.heeds_output or mask != MODIFY:
                        self._mark_changed(watch)
                if mask & IGNORED:
                    self._folders.pop(descriptor, None)
                    self._masks.pop(descriptor, None)
                    self._resting.pop(descriptor, None)
                elif descriptor in self._resting:
                    # it would wake those that wait for others, again and again
                    self._drop(descriptor)
            return position

        def rest(self, watch: FolderWatch, threads: Sequence[ThreadId], timer_seconds: float) -> float:
            """Wake `watch` when one of these threads has run, and return for how many seconds it may sleep: not at all if their
            runs are only counted now; with the lock held."""
            known = self._runs.get(watch)
            if known is None or known[0] != threads:
                self._runs[watch] = threads, self._read_runs(threads)
                return 0.0
            if known[1] is None:
                # they cannot be counted
                return TIMING.observation.threads_seconds
            if not self._resting_watches and self.leader is not None:
                # it sleeps for longer than until the next check
                os.eventfd_write(self._bell, 1)
            self._resting_watches.setdefault(watch, time.monotonic() + timer_seconds)
            return math.inf

        def forget_runs(self, watch: FolderWatch) -> None:
            """Count the runs of its threads anew before the next rest; with the lock held."""
            self._runs.pop(watch, None)
            self._resting_watches.pop(watch, None)

        def check_runs(self, *, after_read: bool = False) -> None:
            """Wake each watch of whose threads one has run, or ended; with the lock held. `after_read`: a program has just read its
            terminal, which is news."""
            now = time.monotonic()
            self._checked_at = self._checked_at if after_read else now
            for watch, counts_from in self._resting_watches.items():
                threads, before = self._runs[watch]
                if (after_read or now >= counts_from) and (runs := self._read_runs(threads)) != before:
                    self._runs[watch] = threads, runs
                    watch.ran, watch.changed = True, watch.changed or after_read
                    self._wake(watch)

        def sleep(self, seconds: float) -> None:
            """The leader's sleep: until the kernel has something for any watch, or a thread may have run."""
            deadline = time.monotonic() + seconds
            while (remaining := deadline - time.monotonic()) > 0:
                check = self._checked_at + TIMING.observation.threads_seconds - time.monotonic()
                pause = max(0.0, min(remaining, check)) if self._resting_watches else remaining
                if self._epoll.poll(pause, 1):
                    return
                with self.lock:
                    self.check_runs()

        def close(self) -> None:
            """Let go of the kernel's side, for a child that inherited it."""
            self._epoll.close()
            for descriptor in (self._inotify, self._bell, *self._processes):
                with suppress(OSError):
                    os.close(descriptor)

    class FolderWatch:
        """A wake-up the hub rings. What happens between two waits is kept for the next."""

        def __init__(self, hub: WatchHub, folders: Sequence[str], pid: int | None, terminal: str = "") -> None:
            self.changed = self.ran = self.tells_of_runs = False
            self.heeds_output = True
            self._hub = hub
            self._bell = threading.Lock()
            self._bell.acquire()
            hub.add(self, folders, pid, terminal)

        def ring(self) -> None:
            """Wake the thread that sleeps on this watch; the hub's lock is held."""
            if self._bell.locked():
                self._bell.release()

        def wait(
            self, timeout: float, *, output: bool = True, threads: Sequence[ThreadId] = (), timer_seconds: float = 0.0
        ) -> bool:
            deadline = time.monotonic() + timeout
            hub = self._hub
            if hub.pid != os.getpid():  # a forked child: the hub is its parent's
                time.sleep(max(0.0, min(timeout, 0.05)))
                return True
            try:
                while True:
                    with hub.lock:
                        hub.stop_sleeping(self)
                        hub.heed(self, output)
                        hub.collect_events()
                        if self.changed:
                            self.changed = self.ran = False
                            hub.forget_runs(self)
                            return True
                        if self.ran:
                            self.ran = False
                            return False
                        if threads:
                            deadline = min(deadline, time.monotonic() + hub.rest(self, threads, timer_seconds))
                        remaining = min(deadline - time.monotonic(), 3600.0)
                        if remaining <= 0:
                            return False
                        is_leader = hub.start_waiting(self)
                    if is_leader:
                        hub.sleep(remaining)
                    else:
                        self._bell.acquire(timeout=remaining)
            finally:
                hub.stop_waiting(self)

        def close(self) -> None:
            if self._hub.pid == os.getpid():
                self._hub.remove(self)

    _hub: WatchHub | None = None
    _opening = threading.Lock()

    def _share_hub() -> WatchHub:
        global _hub
        with _opening:
            if _hub is None:
                _hub = WatchHub()
            return _hub

    def _drop_hub_after_fork() -> None:
        global _hub, _opening
        _opening = threading.Lock()
        if _hub is not None:
            _hub.close()
            _hub = None

    os.register_at_fork(after_in_child=_drop_hub_after_fork)


class PollingWatch:
    """A wake-up that looks again and again: after 10 ms, then ever more seldom, 200 ms at most. `look` gives whether the
    process has ended, which is told once, also when it came before the watch, and what there is beside it. `pause` is told of each
    sleep before it, in seconds, and may take a part of its time, or all of it, itself."""

    tells_of_runs = False

    def __init__(
        self, look: Callable[[], tuple[bool, object]], pause: Callable[[float], object] = lambda _: None
    ) -> None:
        self._look, self._pause = look, pause
        self._closed = threading.Event()
        self._last = look()
        self._changed = self._last[0]

    def wait(
        self, timeout: float, *, output: bool = True, threads: Sequence[ThreadId] = (), timer_seconds: float = 0.0
    ) -> bool:
        if not output:
            return self._sleep(timeout)
        deadline, pause = time.monotonic() + timeout, 0.01
        while not self._changed and not self._closed.is_set():
            now = self._look()
            self._changed, self._last = now != self._last, now
            remaining = deadline - time.monotonic()
            if not self._changed and remaining <= 0:
                return False
            if not self._changed:
                self._sleep(pause if remaining > 3 * pause else remaining)
                pause = min(pause * 2, 0.2)
        self._changed = False
        return True

    def _sleep(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        self._pause(seconds)
        return self._closed.wait(max(0.0, end - time.monotonic()))

    def close(self) -> None:
        self._closed.set()


def look_at_files(folders: Sequence[str], pid: int | None) -> tuple[bool, object]:
    """Whether this process has ended, and the sizes and times of the files in these folders."""
    files: set[tuple[str, int, int]] = set()
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    files.add((entry.path, status.st_size, status.st_mtime_ns))
    return pid is not None and not is_running(pid), files


REFUSED = (
    errno.ENOSYS,
    errno.ENOSPC,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOENT,
    errno.ENOMEM,
    errno.EPERM,
    errno.EINVAL,
)


def watch(folders: Sequence[str], pid: int | None = None, *, terminal: str = "") -> Watch:
    """A wake-up for changed, new and removed files right in `folders`, for the end of the process `pid`, and, on Linux, for
    each read of the terminal of this path.

    What happens after this call is seen by the next `wait`, however late that comes. Each watch is for one thread at a
    time; `close` from another thread ends its wait. A folder that is not there is looked for again and again.
    """
    if sys.platform == "linux":
        try:
            return FolderWatch(_share_hub(), folders, pid, terminal)
        except OSError as error:
            if error.errno not in REFUSED:
                raise
    return PollingWatch(partial(look_at_files, tuple(folders), pid))
