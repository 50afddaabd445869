#!/bin/sh
# ssh: compare the server's key before it is trusted, log in by password, work there, and use sudo there.
# The server's public key, as its owner gave it to us, is the file SSH_HOST_KEY.
# needs: ssh ssh-keygen sudo
# service: sshd
# root
set -eu
trap 'tmuxctl kill far >/dev/null 2>&1 || :' EXIT

tmuxctl new -q far -- ssh -p "$SSH_PORT" -o UserKnownHostsFile="$PWD/known" "$SSH_USER@127.0.0.1"

# a host nobody has seen before: yes only if it shows the fingerprint that we know
expected=$(ssh-keygen -lf "$SSH_HOST_KEY" | cut -d ' ' -f 2)
tmuxctl wait far --asking
shown=$(tmuxctl screen far | grep -o 'SHA256:[A-Za-z0-9+/]*')
test "$shown" = "$expected" || { tmuxctl decide far no && exit 1; }
echo "the server has the key $shown, as it should"
tmuxctl decide far yes

# the password comes from a variable: it stands in no command line, no screen and no log
tmuxctl wait far --asking
tmuxctl decide far --secret-from-env SSH_PASSWORD
tmuxctl wait far
test "$(tmuxctl ask far 'id -un')" = "$SSH_USER"
test "$(tmuxctl ask far 'mkdir shop && cd shop && basename "$PWD"')" = shop

# what waits for a password ends the turn with 6
status=0
tmuxctl ask far 'sudo -v' || status=$?
test "$status" = 6
tmuxctl decide far --secret-from-env SSH_PASSWORD
tmuxctl wait far
test "$(tmuxctl ask far 'sudo id -un')" = root
test "$(tmuxctl ask far 'id -un')" = "$SSH_USER"
echo "$SSH_USER is root over there by sudo"

tmuxctl send far 'exit 3'
test "$(tmuxctl wait far --exit)" = 'exit: status 3'
case $(tmuxctl log --raw far) in *"$SSH_PASSWORD"*) echo 'the password is in the log' >&2 && exit 1 ;; esac
