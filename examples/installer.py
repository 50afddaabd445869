#!/usr/bin/env python3
"""An installer asks to the end, and each question is answered by its kind; the password is typed where nothing shows it.

    DB_PASSWORD=... python installer.py

Without that variable a password is made up.
"""

from __future__ import annotations

import os
import secrets
import sys

import tmuxctl
from tmuxctl.model import Asking

INSTALLER = r"""
set -eu
printf 'Install the database in /opt/shop? [y/N] '
read -r answer
[ "$answer" = y ] || exit 3
printf 'Which parts?\n  1) the server\n  2) the server and its manual\n  3) everything\nEnter a number [1-3]: '
read -r parts
stty -echo
printf 'Password of the administrator: '
read -r password
stty echo
printf '\nStart the server now? [Y/n] '
read -r start
echo "Installed: parts $parts, a password of ${#password} characters, start now: $start"
"""
"""It stands in for a program that you did not write."""


def answer(asking: Asking) -> str | bytes | None:
    """The answer to a question: an option's id, label or number, a text, or bytes, which are a secret. None leaves it open,
    and the wait raises DecisionNeeded."""
    chosen: str | bytes | None = None
    if asking.kind == "password":
        chosen = PASSWORD
    elif asking.kind == "confirm":
        chosen = "no" if "Start" in asking.question else "yes"
    elif asking.kind == "choice":
        chosen = next(option.id for option in asking.options if "manual" in option.label)
    shown = "(a secret)" if isinstance(chosen, bytes) else chosen
    print(f"{asking.kind}: {asking.question} -> {shown}")
    return chosen


# taken out of the environment, so that the program that asks does not have it already
PASSWORD = os.environb.pop(b"DB_PASSWORD", b"") or secrets.token_hex(8).encode()

with tmuxctl.session(["sh", "-c", INSTALLER], name="installer") as installer:
    ended = installer.wait("exit", on_asking=answer)
    print(installer.log(tail=1).text)
sys.exit(ended.exit_status)
