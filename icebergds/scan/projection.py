"""Resolves the columns of a scan by name: data columns and metadata columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from icebergds.errors import InvalidFilterError, InvalidMetadataError, InvalidOptionError
from icebergds.expr.names import quote_name, split_name
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.reserved import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    DELETED,
    FILE_PATH,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION,
    POS,
    ROW_ID,
    SPARK_CHANGE_TYPE,
    SPEC_ID,
)
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import VoidTransform
from icebergds.spec.types import NestedField, StructType
from icebergds.suggestions import did_you_mean

_LISTED_NAME = re.compile(r"(?:[^`,]|`(?:[^`]|``)*`)+", re.DOTALL)
_LINEAGE = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)


@dataclass(frozen=True, slots=True)
class FeedColumns:
    """The metadata columns that only a change feed has.

    Attributes:
        default: those that follow the table's columns.
        further: those that can be named, too.
    """

    default: tuple[NestedField, ...]
    further: tuple[NestedField, ...]


OWN_FEED = FeedColumns(
    (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID), (COMMIT_VERSION, COMMIT_TIMESTAMP)
)
"""With the names and values of Java Iceberg."""

SPARK_FEED = FeedColumns(
    (SPARK_CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP), (CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)
)
"""With the names and values of Spark's change data."""


def metadata_columns(
    metadata: TableMetadata, *, feed: FeedColumns | None = None
) -> tuple[NestedField, ...]:
    """The metadata columns of a table (spec: Reserved Field IDs), with row lineage from version 3.

    `_partition` is left out if `unified_partition_type` finds no type for it.

    Args:
        feed: for a change feed: its columns replace `_deleted`.
    """
    columns = [FILE_PATH, POS, SPEC_ID]
    with suppress(InvalidMetadataError):
        columns.append(replace(PARTITION, field_type=unified_partition_type(metadata)))
    columns.extend((DELETED,) if feed is None else (*feed.default, *feed.further))
    return (*columns, *(_LINEAGE if metadata.format_version >= 3 else ()))


def unified_partition_type(metadata: TableMetadata, *, active_only: bool = False) -> StructType:
    """The type of `_partition`: all partition fields of all specs, under their newest names.

    Args:
        active_only: leave out fields whose source columns the table no longer has.

    Raises:
        InvalidMetadataError: fields of different types share an id.
    """
    fields: dict[int, NestedField] = {}
    only_void: set[int] = set()
    for spec in sorted(metadata.partition_specs, key=lambda spec: spec.spec_id):
        for part, field in zip(spec.fields, metadata.partition_type(spec).fields, strict=True):
            if active_only and metadata.schema().find_field(part.source_id) is None:
                continue
            known = fields.get(field.field_id)
            is_void = isinstance(part.transform, VoidTransform)
            if known is None:
                only_void |= {field.field_id} if is_void else set()
            elif is_void:
                # Version 1 drops a field by making it void; earlier values keep their type.
                field = replace(known, name=field.name)
            elif field.field_id in only_void:
                only_void.remove(field.field_id)
            elif known.field_type != field.field_type:
                raise _reused_id(metadata, known, field)
            fields[field.field_id] = field
    return StructType(_with_unique_names(fields.values()))


def parse_column_list(text: str) -> list[tuple[str, ...]]:
    """Parses names such as `a, b.c, `d.e`.f`: dots separate parts, backticks quote a part.

    Raises:
        InvalidOptionError: a name is malformed, or there is none.
    """
    if not text.strip():
        raise InvalidOptionError("columns: no column is named; name some, or leave columns out")
    items = _LISTED_NAME.findall(text)
    if ",".join(items) != text:
        raise InvalidOptionError(
            f"columns {text!r}: expected names separated by commas, in backticks if they contain a "
            "comma, a dot or a backtick"
        )
    try:
        return [split_name(item.strip()) for item in items]
    except InvalidFilterError as error:
        raise InvalidOptionError(f"columns {text!r}: {error}") from None


