"""Creates sessions of `cat`, s0000 and so on, until there are NUMBER of them or one is refused, and says how many and why."""

from __future__ import annotations

import json
import sys

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError


def main() -> None:
    made, reason = 0, ""
    with Control() as control:
        while made < int(sys.argv[1]) and not reason:
            try:
                control.new(f"s{made:04}", ("cat",), profile="none", shell_marks=False, wait=False)
                made += 1
            except TmuxctlError as error:
                reason = error.reason
    print(json.dumps({"made": made, "reason": reason}))


if __name__ == "__main__":
    main()
