"""The commands of machines: list those that can be named, write one into machines.toml or take it out, test and prepare one."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from tmuxctl import config, machines
from tmuxctl.errors import Conflict, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.operations import RIGHTS, TEXT, Flag, ValueKind, set_up
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations, load_gateway
from tmuxctl.surfaces.cli.editing import toml_lines
from tmuxctl.surfaces.cli.editing.replacing import replace_text
from tmuxctl.surfaces.cli.printing.output import tell
from tmuxctl.timing import TIMING
from tmuxctl.value import changed
from tmuxctl.vocabulary import StepState, Way

if TYPE_CHECKING:
    from tmuxctl.machines import MachineEntry
    from tmuxctl.results import (
        GatewayPairing,
        KeyToldTo,
        MachineEvent,
        MachineLine,
        Machines,
        MachineSetup,
        MachineTested,
        OwnKey,
    )
    from tmuxctl.transport.base import Transport

Words = Annotated[
    tuple[str, ...],
    ValueKind("text", {"type": "array", "items": {"type": "string"}}, lambda value: tuple(value)),
]
MachineArgument = Annotated[str, ValueKind("machine", TEXT.schema, TEXT.parse), "the name of the machine"]


class MachineOperations(CommandLineOperations):
    """Operations of the user's machines."""

    @set_up(right="read", examples=("machine ls", "machine ls --json"))
    def machine_ls(self) -> Machines:
        """List the machines that can be named: those of machines.toml, and the hosts of your ssh configuration.

        A session of one is `MACHINE/NAME`. Other hosts can be named too: whatever ssh reaches under a plain name. The third
        column is the way by which each is reached: for one with several the way that was used last, and when. Nothing is
        reached for it.
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
        `docker exec -i box sh`. What a machine that is there has besides is kept: with --ssh one behind a gateway is reached by
        ssh first.
        """
        path = machines.machines_path()
        given = {
            "ssh": ssh,
            "command": None if command is None else _split(command),
            "tmux": tmux,
            "socket": tmux_socket,
        }
        values: dict[str, str | Sequence[str]] = {key: value for key, value in given.items() if value is not None}
        machines.parse_machine(name, values)
        machines.read_machines(path)
        before = _read_table(path, name)
        if before is not None and not replace and not (values and values.keys().isdisjoint(_taken_by(before))):
            hint = f"change it: --replace; or take it out first: tmuxctl machine rm {name}"
            raise Conflict(f"a machine named {name} is in machines.toml", reason="exists", hint=hint)
        return _to_line(_write_table(path, name, _merge(before or {}, values) or {"ssh": name}))

    @set_up(right="write", idempotent=True, examples=("machine rm box",))
    def machine_rm(self, name: MachineArgument) -> None:
        """Take a machine out of machines.toml, and the key that is known of it out of known_machines.

        Its sessions go on; a host that ssh knows can still be named.
        """
        path = machines.machines_path()
        known = machines.read_machines(path)
        if not _forget_key(name) and name not in known:
            listed = ", ".join(known) or "none"
            raise NotFound(
                f"no machine {ascii(name[:40])} in machines.toml", reason="no_machine", hint=f"there are: {listed}"
            )
        if name in known:
            replace_text(path, toml_lines.without_named_table(machines.read_machines_file(path) or "", name, path))

    @set_up(
        right="write",
        examples=(
            "machine pair thathost k5wq7hl2mzt3ybvn <code.txt",
            "machine pair thathost --ssh ada@thathost.example.org",
        ),
    )
    def machine_pair(
        self,
        name: MachineArgument,
        id: Annotated[
            str | None,
            ValueKind("id", TEXT.schema, TEXT.parse),
            "its id at the gateway, as `gateway pair` shows it there; not with --ssh",
        ] = None,
        *,
        ssh: Annotated[str | None, "pair by ssh to this destination instead of a code: the machine is there"] = None,
        called: Annotated[
            str | None, "with --ssh: what this client is called there; default: this machine's name"
        ] = None,
        right: Annotated[Words, "with --ssh: what this client may there: read, write, create, kill; default: all"] = (),
        only: Annotated[
            Words, "with --ssh: the sessions that are meant, as a pattern like 'build-*'; default: all"
        ] = (),
    ) -> GatewayPairing:
        """Pair with a machine behind a gateway, by the code that `tmuxctl gateway pair` shows there; write it into machines.toml.

        The code is asked for on a terminal, else it is the first line of standard input. Each side learns the other's key; that of
        the machine is kept in known_machines, and a machine that shows another one later is refused. The file that
        `tmuxctl gateway add-client` wrote has to be there as ~/.config/tmuxctl/gateway.json, mode 600.

        With --ssh the tmuxctl there is told this client's key through ssh, and tells its own: no code is needed. Its setting
        serve.gateway has to name its credentials. The machine is then reached by ssh first, and through the gateway where
        ssh does not work.
        """
        pairing, carrier = load_gateway("pairing"), load_gateway("carrier")
        from tmuxctl.results import GatewayPairing
        from tmuxctl.sealed.keys import fingerprint

        if (id is None) == (ssh is None):
            hint = f"tmuxctl machine pair {name} ID, or: tmuxctl machine pair {name} --ssh DESTINATION"
            raise Usage("give either the id of the machine or --ssh", reason="missing", hint=hint)
        if ssh is None and (called or right or only):
            hint = "what a client may is said on the host: tmuxctl gateway pair NAME --right --only"
            raise Usage("--called, --right and --only go with --ssh", reason="bad_option", hint=hint)
        machines.check_machine_name(name)
        path = machines.machines_path()
        machines.read_machines(path)
        credentials, table = carrier.read_client_credentials(), _read_table(path, name) or {}
        if ssh is None:
            assert id is not None
            table = _merge(table, {"gateway": id})
            machines.parse_machine(name, table)
            known, granted = pairing.pair_with(credentials, id, name, self._ask_code)
        else:
            from tmuxctl.surfaces.cli.setup.ways import ssh_pairing

            table = _merge(table, {"ssh": ssh})
            with self._connect(machines.parse_machine(name, table)) as transport:
                known, granted = ssh_pairing.pair(
                    transport, name, called or pairing.own_name(), right or RIGHTS, only or ("*",)
                )
            table = {**table, "gateway": known.host_id}
        _write_table(path, name, table)
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

        Of a machine behind a gateway it says whether the gateway and the machine are reached, what this client may there, and which
        release of tmuxctl is there; of one with ssh besides both.
        """
        from tmuxctl.control.machines import facts
        from tmuxctl.control.machines.addresses import carry_out

        entry = machines.find_machine(name)

        def test_shell() -> MachineTested:
            with self._connect(entry) as transport:
                tested: MachineTested = carry_out(name, lambda: facts.test_machine(entry, transport))
                return tested

        if entry.gateway is None:
            return test_shell()
        load_gateway("carrier")
        from tmuxctl.surfaces.cli.setup.ways.testing_ways import test_ways

        return test_ways(entry, test_shell if len(entry.ways) > 1 else None)

    @set_up(right="read", examples=("machine key", "machine key --json"))
    def machine_key(self) -> OwnKey:
        """Print the fingerprint of this user's key, by which machines behind a gateway know it, and that key.

        `tmuxctl gateway authorize` takes the key on a host. As a host this machine has the same: `tmuxctl gateway key`.
        """
        load_gateway("carrier")
        from tmuxctl.results import OwnKey
        from tmuxctl.sealed.keys import KeyFiles, fingerprint, key_text

        keys = KeyFiles().load()
        old = None if keys.old is None else fingerprint(keys.old.public)
        return OwnKey(None, fingerprint(keys.current.public), key_text(keys.current.public), old)

    @set_up(right="kill", examples=("machine rotate-key", "machine rotate-key --forget"))
    def machine_rotate_key(
        self,
        *,
        forget: Annotated[
            bool, "remove the old key, though machines that know only that have to be paired again"
        ] = False,
    ) -> KeyToldTo:
        """Make a new key, and tell each machine behind a gateway, in a channel with the old one; then forget the old one.

        Machines that are away are listed, and the old key is kept for them: each is told when it is called next, or by the same
        command again, which then makes no other key. What this client may there stays.
        """
        carrier = load_gateway("carrier")
        from tmuxctl.results import KeyToldTo, MachineProblem
        from tmuxctl.sealed.keys import KeyFiles, fingerprint
        from tmuxctl.sealed.trust import AuthorizedClients, KnownMachines

        files = KeyFiles()
        keys = files.load()
        if keys.old is None:
            keys = files.rotate()
        told, problems = [], []
        machines_known, own = KnownMachines(), [one.public for one in keys.all]
        for known in machines_known.entries():
            if known.key in own:
                # this machine itself
                machines_known.replace_key(known.name, known.key, changed(known, key=keys.current.public))
                continue
            try:
                carrier.ask_about(machines.MachineEntry(known.name, gateway=known.host_id))
                told.append(known.name)
            except TmuxctlError as error:
                problems.append(MachineProblem(known.name, error.reason, error.message, error.hint))
        # as a host this machine has the same key
        knowing = files.find_told()
        if forget or not (problems or any(one.key not in knowing for one in AuthorizedClients().entries())):
            keys = files.forget_old()
        old = None if keys.old is None else fingerprint(keys.old.public)
        return KeyToldTo(fingerprint(keys.current.public), old, tuple(told), tuple(problems))

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


SHELL_KEYS = ("ssh", "command")
"""Keys of a machine of which it has one at most."""


def _read_table(path: str, name: str) -> Mapping[str, str | Sequence[str]] | None:
    """What machines.toml has of a machine; None if it has nothing."""
    return toml_lines.parse(machines.read_machines_file(path) or "", path).get(name)


def _taken_by(table: Mapping[str, object]) -> set[str]:
    """The keys that cannot be added to this table without changing it."""
    return {*table, *(SHELL_KEYS if any(key in table for key in SHELL_KEYS) else ())}


def _merge(
    before: Mapping[str, str | Sequence[str]], values: Mapping[str, str | Sequence[str]]
) -> dict[str, str | Sequence[str]]:
    """What is there with these values; ssh takes the place of a command, and a command that of ssh."""
    replaced = SHELL_KEYS if any(key in values for key in SHELL_KEYS) else ()
    return {**{key: value for key, value in before.items() if key not in replaced}, **values}


def _write_table(path: str, name: str, values: Mapping[str, str | Sequence[str]]) -> MachineEntry:
    """Put the table of a machine into machines.toml, in the place of the one that is there."""
    entry = machines.parse_machine(name, values)
    text = machines.read_machines_file(path) or ""
    if name in toml_lines.parse(text, path):
        text = toml_lines.without_named_table(text, name, path)
    replace_text(path, toml_lines.with_named_table(text, name, values, path))
    return entry


def _forget_key(name: str) -> bool:
    """Take a machine out of known_machines; whether it was there."""
    if not os.path.lexists(os.path.join(config.config_folder(), "known_machines")):
        return False
    load_gateway("carrier")
    from tmuxctl.sealed.trust import KnownMachines

    known = KnownMachines()
    if known.find(name) is None:
        return False
    known.remove(name)
    return True


def _to_line(entry: MachineEntry) -> MachineLine:
    from tmuxctl.control.machines.ways import find_path, find_used
    from tmuxctl.results import MachineLine

    # the record of a machine with one way says at most that it is this machine
    used = find_used(entry.name) if entry.gateway else None
    way = entry.ways[0] if len(entry.ways) == 1 else None
    when = None
    if used is not None and (used.way in entry.ways or used.way is Way.LOCAL):
        way, when = used.way, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(used.used))
    return MachineLine(
        entry.name,
        entry.source,
        entry.ssh,
        entry.command,
        entry.tmux,
        entry.socket,
        entry.gateway,
        way,
        when,
        find_path(entry.name) if entry.gateway else None,
    )
