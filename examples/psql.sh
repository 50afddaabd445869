#!/bin/sh
# psql: tables, a long result in a pager, and a transaction that fails and is taken back.
# needs: psql less
# service: postgres
set -eu
trap 'tmuxctl kill shop >/dev/null 2>&1 || :' EXIT

# is ANSWER PATTERN: end here if the answer is not like this
is() {
    case $1 in $2) ;; *) printf 'this is not like %s:\n%s\n' "$2" "$1" >&2 && exit 1 ;; esac
}

# psql finds its server by PGHOST, PGPORT, PGUSER and PGDATABASE; it gets a pager only if one is asked for
tmuxctl new shop -e PSQL_PAGER=less -- psql
is "$(tmuxctl ask shop 'create table orders (id serial primary key, item text not null, price numeric);')" 'CREATE TABLE'
is "$(tmuxctl ask shop "insert into orders (item, price) values ('tea', 4), ('cup', 6.50);")" 'INSERT 0 2'
is "$(tmuxctl ask shop 'select item, price from orders order by id;')" ' item | price*
------+-------
 tea  |     4
 cup  |  6.50
(2 rows)'

is "$(tmuxctl ask shop '\x')" 'Expanded display is on.'
is "$(tmuxctl ask shop 'select item, price from orders where price > 5;')" '-\[ RECORD 1 \]*
item  | cup
price | 6.50'
is "$(tmuxctl ask shop '\x')" 'Expanded display is off.'

# what does not fit the screen goes to the pager, which wants to be told when to go on
tmuxctl send shop 'select n, n * n as square from generate_series(1, 200) as n;'
tmuxctl wait shop --asking
is "$(tmuxctl decide shop)" '*(pager, *more*quit'
tmuxctl decide shop end
tmuxctl wait shop --text '200 \| +40000'
tmuxctl wait shop --asking
tmuxctl decide shop quit
tmuxctl wait shop

# after an error a transaction takes nothing but its end: the prompt says so
is "$(tmuxctl ask shop 'begin;')" 'BEGIN'
is "$(tmuxctl ask shop 'delete from orders;')" 'DELETE 2'
is "$(tmuxctl ask shop 'select 1 / 0;')" 'ERROR:  division by zero'
is "$(tmuxctl screen shop | tail -n 1)" '*=!#'
is "$(tmuxctl ask shop 'select count(*) from orders;')" 'ERROR:  current transaction is aborted, *'
is "$(tmuxctl ask shop 'rollback;')" 'ROLLBACK'
is "$(tmuxctl screen shop | tail -n 1)" '*=#'
is "$(tmuxctl ask shop 'select sum(price) from orders;')" '* 10.50
*'
echo 'The orders are still there.'

tmuxctl send shop '\q'
is "$(tmuxctl wait shop --exit)" 'exit: status 0'
