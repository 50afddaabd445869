"""A session's recording as an answer: written to a file first, as long as it may be."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from fastapi import Response
from fastapi.responses import StreamingResponse

if TYPE_CHECKING:
    from tmuxctl.surfaces.server.calls import Calls

MEMORY_BYTES = 1 << 20
PART_BYTES = 1 << 16
MEDIA_TYPE = "application/x-asciicast"


async def answer_cast(calls: Calls, session: str) -> Response:
    """The recording of a session (its id), from the first byte that is kept on."""

    def write() -> IO[bytes]:
        from tmuxctl.control.recordings import casts, played

        service, name = calls.control.reach(session)
        # closed once it is read
        file = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115
        text = io.TextIOWrapper(file, encoding="utf-8", write_through=True)
        recording = played.record(service.machine, name, since=None, until=None)
        casts.write_cast(recording, recording.events(), text)
        text.detach()
        file.seek(0)
        return file

    return StreamingResponse(_parts(await calls.in_thread(write)), media_type=MEDIA_TYPE)


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while part := file.read(PART_BYTES):
            yield part
