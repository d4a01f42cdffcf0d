"""Reads and writes table metadata as JSON (spec: Table Metadata, Appendix C, Appendix E).

Members that older format versions leave out get their defaults here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from icebergds.errors import FormatError, InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.json.documents import compressed, decoded, is_gzip
from icebergds.spec.json.encryption import encrypted_key_from_json, encrypted_key_to_json
from icebergds.spec.json.fields import (
    optional,
    required,
    string_map,
    typed,
    unknown_members,
    without_nulls,
)
from icebergds.spec.json.partition import (
    partition_fields_from_json,
    partition_fields_to_json,
    partition_spec_from_json,
    partition_spec_to_json,
)
from icebergds.spec.json.recent_documents import KeptTexts, RecentDocuments, json_text
from icebergds.spec.json.schema import schema_from_json, schema_to_json
from icebergds.spec.json.snapshot import (
    metadata_log_entry_from_json,
    metadata_log_entry_to_json,
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_log_entry_from_json,
    snapshot_log_entry_to_json,
    snapshot_to_json,
)
from icebergds.spec.json.sort import sort_order_from_json, sort_order_to_json
from icebergds.spec.json.statistics import (
    partition_statistics_file_from_json,
    partition_statistics_file_to_json,
    statistics_file_from_json,
    statistics_file_to_json,
)
from icebergds.spec.metadata import MAX_FORMAT_VERSION, TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.read_only import ReadOnlyDict
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, Snapshot, SnapshotRef
from icebergds.spec.sort import SortOrder

T = TypeVar("T")

# Statements load a table's metadata several times, and sessions the same tables.
_RECENT: RecentDocuments[TableMetadata] = RecentDocuments(16 * 1024 * 1024)


def parse_metadata(data: bytes, source: str, max_bytes: int | None = None) -> TableMetadata:
    """Parses the bytes of a metadata file, plain or compressed with gzip.

    `source` names the file in errors. `max_bytes` limits its decompressed size, by default to
    `documents.MAX_BYTES`. Raises InvalidMetadataError if it is larger or the bytes are not valid
    metadata, UnsupportedFeatureError for format versions above 3, for types that versions 1 to 3 do
    not define, and for other compressions.
    """
    return _RECENT.get(
        data,
        max_bytes,
        lambda: metadata_from_json(decoded(data, f"table metadata {source}", max_bytes), source),
    )


def remember_metadata(data: bytes, metadata: TableMetadata, max_bytes: int | None = None) -> None:
    """Keeps the metadata that a file was written from, so that reading it need not parse it.

    Args:
        data: what `serialise_metadata` returned for it, perhaps with white space after it. If it is
            compressed, it is not kept: reading it checks its size.
        max_bytes: the limit that the file will be read with.
    """
    if not is_gzip(data):
        _RECENT.put(data, max_bytes, metadata)


def parse_identity(
    data: bytes, source: str, max_bytes: int | None = None
) -> tuple[str | None, int | None]:
    """Parses only the table's UUID and the time of its last update from a metadata file.

    They tell whether two files with the same name hold the same state of the same table, much
    cheaper than a full parse. `max_bytes` is that of `parse_metadata`. Raises InvalidMetadataError
    if the file is larger, the bytes are not a JSON object or one of the two is of another type.
    """
    known = _RECENT.find(data, max_bytes)
    if known is not None:
        return known.table_uuid, known.last_updated_ms
    obj = decoded(data, f"table metadata {source}", max_bytes)
    try:
        obj = typed(obj, dict, "the document")
        return optional(obj, "table-uuid", str, _TOP), optional(obj, "last-updated-ms", int, _TOP)
    except FormatError as error:
        raise type(error)(f"table metadata {source}: {error}") from error


def metadata_from_json(obj: Any, source: str) -> TableMetadata:
    """Converts the decoded JSON object, which must not be changed afterwards, to table metadata.

    Raises as `parse_metadata` does.
    """
    try:
        metadata = _metadata_from_json(typed(obj, dict, "the document"))
        _check_references(metadata)
    except FormatError as error:
        raise type(error)(f"table metadata {source}: {error}") from error
    return metadata


def serialise_metadata(metadata: TableMetadata, compress: bool = False) -> bytes:
    """The bytes of a metadata file, compressed with gzip if `compress` is set."""
    # Most of them stand in the version before.
    snapshots = _SNAPSHOT_TEXTS[metadata.format_version]
    texts = {
        "schemas": ",".join(map(_SCHEMA_TEXTS.of, metadata.schemas)),
        "snapshots": ",".join(map(snapshots.of, metadata.snapshots)),
    }
    members = _to_json(metadata, [], []).items()
    data = ",".join(
        f"{json_text(name)}:{f'[{texts[name]}]' if name in texts else json_text(value)}"
        for name, value in members
    )
    encoded = f"{{{data}}}".encode()
    return compressed(encoded) if compress else encoded


def metadata_to_json(metadata: TableMetadata) -> dict[str, Any]:
    """The JSON object of table metadata, in the form of its format version."""
    version = metadata.format_version
    return _to_json(
        metadata,
        [schema_to_json(schema) for schema in metadata.schemas],
        [snapshot_to_json(snapshot, version) for snapshot in metadata.snapshots],
    )


def _to_json(metadata: TableMetadata, schemas: list[Any], snapshots: list[Any]) -> dict[str, Any]:
    version = metadata.format_version
    current = metadata.current_snapshot_id
    obj = {
        "format-version": version,
        "table-uuid": metadata.table_uuid,
        "location": metadata.location,
        # Version 2, Writing v1 metadata: sequence numbers should not be written.
        "last-sequence-number": metadata.last_sequence_number or (None if version == 1 else 0),
        "last-updated-ms": metadata.last_updated_ms,
        "last-column-id": metadata.last_column_id,
        "schema": schema_to_json(metadata.schema()) if version == 1 else None,
        "current-schema-id": metadata.current_schema_id,
        "schemas": schemas,
        "partition-spec": (
            partition_fields_to_json(metadata.spec().fields) if version == 1 else None
        ),
        "default-spec-id": metadata.default_spec_id,
        "partition-specs": [partition_spec_to_json(spec) for spec in metadata.partition_specs],
        "last-partition-id": metadata.last_partition_id,
        "default-sort-order-id": metadata.default_sort_order_id,
        "sort-orders": [sort_order_to_json(order) for order in metadata.sort_orders],
        "properties": dict(metadata.properties),
        # Appendix F: older readers of versions 1 and 2 want -1 for "no current snapshot".
        "current-snapshot-id": -1 if current is None and version < 3 else current,
        "next-row-id": metadata.next_row_id if version >= 3 else None,
        "encryption-keys": [encrypted_key_to_json(k) for k in metadata.encryption_keys] or None,
        "refs": {name: ref_to_json(ref) for name, ref in metadata.refs.items()},
        "snapshots": snapshots,
        "statistics": [statistics_file_to_json(file) for file in metadata.statistics],
        "partition-statistics": [
            partition_statistics_file_to_json(file) for file in metadata.partition_statistics
        ],
        "snapshot-log": [snapshot_log_entry_to_json(entry) for entry in metadata.snapshot_log],
        "metadata-log": [metadata_log_entry_to_json(entry) for entry in metadata.metadata_log],
    }
    return {**without_nulls(obj), **metadata.unknown}


_SCHEMA_TEXTS = KeptTexts(schema_to_json)
_SNAPSHOT_TEXTS = {
    version: KeptTexts(partial(snapshot_to_json, format_version=version))
    for version in range(1, MAX_FORMAT_VERSION + 1)
}
_MEMBERS = frozenset(
    {
        "format-version",
        "table-uuid",
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "schema",
        "schemas",
        "current-schema-id",
        "partition-spec",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "properties",
        "current-snapshot-id",
        "snapshots",
        "snapshot-log",
        "metadata-log",
        "sort-orders",
        "default-sort-order-id",
        "refs",
        "statistics",
        "partition-statistics",
        "next-row-id",
        "encryption-keys",
    }
)


def _metadata_from_json(obj: dict[str, Any]) -> TableMetadata:
    version = _format_version(obj)
    schemas, current_schema_id = _schemas(obj, version)
    specs, default_spec_id = _partition_specs(obj, version)
    sort_orders, default_sort_order_id = _sort_orders(obj, version)
    snapshots = _each(obj, "snapshots", snapshot_from_json)
    current_snapshot_id = _current_snapshot_id(obj)
    return TableMetadata(
        format_version=version,
        table_uuid=_since_v2(obj, "table-uuid", str, version),
        location=required(obj, "location", str, _TOP),
        last_sequence_number=_since_v2(obj, "last-sequence-number", int, version) or 0,
        last_updated_ms=required(obj, "last-updated-ms", int, _TOP),
        last_column_id=required(obj, "last-column-id", int, _TOP),
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=_last_partition_id(obj, version, specs),
        sort_orders=sort_orders,
        default_sort_order_id=default_sort_order_id,
        properties=string_map(obj, "properties", _TOP),
        current_snapshot_id=current_snapshot_id,
        snapshots=snapshots,
        snapshot_log=_each(obj, "snapshot-log", snapshot_log_entry_from_json),
        metadata_log=_each(obj, "metadata-log", metadata_log_entry_from_json),
        refs=_refs(obj, current_snapshot_id),
        statistics=_each(obj, "statistics", statistics_file_from_json),
        partition_statistics=_each(
            obj, "partition-statistics", partition_statistics_file_from_json
        ),
        next_row_id=_next_row_id(obj, version, snapshots),
        encryption_keys=_each(obj, "encryption-keys", encrypted_key_from_json),
        unknown=unknown_members(obj, _MEMBERS),
    )


_TOP = "the document"


def _format_version(obj: Mapping[str, Any]) -> int:
    version = required(obj, "format-version", int, _TOP)
    if version > MAX_FORMAT_VERSION:
        raise UnsupportedFeatureError(
            f"format version {version} is above {MAX_FORMAT_VERSION}, the highest one supported"
            f"{_found_layout(obj, version)}"
        )
    if version < 1:
        raise InvalidMetadataError(f"'format-version' is {version}, expected 1 to 3")
    return version


def _found_layout(obj: Mapping[str, Any], version: int) -> str:
    """Which layout of version 4, which is not adopted yet, a table has, and what reads it."""
    if version != 4:
        return ""
    listed = obj.get("snapshots")
    snapshots = [each for each in listed if isinstance(each, dict)] if type(listed) is list else []
    if any("root-manifest" in each for each in snapshots):
        found = (
            "its snapshots have 'root-manifest', as in the layout that is proposed for version 4; "
            "read it with the build that wrote it, as no release of Java Iceberg up to 1.12 reads "
            "root manifests"
        )
    elif any("manifest-list" in each for each in snapshots):
        found = (
            "its snapshots have 'manifest-list', as Java Iceberg 1.12 writes version 4: in the "
            "layout of version 3, with manifests in Parquet; read it with Java Iceberg 1.12"
        )
    else:
        found = "it has no snapshot that would tell which of the layouts of version 4 it is to have"
    return (
        f": {found}. Version 4 is not adopted yet: to share rows, copy them to a table of format "
        f"version {MAX_FORMAT_VERSION} with the engine that reads this one"
    )


def _since_v2(obj: Mapping[str, Any], name: str, kind: type[T], version: int) -> T | None:
    """A member that is required since version 2."""
    if version == 1:
        return optional(obj, name, kind, _TOP)
    return required(obj, name, kind, f"{_TOP} of format version {version}")


def _each(
    obj: Mapping[str, Any], name: str, parse: Callable[[Mapping[str, Any]], T]
) -> tuple[T, ...]:
    members = optional(obj, name, list, _TOP) or ()
    return tuple(parse(typed(member, dict, f"an entry of '{name}'")) for member in members)


def _schemas(obj: Mapping[str, Any], version: int) -> tuple[tuple[Schema, ...], int]:
    """All schemas, and the id of the current one."""
    _since_v2(obj, "schemas", list, version)
    schemas = _each(obj, "schemas", schema_from_json)
    current_id = _since_v2(obj, "current-schema-id", int, version)
    if current_id is None:
        # Version 1: `schema` is the required member, a list of them and its current id are not.
        current = schema_from_json(required(obj, "schema", dict, _TOP))
        current_id = current.schema_id
        if not any(schema.schema_id == current_id for schema in schemas):
            schemas = (*schemas, current)
    return schemas, current_id


def _partition_specs(obj: Mapping[str, Any], version: int) -> tuple[tuple[PartitionSpec, ...], int]:
    """All partition specs, and the id of the default one."""
    _since_v2(obj, "partition-specs", list, version)
    specs = _each(obj, "partition-specs", partition_spec_from_json)
    default_id = _since_v2(obj, "default-spec-id", int, version)
    if default_id is None:
        # Version 1: `partition-spec`, fields only, is the required member.
        fields = partition_fields_from_json(
            required(obj, "partition-spec", list, _TOP), "'partition-spec'"
        )
        same = (spec.spec_id for spec in specs if spec.fields == fields)
        default_id = next(same, max((spec.spec_id + 1 for spec in specs), default=0))
        if not any(spec.spec_id == default_id for spec in specs):
            specs = (*specs, PartitionSpec(default_id, fields))
    return specs, default_id


def _last_partition_id(
    obj: Mapping[str, Any], version: int, specs: tuple[PartitionSpec, ...]
) -> int:
    last_id = _since_v2(obj, "last-partition-id", int, version)
    if last_id is not None:
        return last_id
    return max((spec.last_field_id for spec in specs), default=PartitionSpec().last_field_id)


def _sort_orders(obj: Mapping[str, Any], version: int) -> tuple[tuple[SortOrder, ...], int]:
    """All sort orders, and the id of the default one."""
    _since_v2(obj, "sort-orders", list, version)
    sort_orders = _each(obj, "sort-orders", sort_order_from_json)
    default_id = _since_v2(obj, "default-sort-order-id", int, version) or 0
    return sort_orders or (SortOrder(),), default_id


def _current_snapshot_id(obj: Mapping[str, Any]) -> int | None:
    current = optional(obj, "current-snapshot-id", int, _TOP)
    # Appendix F: -1 stands for none.
    return None if current == -1 else current


def _refs(obj: Mapping[str, Any], current_snapshot_id: int | None) -> dict[str, SnapshotRef]:
    members: dict[str, Any] = optional(obj, "refs", dict, _TOP) or {}
    refs = {name: ref_from_json(typed(ref, dict, "'refs'"), name) for name, ref in members.items()}
    if current_snapshot_id is not None and MAIN_BRANCH not in refs:
        # Table Metadata Fields: there is always a main branch, even if it is not written.
        refs[MAIN_BRANCH] = SnapshotRef(current_snapshot_id, RefType.BRANCH)
    return ReadOnlyDict(refs)


def _next_row_id(obj: Mapping[str, Any], version: int, snapshots: Iterable[Snapshot]) -> int:
    if version < 3:
        return 0
    next_row_id = optional(obj, "next-row-id", int, _TOP)
    if next_row_id is not None:
        return next_row_id
    # Writers of version 3 drafts left it out: the first id above all assigned ones, or 0.
    return max(((s.first_row_id or 0) + (s.added_rows or 0) for s in snapshots), default=0)


def _check_references(metadata: TableMetadata) -> None:
    """Checks that ids are unique and that everything that is referred to exists."""
    _check_unique("schemas", (schema.schema_id for schema in metadata.schemas))
    _check_unique("partition-specs", (spec.spec_id for spec in metadata.partition_specs))
    _check_unique("sort-orders", (order.order_id for order in metadata.sort_orders))
    _check_unique("snapshots", (snapshot.snapshot_id for snapshot in metadata.snapshots))
    _check_listed("current-schema-id", metadata.current_schema_id, metadata.schemas_by_id)
    _check_listed("default-spec-id", metadata.default_spec_id, metadata.specs_by_id)
    if metadata.default_sort_order_id != 0:
        orders = {order.order_id for order in metadata.sort_orders}
        _check_listed("default-sort-order-id", metadata.default_sort_order_id, orders)
    if metadata.current_snapshot_id is not None:
        _check_listed("current-snapshot-id", metadata.current_snapshot_id, metadata.snapshots_by_id)
    for name, ref in metadata.refs.items():
        _check_listed(f"snapshot of ref {name!r}", ref.snapshot_id, metadata.snapshots_by_id)
    _check_ancestors(metadata)
    main = metadata.refs.get(MAIN_BRANCH)
    if main is not None and main.snapshot_id != metadata.current_snapshot_id:
        raise InvalidMetadataError(
            f"'current-snapshot-id' is {metadata.current_snapshot_id} but the main branch refers "
            f"to snapshot {main.snapshot_id}; they must agree"
        )
    newest = max((s.sequence_number for s in metadata.snapshots), default=0)
    if metadata.format_version > 1 and newest > metadata.last_sequence_number:
        raise InvalidMetadataError(
            f"a snapshot has sequence number {newest}, above 'last-sequence-number' "
            f"{metadata.last_sequence_number}"
        )


def _check_ancestors(metadata: TableMetadata) -> None:
    """Checks that no snapshot is its own ancestor, so that walks over parents come to an end.

    A parent that has expired is not listed. Every snapshot is visited once.
    """
    checked: set[int] = set()
    for snapshot in metadata.snapshots:
        walked: dict[int, None] = {}
        at: Snapshot | None = snapshot
        while at is not None and at.snapshot_id not in checked:
            if at.snapshot_id in walked:
                loop = list(walked)[list(walked).index(at.snapshot_id) :]
                shown = " -> ".join(map(str, (*loop[:_SHOWN_LOOP], loop[0])))
                raise InvalidMetadataError(
                    f"the table at {metadata.location} has snapshots that are their own ancestors "
                    f"by 'parent-snapshot-id': {shown}; restore an earlier metadata file"
                )
            walked[at.snapshot_id] = None
            parent_id = at.parent_snapshot_id
            at = None if parent_id is None else metadata.snapshot_by_id(parent_id)
        checked.update(walked)


_SHOWN_LOOP = 10


def _check_unique(name: str, ids: Iterable[int]) -> None:
    seen: set[int] = set()
    for number in ids:
        if number in seen:
            raise InvalidMetadataError(f"'{name}' has more than one entry with id {number}")
        seen.add(number)


def _check_listed(name: str, number: int, listed: Iterable[int]) -> None:
    ids = set(listed)
    if number not in ids:
        raise InvalidMetadataError(
            f"{name} is {number}, which is not listed; there are {sorted(ids)[:10] or 'none'}"
        )
