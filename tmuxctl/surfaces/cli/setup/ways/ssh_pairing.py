"""Pairing through ssh: the tmuxctl there lets this client in by its key, and tells its own. What it prints is data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmuxctl.errors import CLASSES, Failed, NotFound, TmuxctlError, Unreachable
from tmuxctl.sealed.keys import KeyFiles, key_text, parse_key
from tmuxctl.sealed.trust import AuthorizedClient, KnownMachine, KnownMachines, check_authorized_client
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import parse_json

if TYPE_CHECKING:
    from tmuxctl.transport.base import Transport

# a shell that is no login shell has no ~/.local/bin, where pip puts commands of a user
SCRIPT = """
PATH="$PATH:$HOME/.local/bin"
command -v tmuxctl >/dev/null 2>&1 || exit 127
exec tmuxctl "$@" 2>&1
"""
NOT_FOUND = 127

ANSWER_LIMIT = 64 << 10
WORD_MOST = 300


def pair(
    transport: Transport, name: str, called: str, rights: tuple[str, ...], sessions: tuple[str, ...]
) -> tuple[KnownMachine, AuthorizedClient]:
    """Have the tmuxctl on a machine let this client in as `called`, with these rights and patterns of sessions, and put the machine
    into `known_machines` as `name`; what is known of it, and what it grants.

    NotFound `no_tmuxctl`, `no_credentials` where it names none of a host; Unreachable `other_version` where it cannot do this,
    `bad_answer`; what it refuses, as Conflict `exists`; Denied `key_changed` where `name` is known by another key.
    """
    key = KeyFiles().load().current.public
    client = check_authorized_client(AuthorizedClient(called, key, rights, sessions))
    words = ["gateway", "authorize", "--json"]
    words += [word for right in rights for word in ("--right", right)]
    words += [word for pattern in sessions for word in ("--only", pattern)]
    status, printed = transport.shell(
        SCRIPT, *words, "--", called, key_text(key), timeout=TIMING.machine.pairing_seconds
    )
    if status == NOT_FOUND:
        hint = "there: pip install 'tmux-control-plane[gateway,server]'; its command has to be in the PATH of ssh"
        raise NotFound(f"{name} has no tmuxctl", reason="no_tmuxctl", hint=hint)
    answer = _find_answer(printed)
    if status:
        raise _refusal(name, answer)
    try:
        known = KnownMachine(name, _word(answer["host"]), parse_key(_word(answer["key"])))
        granted = (_words(answer["rights"]), _words(answer["sessions"]))
    except (TmuxctlError, KeyError, TypeError):
        raise _nonsense_error(name) from None
    if granted != (rights, sessions):
        raise _nonsense_error(name)
    KnownMachines().put(known)
    return known, client


def _find_answer(printed: bytes) -> dict[str, Any]:
    """The last line that is a JSON object; an empty one for none."""
    for line in reversed(printed[-ANSWER_LIMIT:].splitlines()):
        if line.startswith(b"{"):
            try:
                found = parse_json(line, limit=ANSWER_LIMIT)
            except ValueError:
                break
            return found if isinstance(found, dict) else {}
    return {}


def _refusal(name: str, answer: dict[str, Any]) -> TmuxctlError:
    """The error that the tmuxctl there told, or that it knows no such command."""
    error = answer.get("error")
    told = (
        {key: _shown(error.get(key)) for key in ("code", "reason", "message", "hint")}
        if isinstance(error, dict)
        else {}
    )
    if told.get("reason") == "missing":
        hint = "there: tmuxctl config set serve.gateway FILE, the file that `tmuxctl gateway add-host` wrote"
        return NotFound(f"{name} names no credentials of a gateway", reason="no_credentials", hint=hint)
    if not told or told["code"] == "usage":
        hint = "install the same release of tmuxctl on both machines: tmuxctl --version"
        said = f": {told['message']}" if told else ""
        return Unreachable(f"the tmuxctl of {name} cannot be paired so{said}", reason="other_version", hint=hint)
    kind = next((kind for kind in CLASSES if kind.code == told["code"]), Failed)
    return kind(f"{name}: {told['message']}", reason=told["reason"], hint=told["hint"], machine=name)


def _nonsense_error(name: str) -> Unreachable:
    hint = f"does a tmuxctl of the same release run there? tmuxctl machine test {name}"
    return Unreachable(f"{name}: what its tmuxctl answers makes no sense", reason="bad_answer", hint=hint, machine=name)


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a word")
    return value


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("no list of words")
    return tuple(map(_word, value))


def _shown(value: object) -> str:
    """Text of the machine, fit to be shown."""
    text = value[:WORD_MOST] if isinstance(value, str) else ""
    return "".join(one if one.isprintable() else " " for one in text)
