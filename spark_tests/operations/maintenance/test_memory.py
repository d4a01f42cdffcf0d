"""How much memory the driver takes for each data file of a table, as metadata alone tells."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from icebergds.catalog.address import TableAddress
from icebergds.catalog.filesystem.commits import create_at_location, location_operations
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.commit.append import FastAppend
from icebergds.commit.options import CommitOptions
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.conversion_tasks import ConvertedRows
from icebergds.operations.maintenance.convert_equality_deletes import (
    conversion_options,
    convert_equality_deletes,
)
from icebergds.operations.maintenance.health import health
from icebergds.operations.maintenance.rewrite_data_files import rewrite_data_files
from icebergds.operations.maintenance.rewrite_options import RewriteOptions
from icebergds.operations.maintenance.runner import TaskAttempt
from icebergds.operations.write.options import WriteOptions
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.new_table import new_table_updates

_COLUMNS = range(1, 9)
_MANIFESTS, _EACH = 40, 200
_FILES = _MANIFESTS * _EACH
_GOOD_SIZE = 500 * 1024 * 1024


@dataclass(slots=True)
class Pretending:
    """Answers tasks without running them."""

    answer: Callable[[Any], Any]

    def run(
        self,
        task: Callable[[Any, TaskAttempt], Any],
        items: Sequence[Any],
        discard: Callable[[], int] | None = None,
    ) -> list[Any]:
        return [self.answer(item) for item in items]


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of many files, which do not exist, with the metrics of eight columns."""
    location = tmp_path_factory.mktemp("memory") / "t"
    schema = Schema(tuple(NestedField(i, f"c{i}", LONG) for i in _COLUMNS))
    properties = {"commit.manifest-merge.enabled": "false"}
    updates = new_table_updates(
        schema, location=str(location), format_version=2, properties=properties
    )
    create_at_location(FileIO(), str(location), updates, "t")
    for number in range(_MANIFESTS):
        files = (_data_file(location, number * _EACH + n) for n in range(_EACH))
        _commit(location, FastAppend(tuple(files)))
    return location


def test_the_health_of_files_takes_little_memory(big: Path) -> None:
    with at_most(1_200):
        found = health(_table(big).state)
    assert found.files.count == _FILES


def test_good_files_take_no_memory_in_the_plan_of_a_rewrite(big: Path) -> None:
    with at_most(600):
        done = _rewrite(_table(big), {})
    assert done.rewritten_data_files_count == 0


def test_rewritten_files_are_held_without_their_metrics(big: Path) -> None:
    with at_most(3_000):
        done = _rewrite(_table(big), {"rewrite-all": "true"})
    assert done.rewritten_data_files_count == _FILES


def test_files_without_keys_take_no_memory_in_a_conversion(big: Path) -> None:
    _commit(big, RowDelta((), (_keys(big, range(10)),)))
    with at_most(600):
        _, done = convert_equality_deletes(_table(big), _conversion(big), Pretending(_without_rows))
    assert done.converted_equality_delete_files_count == 1


@contextmanager
def at_most(octets: int) -> Iterator[None]:
    """Fails if Python objects take more memory at once for each file of the table."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    print(peak / _FILES)
    assert peak < octets * _FILES


def _rewrite(table: LoadedTable, options: dict[str, str]) -> Any:
    return rewrite_data_files(
        table,
        Pretending(_rewritten),
        WriteOptions.of(table.address),
        RewriteOptions.of(options, table.metadata.properties),
    )[0]


def _rewritten(group: ScanTaskGroup) -> list[DataFile]:
    path = group.tasks[0].file_path.replace("data", "new")
    rows = sum(task.record_count for task in group.tasks)
    return [_file(FileContent.DATA, path, rows)]


def _without_rows(group: ScanTaskGroup) -> ConvertedRows:
    return ConvertedRows(tuple(0 for _ in group.tasks), ())


def _conversion(location: Path) -> Any:
    return conversion_options(
        TableAddress(str(location)),
        {},
        where=None,
        branch=None,
        snapshot_properties=None,
        time_zone=None,
    )


def _table(location: Path) -> LoadedTable:
    return load_for_write(TableAddress(str(location)))


def _commit(location: Path, action: FastAppend | RowDelta) -> None:
    commit_snapshot(location_operations(FileIO(), str(location), "t"), action, CommitOptions())


def _data_file(location: Path, number: int) -> DataFile:
    path = f"{location}/data/{number:05}-{'0' * 60}.parquet"
    return _file(FileContent.DATA, path, 1000 + number, range(1000 * number, 1000 * number + 999))


def _keys(location: Path, values: range) -> DataFile:
    return _file(FileContent.EQUALITY_DELETES, f"{location}/data/keys.parquet", 10, values, (1,))


def _file(
    content: FileContent,
    path: str,
    rows: int,
    values: range = range(1),
    equality_ids: tuple[int, ...] = (),
) -> DataFile:
    return DataFile(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        spec_id=0,
        partition=(),
        record_count=rows,
        file_size_in_bytes=_GOOD_SIZE + rows,
        column_sizes=dict.fromkeys(_COLUMNS, 1000 + rows),
        value_counts=dict.fromkeys(_COLUMNS, rows),
        null_value_counts=dict.fromkeys(_COLUMNS, 0),
        lower_bounds={i: values[0].to_bytes(8, "little") for i in _COLUMNS},
        upper_bounds={i: values[-1].to_bytes(8, "little") for i in _COLUMNS},
        split_offsets=(4, 134_217_728),
        equality_ids=equality_ids,
    )
