"""What a user sets up: profiles, plugins, and what tmuxctl needs."""
