"""Every readable table of the conformance corpus gives the rows that its readers agree on."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from corpus import corpus_dir, corpus_tables
from oracles.canon import canonical_rows

from icebergds import load_table
from icebergds.errors import MissingFileError
from icebergds.scan.plan.files import plan_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READABLE = [table for table in corpus_tables() if table["confidence"] in ("A", "B")]
VARIANTS = [table for table in READABLE if "type:variant" in table["features"]]
EXACT = [table for table in READABLE if table not in VARIANTS]
SNAPSHOTS = [
    (table, snapshot_id) for table in EXACT for snapshot_id in table.get("time_travel", {})
]


def location_map(table: dict[str, Any]) -> dict[str, str]:
    root = corpus_dir()
    return {entry["prefix"]: str(root / entry["replace_with"]) for entry in table["resolve"]}


def expected_rows(table: dict[str, Any]) -> list[str]:
    path: Path = corpus_dir() / table["expected"]["rows_file"]
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return sorted(text.decode("utf-8").splitlines())


def skip_where_files_are_absent(error: MissingFileError, table: dict[str, Any]) -> None:
    """Some tables share files with tables that this copy of the corpus may leave out."""
    if str(corpus_dir()) in str(error):
        pytest.skip(f"{table['id']}: the corpus lacks one of its files: {error}")
    raise error


@pytest.mark.parametrize("table", EXACT, ids=lambda table: table["id"])
def test_reads_the_expected_rows(table: dict[str, Any]) -> None:
    loaded = load_table(str(corpus_dir() / table["metadata"]), location_map=location_map(table))
    try:
        rows = loaded.scan().to_arrow()
    except MissingFileError as error:
        skip_where_files_are_absent(error, table)
    assert canonical_rows(rows, table["schema"]) == expected_rows(table)


@pytest.mark.parametrize(
    ("table", "snapshot_id"), SNAPSHOTS, ids=[f"{t['id']}@{s}" for t, s in SNAPSHOTS]
)
def test_reads_the_expected_number_of_rows_of_each_snapshot(
    table: dict[str, Any], snapshot_id: str
) -> None:
    loaded = load_table(str(corpus_dir() / table["metadata"]), location_map=location_map(table))
    expected = table["time_travel"][snapshot_id]
    if "rows" not in expected:
        pytest.skip(f"{table['id']}: nothing is known of snapshot {snapshot_id}")
    try:
        rows = loaded.scan(snapshot_id=int(snapshot_id)).to_arrow()
    except MissingFileError as error:
        skip_where_files_are_absent(error, table)
    assert rows.num_rows == expected["rows"]


@pytest.mark.spark
@pytest.mark.parametrize("table", EXACT, ids=lambda table: table["id"])
def test_spark_reads_the_expected_rows(table: dict[str, Any], spark: SparkSession) -> None:
    reader = spark.read.format("icebergpy")
    if table["resolve"]:
        reader = reader.option("location-map", json.dumps(location_map(table)))
    frame = reader.load(str(corpus_dir() / table["metadata"]))
    try:
        rows: pa.Table = frame.toArrow()
    except Exception as error:
        if "MissingFileError" in str(error):
            skip_where_files_are_absent(MissingFileError(str(error)), table)
        raise
    assert canonical_rows(rows, table["schema"]) == expected_rows(table)


@pytest.mark.parametrize("table", EXACT, ids=lambda table: table["id"])
def test_plans_the_data_files_and_deletes_that_java_plans(table: dict[str, Any]) -> None:
    if "scan_plan_file" not in table:
        pytest.skip(f"{table['id']}: no plan is known")
    expected = json.loads((corpus_dir() / table["scan_plan_file"]).read_text())
    loaded = load_table(str(corpus_dir() / table["metadata"]), location_map=location_map(table))
    try:
        planned = plan_files(loaded.io, loaded.metadata, loaded.current_snapshot(), loaded.schema())
    except MissingFileError as error:
        skip_where_files_are_absent(error, table)
    found = {
        file.entry.data_file.file_path: {
            delete.data_file.file_path
            for delete in (*file.deletes.position_deletes, *file.deletes.equality_deletes)
        }
        for file in planned
    }
    assert found == {
        file["data_file"]: {delete["file"] for delete in file["deletes"]} for file in expected
    }
