# make hero     see it work: sqlite3 and Python driven in real sessions
# make test     the core, on real tmux: sessions, input, screens, states, turns and commands; the other targets test the rest
# make quick    the pure tests: no tmux, no program (seconds)
# make          check and test: run before you push
# make test-pipe   the same where tmux is reached through a shell at the end of a pipe, as another machine will be
# make test-ssh   the same behaviour on a machine behind a real sshd, without Python in its PATH (a quarter of an hour);
#                 SSH=core: what runs over a pipe too (two minutes)
# make test-elsewhere   the same behaviour where a second process carries each operation out, by its name, through a real gateway
#                 (ten minutes); ELSEWHERE=socket: without a gateway; ELSEWHERE=core: what runs over a pipe too (two minutes)
# make snippets   what the pages and examples say, done as a reader would do it
# make plays    every profile against its real program
# make browsers   pictures of screens as a browser draws them
# make test-faults   what may go wrong is made to: kills at every step, limits, a full disk, a thousand sessions (ten minutes);
#                    FAULTS=quick: without what takes minutes
# make test-agents   drive real agent programs against a local model: tools/agents/README.md (half an hour; test-agents-full: hours)
# make golden   help, arguments, results, and runs of commands, as they are kept
# make test-rest   our plugins, turns of agent programs (a small one plays their mistakes), what is installed, and older sessions
# make test-library   the library for Python, what type checkers say of it, and the pytest plugin
# make test-machines   machines behind a real sshd on loopback, and behind other commands;
#                    FAULTS=all: each lie that one may tell, in each place
# make test-gateway  the gateway, over a real nats-server on loopback, end-to-end encryption with its published vectors, and operations
#                    that a second process carries out, over carriers that misbehave;
#                    FAULTS=all: how late the client library alone is too
# make scale       500 hosts behind a gateway, with 5,000 messages a second, and 1,000 sessions on one: prints a table (five minutes);
#                    SCALE=small: a tenth of it, in a minute; SCALE_ARGS='everywhere --write': one part, into docs/measured.md
# make test-mcp    `tmuxctl mcp`, and independent clients of it, from npm and PyPI: tests/mcp_clients/README.md
# make test-http   `tmuxctl serve`: its callers, and schemathesis over its OpenAPI document
# make test-web    the page of `tmuxctl serve` as a person uses it: headless Chromium, by playwright
# make test-tmux TMUX_BINARY=PATH   the tests that drive tmux, on another tmux
# make states   play real programs whose state is known, and score what is said of it (six minutes); STATES_ARGS=--over-ssh: on a
#                 machine behind sshd; STATES_ARGS=--load: beside busy loops, and what watch, the server, ls and wait tell (a quarter
#                 of an hour)
# make coverage   which lines and branches `make test`, test-rest, test-library and test-mcp reach; fails below a floor.
#                 COVERAGE_ARGS=tests/reading: what some reach
# make mutants    which small changes of reading/ and terminal/input no test notices (hours); SAMPLE=50: of 50 in each module;
#                 MUTANTS='tmuxctl.reading.text.echo*': of some
# make man      the manual pages, in build/man; an installation has them
# make site     the pages as a site with search, in build/site; every link of it is followed
# make cast     play what README shows at a glance, and record it
# make pictures the screen of top, and the diagrams, in docs/pictures
# make compare  beside tmux, libtmux and pexpect at the same jobs: fills docs/comparison.md (five minutes)
# make soak     turns for half an hour: tmux's memory must not grow by them; SOAK_ARGS='5 --sessions 40 --spawned --tmux PATH'
# make chaos    sessions of three machines (local, ssh, gateway) while random faults are made, each outcome judged: a minute;
#                 SECONDS=3600 SEED=25 CHAOS_LOG=FILE; REPLAY=FILE: with the schedule of that log
# make soak-http  callers of the HTTP server for half an hour: no event may be lost, nor its memory grow
# make web-assets   what the page of `tmuxctl serve` takes from npm: xterm.js and preact, checked against the list of what they are
# make dev | check | docs | bench | measure | dist | clean

