"""Will not go: it and two children, one of them in a session of its own, ignore every polite signal."""

import os
import signal
import time

for name in ("SIGTERM", "SIGHUP", "SIGINT"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
if child := os.fork():
    if os.fork():
        time.sleep(0.05)
        print(f"stubborn {os.getpid()}", flush=True)
else:
    os.setsid()
while True:
    time.sleep(60)
