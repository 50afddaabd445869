"""The service managers that can keep our servers running, systemd's of a user and launchd: what each reads, how it is told,
and how a server that it started tells it that it is ready."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tmuxctl import config
from tmuxctl.errors import Failed, Unreachable
from tmuxctl.timing import TIMING

SEAL = "0" * 64
"""Stands in a text where its checksum will."""

MADE = "Made by `tmuxctl service install`: do that again rather than edit this. sha256"


class Job(NamedTuple):
    """What is to be kept running: the words that start this tmuxctl for its socket, and what its process is given."""

    socket: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    unset: tuple[str, ...]
    descriptors: tuple[int | None, int | None]
    """How many files may be open: the soft limit, which programs get, and the hard one, which the server uses; None for
    any number."""
    umask: int


class ServiceState(NamedTuple):
    """What a manager says of a service; all None where no manager answers."""

    enabled: bool | None = None
    running: bool | None = None
    pid: int | None = None


def seal(text: str) -> str:
    """A text with its checksum where SEAL stands."""
    from hashlib import sha256

    return text.replace(SEAL, sha256(text.encode()).hexdigest())


def made_by_us(text: str) -> bool:
    """True if `service install` made this, whatever was changed since."""
    return re.search(f"{re.escape(MADE)} [0-9a-f]{{64}}", text) is not None


def is_untouched(text: str) -> bool:
    """True if `service install` made this, and nobody changed it since."""
    found = re.search(f"{re.escape(MADE)} ([0-9a-f]{{64}})", text)
    return found is not None and seal(text.replace(found[1], SEAL)) == text


def _service_name(socket: str, suffix: str) -> str:
    return f"tmuxctl{suffix}" if socket == config.RULES["tmux.socket"].default else f"tmuxctl{suffix}-{socket}"


def _run_program(words: Sequence[str], seconds: float = 20.0) -> tuple[int, str]:
    """The exit status of a program and what it said, errors and all; 127 if there is no such program."""
    from tmuxctl.transport import spawn

    try:
        done = spawn.run(words, timeout=seconds)
    except FileNotFoundError:
        return 127, f"there is no {words[0]}"
    except spawn.SpawnTimeout:
        return 124, f"{words[0]} did not answer within {seconds:g} s"
    return done.status, (done.output + done.errors).decode(errors="replace").strip()


class Role(NamedTuple):
    """What a service is there for, and so how its file differs from that of another one.

    `suffix` stands in its name, `words` follow the command, `restores`: lost sessions are started when it runs. `needs` are names
    of services that are to run before it does. `stop` are lines of a unit that say what a stop ends, `launchd` the same there.
    """

    suffix: str
    description: str
    words: tuple[str, ...]
    restores: bool
    stop: str
    needs: tuple[str, ...] = ()
    launchd: tuple[tuple[str, Any], ...] = ()


TMUX_SERVER = Role(
    "",
    "tmuxctl's tmux server, socket {socket}, and the sessions that were lost",
    ("service", "run"),
    restores=True,
    stop="""\
# a stop, and what a crash left over, ends all of the sessions; programs that run out of memory end alone
KillMode=control-group
""",
)
HTTP_SERVER = Role(
    "-serve",
    "tmuxctl's HTTP server, socket {socket}",
    ("serve",),
    restores=False,
    # `serve` starts no tmux server when it starts, but the first session that a caller wants does, where none runs (after
    # kill-server, say): it is in this unit's group then
    stop="""\
