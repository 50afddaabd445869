"""What `ollama run` shows: its line editor, its spinner, and the answers of a server that speaks its API, word by word.

`ollama_chat.py run MODEL [--nowordwrap]`, with the server's address in OLLAMA_HOST. It draws and reads as ollama 0.33 does,
by its source: raw mode only while a line is edited, a new editor for every line of a paste, and nothing said of C-c.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import termios
import threading
import unicodedata
from http.client import HTTPConnection

PROMPT, MORE = ">>> ", "... "
HINT, MORE_HINT = "Send a message (/? for help)", "Press Enter to send"
PARTS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
QUOTES = '"""'


def put(text: str) -> None:
    """Print it at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def width(char: str) -> int:
    """The columns a character takes."""
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Interrupted(Exception):
    """C-c in the line editor."""


class Editor:
    """Its line editor. `pasting` is True between the brackets of a paste, whose lines it gives one by one."""

    def __init__(self) -> None:
        self.pasting = self.alt = False
        self.lines: list[str] = []
        self.waiting, self.draining = b"", False

    def line(self) -> str:
        """What is typed until Enter; EOFError for C-d in an empty line, Interrupted for C-c."""
        before = termios.tcgetattr(0)
        raw = [*before[:6], [*before[6]]]
        raw[0] &= ~(termios.BRKINT | termios.ISTRIP | termios.INLCR | termios.IGNCR | termios.ICRNL | termios.IXON)
        raw[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        termios.tcsetattr(0, termios.TCSANOW, raw)
        try:
            return self._edited()
        finally:
            termios.tcsetattr(0, termios.TCSANOW, before)

    def _edited(self) -> str:
        text = ""
        put(MORE if self.pasting or self.alt else PROMPT)
        while True:
            if not text and (self.alt or not self.pasting):
                hint = MORE_HINT if self.alt else HINT
                put(f"\033[38;5;245m{hint}\033[{len(hint)}D\033[0m")
            char, among = self._char()
            if not text:
                put("\033[K")
            if char == "\x03":
                self.lines, self.alt = [], False
                raise Interrupted
            if char == "\x04" and not text:
                raise EOFError
            if char == "\033":
                self._escape()
            elif char == "\r" or (char == "\n" and among):
                put("\r\n")
                self.alt, lines, self.lines = False, self.lines, []
                return "\n".join([*lines, text])
            elif char == "\n":
                self.lines.append(text)
                text, self.alt = "", True
                put("\r\n" + MORE)
            elif char in "\x7f\x08" and not text and self.lines:
                put("\033[1G\033[K\033[1A\033[1G\033[K")
                lines, text = self.lines, ""
                last = lines.pop()
                self.alt = bool(lines)
                put(MORE if lines else PROMPT)
                for one in last:
                    text = self._added(text, one)
            elif char in "\x7f\x08\x15":
                text = self._removed(text, 1 if char != "\x15" else len(text))
            elif char >= " ":
                text = self._added(text, char)

    def _char(self) -> tuple[str, bool]:
        """The next character, and whether others were typed with it."""
        while True:
            try:
                char = self.waiting[:4].decode("utf-8", "ignore")[:1]
            except UnicodeDecodeError:
                char = ""
            if char:
                self.waiting = self.waiting[len(char.encode()) :]
                among, self.draining = bool(self.waiting) or self.draining, bool(self.waiting)
                return char, among
            read = os.read(0, 4096)
            if not read:
                raise EOFError
            self.waiting += read

    def _escape(self) -> None:
        if self._char()[0] != "[":
            return
        if self._char()[0] == "2":
            self.pasting = "".join(self._char()[0] for _ in range(3)) == "00~"

    def _added(self, text: str, char: str) -> str:
        put(char)
        if text and sum(map(width, text + char)) % (columns() - len(PROMPT)) == 0:
            put("\r\n" + MORE)
        return text + char

    def _removed(self, text: str, count: int) -> str:
        for char in reversed(text[len(text) - count :]):
            if sum(map(width, text)) % (columns() - len(PROMPT)) == 0:
                put(f"\033[1G\033[K\033[1A\033[1G\033[{columns()}C \033[1D")
            else:
                put(f"\033[{width(char)}D{' ' * width(char)}\033[{width(char)}D")
            text = text[:-1]
        return text


def columns() -> int:
    """The terminal's width."""
    return shutil.get_terminal_size().columns


