"""Reads so many bytes without the terminal changing any, and prints a dot each time it gets some, and at the end their SHA-256
and how many bytes came behind them.

`raw_sink.py COUNT [FILE]`: begins to read once the file is there.
"""

import hashlib
import os
import select
import sys
import time
import tty

tty.setraw(0)
os.write(1, b"READY")
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
count, read = hashlib.sha256(), 0
while read < int(sys.argv[1]):
    data = os.read(0, min(65536, int(sys.argv[1]) - read))
    os.write(1, b".")
    count.update(data)
    read += len(data)
behind = len(os.read(0, 65536)) if select.select([0], [], [], 0.2)[0] else 0
os.write(1, f"{count.hexdigest()} {behind} END".encode())
