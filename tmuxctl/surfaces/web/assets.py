"""The files of the page, listed and read when the server starts: nothing in a request ever names a file."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Mapping
from functools import cached_property

from tmuxctl.untrusted import read_file

FOLDER = os.path.join(os.path.dirname(__file__), "static")
VENDOR = "vendor/"
LIST = os.path.join(os.path.dirname(__file__), "vendor.sha256")
"""Names what `make web-assets` brings, each with its SHA-256."""

FILE_LIMIT = 4 << 20

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
}
"""What is served, by how its name ends; nothing else is."""

LEAST_GZIP = 1000
"""Bytes below which a text is sent as it is."""


class Asset:
    """One file of the page."""

    def __init__(self, media_type: str, data: bytes) -> None:
        self.media_type, self.data = media_type, data
        self.tag = f'"{hashlib.sha256(data).hexdigest()[:24]}"'

    @cached_property
    def packed(self) -> bytes | None:
        """The file in gzip's format; None where that gains nothing."""
        if len(self.data) < LEAST_GZIP or self.media_type == "image/png":
            return None
        return gzip.compress(self.data, 9, mtime=0)


def load_assets(folder: str = FOLDER) -> dict[str, Asset]:
    """The files of the page by their paths below its folder; links are left out."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            media_type = MEDIA_TYPES.get(os.path.splitext(name)[1])
            path = os.path.join(place, name)
            if media_type and not name.startswith(".") and not os.path.islink(path):
                found[os.path.relpath(path, folder)] = Asset(media_type, read_file(path, FILE_LIMIT))
    return found


def list_vendor() -> tuple[str, ...]:
    """The names of what is brought from npm."""
    lines = read_file(LIST, FILE_LIMIT).decode().splitlines()
    return tuple(VENDOR + line.split()[1] for line in lines)


def is_whole(assets: Mapping[str, Asset]) -> bool:
    """Whether the page with JavaScript is there: its own files, and what is brought from npm."""
    return "index.html" in assets and all(name in assets for name in list_vendor())
