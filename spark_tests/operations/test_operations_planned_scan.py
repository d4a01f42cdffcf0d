"""Scans that are planned once: their files, and the task groups that are made of them."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder

from icebergds import Table, load_table
from icebergds.io.fileio import FileIO
from icebergds.operations.read.options import parse_read_options
from icebergds.operations.read.planned_scan import (
    PlannedScan,
    native_rule_of,
    plan_scan,
    task_groups_of,
)
from icebergds.scan.packing import pack_scan, unpack_scan, unpack_task_group
from icebergds.scan.read.changes import read_task_group
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import LONG, STRING, NestedField

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "part", STRING)))
SPEC = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "part"),))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Files with the ids 0 to 2 and 10 to 12; id 11 is deleted by position, id 0 by key."""
    builder = TableBuilder(tmp_path / "t", SCHEMA, spec=SPEC, format_version=3)
    first, second = (
        builder.data_file([(start + i, part) for i in range(3)], partition=(part,))
        for start, part in ((0, "x"), (10, "y"))
    )
    builder.commit(first, second)
    builder.commit(builder.equality_deletes(["id"], [(0,)], partition=("x",)))
    builder.commit(*builder.deletion_vectors([(second, [1])]))
    return load_table(str(builder.location))


def planned(
    table: Table, *, for_native: bool = False, filter: str | None = None, **options: Any
) -> PlannedScan:
    parsed = replace(parse_read_options({}, filter=filter), **options)
    return plan_scan(table._state, parsed, for_native=for_native)


def ids(scan: PlannedScan) -> list[int]:
    """The ids that tasks read, after the scan was packed for them."""
    plan, groups = unpack_scan(pack_scan(scan.plan, task_groups_of(scan, scan.files)))
    batches = [b for group in groups for b in read_task_group(plan, unpack_task_group(group))]
    return sorted(row["id"] for batch in batches for row in batch.to_pylist())


def test_tasks_read_the_packed_scan(table: Table) -> None:
    assert ids(planned(table)) == [1, 2, 10, 12]


def test_packed_task_groups_come_back_with_their_deletes(table: Table) -> None:
    scan = planned(table)
    groups = task_groups_of(scan, scan.files)
    plan, packed = unpack_scan(pack_scan(scan.plan, groups))
    assert plan == scan.plan
    assert [unpack_task_group(group) for group in packed] == groups
    assert len(groups[0].position_deletes) == len(groups[0].equality_deletes) == 1


def test_files_without_matching_rows_are_not_planned(table: Table) -> None:
    scan = planned(table, filter="part = 'y' AND id > 10")
    assert len(scan.files) == 1
    assert ids(scan) == [12]


def test_some_files_of_a_scan_are_packed_alone(table: Table) -> None:
    scan = planned(table)
    (group,) = task_groups_of(scan, scan.files[:1])
    assert [task.file_path for task in group.tasks] == [scan.files[0].entry.data_file.file_path]


def test_no_files_make_no_task_groups(table: Table) -> None:
    assert task_groups_of(planned(table), ()) == []


def test_options_split_the_files_of_a_scan(table: Table) -> None:
    scan = planned(table, split_size=1, file_open_cost=1)
    assert len(task_groups_of(scan, scan.files)) == 2


def test_packing_plans_nothing_again(table: Table) -> None:
    scan = planned(table)
    shutil.rmtree(Path(table.location()) / "metadata")
    assert ids(scan) == [1, 2, 10, 12]


def test_a_table_without_snapshots_has_no_files(tmp_path: Path) -> None:
    empty = load_table(str(TableBuilder(tmp_path / "t", SCHEMA).location))
    assert planned(empty).files == ()


@pytest.mark.parametrize("for_native", [True, False])
def test_statistics_of_identity_columns_are_kept_for_spark_s_reader(
    table: Table, for_native: bool
) -> None:
    scan = planned(table, for_native=for_native)
    kept = [2 in (file.entry.data_file.value_counts or {}) for file in scan.files]
    assert kept == [for_native, for_native]


def test_spark_s_reader_reads_files_without_deletes(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA)
    builder.commit(builder.data_file([(1, "x")]))
    scan = planned(load_table(str(builder.location)), for_native=True)
    rule = native_rule_of(scan)
    assert rule is not None
    assert rule.split(scan.files) == (list(scan.files), [])


def test_properties_of_storages_do_not_matter_to_local_files(table: Table) -> None:
    scan = planned(table, for_native=True)
    with_properties = replace(scan.state, io=FileIO({"s3.endpoint": "http://x"}))
    assert native_rule_of(scan) is not None
    assert native_rule_of(replace(scan, state=with_properties)) is not None


@pytest.mark.parametrize(
    ("properties", "location", "why"),
    [
        ({"s3.endpoint": "http://x"}, "s3://lake/t", "no keys of S3 to pass to Spark"),
        (
            {"s3.access-key-id": "k", "s3.secret-access-key": "s"},
            "s3://lake/t",
            "files that are not on S3",
        ),
        ({"gcs.oauth2.token": "t"}, "gs://lake/t", "to which they are not passed"),
    ],
)
def test_why_spark_s_reader_reads_nothing_is_logged(
    table: Table,
    caplog: pytest.LogCaptureFixture,
    properties: dict[str, str],
    location: str,
    why: str,
) -> None:
    caplog.set_level(logging.INFO, logger="icebergds")
    scan = planned(table, for_native=True)
    metadata = replace(scan.state.metadata, location=location)
    with_properties = replace(scan.state, metadata=metadata, io=FileIO(properties))
    native_rule_of(replace(scan, state=with_properties))
    assert why in caplog.text
    assert "http://x" not in caplog.text
    native_rule_of(planned(table, for_native=True, columns=(("id",), ("_file",))))
    assert "native scans are not possible: column _file (string) needs" in caplog.text
