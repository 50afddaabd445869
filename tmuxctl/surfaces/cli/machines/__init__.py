"""The command `machine`."""
