"""Builds rows of metadata tables from the metadata file and manifest lists, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from icebergds.commit.operations import TableState
from icebergds.encryption.key_metadata import shown_key_metadata
from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.spec.manifest import ManifestContent, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec, source_type
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.transforms import Transform, to_human
from icebergds.spec.types import IcebergType, ListType, MapType, StructType
from icebergds.spec.values.binary import from_bytes

Row = tuple[Any, ...]
_AT_A_TIME = 20_000


def rows_of_metadata(kind: MetadataTable, state: TableState) -> list[Row]:
    """The rows of a metadata table that comes from the table's metadata file alone.

    Returns:
        In-memory values in the order of `metadata_table_schema`.
    """
    return list(_ROWS[kind](state))


def manifest_row(metadata: TableMetadata, manifest: ManifestFile) -> Row:
    """The row of a manifest in `manifests`."""
    counts = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
    )
    none = (0, 0, 0)
    of_data = manifest.content is ManifestContent.DATA
    return (
        manifest.content.value,
        manifest.manifest_path,
        manifest.manifest_length,
        manifest.partition_spec_id,
        manifest.added_snapshot_id,
        *(counts if of_data else none),
        *(none if of_data else counts),
        _summaries(metadata, manifest),
    )


def rows_of_lists(state: TableState, snapshots: Iterable[Snapshot]) -> Iterator[Row]:
    """The rows of snapshots in `all_manifests`; reads their manifest lists."""
    for snapshot in snapshots:
        for manifest in read_snapshot_manifests(state.io, snapshot):
            yield (
                *manifest_row(state.metadata, manifest),
                snapshot.snapshot_id,
                shown_key_metadata(manifest.key_metadata),
            )


def _summaries(metadata: TableMetadata, manifest: ManifestFile) -> list[Row]:
    spec = metadata.specs_by_id.get(manifest.partition_spec_id, PartitionSpec())
    schemas = (metadata.schema(), *metadata.schema_history)
    rows = []
    for part, field, summary in zip(
        spec.fields, metadata.partition_type(spec).fields, manifest.partitions, strict=False
    ):
        source = source_type(part.source_id, schemas)
        texts = (
            _text(part.transform, source, field.field_type, bound)
            for bound in (summary.lower_bound, summary.upper_bound)
        )
        rows.append((summary.contains_null, summary.contains_nan, *texts))
    return rows


def _text(
    transform: Transform, source: IcebergType, stored: IcebergType, bound: bytes | None
) -> str:
    if bound is None:
        return to_human(transform, source, None)
    try:
        return to_human(transform, source, from_bytes(stored, bound))
    except (CorruptFileError, UnsupportedFeatureError):
        return f"0x{bound.hex()}"


def _history(state: TableState) -> Iterator[Row]:
    metadata = state.metadata
    current = {snapshot.snapshot_id for snapshot in metadata.lineage(metadata.current_snapshot())}
    for entry in metadata.snapshot_log:
        snapshot = metadata.snapshots_by_id.get(entry.snapshot_id)
        yield (
            entry.timestamp_ms * 1000,
            entry.snapshot_id,
            None if snapshot is None else snapshot.parent_snapshot_id,
            entry.snapshot_id in current,
        )


def _snapshots(state: TableState) -> Iterator[Row]:
    for snapshot in state.metadata.snapshots:
        summary = [(k, v) for k, v in snapshot.summary.items() if k != "operation"]
        yield (
            snapshot.timestamp_ms * 1000,
            snapshot.snapshot_id,
            snapshot.parent_snapshot_id,
            snapshot.summary.get("operation"),
            snapshot.manifest_list,
            summary if snapshot.summary else None,
        )


def _refs(state: TableState) -> Iterator[Row]:
    for name, ref in state.metadata.refs.items():
        yield (
            name,
            ref.ref_type.value.upper(),
            ref.snapshot_id,
            ref.max_ref_age_ms,
            ref.min_snapshots_to_keep,
            ref.max_snapshot_age_ms,
        )


def _metadata_log(state: TableState) -> Iterator[Row]:
    metadata = state.metadata
    files = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    for timestamp_ms, location in (*files, (metadata.last_updated_ms, state.metadata_location)):
        then = [e.snapshot_id for e in metadata.snapshot_log if e.timestamp_ms <= timestamp_ms]
        snapshot = metadata.snapshots_by_id.get(then[-1]) if then else None
        yield (
            timestamp_ms * 1000,
            location,
            then[-1] if then else None,
            None if snapshot is None else snapshot.schema_id,
            None if snapshot is None else snapshot.sequence_number,
        )


_ROWS: Mapping[MetadataTable, Callable[[TableState], Iterator[Row]]] = {
    MetadataTable.HISTORY: _history,
    MetadataTable.SNAPSHOTS: _snapshots,
    MetadataTable.REFS: _refs,
    MetadataTable.METADATA_LOG_ENTRIES: _metadata_log,
}


def row_batches(rows: Iterable[Row], table: Schema, columns: Schema) -> Iterator[pa.RecordBatch]:
    """Batches of rows.

    Args:
        rows: values of all columns of `table`.
        columns: the columns of the batches; structs may be narrowed.
    """
    places = {field.field_id: (at, field.field_type) for at, field in enumerate(table.fields)}
    schema = schema_to_arrow(columns)
    left = iter(rows)
    while some := list(islice(left, _AT_A_TIME)):
        arrays = []
        for field in columns.fields:
            at, whole = places[field.field_id]
            values = [_narrowed(row[at], whole, field.field_type) for row in some]
            arrays.append(to_array(field.field_type, values))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _narrowed(value: Any, whole: IcebergType, part: IcebergType) -> Any:
    """A value without the fields that the narrower type lacks."""
    if value is None or whole == part:
        return value
    match whole, part:
        case StructType(fields=fields), StructType(fields=kept):
            places = {field.field_id: (at, field.field_type) for at, field in enumerate(fields)}
            return tuple(
                _narrowed(value[at], inner, field.field_type)
                for field in kept
                for at, inner in (places[field.field_id],)
            )
        case ListType(), ListType():
            return [_narrowed(one, whole.element_type, part.element_type) for one in value]
        case MapType(), MapType():
            return [
                (key, _narrowed(item, whole.value_type, part.value_type)) for key, item in value
            ]
        case _:
            return value
