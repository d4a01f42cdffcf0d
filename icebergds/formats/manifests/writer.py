"""Writes manifests from columns, without an object per entry (spec: Manifests).

The counterpart of `manifests.reader`: entries that were read as columns can be written with another
status, at a fraction of the cost of objects.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError
from icebergds.formats.avro.column_encoder import Columns, encode_records
from icebergds.formats.avro.container_writer import (
    Block,
    blocks_of,
    compressed,
    write_compressed,
)
from icebergds.formats.avro.schema import avro_name
from icebergds.formats.manifests.avro_schemas import manifest_schema
from icebergds.formats.manifests.columns import STATISTICS, EntryColumns
from icebergds.spec.json.partition import partition_fields_to_json
from icebergds.spec.json.schema import schema_to_json
from icebergds.spec.manifest import FileContent, ManifestContent, ManifestEntryStatus
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.types import StructType

INHERITED = frozenset({"sequence_number", "file_sequence_number", "first_row_id"})
"""Fields that added files inherit, so that a manifest can be reused when a commit is retried."""

# Version 1 requires a file system block size, which nobody reads.
_BLOCK_SIZE = 64 * 1024 * 1024


def write_manifest_columns(
    parts: Iterable[EntryColumns],
    spec: PartitionSpec,
    schema: Schema,
    *,
    partition: StructType,
    format_version: int,
    content: ManifestContent = ManifestContent.DATA,
    inherit: Collection[str] = INHERITED,
    codec: str = "deflate",
    level: int | None = None,
) -> bytes:
    """Encodes a manifest of format version 1, 2 or 3 from columns.

    Args:
        parts: the entries in consecutive parts, with the statistics of all columns.
        schema: the table's current schema.
        partition: the type of the partition values of all parts: that of `partition_type` or, for
            entries that were read, their own.
        inherit: fields that are null for added files, which inherit them: those of `INHERITED`, or
            `snapshot_id`. Other entries have all of them.
        codec, level: as in `write.manifest.compression-codec` and `-level`, or Avro's names.

    Raises:
        InvalidDataError: a file cannot be listed in such a manifest.
        InvalidOptionError: the codec or its level is not supported.
        UnsupportedFeatureError: manifests cannot store the type of a partition value.
    """
    form = ManifestForm(spec, schema, partition, format_version, content, codec, level)
    return form.manifest(
        block for part in parts for block in form.blocks(form.encode(part, inherit))
    )


@dataclass(frozen=True, slots=True)
class ManifestForm:
    """What the entries of a manifest share. Builds it in steps, whose results take little memory.

    Attributes are the arguments of `write_manifest_columns`, as are the errors.
    """

    spec: PartitionSpec
    schema: Schema
    partition: StructType
    format_version: int
    content: ManifestContent
    codec: str
    level: int | None

    def encode(
        self, columns: EntryColumns, inherit: Collection[str] = INHERITED
    ) -> pa.LargeBinaryArray:
        """Encodes entries, each to one value."""
        _check(columns, self.partition, self.content, self.format_version)
        return _encoded(columns, self._avro_schema(), inherit)

    def blocks(self, encoded: pa.LargeBinaryArray) -> Iterator[Block]:
        """Compresses encoded entries."""
        return compressed(blocks_of(encoded), self.codec, self.level)

    def manifest(self, blocks: Iterable[Block]) -> bytes:
        """Builds the manifest of compressed entries."""
        metadata = {
            "schema": json.dumps(schema_to_json(self.schema)),
            "schema-id": str(self.schema.schema_id),
            "partition-spec": json.dumps(partition_fields_to_json(self.spec.fields)),
            "partition-spec-id": str(self.spec.spec_id),
            "format-version": str(self.format_version),
        }
        if self.format_version >= 2:
            metadata["content"] = self.content.name.lower()
        return write_compressed(self._avro_schema(), blocks, metadata, self.codec, self.level)

    def _avro_schema(self) -> dict[str, Any]:
        return manifest_schema(self.partition, self.format_version)


def _check(
    columns: EntryColumns, partition: StructType, content: ManifestContent, format_version: int
) -> None:
    if not len(columns):
        return
    if format_version == 1 and content is ManifestContent.DELETES:
        raise InvalidDataError(f"{columns.file_path[0]}: version 1 has no delete files")
    holds_data = columns.content == FileContent.DATA.value
    odd = np.flatnonzero(holds_data != (content is ManifestContent.DATA))
    if len(odd):
        file_content = FileContent(columns.content[odd[0]])
        raise InvalidDataError(
            f"{columns.file_path[odd[0]]}: a file of {file_content.name} cannot be listed in a "
            f"manifest of {content.name.lower()}"
        )
    if columns.partition_type != partition:
        raise InvalidDataError(
            f"{columns.file_path[0]} has partition values of type {columns.partition_type}, but "
            f"its manifest has the type {partition}"
        )
    if set(columns.all_stats) != set(STATISTICS):
        raise InvalidDataError(
            f"{columns.file_path[0]} was read without the statistics of all columns, which would "
            "be lost; read the manifest with stats_ids=None"
        )


def _encoded(
    columns: EntryColumns, avro_schema: dict[str, Any], inherit: Collection[str]
) -> pa.LargeBinaryArray:
    try:
        return encode_records(avro_schema, _records(columns, inherit))
    except (pa.ArrowException, ValueError) as error:
        raise InvalidDataError(
            f"{columns.file_path[0]} or another file of its manifest cannot be listed: {error}"
        ) from error


def _records(columns: EntryColumns, inherit: Collection[str]) -> Columns:
    """Fields of all versions under the names of the Avro schema."""
    added = columns.status == ManifestEntryStatus.ADDED.value

    def inherited(name: str, column: Any) -> pa.Array:
        values = pa.array(column)
        return pc.if_else(pa.array(added), None, values) if name in inherit else values

    return {
        "status": pa.array(columns.status),
        "snapshot_id": inherited("snapshot_id", columns.snapshot_id),
        "sequence_number": inherited("sequence_number", columns.data_sequence_number),
        "file_sequence_number": inherited("file_sequence_number", columns.file_sequence_number),
        "data_file": {
            "content": pa.array(columns.content),
            "file_path": columns.file_path,
            "file_format": pc.utf8_upper(columns.file_format),
            "partition": {
                avro_name(field.name): values
                for field, values in zip(
                    columns.partition_type.fields, columns.partition, strict=True
                )
            },
            "record_count": pa.array(columns.record_count),
            "file_size_in_bytes": pa.array(columns.file_size_in_bytes),
            "block_size_in_bytes": pa.array(np.full(len(columns), _BLOCK_SIZE)),
            **columns.all_stats,
            "key_metadata": columns.key_metadata,
            "split_offsets": columns.split_offsets,
            "equality_ids": columns.equality_ids,
            "sort_order_id": columns.sort_order_id,
            "first_row_id": inherited("first_row_id", columns.first_row_id),
            "referenced_data_file": columns.referenced_data_file,
            "content_offset": columns.content_offset,
            "content_size_in_bytes": columns.content_size_in_bytes,
        },
    }
