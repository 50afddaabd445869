#!/bin/sh
# pdb: go through a Python script line by line until the mistake shows; one of pdb's commands asks back.
# needs: python3
set -eu
trap 'tmuxctl kill bill >/dev/null 2>&1 || :' EXIT

# is ANSWER PATTERN: end here if the answer is not like this
is() {
    case $1 in $2) ;; *) printf 'this is not like %s:\n%s\n' "$2" "$1" >&2 && exit 1 ;; esac
}

cat >bill.py <<'END_OF_PYTHON'
def price(items, discount):
    total = 0
    for each, count in items:
        total = each * count
    return total - total * discount / 100


tea, cups = (4, 2), (6, 1)
print(price([tea, cups], 10))
END_OF_PYTHON
echo "Two teas at 4 and a cup at 6, less 10 %, should be 12.6, but it is $(python3 bill.py)."

tmuxctl new bill -- python3 -m pdb bill.py
is "$(tmuxctl ask bill 'break price')" 'Breakpoint 1 at */bill.py:[12]'
is "$(tmuxctl ask bill 'continue')" '> */bill.py(2)price()
-> total = 0'
is "$(tmuxctl ask bill 'where')" '*/bill.py(9)<module>()
-> print(price(*
> */bill.py(2)price()
-> total = 0'
is "$(tmuxctl ask bill 'p discount')" '10'

# stop at the end of each turn of the loop: where it is about to begin the next one
is "$(tmuxctl ask bill 'break 3')" 'Breakpoint 2 at */bill.py:3'
tmuxctl ask bill 'continue' >/dev/null
for total in 8 6; do
    is "$(tmuxctl ask bill 'next')" '*-> total = each \* count'
    is "$(tmuxctl ask bill 'continue')" '*-> for each, count in items:'
    is "$(tmuxctl ask bill 'p total')" "$total"
    echo "The total is $total."
done
echo 'Each turn begins a new total instead of adding to it.'

# without a number, clear means all breakpoints, and pdb asks first
tmuxctl send bill 'clear'
tmuxctl wait bill --asking
is "$(tmuxctl decide bill)" 'Clear all breaks? *'
tmuxctl decide bill no
tmuxctl wait bill
is "$(tmuxctl ask bill 'break')" '*/bill.py:[12]*/bill.py:3*'
is "$(tmuxctl ask bill 'clear' --decide confirm=yes)" '*Deleted breakpoint 1*'
is "$(tmuxctl ask bill 'break')" ''

# with the right total in its place the rest of the script is right
tmuxctl ask bill 'total = 14'
is "$(tmuxctl ask bill 'next')" '*-> return total - total \* discount / 100'
is "$(tmuxctl ask bill 'next')" '--Return--
*price()->12.6
*'
tmuxctl send bill 'quit'
is "$(tmuxctl wait bill --exit)" 'exit: status 0'
