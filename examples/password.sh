#!/bin/sh
# A password prompt: answered from a file and from a variable, and refused where the terminal would show it.
# needs: python3 sha256sum
set -eu
trap 'tmuxctl kill vault >/dev/null 2>&1 || :' EXIT

cat >vault.py <<'PYTHON'
from getpass import getpass
from hashlib import sha256
from pathlib import Path

known = Path("known").read_text().split()[0]
while sha256(getpass("Vault password: ").encode()).hexdigest() != known:
    print("That is not it.")
print("Open for", input("Your name: "))
PYTHON
printf %s 'four-Words-and-1-number' | sha256sum >known
echo 'an-0ld-password' >old

# in a file, or a variable of this one command: the program in the session never has it
tmuxctl new vault -- python3 vault.py
tmuxctl decide vault
tmuxctl decide vault --secret-from-file old
tmuxctl wait vault --text 'That is not it'
tmuxctl wait vault --asking
PASSWORD='four-Words-and-1-number' tmuxctl decide vault --secret-from-env PASSWORD

# the next question shows what is typed: it gets no password
tmuxctl wait vault --text 'Your name:'
status=0
tmuxctl send vault --secret-from-file old || status=$?
test "$status" = 4
tmuxctl send vault Ada
test "$(tmuxctl wait vault --exit)" = 'exit: status 0'
tmuxctl log vault | grep '^Open for Ada$'

# nothing that was kept of the session holds one
case $(tmuxctl log --raw vault) in *four-Words* | *an-0ld*) echo 'a password is in the log' >&2 && exit 1 ;; esac
if grep -rqs -e four-Words -e an-0ld "$HOME/.local"; then echo 'a password is in a file' >&2 && exit 1; fi
echo 'Neither password was kept.'
