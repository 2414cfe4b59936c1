# `make` alone lists the commands. Everything runs in .venv, which is created on first use.

# The system's own Python, if it is new enough: distributions build it with profile-guided optimisation, which makes
# everything a fifth cheaper (docs/performance.md).
PYTHON ?= $(shell /usr/bin/python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && echo /usr/bin/python3 || echo python3)
SEEDS  ?= 500
MINUTES ?= 0
SECONDS ?= 60
TYPESCRIPT := 7.0.2

VENV  := .venv
BIN   := $(VENV)/bin
PY    := $(BIN)/python
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: attacks bench-cluster faults help setup run demo demo-picture chat-picture ops-picture live docs run-cluster engines engines-down engine-parts test check format sim powercuts kills claims verify teeth bench bench-plot bench-heart bench-bytecodes bench-seal bench-store bench-ops soak fuzz strace promtool browser page-types clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  Numbers can be given: make sim SEEDS=50, make kills N=10, make verify MINUTES=10, make run ARGS='--port 9000'"

setup: $(READY) ## create .venv with the pinned tools and this package (the other commands do this when needed)

run: $(READY) ## run a server on 127.0.0.1:8640, and print what to try next
	@$(BIN)/nightmail serve $(ARGS)

demo: $(READY) ## watch four devices, a group, and a server that is killed
	@$(BIN)/nightmail demo

demo-picture: $(READY) ## draw the demo for the README
	@$(PY) -m pictures.demo docs/demo.svg

chat-picture: $(READY) ## draw the chat for the README, from a real conversation
	@$(PY) -m pictures.chat docs/chat.svg

ops-picture: $(READY) browser ## draw the operations page for the README, from a real server with real traffic
	@$(PY) -m pictures.ops docs/ops.png

live: $(READY) ## watch a simulation
	@$(PY) -m sim.runs.live

docs: $(READY) ## write the tables of docs/ that follow from the code
	@$(PY) -m docs.tables

run-cluster: $(READY) ## run three nodes on one Kafka and one Cassandra, on loopback, until Ctrl-C
	@nice -n 5 $(PY) -m engines.cluster

engines: $(READY) ## start Kafka, Cassandra, Redis and S3 on loopback, one of each, and print where they serve
	@$(PY) -m engines up

engines-down: $(READY) ## end those engines and remove their data
	@$(PY) -m engines down

test: $(READY) strace promtool browser engine-parts ## tests, then a short campaign of each kind
	@echo "== tests"
	@$(PY) -m pytest -n auto --maxprocesses 4 || { \
	  echo "== what failed runs once more, alone: a test that passes now depends on a free machine, and is to be mended" >&2; \
	  $(PY) -m pytest --last-failed --last-failed-no-failures none; }
	@echo "== 25 simulated worlds, one node"
	@$(PY) -m sim.runs.campaign --seeds 25 --mode node
	@echo "== 25 simulated worlds, cluster"
	@$(PY) -m sim.runs.campaign --seeds 25 --mode cluster
	@echo "== 500 power cuts"
	@$(PY) -m sim.runs.powercuts --cuts 500
	@echo "== 20,000 claims of keys"
	@$(PY) -m sim.runs.claims --claims 20000
	@echo "== 5 seconds of chaos on a real server"
	@$(BIN)/nightmail verify --seconds 5 --seed 1
	@echo "== 2 kills of the real process"
	@$(PY) -m sim.runs.kills --kills 2
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
	@$(MAKE) --no-print-directory page-types

format: $(READY) ## format the code and fix what ruff can fix
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

sim: $(READY) ## SEEDS simulated worlds in each mode
	@$(PY) -m sim.runs.campaign --seeds $(SEEDS) --mode node
	@$(PY) -m sim.runs.campaign --seeds $(SEEDS) --mode cluster
	@$(PY) -m sim.runs.groups --seeds $(SEEDS) --mode node
	@$(PY) -m sim.runs.groups --seeds $(SEEDS) --mode cluster
	@$(PY) -m sim.runs.schedules --seeds $(SEEDS) --mode node
	@$(PY) -m sim.runs.schedules --seeds $(SEEDS) --mode cluster
	@$(PY) -m sim.runs.pushes --seeds $(SEEDS) --mode node
	@$(PY) -m sim.runs.pushes --seeds $(SEEDS) --mode cluster
	@$(PY) -m sim.runs.media --seeds $(SEEDS)
	@$(PY) -m sim.runs.group_clients --seeds $(SEEDS) --mode node
	@$(PY) -m sim.runs.group_clients --seeds $(SEEDS) --mode cluster
	@$(PY) -m sim.runs.schedule_clients --seeds $(SEEDS) --mode node
	@$(PY) -m sim.runs.schedule_clients --seeds $(SEEDS) --mode cluster

powercuts: $(READY) ## N power cuts over the real log and the real rows
	@$(PY) -m sim.runs.powercuts --cuts $(or $(N),20000)

kills: $(READY) ## N kills of the real server process: at any instant, at an ack, inside a checkpoint
	@$(PY) -m sim.runs.kills --kills $(or $(N),50)

faults: $(READY) engine-parts ## N faults of three real nodes on a real Kafka and Cassandra, judged by what clients saw; SEED=1
	@nice -n 5 $(PY) -m engines.faults --faults $(or $(N),50) --seed $(or $(SEED),1)

claims: $(READY) ## N claims of keys by 64 requesters at once, with crashes: no key is given twice
	@$(PY) -m sim.runs.claims --claims $(or $(N),1000000)

verify: $(READY) ## chaos on a real server for MINUTES (default 1), judged by what clients saw
	@$(BIN)/nightmail verify --minutes $(MINUTES) $(ARGS)

