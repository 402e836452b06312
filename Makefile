# `make run` and `make test` do all set-up themselves: a virtual environment in .venv with pinned packages.
# Control-plane binaries are found, downloaded or built by scaletest on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev

.PHONY: help setup binaries run test test-unit test-e2e lint format docs bench pin clean

help: ## List the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(0 if sys.version_info >= (3, 11) else "scaletest needs Python 3.11 or later, and " + sys.executable + " is " + v + ": make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@echo "installing scaletest and what it needs into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(DEV_STAMP): $(STAMP)
	@echo "installing the tools for checks and tests into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev --editable ".[history]"
	@touch $@

setup: $(STAMP) ## Make the virtual environment

run: $(STAMP) ## Reproduce the outage of 11 December 2024 and print the report; SIZE=quick on a laptop
	$(BIN)/scaletest run openai-outage $(if $(SIZE),--size $(SIZE))

lint: $(DEV_STAMP) ## Formatting, lint, types, layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

test-unit: $(DEV_STAMP) ## Tests without a control plane
	$(BIN)/pytest -m "not e2e"

binaries: $(STAMP) ## Find, download or build the control plane's programs
	$(BIN)/scaletest binaries fetch

test-e2e: $(DEV_STAMP) binaries ## Tests on real control planes
	$(BIN)/pytest -m e2e

test: lint binaries ## All checks and all tests, three at a time: most wait for a control plane
	$(BIN)/pytest --numprocesses 3 --dist loadscope --no-loadscope-reorder --durations 15

format: $(DEV_STAMP) ## Format the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

docs: $(DEV_STAMP) ## Regenerate the generated pages of the guide
	$(BIN)/python -m scaletest.profile.reference
	$(BIN)/python -m scaletest.report.json_report

pin: $(DEV_STAMP) ## Pin the packages installed now
	$(BIN)/python -m pip freeze --exclude-editable --exclude pip | grep -E '^[A-Za-z0-9_.-]+==' > constraints.txt

clean: ## Remove the virtual environment and caches (not the binaries' cache)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
