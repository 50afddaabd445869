"""The examples of the reference, and what each needs to be there: the files and sessions that its words name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from docs.pages import ROOT, Block, Directive, Section

FILES = r"""
sqlite3 shop.db "create table orders (item); insert into orders values ('tea'), ('cake')"
printf '%s\n' 'all test:' '	@echo made' >Makefile
mkdir -p src ~/src ~/bin ~/.config/tmuxctl/profiles ~/.config/tmuxctl/plugins ~/.config/fish/completions
git -C src init -q
git init -q . && git -c user.name=Ada -c user.email=ada@example.org commit -q --allow-empty -m Begin
printf '%s\n' '>>> x = 1' '>>>' >screen.txt
printf '%s\n' '{"send": "cd src"}' '{"exec": "pwd"}' >steps.json
printf '%s\n' 'schema: tmuxctl/profile@1' 'prompt: {id: prompt, re: "^mine>", where: cursor-line}' >mine.yaml
cp mine.yaml ~/.config/tmuxctl/profiles/
printf '%s\n' '"Run it at lower priority."' 'from dataclasses import replace' 'from typing import Annotated' 'KIND = "wrap"' \
  'def transform(spec, *, level: Annotated[int, "1-19"] = 10):' \
  '    return replace(spec, argv=("nice", "-n", str(level), *spec.argv))' >~/.config/tmuxctl/plugins/nice.py
printf '%s\n' '{"version": 2, "width": 60, "height": 9}' '[0.1, "o", "$ make\r\n"]' '[9, "o", "made\r\n"]' >demo.cast
script() { printf '%s\n' '#!/bin/sh' "$2" >"$1"; chmod +x "$1"; }
script run-tests 'echo passed'
script deploy.sh 'echo deployed'
script work 'sleep 1; echo done'
script shop 'while printf "shop> "; read -r line; do echo "$line?"; done'
script agent 'printf "Bash(pytest -q)\nDo you want to proceed? "; read -r answer; echo "$answer"; exec cat'
script ask 'printf "Overwrite the settings? [y/N] "; read -r answer; echo "$answer"; exec cat'
script login 'stty -echo; printf "Password: "; read -r word; stty echo; echo; exec cat'
script ~/bin/apt-get 'printf "Do you want to continue? [Y/n] "; read -r answer; echo "Setting up mc"'
for name in claude codex gemini; do
  script ~/bin/$name 'while printf "> "; read -r line; do echo "$line?"; done'
done
script ~/bin/systemctl ''
script ~/bin/notify-send ''
script ~/bin/loginctl 'echo Linger=yes'
PATH=$HOME/bin:$PATH
printf '%s\n' 'schema: tmuxctl/profile@1' 'name: agent' 'asking:' '- {id: tool, kind: approval, re: "want to proceed",' \
  '   options: {allow: [y, Enter], deny: [n, Enter]}}' >~/.config/tmuxctl/profiles/agent.yaml
"""

SESSIONS: Mapping[str, str] = {
    "db": "sqlite3 shop.db",
    "py": "python3 -q",
    "sh": "bash",
    "build": "bash",
    "web": "./ask",
    "worker": "./work",
    "fix": "./agent",
    "setup": "./ask",
    "helper": "./shop",
    "box": "./login",
}
"""What runs in a session that an example names."""

TEAM = """
printf '%s\n' 'schema: tmuxctl/connector@1' 'name: review' 'agents: {a: {command: [cat]}}' \
  'topology: {type: pipeline, stages: [{agent: a, prompt: hello}]}' >team.yaml
"""
"""A connector file of a team whose run ends at once."""

RUN = f"{TEAM}tmuxctl connect up team.yaml --yes\n"

OWN = (
    "new",
    "run",
    "adopt",
    "release",
    "profile",
    "plugin",
    "completion",
    "config",
    "doctor",
    "machine",
    "connect",
    "gateway",
)
"""Commands whose words name nothing that is there."""

PANES = "tmux -f /dev/null new-session -d -s work cat ';' new-window cat"
"""A pane of a person's own tmux: tmux:work:1.0."""

