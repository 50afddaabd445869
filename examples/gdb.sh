#!/bin/sh
# gdb: find out why a C program gives the wrong sum, by watching the value while it goes wrong.
# needs: gdb gcc
set -eu
trap 'tmuxctl kill bug >/dev/null 2>&1 || :' EXIT

# is ANSWER PATTERN: end here if the answer is not like this
is() {
    case $1 in $2) ;; *) printf 'this is not like %s:\n%s\n' "$2" "$1" >&2 && exit 1 ;; esac
}

cat >sum.c <<'END_OF_C'
#include <stdio.h>

static int sum(const int *values, int count)
{
    int total = 0;
    for (int i = 0; i <= count; i++)
        total += values[i];
    return total;
}

int main(void)
{
    const int values[] = {3, 4, 5, 1000};
    printf("%d\n", sum(values, 3));
    return 0;
}
END_OF_C
gcc -g -O0 -o sum sum.c
echo "3 + 4 + 5 should be 12, but it is $(./sum)."

tmuxctl new bug -- gdb -q ./sum
is "$(tmuxctl ask bug 'break sum.c:14')" 'Breakpoint 1 at *: file sum.c, line 14.'
is "$(tmuxctl ask bug 'run')" '*Breakpoint 1, main () at sum.c:14*'
is "$(tmuxctl ask bug 'step')" 'sum (values=0x*, count=3) at sum.c:5*int total = 0;'
is "$(tmuxctl ask bug 'backtrace')" '#0  sum (values=0x*, count=3) at sum.c:5
#1  0x* in main () at sum.c:14'
is "$(tmuxctl ask bug 'next')" '6*for (int i = 0; i <= count; i++)'
is "$(tmuxctl ask bug 'print total')" '$1 = 0'

# single steps instead of the processor's own watchpoints, which not every machine lends to a debugger
tmuxctl ask bug 'set can-use-hw-watchpoints 0'
is "$(tmuxctl ask bug 'watch total')" 'Watchpoint 2: total'
for total in 3 7 12 1012; do
    is "$(tmuxctl ask bug 'continue')" "*Old value = *
New value = $total
*"
    echo "The total is $total."
done
is "$(tmuxctl ask bug 'print i == count')" '$2 = 1'
echo 'The loop takes one value too many.'

# gdb does not leave a program that still runs without asking
tmuxctl send bug 'quit'
tmuxctl wait bug --asking
is "$(tmuxctl decide bug)" 'Quit anyway? *'
tmuxctl decide bug no
tmuxctl wait bug
is "$(tmuxctl ask bug 'info breakpoints')" '*breakpoint already hit 4 times'
tmuxctl send bug 'quit'
tmuxctl wait bug --asking
tmuxctl decide bug yes
is "$(tmuxctl wait bug --exit)" 'exit: status 0'
