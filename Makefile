# Every target sets up what it needs: a local .venv with the project in it, under the tested versions of constraints.txt.
# Running needs the core only; checks and tests need everything. Both go into the same .venv, in either order.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
CORE := .venv/core
EVERYTHING := .venv/installed
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help search test tests check bench clean
help:
	@echo "make search  the main job: find the best order against B_line within 100,000 episodes"
	@echo "make test    install into .venv and run all checks and tests"
	@echo "make check   format, lint and types only"
	@echo "make bench   speeds on this machine, one core"

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(CORE): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e .
	touch $@

$(EVERYTHING): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e ".[dev,sb3,ray]"
	touch $(CORE) $@

check: $(EVERYTHING)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Side by side: while one core checks, the other compiles the simulator for the tests.
test: $(EVERYTHING)
	$(MAKE) --no-print-directory -j2 check tests

# In as many processes as there are cores, four at most: the longest file takes as long in any case.
tests: $(EVERYTHING)
	$(BIN)/python -m pytest -n auto --maxprocesses 4

search: $(CORE)
	$(BIN)/fixfirst search --total-episodes 100000 --red-agent B_lineAgent --n-envs 100 $(ARGS)

bench: $(CORE)
	$(BIN)/fixfirst bench

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
