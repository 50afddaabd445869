#!/usr/bin/env python3
"""An agent program whose answers stand in a JSON file: the first rule whose pattern is found in what it is given says what it
says. Each text that is submitted goes to `LOG` as a line of JSON, before it is answered.

`{"rules": [{"re": "PATTERN", "say": "TEXT", "think": SECONDS, "times": N, "ask": "QUESTION", "exit": STATUS}]}`: `say` may be
a list, of which each use takes the next, and `{n}` in it is the number of the turn. `ask` asks first, and any key but `n` goes on.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import time
import tty
from pathlib import Path

PASTE, PASTED = b"\x1b[200~", b"\x1b[201~"


class TeamAgent:
    def __init__(self, script: Path, log: Path) -> None:
        self.rules = json.loads(script.read_text())["rules"]
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.turn = 0
        self.used: dict[int, int] = {}
        self.buffer = b""

    def write(self, text: str) -> None:
        os.write(1, text.replace("\n", "\r\n").encode())

    def read(self) -> bytes:
        data = os.read(0, 65536)
        if not data:
            raise SystemExit(0)
        return data

    def run(self) -> None:
        tty.setraw(0)
        self.write("\x1b[?2004h")
        while True:
            self.write("❯ ")
            self.answer(self.read_text())

    def read_text(self) -> str:
        """What is submitted: pasted or typed, up to Enter outside of a paste."""
        text, pasting = b"", False
        while True:
            if not self.buffer:
                self.buffer += self.read()
            mark = PASTED if pasting else PASTE
            if self.buffer.startswith(mark):
                self.buffer, pasting = self.buffer[len(mark) :], not pasting
                continue
            if mark.startswith(self.buffer):
                self.buffer += self.read()
                continue
            byte, self.buffer = self.buffer[:1], self.buffer[1:]
            if byte == b"\r" and not pasting:
                self.write("\n")
                return text.decode("utf-8", "replace")
            if byte == b"\x04" and not text:
                raise SystemExit(0)
            if byte == b"\x15":
                self.write("\r\x1b[J❯ ")
                text = b""
                continue
            end = self.buffer.find(b"\x1b") if pasting else 0
            more = self.buffer[: max(0, end)] if end >= 0 else self.buffer
            self.buffer = self.buffer[len(more) :]
            text += byte + more
            self.write((byte + more).decode("utf-8", "replace").replace("\r", "\n"))

    def answer(self, text: str) -> None:
        self.turn += 1
        text = text.replace("\r", "\n")
        os.write(self.log, json.dumps({"at": time.time(), "text": text}).encode() + b"\n")
        for number, rule in enumerate(self.rules):
            used = self.used.get(number, 0)
            if used < rule.get("times", 1 << 30) and re.search(rule["re"], text):
                self.used[number] = used + 1
                self.carry_out(rule, used)
                return
        self.say(f"nothing to say to {len(text)} characters")

    def carry_out(self, rule: dict[str, object], used: int) -> None:
        if "ask" in rule:
            self.write(f"? {rule['ask']} [y/n] ")
            while not (select.select([0], [], [], 1.0)[0] and self.read()):
                pass
            self.write("\n")
        if "think" in rule:
            self.write("working…")
            time.sleep(float(str(rule["think"])))
            self.write("\r\x1b[K")
        if "exit" in rule:
            raise SystemExit(rule["exit"])
        say = rule["say"]
        self.say(str(say[used % len(say)] if isinstance(say, list) else say))

    def say(self, text: str) -> None:
        self.write("● " + text.replace("{n}", str(self.turn)).replace("\n", "\n  ") + "\n\n")


if __name__ == "__main__":
    TeamAgent(Path(sys.argv[1]), Path(sys.argv[2])).run()
