"""Screens as pictures, and the terminal that replays a journal."""
