"""`tmuxctl mcp` as independent clients see it: the points of README.md, and all that a client of ptyai relies on."""
