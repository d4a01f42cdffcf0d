"""Tools that work on the DataFrames and the SQL of a registered session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from doc_pages import section
from pyspark.sql import SparkSession

import icebergds

_Run = Callable[[str], dict[str, Any]]


def rows(table: str, *columns: str) -> list[tuple[Any, ...]]:
    scan = icebergds.load_table(f"lake.{table}").scan(columns=columns)
    return sorted(tuple(row.values()) for row in scan.to_arrow().to_pylist())


def test_pandas_on_spark_reads_and_writes_tables(run_section: _Run, session: SparkSession) -> None:
    found = run_section("pandas API on Spark")
    assert found["events"].index.name == "id"
    assert rows("db.prices", "country", "price") == [("DE", 3.0), ("xx", 6.0)]
    cheap = session.read.format("icebergpy").load(
        icebergds.load_table("lake.db.events").location().replace("/events", "/cheap")
    )
    assert sorted(tuple(row) for row in cheap.collect()) == [(0, 0.0), (1, 1.5)]


def test_ibis_reads_creates_and_inserts(run_section: _Run) -> None:
    pytest.importorskip("ibis", reason="Ibis is not installed")
    found = run_section("Ibis")
    sums = [("DE", 3.0), ("xx", 6.0)]
    assert [tuple(row.values()) for row in found["rows"].to_pylist()] == sums
    assert rows("db.ibis_prices", "country", "price") == sorted(sums * 2)


def test_great_expectations_checks_a_table(run_section: _Run, session: SparkSession) -> None:
    pytest.importorskip("great_expectations", reason="Great Expectations is not installed")
    found = run_section("Great Expectations")
    assert found["result"].success
    assert found["result"].result["element_count"] == 4
    session.sql("INSERT INTO lake.db.events VALUES (1, 'DE', 1.0)")
    again = (
        found["asset"]
        .get_batch_definition("all")
        .get_batch({"dataframe": session.table("lake.db.events")})
    )
    failed = again.validate(found["gx"].expectations.ExpectColumnValuesToBeUnique(column="id"))
    assert not failed.success


def test_pandera_checks_a_table(run_section: _Run, session: SparkSession) -> None:
    pytest.importorskip("pandera", reason="Pandera is not installed")
    found = run_section("Pandera")
    assert not found["errors"]
    session.sql("INSERT INTO lake.db.events VALUES (-1, 'NO', 1.0)")
    checked = found["Events"].validate(session.table("lake.db.events"))
    assert (
        "DATAFRAME_CHECK" in str(dict(checked.pandera.errors)) or "DATA" in checked.pandera.errors
    )


@pytest.mark.parametrize("package", ["sparksql_magic", "sql"])
def test_magics_of_notebooks_run_statements(package: str, session: SparkSession) -> None:
    pytest.importorskip(package, reason="it is not installed")
    from IPython.core.interactiveshell import InteractiveShell

    cells = {
        block.code.split()[1]: block.code
        for block in section("docs/with-other-tools.md", "Notebooks")
    }
    shell = InteractiveShell()
    shell.push({"spark": session})
    load, *rest = cells[package].strip().split("\n")
    shell.run_cell(load).raise_error()
    if package == "sql":
        for line in rest:
            result = shell.run_cell(line)
            result.raise_error()
        found = [tuple(row) for row in result.result]
    else:
        shell.run_cell("\n".join(rest)).raise_error()
        found = [tuple(row) for row in shell.user_ns["counts"].collect()]
    assert sorted(found) == [("DE", 2), ("xx", 2)]


def test_dagster_keeps_assets_in_tables(run_section: _Run) -> None:
    pytest.importorskip("dagster", reason="Dagster is not installed")
    assert run_section("Dagster")["result"].success
    assert rows("db.cheap_events", "id") == [(0,), (1,), (2,)]
    assert rows("db.cheap_countries", "country", "count") == [("DE", 2), ("xx", 1)]
