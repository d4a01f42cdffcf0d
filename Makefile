# Each target sets up what it needs; `make check` and `make test` are what CI runs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SPARK41 := .venv-spark41
NEWEST := .venv-newest-python
TOOLS := .venv-tools
NEWEST_TOOLS := .venv-tools-newest
NEWEST_PYTHON ?= $(lastword $(shell .ci/pythons.sh))
# Each of them has a Spark session of its own: about 3 GB.
SPARK_WORKERS ?= 2
SERVERS ?= .ci/servers.sh
PYTEST := -m pytest --quiet
PLAIN := --numprocesses auto --dist worksteal \
	--ignore spark_tests/spark --ignore spark_tests/interop --ignore spark_tests/tools
# In the order of the tests, which begin with the longest.
SPARK := --numprocesses $(SPARK_WORKERS) --dist loadfile --no-loadscope-reorder

# Many processes import the package, each of which would compile it.
export PYTHONDONTWRITEBYTECODE =
export PYSPARK_PYTHON = $(CURDIR)/$(BIN)/python
export ICEBERGDS_JAVA_PYTHON = $(CURDIR)/$(SPARK41)/bin/python

.PHONY: demo cdc encryption maintenance tour test test-plain test-spark test-newest-python test-spark41 \
	test-every-spark test-tools test-matrix test-wheel simulate nightly check interop docs wheel \
	bench clean

demo: $(VENV)/.installed-for-use
	$(BIN)/python examples/demo.py

cdc: $(VENV)/.installed-for-use
	$(BIN)/python examples/cdc.py

encryption: $(VENV)/.installed
	$(BIN)/python examples/encryption.py

maintenance: $(VENV)/.installed-for-use
	$(BIN)/python examples/maintenance.py

tour: $(VENV)/.installed
	$(BIN)/python examples/tour.py

# Side by side: the one computes while the other waits.
test: $(VENV)/.installed
	@.ci/servers.sh || true
	$(MAKE) --jobs 2 SERVERS=true test-plain test-spark

# What starts no Spark session. Tests of servers that cannot be had are skipped.
test-plain: $(VENV)/.installed
	@$(SERVERS) || true
	$(BIN)/python $(PYTEST) $(PLAIN)

test-spark: $(VENV)/.installed
	@$(SERVERS) || true
	$(BIN)/python $(PYTEST) $(SPARK) spark_tests/spark

# What users do, with the packages that they have, and what needs no others: all pages of the
# documentation run here.
test-newest-python: $(NEWEST)/.installed
	$(NEWEST)/bin/python $(PYTEST) spark_tests/commit spark_tests/expr
	ICEBERGDS_PROFILE=nightly PYSPARK_PYTHON=$(CURDIR)/$(NEWEST)/bin/python \
		$(NEWEST)/bin/python $(PYTEST) spark_tests/spark/test_spark_docs.py

interop: $(VENV)/.installed $(SPARK41)/.installed
	export ICEBERGDS_WITH_AWS=1 && . .ci/java_oracle.sh && \
		$(BIN)/python $(PYTEST) $(SPARK) spark_tests/interop

# What holds or fails on every Spark alike is left out.
test-spark41: $(SPARK41)/.installed
	PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python $(PYTEST) $(SPARK) -m "not every_spark" spark_tests/spark

# What every Spark passes or fails alike, with the examples and rounds of `make test`.
test-every-spark: $(SPARK41)/.installed
	ICEBERGDS_PROFILE=pull PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python $(PYTEST) $(SPARK) -m every_spark spark_tests/spark

# Tools of others, with the packages that they want: on Spark 4.1, and on the newest. dbt-core 2 is
# another program.
test-tools: $(TOOLS)/.installed $(NEWEST_TOOLS)/.installed
	PYSPARK_PYTHON=$(CURDIR)/$(TOOLS)/bin/python \
		$(TOOLS)/bin/python $(PYTEST) spark_tests/tools
	PYSPARK_PYTHON=$(CURDIR)/$(NEWEST_TOOLS)/bin/python \
		$(NEWEST_TOOLS)/bin/python $(PYTEST) spark_tests/tools

# The oldest and the newest packages that are supported, on every Python of the machine.
test-matrix:
	$(PYTHON) .ci/matrix.py

# Concurrent writers on storage and catalogs that fail, from new seeds; see docs/reliability.md.
simulate: $(VENV)/.installed
	$(BIN)/python -m icebergds.testing.simulate --minutes 4
	$(BIN)/python -m icebergds.testing.simulate --minutes 4 --catalog filesystem
	$(BIN)/python -m icebergds.testing.simulate --minutes 2 --kill

