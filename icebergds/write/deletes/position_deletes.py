"""Writes position delete files (spec: Position Delete Files)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.deletes.positions import Positions, PositionSet
from icebergds.spec.manifest import DataFile, DataFileRef, partition_of
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS
from icebergds.spec.schema import Schema
from icebergds.write.files import TaskFiles
from icebergds.write.rows.rolling import RollingWriter

POSITION_DELETE_SCHEMA = Schema((DELETE_FILE_PATH, DELETE_POS))

_ROWS_AT_ONCE = 1 << 16
_ARROW_SCHEMA = schema_to_arrow(POSITION_DELETE_SCHEMA)
# Rows repeat the file path, so larger row groups would hardly compress better.
_MEMORY = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FilePositions:
    """Positions of rows in one data file."""

    file: DataFileRef
    positions: PositionSet


def write_position_deletes(
    deletes: Sequence[FilePositions],
    files_of: Callable[[int], TaskFiles],
    *,
    granularity: str,
    target_size: int,
) -> list[DataFile]:
    """Writes position deletes, sorted by data file and position.

    Args:
        deletes: at least one position for each data file; each data file once.
        files_of: opens position delete files of a partition spec, by the spec's id.
        granularity: `file` for one delete file per data file, which readers of other data files
            need not open; `partition` for as few delete files as the target size allows.
        target_size: in bytes; with granularity `partition`, a file is closed soon after it has
            reached it.
    """
    deletes = sorted(deletes, key=lambda delete: delete.file.file_path)
    if granularity == "file":
        return [
            replace(file, referenced_data_file=delete.file.file_path)
            for delete in deletes
            for file in _write_group([delete], files_of, None)
        ]
    groups: dict[Hashable, list[FilePositions]] = {}
    for delete in deletes:
        key = partition_of(delete.file)
        groups.setdefault(key, []).append(delete)
    return [
        file for group in groups.values() for file in _write_group(group, files_of, target_size)
    ]


def _write_group(
    group: Sequence[FilePositions],
    files_of: Callable[[int], TaskFiles],
    target_size: int | None,
) -> list[DataFile]:
    """Writes deletes of one partition."""
    file = group[0].file
    unlimited = np.iinfo(np.int64).max
    size = int(unlimited) if target_size is None else target_size
    writer = RollingWriter(files_of(file.spec_id), file.partition, size, None)
    for batch in _batches(group):
        writer.write(batch, _MEMORY)
    return writer.close()


def _batches(group: Sequence[FilePositions]) -> Iterator[pa.RecordBatch]:
    """The rows in batches of about `_ROWS_AT_ONCE`, even if many data files have few rows each."""
    paths, parts, count = list[str](), list[Positions](), 0
    for delete in group:
        for part in delete.positions.parts(_ROWS_AT_ONCE):
            paths.append(delete.file.file_path)
            parts.append(part)
            count += len(part)
            if count >= _ROWS_AT_ONCE:
                yield _batch(paths, parts)
                paths, parts, count = [], [], 0
    if parts:
        yield _batch(paths, parts)


def _batch(paths: Sequence[str], parts: Sequence[Positions]) -> pa.RecordBatch:
    codes = np.repeat(np.arange(len(paths)), [len(part) for part in parts])
    repeated = pa.array(paths, pa.string()).take(pa.array(codes))
    columns = [repeated, pa.array(np.concatenate(parts), pa.int64())]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_SCHEMA)
