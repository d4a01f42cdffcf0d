"""Reads data and delete files from JSON (REST catalog specification: ContentFile)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.fields import integers, optional, required
from icebergds.spec.json.values import from_json
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.types import BINARY, StructType

_CONTENTS = {content.name.lower().replace("_", "-"): content for content in FileContent}


def content_file_from_json(
    obj: Mapping[str, Any], partition_types: Mapping[int, StructType], where: str
) -> DataFile:
    """A file without the metrics of its columns.

    Args:
        partition_types: of the table's partition specs, by their ids.
        where: names the file's list in errors.

    Raises:
        InvalidMetadataError: the JSON is malformed, or the table has no such spec.
    """
    path = required(obj, "file-path", str, where)
    where = f"{path} of {where}"
    spec_id = required(obj, "spec-id", int, where)
    partition_type = partition_types.get(spec_id)
    if partition_type is None:
        raise InvalidMetadataError(
            f"{where} has partition spec {spec_id}, but the table has only specs "
            f"{sorted(partition_types)}"
        )
    content = required(obj, "content", str, where).lower().replace("_", "-")
    file_format = required(obj, "file-format", str, where).lower()
    if content not in _CONTENTS or file_format not in list(FileFormat):
        raise InvalidMetadataError(
            f"{where} has the content {content!r} and format {file_format!r}, expected one of "
            f"{', '.join(_CONTENTS)} and of {', '.join(FileFormat)}"
        )
    return DataFile(
        content=_CONTENTS[content],
        file_path=path,
        file_format=FileFormat(file_format),
        spec_id=spec_id,
        partition=_partition(obj.get("partition"), partition_type, where),
        record_count=required(obj, "record-count", int, where),
        file_size_in_bytes=required(obj, "file-size-in-bytes", int, where),
        key_metadata=from_json(BINARY, obj.get("key-metadata")),
        split_offsets=integers(obj, "split-offsets", where),
        equality_ids=integers(obj, "equality-ids", where),
        sort_order_id=optional(obj, "sort-order-id", int, where),
        first_row_id=optional(obj, "first-row-id", int, where),
        referenced_data_file=optional(obj, "referenced-data-file", str, where),
        content_offset=optional(obj, "content-offset", int, where),
        content_size_in_bytes=optional(obj, "content-size-in-bytes", int, where),
    )


def _partition(given: Any, partition_type: StructType, where: str) -> tuple[Any, ...]:
    """The values of a partition: an array in the order of the spec, or an object by field ids."""
    fields = partition_type.fields
    match given:
        case dict():
            values = [given.get(str(field.field_id)) for field in fields]
        case list():
            values = given
        case _:
            values = []
    if len(values) != len(fields):
        raise InvalidMetadataError(
            f"the partition of {where} is {given!r}, expected {len(fields)} values"
        )
    return tuple(
        from_json(field.field_type, value) for field, value in zip(fields, values, strict=True)
    )
