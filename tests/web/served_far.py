"""`tmuxctl` whose machines behind a gateway are reached over Unix sockets: that of machine NAME is NAME in the folder of the
variable TMUXCTL_TEST_CALLS. All else is what a user runs."""

from __future__ import annotations

import os
import sys

from rpc import socket_carrier

from tmuxctl.control.machines import remote
from tmuxctl.machines import MachineEntry
from tmuxctl.rpc.records import Connect
from tmuxctl.surfaces.cli import main


def connect_to(entry: MachineEntry) -> Connect:
    return socket_carrier.connect_to(os.path.join(os.environ["TMUXCTL_TEST_CALLS"], entry.name))


if __name__ == "__main__":
    remote.CARRIERS["gateway"] = connect_to
    sys.exit(main())
