#!/bin/sh
# npm init: a value of our own for some questions, what npm proposes for the rest, and yes to the file it shows.
# needs: npm node
set -eu
trap 'tmuxctl kill init >/dev/null 2>&1 || :' EXIT

mkdir bakery && cd bakery
tmuxctl new -q init -e NPM_CONFIG_UPDATE_NOTIFIER=false -- npm init

# newer versions of npm ask for more than older ones: go by the question, not by its number
while asked=$(tmuxctl wait init --asking); do
    echo "$asked"
    case $asked in
        *'"package name: (bakery)"'*) tmuxctl decide init corner-bakery ;;
        *'"description:"'*) tmuxctl decide init 'Bread, fresh every day' ;;
        *'"test command:"'*) tmuxctl decide init 'node --test' ;;
        *'"keywords:"'*) tmuxctl decide init 'bread, cake' ;;
        *'"license: (ISC)"'*) tmuxctl decide init MIT ;;
        *'"Is this OK?"'*) break ;;
        # Enter alone takes what npm proposes
        *) tmuxctl keys init Enter ;;
    esac
done

# nothing is written before the yes
test ! -e package.json
tmuxctl decide init yes
test "$(tmuxctl wait init --exit)" = 'exit: status 0'

value() {
    node -p "JSON.stringify(require('./package.json').$1)"
}
test "$(value name)" = '"corner-bakery"'
test "$(value version)" = '"1.0.0"'
test "$(value description)" = '"Bread, fresh every day"'
test "$(value main)" = '"index.js"'
test "$(value scripts.test)" = '"node --test"'
test "$(value keywords)" = '["bread","cake"]'
test "$(value license)" = '"MIT"'
echo "package.json says so: $(value name), version $(value version), license $(value license)"
