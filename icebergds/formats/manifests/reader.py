"""Reads manifests into columns, without an object per entry (spec: Manifests).

Planning touches every entry of every manifest that it cannot skip: filters are evaluated on
columns, and objects are only created for the remaining entries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa

from icebergds.encryption.stored_files import decrypted
from icebergds.errors import CorruptFileError, InvalidMetadataError, UnsupportedFeatureError
from icebergds.formats.avro.container import AvroContainer, parse_container
from icebergds.formats.manifests import layout as ids
from icebergds.formats.manifests.columns import STATISTICS, ColumnStats, EntryColumns
from icebergds.formats.manifests.counts import check_manifest
from icebergds.formats.manifests.decoder import FEW_ENTRIES, decode_entries, decode_together
from icebergds.formats.manifests.header import header_schema, header_schema_json, header_spec
from icebergds.formats.manifests.inheritance import (
    Int64s,
    inherited_first_row_ids,
    inherited_sequence_numbers,
    inherited_snapshot_ids,
    numbers,
)
from icebergds.formats.manifests.layout import ManifestLayout, manifest_layout, without_fields
from icebergds.formats.manifests.partitions import partition_columns
from icebergds.formats.manifests.side_by_side import decoding
from icebergds.formats.manifests.stored_columns import StatsIds, StoredColumns
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.spec.json.recent_documents import RecentDocuments
from icebergds.spec.manifest import FileContent, FileFormat, ManifestEntryStatus, ManifestFile
from icebergds.spec.partition import PartitionSpec, partition_type
from icebergds.spec.schema import Schema
from icebergds.spec.types import UNKNOWN, StructType

__all__ = [
    "ColumnStats",
    "EntryColumns",
    "read_manifest_columns",
    "read_small_manifests",
]

# What was decoded lately. It takes 10 to 20 times as much memory as a manifest.
_RECENT: RecentDocuments[EntryColumns] = RecentDocuments(64 * 2**20, lambda data: 20 * len(data))
_FORMATS = frozenset(file_format.value for file_format in FileFormat)
_STATISTICS_IDS = (
    ids.COLUMN_SIZES,
    ids.VALUE_COUNTS,
    ids.NULL_VALUE_COUNTS,
    ids.NAN_VALUE_COUNTS,
    ids.LOWER_BOUNDS,
    ids.UPPER_BOUNDS,
)
_MAP_TYPES = {
    field_id: pa.map_(pa.int64(), pa.binary() if name.endswith("bounds") else pa.int64())
    for name, field_id in zip(STATISTICS, _STATISTICS_IDS, strict=True)
}


def read_manifest_columns(
    io: FileIO,
    manifest: ManifestFile,
    specs: Mapping[int, PartitionSpec] | None = None,
    schema: Schema | None = None,
    *,
    history: Iterable[Schema] = (),
    stats_ids: frozenset[int] | None = None,
    left_out: frozenset[int] = frozenset(),
    live_only: bool = True,
    few_entries: int = FEW_ENTRIES,
    wrong_counts: WrongCounts = WrongCounts.FAIL,
) -> EntryColumns:
    """Reads the entries of a manifest as columns.

    Args:
        manifest: its entry in the manifest list, from which its own entries inherit.
        specs: the table's partition specs by id. A spec that is not among them is read from the
            manifest's own header.
        schema: the table's schema, which gives partition values their types. Columns it lacks are
            looked up in `history`, then in the manifest's own header.
        history: other schemas of the table.
        stats_ids: columns whose statistics are read; None for all, which also reads
            `DataFile.column_sizes`.
        left_out: ids of fields among `layout.CAN_BE_LEFT_OUT` that are null in the result.
        live_only: leave out deleted files.
        few_entries: manifests with fewer entries are decoded one by one.
        wrong_counts: what to do if the manifest list says other numbers of files or rows.

    Raises:
        MissingFileError: the manifest does not exist.
        CorruptFileError: it is damaged, an entry lacks a required value, or it differs from the
            manifest list.
        InvalidMetadataError: its partition spec is unknown.
        UnsupportedFeatureError: it lists files of an unknown format, or is encrypted although the
            manifest list has no key for it.
    """
    data, size = _read(io, manifest)
    with decoding(len(data)):
        opened = _Opened.of(data, size, io.max_block_bytes, manifest, specs or {}, schema, history)
        columns = _RECENT.get(
            data,
            (manifest, opened.wanted, stats_ids, left_out, few_entries),
            lambda: _decoded(opened, stats_ids, left_out, few_entries),
        )
        return opened.checked(columns, live_only, wrong_counts)


def read_small_manifests(
    io: FileIO,
    manifests: Sequence[ManifestFile],
    specs: Mapping[int, PartitionSpec],
    schema: Schema,
    *,
    history: Iterable[Schema] = (),
    stats_ids: frozenset[int] | None = None,
    live_only: bool = True,
    wrong_counts: WrongCounts = WrongCounts.FAIL,
) -> list[EntryColumns]:
    """Reads several manifests as `read_manifest_columns` does, decoding many of them together.

    This is faster for small ones. All of them are held in memory, so choose few at a time.
    """
    history = tuple(history)
    found: dict[int, EntryColumns] = {}
    alike: dict[str, list[tuple[int, _Opened]]] = {}
    for number, manifest in enumerate(manifests):
        data, size = _read(io, manifest)
        opened = _Opened.of(data, size, io.max_block_bytes, manifest, specs, schema, history)
        if opened.layout.is_flat and opened.container.record_count:
            alike.setdefault(opened.container.schema_json, []).append((number, opened))
    for group in alike.values():
        layout = group[0][1].layout
        with decoding(sum(one.size for _, one in group)):
            try:
                parts = decode_together([one.container for _, one in group], layout, stats_ids)
            except CorruptFileError:
                # Each by itself, so that the error names the right one.
                continue
            for (number, opened), decoded in zip(group, parts, strict=True):
                columns = _entry_columns(
                    decoded, layout, opened.manifest, opened.wanted, stats_ids, opened.what
                )
                found[number] = opened.checked(columns, live_only, wrong_counts)
    return [
        found[number]
        if number in found
        else read_manifest_columns(
            io,
            manifest,
            specs,
            schema,
            history=history,
            stats_ids=stats_ids,
            live_only=live_only,
            wrong_counts=wrong_counts,
        )
        for number, manifest in enumerate(manifests)
    ]


def _read(io: FileIO, manifest: ManifestFile) -> tuple[bytes, int]:
    """The plain bytes of a manifest, and its length as stored."""
    stored = io.read_bytes(manifest.manifest_path)
    what = f"manifest {manifest.manifest_path!r}"
    return decrypted(stored, manifest.key_metadata, what), len(stored)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A manifest with its entries still encoded.

    Attributes:
        wanted: the type of the partition values.
        size: of the manifest as stored, in bytes.
    """

    manifest: ManifestFile
    container: AvroContainer
    layout: ManifestLayout
    wanted: StructType
    size: int

    @classmethod
    def of(
        cls,
        data: bytes,
        size: int,
        max_block_bytes: int | None,
        manifest: ManifestFile,
        specs: Mapping[int, PartitionSpec],
        schema: Schema | None,
        history: Iterable[Schema],
    ) -> _Opened:
        what = f"manifest {manifest.manifest_path!r}"
        container = parse_container(data, what, max_block_bytes)
        layout = _layout(container.schema_json, what)
        spec = _spec_of(container, manifest, specs, layout)
        wanted = _partition_type(container, spec, schema, history)
        return cls(manifest, container, layout, wanted, size)

    @property
    def what(self) -> str:
        return self.container.what

    def checked(
        self, columns: EntryColumns, live_only: bool, wrong_counts: WrongCounts
    ) -> EntryColumns:
        """The columns without files that are not wanted, if the manifest list counts them so."""
        check_manifest(self.manifest, self.size, columns.status, columns.record_count, wrong_counts)
        columns = replace(columns, written_with=header_schema_json(self.container))
        if not live_only:
            return columns
        return columns.filter(columns.status != ManifestEntryStatus.DELETED.value)


