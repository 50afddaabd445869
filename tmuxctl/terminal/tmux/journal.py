"""What a session printed, kept as files: the writer that runs without us, and the reader.

The journal is a folder of segments named by the absolute offset of their first byte (`seg.000000000000000`), so where
each begins, how much is kept and whether anything is missing is arithmetic. A hole between two segments is a gap: the
writer died there (a full disk) and another went on behind it. The file `end` says that nothing more will come, `stopped` that
the writer could not go on, and no other has begun yet.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import Protocol

from tmuxctl.errors import NotFound, Usage
from tmuxctl.terminal.tmux import layout, options
from tmuxctl.transport.base import File
from tmuxctl.transport.segments import list_starts, segment_name
from tmuxctl.value import Value

END, STOPPED = "end", "stopped"
"""Files in its folder."""

LARGEST_SEGMENT = 8 << 20
BLOCK = 16384

# tmux runs this in `pipe-pane`: standard input is a socket on which the pane's bytes come.
# - Offsets carry a 1 in front of their 15 digits, because the shell would read leading zeros as octal.
# - dd writes what one read gave it, so a byte is in the file at once; it ends after COUNT reads for the sizes to be
#   looked at, and starts again while the next bytes wait in the socket.
# - A pane that stays after its program's end keeps the pipe open, and tmux from 3.3 on refuses to close it. So
#   `journal.sh end` signals the writer, which reads without waiting from then on: what is left, then "unavailable".
#   GNU dd goes on after SIGUSR1 (dd(1)), so no byte is lost between its read and its write. Where dd cannot read
#   without waiting, ten signals 10 ms apart are taken for the end. Elsewhere time proves nothing: on a busy machine a dd
#   may take longer to begin, and what it was to read would be lost.
WRITER = r"""# Keeps what a terminal prints in journal/seg.OFFSET, about the last LIMIT bytes of it.
LC_ALL=C
export LC_ALL
umask 077
cd "${0%/*}/journal" || exit 1

if [ "$1" = end ]; then
	[ -z "$2" ] || printf '%s\n' "$2" >../exit
	alive() {
		if [ ! -r /proc/self/cmdline ]; then ps -o args= -p "$1" | grep -q 'journal\.sh'; return; fi
		while read -r line || [ -n "$line" ]; do case $line in *journal.sh) return 0 ;; esac; done <"/proc/$1/cmdline"
		return 1
	}
	tries=0
	while [ ! -e end ] && [ $tries -lt 200 ]; do
		if read -r pid <../journal.pid; then alive "$pid" && kill -USR1 "$pid" || break; fi
		tries=$((tries + 1))
		sleep 0.01
	done 2>/dev/null
	[ -e end ]
	exit
fi

finish() {
	dd iflag=nonblock count=0 <&3 || ending=$((ending + 1))
	[ -z "$reader" ] || if [ $ending -lt 10 ]; then kill -USR1 $reader; else kill -TERM $reader; fi
}

exec 3<&0 </dev/null >/dev/null 2>&1
reader= ending=0
trap finish USR1
gap=1
if [ -e end ] || [ -L end ]; then gap=0; rm -f end; fi
[ ! -e stopped ] || rm -f stopped
begin=1000000000000000
set -- seg.*
[ -e "$1" ] || set --
for segment; do :; done
[ $# -eq 0 ] || begin=$((1${segment#seg.} + $(wc -c <"$segment") + gap))
echo $$ >../journal.pid

while :; do
	segment=seg.${begin#1} size=0
	set -- "$@" "$segment"
	while [ $size -lt SEGMENT ]; do
		dd bs=BLOCK count=COUNT <&3 >>"$segment" 2>../journal.dd &
		reader=$!
		while wait $reader; status=$?; [ $status -gt 128 ] && kill -0 $reader; do :; done
		reader= count=
		while read -r line; do
			case $line in
			*unavailable*) status=drained ;;
			*byte*) count=${line%% *} ;;
			esac
		done <../journal.dd
		case $count in '' | *[!0-9]*) count=$(($(wc -c <"$segment") - size)) ;; esac
		size=$((size + count))
		while [ $# -gt 1 ] && [ $((begin + size - 1${2#seg.})) -ge LIMIT ]; do
			rm -f "$1"
			shift
		done
		case $status in
		0) [ $count -eq 0 ] || continue ;;
		drained) ;;
		1[2-9][0-9]) [ $ending -ge 10 ] || continue ;;
		*)
			# a full disk has room for another name of a file that is there
			mv -f ../journal.dd stopped
			exit 1
			;;
		esac
		: >end
		exit
	done
	begin=$((begin + size))