PYTHON ?= python3
# tests start thousands of Pythons, and pytest rewrites each file of tests: compiled once, whatever the caller prefers
unexport PYTHONDONTWRITEBYTECODE
# what a release is tried with: the system's own Python
DIST_PYTHON ?= /usr/bin/python3
VENV ?= .venv
# where the files of a release will be
URL ?= @URL@
# where `make install` puts the command, its manual pages and its completion
PREFIX ?= $(HOME)/.local
# tests wait more than they compute; a worker that has none left takes over from another
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 3)))
PYTEST_ARGS ?= -n $(WORKERS) --dist worksteal
FAULTS ?= all
SSH ?= all
ELSEWHERE ?= all
TMUX_BINARY ?=
# over memory no tmux is asked
TMUX_ARGS ?= -n $(WORKERS) -k 'not memory' tests/control tests/faults tests/terminal tests/transport
COVERAGE_ARGS ?=
MUTANTS ?=
SAMPLE ?=
STATES_ARGS ?=
AGENTS_ARGS ?=
WEB_ASSETS_ARGS ?=
SOAK_ARGS ?= 30
SCALE ?= full
SCALE_ARGS ?=
KILLS ?= 25
SECONDS ?= 60
SEED ?=
CHAOS_LOG ?= build/chaos.jsonl
REPLAY ?=

BIN := $(VENV)/bin
SETUP := tools/setup.sh
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
REFERENCE := $(BIN)/python -m tmuxctl.surfaces.cli.manual.reference
PROFILE_PAGE := $(BIN)/python -m tools.profile_page
LIBRARY_PAGE := $(BIN)/python -m tools.library_page

# program, or program=Debian package; after `--`: without these some tests are skipped
HERO_NEEDS := tmux sqlite3
TEST_NEEDS := tmux -- bash busybox bwrap=bubblewrap dash dialog fish gcc gdb git jq less make man=man-db mksh nano node=nodejs \
	ps=procps sqlite3 vim zsh
PROGRAM_NEEDS := dpkg-deb=dpkg fzf gpg htop irb=ruby lldb lua5.4 mariadb=mariadb-client mariadbd=mariadb-server more=util-linux \
	passwd pg_createcluster=postgresql psql=postgresql-client redis-cli=redis-tools redis-server ssh=openssh-client \
	sshd=openssh-server su=util-linux sudo top=procps vim.tiny=vim-tiny whiptail
# not every distribution has it, and apt-get installs all of a list or nothing
BROWSER_NEEDS := -- chromium-headless-shell npm
PLAYER_PACKAGE := asciinema-player@3.18.0
STATES_NEEDS := tmux -- calcurse cfdisk=fdisk cryptsetup=cryptsetup-bin curl dash dialog emacs=emacs-nox expect fish gawk gdb git gpg \
	htop irb=ruby irssi jed joe kak=kakoune less lftp lua5.4 lynx make man=man-db mc mg micro multitail nano ne neomutt nnn node=nodejs \
	nvim=neovim openssl parallel parted pg_createcluster=postgresql pinentry-curses pinentry-tty ps=procps psql=postgresql-client \
	redis-cli=redis-tools redis-server rsync script=bsdutils sqlite3 ssh=openssh-client sshd=openssh-server sudo task=taskwarrior \
	telnet tig units vim w3m whiptail zsh
