"""Builds the entry of a table in a Hive Metastore, as Java Iceberg does."""

from __future__ import annotations

import getpass
import time
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from icebergds.catalog.hive.columns import hive_columns
from icebergds.catalog.hive.messages import SerDe, StorageDescriptor, Table
from icebergds.catalog.hive.parameters import (
    ENCRYPTION_KEY_ID,
    OWNER,
    table_parameters,
)
from icebergds.errors import UnsupportedFeatureError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import ENGINE_HIVE_ENABLED


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """What a catalog's properties say of its entries.

    Attributes:
        hive_engine: whether Hive can query tables that do not say so themselves.
        hive2_compatible: whether only types of Hive 2 are used.
        max_parameter_size: parameters derived from the metadata have at most so many characters.
    """

    hive_engine: bool
    hive2_compatible: bool
    max_parameter_size: int


def new_entry(
    database: str, name: str, location: str, metadata: TableMetadata, options: EntryOptions
) -> Table:
    """The entry of a table that is created.

    Args:
        location: the file with the metadata.

    Raises:
        InvalidOptionError: a table property is malformed.
        UnsupportedFeatureError: the table is to be encrypted.
    """
    now_s = int(time.time())
    entry = Table(
        name=name,
        database=database,
        owner=metadata.properties.get(OWNER) or current_user(),
        create_time=now_s,
        last_access_time=now_s,
        retention=2**31 - 1,
        partition_keys=(),
        parameters={},
        table_type="EXTERNAL_TABLE",
    )
    return changed_entry(entry, location, metadata, frozenset(), options)


def changed_entry(
    entry: Table,
    location: str,
    metadata: TableMetadata,
    removed: AbstractSet[str],
    options: EntryOptions,
) -> Table:
    """An entry with the metadata of a commit.

    Args:
        removed: the names of properties that the table had and has no more.

    Raises:
        InvalidOptionError: a table property is malformed.
        UnsupportedFeatureError: the table is encrypted.
    """
    current = entry.parameters or {}
    if ENCRYPTION_KEY_ID in metadata.properties or ENCRYPTION_KEY_ID in current:
        # Readers of other implementations check a hash of the metadata, which is not written here.
        raise UnsupportedFeatureError(
            f"table {entry.database}.{entry.name} is encrypted ({ENCRYPTION_KEY_ID}), which is not "
            "supported in a Hive catalog"
        )
    hive_engine = ENGINE_HIVE_ENABLED.of(metadata.properties)
    if hive_engine is None:
        hive_engine = options.hive_engine
    parameters = table_parameters(
        metadata,
        location,
        current=current,
        removed=removed,
        hive_engine=hive_engine,
        max_size=options.max_parameter_size,
    )
    storage = _storage(metadata, hive_engine, options.hive2_compatible)
    return replace(entry, storage=storage, parameters=parameters)


def current_user() -> str:
    """The user of this process, as the owner of what it creates."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container's user may have no name.
        return "unknown"


def _storage(metadata: TableMetadata, hive_engine: bool, hive2: bool) -> StorageDescriptor:
    formats = _HIVE_ENGINE if hive_engine else _NO_ENGINE
    return StorageDescriptor(
        columns=hive_columns(metadata.schema(), hive2_compatible=hive2),
        location=metadata.location,
        input_format=formats[0],
        output_format=formats[1],
        compressed=False,
        buckets=0,
        serde=SerDe(library=formats[2], parameters={}),
    )


_HIVE_ENGINE = (
    "org.apache.iceberg.mr.hive.HiveIcebergInputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
)
_NO_ENGINE = (
    "org.apache.hadoop.mapred.FileInputFormat",
    "org.apache.hadoop.mapred.FileOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
