"""The life of a session: started, listed, changed, ended, restored; adopted, if another tmux has it."""