AGENTS_NEEDS := tmux -- bash git ip=iproute2 node=nodejs npm unshare=util-linux
SSH_NEEDS := ssh=openssh-client sshd=openssh-server ssh-keygen=openssh-client
MACHINES_NEEDS := tmux -- bash bwrap=bubblewrap $(SSH_NEEDS)
LIBRARY_NEEDS := tmux -- bash node=nodejs npm sqlite3
PYRIGHT_PACKAGE := pyright@1.1.408
MCP_NEEDS := tmux -- node=nodejs npm
MCP_PACKAGES := @modelcontextprotocol/sdk@1.32.2
PTYAI_PACKAGE := ptyai@0.1.1
# what the page of `tmuxctl serve` is made with; preact, which htm brings, for its licence alone
WEB_PACKAGES := @xterm/xterm@6.0.0 @xterm/addon-fit@0.11.0 @xterm/addon-search@0.16.0 @xterm/addon-unicode11@0.9.0 htm@3.1.1 preact@10.27.2
COMPARE_NEEDS := tmux -- gdb pg_createcluster=postgresql psql=postgresql-client sqlite3
HTTP_NEEDS := tmux -- bash bwrap=bubblewrap curl jq openssl
# a browser, and what tells whether a page can be used by everybody; neither is shipped
WEB_NEEDS := -- bash bwrap=bubblewrap chromium-headless-shell npm
AXE_PACKAGE := axe-core@4.14.1
SCHEMATHESIS := 'schemathesis>=4.32,<5'
# what `make quick` runs, and what `make test` leaves to other targets
QUICK_TESTS := tests/reading tests/terminal/test_keys.py tests/terminal/test_paste.py \
	$(patsubst %,tests/test_%.py,config model operations value vocabulary)
SNIPPET_TESTS := tests/docs tests/examples
BROWSER_TESTS := tests/terminal/test_pictures.py
LIBRARY_TESTS := tests/library tests/typing
MCP_TESTS := tests/mcp_clients tests/surfaces/mcp
HTTP_TESTS := tests/surfaces/server tests/surfaces/web
WEB_TESTS := tests/web
MACHINES_TESTS := tests/machines
TEAMS_TESTS := tests/fleet
GATEWAY_TESTS := tests/sealed tests/rpc tests/gateway tests/tools/test_judge.py
# plugins, turns of programs that draw their answers, what is installed, sessions of earlier releases
REST_TESTS := tests/plugins \
	$(patsubst %,tests/control/test_%.py,submitting agent_turns agent_answers candidates chats) \
	tests/upgrade $(patsubst %,tests/test_%.py,packaging recipes install release)
OTHER_TESTS := $(SNIPPET_TESTS) $(BROWSER_TESTS) $(MCP_TESTS) $(HTTP_TESTS) $(WEB_TESTS) $(LIBRARY_TESTS) $(MACHINES_TESTS) $(TEAMS_TESTS) $(GATEWAY_TESTS) $(REST_TESTS) tests/golden tests/plays tests/faults
CORE_TESTS := $(OTHER_TESTS:%=--ignore=%) -m 'not pipe'
COVERED_TESTS := $(filter-out $(patsubst %,--ignore=%,$(REST_TESTS) $(LIBRARY_TESTS) $(MCP_TESTS) $(HTTP_TESTS)),$(CORE_TESTS))
SSH_TESTS := --over-ssh -m $(if $(filter core,$(SSH)),'ssh and pipe',ssh) tests/control tests/plugins tests/transport
ELSEWHERE_TESTS := --elsewhere=$(if $(filter socket,$(ELSEWHERE)),socket,gateway) \
	-m $(if $(filter core,$(ELSEWHERE)),'elsewhere and pipe',elsewhere) tests/control
PIPE_TESTS := $(OTHER_TESTS:%=--ignore=%) -m pipe
# tools for a release and for what runs on GitHub, in an environment of their own
RAILS_TOOLS := 'zizmor>=1.32' 'cyclonedx-bom>=7'
STATES_LIBRARIES := ipython textual tqdm prompt_toolkit questionary InquirerPy rich urwid click

