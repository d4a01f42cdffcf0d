"""Reports of what Spark's processes plan, read, write and commit."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark_reads import load
from spark_writes import save

import icebergds
from icebergds.display import size_text
from icebergds.metrics import REPORTER

pytestmark = pytest.mark.spark

_MODULE = """
import os

def report(report):
    with open({path!r}, "a") as file:
        file.write(f"{{os.getpid()}} {{__import__('json').dumps(report.to_json())}}\\n")
"""


@pytest.fixture
def reports(spark: SparkSession, tmp_path: Path) -> tuple[str, Callable[[], list[Any]]]:
    """A reporter that every Python process of Spark can import, and what it has got since."""
    name, path = f"reports_{uuid.uuid4().hex}", tmp_path / "reports"
    module = tmp_path / f"{name}.py"
    module.write_text(_MODULE.format(path=str(path)))
    spark.sparkContext.addPyFile(str(module))

    def got() -> list[Any]:
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [json.loads(line.partition(" ")[2]) for line in lines]

    return f"{name}.report", got


def test_sparks_ui_names_the_table_and_says_what_is_read_of_it(
    front: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table({"id": range(100), "part": [number % 4 for number in range(100)]})
    catalog = icebergds.load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    catalog.create_table("db.t", rows.schema, partition_spec="part", properties=properties)
    table = catalog.load_table("db.t")
    table.append(rows)
    table.delete("id = 1", spark=front)
    read = table.scan("part = 1").to_df(front)
    (file,) = Path(table.location()).rglob("part=1/*.parquet")
    size = size_text(file.stat().st_size)
    plan: Any = read._jdf.queryExecution().executedPlan()
    assert f"parquet lake.db.t (1 of 4 files, {size}, 1 deletion vector)" in plan.toString()
    assert read.count() == 24
    # Listeners, such as that of OpenLineage, ask an entry of Spark's catalog where it is.
    catalog.create_table("db.plain", rows.schema).append(rows)
    front.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path))
    icebergds.register(front)
    for name, df in (
        ("t", table.scan("part = 2").to_df(front)),
        ("plain", front.read.table("lake.db.plain")),
        ("plain", front.read.table("lake.db.plain").where("id > 3").select("id")),
    ):
        leaf: Any = df._jdf.queryExecution().optimizedPlan().collectLeaves().head()
        found = leaf.catalogTable().get().location().getPath()
        assert found == catalog.load_table(f"db.{name}").location()


def test_every_process_reports_its_part(
    spark: SparkSession, tmp_path: Path, reports: tuple[str, Callable[[], list[Any]]]
) -> None:
    name, got = reports
    path = str(tmp_path / "t")
    rows = spark.range(0, 10, 1, 2).selectExpr("id", "id % 2 AS part")
    save(rows, path, **{REPORTER: name, "partition-by": "part", "create": "true"})
    told = got()
    commit = told.pop()
    assert [each["task"] for each in told] == ["write", "write"]
    assert sum(each["metrics"]["rows"]["value"] for each in told) == 10
    assert commit["report-type"] == "commit-report"
    assert commit["metrics"]["added-records"]["value"] == 10
    assert load(spark, path, **{REPORTER: name, "filter": "part = 1"}).count() == 5
    scan, *tasks = got()
    assert scan["report-type"] == "scan-report"
    assert scan["table-name"] == path
    assert scan["metrics"]["skipped-data-files"]["value"] == 2
    assert sum(each["metrics"]["rows"]["value"] for each in tasks) == 5
    assert {each["table-location"] for each in tasks} == {path}
