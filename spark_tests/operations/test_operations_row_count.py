"""Counts of scans: from metadata where that is exact, and always as many as there are rows."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.random_tables import RandomTable
from strategies.small_values import filters

from icebergds import Table, load_table
from icebergds.expr.nodes import TRUE
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.planned_scan import PlannedScan, task_groups_of
from icebergds.operations.read.row_count import count_from_metadata, count_rows
from icebergds.operations.read.snapshot_read import make_read_plan, resolve_read
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.scan.plan.files import plan_files
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.projection import project_columns
from icebergds.scan.read.files import read_scan_tasks
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import LONG, STRING, NestedField

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "part", STRING)))
SPEC = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "part"),))


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    """The ids 0 to 2 in part x, 10 to 12 in part y."""
    made = TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC, format_version=3)
    made.commit(*(file_of(made, start, part) for start, part in ((0, "x"), (10, "y"))))
    return made


def file_of(builder: TableBuilder, start: int, part: str) -> Any:
    return builder.data_file([(start + i, part) for i in range(3)], partition=(part,))


def loaded(builder: TableBuilder) -> Table:
    return load_table(str(builder.location))


def lose_data(builder: TableBuilder) -> None:
    """Deletes all files but metadata, so that nothing else can be read."""
    for path in builder.location.iterdir():
        if path.name != "metadata":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("filter", "rows"),
    [(None, 6), ("part = 'x'", 3), ("id >= 10", 3), ("part = 'y' and id < 100", 3), ("false", 0)],
)
def test_whole_files_are_counted_without_reading_them(
    builder: TableBuilder, filter: str | None, rows: int
) -> None:
    lose_data(builder)
    assert loaded(builder).scan(filter).count() == rows


def test_a_deletion_vector_deletes_the_rows_that_the_file_has(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC, format_version=3)
    first, second = file_of(builder, 0, "x"), file_of(builder, 10, "y")
    builder.commit(first, second)
    builder.commit(*builder.deletion_vectors([(first, [0, 2, 7])]))
    assert loaded(builder).scan().count() == 4


def test_rows_that_a_filter_selects_of_a_file_are_counted_by_reading(builder: TableBuilder) -> None:
    assert loaded(builder).scan("id > 0 and id < 12").count() == 4


def test_equality_deletes_are_counted_by_reading(builder: TableBuilder) -> None:
    # Of two keys, one is in the table.
    builder.commit(builder.equality_deletes(["id"], [(1,), (99,)], partition=("x",)))
    assert loaded(builder).scan().count() == 5


def test_position_deletes_of_one_row_twice_delete_one_row(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC)
    first = file_of(builder, 0, "x")
    builder.commit(first)
    for _ in range(2):
        builder.commit(builder.position_deletes({first.file_path: [1]}, partition=("x",)))
    assert loaded(builder).scan().count() == 2


def test_deleted_rows_count_if_they_are_returned(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC, format_version=3)
    first = file_of(builder, 0, "x")
    builder.commit(first)
    builder.commit(*builder.deletion_vectors([(first, [0, 2])]))
    scan = loaded(builder).scan(columns=["id", "_deleted"])
    assert scan.count() == scan.to_arrow().num_rows == 3


def test_counts_of_metadata_that_may_be_wrong_are_not_used(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC)
    builder.commit(replace(file_of(builder, 0, "x"), record_count=7))
    assert loaded(builder).scan().count() == 7
    scan = loaded(builder).scan(options={"wrong-counts": "warn"})
    assert scan.count() == scan.to_arrow().num_rows == 3


def test_a_table_without_snapshots_has_no_rows(tmp_path: Path) -> None:
    assert loaded(TableBuilder(tmp_path / "t", SCHEMA)).scan().count() == 0


def test_changes_are_counted(builder: TableBuilder) -> None:
    table = loaded(builder)
    assert table.changes().count() == table.changes().to_arrow().num_rows == 6


@given(st.data())
@examples(80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_as_many_rows_are_counted_as_are_read(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        made = RandomTable(data.draw, Path(directory) / "t")
        for _ in range(data.draw(st.integers(1, 8))):
            made.step()
        table = load_table(str(made.builder.location))
        ids = [None, *(snapshot.snapshot_id for snapshot in table.snapshots())]
        for snapshot_id in data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3)):
            options = ReadOptions(TimeTravel(snapshot_id))
            snapshot, schema = resolve_read(options, table.metadata, table.name)
            names = data.draw(st.sampled_from([["*"], ["_file", "_deleted"]]))
            columns = project_columns(table.metadata, schema, [(name,) for name in names])
            row_filter = data.draw(st.just(TRUE) | filters(schema))
            plan = replace(
                make_read_plan(options, table._state, schema, columns), row_filter=row_filter
            )
            found = plan_files(table.io, table.metadata, snapshot, schema, row_filter)
            files, splits = tuple(found.files), SplitOptions()
            scan = PlannedScan(
                table._state, snapshot, plan, files, splits, found.counts, for_native=False
            )
            groups = task_groups_of(scan, scan.files)
            read = sum(b.num_rows for group in groups for b in read_scan_tasks(plan, group))
            assert count_rows(scan) == read
            assert count_from_metadata(scan).rows <= read
