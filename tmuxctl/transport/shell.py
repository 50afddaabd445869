"""One POSIX sh at the other end of a pipe: script goes down, framed answers come up.

An answer stands between lines with an unguessable word: `WORD<`, what was printed, `WORD STATUS`, the complaint, `WORD>`.
PRELUDE is what the shell over there learns first.
"""

from __future__ import annotations

import os
import select
import signal as signals
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from tmuxctl.errors import Unreachable
from tmuxctl.transport.base import BASICS, shell_word
from tmuxctl.transport.groups import LEAVE

LINE = 16 * 1024

LAST_WORDS = 0.5
"""Seconds that the complaint of a shell that ended is waited for."""

ANSWER_MOST = 64 << 20
"""Bytes that one answer may have: more than a screen with all its history, or a piece of a file."""

BESIDE_MOST = 1 << 20
"""Bytes that may come before an answer and belong to none: what a login prints."""

BAD_ANSWER = "bad_answer"
"""The reason of the error for an answer that no shell of ours gives."""

# Exit statuses by which the functions below name a failure (sysexits.h: NOINPUT, CANTCREAT, IOERR, TEMPFAIL, NOPERM)
MISSING, EXISTS, FAULT, HELD, OWNER, MODE, KIND = 66, 73, 74, 75, 77, 78, 79
STRANGE, OPEN, UNMADE, LATE, OTHER = 80, 81, 82, 83, 84

