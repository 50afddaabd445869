"""A client that asks for screens, one at a time, at home in HOME:

    python -m tools.scale.caller CALLS_A_SECOND SECONDS MACHINE,... MACHINE,...

It has a call of each machine first, so that all channels are open, and says so with a line. At the next line on standard input it
asks machines of all groups in turn, and tells as JSON the seconds that each call took, by group, and how many had a wrong answer
or none.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import cycle

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError
from tools.scale.simulated_hosts import SCREEN


def main() -> None:
    """Call as the command line says, and tell what came."""
    rate, seconds = float(sys.argv[1]), float(sys.argv[2])
    groups = [names.split(",") for names in sys.argv[3:]]
    with Control(resident=True) as control:
        for names in groups:
            for name in names:
                control.screen(f"{name}/s1")
        print(json.dumps({"called": sum(map(len, groups))}), flush=True)
        sys.stdin.readline()
        taken: list[list[float]] = [[] for _ in groups]
        wrong = 0
        turns = cycle(enumerate(map(cycle, groups)))
        began = time.monotonic()
        for number in range(round(rate * seconds)):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            group, names_in_turn = next(turns)
            name = next(names_in_turn)
            asked = time.monotonic()
            try:
                wrong += control.screen(f"{name}/s1").text != SCREEN
            except TmuxctlError:
                wrong += 1
            taken[group].append(time.monotonic() - asked)
        print(json.dumps({"taken": taken, "wrong": wrong}), flush=True)


if __name__ == "__main__":
    main()
