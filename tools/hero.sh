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

say 'A database console, on a terminal of its own:'
run new hero-db --if-exists replace -- sqlite3
run send hero-db "create table orders (item, price); insert into orders values ('tea', 4.5), ('cake', 37.5);"
run send hero-db 'select sum(price) from orders;'
run wait hero-db --text '42\.0' --timeout 20s
run screen hero-db

say 'A Python that remembers what it was told:'
run new hero-py --if-exists replace -- python3 -q
run send hero-py 'x = 2 ** 64'
run send hero-py 'x - 1'
run wait hero-py --text 18446744073709551615 --timeout 20s
run screen hero-py

say "A shell's exact output and exit code, and a program from start to end:"
run new hero-sh --if-exists replace -- bash
run exec hero-sh -- cd /usr
run exec hero-sh -- pwd
run run -- sh -c 'echo "the answer is $((6 * 7))"'

say 'All of it goes on living in tmux:'
run ls

command=$(command -v tmuxctl)
say "Take one over (C-b d gives it back):   $command attach hero-py"
say "End them:                              $command kill hero-db hero-py hero-sh"
