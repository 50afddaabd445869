"""A chat by lines without anything to know it by: a prompt, answers as they come, a question before it runs a command.

The first word says how it answers: `slow` word by word, `silent` after seconds of nothing, `run COMMAND` only if it may;
else it says `You said:` and the rest, in which `/` stands for the end of a line.
"""

import os
import subprocess
import sys
import time


def answer(how: str, rest: str) -> str:
    """What it has to say, after whatever it does first."""
    if how == "silent":
        time.sleep(float(rest))
        return "That was silent."
    if how != "run":
        return f"You said:\n{rest}".replace("/", "\n")
    if input(f"I would like to run: {rest}\nRun this? (yes/no) ") != "yes":
        return "Then I do not."
    ran = subprocess.run(["sh", "-c", rest], check=False, capture_output=True, text=True)
    return f"It ended with {ran.returncode}."


while (line := input("you: ")) != "bye":
    with open(os.environ.get("TALK_LOG", os.devnull), "a") as log:
        log.write(line + "\n")
    how, _, rest = line.partition(" ")
    for word in answer(how, rest).split(" "):
        print(end=word + " ", flush=True)
        time.sleep(0.05 if how == "slow" else 0)
    print()
sys.exit(0)
