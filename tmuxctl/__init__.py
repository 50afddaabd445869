"""Drive any interactive terminal program; tmux keeps it alive."""

__version__ = "0.1.0"
