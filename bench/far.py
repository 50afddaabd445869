"""`python bench/far.py`: what a machine costs that is 50 ms away, in a network of this machine's own. Needs root."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from machines.far_network import FAR, FarNetwork
from machines.ssh_server import SshServer, configure_ssh, end_all

ROUND_TRIP = 0.050


@contextmanager
def far_machine(round_trip: float) -> Iterator[tuple[FarNetwork, SshServer]]:
    """A machine `web1`, so many seconds away, which this process and its children reach."""
    with tempfile.TemporaryDirectory(prefix="far-") as folder:
        place = Path(folder)
        (place / "run").mkdir(mode=0o700)
        os.environ.update(
            XDG_RUNTIME_DIR=str(place / "run"),
            XDG_CONFIG_HOME=str(place / "config"),
            XDG_STATE_HOME=str(place / "state"),
            PATH=f"{place / 'bin'}:{os.environ['PATH']}",
            TMUXCTL_SOCKET=f"far{os.getpid()}",
        )
        network = FarNetwork(round_trip / 2)
        try:
            server = SshServer(place, "web1", address=FAR, inside=network.inside(network.far))
            configure_ssh(place, [server])
            network.enter(network.near)
            yield network, server
        finally:
            end_all(place)
            network.close()
