"""Reads the arguments that define a new table: schema, partition spec, sort order, identifier."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, Union, cast, get_args

import pyarrow as pa

from icebergds.errors import (
    InvalidFilterError,
    InvalidMetadataError,
    InvalidOptionError,
    UnsupportedFeatureError,
)
from icebergds.expr.literals import nearest_single, round_literal
from icebergds.expr.names import in_backticks, resolve
from icebergds.formats.data_file.file_schema import schema_from_arrow
from icebergds.operations.options.arguments import names_argument
from icebergds.operations.options.partition_text import parse_partition_by, parse_sort_by
from icebergds.operations.options.schema_text import parse_schema
from icebergds.spec.json.schema import schema_from_json
from icebergds.spec.json.types import parse_scalar, type_from_json
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortField, SortOrder
from icebergds.spec.types import FLOAT, IcebergType, NestedField, TypeId, children, is_scalar

if TYPE_CHECKING:
    from pyspark.sql import types as spark

Columns: TypeAlias = Union[Schema, str, pa.Schema, "spark.StructType"]
"""A schema: ours, as text (`id bigint NOT NULL, name string`), Arrow's or Spark's."""

Partitioning: TypeAlias = PartitionSpec | str | Sequence[str]
"""A partition spec, or its terms as text: `days(ts), bucket(16, id)`, or as a list."""

Sorting: TypeAlias = SortOrder | str | Sequence[str]
"""A sort order, or its terms as text: `ts desc, id`, or as a list."""


def read_definition(
    schema: Columns,
    partition_spec: Partitioning,
    sort_order: Sorting,
    identifier_fields: Sequence[str] | str,
) -> tuple[Schema, PartitionSpec, SortOrder]:
    """Reads the definition of a new table; arguments are those of `Catalog.create_table`.

    Raises:
        InvalidOptionError: an argument is of another type, cannot be parsed, or names a column
            that the schema does not have; or two names differ only by case.
        InvalidDataError: a column has a type that Iceberg lacks.
    """
    columns = schema_argument(schema)
    _check_distinct(columns.fields, "")
    return (
        _identified(columns, identifier_fields),
        _partition_spec(partition_spec, columns),
        sort_order_of(sort_order, columns),
    )


def schema_argument(schema: Any) -> Schema:
    """A schema, given as one, as text, or as Arrow's, Spark's or PyIceberg's.

    Raises:
        InvalidOptionError: it is none of these, or the text cannot be parsed.
        InvalidDataError: a column has a type that Iceberg lacks.
    """
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str):
        return parse_schema(schema)
    if isinstance(schema, pa.Schema):
        return schema_from_arrow(schema)
    origin = _package_of(schema)
    # A DataFrame may have a column of this name, but its class does not.
    if origin == "pyspark" and hasattr(type(schema), "fieldNames"):
        from icebergds.spark.dataframe_schema import iceberg_schema

        return iceberg_schema(schema)
    if origin == "pyiceberg" and hasattr(schema, "model_dump_json"):
        return schema_from_json(json.loads(schema.model_dump_json()))
    hint = ""
    if hasattr(schema, "schema"):
        hint = "; rows are given to append, for a new table give their schema: df.schema"
    raise InvalidOptionError(
        f"the schema is of type {type(schema).__name__}; expected icebergds.Schema, text such as "
        f"'id bigint NOT NULL, name string', pyarrow.Schema or the schema of a DataFrame{hint}"
    )


def type_argument(name: str, given: Any) -> IcebergType:
    """The type of a column, given as ours, as text, or as Arrow's, Spark's or PyIceberg's.

    Args:
        name: of the column, for messages.

    Raises:
        InvalidOptionError: it is none of these, or the text is not one type.
        InvalidDataError: Iceberg lacks the type.
    """
    if isinstance(given, get_args(IcebergType)):
        return cast(IcebergType, given)
    if isinstance(given, str):
        return _parsed_type(name, given)
    if isinstance(given, pa.DataType):
        return schema_from_arrow(pa.schema([(name, given)])).fields[0].field_type
    origin = _package_of(given)
    if origin == "pyspark" and hasattr(type(given), "simpleString"):
        from icebergds.spark.dataframe_schema import iceberg_type

        return iceberg_type(given, name)
    if origin == "pyiceberg" and hasattr(given, "model_dump_json"):
        return type_from_json(json.loads(given.model_dump_json()))
    raise InvalidOptionError(
        f"column {name!r}: its type is given as {given!r} of type {type(given).__name__}; expected "
        "a type of icebergds.types, such as LongType(), text such as 'bigint', or a type of Arrow "
        "or Spark"
    )


def _parsed_type(name: str, text: str) -> IcebergType:
    schema = f"{in_backticks((name,))} {text}"
    try:
        fields = parse_schema(schema).fields
    except InvalidOptionError as error:
        # Types that are not allowed in a text schema, by their names in the specification.
        with suppress(InvalidMetadataError, UnsupportedFeatureError):
            found = parse_scalar(text.strip())
            # A number is one of Spark's, not the name of a coordinate reference system.
            crs = getattr(found, "crs", "").lower()
            if not crs.isdecimal() and crs != "any":
                return found
        shown = str(error).removeprefix(f"schema {schema!r}: ")
        raise InvalidOptionError(f"column {name!r}, type {text!r}: {shown}") from None
    if len(fields) != 1 or fields[0].required or fields[0].doc is not None:
        raise InvalidOptionError(
            f"column {name!r}: its type is given as {text!r}, expected a type alone, such as "
            "'bigint' or 'struct<a: int>'"
        )
    return fields[0].field_type


def _package_of(given: Any) -> str:
    return type(given).__module__.partition(".")[0]


def _check_distinct(fields: Sequence[NestedField], around: str) -> None:
    """Refuses names that differ only by case, at any level."""
    seen: dict[str, str] = {}
    for each in fields:
        other = seen.setdefault(each.name.lower(), each.name)
        if other != each.name:
            raise InvalidOptionError(
                f"column {around}{each.name} would differ from {other!r} by case alone, and Spark "
                "could not tell them apart; choose another name, or add it to the table by "
                "update_schema(allow_incompatible_changes=True)"
            )
        _check_distinct(children(each.field_type), f"{around}{each.name}.")


def _partition_spec(given: Any, schema: Schema) -> PartitionSpec:
    if isinstance(given, PartitionSpec):
        if not _is_layout(given.spec_id, given.fields, PartitionField):
            raise InvalidOptionError(
                "partition_spec: its fields are not given as those of icebergds, as in "
                "PartitionSpec(0, (PartitionField((1,), 1000, DayTransform(), 'ts_day'),)); or "
                "give text such as 'days(ts)'"
            )
        return given
    name = "partition_spec"
    return parse_partition_by(_terms(name, given, "days(ts)"), schema, name)


def sort_order_of(given: Any, schema: Schema) -> SortOrder:
    """A sort order, given as one, as text or as a list of terms.

    Raises:
        InvalidOptionError: it is none of these, or does not fit the schema.
    """
    if isinstance(given, SortOrder):
        if not _is_layout(given.order_id, given.fields, SortField):
            raise InvalidOptionError(
                "sort_order: its fields are not given as those of icebergds, as in SortOrder(1, "
                "(SortField((1,), IdentityTransform(), SortDirection.ASC, "
                "NullOrder.NULLS_FIRST),)); or give text such as 'ts desc'"
            )
        return given
    name = "sort_order"
    return parse_sort_by(_terms(name, given, "ts desc"), schema, name)


def _is_layout(own_id: Any, fields: Any, kind: type[PartitionField] | type[SortField]) -> bool:
    """Whether this is our PartitionSpec or SortOrder, not PyIceberg's."""
    return (
        isinstance(own_id, int)
        and isinstance(fields, tuple | list)
        and all(isinstance(part, kind) and isinstance(part.source_ids, tuple) for part in fields)
    )


