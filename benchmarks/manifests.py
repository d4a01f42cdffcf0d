"""Times writing a manifest, compared with fastavro, and rewriting it with other entry statuses.

    python benchmarks/manifests.py [--entries 10000] [--columns 8 20] [--repeat 3]

Times are CPU seconds. fastavro gets records that were built beforehand: its time does not include
turning entries into records.
"""

from __future__ import annotations

import argparse
import io
import random
import struct
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

from icebergds.formats.manifests.manifest import read_manifest, write_manifest
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.writer import write_manifest_columns
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import DayTransform
from icebergds.spec.types import LONG, TIMESTAMP, NestedField

_SPEC = PartitionSpec(0, (PartitionField((1,), 1000, DayTransform(), "ts_day"),))
_EXISTING = ManifestEntryStatus.EXISTING


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--columns", type=int, nargs="+", default=[8, 20])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    for columns in options.columns:
        print(f"{options.entries} entries, {columns} columns")
        with tempfile.TemporaryDirectory() as directory:
            _measure(Path(directory) / "m.avro", options.entries, columns, options.repeat)


def _measure(path: Path, count: int, columns: int, repeat: int) -> None:
    schema = _schema(columns)
    entries = _entries(count, columns)
    file_io = FileIO()

    def write(some: list[ManifestEntry], **codec: Any) -> bytes:
        return write_manifest(some, _SPEC, schema, format_version=2, **codec)

    data = write(entries)
    path.write_bytes(data)
    manifest = ManifestFile(str(path), len(data), 0, sequence_number=7, added_snapshot_id=1)

    def rewrite_objects() -> bytes:
        read = read_manifest(file_io, manifest, {0: _SPEC}, schema)
        return write([replace(entry, status=_EXISTING) for entry in read])

    def rewrite_columns() -> bytes:
        read = read_manifest_columns(file_io, manifest, {0: _SPEC}, schema)
        existing = replace(read, status=np.full(len(read), _EXISTING.value))
        return write_manifest_columns(
            [existing], _SPEC, schema, partition=read.partition_type, format_version=2
        )

    reader = fastavro.reader(io.BytesIO(data))
    avro_schema, records = reader.writer_schema, list(reader)
    base = _timed(repeat, lambda: _fastavro(avro_schema, records))
    print(f"  {'fastavro, deflate':36} {base:7.3f} s")
    for name, run in (
        ("write, deflate", lambda: write(entries)),
        ("write, zstd", lambda: write(entries, codec="zstd")),
        ("write, uncompressed", lambda: write(entries, codec="uncompressed")),
        ("rewrite as objects", rewrite_objects),
        ("rewrite as columns", rewrite_columns),
    ):
        seconds = _timed(repeat, run)
        print(f"  {name:36} {seconds:7.3f} s {base / seconds:7.1f} x fastavro")
    one = _timed(20 * repeat, lambda: write(entries[:1]))
    print(f"  {'write 1 entry':36} {one * 1000:7.3f} ms")


def _fastavro(schema: Any, records: list[Any]) -> None:
    fastavro.writer(io.BytesIO(), schema, records, codec="deflate", sync_interval=64_000)


def _schema(columns: int) -> Schema:
    rest = (NestedField(i, f"c{i}", LONG) for i in range(2, columns + 1))
    return Schema((NestedField(1, "ts", TIMESTAMP), *rest))


def _entries(count: int, columns: int) -> list[ManifestEntry]:
    draw = random.Random(columns)
    ids = range(1, columns + 1)

    def entry(number: int) -> ManifestEntry:
        rows = draw.randrange(50_000, 1_000_000)
        file = DataFile(
            content=FileContent.DATA,
            file_path=f"s3://bucket/warehouse/db/events/data/ts_day=2024-01-{number % 28 + 1:02}/"
            f"{number:05}-{draw.randrange(10**6)}-{draw.getrandbits(128):032x}-00001.parquet",
            file_format=FileFormat.PARQUET,
            spec_id=0,
            partition=(19_723 + number % 28,),
            record_count=rows,
            file_size_in_bytes=rows * 30,
            column_sizes={i: draw.randrange(10**4, 10**7) for i in ids},
            value_counts=dict.fromkeys(ids, rows),
            null_value_counts={i: draw.choice((0, 0, 17, 4711)) for i in ids},
            lower_bounds={i: struct.pack("<q", draw.randrange(2**40)) for i in ids},
            upper_bounds={i: struct.pack("<q", 2**40 + draw.randrange(2**40)) for i in ids},
            split_offsets=(4, 134_217_728),
            sort_order_id=0,
        )
        return ManifestEntry(ManifestEntryStatus.ADDED, 1, 7, 7, file)

    return [entry(number) for number in range(count)]


def _timed(repeat: int, run: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


if __name__ == "__main__":
    main()
