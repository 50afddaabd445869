#!/bin/sh
# vim: search and replace, save, and answer what it asks about changes that were not saved.
# needs: vim
set -eu
trap 'tmuxctl kill notes >/dev/null 2>&1 || :' EXIT

cat >notes.txt <<'TEXT'
The colour of the door: green.
Colours we may take: any colour but grey.
TEXT

tmuxctl new -q notes -- vim -u NONE -N notes.txt
tmuxctl send notes ':%s/olour/olor/g'
tmuxctl wait notes --text '3 substitutions on 2 lines'
tmuxctl send notes ':write'
tmuxctl wait notes --text '"notes.txt" 2L, .* written'
cat >expected.txt <<'TEXT'
The color of the door: green.
Colors we may take: any color but grey.
TEXT
cmp notes.txt expected.txt

# a new line below the last one, typed in insert mode
tmuxctl keys notes G o
tmuxctl wait notes --text '-- INSERT --'
tmuxctl send notes --no-enter 'Ask Ada.'
tmuxctl keys notes Escape
tmuxctl wait notes --gone '-- INSERT --'
tmuxctl screen notes | grep '^Ask Ada\.$'

# it asks before it loses anything: cancel goes back to the text, no drops the line
tmuxctl send notes ':confirm quit'
tmuxctl wait notes --asking
tmuxctl decide notes
tmuxctl decide notes cancel
tmuxctl wait notes
tmuxctl send notes ':confirm quit'
tmuxctl wait notes --asking
tmuxctl decide notes no
test "$(tmuxctl wait notes --exit)" = 'exit: status 0'
cmp notes.txt expected.txt
echo 'What was saved is there, what was dropped is not.'
