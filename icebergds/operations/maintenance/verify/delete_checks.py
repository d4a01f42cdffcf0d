"""Finds files that a snapshot lists twice, and delete files whose entries are wrong or dangle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.base import CommitBase
from icebergds.commit.operations import TableState
from icebergds.errors import IcebergError
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.operations.maintenance.deletes.dangling_deletes import find_dangling_deletes
from icebergds.operations.maintenance.verify.findings import Finding, FindingKind, Severity
from icebergds.operations.maintenance.verify.walk import Walk
from icebergds.spec.manifest import FileContent, ManifestContent, ManifestFile
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot

_WRITE_ANEW = "write the deletes anew, such as with rewrite_position_delete_files"


def check_files_of(state: TableState, walk: Walk, snapshot: Snapshot) -> Iterator[Finding]:
    """What is wrong with the files that a snapshot lists, by metadata alone.

    Args:
        snapshot: all manifests of it could be read.
    """
    parts = [manifest.live() for manifest in walk.of_snapshot(snapshot.snapshot_id)]
    live = [columns for columns in parts if len(columns)]
    yield from _duplicates(live)
    vectors = [_vectors(columns) for columns in live]
    yield from _several_vectors(vectors)
    for columns in live:
        yield from _entries(columns)
    yield from _dangling(state, walk, snapshot)


def _duplicates(live: Sequence[EntryColumns]) -> Iterator[Finding]:
    paths = pa.chunked_array([columns.file_path for columns in live], pa.string())
    if not len(paths):
        return
    offsets = pa.chunked_array([columns.content_offset for columns in live], pa.int64())
    rows = pa.table({"path": paths, "offset": offsets.fill_null(-1)})
    counted = rows.group_by(["path", "offset"]).aggregate([([], "count_all")])
    repeated = counted.filter(pc.greater(counted["count_all"], 1))
    for row in repeated.to_pylist():
        yield Finding(
            FindingKind.DUPLICATE_FILE,
            row["path"],
            None,
            f"{row['count_all']} entries",
            "1 file",
            "its rows are read several times",
            "roll back to a snapshot that lists it once, or write its rows anew",
        )


def _vectors(columns: EntryColumns) -> EntryColumns:
    by_position = columns.content == FileContent.POSITION_DELETES.value
    return columns.filter(by_position & columns.is_vector)


def _several_vectors(vectors: Sequence[EntryColumns]) -> Iterator[Finding]:
    paths = pa.chunked_array([columns.referenced_data_file for columns in vectors], pa.string())
    counts = paths.drop_null().value_counts()
    for path, count in zip(counts.field(0), counts.field(1), strict=True):
        if count.as_py() > 1:
            yield Finding(
                FindingKind.DELETE_ENTRY,
                path.as_py(),
                "referenced_data_file",
                f"{count.as_py()} deletion vectors",
                "1 is allowed",
                "readers fail, or apply one of them and read rows that others delete",
                _WRITE_ANEW,
            )


def _entries(columns: EntryColumns) -> Iterator[Finding]:
    keyed = columns.filter(columns.content == FileContent.EQUALITY_DELETES.value)
    lacking = pc.fill_null(pc.equal(pc.list_value_length(keyed.equality_ids), 0), True)
    for at in _places(lacking):
        yield Finding(
            FindingKind.DELETE_ENTRY,
            keyed.file_path[at].as_py(),
            "equality_ids",
            "none",
            "an equality delete file",
            "readers fail, or read the rows that it deletes",
            "restore the entry, or roll back to an earlier snapshot",
        )
    vectors = _vectors(columns)
    for name in ("referenced_data_file", "content_offset", "content_size_in_bytes"):
        for at in _places(getattr(vectors, name).is_null()):
            yield Finding(
                FindingKind.DELETE_ENTRY,
                vectors.file_path[at].as_py(),
                name,
                "nothing",
                "a deletion vector",
                "readers fail, or read the rows that it deletes",
                "restore the entry, or roll back to an earlier snapshot",
            )


def _dangling(state: TableState, walk: Walk, snapshot: Snapshot) -> Iterator[Finding]:
    manifests = walk.lists[snapshot.snapshot_id]
    if all(manifest.content is ManifestContent.DATA for manifest in manifests):
        return
    if any(_is_said_to_be_empty(walk, manifest) for manifest in manifests):
        # The search would leave out its files.
        return
    base = CommitBase(
        state,
        MAIN_BRANCH,
        snapshot,
        snapshot,
        manifests,
        snapshot.sequence_number,
        WrongCounts.WARN,
    )
    try:
        masks = find_dangling_deletes(base).dangling
    except IcebergError:
        # Entries that are wrong are told by the other checks.
        return
    for path, mask in masks.items():
        live = walk.manifests[path].live()
        for at in np.flatnonzero(mask).tolist():
            yield Finding(
                FindingKind.DANGLING_DELETES,
                live.file_path[at].as_py(),
                "referenced_data_file",
                live.referenced_data_file[at].as_py(),
                "no live data file that it applies to",
                "no row depends on it; plans and reads take longer",
                "run remove_dangling_deletes",
                severity=Severity.NOTE,
            )


def _is_said_to_be_empty(walk: Walk, manifest: ManifestFile) -> bool:
    counted = manifest.added_files_count or manifest.existing_files_count
    return not counted and len(walk.manifests[manifest.manifest_path].live()) > 0


def _places(mask: pa.BooleanArray) -> list[int]:
    flags: npt.NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return np.flatnonzero(flags).tolist()
