"""Maintenance of a table with many files has no object for each of them in memory."""

from __future__ import annotations

import gc
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from built.commit_tables import create_table

from icebergds import Table, load_table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import load_for_write
from icebergds.commit.data_files import Append
from icebergds.commit.workspace import Workspace
from icebergds.operations.maintenance.health.figures import MetadataHealth, measure_metadata
from icebergds.operations.maintenance.health.health import examine
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.rewrite_data_files import rewrite_data_files
from icebergds.operations.runner import TaskAttempt
from icebergds.operations.write.options import WriteOptions
from icebergds.scan.tasks import FileScanTask
from icebergds.spec.manifest import DataFile, FileContent, FileFormat

_FILES, _DAYS = 6000, 6
# Objects are created for some files at a time.
_FEW = 2500


@dataclass(frozen=True, slots=True)
class _Census:
    """Counts the data files that are objects, now and then."""

    counts: list[int] = field(default_factory=list)

    def take(self) -> None:
        self.counts.append(sum(type(one) is DataFile for one in gc.get_objects()))


@dataclass(frozen=True, slots=True)
class _Pretending:
    """Pretends that each task has written one file."""

    census: _Census

    def run(
        self,
        task: Callable[[Any, TaskAttempt], Any],
        items: Sequence[Any],
        discard: Callable[[], int] | None = None,
    ) -> list[Any]:
        self.census.take()
        return [[_written(item.tasks)] for item in items]


def _written(tasks: Sequence[FileScanTask]) -> DataFile:
    rows = sum(task.record_count for task in tasks)
    return _file(f"{tasks[0].file_path}-{uuid.uuid4()}", tasks[0].partition, rows)


def _file(path: str, partition: tuple[Any, ...], rows: int = 1) -> DataFile:
    return DataFile(FileContent.DATA, path, FileFormat.PARQUET, 0, partition, rows, 1000 * rows)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    created = create_table(tmp_path / "t")
    numbers = range(_FILES)
    files = (_file(f"{tmp_path}/t/data/{i}.parquet", (i % _DAYS,)) for i in numbers)
    created.commit(Append(tuple(files)))
    return load_table(str(tmp_path / "t"))


@pytest.fixture
def census(monkeypatch: pytest.MonkeyPatch) -> _Census:
    """Counts at each commit, once its manifests are written."""
    taken, write = _Census(), Workspace.write_manifest_list

    def counted(*given: Any) -> str:
        taken.take()
        return write(*given)

    monkeypatch.setattr(Workspace, "write_manifest_list", counted)
    return taken


def test_files_to_rewrite_are_not_objects(table: Table, census: _Census) -> None:
    loaded = load_for_write(TableAddress(table.location()))
    # A census must not see what another thread is about to make.
    given = {"rewrite-all": "true", "max-concurrent-file-group-rewrites": "1"}
    options = RewriteOptions.of(given, {})
    write = WriteOptions.of(loaded.address)
    done, _ = rewrite_data_files(loaded, _Pretending(census), write, options)
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (_FILES, _DAYS)
    assert len(census.counts) == _DAYS + 1
    assert max(census.counts) < _FEW


def test_files_whose_health_is_measured_are_not_objects(
    table: Table, census: _Census, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(*given: Any) -> MetadataHealth:
        census.take()
        return measure_metadata(*given)

    monkeypatch.setattr(f"{examine.__module__}.measure_metadata", counted)
    assert table.health().files.to_rewrite == _FILES
    assert len(census.counts) == 1
    assert max(census.counts) < _FEW
