"""Shares out the changes of snapshots among tasks.

A row that a snapshot deleted from one file and inserted into another, as copy-on-write does with
all rows that stay, did not change. Where that may be, the files that such rows may be in go to one
task: those of one partition, since equal rows are in equal partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from icebergds.scan.plan.delete_index import Scope, scope_of
from icebergds.scan.plan.files import PlannedFile, pack_files, pack_groups
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.tasks import CarryoverGroup, ChangelogTaskGroup, ChangeType, TaskGroup
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
        changes: the files of each snapshot, as `ChangePlanner.changes` finds them, or those of all
            snapshots of a range at once, of which the net changes are then read.
        schema: the schema that is read.
        identifier_ids: columns by which updates are told; none where they are not asked for.

    Raises:
        UnsupportedFeatureError: a file is encrypted.
        InvalidMetadataError: no schema has a column that equality deletes compare.
    """
    plain: list[PlannedFile] = []
    matched: list[list[PlannedFile]] = []
    for files in changes:
        for group in _groups(files, metadata, schema, identifier_ids):
            is_mixed = len({_type_of(file) for file in group}) > 1
            (matched.append if is_mixed else plain.extend)(group)
    task_groups: list[TaskGroup] = list(pack_files(plain, metadata, schema, splits))
    for partitions, groups in pack_groups(matched, metadata, schema, splits):
        held = zip(partitions, map(_smaller_side, groups), strict=True)
        task_groups.append(
            ChangelogTaskGroup(
                tuple(CarryoverGroup(part, side) for part, side in held), identifier_ids
            )
        )
    return task_groups


def _groups(
    files: Sequence[PlannedFile],
    metadata: TableMetadata,
    schema: Schema,
    identifier_ids: Collection[int],
) -> Iterable[list[PlannedFile]]:
    """The files by what rows that are the same, or of the same identifier, have in common."""
    specs = {file.entry.data_file.spec_id for file in files}
    if len(specs) != 1:
        return [list(files)] if files else []
    if not _tells_rows_apart(metadata.specs_by_id[specs.pop()], schema, identifier_ids):
        return [list(files)]
    groups: dict[Scope, list[PlannedFile]] = {}
    for file in files:
        groups.setdefault(scope_of(file.entry.data_file), []).append(file)
    return groups.values()


def _tells_rows_apart(spec: PartitionSpec, schema: Schema, identifier_ids: Collection[int]) -> bool:
    """Whether rows that meet have equal partitions: those follow from columns that are compared."""
    compared = identifier_ids or schema.fields_by_id.keys()
    return all(source_id in compared for source_id in spec.source_ids)


def _type_of(file: PlannedFile) -> ChangeType:
    assert file.change is not None, "these are files of a change feed"
    return file.change.change_type


def _smaller_side(files: Sequence[PlannedFile]) -> ChangeType:
    rows = {ChangeType.INSERT: 0, ChangeType.DELETE: 0}
    for file in files:
        rows[_type_of(file)] += _most_rows(file)
    return min(rows, key=rows.__getitem__)


def _most_rows(file: PlannedFile) -> int:
    stored = max(file.entry.data_file.record_count, 0)
    assert file.change is not None
    by = file.change.by
    if by is None:
        return stored
    deletes = (*by.position_deletes, *by.equality_deletes)
    return min(stored, sum(entry.data_file.record_count for entry in deletes))
