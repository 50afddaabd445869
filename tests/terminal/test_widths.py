"""How many columns a text takes is what the tmux in PATH says: it draws each, and tells where its cursor stands then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tmuxctl import widths
from tmuxctl.transport.versions import parse_version

CLUSTERS = {
    f"{group} {codes}": "".join(chr(int(code, 16)) for code in codes.split())
    for group, lines in yaml.safe_load((Path(__file__).parent / "clusters.yaml").read_text()).items()
    for codes in lines
}

END = "|"
"""What is printed behind each text."""

PLAYER = f"""
import os, sys, tty
tty.setraw(0)
columns = []
for text in open(sys.argv[1], encoding='utf-8').read().split('\\0'):
    os.write(1, text.encode() + b'\\033[6n')
    answer = b''
    while not answer.endswith(b'R'):
        answer += os.read(0, 100)
    columns.append(answer.split(b';')[1][:-1].decode())
    os.write(1, b'{END}\\r\\n')
open(sys.argv[2] + '.new', 'w').write(' '.join(columns))
os.rename(sys.argv[2] + '.new', sys.argv[2])
os.read(0, 1)
"""


class Drawn(NamedTuple):
    """A text as tmux keeps it, without END, and how many columns it takes."""

    text: str
    columns: int


class Tmux(NamedTuple):
    version: tuple[int, int] | None
    drawn: dict[str, Drawn]


@pytest.fixture(scope="module")
def tmux() -> Iterator[Tmux]:
    """All texts, drawn by a tmux of our own, each on a row of its own."""
    folder = Path(tempfile.mkdtemp(prefix="tmuxctl-", dir="/tmp"))
    (folder / "player.py").write_text(PLAYER)
    (folder / "texts").write_text("\0".join(CLUSTERS.values()), encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMUX_TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}

    def run(*arguments: str) -> str:
        command = ["tmux", "-u", "-L", "widths", "-f", "/dev/null", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=20, check=True)
        return done.stdout.decode()

    told = folder / "columns"
    words = [sys.executable, "-I", "-S", str(folder / "player.py"), str(folder / "texts"), str(told)]
    rows = str(len(CLUSTERS) + 1)
    try:
        size = ["resize-window", "-t", "=w:", "-x", "80", "-y", rows]
        run("new-session", "-d", "-s", "w", "-x", "80", "-y", rows, "sleep 1000", ";", *size)
        run("respawn-pane", "-k", "-t", "=w:", *words, ";", "set-option", "-g", "remain-on-exit", "on")
        while not told.exists():
            assert run("display-message", "-p", "-t", "=w:", "#{pane_dead}") == "0\n"
        columns = [int(column) - 1 for column in told.read_text().split()]
        version = parse_version(run("display-message", "-p", "#{version}").strip())
        seen = [row.partition(END)[0] for row in run("capture-pane", "-p", "-N", "-t", "=w:").split("\n")]
        drawn = {name: Drawn(*one) for name, one in zip(CLUSTERS, zip(seen, columns, strict=False), strict=False)}
        yield Tmux(version, drawn)
    finally:
        run("kill-server")
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_text_is_as_wide_as_tmux_draws_it(tmux: Tmux, name: str) -> None:
    drawn = tmux.drawn[name]
    assert widths.columns(drawn.text, tmux.version) == drawn.columns, ascii(drawn.text)
    assert widths.first_columns(drawn.text + END, drawn.columns, tmux.version) == drawn.text


def test_the_table_is_large() -> None:
    assert len(CLUSTERS) >= 200


@pytest.mark.parametrize("version", [(3, 2), (3, 3), (3, 4), (3, 5), (3, 6), (3, 7)])
def test_what_is_plain_is_never_joined_to_what_stands_before_it(version: tuple[int, int]) -> None:
    rules = widths.rules(version)
    points = [*range(0x20, 0xD800), *range(0x1F000, 0x1FC00)]
    plain = [character for character in map(chr, points) if widths.is_plain(f"é{character}", version)]
    assert len(plain) > 5_000
    before = ("a", "é", "中", "\U0001f44b", "\U0001f1e9")
    assert not [
        character
        for character in plain
        if rules.width(character) not in (1, -1) or any(rules.joins(cell, character) for cell in before)
    ]
    assert not any(widths.is_plain(text, version) for text in ("e\u0301", "中", "\U0001f44b\U0001f3fd", "é\u200d"))
    assert widths.columns("│ é │", version) == 5
