# Every target but `help`, `lock` and `clean` sets up the virtual environment first, if needed.
PYTHON ?= python3
VENV ?= .venv
CONFIG ?= configs/train/quick.yaml
ARGS ?=
TORCH ?= $(shell sed -n 's/^torch==//p' constraints.txt)

BIN := $(VENV)/bin
STAMP := $(VENV)/.retinue-installed

.DEFAULT_GOAL := help
.NOTPARALLEL: # the tests' closing line comes last
.PHONY: help setup train test check lint types format lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Install the package and its tools, at the locked versions, in $(VENV)

# A virtual environment whose pip answers is kept and brought up to date; any other is made anew.
$(STAMP): pyproject.toml constraints.txt
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear "$(VENV)"
	$(BIN)/python -m pip install -c constraints.txt -e '.[dev]'
	@touch $@

train: $(STAMP) ## Train a bot: the quick recipe, or CONFIG=path; ARGS goes to retinue train
	$(BIN)/retinue train $(CONFIG) $(ARGS)

test: $(STAMP) ## Run the tests on all cores; ARGS goes to pytest (-n0: one after the other)
	$(BIN)/pytest -n auto $(ARGS)

check: lint types test ## Everything that CI checks: format, lint, types, tests

lint: $(STAMP) ## Check format and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# The root is the package `retinue`, so mypy must meet it under that name.
types: $(STAMP) ## Check types
	@set -eu; link=$$(mktemp -d)/retinue; \
	trap 'rm -f "$$link"; rmdir "$${link%/*}"' EXIT; \
	ln -s "$(CURDIR)" "$$link"; \
	echo "mypy, strict, through a link named retinue"; \
	$(BIN)/mypy --exclude /tests/ "$$link"; \
	MYPYPATH="tests:$${link%/*}" $(BIN)/mypy --explicit-package-bases tests

format: $(STAMP) ## Format, and repair what lint can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# torch stays where it is unless TORCH= says otherwise: other releases may mean gigabytes.
lock: ## Renew constraints.txt from a fresh install of the newest releases allowed
	@set -eu; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	echo "torch==$(TORCH)" > "$$dir/torch.txt"; \
	$(PYTHON) -m venv "$$dir/venv"; \
	"$$dir/venv/bin/python" -m pip install -c "$$dir/torch.txt" -e '.[dev]'; \
	"$$dir/venv/bin/python" -m pip freeze --all --exclude-editable --exclude pip > "$$dir/freeze.txt"; \
	{ sed -n '/^#/p' constraints.txt; sed 's/+[^+]*$$//' "$$dir/freeze.txt"; } > "$$dir/lock.txt"; \
	cat "$$dir/lock.txt" > constraints.txt

clean: ## Remove builds and caches, not the virtual environment
	rm -rf build dist *.egg-info .coverage htmlcov .mypy_cache .pytest_cache .ruff_cache
	find . -path './.?*' -prune -o -name __pycache__ -prune -exec rm -rf {} +
