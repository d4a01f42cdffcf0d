"""Reads and writes partition specs as JSON (spec: Appendix C, Partition Specs)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.fields import (
    integers,
    optional,
    required,
    typed,
    unicode_text,
    unknown_members,
)
from icebergds.spec.partition import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from icebergds.spec.transforms import Transform, UnknownTransform, parse_transform


def partition_spec_from_json(obj: Mapping[str, Any]) -> PartitionSpec:
    """Parses a partition spec from its JSON object.

    Raises InvalidMetadataError if it is malformed. Unknown transforms are kept.
    """
    spec_id = required(obj, "spec-id", int, "a partition spec")
    where = f"partition spec {spec_id}"
    fields = partition_fields_from_json(required(obj, "fields", list, where), where)
    return PartitionSpec(spec_id, fields, unknown_members(obj, _SPEC_MEMBERS))


def partition_spec_to_json(spec: PartitionSpec) -> dict[str, Any]:
    """The JSON object of a partition spec."""
    return {
        "spec-id": spec.spec_id,
        "fields": partition_fields_to_json(spec.fields),
        **spec.unknown,
    }


def partition_fields_from_json(obj: Any, where: str) -> tuple[PartitionField, ...]:
    """Parses only the fields of a spec, as version 1 metadata and manifest headers store them.

    `where` names the spec in errors. If the writer left out all field ids, they are assigned.
    Raises InvalidMetadataError if the JSON is malformed.
    """
    members = [typed(member, dict, f"a field of {where}") for member in typed(obj, list, where)]
    with_id = sum("field-id" in member for member in members)
    if with_id not in (0, len(members)):
        raise InvalidMetadataError(f"{where}: only {with_id} of {len(members)} fields have an id")
    return tuple(
        _field_from_json(member, FIRST_PARTITION_FIELD_ID + position, where)
        for position, member in enumerate(members)
    )


def partition_fields_to_json(fields: tuple[PartitionField, ...]) -> list[dict[str, Any]]:
    """The JSON array of a spec's fields."""
    return [_field_to_json(field) for field in fields]


def source_ids_from_json(obj: Mapping[str, Any], where: str) -> tuple[int, ...]:
    """Parses the source columns of a partition or sort field, from `source-ids` or `source-id`.

    Raises InvalidMetadataError if there are none.
    """
    source_ids = integers(obj, "source-ids", where)
    return source_ids or (required(obj, "source-id", int, where),)


def source_ids_to_json(source_ids: tuple[int, ...]) -> dict[str, Any]:
    """The member for source columns: `source-id` for one, `source-ids` for several."""
    if len(source_ids) == 1:
        return {"source-id": source_ids[0]}
    return {"source-ids": list(source_ids)}


def transform_from_json(text: str, source_ids: tuple[int, ...]) -> Transform:
    """Parses the transform of a partition or sort field.

    No supported transform takes several columns: with several, it is always unknown.
    """
    return parse_transform(text) if len(source_ids) == 1 else UnknownTransform(text)


_SPEC_MEMBERS = frozenset({"spec-id", "fields"})
_FIELD_MEMBERS = frozenset({"source-id", "source-ids", "field-id", "name", "transform"})


def _field_from_json(obj: Mapping[str, Any], default_id: int, where: str) -> PartitionField:
    name = unicode_text(required(obj, "name", str, f"a field of {where}"), f"a field of {where}")
    field_where = f"field {name!r} of {where}"
    source_ids = source_ids_from_json(obj, field_where)
    field_id = optional(obj, "field-id", int, field_where)
    return PartitionField(
        source_ids=source_ids,
        field_id=default_id if field_id is None else field_id,
        transform=transform_from_json(required(obj, "transform", str, field_where), source_ids),
        name=name,
        unknown=unknown_members(obj, _FIELD_MEMBERS),
    )


def _field_to_json(field: PartitionField) -> dict[str, Any]:
    return {
        "name": field.name,
        "transform": str(field.transform),
        **source_ids_to_json(field.source_ids),
        "field-id": field.field_id,
        **field.unknown,
    }
