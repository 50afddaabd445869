"""The command `gateway`."""
