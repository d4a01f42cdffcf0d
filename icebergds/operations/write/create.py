"""Creates a table together with its first snapshot, in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icebergds.catalog.address import TableAddress
from icebergds.catalog.metadata_writing import next_metadata
from icebergds.catalog.new_properties import new_table_properties
from icebergds.commit.new_manifests import manifest_compression
from icebergds.commit.operations import TableState
from icebergds.encryption.list_keys import no_service
from icebergds.errors import AlreadyExistsError, NoSuchTableError
from icebergds.formats.data_file.metrics_modes import check_metrics_columns
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.io.fileio import FileIO
from icebergds.operations.options.partition_text import parse_partition_by, parse_sort_by
from icebergds.operations.write.options import Creation
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import ENCRYPTION_KEY_ID, FORMAT_VERSION, PROPERTIES
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.spec.updates.requirements import TableRequirement
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.write.locations import IMPLEMENTATIONS, LocationProvider

# As in write.metadata.metrics.column.<name>.
_OF_COLUMN = ".column."


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that is created by its first commit (`TableOperations`).

    Attributes:
        updates: create the table, without its first snapshot.
    """

    address: TableAddress
    io: FileIO
    updates: tuple[TableUpdate, ...]

    @property
    def name(self) -> str:
        return self.address.path

    def refresh(self) -> TableState:
        """Loads the table if this commit has created it; otherwise the planned table.

        Raises:
            AlreadyExistsError: another writer created a table of this name.
        """
        planned = self.planned()
        try:
            state = self.address.load()
        except NoSuchTableError:
            return planned
        if state.metadata.table_uuid != planned.metadata.table_uuid:
            raise AlreadyExistsError(
                f"table {self.name} was created by another writer while this write, which was to "
                "create it, wrote its rows; repeat the write to add them to that table"
            )
        return state

    def planned(self) -> TableState:
        """The table as it will be before its first snapshot."""
        metadata = next_metadata(None, None, self.updates)
        return TableState(self.name, "", metadata, self.io)

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        """Creates the table together with the updates.

        Raises:
            AlreadyExistsError: another writer created a table of this name.
            CommitStateUnknownError: it is not known whether the table was created.
        """
        return self.address.create([*self.updates, *updates])


def plan_new_table(address: TableAddress, creation: Creation, schema: Schema) -> NewTable:
    """Plans a table for rows of a schema.

    Raises:
        InvalidOptionError: `partition-by`, `sort-by`, `location` or properties do not fit.
        InvalidMetadataError, InvalidDataError: the definition is invalid.
        UnsupportedFeatureError: the table is to be encrypted, without a key service.
    """
    given, version = dict(creation.properties), creation.format_version
    if version is not None and FORMAT_VERSION not in given:
        # As a property, which the catalog may override.
        given[FORMAT_VERSION], version = str(version), None
    updates = new_table_updates(
        schema,
        location=address.new_location(creation.location),
        spec=parse_partition_by(creation.partition_by, schema),
        sort_order=parse_sort_by(creation.sort_by, schema),
        properties=naming_columns(
            new_table_properties(address.all_catalog_properties(), given), schema
        ),
        format_version=version,
    )
    new_table = NewTable(address, address.new_table_io(updates), tuple(updates))
    planned = new_table.planned()
    check_properties(planned.metadata)
    require_key_service(planned.metadata, planned.io, new_table.name)
    return new_table


def naming_columns(properties: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """Properties of columns by the columns' names, whose case the options of a DataFrame lose."""
    named = {}
    for name, value in properties.items():
        kind, separator, column = name.partition(_OF_COLUMN)
        found = [known for known in schema.ids_by_name if known.lower() == column.lower()]
        if separator and column not in found and len(found) == 1:
            name = f"{kind}{separator}{found[0]}"
        named[name] = value
    return named


def require_key_service(table: TableMetadata, io: FileIO, name: str) -> None:
    """Refuses to create an encrypted table that could not be written.

    Args:
        io: the storage of the table's files.
        name: the table's, for messages.

    Raises:
        UnsupportedFeatureError: its catalog has no key service.
    """
    if ENCRYPTION_KEY_ID.of(table.properties) is not None and io.key_service is None:
        raise no_service(name, table)


def check_properties(table: TableMetadata) -> None:
    """Parses all properties of a new table that this package reads, as it does later.

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
