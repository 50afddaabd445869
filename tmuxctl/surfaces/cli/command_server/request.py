"""A request as the server takes it: bounded, in its time, and from a Python like this one."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence

from tmuxctl.surfaces.cli.command_server.client import LARGEST, MAGIC, NUMBER, describe_python
from tmuxctl.timing import TIMING
from tmuxctl.value import Value

DESCRIPTORS = 4
"""Standard input, output and error, and the folder."""

HANDED_OVER = (b"PYTHONPATH", b"PYTHONDONTWRITEBYTECODE", b"PYTHONUNBUFFERED")
AT_START = (b"PYTHON", b"LD_", b"COVERAGE_")
"""What the names of variables begin with that a process goes by when it starts: of them only those above can change later."""


class Refused(Exception):
    """This is no request that can be carried out here; the caller runs its command itself."""


class CommandRequest(Value):
    """A command, and what it depends on. `descriptors` are open here."""

    program: str
    words: tuple[str, ...]
    path: tuple[str, ...]
    bytecode: bool
    unbuffered: bool
    streams: tuple[tuple[str, str], ...]
    environment: dict[bytes, bytes]
    descriptors: tuple[int, ...]


def receive_request(connection: socket.socket) -> CommandRequest:
    """Read a request to its end. Raises Refused, or OSError for a caller that is gone or takes too long."""
    deadline = time.monotonic() + TIMING.command_server.request_seconds
    connection.settimeout(TIMING.command_server.request_seconds)
    data, descriptors, flags, _ = socket.recv_fds(connection, 1 << 16, DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    if len(descriptors) != DESCRIPTORS or flags & socket.MSG_CTRUNC:
        raise Refused
    received = bytearray(data)
    head = len(MAGIC) + NUMBER
    while len(received) < head or len(received) < head + _read_length(received):
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        more = connection.recv(1 << 20)
        if not more:
            raise Refused
        received += more
    return _parse_request(bytes(received[head:]), descriptors)


def _read_length(received: bytearray) -> int:
    """How long the request is that begins so. Raises Refused."""
    length = int.from_bytes(received[len(MAGIC) : len(MAGIC) + NUMBER], "little")
    if not received.startswith(MAGIC) or length > LARGEST:
        raise Refused
    return length


def _parse_request(body: bytes, descriptors: Sequence[int]) -> CommandRequest:
    fields = body.split(b"\0")
    if fields[0] != os.fsencode(describe_python()):
        raise Refused
    try:
        words, folders, no_bytecode, unbuffered = map(int, fields[1].split())
        streams = [tuple(os.fsdecode(field).split()) for field in fields[2:5]]
        texts = [os.fsdecode(field) for field in fields[5 : 6 + words + folders]]
    except (ValueError, IndexError):
        raise Refused from None
    variables = dict(_split_variable(field) for field in fields[6 + words + folders :])
    if len(texts) != 1 + words + folders or any(len(stream) != 2 for stream in streams) or not _fits_start(variables):
        raise Refused
    return CommandRequest(
        program=texts[0],
        words=tuple(texts[1 : 1 + words]),
        path=tuple(texts[1 + words :]),
        bytecode=not no_bytecode,
        unbuffered=bool(unbuffered),
        streams=tuple((stream[0], stream[1]) for stream in streams),
        environment=variables,
        descriptors=tuple(descriptors),
    )


def _split_variable(field: bytes) -> tuple[bytes, bytes]:
    name, equals, value = field.partition(b"=")
    if not name or not equals:
        raise Refused
    return name, value


def _fits_start(variables: dict[bytes, bytes]) -> bool:
    """True if these variables would have started a Python as this one was."""

    def starting(found: dict[bytes, bytes]) -> dict[bytes, bytes]:
        return {name: value for name, value in found.items() if name.startswith(AT_START) and name not in HANDED_OVER}

    return starting(variables) == starting(dict(os.environb))
