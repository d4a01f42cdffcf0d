"""Rows of Java's metadata tables, made from what icebergds reads of a table.

They are as Spark's `to_json` has them, without what is null or empty.
"""

from __future__ import annotations

import datetime as dt
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from icebergds.api.table import Table
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.spec.manifest import (
    DataFile,
    FieldSummary,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.transforms import to_human
from icebergds.spec.types import DATE
from icebergds.spec.values.binary import from_bytes, to_bytes

Row = dict[str, Any]

_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS = ("lower_bounds", "upper_bounds")


def file_rows(table: Table) -> list[Row]:
    return [_file(table, entry.data_file) for entry in live_entries(table)]


def entry_rows(table: Table) -> list[Row]:
    return [_entry(table, e) for e in entries(table, _manifests(table, table.current_snapshot()))]


def all_entry_rows(table: Table) -> list[Row]:
    everywhere: dict[str, ManifestFile] = {}
    for snapshot in table.snapshots():
        for manifest in _manifests(table, snapshot):
            # As the oldest list has it: newer ones may add first row ids.
            everywhere.setdefault(manifest.manifest_path, manifest)
    return [_entry(table, entry) for entry in entries(table, everywhere.values())]


def manifest_rows(table: Table) -> list[Row]:
    return [_manifest(table, m) for m in _manifests(table, table.current_snapshot())]


def all_manifest_rows(table: Table) -> list[Row]:
    return [
        {**_manifest(table, manifest), "reference_snapshot_id": snapshot.snapshot_id}
        for snapshot in table.snapshots()
        for manifest in _manifests(table, snapshot)
    ]


def partition_rows(table: Table) -> list[Row]:
    """Partitions of all specs; what else is equal in them is one partition to Java."""
    members: dict[tuple[Any, ...], list[ManifestEntry]] = defaultdict(list)
    for entry in live_entries(table):
        members[tuple(sorted(_partition(table, entry.data_file).items()))].append(entry)
    rows = []
    for partition, of_it in members.items():
        last = max(of_it, key=lambda entry: _committed_ms(table, entry))
        files = [entry.data_file for entry in of_it]
        row = {
            "record_count": sum(file.record_count for file in files),
            "file_count": len(files),
            "total_data_file_size_in_bytes": sum(file.file_size_in_bytes for file in files),
            "last_updated_at": _time(_committed_ms(table, last)),
            "last_updated_snapshot_id": last.snapshot_id,
        }
        for kind in ("position", "equality"):
            row |= {f"{kind}_delete_{what}_count": 0 for what in ("record", "file")}
        if _is_partitioned(table):
            row |= {"partition": dict(partition), "spec_id": last.data_file.spec_id}
        rows.append(row)
    return rows


def snapshot_rows(table: Table) -> list[Row]:
    return [
        {
            "committed_at": _time(snapshot.timestamp_ms),
            "snapshot_id": snapshot.snapshot_id,
            "parent_id": snapshot.parent_snapshot_id,
            "operation": snapshot.operation,
            "manifest_list": snapshot.manifest_list,
            "summary": {k: v for k, v in snapshot.summary.items() if k != "operation"},
        }
        for snapshot in table.snapshots()
    ]


def reference_rows(table: Table) -> list[Row]:
    return [
        {
            "name": name,
            "type": ref.ref_type.name,
            "snapshot_id": ref.snapshot_id,
            "max_reference_age_in_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
        }
        for name, ref in table.metadata.refs.items()
    ]


def history_rows(table: Table) -> list[Row]:
    parents = {s.snapshot_id: s.parent_snapshot_id for s in table.snapshots()}
    current = table.current_snapshot()
    ancestors = set()
    ancestor = current.snapshot_id if current else None
    while ancestor is not None:
        ancestors.add(ancestor)
        ancestor = parents[ancestor]
    return [
        {
            "made_current_at": _time(change.timestamp_ms),
            "snapshot_id": change.snapshot_id,
            "parent_id": parents[change.snapshot_id],
            "is_current_ancestor": change.snapshot_id in ancestors,
        }
        for change in table.metadata.snapshot_log
    ]


def summary_counts(table: Table, snapshot: Snapshot) -> dict[str, str]:
    """What a snapshot's summary must say, by its manifests."""
    counts: dict[str, int] = defaultdict(int)
    partitions = set()
    verbs = {ManifestEntryStatus.ADDED: "added", ManifestEntryStatus.DELETED: "deleted"}
    for entry in entries(table, _manifests(table, snapshot)):
        file = entry.data_file
        prefixes = [] if entry.status is ManifestEntryStatus.DELETED else ["total"]
        if entry.snapshot_id == snapshot.snapshot_id and entry.status in verbs:
            prefixes.append(verbs[entry.status])
            partitions.add((file.spec_id, file.partition))
        for prefix in prefixes:
            counts[f"{prefix}-data-files"] += 1
            counts[f"{prefix}-records"] += file.record_count
            size = "removed-files-size" if prefix == "deleted" else f"{prefix}-files-size"
            counts[size] += file.file_size_in_bytes
    counts["changed-partition-count"] = len(partitions)
    return {name: str(count) for name, count in counts.items() if count}


def manifests_of(table: Table) -> list[ManifestFile]:
    """The manifests of all snapshots, each as every list has it."""
    return [manifest for s in table.snapshots() for manifest in _manifests(table, s)]


def counted(table: Table, manifest: ManifestFile) -> ManifestFile:
    """What a manifest list must say of a manifest, by its entries."""
    found = entries(table, [manifest])
    spec = table.metadata.specs_by_id[manifest.partition_spec_id]
    types = [field.field_type for field in table.metadata.partition_type(spec).fields]
    counts = {}
    for verb in ("added", "existing", "deleted"):
        files = [e.data_file for e in found if e.status is ManifestEntryStatus[verb.upper()]]
        counts[f"{verb}_files_count"] = len(files)
        counts[f"{verb}_rows_count"] = sum(file.record_count for file in files)
    summaries = []
    for place, kind in enumerate(types):
        values = [entry.data_file.partition[place] for entry in found]
        there = [value for value in values if value is not None]
        bounds = [to_bytes(kind, bound(there)) if there else None for bound in (min, max)]
        summaries.append(FieldSummary(None in values, False, *bounds))
    return replace(manifest, partitions=tuple(summaries), **counts)


def live_entries(table: Table) -> list[ManifestEntry]:
    """Entries of the files that the current snapshot has."""
    found = entries(table, _manifests(table, table.current_snapshot()))
    return [entry for entry in found if entry.status is not ManifestEntryStatus.DELETED]


def entries(table: Table, manifests: Iterable[ManifestFile]) -> list[ManifestEntry]:
    metadata = table.metadata
    return [
        entry
        for manifest in manifests
        for entry in read_manifest(
            table.io,
            manifest,
            metadata.specs_by_id,
            metadata.schema(),
            history=metadata.schema_history,
        )
    ]


def _manifests(table: Table, snapshot: Snapshot | None) -> tuple[ManifestFile, ...]:
    return read_snapshot_manifests(table.io, snapshot) if snapshot else ()


def _entry(table: Table, entry: ManifestEntry) -> Row:
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.data_sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": _file(table, entry.data_file),
    }


