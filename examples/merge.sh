#!/bin/sh
# A merge that stops: one shell, in it git, nano for the conflict and vim for the message.
# needs: git nano vim
set -eu
trap 'tmuxctl kill menu >/dev/null 2>&1 || :' EXIT

# is ANSWER PATTERN: end here if the answer is not like this
is() {
    case $1 in $2) ;; *) printf 'this is not like %s:\n%s\n' "$2" "$1" >&2 && exit 1 ;; esac
}

tmuxctl new menu -e GIT_EDITOR=vim -- bash
tmuxctl exec menu 'git init -q -b main menu && cd menu'
tmuxctl exec menu 'git config user.name Ada && git config user.email ada@example.org'
tmuxctl exec menu 'echo tea >menu.txt && git add menu.txt && git commit -q -m "Offer tea"'
tmuxctl exec menu 'git switch -q -c lemon && echo "tea with lemon" >menu.txt && git commit -q -a -m "Offer lemon"'
tmuxctl exec menu 'git switch -q main && echo "tea with milk" >menu.txt && git commit -q -a -m "Offer milk"'

# exec ends with the command's own status, and git merge's is 1 if somebody has to look at it
is "$(tmuxctl exec menu -- git merge lemon || echo "status $?")" '*CONFLICT (content)*menu.txt*
status 1'

tmuxctl send menu 'nano menu.txt'
tmuxctl wait menu --text '>>>>>>> lemon'
tmuxctl wait menu
tmuxctl keys menu C-k --repeat 5
tmuxctl wait menu --gone 'tea with|<<<<<<<|=======|>>>>>>>'
tmuxctl send menu 'tea with milk or lemon'
tmuxctl wait menu

# leaving nano asks twice: whether to save, and under which name
tmuxctl keys menu C-x
tmuxctl wait menu --asking
is "$(tmuxctl decide menu)" 'Save modified buffer? *'
tmuxctl decide menu yes
tmuxctl wait menu --text 'File Name to Write'
tmuxctl wait menu --asking
is "$(tmuxctl decide menu)" 'File Name to Write: menu.txt *'
tmuxctl decide menu write
tmuxctl wait menu
is "$(tmuxctl exec menu -- cat menu.txt)" 'tea with milk or lemon'

tmuxctl exec menu -- git add menu.txt
tmuxctl send menu 'git commit'
tmuxctl wait menu --text "Merge branch 'lemon'"
tmuxctl wait menu
tmuxctl keys menu c c
tmuxctl send menu --no-enter 'Offer milk or lemon'
tmuxctl keys menu Escape
tmuxctl send menu ':wq'
tmuxctl wait menu

is "$(git -C menu log --format=%s)" 'Offer milk or lemon
Offer *
Offer *
Offer tea'
is "$(git -C menu status --porcelain)" ''
is "$(git -C menu log -1 --format=%p | wc -w)" '*2'
echo 'The commit joins both branches.'
