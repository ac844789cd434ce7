# Two commands do everything on a machine with Python 3.11+ and a C++ compiler:
#   make demo    set up, train on the bundled corpus, evaluate, show suggestions
#   make test    set up, check the style and types, run the tests
# `pip install .` works without make.

# the first interpreter that really runs and is new enough (a name on the path may be only a shim)
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
VENV ?= .venv
BIN = $(VENV)/bin
NATIVE = $(wildcard longtail/_native/src/*)
MODEL ?= demo-model

.PHONY: demo test test-slow results lint bench bench-linear clean

demo: $(VENV)/.core
	@echo; echo "== The corpus: Debian packages, and the packages each is related to"
	$(BIN)/longtail inspect debian-related
	@echo; echo "== Training with the default recipe"
	$(BIN)/longtail train debian-related --out $(MODEL) --overwrite
	@echo; echo "== Scores on the test part"
	$(BIN)/longtail evaluate $(MODEL) debian-related --by-frequency
	@echo; echo "== Suggestions for texts of your own"
	$(BIN)/longtail predict $(MODEL) --table -k 5 "a text editor for Python programmers" "plot satellite orbits" "解析 JSON in C++"
	@echo "Now yours:  $(BIN)/longtail predict $(MODEL) \"…\" -k 5"

# The tests of the C++ kernels; they run with and without AVX2, and with the sanitizers
NATIVE_TESTS = tests/test_native_rank.py tests/test_native_rows.py tests/test_native_text.py tests/test_neighbours.py tests/test_linear.py \
	tests/test_linear_recipes.py tests/test_newton.py tests/test_tfidf.py tests/test_explain.py tests/test_graph.py \
	tests/test_boost.py tests/test_level_layout.py tests/test_feature_blocks.py tests/test_search.py tests/test_dense_search.py

test: $(VENV)/.dev lint
	$(BIN)/python -m pytest -n auto -m "not slow"
	LONGTAIL_SIMD=portable $(BIN)/python -m pytest -n auto -m "not slow" $(NATIVE_TESTS)

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m slow

# The native tests with every memory access and operation checked (GCC or Clang on Linux)
sanitize:
	test -x $(VENV)-sanitize/bin/python || $(PYTHON) -m venv $(VENV)-sanitize
	$(VENV)-sanitize/bin/python -m pip install --quiet -c constraints.txt -C cmake.define.LONGTAIL_SANITIZE=ON \
		-C build-dir=build/sanitize -e '.[dev]'
	for simd in avx2 portable; do LONGTAIL_SIMD=$$simd ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		$(VENV)-sanitize/bin/python -m pytest -q -m "not slow" $(NATIVE_TESTS) || exit 1; done

# Pages and tables that are written from the recorded runs; FILES have marked tables (docs/evidence.md)
FILES = README.md docs/cascade.md docs/dual.md
results: $(VENV)/.core
	$(BIN)/longtail reproduce --from-results --quiet --rewrite $(FILES)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python bench/metrics.py
	$(BIN)/python bench/read.py
	$(BIN)/python bench/growth.py --sizes 10000 100000 --rounds 1
	$(BIN)/python bench/graph.py --only scipy

# compares the linear engine with other projects, whose environments are made in the cache; see docs/bench-linear.md
bench-linear: $(VENV)/.dev
	$(BIN)/python bench/linear.py --install $(if $(CORPUS),--corpus $(CORPUS)) --json bench/results/linear.jsonl

$(VENV)/.core: pyproject.toml CMakeLists.txt constraints.txt $(NATIVE)
	@test -n "$(PYTHON)" || { echo "longtail needs Python 3.11 or newer, but none was found: use make PYTHON=…"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist $(MODEL) .pytest_cache .mypy_cache .ruff_cache .hypothesis
