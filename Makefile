# Two commands from nothing: `make demo` and `make test`. Each makes .venv when absent.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo reproduce test lint clean

demo: .venv/.installed-report
	$(BIN)/inlier demo

reproduce: .venv/.installed-report
	$(BIN)/inlier reproduce --all --quick --compare

test: .venv/.installed-test
	$(BIN)/python -m pytest -n auto

lint: .venv/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# One stamp per extra: make demo need not wait for the test tools.
.venv/.installed-%: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "inlier needs Python 3.11 or later; set PYTHON=...")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache inlier-demo inlier-reproduction
