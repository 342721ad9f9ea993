# `make` alone lists the targets. Python 3.11 or newer and make are all that `make run` needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CACHE ?= $(or $(REAL_PARTS_CACHE),$(HOME)/.cache/underhost)
ARGS ?=
# Tests mostly wait for brokers, servers and clocks: three files at a time keep two processors busy. Each has brokers of its own.
WORKERS ?= 3
# Images of containers often set this. Every command would then compile all that it imports, each time: two seconds of a processor.
export PYTHONDONTWRITEBYTECODE :=
.DEFAULT_GOAL := help
.PHONY: help setup run demo test parts check format types bench beside trust same parity docs up down stack-test manifests lock sbom audit clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(VENV)/.ready ## make .venv with the underhost command and the tools of the tests in it

# A stamp depends on its locked requirements and the packaging: a changed lock is installed at the next target. `run` and
# `demo` need the smaller lock only. Nothing is compiled ahead: the first start compiles what it imports, which is less.
define into_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "underhost needs Python 3.11 or newer (set PYTHON=python3.11)" >&2; exit 2; }
@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
@echo "installing the locked packages into $(VENV)"
@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements/$(1).txt
@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --no-build-isolation --editable . 2> $(VENV)/install.log || { cat $(VENV)/install.log >&2; exit 1; }
endef

$(VENV)/.run: requirements/run.txt pyproject.toml
	$(call into_venv,run)
	@touch $@

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	$(call into_venv,dev)
	@$(BIN)/python -m compileall -q schemas streams agents
	@touch $(VENV)/.run $@

run: $(VENV)/.run ## run the pipeline: the demo, or your own site with ARGS="--config FILE"
	@$(BIN)/underhost $(if $(strip $(ARGS)),run $(ARGS),demo)

demo: $(VENV)/.run ## the pipeline on the embedded default over a simulated site, with its story
	@$(BIN)/underhost demo $(ARGS)

test: setup ## all tests; those against real parts need Go, Maven and a JDK (required with CI=true)
	@bash tests/real/parts/build.sh "$(CACHE)" > $(VENV)/parts.log \
	  || { test "$(CI)" != true || exit 1; echo "without the real parts: their tests will be skipped"; }
	@REAL_PARTS_CACHE="$(CACHE)" $(BIN)/pytest -n $(WORKERS) --dist loadfile $(ARGS)

parts: ## build the real parts of the tests (Kafka, kube-apiserver, KWOK, vcsim) into the cache
	@bash tests/real/parts/build.sh "$(CACHE)"

check: setup types ## lint, formatting, types, import contracts, dead code and unused dependencies
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/vulture
	@$(BIN)/deptry --no-ansi agents schemas streams 2> $(VENV)/deptry.log || { cat $(VENV)/deptry.log >&2; exit 1; }
	@$(BIN)/yamllint --strict compose

types: setup # mypy cannot follow an editable install of mapped folders, so it reads a link tree (git-ignored)
	@mkdir -p build/ns/underhost
	@for folder in streams agents schemas; do ln -sfn ../../../$$folder build/ns/underhost/$$folder; done
	@MYPYPATH=build/ns $(BIN)/mypy -p underhost

format: setup ## rewrite the sources in the project's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: setup ## measure, and write docs/performance.md from it: ARGS=NAME or ARGS=all; alone it lists the benches
	@cd tests && ../$(BIN)/python -m bench.run $(ARGS)

beside: setup ## is this tree slower than another one, as ratios: ARGS="binder --against OTHER/.venv/bin/underhost"
	@cd tests && ../$(BIN)/python -m bench.beside $(ARGS)

trust: setup ## look for defects nobody thought of, half an hour at a time: ARGS=NAME; alone it lists the regimes
	@cd tests && ../$(BIN)/python -m trust.run $(ARGS)

same: setup ## compare every offline answer with another checkout: ARGS="--against OTHER/.venv/bin/python"
	@$(BIN)/python tests/oracle/same.py $(ARGS)

parity: setup ## compare the evaluator with the upstream scheduler's plugins (needs Go)
	@$(BIN)/python tests/oracle/parity.py $(ARGS)

docs: setup ## write docs/reference anew from the code
	@$(BIN)/python docs/generate.py

up: ## the compose stack; ARGS="--profile demo --profile extras" for more of it
	docker compose -f compose/compose.yaml $(ARGS) up --build

down: ## stop the compose stack
	docker compose -f compose/compose.yaml --profile demo --profile extras down

stack-test: setup ## run the compose stack for real, without a registry of images (root, docker.io, mmdebstrap)
	@bash tests/compose/stack.sh "$$(bash tests/real/parts/build.sh "$(CACHE)")" "$(CACHE)/stack"

manifests: ## write compose/kubernetes/underhost.yaml anew from the chart (needs helm 3)
	@bash compose/kubernetes/render.sh

lock: ## resolve the requirements again (needs uv)
	$(PYTHON) requirements/lock.py

sbom: setup ## the wheel, and its SBOM (CycloneDX) beside it, in dist/
	@$(BIN)/python requirements/sbom.py

audit: setup ## ask whether what is locked has known weaknesses (exit code 3: nobody answered)
	@$(BIN)/python requirements/audit.py $(ARGS)

clean: ## remove what the targets made, but not the cache of real parts
	rm -rf $(VENV) build dist *.egg-info
