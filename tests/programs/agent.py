#!/usr/bin/env python3
"""An agent program with a composer, drawn inline, that does what the first line of its input says: `think 1; say Hello`.

What it was given and what it did stand in `agent.log`, a JSON object a line: `submitted` (the exact text), `queued`, `enter`
(what became of each Enter), `pasted` (how much), `trusted`, `ran`, `denied`, `interrupted`. Its turns go to `agent.jsonl`;
started with `--hook SCRIPT` it tells of them. The other options are the vices of real ones; times are in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import time
import tty
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PASTE, PASTED = b"\x1b[200~", b"\x1b[201~"
SHOWN_ROWS, SHOWN_LENGTH, COMPOSER_ROWS = 5, 400, 10
"""A paste with more is shown as a note; of a longer composer the end is shown."""

SPINNER = "·✢✳✶✻✽"
MENUS = {
    "trust": (" Do you trust the files in this folder?", ["Yes, proceed", "No, exit"], " Enter to confirm"),
    "tool": (" Run this command?", ["Yes", "Yes, and don't ask again", "No"], " Esc to cancel"),
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--hook", help="the script that is told of turns")
    parser.add_argument("--no-hook-text", action="store_true", help="events do not hold the answer")
    parser.add_argument("--late-hook", type=int, default=0, help="the end of a turn is told so much later")
    parser.add_argument("--stale-stop", action="store_true", help="tells the end of the turn before once more")
    parser.add_argument("--side-thread", action="store_true", help="tells the end of a turn nobody asked for")
    parser.add_argument("--no-title", action="store_true")
    parser.add_argument("--no-bracketed", action="store_true", help="knows no bracketed paste; M-Enter is a new line")
    parser.add_argument("--no-leave", action="store_true", help="the composer cannot be cleared")
    parser.add_argument("--draft", default="", help="what stands in the composer")
    parser.add_argument("--slow-enter", type=int, default=0, help="Enter so soon after a text is a new line")
    parser.add_argument("--swallow-enter", type=int, default=0, metavar="N", help="the first N Enters are lost")
    parser.add_argument("--deaf", action="store_true", help="Enter does nothing")
    parser.add_argument("--never-shows", action="store_true", help="the composer shows nothing of what is in it")
    parser.add_argument("--late-show", type=int, default=0, help="a paste shows so much later")
    parser.add_argument("--loses", type=int, default=0, metavar="N", help="the first N characters of a paste are lost")
    parser.add_argument("--chunks", action="store_true", help="what it reads at once is text, but for single keys")
    parser.add_argument("--cursor-behind", action="store_true", help="leaves the cursor where the terminal has it")
    parser.add_argument("--draws-cursor", action="store_true", help="hides the terminal's, and leaves it too far left")
    parser.add_argument(
        "--hides-cursor",
        action="store_true",
        help="hides the terminal's where it writes; a key of its footer is reversed",
    )
    parser.add_argument("--no-sign", action="store_true", help="no prompt stands before what is typed")
    parser.add_argument("--no-spinner", action="store_true", help="shows not that it works")
    parser.add_argument("--no-notes", action="store_true", help="shows a paste of any length, of many rows the last")
    parser.add_argument(
        "--modal-first-key", action="store_true", help="the first key opens a dialog, and is lost in it"
    )
    parser.add_argument("--modal-after-paste", type=int, metavar="MS", help="a dialog opens so long after a paste")
    parser.add_argument(
        "--late-mark", action="store_true", help="Enter chooses what was marked before what it read at once"
    )
    parser.add_argument("--stuck-mark", action="store_true", help="no key moves the mark of a menu")
    parser.add_argument("--ready-flash", type=int, default=0, help="looks ready so long after Enter")
    parser.add_argument("--clears-history", action="store_true", help="empties the terminal's history with each turn")
    parser.add_argument("--alternate", action="store_true", help="draws on the alternate screen")
    parser.add_argument("--sign", default="●", help="the sign at the edge before an answer and an action")
    parser.add_argument(
        "--loading", action="store_true", help="its only sign of work is `..  Loading (0s, esc to cancel)`"
    )
    return parser.parse_args()


class Agent:
    """The program. `busy` is the row of its spinner while it works; `turn` yields how long until its next step."""

    def __init__(self) -> None:
        self.vices = options()
        self.text = self.vices.draft
        self.pastes: dict[str, str] = {}
        self.input = bytearray()
        self.pasting = False
        self.busy, self.bare = "", False
        self.turn: Iterator[float] | None = None
        self.menu: tuple[str, str, Callable[[bool, str], None]] | None = None
        self.marked = self.drawn = 0
        self.given, self.before, self.said = "", ("", ""), ""
        self.message = 0
        self.later: list[tuple[float, Callable[[], Any]]] = []
        self.last_text, self.swallowed, self.shown_from = 0.0, 0, 0.0
        self.trusted = not self.vices.modal_first_key
        self.above = 0

    # the loop

    def run(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        tty.setraw(0)
        self.write("" if self.vices.no_bracketed else "\x1b[?2004h")
        hides = self.vices.loading or self.vices.draws_cursor or self.vices.hides_cursor
        self.write("\x1b[?25l" if hides else "")
        self.write("\x1b[?1049h\x1b[H" if self.vices.alternate else "")
        self.paint(["agent 1.0", ""])
        while True:
            moments = [moment for moment, _ in self.later]
            wait = max(0.0, min(moments) - time.monotonic()) if moments else None
            ready, _, _ = select.select([0], [], [], 0.03 if self.input == b"\x1b" else wait)
            if ready:
                read = os.read(0, 65536)
                self.drawn = self.marked
                if self.vices.chunks and len(read) > 1 and not read.startswith(b"\x1b"):
                    self.typed(read.decode("utf-8", "surrogateescape"))
                    continue
                self.input += read
                self.take()
            elif self.input == b"\x1b":
                self.input.clear()
                self.key("Escape")
            for due in [one for one in self.later if one[0] <= time.monotonic()]:
                self.later.remove(due)
                due[1]()

    def after(self, seconds: float, do: Callable[[], Any]) -> None:
        self.later.append((time.monotonic() + seconds, do))

    def step(self) -> None:
        """Go on with the turn until it waits for something."""
        if self.turn is None or self.menu:
            return
        turn = self.turn
        pause = next(turn, None)
        if pause is not None and self.turn is turn and not self.menu:
            self.after(pause, lambda: self.step() if self.turn is turn else None)

    # what is typed

    def take(self) -> None:
        while self.input:
            if self.pasting:
                end = self.input.find(PASTED)
                if end < 0:
                    return
                text = bytes(self.input[:end])
                del self.input[: end + len(PASTED)]
                self.pasting = False
                self.pasted(text.decode("utf-8", "surrogateescape"))
            elif self.input.startswith(PASTE):
                del self.input[: len(PASTE)]
                self.pasting = True
            elif self.input[0] == 0x1B:
                if self.input == b"\x1b" or PASTE.startswith(self.input):
                    return
                length = 3 if self.input[1:2] in b"[O" else 2
                self.key({b"\x1b[A": "Up", b"\x1b[B": "Down", b"\x1b\r": "M-Enter"}.get(bytes(self.input[:length]), ""))
                del self.input[:length]
            else:
                self.plain()

    def plain(self) -> None:
        """A key, or the text up to the next."""
        names = {0x0D: "Enter", 0x15: "C-u", 0x7F: "BSpace", 0x03: "C-c", 0x04: "C-d"}
        if self.input[0] in names:
            self.key(names[self.input.pop(0)])
            return
        end = next((at for at, byte in enumerate(self.input) if (byte < 0x20 and byte != 0x0A) or byte == 0x7F), None)
        text = bytes(self.input[:end])
        del self.input[: len(text) or 1]
        self.typed(text.decode("utf-8", "surrogateescape"))

    def notes(self, text: str) -> bool:
        """A paste of which only a note is shown."""
        return not self.vices.no_notes and (text.count("\n") >= SHOWN_ROWS or len(text) > SHOWN_LENGTH)

    def pasted(self, text: str) -> None:
        log(pasted=len(text))
        text = text[self.vices.loses :]
        if self.notes(text):
            name = f"[Pasted text #{len(self.pastes) + 1} +{text.count(chr(10))} lines]"
            self.pastes[name] = text
            text = name
        self.typed(text)
        if self.vices.modal_after_paste is not None:
            self.after(self.vices.modal_after_paste / 1000, lambda: self.ask("trust", "", self.trust))
            self.vices.modal_after_paste = None

    def typed(self, text: str) -> None:
        if not self.trusted:
            self.trusted = True
            self.ask("trust", "", self.trust)
        elif self.menu:
            self.choose(next((one for one in text if one.isdigit()), ""))
        else:
            self.text += text
            self.last_text = time.monotonic()
            if self.vices.late_show:
                self.shown_from = self.last_text + self.vices.late_show / 1000
                self.after(self.vices.late_show / 1000, self.paint)
            self.paint()

    def key(self, name: str) -> None:
        if not self.trusted:
            self.typed("")
        elif self.menu:
            self.choose(name)
        elif name == "Enter":
            self.enter()
        elif name == "M-Enter":
            self.typed("\n")
        elif name == "C-u" and not self.vices.no_leave:
            # to the line's beginning, and then the line's end before it
            head, newline, tail = self.text.rpartition("\n")
            self.text = head + (newline if tail else "")
            self.paint()
        elif name == "BSpace":
            self.text = self.text[:-1]
            self.paint()
        elif name == "Escape" and self.turn:
            self.interrupt()
        elif name == "C-d" and not self.text:
            self.leave(0)

    def enter(self) -> None:
        if self.vices.deaf:
            log(enter="nothing")
        elif (time.monotonic() - self.last_text) * 1000 < self.vices.slow_enter:
            log(enter="new line")
            self.typed("\n")
        elif self.swallowed < self.vices.swallow_enter:
            self.swallowed += 1
            log(enter="lost")
        elif not self.text.strip():
            log(enter="empty")
        else:
            whole = self.text
            for name, text in self.pastes.items():
                whole = whole.replace(name, text)
            log(enter="queued" if self.turn else "taken")
            log(**{"queued" if self.turn else "submitted": whole})
            if not self.turn:
                self.given, shown = whole, self.text
                self.text = ""
                self.turn = self.work(whole, shown)
                self.step()

    def interrupt(self) -> None:
        log(interrupted=self.given)
        self.turn, self.busy, self.text = None, "", self.given
        if self.notes(self.given):
            self.text = f"[Pasted text #1 +{self.given.count(chr(10))} lines]"
            self.pastes = {self.text: self.given}
        self.title()
        self.paint(["  ⎿  Interrupted", ""])

    # dialogs

    def ask(self, kind: str, about: str, then: Callable[[bool, str], None]) -> None:
        self.menu, self.marked = (kind, about, then), 0
        self.tell("PermissionRequest")
        self.title()
        self.paint()

    def choose(self, key: str) -> None:
        assert self.menu
        kind, _, then = self.menu
        count = len(MENUS[kind][1])
        if key in ("Up", "Down"):
            step = 0 if self.vices.stuck_mark else 1 if key == "Down" else -1
            self.marked = (self.marked + step) % count
            self.paint()
            return
        marked = self.drawn if self.vices.late_mark else self.marked
        chosen = marked + 1 if key == "Enter" else count if key == "Escape" else int(key) if key.isdigit() else 0
        if 1 <= chosen <= count:
            self.menu = None
            then(chosen < count, key)
            self.title()
            self.paint()
            self.step()

    def trust(self, allowed: bool, key: str) -> None:
        log(**{"trusted" if allowed else "distrusted": key})

    # turns

    def work(self, text: str, shown: str) -> Iterator[float]:
        # the hook of a real one runs before it draws anything
        previous, self.before = self.before, (text, "")
        if self.vices.stale_stop and previous[0]:
            self.tell("Stop", last_assistant_message=previous[1])
        self.tell("UserPromptSubmit", prompt=text)
        first, *rest = shown.split("\n")
        self.paint([*wrapped(first, "❯ "), *(row for line in rest for row in wrapped(line, "  ")), ""])
        if self.vices.clears_history:
            self.write("\x1b[3J")
        if self.vices.ready_flash:
            yield self.vices.ready_flash / 1000
        self.work_on("Pondering…")
        self.keep("user", {"content": text})
        if self.vices.stale_stop and previous[0]:
            self.tell("Stop", prompt=previous[0], last_assistant_message=previous[1])
        if self.vices.side_thread:
            self.tell("Stop", prompt="Make a title for this talk", last_assistant_message="A title")
        self.message, self.said = self.message + 1, ""
        for part in text.split("\n")[0].split(";"):
            verb, _, argument = part.strip().partition(" ")
            yield from getattr(self, f"do_{verb}", self.do_other)(argument or verb)
        self.end("Stop", text)

    def end(self, event: str, text: str) -> None:
        said, self.before = self.said, (text, self.said)
        words = {} if self.vices.no_hook_text else {"last_assistant_message": said}

        def tell() -> None:
            self.tell(event, prompt=text, **words)

        if not self.vices.late_hook:
            tell()
        else:
            self.after(self.vices.late_hook / 1000, tell)
        self.turn, self.busy = None, ""
        self.title()
        self.paint(["✻ Worked for 0s", ""])

    def work_on(self, what: str) -> None:
        self.busy = "" if self.vices.no_spinner else what
        self.title()
        self.paint()

    def block(self, text: str, pause: float = 0.0) -> Iterator[float]:
        """Say a text, one row after the other."""
        for number, line in enumerate(text.split("\n")):
            self.paint(wrapped(line, "  " if number else f"{self.vices.sign} "))
            if pause:
                yield pause
        self.said += ("\n\n" if self.said else "") + text
        self.keep("assistant", {"id": f"m{self.message}", "content": [{"type": "text", "text": text}]}, len(text))
        self.paint([""])

    def do_say(self, text: str) -> Iterator[float]:
        yield from self.block(text)

    def do_other(self, text: str) -> Iterator[float]:
        yield from self.block(f"You gave me {len(self.given)} characters.")

    def do_file(self, name: str) -> Iterator[float]:
        yield from self.block(Path(name).read_text().removesuffix("\n"))

    def do_slow(self, count: str) -> Iterator[float]:
        yield from self.block("\n".join(f"row {number}" for number in range(1, int(count) + 1)), 0.03)

    def do_stall(self, seconds: str) -> Iterator[float]:
        """Half an answer, nothing, and the rest."""
        rows = self.block("The first half.\nThe second half.", float(seconds))
        yield next(rows)
        next(rows)
        yield from rows

    def do_think(self, seconds: str) -> Iterator[float]:
        until = time.monotonic() + float(seconds)
        while time.monotonic() < until:
            self.paint()
            yield 0.1

    def do_silent(self, seconds: str) -> Iterator[float]:
        yield float(seconds)

    def do_bare(self, seconds: str) -> Iterator[float]:
        """Shows neither its composer nor that it works."""
        self.bare, self.busy = True, ""
        self.paint([f"Compacting page {number}" for number in range(1, 5)])
        yield float(seconds)
        self.bare = False

    def do_until(self, name: str) -> Iterator[float]:
        """Works until there is such a file."""
        while not Path(name).exists():
            yield 0.05

    def do_retry(self, seconds: str) -> Iterator[float]:
        self.work_on("API error · Retrying in 1s…")
        yield float(seconds)
        self.work_on("Pondering…")

    def do_fail(self, text: str) -> Iterator[float]:
        self.said = ""
        yield from self.block(f"API Error: {text}")
        self.end("StopFailure", self.given)
        yield 0.0

    def do_limit(self, _: str) -> Iterator[float]:
        self.paint(["  ⎿  Usage limit reached · resets 3pm", ""])
        self.end("StopFailure", self.given)
        yield 0.0

    def do_tool(self, command: str) -> Iterator[float]:
        answers: list[bool] = []
        self.ask("tool", command, lambda allowed, _: answers.append(allowed))
        while not answers:
            yield 0.0
        [allowed] = answers
        log(**{"ran" if allowed else "denied": command})
        self.message, self.said = self.message + 1, ""
        self.paint([f"{self.vices.sign} Bash({command})", "  ⎿  " + ("(no output)" if allowed else "Denied"), ""])

    def do_daemon(self, _: str) -> Iterator[float]:
        """Leaves a process behind that its terminal's end does not end."""
        words = [sys.executable, "-c", "import signal, time; signal.signal(1, 1); time.sleep(600)"]
        log(daemon=subprocess.Popen(words, start_new_session=True, stdin=subprocess.DEVNULL).pid)
        yield 0.0

    def do_exit(self, status: str) -> Iterator[float]:
        self.leave(int(status))
        yield 0.0

    def leave(self, status: int) -> None:
        self.write(("\x1b[?1049l" if self.vices.alternate else "") + "\x1b[?2004l\r\n")
        os._exit(status)

    # what it tells

    def tell(self, event: str, **about: str) -> None:
        if self.vices.hook:
            told = json.dumps({"transcript_path": str(Path("agent.jsonl").resolve()), **about})
            subprocess.run(["sh", self.vices.hook, event], input=told.encode())

    def keep(self, kind: str, message: dict[str, Any], tokens: int | None = None) -> None:
        usage = {} if tokens is None else {"usage": {"output_tokens": tokens}}
        with Path("agent.jsonl").open("a") as file:
            file.write(json.dumps({"type": kind, "message": {**message, **usage}}) + "\n")

    # what it draws

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(1, data) :]

    def title(self) -> None:
        if not self.vices.no_title:
            self.write(f"\x1b]2;{'⠂ at work' if self.turn and not self.menu else '✳ agent'}\x07")

    def paint(self, printed: list[str] | None = None) -> None:
        """Print rows above what it keeps at the bottom, and draw that anew."""
        rows, (x, y) = self.dialog() if self.menu else ([""], (0, 0)) if self.bare else self.composer()
        if self.busy and not self.menu:
            step = int(time.monotonic() * 10)
            spinner = f"{SPINNER[step % len(SPINNER)]} {self.busy}"
            if self.vices.loading:
                spinner = f"{'.' * (step % 3):2}  Loading ({step // 10 % 60}s, esc to cancel)"
            rows, y = [spinner, "", *rows], y + 2
        up = f"\x1b[{self.above}A" if self.above else ""
        if self.vices.draws_cursor and not self.menu:
            rows[y], x = f"{rows[y]}\x1b[7m \x1b[27m", x // 2
        drawn = "\r\n".join([*(printed or []), *rows])
        down = len(rows) - 1 - y
        right = rows[y] if self.vices.cursor_behind else f"\x1b[{x}C" if x else ""
        self.write(f"{up}\r\x1b[J{drawn}\r" + (f"\x1b[{down}A" if down else "") + right)
        self.above = y

    def composer(self) -> tuple[list[str], tuple[int, int]]:
        hidden = self.vices.never_shows or time.monotonic() < self.shown_from
        lines = ("" if hidden else self.text).split("\n")
        rows = [
            row
            for number, line in enumerate(lines)
            for row in wrapped(line, "  " if number or self.vices.no_sign else "❯ ")
        ]
        rows = rows[-COMPOSER_ROWS:]
        rule = "─" * os.get_terminal_size(1).columns
        works = self.turn and self.busy and not self.vices.loading
        footer = "  esc to interrupt" if works else "  ? for shortcuts"
        if self.vices.hides_cursor:
            footer = footer.replace("?", "\x1b[7m?\x1b[27m")
        return [rule, *rows, rule, footer], (width(rows[-1]), len(rows))

    def dialog(self) -> tuple[list[str], tuple[int, int]]:
        assert self.menu
        kind, about, _ = self.menu
        question, answers, footer = MENUS[kind]
        listed = [f" {'❯' if at == self.marked else ' '} {at + 1}. {one}" for at, one in enumerate(answers)]
        rows = ["─" * os.get_terminal_size(1).columns, question, *([f"   {about}"] if about else []), "", *listed, ""]
        return [*rows, footer], (0, len(rows))


def log(**about: object) -> None:
    with Path("agent.log").open("a") as file:
        file.write(json.dumps(about) + "\n")


def width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else not unicodedata.combining(one) for one in text)


def wrapped(text: str, mark: str) -> list[str]:
    """The rows of a line behind its mark; the others stand as far from the edge."""
    columns = os.get_terminal_size(1).columns - 1
    rows = [mark]
    for one in text.expandtabs(4):
        if unicodedata.category(one) == "Cc":
            continue
        if width(rows[-1] + one) > columns:
            rows.append(" " * len(mark))
        rows[-1] += one
    return rows


if __name__ == "__main__":
    Agent().run()
