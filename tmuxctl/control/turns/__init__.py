"""A text or a command, and what the program makes of it: `ask`, `exec`, and the next program where one fails."""
