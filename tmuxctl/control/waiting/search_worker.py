"""The process that searches for others: patterns and texts come in on standard input, where they match goes out.

It is run as a file of its own (`python -I -S search_worker.py`, or `-c` with its source), so it imports the standard
library alone. It ends with its standard input, and by itself when a search goes on for longer than it was allowed.

A request is `REQUEST` (flags, seconds, where to start, bytes of the pattern, bytes of the text), then both in UTF-8. An
answer is `ANSWER` (a word, the number of spans), then the spans of the match and its groups, -1 where one took no part.
"""

from __future__ import annotations

import os
import re
import signal
import struct

REQUEST = struct.Struct("<idQII")
ANSWER = struct.Struct("<BI")
READY = b"ready\n"
NOTHING, MATCH, TOO_MUCH = range(3)

MEMORY_BYTES = 1 << 30
DESCRIPTORS = 4096


def main() -> None:
    """Answer until standard input ends."""
    _settle()
    _write(READY)
    while (head := _read(REQUEST.size)) is not None:
        flags, seconds, start, *sizes = REQUEST.unpack(head)
        pattern, text = (_read(size) for size in sizes)
        if pattern is None or text is None:
            return
        # nobody may be there to end it: the default action of the alarm needs no Python to run
        signal.setitimer(signal.ITIMER_REAL, seconds)
        answer = _answer(pattern, flags, text, start)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(answer)


def _settle() -> None:
    """Hold on to nothing that was inherited, and take no more than so much memory."""
    os.chdir("/")
    os.closerange(3, DESCRIPTORS)
    try:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, OSError, ValueError):
        pass


def _answer(pattern: bytes, flags: int, text: bytes, start: int) -> bytes:
    try:
        found = re.compile(_decoded(pattern), flags).search(_decoded(text), start)
    except (MemoryError, RecursionError):
        return ANSWER.pack(TOO_MUCH, 0)
    if found is None:
        return ANSWER.pack(NOTHING, 0)
    spans = [end for group in range(found.re.groups + 1) for end in found.span(group)]
    return ANSWER.pack(MATCH, len(spans)) + struct.pack(f"<{len(spans)}i", *spans)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _read(size: int) -> bytes | None:
    """So many bytes, or None where the input ends."""
    data = bytearray()
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            return None
        data += part
    return bytes(data)


def _write(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(1, left) :]


if __name__ == "__main__":
    main()
