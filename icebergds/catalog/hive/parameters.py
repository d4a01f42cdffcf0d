"""Mirrors a table's metadata in the parameters of its entry, as Java Iceberg does."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Set as AbstractSet
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.spec.json.partition import partition_spec_to_json
from icebergds.spec.json.schema import schema_to_json
from icebergds.spec.json.sort import sort_order_to_json
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import GC_ENABLED

_LOG = logging.getLogger(__name__)

METADATA_LOCATION = "metadata_location"
PREVIOUS_METADATA_LOCATION = "previous_metadata_location"
TABLE_TYPE = "table_type"
OWNER = "hive.metastore.table.owner"
METADATA_HASH = "metadata_hash"
"""A digest of the metadata of an encrypted table, by Java Iceberg."""
OWN_DIGEST = "icebergds.metadata-digest"
"""A digest of the metadata file of an encrypted table, and where that is."""


def is_iceberg(parameters: Mapping[str, str] | None) -> bool:
    """Whether the parameters are those of an Iceberg table."""
    return (parameters or {}).get(TABLE_TYPE, "").upper() == "ICEBERG"


def table_parameters(
    metadata: TableMetadata,
    location: str,
    *,
    current: Mapping[str, str],
    removed: AbstractSet[str],
    hive_engine: bool,
    max_size: int,
) -> dict[str, str]:
    """The parameters of a table's entry.

    Args:
        location: the metadata file.
        current: the parameters to replace; those that are not Iceberg's are kept.
        removed: the names of properties that were removed from the table.
        hive_engine: whether Hive can query the table.
        max_size: parameters derived from the metadata with more characters are omitted.

    Raises:
        InvalidOptionError: the metastore would refuse a new or changed property.
    """
    found = dict(current)
    for name, value in metadata.properties.items():
        if name.lower() != OWNER:
            if current.get(name) != value:
                _check(name, value)
            found[_HIVE_NAMES.get(name, name)] = value
    if metadata.table_uuid is not None:
        found["uuid"] = metadata.table_uuid
    for name in removed:
        found.pop(_HIVE_NAMES.get(name, name), None)
    found["EXTERNAL"] = "TRUE"
    found[TABLE_TYPE] = "ICEBERG"
    if (previous := current.get(METADATA_LOCATION)) is not None:
        found[PREVIOUS_METADATA_LOCATION] = previous
    found[METADATA_LOCATION] = location
    if hive_engine:
        found[_STORAGE_HANDLER] = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
    else:
        found.pop(_STORAGE_HANDLER, None)
    # Without a digest, Java Iceberg compares the properties of encryption. With one that is not
    # that of the JSON that Java itself would write of this metadata, it refuses to load the table.
    for name in (*_DERIVED, _STATISTICS_ACCURATE, METADATA_HASH):
        found.pop(name, None)
    found[DO_NOT_UPDATE_STATISTICS] = "true"
    found.update(_statistics(metadata))
    found.update(_derived(metadata, max_size))
    return found


def properties_of_others(parameters: Mapping[str, str], metadata: TableMetadata) -> set[str]:
    """Parameters that are neither Iceberg's nor among a metadata's properties.

    They are Hive's or a user's, or properties of an earlier state of the table.
    """
    mirrored = {_HIVE_NAMES.get(name, name) for name in metadata.properties}
    return parameters.keys() - mirrored - _KNOWN


DO_NOT_UPDATE_STATISTICS = "DO_NOT_UPDATE_STATS"

_LONGEST_NAME = 256
_STATISTICS_ACCURATE = "COLUMN_STATS_ACCURATE"
_STORAGE_HANDLER = "storage_handler"
# Hive's names for properties with the same meaning.
_HIVE_NAMES = {GC_ENABLED.name: "external.table.purge"}
_STATISTICS = {
    "total-data-files": "numFiles",
    "total-records": "numRows",
    "total-files-size": "totalSize",
}
_SNAPSHOT_ID = "current-snapshot-id"
_SNAPSHOT_TIMESTAMP = "current-snapshot-timestamp-ms"
_SNAPSHOT_SUMMARY = "current-snapshot-summary"
_SNAPSHOT_COUNT = "snapshot-count"
_SCHEMA = "current-schema"
_SPEC = "default-partition-spec"
_SORT_ORDER = "default-sort-order"
_DERIVED = (
    _SNAPSHOT_ID,
    _SNAPSHOT_TIMESTAMP,
    _SNAPSHOT_SUMMARY,
    _SNAPSHOT_COUNT,
    _SCHEMA,
    _SPEC,
    _SORT_ORDER,
)
_KNOWN = {
    *_DERIVED,
    *_STATISTICS.values(),
    _STATISTICS_ACCURATE,
    _STORAGE_HANDLER,
    DO_NOT_UPDATE_STATISTICS,
    METADATA_HASH,
    METADATA_LOCATION,
    OWN_DIGEST,
    PREVIOUS_METADATA_LOCATION,
    TABLE_TYPE,
    "EXTERNAL",
    "uuid",
    # Set by the metastore.
    "bucketing_version",
    "last_modified_by",
    "last_modified_time",
    "numFilesErasureCoded",
    "rawDataSize",
    "transient_lastDdlTime",
}


def _check(name: str, value: str) -> None:
    """Rejects what a metastore would reject with an error that leaves the outcome unknown."""
    if len(name) > _LONGEST_NAME:
        raise InvalidOptionError(
            f"table property {name[:40]}...: its name has {len(name)} characters; a Hive "
            f"Metastore stores at most {_LONGEST_NAME}"
        )
    if "\0" in name + value:
        raise InvalidOptionError(
            f"table property {name!r} contains the character NUL, which a Hive Metastore cannot "
            "store"
        )
    if name.lower() == "transactional" and value.lower() == "true":
        raise InvalidOptionError(
            "table property transactional = true is of Hive's own tables, and a Hive Metastore "
            "refuses it for others; leave it out"
        )


def _statistics(metadata: TableMetadata) -> dict[str, str]:
    snapshot = metadata.current_snapshot()
    summary = {} if snapshot is None else snapshot.summary
    return {hive: summary[name] for name, hive in _STATISTICS.items() if name in summary}


def _derived(metadata: TableMetadata, max_size: int) -> dict[str, str]:
    counted = {_SNAPSHOT_COUNT: str(len(metadata.snapshots))}
    if max_size == 0:
        return counted
    texts = {_SCHEMA: _json(schema_to_json(metadata.schema()))}
    if not metadata.spec().is_unpartitioned:
        texts[_SPEC] = _json(partition_spec_to_json(metadata.spec()))
    if metadata.sort_order().is_sorted:
        texts[_SORT_ORDER] = _json(sort_order_to_json(metadata.sort_order()))
    if (snapshot := metadata.current_snapshot()) is not None:
        summary = {name: value for name, value in snapshot.summary.items() if name != "operation"}
        texts[_SNAPSHOT_ID] = str(snapshot.snapshot_id)
        texts[_SNAPSHOT_TIMESTAMP] = str(snapshot.timestamp_ms)
        texts[_SNAPSHOT_SUMMARY] = _json(summary)
    for name in [name for name, text in texts.items() if len(text) > max_size]:
        _LOG.warning(
            "table at %s: %s is not stored in the Hive Metastore: it has %d characters, and "
            "iceberg.hive.table-property-max-size is %d",
            metadata.location,
            name,
            len(texts.pop(name)),
            max_size,
        )
    return counted | texts


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
