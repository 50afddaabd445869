"""One pane observed: of a session of ours, or of another tmux server."""