def project_columns(
    metadata: TableMetadata,
    schema: Schema,
    names: Sequence[tuple[str, ...]],
    *,
    feed: FeedColumns | None = None,
) -> Schema:
    """Selects columns by name, in the order of first mention.

    Args:
        schema: the schema that is read.
        names: the parts of each name; a single `*` selects all data columns. A name with several
            parts selects a nested field (lists and maps: `element`, `key`, `value`). An exact
            match wins; otherwise case is ignored.
        feed: as for `metadata_columns`.

    Raises:
        InvalidOptionError: a column does not exist, or its name is ambiguous.
        InvalidMetadataError: `_partition` is selected but has no type (`unified_partition_type`).
    """
    extra = metadata_columns(metadata, feed=feed)
    available = Schema((*schema.fields, *_not_shadowing(schema, extra)), schema.schema_id)
    return _selected(available, schema, names, lambda name: _refuse_missing(metadata, name))


def select_columns(schema: Schema, names: Sequence[tuple[str, ...]]) -> Schema:
    """Selects columns of a schema by name, as `project_columns` does, without metadata columns.

    Raises:
        InvalidOptionError: a column does not exist, or its name is ambiguous.
    """
    return _selected(schema, schema, names, lambda _: None)


def _selected(
    available: Schema,
    starred: Schema,
    names: Sequence[tuple[str, ...]],
    refuse_missing: Callable[[tuple[str, ...]], None],
) -> Schema:
    """Selects columns by name.

    Args:
        starred: the columns of `*`.
        refuse_missing: raises if it knows why a column does not exist; gets the name in lower case.
    """
    wanted: dict[int, set[int]] = {}
    for name in names:
        if name == ("*",):
            for field in starred.fields:
                wanted.setdefault(field.field_id, set()).add(field.field_id)
            continue
        field_id = _resolve(available, name, refuse_missing)
        top = (field_id, *available.ancestors(field_id))[-1]
        wanted.setdefault(top, set()).add(field_id)
    tops = {field.field_id: Schema((field,)) for field in available.fields}
    return Schema(
        tuple(field for top, ids in wanted.items() for field in tops[top].select(ids).fields),
        available.schema_id,
    )


def _refuse_missing(metadata: TableMetadata, name: tuple[str, ...]) -> None:
    if name[0] == PARTITION.name:
        # Raises the reason why the table has no _partition column.
        unified_partition_type(metadata)
    if any(name == (column.name,) for column in (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)):
        raise InvalidOptionError(
            f"no column {name[0]!r}: it requires format version 3, and table {metadata.location} "
            f"has version {metadata.format_version}"
        )


def _resolve(
    schema: Schema,
    name: tuple[str, ...],
    refuse_missing: Callable[[tuple[str, ...]], None],
) -> int:
    exact: list[int] = []
    folded: list[int] = []
    lowered = tuple(part.lower() for part in name)
    for field_id, path in schema.paths_by_id.items():
        if path == name:
            exact.append(field_id)
        elif tuple(part.lower() for part in path) == lowered:
            folded.append(field_id)
    found = exact or folded
    text = ".".join(name)
    if not found:
        refuse_missing(lowered)
        names = {".".join(path): quote_name(path) for path in schema.paths_by_id.values()}
        near = did_you_mean(text, names, most=3, shown=names.__getitem__)
        hint = f"; {near}" if near else "."
        columns = ", ".join(quote_name((field.name,)) for field in schema.fields)
        raise InvalidOptionError(f"no column {text!r}{hint} The columns are: {columns}")
    if len(found) > 1:
        options = ", ".join(str(schema.find_name(field_id)) for field_id in found)
        raise InvalidOptionError(f"column {text!r} is ambiguous: {options}; use the exact case")
    return found[0]


def _not_shadowing(schema: Schema, columns: Iterable[NestedField]) -> tuple[NestedField, ...]:
    """Metadata columns whose names no data column has."""
    taken = {field.name for field in schema.fields}
    return tuple(field for field in columns if field.name not in taken)


def _with_unique_names(fields: Iterable[NestedField]) -> tuple[NestedField, ...]:
    seen: set[str] = set()
    out = []
    for field in sorted(fields, key=lambda field: field.field_id):
        name = field.name if field.name not in seen else f"{field.name}_{field.field_id}"
        seen.add(name)
        out.append(replace(field, name=name))
    return tuple(out)


def _reused_id(
    metadata: TableMetadata, known: NestedField, field: NestedField
) -> InvalidMetadataError:
    # Version 1 did not keep partition field ids unique: two fields may share one.
    return InvalidMetadataError(
        f"table {metadata.location}: partition field id {field.field_id} is {known.name} "
        f"({known.field_type}) in one spec and {field.name} ({field.field_type}) in another; "
        "the column _partition cannot hold both"
    )
