"""What a machine has of what tmuxctl uses, and what that means for the sessions there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tmuxctl.errors import TmuxctlError
from tmuxctl.results import Check, MachineTested
from tmuxctl.transport.versions import OLDEST, parse_version

if TYPE_CHECKING:
    from tmuxctl.machines import MachineEntry
    from tmuxctl.transport.base import Transport

LINGER = r"""
case $(timeout 3 loginctl show-user "$(id -un)" --property=Linger 2>/dev/null) in
  *=yes) echo linger ;;
  *=no) echo none ;;
  *) if [ -e "/var/lib/systemd/linger/$(id -un)" ]; then echo linger
    elif [ -d /run/systemd/system ]; then echo none; else echo; fi ;;
esac
"""
"""Prints `linger` where programs of the user stay when nobody is logged in, `none` where they may not, else nothing."""

ASK = r"""
tmux=$("$1" -V 2>&1) || tmux=
printf '%s\n' "$tmux"
LC_ALL=C.UTF-8 locale charmap 2>/dev/null | head -n 1 | grep . || echo
if [ -r /proc/self/stat ]; then echo proc; else echo; fi
if [ -r /proc/self/syscall ]; then echo syscall; else echo; fi
command -v bwrap || echo
LINGER
id -un; uname -sm
""".replace("LINGER", LINGER.strip())
"""Prints a line for each: the version of tmux, the character set, /proc, what of it may be read, bubblewrap, whether programs
of the user stay when nobody is logged in, the user, the system."""

PROBES = 3
"""How often the way there and back is measured; the shortest counts."""


def test_machine(entry: MachineEntry, transport: Transport) -> MachineTested:
    """Look at everything at once; a machine that cannot be reached at all raises why."""
    status, printed = transport.shell(ASK, entry.tmux)
    lines = printed.decode(errors="replace").split("\n")
    tmux, charset, proc, syscall, bwrap, linger, user, system = (*lines, *[""] * 8)[:8]
    seconds = min(_time(transport) for _ in range(PROBES))
    checks = (
        Check(
            "reached",
            True,
            f"as {user or 'an unknown user'}, {system or 'an unknown system'}, {seconds * 1000:.0f} ms there and back",
        ),
        _check_tmux(entry, tmux),
        Check(
            "locale",
            charset.upper() == "UTF-8" or None,
            charset or "not told",
            None if charset.upper() == "UTF-8" else "tmux there needs a locale of UTF-8: locale -a lists them",
        ),
        _check_state(transport),
        *_list_evidence(proc, syscall),
        Check("linger", None, *_explain_linger(linger)),
        Check("bwrap", None, bwrap or "not installed", "sandboxes are made on your own machine only"),
    )
    return MachineTested(
        machine=entry.name,
        ok=status == 0 and all(one.ok is not False for one in checks),
        tmux=tmux.removeprefix("tmux ") or None,
        round_trip=round(seconds, 4),
        checks=checks,
    )


def _time(transport: Transport) -> float:
    began = time.monotonic()
    transport.shell(":")
    return time.monotonic() - began


def _check_tmux(entry: MachineEntry, said: str) -> Check:
    version = parse_version(said.removeprefix("tmux "))
    if not said.startswith("tmux ") and not version:
        hint = f"install it there; or if it is not in PATH: tmuxctl machine add {entry.name} --tmux /path/to/tmux"
        return Check("tmux", False, f"{entry.tmux} was not found", hint)
    if version and version < OLDEST:
        return Check("tmux", False, said, "it needs 3.2 or later")
    return Check("tmux", True, said)


def _check_state(transport: Transport) -> Check:
    """Where the sessions' files will be: the folder is made if it is not there."""
    return _attempt("files", lambda: transport.home, lambda error: error.hint)


def _attempt(name: str, look: Callable[[], str], explain: Callable[[TmuxctlError], str]) -> Check:
    try:
        return Check(name, True, look())
    except TmuxctlError as error:
        return Check(name, False, error.message, explain(error) or None)


def _list_evidence(proc: str, syscall: str) -> Iterator[Check]:
    if not proc:
        yield Check(
            "/proc", None, "there is none", "states are told by the screen and the output alone, and less surely"
        )
    elif not syscall:
        yield Check("/proc", None, "in parts", "what a program waits for cannot be asked: states are told less surely")
    else:
        yield Check("/proc", True, "what programs wait for can be asked")


def _explain_linger(linger: str) -> tuple[str, str | None]:
    if linger == "none":
        return "off", "systemd may end programs when you log out there: loginctl enable-linger"
    return ("on", None) if linger else ("not told", None)
