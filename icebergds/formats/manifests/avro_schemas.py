"""Builds the Avro schemas of new manifests and manifest lists (spec: Manifests, Avro)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.avro.schema import ScalarTypes, avro_name
from icebergds.spec.types import VARIANT, FixedType, NestedField, StructType, is_scalar


def manifest_list_schema(format_version: int) -> dict[str, Any]:
    """The Avro schema of a manifest list of format version 1, 2 or 3."""
    required = format_version >= 2
    fields = [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
    ]
    if format_version >= 2:
        fields += [
            _field(517, "content", "int"),
            _field(515, "sequence_number", "long"),
            _field(516, "min_sequence_number", "long"),
        ]
    fields += [
        _field(503, "added_snapshot_id", "long"),
        _field(504, "added_files_count", "int", required),
        _field(505, "existing_files_count", "int", required),
        _field(506, "deleted_files_count", "int", required),
        _field(512, "added_rows_count", "long", required),
        _field(513, "existing_rows_count", "long", required),
        _field(514, "deleted_rows_count", "long", required),
        _field(507, "partitions", _list(508, _field_summary()), False),
        _field(519, "key_metadata", "bytes", False),
    ]
    if format_version >= 3:
        fields.append(_field(520, "first_row_id", "long", False))
    return _record("manifest_file", fields)


def manifest_schema(partition: StructType, format_version: int) -> dict[str, Any]:
    """The Avro schema of manifests whose partition values have the type `partition`."""
    fields = [_field(0, "status", "int"), _field(1, "snapshot_id", "long", format_version == 1)]
    if format_version >= 2:
        fields += [
            _field(3, "sequence_number", "long", False),
            _field(4, "file_sequence_number", "long", False),
        ]
    fields.append(_field(2, "data_file", _data_file(partition, format_version)))
    return _record("manifest_entry", fields)


def _data_file(partition: StructType, format_version: int) -> dict[str, Any]:
    fields = [_field(134, "content", "int")] if format_version >= 2 else []
    fields += [
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", _record("r102", list(_partition_fields(partition)))),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
    ]
    if format_version == 1:
        fields.append(_field(105, "block_size_in_bytes", "long"))
    fields += [
        _field(108, "column_sizes", _map(117, 118, "long"), False),
        _field(109, "value_counts", _map(119, 120, "long"), False),
        _field(110, "null_value_counts", _map(121, 122, "long"), False),
        _field(137, "nan_value_counts", _map(138, 139, "long"), False),
        _field(125, "lower_bounds", _map(126, 127, "bytes"), False),
        _field(128, "upper_bounds", _map(129, 130, "bytes"), False),
        _field(131, "key_metadata", "bytes", False),
        _field(132, "split_offsets", _list(133, "long"), False),
    ]
    if format_version >= 2:
        fields.append(_field(135, "equality_ids", _list(136, "int"), False))
    fields.append(_field(140, "sort_order_id", "int", False))
    if format_version >= 3:
        fields.append(_field(142, "first_row_id", "long", False))
    if format_version >= 2:
        fields.append(_field(143, "referenced_data_file", "string", False))
    if format_version >= 3:
        fields += [
            _field(144, "content_offset", "long", False),
            _field(145, "content_size_in_bytes", "long", False),
        ]
    return _record("r2", fields)


def _field_summary() -> dict[str, Any]:
    return _record(
        "r508",
        [
            _field(509, "contains_null", "boolean"),
            _field(518, "contains_nan", "boolean", False),
            _field(510, "lower_bound", "bytes", False),
            _field(511, "upper_bound", "bytes", False),
        ],
    )


def _partition_fields(partition: StructType) -> Iterator[dict[str, Any]]:
    scalars = ScalarTypes()
    for field in partition.fields:
        kind = _partition_type(field, scalars)
        name = avro_name(field.name)
        avro_field = _field(field.field_id, name, kind, kind == "null")
        yield avro_field if name == field.name else {**avro_field, "iceberg-field-name": field.name}


def _partition_type(field: NestedField, scalars: ScalarTypes) -> Any:
    kind = field.field_type
    if isinstance(kind, FixedType):
        # The specification says fixed, but Java expects a length before a fixed value, and could
        # not read the table at all. Bytes have a length, and all readers accept them.
        return "bytes"
    if not is_scalar(kind) or kind == VARIANT:
        raise UnsupportedFeatureError(
            f"partition field {field.name!r}: manifests cannot store values of type {kind}"
        )
    return scalars.of(kind)


def _field(field_id: int, name: str, kind: Any, required: bool = True) -> dict[str, Any]:
    if required:
        return {"name": name, "type": kind, "field-id": field_id}
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def _list(element_id: int, items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "element-id": element_id}


def _map(key_id: int, value_id: int, values: str) -> dict[str, Any]:
    pair = _record(
        f"k{key_id}_v{value_id}", [_field(key_id, "key", "int"), _field(value_id, "value", values)]
    )
    return {"type": "array", "items": pair, "logicalType": "map"}
