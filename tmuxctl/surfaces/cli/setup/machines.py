"""The commands of machines: list those that can be named, write one into machines.toml or take it out, test and prepare one."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from tmuxctl import config, machines
from tmuxctl.errors import Conflict, Failed, NotFound, Unreachable, Usage
from tmuxctl.operations import TEXT, Flag, ValueKind, set_up
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations, load_gateway
from tmuxctl.surfaces.cli.editing import toml_lines
from tmuxctl.surfaces.cli.editing.replacing import replace_text
from tmuxctl.surfaces.cli.printing.output import tell
from tmuxctl.timing import TIMING
from tmuxctl.value import changed
from tmuxctl.vocabulary import StepState

if TYPE_CHECKING:
    from tmuxctl.machines import MachineEntry
    from tmuxctl.results import GatewayPairing, MachineEvent, MachineLine, Machines, MachineSetup, MachineTested
    from tmuxctl.transport.base import Transport

MachineArgument = Annotated[str, ValueKind("machine", TEXT.schema, TEXT.parse), "the name of the machine"]


class MachineOperations(CommandLineOperations):
    """Operations of the user's machines."""

    @set_up(right="read", examples=("machine ls", "machine ls --json"))
    def machine_ls(self) -> Machines:
        """List the machines that can be named: those of machines.toml, and the hosts of your ssh configuration.

        A session of one is `MACHINE/NAME`. Other hosts can be named too: whatever ssh reaches under a plain name.
        """
        from tmuxctl.results import Machines

        return Machines(machines.machines_path(), tuple(_to_line(one) for one in machines.list_machines()))

    @set_up(
        right="write",
        examples=(
            "machine add web1 --ssh ada@web1.example.org",
            "machine add box --command sh",
            "machine add old --ssh old.example.org --tmux /opt/tmux/bin/tmux",
        ),
    )
    def machine_add(
        self,
        name: MachineArgument,
        *,
        ssh: Annotated[
            str | None, "where ssh goes: user@host, or a host of your ssh configuration; default: NAME"
        ] = None,
        command: Annotated[
            str | None, "another way there: the words of a command that runs sh there on its standard input"
        ] = None,
        tmux: Annotated[str | None, "the tmux there: a path, or a name found through PATH"] = None,
        tmux_socket: Annotated[str | None, "the name of tmux's socket there; default: the same as here"] = None,
        replace: Annotated[bool, "change a machine that is there"] = False,
    ) -> MachineLine:
        """Write a machine into machines.toml. Nothing is reached, and nothing is installed there.

        A host of your ssh configuration needs no entry. The command is a door to any other place with a shell, as
        `docker exec -i box sh`.
        """
        path = machines.machines_path()
        given = {
            "ssh": ssh,
            "command": None if command is None else _split(command),
            "tmux": tmux,
            "socket": tmux_socket,
        }
        values: dict[str, str | Sequence[str]] = {key: value for key, value in given.items() if value is not None}
        entry = machines.parse_machine(name, values)
        known = machines.read_machines(path)
        text = machines.read_machines_file(path) or ""
        if name in known and not replace:
            hint = f"change it: --replace; or take it out first: tmuxctl machine rm {name}"
            raise Conflict(f"a machine named {name} is in machines.toml", reason="exists", hint=hint)
        if name in known:
            text = toml_lines.without_named_table(text, name, path)
        replace_text(path, toml_lines.with_named_table(text, name, values or {"ssh": name}, path))
        return _to_line(entry)

    @set_up(right="write", idempotent=True, examples=("machine rm box",))
    def machine_rm(self, name: MachineArgument) -> None:
        """Take a machine out of machines.toml. Its sessions go on; a host that ssh knows can still be named."""
        path = machines.machines_path()
        known = machines.read_machines(path)
        if name not in known:
            listed = ", ".join(known) or "none"
            raise NotFound(
                f"no machine {ascii(name[:40])} in machines.toml", reason="no_machine", hint=f"there are: {listed}"
            )
        replace_text(path, toml_lines.without_named_table(machines.read_machines_file(path) or "", name, path))

    @set_up(
        right="write",
        examples=("machine pair thathost k5wq7hl2mzt3ybvn <code.txt",),
    )
    def machine_pair(
        self,
        name: MachineArgument,
        id: Annotated[
            str, ValueKind("id", TEXT.schema, TEXT.parse), "its id at the gateway, as `gateway pair` shows it there"
        ],
    ) -> GatewayPairing:
        """Pair with a machine behind a gateway, by the code that `tmuxctl gateway pair` shows there; write it into machines.toml.

        The code is asked for on a terminal, else it is the first line of standard input. Each side learns the other's key; that of
        the machine is kept in known_machines, and a machine that shows another one later is refused. The file that
        `tmuxctl gateway add-client` wrote has to be there as ~/.config/tmuxctl/gateway.json, mode 600.
        """
        pairing, carrier = load_gateway("pairing"), load_gateway("carrier")
        from tmuxctl.results import GatewayPairing
        from tmuxctl.sealed.keys import fingerprint

        entry = machines.parse_machine(name, {"gateway": id})
        path = machines.machines_path()
        listed = machines.read_machines(path).get(name)
        if listed is not None and listed.gateway != id:
            hint = f"choose another name, or take it out first: tmuxctl machine rm {name}"
            raise Conflict(f"a machine named {name} is in machines.toml", reason="exists", hint=hint)
        known, granted = pairing.pair_with(carrier.read_client_credentials(), id, name, self._ask_code)
        if listed is None:
            text = machines.read_machines_file(path) or ""
            table: dict[str, str | Sequence[str]] = {**machines.machine_table(entry)}
            replace_text(path, toml_lines.with_named_table(text, name, table, path))
        return GatewayPairing(name, known.host_id, fingerprint(known.key), granted.rights, granted.sessions)

    @set_up(
        right="read",
        examples=(
            "machine events thathost",
            "machine events thathost --since 2h",
            "machine events thathost --since 1 --json",
            "machine events thathost --follow",
        ),
    )
    def machine_events(
        self,
        name: MachineArgument,
        *,
        since: Annotated[
            str | None,
            "begin after the event with this number, or this long before now: 10m, 2h; default: all that is kept",
        ] = None,
        follow: Annotated[bool, "go on printing, and say when the machine is not heard", Flag(("-f",))] = False,
    ) -> Iterator[MachineEvent]:
        """Print what the sessions of a machine behind a gateway did, also while it or you were away.

        Each line has the number of the event, the time in UTC, and what `watch` prints. Events of a week are kept at the gateway,
        at most 10,000 of a machine. Those from before you paired with it, and of sessions that you may not know of, are left out.
        What is missing is told by a line of its own.
        """
        reading = load_gateway("events.reading")
        begin = None if since is None else reading.parse_since(since)
        entry = machines.find_machine(name)
        if entry.gateway is None:
            hint = "follow it: tmuxctl watch --all-machines"
            raise Usage(f"{name} is not behind a gateway", reason="no_gateway", hint=hint)
        with reading.EventReader(entry, begin) as events:
            yield from events.follow() if follow else events.read()

    def _ask_code(self) -> str:
        """The code of a pairing, from the terminal or standard input."""
        if self._is_attended():
            sys.stderr.write("Code: ")
            sys.stderr.flush()
        return sys.stdin.readline(64).strip() if sys.stdin is not None else ""

    @set_up(right="read", examples=("machine test box", "machine test box --json"))
    def machine_test(self, name: MachineArgument) -> MachineTested:
        """Try to reach a machine, say what it has of what tmuxctl uses, and what that means; exit status 1 if something is missing.

        On a terminal ssh may ask you: for a password, or whether a host key is the right one. The connection then stays for
        a minute, so that other commands use it. No other command asks.
        """
        from tmuxctl.control.machines import facts
        from tmuxctl.control.machines.addresses import carry_out

        entry = machines.find_machine(name)
        with self._connect(entry) as transport:
            tested: MachineTested = carry_out(name, lambda: facts.test_machine(entry, transport))
            return tested

    @set_up(
        right="write",
        idempotent=True,
        examples=("machine setup box --dry-run", "machine setup box --yes", "machine setup web1 --yes --install"),
    )
    def machine_setup(
        self,
        name: MachineArgument,
        *,
        yes: Annotated[bool, "do it without asking"] = False,
        dry_run: Annotated[bool, "print the steps, and do nothing"] = False,
        install: Annotated[bool, "install tmux by the package manager there, if it is missing"] = False,
    ) -> MachineSetup:
        """Prepare a machine: tell what it needs, step by step, and do that once you agree. Twice is as once.

        A key with which ssh gets in without asking: one that you have, or a new one, is added to the keys there. The folder for
        files, for you alone. Where systemd runs, that programs stay when you log out. A missing locale of UTF-8 is told. A
        missing tmux is told with the command that installs it, which is run with --install only; nothing else is installed.

        On a terminal ssh may ask for a password first, and you are asked before anything is done. Elsewhere --yes is needed.
        Exit status 1 if something is left without which no session can be there.
        """
        from tmuxctl.control.machines.addresses import carry_out
        from tmuxctl.control.machines.preparing import MachinePreparation

        entry = machines.find_machine(name)
        with self._connect(entry) as transport:
            preparation = MachinePreparation(entry, transport, install=install)
            planned: MachineSetup = carry_out(name, preparation.look)
            if dry_run:
                return planned
            if any(one.state is StepState.NEEDED for one in planned.steps):
                self._agree(planned, yes)
            done: MachineSetup = carry_out(name, preparation.carry_out)
            return done

    def _agree(self, planned: MachineSetup, yes: bool) -> None:
        """Show what would be done, and go on if that is wanted."""
        from tmuxctl.surfaces.cli.printing import table

        if not yes and not self._is_attended():
            raise Usage(
                f"{planned.machine}: nothing is done that nobody agreed to",
                reason="not_agreed",
                hint=f"the steps: tmuxctl machine setup {planned.machine} --dry-run; do them: --yes",
            )
        if not self.options.quiet and not self.options.json:
            tell("\n".join(table.steps(planned.steps, changed(self.options, quiet=False))))
        if yes:
            return
        sys.stderr.write(f"Do this on {planned.machine}? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Failed(f"{planned.machine}: nothing was done", reason="not_agreed", hint="see the steps: --dry-run")

    @contextmanager
    def _connect(self, entry: MachineEntry) -> Iterator[Transport]:
        """A way to the machine, for as long as it is used."""
        from tmuxctl.control.machines import reaching

        settings = config.load({"tmux.socket": self.options.socket})
        self._let_ssh_ask(entry)
        transport = reaching.connect(entry, reaching.settings_of(settings, entry, settings.tmux_socket), TIMING.machine)
        try:
            yield transport
        finally:
            transport.close()

    def _is_attended(self) -> bool:
        """Whether a person is there who may be asked."""
        attended = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
        return attended and self.options.prompt and not self.options.json

    def _let_ssh_ask(self, entry: MachineEntry) -> None:
        """Open the connection in the foreground, where a person is there to answer; ssh says itself what went wrong."""
        from tmuxctl.control.machines import ssh

        if entry.ssh is None or not self._is_attended():
            return
        try:
            subprocess.run([*ssh.ssh_command(entry.ssh, attended=True), "true"], stdout=subprocess.DEVNULL, check=False)
        except OSError as error:
            raise Unreachable(f"ssh: {error.strerror}", reason="no_ssh", hint="install the ssh client") from None


def _split(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise Usage(
            f"--command: {str(error).lower()}", reason="bad_machine", hint="quote the words as for a shell"
        ) from None


def _to_line(entry: MachineEntry) -> MachineLine:
    from tmuxctl.results import MachineLine

    return MachineLine(entry.name, entry.source, entry.ssh, entry.command, entry.tmux, entry.socket, entry.gateway)
