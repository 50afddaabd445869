"""Who may call the server, and what."""
