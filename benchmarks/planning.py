"""Times planning a scan of a million files with statistics of 20 columns.

    python benchmarks/planning.py DIRECTORY [--files 1000000] [--stats-columns 20]

Writes the manifests once (a few minutes), then plans with a filter that selects 0.1 % of the files.
Prints seconds, the peak memory that planning added, and how long fastavro takes to decode the same
manifests (extrapolated from one of them).
"""

from __future__ import annotations

import argparse
import io
import statistics
import struct
import time
from pathlib import Path

import fastavro
from peak_memory import peak_megabytes

from icebergds.expr.bind import bind
from icebergds.expr.sql import parse_filter
from icebergds.formats.manifests.manifest import write_manifest
from icebergds.formats.manifests.manifest_list import write_manifest_list
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.files import plan_files
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.sort import SortOrder
from icebergds.spec.transforms import DayTransform
from icebergds.spec.types import LONG, TIMESTAMP, NestedField

ENTRIES_PER_MANIFEST = 10_000
PLACES = 10_000_019
SPEC = PartitionSpec(0, (PartitionField((2,), 1000, DayTransform(), "ts_day"),))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--stats-columns", type=int, default=20)
    parser.add_argument("--per-manifest", type=int, default=ENTRIES_PER_MANIFEST)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    schema = make_schema(arguments.stats_columns)
    manifests = arguments.files // arguments.per_manifest
    folder = arguments.directory / f"{arguments.files}x{arguments.stats_columns}x{manifests}"
    if not (folder / "list.avro").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_table(folder, schema, manifests, arguments.per_manifest)
    metadata = make_metadata(folder, schema)
    condition = bind(parse_filter(f"c3 between 0 and {PLACES // 1000 * 10 - 1}"), schema)
    before = peak_megabytes()
    taken = []
    for _ in range(arguments.runs):
        started = time.perf_counter()
        files = plan_files(FileIO(), metadata, metadata.snapshots[0], schema, condition).files
        task_groups = list(pack_files(files, metadata, schema, SplitOptions()))
        taken.append(time.perf_counter() - started)
    count = sum(len(task_group.tasks) for task_group in task_groups)
    print(
        f"{arguments.files:,} files in {manifests} manifests, {arguments.stats_columns} columns of "
        f"statistics: {statistics.median(taken):.2f} s for {count:,} files, "
        f"{peak_megabytes() - before:.0f} MB added"
    )
    alone = fastavro_seconds(folder) * manifests
    print(f"fastavro, decoding only: {alone:.1f} s ({alone / statistics.median(taken):.1f} x)")


def make_schema(columns: int) -> Schema:
    fields = [NestedField(1, "id", LONG), NestedField(2, "ts", TIMESTAMP)]
    fields += [NestedField(i, f"c{i}", LONG) for i in range(3, columns + 1)]
    return Schema(tuple(fields[:columns]))


def make_metadata(folder: Path, schema: Schema) -> TableMetadata:
    snapshot = Snapshot(1, 1, 1, manifest_list=str(folder / "list.avro"), schema_id=0)
    return TableMetadata(
        format_version=2,
        table_uuid="0",
        location=str(folder),
        last_updated_ms=1,
        last_column_id=schema.highest_field_id,
        schemas=(schema,),
        current_schema_id=0,
        partition_specs=(SPEC,),
        default_spec_id=0,
        last_partition_id=1000,
        sort_orders=(SortOrder(),),
        default_sort_order_id=0,
        snapshots=(snapshot,),
        current_snapshot_id=1,
    )


def write_table(folder: Path, schema: Schema, manifests: int, per_manifest: int) -> None:
    written = []
    for number in range(manifests):
        entries = [make_entry(schema, number * per_manifest + i) for i in range(per_manifest)]
        data = write_manifest(entries, SPEC, schema, format_version=2)
        path = folder / f"manifest-{number:05d}.avro"
        path.write_bytes(data)
        written.append(
            ManifestFile(
                str(path),
                len(data),
                0,
                sequence_number=1,
                min_sequence_number=1,
                added_snapshot_id=1,
                added_files_count=per_manifest,
                existing_files_count=0,
                deleted_files_count=0,
                added_rows_count=per_manifest * 1_000_000,
                existing_rows_count=0,
                deleted_rows_count=0,
            )
        )
        print(f"\rwrote manifest {number + 1} of {manifests}", end="", flush=True)
    print()
    (folder / "list.avro").write_bytes(
        write_manifest_list(written, format_version=2, snapshot_id=1, sequence_number=1)
    )


def make_entry(schema: Schema, number: int) -> ManifestEntry:
    # Scattered, so that the filter prunes files rather than manifests.
    place = number * 7919 % PLACES
    ids = [field.field_id for field in schema.fields]
    low, high = struct.pack("<q", place * 10), struct.pack("<q", place * 10 + 9)
    counts = dict.fromkeys(ids, 1_000_000)
    return ManifestEntry(
        ManifestEntryStatus.ADDED,
        1,
        1,
        1,
        DataFile(
            FileContent.DATA,
            f"s3://bucket/warehouse/db/events/data/ts_day=2026-01-{number % 28 + 1:02d}/"
            f"{number:05d}-{place}-0a1b2c3d-4e5f-6789-abcd-ef0123456789-00001.parquet",
            FileFormat.PARQUET,
            0,
            (20454 + number % 28,),
            1_000_000,
            134_217_728,
            column_sizes=dict.fromkeys(ids, 4_000_000 + number % 1000),
            value_counts=counts,
            null_value_counts=dict.fromkeys(ids, 0),
            lower_bounds=dict.fromkeys(ids, low),
            upper_bounds=dict.fromkeys(ids, high),
            split_offsets=(4, 67_108_864),
        ),
    )


def fastavro_seconds(folder: Path) -> float:
    data = (folder / "manifest-00000.avro").read_bytes()
    started = time.perf_counter()
    for _ in fastavro.reader(io.BytesIO(data)):
        pass
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
