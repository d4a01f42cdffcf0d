"""Checks what only rows tell: positions of position deletes, row ids, and numbers of updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.operations import TableState
from icebergds.errors import IcebergError, StorageError
from icebergds.formats.deletes.position_deletes import position_batches
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.verify.file_checks import out_of_range
from icebergds.operations.maintenance.verify.findings import Finding, FindingKind
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.snapshot_read import plan_read, plan_task_groups
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.reporting import advance, stage
from icebergds.scan.read.changes import read_task_group
from icebergds.spec.manifest import DataFile
from icebergds.spec.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot

_Int64s = npt.NDArray[np.int64]

_SAME_IDS = "readers of changes, and engines that match rows by id, take different rows for one"
_MOST_SHOWN = 20


def check_row_id_ranges(
    live: Sequence[EntryColumns], next_row_id: int, location: str
) -> Iterator[Finding]:
    """Whether the row ids that manifests assign to the data files of a snapshot are unique.

    Args:
        live: the live entries of data manifests.
        next_row_id: of the table.
        location: of the metadata file.
    """
    first, rows, paths = _ranges(live)
    if not len(first):
        return
    order = np.argsort(first, kind="stable")
    first, rows, paths = first[order], rows[order], paths.take(pa.array(order))
    ends = first + rows
    # Files without rows have no ids.
    furthest = np.maximum.accumulate(ends)
    for at in np.flatnonzero((first[1:] < furthest[:-1]) & (rows[1:] > 0))[:_MOST_SHOWN].tolist():
        yield Finding(
            FindingKind.ROW_IDS,
            paths[at + 1].as_py(),
            "first_row_id",
            f"{first[at + 1]:,}",
            f"{furthest[at]:,} is the first that no other file has",
            _SAME_IDS,
            "write the rows of the file anew",
        )
    if furthest[-1] > next_row_id:
        yield Finding(
            FindingKind.ROW_IDS,
            location,
            "next-row-id",
            f"{next_row_id:,}",
            f"{furthest[-1]:,} is the first free one",
            "the next commit gives rows the ids of others",
            "load the newest metadata file of the table",
        )


def check_row_ids(state: TableState, snapshot: Snapshot) -> Iterator[Finding]:
    """Reads the row ids of all rows of a snapshot that are not deleted; they are in memory at once.

    Raises:
        StorageError: the storage fails.
    """
    columns = Schema((ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER))
    options = ReadOptions(TimeTravel(snapshot.snapshot_id), wrong_counts=WrongCounts.WARN)
    ids, latest = [np.empty(0, np.int64)], -1
    try:
        found, plan = plan_read(state, options, columns)
        groups = plan_task_groups(options, state, found, plan)
        with stage("read row ids", len(groups)):
            for group in groups:
                for batch in read_task_group(plan, group):
                    ids.append(batch.column(0).drop_null().to_numpy().astype(np.int64))
                    number = pc.max(batch.column(1)).as_py()
                    latest = latest if number is None else max(latest, number)
                advance()
    except StorageError:
        raise
    except IcebergError:
        # What cannot be read is told by other checks.
        return
    known = np.sort(np.concatenate(ids))
    what = f"snapshot {snapshot.snapshot_id}"
    repeated = np.unique(known[1:][known[1:] == known[:-1]])
    if len(repeated):
        shown = ", ".join(f"{row_id:,}" for row_id in repeated[:5].tolist())
        yield Finding(
            FindingKind.ROW_IDS,
            snapshot.manifest_list or what,
            ROW_ID.name,
            f"{len(known):,} rows",
            f"{len(repeated):,} ids of several rows: {shown}",
            _SAME_IDS,
            "write the rows with these ids anew",
        )
    if len(known) and known[-1] >= state.metadata.next_row_id:
        yield Finding(
            FindingKind.ROW_IDS,
            snapshot.manifest_list or what,
            ROW_ID.name,
            f"next-row-id {state.metadata.next_row_id:,}",
            f"{known[-1]:,}",
            "later commits give the id to another row",
            "write the rows with these ids anew",
        )
    if latest > snapshot.sequence_number:
        yield Finding(
            FindingKind.SEQUENCE_NUMBERS,
            snapshot.manifest_list or what,
            LAST_UPDATED_SEQUENCE_NUMBER.name,
            f"{snapshot.sequence_number:,} of the snapshot",
            f"{latest:,}",
            "readers of changes take the rows for changed by a later commit",
            "write these rows anew",
        )


def check_positions(io: FileIO, file: DataFile, rows: Mapping[str, int]) -> Iterator[Finding]:
    """Whether a position delete file names rows that live data files have.

    Args:
        rows: how many rows each live data file has, by its path.
    """
    worst: dict[str, tuple[int, int]] = {}
    try:
        for batch in position_batches(
            io, file.file_path, file.file_format, key_metadata=file.key_metadata
        ):
            for path, positions in batch.by_path():
                count, last = rows.get(path, -1), int(positions.max())
                if 0 <= count <= last and last > worst.get(path, (0, -1))[1]:
                    worst[path] = count, last
    except StorageError:
        raise
    except IcebergError:
        # That it cannot be read is told by the check of the file.
        return
    for path, (count, last) in worst.items():
        yield out_of_range(file.file_path, path, last, count)


def _ranges(live: Sequence[EntryColumns]) -> tuple[_Int64s, _Int64s, pa.StringArray]:
    first, rows, paths = [np.empty(0, np.int64)], [np.empty(0, np.int64)], list[pa.Array]()
    for columns in live:
        known = columns.filter(columns.first_row_id.is_valid())
        first.append(known.first_row_id.to_numpy())
        rows.append(np.maximum(known.record_count, 0))
        paths.append(known.file_path)
    joined = pa.concat_arrays([pa.array([], pa.string()), *paths])
    return np.concatenate(first), np.concatenate(rows), joined
