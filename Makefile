# Every target runs in .venv, which is created when needed. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

CHECKPOINT ?= default
BENCHMARK ?= humaneval
SAMPLES ?= 0
PROBLEMS ?= $(SAMPLES)
NUM_SAMPLES ?= 1
TEMPERATURE ?=
MAX_TOKENS ?=
PROMPT_STRATEGY ?= default
RESULTS_DIR ?= results
TEXT ?= wikitext-2
TEXT_BYTES ?= 65536
HF ?=
SUITE ?= suite.yaml
TIER ?= smoke
JOBS ?= $(shell n=$$(nproc); echo $$((n < 4 ? n : 4)))
# Twice as many for the tests: many of them wait for limits, servers and other processes.
TEST_JOBS ?= $(shell echo $$((2 * $(JOBS))))
PYTEST ?=
EVAL = $(BIN)/assay eval $(1) --model "$(CHECKPOINT)" --problems $(PROBLEMS) --n-samples $(NUM_SAMPLES) \
	$(if $(TEMPERATURE),--temperature $(TEMPERATURE)) $(if $(MAX_TOKENS),--max-tokens $(MAX_TOKENS)) --prompt-strategy $(PROMPT_STRATEGY) \
	--results-dir "$(RESULTS_DIR)"

.PHONY: help eval suite eval-humaneval eval-mbpp eval-bigcodebench eval-all eval-perplexity results-history leaderboard view \
	check bench \
	compare-hf qa contracts test test-all test-whole lint container-engine browser screenshots release-check picture reference clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

eval-humaneval: $(VENV)/.ready ## evaluate CHECKPOINT (default: SmolLM2-135M-Instruct) on HumanEval
	$(call EVAL,humaneval)

eval-mbpp: $(VENV)/.ready ## evaluate CHECKPOINT on MBPP's test split
	$(call EVAL,mbpp)

eval-bigcodebench: $(VENV)/.ready ## evaluate CHECKPOINT on BigCodeBench (creates its environment on first use)
	$(BIN)/assay env bigcodebench
	$(call EVAL,bigcodebench)

eval-all: ## evaluate CHECKPOINT on HumanEval, HumanEval+, MBPP, MBPP+ and BigCodeBench
	$(MAKE) eval-humaneval eval-mbpp
	$(MAKE) eval BENCHMARK=humanevalplus
	$(MAKE) eval BENCHMARK=mbppplus
	$(MAKE) eval-bigcodebench

eval: $(VENV)/.ready ## evaluate CHECKPOINT on BENCHMARK
	$(call EVAL,$(BENCHMARK))

suite: $(VENV)/.ready ## evaluate the models of the file SUITE on its benchmarks; each model is loaded once
	$(BIN)/assay suite "$(SUITE)" --results-dir "$(RESULTS_DIR)"

results-history: $(VENV)/.ready ## list all runs, newest first
	$(BIN)/assay history --results-dir "$(RESULTS_DIR)"

leaderboard: $(VENV)/.ready ## compare all models of RESULTS_DIR on all benchmarks
	$(BIN)/assay leaderboard --results-dir "$(RESULTS_DIR)"

view: $(VENV)/.ready ## serve the report pages of RESULTS_DIR on this machine
	$(BIN)/assay view "$(RESULTS_DIR)" --open

check: $(VENV)/.ready ## check whether the model file CHECKPOINT is sound
	$(BIN)/assay check "$(CHECKPOINT)"

bench: $(VENV)/.ready ## measure CHECKPOINT's throughput into RESULTS_DIR/throughput.json
	$(BIN)/assay bench "$(CHECKPOINT)" --output "$(RESULTS_DIR)/throughput.json"

eval-perplexity: $(VENV)/.ready ## measure CHECKPOINT's perplexity on TEXT (default: WikiText-2's test text)
	$(BIN)/assay perplexity "$(CHECKPOINT)" --dataset "$(TEXT)" --bytes $(TEXT_BYTES)

compare-hf: $(VENV)/.ready-hf ## compare CHECKPOINT with HF, or with the same weights in torch
	$(BIN)/assay compare-hf "$(CHECKPOINT)" --hf "$(HF)"

qa: $(VENV)/.ready-hf ## decide by a policy's TIER whether CHECKPOINT is sound: GO, NO-GO, INCONCLUSIVE
	$(BIN)/assay qa "$(CHECKPOINT)" --tier $(TIER) --hf "$(HF)" --results-dir "$(RESULTS_DIR)"

contracts: $(VENV)/.ready ## execute contracts/*.yaml
	$(BIN)/assay contracts

# Only the default tests measure coverage. The others mostly start processes, which coverage would slow down.
HEAVY := (slow or fuzz or torch or docker or wasm or parity or browser) and not whole
SET_UP_ENVIRONMENTS := for name in bigcodebench canitedit leetcode livecodebench; do \
	$(BIN)/assay env $$name || exit 1; done
