"""Applies updates of a table's version, UUID, location, properties, statistics and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from icebergds.errors import InvalidMetadataError, InvalidOptionError, UnsupportedFeatureError
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.metadata import MAX_FORMAT_VERSION, TableMetadata
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.table_properties import FORMAT_VERSION, INTEGER, RESERVED_PROPERTIES, Property


def assign_uuid(metadata: TableMetadata, uuid: str) -> TableMetadata:
    """Assigns the table's UUID.

    Raises InvalidMetadataError if it has another one.
    """
    if not uuid:
        raise InvalidMetadataError("the UUID of a table must not be empty")
    if metadata.table_uuid is None:
        return replace(metadata, table_uuid=uuid)
    if metadata.table_uuid.lower() != uuid.lower():
        raise InvalidMetadataError(
            f"UUID {uuid} cannot be assigned: the table already has {metadata.table_uuid}, which "
            "cannot change"
        )
    return metadata


def upgrade_format_version(metadata: TableMetadata, version: int) -> TableMetadata:
    """Upgrades the table to a format version (spec: Appendix E).

    In memory, older metadata already has the defaults of newer versions, so only the number
    changes.

    Raises:
        InvalidMetadataError: the table is of a higher version.
        UnsupportedFeatureError: the version is above 3.
    """
    if version == metadata.format_version:
        return metadata
    if version > MAX_FORMAT_VERSION:
        raise UnsupportedFeatureError(
            f"format version {version} is not supported; the highest supported version is "
            f"{MAX_FORMAT_VERSION}"
        )
    if version < metadata.format_version:
        raise InvalidMetadataError(
            f"the table has format version {metadata.format_version} and cannot be downgraded to "
            f"{version}"
        )
    if metadata.format_version < 3 <= version:
        return replace(metadata, format_version=version, next_row_id=0)
    return replace(metadata, format_version=version)


def set_location(metadata: TableMetadata, location: str) -> TableMetadata:
    """Sets the table's location, for new files."""
    if not location:
        raise InvalidMetadataError("the location of a table must not be empty")
    return metadata if location == metadata.location else replace(metadata, location=location)


def set_properties(metadata: TableMetadata, updates: Mapping[str, str]) -> TableMetadata:
    """Sets properties; `format-version` upgrades the table and is not stored.

    Raises InvalidOptionError for other reserved names and for values that are not strings.
    """
    for name, value in updates.items():
        if name in RESERVED_PROPERTIES and name != FORMAT_VERSION:
            raise InvalidOptionError(f"property {name!r} is reserved and cannot be set")
        if not isinstance(value, str):
            raise InvalidOptionError(f"property {name!r} is {value!r}, expected a string")
    version = Property(FORMAT_VERSION, INTEGER, metadata.format_version).of(updates)
    upgraded = upgrade_format_version(metadata, version)
    stored = {name: value for name, value in updates.items() if name != FORMAT_VERSION}
    properties = {**metadata.properties, **stored}
    return (
        upgraded if properties == metadata.properties else replace(upgraded, properties=properties)
    )


def remove_properties(metadata: TableMetadata, names: tuple[str, ...]) -> TableMetadata:
    """Removes properties; missing ones are ignored."""
    kept = {name: value for name, value in metadata.properties.items() if name not in set(names)}
    return metadata if len(kept) == len(metadata.properties) else replace(metadata, properties=kept)


def set_statistics(metadata: TableMetadata, file: StatisticsFile) -> TableMetadata:
    """Sets the statistics file of a snapshot, replacing an older one.

    Raises InvalidMetadataError if there is no such snapshot.
    """
    _check_snapshot(metadata, file.snapshot_id, file.statistics_path)
    others = tuple(s for s in metadata.statistics if s.snapshot_id != file.snapshot_id)
    return replace(metadata, statistics=(*others, file))


def remove_statistics(metadata: TableMetadata, snapshot_id: int) -> TableMetadata:
    """Removes the statistics file of a snapshot, if there is one."""
    kept = tuple(s for s in metadata.statistics if s.snapshot_id != snapshot_id)
    return metadata if len(kept) == len(metadata.statistics) else replace(metadata, statistics=kept)


def set_partition_statistics(
    metadata: TableMetadata, file: PartitionStatisticsFile
) -> TableMetadata:
    """Sets the partition statistics file of a snapshot, replacing an older one.

    Raises InvalidMetadataError if there is no such snapshot.
    """
    _check_snapshot(metadata, file.snapshot_id, file.statistics_path)
    others = tuple(s for s in metadata.partition_statistics if s.snapshot_id != file.snapshot_id)
    return replace(metadata, partition_statistics=(*others, file))


def remove_partition_statistics(metadata: TableMetadata, snapshot_id: int) -> TableMetadata:
    """Removes the partition statistics file of a snapshot, if there is one."""
    kept = tuple(s for s in metadata.partition_statistics if s.snapshot_id != snapshot_id)
    if len(kept) == len(metadata.partition_statistics):
        return metadata
    return replace(metadata, partition_statistics=kept)


def add_encryption_key(metadata: TableMetadata, key: EncryptedKey) -> TableMetadata:
    """Adds an encryption key.

    Raises InvalidMetadataError if another key has its id, or before format version 3.
    """
    if metadata.format_version < 3:
        raise InvalidMetadataError(
            f"format version {metadata.format_version} does not support encryption keys; upgrade "
            "the table to version 3"
        )
    same = next((k for k in metadata.encryption_keys if k.key_id == key.key_id), None)
    if same is None:
        return replace(metadata, encryption_keys=(*metadata.encryption_keys, key))
    if same != key:
        raise InvalidMetadataError(
            f"the table already has a different encryption key with the id {key.key_id!r}"
        )
    return metadata


def remove_encryption_key(metadata: TableMetadata, key_id: str) -> TableMetadata:
    """Removes an encryption key; a missing one is ignored.

    Raises InvalidMetadataError if a snapshot or another key needs it.
    """
    kept = tuple(key for key in metadata.encryption_keys if key.key_id != key_id)
    if len(kept) == len(metadata.encryption_keys):
        return metadata
    snapshots = [s.snapshot_id for s in metadata.snapshots if s.key_id == key_id]
    if snapshots:
        raise InvalidMetadataError(
            f"encryption key {key_id!r} cannot be removed: snapshot {snapshots[0]} needs it"
        )
    keys = [key.key_id for key in kept if key.encrypted_by_id == key_id]
    if keys:
        raise InvalidMetadataError(
            f"encryption key {key_id!r} cannot be removed: key {keys[0]!r} is encrypted by it"
        )
    return replace(metadata, encryption_keys=kept)


def _check_snapshot(metadata: TableMetadata, snapshot_id: int, path: str) -> None:
    if snapshot_id not in metadata.snapshots_by_id:
        raise InvalidMetadataError(
            f"statistics file {path} is for snapshot {snapshot_id}, which the table does not have"
        )
