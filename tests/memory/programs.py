"""Programs of the machine in memory, each a few lines of reaction to what is typed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory.formats import Unknown

if TYPE_CHECKING:
    from memory.tmux import Pane


class Program:
    """A program on a pane. `canonical` and `echo` are its terminal's modes; `job` is a child that has the terminal and
    sleeps; `unread` counts the bytes of lines it has not taken, `woken` how often it has."""

    name = "program"
    canonical = echo = True

    def __init__(self, pane: Pane, argv: list[str], env: dict[str, str], cwd: str) -> None:
        self.pane, self.argv, self.env, self.cwd = pane, argv, env, cwd
        self.job: str | None = None
        self.pending = b""
        self.unread = self.woken = 0

    def start(self) -> None:
        """What it does first."""

    def line(self, line: bytes) -> None:
        """A whole line, its newline included."""

    def raw(self, data: bytes) -> None:
        """Bytes as they come, when the terminal is not canonical."""

    def end_of_input(self) -> None:
        self.pane.exit(0)

    def signal(self, name: str) -> None:
        self.pane.exit(None, name)

    def print(self, text: str | bytes) -> None:
        """Print; the terminal makes CR LF of LF (termios, ONLCR)."""
        data = text.encode() if isinstance(text, str) else text
        self.pane.output(data.replace(b"\n", b"\r\n"))

    def typed(self, data: bytes) -> None:
        """The line discipline: echo, line editing, signals (termios(3))."""
        if not self.canonical:
            self.woken += 1
            self.raw(data)
            return
        for piece in re.findall(rb"[\x03\x04\x15\r\n]|[^\x03\x04\x15\r\n]+", data):
            self._cook(piece)

    def _cook(self, piece: bytes) -> None:
        if piece == b"\x03":
            self.pending = b""
            self.print("^C")
            self.signal("INT")
        elif piece == b"\x04" and not self.pending:
            self.end_of_input()
        elif piece == b"\x15":
            self.print("\b \b" * len(_shown(self.pending)) if self.echo else "")
            self.pending = b""
        else:
            piece = b"\n" if piece == b"\r" else piece
            if self.echo:
                self.print(_shown(piece))
            self.pending += piece
            if piece == b"\n":
                line, self.pending = self.pending, b""
                self.woken += 1
                self.line(line)


def _shown(typed: bytes) -> bytes:
    """What a terminal echoes: control characters as ^X (termios(3), ECHOCTL)."""
    return re.sub(rb"[\x00-\x08\x0b-\x1f]", lambda found: b"^" + bytes([found[0][0] ^ 64]), typed)


class Cat(Program):
    """Repeats each line."""

    name = "cat"

    def line(self, line: bytes) -> None:
        self.print(line)


class Typed(Program):
    """In raw mode: tells how many bytes came, their hash, and the last of them."""

    name = "python3"
    canonical = echo = False

    def start(self) -> None:
        self.seen = b""
        switches = "\x1b[?2004h" * ("bracketed" in self.argv) + "\x1b[?2004l" * ("longer" in self.argv)
        self.print(switches + "ready\n")

    def raw(self, data: bytes) -> None:
        self.seen += data
        digest = hashlib.sha1(self.seen).hexdigest()
        self.print(f"got {len(self.seen)} {digest} {self.seen[-64:].hex()}.\n")


class About(Program):
    """Tells its arguments, folder, size and some variables as hex of JSON, then repeats lines."""

    name = "python3"

    def start(self) -> None:
        grid = self.pane.grid
        env = {name: self.env[name] for name in sorted(self.env)}
        about = {"argv": self.argv[4:], "cwd": self.cwd, "size": [grid.cols, grid.height], "env": env}
        self.print("about " + json.dumps(about).encode().hex() + ".\n")


class Count(Program):
    """Prints the numbers up to its argument, then repeats lines."""

    name = "python3"

    def start(self) -> None:
        self.print("".join(f"line {number}\n" for number in range(1, int(self.argv[4]) + 1)))

    def line(self, line: bytes) -> None:
        self.print(line)


class Secret(Program):
    """Asks for a password without echo, and tells how long it was."""

    name = "python3"

    def start(self) -> None:
        self.echo = False
        self.print("password: ")

    def line(self, line: bytes) -> None:
        self.echo = True
        self.print(f"\nit has {len(line) - 1} bytes\n")


class Shell(Program):
    """A shell that knows echo, printf, sleep, exit, true, false, cd, pwd, kill, and the files `exec` makes."""

    name = "sh"

    def start(self) -> None:
        self.status = 0
        self.token = ""
        self.ahead: list[str] = []
        self.waiting: list[list[str]] = []
        if self.argv[1:2] == ["-c"]:
            self.run(self.argv[2])
        elif self.argv[1:]:
            raise Unknown(f"shell arguments {self.argv}")
        else:
            self.print("$ ")

    def line(self, line: bytes) -> None:
        self.ahead.append(line.decode(errors="replace"))
        self.unread += len(line)
        if not self.job:
            self.run(self.taken())

    def taken(self) -> str:
        """The next of the lines that were typed ahead."""
        line = self.ahead.pop(0)
        self.unread = sum(len(one.encode()) for one in self.ahead)
        return line

    def run(self, text: str) -> None:
        self.waiting = _commands(text) + self.waiting
        self.go_on()

    def go_on(self) -> None:
        self.job = None
        while self.waiting and not self.job and not self.pane.dead:
            words = self.waiting.pop(0)
            if words:
                self.status = COMMANDS[words[0]](self, words) if words[0] in COMMANDS else self.missing(words[0])
        if not self.job and not self.pane.dead:
            self.done()

    def missing(self, word: str) -> int:
        raise Unknown(f"shell command {word!r}")

    def done(self) -> None:
        if self.token:
            self.mark(f"D;{self.status};")
        if self.argv[1:2] == ["-c"]:
            self.pane.exit(self.status)
        else:
            self.print("$ ")
            if self.ahead:
                self.run(self.taken())

    def mark(self, what: str) -> None:
        self.pane.output(f"\x1b]133;{what}tmuxctl={self.token}\x07".encode())
        if what.startswith("D"):
            self.token = ""

    def signal(self, name: str) -> None:
        if name in ("HUP", "KILL") or (name == "TERM" and self.argv[1:]):
            self.pane.exit(None, name)
        elif name == "INT":
            self.waiting, self.status = [], 130
            self.print("\n")
            self.go_on()

    def source(self, words: list[str]) -> int:
        """What `exec` typed: take the command and the token out of the file, and remove the file as it would itself."""
        script = bytes(self.pane.machine.read(words[1])).decode()
        found = re.search(r"^ +\\eval ('(?:[^']|'\\'')*') ;;\nesac$", script, re.MULTILINE)
        token = re.search(r"133;C;tmuxctl=(\w+)", script)
        if not found or not token:
            raise Unknown("a file to read that exec did not write")
        self.pane.machine.remove(words[1])
        self.token = token[1]
        self.mark("C;")
        self.waiting = _commands(shlex.split(found[1])[0])
        return self.status

    def sleep(self, words: list[str]) -> int:
        self.job = "sleep"
        self.pane.machine.later(float(words[1]), lambda: self.go_on() if self.job else None)
        return 0

    def echo_(self, words: list[str]) -> int:
        self.print(" ".join(words[1:]) + "\n")
        return 0

    def printf(self, words: list[str]) -> int:
        self.print(words[1].replace("\\n", "\n"))
        return 0

    def exit_(self, words: list[str]) -> int:
        self.pane.exit(int(words[1]) if words[1:] else self.status)
        return 0

    def cd(self, words: list[str]) -> int:
        self.cwd = os.path.normpath(os.path.join(self.cwd, words[1]))
        return 0

    def pwd(self, words: list[str]) -> int:
        self.print(self.cwd + "\n")
        return 0

    def kill(self, words: list[str]) -> int:
        if words[2] != "$$":
            raise Unknown(f"kill {words}")
        self.pane.exit(None, words[1][1:])
        return 0


def _commands(text: str) -> list[list[str]]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";")
    lexer.whitespace_split, lexer.commenters = True, ""
    found: list[list[str]] = [[]]
    for word in lexer:
        if word == ";":
            found.append([])
        else:
            found[-1].append(word)
    return found


COMMANDS: dict[str, Callable[[Shell, list[str]], int]] = {
    ".": Shell.source, "sleep": Shell.sleep, "echo": Shell.echo_, "printf": Shell.printf, "exit": Shell.exit_,
    "cd": Shell.cd, "pwd": Shell.pwd, "kill": Shell.kill, "true": lambda shell, words: 0, "false": lambda shell, words: 1,
}  # fmt: skip

KNOWN: dict[str, type[Program]] = {
    "cat": Cat, "sh": Shell, "typed.py": Typed, "about.py": About, "count.py": Count, "secret.py": Secret
}  # fmt: skip


def find(argv: list[str]) -> type[Program] | None:
    """The program an argv starts: by its name, or by the script of tests/programs it is given."""
    name = next((os.path.basename(word) for word in argv[1:] if "/tests/programs/" in word), os.path.basename(argv[0]))
    return KNOWN.get(name)
