"""Determines the partition of a file by its path, or else by the statistics of its columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.expr.literals import nearest_single, round_literal
from icebergds.formats.data_file.bounds import Range
from icebergds.formats.data_file.stored_file import StoredFile
from icebergds.operations.imports.source_files import NULL_FOLDER
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.partition import PartitionField
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    IdentityTransform,
    VoidTransform,
    apply,
    preserves_order,
    to_human,
)
from icebergds.spec.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    STRING,
    NestedField,
    TypeId,
    is_scalar,
)
from icebergds.suggestions import did_you_mean

_TIMES = frozenset({TypeId.TIMESTAMP, TypeId.TIMESTAMPTZ})


def path_partition(
    texts: Mapping[str, str | None],
    metadata: TableMetadata,
    mapping: NameMapping,
    time_zone: str,
    location: str,
) -> dict[int, Any]:
    """The values of identity partition columns that a path names, by field id.

    Args:
        texts: by the names in the path, which may be those of partition fields or of columns.
        time_zone: the zone of instants without an offset.

    Raises:
        InvalidDataError: a text is not a value of its column.
    """
    schema = metadata.schema()
    values = {}
    for part in metadata.spec().fields:
        column = schema.find_field(part.source_id)
        if isinstance(part.transform, IdentityTransform) and column is not None:
            named = [name for name in texts if _names(name, part, column, schema, mapping)]
            for name in named[:1]:
                values[column.field_id] = _typed(column, texts[name], time_zone, location)
    return values


def check_path_columns(
    file: StoredFile,
    texts: Mapping[str, str | None],
    partition: Mapping[int, Any],
    schema: Schema,
    location: str,
) -> None:
    """Refuses a file if the values of a column are in its path alone, and would not be read.

    Raises:
        InvalidDataError: there is such a column.
    """
    stored = {column.field_id for column in file.columns}
    for name in texts:
        field = _find(schema, name)
        if field is not None and field.field_id not in {*stored, *partition}:
            raise InvalidDataError(
                f"{location} cannot be added: the values of column {field.name!r} are in its path "
                "alone, and the table is not partitioned by the column itself; partition the table "
                f"by {field.name}, or read the file and write its rows to the table"
            )


def partition_of(
    file: StoredFile, from_path: Mapping[int, Any], metadata: TableMetadata, location: str
) -> tuple[Any, ...]:
    """The values of the table's partition fields that hold for all rows of a file.

    Args:
        from_path: the result of `path_partition`.

    Raises:
        InvalidDataError: the file contradicts its path, or neither its path nor its statistics
            show that all rows have the same value.
    """
    schema = metadata.schema()
    values: list[Any] = []
    for part in metadata.spec().fields:
        if isinstance(part.transform, VoidTransform):
            values.append(None)
            continue
        column = schema.fields_by_id[part.source_id]
        if isinstance(part.transform, IdentityTransform) and part.source_id in from_path:
            _check_against(file, column, from_path[part.source_id], location)
            values.append(from_path[part.source_id])
        else:
            values.append(_derived(file, part, column, location))
    return tuple(values)


def contradiction(column: NestedField, value: Any, location: str) -> InvalidDataError:
    """The error for a file whose values differ from those that its path names."""
    return InvalidDataError(
        f"{location} cannot be added: its path names "
        f"{to_human(IdentityTransform(), column.field_type, value)} for column "
        f"{column.name!r}, but the column in the file has other values; move the file, or "
        "read it and write its rows to the table"
    )


def parse_partition_filter(
    given: Mapping[str, Any], metadata: TableMetadata, time_zone: str, table: str
) -> dict[int, Any]:
    """The values that a filter asks for, by the position of the partition field.

    Raises:
        InvalidOptionError: a name is not that of an identity partition field, or a value is not one
            of its column.
    """
    schema = metadata.schema()
    known = {}
    for at, part in enumerate(metadata.spec().fields):
        column = schema.find_field(part.source_id)
        if isinstance(part.transform, IdentityTransform) and column is not None:
            known[part.name] = at, column
    wanted = {}
    for name, value in given.items():
        if name not in known:
            near = did_you_mean(name, known, shown=repr)
            raise InvalidOptionError(
                f"partition_filter: table {table} is not partitioned by {name!r} itself, but by "
                f"{', '.join(known) or 'no column'}" + (f"; {near}" if near else "")
            )
        at, column = known[name]
        try:
            wanted[at] = None if value == NULL_FOLDER else _value(column, value, time_zone)
        except ValueError as error:
            raise InvalidOptionError(f"partition_filter[{name!r}]: {error}") from None
    return wanted


def _names(
    name: str, part: PartitionField, column: NestedField, schema: Schema, mapping: NameMapping
) -> bool:
    if name in (part.name, schema.find_name(column.field_id)):
        return True
    mapped = mapping.fields_by_name.get(name)
    if mapped is not None:
        return mapped.field_id == column.field_id
    return _find(schema, name) == column


def _find(schema: Schema, name: str) -> NestedField | None:
    """The top-level column with a name; Hive keeps names in lower case."""
    exact = [field for field in schema.fields if field.name == name]
    alike = [field for field in schema.fields if field.name.lower() == name.lower()]
    return exact[0] if exact else alike[0] if len(alike) == 1 else None


def _typed(column: NestedField, text: str | None, time_zone: str, location: str) -> Any:
    try:
        return _value(column, text, time_zone)
    except ValueError as error:
        raise InvalidDataError(
            f"{location} cannot be added: its path names {text!r} for the partition column "
            f"{column.name!r} of type {column.field_type}: {error}"
        ) from None


def _value(column: NestedField, given: Any, time_zone: str) -> Any:
    """A value of the column's type; raises ValueError."""
    if given is None:
        return None
    if not is_scalar(column.field_type):
        raise ValueError(f"the column is a {column.field_type}")
    if column.field_type == BINARY and isinstance(given, str):
        return given.encode()
    rounded = round_literal(column.field_type, given, time_zone)
    if column.field_type == FLOAT and not isinstance(given, int) and math.isfinite(float(given)):
        # Few fractions are exact in single precision: the nearest one is meant.
        nearest = nearest_single(float(given))
        if nearest is not None:
            return nearest
    if not rounded.is_exact and not rounded.is_nan:
        raise ValueError(f"{given!r} is not a value of type {column.field_type}")
    return rounded.floor


