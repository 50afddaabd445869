"""At which addresses a host listened when it was last asked: a private file for each machine in the state folder. With the key in
known_machines a client finds the host there without the gateway. An address is trusted with nothing: the handshake decides."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tmuxctl.errors import TmuxctlError
from tmuxctl.state_files import make_private_folder, state_home, write_record
from tmuxctl.untrusted import parse_record, read_file

MOST_ADDRESSES, FILE_LIMIT = 8, 4096


def parse_addresses(found: Any) -> tuple[str, ...]:
    """The addresses, as IP:PORT, that a host told, as far as they make sense; each IP in digits."""
    return tuple(one for one in found if _is_address(one))[:MOST_ADDRESSES] if isinstance(found, list) else ()


def _is_address(text: Any) -> bool:
    if not isinstance(text, str) or len(text) > 64 or not text.isascii():
        return False
    host, _, port = text.rpartition(":")
    with suppress(ValueError):
        ip = ipaddress.ip_address(host.strip("[]"))
        return port.isdigit() and 0 < int(port) < 65536 and not (ip.is_multicast or ip.is_unspecified)
    return False


def remembered_addresses(machine: str, host: str) -> tuple[str, ...]:
    """The addresses that are remembered of a machine, if it is still the host with this id."""
    with suppress(OSError, TmuxctlError, ValueError, KeyError):
        path = _path_of(machine)
        record = parse_record(read_file(path, FILE_LIMIT + 1), path, limit=FILE_LIMIT)
        return parse_addresses(record["addresses"]) if record["host"] == host else ()
    return ()


def remember_addresses(machine: str, host: str, addresses: Sequence[str]) -> None:
    """Remember these in the place of others. What cannot be written is not remembered."""
    if tuple(addresses) == remembered_addresses(machine, host):
        return
    with suppress(OSError, TmuxctlError):
        path = _path_of(machine)
        for folder in (os.path.dirname(os.path.dirname(path)), os.path.dirname(path)):
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            make_private_folder(folder)
        write_record(path, {"host": host, "addresses": list(addresses)})


def _path_of(machine: str) -> str:
    return os.path.join(state_home(), "tmuxctl", "direct", f"{machine}.json")
