"""Times commits in the driver, and the splitting of rows by partition in a task.

    python benchmarks/commits.py [--repeat 5]

Each commit adds one small file to a table of 1,000 snapshots and 100 manifests, and
either keeps the manifests or merges them into one. 1 M rows of 8 columns are split. `manifests.py`
times manifests alone.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from icebergds.catalog.address import TableAddress
from icebergds.commit.data_files import Append, FastAppend
from icebergds.commit.operations import TableOperations
from icebergds.commit.snapshot_commit import Action, commit_snapshot
from icebergds.formats.arrow.murmur3 import hash_longs
from icebergds.formats.arrow.transforms import apply_transform
from icebergds.operations.write.arrow_rows import write_rows
from icebergds.operations.write.options import parse_write_options
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, SnapshotRef
from icebergds.spec.transforms import BucketTransform, DayTransform, IdentityTransform, Transform
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    NestedField,
    ScalarType,
)
from icebergds.spec.updates.table_updates import AddSnapshot, SetSnapshotRef
from icebergds.write.rows.partitioning import plan_partitioning

_ROWS = 1_000_000
_SNAPSHOTS = 1_000
_MANIFESTS = 100
_SCHEMA = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "quantity", INT),
        NestedField(3, "price", DOUBLE),
        NestedField(4, "score", DOUBLE),
        NestedField(5, "event_time", TIMESTAMPTZ),
        NestedField(6, "category", STRING),
        NestedField(7, "reference", STRING),
        NestedField(8, "day", DATE),
    )
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    print(f"commit of 1 file, {_SNAPSHOTS} snapshots, {_MANIFESTS} manifests")
    for name, action in (("manifests unchanged", FastAppend), ("manifests merged", Append)):
        seconds, cpu = min(commit_seconds(action) for _ in range(repeat))
        print(f"  {name:36} {seconds * 1000:7.1f} ms, CPU {cpu * 1000:7.1f} ms")
    rows = rows_to_split()
    print(f"{_ROWS} rows, million a second")
    for name, run in (hashings(rows) | splittings(rows)).items():
        print(f"  {name:36} {_ROWS / 1e6 / best(repeat, run):7.1f}")


def commit_seconds(action: Callable[[tuple[DataFile, ...]], Action]) -> tuple[float, float]:
    """Creates the table and commits to it once; returns elapsed seconds and CPU seconds."""
    with tempfile.TemporaryDirectory() as directory:
        address = TableAddress(str(Path(directory) / "t"))
        create = parse_write_options({"path": address.path, "create": "true"}, address)
        write_rows(create, rows_to_split(1), overwrite=False)
        operations = address.operations()
        for number in range(_MANIFESTS - 1):
            commit_snapshot(operations, FastAppend((data_file(number),)))
        add_snapshots(operations)
        started, cpu = time.perf_counter(), time.process_time()
        commit_snapshot(operations, action((data_file(_MANIFESTS),)))
        return time.perf_counter() - started, time.process_time() - cpu


def add_snapshots(operations: TableOperations) -> None:
    """Adds snapshots of the same files to the history."""
    state = operations.refresh()
    last = state.metadata.current_snapshot()
    assert last is not None
    added = []
    for _ in range(_SNAPSHOTS - len(state.metadata.snapshots)):
        last = replace(
            last,
            snapshot_id=last.snapshot_id + 1,
            parent_snapshot_id=last.snapshot_id,
            sequence_number=last.sequence_number + 1,
        )
        added.append(AddSnapshot(last))
    ref = SetSnapshotRef(MAIN_BRANCH, SnapshotRef(last.snapshot_id, RefType.BRANCH))
    operations.commit(state, [], [*added, ref])


def data_file(number: int) -> DataFile:
    ids = range(1, 9)
    return DataFile(
        content=FileContent.DATA,
        file_path=f"/data/{number:05}.parquet",
        file_format=FileFormat.PARQUET,
        spec_id=0,
        partition=(),
        record_count=100,
        file_size_in_bytes=10_000,
        column_sizes=dict.fromkeys(ids, 1_000),
        value_counts=dict.fromkeys(ids, 100),
        null_value_counts=dict.fromkeys(ids, 0),
        lower_bounds=dict.fromkeys(ids, bytes(8)),
        upper_bounds=dict.fromkeys(ids, bytes(8)),
    )


def rows_to_split(count: int = _ROWS) -> pa.RecordBatch:
    draw = np.random.default_rng(0)
    start = int(datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC).timestamp()) * 1_000_000
    times = pa.array(start + draw.integers(0, 30 * 86_400_000_000, count))
    numbers = draw.integers(0, 10**12, count)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.arange(count)),
            pa.array(draw.integers(0, 1000, count, dtype=np.int32)),
            pa.array(draw.random(count)),
            pa.array(draw.random(count)),
            times.cast(pa.timestamp("us", "UTC")),
            pa.array([f"category {n}" for n in draw.integers(0, 1000, count)]),
            pa.array([f"reference-{n:018}" for n in numbers]),
            pa.array(draw.integers(19_000, 19_100, count, dtype=np.int32)).cast(pa.date32()),
        ],
        names=[field.name for field in _SCHEMA.fields],
    )


def hashings(rows: pa.RecordBatch) -> dict[str, Callable[[], object]]:
    bucket = BucketTransform(16)
    numbers = np.asarray(rows.column("id"))
    mixed = pa.array([f"ref-{n * 7919 % 10 ** (6 + n % 12)}" for n in range(_ROWS)])
    columns: list[tuple[str, ScalarType, pa.Array]] = [
        ("bucket of long", LONG, pa.array(numbers)),
        ("bucket of strings of 28 bytes", STRING, rows.column("reference")),
        ("bucket of strings of 5 to 21 bytes", STRING, mixed),
    ]
    return {
        "hash of long": lambda: hash_longs(numbers),
        **{
            name: lambda source=source, array=array: apply_transform(bucket, source, array)
            for name, source, array in columns
        },
    }


def splittings(rows: pa.RecordBatch) -> dict[str, Callable[[], object]]:
    """Splits into about 30, 16, 1,000 and 100 partitions."""
    transforms: list[tuple[int, Transform]] = [
        (5, DayTransform()),
        (7, BucketTransform(16)),
        (6, IdentityTransform()),
        (8, IdentityTransform()),
    ]
    found: dict[str, Callable[[], object]] = {}
    for field_id, transform in transforms:
        name = f"{transform} of {_SCHEMA.find_name(field_id)}"
        spec = PartitionSpec(1, (PartitionField((field_id,), 1000, transform, "part"),))
        partitioner = plan_partitioning(spec, _SCHEMA, table="benchmark")
        found[f"split by {name}"] = lambda p=partitioner: p.split(rows)
    return found


def best(repeat: int, run: Callable[[], object]) -> float:
    """The lowest CPU time of all runs, in seconds."""
    least = float("inf")
    for _ in range(repeat):
        started = time.process_time()
        run()
        least = min(least, time.process_time() - started)
    return least


if __name__ == "__main__":
    main()
