#!/bin/sh
# git add -p: choose what goes into the next commit, change by change, and look whether it is exactly that.
# needs: git
set -eu
trap 'tmuxctl kill pick >/dev/null 2>&1 || :' EXIT

# is ANSWER PATTERN: end here if the answer is not like this
is() {
    case $1 in $2) ;; *) printf 'this is not like %s:\n%s\n' "$2" "$1" >&2 && exit 1 ;; esac
}

# choose NUMBER ANSWER: answer the question about this change, once it stands
choose() {
    tmuxctl wait -q pick --asking
    is "$(tmuxctl decide pick)" "($1) Stage this hunk *"
    tmuxctl decide pick "$2"
}

git init -q numbers
cd numbers
seq 50 >list
git add list
git -c user.name=Ada -c user.email=ada@example.org commit -q -m 'Count to fifty'

# four places far enough from each other; in the second, two changes that git takes for one
sed -i 's/^2$/two/; s/^15$/fifteen/; s/^18$/eighteen/; s/^30$/thirty/; s/^45$/forty-five/' list

tmuxctl new pick -- git add -p
choose 1/4 yes
choose 2/4 split
choose 2/5 no
choose 3/5 yes
choose 4/5 yes
choose 5/5 quit
is "$(tmuxctl wait pick --exit)" 'exit: status 0'

is "$(git diff --cached --unified=0 | grep '^[-+][^-+]')" '-2
+two
-18
+eighteen
-30
+thirty'
is "$(git diff --unified=0 | grep '^[-+][^-+]')" '-15
+fifteen
-45
+forty-five'
echo 'Three changes are staged, two are not.'
