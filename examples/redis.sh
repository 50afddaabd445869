#!/bin/sh
# redis-cli: count, a transaction, and a subscription that hears what somebody else says.
# needs: redis-cli
# service: redis
set -eu
trap 'tmuxctl kill store >/dev/null 2>&1 || :' EXIT

tmuxctl new store -- redis-cli -p "$REDIS_PORT"
test "$(tmuxctl ask store 'set bread 20')" = OK
test "$(tmuxctl ask store 'decrby bread 3')" = '(integer) 17'
test "$(tmuxctl ask store 'rpush waiting ada bob')" = '(integer) 2'
test "$(tmuxctl ask store 'lrange waiting 0 -1')" = '1) "ada"
2) "bob"'
test "$(tmuxctl ask store 'decr waiting')" = \
    '(error) WRONGTYPE Operation against a key holding the wrong kind of value'

# between multi and exec nothing is done yet
test "$(tmuxctl ask store 'multi')" = OK
test "$(tmuxctl ask store 'decr bread')" = QUEUED
test "$(redis-cli -p "$REDIS_PORT" get bread)" = 17
test "$(tmuxctl ask store 'exec')" = '1) (integer) 16'

# it listens until C-c
tmuxctl send store 'subscribe news'
tmuxctl wait store --text '3\) \(integer\) 1'
test "$(redis-cli -p "$REDIS_PORT" publish news 'fresh bread')" = 1
tmuxctl wait store --text '3\) "fresh bread"'
tmuxctl keys store C-c
tmuxctl wait store
test "$(tmuxctl ask store 'get bread')" = '"16"'

tmuxctl send store quit
test "$(tmuxctl wait store --exit)" = 'exit: status 0'
echo 'All the numbers are right.'
