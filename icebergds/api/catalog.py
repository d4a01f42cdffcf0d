"""Manages tables, views and namespaces by name (`Catalog`)."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from icebergds.api.catalog_base import (
    Name,
    check_metadata_file,
    namespace_argument,
    without_catalog,
)
from icebergds.api.catalog_transaction import CatalogTransaction
from icebergds.api.catalog_views import CatalogViews
from icebergds.api.progress import ProgressOption, showing
from icebergds.api.table import Table
from icebergds.api.table_definition import Columns, Partitioning, Sorting, read_definition
from icebergds.catalog import loading
from icebergds.catalog.address import TableAddress
from icebergds.catalog.base import (
    Identifier,
    OverwritingCatalog,
    ReferencingCatalog,
    UnregisteringCatalog,
)
from icebergds.catalog.config import catalog_properties, default_catalog_name
from icebergds.catalog.filesystem.commits import check_changeable
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.catalog.metadata_writing import next_metadata
from icebergds.catalog.new_properties import new_table_properties
from icebergds.catalog.views import no_view
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    FormatError,
    MissingFileError,
    NoSuchTableError,
    NotFoundError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.expr.names import quote_name
from icebergds.io.storage_options import storage_properties_of
from icebergds.operations.maintenance.unused_files.purge import purge
from icebergds.operations.options.arguments import (
    flag_argument,
    location_argument,
    mapping_argument,
    text_argument,
)
from icebergds.operations.outcomes import nothing_committed
from icebergds.operations.write.create import check_properties, require_key_service
from icebergds.spec.updates.new_table import (
    NO_PROPERTIES,
    UNPARTITIONED,
    UNSORTED,
    new_table_updates,
)

_LOG = logging.getLogger(__name__)


def load_catalog(
    name: str | None = None,
    *,
    location_map: Mapping[str, str] | None = None,
    **properties: str | os.PathLike[str],
) -> Catalog:
    """Loads a catalog; the environment and `.pyiceberg.yaml` may supply further properties.

    Args:
        name: the catalog's name; by default the configured `default-catalog`, or `default`.
        location_map: maps prefixes of locations to their replacements.
        properties: `type` (`filesystem`, `sql`, `rest` and others), `uri`, `warehouse` (a text or a
            path) and whatever else the type needs, and storage properties (such as `s3.endpoint`).

    Raises:
        InvalidOptionError: an unknown type, or a property that the type needs is missing.

    Examples:
        >>> catalog = load_catalog("lake", warehouse="s3://bucket/warehouse")  # doctest: +SKIP
        >>> catalog.load_table("db.events").scan().to_df(spark)  # doctest: +SKIP
    """
    name = text_argument("name", name) or default_catalog_name()
    locations = mapping_argument("location_map", location_map)
    # Resolved once, here: other processes may have another environment.
    texts = {
        key: os.fspath(v) if isinstance(v, os.PathLike) else v for key, v in properties.items()
    }
    given = catalog_properties(name, mapping_argument("properties", texts))
    found = loading.load_catalog(name, given, location_map=locations)
    warehouse = given.get("warehouse")
    if warehouse and loading.has_warehouse_location(name, given):
        given["warehouse"] = found.io.absolute(warehouse)
    return Catalog(found, given, locations)


def _loaded_again(
    name: str, properties: Mapping[str, str], location_map: Mapping[str, str]
) -> Catalog:
    found = loading.load_catalog(name, properties, location_map=location_map)
    return Catalog(found, properties, location_map)


class Catalog(CatalogViews):
    """Manages tables, views and namespaces by name; returned by `load_catalog`."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Connections cannot be pickled: another process loads the catalog from its properties.
        return _loaded_again, (self.name, self._properties, self._location_map)

    def address(self, identifier: Name) -> TableAddress:
        """The address with which any process finds a table of this catalog, existing or not."""
        return self._address(self._identifier(identifier))

    def create_table(
        self,
        identifier: Name,
        schema: Columns,
        location: str | None = None,
        partition_spec: Partitioning = UNPARTITIONED,
        sort_order: Sorting = UNSORTED,
        properties: Mapping[str, str] = NO_PROPERTIES,
        *,
        identifier_fields: Sequence[str] | str = (),
    ) -> Table:
        """Creates an empty table.

        Args:
            identifier: the table's name.
            schema: the columns, as an icebergds, Spark or Arrow schema, or as text in Spark's SQL,
                such as `id bigint NOT NULL COMMENT 'the key', name string`. The table assigns new
                field ids.
            location: the table's directory; the catalog chooses it by default.
            partition_spec: text such as `days(ts), bucket(16, id)`, a list of such terms, or a
                `PartitionSpec` that refers to the column ids of `schema`.
            sort_order: text such as `ts desc, id`, a list of such terms, or a `SortOrder` that
                refers to the column ids of `schema`.
            properties: table properties; `format-version` sets the format version, 2 by default.
                Names that this package does not know are stored as they are.
            identifier_fields: names of the columns that identify a row, the default keys of
                `Table.upsert`; they must be `NOT NULL`. The table does not check that they are
                unique. By default those of `schema`, which only an icebergds schema can have.

        Raises:
            AlreadyExistsError: the table already exists.
            NoSuchNamespaceError: the namespace does not exist, and the catalog requires it.
            InvalidOptionError, InvalidDataError, InvalidMetadataError: the definition is invalid.
            UnsupportedFeatureError: the table is to be encrypted, and the catalog has no key
                service.
            CommitStateUnknownError: it is not known whether the table was created.

        Examples:
            >>> catalog.create_table(  # doctest: +SKIP
            ...     "db.events", "id bigint NOT NULL, ts timestamp", partition_spec="days(ts)"
            ... )
        """
        parts = self._identifier(identifier)
        columns, spec, order = read_definition(
            schema, partition_spec, sort_order, identifier_fields
        )
        given = mapping_argument("properties", properties)
        with nothing_committed(self._named(parts)):
            updates = new_table_updates(
                columns,
                location=self._catalog.io.absolute(location_argument("location", location))
                if location
                else self._catalog.new_table_location(parts),
                spec=spec,
                sort_order=order,
                properties=new_table_properties(self._all_properties(), given),
            )
            planned = next_metadata(None, None, updates)
            check_properties(planned)
            require_key_service(planned, self._catalog.io, self._named(parts))
            state = self._catalog.create(parts, updates)
        _LOG.info("table %s: created at %s", state.name, state.metadata.location)
        return self._table(parts, state)

    def create_table_if_not_exists(
        self,
        identifier: Name,
        schema: Columns,
        location: str | None = None,
        partition_spec: Partitioning = UNPARTITIONED,
        sort_order: Sorting = UNSORTED,
        properties: Mapping[str, str] = NO_PROPERTIES,
        *,
        identifier_fields: Sequence[str] | str = (),
    ) -> Table:
        """Loads the table if it exists, otherwise creates it; arguments are as for `create_table`.

        An existing table is returned as it is.
        """
        with contextlib.suppress(NoSuchTableError):
            return self.load_table(identifier)
        try:
            return self.create_table(
                identifier,
                schema,
                location,
                partition_spec,
                sort_order,
                properties,
                identifier_fields=identifier_fields,
            )
        except AlreadyExistsError:
            return self.load_table(identifier)

    def load_table(self, identifier: Name) -> Table:
        """Loads the current state of a table.

        Raises:
            NoSuchTableError: the table does not exist; the message suggests the nearest name.
        """
        parts = self._identifier(identifier)
        state = self._catalog.load(parts)
        _LOG.info(
            "table %s: loaded, at snapshot %s", state.name, state.metadata.current_snapshot_id
        )
        return self._table(parts, state)

    def table_exists(self, identifier: Name) -> bool:
        """Whether the table exists; raises the error if its metadata cannot be read."""
        try:
            self._catalog.load(self._identifier(identifier))
        except NoSuchTableError:
            return False
        return True

    def register_table(
        self, identifier: Name, metadata_location: str, overwrite: bool = False
    ) -> Table:
        """Registers an existing table in the catalog, by its metadata file.

        Args:
            overwrite: if the catalog has a table of this name, replace it atomically. Commits to it
                that are not in the metadata file are lost; its files are kept.

        Raises:
            AlreadyExistsError: the catalog already has a table of this name, and `overwrite` is not
                set; or the name is that of a view or of a table of another format.
            NoSuchNamespaceError: the namespace does not exist, and the catalog requires it.
            MissingFileError: the metadata file does not exist.
            InvalidOptionError: it is a directory.
            UnsupportedFeatureError: the catalog supports only tables in its own warehouse, or
                cannot replace a table.
            CommitConflictError: others changed the table at each attempt to replace it.
            CommitStateUnknownError: it is not known whether the table was registered.
        """
        parts = self._identifier(identifier)
        location = location_argument("metadata_location", metadata_location)
        check_metadata_file(self._catalog.io, location)
        register = self._catalog.register
        if flag_argument("overwrite", overwrite):
            register = self._overwriting().register_over
        with nothing_committed(self._named(parts)):
            try:
                state = register(parts, location)
            except MissingFileError:
                raise MissingFileError(
                    f"table {self._named(parts)} cannot be registered: there is no metadata file "
                    f"{location}"
                ) from None
            return self._table(parts, state)

    def unregister_table(self, identifier: Name) -> str:
        """Removes a table from the catalog, to register it in another one; its files are kept.

        Other than `drop_table`, it makes sure that every commit to the table is in the metadata
        file that it returns, and that later ones fail.

        Returns:
            The location of the table's last metadata file.

        Raises:
            NoSuchTableError: the table does not exist.
            UnsupportedFeatureError: the catalog cannot make sure of this.
            CommitStateUnknownError: it is not known whether the table was removed.
        """
        parts = self._identifier(identifier)
        catalog = self._catalog
        if not isinstance(catalog, UnregisteringCatalog):
            raise UnsupportedFeatureError(
                f"table {self._named(parts)} was not unregistered: its catalog cannot remove a "
                "table and keep its metadata; REST, SQL and DynamoDB catalogs can"
            )
        with (
            nothing_committed(self._named(parts)),
            no_view(catalog, parts, "views cannot be unregistered; drop it with drop_view"),
        ):
            location = catalog.unregister(parts)
        _LOG.info("table %s: unregistered, at %s", self._named(parts), location)
        return location

    def drop_table(self, identifier: Name) -> None:
        """Drops a table from the catalog; its data files and manifests are kept.

        Raises:
            NoSuchTableError: the table does not exist.
        """
        parts = self._identifier(identifier)
        with (
            nothing_committed(self._named(parts)),
            no_view(self._catalog, parts, "drop it with drop_view or DROP VIEW"),
        ):
            self._catalog.drop(parts)
        _LOG.info("table %s: dropped", self._named(parts))

    def purge_table(self, identifier: Name, *, progress: ProgressOption = None) -> None:
        """Drops a table, then deletes every file reachable from its metadata.

        Args:
            progress: whether to show progress, or what to call with it: see `Table.maintain`.

        Raises:
            NoSuchTableError: the table does not exist.
            ValidationError: the table property `gc.enabled` is false.
            InvalidOptionError: the table was copied or moved, and its old location is not mapped to
                the new one.
            FormatError, MissingFileError: metadata or a manifest is damaged or missing, so the
                files cannot be listed; the table was not dropped.
            IcebergError: the table was dropped, but some files could not be deleted.
        """
        parts = self._identifier(identifier)
        with (
            no_view(self._catalog, parts, "drop it with drop_view or DROP VIEW"),
            showing("purge_table", self._named(parts), progress),
        ):
            purge(self._catalog, parts)

    def rename_table(self, from_identifier: Name, to_identifier: Name) -> Table:
        """Renames a table; its files stay where they are.

        Raises:
            NoSuchTableError: the table does not exist.
            AlreadyExistsError: a table of the new name already exists.
            NoSuchNamespaceError: the namespace of the new name does not exist.
            UnsupportedFeatureError: the catalog does not support renames.
        """
        source, target = self._identifier(from_identifier), self._identifier(to_identifier)
        with (
            nothing_committed(self._named(source)),
            no_view(self._catalog, source, "rename it with rename_view"),
        ):
            before = self._state_before(source)
            self._catalog.rename(source, target)
        _LOG.info("table %s: renamed to %s", self._named(source), self._named(target))
        try:
            return self.load_table(target)
        except StorageError as error:
            if before is None:
                error.add_outcome(f"table {self._named(source)} was renamed")
                raise
            _LOG.warning(
                "table %s was renamed to %s, but not loaded since: %s",
                self._named(source),
                self._named(target),
                error,
            )
            return self._table(target, replace(before, name=self._named(target)))

    def transaction(self) -> CatalogTransaction:
        """Begins changes of several tables that are committed together: see `CatalogTransaction`.

        SQL catalogs support this, and so do REST catalogs whose server does.
        """
        return CatalogTransaction(self._catalog, self._identifier, self._loaded)

    def list_tables(self, namespace: Name) -> list[Identifier]:
        """Lists a namespace's tables, sorted. Raises NoSuchNamespaceError."""
        parts = namespace_argument(namespace)
        with without_catalog(self.name, parts):
            return self._catalog.list_tables(parts)

    def _overwriting(self) -> OverwritingCatalog:
        catalog = self._catalog
        if isinstance(catalog, OverwritingCatalog):
            return catalog
        raise UnsupportedFeatureError(
            f"catalog {self.name} cannot replace a table by registering another with "
            "overwrite=True; drop the table that has the name, or register under another one"
        )

    def _referenced_by(self, views: Sequence[Identifier]) -> Catalog:
        """The same catalog for names in the query of a view.

        Args:
            views: the views of this catalog whose queries contain the names, outermost first.
        """
        if not views or not isinstance(self._catalog, ReferencingCatalog):
            return self
        return Catalog(self._catalog.referenced_by(views), self._properties, self._location_map)

    def _state_before(self, identifier: Identifier) -> TableState | None:
        """The state of a table; None if it is missing or damaged; storage errors are raised."""
        try:
            return self._catalog.load(identifier)
        except (FormatError, NotFoundError):
            return None

    def _table(self, identifier: Identifier, state: TableState) -> Table:
        return Table(self._address(identifier), state, self._catalog.operations(identifier))

    def _loaded(self, identifier: Identifier) -> LoadedTable:
        """Loads a table to change it."""
        operations = self._catalog.operations(identifier)
        state = self._catalog.load(identifier)
        check_changeable(operations, state)
        return LoadedTable(self._address(identifier), operations, state)

    def _address(self, identifier: Identifier) -> TableAddress:
        storage = storage_properties_of(self._properties)
        further = {k: v for k, v in self._properties.items() if k not in storage}
        path = quote_name(identifier)
        return TableAddress(path, self.name, further, storage, self._location_map)
