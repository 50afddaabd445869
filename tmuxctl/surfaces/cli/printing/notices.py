"""Telling a person that a session needs somebody: by the bell, the terminal, or the desktop."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import Any

from tmuxctl.errors import Usage
from tmuxctl.surfaces.cli.printing.output import flat
from tmuxctl.timing import TIMING

WAYS = ("bell", "terminal", "desktop")

AT_HAND = "auto"
"""Stands for what is at hand: the desktop, or else the terminal and its bell."""

LONGEST = 200
"""Characters of a question that are told."""

OTHER_TERMINALS = ("rxvt", "foot")
"""They show what comes as OSC 777, others what comes as OSC 9 (documented by each)."""

APPLE_SCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


class Notifier:
    """Tells each question once, and none of a session that somebody is attached to."""

    def __init__(self, ways: str) -> None:
        """`ways`: some of WAYS, with commas, or AT_HAND. Usage `bad_option` for others, and where one cannot be."""
        chosen = _choose_ways() if ways == AT_HAND else tuple(ways.split(","))
        if not set(chosen) <= set(WAYS):
            raise Usage(f"--notify {ascii(ways)}", reason="bad_option", hint=f"one or more of {', '.join(WAYS)}")
        self._command = _find_command() if "desktop" in chosen else ()
        self._ways = chosen
        self._told: dict[str, str] = {}
        """By session, the question that was told last and is still open."""

    def see(self, event: Any) -> None:
        """Tell a change of state (`results.Event`), if it is a question that was not told."""
        if event.wants != "input":
            self._told.pop(event.session, None)
            return
        question = event.asking.id if event.asking else str(event.kind)
        if self._told.get(event.session) == question or event.attached:
            return
        self._told[event.session] = question
        title, text = f"{event.session} asks", _describe(event)
        for way in self._ways:
            if way == "desktop":
                self._show_on_desktop(title, text)
            else:
                _write("\a" if way == "bell" else _make_sequence(title, text))

    def _show_on_desktop(self, title: str, text: str) -> None:
        import subprocess

        # a body is markup there, and what a program asks is none
        body = text.replace("&", "&amp;").replace("<", "&lt;") if self._command[0] == "notify-send" else text
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                [*self._command, title, body],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TIMING.page.told_seconds,
            )


def _describe(event: Any) -> str:
    """What is asked, as one line: nothing of a secret, and nothing that a terminal would obey."""
    if event.asking is None:
        return f"it wants {event.kind or 'input'}"
    text = flat(event.asking.question)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _choose_ways() -> tuple[str, ...]:
    desktop = sys.platform == "darwin" or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY")
    return ("desktop",) if desktop and shutil.which(_find_command(check=False)[0]) else ("bell", "terminal")


def _find_command(*, check: bool = True) -> tuple[str, ...]:
    """The command that shows a title and a text on the desktop."""
    if sys.platform == "darwin":
        return ("osascript", *(word for line in APPLE_SCRIPT for word in ("-e", line)))
    if check and not shutil.which("notify-send"):
        raise Usage(
            "there is no notify-send", reason="bad_option", hint="install libnotify, or: --notify bell,terminal"
        )
    return ("notify-send", "--app-name=tmuxctl", "--")


def _make_sequence(title: str, text: str) -> str:
    """The escape sequence by which this terminal shows a notice; through a tmux around us, which passes it on where
    `allow-passthrough` is on (tmux(1))."""
    term = os.environ.get("TERM", "")
    if term.startswith(OTHER_TERMINALS) or "VTE_VERSION" in os.environ:
        sequence = f"\x1b]777;notify;{title};{text.replace(';', ',')}\a"
    else:
        sequence = f"\x1b]9;{title}: {text}\a"
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\" if "TMUX" in os.environ else sequence


def _write(text: str) -> None:
    """Write to the terminal, where standard error is one."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(text)
        sys.stderr.flush()