def _decoded(
    opened: _Opened, stats_ids: StatsIds, left_out: frozenset[int], few_entries: int
) -> EntryColumns:
    layout = without_fields(opened.layout, left_out)
    try:
        decoded = decode_entries(opened.container, layout, stats_ids, few_entries)
    except CorruptFileError:
        schema_json = _with_fixed_as_bytes(opened.container.schema_json)
        if schema_json is None:
            raise
        layout = without_fields(_layout(schema_json, opened.what), left_out)
        decoded = decode_entries(opened.container, layout, stats_ids, few_entries)
    return _entry_columns(decoded, layout, opened.manifest, opened.wanted, stats_ids, opened.what)


def _layout(schema_json: str, what: str) -> ManifestLayout:
    try:
        return manifest_layout(schema_json)
    except ValueError as error:
        raise CorruptFileError(f"{what}: {error}") from error


def _spec_of(
    container: AvroContainer,
    manifest: ManifestFile,
    specs: Mapping[int, PartitionSpec],
    layout: ManifestLayout,
) -> PartitionSpec:
    spec = specs.get(manifest.partition_spec_id) or header_spec(container)
    if spec is not None:
        return spec
    if layout.partition_fields:
        raise InvalidMetadataError(
            f"{container.what} was written with partition spec {manifest.partition_spec_id}, which "
            "is neither in the table's metadata nor in the manifest's header"
        )
    return PartitionSpec(manifest.partition_spec_id)


