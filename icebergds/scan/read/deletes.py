"""Loads the deletes of a scan's files, once per worker process; its tasks share them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from icebergds.formats.data_reader import ReadRequest, open_data_file
from icebergds.formats.deletes.deletion_vector import read_deletion_vector
from icebergds.formats.deletes.position_deletes import positions_nbytes, read_position_deletes
from icebergds.formats.deletes.positions import PositionSet
from icebergds.formats.wrong_counts import Recorded, WrongCounts
from icebergds.io.ranged_file import Open
from icebergds.scan.column_paths import column_at, locate
from icebergds.scan.read.delete_cache import DELETES
from icebergds.scan.read.key_set import EqualityKeySet, EqualityKeySetBuilder
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import DeleteFileRef, EqualityDeleteGroup, FileScanTask, ScanTaskGroup
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, StructType

_LOG = logging.getLogger(__name__)
_POSITION_BYTES = 8
# A set of keys takes several times the memory of the keys while it is built.
_BUILD_FACTOR = 3
# Smaller parts would make reads of many keys slow without saving much.
_LEAST_BYTES = 16 << 20


def load_positions(
    plan: ReadPlan, task_group: ScanTaskGroup, task: FileScanTask, indices: Sequence[int]
) -> PositionSet | None:
    """Loads the deleted positions of a task's file; None if there are none.

    Args:
        indices: which of the task group's position deletes to load.

    Raises:
        CorruptFileError: a delete file or deletion vector is damaged.
        MissingFileError: a delete file does not exist.
    """
    found = []
    for index in indices:
        positions = _positions_in(plan, task_group, index, task.file_path)
        if positions:
            _warn_of_last(task_group.position_deletes[index], positions.last, task)
            found.append(positions)
    return PositionSet.union(found) if found else None


def opens_for_positions(
    plan: ReadPlan, task_group: ScanTaskGroup, indices: Sequence[int]
) -> Iterator[Open]:
    """The files that `load_positions` opens, in its order, unless they are cached."""
    for index in indices:
        ref = task_group.position_deletes[index]
        if _cached_as(plan, task_group, index)[0] in DELETES:
            continue
        blob = None
        if (
            ref.content_offset is not None
            and ref.content_size_in_bytes is not None
            and ref.key_metadata is None
        ):
            blob = (ref.content_offset, ref.content_offset + ref.content_size_in_bytes)
        yield Open(ref.file_path, ref.file_size_in_bytes, blob)


def load_key_set(
    plan: ReadPlan, key_schema: Schema, group: EqualityDeleteGroup
) -> EqualityKeySet | None:
    """Loads the deleted keys of a group of equality delete files.

    Args:
        key_schema: a schema with the group's key columns.

    Returns:
        None if they exceed `plan.delete_cache_bytes`; `read_key_sets` reads them in parts.

    Raises:
        CorruptFileError: a delete file is damaged.
        MissingFileError: a delete file does not exist.
    """
    fields = key_schema.select(group.equality_ids).fields
    key = (
        fields,
        group.equality_ids,
        tuple((*_identity(plan, ref), ref.data_sequence_number) for ref in group.files),
    )
    return DELETES.get_or_load(
        key,
        lambda: _whole_key_set(plan, fields, group),
        lambda keys: 0 if keys is None else keys.nbytes,
        plan.delete_cache_bytes,
    )


def read_key_sets(
    plan: ReadPlan, key_schema: Schema, group: EqualityDeleteGroup
) -> Iterator[EqualityKeySet]:
    """Reads the deleted keys of a group in parts; together they delete the same rows.

    Building a part takes about `plan.delete_cache_bytes`, if the previous one is not kept.
    Arguments and errors are those of `load_key_set`.
    """
    fields = key_schema.select(group.equality_ids).fields
    builder = _builder(fields, group)
    for columns, sequence_number in read_keys(plan, Schema(fields), group):
        builder.add(columns, sequence_number)
        if builder.nbytes > _most_bytes(plan):
            yield builder.build()
            builder = _builder(fields, group)
    yield builder.build()


def read_keys(
    plan: ReadPlan, key_schema: Schema, group: EqualityDeleteGroup
) -> Iterator[tuple[list[pa.Array], int]]:
    """Reads the key columns of delete files in batches, with the files' sequence numbers.

    Arguments and errors are those of `load_key_set`.
    """
    paths = [_path(key_schema.fields, field_id) for field_id in group.equality_ids]
    request = ReadRequest(key_schema)
    io = plan.io.expecting(Open(ref.file_path, ref.file_size_in_bytes) for ref in group.files)
    for ref in group.files:
        with open_data_file(
            io,
            ref.file_path,
            ref.file_format,
            table_schema=plan.table_schema,
            name_mapping=plan.name_mapping,
            recorded=_recorded(plan, ref),
            key_metadata=ref.key_metadata,
        ) as reader:
            for read in reader.batches(request):
                columns = [column_at(read.batch, path) for path in paths]
                yield columns, ref.data_sequence_number


def _positions_in(
    plan: ReadPlan, task_group: ScanTaskGroup, index: int, data_path: str
) -> PositionSet | None:
    ref = task_group.position_deletes[index]
    key, paths = _cached_as(plan, task_group, index)
    if ref.content_offset is not None and ref.content_size_in_bytes is not None:
        offset, length = ref.content_offset, ref.content_size_in_bytes
        return DELETES.get_or_load(
            key,
            lambda: read_deletion_vector(
                plan.io,
                ref.file_path,
                offset,
                length,
                ref.record_count,
                ref.file_size_in_bytes,
                ref.key_metadata,
            ),
            lambda positions: positions.nbytes,
            plan.delete_cache_bytes,
        )
    by_path: Mapping[str, PositionSet] = DELETES.get_or_load(
        key,
        lambda: read_position_deletes(
            plan.io,
            ref.file_path,
            ref.file_format,
            paths=paths,
            recorded=_recorded(plan, ref),
            key_metadata=ref.key_metadata,
        ),
        positions_nbytes,
        plan.delete_cache_bytes,
    )
    return by_path.get(data_path)


def _cached_as(
    plan: ReadPlan, task_group: ScanTaskGroup, index: int
) -> tuple[tuple[object, object], frozenset[str] | None]:
    """The key of position deletes in the cache, and which files' deletes to load; None for all."""
    ref = task_group.position_deletes[index]
    if ref.content_offset is not None:
        return (_identity(plan, ref), ref.content_offset), None
    # A delete file may apply to files of many tasks: read it whole, once, unless it is too large.
    paths = None
    if ref.record_count * _POSITION_BYTES > plan.delete_cache_bytes // 4:
        paths = frozenset(task.file_path for task in task_group.tasks if task.uses_positions(index))
    return (_identity(plan, ref), paths), paths


