"""A local model with scripted answers: a real agent program talks to it, and its request log is the truth about each turn."""
