#!/bin/sh
# A script's boxes (whiptail): a menu, a field and a last question, each answered by decide.
# needs: whiptail
set -eu
trap 'tmuxctl kill order >/dev/null 2>&1 || :' EXIT

cat >order.sh <<'SCRIPT'
set -e
bread=$(whiptail --menu 'Which bread?' 12 50 3 rye 'Rye' spelt 'Spelt' wheat 'Wheat' 3>&1 1>&2 2>&3)
name=$(whiptail --inputbox 'For whom?' 10 50 3>&1 1>&2 2>&3)
whiptail --yesno "Order $bread for $name?" 8 50
echo "$bread for $name" >ordered
SCRIPT

tmuxctl new -q order -- sh order.sh
tmuxctl wait order --asking
test "$(tmuxctl decide order | cut -d ' ' -f 3 | paste -sd ' ')" = ' rye spelt wheat cancel'
tmuxctl screen order
tmuxctl decide order spelt

tmuxctl wait order --asking
test "$(tmuxctl decide order | head -n 1 | cut -c 1-9)" = 'For whom?'
tmuxctl decide order Ada

tmuxctl wait order --asking
tmuxctl decide order | grep 'Order spelt for Ada?'
test ! -e ordered
tmuxctl decide order yes
test "$(tmuxctl wait order --exit)" = 'exit: status 0'
test "$(cat ordered)" = 'spelt for Ada'
