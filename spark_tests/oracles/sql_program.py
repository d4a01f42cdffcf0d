"""Runs scripts of SQL on a session of Spark and says what each statement gave.

With the Java interpreter, `python -m oracles.sql_program DIRECTORY` runs the cases of
DIRECTORY/cases.json on Java Iceberg, whose catalog `lake` is over DIRECTORY/warehouse and whose
catalog `views` is in the database DIRECTORY/views.db, and writes DIRECTORY/results.json.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

# Numbers this large are ids of snapshots; the tests' own are small.
_IDS_FROM = 10**12
_FIRST_YEAR_OF_RUNS = 2025
# Null there.
_UNSAID_BY_JAVA = {"changed_partition_count"}
_OF_SNAPSHOTS = re.compile(r"\{(id|ms|time):(\d+)\}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SPARK = re.compile(r"Spark \d+\.\d+\.\d+")
_PATH = re.compile(r"(file:)?/[^\s']*")


def run_cases(
    spark: SparkSession, cases: Mapping[str, Sequence[str]], files: Path
) -> dict[str, list[Any]]:
    """What each statement of each case gave: its columns and rows, or the kind of its error.

    In statements,
    - `{case}` is the name of the case;
    - `{ns}` is its namespace, `lake.<case>`, and `{db}` one of a catalog with views;
    - `{id:n}` is the id of the n-th snapshot of the table `t` in it, from 0; `{ms:n}` and
      `{time:n}` are when it was taken, in milliseconds and as text;
    - `{location}` is the location of that table;
    - `{metadata}` is the metadata file of the table `t` in `{db}`;
    - `{dir}` is a directory of the case's own, below `files`.
    """
    return {
        name: [_ran(spark, name, text, files / name) for text in texts]
        for name, texts in cases.items()
    }


def create_namespaces(spark: SparkSession, cases: Mapping[str, Sequence[str]]) -> None:
    """Creates the namespaces of the cases."""
    for name, texts in cases.items():
        spark.sql(f"CREATE NAMESPACE lake.{name}")
        if any("{db}" in text for text in texts):
            spark.sql(f"CREATE NAMESPACE views.{name}")


def _ran(spark: SparkSession, case: str, text: str, files: Path) -> Any:
    try:
        df = spark.sql(_filled(spark, case, text).replace("{dir}", str(files)))
        columns = [[field.name, field.dataType.simpleString()] for field in df.schema]
        rows = [
            [_plain(*each) for each in zip(df.columns, row, strict=True)] for row in df.collect()
        ]
    except PySparkException as error:
        return {"error": error.getCondition() or type(error).__name__, "message": str(error)[:300]}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)[:300]}
    return {"columns": columns, "rows": sorted(rows, key=json.dumps)}


def _filled(spark: SparkSession, case: str, text: str) -> str:
    namespace = f"lake.{case}"
    asked = set(_OF_SNAPSHOTS.findall(text))
    if asked:
        found = spark.sql(
            "SELECT snapshot_id AS id, unix_millis(committed_at) AS ms, "
            "date_format(committed_at, 'yyyy-MM-dd HH:mm:ss.SSS') AS time "
            f"FROM {namespace}.t.snapshots ORDER BY committed_at"
        ).collect()
        for what, number in asked:
            text = text.replace(f"{{{what}:{number}}}", str(found[int(number)][what]))
    if "{location}" in text:
        described = spark.sql(f"DESCRIBE EXTENDED {namespace}.t").collect()
        [location] = [row["data_type"] for row in described if row["col_name"] == "Location"]
        text = text.replace("{location}", location)
    if "{metadata}" in text:
        log = spark.sql(f"SELECT * FROM views.{case}.t.metadata_log_entries ORDER BY timestamp")
        text = text.replace("{metadata}", log.collect()[-1]["file"])
    named = text.replace("{ns}", namespace).replace("{db}", f"views.{case}")
    return named.replace("{case}", case)


def _plain(name: str, value: Any) -> Any:
    """A value of a column as JSON has it, without what differs from run to run."""
    if "bytes" in name:
        return "<bytes>"
    return "<unsaid>" if name in _UNSAID_BY_JAVA else _without_chance(value)


def _without_chance(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return "<id>" if abs(value) >= _IDS_FROM else value
    if isinstance(value, datetime):
        return "<time>" if value.year >= _FIRST_YEAR_OF_RUNS else str(value)
    if isinstance(value, str):
        if value.lstrip("-").isdecimal() and len(value) > 12:
            return "<id>"
        return _UUID.sub("<uuid>", _PATH.sub("<path>", _SPARK.sub("<Spark>", value)))
    if isinstance(value, dict):
        return {
            str(_without_chance(key)): _without_chance(each) for key, each in sorted(value.items())
        }
    if isinstance(value, list | tuple):
        return [_without_chance(each) for each in value]
    return str(value)


def main(directory: Path) -> None:
    from oracles.java_environment import class_path
    from oracles.jvm import start_spark

    warehouse = f"file:{directory / 'warehouse'}"
    spark = start_spark(
        directory / "warehouse",
        Path(os.environ["ICEBERGDS_ICEBERG_JAR"]),
        **{"spark.driver.extraClassPath": class_path()},
        **_catalog("lake", type="hadoop", warehouse=warehouse),
        # Its procedures read Spark's own tables by way of it.
        **_catalog(
            "spark_catalog",
            type="hadoop",
            warehouse=f"{warehouse}/spark",
            kind="SparkSessionCatalog",
        ),
        **_catalog(
            "views",
            uri=f"jdbc:sqlite:{directory}/views.db",
            warehouse=f"{warehouse}/views",
            **{
                "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
                "jdbc.schema-version": "V1",
            },
        ),
    )
    cases = json.loads((directory / "cases.json").read_text())
    create_namespaces(spark, cases)
    results = run_cases(spark, cases, directory / "files")
    (directory / "results.json").write_text(json.dumps(results, indent=1))
    spark.stop()


def _catalog(name: str, kind: str = "SparkCatalog", **properties: str) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    given = {f"{prefix}.{key}": value for key, value in properties.items()}
    return {
        prefix: f"org.apache.iceberg.spark.{kind}",
        f"{prefix}.cache-enabled": "false",
        **given,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
