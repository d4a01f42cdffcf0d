"""Checks the properties of a new table, which could otherwise not be written or changed later."""

from __future__ import annotations

from collections.abc import Callable

from icebergds.catalog.metadata_writing import check_compression
from icebergds.commit.new_manifests import manifest_compression, target_manifest_size
from icebergds.commit.retry import check_retry_properties
from icebergds.formats.data_file.metrics_modes import check_metrics_columns
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.operations.write.data_file_settings import (
    data_file_format,
    data_file_size,
    uses_fanout,
)
from icebergds.operations.write.delete_file_settings import (
    delete_file_format,
    delete_file_size,
    delete_granularity,
)
from icebergds.operations.write.distribution_mode import distribution_property
from icebergds.operations.write.row_change_settings import (
    STATEMENTS,
    isolation_level,
    row_change_mode,
)
from icebergds.scan.plan.splits import SplitOptions
from icebergds.spec import table_properties as names
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.manifest import FileFormat
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import bool_property, int_property
from icebergds.write.locations import IMPLEMENTATIONS, LocationProvider


def check_properties(table: TableMetadata) -> None:
    """Parses all properties of a new table that this package reads, with what reads them later.

    Other properties are not checked: they may be those of other engines.

    Raises:
        InvalidOptionError: a property has an invalid value, or names a column that does not exist.
        InvalidMetadataError: the name mapping is malformed.
    """
    for read in _READERS:
        read(table)


def _row_changes(table: TableMetadata) -> None:
    for statement in STATEMENTS:
        row_change_mode(table.properties, statement)
        isolation_level(table.properties, statement)


def _locations(table: TableMetadata) -> None:
    # A custom location provider of another engine has properties of its own.
    if not any(name in table.properties for name in IMPLEMENTATIONS):
        LocationProvider.of(table.location, table.properties)


def _plain(table: TableMetadata) -> None:
    """Properties whose only rule is their type."""
    for name in (
        names.MANIFEST_MIN_MERGE_COUNT,
        names.METADATA_PREVIOUS_VERSIONS_MAX,
        names.SUMMARY_PARTITION_LIMIT,
        names.MAX_SNAPSHOT_AGE_MS,
        names.MIN_SNAPSHOTS_TO_KEEP,
        names.MAX_REF_AGE_MS,
    ):
        int_property(table.properties, name, 0)
    int_property(table.properties, names.TXN_MAX_AGE_MS, 0, minimum=0)
    for name in (names.TARGET_FILE_SIZE_BYTES, names.DELETE_TARGET_FILE_SIZE_BYTES):
        int_property(table.properties, name, 1, minimum=1)
    for name in (
        names.GC_ENABLED,
        names.MANIFEST_MERGE_ENABLED,
        names.METADATA_DELETE_AFTER_COMMIT_ENABLED,
        names.OBJECT_STORAGE_PARTITIONED_PATHS,
        names.ACCEPT_ANY_SCHEMA,
        names.AUTO_SCHEMA_EVOLUTION,
    ):
        bool_property(table.properties, name, False)


_READERS: tuple[Callable[[TableMetadata], object], ...] = (
    _plain,
    _row_changes,
    _locations,
    table_name_mapping,
    check_compression,
    delete_file_size,
    delete_granularity,
    lambda table: delete_file_format(table, FileFormat.PARQUET),
    lambda table: data_file_format(table.properties),
    lambda table: data_file_size(table.properties),
    lambda table: uses_fanout(table.properties),
    lambda table: distribution_property(table.properties),
    lambda table: WriteProperties.of(table.properties, table.schema(), table.sort_order()),
    lambda table: check_metrics_columns(table.properties, table.schema()),
    lambda table: check_retry_properties(table.properties),
    lambda table: manifest_compression(table.properties),
    lambda table: target_manifest_size(table.properties),
    lambda table: SplitOptions.of(table.properties),
)
