"""Text and keys on their way into a pane."""
