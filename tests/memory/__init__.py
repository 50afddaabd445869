"""A machine in memory: enough of tmux, a shell and a file system to answer every call tmuxctl makes, at once.

It knows exactly what tmuxctl sends. Anything else raises `Unknown`, so that nothing passes because the fake shrugged.
"""
