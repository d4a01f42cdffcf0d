"""Checks the properties of a new table, which could otherwise not be written or changed later."""

from __future__ import annotations

from icebergds.commit.new_manifests import manifest_compression
from icebergds.formats.data_file.metrics_modes import check_metrics_columns
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import PROPERTIES
from icebergds.write.locations import IMPLEMENTATIONS, LocationProvider


def check_properties(table: TableMetadata) -> None:
    """Parses all properties of a new table that this package reads, with what reads them later.

    Other properties are not checked: they may be those of other engines.

    Raises:
        InvalidOptionError: a property has an invalid value, or names a column that does not exist.
        InvalidMetadataError: the name mapping is malformed.
    """
    properties = table.properties
    for known in PROPERTIES:
        known.check(properties)
    # What depends on other properties or on columns.
    WriteProperties.of(properties, table.schema(), table.sort_order())
    check_metrics_columns(properties, table.schema())
    manifest_compression(properties)
    table_name_mapping(table)
    # A custom location provider of another engine has properties of its own.
    if not any(name in properties for name in IMPLEMENTATIONS):
        LocationProvider.of(table.location, properties)
