"""One of the two writers: `python -m compared.writer TOOL SESSION NAME` types its lines once a line comes on standard input."""

from __future__ import annotations

import sys
import time

from compared.tools import Libtmux, Tmux, Tmuxctl, Tool
from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError

EACH = 50


def line(writer: str, number: int) -> bytes:
    return f"{writer} {number} {'abcdefghij' * 6}".encode()


def tool_named(name: str) -> Tool:
    """One of the tools that more than one process can use."""
    if name == "tmuxctl":
        return Tmuxctl(Control(resident=True))
    return Libtmux() if name == "libtmux" else Tmux(one_list=name == "tmux-list")


def write(tool: Tool, writer: str) -> None:
    """Type all lines; where the tool says that somebody else types, once more."""
    for number in range(EACH):
        while True:
            try:
                tool.type(line(writer, number))
                break
            except TmuxctlError as error:
                if error.reason != "leased":
                    raise
                time.sleep(0.005)


if __name__ == "__main__":
    name, session, writer = sys.argv[1:]
    writing = tool_named(name)
    writing.join(session)
    sys.stdin.readline()
    write(writing, writer)
