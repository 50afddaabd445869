"""The subjects of a gateway: who may publish and subscribe what. An id is opaque and random; no name is part of a subject.

| subject | from | to | carries |
|---|---|---|---|
| `tmc.HOST.handshake.CLIENT` | client | host | the beginning of a channel |
| `tmc.HOST.rpc.CLIENT` | client | host | requests |
| `tmc.HOST.reply.CLIENT.TOKEN` | host | client | the reply to one of them |
| `tmc.HOST.output.CLIENT.CHANNEL` | host | client | output that the client follows |
| `tmc.HOST.heartbeat` | host | clients | that the host is there: nothing else |
| `tmc.HOST.events` | host | stream EVENTS | events, each with a Nats-Msg-Id |
| `tmc.HOST.last` | host | stream EVENTS | the question which event of the host was stored last |
| `tmc.HOST.feed` | stream EVENTS | clients | each event as it is stored, with its sequence number |
| `tmc.stream.read` | client | stream EVENTS | the question for events from a sequence number on |
| `tmc.ID.inbox.TOKEN` | stream EVENTS | host or client | answers of the stream |

The id of the client is part of what it publishes, so the server vouches for who sent it.
"""

from __future__ import annotations

import base64
import os
import re

from tmuxctl.errors import Usage
from tmuxctl.value import Value
from tmuxctl.vocabulary import GatewayRole

STREAM = "EVENTS"
READ = "tmc.stream.read"
ALL = "tmc.>"
"""Every subject of hosts and clients."""

ANY = "*"
"""In the place of an id or a token: each of them."""

_ID = re.compile(r"[a-z2-7]{16}\Z")


class Permissions(Value):
    """The subjects that a member may publish and subscribe, as NATS writes them."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def make_id() -> str:
    """A new id: 80 random bits in base32, lower case."""
    return base64.b32encode(os.urandom(10)).decode().lower()


def is_id(text: str) -> bool:
    """Whether a text is an id as `make_id` makes them."""
    return _ID.match(text) is not None


def parse_id(text: str) -> str:
    """The id; Usage `bad_id` for any other text."""
    if not is_id(text):
        hint = "ids are listed by: tmuxctl gateway ls"
        raise Usage(f"{ascii(text[:40])} is not the id of a host or client", reason="bad_id", hint=hint)
    return text


def handshake(host: str, client: str) -> str:
    """Where a client begins a channel with a host."""
    return f"tmc.{host}.handshake.{client}"


def rpc(host: str, client: str) -> str:
    """Where a client sends its requests to a host."""
    return f"tmc.{host}.rpc.{client}"


def reply(host: str, client: str, token: str) -> str:
    """Where a host replies to one request of a client."""
    return f"tmc.{host}.reply.{client}.{token}"


def output(host: str, client: str, channel: str) -> str:
    """Where a host sends output that a client follows; `channel` is one word of letters and digits."""
    return f"tmc.{host}.output.{client}.{channel}"


def heartbeat(host: str) -> str:
    """Where a host says that it is there."""
    return f"tmc.{host}.heartbeat"


def events(host: str) -> str:
    """Where a host publishes its events; the stream keeps them."""
    return f"tmc.{host}.events"


def last(host: str) -> str:
    """Where a host asks for the event of its own that was stored last."""
    return f"tmc.{host}.last"


def feed(host: str) -> str:
    """Where events of a host come out as they are stored."""
    return f"tmc.{host}.feed"


def inbox(member: str, token: str) -> str:
    """Where the stream answers a member."""
    return f"tmc.{member}.inbox.{token}"


def permissions(role: GatewayRole, member: str) -> Permissions:
    """What a host or a client with this id may publish and subscribe: nothing else is allowed."""
    if role is GatewayRole.HOST:
        return Permissions(
            publish=(
                reply(member, ANY, ANY),
                output(member, ANY, ANY),
                heartbeat(member),
                events(member),
                last(member),
            ),
            subscribe=(handshake(member, ANY), rpc(member, ANY), inbox(member, ANY)),
        )
    return Permissions(
        publish=(handshake(ANY, member), rpc(ANY, member), READ),
        subscribe=(
            reply(ANY, member, ANY),
            output(ANY, member, ANY),
            heartbeat(ANY),
            feed(ANY),
            inbox(member, ANY),
        ),
    )


def may_reply(host: str, request: str, to: str) -> bool:
    """Whether a host may reply to `to` a request that came on the subject `request`.

    The client chooses where it wants the reply: it could name a subject that only the host may publish, as its events.
    """
    words, wanted = request.split("."), to.split(".")
    return len(words) == 4 and len(wanted) == 5 and wanted[:4] == ["tmc", host, "reply", words[3]]
