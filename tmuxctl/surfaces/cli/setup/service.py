"""The tmux server as a service of this user: started with the machine or the login, again after a crash, with the sessions
that were lost. One file tells the service manager; what it starts is `service run`. A second file has it run `serve`."""

from __future__ import annotations

import os
import sys
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from tmuxctl import config
from tmuxctl.errors import Conflict, Failed, TmuxctlError, Unreachable
from tmuxctl.operations import set_up
from tmuxctl.ownership import make_parents
from tmuxctl.surfaces.cli.commands.own_command import find_tmuxctl
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations
from tmuxctl.surfaces.cli.ending import Terminated, raise_on_sigterm
from tmuxctl.surfaces.cli.printing.output import note, report
from tmuxctl.surfaces.cli.setup import managers, serving
from tmuxctl.surfaces.cli.setup.managers import Job, Manager
from tmuxctl.transport import spawn
from tmuxctl.transport.local import LocalTransport, explain_write_errors
from tmuxctl.untrusted import read_file

if TYPE_CHECKING:
    from tmuxctl.results import ServiceFile, ServiceInstalled, ServiceRemoved, ServiceStatus

PLACES = (
    "TMUX_TMPDIR",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "TMUXCTL_CONFIG",
    "TMUXCTL_PROFILE_PATH",
    "TMUXCTL_PLUGIN_PATH",
)
"""Variables that say where things are: a server that has others than the user's shell would not be found by its commands."""

UNIT_LIMIT = 1 << 20
"""Bytes of the service's file that are read: what we write has less than a thousand."""

GIVEN = ("PATH", "LANG", "LC_ALL", "LC_CTYPE")
"""Variables that the server gets too, where they are set."""


class ServiceOperations(CommandLineOperations):
    """Operations of the services that keep the servers."""

    @set_up(
        right="create",
        idempotent=True,
        examples=(
            "service install --dry-run",
            "service install",
            "service install --linger",
            "service install --serve",
        ),
    )
    def service_install(
        self,
        *,
        serve: Annotated[bool, "a second service for the HTTP server, with the settings serve.*"] = False,
        dry_run: Annotated[bool, "print the file, and do nothing"] = False,
        force: Annotated[bool, "overwrite a file that was changed by hand"] = False,
        linger: Annotated[bool, "start the services of this user with the machine, and keep them after logout"] = False,
    ) -> ServiceInstalled:
        """Let the service manager keep the tmux server running, so that sessions come back after a crash or reboot.

        With systemd this is a unit of the user, ~/.config/systemd/user/tmuxctl.service (tmuxctl-NAME.service for a
        socket other than the default). It starts the server (`service run`), then the lost sessions (`restore`).
        Stopping the unit ends all sessions; the next start brings them back. On macOS it is a file for launchd in
        ~/Library/LaunchAgents, which has not been tried yet.

        A server that already runs goes on; the service takes its place when it ends.

        With --serve a second unit, tmuxctl-serve.service (tmuxctl-serve-NAME.service), runs `serve`. No session ends when it
        is stopped or started again.
        """
        from tmuxctl.results import ServiceInstalled

        socket = self._socket()
        if serve:
            serving.check_servable(socket)
        job, kept = _make_job(socket), self._kept_services(socket)
        plans = [_PlannedFile(one, one.text(job), _read_unit(one.path)) for one in kept[: 2 if serve else 1]]
        if not dry_run:
            for one in plans:
                one.check(force)
            _check_command_starts(job)
            for one in plans:
                one.write()
            if linger:
                plans[0].manager.enable_linger()
            for one in plans:
                one.manager.start()
        first, manager = plans[0].describe(), plans[0].manager
        told = partial(
            ServiceInstalled, first.service, first.file, first.text, first.changed,
            dry_run=dry_run, serve=plans[1].describe() if serve else None,
        )  # fmt: skip
        if dry_run:
            return told()
        server = self._server_pid()
        return told(linger=manager.linger(), server=server if server != manager.state().pid else None)

    @set_up(right="kill", idempotent=True, examples=("service uninstall", "service uninstall --stop"))
    def service_uninstall(
        self, *, stop: Annotated[bool, "also end the server and all of its sessions"] = False
    ) -> ServiceRemoved:
        """Take the tmux server from the service manager, which does not start it again, and end the service of the HTTP server.

        A tmux server that runs goes on until it ends, unless --stop is given.
        """
        from tmuxctl.results import ServiceRemoved

        server, http = self._kept_services(self._socket())
        for manager in (server, http):
            if (there := _read_own_unit(manager)) is not None and not managers.made_by_us(there):
                raise _edited_error(manager.path, hint=f"to remove it: rm {manager.path}")
        # no session ends with the HTTP server
        had_http = _read_own_unit(http) is not None and _remove(http, stop=True)
        removed = _remove(server, stop=stop)
        return ServiceRemoved(
            server.name, server.path, removed, server.state().running, http.path if had_http else None
        )

    @set_up(right="read", examples=("service status", "service status --json"))
    def service_status(self) -> ServiceStatus:
        """Show whether the service is installed, enabled and running, and which process is the server.

        If the service of the HTTP server is installed too, `serve` says whether that is running.
        """
        from tmuxctl.results import ServiceStatus, ServiceUnit

        manager, http = self._kept_services(self._socket())
        state = manager.state()
        return ServiceStatus(
            service=manager.name,
            manager=manager.word,
            file=manager.path,
            installed=_read_own_unit(manager) is not None,
            enabled=state.enabled,
            running=state.running,
            pid=state.pid,
            server=self._server_pid(),
            linger=manager.linger(),
            serve=ServiceUnit(http.name, http.path, *http.state()) if _read_own_unit(http) is not None else None,
        )

    @set_up(right="create", examples=("service run --restore &",))
    def service_run(
        self,
        *,
        restore: Annotated[bool, "start lost sessions again as soon as the server runs"] = False,
    ) -> None:
        """Become the tmux server, in the foreground; this is what a service manager starts.

        If a server already runs, the command waits for its end, takes its place, and starts the lost sessions again:
        there is never a second server. SIGTERM ends the waiting with status 0.
        """
        raise_on_sigterm(0)
        with self.connect(self.options) as control:
            transport: LocalTransport = control.machine.transport
            while True:
                transport.become_server(partial(self._announce_ready, restore))
                if (server := transport.server_pid()) is not None:
                    managers.notify_manager(
                        f"READY=1\nSTATUS=Waiting for the server that a command started to end, pid {server}"
                    )
                    note(f"waiting for the running server to end: pid {server}", self.options)
                    _wait_for_end(transport, server)
                restore = True

    def _announce_ready(self, restore: bool) -> None:
        """What is done when the server answers, by another process than the server."""
        from tmuxctl.surfaces.cli.printing.show import Printer

        managers.notify_manager("READY=1\nSTATUS=Serving")
        if restore:
            try:
                with self.connect(self.options) as control:
                    Printer(self.options).show(control.restore())
            except TmuxctlError as error:
                report(error, self.options)
            except Terminated:
                pass

    def _socket(self) -> str:
        return config.load({"tmux.socket": self.options.socket}).tmux_socket

    def _kept_services(self, socket: str) -> tuple[Manager, Manager]:
        """The services of this socket: that of the tmux server, and that of the HTTP server."""
        kind = managers.Launchd if sys.platform == "darwin" else managers.Systemd
        return kind(socket, managers.TMUX_SERVER), kind(socket, managers.HTTP_SERVER)

    def _server_pid(self) -> int | None:
        """The pid of the server that runs, as far as it answers."""
        server: int | None = None
        with self.connect(self.options) as control, suppress(Unreachable):
            server = control.machine.transport.server_pid()
        return server


