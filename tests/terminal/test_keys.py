"""Every name that is accepted arrives in a program as the bytes of that one key, and everything else is refused."""

from __future__ import annotations

import os
import string
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tmuxctl.errors import Usage
from tmuxctl.terminal.input.keys import key_names, tmux_keys
from tmuxctl.transport.base import format_arguments, format_control_line

READER = """
import os, sys, tty
tty.setraw(0)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
while data := os.read(0, 4096):
    os.write(out, data)
"""
MARK = b"\x1e\x1d\x1e"

CONTROL = {f"ctrl+{letter}": bytes([ord(letter) & 0x1F]) for letter in "@" + string.ascii_lowercase + "[\\]^_"}
ARROWS = {
    f"{modifier}{arrow}": f"\x1b[{number}{final}".encode()
    for modifier, number in {"": "", "shift+": "1;2", "alt+": "1;3", "ctrl+": "1;5"}.items()
    for arrow, final in {"up": "A", "down": "B", "right": "C", "left": "D"}.items()
}
FUNCTIONS = {
    **{f"f{number}": b"\x1bO" + final for number, final in enumerate((b"P", b"Q", b"R", b"S"), 1)},
    **{f"shift+f{number}": b"\x1b[1;2" + final for number, final in enumerate((b"P", b"Q", b"R", b"S"), 1)},
    **{f"f{n}": f"\x1b[{code}~".encode() for n, code in enumerate((15, 17, 18, 19, 20, 21, 23, 24), 5)},
    **{f"shift+f{n}": f"\x1b[{code};2~".encode() for n, code in enumerate((15, 17, 18, 19, 20, 21, 23, 24), 5)},
}
NAMED = {
    "enter": b"\r", "return": b"\r", "tab": b"\t", "shift+tab": b"\x1b[Z", "backspace": b"\x7f", "escape": b"\x1b",
    "esc": b"\x1b", "space": b" ", "delete": b"\x1b[3~", "insert": b"\x1b[2~", "home": b"\x1b[1~", "end": b"\x1b[4~",
    "pageup": b"\x1b[5~", "page_up": b"\x1b[5~", "pagedown": b"\x1b[6~", "page_down": b"\x1b[6~",
    "alt+enter": b"\x1b\r", "alt+backspace": b"\x1b\x7f",
}  # fmt: skip
PTYAI = {**CONTROL, **ARROWS, **FUNCTIONS, **NAMED}
TMUX = {
    "C-c": b"\x03", "c-c": b"\x03", "C-C": b"\x03", "^c": b"\x03", "C-@": b"\0", "C-Space": b"\0", "C-\\": b"\x1c",
    "C-i": b"\t", "C-?": b"\x7f", "C-/": b"\x1f", "M-x": b"\x1bx", "M-X": b"\x1bX", "M-;": b"\x1b;", "M--": b"\x1b-",
    "C-M-c": b"\x1b\x03", "M-C-c": b"\x1b\x03", "C-M-Space": b"\x1b\0", "M-Space": b"\x1b ", "M-é": "\x1bé".encode(),
    "S-Tab": b"\x1b[Z", "BTab": b"\x1b[Z", "M-BTab": b"\x1b\x1b[Z", "Enter": b"\r", "ENTER": b"\r", "Return": b"\r",
    "M-Enter": b"\x1b\r", "Escape": b"\x1b", "M-Escape": b"\x1b\x1b", "Space": b" ", "BSpace": b"\x7f",
    "PPage": b"\x1b[5~", "PgUp": b"\x1b[5~", "NPage": b"\x1b[6~", "PgDn": b"\x1b[6~", "IC": b"\x1b[2~",
    "DC": b"\x1b[3~", "C-S-Left": b"\x1b[1;6D", "S-C-Left": b"\x1b[1;6D", "C-M-S-F5": b"\x1b[15;8~",
    "C-Home": b"\x1b[1;5H", "M-End": b"\x1b[1;3F", "M-F1": b"\x1b[1;3P", "C-PPage": b"\x1b[5;5~",
    "Ctrl+Alt+Delete": b"\x1b[3;7~", "CTRL+C": b"\x03", "alt+x": b"\x1bx",
}  # fmt: skip
CHARACTERS = {
    character: character.encode() for character in (*map(chr, range(32, 127)), "é", "…", "日", "👍", "\u0301")
}


