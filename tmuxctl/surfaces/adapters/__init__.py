"""Other people's spellings of our operations: each a table of their name, ours, and what is called differently."""
