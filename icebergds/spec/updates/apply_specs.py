"""Applies updates of partition specs: adds, sets the default, removes (spec: Partitioning)."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from icebergds.errors import InvalidMetadataError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import (
    FIRST_PARTITION_FIELD_ID,
    NO_FIELD_ID,
    PartitionField,
    PartitionSpec,
)
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform, UnknownTransform, VoidTransform
from icebergds.spec.types import VARIANT
from icebergds.spec.updates.schema_rules import check_source_columns


def add_partition_spec(metadata: TableMetadata, spec: PartitionSpec) -> tuple[TableMetadata, int]:
    """Adds a partition spec; returns the metadata and the spec's id, that of an equal spec if any.

    Fields with id `NO_FIELD_ID` get the id of the same field in another spec, or else a new one.
    Raises InvalidMetadataError if it does not fit the current schema or the format version.
    """
    same = next((known for known in metadata.partition_specs if known.has_same_fields(spec)), None)
    if same is not None:
        return metadata, same.spec_id
    schema = metadata.schema()
    known_fields = [field for known in metadata.partition_specs for field in known.fields]
    _check_fields(spec, schema, {_identity(field) for field in known_fields})
    with_ids = replace(spec, fields=_with_ids(spec.fields, metadata, known_fields))
    if metadata.format_version == 1:
        _check_v1(with_ids, metadata)
    else:
        _check_ids(with_ids, known_fields)
    spec_id = max((known.spec_id for known in metadata.partition_specs), default=-1) + 1
    changed = replace(
        metadata,
        partition_specs=(*metadata.partition_specs, replace(with_ids, spec_id=spec_id)),
        last_partition_id=max(metadata.last_partition_id, with_ids.last_field_id),
    )
    return changed, spec_id


def set_default_spec(metadata: TableMetadata, spec_id: int) -> TableMetadata:
    """Sets the default spec.

    Raises InvalidMetadataError if there is no such spec.
    """
    if spec_id == metadata.default_spec_id:
        return metadata
    if spec_id not in metadata.specs_by_id:
        raise InvalidMetadataError(
            f"partition spec {spec_id} cannot be the default: the table has only specs "
            f"{sorted(metadata.specs_by_id)}"
        )
    return replace(metadata, default_spec_id=spec_id)


def remove_partition_specs(metadata: TableMetadata, spec_ids: tuple[int, ...]) -> TableMetadata:
    """Removes specs; missing ones are ignored.

    Raises InvalidMetadataError if one is the default spec.
    """
    removed = set(spec_ids) & metadata.specs_by_id.keys()
    if not removed:
        return metadata
    if metadata.default_spec_id in removed:
        raise InvalidMetadataError(
            f"partition spec {metadata.default_spec_id} is the default spec and cannot be removed"
        )
    kept = tuple(spec for spec in metadata.partition_specs if spec.spec_id not in removed)
    return replace(metadata, partition_specs=kept)


def check_spec_sources(spec: PartitionSpec, schema: Schema) -> None:
    """Raises InvalidMetadataError if a spec does not fit the schema that is written."""
    for field in spec.fields:
        what = f"partition field {field.name!r}"
        # Partition Evolution: a dropped field remains as void; its column may not exist any more.
        if not isinstance(field.transform, VoidTransform):
            check_source_columns(field.source_ids, field.transform, schema, what)
            continue
        column = schema.find_field(field.source_ids[0])
        if column is not None and column.field_type == VARIANT:
            # Manifests store a value of the column's type.
            raise InvalidMetadataError(
                f"{what}: transform void does not accept column {column.name!r} of type variant"
            )


def check_partition_names(metadata: TableMetadata, before: Schema) -> None:
    """Raises InvalidMetadataError if a column of the new schema takes a partition field's name.

    Java Iceberg binds every spec of the table to the current schema, and does not open a table
    where a partition field has the name of another column than its own. Tables that were so before
    can still be updated.
    """
    schema = metadata.schema()
    for spec in metadata.partition_specs:
        for field in spec.fields:
            column_id = _column_of_that_name(field, schema)
            if column_id is not None and column_id != _column_of_that_name(field, before):
                raise InvalidMetadataError(
                    f"column {field.name!r} would have the name of a partition field, "
                    f"{field.transform} of column {schema.find_name(field.source_id)!r} in spec "
                    f"{spec.spec_id}, and Java Iceberg could not open the table; choose another "
                    "name"
                )


def _column_of_that_name(field: PartitionField, schema: Schema) -> int | None:
    """The column that has the name of a partition field without being its source, if any."""
    column_id = schema.find_id(field.name)
    own = column_id in field.source_ids or schema.find_field(field.source_id) is None
    return None if own else column_id


def _identity(field: PartitionField) -> tuple[tuple[int, ...], str, str]:
    """What makes a field the same one in different specs."""
    return field.source_ids, str(field.transform), field.name


def _check_fields(
    spec: PartitionSpec, schema: Schema, known: set[tuple[tuple[int, ...], str, str]]
) -> None:
    check_spec_sources(spec, schema)
    names: set[str] = set()
    values: set[tuple[tuple[int, ...], str]] = set()
    for field in spec.fields:
        if not field.name:
            raise InvalidMetadataError("a partition field has an empty name")
        if field.name in names:
            raise InvalidMetadataError(f"more than one partition field is named {field.name!r}")
        names.add(field.name)
        value = (field.source_ids, str(field.transform))
        if value in values and not isinstance(field.transform, VoidTransform):
            raise InvalidMetadataError(
                f"partition field {field.name!r} duplicates another one: {field.transform} of "
                f"column {schema.find_name(field.source_id)!r}"
            )
        values.add(value)
        if _identity(field) not in known:
            _check_new_field(field, schema)


def _check_new_field(field: PartitionField, schema: Schema) -> None:
    if isinstance(field.transform, UnknownTransform):
        raise InvalidMetadataError(
            f"partition field {field.name!r}: transform {field.transform} is unknown; nothing "
            "could be written with it"
        )
    column_id = schema.find_id(field.name)
    may_share = isinstance(field.transform, IdentityTransform | VoidTransform)
    if column_id is not None and not (may_share and column_id == field.source_id):
        raise InvalidMetadataError(
            f"partition field {field.name!r} has the name of a column, which only an identity "
            "field of that column may have; give it another name"
        )


def _with_ids(
    fields: tuple[PartitionField, ...],
    metadata: TableMetadata,
    known_fields: list[PartitionField],
) -> tuple[PartitionField, ...]:
    if metadata.format_version == 1:
        # Partition Evolution: version 1 does not store ids; each spec counts them from 1000.
        return tuple(
            replace(field, field_id=FIRST_PARTITION_FIELD_ID + position)
            if field.field_id == NO_FIELD_ID
            else field
            for position, field in enumerate(fields)
        )
    known_ids = {_identity(field): field.field_id for field in known_fields}
    taken = {field.field_id for field in fields}
    new_ids = count(max(metadata.last_partition_id, FIRST_PARTITION_FIELD_ID - 1, *taken) + 1)
    with_ids: list[PartitionField] = []
    for field in fields:
        if field.field_id == NO_FIELD_ID:
            known_id = known_ids.get(_identity(field), NO_FIELD_ID)
            # Specs of a table upgraded from version 1 may use the same id for different fields.
            field_id = next(new_ids) if known_id in taken | {NO_FIELD_ID} else known_id
            taken.add(field_id)
            field = replace(field, field_id=field_id)
        with_ids.append(field)
    return tuple(with_ids)


def _check_v1(spec: PartitionSpec, metadata: TableMetadata) -> None:
    """Partition Evolution: version 1 can only append fields or make them void."""
    for position, field in enumerate(spec.fields):
        if field.field_id != FIRST_PARTITION_FIELD_ID + position:
            raise InvalidMetadataError(
                f"partition field {field.name!r} has id {field.field_id}, expected "
                f"{FIRST_PARTITION_FIELD_ID + position}: format version 1 counts them from "
                f"{FIRST_PARTITION_FIELD_ID}"
            )
    default = metadata.specs_by_id.get(metadata.default_spec_id, PartitionSpec())
    if len(spec.fields) < len(default.fields):
        raise InvalidMetadataError(
            "format version 1 cannot drop partition fields; replace their transforms by void, or "
            "upgrade the table to version 2"
        )
    for field, before in zip(spec.fields, default.fields, strict=False):
        if not _may_share_id(field, before):
            raise InvalidMetadataError(
                f"partition field {field.name!r} is at the position of {before.name!r}: format "
                "version 1 cannot drop or reorder partition fields, only replace their transforms "
                "by void"
            )


def _check_ids(spec: PartitionSpec, known_fields: list[PartitionField]) -> None:
    """Partition Evolution: an id must mean the same partition field in all specs."""
    by_id: dict[int, list[PartitionField]] = {}
    for known in known_fields:
        by_id.setdefault(known.field_id, []).append(known)
    seen: set[int] = set()
    for field in spec.fields:
        if field.field_id in seen or field.field_id < 1:
            raise InvalidMetadataError(
                f"partition field {field.name!r} has id {field.field_id}; ids must be positive and "
                "unique"
            )
        seen.add(field.field_id)
        others = by_id.get(field.field_id)
        if others and not any(_may_share_id(field, other) for other in others):
            raise InvalidMetadataError(
                f"partition field {field.name!r} has id {field.field_id}, which belongs to "
                f"{others[0].name!r} ({others[0].transform} of column {others[0].source_id})"
            )


def _may_share_id(field: PartitionField, other: PartitionField) -> bool:
    if field.source_ids != other.source_ids:
        return False
    transforms = (field.transform, other.transform)
    return str(field.transform) == str(other.transform) or any(
        isinstance(transform, VoidTransform) for transform in transforms
    )
