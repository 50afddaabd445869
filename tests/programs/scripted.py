"""An agent that answers by a script: a JSON file with a list of steps, each with `answer`, and maybe `expect` (the line that it
waits for) and `think` (seconds that it works before).

It draws its whole conversation again whenever that changes, and what it says while it works on one row. After its last step it
shows its prompt, and reads nothing any more.
"""

import json
import sys
import time

SPINNER = "|/-\\"
said: list[str] = []


def draw(ending: str) -> None:
    print("\x1b[2J\x1b[H" + "".join(f"{line}\n" for line in said) + ending, end="", flush=True)


def think(seconds: float) -> None:
    draw("Thinking... ")
    until, step = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        time.sleep(0.1)
        print(f"\rThinking {SPINNER[step % 4]}", end="", flush=True)
        step += 1
    print("\r" + " " * 20 + "\r", end="", flush=True)


with open(sys.argv[1]) as file:
    steps = json.load(file)
draw("> ")
for one in steps:
    if "expect" in one:
        while not (line := sys.stdin.readline().strip()):
            pass
        if line != one["expect"]:
            sys.exit(f"{one['expect']!r} was expected, and {line!r} came")
        said.append(f"> {line}")
        draw("> ")
    if one.get("think"):
        think(one["think"])
    said.append(one["answer"])
    draw("> ")
while True:
    time.sleep(600)
