"""Prints numbered lines up to its argument, then repeats lines."""

import sys

for number in range(1, int(sys.argv[1]) + 1):
    print(f"line {number}")
sys.stdout.flush()
for line in sys.stdin:
    print(line, end="", flush=True)
