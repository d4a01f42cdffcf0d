"""Tables that icebergds wrote, as Java Iceberg reads, prunes and describes them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
import written_tables  # noqa: F401  (registers the tables)
from effort import scaled
from filters import Filter, filters_of
from java_process import JavaProcess
from oracles.comparison import difference
from our_tables import OUR_TABLES, OurTable

pytestmark = pytest.mark.interop

# Java's generic reader has no value of its own for a constant of these types.
_JAVA_CANNOT = {"identity_of_fixed", "identity_of_nanoseconds"}
_READ = [name for name in OUR_TABLES if name not in _JAVA_CANNOT]
_SHAPES = ("geometries", "geographies")
_HISTORIES = [name for name in OUR_TABLES if name.startswith(("history", "branches"))]
_MEASURED = [name for name in OUR_TABLES if name.startswith(("types", "full", "short", "counts"))]
_FILTERED_BY_ROW = ("types_v2_parquet", "types_v3_avro", "types_v1_orc", "many_row_groups")


@pytest.mark.parametrize("name", _READ)
def test_java_reads_the_rows_that_were_written(
    java_process: JavaProcess, our_tables: Mapping[str, OurTable], name: str
) -> None:
    table = our_tables[name]
    ids = [moment.snapshot_id for moment in table.moments]
    read = java_process.ask("rows", table=name, snapshot_ids=ids)
    for reader in ("generic", "spark"):
        if read[reader] is not None:
            problem = difference(read[reader], table.expected(), f"{name} by {reader}")
            assert problem is None, problem
    for found, moment in zip(read["snapshots"], table.moments, strict=True):
        names = [field["name"] for field in found["schema"]["fields"]]
        assert names == [field["name"] for field in moment.schema["fields"]]
        problem = difference(found["rows"], moment.rows, f"{name} at {moment.snapshot_id}")
        assert problem is None, problem


@pytest.mark.parametrize("name", [name for name in _READ if name not in ("empty", *_SHAPES)])
def test_java_prunes_no_file_that_has_rows_of_a_filter(
    java_process: JavaProcess, our_tables: Mapping[str, OurTable], name: str
) -> None:
    table = our_tables[name]
    conditions = _some_filters(table, scaled(60))
    file_of = _file_of_each_row(table)
    planned = java_process.ask("planned", table=name, filters=[f.java() for f in conditions])
    for condition, files in zip(conditions, planned, strict=True):
        needed = {
            file_of[row["id"]]
            for row in table.rows
            if condition.matches(row) and not condition.is_ambiguous(row)
        }
        assert needed <= set(files), f"{condition} needs {needed - set(files)}"


@pytest.mark.parametrize("name", _FILTERED_BY_ROW)
def test_java_finds_the_rows_of_a_filter(
    java_process: JavaProcess, our_tables: Mapping[str, OurTable], name: str
) -> None:
    table = our_tables[name]
    conditions = _some_filters(table, 40)
    java = [condition.java() for condition in conditions]
    found = java_process.ask("filtered", table=name, filters=java, column="id")
    for condition, ids in zip(conditions, found, strict=True):
        unclear = {row["id"] for row in table.rows if condition.is_ambiguous(row)}
        expected = {row["id"] for row in table.rows if condition.matches(row)} - unclear
        assert set(ids) - unclear == expected, str(condition)


def test_java_prunes_by_our_partitions_and_bounds(
    java_process: JavaProcess, our_tables: Mapping[str, OurTable]
) -> None:
    """The filters of one row leave one file, where rows and files are one."""
    for name, column in (
        ("days", "c_timestamp"),
        ("truncate_v2", "c_long"),
        ("bucket_v2", "c_long"),
    ):
        table = our_tables[name]
        values = {row[column] for row in table.rows if row.get(column) is not None}
        conditions = [Filter("equal", column, table.columns[column], (v,)) for v in values]
        planned = java_process.ask("planned", table=name, filters=[f.java() for f in conditions])
        assert max(map(len, planned)) <= 2, name


@pytest.mark.parametrize("name", _MEASURED)
def test_metrics_are_those_of_java_for_the_same_rows(
    java_process: JavaProcess, our_tables: Mapping[str, OurTable], name: str
) -> None:
    table = our_tables[name]
    file_format = table.table.properties.get("write.format.default", "parquet")
    kinds = {str(field["id"]): field["type"] for field in table.schema["fields"]}
    if name == "short_bounds":  # Java does not shorten fixed values.
        kinds = {column: "uuid" if "fixed" in kind else kind for column, kind in kinds.items()}
    for file in java_process.ask("metrics", table=name, file_format=file_format):
        ours, java = file["ours"], file["java"]
        assert ours["records"] == java["records"]
        if file_format == "avro":
            continue  # Java has no metrics of Avro files.
        for count in ("valueCounts", "nullValueCounts", "nanValueCounts"):
            assert ours[count] == java[count], count
        for bound in ("lowerBounds", "upperBounds"):
            for column in ours[bound].keys() | java[bound].keys():
                if not _may_differ(kinds[column], file_format):
                    found = _plain_zero(ours[bound].get(column), kinds[column])
                    expected = _plain_zero(java[bound].get(column), kinds[column])
                    assert found == expected, (bound, column, kinds[column])


@pytest.mark.parametrize(
    ("name", "lower", "upper"),
    [
        ("geometries", [-179, -1, 50], [179, 3, 50]),
        # From a greater longitude to a lesser, across 180.
        ("geographies", [178, -1, 50], [-179, 3, 50]),
    ],
)
def test_java_has_the_corners_of_boxes(
    java_process: JavaProcess,
    our_tables: Mapping[str, OurTable],
    name: str,
    lower: list[float],
    upper: list[float],
) -> None:
    assert name in our_tables
    [found] = java_process.ask("corners", table=name)
    assert found == {"2": [lower, upper]}
    [file] = java_process.ask("metrics", table=name, file_format="parquet")
    for bound in ("lowerBounds", "upperBounds"):
        # Java's own files have x and y of geometries, and no box of geographies. It has no
        # conditions that would use them.
        of_java = file["ours"][bound]["2"][:32] if name == "geometries" else None
        assert file["java"][bound].get("2") == of_java
    assert file["ours"]["valueCounts"] == file["java"]["valueCounts"]
    assert file["ours"]["nullValueCounts"] == file["java"]["nullValueCounts"]


@pytest.mark.parametrize("name", _HISTORIES)
def test_commits_record_what_java_records_of_the_same(
    java_process: JavaProcess, our_tables: Mapping[str, OurTable], name: str
) -> None:
    table = our_tables[name]
    compared = java_process.ask("replay", table=name, operations=table.operations)
    for number, (commit, operation) in enumerate(zip(compared, table.operations, strict=True)):
        ours, java = commit["ours"], commit["java"]
        what = f"{number}: {operation}"
        assert _summary(ours, operation) == _summary(java, operation), what
        rest = {key: value for key, value in ours.items() if key != "summary"}
        assert rest == {key: value for key, value in java.items() if key != "summary"}, what
        assert int(ours["summary"]["total-records"]) == len(table.moments[number].rows), what


def _some_filters(table: OurTable, count: int) -> list[Filter]:
    """The same ones each time; none on UUIDs, of which Java prunes by an order of its own."""
    columns = {name: kind for name, kind in table.columns.items() if kind != "uuid"}
    found = filters_of(columns, table.rows)
    return found if len(found) <= count else random.Random(table.name).sample(found, count)


def _file_of_each_row(table: OurTable) -> dict[Any, str]:
    read = table.table.scan(columns=["id", "_file"]).to_arrow()
    return dict(zip(read["id"].to_pylist(), read["_file"].to_pylist(), strict=True))


def _may_differ(kind: str, file_format: str) -> bool:
    # Java orders UUIDs by signed halves: our bounds hold in both orders. Of ORC files it has no
    # bounds of binary values, and shifts times before 1970.
    if kind == "uuid":
        return True
    if file_format != "orc":
        return False
    return kind == "binary" or kind.startswith(("fixed", "timestamp", "string", "double", "float"))


def _plain_zero(bound: str | None, kind: str) -> str | None:
    """A zero without its sign: both are bounds of the other."""
    if kind in ("float", "double") and bound is not None and bound.strip("0") in ("8", ""):
        return "0"
    return bound


def _summary(commit: Mapping[str, Any], operation: Mapping[str, Any]) -> dict[str, Any]:
    own = ("engine-", "iceberg-version", "icebergds.", "app-", "spark.app.id")
    summary = {k: v for k, v in commit["summary"].items() if not k.startswith(own)}
    for key in [key for key in summary if key.startswith("partitions.")]:
        summary[key] = set(summary[key].split(","))
    if "branch" in operation:
        # Java counts the totals of a new branch from nothing, although it begins with main's rows.
        summary = {k: v for k, v in summary.items() if not k.startswith("total-")}
    return summary
