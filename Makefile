# Each target sets up what it needs; `make check` and `make test` are what CI runs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SPARK41 := .venv-spark41
# Each worker has a Spark session of its own: about 3 GB.
WORKERS ?= 2
PYTEST := -m pytest --numprocesses $(WORKERS) --dist loadfile

export PYSPARK_PYTHON = $(CURDIR)/$(BIN)/python
export ICEBERGDS_JAVA_PYTHON = $(CURDIR)/$(SPARK41)/bin/python

.PHONY: demo cdc test check interop test-spark41 bench clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

cdc: $(VENV)/.installed
	$(BIN)/python examples/cdc.py

test: $(VENV)/.installed
	$(BIN)/python $(PYTEST) -m "not interop"

interop: $(VENV)/.installed $(SPARK41)/.installed
	. .ci/java_oracle.sh && $(BIN)/python $(PYTEST) -m interop

# What takes long and holds or fails on every Spark alike is left out.
test-spark41: $(SPARK41)/.installed
	PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python $(PYTEST) spark_tests/spark \
		--ignore spark_tests/spark/test_spark_row_changes.py \
		--ignore spark_tests/spark/test_spark_row_overwrite.py \
		--ignore spark_tests/spark/test_spark_races.py \
		--ignore spark_tests/spark/test_spark_stream_kills.py \
		--ignore spark_tests/spark/test_spark_stream_races.py \
		--ignore spark_tests/spark/test_spark_row_change_programs.py \
		--ignore spark_tests/spark/test_spark_write_programs.py

check: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Java Iceberg takes part, so it runs on the Spark that Java Iceberg has a runtime for.
bench: $(VENV)/.installed $(SPARK41)/.installed
	. .ci/java_oracle.sh && \
		{ test -f .cache/bench/index.json || $(BIN)/python benchmarks/make_tables.py .cache/bench; } && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/read.py .cache/bench && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/write.py .cache/bench/write && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/row_changes.py .cache/bench/row_changes && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/streaming.py .cache/bench/streaming
	$(BIN)/python benchmarks/planning.py .cache/bench/planning
	$(BIN)/python benchmarks/manifests.py
	$(BIN)/python benchmarks/commits.py

clean:
	rm -rf $(VENV) $(SPARK41) .cache spark-warehouse

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[test,lint]"
	touch $@

$(SPARK41)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SPARK41)
	$(SPARK41)/bin/python -m pip install --quiet --upgrade pip
	$(SPARK41)/bin/python -m pip install --quiet --editable . "pyspark[connect]==4.1.*" \
		pytest pytest-xdist hypothesis
	touch $@
