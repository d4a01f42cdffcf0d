"""Rows of metadata tables as Spark writes them in JSON, and what metadata must count."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from icebergds.api.table import Table
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.spec.manifest import (
    FieldSummary,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.values.binary import to_bytes

Row = dict[str, Any]


def json_rows(rows: pa.Table) -> list[Row]:
    """Rows as `json.loads` has them of what Spark's `to_json` writes in the zone UTC."""
    columns = [
        [_json(value, field.type) for value in rows[field.name].to_pylist()]
        for field in rows.schema
    ]
    return [
        dict(zip(rows.schema.names, values, strict=True)) for values in zip(*columns, strict=True)
    ]


def _json(value: Any, kind: pa.DataType) -> Any:
    match value:
        case None:
            return None
        case bytes() if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
            return str(uuid.UUID(bytes=value))
        case bytes():
            return b64encode(value).decode()
        case dt.datetime():
            text = value.isoformat(timespec="milliseconds").removesuffix("+00:00")
            return f"{text}Z" if value.tzinfo else text
        case dt.date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case float() if math.isnan(value) or math.isinf(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case float() if kind == pa.float32():
            return float(str(np.float32(value)))
        case dict():
            return {field.name: _json(value[field.name], field.type) for field in kind}
        case list() if pa.types.is_map(kind):
            return {str(key): _json(item, kind.item_type) for key, item in value}
        case list():
            return [_json(element, kind.value_type) for element in value]
        case _:
            return value


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
