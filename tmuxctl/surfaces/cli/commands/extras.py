"""What an extra of the package brings, loaded by the commands that need it."""

from __future__ import annotations

from types import ModuleType

from tmuxctl.errors import Failed

GATEWAY = ("cryptography", "nats", "nkeys", "nacl", "noise", "spake2")


def load_gateway(name: str) -> ModuleType:
    """A module of `tmuxctl.gateway`; Failed `no_gateway_extra` where the extra is not installed."""
    from importlib import import_module

    try:
        return import_module(f"tmuxctl.gateway.{name}")
    except ModuleNotFoundError as error:
        # the one-file form has none
        missing = error.name or ""
        if missing.partition(".")[0] not in GATEWAY and not missing.startswith(("tmuxctl.gateway", "tmuxctl.sealed")):
            raise
        hint = "install the extra: pip install 'tmux-control-plane[gateway]'"
        raise Failed("the gateway is not installed", reason="no_gateway_extra", hint=hint) from None
