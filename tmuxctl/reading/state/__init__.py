"""From all evidence to one verdict: what the program does, and what for it waits."""