def _check_against(file: StoredFile, column: NestedField, value: Any, location: str) -> None:
    nulls, count, values = _statistics(file, column)
    wrong = (
        (nulls is not None and nulls != count and value is None)
        or (bool(nulls) and value is not None)
        or (values is not None and value is not None and not _all_are(values, value, column))
    )
    if wrong:
        raise contradiction(column, value, location)


def _all_are(values: Range, value: Any, column: NestedField) -> bool:
    """Whether all values can be this one, given a range that may be wider than they are."""
    if value != value or not values.least <= value <= values.greatest:
        return False
    if values.least == values.greatest or getattr(column.field_type, "type_id", None) in _TIMES:
        return True
    # Writers shorten long bounds.
    shortened = column.field_type in (STRING, BINARY) and len(value) > len(values.least)
    return bool(shortened and value.startswith(values.least))


def _derived(file: StoredFile, part: PartitionField, column: NestedField, location: str) -> Any:
    nulls, count, values = _statistics(file, column)
    if not file.num_rows or (nulls is not None and nulls == count):
        return None
    if nulls is None or values is None:
        raise _undetermined(part, column, location, "the file's footer does not tell its values")
    if nulls:
        raise _undetermined(part, column, location, "the file has nulls and other values in it")
    if column.field_type in (FLOAT, DOUBLE):
        raise _undetermined(part, column, location, "footers do not tell whether there are NaNs")
    least, greatest = (
        apply(part.transform, column.field_type, value) for value in (values.least, values.greatest)
    )
    is_one = preserves_order(part.transform) or values.least == values.greatest
    if least != greatest or not is_one:
        shown = f"{least!r} to {greatest!r}" if preserves_order(part.transform) else "several"
        raise _undetermined(part, column, location, f"its rows are of several: {shown}")
    return least


def _statistics(
    file: StoredFile, column: NestedField
) -> tuple[int | None, int | None, Range | None]:
    """The number of nulls, the number of values, and the range of the non-nulls, if known."""
    field_id, found = column.field_id, file.statistics
    return (
        found.null_counts.get(field_id),
        found.value_counts.get(field_id),
        found.ranges.get(field_id),
    )


def _undetermined(
    part: PartitionField, column: NestedField, location: str, why: str
) -> InvalidDataError:
    by_path = isinstance(part.transform, IdentityTransform)
    hint = f"put it into a folder {column.name}=<value>, or " if by_path else ""
    return InvalidDataError(
        f"{location} cannot be added: the value of partition field {part.name!r} "
        f"({part.transform} of column {column.name!r}) is not one for the whole file: {why}; "
        f"{hint}read the file and write its rows to the table"
    )
