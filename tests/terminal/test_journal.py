"""The journal: every byte once, bounded, readable at any time, and honest about what is missing."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tmuxctl.errors import NotFound, Usage
from tmuxctl.terminal.tmux import journal
from tmuxctl.terminal.tmux.journal import Cursor, Journal, JournalExtent, JournalSlice
from tmuxctl.transport.base import File

NUMBERS = itertools.count()
HOSTILE = [
    "a#{x}b",
    "x##y",
    "%H",
    "%%x",
    "#(touch pwned)",
    "it's",
    '"q"',
    "line\n1break\n",
    "two  words",
    "$HOME`id`\\",
    "ü\udcff",
]


class Folder:
    """The two calls a reader makes, over plain files."""

    def files(self, folder: str) -> dict[str, File]:
        found = {}
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(folder):
                with contextlib.suppress(FileNotFoundError):
                    found[name] = File(os.stat(f"{folder}/{name}").st_size, 0.0)
        return found

    def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        try:
            with open(path, "rb") as file:
                file.seek(offset)
                return file.read(-1 if limit is None else limit)
        except FileNotFoundError:
            raise NotFound("no such file", reason="no_file") from None

    read_grown = read


def until(true: Callable[..., object], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.002)


# the reader


def kept(tmp_path: Path, **segments: bytes) -> Journal:
    """A journal of segments given as s0=b"...", s100=b"..."."""
    folder = tmp_path / "journal"
    folder.mkdir()
    for name, data in segments.items():
        (folder / f"seg.{int(name[1:]):015d}").write_bytes(data)
    return Journal(Folder(), str(tmp_path))


def test_an_empty_journal_is_empty(tmp_path):
    read = kept(tmp_path)
    assert read.extent() == JournalExtent(0, 0, False)
    assert read.read(0) == read.tail(10) == JournalSlice(b"", 0, 0, False)


def test_reading_on_is_about_the_newest_segment_that_was_seen(tmp_path):
    read = kept(tmp_path, s0=b"abc", s3=b"de")
    assert read.read_on(0, 100) == JournalSlice(b"", 0, 0, False)
    assert read.read(0).end == 5
    with open(tmp_path / "journal" / "seg.000000000000003", "ab") as file:
        file.write(b"fg")
    (tmp_path / "journal" / "seg.000000000000007").write_bytes(b"h")
    assert read.read_on(5, 1) == JournalSlice(b"f", 5, 6, False)
    assert read.read_on(6, 100) == JournalSlice(b"g", 6, 7, False)
    assert read.read_on(7, 100) == JournalSlice(b"", 7, 7, False)
    assert read.extent().end == 8
    assert read.read_on(7, 100) == JournalSlice(b"h", 7, 8, False)
    assert read.read_on(0, 100) == JournalSlice(b"", 0, 0, False)
    (tmp_path / "journal" / "seg.000000000000007").unlink()
    assert read.read_on(7, 100) == JournalSlice(b"", 7, 7, False)


def test_segments_are_read_as_one_stream(tmp_path):
    read = kept(tmp_path, s0=b"abc", s3=b"defg", s7=b"h")
    assert (read.start(), read.end(), read.finished()) == (0, 8, False)
    assert read.read(0) == JournalSlice(b"abcdefgh", 0, 8, False)
    assert read.read(2, 3) == JournalSlice(b"cde", 2, 5, False)
    assert read.read(3, 4) == JournalSlice(b"defg", 3, 7, False)
    assert read.read(4, 0) == JournalSlice(b"", 4, 4, False)
    assert read.tail(5) == JournalSlice(b"defgh", 3, 8, False)
    assert read.read(8) == JournalSlice(b"", 8, 8, False)
    assert read.read(100) == JournalSlice(b"", 100, 100, False)
    (tmp_path / "journal" / "end").touch()
    assert read.finished()


def test_what_was_rotated_away_is_told(tmp_path):
    read = kept(tmp_path, s100=b"abc", s103=b"de")
    assert read.start() == 100
    assert read.read(7) == JournalSlice(b"abcde", 100, 105, True)
    assert read.read(7, 2) == JournalSlice(b"ab", 100, 102, True)
    assert read.read(100) == JournalSlice(b"abcde", 100, 105, False)
    assert read.tail(1000) == JournalSlice(b"abcde", 100, 105, False)
    assert [read.read(offset).count_missing(offset) for offset in (0, 7, 100, 102, 1000)] == [100, 93, 0, 0, 0]


def test_a_gap_is_told_and_read_over(tmp_path):
    read = kept(tmp_path, s0=b"abc", s4=b"def")
    assert read.end() == 7
    assert read.read(0) == JournalSlice(b"abcdef", 0, 7, True)
    assert read.read(0, 4) == JournalSlice(b"abcd", 0, 5, True)
    assert read.read(0, 3) == JournalSlice(b"abc", 0, 3, False)
    assert read.read(3) == JournalSlice(b"def", 4, 7, True)
    assert read.read(4) == JournalSlice(b"def", 4, 7, False)
    assert read.tail(5) == JournalSlice(b"cdef", 2, 7, True)
    assert [read.read(offset).count_missing(offset) for offset in (0, 3, 4)] == [1, 1, 0]


def test_a_gap_with_nothing_behind_it_yet_is_told_once(tmp_path):
    read = kept(tmp_path, s0=b"abc", s4=b"")
    assert read.read(3) == JournalSlice(b"", 4, 4, True)
    assert read.read(4) == JournalSlice(b"", 4, 4, False)


@pytest.mark.parametrize("meanwhile", ["before it is listed", "before it is read"])
def test_a_journal_that_is_moved_under_the_reader_is_read_to_its_end(tmp_path, meanwhile):
    """Its session is ended, and its folder moved to those of the ended ones."""
    (tmp_path / "sessions/id").mkdir(parents=True)
    (tmp_path / "ended").mkdir()
    read = kept(tmp_path / "sessions/id", s0=b"abc", s3=b"def")
    (tmp_path / "sessions/id/journal/end").touch()

    class Moving(Folder):
        def files(self, folder: str) -> dict[str, File]:
            found = super().files(folder) if meanwhile == "before it is read" else {}
            if (tmp_path / "sessions/id").exists():
                (tmp_path / "sessions/id").rename(tmp_path / "ended/id")
            return found or super().files(folder)

    read.transport = Moving()
    assert read.read(1) == JournalSlice(b"bcdef", 1, 6, truncated=False)
    assert read.extent() == JournalExtent(0, 6, finished=True)


def test_segments_that_vanish_under_the_reader_are_no_error(tmp_path):
    read = kept(tmp_path, s0=b"abc", s3=b"def", s6=b"ghi", s9=b"j")

    class Vanishing(Folder):
        left = 3

        def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
            if self.left:
                self.left -= 1
                os.unlink(min((tmp_path / "journal").iterdir()))
            return super().read(path, offset, limit)

        read_grown = read

    read.transport = Vanishing()
    found = read.read(1)
    assert found.truncated
    assert found.end == 10
    assert found.data
    assert b"abcdefghij".endswith(found.data)


def test_a_segment_that_grew_after_the_listing_makes_no_gap(tmp_path):
    read = kept(tmp_path, s0=b"abcdef", s6=b"ghi")

    class Stale(Folder):
        def files(self, folder: str) -> dict[str, File]:
            return {name: File(1, 0.0) for name in super().files(folder)}

    read.transport = Stale()
    assert read.read(0) == JournalSlice(b"abcdefghi", 0, 9, False)


def test_cursors_survive_their_text():
    cursor = Cursor("2", 118)
    assert journal.format_cursor(cursor) == "c1:2:118"
    assert journal.parse_cursor("c1:2:118") == cursor
    assert journal.parse_cursor("c1:0af.9:0") == Cursor("0af.9", 0)


@pytest.mark.parametrize(
    "text",
    ["", "c1", "c1::1", "c1:A:1", "c2:2:118", "c1:2:-1", "c1:2:", "c1:2:1\n", "c1:" + "a" * 33 + ":1", "c1:2:٣", "1"],
)
def test_what_is_no_cursor_is_refused_with_a_hint(text):
    with pytest.raises(Usage) as caught:
        journal.parse_cursor(text)
    assert caught.value.reason == "bad_cursor"
    assert caught.value.hint


# the writer alone


class Writer:
    """A writer fed by the test through a pipe."""

    def __init__(self, folder: Path, limit: int) -> None:
        (folder / "journal").mkdir(exist_ok=True)
        (folder / "journal.sh").write_text(journal.writer_script(limit))
        self.folder = folder
        self.process = subprocess.Popen(
            ["sh", "-c", journal.pipe_command(str(folder))], stdin=subprocess.PIPE, bufsize=0
        )
        self.journal = Journal(Folder(), str(folder))

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        while data:
            data = data[self.process.stdin.write(data) :]

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(15)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Writer]]:
    writers: list[Writer] = []

    def make(folder: Path = tmp_path, limit: int = 1 << 20) -> Writer:
        writers.append(Writer(folder, limit))
        return writers[-1]

    yield make
    for writer in writers:
        writer.end()


def test_every_byte_comes_at_once_and_the_end_is_told(start):
    writer = start()
    for count in range(1, 200):
        writer.write(bytes([count]))
        until(lambda count=count: writer.journal.end() == count)
    assert not writer.journal.finished()
    writer.end()
    assert writer.journal.finished()
    assert writer.journal.read(0) == JournalSlice(bytes(range(1, 200)), 0, 199, False)
    assert [segment.stat().st_mode & 0o777 for segment in writer.folder.glob("journal/seg.*")] == [0o600]


def test_it_keeps_the_limit_and_not_much_more(start):
    writer, limit = start(limit=64 << 10), 64 << 10
    data = b"".join(b"%07d\n" % number for number in range(50_000))
    for position in range(0, len(data), 1000):
        writer.write(data[position : position + 1000])
        held = sum(file.size for file in Folder().files(writer.journal.folder).values())
        assert held <= limit * 1.25
    writer.end()
    found = writer.journal.read(0)
    assert found.truncated
    assert found.data == data[found.start :]
    assert limit <= len(found.data) <= limit * 1.25
    assert found.end == len(data)


def test_told_of_the_end_it_keeps_what_still_waits(start):
    writer = start()
    data = os.urandom(3 << 20)
    writer.write(data)
    done = subprocess.run(["sh", writer.folder / "journal.sh", "end"], timeout=30)
    assert done.returncode == 0
    assert writer.process.wait(15) == 0
    found = writer.journal.tail(1 << 20)
    assert found.end == len(data)
    assert found.data == data[-(1 << 20) :]


@pytest.mark.night
def test_told_of_the_end_it_keeps_what_waits_however_slow_the_machine_is(start, tmp_path, monkeypatch):
    # each dd that reads begins late, and cannot be told so: a machine whose processors are all busy for so long
    slow = tmp_path / "dd"
    slow.write_text("#!/bin/sh\ncase $* in bs=*) trap '' USR1; sleep 0.5 ;; esac\nexec /bin/dd \"$@\"\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    writer = start()
    until((writer.folder / "journal.pid").exists)
    data = os.urandom(10_000)
    writer.write(data)
    subprocess.run(["sh", writer.folder / "journal.sh", "end"], timeout=30, check=True)
    assert writer.process.wait(15) == 0
    assert writer.journal.read(0).data == data


def test_told_of_the_end_when_it_is_dead_it_says_so_and_harms_nobody(start):
    writer = start()
    until((writer.folder / "journal.pid").exists)
    writer.process.kill()
    writer.end()
    with subprocess.Popen(["sleep", "1000"]) as other:
        (writer.folder / "journal.pid").write_text(f"{other.pid}\n")
        assert subprocess.run(["sh", writer.folder / "journal.sh", "end"], timeout=30).returncode == 1
        assert other.poll() is None
        other.kill()


def test_after_a_writers_death_the_next_leaves_a_gap(start):
    first = start()
    first.write(b"before")
    until(lambda: first.journal.end() == 6)
    first.process.kill()
    first.end()
    assert not first.journal.finished()
    second = start(first.folder)
    second.write(b"after")
    second.end()
    assert second.journal.read(0) == JournalSlice(b"beforeafter", 0, 12, True)
    assert second.journal.read(7) == JournalSlice(b"after", 7, 12, False)
    assert second.journal.finished()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_ends_the_writer_and_a_new_one_marks_the_gap(start, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mount is refused here")
    try:
        writer = start(disk, limit=64 << 20)
        data = os.urandom(2 << 20)
        with pytest.raises(BrokenPipeError):
            writer.write(data)
        assert writer.process.wait(15) == 1
        extent = writer.journal.extent()
        assert (extent.finished, extent.stopped) == (False, True)
        before = writer.journal.read(0)
        assert data.startswith(before.data)
        assert not before.truncated
        ballast = next(disk.glob("journal/seg.*"))
        shutil.move(ballast, tmp_path / "aside")
        (disk / "journal" / ballast.name).write_bytes(before.data[:1000])
        again = start(disk, limit=64 << 20)
        again.write(b"room again")
        again.end()
        assert not again.journal.extent().stopped
        assert again.journal.finished()
        assert again.journal.read(0) == JournalSlice(before.data[:1000] + b"room again", 0, 1011, True)
    finally:
        for writer in [one for one in (locals().get("writer"), locals().get("again")) if one]:
            writer.end()
        subprocess.run(["umount", disk], check=True)


# the writer in tmux


class Server:
    """A tmux server of the test's own, with the hook that ends a dead pane's writer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = f"tmuxctl-test-{os.getpid()}-{next(NUMBERS)}"
        conf = folder / "conf"
        conf.write_text(
            f"set -g exit-empty off\nset -g remain-on-exit on\nset -g remain-on-exit-format ''\n{journal.HOOK}\n"
        )
        names = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMUX_TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}
        self.environment = names
        self.prefix = ["tmux", "-L", self.socket, "-f", str(conf)]
        self("start-server")

    def __call__(self, *words: str, timeout: float = 30.0) -> str:
        command = [*self.prefix, *words]
        done = subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def start(self, name: str, program: str, *, folder: Path | None = None, limit: int = 64 << 20) -> Journal:
        place = folder or self.folder / name
        (place / "journal").mkdir(parents=True)
        (place / "journal.sh").write_text(journal.writer_script(limit))
        here = f"={name}:"
        self(
            *("new-session", "-d", "-s", name, "-x", "200", "-c", "/", program, ";"),
            *("pipe-pane", "-IO", "-t", here, journal.pipe_command(str(place)), ";"),
            *("set-option", "-t", here, "@tmuxctl_folder", journal.encode_path(str(place))),
        )
        return Journal(Folder(), str(place))

    def ended(self, kept: Journal, seconds: float = 30.0) -> None:
        """Wait until the journal is finished."""
        number = itertools.count(1)

        def finished() -> bool:
            if next(number) % 100 == 0:
                # makes tmux 3.3a see an exit that it overlooked; of this one too it may, which then has no answer
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self("run-shell", "true", timeout=2.0)
            return kept.finished()

        until(finished, seconds)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


