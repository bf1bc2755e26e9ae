# Two commands do it all: `make run` and `make test`. Everything downloaded stays in .venv and .cache.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One process for each core, up to four. The tests of one Letta server stay in one process.
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist loadscope
# With hashes, so that an install takes only the files that were there when the versions were chosen.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --generate-hashes --upgrade
CHECKED := app.py gunicorn.conf.py bridge testbed bench tests

export PIP_CACHE_DIR := $(CURDIR)/.cache/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: run test test-fast test-matrix test-faults test-clients bench pictures check check-security format lock clean

run: $(VENV)/.can-run
	@$(BIN)/python -m testbed.demo

test: check
	TEST_TESTBED=changed $(BIN)/python -m pytest $(SIDE_BY_SIDE) --durations=50

test-fast: check
	TEST_TESTBED=changed $(BIN)/python -m pytest -m "not real and not browser and not servers" --ignore=tests/real --ignore=tests/faults -n 3

test-matrix: $(VENV)/.can-test
	TEST_LETTA=all $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m real

test-faults: $(VENV)/.can-test
	TEST_FAULTS=all $(BIN)/python -m pytest $(SIDE_BY_SIDE) -m fault

test-clients: $(VENV)/.can-test
	$(BIN)/python -m pytest -m clients tests/clients tests/real

# Takes the pictures of the admin pages in docs/ again.
pictures: $(VENV)/.can-test
	$(BIN)/python -m tests.browser.pictures

# About five minutes. The figures below docs/ are those of `make bench FOR="--write"`.
bench: $(VENV)/.can-bench
	$(BIN)/python -m bench $(FOR)

check: $(VENV)/.can-bench
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy --strict app.py bridge testbed bench

# Known weaknesses of our own code, and of what we depend on. The tools are fetched into .cache; the second asks PyPI.
check-security: export UV_CACHE_DIR := $(CURDIR)/.cache/uv
check-security: export UV_TOOL_DIR := $(CURDIR)/.cache/uv-tools
check-security: $(VENV)/.can-test
	$(BIN)/uv tool run --quiet --from bandit==1.9.4 bandit --quiet --configfile pyproject.toml -r app.py gunicorn.conf.py bridge
	$(BIN)/uv tool run --quiet --from pip-audit==2.10.1 pip-audit --strict --disable-pip --require-hashes -r requirements.txt

format: $(VENV)/.can-test
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

# Newer versions of what we depend on: edit the .in files or just run this, then run the tests.
lock: $(VENV)/.can-test
	$(COMPILE) requirements.in -o requirements.txt
	$(COMPILE) requirements-dev.in -o requirements-dev.txt
	$(COMPILE) bench/requirements.in -o bench/requirements.txt

clean:
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is %s. Try: make PYTHON=python3.12 ..." % sys.version.split()[0])'
	@echo "making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.can-run: requirements.txt | $(VENV)/bin/python
	@echo "installing what the service needs"
	@$(BIN)/pip install --quiet --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.can-bench: bench/requirements.txt $(VENV)/.can-test
	@echo "installing what the benchmark needs"
	@$(BIN)/pip install --quiet --require-hashes -r bench/requirements.txt
	@touch $@

$(VENV)/.can-test: requirements.txt requirements-dev.txt | $(VENV)/bin/python
	@echo "installing what the tests need"
	@$(BIN)/pip install --quiet --require-hashes -r requirements.txt -r requirements-dev.txt
	@touch $@
