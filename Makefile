# `make` alone lists what there is. Everything runs in .venv, which is made on first use.

PYTHON ?= python3
SEEDS  ?= 500
N      ?= 20000
MINUTES ?= 0
SECONDS ?= 60

VENV  := .venv
BIN   := $(VENV)/bin
PY    := $(BIN)/python
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup run test check format sim powercuts teeth bench bench-plot bench-heart soak fuzz clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  SEEDS=$(SEEDS) and N=$(N) can be given: make sim SEEDS=50, make powercuts N=1000"

setup: $(READY) ## make .venv with the pinned tools and this package (done by the others when needed)

run: $(READY) ## watch the simulated world at work, live
	@$(PY) -m sim.live

test: $(READY) ## tests, then a short campaign of each kind
	@echo "== tests"
	@$(PY) -m pytest
	@echo "== 25 simulated worlds, one node"
	@$(PY) -m sim.campaign --seeds 25 --mode node
	@echo "== 25 simulated worlds, cluster"
	@$(PY) -m sim.campaign --seeds 25 --mode cluster
	@echo "== 500 power cuts"
	@$(PY) -m sim.powercuts --cuts 500
	@echo "== all passed"

check: $(READY) ## format, lint, types, import rules
	@echo "== format"
	@$(BIN)/ruff format --check
	@echo "== lint"
	@$(BIN)/ruff check
	@echo "== types"
	@$(BIN)/basedpyright
	@echo "== import rules"
	@$(BIN)/lint-imports --no-logo

format: $(READY) ## put the code in form and mend what can be mended
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

sim: $(READY) ## SEEDS simulated worlds in each mode
	@$(PY) -m sim.campaign --seeds $(SEEDS) --mode node
	@$(PY) -m sim.campaign --seeds $(SEEDS) --mode cluster

powercuts: $(READY) ## N power cuts over the real log and the real rows
	@$(PY) -m sim.powercuts --cuts $(N)

teeth: $(READY) ## plant bugs, and see that each is caught
	@$(PY) -m sim.teeth

bench: $(READY) ## cost of a message in a whole server; some of it: SCENARIOS=busy,idle, all sizes: BENCH=--full
	@$(PY) -m bench.node $(if $(SCENARIOS),--scenarios $(SCENARIOS)) $(BENCH)

bench-plot: $(READY) ## draw the newest recorded results into docs/
	@$(PY) -m bench.node.plot

bench-heart: $(READY) ## cost of the fold, the log and the checkpoint
	@$(PY) -m bench.heart

soak: $(READY) ## simulated worlds for MINUTES, or until interrupted
	@$(PY) -m sim.soak --minutes $(MINUTES)

fuzz: $(READY) ## for SECONDS, everything that reads what a peer wrote, guided by coverage
	@$(PY) -c 'import atheris' 2>/dev/null || $(PY) -m pip install --quiet --disable-pip-version-check 'atheris==3.0.0'
	@$(PY) -m tests.fuzz --seconds $(SECONDS)

clean: ## remove .venv and everything the tools left behind
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find src sim bench tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A bare Debian has python3 without ensurepip: a superuser gets the missing package, others are told.
$(READY): pyproject.toml requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Nightmail needs Python 3.11 or newer as $(PYTHON); name another one with: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "== $(PYTHON) lacks venv: installing python3-venv"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv; \
	  else \
	    echo "$(PYTHON) cannot make virtual environments; on Debian or Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; \
	  fi; }
	@echo "== setting up $(VENV)"
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