PRELUDE = r"""
before=$(umask); umask 077; unset TMUX TMUX_PANE
T=$(mktemp -d "${TMPDIR:-/tmp}/tmuxctl.XXXXXX") || exit 73
trap 'rm -rf "$T"' EXIT; trap 'exit 143' HUP INT TERM; trap '' PIPE
reply() {
  printf '\n%s %s\n' "$1" "$2"; [ ! -s "$T/e$3" ] || cat "$T/e$3"; printf '\n%s>\n' "$1"
}
reply_from_files() {
  printf '\n%s<\n' "$1"; [ ! -s "$T/o$3" ] || cat "$T/o$3"; reply "$@"; rm -f "$T/o$3" "$T/e$3"
}
say() { printf '%s\n' "$2" >&2; exit "$1"; }
if stat -c %f / >/dev/null 2>&1; then look() { stat -c '%f %s %Y %y/%n/' -- "$@" 2>/dev/null; }
else look() { stat -f '%Xp %z %m %Fm/%N/' -- "$@" 2>/dev/null; }; fi
if printf 'a\0b\0' | grep -qzxF -e b 2>/dev/null; then zero=true; else zero=false; fi
if [ -r /proc/self/stat ]; then
  begun() {
    line=
    { while IFS= read -r more || [ -n "$more" ]; do line="$line $more"; done <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -f; set -- ${line##*) }; set +f
    state=$1 group=$3 session=$4 terminal=$5 foreground=$6 now=${20}
  }
else
  begun() { now=$(LC_ALL=C ps -o lstart= -p "$1" | tr ' ' _); state=$(ps -o state= -p "$1"); [ -n "$now" ]; }
fi
alive() { begun "$1" && [ "$now" = "$2" ] && case $state in [ZX]*) false ;; esac; }
state_home() {
  case ${XDG_STATE_HOME-}:${HOME-} in
    /*) state=$XDG_STATE_HOME ;;
    *:/*) state=$HOME/.local/state ;;
    *) say 82 "there is no HOME" ;;
  esac
}
facts() {
  state_home
  up=-; [ ! -r /proc/uptime ] || read -r up rest </proc/uptime
  # a file that was made just now tells the time
  printf '%s\n%s\n%s\n%s' "$up" "$(uname -m)" "$(: >"$T/n"; look "$T/n")" "$state"
}
folder() {
  [ -d "$1" ] || mkdir -p -- "$1" || exit 82
  [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || say 77 "$1"
  case $(ls -ldn -- "$1") in drwx------*) ;; *) say 78 "$1" ;; esac
}
# the folders of a tmux server's files
ready() { state_home; way "$state" && folder "$state/tmuxctl" && folder "$state/tmuxctl/$1"; }
# the rule of tmuxctl/ownership.py, for every name on the way to a folder
way() (
  # most often nothing on the way is a link or has a strange name: then one look is enough
  set -f; IFS=/; at= list=/ me=$(id -u)
  for name in $1; do
    [ -n "$name" ] || continue
    at=$at/$name; case $name in .|..|*[!A-Za-z0-9._-]*) list=; break ;; esac
    [ ! -L "$at" ] || { list=; break; }
    [ -e "$at" ] || break
    list="$list $at"
  done
  unset IFS
  [ -n "$list" ] && LC_ALL=C ls -ldn -- $list | {
    read -r mode count top rest; good=true
    while read -r mode count owner rest; do
      case " 0 $me $top " in *" $owner "*) ;; *) good=false ;; esac
      case $mode in ?????-??-*|?????????[tT]*) ;; *) good=false ;; esac
    done
    $good
  } && exit 0
  set -f; at=/ rest=$1 links=0; set -- $(ls -ldn /); top=$3
  while [ -n "$rest" ]; do
    name=${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
    case $name in ''|.) continue ;; ..) at=${at%/*}; continue ;; esac
    here=${at%/}/$name
    [ -e "$here" ] || [ -L "$here" ] || exit 0
    set -- $(ls -ldn -- "$here")
    case " 0 $me $top " in *" $3 "*) ;; *) say 80 "$3 $1 $here" ;; esac
    if [ -L "$here" ]; then
      links=$((links + 1)); [ "$links" -le 40 ] || exit 0
      to=$(readlink -- "$here")
      case $to in /*) at=/ ;; esac
      rest=$to/$rest
      continue
    fi
    at=$here
    case $1 in ?????-??-*|?????????[tT]*) ;; ?????w??-*) own_group "$1" "$3" "$4" || say 81 "$3 $1 $here" ;;
    *) say 81 "$3 $1 $here" ;; esac
  done
)
own_group() {
  user=$(id -un "$2") group=$(getent group "$3") || return 1
  case $1:$group in *+*:*) return 1 ;; *:"$user:"*:|*:"$user:"*:"$user") ;; *) return 1 ;; esac
  [ "$(getent passwd | cut -d: -f4 | grep -cx "$3")" = 1 ]
}
flush() { [ -z "$1" ] || sync -- "$2" 2>/dev/null || sync; }
put() {
  [ ! -d "$1" ] || [ -L "$1" ] || say 73 "$1 is a folder"
  (set -C; cat "$T/d" >"$1.$3.new") && chmod "$2" "$1.$3.new" && flush "$4" "$1.$3.new" &&
    { [ ! -L "$1" ] || rm -f -- "$1"; } && mv -f -- "$1.$3.new" "$1" || { rm -f -- "$1.$3.new"; exit 74; }
}
# before this second of the machine's clock, or not at all: what comes behind a cut may come very late
before() {
  if [ -r /proc/uptime ]; then read -r up rest </proc/uptime; up=${up%.*}; else up=$(date +%s); fi
  [ "$up" -lt "$1" ] || say 83 "too late by $((up - $1)) s"
}
end_of() {
  set -- "$1"/seg.*; for end do :; done; [ -f "$end" ] || say 66 "$1"
  end=$((1${end##*.} - 1000000000000000 + $(wc -c <"$end"))); printf '%s\n' "$end"
}
row() { begun "$1" && printf '%s) %s %s %s %s %s\n' "${line%)*}" "$group" "$session" "$terminal" "$foreground" "$now"; }
append() {
  [ ! -L "$1" ] && { [ ! -e "$1" ] || [ -f "$1" ]; } || say 79 "$1 is no regular file"
  [ -d "${1%/*}" ] || say 66 "$1"
  cat "$T/d" >>"$1" && wc -c <"$1" || exit 74
}
move() {
  [ -e "$1" ] || [ -L "$1" ] || say 66 "$1"
  [ ! -d "$2" ] || [ -L "$2" ] || say 73 "$2 is a folder"
  { [ ! -L "$2" ] || rm -f -- "$2"; } && mv -f -- "$1" "$2" || exit 74
}
piece() {
  [ ! -L "$1" ] || say 79 "$1 is a link"; [ -e "$1" ] || say 66 "$1"
  [ -f "$1" ] && [ -r "$1" ] || say 79 "$1 cannot be read"
  if [ "$2" = 1 ]; then head -c "$3" <"$1"; else tail -c "+$2" <"$1" | head -c "$3"; fi
}
# behind a line with a word, the number of its folder and its name, the beginning of each file
gather() {
  word=$1 limit=$2 names=$3 number=0; shift 3
  for folder do
    for name in $names; do
      set -- "$folder/$name"
      [ -f "$1" ] && [ ! -L "$1" ] && [ -r "$1" ] || continue
      printf '\n%s %s %s\n' "$word" "$number" "$name"; head -c "$limit" <"$1"
    done
    number=$((number + 1))
  done; :
}
# from where, and the bytes from there on
rest() { printf '%s\n' "$2"; piece "$1" "$(($2 + 1))" "$3"; }
marked() {
  if $zero; then grep -lzxF -e "TMUXCTL_SESSION=$1" /proc/[0-9]*/environ 2>/dev/null
  else for one in /proc/[0-9]*/environ; do
    tr '\0' '\n' <"$one" 2>/dev/null | grep -qxF -e "TMUXCTL_SESSION=$1" && printf '%s\n' "$one"
  done; fi | while read -r one; do cat "${one%environ}stat" 2>/dev/null; done; :
}
send() {
  name=$1; shift
  for one do
    if [ -n "${one#*:}" ]; then begun "${one%:*}" && [ "$now" = "${one#*:}" ] || continue; fi
    kill -s "$name" "${one%:*}" 2>/dev/null
  done; :
}
peek() {
  if [ "$1" != 0 ]; then begun "$1" || say 0 dead; case $state in [ZX]*) say 0 dead ;; esac; printf '%s\n' "$now"; fi
  shift; for one do look "$one"/*; done; :
}
room() {
  df -Pk -- "$1" | { read -r head; read -r disk blocks used free rest; printf '%s\n' "$free"; }
  # a shell's read takes a byte at a time, of which such a file gives only the first
  for one in nr max; do printf '%s\n' "$(cat /proc/sys/kernel/pty/$one 2>/dev/null)"; done
  set -- "$2" $(ls "/proc/$2/fd" 2>/dev/null | wc -l); [ -r "/proc/$1/limits" ] || set --
  printf '%s\n' "$2"; [ $# -eq 0 ] || sed -n 's/^Max open files *\([0-9]*\).*/\1/p' "/proc/$1/limits"; [ $# -ne 0 ] || echo
}
load() {
  printf '%s %s ' "$(getconf PAGESIZE)" "$(getconf CLK_TCK)"
  cat /proc/[0-9]*/stat 2>/dev/null | sed -n 's/^\([0-9]*\) (.*) /\1 /p' | awk -v root="$1" '
    { up[$1] = $3; cpu[$1] = $13 + $14 + $15 + $16; memory[$1] = $23 }
    END { for (p in up) { for (q = p; (q in up) && q != root; q = up[q]); if (q == root && (root in up)) {
      n++; c += cpu[p]; m += memory[p] } } printf "%d %d %d", n, c, m }'
}
settings() { [ ! -c "$1" ] || LC_ALL=C stty -a <"$1"; }
probe() {
  asked=$1 polls=" $2 " selects=" $3 " columns=$4 stats= told= ended= files=/proc/uptime lines= links= sets=0 held=0; shift 4
  cd "$T"; : >w; : >m; look w
  while [ $# -gt 1 ]; do
    printf 'tty %s\n' "$2"; settings "$2"
    if [ "$asked" != tty ] && [ "$asked" != ps ] && begun "$1" && [ "$terminal" != 0 ]; then
      at=$terminal home=$session front=$foreground seen= count=0
      below "$1"
      [ -n "$seen" ] || below $(members)
    fi
    shift 2
  done 2>/dev/null
  for one in $told; do
    lines="$lines /proc/$one/task/*/status"
    case $asked in full) files="$files /proc/$one/task/*/syscall" ;; esac
    case $asked in full | wchan)
      owner; files="$files /proc/$one/task/*/wchan" info=/proc/$owner/fdinfo link=/proc/$owner/fd
      lines="$lines $info/? $info/?? $info/[12]??" links="$links $link/? $link/?? $link/[12]??" ;;
    esac
  done
  echo files
  # all of the first, whose lines have a number in front or no colon; some lines of the others
  LC_ALL=C grep -s -e '^[0-9]' -e '^[^:]*$' -e ') . [0-9]' -e '^State:' -e '^voluntary_ctxt' -e '^tfd:' -e '^tty-index:' \
    /dev/null $stats $files $lines
  echo memory
  [ "$asked" != full ] || for one in $told; do
    owner
    for file in "/proc/$one/task"/*/syscall; do
      number=; read -r number first second third fourth fifth rest <"$file" && [ "$sets" -lt 64 ] || continue
      case $polls in *" $number "*) memory "$first" $((second < 256 ? second * 8 : 2048)) ;; esac
      case $polls in *" $number ") memory "$third" 16 ;; esac
      case $selects in *" $number "*)
        for address in "$second" "$third" "$fourth"; do
          memory "$address" $((first < 1024 ? (first + 63) / 64 * 8 : 128))
        done
        memory "$fifth" 16 ;;
      esac
    done
  done 2>/dev/null
  echo bytes
  [ "$held" = 0 ] || od -An -v -tx1 m
  echo links
  [ -z "$links" ] || LC_ALL=C ls -ldn $links 2>/dev/null
  [ "$asked" != ps ] || { echo ps; LC_ALL=C COLUMNS=200 ps -A -o "$columns" 2>/dev/null; }; :
}
owner() {
  owner=$one
  case "$ended " in *" $one "*) for owner in "/proc/$one/task"/*; do :; done; owner=${owner##*/} ;; esac
}
memory() {
  [ "$1" != 0x0 ] && [ "$2" -gt 0 ] || return 0
  sets=$((sets + 1)) count=$(($2 / 4))
  # all pieces into one file, so that one od prints them; one that fails is written over by the next
  dd if="/proc/$owner/mem" of=m bs=4 skip=$(($1 / 4)) seek="$held" count="$count" conv=notrunc || return 0
  printf '%s %s %s\n' "$owner" "$1" $((count * 4)); held=$((held + count))
}
below() {
  while [ $# -gt 0 ] && [ "$count" -lt 128 ]; do
    next=
    for one do
      begun "$one" || continue
      stats="$stats /proc/$one/stat" count=$((count + 1))
      [ "$state" != Z ] || ended="$ended $one"
      if [ "$group" = "$front" ] && [ "$terminal" = "$at" ]; then told="$told $one" seen=1
      elif [ "$terminal" != "$at" ] || [ "$session" != "$home" ]; then told="$told $one"; fi
      if [ "$terminal" != "$at" ] && [ "$terminal" != 0 ] && [ "$session" = "$one" ]; then
        path=/proc/$one/root/dev/pts/$((terminal & 255 | terminal >> 12 & 1048320))
        printf 'tty %s\n' "$path"; settings "$path"
      fi
      for file in "/proc/$one/task"/*/children; do
        line=; read -r line <"$file"; next="$next $line"
      done
    done
    set -- $next
  done
}
members() {
  for one in $(LC_ALL=C grep -slE "\\) . [0-9]+ $front [0-9]+ $at " /proc/[0-9]*/stat); do
    one=${one#/proc/}; printf '%s ' "${one%/stat}"
  done
}
lock() {
  begun $$; holder=$$:$now
  if ln -s "$holder" "$1" 2>/dev/null; then printf %s "$holder"; exit 0; fi
  held=$(readlink "$1") || exit 75
  alive "${held%:*}" "${held#*:}" || rm -f -- "$1"
  exit 75
}
unlock() { [ "$(readlink "$1")" != "$2" ] || rm -f -- "$1"; }
revive() {
  [ -O "$1/server" ] && read -r pid start <"$1/server" && alive "$pid" "$start" && kill -s USR1 "$pid" &&
    printf %s "$pid"
}
leave() { LEAVE :; }
place() {
  # sudo leaves us in the caller's folder, which may be closed to this user
  [ -x . ] || cd 2>/dev/null || cd /
  pwd; ulimit -Sn; env -0 2>/dev/null || env | tr '\n' '\0'
}
record() {
  begun "$2" && printf '%s %s\n' "$2" "$now" >"$1/server.new" && flush durable "$1/server.new" &&
    mv -f -- "$1/server.new" "$1/server"
}
start() {
  umask "$before"; cd /; ulimit -Sn "$(ulimit -Hn)" 2>/dev/null
  leave
  for name in BASICS TMUX_TMPDIR; do
    eval "[ -z \"\${$name+set}\" ] || set -- \"$name=\$$name\" \"\$@\""
  done
  exec env -i "$@"
}
""".replace("LEAVE", LEAVE).replace("BASICS", " ".join(BASICS))


