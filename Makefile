# Every target sets up what it needs: a local .venv with the project in it, under the tested versions of constraints.txt.
# Running needs the core only; checks and tests need everything. Both go into the same .venv, in either order.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
CORE := .venv/core
EVERYTHING := .venv/installed
# Bytecode is made when a module is first imported: of most of what comes along, never. That spares a minute; but where the
# environment forbids to keep it, every process would make it again.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# Other Pythons than that of .venv, those that are installed; and the tests that need no PyTorch and take two minutes.
PYTHONS ?= $(foreach version,3.12 3.13 3.14,$(shell python$(version) -c "" 2>/dev/null && command -v python$(version)))
FAST := tests/game tests/orders tests/stats tests/play tests/adapters tests/runs tests/api tests/cli tests/test_layout.py tests/base tests/policy

.PHONY: help install search test tests pythons check bench docs soak clean
help:
	@echo "make search  the main job: what each order is worth against B_line"
	@echo "make test    install into .venv and run all checks and tests"
	@echo "make pythons the fast tests under Python 3.12 and later, where they are installed (PYTHONS=\"...\")"
	@echo "make check   format, lint and types only"
	@echo "make bench   speeds on this machine, one core"
	@echo "make docs    the documents and the reference as a static site, in site/"
	@echo "make soak    kill, damage and misuse it for ten minutes (ARGS=\"--minutes 60 --seed 1\")"

$(BIN)/python:
	$(PYTHON) -m venv .venv

$(CORE): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e .
	touch $@

# The simulator needs the core only: it is compiled for the tests while the rest is installed.
$(EVERYTHING): pyproject.toml constraints.txt | $(CORE)
	@PYTHONPATH=src $(BIN)/python tests/support/cold_start.py & $(PIP_INSTALL) -e ".[dev,onnx,ray,sb3]"; installed=$$?; wait; exit $$installed
	touch $(CORE) $@

install: $(EVERYTHING)

check: $(EVERYTHING)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Side by side: while one core checks, the other compiles the simulator for the tests.
test: $(EVERYTHING)
	$(MAKE) --no-print-directory -j2 check tests

tests: $(EVERYTHING)
	$(BIN)/python -m pytest -n auto

# Each in an environment of its own, with the wheel that is made here.
pythons: $(EVERYTHING)
	@test -n "$(strip $(PYTHONS))" || echo "no Python 3.12 or later is installed: nothing more to test"
	@set -e; for python in $(PYTHONS); do \
	    folder=.venv/other/$$(basename $$python); echo "$$python in $$folder"; \
	    $$python -m venv --without-pip --clear $$folder; \
	    $(BIN)/python -m pip --python $$folder/bin/python install --quiet --disable-pip-version-check -c constraints.txt \
	        '.[tensorboard]' pytest pytest-xdist hypothesis mpmath safetensors scipy; \
	    $$folder/bin/python -P -m pytest -p no:cacheprovider -n auto $(FAST); \
	done

search: $(CORE)
	$(BIN)/fixfirst search --red-agent B_lineAgent $(ARGS)

bench: $(CORE)
	$(BIN)/fixfirst bench

docs: | $(BIN)/python
	$(PIP_INSTALL) -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Not part of the tests, which run a slice of it (CONTRIBUTING.md).
soak: $(EVERYTHING)
	$(BIN)/python benchmarks/soak $(ARGS)

clean:
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache
