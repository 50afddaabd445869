"""The part of tmux that tmuxctl uses: sessions of one pane, their options, and the commands of its lists."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memory import formats, programs
from memory.formats import Unknown
from memory.grid import Grid
from tmuxctl.transport import base
from tmuxctl.transport.base import Command

if TYPE_CHECKING:
    from memory.transport import MemoryTransport

KEYS = {
    "Enter": b"\r",
    "Tab": b"\t",
    "Space": b" ",
    "Escape": b"\x1b",
    "BSpace": b"\x7f",
    "Up": b"\x1b[A",
    "Down": b"\x1b[B",
}
FIRST_PID = 1000
VERSION = "3.3a"
TIMER = re.compile(r'sh "\$\(printf "#\{@tmuxctl_folder\}/expire\.sh"\)" (lifetime|idle) #\{pane_id\} #\{pane_pid\}')


class Pane:
    """A session with its one pane, and the program on it."""

    def __init__(self, machine: MemoryTransport, name: str, number: int, history: int) -> None:
        self.machine, self.name, self.number = machine, name, number
        self.pid = FIRST_PID + 10 * number
        # smaller than asked for, as tmux 3.2a makes it: only resize-window gives a session its size
        self.grid = Grid(80, 23, history)
        self.options: dict[str, str] = {}
        self.journal = ""
        self.in_mode = self.dead = self.input_off = False
        self.status: int | None = None
        self.by: str | None = None
        self.attached = 0
        self.program: programs.Program | None = None

    def launch(self, folder: str) -> None:
        """What launch.sh does: it removes itself, goes to the folder, takes the environment, and becomes the program."""
        script = bytes(self.machine.read(folder + "/launch.sh")).decode()
        lexer = shlex.shlex(script, posix=True, punctuation_chars="\n")
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " ", True, ""
        words = list(lexer)
        place = words[words.index("cd") + 1]
        pairs = [words[at + 1].partition("=") for at, word in enumerate(words) if word == "export"]
        argv = words[len(words) - words[::-1].index("exec") : -1]
        if "set" in words:
            # `run` keeps the terminal a moment longer than the program; there is nothing to wait for here
            start = words.index("set") + 2
            argv = words[start : words.index("\n", start)]
        self.machine.remove(folder + "/launch.sh")
        self.machine.put(folder + "/pid", b"%d\n" % self.pid)
        kind = programs.find(argv)
        if kind is None:
            raise Unknown(f"program {argv}")
        self.program = kind(self, argv, {name: value for name, _, value in pairs}, place)
        self.program.start()

    def output(self, data: bytes) -> None:
        """What the program prints, to the screen and, where there is one, the journal."""
        self.grid.feed(data.decode(errors="replace"))
        if self.journal and data:
            self.machine.append(f"{self.journal}/seg.000000000000000", data)
        self.machine.changed()

    def typed(self, data: bytes) -> None:
        if self.program and not (self.dead or self.input_off or self.in_mode):
            self.program.typed(data)

    def exit(self, status: int | None, by: str | None = None) -> None:
        """The program's end: the pane stays, the journal is finished."""
        if not self.dead:
            self.dead, self.status, self.by = True, status, by
            if self.journal:
                self.machine.append(f"{self.journal}/end", b"")
        self.machine.changed()

    def expire(self) -> None:
        """What expire.sh does when a lifetime is over."""
        if self.program and not self.dead:
            self.options["@tmuxctl_ended"] = "lifetime"
            self.program.signal("TERM")

    def look(self, name: str) -> str:
        """A format variable's value."""
        if name.startswith("@"):
            return self.options.get(name, "")
        grid = self.grid
        flags: dict[str, int] = {
            "session_attached": self.attached, "session_activity": 0, "pane_dead": self.dead, "pane_pipe": bool(self.journal),
            "pane_in_mode": self.in_mode, "pane_input_off": self.input_off, "pane_synchronized": 0, "window_panes": 1,
            "cursor_x": grid.x, "cursor_flag": 1,
            "cursor_y": grid.y - grid.top, "alternate_on": 0, "pane_width": grid.cols, "pane_height": grid.height,
            "history_size": grid.history, "history_limit": grid.limit,
            "pid": FIRST_PID, "pane_pid": self.pid, "window_activity": int(time.time()),
        }  # fmt: skip
        texts = {
            "session_name": self.name, "pane_tty": f"/dev/memory/{self.number}", "pane_title": "memory", "version": VERSION,
            "bracket_paste_flag": str(int(grid.bracketed)) if _is_since((3, 7)) else "",
        }  # fmt: skip
        if name in ("pane_dead_status", "pane_dead_signal"):
            value = self.status if name == "pane_dead_status" else self.by
            return "" if value is None else str(value)
        if name in texts:
            return texts[name]
        if name not in flags:
            raise Unknown(f"variable {name}")
        return str(int(flags[name]))


class Tmux:
    """A server: `run` carries out a command list and returns what it printed."""

    def __init__(self, machine: MemoryTransport) -> None:
        self.machine = machine
        self.panes: dict[str, Pane] = {}
        self.buffers: dict[str, bytes] = {}
        self.history = 2000
        self.count = 0
        self.printed = ""

    def run(self, commands: Sequence[Command]) -> bytes:
        self.printed = ""
        self.carry_out(commands)
        return self.printed.encode(errors="surrogateescape")

    def carry_out(self, commands: Sequence[Command]) -> None:
        for name, *words in commands:
            command: Callable[[list[str]], None] | None = getattr(self, "do_" + name.replace("-", "_"), None)
            if command is None:
                raise Unknown(f"tmux command {name}")
            command(words)

    def pane(self, options: dict[str, str], *, missing: bool = False, form: str = r"=([\w-]+):?") -> Pane | None:
        """The pane `-t` means. Only the exact forms are known: others would match by prefix."""
        found = re.fullmatch(form, options["-t"])
        if not found:
            raise Unknown(f"target {options['-t']!r}")
        if found[1] not in self.panes and not missing:
            raise base.error_of_complaint(f"can't find session: {found[1]}")
        return self.panes.get(found[1])

    def one(self, options: dict[str, str]) -> Pane:
        """The pane of a command that wants `=NAME:` and fails without."""
        pane = self.pane(options, form=r"=([\w-]+):")
        assert pane
        return pane

    def do_new_session(self, words: list[str]) -> None:
        options, rest = _options(words, "d", "sxyc")
        name = options["-s"]
        if name in self.panes:
            raise base.error_of_complaint(f"duplicate session: {name}")
        if options["-c"] != "/" or rest[:2] != ["sh", "-c"] or len(rest) != 4:
            raise Unknown(f"new-session {words}")
        self.count += 1
        pane = self.panes[name] = Pane(self.machine, name, self.count, self.history)
        folder = rest[3].removesuffix("/launch.sh")
        self.machine.later(0, lambda: pane.launch(folder))

    def do_set_option(self, words: list[str]) -> None:
        options, rest = _options(words, "gFu", "t")
        if "-g" in options and rest[0] == "history-limit":
            self.history = int(rest[1])
            return
        pane = self.one(options)
        if rest[0] == "history-limit":
            # for panes that come later; there are none
            return
        if not re.fullmatch(r"@\w+", rest[0]):
            raise Unknown(f"option {rest[0]}")
        if "-u" in options:
            pane.options.pop(rest[0], None)
        else:
            pane.options[rest[0]] = formats.expand(rest[1], pane.look) if "-F" in options else rest[1]

    def do_resize_window(self, words: list[str]) -> None:
        options, _ = _options(words, "", "txy")
        self.one(options).grid.resize(int(options["-x"]), int(options["-y"]))

    def do_rename_session(self, words: list[str]) -> None:
        options, (name,) = _options(words, "", "t")
        if name in self.panes:
            raise base.error_of_complaint(f"duplicate session: {name}")
        pane = self.pane(options)
        assert pane
        del self.panes[pane.name]
        pane.name, self.panes[name] = name, pane

    def do_kill_session(self, words: list[str]) -> None:
        pane = self.pane(_options(words, "", "t")[0])
        assert pane
        del self.panes[pane.name]
        pane.exit(None, "HUP")

    def do_pipe_pane(self, words: list[str]) -> None:
        options, (command,) = _options(words, "IO", "t")
        found = re.fullmatch(r"exec sh \"\$\(printf '([\w./\\-]+)/journal\.sh'\)\"", command)
        if not found:
            raise Unknown(f"pipe {command!r}")
        self.one(options).journal = _plain(found[1]) + "/journal"

    def do_run_shell(self, words: list[str]) -> None:
        options, (command,) = _options(words, "b", "dt")
        if command == "true":
            return
        found = TIMER.fullmatch(command)
        if not found:
            raise Unknown(f"run-shell {command!r}")
        # what a program does, and so whether it is idle, is told by a kernel that there is not
        if found[1] == "lifetime":
            pane = self.one(options)
            self.machine.later(float(options["-d"]), pane.expire)

    def do_show_options(self, words: list[str]) -> None:
        options, (option,) = _options(words, "v", "t")
        pane = self.pane(options, missing=True)
        name = formats.expand(option, pane.look if pane else _nothing)
        # set by no session: nothing is printed
        if name != base.UNSET:
            raise base.error_of_complaint(f"invalid option: {name}")

    def do_display_message(self, words: list[str]) -> None:
        options, (text,) = _options(words, "p", "t")
        if "%" in text or "-p" not in options:
            raise Unknown(f"display-message {words}")
        pane = self.pane(options, missing=True) if "-t" in options else None
        self.printed += formats.expand(text, pane.look if pane else _nothing) + "\n"

    def do_list_panes(self, words: list[str]) -> None:
        options, _ = _options(words, "a", "F")
        for pane in self.panes.values():
            self.printed += formats.expand(options["-F"], pane.look) + "\n"

    def do_capture_pane(self, words: list[str]) -> None:
        options, _ = _options(words, "peNJ", "tSE")
        grid = self.one(options).grid
        first, behind = grid.top, grid.top + grid.height
        if "-S" in options:
            if options["-E"] != "-1":
                raise Unknown(f"capture-pane {words}")
            back = grid.history if options["-S"] == "-" else min(grid.history, -int(options["-S"]))
            first, behind = grid.top - back, grid.top
        self.printed += grid.captured(first, behind, join="-J" in options)

    def do_paste_buffer(self, words: list[str]) -> None:
        options, _ = _options(words, "drpS" if _is_since((3, 7)) else "drp", "bt")
        pane = self.one(options)
        if pane.dead:
            raise Unknown("a paste into an ended program crashes tmux 3.3a")
        if _is_since((3, 7)) and "-S" not in options:
            raise Unknown("a paste that passes the text through vis(3)")
        if not {"-d", "-r"} <= options.keys():
            raise Unknown("a paste that keeps its buffer or changes LF")
        data = self.buffers.pop(options["-b"])
        pane.typed(b"\x1b[200~" + data + b"\x1b[201~" if "-p" in options and pane.grid.bracketed else data)

    def do_delete_buffer(self, words: list[str]) -> None:
        del self.buffers[_options(words, "", "b")[0]["-b"]]

    def do_send_keys(self, words: list[str]) -> None:
        options, keys = _options(words, "HX", "t")
        pane = self.one(options)
        if "-X" in options:
            if keys != ["cancel"]:
                raise Unknown(f"copy mode {keys}")
            pane.in_mode = False
            return
        for key in keys:
            pane.typed(bytes.fromhex(key) if "-H" in options else _key(key))

    def do_copy_mode(self, words: list[str]) -> None:
        options = _options(words, "q", "t")[0]
        self.one(options).in_mode = "-q" not in options

    def do_select_pane(self, words: list[str]) -> None:
        options, _ = _options(words, "de", "t")
        self.one(options).input_off = "-d" in options


def _options(words: list[str], flags: str, valued: str) -> tuple[dict[str, str], list[str]]:
    """getopt(3): the options of a command, and the rest."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest and re.match(r"-[A-Za-z]", rest[0]):
        word = rest.pop(0)
        for at, letter in enumerate(word[1:], 2):
            if letter in valued:
                found["-" + letter] = word[at:] or rest.pop(0)
                break
            if letter not in flags:
                raise Unknown(f"option -{letter} of {words}")
            found["-" + letter] = ""
    return found, rest


def _key(key: str) -> bytes:
    if key in KEYS:
        return KEYS[key]
    if re.fullmatch(r"C-[a-z]", key):
        return bytes([ord(key[2]) & 31])
    if len(key) != 1:
        raise Unknown(f"key {key}")
    return key.encode()


def _is_since(first: tuple[int, int]) -> bool:
    """Whether this server is of that version or a later one."""
    major, minor = re.findall(r"\d+", VERSION)[:2]
    return (int(major), int(minor)) >= first


def _nothing(name: str) -> str:
    return ""


def _plain(encoded: str) -> str:
    return re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), encoded)
