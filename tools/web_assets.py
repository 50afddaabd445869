"""Put what the page of `tmuxctl serve` takes from npm into its folder: the files it loads, and their licences, as they are known.

`make web-assets` installs the packages and calls this. A file whose SHA-256 is not the one of tmuxctl/surfaces/web/vendor.sha256
ends it with exit status 1, and nothing is changed. `--write` makes that list anew, for new versions.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parent.parent / "tmuxctl" / "surfaces" / "web"
LIST, VENDOR = WEB / "vendor.sha256", WEB / "static" / "vendor"

FILES = {
    "xterm.mjs": "@xterm/xterm/lib/xterm.mjs",
    "xterm.css": "@xterm/xterm/css/xterm.css",
    "addon-fit.mjs": "@xterm/addon-fit/lib/addon-fit.mjs",
    "addon-search.mjs": "@xterm/addon-search/lib/addon-search.mjs",
    "addon-unicode11.mjs": "@xterm/addon-unicode11/lib/addon-unicode11.mjs",
    "preact.mjs": "htm/preact/standalone.module.js",
    "xterm.LICENSE.txt": "@xterm/xterm/LICENSE",
    "addon-fit.LICENSE.txt": "@xterm/addon-fit/LICENSE",
    "addon-search.LICENSE.txt": "@xterm/addon-search/LICENSE",
    "addon-unicode11.LICENSE.txt": "@xterm/addon-unicode11/LICENSE",
    "htm.LICENSE.txt": "htm/LICENSE",
    "preact.LICENSE.txt": "preact/LICENSE",
}
"""What is taken, by the name it has here. htm's file has preact in it, whose licence is in a package of its own."""

MAP = re.compile(rb"\n//# sourceMappingURL=\S+\s*\Z")


def main() -> int:
    """Check and copy; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", type=Path, help="the folder that npm installed the packages into")
    parser.add_argument("--write", action="store_true", help="write the list of what they should be")
    options = parser.parse_args()
    modules = options.packages / "node_modules"
    if not modules.is_dir():
        print("web-assets: npm installed nothing; without it the page is the one without JavaScript", file=sys.stderr)
        return 0
    found = {name: read_asset(modules / path) for name, path in FILES.items()}
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
    if options.write:
        LIST.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items())))
    if wrong := [name for name, digest in read_list().items() if sums.get(name) != digest]:
        print(f"web-assets: not as {LIST.name} has it: {', '.join(wrong)}", file=sys.stderr)
        return 1
    shutil.rmtree(VENDOR, ignore_errors=True)
    VENDOR.mkdir(parents=True)
    for name, data in found.items():
        (VENDOR / name).write_bytes(data)
    return 0


def read_asset(path: Path) -> bytes:
    """A file of a package, without the line that names its source map: the map is not shipped."""
    return MAP.sub(b"\n", path.read_bytes())


def read_list() -> dict[str, str]:
    """The SHA-256 of each file, by its name."""
    rows = (line.split() for line in LIST.read_text().splitlines())
    return {name: digest for digest, name in rows}


if __name__ == "__main__":
    sys.exit(main())