WEB1, BOX = (f"tmuxctl machine add {name} --command sh" for name in ("web1", "box"))
"""A machine that is this one, by another door."""

TWO = "".join(
    f"tmuxctl machine add {name} --command sh --tmux-socket {name}\ntmuxctl new {name}/sh -- bash\n"
    for name in ("web1", "web2")
)
"""Two machines with a shell each."""

GROUP = """printf '[groups]\\nweb = ["web1", "web2"]\\n' >>~/.config/tmuxctl/machines.toml\n"""
"""Both of them, as a group."""

CRASH = """
server=$(tmux -L tmuxctl display-message -p '#{pid}')
kill -9 $server
while [ -e /proc/$server/exe ]; do sleep 0.05; done
"""
"""What takes all sessions at once."""

TOLD = r"""
tests=$(python3 -c 'import tmuxctl; print(tmuxctl.__path__[0])')/../tests/programs
cp $tests/agent.py ~/bin/assistant
sed 's/agent\.py/assistant/g; s/^name: .*/name: assistant/' $tests/agent.yaml >~/.config/tmuxctl/profiles/assistant.yaml
tmuxctl new helper --if-exists replace -- assistant
"""
"""An agent program in the session `helper`."""

GATEWAY = """
set -- $(python3 $(python3 -c 'import tmuxctl; print(tmuxctl.__path__[0])')/../tools/ports.py 3)
tmuxctl gateway up --listen 127.0.0.1:$1 --websocket-port $2 --monitor-port $3 >gateway.log 2>&1 &
until tmuxctl gateway status >/dev/null 2>&1; do sleep 0.1; done
"""
"""A gateway that runs, and is reached on this machine alone."""

WITH_LEAVES = GATEWAY.replace("ports.py 3", "ports.py 4").replace(" >gateway.log", " --leaf-port $4 >gateway.log")
"""The same, with a port for leaf nodes."""

STOPPED = f"{GATEWAY}kill $!\nwait $! || :\n"
"""A gateway that ran, and will be again what it was."""

MEMBER = f"{GATEWAY}MEMBER=$(tmuxctl gateway add-host -q)\n"
"""A host that may connect to it."""

HOST = f"{GATEWAY}tmuxctl gateway add-host --out host.json\n"
"""The credentials of a host."""

PAIRING = f"""{HOST}
tmuxctl gateway add-client --out ~/.config/tmuxctl/gateway.json
tmuxctl gateway pair laptop --credentials host.json 2>pairing.log &
until grep -q 'machine pair' pairing.log; do sleep 0.1; done
MEMBER=$(sed -n 's/.*NAME //p' pairing.log)
sed -n 's/code: //p' pairing.log >code.txt
"""
"""A host that waits for a client."""

JOINED = f"""{HOST}
tmuxctl gateway add-client --out ~/.config/tmuxctl/gateway.json
tmuxctl serve --listen unix --gateway host.json >serve.log 2>&1 &
until grep -q listening serve.log; do sleep 0.1; done
tmuxctl gateway pair laptop --credentials host.json 2>pairing.log &
until grep -q 'machine pair' pairing.log; do sleep 0.1; done
sed -n 's/code: //p' pairing.log | tmuxctl machine pair thathost "$(sed -n 's/.*NAME //p' pairing.log)"
tmuxctl new sh -- sh
until tmuxctl machine events thathost | grep -q thathost/sh; do sleep 0.1; done
"""
"""A machine behind a gateway with a session of which something was recorded."""

SET_HOST = f"{HOST}tmuxctl config set serve.gateway $PWD/host.json\n"
"""The same, as a setting."""

KEY = "UNhY4JhezH9gQYqvDMWrWH9CwlcKiECVqejMrND2VFw="
"""The public key of a client."""