def _warn_of_last(ref: DeleteFileRef, last: int, task: FileScanTask) -> None:
    """Warns if deletes refer to rows that the data file does not have; they delete nothing.

    As in Java Iceberg, this is not an error: the existing rows are certain.
    """
    if 0 <= task.record_count <= last:
        _LOG.warning(
            "%s deletes the row at position %d of %s, whose manifest says %d rows; one of the two "
            "files may have been replaced",
            ref.file_path,
            last,
            task.file_path,
            task.record_count,
        )


def _most_bytes(plan: ReadPlan) -> int:
    """How many bytes a builder may hold, so that building its set stays within the limit."""
    return max(plan.delete_cache_bytes // _BUILD_FACTOR, _LEAST_BYTES)


def _whole_key_set(
    plan: ReadPlan, fields: tuple[NestedField, ...], group: EqualityDeleteGroup
) -> EqualityKeySet | None:
    builder = _builder(fields, group)
    for columns, sequence_number in read_keys(plan, Schema(fields), group):
        builder.add(columns, sequence_number)
        if builder.nbytes > _most_bytes(plan):
            return None
    return builder.build()


def _builder(fields: tuple[NestedField, ...], group: EqualityDeleteGroup) -> EqualityKeySetBuilder:
    paths = [_path(fields, field_id) for field_id in group.equality_ids]
    return EqualityKeySetBuilder([_leaf(fields, path) for path in paths])


def _recorded(plan: ReadPlan, ref: DeleteFileRef) -> Recorded:
    return Recorded(ref.record_count, ref.file_size_in_bytes, plan.wrong_counts)


def _identity(plan: ReadPlan, ref: DeleteFileRef) -> tuple[str, int, WrongCounts]:
    # A result of a lenient read may be an error for other reads.
    return plan.io.resolve(ref.file_path), ref.file_size_in_bytes, plan.wrong_counts


def _path(fields: tuple[NestedField, ...], field_id: int) -> tuple[int, ...]:
    path = locate(fields, field_id)
    assert path is not None, f"key column {field_id} is in the key schema by construction"
    return path


def _leaf(fields: tuple[NestedField, ...], path: tuple[int, ...]) -> NestedField:
    leaf = fields[path[0]]
    for index in path[1:]:
        assert isinstance(leaf.field_type, StructType)
        leaf = leaf.field_type.fields[index]
    return leaf
