"""Times `rewrite_manifests` of a table whose files are spread over many manifests.

    python benchmarks/maintenance_manifests.py [--manifests 500] [--files 100000] [--columns 8]

Prints seconds, and how much memory the rewrite took at most.
"""

from __future__ import annotations

import argparse
import random
import struct
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from peak_memory import peak_megabytes

from icebergds.api.table import load_table
from icebergds.catalog.filesystem.commits import create_at_location, location_operations
from icebergds.commit.base import CommitBase
from icebergds.commit.new_manifests import write_entries
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.commit.workspace import Workspace
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import DayTransform
from icebergds.spec.types import LONG, TIMESTAMP, NestedField
from icebergds.spec.updates.new_table import new_table_updates

FIRST_DAY = 19_000
_DAYS = 365
_DAY = 86_400 * 10**6
BY_DAY = PartitionSpec(0, (PartitionField((1,), 1000, DayTransform(), "ts_day"),))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--manifests", type=int, default=500)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--version", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        location = str(Path(directory) / "t")
        for name, run in (("create", _create), ("rewrite", _rewrite)):
            # In a process of its own, whose memory says what the step needs.
            with ProcessPoolExecutor(1) as pool:
                seconds, megabytes, what = pool.submit(run, location, options).result()
            print(f"{name:8} {seconds:8.2f} s {megabytes:6.0f} MB more  {what}")


def _create(location: str, options: argparse.Namespace) -> tuple[float, float, str]:
    start, memory = time.perf_counter(), peak_megabytes()
    create_table(
        location, options.manifests, options.files, options.columns, version=options.version
    )
    return time.perf_counter() - start, peak_megabytes() - memory, f"{options.files} files"


def create_table(
    location: str,
    manifests: int,
    files: int,
    columns: int = 8,
    *,
    version: int = 2,
    root: str = "s3://bucket/warehouse/db/events",
    spec: PartitionSpec = BY_DAY,
    most_rows: int = 1_000_000,
    files_per_day: int | None = None,
) -> None:
    """Creates a table of files that need not exist, in the folder `data` below `root`.

    Args:
        files_per_day: files of one day follow one another; of random days by default.
    """
    rest = (NestedField(i, f"c{i}", LONG) for i in range(2, columns + 1))
    schema = Schema((NestedField(1, "ts", TIMESTAMP), *rest))
    updates = new_table_updates(
        schema, location=location, spec=spec, format_version=version, properties={}
    )
    create_at_location(FileIO(), location, updates, "db.t")
    action = _Fill(manifests, files, columns, root, bool(spec.fields), most_rows, files_per_day)
    commit_snapshot(location_operations(FileIO(), location, "db.t"), action)


def _rewrite(location: str, _: argparse.Namespace) -> tuple[float, float, str]:
    table = load_table(location)
    start, memory = time.perf_counter(), peak_megabytes()
    counts = table.rewrite_manifests()
    return time.perf_counter() - start, peak_megabytes() - memory, str(counts)


@dataclass(frozen=True, slots=True)
class _Fill:
    """Adds manifests of files of random days."""

    manifests: int
    files: int
    columns: int
    root: str
    by_day: bool
    most_rows: int
    files_per_day: int | None

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        manifests = list(self._manifests(work, base))
        rows = sum(manifest.added_rows_count or 0 for manifest in manifests)
        added = {"added-data-files": str(self.files), "added-records": str(rows)}
        return NewSnapshot("append", manifests, added)

    def _manifests(self, work: Workspace, base: CommitBase) -> Iterator[ManifestFile]:
        each = self.files // self.manifests
        draw = random.Random(0)
        for number in range(self.manifests):
            entries = [self._entry(draw, work.snapshot_id, number * each + i) for i in range(each)]
            yield write_entries(work, base, entries, 0, ManifestContent.DATA)

    def _entry(self, draw: random.Random, snapshot_id: int, number: int) -> ManifestEntry:
        ids = range(1, self.columns + 1)
        rows = draw.randrange(self.most_rows // 20, self.most_rows)
        day = FIRST_DAY + (
            number // self.files_per_day if self.files_per_day else draw.randrange(_DAYS)
        )
        lower = [day * _DAY, *(draw.randrange(2**40) for _ in ids[1:])]
        upper = [(day + 1) * _DAY - 1, *(2**40 + low for low in lower[1:])]
        file = DataFile(
            content=FileContent.DATA,
            file_path=f"{self.root}/data/ts_day={day}/"
            f"{number:05}-{draw.randrange(10**6)}-{draw.getrandbits(128):032x}-00001.parquet",
            file_format=FileFormat.PARQUET,
            spec_id=0,
            partition=(day,) if self.by_day else (),
            record_count=rows,
            file_size_in_bytes=rows * 30,
            column_sizes={i: draw.randrange(10**4, 10**7) for i in ids},
            value_counts=dict.fromkeys(ids, rows),
            null_value_counts={i: draw.choice((0, 0, 17, 4711)) for i in ids},
            lower_bounds={i: _to_bytes(value) for i, value in zip(ids, lower, strict=True)},
            upper_bounds={i: _to_bytes(value) for i, value in zip(ids, upper, strict=True)},
            split_offsets=(4, 134_217_728) if rows * 30 > 134_217_728 else (4,),
            sort_order_id=0,
        )
        return ManifestEntry(ManifestEntryStatus.ADDED, snapshot_id, -1, -1, file)


def _to_bytes(value: int) -> bytes:
    return struct.pack("<q", value)


if __name__ == "__main__":
    main()
