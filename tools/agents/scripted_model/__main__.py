"""python -m tools.agents.scripted_model --port-file FILE: serve on a free port of the loopback interface until ended."""

from __future__ import annotations

import argparse
from pathlib import Path

from .server import Server


def main() -> None:
    """Serve; the port is written to the file when programs can connect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="any free port if not given")
    parser.add_argument("--port-file", type=Path, required=True, metavar="FILE", help="where the port is written")
    options = parser.parse_args()
    server = Server(options.port)
    options.port_file.write_text(f"{server.server_address[1]}\n")
    server.serve_forever()


if __name__ == "__main__":
    main()
