"""Machines that are reached through a broker: stock NATS carries bytes between them, and nothing of ours runs inside it.

Nothing here encrypts: what is carried is opaque. docs/adr/0059 has the decisions.
"""