attacks: $(READY) ## hostile clients against a real server, each while a calm pair talks; some: ONLY=looks,handles
	@$(PY) -m attacks $(if $(ONLY),--only $(ONLY))

teeth: $(READY) ## plant known bugs, and check that each is caught
	@$(PY) -m sim.runs.teeth

bench: $(READY) ## cost of a message in a whole server; some of it: SCENARIOS=busy,idle, all sizes: BENCH=--full
	@$(PY) -m bench.node $(if $(SCENARIOS),--scenarios $(SCENARIOS)) $(BENCH)

bench-cluster: $(READY) engine-parts ## two nodes on a real Kafka and Cassandra against a node alone: latency, and CPU per message
	@$(PY) -m bench.cluster

bench-plot: $(READY) ## draw the newest recorded results into docs/
	@$(PY) -m bench.node.plot

bench-heart: $(READY) ## cost of the fold, the log and the checkpoint; as in bench: SCENARIOS=busy, BENCH=--full
	@$(PY) -m bench.heart $(if $(SCENARIOS),--scenarios $(SCENARIOS)) $(BENCH)

bench-bytecodes: $(READY) ## bytecodes per message, which do not depend on the machine
	@$(PY) -m bench.bytecodes

bench-seal: $(READY) ## cost of sealing and opening on a client
	@$(PY) -m bench.seal

bench-store: $(READY) ## cost of the sealed store on a client: messages, history, search
	@$(PY) -m bench.store

bench-ops: $(READY) browser ## what an open operations page costs the server, with 10,000 dead letters and a week of history
	@$(PY) -m bench.ops_page

soak: $(READY) ## simulated worlds for MINUTES, or until interrupted
	@$(PY) -m sim.runs.soak --minutes $(MINUTES)

fuzz: $(READY) ## for SECONDS, coverage-guided fuzzing of everything that reads a peer's bytes
	@$(PY) -c 'import atheris' 2>/dev/null || $(PY) -m pip install --quiet --disable-pip-version-check 'atheris==3.0.0'
	@$(PY) -m tests.fuzz --seconds $(SECONDS)

clean: ## remove .venv and everything that the tools created
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find src sim bench attacks pictures engines tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The suite that watches real system calls needs strace: a superuser gets it, others are told what is not run.
strace:
	@command -v strace >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "== installing strace, to watch the system calls of a real server"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq strace; \
	  fi; }
	@command -v strace >/dev/null || echo "== NOT RUN: system calls are not watched, because strace is missing" \
	  "(sudo apt-get install strace)" >&2

# The suite that has Prometheus judge the alerts needs its promtool: taken out of Debian's package, so that no service is
# installed. Others are told what is not run.
promtool: $(READY)
	@command -v promtool >/dev/null || [ -x $(BIN)/promtool ] || { \
	  if command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then \
	    echo "== unpacking promtool, to judge the alerts as Prometheus does"; \
	    rm -rf $(VENV)/promtool && mkdir -p $(VENV)/promtool && cd $(VENV)/promtool && \
	    { apt-get download -qq prometheus 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && \
	      apt-get download -qq prometheus 2>/dev/null; }; } && \
	    dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool && mv usr/bin/promtool ../bin/; \
	    cd - >/dev/null; rm -rf $(VENV)/promtool; \
	  fi; }
	@command -v promtool >/dev/null || [ -x $(BIN)/promtool ] || echo "== NOT RUN: Prometheus does not judge the alerts," \
	  "because promtool is missing (sudo apt-get install prometheus)" >&2

# The suite that opens the operations page needs a browser: a superuser gets it, others are told what is not run.
browser:
	@command -v chromium >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "== installing chromium, to open the operations page"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null || true; \
	  fi; }
	@command -v chromium >/dev/null || echo "== NOT RUN: the operations page is not opened in a browser, because chromium is" \
	  "missing (sudo apt-get install chromium)" >&2

# The suites on real engines need Java, Redis and jars: a superuser gets them, others are told what is not run.
engine-parts: $(READY)
	@{ command -v java && command -v mvn && command -v redis-server; } >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "== installing Java, Maven and Redis, to run the suites on real engines"; \
	    apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	      openjdk-17-jre-headless maven redis-server >/dev/null || true; \
	  fi; }
	@command -v redis-server >/dev/null || echo "== NOT RUN: nothing is tried on a real Redis, because redis-server is missing" \
	  "(sudo apt-get install redis-server)" >&2
	@{ command -v java >/dev/null && $(PY) -m engines fetch; } || echo "== NOT RUN: nothing is tried on a real Kafka or" \
	  "Cassandra, because Java or their jars are missing (sudo apt-get install openjdk-17-jre-headless maven)" >&2

# The types of the operations page, by the comments in its scripts. The page itself needs no compiler.
TSC := $(VENV)/tsc/node_modules/.bin/tsc
page-types: $(READY)
	@[ -x $(TSC) ] || ! command -v npm >/dev/null || { mkdir -p $(VENV)/tsc && npm install --silent --no-save --no-audit \
	  --no-fund --prefix $(VENV)/tsc typescript@$(TYPESCRIPT) >/dev/null 2>&1 || true; }
	@if [ -x $(TSC) ]; then echo "== types of the operations page"; $(TSC) -p src/nightmail/web/tsconfig.json; \
	else echo "== NOT RUN: the types of the operations page are not checked, because npm or its typescript is missing" >&2; fi

# A bare Debian has python3 without ensurepip: as root, install the missing package; otherwise say how.
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
	@echo "== setting up $(VENV) with $(PYTHON)"
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@! $(PY) -m pip show --quiet apsw 2>/dev/null || $(PY) -m pip uninstall --quiet --yes apsw  # same module, older name
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
