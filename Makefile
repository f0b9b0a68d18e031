# `make` lists what there is. Everything runs in .venv, which the first target that needs it makes.

VENV ?= .venv
PYTHON ?= python3
DATA ?= data
BIN := $(VENV)/bin
# One thread per process: tests and servers start several processes.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help install demo serve test lint format typecheck check docs protos fonts clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# What serving needs, without torch. A development environment has it already.
$(VENV)/.serving: pyproject.toml | $(BIN)/python
	@if [ ! -e $(VENV)/.development ]; then $(BIN)/python -m pip install --quiet --editable '.[cpu]'; fi
	@touch $@

$(VENV)/.development: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[cpu,train,dev,docs,playground]'
	@touch $@

install: $(VENV)/.development ## Make .venv with everything: serving on the CPU, training, development tools

demo: $(VENV)/.serving ## Start a server, read a photographed strip over gRPC, stop the server
	$(BIN)/python examples/demo.py

serve: $(VENV)/.serving ## Serve the shipped models on 127.0.0.1:50051, metrics on 9090
	$(BIN)/glyphline serve

test: install ## Run the tests, on all cores
	$(BIN)/python -m pytest -n auto --dist loadfile --durations 25

lint: install ## Check style, imports, docstrings and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: install ## Rewrite the sources in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: install ## Check types, strictly
	$(BIN)/mypy

check: lint typecheck test ## All that a change must pass

docs: install ## Build the documentation's site into build/site
	$(BIN)/python scripts/documentation/build_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

protos: install ## Generate the Python stubs beside their .proto files
	$(BIN)/python scripts/generate_protos.py

fonts: install ## Fetch the fonts that training strips are rendered with, into data/fonts/
	$(BIN)/python scripts/fetch_fonts.py --output $(DATA)/fonts

clean: ## Remove caches and build outputs; .venv, data/ and runs/ stay
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage htmlcov
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
