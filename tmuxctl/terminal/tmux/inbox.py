"""The messages that wait for a session's program: a file in the session's folder with a line of JSON for each.

A program may write into its folder what it likes. What is no message is left out here, and gone with the next change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tmuxctl.errors import Denied, NotFound
from tmuxctl.model import NAME
from tmuxctl.results import InboxMessage
from tmuxctl.terminal.tmux import layout
from tmuxctl.transport.base import Transport
from tmuxctl.untrusted import fits, parse_json

LIMIT = 4 << 20
"""Bytes that the file may have."""

MESSAGES = 1000
"""Messages that may wait in it."""

TEXT_LIMIT = 1 << 20
"""Bytes of the text of a message, as UTF-8."""

SHAPE = {"id!": str, "from!": str, "text!": str, "at!": str}
NOT_TEXT = r"[^\n\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\U0010ffff]"
ID, TIME = r"[A-Za-z0-9]{8,64}", r"[0-9TZ:.+-]{10,40}"


class InboxFile:
    """The inbox in the folder of a session. Who changes it holds `lock` and has read it before."""

    def __init__(self, transport: Transport, folder: str) -> None:
        self.path, self.lock = f"{folder}/{layout.INBOX}", f"{folder}/{layout.INBOX_LOCK}"
        self._transport = transport
        self._data = b""
        self._is_file = True

    def read(self) -> list[InboxMessage]:
        """The messages in it, oldest first: none where there is no file, or anything else in its place."""
        self._data, self._is_file = b"", True
        try:
            self._data = self._transport.read(self.path, 0, LIMIT + 1)
        except NotFound:
            pass
        except Denied:
            self._is_file = False
        lines = self._data[:LIMIT].split(b"\n")[: MESSAGES * 2]
        return [message for line in lines if (message := _parse_line(line))]

    def write(self, messages: Sequence[InboxMessage]) -> None:
        """Let it hold these. One that only gets more is appended to, in one step. Raises what the transport raises."""
        data = b"".join(map(format_line, messages))
        if not self._is_file or not data:
            self._transport.remove(self.path)
        if not data:
            return
        if self._data and self._is_file and data.startswith(self._data):
            self._transport.append(self.path, data[len(self._data) :])
        elif data != self._data:
            self._transport.put(self.path, data)


def format_line(message: InboxMessage) -> bytes:
    """The line that keeps a message."""
    told = {"id": message.id, "from": message.sender, "text": message.text, "at": message.at}
    return json.dumps(told, ensure_ascii=False).encode() + b"\n"


def is_text(text: str) -> bool:
    """Whether a message may have this text: lines of printable characters and tabs, so that nothing moves the cursor, ends a
    paste or begins a line that does not look like one."""
    return len(text.encode(errors="replace")) <= TEXT_LIMIT and not re.search(NOT_TEXT, text)


def _parse_line(line: bytes) -> InboxMessage | None:
    try:
        told = parse_json(line)
    except ValueError:
        return None
    if not fits(told, SHAPE) or not (re.fullmatch(ID, told["id"]) and re.fullmatch(TIME, told["at"])):
        return None
    if not NAME.fullmatch(told["from"]) or not is_text(told["text"]):
        return None
    return InboxMessage(told["id"], told["from"], told["text"], told["at"])
