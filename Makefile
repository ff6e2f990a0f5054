# Two commands on a machine with Python 3.11 or later and Node 20:
#   make run    starts earnest with what is configured, or with the demo servers
#   make test   checks everything, including real MCP servers

PYTHON ?= python3
WORKERS ?= 3
# More for pytest, as in: make test TESTS="tests/core -k pin"
TESTS ?= tests
# More for `earnest run`, as in: make run ARGS="--port 8400"
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -qq
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INPUTS := pyproject.toml $(wildcard bin/earnest) hatch_build.py $(wildcard src/earnest/*/_*.pyx src/earnest/*/_*.pxi)

.PHONY: run test lint types pytest servers suite browser conformance clients clean

run: $(INSTALLED)
	@exec $(BIN)/earnest run $(ARGS)

test: lint types pytest

lint: $(INSTALLED_DEV)
	@$(BIN)/ruff check --no-cache -q .

types: $(INSTALLED_DEV)
	@$(BIN)/mypy --no-error-summary

# Many tests start real processes: one that fails is run once more, and the summary names it (R), so that a starved machine is
# told from a defect. For the same reason a worker waits a third of its time, so that there is one more than most machines of CI
# have cores.
RERUN := --reruns 1 -rR
pytest: $(INSTALLED_DEV) servers suite
	@scripts/setup-browser || [ $$? -eq 2 ]
	@scripts/setup-databases || [ $$? -eq 2 ]
	@EARNEST_REQUIRE_REAL=1 $(BIN)/python -m pytest $(TESTS) -n $(WORKERS) --dist loadfile $(RERUN) --durations=15

servers: | $(INSTALLED_DEV)
	@$(BIN)/python scripts/setup-servers

suite: | $(INSTALLED_DEV)
	@$(BIN)/python scripts/setup-conformance

# Chromium, for the tests that look at pages; where it cannot be had, they alone are skipped.
browser:
	@scripts/setup-browser

# The official conformance suite alone, and its figures in docs/conformance.md. The same legs are part of `make test`.
conformance: $(INSTALLED_DEV) suite
	@$(BIN)/python tests/conformance/report.py docs/conformance.md
	@EARNEST_REQUIRE_REAL=1 $(BIN)/python -m pytest tests/conformance

# Other people's client libraries: installed, each run through earnest in both ways, and what came out in docs/clients-tested.md.
# Without them the tests of those that no published server brings along are skipped.
clients: $(INSTALLED_DEV) servers suite
	@$(PYTHON) scripts/setup-clients
	@$(BIN)/python tests/real/client_table.py docs/clients-tested.md

$(INSTALLED): $(INPUTS)
	@echo "Installing earnest into $(VENV), once; this can take a minute or two …" >&2
	@$(PYTHON) scripts/make-venv $(VENV)
	@$(PIP) -e .
	@touch $@

$(INSTALLED_DEV): $(INPUTS)
	@echo "Installing earnest and what its checks need into $(VENV), once; this can take a few minutes …" >&2
	@$(PYTHON) scripts/make-venv $(VENV)
	@$(PIP) -e '.[dev]'
	@touch $(INSTALLED) $@

clean:
	rm -rf $(VENV) .servers .mypy_cache .ruff_cache .hypothesis
