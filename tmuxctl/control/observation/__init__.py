"""What a session's program does: observations, the events of its hooks, and the state they make."""
