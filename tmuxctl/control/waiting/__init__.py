"""Waiting until something holds: a state, a text in the output, an end."""