class Exchange:
    """One request under way since `sent` (monotonic), and its answer once that is there: exit status, output, complaint.
    `seconds`: how long the shell may be at it."""

    def __init__(self, nonce: bytes, seconds: float) -> None:
        self.nonce, self.seconds, self.sent = nonce, seconds, time.monotonic()
        self.answer: tuple[int, bytes, bytes] | None = None


class RemoteShell:
    """A process that reads script from its standard input: bytes down, framed answers up. Many requests may be under way, from
    many threads: the answers come in their order, and one of those who wait reads for all."""

    def __init__(self, argv: Sequence[str], prelude: bytes) -> None:
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,
            )
        except OSError as error:
            raise Unreachable(f"{argv[0]}: {error.strerror}", reason="no_machine") from None
        self._pipes = [pipe for pipe in (self._process.stdin, self._process.stdout, self._process.stderr) if pipe]
        self._input, self._output, self._errors = (pipe.fileno() for pipe in self._pipes)
        self._complaint = b""
        self._unsent = memoryview(prelude)
        self._received, self._seen = bytearray(), 0
        self._turn = threading.Condition()
        self._under_way: deque[Exchange] = deque()
        self._answered = time.monotonic()
        """When the last answer came, or the first request was sent since all were answered."""
        self._reader: Exchange | None = None
        self._failure, self._reason = "", "no_machine"
        self._over = self._has_answered = False
        for pipe in (self._input, self._output, self._errors):
            os.set_blocking(pipe, False)

    @property
    def has_answered(self) -> bool:
        """Whether it ever answered: then it was reached."""
        return self._has_answered

    @property
    def ended(self) -> bool:
        """Whether the shell has gone since the last call."""
        return self._process.poll() is not None

    def begin(self, request: bytes, nonce: bytes, seconds: float) -> Exchange:
        """Send `request`, whose answer is framed behind `nonce`, without waiting for that; the shell may be at it for so long."""
        exchange = Exchange(nonce, seconds)
        with self._turn:
            if not self._under_way:
                self._answered = time.monotonic()
            self._under_way.append(exchange)
            self._unsent = memoryview(bytes(self._unsent) + request)
            self._write()
        return exchange

    def finish(self, exchange: Exchange, timeout: float) -> tuple[int, bytes, bytes]:
        """The answer to a request: exit status, output and complaint. TimeoutError, Unreachable."""
        deadline = time.monotonic() + timeout
        while True:
            with self._turn:
                while exchange.answer is None and not self._failure and self._reader is not None:
                    remaining = deadline - time.monotonic()
                    if remaining <= 0:
                        raise TimeoutError
                    self._turn.wait(remaining)
                if exchange.answer is not None:
                    return exchange.answer
                if self._failure:
                    raise Unreachable(self._failure, reason=self._reason)
                self._reader = exchange
            try:
                self._read_until(exchange, deadline)
            finally:
                with self._turn:
                    self._reader = None
                    if self._over:
                        self._close_pipes()
                    self._turn.notify_all()

    def is_stuck(self, exchange: Exchange) -> bool:
        """Whether the shell is at this request and at none before it, or at one for longer than it may be."""
        with self._turn:
            first = self._under_way[0] if self._under_way else None
            return first is exchange or (first is not None and time.monotonic() - self._answered >= first.seconds)

    def _read_until(self, exchange: Exchange, deadline: float) -> None:
        """Read for all, until this answer is there or the shell has ended."""
        while exchange.answer is None:
            self._wait_for_pipes(deadline)
            with suppress(BlockingIOError):
                data = os.read(self._output, 256 * 1024)
                if not data:
                    self._read_last_complaint(deadline)
                with self._turn:
                    if not data:
                        said = self._complaint.decode(errors="replace").strip()
                        self._failure = said or "the shell over there ended"
                        return
                    self._received += data
                    try:
                        self._hand_out()
                    except ValueError as error:
                        self._failure, self._reason = str(error), BAD_ANSWER
                        self._received.clear()
                        return

    def _hand_out(self) -> None:
        """Give what was received to those whose answers it is."""
        found = False
        while self._under_way and (parsed := _parse_answer(self._received, self._under_way[0].nonce, self._seen)):
            self._under_way.popleft().answer, end = parsed
            del self._received[:end]
            self._seen, found = 0, True
        self._seen = len(self._received)
        if found:
            self._has_answered = True
            self._answered = time.monotonic()
            self._turn.notify_all()

    def _write(self) -> None:
        """Send as much as the pipe takes."""
        try:
            self._unsent = self._unsent[os.write(self._input, self._unsent) :]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ValueError):
            self._unsent = self._unsent[:0]

    def _wait_for_pipes(self, deadline: float) -> None:
        """Wait until there is something to read, sending what is not sent yet; TimeoutError at the deadline."""
        waiting = select.poll()
        waiting.register(self._output, select.POLLIN)
        if self._errors >= 0:
            waiting.register(self._errors, select.POLLIN)
        if self._unsent:
            waiting.register(self._input, select.POLLOUT)
        remaining = deadline - time.monotonic()
        ready = dict(waiting.poll(remaining * 1000)) if remaining > 0 else {}
        if not ready:
            raise TimeoutError
        if self._input in ready:
            with self._turn:
                self._write()
        if self._errors in ready:
            data = os.read(self._errors, 4096)
            self._complaint = (self._complaint + data)[-4096:]
            if not data:
                self._errors = -1

    def _read_last_complaint(self, deadline: float) -> None:
        """Read what it said of its end; a process that it left behind may hold the pipe, so this waits for a moment only."""
        until = min(deadline, time.monotonic() + LAST_WORDS)
        waiting = select.poll()
        waiting.register(self._errors, select.POLLIN) if self._errors >= 0 else None
        while self._errors >= 0 and (remaining := until - time.monotonic()) > 0 and waiting.poll(remaining * 1000):
            data = os.read(self._errors, 4096)
            self._complaint = (self._complaint + data)[-4096:]
            if not data:
                return

    def close(self, seconds: float) -> None:
        """Let it end by itself (it then removes its temporary folder), and end it where that takes longer, unless it has answered
        all that was waited for, and only has to hear that nothing more comes."""
        with self._turn:
            if self._reader is None and not self._over:
                while self._unsent and not self._failure:
                    os.set_blocking(self._input, True)
                    self._write()
                self._pipes[0].close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            self.end()
            return
        if seconds >= 1.0 or self._unsent:
            self.end()

    def end(self) -> None:
        """End it with what it runs; first gently, so that it removes its temporary folder. Who waits for an answer is told."""
        for name in (signals.SIGTERM, signals.SIGKILL):
            if self._process.poll() is None:
                # one that runs as another user, as sudo does, ends with its standard input
                with suppress(PermissionError, ProcessLookupError):
                    os.killpg(self._process.pid, name)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.5)
        with self._turn:
            self._failure = self._failure or "the connection was ended"
            self._over = True
            # who reads still uses them, and closes them then
            if self._reader is None:
                self._close_pipes()
            self._turn.notify_all()

    def _close_pipes(self) -> None:
        for pipe in self._pipes:
            pipe.close()