def _partition_type(
    container: AvroContainer,
    spec: PartitionSpec,
    schema: Schema | None,
    history: Iterable[Schema],
) -> StructType:
    schemas = [*([] if schema is None else [schema]), *history]
    wanted = partition_type(spec, Schema(()), schemas)
    if all(field.field_type != UNKNOWN for field in wanted.fields):
        return wanted
    # Parsing the header's schema may cost more than the rest of a small manifest.
    own = header_schema(container)
    return wanted if own is None else partition_type(spec, Schema(()), [*schemas, own])


def _entry_columns(
    decoded: StoredColumns[pa.Array],
    layout: ManifestLayout,
    manifest: ManifestFile,
    wanted: StructType,
    stats_ids: StatsIds,
    what: str,
) -> EntryColumns:
    fields = decoded.fields
    length = len(fields[ids.STATUS])

    def stored(field_id: int, kind: pa.DataType | None = None) -> pa.Array:
        found = fields.get(field_id)
        return pa.nulls(length, kind or pa.int64()) if found is None else found

    def required(field_id: int) -> pa.Array:
        if fields[field_id].null_count:
            raise CorruptFileError(f"{what}: an entry has no {ids.name_of(field_id)}")
        return fields[field_id]

    status = _checked(numbers(required(ids.STATUS), 0), ManifestEntryStatus, "status", what)
    content = _checked(numbers(stored(ids.CONTENT), 0), FileContent, "content", what)
    record_count = numbers(required(ids.RECORD_COUNT), 0)
    data_numbers, file_numbers = inherited_sequence_numbers(
        fields.get(ids.SEQUENCE_NUMBER),
        fields.get(ids.FILE_SEQUENCE_NUMBER),
        status,
        manifest,
        what,
    )
    partition_fields, partition = partition_columns(
        decoded.partition, layout.partition_fields, wanted, length, what
    )
    integers = pa.list_(pa.int64())
    return EntryColumns(
        spec_id=manifest.partition_spec_id,
        partition_type=partition_fields,
        status=status,
        snapshot_id=inherited_snapshot_ids(stored(ids.SNAPSHOT_ID), manifest, what),
        data_sequence_number=data_numbers,
        file_sequence_number=file_numbers,
        content=content,
        file_path=_text(
            required(ids.FILE_PATH) if ids.FILE_PATH in fields else stored(ids.FILE_PATH),
            "file_path",
            what,
        ),
        file_format=_formats(required(ids.FILE_FORMAT), what),
        partition=partition,
        record_count=record_count,
        file_size_in_bytes=numbers(required(ids.FILE_SIZE_IN_BYTES), 0),
        key_metadata=stored(ids.KEY_METADATA, pa.binary()),
        split_offsets=stored(ids.SPLIT_OFFSETS, integers),
        equality_ids=stored(ids.EQUALITY_IDS, integers),
        sort_order_id=stored(ids.SORT_ORDER_ID),
        first_row_id=inherited_first_row_ids(
            stored(ids.FIRST_ROW_ID), status, record_count, manifest
        ),
        referenced_data_file=_text(
            stored(ids.REFERENCED_DATA_FILE, pa.binary()), "referenced_data_file", what
        ),
        content_offset=stored(ids.CONTENT_OFFSET),
        content_size_in_bytes=stored(ids.CONTENT_SIZE_IN_BYTES),
        stats={
            column_id: ColumnStats(*_stats_of(decoded, column_id, length))
            for column_id in stats_ids or ()
        },
        all_stats={
            name: stored(field_id, _MAP_TYPES[field_id])
            for name, field_id in zip(STATISTICS, _STATISTICS_IDS, strict=True)
            if stats_ids is None
        },
    )


