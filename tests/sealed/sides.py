"""Both ends of a channel, as the tests of records and of handshakes need them."""

from __future__ import annotations

from typing import NamedTuple

from tmuxctl.sealed.handshake import ClientHandshake, HostHandshake
from tmuxctl.sealed.keys import KeyPair, make_key_pair
from tmuxctl.sealed.records import CHANNEL_LIMITS, Channel, ChannelLimits


class Ends(NamedTuple):
    client: Channel
    host: Channel


def connect(client: KeyPair, host: HostHandshake, host_key: bytes, **options) -> Ends:
    asking = ClientHandshake(client, host_key, client_id="c1", host_id="h1", **options)
    accepted = host.answer(asking.request, "c1")
    return Ends(asking.read_reply(accepted.reply), accepted.channel)


def make_ends(limits: ChannelLimits = CHANNEL_LIMITS) -> Ends:
    client, keys = make_key_pair(), make_key_pair()
    host = HostHandshake([keys], host_id="h1", is_authorized=lambda key: True, limits=limits)
    return connect(client, host, keys.public, limits=limits)
