# Each target sets itself up: `make demo` and `make test` need only python3 and a package index.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow test-long test-lowest attack docs pictures wheel check format results comparison bench clean help

help:                   ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

.venv/user: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/user

demo: .venv/user        ## fit and forecast the embedded example, write demo/
	$(BIN)/hybridsde demo --out demo

PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile

test: .venv/dev         ## run the tests that guard behaviour, under five minutes
	$(PYTEST) -m 'not slow and not long'

test-slow: .venv/dev    ## run oracles by sampling and whole fits: some ten minutes
	$(PYTEST) -m 'slow and not long'

test-long: .venv/dev    ## run what takes longest: the paper's tables in short, validity runs, examples
	$(PYTEST) -m long

attack: .venv/dev       ## a million hostile inputs and a thousand kills: some forty minutes
	$(BIN)/python tests/attack/run.py

.venv-lowest/ready: pyproject.toml
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct \
		--editable '.[baselines,parquet]' 'pytest>=8.3'
	touch $@

test-lowest: .venv-lowest/ready  ## a smoke test with the lowest declared versions
	.venv-lowest/bin/python -m pytest -q -c /dev/null -W ignore --rootdir tests tests/smoke


.venv-docs/ready: pyproject.toml
	test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-docs/bin/uv pip install --quiet --python .venv-docs/bin/python --editable '.[docs,baselines]'
	touch $@

docs: .venv-docs/ready  ## build the documentation site into .site; every block of code is run
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	@echo "Wrote .site/index.html"

pictures: .venv/dev     ## the pictures of README, docs/studio.md and docs/report.md, in a browser
	$(BIN)/hybridsde demo --out demo --no-open && cp demo/demo.png docs/demo.png
	$(BIN)/python docs/site/pictures.py docs

wheel: .venv/dev        ## build wheel and sdist, try the wheel in an empty environment
	rm -rf dist .venv-wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build --outdir dist
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[studio]"
	cd dist && rm -rf tried && mkdir tried && cd tried && ../../.venv-wheel/bin/hybridsde init --example \
		--out example && ../../.venv-wheel/bin/hybridsde look example/recordings.csv && \
		../../.venv-wheel/bin/hybridsde fit example/settings.toml --out run --quiet && \
		../../.venv-wheel/bin/hybridsde report run && ../../.venv-wheel/bin/hybridsde demo --epochs 2 --no-open && \
		../../.venv-wheel/bin/python ../../tests/smoke/answers.py
	rm -rf .venv-wheel

check: .venv/dev        ## lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: .venv/dev       ## apply the formatter and the safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

results: .venv/user     ## run the paper's experiments into docs/results (under an hour)
	$(BIN)/hybridsde reproduce lorenz --out docs/results/lorenz
	$(BIN)/hybridsde reproduce lotka-volterra --out docs/results/lotka-volterra
	$(BIN)/hybridsde reproduce cost --out docs/results/cost
	$(BIN)/python benchmarks/ablation.py --out docs/results/ablation.md

comparison: .venv/dev   ## compare all systems on predator and prey, write docs/results/comparison
	test -f .comparison/settings.toml || $(BIN)/hybridsde init --example --regular --out .comparison
	$(BIN)/hybridsde compare .comparison/settings.toml --methods all --seeds 2 --out .comparison/all --resume
	mkdir -p docs/results/comparison
	cd .comparison/all && cp comparison.md comparison.csv comparison.png comparison.svg ../../docs/results/comparison
	rm -rf .comparison

.venv-bench/ready: pyproject.toml
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

bench: .venv-bench/ready  ## time against torchsde and diffrax, write docs/performance.md
	.venv-bench/bin/python benchmarks/bench.py

clean:                  ## remove the environment and the demo
	rm -rf .venv .venv-bench .venv-lowest .venv-wheel .venv-docs .site dist demo .pytest_cache .ruff_cache