# a stop, or a restart, ends the HTTP server alone: a tmux server that it had to start is in this group, with its sessions,
# and both `control-group` and `mixed` would kill it (systemd.kill(5))
KillMode=process
""",
    needs=("",),
    # launchd kills the process group: what left it, as a tmux server does, it never kills; a command that is told of events may
    # be in it
    launchd=(("AbandonProcessGroup", True),),
)

UNIT = f"""\
# {MADE} {SEAL}
[Unit]
Description={{description}}
{{needs}}StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=all
ExecStart={{run}}
{{restore}}TimeoutStartSec={TIMING.page.service_start_seconds}
Restart=on-failure
RestartSec=1
{{stop}}TimeoutStopSec={TIMING.page.service_stop_seconds}
OOMPolicy=continue
# each session gets a control group of its own
Delegate=yes
TasksMax=infinity
LimitNOFILE={{limit}}
UMask={{umask:04o}}
{{environment}}
[Install]
WantedBy=default.target
"""


class Systemd:
    """A service of a user's systemd. `Launchd` has the same methods."""

    word = "systemd"
    """What the manager is called."""

    def __init__(self, socket: str, role: Role = TMUX_SERVER) -> None:
        self.role = role
        self.name = f"{_service_name(socket, role.suffix)}.service"
        """What the manager calls the service."""
        self.path = os.path.join(os.path.dirname(config.config_folder()), "systemd", "user", self.name)

    def text(self, job: Job) -> str:
        """The file at `path`, which the manager reads, sealed."""
        given = [f"Environment={_unit_word(f'{name}={value}')}\n" for name, value in job.environment.items()]
        unset = [f"UnsetEnvironment={' '.join(job.unset)}\n"] if job.unset else []
        needs = [f"{_service_name(job.socket, suffix)}.service" for suffix in self.role.needs]
        text = UNIT.format(
            description=self.role.description.format(socket=job.socket),
            needs="".join(f"Wants={name}\nAfter={name}\n" for name in needs),
            run=_unit_command("", job.command, *self.role.words),
            restore=f"ExecStartPost={_unit_command('-', job.command, 'restore')}\n" if self.role.restores else "",
            stop=self.role.stop,
            limit=":".join("infinity" if number is None else str(number) for number in job.descriptors),
            umask=job.umask,
            environment="".join([*given, *unset]),
        )
        return seal(text)

    def is_for_role(self, text: str) -> bool:
        """Whether a file that we made is that of a service of this role: `serve` may be the name of a socket too."""
        return re.search(rf"^ExecStart=.* {' '.join(self.role.words)}$", text, re.MULTILINE) is not None

    def start(self) -> None:
        """Have the file read, the service started now and whenever the user's services are. Unreachable `no_manager`
        where no manager answers."""
        status, said = self._run_systemctl("daemon-reload")
        if status:
            raise Unreachable(
                f"{self.path} is written, but no systemd of this user answers: {said}",
                reason="no_manager",
                hint=self._suggest_start(),
                file=self.path,
            )
        self._run_or_raise("enable", "--now", self.name)

    def stop(self) -> None:
        """End the service now."""
        self._run_or_raise("stop", self.name)

    def forget(self) -> None:
        """Do not start it again. The file is there still; a service that runs goes on."""
        self._run_or_raise("disable", self.name)

    def reload(self) -> None:
        """Notice that the file is gone."""
        self._run_or_raise("daemon-reload")

    def state(self) -> ServiceState:
        """What the manager says of the service."""
        status, said = self._run_systemctl("show", self.name, "--property=UnitFileState,ActiveState,MainPID")
        facts = dict(line.partition("=")[::2] for line in said.splitlines())
        if status or "ActiveState" not in facts:
            return ServiceState()
        pid = facts.get("MainPID", "")
        running = facts["ActiveState"] in ("active", "activating", "reloading")
        enabled = facts.get("UnitFileState", "").startswith("enabled")
        return ServiceState(enabled, running, int(pid) if pid.isdecimal() and int(pid) else None)

    def linger(self) -> bool | None:
        """Whether the user's services run without the user, None if nobody can say."""
        status, said = _run_program(["loginctl", "show-user", _user_name(), "--property=Linger"])
        return None if status else said == "Linger=yes"

    def enable_linger(self) -> None:
        """Have the user's services start with the machine, and stay when the user leaves."""
        status, said = _run_program(["loginctl", "--no-ask-password", "enable-linger", _user_name()])
        if status:
            raise Failed(f"loginctl: {said}", reason="no_linger", hint=f"sudo loginctl enable-linger {_user_name()}")

    def _run_systemctl(self, *words: str) -> tuple[int, str]:
        return _run_program(["systemctl", "--user", *words], TIMING.page.service_start_seconds + 30.0)

    def _run_or_raise(self, *words: str) -> None:
        status, said = self._run_systemctl(*words)
        if status:
            raise Failed(
                f"systemctl {words[0]}: {said}",
                reason="manager",
                hint=f"journalctl --user --unit {self.name}",
                file=self.path,
            )

    def _suggest_start(self) -> str:
        """What would work where no systemd of the user answers."""
        if not os.path.isdir("/run/systemd/system"):
            return "where systemd does not run, another manager may run: tmuxctl service run --restore"
        first = "" if os.environ.get("XDG_RUNTIME_DIR") else f"export XDG_RUNTIME_DIR=/run/user/{os.getuid()}; "
        return f"log in, or loginctl enable-linger; then: {first}systemctl --user enable --now {self.name}"