def _terms(name: str, given: Any, example: str) -> str:
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    if not isinstance(given, list | tuple) or not all(isinstance(term, str) for term in given):
        kind = "PartitionSpec" if name == "partition_spec" else "SortOrder"
        raise InvalidOptionError(
            f"{name} = {given!r} is of type {type(given).__name__}; expected terms as text, such "
            f"as {example!r}, a list of such terms, or icebergds.{kind}"
        )
    if empty := [term for term in given if not term.strip()]:
        raise InvalidOptionError(
            f"{name} = {given!r} has the empty term {empty[0]!r}; expected terms such as "
            f"{example!r}"
        )
    return ", ".join(given)


def _identified(schema: Schema, identifier_fields: Sequence[str] | str) -> Schema:
    """The schema with the identifier fields that are named."""
    names = names_argument("identifier_fields", identifier_fields) or []
    listed = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    if not listed:
        return schema
    try:
        ids = [resolve(name, schema, case_sensitive=False).field_id for name in listed]
    except InvalidFilterError as error:
        raise InvalidOptionError(f"identifier_fields: {error}") from None
    for name, field_id in zip(listed, ids, strict=True):
        around = [schema.fields_by_id[outer] for outer in schema.ancestors(field_id)]
        if any(field.optional for field in (schema.fields_by_id[field_id], *around)):
            raise InvalidOptionError(
                f"identifier_fields: column {name} is optional, but the columns of an identifier "
                "are required, and structs around them too; declare it NOT NULL"
            )
    return replace(schema, identifier_field_ids=tuple(dict.fromkeys(ids)))


def default_value(column: str, field_type: IcebergType, value: Any) -> Any:
    """Converts a default to a value of the column's type.

    Args:
        column: its name, for messages.
        value: not None; datetimes without a zone are in UTC.

    Raises:
        InvalidOptionError: the type is nested, or has no such value.
    """
    if not is_scalar(field_type):
        raise InvalidOptionError(
            f"column {column!r} of type {field_type} cannot have a default; give the fields inside "
            "it one"
        )
    shown = f"default {value!r} of column {column!r} of type {field_type}"
    if field_type.type_id in (TypeId.BINARY, TypeId.FIXED) and isinstance(value, bytes):
        length = getattr(field_type, "length", len(value))
        if len(value) != length:
            raise InvalidOptionError(f"{shown} has {len(value)} bytes, expected {length}")
        return value
    try:
        rounded = round_literal(field_type, value, "UTC")
    except ValueError as error:
        raise InvalidOptionError(f"{shown}: {error}") from None
    if field_type == FLOAT and not isinstance(value, int) and math.isfinite(float(value)):
        # Few fractions are exact in single precision: take the nearest float.
        nearest = nearest_single(float(value))
        if nearest is not None:
            return nearest
    bounds = (rounded.floor, rounded.ceiling)
    if any(isinstance(bound, float) and not math.isfinite(bound) for bound in bounds):
        raise InvalidOptionError(f"{shown}: expected a finite number, as JSON has no others")
    if rounded.is_exact:
        return rounded.floor
    raise InvalidOptionError(f"{shown} is not a value of the type")
