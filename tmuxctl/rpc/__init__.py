"""Operations called by name on another machine that has tmuxctl: the records that carry them, and both ends."""
