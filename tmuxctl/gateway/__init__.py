"""Machines that are reached through a broker: stock NATS carries bytes between them, and nothing of ours runs inside it.

`carrier`, `host` and `pairing` bring encrypted calls through it (docs/adr/0061), `events` what happened (docs/adr/0062); the other
modules know nothing of what is carried (docs/adr/0059).
"""
