"""A run in a network of nothing but the loopback interface: the programs reach the local model, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

INSIDE = "TMUXCTL_AGENTS_INSIDE"
"""Set where the run already has a network of its own."""


def leave_the_network(module: str) -> None:
    """Start this module again, with the same words, in a network of its own, where the machine lets us."""
    if os.environ.get(INSIDE) or not (shutil.which("unshare") and shutil.which("ip")):
        return
    words = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-rn"]
    words += ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        print("-- no network of its own here: the programs could reach the outside")
        return
    sys.stdout.flush()
    os.execvpe(words[0], [*words, sys.executable, "-m", module, *sys.argv[1:]], {**os.environ, INSIDE: "1"})
