"""Builds the list of updates that creates a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from uuid import uuid4

from icebergds.errors import InvalidMetadataError, InvalidOptionError
from icebergds.spec.evolution.fresh_ids import with_fresh_ids
from icebergds.spec.partition import FIRST_PARTITION_FIELD_ID, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.table_properties import (
    FORMAT_VERSION,
    INTEGER,
    NEW_FORMAT_VERSION,
    PARQUET_COMPRESSION,
    UPSERT_MODE,
    Property,
)
from icebergds.spec.types import walk
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    AssignUuid,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)

UNPARTITIONED = PartitionSpec()
UNSORTED = SortOrder()
NO_PROPERTIES: Mapping[str, str] = {}


def new_table_updates(
    schema: Schema,
    *,
    location: str,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    properties: Mapping[str, str] = NO_PROPERTIES,
    format_version: int | None = None,
    table_uuid: str | None = None,
) -> list[TableUpdate]:
    """The updates from which `apply_updates` creates a new table.

    Columns and partition fields get fresh ids, counted from 1 and from 1000.

    Args:
        location: the table's directory, a URI or absolute path; a trailing slash is removed.
        spec: refers to the column ids of `schema`; its own ids do not matter.
        sort_order: refers to the column ids of `schema`.
        properties: may contain `format-version`, which is not stored as a property.
        format_version: 1 to 3; if None, that of the property, or else 2.
        table_uuid: if None, a random one.

    Raises:
        InvalidMetadataError: the schema uses an id twice, or the spec or the sort order names a
            column that the schema does not have.
        InvalidOptionError: `format_version` and the property disagree.
    """
    version = _format_version(properties, format_version)
    fresh_schema, fresh_ids = _fresh_schema(schema)
    return [
        AssignUuid(table_uuid or str(uuid4())),
        UpgradeFormatVersion(version),
        AddSchema(fresh_schema),
        SetCurrentSchema(LAST_ADDED),
        AddPartitionSpec(_remap_spec(spec, fresh_ids)),
        SetDefaultSpec(LAST_ADDED),
        AddSortOrder(_remap_sort_order(sort_order, fresh_ids)),
        SetDefaultSortOrder(LAST_ADDED),
        SetLocation(location.rstrip("/") or location),
        SetProperties(_initial_properties(properties)),
    ]


def _format_version(properties: Mapping[str, str], requested: int | None) -> int:
    default = NEW_FORMAT_VERSION.default if requested is None else requested
    version = Property(FORMAT_VERSION, INTEGER, default).of(properties)
    if requested not in (None, version):
        raise InvalidOptionError(
            f"format version {requested} contradicts property {FORMAT_VERSION} = {version}; set "
            "only one of them"
        )
    return version


def _fresh_schema(schema: Schema) -> tuple[Schema, dict[int, int]]:
    """The schema with fresh ids, and the fresh id of each old one."""
    fields = with_fresh_ids(schema.fields, count(1))
    fresh_ids: dict[int, int] = {}
    for old, fresh in zip(walk(schema.fields), walk(fields), strict=True):
        if old.field_id in fresh_ids:
            raise InvalidMetadataError(
                f"the schema of the new table uses id {old.field_id} for more than one field, "
                f"one of them {old.name!r}; ids must be unique"
            )
        fresh_ids[old.field_id] = fresh.field_id
    identifiers = _remap_ids(schema.identifier_field_ids, fresh_ids, "its identifier")
    return replace(schema, fields=fields, schema_id=0, identifier_field_ids=identifiers), fresh_ids


def _remap_spec(spec: PartitionSpec, fresh_ids: Mapping[int, int]) -> PartitionSpec:
    fields = tuple(
        replace(
            field,
            source_ids=_remap_ids(field.source_ids, fresh_ids, f"partition field {field.name!r}"),
            field_id=FIRST_PARTITION_FIELD_ID + position,
        )
        for position, field in enumerate(spec.fields)
    )
    return replace(spec, spec_id=0, fields=fields)


def _remap_sort_order(sort_order: SortOrder, fresh_ids: Mapping[int, int]) -> SortOrder:
    fields = tuple(
        replace(field, source_ids=_remap_ids(field.source_ids, fresh_ids, "the sort order"))
        for field in sort_order.fields
    )
    return replace(sort_order, order_id=1 if fields else 0, fields=fields)


def _remap_ids(ids: tuple[int, ...], fresh_ids: Mapping[int, int], what: str) -> tuple[int, ...]:
    missing = [column for column in ids if column not in fresh_ids]
    if missing:
        raise InvalidMetadataError(
            f"{what} refers to column id {missing[0]}, which the schema of the new table does not "
            "have"
        )
    return tuple(fresh_ids[column] for column in ids)


def _initial_properties(properties: Mapping[str, str]) -> dict[str, str]:
    stored = {name: value for name, value in properties.items() if name != FORMAT_VERSION}
    # Tables of others lack the second one, so that changes by key go on as they began.
    ours = {PARQUET_COMPRESSION.name: PARQUET_COMPRESSION.default, UPSERT_MODE.name: "auto"}
    return {**ours, **stored}
