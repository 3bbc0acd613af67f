# Everything a newcomer needs: `make demo`, `make test`. Both create .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# pytest rewrites the asserts of 200 files; where compiled files are kept, each process saves ten seconds of that
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check lint types study tiers shapes long bench lock clean

demo: $(VENV)/.installed
	$(BIN)/attnflow run metastability

# most of the suite's time is compiling programs that run once, so the compiler is told to hurry: no optimisation, and
# the older of its two ways to emit loops, which takes a third of the time (`make study` compiles as users do)
QUICKLY := --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1
test: $(VENV)/.developed
	XLA_FLAGS="$(QUICKLY)" $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# what takes too long for every change by hand: at most 45 minutes on two cores, after every change in CI; most of that
# is compilation, which is done quickly; what computes for long and the pages of the documentation are compiled as users do
study: $(VENV)/.developed
	XLA_FLAGS="$(QUICKLY)" $(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not rare and not optimised" --ignore=tests/combinations --durations=20
	XLA_FLAGS="$(QUICKLY)" $(BIN)/python -m pytest -n 2 --dist worksteal -m slow tests/combinations
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and optimised and not rare"

# which cases are studies: the suite with its durations, and the list written anew from them
tiers: $(VENV)/.developed
	rm -f tests/studies.txt
	XLA_FLAGS="$(QUICKLY)" $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" --durations=0 > durations.log || true
	$(BIN)/python -m tests.tiers durations.log && rm durations.log

# `make test` once more with every annotation checked as it is called: types, shapes and names of axes
CHECKER := beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))
APART := imports packaging records types
shapes: $(VENV)/.developed
	XLA_FLAGS="$(QUICKLY)" $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" \
	  "--jaxtyping-packages=attnflow,$(CHECKER)" $(APART:%=--ignore=tests/test_%.py)

# hours, by hand: each campaign leaves a dated record that names the commit in campaigns/records
long: $(VENV)/.developed
	XLA_FLAGS="$(QUICKLY)" $(BIN)/python -m pytest -n 2 --dist worksteal -m rare
	set -e; for campaign in campaigns/[a-z]*.py; do $(BIN)/python $$campaign; done

check: lint types test

lint: $(VENV)/.developed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.developed
	$(BIN)/mypy

bench: $(VENV)/.developed
	$(BIN)/python benchmarks/solve.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/ensemble.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/longtime.py
	$(BIN)/python benchmarks/density.py
	$(BIN)/python benchmarks/field.py
	$(BIN)/python benchmarks/decoders.py
	$(BIN)/python benchmarks/control.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "attnflow needs Python 3.11 to 3.13, this is " + sys.version.split()[0] + "; use make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e ".[fast]"
	touch $@

$(VENV)/.developed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e ".[dev]"
	touch $@

# pins of what pyproject.toml alone asks for, resolved in an environment of its own by the oldest Python, so that they
# suit all; plain `name==version`, without the package, the installers and addresses
lock:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info[:2] == (3, 11) else "the lock is made with Python 3.11, this is " + sys.version.split()[0] + "; use make lock PYTHON=python3.11")'
	set -e; fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	$(PYTHON) -m venv "$$fresh"; \
	"$$fresh/bin/python" -m pip install --quiet --disable-pip-version-check ".[dev]"; \
	"$$fresh/bin/python" -m pip list --disable-pip-version-check --format freeze \
	  --exclude attnflow --exclude pip --exclude setuptools --exclude wheel > "$$fresh/pins"; \
	grep -E '^[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+$$' "$$fresh/pins" | LC_ALL=C sort -f -t= -k1,1 > "$$fresh/sorted"; \
	cp "$$fresh/sorted" requirements.lock

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
