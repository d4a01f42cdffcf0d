"""Reports of what Spark's processes plan, read, write and commit."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from spark_reads import load
from spark_writes import save

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
