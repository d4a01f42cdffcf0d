"""Reads the rows of snapshots for the auditor, and no data file twice with the same deletes.

Files do not change, so what was read of one is kept until everything is checked; that each is still
there is looked at every time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from icebergds.api.table import Table
from icebergds.errors import MissingFileError
from icebergds.operations.read.planned_scan import PlannedScan, plan_scan, task_groups_of
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.read.changes import read_task_group
from icebergds.spec.manifest import ManifestEntry

_FILE = "_file"

_Key: TypeAlias = tuple[Any, ...]
Values: TypeAlias = tuple[Any, ...]
"""The values of a row."""


@dataclass(slots=True)
class KeptRows:
    """The rows of data files, by all that they depend on."""

    _rows: dict[_Key, list[Values]] = field(default_factory=dict)

    def read(self, table: Table, columns: Sequence[str], snapshot_id: int) -> list[Values]:
        """The rows of a snapshot, in any order. Errors are those of `TableScan.to_arrow`."""
        scan = table.scan(columns=[*columns, _FILE], snapshot_id=snapshot_id)
        planned = plan_scan(table._state, scan._read_options(None), for_native=False)
        paths = Counter(file.entry.data_file.file_path for file in planned.files)
        if any(count > 1 for count in paths.values()):
            # Rows of a file that is there twice belong to both.
            return [row for _, row in _read(planned, planned.files)]
        columns_key = tuple(
            (column.field_id, column.name, str(column.field_type), repr(column.initial_default))
            for column in planned.plan.columns.fields
        )
        keys = {
            file.entry.data_file.file_path: (*columns_key, *_key(file)) for file in planned.files
        }
        new, known = list[PlannedFile](), list[PlannedFile]()
        for file in planned.files:
            is_known = keys[file.entry.data_file.file_path] in self._rows
            (known if is_known else new).append(file)
        _require(table, known)
        found: dict[str, list[Values]] = {file.entry.data_file.file_path: [] for file in new}
        for path, row in _read(planned, new):
            found[path].append(row)
        self._rows |= {keys[path]: rows for path, rows in found.items()}
        return [row for key in keys.values() for row in self._rows[key]]


def _read(planned: PlannedScan, files: Sequence[PlannedFile]) -> Iterator[tuple[str, Values]]:
    """Rows with the paths of their files."""
    for group in task_groups_of(planned, files):
        for batch in read_task_group(planned.plan, group):
            *columns, paths = (column.to_pylist() for column in batch.columns)
            yield from zip(paths, zip(*columns, strict=True), strict=True)


def _key(file: PlannedFile) -> _Key:
    """What decides which rows a file has, and which ids."""
    data, deletes = file.entry.data_file, file.deletes
    applied = (*deletes.position_deletes, *deletes.equality_deletes)
    number = file.entry.data_sequence_number
    return data.file_path, data.first_row_id, number, frozenset(map(_delete_key, applied))


def _delete_key(entry: ManifestEntry) -> _Key:
    delete = entry.data_file
    return delete.file_path, delete.content_offset, entry.data_sequence_number


def _require(table: Table, files: Sequence[PlannedFile]) -> None:
    """Raises MissingFileError if a file is gone that is not read again."""
    entries = [
        entry
        for file in files
        for entry in (
            *(file.entry, *file.deletes.position_deletes),
            *file.deletes.equality_deletes,
        )
    ]
    for path in sorted({entry.data_file.file_path for entry in entries}):
        if not table.io.exists(path):
            raise MissingFileError(f"{path} does not exist")