def _stats_of(decoded: StoredColumns[pa.Array], column_id: int, length: int) -> Iterator[pa.Array]:
    for field_id in _STATISTICS_IDS[1:]:
        found = decoded.stats.get((field_id, column_id))
        yield pa.nulls(length, _MAP_TYPES[field_id].item_type) if found is None else found


def _checked(values: Int64s, kind: type[IntEnum], name: str, what: str) -> Int64s:
    odd = np.flatnonzero((values < 0) | (values >= len(kind)))
    if len(odd):
        raise CorruptFileError(
            f"{what}: an entry has {name} {values[odd[0]]}, expected 0 to {len(kind) - 1}"
        )
    return values


def _text(stored: pa.Array, name: str, what: str) -> pa.StringArray:
    try:
        return stored.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"{what}: a {name} is not UTF-8: {error}") from error


def _formats(stored: pa.Array, what: str) -> pa.StringArray:
    """Lower-case names of file formats; each distinct one is checked once."""
    encoded = _text(stored, "file_format", what).dictionary_encode()
    names = [name.lower() for name in encoded.dictionary.to_pylist()]
    for name in names:
        if name not in _FORMATS:
            raise UnsupportedFeatureError(
                f"{what} lists files of format {name!r}; supported are {', '.join(FileFormat)}"
            )
    return pa.array(names, pa.string()).take(encoded.indices)


def _with_fixed_as_bytes(schema_json: str) -> str | None:
    """A manifest's schema with bytes instead of fixed; None if it has no fixed values.

    Java declares partition values as Avro's fixed, but writes and expects a length before them, as
    Avro's bytes have. Decimals and UUIDs are stored as declared.
    """
    names: set[str] = set()
    changed = _changed(json.loads(schema_json), names)
    return json.dumps(changed) if names else None


def _changed(kind: Any, names: set[str]) -> Any:
    """The type with bytes instead of fixed; `names` are the fixed types it may refer to."""
    match kind:
        case {"type": "fixed", "name": name} if "logicalType" not in kind:
            names.add(name)
            return "bytes"
        case str():
            return "bytes" if kind in names else kind
        case list():
            return [_changed(branch, names) for branch in kind]
        case {"fields": fields}:
            changed = [{**field, "type": _changed(field["type"], names)} for field in fields]
            return {**kind, "fields": changed}
        case {"items": items}:
            return {**kind, "items": _changed(items, names)}
    return kind
