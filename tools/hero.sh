#!/bin/sh
# Drives sqlite3, Python and bash in real sessions, saying what it does. `tmuxctl` must be in PATH: `make hero` sees to it.
set -eu

say() { printf '\n# %s\n' "$*"; }

run() {
    printf '$ tmuxctl'
    for word in "$@"; do
        case $word in
            *[!A-Za-z0-9_./=:-]*) printf " '%s'" "$(printf %s "$word" | sed "s/'/'\\\\''/g")" ;;
            *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    tmuxctl "$@"
}

say 'A database console, on a terminal of its own; `ask` types, waits until it is done, and prints the answer:'
run new hero-db --if-exists replace -- sqlite3
run ask hero-db "create table orders (item, price); insert into orders values ('tea', 4.5), ('cake', 37.5);"
run ask hero-db 'select sum(price) from orders;'

say 'A Python that remembers what it was told, and is waited for as long as it computes:'
run new hero-py --if-exists replace -- python3 -q
run ask hero-py 'x = 2 ** 64'
run ask hero-py 'import time; time.sleep(1); x - 1'
run explain hero-py

say "A shell's exact output and exit code, and a program from start to end:"
run new hero-sh --if-exists replace -- bash
run exec hero-sh -- cd /usr
run exec hero-sh -- pwd
run run -- sh -c 'echo "the answer is $((6 * 7))"'

say 'A question is told, and answered only as decided:'
run send hero-sh 'read -p "Overwrite the file? [y/N] " answer; echo "answered: $answer"'
run wait hero-sh --asking
run decide hero-sh
run decide hero-sh no
run wait hero-sh

say 'All of it goes on living in tmux:'
run ls

command=$(command -v tmuxctl)
say "Take one over (C-b d gives it back):   $command attach hero-py"
say "End them:                              $command kill hero-db hero-py hero-sh"
