# Two commands are enough: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test check format web web-check bench bench-paper bench-speed docs package lowest stories audit error-rates faults fuzz clean constraints mutants portability flips

setup: .venv/.setup-done

.venv/.setup-done: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps pgmpy  # its wheel holds the test networks
	touch $@

demo: setup
	$(BIN)/oscar demo --out demo-output --force

test: setup
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

web: web/node_modules
	cd web && npm run --silent build

web-check: web/node_modules
	cd web && npm run --silent check

web/node_modules: web/package-lock.json
	cd web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

bench bench-paper: setup
	$(BIN)/oscar bench table-1 --quick --out .bench/results --work .bench --commit "$$(git rev-parse HEAD)"

docs: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/mkdocs build --strict --quiet

package: setup
	$(BIN)/python scripts/check_package.py

lowest: setup
	$(BIN)/python scripts/check_package.py --lowest --torch 2.13.0 --tests

stories: setup  # make stories DATA=folder with telecom_alarms and traffic_fines
	$(BIN)/python scripts/story_telecom.py $(DATA)/telecom_alarms --out story-output/telecom
	$(BIN)/python scripts/story_fines.py $(DATA)/traffic_fines --out story-output/fines
	OMP_NUM_THREADS=1 $(BIN)/python scripts/story_fleet.py --out story-output/fleet

audit: setup  # known weaknesses in what we depend on; asks the internet
	$(BIN)/pip install -q pip-audit && $(BIN)/pip-audit

faults: setup
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python scripts/faults.py --out docs/results

fuzz: setup
	OMP_NUM_THREADS=1 $(BIN)/python scripts/fuzz.py --out docs/results

bench-speed: setup
	$(BIN)/oscar bench speed --quick --out docs/results --work .bench --commit "$$(git rev-parse HEAD)"
	OMP_NUM_THREADS=1 $(BIN)/python scripts/bench_host.py --events 300

error-rates: setup
	OMP_NUM_THREADS=1 $(BIN)/python scripts/error_rates.py --out docs/results

clean:
	rm -rf .venv demo-output story-output dist build .bench web/node_modules

PYTHONS ?= python3.11 python3.12

constraints: setup  # newest versions that all of PYTHONS can install; asks the package index, installs nothing
	$(BIN)/python scripts/constraints.py $(PYTHONS)

mutants: setup  # make mutants ONLY=discovery/looks: some of them again
	OMP_NUM_THREADS=1 $(BIN)/python scripts/mutants.py --out docs/results --only "$(ONLY)"

portability: setup  # the tests as on other CPUs: ten runs of the suite
	$(BIN)/python scripts/portability.py --out docs/results

flips: setup
	OMP_NUM_THREADS=1 $(BIN)/python scripts/flips.py --out docs/results
