"""Plays files to its terminal, raw: `player.py SOCKET FILE...`.

After each file it asks the terminal for its status and waits for the answer: all that was written has then been
acted on. It says so on the socket and goes on when a byte comes back.
"""

import os
import socket
import sys
import tty


def play(path: str) -> None:
    with open(path, "rb") as file:
        data = file.read()
    while data:
        data = data[os.write(1, data) :]
    os.write(1, b"\x1b[5n")
    answer = b""
    while b"\x1b[0n" not in answer:
        answer += os.read(0, 100)


tty.setraw(0)
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
for name in sys.argv[2:]:
    play(name)
    peer.send(b"+")
    peer.recv(1)
