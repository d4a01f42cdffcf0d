"""Every readable table of the conformance corpus gives the rows that its readers agree on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from corpus import (
    corpus_dir,
    exact_tables,
    expected_rows,
    location_map,
    skip_where_files_are_absent,
)
from oracles.canon import canonical_rows

from icebergds import load_table
from icebergds.errors import MissingFileError
from icebergds.scan.plan.files import plan_files

EXACT = exact_tables()
SNAPSHOTS = [
    (table, snapshot_id)
    for table in EXACT
    for snapshot_id, expected in table.get("time_travel", {}).items()
    if "rows" in expected
]
PLANNED = [table for table in EXACT if "scan_plan_file" in table]


@pytest.mark.parametrize("table", EXACT, ids=lambda table: table["id"])
def test_reads_the_expected_rows(table: dict[str, Any]) -> None:
    loaded = load_table(str(corpus_dir() / table["metadata"]), location_map=location_map(table))
    try:
        rows = loaded.scan().to_arrow()
    except MissingFileError as error:
        skip_where_files_are_absent(error)
    assert canonical_rows(rows, table["schema"]) == expected_rows(table)


@pytest.mark.parametrize(
    ("table", "snapshot_id"), SNAPSHOTS, ids=[f"{t['id']}@{s}" for t, s in SNAPSHOTS]
)
def test_reads_the_expected_number_of_rows_of_each_snapshot(
    table: dict[str, Any], snapshot_id: str
) -> None:
    loaded = load_table(str(corpus_dir() / table["metadata"]), location_map=location_map(table))
    try:
        rows = loaded.scan(snapshot_id=int(snapshot_id)).to_arrow()
    except MissingFileError as error:
        skip_where_files_are_absent(error)
    assert rows.num_rows == table["time_travel"][snapshot_id]["rows"]


@pytest.mark.parametrize("table", PLANNED, ids=lambda table: table["id"])
def test_plans_the_data_files_and_deletes_that_java_plans(table: dict[str, Any]) -> None:
    expected = json.loads((corpus_dir() / table["scan_plan_file"]).read_text())
    loaded = load_table(str(corpus_dir() / table["metadata"]), location_map=location_map(table))
    try:
        planned = plan_files(
            loaded.io, loaded.metadata, loaded.current_snapshot(), loaded.schema()
        ).files
    except MissingFileError as error:
        skip_where_files_are_absent(error)
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
