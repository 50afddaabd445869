#!/bin/sh
# stands before tmux in PATH and counts: one line a start
echo "$*" >>"$TMUX_COUNT"
exec "$TMUX_REAL" "$@"