@pytest.fixture
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="tj-", dir="/tmp"))
    made = Server(folder)
    pid = int(made("display-message", "-p", "#{pid}"))
    yield made
    made("kill-server")
    until(lambda: gone(pid))

    def remove() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    until(remove)


LINES = "seq -f 'line %.0f of a flood that is quite long, so that there are many bytes in it and few lines' "


def lines(last: int) -> bytes:
    return b"".join(
        b"line %d of a flood that is quite long, so that there are many bytes in it and few lines\r\n" % number
        for number in range(1, last + 1)
    )


def held(go: Path) -> str:
    """What ends a program that must not lose a byte: tmux forgets what it has not read yet when the program is gone."""
    return f"while [ ! -e {go} ]; do sleep 0.01; done; exit 3"


@pytest.mark.night
def test_a_flood_is_bounded_exact_and_readable_meanwhile(server):
    limit, count, go = 4 << 20, 340_000, server.folder / "go"
    kept = server.start("flood", f"{LINES} {count}; {held(go)}", limit=limit)
    expected = lines(count)
    position, largest = 0, 0
    while position < len(expected):
        found = kept.read(position, 200_000)
        assert found.data == expected[found.start : found.end]
        assert found.truncated == (found.start > position)
        position = found.end
        extent = kept.extent()
        largest = max(largest, extent.end - extent.start)
    assert not kept.finished()
    go.touch()
    server.ended(kept)
    assert len(expected) > 30e6
    assert kept.end() == position == len(expected)
    assert limit <= largest <= limit * 1.3
    assert kept.tail(limit).data == expected[-limit:]
    until(lambda: server("display-message", "-p", "-t", "=flood:", "#{pane_pipe} #{pane_in_mode}") == "0 0")


