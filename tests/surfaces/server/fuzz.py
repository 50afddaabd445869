"""schemathesis over the server's OpenAPI document: requests that fit it and requests that do not, thousands of them.

    python -m tests.surfaces.server.fuzz SCHEMATHESIS    its program; what follows is passed on to it

All of it runs in a sandbox of bubblewrap, the server with its sessions and schemathesis: a request may name any file, command
or address. There it may write to its own folder alone, and its network is a loopback of its own. The server has one session,
`cat`, and one team, whose run has ended, that all requests are about; programs that a request starts are `true`. Streams and
MCP are left out, and what agentapi answers with 500, as its clients know it. So is the check `positive_data_acceptance`: the
document cannot say what a cursor is.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIG = """
[parameters]
"path.id" = "db"
"path.name" = "bash"
"path.team" = "pair"
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
TEAM = """
schema: tmuxctl/connector@1
name: pair
agents: {one: {command: [bash]}, two: {command: [bash]}}
topology: {type: pipeline, stages: [{agent: one, prompt: echo 1}, {agent: two, prompt: echo 2}]}
"""
TREE = str(Path(__file__).resolve().parents[3])
TMUXCTL = (sys.executable, "-m", "tmuxctl")
INSIDE = "import sys; from tests.surfaces.server.fuzz import run_inside; sys.exit(run_inside(*sys.argv[1:]))"
SANDBOX = (
    "--ro-bind / / --dev /dev --proc /proc --ro-bind /proc/sys /proc/sys --tmpfs /run --tmpfs /tmp --unshare-pid --unshare-net "
    "--unshare-ipc --unshare-uts --unshare-cgroup-try --die-with-parent --cap-drop ALL"
)
"""What is read-only, and what is hidden: in /run and /tmp are sockets of others, which may be used though nothing is written."""


def main(program: str, *options: str) -> int:
    """Run it in a sandbox; its exit status."""
    sandbox = shutil.which("bwrap")
    if sandbox is None:
        sys.exit("there is no bwrap, in which requests of all kinds do no harm: apt-get install bubblewrap")
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory(prefix="tc-", dir="/tmp") as folder:
        # what is needed of /tmp, where it stands there
        read = {TREE, sys.prefix, os.path.dirname(os.path.dirname(program))}
        binds = [word for path in sorted(read) for word in ("--ro-bind", path, path)]
        words = [sandbox, *SANDBOX.split(), *binds, "--bind", folder, folder, "--chdir", folder]
        env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        env |= {"HOME": folder, "TMPDIR": folder, "TMUX_TMPDIR": folder, "XDG_RUNTIME_DIR": f"{folder}/run"}
        # a wait for what never comes ends soon
        env |= {"XDG_STATE_HOME": folder, "TMUXCTL_TIMEOUT": "2", "PYTHONPATH": TREE, "PYTHONDONTWRITEBYTECODE": "1"}
        # all that is left of it ends with the sandbox
        return subprocess.run([*words, sys.executable, "-c", INSIDE, folder, program, *options], env=env).returncode


def run_inside(folder: str, program: str, *options: str) -> int:
    """Start the server and schemathesis in this folder; the exit status of schemathesis, 1 if the server did not outlive it."""
    check_sandbox(folder)
    (Path(folder) / "run").mkdir(mode=0o700)
    (Path(folder) / "schemathesis.toml").write_text(CONFIG)
    subprocess.run([*TMUXCTL, "new", "db", "--", "cat"], check=True)
    (Path(folder) / "team.yaml").write_text(TEAM)
    subprocess.run([*TMUXCTL, "connect", "up", f"{folder}/team.yaml", "--yes"], check=True)
    words = [*TMUXCTL, "--json", "serve", "--listen", "127.0.0.1:0", "--no-token"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        address = server.stdout.readline().rpartition('"http')[2].partition('"')[0]
        checks = ["--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--continue-on-failure"]
        leave_out = ["--exclude-path-regex", "events|mcp|agentapi/message", "--no-color", "--request-timeout", "30"]
        url = f"http{address}/openapi.json"
        done = subprocess.run([program, "run", url, *checks, *leave_out, *options])
        ended = server.poll() is not None
        server.terminate()
    return 1 if ended else done.returncode


def check_sandbox(folder: str) -> None:
    """Fail unless this is a sandbox: nothing but the folder can be written to, and no network be reached but the loopback."""
    for path in (TREE, os.path.expanduser("~root"), "/usr", "/etc", "/var"):
        assert not os.access(path, os.W_OK), f"{path} can be written to"
    assert os.access(folder, os.W_OK)
    assert os.listdir("/run") == []
    assert [name for _, name in socket.if_nameindex()] == ["lo"]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
