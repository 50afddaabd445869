"""Another user of this machine, for as long as a test takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

import psutil
import pytest


class OtherUser:
    """A user with a home and a password of its own; skips the test where none can be made."""

    def __init__(self, purpose: str) -> None:
        if os.getuid() != 0 or not shutil.which("useradd"):
            pytest.skip("only root makes users, with useradd")
        self.name = f"tc-{purpose[:8]}-{os.getpid()}"
        self.password = uuid.uuid4().hex
        self.path = "/usr/local/bin:/usr/bin:/bin"

    def __enter__(self) -> OtherUser:
        self.home = Path(tempfile.mkdtemp(prefix="tc-user-", dir="/tmp"))
        subprocess.run(
            [
                "useradd",
                "--no-create-home",
                "--no-user-group",
                "--home-dir",
                self.home,
                "--shell",
                "/bin/sh",
                self.name,
            ],
            check=True,
        )
        subprocess.run(["chpasswd"], input=f"{self.name}:{self.password}", text=True, check=True)
        shutil.chown(self.home, self.name)
        self.home.chmod(0o700)
        return self

    def __exit__(self, *_: object) -> None:
        for process in psutil.process_iter(["username"]):
            if process.info["username"] == self.name:
                process.kill()
        subprocess.run(["userdel", "--force", self.name], check=False, capture_output=True)
        shutil.rmtree(self.home)
