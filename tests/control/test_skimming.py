"""Output that is not drawn because the text that is waited for is surely not in it: nothing is missed by that."""

from __future__ import annotations

import os
import random
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tmuxctl.control.waiting.searching import Found, Search
from tmuxctl.control.waiting.text_since import Seen
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.tmux import layout
from tmuxctl.terminal.tmux.journal import Journal
from tmuxctl.transport.base import File

COLS, ROWS, WINDOW = 12, 5, 60

WORDS = [
    "ab",
    "abc",
    "a b",
    "c",
    "x1",
    "12",
    "ab ",
    "  ",
    " ",
    "b",
    "a",
    "é",
    "漢",
    "e\u0301",
    "\u200b",
    "ſ",
    "😀",
    "\ufffd",
    "$ ",
]
CONTROLS = [
    "\r\n", "\r\n", "\r\n", "\r\n", "\r\r\n", "\n", "\r", "\t", "\b", "\a", "\0", "\x1b[31m", "\x1b[0m", "\x1b[K", "\x1b[2K",
    "\x1b[A", "\x1b[2D", "\x1b[H\x1b[2J", "\x1b[3;2H", "\x1b]0;abc\a", "\x1b]0;abc\x1b\\", "\x1b(0", "\x1b(B", "\x0e", "\x0f",
    "\x1b[?1049h", "\x1b[?1049l", "\x1b7", "\x1b8", "\x1b[3b", "\x1b[2P", "\x1b[@", "\x1b[1J", "\x1bM", "\x1bc", "\x85",
]  # fmt: skip
CALM = ["\r\n", "\r\n", "\r\n", "\x1b[31m", "\x1b[0m", "\x1b[K", "\t", "\r\r\n"]

IN_LINES = [
    "^$",
    "^ *$",
    "^ab$",
    "abc$",
    "^[a-c]{4,8}$",
    r"^\d+$",
    r"^[a-c]+\d{2}$",
    "^x?1?$",
    r"^\w{9}$",
    "^[abc ]{12}$",
]

PATTERNS = IN_LINES * 3 + [
    "abc", "abab", "a b c", "ab  ab", "^abc$", "^ab$", "^a b$", "abc$", "^$", "x1+2", "(abc|x1)12", r"\$ $", r"\$$", "^12$",
    r"^[a-c]+12$", r"^\d+$", r"(\w)(\w)12", "abc.*x1", r"ab\s+c", r"c\nx1", r"abc\Z", r"\Aabc", "(?i)ABC12", "é漢", "e\u0301",
    r"^ab *x1", "c   a", "a?b12", "12{2}", r"\babc\b", "(?<=c)x1", "x1(?!2)a", "[^a]bc12", "─", "b12b", "  12", "12  ", "😀a",
    "▒", "│", "bc", "^a",
]  # fmt: skip


class ScreenOf:
    """What the tests of pure text give in place of a session's pane."""

    cols, rows, tmux, alternate = COLS, ROWS, (3, 3), False
    spec: MappingProxyType[str, Any] = MappingProxyType({})


class Folder:
    """A journal's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / layout.JOURNAL).mkdir(parents=True)
        self.segment = path / layout.JOURNAL / "seg.000000000000000"
        self.segment.touch()

    def files(self, folder: str) -> dict[str, Any]:
        return {entry.name: File(entry.stat().st_size, entry.stat().st_mtime) for entry in os.scandir(folder)}

    def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(-1 if limit is None else limit)

    read_grown = read

    def journal(self) -> Journal:
        return Journal(self, str(self.path))

    def add(self, data: bytes) -> None:
        with open(self.segment, "ab") as file:
            file.write(data)


def output(chance: random.Random) -> bytes:
    """Some output; most of it only goes on at its end."""
    pieces: list[str] = []
    if chance.random() < 0.4:
        # nothing but lines: each is a match, an echo, or nearly one
        return "".join(
            chance.choices(["ab", "abc", "c", "x1", "12", " ", "\r\n", "\r\n"], k=chance.choice([30, 100]))
        ).encode()
    calmness = chance.choice([0.7, 0.95, 1.0, 1.0])
    for _ in range(chance.choice([3, 10, 20, 40, 80])):
        calm = chance.random() < calmness
        controls = CALM if calm else CONTROLS
        pieces += chance.choices(WORDS[: 11 if calm else len(WORDS)], k=chance.randint(0, 6))
        pieces += chance.choices(controls, k=1)
    data = "".join(pieces).encode()
    if chance.random() < 0.1:
        data = data.replace(b"c", b"\xff", 1)
    return data


def chunks(chance: random.Random, data: bytes) -> list[bytes]:
    """The output as it comes: cut anywhere."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice([1, 5, 15, 30])))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if end > start]