# Everything: all examples and rounds, from a new seed; every test of Spark on Spark 4.1 too. A part
# that fails does not keep the others from running.
nightly: export ICEBERGDS_PROFILE = nightly
nightly: $(VENV)/.installed $(SPARK41)/.installed
	@.ci/servers.sh || true
	@failed=; \
	$(MAKE) check docs || failed="$$failed check docs"; \
	$(MAKE) test-wheel || failed="$$failed test-wheel"; \
	$(MAKE) test-tools || failed="$$failed test-tools"; \
	$(MAKE) --jobs 2 --keep-going --output-sync interop test-spark41 || failed="$$failed interop"; \
	$(MAKE) --jobs 2 --keep-going SERVERS=true test-plain test-spark || failed="$$failed test"; \
	$(MAKE) test-every-spark || failed="$$failed test-every-spark"; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

check: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site of the documentation, in `site/`. Tests look at it in a browser if it is there.
docs: $(VENV)/.installed-for-release
	$(BIN)/mkdocs build --strict --quiet

# What a release consists of, in `dist/`.
wheel: $(VENV)/.installed-for-release
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*

# The wheel, alone and with each extra, in environments of their own.
test-wheel: wheel $(VENV)/.installed
	ICEBERGDS_WHEEL=$$(echo $(CURDIR)/dist/*.whl) $(BIN)/python $(PYTEST) spark_tests/test_installs.py

# Java Iceberg takes part, so it runs on the Spark that Java Iceberg has a runtime for.
bench: $(VENV)/.installed $(SPARK41)/.installed
	$(SPARK41)/bin/python -m pip install --quiet --editable ".[bench]"
	$(SERVERS)
	export ICEBERGDS_WITH_AWS=1 && . .ci/java_oracle.sh && \
		{ test -f .cache/bench/index.json || $(BIN)/python benchmarks/make_tables.py .cache/bench; } && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/read.py .cache/bench && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/first_row.py .cache/bench && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/points.py .cache/bench/points && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/tpch.py .cache/bench/tpch && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/write.py .cache/bench/write && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/small_files.py .cache/bench/small && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/metadata_tables.py .cache/bench/metadata && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/updates.py .cache/bench/updates && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/imports.py .cache/bench/imports && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/row_changes.py .cache/bench/row_changes && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/changes_by_key.py .cache/bench/changes_by_key && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/streaming.py .cache/bench/streaming && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/maintenance.py .cache/bench/maintenance && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/storage_spark.py && \
		PYSPARK_PYTHON=$(CURDIR)/$(SPARK41)/bin/python \
		$(SPARK41)/bin/python benchmarks/tpch_s3.py .cache/bench/tpch
	$(BIN)/python benchmarks/planning.py .cache/bench/planning
	$(BIN)/python benchmarks/manifests.py
	$(BIN)/python benchmarks/commits.py
	$(BIN)/python benchmarks/maintenance_memory.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/equality_scale.py
	$(BIN)/python benchmarks/storage.py
	$(BIN)/python benchmarks/page_skipping.py
	$(BIN)/python benchmarks/encryption.py

clean:
	rm -rf $(VENV) $(SPARK41) $(NEWEST) $(TOOLS) .cache dist site spark-warehouse

# What a user needs, and no more.
$(VENV)/.installed-for-use: pyproject.toml Makefile
	@echo "Installing icebergds and PySpark in $(VENV): a minute or so, and the download of PySpark"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed: $(VENV)/.installed-for-use
	@echo "Installing what tests and linters need in $(VENV)"
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable ".[test,lint]"
	@touch $@

$(VENV)/.installed-for-release: $(VENV)/.installed-for-use
	@echo "Installing what the documentation and the wheel need in $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable ".[docs,wheel]"
	@touch $@

$(SPARK41)/.installed: pyproject.toml Makefile
	$(PYTHON) -m venv $(SPARK41)
	$(SPARK41)/bin/python -m pip install --quiet --upgrade pip
	$(SPARK41)/bin/python -m pip install --quiet --editable ".[cli,encryption,s3,sql-postgres,yaml]" \
		"pyspark[connect]==4.1.*" pytest pytest-xdist pytest-rerunfailures hypothesis
	touch $@

$(NEWEST)/.installed: pyproject.toml Makefile
	$(NEWEST_PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --editable ".[encryption,otel,report,sql-sqlite,yaml]" \
		duckdb opentelemetry-sdk polars pytest pytest-rerunfailures hypothesis
	touch $@

$(TOOLS)/.installed: pyproject.toml Makefile
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --editable ".[cli,sql-sqlite]" \
		"pyspark[connect,pipelines]==4.1.*" "dbt-core==1.11.*" "dbt-spark[session]==1.11.*" \
		"pandas<3" sqlmesh pytest pytest-rerunfailures hypothesis
	touch $@

$(NEWEST_TOOLS)/.installed: pyproject.toml Makefile
	$(PYTHON) -m venv $(NEWEST_TOOLS)
	$(NEWEST_TOOLS)/bin/python -m pip install --quiet --editable ".[cli,sql-sqlite]" \
		"pyspark[connect,pipelines]>=4.3" "ibis-framework[pyspark]" "pandera[pyspark]" "pandas<3" \
		apache-airflow dagster great-expectations hatchling ipython jupysql sparksql-magic \
		venv-pack pytest pytest-rerunfailures hypothesis
	touch $@
