"""The servers that sections talk to: real ones, each a section's own, found by the variables it gets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tools.person import person
from tools.services import Running

PASSWORD = "Corr3ct-horse!"


@contextmanager
def started(name: str, place: Path) -> Iterator[Mapping[str, str] | None]:
    """A server that answers, and the variables that lead its clients to it; None if it cannot be started here.

    sshd lets in SSH_USER, who has the password SSH_PASSWORD.
    """
    # a server is a user of its own, who has to get at its files
    place.chmod(0o755)
    user = f"tcd{os.getpid()}" if name == "sshd" else ""
    with person(user, PASSWORD) if user else nullcontext(True) as there, Running(place, user=user) as running:
        served = running.start(name) if there else None
        about = {"SSH_USER": user, "SSH_PASSWORD": PASSWORD} if user else {}
        yield served and {**served.environment, **about}