def test_a_cursor_holds_across_rotation_and_exit(server):
    go, leave = server.folder / "go", server.folder / "leave"
    program = f"{LINES} 20000; while [ ! -e {go} ]; do sleep 0.01; done; {LINES} 5000; {held(leave)}"
    kept, first, second = server.start("turn", program, limit=1 << 20), lines(20000), lines(5000)
    until(lambda: kept.end() == len(first))
    cursor = journal.parse_cursor(journal.format_cursor(Cursor("7", kept.end())))
    go.touch()
    until(lambda: kept.end() == len(first) + len(second))
    leave.touch()
    server.ended(kept)
    assert kept.read(cursor.offset) == JournalSlice(second, len(first), len(first) + len(second), False)
    assert kept.start() > 0


def test_a_stopped_reader_stops_nobody(server):
    kept = server.start("free", f"sleep 0.1; {LINES} 20000; exec sleep 1000", limit=1 << 20)
    with subprocess.Popen(["tail", "-f", f"{kept.folder}/seg.{0:015d}"], stdout=subprocess.PIPE) as reader:
        reader.send_signal(signal.SIGSTOP)
        until(lambda: kept.end() == len(lines(20000)))
        reader.kill()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_only_a_folder(server, name):
    go = server.folder / "go"
    kept = server.start("odd", f"echo hello; {held(go)}", folder=server.folder / "state" / name)
    until(lambda: kept.end() == 7)
    go.touch()
    server.ended(kept)
    assert kept.read(0) == JournalSlice(b"hello\r\n", 0, 7, False)
    assert not list(server.folder.rglob("pwned"))
    assert server("display-message", "-p", "-t", "=odd:", "#{pane_in_mode}") == "0"


