"""One writer of writers.py: types the lines it is given into a session and notes each before and after.

    writer.py SESSION LOG FIRST LAST NAME spawned|resident

The log gets `start NUMBER` before a write and `done NUMBER` or `unknown NUMBER` after it; a line without a second one was
in flight when the writer was killed.
"""

from __future__ import annotations

import os
import sys

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError


def main() -> None:
    session, log, first, last, name, kind = sys.argv[1:]
    note = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with Control(resident=kind == "resident") as control:
        for number in range(int(first), int(last)):
            text = f"{name}-{number}-" + "abcdefghij" * (number % 12)
            os.write(note, f"start {number}\n".encode())
            os.write(note, f"{_written(control, session, text)} {number}\n".encode())


def _written(control: Control, session: str, text: str) -> str:
    """`done` or `unknown`. Another writer's turn is waited for: nothing was typed then."""
    while True:
        try:
            return control.send(session, text.encode()).result
        except TmuxctlError as error:
            if error.reason == "outcome_unknown":
                return "unknown"
            if error.reason != "leased":
                raise


if __name__ == "__main__":
    main()
