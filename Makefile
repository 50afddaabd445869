# `make help` prints the targets of this file.

PYTHON ?= python3
VENV ?= .venv
# some suites of `nightly`, `weekly` or `bench`: `make help` names them
SUITES ?=
# arguments for pytest, or for the command of a suite
ARGS ?=
# what a release is tried with: the system's own Python
DIST_PYTHON ?= /usr/bin/python3
# where the files of a release will be
URL ?= @URL@
# where `make install` puts the command, its manual pages and its completion
PREFIX ?= $(HOME)/.local
# tests start thousands of Pythons, and pytest rewrites each file of tests: compiled once, whatever the caller prefers
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
SETUP := tools/setup.sh
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
HERO_NEEDS := tmux sqlite3
# what the page of `tmuxctl serve` is made with; preact, which htm brings, for its licence alone
WEB_PACKAGES := @xterm/xterm@6.0.0 @xterm/addon-fit@0.11.0 @xterm/addon-search@0.16.0 @xterm/addon-unicode11@0.9.0 htm@3.1.1 preact@10.27.2
# tools for a release and for what runs on GitHub, in an environment of their own
RAILS_TOOLS := 'zizmor>=1.32' 'cyclonedx-bom>=7'
SCHEMATHESIS := 'schemathesis>=4.32,<5'
STATES_LIBRARIES := ipython textual tqdm prompt_toolkit questionary InquirerPy rich urwid click

.PHONY: all help hero dev quick test check docs nightly weekly bench dist man site cast pictures check-workflows web-assets
.PHONY: release deb install uninstall clean
.DEFAULT_GOAL := all

all: ## check and test: run before you push
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory test

help: ## these targets
	@sed -n 's/^\([a-z -]*\):.*## /\1\t/p' Makefile | expand -t 16
	@if [ -e $(VENV)/.dev ]; then $(BIN)/python -m tools.suites list; fi

hero: ## a demonstration: sqlite3 and Python driven in real sessions
	@$(SETUP) system $(HERO_NEEDS)
	@$(MAKE) -s --no-print-directory $(VENV)/.base
	@PATH="$(abspath $(BIN)):$$PATH" sh tools/hero.sh

dev: $(VENV)/.dev ## an editable install with the tools, in .venv
	@echo "-- ready: . $(BIN)/activate"

quick: $(VENV)/.dev ## the pure tests, in seconds: no tmux, no program
	$(BIN)/python -m tools.suites quick -- $(ARGS)

test: $(VENV)/.dev ## the core on real tmux, without its long tests; ARGS='-k wait': some of it
	$(BIN)/python -m tools.suites test -- $(ARGS)

check: $(VENV)/.dev ## format, lint, types, generated pages, who imports whom, messages of commits
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tmuxctl.surfaces.cli.manual.reference --check
	$(BIN)/python -m tools.profile_page --check
	$(BIN)/python -m tools.library_page --check
	$(BIN)/python -m tools.make_aio --check
	$(BIN)/python -m tools.commit_message
	$(BIN)/python -m pytest tests/test_layers.py tests/test_house.py

docs: $(VENV)/.dev ## write the pages and modules that are generated from the code
	$(BIN)/python -m tmuxctl.surfaces.cli.manual.reference
	$(BIN)/python -m tools.profile_page
	$(BIN)/python -m tools.library_page
	$(BIN)/python -m tools.make_aio

nightly: $(VENV)/.dev ## every suite whole (hours); SUITES='gateway web': some. What is flaky is in build/flaky.json
	$(BIN)/python -m tools.suites nightly $(SUITES) -- $(ARGS)

weekly: $(VENV)/.dev ## what takes hours: SUITES=states ARGS=--load
	$(BIN)/python -m tools.suites weekly $(SUITES) -- $(ARGS)

bench: $(VENV)/.dev ## measure what docs/measured.md says; SUITES=compare: docs/comparison.md
	$(BIN)/python -m tools.suites bench $(SUITES) -- $(ARGS)

dist: $(VENV)/.dev ## wheel, sdist and one-file form, each tried with the system's own Python
	@$(SETUP) system tmux -- npm
	@$(MAKE) -s --no-print-directory web-assets
	@$(SETUP) ensurepip $(DIST_PYTHON)
	$(BIN)/python tools/dist.py --python $(DIST_PYTHON)

man: $(VENV)/.base ## the manual pages, in build/man
	$(BIN)/python -m tmuxctl.surfaces.cli.manual.man build/man
	@echo "-- read one: man -l build/man/tmuxctl-ask.1"

site: $(VENV)/.site ## the pages as a site with search, in build/site; fails at a dead link
	$(BIN)/python -m tools.build_site

cast: $(VENV)/.base ## play what README shows at a glance, and record it
	@$(SETUP) system $(HERO_NEEDS)
	$(BIN)/python -m tools.cast

pictures: $(VENV)/.base ## the screen of top, and the diagrams, in docs/pictures
	@$(SETUP) system $(HERO_NEEDS) vim
	$(BIN)/python -m tools.pictures

check-workflows: $(VENV)/rails/.made ## zizmor over .github/workflows
	$(VENV)/rails/bin/zizmor --offline --no-progress --persona pedantic .github/workflows

web-assets: $(VENV)/.made ## what the page of `tmuxctl serve` takes from npm, checked against the list of what it is
	@$(SETUP) npm "$(VENV)/web-node" $(WEB_PACKAGES)
	$(BIN)/python tools/web_assets.py "$(VENV)/web-node" $(ARGS)

release: $(VENV)/.dev $(VENV)/rails/.made ## VERSION=0.2.0: changelog, the three forms, bill of materials, checksums, recipes; publishes nothing
	@test -n "$(VERSION)" || { echo "which version? make release VERSION=0.2.0" >&2; exit 2; }
	@$(SETUP) system tmux -- npm
	@$(MAKE) -s --no-print-directory web-assets
	@$(SETUP) ensurepip $(DIST_PYTHON)
	$(BIN)/python -m tools.release "$(VERSION)" --python $(DIST_PYTHON) --url "$(URL)" \
		--bom "$(abspath $(VENV))/rails/bin/cyclonedx-py"

deb: $(VENV)/.dev ## a Debian package, in dist/
	sh packaging/debian/build.sh $(BIN)/python dist
	@if command -v lintian >/dev/null; then lintian --allow-root --fail-on error dist/*.deb; else echo "-- no lintian here: not linted"; fi

install uninstall: $(VENV)/.dev ## the one-file form, manual pages and completion, into ~/.local
	@$(BIN)/python -m tools.install $@ --prefix "$(PREFIX)"

clean: ## remove what was built
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
