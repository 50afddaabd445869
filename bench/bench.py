"""`make bench`: the ratios only, printed."""

from __future__ import annotations

import sys

from measure import RATIOS, main

if __name__ == "__main__":
    sys.exit(main(RATIOS, write=False))
