"""Packs the changes of snapshots into task groups.

A row that a snapshot deletes from one file and re-inserts unchanged into another, as copy-on-write
does with unaffected rows, is a carry-over. All files between which rows may be carried over go to
one task: the files of one partition, because equal rows are in the same partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files, pack_groups
from icebergds.scan.tasks import CarryoverGroup, ChangelogTaskGroup, ChangeType, TaskGroup
from icebergds.spec.manifest import PartitionKey, partition_of
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema


def change_task_groups(
    changes: Iterable[Sequence[PlannedFile]],
    metadata: TableMetadata,
    schema: Schema,
    splits: SplitOptions,
    *,
    identifier_ids: tuple[int, ...] = (),
) -> list[TaskGroup]:
    """Packs changed files into task groups.

    Args:
        changes: the files of each snapshot, as `ChangePlanner.changes` returns them; for net
            changes, a single sequence with the files of all snapshots.
        schema: the schema that is read.
        identifier_ids: columns that identify updated rows; empty if updates are not computed.

    Raises:
        InvalidMetadataError: a column of an equality key is in no schema.
    """
    one_sided: list[PlannedFile] = []
    two_sided: list[list[PlannedFile]] = []
    for files in changes:
        for group in _groups(files, metadata, schema, identifier_ids):
            has_both = len({_type_of(file) for file in group}) > 1
            (two_sided.append if has_both else one_sided.extend)(group)
    task_groups: list[TaskGroup] = list(pack_files(one_sided, metadata, schema, splits))
    for scan_groups, groups in pack_groups(two_sided, metadata, schema, splits):
        sides = map(_smaller_side, groups)
        task_groups.append(
            ChangelogTaskGroup(tuple(map(CarryoverGroup, scan_groups, sides)), identifier_ids)
        )
    return task_groups


def _groups(
    files: Sequence[PlannedFile],
    metadata: TableMetadata,
    schema: Schema,
    identifier_ids: Collection[int],
) -> Iterable[list[PlannedFile]]:
    """Groups files such that equal rows, or rows with equal identifiers, are in one group."""
    specs = {file.entry.data_file.spec_id for file in files}
    if len(specs) != 1:
        return [list(files)] if files else []
    if not _determines_partition(metadata.specs_by_id[specs.pop()], schema, identifier_ids):
        return [list(files)]
    groups: dict[PartitionKey, list[PlannedFile]] = {}
    for file in files:
        groups.setdefault(partition_of(file.entry.data_file), []).append(file)
    return groups.values()


def _determines_partition(
    spec: PartitionSpec, schema: Schema, identifier_ids: Collection[int]
) -> bool:
    """Whether the compared columns include all partition source columns."""
    compared = identifier_ids or schema.fields_by_id.keys()
    return all(source_id in compared for source_id in spec.source_ids)


def _type_of(file: PlannedFile) -> ChangeType:
    assert file.change is not None, "files of a change feed have a change"
    return file.change.change_type


def _smaller_side(files: Sequence[PlannedFile]) -> ChangeType:
    rows = {ChangeType.INSERT: 0, ChangeType.DELETE: 0}
    for file in files:
        rows[_type_of(file)] += _max_changed_rows(file)
    return min(rows, key=rows.__getitem__)


def _max_changed_rows(file: PlannedFile) -> int:
    stored = max(file.entry.data_file.record_count, 0)
    assert file.change is not None
    deletes = file.change.deletes
    if deletes is None:
        return stored
    entries = (*deletes.position_deletes, *deletes.equality_deletes)
    return min(stored, sum(entry.data_file.record_count for entry in entries))
