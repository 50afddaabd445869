"""What a client and a host say to each other before there is a channel between them, beside the handshake itself.

A request of a handshake begins with its format (`sealed.handshake.FORMAT`), a message of a pairing with `PAIRING`: both come on the
same subject. In the place of the reply to a handshake a host may say in a word why there is none: `REFUSED` and the word. Nobody
vouches for it, as the two have no key in common then: whoever carries it could say the same, and all it can do is end the attempt.
"""

from __future__ import annotations

from tmuxctl.errors import Denied, TmuxctlError, Unreachable

PAIRING = b"p"

REFUSED = b"\x02"

UNKNOWN_CHANNEL = b""
"""What a host sends in the place of a record: it has no such channel (any more), and the client makes another handshake."""

ABOUT = "about"
"""Type of a record by which a client asks a host what it is and what the client may there, and of the answer: `release`, `name`,
`rights` and `sessions` (patterns). Records of these types have the version of `rpc.records` too, and belong to no call."""

CLIENT_KEY = "client_key"
"""Type of a record by which a client tells its new static key, the body, in a channel with its old one; and of the answer that the
host knows it by the new one alone now."""

HOST_KEY = "host_key"
"""Type of a record by which a host tells its new static key, the body, in a channel that was opened with its old one."""

DIRECT_OFFER = "direct_offer"
"""Type of a record by which a client asks for a direct path: `number`, and its description for WebRTC as the body, or nothing."""

DIRECT_ANSWER = "direct_answer"
"""Type of the answer to it: the same `number`, `addresses` at which the host listens itself, and its own description as the
body, or nothing where it has none."""

DIRECT_PROBE = "direct_probe"
"""Type of a record by which a client asks whether a direct path is whole, and of the answer, with the same `number`; the answer
takes the way of the question. An end that does not know these three types drops them."""

REASONS = ("unpaired", "clock", "handshake")
"""Why a host refuses a handshake, as far as it says so."""


def pack_refusal(error: TmuxctlError) -> bytes | None:
    """What a client is told of the error that ended its handshake; None for nothing."""
    reply = error.details.get("reply")
    if isinstance(reply, bytes):
        return reply
    return REFUSED + str(error.reason).encode() if error.reason in REASONS else None


def parse_refusal(reply: bytes, machine: str) -> Denied | None:
    """The error for a reply that refuses a handshake with this machine; None for any other reply.

    Denied `unpaired`, `clock`, or `key_changed` where the host has another key than the known one.
    """
    if reply[:1] != REFUSED:
        return None
    reason = reply[1:33].decode("ascii", "replace")
    if reason == "unpaired":
        hint = f"pair with it: `tmuxctl gateway pair CLIENT --credentials FILE` there, then here: tmuxctl machine pair {machine} ID"
        return Denied(f"{machine} does not know this client's key", reason="unpaired", hint=hint)
    if reason == "clock":
        hint = "set the clocks of both machines, as by NTP"
        return Denied(
            f"the clocks of {machine} and this machine are more than 5 minutes apart", reason="clock", hint=hint
        )
    return Denied(
        f"{machine} does not answer to the key that is known of it. Its keys may have been made anew, or another machine pretends "
        "to be it",
        reason="key_changed",
        hint=f"if its keys were made anew, forget the known one, and pair again: tmuxctl machine rm {machine}",
    )


def silent_error(machine: str) -> Unreachable:
    """The error for a host that is connected to the gateway, and says nothing."""
    return Unreachable(
        f"{machine} does not answer through the gateway",
        reason="no_answer",
        hint="is it switched on, and does `tmuxctl serve --gateway FILE` run there?",
        machine=machine,
    )
