"""schemathesis over the server's OpenAPI document: requests that fit it and requests that do not, thousands of them.

    python -m tests.surfaces.server.fuzz SCHEMATHESIS    its program; what follows is passed on to it

The server has a home of its own, and one session, `cat`, that all requests are about; programs that a request starts are
`true`. Streams and MCP are left out, and what agentapi answers with 500, as its clients know it. So is the check
`positive_data_acceptance`: the document cannot say what a cursor is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIG = """
[parameters]
"path.id" = "db"
"path.name" = "bash"
"body.command" = [["true"]]
"""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)
TMUXCTL = (sys.executable, "-m", "tmuxctl")


def main(program: str, *options: str) -> int:
    """Run it; its exit status."""
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory(prefix="tc-", dir="/tmp") as folder:
        home = Path(folder)
        (home / "run").mkdir(mode=0o700)
        (home / "schemathesis.toml").write_text(CONFIG)
        tree = str(Path(__file__).resolve().parents[3])
        env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        env |= {"HOME": folder, "TMUX_TMPDIR": folder, "XDG_RUNTIME_DIR": f"{folder}/run", "XDG_STATE_HOME": folder}
        # a wait for what never comes ends soon
        env |= {"TMUXCTL_TIMEOUT": "2", "PYTHONPATH": tree, "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([*TMUXCTL, "new", "db", "--", "cat"], cwd=folder, env=env, check=True)
        words = [*TMUXCTL, "--json", "serve", "--listen", "127.0.0.1:0", "--no-token"]
        with subprocess.Popen(words, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout
                address = server.stdout.readline().rpartition('"http')[2].partition('"')[0]
                checks = [
                    "--checks",
                    ",".join(CHECKS),
                    "--phases",
                    "examples,coverage,fuzzing",
                    "--continue-on-failure",
                ]
                leave_out = [
                    "--exclude-path-regex",
                    "events|mcp|agentapi/message",
                    "--no-color",
                    "--request-timeout",
                    "30",
                ]
                url = f"http{address}/openapi.json"
                done = subprocess.run([program, "run", url, *checks, *leave_out, *options], cwd=folder, env=env)
                return done.returncode if server.poll() is None else 1
            finally:
                server.terminate()
                subprocess.run([*TMUXCTL, "kill", "--all", "--force"], cwd=folder, env=env, capture_output=True)
                subprocess.run(["tmux", "-L", "tmuxctl", "kill-server"], cwd=folder, env=env, capture_output=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
