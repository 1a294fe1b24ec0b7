# Two commands on a fresh clone do everything: `make hierarchy` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= hierarchy

.PHONY: hierarchy test test-all lint docs-output clean

hierarchy: $(VENV)/.main
	$(BIN)/hopbound hierarchy --out $(OUT)

test: lint
	$(BIN)/python -m pytest -m "not slow" -n 2

test-all: lint
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff format --check hopbound tests docs benchmarks
	$(BIN)/ruff check hopbound tests docs benchmarks
	$(BIN)/pyright
	$(BIN)/lint-imports

# What the README and docs/ show of the program's output, made anew from a run.
docs-output: $(VENV)/.main
	$(BIN)/python docs/refresh.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The main job needs the bound search, the models and the report; a newcomer waits for no more than that.
$(VENV)/.main: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[bounds,models,report]"
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]"
	touch $@ $(VENV)/.main

clean:
	rm -rf $(VENV) $(OUT) dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