class Keyboard:
    """A real tmux pane whose program writes down every byte it is typed."""

    def __init__(self, folder):
        self.server = ["tmux", "-L", f"tmuxctl-test-{os.getpid()}-keys", "-f", "/dev/null"]
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMUX_TMPDIR": str(folder)}
        self.typed = folder / "typed"
        (folder / "reader.py").write_text(READER)
        reader = f"{sys.executable} {folder}/reader.py {self.typed}"
        self.tmux(
            "new-session", "-d", "-s", "keys", "-x", "80", "-y", "24", reader, ";", "set", "-s", "escape-time", "0"
        )
        self.until(self.typed.exists)

    def tmux(self, *words):
        subprocess.run([*self.server, *words], env=self.environment, check=True, timeout=20)

    def press(self, *lists):
        """Each list of tmux words pressed in turn; the bytes that arrived for each."""
        start = self.typed.stat().st_size
        mark = ["send-keys", "-t", "=keys:", "-H", *(f"{byte:02x}" for byte in MARK)]
        for some in (lists[at : at + 100] for at in range(0, len(lists), 100)):
            self.tmux(*(word for words in some for word in (*words, ";", *mark, ";")))
        self.until(lambda: self.typed.read_bytes()[start:].count(MARK) == len(lists))
        return self.typed.read_bytes()[start:].split(MARK)[:-1]

    def until(self, holds):
        deadline = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < deadline, self.typed.read_bytes() if self.typed.exists() else "no reader"
            time.sleep(0.005)


@pytest.fixture(scope="module")
def keyboard():
    with TemporaryDirectory(dir="/tmp") as folder:
        board = Keyboard(Path(folder))
        try:
            yield board
        finally:
            board.tmux("kill-server")


EXPECTED = {**PTYAI, **TMUX, **CHARACTERS}


def command(name):
    return ("send-keys", "-t", "=keys:", *tmux_keys([name]))


def test_every_name_arrives_as_its_bytes(keyboard):
    arrived = keyboard.press(*(format_arguments([command(name)]) for name in EXPECTED))
    assert dict(zip(EXPECTED, arrived, strict=True)) == EXPECTED


def test_the_same_inside_a_command_list_written_as_text(keyboard):
    arrived = keyboard.press(*(["if-shell", "-F", "1", format_control_line([command(name)])] for name in EXPECTED))
    assert dict(zip(EXPECTED, arrived, strict=True)) == EXPECTED


def test_a_row_of_keys_with_semicolons_arrives_in_order(keyboard):
    keys = ("send-keys", "-t", "=keys:", *tmux_keys([";", "a", ";", "C-c", "-", ";"]))
    assert keyboard.press(format_arguments([keys, keys])) == [b";a;\x03-;" * 2]


def test_the_ninety_names_of_ptyai_are_listed_and_accepted():
    assert len(key_names()) == 90
    assert set(key_names()) == set(PTYAI)
    assert list(key_names()) == sorted(key_names())
    assert len(tmux_keys([name.upper() for name in key_names()])) == 90


@pytest.mark.parametrize(
    "name",
    ["", "Nosuch", "hello", "ctrl+", "C-", "M-", "ctrl+;", "C-;", "C-Tab", "C-Enter", "S-Enter", "C-BSpace", "C-1",
     "C-é", "S-a", "shift+a", "C-S-a", "F13", "F0", "MouseDown1Pane", "0x1b", "ctrl-c", "enter ", "\n", "\x1b", "\0",
     "\ud800", "e\u0301", "-R", "--", ";;", "#{x}", "Any", "x" * 5000],
)  # fmt: skip
def test_anything_else_is_refused_before_a_key_is_pressed(name):
    with pytest.raises(Usage) as refused:
        tmux_keys(["Enter", name])
    assert refused.value.reason == "bad_key"
    assert ascii(name[:40]) in refused.value.message
    assert len(str(refused.value.to_json())) < 500


WRITTEN = "keys are written C-c or ctrl+c, Enter, S-Tab, F5, M-x; text is typed with `tmuxctl send`"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("ctrl-c", "ctrl+c"), ("Control+C", "ctrl+c"), ("Control A", "ctrl+a"), ("Entre", "enter"),
     ("pgeup", "pageup, page_up, ppage"), ("Meta-x", "alt+x"), ("alt_x", "alt+x"),
     ("shift up", "shift+up"), ("npag", "npage, ppage, pageup"), ("F13", "f3, f1, f12")],
)  # fmt: skip
def test_a_near_miss_is_told(name, meant):
    with pytest.raises(Usage) as refused:
        tmux_keys([name])
    assert refused.value.hint == f"did you mean {meant}? {WRITTEN}"


@pytest.mark.parametrize("name", ["%%%%", "x" * 50])
def test_where_no_key_is_near_none_is_suggested(name):
    with pytest.raises(Usage) as refused:
        tmux_keys([name])
    assert refused.value.hint == WRITTEN


def test_what_is_no_key_in_the_right_spelling_either_is_not_suggested():
    with pytest.raises(Usage) as refused:
        tmux_keys(["ctrl-nosuch"])
    assert "ctrl+nosuch" not in refused.value.hint


def test_each_spelling_of_a_key_is_the_one_name_that_tmux_knows():
    assert tmux_keys(["S-Tab", "shift+tab", "BTab", "M-S-Tab", "ctrl+alt+c", "C-Space"]) == (
        *("BTab", "BTab", "BTab", "M-BTab"), "M-C-c", "C-Space",
    )  # fmt: skip
