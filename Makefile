# Two commands matter: `make demo` and `make test`. The others are for people who change Concord.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CROSSCHECK := var/crosscheck
INTERCHANGE := var/interchange/packages
MUTATION := var/mutation
SITE := var/docs
LOCKED := --quiet --upgrade --universal --no-header --no-emit-index-url --no-annotate --python-version 3.11 \
  --extra ko --extra semantic --extra arrow --extra otel --extra sso --extra factor --extra bedrock
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without byte code every process compiles all modules again, which takes longer than most commands.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup setup-dev demo test test-all lint test-endurance test-crowd bench release-check screenshots docs crosscheck interchange simulate mutate lock sbom messages

help:                          # targets in the order in which a newcomer needs them
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(VENV)/.run: pyproject.toml requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Concord needs Python 3.11 or newer (set PYTHON=...)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile -c requirements-dev.lock -e .
	@touch $@

$(VENV)/.dev: pyproject.toml requirements-dev.lock $(VENV)/.run
	$(BIN)/python -m pip install --quiet --no-compile -c requirements-dev.lock -e '.[dev,ko,semantic,otel,arrow,sso,factor,bedrock]'
	@touch $@

setup: $(VENV)/.run

demo: setup                    ## load the demo, evaluate it, serve it with a worker (PORT, default 8000)
	$(BIN)/python manage.py demo --serve

test: setup-dev                ## fast tests; PostgreSQL if CONCORD_TEST_POSTGRES is set, browser if installed
	$(BIN)/python -m tests.run

setup-dev: $(VENV)/.dev        ## install what development and tests need into .venv

lint: setup-dev                ## style, templates, types, import contracts, missing migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/djangofmt --check templates contrib
	$(BIN)/python -m tools.wording
	$(BIN)/mypy concord config contrib evaluation review
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run

messages: setup-dev            ## collect and compile the Korean translations (needs gettext)
	$(BIN)/python -m tools.catalogues

test-all: setup-dev            ## every test on both databases, and faults with real processes
	$(BIN)/python -m tests.run all

test-endurance: setup-dev      ## thousands of faults, databases that are away, clocks that jump (an hour and a half)
	$(BIN)/pytest -m endurance -n 2 --timeout 0 tests/faults tests/docs tests/pages

test-crowd: setup-dev          ## fifty people on 5,000 answers over real HTTP (CROWD_PEOPLE, CROWD_ITEMS; 15 minutes)
	$(BIN)/pytest -m crowd --timeout 0 tests/faults

bench: setup-dev               ## measure ratios of times in one run (asserts nothing)
	$(BIN)/python -m tools.bench

release-check: setup-dev       ## build sdist and wheel, and load the demo with the wheel in an empty environment
	rm -rf var/release
	$(BIN)/hatchling build -d var/release
	$(PYTHON) -m venv var/release/venv
	var/release/venv/bin/python -m pip install --quiet var/release/*.tar.gz
	cd var/release && env -i PATH="$$PATH" venv/bin/concord demo
	cd var/release && env -i PATH="$$PATH" venv/bin/concord results 10

screenshots: setup-dev         ## take screenshots of the demo into docs/screenshots
	$(BIN)/python -m tools.screenshots

$(SITE)/.ready: tools/docs_site/requirements.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet -r $<
	@touch $@

docs: $(SITE)/.ready           ## write the documentation as a site into var/site, with strict links
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --quiet

$(CROSSCHECK)/.ready: tools/crosscheck/requirements.txt
	$(PYTHON) -m venv $(CROSSCHECK)
	$(CROSSCHECK)/bin/python -m pip install --quiet -r $<
	@touch $@

crosscheck: setup-dev $(CROSSCHECK)/.ready  ## compare statistics with reference libraries, in a virtual environment of their own
	$(CROSSCHECK)/bin/python -m pytest -c tools/crosscheck/pytest.ini --rootdir=. tools/crosscheck tests/review/statistics/agreement/test_reference_libraries.py
	$(BIN)/python -m tools.crosscheck.bert_score

$(INTERCHANGE)/.ready: tools/interchange/requirements.txt
	$(PYTHON) -m venv $(INTERCHANGE)
	$(INTERCHANGE)/bin/python -m pip install --quiet uv
	$(INTERCHANGE)/bin/uv pip install --quiet --python $(INTERCHANGE)/bin/python -r $<
	@touch $@

interchange: setup-dev $(INTERCHANGE)/.ready  ## read and write files with the packages of other tools, likewise
	$(BIN)/python -m tools.interchange $(INTERCHANGE)/bin/python

simulate: setup-dev            ## simulate coverage of intervals, false verdicts and acceptances (CONCORD_TEST_DATA; minutes)
	$(BIN)/python -m tools.simulations.acceptance $(if $(LIVES),--lives $(LIVES))
	$(BIN)/python -m tools.simulations.anchors $(if $(LIVES),--lives $(LIVES))
	$(BIN)/python -m tools.simulations.coverage $(if $(DRAWS),--draws $(DRAWS))
	$(BIN)/python -m tools.simulations.skips $(if $(DRAWS),--draws $(DRAWS))
	$(BIN)/python -m tools.simulations.rounds $(if $(DRAWS),--draws $(DRAWS))
	$(BIN)/python -m tools.simulations.correction $(if $(DRAWS),--draws $(DRAWS))
	$(BIN)/python -m tools.simulations.any_time $(if $(DRAWS),--draws $(DRAWS))
	$(BIN)/python -m tools.simulations.comparisons $(if $(DRAWS),--draws $(DRAWS))
	$(BIN)/python -m tools.simulations.standing $(if $(LIVES),--lives $(LIVES))
	$(BIN)/python -m tools.simulations.releases $(if $(LIVES),--lives $(LIVES))
	$(BIN)/python -m tools.simulations.retrieval_truth $(if $(REPAIRS),--repairs $(REPAIRS))

$(MUTATION)/.ready: tools/mutation/requirements.txt
	$(PYTHON) -m venv $(MUTATION)
	$(MUTATION)/bin/python -m pip install --quiet -r $<
	@touch $@

mutate: setup-dev $(MUTATION)/.ready  ## break 600 lines, or those CHANGED since a revision, and count what the tests notice
	$(MUTATION)/bin/python -m tools.mutation.drawing $(MUTATION)/mutants.jsonl $(if $(CHANGED),--changed $(CHANGED))
	$(BIN)/python -m tools.mutation.running $(MUTATION)/mutants.jsonl $(if $(WORKERS),--workers $(WORKERS))

lock:                          ## update requirements.lock and requirements-dev.lock
	$(PYTHON) -m venv var/lock && var/lock/bin/python -m pip install --quiet uv
	var/lock/bin/uv pip compile $(LOCKED) --generate-hashes pyproject.toml -o requirements.lock
	var/lock/bin/uv pip compile $(LOCKED) --extra dev pyproject.toml -o requirements-dev.lock

sbom: setup-dev                # var/sbom.json: packages of requirements.lock, as CycloneDX
	$(BIN)/uvx --quiet --from cyclonedx-bom cyclonedx-py requirements requirements.lock --pyproject pyproject.toml -o var/sbom.json
