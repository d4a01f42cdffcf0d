"""A table as plain rows: which rows a scan must return, by the specification's rules, one by one.

Nothing here is shared with the readers but the values: schemas, specs, filters and `matches`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from icebergds.expr.evaluate import matches
from icebergds.expr.nodes import Expr
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import (
    DELETED,
    FILE_PATH,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION,
    POS,
    ROW_ID,
    SPEC_ID,
)
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    DATE,
    TIMESTAMP,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)

Row = tuple[Any, ...]
_DAY_MICROS = 86_400_000_000


@dataclass(frozen=True)
class ModelFile:
    """A data file: what it stores, by the schema it was written with."""

    data_file: DataFile
    sequence_number: int
    schema: Schema
    rows: tuple[Row, ...]

    @property
    def path(self) -> str:
        return self.data_file.file_path


@dataclass(frozen=True)
class ModelDelete:
    """A delete file, or a deletion vector.

    `positions` are by path of a data file; `keys` are rows of `schema`.
    """

    data_file: DataFile
    sequence_number: int
    positions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    schema: Schema = field(default_factory=lambda: Schema(()))
    keys: tuple[Row, ...] = ()


@dataclass(frozen=True)
class ModelState:
    """The files of a snapshot, and the first row ids of those that have one, by path."""

    files: tuple[ModelFile, ...] = ()
    deletes: tuple[ModelDelete, ...] = ()
    first_row_ids: Mapping[str, int] = field(default_factory=dict)

    def changed(
        self,
        files: Iterable[ModelFile] = (),
        deletes: Iterable[ModelDelete] = (),
        removed: Iterable[DataFile] = (),
    ) -> ModelState:
        gone = {(file.file_path, file.content_offset) for file in removed}
        return ModelState(
            (*(f for f in self.files if (f.path, None) not in gone), *files),
            (
                *(
                    d
                    for d in self.deletes
                    if (d.data_file.file_path, d.data_file.content_offset) not in gone
                ),
                *deletes,
            ),
        )


@dataclass(frozen=True)
class ModelRow:
    """A stored row, live or deleted."""

    file: ModelFile
    position: int
    is_deleted: bool


@dataclass(frozen=True)
class TableFacts:
    """What of a table's metadata decides how its files are read."""

    schemas: tuple[Schema, ...]
    specs: Mapping[int, PartitionSpec]

    def newest_field(self, field_id: int) -> NestedField:
        found = [s.find_field(field_id) for s in self.schemas]
        return [f for f in found if f is not None][-1]


def rows_of(state: ModelState, facts: TableFacts) -> Iterator[ModelRow]:
    """Every stored row of a snapshot."""
    for file in state.files:
        deleted = deleted_positions(file, state.deletes)
        keys = [keyed for delete in state.deletes if (keyed := _keys_for(file, delete, facts))]
        for position in range(len(file.rows)):
            by_key = any(
                tuple(_key_of(file, position, i, facts) for i in ids) in found
                for ids, found in keys
            )
            yield ModelRow(file, position, position in deleted or by_key)


def scan(
    state: ModelState,
    facts: TableFacts,
    schema: Schema,
    row_filter: Expr,
    columns: Sequence[NestedField],
) -> list[Row]:
    """The rows that a scan returns; deleted ones too if `_deleted` is among the columns."""
    shows_deleted = any(column.field_id == DELETED.field_id for column in columns)
    found = []
    for row in rows_of(state, facts):
        if row.is_deleted and not shows_deleted:
            continue
        if matches(
            row_filter, lambda i, row=row: leaf_value(row.file, row.position, i, schema, facts)
        ):
            found.append(tuple(output(row, column, state, facts) for column in columns))
    return found


def leaf_value(
    file: ModelFile, position: int, field_id: int, schema: Schema, facts: TableFacts
) -> Any:
    """A field's value in a row as a schema reads it, at any depth of structs."""
    path = (*reversed(schema.ancestors(field_id)), field_id)
    top = schema.find_field(path[0])
    assert top is not None
    return _descend(top, _top_value(file, position, top, facts), path[1:])


def partition_key(data_file: DataFile) -> tuple[Any, ...]:
    """What files of one partition share: equal floats have equal bits, all NaNs are one."""
    return (data_file.spec_id, *(comparable(value) for value in data_file.partition))


def comparable(value: Any) -> Any:
    """A value that compares as the format's equality: by bits for floating point."""
    if isinstance(value, float):
        return struct.pack(">d", math.nan if value != value else value)
    return value


