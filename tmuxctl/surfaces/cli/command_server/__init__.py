"""Quick commands in a process that has loaded everything they need, at the request of one that has loaded nothing (ADR 47)."""
