"""What is known of a session without looking at its program: its pane, its folder, its profile."""