FULL := --require --hypothesis-profile=full
# Many tests measure time. Those that failed beside others get a second chance, one after the other.
PYTEST_TWICE = $(BIN)/pytest $(FULL) $(1) -n $(TEST_JOBS) $(2) $(PYTEST) || { \
	[ $$? = 1 ] && echo "Running the failed tests again, one after the other." && \
	$(BIN)/pytest $(FULL) $(1) -n 1 --last-failed --last-failed-no-failures none; }

# Compile once here, not in every process that the tests start. Sandbox workers never write bytecode.
test test-all: export PYTHONDONTWRITEBYTECODE :=
COMPILE := $(BIN)/python -m compileall -q src

test: $(VENV)/.ready-test ## run the default tests: no torch, no containers, about 4 minutes on 2 cores
	$(COMPILE)
	$(BIN)/pytest -n $(TEST_JOBS) --dist worksteal $(PYTEST)

test-all: announce-all lint $(VENV)/.ready-all ## run all tests; installs torch and other packages, 12 GB of disk
	$(SET_UP_ENVIRONMENTS)
	$(COMPILE)
	$(call PYTEST_TWICE,--dist worksteal,--cov --cov-report=term:skip-covered)
	$(call PYTEST_TWICE,--dist loadgroup -m "$(HEAVY)")

test-whole: $(VENV)/.ready-all ## judge whole data sets and simulate for long; test-all does a part of each
	$(SET_UP_ENVIRONMENTS)
	$(BIN)/pytest $(FULL) -n $(JOBS) --dist loadgroup -m whole $(PYTEST)

.PHONY: announce-all
announce-all:
	@echo "test-all installs torch, WebAssembly tools, EvalPlus and the packages of BigCodeBench and CanItEdit: 12 GB of disk."
	@echo "Container tests need a container runtime: run 'make container-engine' first."
	@echo "Browser tests need a browser: run 'make browser' first."
	@echo "A test that is skipped although this machine could run it is a failure."

lint: $(VENV)/.ready-lint ## ruff, mypy, codespell and oxlint; no engine is installed for it
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/oxlint --quiet

container-engine: ## install a container runtime (Debian's docker.io, as root) for the tests that need one
	@if command -v dockerd || docker version >/dev/null 2>&1; then echo "a container runtime is installed"; \
	elif [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "container-engine: needs root and apt-get. Install docker or podman yourself."; exit 1; \
	else apt-get update && DEBIAN_FRONTEND=noninteractive \
		apt-get install --yes --no-install-recommends docker.io; fi

browser: ## install a browser (Debian's chromium-headless-shell, as root) for the tests that need one
	@if [ -x /usr/lib/chromium/chromium-headless-shell ] || command -v chromium || command -v google-chrome; then \
		echo "a browser is installed"; \
	elif [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "browser: needs root and apt-get. Install Chromium yourself."; exit 1; \
	else apt-get update && DEBIAN_FRONTEND=noninteractive \
		apt-get install --yes --no-install-recommends chromium-headless-shell fonts-dejavu-core; fi

screenshots: $(VENV)/.ready-browser ## take the pictures of docs/images in a real browser
	$(BIN)/pytest -m browser tests/browser --screenshots docs/images $(PYTEST)

release-check: $(VENV)/.ready-test ## build sdist and wheel, install the wheel elsewhere, evaluate from there
	$(BIN)/python .ci/release_check.py

picture: $(VENV)/.ready ## draw the README's picture from a real run
	$(BIN)/python docs/make_picture.py

reference: $(VENV)/.ready ## write the reference pages that are generated
	$(BIN)/python docs/make_reference.py

clean: ## remove the environment and caches, never results
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "assay needs Python 3.11 or later: make PYTHON=...")'
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.ready: pyproject.toml $(BIN)/python
	$(PIP) --editable '.[gguf,apr]'
	touch $@

# Pin torch: otherwise pip may choose a version that brings gigabytes of further packages.
$(VENV)/.ready-hf: pyproject.toml $(VENV)/.ready
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[gguf,hf]'
	touch $@

$(VENV)/.ready-lint: pyproject.toml $(BIN)/python
	$(PIP) --editable '.[lint]'
	touch $@

$(VENV)/.ready-test: pyproject.toml $(BIN)/python
	$(PIP) --editable '.[gguf,apr,openai,serve,report,dev]'
	touch $@

$(VENV)/.ready-browser: pyproject.toml $(BIN)/python
	$(PIP) --editable '.[gguf,apr,openai,serve,report,browser,dev]'
	touch $@

$(VENV)/.ready-all: pyproject.toml $(VENV)/.ready-hf
	$(PIP) --editable '.[gguf,apr,hf,openai,serve,parquet,ray,wasm,report,browser,dev]'
	touch $@
