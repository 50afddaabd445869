#!/bin/sh
# git rebase -i: put three commits into another order, and melt two into one, in the editor that git starts.
# needs: git vim
set -eu
trap 'tmuxctl kill order >/dev/null 2>&1 || :' EXIT

# is ANSWER PATTERN: end here if the answer is not like this
is() {
    case $1 in $2) ;; *) printf 'this is not like %s:\n%s\n' "$2" "$1" >&2 && exit 1 ;; esac
}

git init -q recipes
cd recipes
git config user.name Ada
git config user.email ada@example.org
for dish in soup bread cake; do
    echo "$dish" >"$dish.txt"
    git add "$dish.txt"
    git commit -q -m "Add $dish"
done
git log --format=%s --reverse

# the session is of git; while vim has the terminal, what is said and typed is vim's
tmuxctl new order -e GIT_EDITOR=vim -- git rebase -i --root
is "$(tmuxctl screen order)" 'pick * Add soup
pick * Add bread
pick * Add cake
*'
# dd cuts the first line, p puts it below the next one
tmuxctl keys order d d p
tmuxctl wait order
is "$(tmuxctl screen order)" 'pick * Add bread
pick * Add soup
pick * Add cake
*'
# and cake into soup: f is for fixup
tmuxctl keys order j c w f Escape
tmuxctl wait order
is "$(tmuxctl screen order)" 'pick * Add bread
pick * Add soup
f * Add cake
*'
tmuxctl send order ':wq'
is "$(tmuxctl wait order --exit)" 'exit: status 0'

is "$(git log --format=%s --reverse)" 'Add bread
Add soup'
is "$(git show --format= --name-only HEAD)" 'cake.txt
soup.txt'
echo 'Now bread is first, and cake came with the soup.'