def _user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _unit_word(word: str, dollar: str = "$") -> str:
    r"""A word as units have it (systemd.syntax(7)): `%` begins a specifier, `\` an escape; `dollar` is what a `$` becomes."""
    word = word.replace("%", "%%").replace("$", dollar)
    if re.fullmatch(r"[\w@%+=:,./$-]+", word, re.ASCII):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _unit_command(prefix: str, command: Sequence[str], *words: str) -> str:
    """A command line: in the words behind the program's own path `$` begins a variable."""
    program, *rest = command
    return " ".join([_unit_word(prefix + program), *(_unit_word(word, "$$") for word in (*rest, *words))])


class Launchd:
    """A service of a user's launchd, on macOS."""

    word = "launchd"

    def __init__(self, socket: str, role: Role = TMUX_SERVER) -> None:
        self.role = role
        self.name = _service_name(socket, role.suffix)
        self.path = os.path.expanduser(f"~/Library/LaunchAgents/{self.name}.plist")

    def text(self, job: Job) -> str:
        import plistlib

        soft, hard = job.descriptors
        content = {
            "Label": self.name,
            "ProgramArguments": [*job.command, *self.role.words, *(("--restore",) if self.role.restores else ())],
            "EnvironmentVariables": dict(job.environment),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ExitTimeOut": TIMING.page.service_stop_seconds,
            **dict(self.role.launchd),
            **({} if soft is None else {"SoftResourceLimits": {"NumberOfFiles": soft}}),
            **({} if hard is None else {"HardResourceLimits": {"NumberOfFiles": hard}}),
            "Umask": job.umask,
        }
        first, rest = plistlib.dumps(content, sort_keys=False).decode().split("\n", 1)
        return seal(f"{first}\n<!-- {MADE} {SEAL} -->\n{rest}")

    def is_for_role(self, text: str) -> bool:
        return re.search(r"\s*".join(f"<string>{word}</string>" for word in self.role.words), text) is not None

    def start(self) -> None:
        if self.state().running is None:
            self._run_or_raise("bootstrap", self._domain, self.path)
        self._run_or_raise("enable", self._target)

    def stop(self) -> None:
        self._run_or_raise("bootout", self._target)

    def forget(self) -> None:
        """Without its file launchd does not start it at the next login."""

    def reload(self) -> None:
        """launchd reads the folder at the next login."""

    def state(self) -> ServiceState:
        status, said = _run_program(["launchctl", "print", self._target])
        if status:
            return ServiceState()
        pid = re.search(r"^\s*pid = (\d+)", said, re.MULTILINE)
        return ServiceState(True, pid is not None, int(pid[1]) if pid else None)

    def linger(self) -> bool | None:
        return None

    def enable_linger(self) -> None:
        raise Failed("launchd runs a user's services only while the user is logged in", reason="no_linger")

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    @property
    def _target(self) -> str:
        return f"{self._domain}/{self.name}"

    def _run_or_raise(self, *words: str) -> None:
        status, said = _run_program(["launchctl", *words])
        if status:
            raise Unreachable(
                f"{self.path} is written, but launchctl {words[0]} failed: {said}",
                reason="no_manager",
                hint=f"launchctl bootstrap {self._domain} {self.path}",
                file=self.path,
            )


Manager = Systemd | Launchd


def notify_manager(text: str) -> None:
    """Tell the manager that started us, if it wants to know, and wait until it has heard (sd_notify(3)): a process that has
    ended before is not believed."""
    import socket

    where = os.environ.get("NOTIFY_SOCKET", "")
    if not where:
        return
    heard, said = os.pipe()
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.connect(f"\0{where[1:]}" if where.startswith("@") else where)
        line.send(text.encode())
        socket.send_fds(line, [b"BARRIER=1"], [said])
        os.close(said)
        # it ends when the manager has closed what it was sent
        select.select([heard], [], [], 5.0)
    os.close(heard)
