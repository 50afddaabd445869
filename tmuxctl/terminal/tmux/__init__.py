"""tmux as we ask it: panes, options, screens, the journal of a pane, the lease on its input."""
