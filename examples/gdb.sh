#!/bin/sh
# A debugger: find out why a C program gives the wrong sum.
# needs: gdb gcc
set -eu
trap 'tmuxctl kill -q bug 2>/dev/null || :' EXIT

cat >sum.c <<'END'
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
END
gcc -g -O0 -o sum sum.c

tmuxctl new -q bug -- gdb -q ./sum
tmuxctl ask bug 'break sum'
tmuxctl ask bug 'run'
tmuxctl ask bug 'print count'
# stop where the sum is returned, and look at what it has become
tmuxctl ask bug 'next 20' >/dev/null || :
tmuxctl ask bug 'info breakpoints'
tmuxctl ask bug 'run' || tmuxctl decide bug