def _file(table: Table, file: DataFile) -> Row:
    bounds = {
        name: {str(k): b64encode(v).decode() for k, v in getattr(file, name).items()}
        for name in _BOUNDS
    }
    return {
        "content": int(file.content),
        "file_path": file.file_path,
        "file_format": file.file_format.upper(),
        "spec_id": file.spec_id,
        "partition": _partition(table, file),
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        **{name: {str(k): v for k, v in getattr(file, name).items()} for name in _COUNTS},
        **bounds,
        "split_offsets": list(file.split_offsets),
        "equality_ids": list(file.equality_ids),
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id,
    }


def _partition(table: Table, file: DataFile) -> Row:
    """The values that are there, by the names of their fields in the newest spec that has them."""
    specs = table.metadata.specs_by_id
    names = {f.field_id: f.name for spec_id in sorted(specs) for f in specs[spec_id].fields}
    spec = specs[file.spec_id]
    types = [field.field_type for field in table.metadata.partition_type(spec).fields]
    return {
        names[field.field_id]: to_human(field.transform, kind, value) if kind == DATE else value
        for field, kind, value in zip(spec.fields, types, file.partition, strict=True)
        if value is not None
    }


def _manifest(table: Table, manifest: ManifestFile) -> Row:
    spec = table.metadata.specs_by_id[manifest.partition_spec_id]
    types = [field.field_type for field in table.metadata.partition_type(spec).fields]
    counts = {
        f"{verb}_data_files_count": getattr(manifest, f"{verb}_files_count")
        for verb in ("added", "existing", "deleted")
    }
    columns = {column.field_id: column.field_type for column in table.schema().fields}

    def text(bound: bytes | None, index: int) -> str:
        field = spec.fields[index]
        value = None if bound is None else from_bytes(types[index], bound)
        return to_human(field.transform, columns[field.source_id], value)

    return {
        "content": int(manifest.content),
        "path": manifest.manifest_path,
        "length": manifest.manifest_length,
        "partition_spec_id": manifest.partition_spec_id,
        "added_snapshot_id": manifest.added_snapshot_id,
        **counts,
        **{key.replace("data", "delete"): 0 for key in counts},
        "partition_summaries": [
            {
                "contains_null": summary.contains_null,
                "contains_nan": summary.contains_nan,
                "lower_bound": text(summary.lower_bound, index),
                "upper_bound": text(summary.upper_bound, index),
            }
            for index, summary in enumerate(manifest.partitions)
        ],
    }


def _is_partitioned(table: Table) -> bool:
    return any(spec.fields for spec in table.metadata.partition_specs)


def _committed_ms(table: Table, entry: ManifestEntry) -> int:
    return table.metadata.snapshots_by_id[entry.snapshot_id].timestamp_ms


def _time(milliseconds: int) -> str:
    moment = dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
