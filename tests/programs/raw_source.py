"""Prints so many bytes of every value once a byte was typed: `raw_source.py COUNT`; `made(COUNT)` are the same bytes."""

import os
import random
import sys


def made(count: int) -> bytes:
    return bytes(range(256)) + random.Random(7).randbytes(count - 256)


if __name__ == "__main__":
    import tty

    tty.setraw(0)
    os.write(1, b"READY")
    os.read(0, 1)
    data = made(int(sys.argv[1]))
    while data:
        data = data[os.write(1, data[:65536]) :]
