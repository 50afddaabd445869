"""What a session's program printed and drew: its screen, its log, its answers."""
