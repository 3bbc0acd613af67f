# Everything a newcomer needs: `make demo`, `make test`. Both create .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# versions that pip keeps to; LOCK=/dev/null takes the newest of everything, tools/oldest.py writes the oldest allowed
LOCK := requirements.lock

# pytest rewrites the asserts of 200 files; where compiled files are kept, each process saves ten seconds of that
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check lint types shapes long records bench docs release-check lock clean

demo: $(VENV)/.installed
	$(BIN)/attnflow run metastability

# Marks stand next to each case (tests/marks.py): none for `make test`; `slow` is added in CI, `make test MARKS="not long"`
MARKS := not slow and not long
WORKERS := auto
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
test: $(VENV)/.developed
	$(PYTEST) -m "$(MARKS)"

# `make test` once more with every annotation checked as it is called: types, shapes and names of axes
CHECKER := beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))
APART := imports packaging types
shapes: $(VENV)/.developed
	$(PYTEST) -m "$(MARKS)" "--jaxtyping-packages=attnflow,$(CHECKER)" $(APART:%=--ignore=tests/test_%.py)

# hours, by hand: all cases, then the campaigns; each leaves a dated record in campaigns/records, which `make records` reads
CAMPAIGNS := $(filter-out %/long.py %/checks.py,$(wildcard campaigns/[a-z]*.py))
long: $(VENV)/.developed
	$(BIN)/python campaigns/long.py -n $(WORKERS) --dist worksteal
	set -e; for campaign in $(CAMPAIGNS); do $(BIN)/python $$campaign; done

# what the records must say before a release; it needs nothing beside Python
records:
	$(PYTHON) campaigns/checks.py

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
	$(BIN)/python benchmarks/sweeps.py
	$(BIN)/python benchmarks/lab.py

# the site, in build/site/html: pages, reference, tutorials run at full size (kept until their sources change), gallery;
# refused while a claim lacks a present record of broken physics, of which STALE=--stale builds a preview all the same
STALE :=
docs: $(VENV)/.developed
	$(BIN)/python site/build.py $(STALE)

# builds sdist and wheel, installs the wheel on each Python, runs the README there; checks metadata, changelog, tag and
# records, of which the one of `make long` must be of the present source
release-check:
	$(PYTHON) tools/release_check.py

# modules are compiled when they are first imported: most of them never are
QUIETLY := --quiet --disable-pip-version-check --no-compile

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "attnflow needs Python 3.11 to 3.13, this is " + sys.version.split()[0] + "; use make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml $(LOCK)
	$(BIN)/python -m pip install $(QUIETLY) -c $(LOCK) -e ".[fast]"
	touch $@

$(VENV)/.developed: $(VENV)/.installed
	$(BIN)/python -m pip install $(QUIETLY) -c $(LOCK) -e ".[dev]"
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
