"""Validates schemas, partition specs and sort orders that are added to a table."""

from __future__ import annotations

import math

from icebergds.errors import InvalidMetadataError
from icebergds.spec.reserved import MAX_TABLE_FIELD_ID, is_reserved
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    MAX_WIDTH,
    Transform,
    UnknownTransform,
    can_transform,
    width_of,
)
from icebergds.spec.types import (
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TypeId,
    children,
    is_scalar,
    walk,
)


def check_schema(schema: Schema, format_version: int) -> None:
    """Raises InvalidMetadataError if a schema is not valid in a format version."""
    _check_ids(schema)
    _check_names(schema)
    for field in schema.fields:
        if _levels(field.field_type) > _DEEPEST:
            raise InvalidMetadataError(
                f"column {field.name!r} is nested deeper than {_DEEPEST} levels in Parquet, which "
                "Parquet readers refuse; a list or map takes two levels"
            )
    for field in walk(schema.fields):
        problem = _field_problem(field, format_version)
        if problem is not None:
            raise InvalidMetadataError(f"column {schema.find_name(field.field_id)!r} {problem}")
    for field_id in schema.identifier_field_ids:
        _check_identifier(schema, field_id)


# Arrow does not open Parquet files with more levels.
_DEEPEST = 99
_SINCE_V3 = frozenset(
    {
        TypeId.TIMESTAMP_NS,
        TypeId.TIMESTAMPTZ_NS,
        TypeId.UNKNOWN,
        TypeId.VARIANT,
        TypeId.GEOMETRY,
        TypeId.GEOGRAPHY,
    }
)
_NULL_DEFAULTS = frozenset({TypeId.UNKNOWN, TypeId.VARIANT, TypeId.GEOMETRY, TypeId.GEOGRAPHY})
_NO_IDENTIFIERS = frozenset({TypeId.FLOAT, TypeId.DOUBLE})


def _levels(field_type: IcebergType) -> int:
    """How many levels of groups and leaves a column has in Parquet."""
    deepest = 0
    waiting = [(field_type, 0)]
    while waiting:
        inner, outer = waiting.pop()
        level = outer + (2 if isinstance(inner, ListType | MapType) else 1)
        deepest = max(deepest, level)
        waiting += [(child.field_type, level) for child in children(inner)]
    return deepest


def _check_ids(schema: Schema) -> None:
    seen: dict[int, str] = {}
    for field in walk(schema.fields):
        if field.field_id in seen:
            raise InvalidMetadataError(
                f"the schema uses id {field.field_id} for both {seen[field.field_id]!r} and "
                f"{field.name!r}; ids must be unique"
            )
        if field.field_id < 1 or is_reserved(field.field_id):
            raise InvalidMetadataError(
                f"column {field.name!r} has id {field.field_id}, expected 1 to {MAX_TABLE_FIELD_ID}"
            )
        seen[field.field_id] = field.name


def _check_names(schema: Schema) -> None:
    seen: set[str] = set()
    for field_id in schema.paths_by_id:
        name = schema.find_name(field_id)
        assert name is not None
        if name in seen:
            # Includes a column `a.b` beside a field `b` of `a`: other readers look up full names.
            raise InvalidMetadataError(
                f"the schema has more than one field with the full name {name!r}; rename one"
            )
        seen.add(name)


def _field_problem(field: NestedField, format_version: int) -> str | None:
    match field.field_type:
        case DecimalType(precision=precision, scale=scale) if not (
            1 <= precision <= 38 and 0 <= scale <= precision
        ):
            return (
                f"is of type {field.field_type}; its scale must be between 0 and its precision, "
                "which is at most 38"
            )
        case FixedType(length=length) if length < 1:
            return f"is of type {field.field_type}; its length must be at least 1"
    type_id = field.field_type.type_id if is_scalar(field.field_type) else None
    if type_id in _SINCE_V3 and format_version < 3:
        return (
            f"is of type {field.field_type}, which format version {format_version} does not "
            "support; upgrade the table to version 3, or create it with 'format-version' = '3'"
        )
    if field.initial_default is not None and format_version < 3:
        return (
            f"has an initial default, which format version {format_version} does not support; "
            "upgrade the table to version 3"
        )
    has_default = field.initial_default is not None or field.write_default is not None
    for default in (field.initial_default, field.write_default):
        if isinstance(default, float) and not math.isfinite(default):
            # JSON Single-Value Serialization: a JSON number, and Java Iceberg reads nothing else.
            return f"has the default {default}; defaults of floating-point columns are finite"
    if type_id in _NULL_DEFAULTS and has_default:
        return f"is of type {field.field_type}, whose default must be null"
    if type_id is TypeId.UNKNOWN and field.required:
        return "is of type unknown and must be optional"
    return None


def _check_identifier(schema: Schema, field_id: int) -> None:
    """Checks an identifier field (spec: Identifier Field IDs)."""
    field = schema.find_field(field_id)
    if field is None:
        raise InvalidMetadataError(f"identifier field {field_id} is not a column of the schema")
    name = schema.find_name(field_id)
    if not is_scalar(field.field_type) or field.field_type.type_id in _NO_IDENTIFIERS:
        raise InvalidMetadataError(
            f"column {name!r} of type {field.field_type} cannot be an identifier field: floating "
            "point and nested types are not allowed"
        )
    around = [schema.fields_by_id[ancestor] for ancestor in schema.ancestors(field_id)]
    if any(not isinstance(outer.field_type, StructType) for outer in around):
        raise InvalidMetadataError(
            f"column {name!r} cannot be an identifier field: it is inside a list or map"
        )
    if any(outer.optional for outer in (field, *around)):
        raise InvalidMetadataError(
            f"column {name!r} cannot be an identifier field: it, or a struct around it, is optional"
        )


def check_source_columns(
    source_ids: tuple[int, ...], transform: Transform, schema: Schema, what: str
) -> None:
    """Raises InvalidMetadataError if a source column is missing or not usable, or a number wrong.

    `what` names the field in errors.
    """
    for source_id in source_ids:
        column = schema.find_field(source_id)
        if column is None:
            raise InvalidMetadataError(
                f"{what} refers to column {source_id}, which the current schema does not have"
            )
        name = schema.find_name(source_id)
        around = schema.ancestors(source_id)
        if any(not isinstance(schema.fields_by_id[i].field_type, StructType) for i in around):
            raise InvalidMetadataError(
                f"{what} refers to column {name!r}, which is inside a list or map"
            )
        if isinstance(transform, UnknownTransform):
            continue
        if not 1 <= width_of(transform) <= MAX_WIDTH:
            raise InvalidMetadataError(
                f"{what}: transform {transform} needs a number from 1 to {MAX_WIDTH}"
            )
        if not is_scalar(column.field_type) or not can_transform(transform, column.field_type):
            raise InvalidMetadataError(
                f"{what}: transform {transform} does not accept column {name!r} of type "
                f"{column.field_type}"
            )