.PHONY: all hero dev quick test test-pipe test-ssh test-elsewhere test-rest test-library test-machines test-teams test-gateway scale snippets plays browsers golden test-faults test-tmux test-mcp test-http test-web test-agents test-agents-full check coverage mutants docs man site cast pictures bench compare measure soak soak-http chaos states dist clean
.PHONY: web-assets check-workflows release deb install uninstall
.DEFAULT_GOAL := all

all:
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory test

hero:
	@$(SETUP) system $(HERO_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.base
	@PATH="$(abspath $(BIN)):$$PATH" sh tools/hero.sh

dev: $(VENV)/.dev
	@echo "-- ready: . $(BIN)/activate"

quick: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 $(QUICK_TESTS)

test:
	@$(SETUP) system $(TEST_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(CORE_TESTS)

test-pipe:
	@$(SETUP) system $(TEST_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(PIPE_TESTS)

test-ssh:
	@$(SETUP) system $(TEST_NEEDS) $(SSH_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(SSH_TESTS)

test-elsewhere:
	@$(SETUP) system $(TEST_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(ELSEWHERE_TESTS)

snippets:
	@$(SETUP) system $(TEST_NEEDS) $(PROGRAM_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(SNIPPET_TESTS)

plays:
	@$(SETUP) system $(TEST_NEEDS) $(PROGRAM_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) tests/plays

browsers:
	@$(SETUP) system tmux $(BROWSER_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	@$(SETUP) npm "$(VENV)/player-node" $(PLAYER_PACKAGE)
	$(BIN)/python -m pytest $(BROWSER_TESTS)

test-faults:
	@$(SETUP) system $(TEST_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	FAULTS=$(FAULTS) $(BIN)/python -m pytest $(PYTEST_ARGS) tests/faults

test-tmux: $(VENV)/.dev
	@"$(TMUX_BINARY)" -V || { echo "which tmux? make test-tmux TMUX_BINARY=/path/to/tmux" >&2; exit 2; }
	@folder=$$(mktemp -d) && trap 'rm -r "$$folder"' EXIT && chmod 755 "$$folder" && \
	ln -s "$(abspath $(TMUX_BINARY))" "$$folder/tmux" && PATH="$$folder:$$PATH" $(BIN)/python -m pytest $(TMUX_ARGS)

golden:
	@$(SETUP) system $(TEST_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) tests/golden

test-rest:
	@$(SETUP) system $(TEST_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(REST_TESTS)

test-library:
	@$(SETUP) system $(LIBRARY_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	@$(SETUP) npm "$(VENV)/pyright-node" $(PYRIGHT_PACKAGE)
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(LIBRARY_TESTS)

test-teams:
	@$(SETUP) system $(TEST_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	TEAM_KILLS=$(KILLS) $(BIN)/python -m pytest $(PYTEST_ARGS) $(TEAMS_TESTS)

test-gateway:
	@$(SETUP) system $(TEST_NEEDS) ip=iproute2
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(GATEWAY_TESTS)

scale:
	@$(SETUP) system $(TEST_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m tools.scale $(SCALE) $(SCALE_ARGS)

test-machines:
	@$(SETUP) system $(MACHINES_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(MACHINES_TESTS)

test-mcp:
	@$(SETUP) system $(MCP_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	@$(SETUP) npm "$(VENV)/mcp-node" $(MCP_PACKAGES)
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(MCP_TESTS)

test-http:
	@$(SETUP) system $(HTTP_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(HTTP_TESTS)
	@$(MAKE) -s --no-print-directory $(VENV)/schemathesis/.made
	$(BIN)/python -m tests.surfaces.server.fuzz $(VENV)/schemathesis/bin/schemathesis --max-examples 20

test-web: $(VENV)/.page
	@$(SETUP) system tmux $(WEB_NEEDS)
	@$(MAKE) -s --no-print-directory web-assets
	@$(SETUP) npm "$(VENV)/axe-node" $(AXE_PACKAGE)
	$(BIN)/python -m pytest -n 2 $(WEB_TESTS)

test-agents: $(VENV)/.page
	@$(SETUP) system $(AGENTS_NEEDS) $(WEB_NEEDS:--=)
	@$(MAKE) -s --no-print-directory web-assets
	$(BIN)/python -m tools.agents.skill
	$(BIN)/python -m tools.agents.mcp
	$(BIN)/python -m tools.agents.agentpty
	$(BIN)/python -m tools.agents.page
	$(BIN)/python -m tools.agents $(AGENTS_ARGS)

test-agents-full: $(VENV)/.dev
	@$(SETUP) system $(AGENTS_NEEDS)
	$(BIN)/python -m tools.agents --full $(AGENTS_ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(REFERENCE) --check
	$(PROFILE_PAGE) --check
	$(LIBRARY_PAGE) --check
	$(BIN)/python -m tools.make_aio --check
	$(BIN)/python -m tools.commit_message
	$(BIN)/python -m pytest tests/test_layers.py

coverage: $(VENV)/.coverage
	@rm -rf build/coverage && mkdir -p build/coverage
	@# what was reached is told of tests that failed, too
	@status=0; $(BIN)/coverage run -m pytest $(PYTEST_ARGS) $(or $(COVERAGE_ARGS),$(COVERED_TESTS)) || status=$$?; \
	$(BIN)/coverage combine -q && $(BIN)/coverage report $(if $(COVERAGE_ARGS),--fail-under=0) && exit $$status

mutants: $(VENV)/.mutants
	nice -n 19 $(BIN)/python -m tools.mutants $(if $(SAMPLE),--sample $(SAMPLE)) $(MUTANTS)

check-workflows: $(VENV)/rails/.made
	$(VENV)/rails/bin/zizmor --offline --no-progress --persona pedantic .github/workflows

docs: $(VENV)/.dev
	$(REFERENCE)
	$(PROFILE_PAGE)
	$(LIBRARY_PAGE)
	$(BIN)/python -m tools.make_aio

man: $(VENV)/.base
	$(BIN)/python -m tmuxctl.surfaces.cli.manual.man build/man
	@echo "-- read one: man -l build/man/tmuxctl-ask.1"

site: $(VENV)/.site
	$(BIN)/python -m tools.build_site

cast: $(VENV)/.base
	@$(SETUP) system $(HERO_NEEDS)
	$(BIN)/python -m tools.cast

pictures: $(VENV)/.base
	@$(SETUP) system $(HERO_NEEDS) vim
	$(BIN)/python -m tools.pictures

bench: $(VENV)/.dev
	$(BIN)/python bench/bench.py

compare: $(VENV)/.dev
	@$(SETUP) system $(COMPARE_NEEDS)
	$(BIN)/python bench/compare.py

measure: $(VENV)/.dev
	@# compiled against the headers of Debian's node, as others cannot be fetched everywhere; without it one row is left out
	-@npm_config_nodedir=/usr $(SETUP) npm "$(VENV)/ptyai-node" $(PTYAI_PACKAGE)
	$(BIN)/python bench/measure.py

soak: $(VENV)/.dev
	@$(SETUP) system tmux
	$(BIN)/python bench/soak.py $(SOAK_ARGS)

soak-http: $(VENV)/.dev
	@$(SETUP) system tmux
	$(BIN)/python bench/http_soak.py $(SOAK_ARGS)

chaos:
	@$(SETUP) system $(MACHINES_NEEDS) unshare=util-linux
	@$(MAKE) -s --no-print-directory $(VENV)/.dev
	$(BIN)/python -m tools.chaos --seconds "$(SECONDS)" --log "$(CHAOS_LOG)" \
		$(if $(SEED),--seed "$(SEED)") $(if $(REPLAY),--replay "$(REPLAY)")

states: $(VENV)/.dev
	@$(SETUP) system $(STATES_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/states/.made
	$(BIN)/python -m tools.states $(STATES_ARGS)
	$(if $(STATES_ARGS),,$(BIN)/python -m tools.states.silent)

web-assets: $(VENV)/.made
	@$(SETUP) npm "$(VENV)/web-node" $(WEB_PACKAGES)
	$(BIN)/python tools/web_assets.py "$(VENV)/web-node" $(WEB_ASSETS_ARGS)

dist: $(VENV)/.dev
	@$(SETUP) system tmux -- npm
	@$(MAKE) -s --no-print-directory web-assets
	@$(SETUP) ensurepip $(DIST_PYTHON)
	$(BIN)/python tools/dist.py --python $(DIST_PYTHON)

release: $(VENV)/.dev $(VENV)/rails/.made
	@test -n "$(VERSION)" || { echo "which version? make release VERSION=0.2.0" >&2; exit 2; }
	@$(SETUP) system tmux -- npm
	@$(MAKE) -s --no-print-directory web-assets
	@$(SETUP) ensurepip $(DIST_PYTHON)
	$(BIN)/python -m tools.release "$(VERSION)" --python $(DIST_PYTHON) --url "$(URL)" \
		--bom "$(abspath $(VENV))/rails/bin/cyclonedx-py"

deb: $(VENV)/.dev
	sh packaging/debian/build.sh $(BIN)/python dist
	@if command -v lintian >/dev/null; then lintian --allow-root --fail-on error dist/*.deb; else echo "-- no lintian here: not linted"; fi

install uninstall: $(VENV)/.dev
	@$(BIN)/python -m tools.install $@ --prefix "$(PREFIX)"

clean:
	rm -rf build dist mutants .pytest_cache .mypy_cache .ruff_cache
	rm -f $(VENV)/.made $(VENV)/.base $(VENV)/.dev $(VENV)/.coverage $(VENV)/.mutants $(VENV)/.page $(VENV)/.site
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(SETUP) venv "$(PYTHON)" "$(VENV)"
	@# the commands that earlier ones install load `re` first: 5 ms of 25
	@$(PIP) install 'pip>=25.1'
	@touch $@

$(VENV)/.base: $(VENV)/.made pyproject.toml
	@echo "-- installing tmuxctl into $(VENV) (some ten seconds)"
	@$(PIP) install -e .
	@$(BIN)/python -m compileall -q tmuxctl plugins
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	@echo "-- installing tmuxctl, its tests' and developers' tools into $(VENV) (half a minute)"
	@$(PIP) install -e '.[test,dev]'
	@$(BIN)/python -m compileall -q tmuxctl plugins
	@# else each worker of the first run compiles all files of tests for itself
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || :
	@touch $(VENV)/.base $@

$(VENV)/.site: $(VENV)/.base
	@echo "-- installing what builds the site into $(VENV) (some ten seconds)"
	@$(PIP) install -e '.[docs]'
	@touch $@

$(VENV)/.coverage $(VENV)/.mutants $(VENV)/.page: $(VENV)/.dev
	@$(PIP) install -e '.[$(patsubst .%,%,$(notdir $@))]'

$(VENV)/rails/.made: $(VENV)/.made
	@$(SETUP) venv "$(PYTHON)" "$(VENV)/rails"
	@$(VENV)/rails/bin/python -m pip --disable-pip-version-check -qq install $(RAILS_TOOLS)
	@touch $@

$(VENV)/schemathesis/.made: $(VENV)/.made
	@$(SETUP) venv "$(PYTHON)" "$(VENV)/schemathesis"
	@$(VENV)/schemathesis/bin/python -m pip --disable-pip-version-check -qq install $(SCHEMATHESIS)
	@touch $@

# scenarios are played in the system's own Python, which an ordinary user can reach too
$(VENV)/states/.made: $(VENV)/.made
	@$(SETUP) venv "$(DIST_PYTHON)" "$(VENV)/states"
	@$(VENV)/states/bin/python -m pip --disable-pip-version-check -qq install -e . $(STATES_LIBRARIES)
	@touch $@
