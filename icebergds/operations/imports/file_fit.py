"""Checks that the columns of a file can be read as those of a table.

Columns that would be read wrongly, or not at all, are refused; columns that the table does not have
are allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icebergds.errors import InvalidDataError
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn, find_child, to_schema
from icebergds.formats.data_file.stored_file import StoredFile
from icebergds.spec.evolution.promotion import can_promote
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.name_mapping import MappedField, NameMapping
from icebergds.spec.types import (
    BINARY,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    is_scalar,
)


@dataclass(frozen=True, slots=True)
class TableColumns:
    """What the columns of files are compared with.

    Attributes:
        names: the names that each field id has, or once had, in the table or its name mapping.
    """

    fields: tuple[NestedField, ...]
    names: Mapping[int, AbstractSet[str]]
    format_version: int


def table_columns(metadata: TableMetadata, mapping: NameMapping) -> TableColumns:
    """The columns of a table, with all names that its files may have for them."""
    names: dict[int, set[str]] = {}
    for schema in metadata.schemas:
        for field_id, field in schema.fields_by_id.items():
            names.setdefault(field_id, set()).add(field.name)
    _add_names(mapping.fields, names)
    return TableColumns(metadata.schema().fields, names, metadata.format_version)


def check_fit(
    file: StoredFile, table: TableColumns, path_values: Mapping[int, Any], location: str
) -> None:
    """Checks a file.

    Args:
        path_values: values of columns that the file may lack, by field id.
        location: the file's location, for errors.

    Raises:
        InvalidDataError: the file lacks a required column, or one of its columns has a type that
            cannot be read as the table's, the id of another column, or the name of a column but no
            id.
    """
    found = to_schema(file.columns).fields_by_id
    check = _Check(file, table, path_values, location, found)
    check.fields(file.columns, table.fields, ())
    check.has_any_column()


@dataclass(frozen=True, slots=True)
class _Check:
    file: StoredFile
    table: TableColumns
    path_values: Mapping[int, Any]
    location: str
    found: Mapping[int, NestedField]

    def has_any_column(self) -> None:
        """Refuses a file from which only nulls would be read."""
        known = {field.field_id for field in self.table.fields}
        if not known & {*self.path_values, *(column.field_id for column in self.file.columns)}:
            names = ", ".join(repr(column.name) for column in self.file.columns[:5]) or "none"
            raise self._refused(f"none of its columns ({names}) is one of the table's")

    def fields(
        self, columns: Sequence[FileColumn], fields: Sequence[NestedField], path: tuple[str, ...]
    ) -> None:
        """Checks the fields of a struct, or of the table."""
        by_name = {field.name: field for field in fields}
        present = {column.field_id for column in columns}
        for column in columns:
            self._check_id(column, by_name, present, path)
        for field in fields:
            found = find_child(columns, field.field_id, self.location)
            if found is None:
                self._check_missing(field, path)
            else:
                self._field(found, field, (*path, field.name))

    def _check_id(
        self,
        column: FileColumn,
        by_name: Mapping[str, NestedField],
        present: AbstractSet[int | None],
        path: tuple[str, ...],
    ) -> None:
        name, same = ".".join((*path, column.name)), by_name.get(column.name)
        if column.field_id is None:
            self._check_case(column, by_name, present, path)
            if same is not None and same.field_id not in present:
                why = (
                    "has no field id, but other columns of the file do"
                    if self.file.has_own_ids
                    else "is not in the table's name mapping (schema.name-mapping.default)"
                )
                raise self._refused(f"column {name!r} {why}, so that it would not be read")
        elif self.file.has_own_ids and column.name not in self.table.names.get(
            column.field_id, frozenset()
        ):
            of = self.table.names.get(column.field_id)
            meant = f"that of column {min(of)!r}" if of else "not one of the table's"
            raise self._refused(f"column {name!r} has the field id {column.field_id}, {meant}")
        elif not self.file.has_own_ids and same is not None and same.field_id != column.field_id:
            had = [field.name for field in by_name.values() if field.field_id == column.field_id]
            other = f"column {had[0]!r}" if had else "a column that was deleted"
            raise self._refused(
                f"in the table's name mapping (schema.name-mapping.default), {name!r} is a name of "
                f"{other}, so that its values would not be read as those of column {name!r}"
            )

    def _check_case(
        self,
        column: FileColumn,
        by_name: Mapping[str, NestedField],
        present: AbstractSet[int | None],
        path: tuple[str, ...],
    ) -> None:
        """Refuses a name that differs from a column's only by case, which would not be read."""
        for other, field in by_name.items():
            if other != column.name and other.lower() == column.name.lower():
                name, wanted = (".".join((*path, one)) for one in (column.name, other))
                if field.field_id in present:
                    raise self._refused(
                        f"the names of its columns {name!r} and {wanted!r} differ by case alone, "
                        "so that some engines would read the one for the other"
                    )
                raise self._refused(
                    f"its column {name!r} has the name of column {wanted!r} in another case, so "
                    "that it would not be read; add the name to the table's name mapping "
                    "(schema.name-mapping.default), or rename the table's column"
                )

    def _check_missing(self, field: NestedField, path: tuple[str, ...]) -> None:
        known = self.path_values.get(field.field_id)
        if field.required and field.initial_default is None and known is None:
            raise self._refused(f"it lacks the required column {'.'.join((*path, field.name))!r}")

    def _field(self, column: FileColumn, field: NestedField, path: tuple[str, ...]) -> None:
        self._type(column, field.field_type, path)
        if field.required and not (column.required or self._has_no_nulls(column)):
            raise self._refused(
                f"column {'.'.join(path)!r} is required, and the file's footer does not say that "
                "it has no nulls"
            )

    def _type(self, column: FileColumn, wanted: IcebergType, path: tuple[str, ...]) -> None:
        kind = column.kind
        match wanted:
            case StructType(fields=fields) if kind is ColumnKind.STRUCT:
                self.fields(column.children, fields, path)
                self._has_any_field(column, fields, path)
            case ListType() if kind is ColumnKind.LIST:
                self._child(column.children[0], wanted.element_field, path)
            case MapType() if kind is ColumnKind.MAP:
                self._child(column.children[0], wanted.key_field, path)
                self._child(column.children[1], wanted.value_field, path)
            case _:
                self._scalar(column, wanted, path)

    def _has_any_field(
        self, column: FileColumn, fields: Sequence[NestedField], path: tuple[str, ...]
    ) -> None:
        """Refuses a struct of which only the nulls would be read: other engines fail."""
        present = {child.field_id for child in column.children}
        if fields and present.isdisjoint(field.field_id for field in fields):
            raise self._refused(
                f"column {'.'.join(path)!r} has none of the fields that it has in the table"
            )

    def _child(self, column: FileColumn, field: NestedField, path: tuple[str, ...]) -> None:
        inside = (*path, field.name)
        if column.field_id != field.field_id:
            raise self._refused(
                f"column {'.'.join(inside)!r} has the field id {column.field_id}, expected "
                f"{field.field_id}"
            )
        self._field(column, field, inside)

    def _scalar(self, column: FileColumn, wanted: IcebergType, path: tuple[str, ...]) -> None:
        assert column.field_id is not None
        field = self.found.get(column.field_id)
        stored = UNKNOWN if field is None else field.field_type
        if field is not None and (
            can_promote(stored, wanted, self.table.format_version)
            or _is_written_as(stored, wanted)
            or (column.field_id in self.file.unzoned and {stored, wanted} <= _MICROS)
        ):
            if wanted == TIME and column.arrow_type == pa.time64("ns"):
                raise self._refused(
                    f"column {'.'.join(path)!r} is stored as {column.arrow_type}, which other "
                    "engines cannot read"
                )
            return
        shown = str(column.arrow_type) if field is None or is_scalar(stored) else column.kind
        raise self._refused(
            f"column {'.'.join(path)!r} is stored as {shown}, which cannot be read as the table's "
            f"{wanted}"
        )

    def _has_no_nulls(self, column: FileColumn) -> bool:
        """Whether statistics show it; a struct is not null if a value inside of it never is."""
        if column.kind is ColumnKind.STRUCT:
            return any(map(self._has_no_nulls, column.children))
        return self.file.statistics.null_counts.get(column.field_id or -1) == 0

    def _refused(self, why: str) -> InvalidDataError:
        return InvalidDataError(
            f"{self.location} cannot be added: {why}; leave the file out, or read it and write its "
            "rows to the table"
        )


_MICROS = frozenset({TIMESTAMP, TIMESTAMPTZ})


def _is_written_as(stored: IcebergType, wanted: IcebergType) -> bool:
    """Whether writers without a type of their own store one type as another."""
    match wanted:
        case _ if wanted == STRING:
            return stored == BINARY
        case _ if wanted == BINARY:
            return stored == STRING or isinstance(stored, FixedType)
        case _ if wanted == UUID:
            return stored == FixedType(16)
        case _:
            return False


def _add_names(mapped: Iterable[MappedField], names: dict[int, set[str]]) -> None:
    for entry in mapped:
        if entry.field_id is not None:
            names.setdefault(entry.field_id, set()).update(entry.names)
        _add_names(entry.fields, names)
