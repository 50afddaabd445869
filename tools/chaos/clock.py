"""The wall's clock of every Python process of a run is put by what a file says, while it runs. Importing this does it; its text is
the `sitecustomize` of the processes that a run starts."""

import os
import time

real = time.time


def jumped() -> float:
    """Seconds since 1970, by the clock as it is put."""
    try:
        with open(os.environ.get("JUMP", "")) as file:
            return real() + float(file.read() or 0)
    except OSError:
        return real()


time.time = jumped
time.time_ns = lambda: int(jumped() * 1e9)
