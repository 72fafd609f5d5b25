# Two commands from nothing: `make demo` and `make test`. Each makes .venv when absent.
PYTHON ?= python3
BIN := .venv/bin
SEEDS ?= 20
JOBS ?= 2
WHAT ?=
MUTANTS ?= 10000
MINUTES ?= 60
MUTATIONS ?= 100
FUZZ_SEED ?= 0
LOWEST := tests/io tests/cli tests/transforms tests/estimators/test_registration.py tests/estimators/test_paper.py \
	tests/estimators/test_calibrated.py tests/rows/test_files.py tests/images tests/report
PLAIN := tests/overlap/test_gram.py tests/transforms tests/estimators/test_paper.py \
	tests/calibration/test_linear_map.py tests/consensus/test_evidence.py tests/consensus/test_pairs.py

.PHONY: demo reproduce test test-seeds test-promises test-plain test-lowest fuzz faults mutate lint clean \
	docs test-docs results check-results package check-package-files

demo: .venv/.installed-report
	$(BIN)/inlier demo

reproduce: .venv/.installed-report
	$(BIN)/inlier reproduce --all --quick --compare

# One thread for each process of tests: more of them wait for each other.
test: .venv/.installed-test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

# Statistics with many seeds, and property tests with examples that no run has seen before; says what failed how often.
test-seeds: .venv/.installed-test
	$(BIN)/python -m pytest -n auto -m 'seeds or hypothesis' --seeds $(SEEDS) --hypothesis-profile=random tests

# What is promised, over many seeds: a promise is broken if it fails more often than the binomial law lets a kept one fail.
test-promises: .venv/.installed-test
	$(BIN)/python -m pytest -n auto --seeds 100 --promises tests/seeds

# The core with the lowest versions that pyproject.toml allows, in an environment of its own. Old packages beside new ones
# warn of what is deprecated there: that is not asked about.
test-lowest: .venv-lowest/.installed
	.venv-lowest/bin/python -m pytest -n auto -q -p no:cacheprovider -W ignore::DeprecationWarning $(LOWEST)

.venv-lowest/.installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-lowest
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python $(BIN)/python --extra test pyproject.toml -o .venv-lowest/versions.txt
	$(BIN)/uv pip install --quiet --python .venv-lowest/bin/python -r .venv-lowest/versions.txt
	$(BIN)/uv pip install --quiet --python .venv-lowest/bin/python --no-deps --editable .
	touch $@

# The core with compilation switched off: the same answers from the same loops, run by Python, whose numbers of 64 bits say so
# where they wrap around, as they are meant to when bits are counted.
test-plain: .venv/.installed-test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto -q -W 'ignore:overflow encountered in scalar:RuntimeWarning' \
		--deselect tests/consensus/test_evidence.py::test_many_pairs_in_one_spot_do_not_outweigh_fewer_all_over $(PLAIN)

# Damaged files of every format against the readers and the command line; what fails is kept in fuzz/corpus.
fuzz: .venv/.installed-test
	$(BIN)/python -m fuzz --mutants $(MUTANTS) --minutes $(MINUTES) --seed $(FUZZ_SEED)

# Commands whose k-th file operation fails, or is their last, for all k: the old output whole or the new one.
faults: .venv/.installed-test
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m fuzz.faults

# Small mistakes in what decides, MUTATIONS of each module, drawn at random: which of them does no quick test notice?
mutate: .venv/.installed-mutate
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python tools/mutate.py --mutations $(MUTATIONS) --slowest 3

lint: .venv/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# The site, from nothing: examples run, warnings are errors, links inside of it are checked. Open docs/_build/html/index.html.
docs: .venv/.installed-docs
	rm -rf docs/_build docs/gallery docs/api/generated docs/_static/generated docs/api/all.md
	$(BIN)/python -m sphinx -W --keep-going -T -q -j auto -b html docs docs/_build/html
	$(BIN)/python tools/check_links.py docs/_build/html

# The built site in a browser: navigation, search, a gallery page, dark and light, a phone, no message on the console.
test-docs: .venv/.installed-test
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/site

# Files of results again, after a plan with its cost: JOBS at a time, and what WHAT asks for, as in WHAT="--only tables" or "--older".
results: .venv/.installed-test
	$(BIN)/python tools/make_results.py --jobs $(JOBS) $(WHAT)

# Which pages show results of an older commit than the code they speak of?
check-results: .venv/bin/python
	$(BIN)/python tools/check_results.py

# Wheel and sdist, each installed into an empty environment and tried there.
package: .venv/.installed-release
	$(BIN)/python tools/try_package.py

# Workflows, templates, citation and conda recipe against their schemas.
check-package-files: .venv/.installed-release
	$(BIN)/python tools/check_package_files.py

# One stamp per extra: make demo need not wait for the test tools.
.venv/.installed-%: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "inlier needs Python 3.11 or later; set PYTHON=...")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf docs/_build docs/gallery docs/api/generated docs/_static/generated docs/api/all.md
	rm -rf .venv .venv-lowest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache inlier-demo inlier-reproduction