@pytest.mark.night
def test_fifteen_sessions_at_once_are_each_complete(server):
    go = server.folder / "go"
    journals = {one: server.start(f"s{one}", f"seq -f '{one} %.0f' 20000; {held(go)}") for one in range(15)}
    expected = {one: b"".join(b"%d %d\r\n" % (one, line) for line in range(1, 20001)) for one in journals}
    for one, kept in journals.items():
        until(lambda one=one, kept=kept: kept.end() == len(expected[one]))
    go.touch()
    for one, kept in journals.items():
        server.ended(kept)
        assert kept.read(0) == JournalSlice(expected[one], 0, len(expected[one]), False)


@pytest.mark.night
def test_programs_that_end_at_once_end_their_journals(server):
    """What tmux showed is in the journal: 3.3a itself overlooks the output of about one in 300 of these."""
    for number in range(24):
        kept = server.start(f"s{number}", f"printf 'only %s' {number}; exit 3")
        server.ended(kept)
        shown = server("capture-pane", "-p", "-t", f"=s{number}:")
        assert kept.read(0).data.decode() == shown
        assert shown in (f"only {number}", "")


def test_killing_a_session_ends_its_journal(server):
    kept = server.start("gone", "echo hello; exec sleep 1000")
    until(lambda: kept.end() == 7)
    server("kill-session", "-t", "=gone")
    until(kept.finished)
    assert kept.read(0).data == b"hello\r\n"


def test_a_dead_writer_is_seen_and_another_goes_on_behind_a_gap(server):
    kept = server.start("hurt", "echo hello; exec cat")
    until(lambda: kept.end() == 7)
    pid = int(Path(kept.folder, "..", "journal.pid").read_text())
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for one in [pid, *map(int, children)]:
        os.kill(one, signal.SIGKILL)
    until(lambda: server("display-message", "-p", "-t", "=hurt:", "#{pane_pipe}") == "0")
    server("pipe-pane", "-IO", "-t", "=hurt:", journal.pipe_command(os.path.dirname(kept.folder)))
    server("send-keys", "-t", "=hurt:", "again", "Enter")
    until(lambda: kept.read(7).data.endswith(b"again\r\n"))
    found = kept.read(0)
    assert found.truncated
    assert found.data.startswith(b"hello\r\nagain")