def typed(chance: random.Random) -> LastInput:
    echo = chance.choice(["tty", "none", "editor"])
    text = chance.choice([b"abc", b"12", b"", b"not shown", b"not shown", b"ab\nx1", "é".encode()])
    return LastInput("id", 0, chance.randrange(COLS), chance.randrange(ROWS), COLS, ROWS, False, echo, text)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_not_drawn_holds_no_match(tmp_path: Path, seed: int) -> None:
    """Both look at the same output as it comes; one draws all of it."""
    for number in range(100):
        chance = random.Random(seed * 1000 + number)
        search, last_input = Search(chance.choice(PATTERNS)), typed(chance)
        folder = Folder(tmp_path / str(number))
        drawn, skimmed = (
            Seen(None, ScreenOf, folder.journal(), None, last_input, window=WINDOW)  # type: ignore[arg-type]
            for _ in range(2)
        )
        skimmed.skim(search)
        came: list[bytes] = []
        for chunk in chunks(chance, output(chance)):
            came.append(chunk)
            folder.add(chunk)
            expected, found = look(drawn, search), look(skimmed, search)
            assert found == expected, (search.pattern, last_input, came)
            if found:
                break
        if drawn._lines.alternate:
            continue
        assert skimmed.tail()[-WINDOW // 2 :] == drawn.tail()[-WINDOW // 2 :], (search.pattern, last_input, came)


def look(seen: Seen, search: Search) -> Found | None:
    seen._rows = lambda: seen._lines.text()  # type: ignore[method-assign]
    seen.feed()
    return seen.search(search, None)


@pytest.mark.parametrize(
    ("chunks", "pattern", "text"),
    [
        (["ab12345678cX\tb"], "cb", "cb"),
        (["a\tb"], "a       b", "a       b"),
        (["abcd\x1b[2D", "x"], "xd", "xd"),
        (["\x0e", "a"], "▒", "▒"),
        (["zbc\ra"], "abc", "abc"),
        (["abc\r\nxyz\x1b[A", "d\r\nQ"], "Qy", "Qy"),
        ([b"\x1b[Bx\xc3", b"\xa9"], "é", "é"),
        (["\x1b[Bx\x1b[3", "1my"], "xy", "xy"),
        (["abcdefghijkl  ", "12\r\n"], r"^ +\d+$", "  12"),
        (["x\x1b[3", "1my"], "xy", "xy"),
        (["\u00e9".encode()[:1], "\u00e9".encode()[1:]], "é", "é"),
    ],
)  # fmt: skip
def test_what_stands_on_the_screen_otherwise_than_it_came_is_found(
    tmp_path: Path, chunks: list[str | bytes], pattern: str, text: str
) -> None:
    folder, search = Folder(tmp_path), Search(pattern)
    last_input = LastInput("id", 0, 0, 0, COLS, ROWS, False, "none", b"")
    seen = Seen(None, ScreenOf, folder.journal(), None, last_input, window=WINDOW)  # type: ignore[arg-type]
    seen.skim(search)
    found = None
    for chunk in ["start\r\n", *chunks]:
        assert not found
        folder.add(chunk if isinstance(chunk, bytes) else chunk.encode())
        found = look(seen, search)
    assert found == Found(text, ())
