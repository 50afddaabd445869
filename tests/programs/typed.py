"""Tells exactly what is typed: how many bytes, their hash, and the last of them; nothing is echoed or changed.

With `bracketed` it asks for bracketed paste first, with `longer` for none after that, with `prints` it prints 2.5 MB then.
"""

import hashlib
import os
import sys
import termios
import tty

tty.setraw(0)
modes = termios.tcgetattr(0)
modes[1] |= termios.OPOST | termios.ONLCR
termios.tcsetattr(0, termios.TCSANOW, modes)
os.write(1, b"\033[?2004h" * ("bracketed" in sys.argv) + b"\033[?2004l" * ("longer" in sys.argv) + b"ready\n")
if "prints" in sys.argv:
    for _ in range(2500):
        print("x" * 997, flush=True)
    print("printed", flush=True)
seen = b""
while data := os.read(0, 1 << 16):
    seen += data
    print(f"got {len(seen)} {hashlib.sha1(seen).hexdigest()} {seen[-64:].hex()}.", flush=True)
