"""A host of a gateway as a process of its own, for `pytest --elsewhere=gateway`: `suite_host.py FOLDER CREDENTIALS`.

Its keys and authorized clients are in FOLDER; all else is as the test has it. It says with a line that it serves.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from pathlib import Path

from tmuxctl.control import Control
from tmuxctl.gateway import host
from tmuxctl.gateway.credentials import read_credentials
from tmuxctl.sealed.keys import KeyFiles
from tmuxctl.sealed.trust import AuthorizedClients


def main() -> None:
    folder, credentials = sys.argv[1:]
    given = os.environ.pop("TMUXCTL_TEST_GIVEN", None)
    control = Control(resident=True, **(pickle.loads(Path(given).read_bytes()) if given else {}))
    vars(host)["KeyFiles"] = lambda: KeyFiles(f"{folder}/keys")
    vars(host)["AuthorizedClients"] = lambda: AuthorizedClients(f"{folder}/authorized_clients")
    with host.GatewayHost(control, read_credentials(credentials), direct="off") as serving:
        serving.connection.wait_connected(20.0)
        print("listening", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
