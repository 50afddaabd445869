"""What `machine test` says of a machine behind a gateway: credentials, gateway, host, and what this client may there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tmuxctl import __version__
from tmuxctl.control.machines.ways import find_path
from tmuxctl.errors import TmuxctlError
from tmuxctl.gateway.carrier import HostAbout, ask_about, client_credentials_path, find_known, read_client_credentials
from tmuxctl.gateway.server.checks import examine_credentials
from tmuxctl.results import Check, MachineTested
from tmuxctl.sealed.keys import fingerprint

if TYPE_CHECKING:
    from tmuxctl.machines import MachineEntry


def test_ways(entry: MachineEntry, test_shell: Callable[[], MachineTested] | None) -> MachineTested:
    """Test the way to a machine through its gateway, after its way to a shell if it has one. Nothing is raised for what does not
    work: it is one of the checks."""
    checks: list[Check] = []
    tmux, seconds = None, None
    if test_shell is not None:
        try:
            found = test_shell()
            checks, tmux, seconds = [*found.checks], found.tmux, found.round_trip
        except TmuxctlError as error:
            checks.append(_failed(entry.ways[0].value, error))
    try:
        read_client_credentials()
        checks += examine_credentials(client_credentials_path()).checks
    except TmuxctlError as error:
        checks.append(_failed("credentials", error))
    if all(one.ok is not False for one in checks if one.name in ("credentials", "gateway")):
        try:
            known, about = find_known(entry), ask_about(entry)
            checks += _describe(fingerprint(known.key), about)
            seconds = about.seconds if seconds is None else seconds
        except TmuxctlError as error:
            checks.append(_failed("host", error))
    checks.append(_describe_path(entry))
    return MachineTested(
        machine=entry.name,
        ok=all(one.ok is not False for one in checks),
        tmux=tmux,
        round_trip=round(seconds or 0.0, 4),
        checks=tuple(checks),
    )


def _describe(key: str, about: HostAbout) -> list[Check]:
    """What the host said, once it has shown that it has the key that is known of it."""
    if about.seconds is None:
        hint = "an earlier release runs there: upgrade it"
        return [Check("host", True, f"has {key}"), Check("release", None, "not told", hint)]
    is_same = about.release == __version__
    other = None if is_same else f"{__version__} is here: install the same release on both machines"
    rights, sessions = (",".join(words or ()) for words in (about.rights, about.sessions))
    return [
        Check("host", True, f"has {key}, {about.seconds * 1000:.0f} ms there and back"),
        Check("rights", True, f"{rights} on sessions {sessions}, as {about.name}"),
        Check("release", is_same or None, f"tmuxctl {about.release}", other),
    ]


def _describe_path(entry: MachineEntry) -> Check:
    """Whether a process of this user reaches the machine past the gateway now."""
    if not entry.direct:
        return Check("path", True, "relay: machines.toml forbids a direct one")
    link = find_path(entry.name)
    if link is None:
        return Check("path", True, "relay: no process reaches it past the gateway now")
    return Check("path", True, f"direct: over {'TCP' if link == 'tcp' else 'WebRTC'}")


def _failed(name: str, error: TmuxctlError) -> Check:
    return Check(name, False, error.message, error.hint or None)
