"""Tells each key it reads; an Escape that something follows at once is Meta and that key, as editors have it."""

import os
import select
import tty

SOON = 0.04
"""Seconds in which the rest of a sequence comes. Editors wait between 0.025 and 1."""

tty.setraw(0)
os.write(1, b"ready\r\n")
NAMES = {b"\x1b": "Escape", b"\r": "Enter"}


def name(key: bytes) -> str:
    return f"Meta-{name(key[1:])}" if len(key) > 1 else NAMES.get(key) or key.decode()


while key := os.read(0, 1):
    if key == b"\x1b" and select.select([0], [], [], SOON)[0]:
        key += os.read(0, 1)
    os.write(1, f"[{name(key)}]".encode())
