"""`Catalog`: tables and namespaces by name."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from icebergds.api.table import Table
from icebergds.catalog import base, loading
from icebergds.catalog.address import TableAddress, identifier_of
from icebergds.catalog.base import Identifier
from icebergds.catalog.config import catalog_properties, default_catalog_name
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from icebergds.expr.names import quote_name
from icebergds.formats.data_file.file_schema import schema_from_arrow
from icebergds.operations.maintenance.purge import purge
from icebergds.operations.options.arguments import mapping_argument
from icebergds.operations.options.partition_text import parse_partition_by, parse_sort_by
from icebergds.operations.options.values import storage_properties_of
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.updates.new_table import (
    NO_PROPERTIES,
    UNPARTITIONED,
    UNSORTED,
    new_table_updates,
)

if TYPE_CHECKING:
    from pyspark.sql import types as spark

Name: TypeAlias = str | Identifier
"""A table or namespace: `db.events`, with backticks around a part with a dot, or a tuple."""


def load_catalog(
    name: str | None = None,
    *,
    location_map: Mapping[str, str] | None = None,
    **properties: str,
) -> Catalog:
    """A catalog by its properties, and by what the environment and `.pyiceberg.yaml` add to them.

    Args:
        name: the catalog's name; by default the configured `default-catalog`, or `default`.
        location_map: prefixes of locations and what stands in for them.
        properties: `type` (`filesystem`, `sql`), `uri`, `warehouse` and what else the type asks
            for, and properties of the storage (`s3.endpoint` and the like).

    Raises:
        InvalidOptionError: an unknown type, or a property that the type needs is missing.

    >>> catalog = load_catalog("lake", warehouse="s3://bucket/warehouse")  # doctest: +SKIP
    >>> catalog.load_table("db.events").scan().to_df(spark)  # doctest: +SKIP
    """
    name = name or default_catalog_name()
    # Once, here: other processes may have another environment.
    given = catalog_properties(name, mapping_argument("properties", properties))
    found = loading.load_catalog(name, given, location_map=location_map)
    if warehouse := given.get("warehouse"):
        given["warehouse"] = found.io.absolute(warehouse)
    return Catalog(found, given, location_map or {})


@dataclass(frozen=True, slots=True)
class PropertiesUpdateSummary:
    """What an update of properties did: their names, those to be removed that were not there."""

    removed: list[str]
    updated: list[str]
    missing: list[str]


class Catalog:
    """Tables and namespaces by name; made by `load_catalog`."""

    def __init__(
        self,
        catalog: base.Catalog,
        properties: Mapping[str, str],
        location_map: Mapping[str, str],
    ) -> None:
        self._catalog = catalog
        self._properties = dict(properties)
        self._location_map = dict(location_map)

    @property
    def name(self) -> str:
        return self._catalog.name

    @property
    def properties(self) -> Mapping[str, str]:
        """What the catalog was made of, that of the environment and the configuration too."""
        return self._properties

    def __repr__(self) -> str:
        return f"Catalog({self.name!r})"

    def create_table(
        self,
        identifier: Name,
        schema: Schema | pa.Schema | spark.StructType,
        location: str | None = None,
        partition_spec: PartitionSpec | str = UNPARTITIONED,
        sort_order: SortOrder | str = UNSORTED,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Table:
        """Creates a table without rows.

        Args:
            identifier: its name.
            schema: its columns, which get ids of the table's own.
            location: its directory; the catalog's choice by default.
            partition_spec: by the column ids of `schema`, or as text: `days(ts), bucket(16, id)`.
            sort_order: likewise, or as text: `ts desc, id`.
            properties: the table's; `format-version` chooses its version, 2 by default.

        Raises:
            AlreadyExistsError: there is such a table.
            NoSuchNamespaceError: the catalog keeps namespaces, and this one does not exist.
            InvalidOptionError, InvalidDataError, InvalidMetadataError: such a table cannot be.
            CommitStateUnknownError: whether the table was created is not known.

        >>> catalog.create_table("db.events", df.schema, partition_spec="days(ts)")
        ... # doctest: +SKIP
        """
        parts = _identifier(identifier)
        columns = _schema(schema)
        if isinstance(partition_spec, str):
            partition_spec = parse_partition_by(partition_spec, columns)
        if isinstance(sort_order, str):
            sort_order = parse_sort_by(sort_order, columns)
        updates = new_table_updates(
            columns,
            location=self._catalog.io.absolute(location)
            if location
            else self._catalog.new_table_location(parts),
            spec=partition_spec,
            sort_order=sort_order,
            properties=mapping_argument("properties", properties),
        )
        return self._table(parts, self._catalog.create(parts, updates))

    def create_table_if_not_exists(
        self,
        identifier: Name,
        schema: Schema | pa.Schema | spark.StructType,
        location: str | None = None,
        partition_spec: PartitionSpec | str = UNPARTITIONED,
        sort_order: SortOrder | str = UNSORTED,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Table:
        """The table as it is where there is one, or else a new one; arguments of `create_table`."""
        with contextlib.suppress(NoSuchTableError):
            return self.load_table(identifier)
        try:
            return self.create_table(
                identifier, schema, location, partition_spec, sort_order, properties
            )
        except AlreadyExistsError:
            return self.load_table(identifier)

    def load_table(self, identifier: Name) -> Table:
        """A table as it is now.

        Raises:
            NoSuchTableError: the catalog has no such table; names the nearest.
        """
        parts = _identifier(identifier)
        return self._table(parts, self._catalog.load(parts))

    def table_exists(self, identifier: Name) -> bool:
        """Whether there is such a table; one that cannot be read raises its error."""
        try:
            self._catalog.load(_identifier(identifier))
        except NoSuchTableError:
            return False
        return True

    def register_table(self, identifier: Name, metadata_location: str) -> Table:
        """Takes in a table by its metadata file.

        Raises:
            AlreadyExistsError: there is such a table.
            NoSuchNamespaceError: the catalog keeps namespaces, and this one does not exist.
            MissingFileError: there is no such metadata file.
            UnsupportedFeatureError: the catalog has tables in its own place only.
        """
        parts = _identifier(identifier)
        return self._table(parts, self._catalog.register(parts, metadata_location))

    def drop_table(self, identifier: Name) -> None:
        """Forgets a table; data files and manifests stay.

        Raises:
            NoSuchTableError: there is no such table.
        """
        self._catalog.drop(_identifier(identifier))

    def purge_table(self, identifier: Name) -> None:
        """Forgets a table, and then deletes every file that its metadata leads to.

        Raises:
            NoSuchTableError: there is no such table.
            ValidationError: the table's property `gc.enabled` is false.
            FormatError, MissingFileError: its metadata or a manifest is damaged or missing, so that
                its files cannot be told; the table is still there.
            IcebergError: the table is gone, and some of its files could not be deleted.
        """
        purge(self._catalog, _identifier(identifier))

    def rename_table(self, from_identifier: Name, to_identifier: Name) -> Table:
        """Gives a table another name; its files stay where they are.

        Raises:
            NoSuchTableError: there is no such table.
            AlreadyExistsError: there is a table of the new name.
            NoSuchNamespaceError: the new name's namespace does not exist.
            UnsupportedFeatureError: the catalog cannot rename.
        """
        self._catalog.rename(_identifier(from_identifier), _identifier(to_identifier))
        return self.load_table(to_identifier)

    def list_tables(self, namespace: Name) -> list[Identifier]:
        """Identifiers of a namespace's tables, in order. Raises NoSuchNamespaceError."""
        return self._catalog.list_tables(_namespace(namespace))

    def create_namespace(
        self, namespace: Name, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> None:
        """Creates a namespace.

        Raises:
            AlreadyExistsError: it is there.
            UnsupportedFeatureError: the catalog's namespaces cannot have properties.
        """
        given = mapping_argument("properties", properties)
        self._catalog.create_namespace(_namespace(namespace), given)

    def create_namespace_if_not_exists(
        self, namespace: Name, properties: Mapping[str, str] = NO_PROPERTIES
    ) -> None:
        """Creates a namespace unless it is there, with whatever properties."""
        with contextlib.suppress(AlreadyExistsError):
            self.create_namespace(namespace, properties)

    def drop_namespace(self, namespace: Name) -> None:
        """Forgets an empty namespace. Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        self._catalog.drop_namespace(_namespace(namespace))

    def list_namespaces(self, namespace: Name = ()) -> list[Identifier]:
        """Namespaces directly below another, in order. Raises NoSuchNamespaceError."""
        return self._catalog.list_namespaces(_namespace(namespace))

    def namespace_exists(self, namespace: Name) -> bool:
        """Whether there is such a namespace."""
        try:
            self._catalog.namespace_properties(_namespace(namespace))
        except NoSuchNamespaceError:
            return False
        return True

    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """The properties of a namespace. Raises NoSuchNamespaceError."""
        return self._catalog.namespace_properties(_namespace(namespace))

    def update_namespace_properties(
        self,
        namespace: Name,
        removals: set[str] | None = None,
        updates: Mapping[str, str] = NO_PROPERTIES,
    ) -> PropertiesUpdateSummary:
        """Removes and sets properties of a namespace.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
            InvalidOptionError: a property is both removed and set.
            UnsupportedFeatureError: the catalog's namespaces cannot have properties.
        """
        parts = _namespace(namespace)
        given = mapping_argument("updates", updates)
        wanted = set(removals or ())
        before = self._catalog.namespace_properties(parts)
        self._catalog.update_namespace_properties(parts, sorted(wanted), given)
        return PropertiesUpdateSummary(
            removed=sorted(wanted & before.keys()),
            updated=sorted(given),
            missing=sorted(wanted - before.keys()),
        )

    def _table(self, identifier: Identifier, state: TableState) -> Table:
        storage = storage_properties_of(self._properties)
        further = {k: v for k, v in self._properties.items() if k not in storage}
        path = quote_name(identifier)
        address = TableAddress(path, self.name, further, storage, self._location_map)
        return Table(address, state, self._catalog.operations(identifier))


def _identifier(name: Name) -> Identifier:
    if isinstance(name, str):
        return identifier_of(name)
    if not isinstance(name, Sequence) or not all(isinstance(part, str) for part in name):
        raise InvalidOptionError(
            f"{name!r} is of type {type(name).__name__}, expected a name such as 'db.events' or "
            "('db', 'events')"
        )
    return tuple(name)


def _namespace(name: Name) -> Identifier:
    return _identifier(name) if name else ()


def _schema(schema: Schema | pa.Schema | spark.StructType) -> Schema:
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, pa.Schema):
        return schema_from_arrow(schema)
    if type(schema).__module__.partition(".")[0] != "pyspark":
        raise InvalidOptionError(
            f"a schema of type {type(schema).__name__}; expected icebergds.Schema, pyarrow.Schema "
            "or the schema of a DataFrame"
        )
    from icebergds.spark.dataframe_schema import iceberg_schema

    return iceberg_schema(schema)
