"""A machine behind a gateway for tests: `tmuxctl serve --gateway` in a process of its own, with its own home and tmux."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gateway.gateway_site import until

from tmuxctl.gateway.carrier import client_credentials_path
from tmuxctl.gateway.credentials import Credentials, write_credentials
from tmuxctl.sealed.trust import KnownMachines

TMUXCTL = (sys.executable, "-m", "tmuxctl")


def environment_of(home: Path) -> dict[str, str]:
    """The variables of another machine, whose home this is; it is made."""
    (home / "run").mkdir(mode=0o700, parents=True)
    home.chmod(0o700)
    named = {name: str(home) for name in ("HOME", "TMUX_TMPDIR", "TMPDIR")}
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
        **named,
        "XDG_RUNTIME_DIR": str(home / "run"),
        "TMUXCTL_SOCKET": "there",
    }


class MemberSource(Protocol):
    """Where hosts and clients are added."""

    def add(self, role: str, *words: str) -> Credentials:
        """A new host or client."""


class JoinedHost:
    """A host: its home, its id at the gateway, and the process that serves."""

    def __init__(self, site: MemberSource, home: Path) -> None:
        self.home = home
        self.environment = environment_of(home)
        credentials = site.add("host", "--out", str(home / "host.json"))
        self.id = credentials.id
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What it wrote."""
        return (self.home / "serve.log").read_text()

    @property
    def authorized(self) -> Path:
        """The clients that it answers."""
        return self.home / ".config/tmuxctl/authorized_clients"

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A run of tmuxctl on it."""
        return subprocess.run(
            [*TMUXCTL, *words],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(
        self,
        program: tuple[str, ...] = TMUXCTL,
        gateway: tuple[str, ...] = ("--gateway", "host.json", "--direct", "off"),
    ) -> None:
        """Serve, until it listens; at a Unix socket only. All goes through the gateway unless that is said otherwise."""
        with open(self.home / "serve.log", "wb") as log:
            self.process = subprocess.Popen(
                [*program, "serve", "--listen", "unix", *gateway],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(lambda: "listening on" in self.log or self._is_over(), f"it does not serve:\n{self.log}")

    def _is_over(self) -> bool:
        assert self.process
        assert self.process.poll() is None, self.log
        return False

    def end(self, *, kill: bool = False) -> None:
        """End it, in order or as kill -9 does."""
        if self.process:
            (self.process.kill if kill else self.process.terminate)()
            self.process.wait(20)
            self.process = None

    def pair(
        self,
        name: str,
        *words: str,
        code: str | None = None,
        credentials: tuple[str, ...] = ("--credentials", "host.json"),
        before: Callable[[], None] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Let the test's own user in: the command here, with the code that this host shows, or another. `before` is
        called while the host waits."""
        with subprocess.Popen(
            [*TMUXCTL, "gateway", "pair", "tester", *credentials, *words],
            env=self.environment,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as waiting:
            assert waiting.stderr
            shown = ""
            while not (found := re.search(r"code: ([0-9-]+)\n.*machine pair NAME ([a-z2-7]{16})\n", shown)):
                line = waiting.stderr.readline()
                assert line, shown
                shown += line
            if before is not None:
                before()
            done = command("machine", "pair", name, found[2], given=(code or found[1]) + "\n")
            if done.returncode:
                waiting.kill()
            else:
                assert waiting.wait(20) == 0, waiting.stderr.read()
        return done


def command(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """A run of tmuxctl on the test's own machine."""
    argv = [*TMUXCTL, "--no-server", *words]
    return subprocess.run(argv, input=given, capture_output=True, text=True, timeout=90, check=False)


def become_client(site: MemberSource) -> str:
    """Put a new client's credentials where its commands look for them; its id."""
    path = Path(client_credentials_path())
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = site.add("client")
    path.unlink(missing_ok=True)
    write_credentials(str(path), made)
    return made.id


def remove_pairing(name: str) -> None:
    """Forget a machine here."""
    KnownMachines().remove(name)
