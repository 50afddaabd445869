"""How a session's program and its shell are started."""
