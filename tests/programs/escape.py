"""Gets away from its terminal in the way that is named, says so, and stays.

Whoever got away writes its pid into the folder that is the second argument.
"""

import os
import signal
import subprocess
import sys
import time

HOW, FOLDER = sys.argv[1], sys.argv[2]
POLITE = ("SIGHUP", "SIGTERM", "SIGINT")


def stay(*, ignoring=()):
    for name in ignoring:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with open(os.path.join(FOLDER, f"{os.getpid()}.new"), "w"):
        pass
    os.rename(os.path.join(FOLDER, f"{os.getpid()}.new"), os.path.join(FOLDER, str(os.getpid())))
    while True:
        time.sleep(60)


def twice():
    """Nobody's child, in a session of its own, with nothing of the terminal."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    if HOW == "clean":
        os.execve(sys.executable, [sys.executable, __file__, "hup", FOLDER], {})
    stay(ignoring=POLITE)


def loop():
    """Starts one after the other, each nobody's child."""
    while True:
        if not os.fork():
            os.setsid()
            if not os.fork():
                stay(ignoring=POLITE)
            os._exit(0)
        os.wait()
        time.sleep(0.02)


if HOW in ("hup", "term"):
    stay(ignoring=["SIGHUP"] if HOW == "hup" else POLITE)
elif HOW == "setsid":
    if not os.fork():
        os.setsid()
        stay(ignoring=["SIGHUP"])
elif HOW == "nohup":
    subprocess.Popen(
        ["nohup", sys.executable, __file__, "hup", FOLDER], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
elif HOW == "stopped":
    if not os.fork():
        stay(ignoring=POLITE)
    while not (found := [name for name in os.listdir(FOLDER) if name.isdecimal()]):
        time.sleep(0.01)
    os.kill(int(found[0]), signal.SIGSTOP)
elif HOW == "loop":
    if not os.fork():
        for name in POLITE:
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        loop()
else:
    twice()
while True:
    time.sleep(60)