def _parse_answer(received: bytearray, nonce: bytes, seen: int) -> tuple[tuple[int, bytes, bytes], int] | None:
    """The answer between the lines with `nonce`, and where it ends, as soon as all of it is there; what came before belongs to no
    call, and no end of it is in the first `seen` bytes. ValueError for what is no answer: a machine may send anything."""
    begin, middle, end = b"\n" + nonce + b"<\n", b"\n" + nonce + b" ", b"\n" + nonce + b">\n"
    last = received.find(end, max(0, seen - len(end)))
    if last < 0:
        if len(received) > ANSWER_MOST + BESIDE_MOST:
            raise ValueError(f"its answer is larger than {ANSWER_MOST >> 20} MiB")
        if len(received) > BESIDE_MOST and received.find(begin, 0, BESIDE_MOST) < 0:
            raise ValueError("it prints without end, and no answer")
        return None
    first = received.find(begin, 0, last)
    told = received.find(middle, first, last + 1)
    said = received.find(b"\n", told + 1, last + 1)
    status = bytes(received[told + len(middle) : said])
    if min(first, told, said) < 0 or not (status.isdigit() and len(status) <= 3):
        raise ValueError("what it answers is no answer")
    output, errors = received[first + len(begin) : told], received[said + 1 : last]
    return (int(status), bytes(output), bytes(errors)), last + len(end)


def format_call(function: str, *arguments: str) -> str:
    """A call of one of PRELUDE's functions, or of a program."""
    return " ".join([function, *map(shell_word, arguments)])


def format_data(data: bytes) -> bytes:
    """Script that makes `$T/d` hold exactly `data`."""
    lines = [b': >"$T/d"\n']
    for at in range(0, len(data), LINE):
        lines.append(b"printf '" + b"".join([ESCAPED[one] for one in data[at : at + LINE]]) + b'\' >>"$T/d"\n')
    return b"".join(lines)


def _escape_byte(byte: int) -> bytes:
    if byte == 10 or (32 <= byte < 127 and byte not in b"'\\-"):
        return b"%%" if byte == 37 else bytes([byte])
    return b"\\%03o" % byte


ESCAPED = [_escape_byte(byte) for byte in range(256)]
"""Each byte as the format of sh's printf: `-` too, which would be an option at its beginning."""
