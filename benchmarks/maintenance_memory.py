"""Measures the memory that the driver takes to maintain a table of many small files.

    python benchmarks/maintenance_memory.py [--files 1000000] [--manifests 200]

The files do not exist: tasks say what they would have written. All files are of one partition, and
are rewritten in one group. Prints seconds, and the most memory of the driver's Python process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from maintenance_manifests import create_table
from peak_memory import peak_megabytes
from pyspark.sql import SparkSession

import icebergds.api.table_maintenance as maintenance
from icebergds import Table, load_table
from icebergds.catalog.filesystem.commits import location_operations
from icebergds.commit.compared_files import CompressedFiles
from icebergds.commit.options import CommitOptions
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.rewrite import options as rewriting
from icebergds.operations.maintenance.rewrite.rewrite_data_files import rewrite_data_files
from icebergds.operations.runner import Runner, TaskAttempt
from icebergds.operations.write.conversion_tasks import ConvertedRows
from icebergds.operations.write.options import WriteOptions
from icebergds.scan.tasks import FileScanTask
from icebergds.spark.runner import SparkRunner
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.partition import PartitionSpec

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_ROWS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--manifests", type=int, default=200)
    parser.add_argument("--steps", nargs="*", default=list(_STEPS))
    parser.add_argument("--table", help="measure one step on this table, in this process")
    options = parser.parse_args()
    if options.table is not None:
        _measure(options.steps[0], options.table)
        return
    with tempfile.TemporaryDirectory() as directory:
        for name in options.steps:
            location = str(Path(directory) / name)
            create_table(
                location,
                options.manifests,
                options.files,
                version=3 if name == "vectors" else 2,
                spec=PartitionSpec(),
                most_rows=_ROWS,
            )
            # In a process of its own, whose memory says what it needs.
            command = [sys.executable, __file__, "--steps", name, "--table", location]
            subprocess.run(command, check=True)


def _measure(name: str, location: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    table, start = load_table(location), time.perf_counter()
    what = _STEPS[name](table, location, SparkRunner(spark))
    seconds = time.perf_counter() - start
    print(f"{name:8} {seconds:8.2f} s {peak_megabytes():6.0f} MB  {what}", flush=True)


def _health(table: Table, location: str, runner: Runner) -> str:
    return str(table.health().files)


def _rewrite(table: Table, location: str, runner: Runner, hook: Any = None) -> str:
    loaded = table._current()
    options = rewriting.RewriteOptions.of({}, loaded.metadata.properties)
    write = WriteOptions.of(table._address, None, None, branch=None)
    done, _ = rewrite_data_files(loaded, _Pretending(runner, location, hook), write, options)
    return str(done)


def _moved(table: Table, location: str, runner: Runner) -> str:
    """Others delete rows of all files while these are rewritten."""
    return _rewrite(table, location, runner, partial(_delete, location))


def _convert(table: Table, location: str, runner: Runner) -> str:
    """Keys may be in any of the files."""
    _delete(location, 1)
    maintenance.task_runner = lambda spark: _Pretending(runner, location)
    return str(load_table(location).convert_equality_deletes(options={"file-open-cost": "10000"}))


_STEPS = {
    "health": _health,
    "rewrite": _rewrite,
    "moved": _moved,
    "convert": _convert,
    "vectors": _convert,
}


def _delete(location: str, equality_id: int | None = None) -> None:
    content = FileContent.EQUALITY_DELETES if equality_id else FileContent.POSITION_DELETES
    file = replace(
        _file(location),
        content=content,
        equality_ids=(equality_id,) if equality_id else (),
    )
    operations = location_operations(FileIO(), location, "db.t")
    commit_snapshot(operations, RowDelta((), (file,)), CommitOptions())


@dataclass(frozen=True, slots=True)
class _Pretending:
    """Runs tasks that read no files, and calls `meanwhile` once after the first of them."""

    runner: Runner
    location: str
    meanwhile: Callable[[], None] | None = None

    def run(
        self,
        task: Callable[[_Item, TaskAttempt], _Result],
        items: Iterable[_Item],
        discard: Callable[[], int] | None = None,
    ) -> list[_Result]:
        function = task.func.__name__  # type: ignore[attr-defined]
        pretended = {
            "rewrite_files": _rewritten,
            "move_deletes": _moved_to,
            "write_converted": _converted,
        }
        done = self.runner.run(partial(pretended[function], self.location), items, discard)
        if self.meanwhile is not None and function == "rewrite_files":
            self.meanwhile()
        return done


def _file(location: str, rows: int = _ROWS) -> DataFile:
    return DataFile(
        content=FileContent.DATA,
        file_path=f"{location}/data/{uuid.uuid4()}.parquet",
        file_format=FileFormat.PARQUET,
        spec_id=0,
        partition=(),
        record_count=rows,
        file_size_in_bytes=rows * 30,
    )


def _rewritten(location: str, item: Any, attempt: TaskAttempt) -> list[DataFile]:
    return [_file(location, sum(task.record_count for task in item.tasks))]


def _moved_to(location: str, item: Any, attempt: TaskAttempt) -> list[DataFile]:
    return [replace(_file(location), content=FileContent.POSITION_DELETES)]


def _converted(location: str, item: Any, attempt: TaskAttempt) -> ConvertedRows:
    rows = tuple(1 for _ in item.tasks)
    if item.tasks[0].first_row_id is None:
        return ConvertedRows(rows, CompressedFiles.of(_moved_to(location, item, attempt)))
    return ConvertedRows(rows, CompressedFiles.of(_vectors(location, item.tasks)))


def _vectors(location: str, tasks: Sequence[FileScanTask]) -> Iterable[DataFile]:
    """A vector for each data file, in one Puffin file."""
    file = replace(
        _file(location, 1), content=FileContent.POSITION_DELETES, file_format=FileFormat.PUFFIN
    )
    for number, task in enumerate(tasks):
        yield replace(
            file,
            referenced_data_file=task.file_path,
            content_offset=4 + 40 * number,
            content_size_in_bytes=40,
        )


if __name__ == "__main__":
    main()
