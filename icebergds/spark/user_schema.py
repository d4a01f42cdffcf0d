"""Resolves a schema given with `.schema(...)` to columns of the table.

Spark does not validate such a schema against the table, so this module does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from icebergds.errors import InvalidOptionError
from icebergds.scan.projection import FeedColumns, metadata_columns
from icebergds.scan.read_plan import PLAIN_TYPES, ShownTypes
from icebergds.spark.types import spark_type
from icebergds.spec.reserved import is_reserved
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from icebergds.suggestions import did_you_mean

if TYPE_CHECKING:
    from icebergds.commit.operations import TableState
    from icebergds.operations.read.options import ReadOptions


_WITH_PARAMETERS = (spark.DecimalType, spark.GeometryType, spark.GeographyType)


def project_load_schema(
    user: spark.StructType,
    state: TableState,
    schema: Schema,
    *,
    feed: FeedColumns | None,
    shown: ShownTypes = PLAIN_TYPES,
) -> Schema:
    """The columns of a load for which a schema was given; it may name metadata columns, too.

    Args:
        user: the schema given to the load.
        schema: the table's schema to read with.
        feed: the columns of the change feed, if it is read.
        shown: as in `ReadPlan`.

    Raises:
        InvalidOptionError: as for `project_user_schema`.
    """
    taken = {field.name for field in schema.fields}
    further = metadata_columns(state.metadata, feed=feed)
    available = (*schema.fields, *(field for field in further if field.name not in taken))
    return project_user_schema(user, available, state.name, shown=shown)


def refuse_second_choice(options: ReadOptions) -> None:
    """Raises InvalidOptionError if options choose columns, as the schema of the load does."""
    if options.columns is not None:
        raise InvalidOptionError(
            "option 'columns' and the schema of the load both choose columns; give one"
        )


def project_user_schema(
    user: spark.StructType,
    available: tuple[NestedField, ...],
    table: str,
    *,
    shown: ShownTypes = PLAIN_TYPES,
) -> Schema:
    """The table's columns under the names, in the order and with the nullability of `user`.

    A name matches exactly or, failing that, ignoring case. A struct may leave out fields, at any
    depth.

    Args:
        user: the schema given to the load.
        available: the columns that can be read.
        table: the table's name, for messages.
        shown: as in `ReadPlan`.

    Raises:
        InvalidOptionError: a column does not exist or is named twice, no column is named, a type
            does not match, or an optional column is NOT NULL in `user`.
    """
    where = _Place(f"table {table}, schema given to the load", shown)
    return Schema(_project_struct(user, available, where))


@dataclass(frozen=True, slots=True)
class _Place:
    """A column, for messages, and the types that Spark gets."""

    text: str
    shown: ShownTypes

    def __str__(self) -> str:
        return self.text

    def __truediv__(self, more: str) -> _Place:
        return replace(self, text=self.text + more)


def _project_struct(
    user: spark.StructType, available: tuple[NestedField, ...], where: _Place
) -> tuple[NestedField, ...]:
    if not user.fields and any(not is_reserved(field.field_id) for field in available):
        raise InvalidOptionError(
            f"{where}: no column is named; name at least one, or give no schema"
        )
    found = [_find(wanted.name, available, where) for wanted in user.fields]
    names: dict[int, str] = {}
    for field, wanted in zip(found, user.fields, strict=True):
        if field.field_id in names:
            raise InvalidOptionError(
                f"{where}: {names[field.field_id]!r} and {wanted.name!r} name the same column"
            )
        names[field.field_id] = wanted.name
    return tuple(
        _project_field(
            field, wanted.name, wanted.dataType, wanted.nullable, where / f": {wanted.name}"
        )
        for field, wanted in zip(found, user.fields, strict=True)
    )


def _find(name: str, available: tuple[NestedField, ...], where: _Place) -> NestedField:
    found = [field for field in available if field.name == name]
    found = found or [field for field in available if field.name.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidOptionError(
            f"{where}: column {name!r} is ambiguous, matches "
            f"{', '.join(f.name for f in found)}; write the name in its exact case"
        )
    known = ", ".join(field.name for field in available)
    near = did_you_mean(name, (field.name for field in available), shown=repr)
    hint = near or f"the columns are {known}"
    raise InvalidOptionError(f"{where}: no column {name!r}; {hint}")


def _project_field(
    field: NestedField, name: str, wanted: spark.DataType, nullable: bool, where: _Place
) -> NestedField:
    if field.optional and not nullable:
        raise InvalidOptionError(
            f"{where} is NOT NULL in the given schema, but the table's column is optional; "
            "leave out NOT NULL"
        )
    projected = _project_type(field.field_type, wanted, where)
    return replace(field, name=name, field_type=projected, required=not nullable)


def _project_type(field_type: IcebergType, wanted: spark.DataType, where: _Place) -> IcebergType:
    match field_type, wanted:
        case StructType(fields=fields), spark.StructType():
            return StructType(_project_struct(wanted, fields, where))
        case ListType(), spark.ArrayType():
            element = _project_field(
                field_type.element_field,
                "element",
                wanted.elementType,
                wanted.containsNull,
                where / ".element",
            )
            return replace(
                field_type, element_type=element.field_type, element_required=element.required
            )
        case MapType(), spark.MapType():
            key = _project_type(field_type.key_type, wanted.keyType, where / ".key")
            value = _project_field(
                field_type.value_field,
                "value",
                wanted.valueType,
                wanted.valueContainsNull,
                where / ".value",
            )
            return replace(
                field_type,
                key_type=key,
                value_type=value.field_type,
                value_required=value.required,
            )
        case GeometryType() | GeographyType(), spark.BinaryType():
            # As WKB, which Spark does not check then.
            return BINARY
        case _:
            expected = spark_type(field_type, where.shown)
            if type(wanted) is not type(expected) or (
                isinstance(wanted, _WITH_PARAMETERS) and wanted != expected
            ):
                raise InvalidOptionError(
                    f"{where} is {wanted.simpleString()} in the given schema, but the column is "
                    f"{field_type}, which is read as {expected.simpleString()}; use that type"
                )
            return field_type
