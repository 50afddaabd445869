"""Reads a line in the way of its first argument, says so in a file, and works without a word until it may end.

The second argument is how it works: `opening` a FIFO, `computing`, or `accepting` a connection. MARK and GO, the others, are
the file that it makes when it has read, and the one by which it may end: a FIFO that is opened, a file that is there, a
socket that is connected to.
"""

import getpass
import os
import socket
import sys
import termios
from pathlib import Path

way, work, mark, go = sys.argv[1:]
if way == "tty":
    getpass.getpass("Passphrase: ")
elif way == "password":
    kept = termios.tcgetattr(0)
    silent = kept[:3] + [kept[3] & ~termios.ECHO] + kept[4:]
    termios.tcsetattr(0, termios.TCSANOW, silent)
    print("Password: ", end="", flush=True)
    sys.stdin.readline()
else:
    print("Which one? ", end="", flush=True)
    sys.stdin.readline()
listener = socket.socket(socket.AF_UNIX)
if work == "accepting":
    listener.bind(go)
    listener.listen()
Path(mark).touch()
if work == "accepting":
    listener.accept()
elif work == "computing":
    while not os.path.exists(go):
        sum(range(1000))
else:
    Path(go).read_bytes()
print("Another? ", end="", flush=True)
sys.stdin.readline()
