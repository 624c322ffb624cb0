# `make demo` and `make test` need only Python 3.11 or newer: the environment is made on the way.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
MADE := $(VENV)/.made
DEMO_READY := $(VENV)/.ready-demo
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.ready-docs
HANGS := -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true  # says where, and ends
WORKERS = $(shell expr `getconf _NPROCESSORS_ONLN` + 1)  # one more than cores: tests of services wait for processes
SPARK = tests/engines $(shell grep -rl "mark.spark" tests --include="test_*.py")  # no other tests are collected
unexport PYTHONDONTWRITEBYTECODE  # each worker, and each process that a test starts, would compile everything again
PYTHONS := $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3 python

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow mutants fuzz wheel pythons image lint format bench docs clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(DEMO_READY) ## see private answers to a real question
	@$(BIN)/discreet demo

test: lint ## everything a change must pass: lint, doctests and the quick tests
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(HANGS) -m "not slow and not spark"

test-slow: $(DOCS_READY) ## Spark, the laws of the samplers, whether time tells, and other long checks
	$(BIN)/pytest -n auto --dist worksteal $(HANGS) -m "slow and not spark"
	$(BIN)/pytest $(HANGS) -m spark $(SPARK)
	$(BIN)/python -m bench.gateway.timing

mutants: $(READY) ## every seeded bug, and the tests that kill it
	$(BIN)/python tests/matrix.py

fuzz: $(READY) ## hostile input for every surface: twelve minutes each; SEED=2 for other ones
	$(BIN)/python -m fuzz --minutes 12 --seed $(or $(SEED),1)

wheel: $(READY) ## the package as users get it: built, and installed with each extra alone
	$(BIN)/python -m tests.package.wheel

pythons: $(READY) ## the quick tests on every supported Python that is found; ONLY="3.13 tests/ledger" for a part
	$(BIN)/python -m tests.package.pythons $(ONLY)

image: $(READY) ## the image of deploy/Containerfile, built and run; needs root, buildah and debootstrap
	$(BIN)/python -m tests.package.image $(BASE)

lint: $(READY) ## format, style, types and floors
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --num-workers auto
	$(BIN)/lint-imports

format: $(READY) ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## run the benchmarks with their peers, and make docs/benchmarks/; ONLY="samplers sql" runs only these
	@$(BIN)/python -m bench.page $(or $(ONLY),all)

docs: $(DOCS_READY) ## build the documentation into site/; any broken link fails
	$(BIN)/python docs/make/notebooks.py
	$(BIN)/zensical build --strict --clean

clean: ## remove what was built, the environment included
	rm -rf $(VENV) build dist site docs/stories .cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(MADE):
	@set -e; \
	for python in $(PYTHONS); do \
		if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "making $(VENV) with $$($$python --version)"; $$python -m venv $(VENV); break; \
		fi; \
	done; \
	if [ ! -x $(BIN)/python ]; then \
		echo "discreet needs Python 3.11 or newer with venv; name one with: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi
	@touch $@

$(DEMO_READY): $(MADE) pyproject.toml constraints.txt src/discreet/_version.py
	$(PIP) --no-compile -e ".[plot,learn]"  # what the demo imports is compiled then: a third less time
	@touch $@

$(READY): $(MADE) pyproject.toml constraints.txt src/discreet/_version.py
	$(PIP) -e ".[dev,plot]"
	@touch $@ $(DEMO_READY)

$(DOCS_READY): $(READY)
	$(PIP) -e ".[docs]"
	@touch $@