def promoted(
    value: Any,
    stored: IcebergType,
    wanted: IcebergType,
    absent: Callable[[NestedField], Any],
) -> Any:
    """A stored value as a later schema reads it (spec: Schema Evolution, Column Projection).

    `absent` gives the values of fields that are not stored.
    """
    match stored, wanted:
        case _ if value is None:
            return None
        case StructType(fields=old), StructType(fields=new):
            by_id = {f.field_id: (f, v) for f, v in zip(old, value, strict=True)}
            return tuple(
                promoted(
                    by_id[f.field_id][1], by_id[f.field_id][0].field_type, f.field_type, absent
                )
                if f.field_id in by_id
                else absent(f)
                for f in new
            )
        case ListType(element_type=old), ListType(element_type=new):
            return [promoted(element, old, new, absent) for element in value]
        case _ if stored == DATE and wanted == TIMESTAMP:
            return value * _DAY_MICROS
        case _:
            return value


def _top_value(file: ModelFile, position: int, column: NestedField, facts: TableFacts) -> Any:
    def absent(field: NestedField) -> Any:
        return _absent_value(file, field, facts)

    for stored, value in zip(file.schema.fields, file.rows[position], strict=True):
        if stored.field_id == column.field_id:
            return promoted(value, stored.field_type, column.field_type, absent)
    return absent(column)


def _absent_value(file: ModelFile, column: NestedField, facts: TableFacts) -> Any:
    """What stands for a column that a file lacks: its partition's value, else the default."""
    spec = facts.specs[file.data_file.spec_id]
    fixed = {
        part.source_id: value
        for part, value in zip(spec.fields, file.data_file.partition, strict=True)
        if isinstance(part.transform, IdentityTransform)
    }
    if column.field_id in fixed:
        return fixed[column.field_id]
    if isinstance(column.field_type, StructType):
        inner = column.field_type.fields
        if any(fixed.get(field.field_id) is not None for field in inner):
            return tuple(_absent_value(file, field, facts) for field in inner)
    return column.initial_default


def _descend(column: NestedField, value: Any, path: Sequence[int]) -> Any:
    for field_id in path:
        if value is None:
            return None
        assert isinstance(column.field_type, StructType)
        fields = column.field_type.fields
        at = next(i for i, f in enumerate(fields) if f.field_id == field_id)
        column, value = fields[at], value[at]
    return value


def deleted_positions(file: ModelFile, deletes: Iterable[ModelDelete]) -> frozenset[int]:
    """Positions deleted in a file (Scan Planning); a vector replaces position delete files."""
    vectors, files = [], []
    for delete in deletes:
        applies = (
            file.path in delete.positions
            and delete.sequence_number >= file.sequence_number
            and partition_key(delete.data_file) == partition_key(file.data_file)
        )
        if applies:
            (vectors if delete.data_file.is_deletion_vector else files).append(delete)
    return frozenset().union(*(delete.positions[file.path] for delete in vectors or files))


def _keys_for(
    file: ModelFile, delete: ModelDelete, facts: TableFacts
) -> tuple[tuple[int, ...], set[tuple[Any, ...]]] | None:
    """Scan Planning: equality deletes apply to strictly older data of their scope."""
    ids = delete.data_file.equality_ids
    is_global = facts.specs[delete.data_file.spec_id].is_unpartitioned
    in_scope = is_global or partition_key(delete.data_file) == partition_key(file.data_file)
    if not ids or not in_scope or file.sequence_number >= delete.sequence_number:
        return None
    as_file = ModelFile(delete.data_file, 0, delete.schema, delete.keys)
    return ids, {
        tuple(_key_of(as_file, at, i, facts) for i in ids) for at in range(len(delete.keys))
    }


def _key_of(file: ModelFile, position: int, field_id: int, facts: TableFacts) -> Any:
    """A key's value, as the newest schema that has the field reads it."""
    schema = next(s for s in reversed(facts.schemas) if s.find_field(field_id) is not None)
    return comparable(leaf_value(file, position, field_id, schema, facts))


def output(row: ModelRow, column: NestedField, state: ModelState, facts: TableFacts) -> Any:
    """The value of a column, metadata columns among them, in a row."""
    file, data_file = row.file, row.file.data_file
    match column.field_id:
        case FILE_PATH.field_id:
            return file.path
        case POS.field_id:
            return row.position
        case SPEC_ID.field_id:
            return data_file.spec_id
        case DELETED.field_id:
            return row.is_deleted
        case PARTITION.field_id:
            assert isinstance(column.field_type, StructType)
            spec = facts.specs[data_file.spec_id]
            values = {
                part.field_id: value
                for part, value in zip(spec.fields, data_file.partition, strict=True)
            }
            return tuple(values.get(f.field_id) for f in column.field_type.fields)
        case LAST_UPDATED_SEQUENCE_NUMBER.field_id:
            if file.path not in state.first_row_ids:
                return None
            stored = _top_value(file, row.position, column, facts)
            return file.sequence_number if stored is None else stored
        case ROW_ID.field_id:
            first = state.first_row_ids.get(file.path)
            if first is None:
                return None
            stored = _top_value(file, row.position, column, facts)
            return first + row.position if stored is None else stored
        case _:
            return _top_value(file, row.position, column, facts)