class Spinner:
    """Turns ten times a second until it is stopped."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._turn, daemon=True)
        self.thread.start()

    def _turn(self) -> None:
        at = 0
        while not self.done.wait(0.1):
            put(f"\033[?2026h\033[?25l\033[1G{PARTS[at]} \033[K\033[?25h\033[?2026l")
            at = (at + 1) % len(PARTS)

    def stop(self) -> None:
        """Clear its row, once."""
        if not self.done.is_set():
            self.done.set()
            self.thread.join()
            put("\033[?25l\033[2K\033[1G\033[?25h")


class Display:
    """Shows an answer as it comes, with line breaks between words."""

    def __init__(self, *, wraps: bool) -> None:
        self.wraps, self.taken, self.word = wraps, 0, ""

    def show(self, text: str) -> None:
        """Print a piece."""
        if not self.wraps:
            put(text)
            return
        for char in text:
            if self.taken + 1 > columns() - 5:
                back = sum(map(width, self.word))
                put((f"\033[{back}D" if back else "") + f"\033[K\n{self.word}{char}")
                self.taken = back + width(char)
                continue
            put(char)
            self.taken = 0 if char == "\n" else self.taken + width(char)
            self.word = "" if char in " \t\n" or width(char) == 2 else self.word + char


class Chat:
    """One conversation with a model."""

    def __init__(self, model: str, *, wraps: bool) -> None:
        self.model, self.wraps = model, wraps
        self.messages: list[dict[str, str]] = []

    def say(self, text: str) -> None:
        """Send a message and show the answer; SystemExit for an error of the server's."""
        self.messages.append({"role": "user", "content": text})
        spinner = Spinner()
        try:
            self.messages.append({"role": "assistant", "content": self._answer(spinner)})
            put("\n\n")
        except KeyboardInterrupt:
            pass
        finally:
            spinner.stop()

    def _answer(self, spinner: Spinner) -> str:
        connection = HTTPConnection(os.environ.get("OLLAMA_HOST", "127.0.0.1:11434"))
        connection.request("POST", "/api/chat", json.dumps({"model": self.model, "messages": self.messages}))
        response = connection.getresponse()
        if response.status != 200:
            spinner.stop()
            sys.exit(f"Error: {json.loads(response.read()).get('error')}")
        said, thought, display = "", "", Display(wraps=self.wraps)
        for line in response:
            piece = json.loads(line)["message"]
            spinner.stop()
            if thinking := piece.get("thinking"):
                put("" if thought else "\033[38;5;245m\033[1mThinking...\n\033[0m\033[38;5;245m")
                thought += thinking
                display.show(thinking)
            if piece["content"] and thought:
                put("" if thought.endswith("\n") else "\n")
                put("\033[38;5;245m\033[1m...done thinking.\n\n\033[0m")
                thought, display = "", Display(wraps=self.wraps)
            said += piece["content"]
            display.show(piece["content"])
        return said


def main() -> None:
    """The chat's loop."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    chat, editor = Chat(words[1], wraps="--nowordwrap" not in sys.argv), Editor()
    put("\033[?2004h")
    text, quoted = "", False
    while True:
        try:
            line = editor.line()
        except EOFError:
            break
        except Interrupted:
            put("\nUse Ctrl + d or /bye to exit.\n")
            text = ""
            continue
        if quoted or line.startswith(QUOTES):
            rest = line if quoted else line.removeprefix(QUOTES)
            quoted = not rest.endswith(QUOTES)
            text += rest.removesuffix(QUOTES) + ("\n" if quoted else "")
            editor.alt = quoted
        elif editor.pasting:
            text += line + "\n"
            continue
        elif line.startswith(("/bye", "/exit")):
            break
        elif line.startswith("/"):
            put(f"Unknown command '{line.split()[0]}'. Type /? for help\n")
            continue
        else:
            text += line
        if text and not quoted:
            chat.say(text)
            text = ""
    put("\033[?2004l")


main()
