"""What one observation says by itself: the terminal's readers, the pace of output, the kind of program."""