BY_SSH = f"""{SET_HOST}
tmuxctl gateway add-client --out ~/.config/tmuxctl/gateway.json
printf '#!/bin/sh\\nfor last; do :; done\\nexec sh -c "$last"\\n' >~/bin/ssh
chmod +x ~/bin/ssh
"""
"""A host that ssh reaches: this machine."""

BEFORE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "machine events thathost",
            "machine events thathost --since 2h",
            "machine events thathost --since 1 --json",
            "machine events thathost --follow",
        ),
        JOINED,
    ),
    f"gateway authorize laptop {KEY} --right read": SET_HOST,
    "gateway unpair laptop": f"{SET_HOST}tmuxctl gateway authorize laptop {KEY}",
    "machine pair thathost --ssh ada@thathost.example.org": BY_SSH,
    "serve --gateway host.json": HOST,
    "gateway pair laptop --credentials host.json": HOST,
    "gateway pair ci --credentials host.json --right read --only 'build-*'": HOST,
    "machine pair thathost k5wq7hl2mzt3ybvn <code.txt": PAIRING,
    **dict.fromkeys(("gateway up", "gateway up --name gateway.example.org"), STOPPED),
    "gateway add-leaf gateway.site.example.org": WITH_LEAVES,
    "gateway add-leaf 10.0.8.2 --tenant lab --out leaf.json": f"{WITH_LEAVES}tmuxctl gateway add-tenant lab\n",
    "gateway add-tenant lab": GATEWAY,
    **dict.fromkeys(
        (
            "gateway add-host",
            "gateway add-host build-box --out build-box.json",
            "gateway add-client",
            "gateway add-client laptop --out -",
            "gateway ls",
            "gateway ls --json",
            "gateway status",
            "gateway status --json",
            "gateway doctor",
        ),
        GATEWAY,
    ),
    "gateway rotate k5wq7hl2mzt3ybvn --out new.json": MEMBER,
    "gateway remove k5wq7hl2mzt3ybvn": MEMBER,
    "gateway doctor --credentials gateway.json": f"{GATEWAY}tmuxctl gateway add-client --out gateway.json",
    "tell helper 'The tests in src/ fail since Monday.'": TOLD,
    "tell helper 'Is the release ready?' --from reviewer --wait": TOLD,
    "git log -1 | tmuxctl tell helper -": TOLD,
    "inbox ls helper": TOLD,
    "inbox ls helper --json": TOLD,
    "inbox clear helper": TOLD,
    "export build build.png --until mark:ready": "tmuxctl mark build ready",
    "status --follow": "tmuxctl new setup -- ./ask",
    "attach --next-asking": "tmuxctl new setup -- ./ask",
    "token revoke laptop": "tmuxctl token new laptop",
    "token login laptop --url https://example.org": "tmuxctl token new laptop",
    "watch --notify": "tmuxctl new db -- sqlite3 shop.db",
    "watch": "tmuxctl new db -- sqlite3 shop.db",
    "watch --state input": "tmuxctl new build -- sh -c 'read line'",
    "watch --all-machines --state input": "tmuxctl new build -- sh -c 'read line'",
    "wait db --text 'rows? in set'": "tmuxctl send db '.print 2 rows in set'",
    "keys db Up Enter --wait-text '^42$' --screen": "tmuxctl ask db 'select 6*7;'",
    "screen db --at -1": "tmuxctl ask db 'select 1;'; tmuxctl ask db 'select 2;'",
    "wait build --exit --timeout 10m": "tmuxctl send build exit",
    "rec build --stop": "tmuxctl rec build build.cast",
    "read build --follow": "tmuxctl send build './work; exit'",
    "log build -n 20 -f": "tmuxctl send build './work; exit'",
    "read db --since c1:9f2c.1:118": "CURSOR=$(tmuxctl ls -F '{cursor}')",
    "get-answer --session db 'select 1'": "tmuxctl ask db 'select 1;'",
    "decide setup yes --id 3f2a91c0": 'ID=$(tmuxctl decide setup --json | sed \'s/.*"id":"\\([0-9a-f]*\\)".*/\\1/\')',
    "ls web1/": WEB1,
    "exec web1/sh,web2/sh -- uptime": TWO,
    "exec @web/sh --limit 4 -- uptime": TWO + GROUP,
    "wait web,worker --exit": "tmuxctl new web --if-exists replace -- true",
    "doctor --machine web1": f"{WEB1}\ntmuxctl new web1/sh -- bash",
    r"remote write web1 $'make\r'": f"{WEB1}\ntmuxctl new web1/sh -- cat",
    "remote wait-idle web1": f"{WEB1}\ntmuxctl new web1/sh -- cat",
    "remote get-answer web1 make": f"{WEB1}\ntmuxctl new web1/sh -- bash\ntmuxctl ask web1/sh 'echo make'",
    "new web1/job -- make": WEB1,
    "run --machine web1 -- df -h": WEB1,
    "machine rm box": BOX,
    "machine test box": BOX,
    "machine test box --json": BOX,
    "machine setup box --dry-run": BOX,
    "machine setup box --yes": BOX,
    "machine setup web1 --yes --install": WEB1,
    "adopt tmux:work:1.0 build": PANES,
    "adopt tmux@other:%3 --profile psql": "tmux -L other -f /dev/null new-session -d cat" + 3 * " ';' split-window cat",
    "release build": f"{PANES}\ntmuxctl adopt tmux:work:1.0 build",
    "kill tmux:work:1.0 --force": PANES,
    **dict.fromkeys(("connect validate team.yaml", "connect plan team.yaml", "connect plan team.yaml --json"), TEAM),
    **dict.fromkeys(("connect graph team.yaml", "connect graph team.yaml --svg team.svg"), TEAM),
    "connect up team.yaml --yes --wait": TEAM,
    "connect up team.yaml": RUN,
    "connect up team.yaml --input 'review the last commit'": RUN,
    "connect up team.yaml --detach": RUN,
    "connect up team.yaml --resume": RUN,
    "connect status team.yaml": RUN,
    "connect status review --json": RUN,
    "connect log review": RUN,
    "connect log review --follow": RUN,
    "connect log team.yaml --json": RUN,
    "connect report review": RUN,
    "connect report review >review.md": RUN,
    "connect down review": RUN,
    "connect down team.yaml": RUN,
    "decide box --secret-from-env PW": "export PW=secret",
    "restore db build": CRASH,
    "sync topic": "git config --global user.name Ada; git config --global user.email ada@example.org\n"
    "tmuxctl new topic --sandbox -- bash --norc; tmuxctl exec topic 'git commit -q --allow-empty -m topic'",
}
"""What is done besides, before an example."""

