"""Runs of connector files: what is written down of one, the agents' sessions, and who hands the turns out."""
