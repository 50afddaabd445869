"""What a program answered in a turn: cut from its output, its screen or its transcript."""
