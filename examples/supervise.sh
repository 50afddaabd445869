#!/bin/sh
# One agent program supervises another: a task, the command that is asked about, the answer. supervise_mcp.py does it over MCP.
# needs: python3 wc
set -eu
trap 'tmuxctl kill worker >/dev/null 2>&1 || :' EXIT

printf '%s\n' tea milk lemon >notes.txt
tmuxctl new -q worker -- python3 "$(dirname "$0")/supervised.py"

# a turn ends where the program asks: with status 6
status=0
tmuxctl ask worker 'Count the lines of notes.txt' || status=$?
test "$status" = 6

# decide what the task needs, nothing else
asked=$(tmuxctl decide worker | head -n 1)
case $asked in 'Run wc -l notes.txt? '*) ;; *) printf 'it asks something else: %s\n' "$asked" >&2 && exit 1 ;; esac
tmuxctl decide worker yes
tmuxctl wait worker
echo "It asked: ${asked%%\?*}?"
echo "It answered: $(tmuxctl read worker | grep 'lines\.$')"
tmuxctl kill worker
