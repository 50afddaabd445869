"""A program to type into: raw mode without echo; it appends every byte it reads to the file it is given, and says READY."""

from __future__ import annotations

import os
import sys
import tty

with open(sys.argv[1], "ab", buffering=0) as file:
    tty.setraw(0)
    os.write(1, b"READY\r\n")
    while data := os.read(0, 65536):
        file.write(data)
