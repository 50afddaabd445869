"""Recordings: what a session printed with its times, as events that can be played, written to a file, and drawn."""