class _PlannedFile(NamedTuple):
    """The file of a service: what is to stand in it, and what stands there, None if there is none."""

    manager: Manager
    text: str
    before: str | None

    def check(self, force: bool) -> None:
        """Conflict unless the file may be written."""
        path, before = self.manager.path, self.before
        if before in (None, self.text):
            return
        if managers.made_by_us(before or "") and not self.manager.is_for_role(before or ""):
            hint = "the sockets serve and serve-NAME share these names: choose another socket"
            raise Conflict(f"{path} is the service of another server", reason="other_service", hint=hint)
        if not force and not managers.is_untouched(before or ""):
            raise _edited_error(path)

    def write(self) -> None:
        """Make the file what it is to be."""
        if self.before != self.text:
            _write_unit(self.manager.path, self.text)

    def describe(self) -> ServiceFile:
        """As it is told."""
        from tmuxctl.results import ServiceFile

        return ServiceFile(self.manager.name, self.manager.path, self.text, self.before != self.text)


def _make_job(socket: str) -> Job:
    """The server of a socket as a service: found where the commands of this shell look for it."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (None if one == resource.RLIM_INFINITY else one for one in limits)
    os.umask(umask := os.umask(0o077))
    given = {name: os.environ[name] for name in (*GIVEN, *PLACES) if os.environ.get(name)}
    unset = tuple(name for name in PLACES if name not in given)
    return Job(socket, (*find_tmuxctl(), "--socket", socket), given, unset, (soft, hard), umask)


def _check_command_starts(job: Job) -> None:
    """Failed if the service could not start this tmuxctl: from another folder, with another environment."""
    given = [f"{name}={value}" for name, value in {"HOME": os.path.expanduser("~"), **job.environment}.items()]
    words = ["env", "-i", *given, "sh", "-c", 'cd / && exec "$@"', "sh", *job.command, "--version"]
    done = spawn.run(words, timeout=30.0)
    if done.status:
        said = done.errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise Failed(
            f"a service could not start {job.command[0]}: {said}",
            reason="bad_command",
            hint="install tmuxctl, and run the installed command",
        )


def _read_unit(path: str) -> str | None:
    """What stands in a file, None if there is none."""
    try:
        with explain_write_errors(path):
            return read_file(path, UNIT_LIMIT, follow=True).decode(errors="surrogateescape")
    except FileNotFoundError:
        return None


def _read_own_unit(manager: Manager) -> str | None:
    """What stands in the file of a service; None if there is none, and if it is that of another service of ours."""
    text = _read_unit(manager.path)
    if text is None or (managers.made_by_us(text) and not manager.is_for_role(text)):
        return None
    return text


def _remove(manager: Manager, *, stop: bool) -> bool:
    """Take a service from its manager, and end it if that is wanted; whether it had a file."""
    there, state = _read_own_unit(manager) is not None, manager.state()
    answers = state.running is not None
    if stop and state.running:
        manager.stop()
    if there:
        if answers:
            manager.forget()
        with explain_write_errors(manager.path):
            os.unlink(manager.path)
    if answers:
        manager.reload()
    return there


def _write_unit(path: str, text: str) -> None:
    with explain_write_errors(path):
        make_parents(path)
        LocalTransport("").put(path, text.encode(errors="surrogateescape"), durable=True)
        os.chmod(path, 0o644)


def _edited_error(path: str, hint: str = "compare: tmuxctl service install --dry-run; overwrite: --force") -> Conflict:
    return Conflict(f"{path} was changed by hand, or not made by tmuxctl", reason="edited", hint=hint)


def _wait_for_end(transport: LocalTransport, pid: int) -> None:
    """Sleep until a process has ended."""
    with closing(transport.watch((), pid)) as watch:
        while transport.processes([pid]) and not watch.wait(3600.0):
            pass
