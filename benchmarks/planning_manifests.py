"""Times decoding synthetic manifests to columns, compared with fastavro.

python benchmarks/planning_manifests.py [--manifests 4] [--entries 10000] [--columns 20]
"""

from __future__ import annotations

import argparse
import io
import random
import struct
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import fastavro

from icebergds.formats.manifests.manifest import write_manifest
from icebergds.formats.manifests.reader import read_manifest_columns
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifests", type=int, default=4)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    schema = Schema(
        (
            NestedField(1, "ts", TIMESTAMP),
            *(NestedField(i, f"c{i}", LONG) for i in range(2, options.columns + 1)),
        )
    )
    with tempfile.TemporaryDirectory() as directory:
        manifests = [
            _write(Path(directory) / f"{i}.avro", schema, options.entries, i)
            for i in range(options.manifests)
        ]
        file_io = FileIO()
        read = partial(read_manifest_columns, file_io, specs={0: _SPEC}, schema=schema)
        total = options.manifests * options.entries
        print(
            f"{options.manifests} manifests of {options.entries} entries, {options.columns} columns"
        )
        base = _timed(options.repeat, lambda: [_fastavro(m) for m in manifests[:1]])
        base *= options.manifests
        _report("fastavro, all fields", total, base, base)
        for name, stats_ids in (
            ("columns, no statistics", frozenset[int]()),
            ("columns, statistics of 2", frozenset({1, 2})),
            ("columns, all statistics", None),
        ):
            seconds = _timed(
                options.repeat, lambda ids=stats_ids: [read(m, stats_ids=ids) for m in manifests]
            )
            _report(name, total, seconds, base)
        with ThreadPoolExecutor(options.threads) as pool:
            seconds = _timed(
                options.repeat,
                lambda: list(
                    pool.map(lambda m: len(read(m, stats_ids=frozenset({1, 2}))), manifests)
                ),
                time.perf_counter,
            )
        _report(f"{options.threads} threads, statistics of 2 (elapsed)", total, seconds, base)


def _write(path: Path, schema: Schema, entries: int, seed: int) -> ManifestFile:
    draw = random.Random(seed)
    snapshot_id = draw.randrange(2**62)
    ids = [field.field_id for field in schema.fields]

    def entry(number: int) -> ManifestEntry:
        rows = draw.randrange(50_000, 1_000_000)
        low = {i: struct.pack("<q", draw.randrange(2**40)) for i in ids}
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
            nan_value_counts={},
            lower_bounds=low,
            upper_bounds={i: struct.pack("<q", 2**40 + draw.randrange(2**40)) for i in ids},
            split_offsets=(4, 134_217_728),
            sort_order_id=0,
        )
        return ManifestEntry(ManifestEntryStatus.ADDED, snapshot_id, 7, 7, file)

    data = write_manifest(map(entry, range(entries)), _SPEC, schema, format_version=2)
    path.write_bytes(data)
    return ManifestFile(str(path), len(data), 0, sequence_number=7, added_snapshot_id=snapshot_id)


def _fastavro(manifest: ManifestFile) -> int:
    return sum(1 for _ in fastavro.reader(io.BytesIO(Path(manifest.manifest_path).read_bytes())))


def _timed(
    repeat: int, run: Callable[[], object], clock: Callable[[], float] = time.process_time
) -> float:
    best = float("inf")
    for _ in range(repeat):
        start = clock()
        run()
        best = min(best, clock() - start)
    return best


def _report(name: str, entries: int, seconds: float, base: float) -> None:
    print(f"{name:40} {entries / seconds:12,.0f} entries/s {base / seconds:7.1f} x fastavro")


if __name__ == "__main__":
    main()
