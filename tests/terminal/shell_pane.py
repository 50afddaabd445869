"""Shells in panes of a tmux server of their own, every byte of their output logged."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from types import MappingProxyType

import pytest
from terminal.stretch import Stretch, stretch

from tmuxctl.reading.text.marks import find_marks, undo_newlines
from tmuxctl.terminal.launch.shells import exec_script, format_typed_line, integrate_shell

SOCKET = f"tmuxctl-test-{os.getpid()}-shells"
SESSION = "5e551on"
LIMIT = 15.0
EMPTY: Mapping[str, str] = MappingProxyType({})
numbers = count(1)


def tmux(*words: str, stdin: bytes = b"", timeout: float | None = None) -> str:
    command = ["tmux", "-L", SOCKET, "-f", "/dev/null", *words]
    done = subprocess.run(command, input=stdin, capture_output=True, check=True, timeout=timeout)
    return done.stdout.decode()


class Shell:
    """One shell in a pane, with every byte it puts out."""

    def __init__(self, folder: Path, argv: tuple[str, ...], env: Mapping[str, str] = EMPTY) -> None:
        self.folder, self.name = folder, f"s{next(numbers)}"
        self.log = folder / f"{self.name}.log"
        self.log.touch()
        home = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "TERM": "screen-256color"}
        words = ["env", "-i", *(f"{name}={value}" for name, value in {**home, **env}.items()), *argv]
        tmux(
            *("new-session", "-d", "-s", self.name, "-x", "120", "-y", "40", "-c", str(folder), *words, ";"),
            *(
                "set",
                "-w",
                "remain-on-exit",
                "on",
                ";",
                "pipe-pane",
                "-O",
                "-t",
                f"={self.name}:",
                f"cat >>'{self.log}'",
            ),
        )

    def data(self) -> bytes:
        return self.log.read_bytes()

    def screen(self) -> str:
        return tmux("capture-pane", "-p", "-t", f"={self.name}:").rstrip()

    def until(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"no {what}\n{self.screen()}\n{self.data()[-600:]!r}")
            time.sleep(0.003)

    def paste(self, text: str) -> None:
        buffer = f"b{next(numbers)}"
        tmux(
            "load-buffer",
            "-b",
            buffer,
            "-",
            ";",
            "paste-buffer",
            "-drb",
            buffer,
            "-t",
            f"={self.name}:",
            stdin=text.encode(),
        )

    def ready(self) -> Shell:
        """Until the line editor echoes and executes what is typed."""
        word = f"ready{next(numbers)}"
        self.paste(f" printf '%s\\n' {word[:3]}''{word[3:]}\r")
        self.until(lambda: word.encode() in self.data(), "prompt")
        return self

    def marked(self) -> None:
        """Until its first prompt is marked."""
        self.until(lambda: len(find_marks(self.data(), SESSION)) > 1, "marked prompt")

    def start(self, kind: str, command: str) -> Callable[[], Stretch]:
        """Type the command; a function that looks how far it is."""
        token, path = f"t{next(numbers)}", str(self.folder / f"run {self.name}'s")
        found: Stretch | None = None
        Path(path).write_text(exec_script(kind, command, token, path))

        def look() -> Stretch:
            nonlocal found
            found = stretch(self.data(), token, found, session=SESSION)
            return found

        self.paste(format_typed_line(kind, path) + "\r")
        self.until(lambda: look().start is not None, "C mark")
        return look

    def run(self, kind: str, command: str) -> tuple[bytes, int | None]:
        """The command's exact output and status."""
        found = self.finished(self.start(kind, command))
        assert sorted(self.folder.glob("run *")) == []
        return undo_newlines(self.data()[found.start : found.end]), found.status

    def finished(self, look: Callable[[], Stretch]) -> Stretch:
        """Until the command's end is marked."""
        self.until(lambda: look().end is not None, "D mark")
        return look()

    def dead(self) -> str:
        """Until the shell has ended: its exit status."""

        def ask() -> str:
            # tmux may overlook the end of a process until another one ends, and that of this one too, which is then never answered
            with contextlib.suppress(subprocess.TimeoutExpired):
                tmux("run-shell", "true", timeout=2.0)
            return tmux("display-message", "-p", "-t", f"={self.name}:", "#{pane_dead}:#{pane_dead_status}").strip()

        self.until(lambda: ask().startswith("1:"), "end")
        self.until(lambda: ask() != "1:", "status")
        return ask()[2:]

    def close(self) -> None:
        with ending(f"={self.name}"):
            tmux("kill-session", "-t", f"={self.name}")


@contextlib.contextmanager
def ending(*target: str) -> Iterator[None]:
    """What is done here ends the shells of a session, or of all: they are waited for, because a shell that is hung up may
    write its history first."""
    which = ("-s", "-t", *target) if target else ("-a",)
    pids = tmux("list-panes", *which, "-F", "#{pane_pid}").split()
    yield
    deadline = time.monotonic() + LIMIT
    while left := [pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")]:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.003)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tc", dir="/tmp") as made:
        (Path(made) / "empty").mkdir()
        tmux("new-session", "-d", "-s", "keep", "sleep 1000")
        yield Path(made)
        place = tmux("display-message", "-p", "#{socket_path}").strip()
        with ending():
            tmux("kill-server")
        Path(place).unlink(missing_ok=True)


def integrated(
    folder: Path, argv: tuple[str, ...], env: Mapping[str, str] = EMPTY
) -> tuple[tuple[str, ...], dict[str, str]]:
    place = folder / f"it's {next(numbers)}"
    found = integrate_shell(argv, str(place), env, SESSION)
    assert found
    place.mkdir()
    for name, text in found.files.items():
        (place / name).write_text(text)
    return found.argv, {**env, **found.env}