MEANT: Mapping[str, str] = {"c1:9f2c.1:118": "$CURSOR", "3f2a91c0": "$ID", "k5wq7hl2mzt3ybvn": "$MEMBER"}
"""What stands in an example for what only a session of one's own can tell."""

NEEDS: Mapping[str, str] = {"irb": "irb", "fish": "fish", "topic": "bwrap"}
"""Programs that an example names which a machine may lack."""


def examples() -> list[str]:
    """Every example of the reference."""
    lists = re.findall(r"^Examples:\n\n((?:    .+\n)+)", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE)
    return list(dict.fromkeys(line.strip() for one in lists for line in one.splitlines()))


def section(example: str) -> Section:
    """The example with what makes it true, as a page would have it."""
    typed = example
    for shown, meant in MEANT.items():
        typed = typed.replace(shown, f'"{meant}"')
    return Section(example, (Directive("before", _before(example), 0), Block("console", f"$ {typed}", 1)))


def _before(example: str) -> str:
    """Shell lines that make what the example takes for granted."""
    words = re.findall(r"[\w-]+", example.removeprefix("tmuxctl "))
    named = [] if words[0] in OWN else [name for name in SESSIONS if name in words]
    started = [f"tmuxctl new {name} -- {SESSIONS[name]}" for name in named]
    return "\n".join((FILES, *started, BEFORE.get(example.removeprefix("tmuxctl "), "")))