done
"""

HOOK = (
    "set-hook -g pane-died "
    f'{{ run-shell -b \'sh "$(printf "#{{{options.FOLDER}}}/{layout.WRITER}")" end'
    " #{pane_dead_status}:#{pane_dead_signal} >/dev/null 2>&1; true' }"
)
"""The line of tmux.conf that tells a dead pane's writer to end, and how the program ended; the session option
`@tmuxctl_folder` holds what `encode_path` makes of its folder. Silent and successful always: `run-shell` shows anything else in
the pane."""


def writer_script(limit: int) -> str:
    """The text of FOLDER/journal.sh: keeps at least the last `limit` bytes (at least 4096), at most a quarter more.

    `sh FOLDER/journal.sh end` tells the running writer that nothing more will come and waits for it, at most about
    two seconds; it succeeds when the journal is complete. `end STATUS:SIGNAL` writes FOLDER/exit before.
    """
    limit = max(limit, 4096)
    segment = min(limit // 8, LARGEST_SEGMENT)
    block = min(BLOCK, segment)
    values = {"LIMIT": limit, "SEGMENT": segment, "BLOCK": block, "COUNT": max(1, segment // 4 // block)}
    return re.sub(r"\b(LIMIT|SEGMENT|BLOCK|COUNT)\b", lambda found: str(values[found[0]]), WRITER)


def encode_path(folder: str) -> str:
    """A path for printf(1) that no tmux format, strftime or quoted shell word changes: what is not plain is octal."""
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"
    return "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in os.fsencode(folder))


def pipe_command(folder: str) -> str:
    """The shell command for `pipe-pane -IO` that starts the writer of a session's absolute folder.

    With -I tmux notices at once when the writer died (`pane_pipe` 0), without it only when the pane prints again.
    The script's name stands inside the printf, so that `$(...)` finds no newline of the folder's to take away.
    """
    return "exec " + script_command(folder, layout.WRITER)


def script_command(folder: str, script: str, *arguments: str) -> str:
    """The shell command that runs one of a session's scripts, safe in `pipe-pane` and `run-shell`, whatever the path holds.

    Both expand their string as a format and by strftime(3), and `#(...)` would run a program (tmux(1), FORMATS): none of
    it is left. Script and arguments are our own plain words.
    """
    return " ".join((f"sh \"$(printf '{encode_path(folder)}/{script}')\"", *arguments))


class JournalFiles(Protocol):
    """The part of a transport a reader needs."""

    def files(self, folder: str) -> dict[str, File]: ...

    def read_grown(self, path: str, offset: int = 0, limit: int | None = None) -> bytes: ...


class JournalSlice(Value):
    """A stretch of a journal: `start` is the offset of its first byte, `end` where to read on.

    `truncated` says that bytes asked for are missing before or within `data`: rotated away, or never written.
    """

    data: bytes
    start: int
    end: int
    truncated: bool

    def count_missing(self, asked: int) -> int:
        """How many bytes are missing of those from the offset `asked` on. A gap of unknown size counts as one."""
        return self.end - asked - len(self.data) if self.truncated else 0


class JournalExtent(Value):
    """How far a journal reaches: the oldest kept offset, the offset behind its last byte, whether nothing more will come,
    when it last grew, in seconds of the machine's wall clock (0: never), and whether what is printed now is not kept, as its writer
    could not go on."""

    start: int
    end: int
    finished: bool
    grown: float = 0.0
    stopped: bool = False


class Journal:
    """Reads the journal of the session in `folder` while it is written; never stops or slows its writer."""

    streams = True
    """What was printed is there byte for byte, to be read on from any offset."""

    def __init__(self, transport: JournalFiles, folder: str) -> None:
        self.transport = transport
        self.folder = f"{folder}/{layout.JOURNAL}"
        parent, _, name = folder.rpartition("/")
        self._moved = f"{parent.rpartition('/')[0]}/{layout.ENDED_SESSIONS}/{name}/{layout.JOURNAL}"
        self._newest: int | None = None
        """The newest segment when they were listed last."""

    def extent(self) -> JournalExtent:
        """Start, end, finished and growth from one look at the folder; all zero for a journal that is not there."""
        files, starts = self._list_files()
        if not starts:
            return JournalExtent(0, 0, END in files, stopped=STOPPED in files)
        # a segment that was just begun is empty: the one before it holds the last byte
        newest = next((file for start in reversed(starts) if (file := files[segment_name(start)]).size), None)
        end = starts[-1] + files[segment_name(starts[-1])].size
        return JournalExtent(starts[0], end, END in files, newest.modified if newest else 0.0, stopped=STOPPED in files)

    def start(self) -> int:
        """The oldest offset that is kept, in bytes since the session's beginning."""
        return self.extent().start

    def end(self) -> int:
        """The length so far, in bytes since the session's beginning, rotated ones and gap marks included."""
        return self.extent().end

    def finished(self) -> bool:
        """Whether nothing more will come. Ask before the last read, not after it."""
        return self.extent().finished

    def read(self, offset: int, limit: int | None = None) -> JournalSlice:
        """The bytes from `offset` on, at most `limit`; empty at or beyond the end. Goes on behind what is missing."""
        remaining = sys.maxsize if limit is None else limit
        position = begin = max(offset, 0)
        pieces: list[bytes] = []
        truncated, misses = False, 0
        spans = self._list_spans(position)
        while spans and remaining > 0:
            first, behind = spans[0]
            if first > position:
                truncated, position = True, first
                begin = begin if pieces else first
            try:
                data = self._read_segment(first, position, min(remaining, behind - position))
            except NotFound:
                # The writer removes the oldest first: after a second miss, stay ahead of it.
                spans = self._list_spans(position)
                del spans[: min(misses, len(spans) - 1)]
                truncated, misses = truncated or not spans, misses + 1
                continue
            if data:
                pieces.append(data)
            position, remaining = position + len(data), remaining - len(data)
            del spans[0]
        return JournalSlice(b"".join(pieces), begin, position, truncated)

    def read_on(self, offset: int, limit: int) -> JournalSlice:
        """The same of the segment that was the newest, without a look at the folder: what a later one holds is left out."""
        data = b""
        if self._newest is not None and self._newest <= offset:
            with suppress(NotFound):
                data = self._read_segment(self._newest, offset, limit)
        return JournalSlice(data, offset, offset + len(data), False)

    def tail(self, limit: int) -> JournalSlice:
        """The last `limit` bytes, or as many of them as are kept."""
        extent = self.extent()
        return self.read(max(extent.start, extent.end - limit), limit)

    def _list_spans(self, offset: int) -> list[tuple[int, int]]:
        """The segments that reach beyond `offset`: each one's start and the next one's, the last without bound."""
        _, starts = self._list_files()
        spans = zip(starts, [*starts[1:], sys.maxsize], strict=False)
        return [(first, behind) for first, behind in spans if behind > offset]

    def _list_files(self) -> tuple[dict[str, File], list[int]]:
        """What is in its folder, and where the segments among it begin. The folder may have been moved meanwhile to those of the
        ended sessions."""
        files = self.transport.files(self.folder)
        if not files and (there := self.transport.files(self._moved)):
            self.folder, files = self._moved, there
        starts = list_starts(files)
        self._newest = starts[-1] if starts else None
        return files, starts

    def _read_segment(self, segment: int, position: int, limit: int) -> bytes:
        path = f"{self.folder}/{segment_name(segment)}"
        return self.transport.read_grown(path, position - segment, limit if limit < sys.maxsize >> 1 else None)


class Cursor(Value):
    """A point in the output of one life of a session."""

    incarnation: str
    offset: int


def format_cursor(cursor: Cursor) -> str:
    """A cursor as the opaque string users hold: `c1:INCARNATION:OFFSET`."""
    return f"c1:{cursor.incarnation}:{cursor.offset}"


def parse_cursor(text: str) -> Cursor:
    """The cursor a string stands for; Usage `bad_cursor` if it is none."""
    found = re.fullmatch(r"c1:([0-9a-z.]{1,32}):([0-9]{1,15})", text)
    if not found:
        raise Usage(
            f"{ascii(text[:60])} is not a valid cursor",
            reason="bad_cursor",
            hint="pass a cursor as an earlier result gave it, as in c1:2:118",
        )
    return Cursor(found[1], int(found[2]))
