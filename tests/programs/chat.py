"""A chat by lines, with a prompt. `chat.py MODE NAME`: it answers, has a limit, dies, or does so only after it did
something.

Every line that it was given goes to the file CHAT_LOG, with its name before it.
"""

import os
import sys
import time

mode, name = sys.argv[1:3]
LIMIT = "usage limit reached, resets 3pm"

if mode == "broken":
    print("no key for this model")
    sys.exit(3)
if mode == "panics":
    print("thread 'main' panicked at src/main.rs:7:5:\ncannot open its settings\nstack backtrace:")
    print(*(f"{number:4}: <unknown>" for number in range(8)), sep="\n")
    sys.exit(101)
if mode == "used-up":
    print(LIMIT)
while True:
    print(f"{name}> ", end="", flush=True)
    line = sys.stdin.readline()
    if not line or line == "/exit\n":
        break
    with open(os.environ["CHAT_LOG"], "a") as log:
        log.write(f"{name}: {line}")
    if mode == "limited":
        print(LIMIT)
    elif mode == "midway":
        print(f"I have begun with {line.strip()}.\n\n{LIMIT}")
    elif mode == "dies":
        sys.exit(4)
    elif mode == "dies-midway":
        print("I have begun.", flush=True)
        os.abort()
    elif mode == "hangs":
        time.sleep(600)
    elif mode == "asks":
        input(f"{LIMIT}. Go on at full price? [y/N] ")
    elif mode == "about":
        print(
            os.getcwd(), *os.get_terminal_size(1), *(os.environ.get(word, "-") for word in ("MINE", "THEIRS", "FILED"))
        )
    else:
        print(f"{name} was told: {line.strip()}")
