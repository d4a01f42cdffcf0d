"""Plans and task groups as bytes."""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from built.tables import TableBuilder

from icebergds import Table, load_table
from icebergds.errors import InvalidOptionError
from icebergds.expr.nodes import Operation, Predicate
from icebergds.operations.read.options import parse_read_options
from icebergds.operations.read.snapshot_read import plan_read, plan_task_groups
from icebergds.scan.packing import pack_scan, pack_task_group, unpack_scan, unpack_task_group
from icebergds.scan.read.changes import read_task_group
from icebergds.scan.tasks import FileScanTask, ScanTaskGroup
from icebergds.spec import types
from icebergds.spec.manifest import FileFormat
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import BucketTransform, IdentityTransform
from icebergds.spec.types import NestedField

_TYPES = (
    *(types.BOOLEAN, types.INT, types.LONG, types.FLOAT, types.DOUBLE, types.DATE, types.TIME),
    *(types.TIMESTAMP, types.TIMESTAMPTZ, types.STRING, types.UUID, types.BINARY),
    *(types.FixedType(3), types.DecimalType(9, 2), types.ListType(101, types.INT)),
    types.MapType(102, types.STRING, 103, types.StructType((NestedField(104, "x", types.INT),))),
)
# Of every type that a partition may have in memory.
_VALUES = (True, 1, 1.5, "ü", b"\x00\xff", Decimal("1.10"), UUID(int=7), None, date(2026, 1, 31))


def test_task_groups_come_back_as_they_were() -> None:
    task = FileScanTask("s3://b/ü.parquet", FileFormat.PARQUET, 9, 4, 0, 9, 1, _VALUES, 3, None)
    group = ScanTaskGroup((task,))
    assert unpack_task_group(pack_task_group(group)) == group


def test_scans_come_back_as_they_were(tmp_path: Path) -> None:
    table = _table(tmp_path)
    conditions = [f"c{at} IS NOT NULL" for at in range(12)]
    options = parse_read_options(
        {},
        filter=" AND ".join(
            [
                *conditions,
                "c5 > DATE '2020-01-01' AND c7 < TIMESTAMP '2030-01-01 00:00:00'",
                "c8 IN (TIMESTAMP '2026-01-01 00:00:00Z') AND c13 = 1.10 AND c9 LIKE 'a%'",
            ]
        ),
        time_zone="UTC",
    )
    snapshot, plan = plan_read(table._state, options)
    found, groups = unpack_scan(
        pack_scan(plan, plan_task_groups(options, table._state, snapshot, plan))
    )
    assert found == plan
    assert groups == []


def test_what_was_packed_reads_the_same_rows(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", types.LONG), NestedField(2, "s", types.STRING)))
    spec = PartitionSpec(
        0,
        (
            PartitionField((2,), 1000, IdentityTransform(), "s"),
            PartitionField((1,), 1001, BucketTransform(4), "b"),
        ),
    )
    builder = TableBuilder(tmp_path / "t", schema, spec=spec, format_version=3)
    file = builder.data_file([(i, "x") for i in range(5)], partition=("x", 1))
    builder.commit(file)
    builder.commit(builder.equality_deletes(["id"], [(1,)], partition=("x", 1)))
    builder.commit(*builder.deletion_vectors([(file, [3])]))
    table = load_table(str(builder.location))
    for changes in (table.scan()._read_options(None), table.changes()._read_options(None)):
        snapshot, plan = plan_read(table._state, changes)
        planned = plan_task_groups(changes, table._state, snapshot, plan)
        found, groups = unpack_scan(pack_scan(plan, planned))
        assert list(map(unpack_task_group, groups)) == planned
        rows = [
            row
            for group in groups
            for batch in read_task_group(found, unpack_task_group(group))
            for row in batch.to_pylist()
        ]
        assert {row["id"] for row in rows} >= {0, 2, 4}


class _Runs:
    """Unpickled, it calls something."""

    def __init__(self, action: Callable[..., Any], *arguments: Any) -> None:
        self._action = (action, arguments)

    def __reduce__(self) -> Any:
        return self._action


@pytest.mark.parametrize(
    "hostile",
    [
        _Runs(os.system, "false"),
        _Runs(eval, "1 + 1"),
        _Runs(getattr, "x", "upper"),
        # Functions, and what our modules import.
        _Runs(pack_task_group, None),
        _Runs(Path, "/"),
        _Runs(Table, None, None),
        pickle.loads,
    ],
    ids=["os.system", "eval", "getattr", "pack_task_group", "Path", "Table", "pickle.loads"],
)
def test_nothing_but_values_of_plans_is_made(hostile: Any) -> None:
    raw = pickle.dumps(hostile)
    with pytest.raises(InvalidOptionError, match="cannot be read"):
        unpack_scan(raw)
    with pytest.raises(InvalidOptionError, match="cannot be read"):
        unpack_task_group(zlib.compress(raw))


def test_dotted_names_reach_nothing() -> None:
    # STACK_GLOBAL with a dotted name: an attribute of what a module imports.
    raw = b"\x80\x04\x8c\x16icebergds.scan.packing\x8c\x0cpickle.loads\x93."
    with pytest.raises(InvalidOptionError, match="cannot be read"):
        unpack_scan(raw)
    raw = b"\x80\x04\x8c\x14icebergds.scan.tasks\x8c\x0cAny.__init__\x93."
    with pytest.raises(InvalidOptionError, match="cannot be read"):
        unpack_scan(raw)


@pytest.mark.parametrize("value", [1, "x", (1, []), [], Predicate(Operation.IS_NULL, "a")])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="a packed scan holds a"):
        unpack_scan(pickle.dumps(value))
    with pytest.raises(InvalidOptionError, match="a packed task group holds a"):
        unpack_task_group(zlib.compress(pickle.dumps(value)))


def test_damaged_bytes_are_refused() -> None:
    whole = pack_task_group(ScanTaskGroup(()))
    for damaged in (b"", b"x", whole[:-5], b"\x00" + whole):
        with pytest.raises(InvalidOptionError, match="cannot be read"):
            unpack_task_group(damaged)


def _table(directory: Path) -> Table:
    fields = tuple(NestedField(at + 1, f"c{at}", t) for at, t in enumerate(_TYPES))
    return load_table(str(TableBuilder(directory / "t", Schema(fields)).location))
